/*
 * permit.c: the whole way to a permit, where others may be in the way (permit.h).
 */
#include "permit.h"

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
  _Atomic uint64_t *cell = cells_of(entry);
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

typedef enum { KEEP, STEP_BACK, NO_ROOM } looked;

/* Looks, after the claim was written into `mine`, whether it may stay. */
static looked look(const adm_table *table, adm_entry *entry, uint32_t mine, uint32_t cost, uint32_t limit) {
  for (unsigned looks = 0; looks < LOOKS; looks++) {
    weights sum = weigh(table, entry, mine);
    if (sum.held + cost > limit) return NO_ROOM;
    if (sum.held + sum.lower + sum.higher + cost <= limit) return KEEP;
    if (sum.held + sum.lower + cost > limit) return STEP_BACK;
    pause_for(looks / 16);
  }
  return STEP_BACK;
}

void claim_withdraw(adm_table *table, adm_entry *entry, uint32_t mine, uint64_t claimed, uint64_t now_ns) {
  uint64_t expected = claimed; /* and nobody else's: the claim of a process that is dying may have been taken back already */
  atomic_compare_exchange_strong(&cells_of(entry)[mine], &expected, 0);
  STEP("take: withdrawn");
  /* While the claim stood, a release may have found no room for a waiter because of it. */
  queue_wake(table, entry, now_ns);
}

take_result permit_take(adm_table *table, adm_entry *entry, uint64_t key, uint64_t token, uint32_t limit, uint64_t now_ns, adm_taken *taken) {
  uint32_t cost = token_cost(token);
  uint64_t claimed = token_claimed(token);
  for (unsigned round = 0; round < ROUNDS; round++) {
    weights before = weigh(table, entry, UINT32_MAX);
    taken->weight = before.held;
    if (before.held + cost > limit) return FULL;
    STEP("take: looked round");
    uint32_t mine = claim(table, entry, claimed, before.free);
    if (mine == table->shape.cells && before.free > 0) mine = claim(table, entry, claimed, 0);
    if (mine == table->shape.cells) {
      table->shared->cells_full++;
      return NO_CELL;
    }
    STEP("take: claimed");
    bool moved = entry->key != key;
    looked seen = moved ? NO_ROOM : look(table, entry, mine, cost, limit);
    if (seen == KEEP && claim_stays(table, entry, mine, token, now_ns, taken)) return TAKEN;
    claim_withdraw(table, entry, mine, claimed, now_ns);
    if (moved) return MOVED;
    if (seen == NO_ROOM) return FULL;
    pause_for(round);
  }
  return FULL;
}
