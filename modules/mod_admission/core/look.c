/*
 * look.c: a table as somebody sees it who changes nothing: status pages, the controller, and the hash that keys come from.
 */
#include "table.h"

#include <string.h>

uint32_t adm_hold_byte(const adm_table *table, const adm_permit *permit) {
  return permit->entry * table->shape.cells + permit->cell;
}

bool adm_look(const adm_table *table, uint32_t index, uint64_t now_ns, adm_seen *seen) {
  if (index >= table->shape.entries) return false;
  adm_entry *entry = entry_at(table, index);
  uint64_t key = entry->key;
  if (key == KEY_FREE || key == KEY_LEAVING) return false;
  *seen = (adm_seen){.group = (int)(entry->group % ADM_GROUPS)};
  memcpy(seen->label, entry->label, ADM_LABEL);
  seen->label[ADM_LABEL - 1] = '\0';
  uint64_t oldest = now_ns;
  for (uint32_t i = 0; i < cells_in_use(table, entry); i++) {
    uint64_t token = cells_of(table, entry)[i], since = since_of(table, entry)[i];
    unsigned state = token_state(token);
    if (state != CELL_HELD && state != CELL_LINGER) continue;
    seen->held += token_cost(token);
    if (state == CELL_LINGER) seen->lingering += token_cost(token);
    if (since != 0 && since < oldest) oldest = since;
  }
  seen->oldest_ns = now_ns - oldest;
  seen->waiting = queue_length(table, entry, 0, NULL);
  return true;
}

void adm_holders(const adm_table *table, uint64_t now_ns, void (*each)(void *, const adm_holder *), void *world) {
  for (uint32_t e = 0; e < table->shape.entries; e++) {
    adm_entry *entry = entry_at(table, e);
    for (uint32_t i = 0; i < cells_in_use(table, entry); i++) {
      uint64_t token = cells_of(table, entry)[i], since = since_of(table, entry)[i];
      if (token_state(token) != CELL_HELD) continue;
      uint64_t process = table->shared->owner[(token_owner(token) >> 9) % ADM_OWNERS].process;
      adm_holder holder = {.process = {(uint32_t)(process >> 32), (uint32_t)process},
                           .group = (int)(entry->group % ADM_GROUPS),
                           .cost = token_cost(token),
                           .held_ns = since != 0 && since < now_ns ? now_ns - since : 0};
      if (process != 0) each(world, &holder);
    }
  }
}

/* One round. gcc would not inline it by itself, and a call costs as much as the round does. */
__attribute__((always_inline)) static inline void sip_round(uint64_t v[4]) {
#define ROTATE(x, by) ((x) << (by) | (x) >> (64 - (by)))
  v[0] += v[1], v[1] = ROTATE(v[1], 13) ^ v[0], v[0] = ROTATE(v[0], 32);
  v[2] += v[3], v[3] = ROTATE(v[3], 16) ^ v[2];
  v[0] += v[3], v[3] = ROTATE(v[3], 21) ^ v[0];
  v[2] += v[1], v[1] = ROTATE(v[1], 17) ^ v[2], v[2] = ROTATE(v[2], 32);
#undef ROTATE
}

/* SipHash-1-3 (Aumasson and Bernstein, 2012; one round per word and three at the end is what hash tables of Rust, Python
 * and Ruby use): clients choose what is hashed, and must not be able to choose where it lands. */
uint64_t adm_hash(const adm_table *table, const void *bytes, size_t length) {
  const unsigned char *byte = bytes;
  uint64_t v[4] = {table->seed[0] ^ UINT64_C(0x736f6d6570736575), table->seed[1] ^ UINT64_C(0x646f72616e646f6d),
                   table->seed[0] ^ UINT64_C(0x6c7967656e657261), table->seed[1] ^ UINT64_C(0x7465646279746573)};
  uint64_t word;
  size_t whole = length / 8 * 8;
  for (size_t i = 0; i < whole; i += 8) {
    memcpy(&word, byte + i, 8); /* little-endian on every machine this is built for; elsewhere another hash, as good */
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
  }
  word = (uint64_t)length << 56;
  for (size_t i = whole; i < length; i++) word |= (uint64_t)byte[i] << (8 * (i - whole));
  v[3] ^= word;
  sip_round(v);
  v[0] ^= word;
  v[2] ^= 0xff;
  for (int i = 0; i < 3; i++) sip_round(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}
