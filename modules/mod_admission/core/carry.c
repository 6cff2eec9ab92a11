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

static bool has_key(const adm_entry *entry) { return entry->key != KEY_FREE && entry->key != KEY_LEAVING; }

/* The key that an entry of `from` has in another table with the same seed; 0 where that knows no group of this name. */
static uint64_t key_in(const adm_table *table, const adm_table *from, const adm_entry *entry) {
  uint32_t group = entry->group % ADM_GROUPS;
  int there = adm_group_find(table, from->shared->group[group].name);
  return there < 0 ? 0 : entry_key((uint32_t)there, entry->key ^ group_mark(group));
}

/* What an entry holds itself. */
static uint64_t own_weight(const adm_table *table, adm_entry *entry) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < cells_in_use(table, entry); i++) {
    uint64_t token = cells_of(entry)[i];
    if (!token_is_carried(token)) sum += token_cost(token);
  }
  return sum;
}

static uint64_t weight_before(const adm_table *table, const adm_entry *entry, adm_table *const *earlier) {
  uint64_t sum = 0;
  for (; *earlier; earlier++) {
    uint64_t key = key_in(*earlier, table, entry);
    adm_entry *before = key ? entry_find(*earlier, key) : NULL;
    if (before) sum += own_weight(*earlier, before);
  }
  return sum < ADM_COST_MAX ? sum : ADM_COST_MAX;
}

/* Lets the entry carry so much; whether it carried another weight. Where no cell is free, it carries nothing until one is. */
static bool carry(adm_table *table, adm_entry *entry, uint64_t weight) {
  uint64_t token = weight > 0 ? CARRIED | weight : 0;
  bool changed = false;
  for (uint32_t i = 0; i < cells_in_use(table, entry); i++) {
    uint64_t before = cells_of(entry)[i];
    if (!token_is_carried(before)) continue;
    changed |= before != token && atomic_compare_exchange_strong(&cells_of(entry)[i], &before, token);
    token = 0;
  }
  if (token == 0) return changed;
  uint32_t mine = claim(table, entry, token, 0);
  if (mine < table->shape.cells) since_of(table, entry)[mine] = adm_now_ns();
  return mine < table->shape.cells;
}

bool adm_carry(adm_table *table, adm_table *const *earlier) {
  bool changed = false;
  for (uint32_t e = adm_entry_next(table, 0); e < table->shape.entries; e = adm_entry_next(table, e + 1)) {
    adm_entry *entry = entry_at(table, e);
    /* An entry that is given to another key at this moment carries that of the former one, until the next time. */
    if (!has_key(entry) || !carry(table, entry, weight_before(table, entry, earlier))) continue;
    changed = true;
    queue_wake(table, entry, adm_now_ns());
  }
  return changed;
}

void adm_carry_all(adm_table *table, adm_table *const *earlier) {
  for (adm_table *const *one = earlier; *one; one++) {
    for (uint32_t e = adm_entry_next(*one, 0); e < (*one)->shape.entries; e = adm_entry_next(*one, e + 1)) {
      adm_entry *before = entry_at(*one, e);
      uint64_t key = has_key(before) && own_weight(*one, before) > 0 ? key_in(table, *one, before) : 0;
      if (key == 0 || entry_find(table, key)) continue;
      char label[ADM_LABEL];
      memcpy(label, before->label, ADM_LABEL);
      label[ADM_LABEL - 1] = '\0';
      int group = adm_group_find(table, (*one)->shared->group[before->group % ADM_GROUPS].name);
      entry_insert(table, (uint32_t)group, key, label, adm_now_ns());
    }
  }
  adm_carry(table, earlier);
}
