/*
 * carry.c: what is still held in tables that this one replaced. In each entry one cell stands for all that its key has there, so that
 * whoever takes a permit adds it up with the others and has to know of no other table. It takes no permits and gives none back.
 *
 * Such a cell lingers as that of a program does, but has no TOKEN_HOLD: it is nobody's, and no byte of the hold file belongs to it.
 * Only the parent, before anybody has joined, and then the controller write it.
 */
#include "permit.h"

#include <string.h>

#define CARRIED ((uint64_t)CELL_LINGER << TOKEN_STATE_SHIFT)

static bool is_key(uint64_t key) { return key != KEY_FREE && key != KEY_LEAVING; }

/* An entry of `from`, and which one it is in another table: its group there, -1 for none, and its key. */
typedef struct counterpart {
  int group;
  uint64_t key;
} counterpart;

static counterpart of_entry(const adm_table *table, const adm_table *from, const adm_entry *entry) {
  uint32_t group = entry->group % ADM_GROUPS;
  uint64_t key = entry->key;
  if (!is_key(key) || table->seed[0] != from->seed[0]) return (counterpart){-1, 0}; /* another seed has other keys for the same names */
  int there = adm_group_find(table, from->shared->group[group].name);
  return (counterpart){there, there < 0 ? 0 : entry_key((uint32_t)there, key ^ group_mark(group))};
}

/* What an entry holds itself. Who was woken to take its turn has it already, and will be in a cell when it gets a CPU, or is stopped. */
static uint64_t own_weight(const adm_table *table, adm_entry *entry) {
  uint64_t sum = 0, late_ns = ago(adm_now_ns(), TURN_NS);
  for (uint32_t i = 0; i < cells_in_use(table, entry); i++) {
    uint64_t token = cells_of(entry)[i];
    if (!token_is_carried(token)) sum += token_cost(token);
  }
  for (uint32_t i = 0; i < waiters_in_use(table, entry); i++) {
    uint64_t token = waiting_of(table, entry)[i];
    if (token_state(token) == WAITER_WOKEN && waiters_of(table, entry)[i].woken_ns >= late_ns) sum += token_cost(token);
  }
  return sum;
}

static uint64_t weight_before(const adm_table *table, const adm_entry *entry, adm_table *const *earlier) {
  uint64_t sum = 0;
  for (; *earlier; earlier++) {
    counterpart there = of_entry(*earlier, table, entry);
    adm_entry *before = there.group < 0 ? NULL : entry_known(*earlier, there.key);
    if (before) sum += own_weight(*earlier, before);
  }
  return sum < ADM_COST_MAX ? sum : ADM_COST_MAX;
}

/* Lets an entry carry what its key holds in the earlier tables; whether it carried another weight. Where no cell is free, it carries
 * nothing until one is. */
static bool carry(adm_table *table, adm_entry *entry, adm_table *const *earlier) {
  uint64_t key = entry->key;
  if (!is_key(key)) return false; /* who gives it away at this moment puts its key back when he sees what it carries */
  uint64_t weight = weight_before(table, entry, earlier), token = weight > 0 ? CARRIED | weight : 0;
  bool changed = false;
  for (uint32_t i = 0; i < cells_in_use(table, entry); i++) {
    uint64_t before = cells_of(entry)[i];
    if (!token_is_carried(before)) continue;
    changed |= before != token && atomic_compare_exchange_strong(&cells_of(entry)[i], &before, token);
    token = 0;
  }
  if (token != 0) {
    uint32_t mine = claim(table, entry, token, 0);
    if (mine < table->shape.cells) {
      STEP("carry: claimed");
      since_of(table, entry)[mine] = adm_now_ns();
      changed = true;
      /* Given to another key meanwhile? As in permit_take: who does that has seen this cell, or is seen here. */
      if (entry->key != key) atomic_compare_exchange_strong(&cells_of(entry)[mine], &token, 0);
    }
  }
  STEP("carry: entry");
  queue_wake(table, entry, adm_now_ns()); /* always: who changed it before may have died here, and told nobody */
  return changed;
}

static bool carries(const adm_table *table, adm_entry *entry) {
  for (uint32_t i = 0; i < cells_in_use(table, entry); i++)
    if (token_is_carried(cells_of(entry)[i])) return true;
  return false;
}

/* The entry for what an entry of an earlier table holds; made, if it may be. */
static adm_entry *entry_for(adm_table *table, adm_table *before, adm_entry *entry, bool make) {
  if (own_weight(before, entry) == 0) return NULL;
  counterpart here = of_entry(table, before, entry);
  if (here.group < 0) return NULL;
  adm_entry *known = entry_known(table, here.key);
  if (known || !make) return known;
  char label[ADM_LABEL];
  memcpy(label, entry->label, ADM_LABEL);
  label[ADM_LABEL - 1] = '\0';
  return entry_insert(table, (uint32_t)here.group, here.key, label, adm_now_ns());
}

static bool carry_all(adm_table *table, adm_table *const *earlier, bool make) {
  bool changed = false;
  for (uint32_t e = adm_entry_next(table, 0); e < table->shape.entries; e = adm_entry_next(table, e + 1))
    if (carries(table, entry_at(table, e))) changed |= carry(table, entry_at(table, e), earlier);
  for (adm_table *const *one = earlier; *one; one++)
    for (uint32_t e = adm_entry_next(*one, 0); e < (*one)->shape.entries; e = adm_entry_next(*one, e + 1)) {
      adm_entry *here = entry_for(table, *one, entry_at(*one, e), make);
      if (here) changed |= carry(table, here, earlier);
    }
  return changed;
}

void adm_carry_first(adm_table *table, adm_table *const *earlier) { carry_all(table, earlier, true); }

bool adm_carry(adm_table *table, adm_table *const *earlier) { return carry_all(table, earlier, false); }
