/*
 * permit.c: taking a permit in one entry and giving it back, without a lock and without waiting.
 *
 * Publish, then look: a claim is written into a free cell, and only then are all cells added up. Of the permits that are
 * held at one moment, take the one whose claim was written last: when its process looked, all the others stood in their
 * cells already and have not left since, so the sum it found, which it kept its claim for, covers them all. The limit
 * therefore holds at every moment, whoever dies or is stopped where.
 *
 * What is left is fairness between claims made at the same time, which see each other: the one in the lower cell waits a
 * few rounds for the other to step back, the one in the higher cell steps back and comes again. A claimer that is
 * stopped at this point only takes up its own place.
 */
#include "table.h"

#include <sched.h>

#define ROUNDS 64 /* claims of one request before it takes the entry as full */
#define LOOKS 256 /* looks of one claim at claims in higher cells, which are about to step back */

/* What the cells of an entry weigh, seen from the cell `mine`. */
typedef struct weights {
  uint64_t held;          /* permits, the lingering included */
  uint64_t lower, higher; /* others' claims */
  uint32_t free;          /* the first free cell */
} weights;

static weights weigh(const adm_table *table, adm_entry *entry, uint32_t mine) {
  _Atomic uint64_t *cell = cells_of(table, entry);
  uint32_t top = cells_in_use(table, entry);
  weights sum = {.free = top};
  for (uint32_t i = 0; i < top; i++) {
    uint64_t token = cell[i];
    if (token == 0) {
      if (sum.free == top) sum.free = i;
    } else if (i == mine) {
      continue;
    } else if (token_state(token) != CELL_CLAIM) {
      sum.held += token_cost(token);
    } else if (i < mine) {
      sum.lower += token_cost(token);
    } else {
      sum.higher += token_cost(token);
    }
  }
  return sum;
}

uint64_t permits_weight(const adm_table *table, adm_entry *entry) {
  weights sum = weigh(table, entry, UINT32_MAX);
  return sum.held + sum.lower;
}

/* Gives way for a moment, longer when it has to be done again and again. */
static void pause_for(unsigned round) {
  if (round > 8) {
    sched_yield();
  } else {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }
}

/* Writes the claim into the first free cell from `from` on; the number of cells when there is none. */
static uint32_t claim(adm_table *table, adm_entry *entry, uint64_t token, uint32_t from) {
  _Atomic uint64_t *cell = cells_of(table, entry);
  for (uint32_t i = from; i < table->shape.cells; i++) {
    /* The top is raised before the claim is written: who looks later must not overlook it. */
    uint32_t top = entry->cells_top;
    while (top <= i && !atomic_compare_exchange_weak(&entry->cells_top, &top, i + 1)) {}
    uint64_t none = 0;
    if (cell[i] == 0 && atomic_compare_exchange_strong(&cell[i], &none, token)) return i;
  }
  return table->shape.cells;
}

typedef enum { KEEP, STEP_BACK, NO_ROOM } looked;

/* Looks, after the claim was written into `mine`, whether it may stay. */
static looked look(const adm_table *table, adm_entry *entry, uint32_t mine, uint32_t cost, uint32_t limit) {
  /* No more permits of 1 fit into an entry than it has cells: nothing to look for. */
  if (limit >= table->shape.cells && cost == 1) return KEEP;
  for (unsigned looks = 0; looks < LOOKS; looks++) {
    weights sum = weigh(table, entry, mine);
    if (sum.held + cost > limit) return NO_ROOM;
    if (sum.held + sum.lower + sum.higher + cost <= limit) return KEEP;
    if (sum.held + sum.lower + cost > limit) return STEP_BACK;
    pause_for(looks / 16);
  }
  return STEP_BACK;
}

take_result permit_take(adm_table *table, adm_entry *entry, uint64_t key, uint64_t token, uint32_t limit, uint64_t now_ns, adm_taken *taken) {
  uint32_t cost = token_cost(token);
  uint64_t claimed = token_in_state(token, CELL_CLAIM), held = token_in_state(token, CELL_HELD);
  for (unsigned round = 0; round < ROUNDS; round++) {
    weights before = weigh(table, entry, UINT32_MAX);
    taken->weight = before.held;
    if (before.held + cost > limit) return FULL;
    uint32_t mine = claim(table, entry, claimed, before.free);
    if (mine == table->shape.cells && before.free > 0) mine = claim(table, entry, claimed, 0);
    if (mine == table->shape.cells) {
      table->shared->cells_full++;
      return NO_CELL;
    }
    STEP("take: claimed");
    bool moved = entry->key != key;
    looked seen = moved ? NO_ROOM : look(table, entry, mine, cost, limit);
    uint64_t expected = claimed;
    if (seen == KEEP && atomic_compare_exchange_strong(&cells_of(table, entry)[mine], &expected, held)) {
      STEP("take: held");
      since_of(table, entry)[mine] = now_ns;
      taken->cell = mine;
      taken->token = held;
      return TAKEN;
    }
    expected = claimed; /* and nobody else's: the claim of a process that is dying may have been taken back already */
    atomic_compare_exchange_strong(&cells_of(table, entry)[mine], &expected, 0);
    STEP("take: withdrawn");
    /* While the claim stood, a release may have found no room for a waiter because of it. */
    queue_wake(table, entry, now_ns);
    if (moved) return MOVED;
    if (seen == NO_ROOM) return FULL;
    pause_for(round);
  }
  return FULL;
}

bool permit_return(adm_table *table, adm_entry *entry, uint32_t cell, uint64_t token, bool lingering) {
  if (token == 0 || cell >= table->shape.cells) return false;
  uint64_t after = lingering ? token_in_state(token, CELL_LINGER) : 0;
  return atomic_compare_exchange_strong(&cells_of(table, entry)[cell], &token, after);
}
