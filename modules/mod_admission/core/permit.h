/*
 * permit.h: taking a permit in one entry and giving it back, without a lock and without waiting.
 *
 * Publish, then look: a claim is written into a free cell, and only then are all cells added up. Of the permits that are
 * held at one moment, take the one whose claim was written last: when its process looked, all the others stood in their
 * cells already and have not left since, so the sum it found, which it kept its claim for, covers them all. The limit
 * therefore holds at every moment, whoever dies or is stopped where.
 *
 * What is left is fairness between claims made at the same time, which see each other: the one in the lower cell waits a
 * few rounds for the other to step back, the one in the higher cell steps back and comes again. A claimer that is
 * stopped at this point only takes up its own place.
 *
 * What nearly every request does is here, so that admit.c has it in one piece with its own; the rest is in permit.c.
 */
#ifndef ADMISSION_PERMIT_H
#define ADMISSION_PERMIT_H

#include "table.h"

/* FULL: over the limit. NO_CELL: below the limit, and no cell free. MOVED: the entry was given to another key. */
typedef enum { TAKEN, FULL, NO_CELL, MOVED } take_result;

/* What is told of a permit that was taken, or was not. */
typedef struct adm_taken {
  uint32_t cell;
  uint64_t token;  /* what the cell holds now */
  uint64_t weight; /* what the others' permits weighed */
} adm_taken;

static inline adm_permit permit_taken(adm_entry *entry, const adm_taken *taken, unsigned layer) {
  return (adm_permit){.entry = entry, .cell = (uint16_t)taken->cell, .layer = (uint16_t)layer, .token = taken->token};
}

/* Tries to take a permit. Never waits. `token` has owner, sequence, hold and cost; `key` is the entry's as it was found. */
take_result permit_take(adm_table *table, adm_entry *entry, uint64_t key, uint64_t token, uint32_t limit, uint64_t now_ns, adm_taken *taken);

/* What all permits and claims of an entry weigh; a cell that is free weighs nothing. */
static inline uint64_t permits_weight(const adm_table *table, adm_entry *entry) {
  const _Atomic uint64_t *cell = cells_of(entry), *end = cell + cells_in_use(table, entry);
  uint64_t sum = 0;
  for (; cell < end; cell++) sum += token_cost(*cell);
  return sum;
}

/* The same without claims, of which some step back. */
static inline uint64_t permits_held(const adm_table *table, adm_entry *entry) {
  const _Atomic uint64_t *cell = cells_of(entry), *end = cell + cells_in_use(table, entry);
  uint64_t sum = 0;
  for (; cell < end; cell++) {
    uint64_t token = *cell;
    if (token_state(token) != CELL_CLAIM) sum += token_cost(token);
  }
  return sum;
}

/* What those hold or claim that a limit would have let in at once: who is only observed, and over it, is not among them (observe.h). */
static inline uint64_t permits_within(const adm_table *table, adm_entry *entry) {
  const _Atomic uint64_t *cell = cells_of(entry), *end = cell + cells_in_use(table, entry);
  uint64_t sum = 0;
  for (; cell < end; cell++) {
    uint64_t token = *cell;
    if (!(token & TOKEN_OVER)) sum += token_cost(token);
  }
  return sum;
}

/* How long it takes until one more permit comes free in an entry where all are taken, by the means so far; 0: unknown. */
static inline uint64_t turn_ns(const adm_entry *entry, uint32_t limit, uint32_t cost) {
  return cost > 0 && limit > cost ? entry->service_ns / (limit / cost) : entry->service_ns;
}

/* ---- the steps ---- */

/* A request's token is in state FREE. */
static inline uint64_t token_claimed(uint64_t token) { return token | (uint64_t)CELL_CLAIM << TOKEN_STATE_SHIFT; }
static inline uint64_t token_held(uint64_t token) { return token | (uint64_t)CELL_HELD << TOKEN_STATE_SHIFT; }

/* Writes the claim into the first free cell from `from` on; the number of cells when there is none. */
static inline uint32_t claim(adm_table *table, adm_entry *entry, uint64_t token, uint32_t from) {
  _Atomic uint64_t *cell = cells_of(entry);
  for (uint32_t i = from; i < table->shape.cells; i++) {
    /* The top is raised before the claim is written: who looks later must not overlook it. */
    uint32_t top = entry->cells_top;
    while (top <= i && !atomic_compare_exchange_weak(&entry->cells_top, &top, i + 1)) {}
    uint64_t none = 0;
    if (cell[i] == 0 && atomic_compare_exchange_strong(&cell[i], &none, token)) return i;
  }
  return table->shape.cells;
}

/* Makes a permit of the claim; false when it is not there any more. */
static inline bool claim_stays(const adm_table *table, adm_entry *entry, uint32_t mine, uint64_t token, uint64_t now_ns, adm_taken *taken) {
  uint64_t expected = token_claimed(token), held = token_held(token);
  if (!atomic_compare_exchange_strong(&cells_of(entry)[mine], &expected, held)) return false;
  STEP("take: held");
  atomic_store_explicit(&since_of(table, entry)[mine], now_ns, memory_order_relaxed); /* only looked at */
  taken->cell = mine;
  taken->token = held;
  return true;
}

/* Takes the claim back, and sees to it that nobody waits because of it. */
void claim_withdraw(adm_table *table, adm_entry *entry, uint32_t mine, uint64_t claimed, uint64_t now_ns);

/* ---- at once, or not at all ---- */

/* Whether an entry always had room: not even as many cells of it were ever used as permits of 1 fit in, and nobody waited. */
static inline bool permit_had_room(const adm_entry *entry, uint32_t limit) {
  return entry->cells_top < limit && entry->waiters_top == 0;
}

/* Takes a permit of 1 where there had always been room; steps back when anything is in the way, for permit_take to judge. */
static ADM_INLINE bool permit_take_at_once(adm_table *table, adm_entry *entry, uint64_t key, uint64_t token, uint32_t limit, uint64_t now_ns,
                                           adm_taken *taken) {
  uint64_t claimed = token_claimed(token | 1);
  uint32_t mine = claim(table, entry, claimed, 0);
  if (mine == table->shape.cells) return false;
  STEP("take: claimed at once");
  if (entry->key == key) {
    uint64_t weight = permits_weight(table, entry);
    taken->weight = weight - 1; /* without this one */
    if (weight <= limit && claim_stays(table, entry, mine, token | 1, now_ns, taken)) return true;
  }
  claim_withdraw(table, entry, mine, claimed, now_ns);
  return false;
}

/* Gives a permit back if it still holds its cell; `lingering`: its program goes on. */
static inline bool permit_return(const adm_permit *permit, bool lingering) {
  uint64_t token = permit->token;
  if (token == 0) return false;
  return atomic_compare_exchange_strong(&cells_of(permit->entry)[permit->cell], &token, lingering ? token_in_state(token, CELL_LINGER) : 0);
}

#endif
