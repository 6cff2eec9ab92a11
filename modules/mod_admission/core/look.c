/*
 * look.c: a table as somebody sees it who changes nothing: status pages, the controller, and the hash that keys come from.
 */
#include "permit.h"

#include <string.h>

uint64_t adm_hold_byte(const adm_table *table, const adm_permit *permit) { return hold_byte(table, permit->entry, permit->cell); }

uint32_t adm_entry_next(const adm_table *table, uint32_t from) {
  uint32_t entries = table->shape.entries;
  while (from < entries) {
    uint64_t word = atomic_load_explicit(&used_of(table)[from / 64], memory_order_relaxed) >> from % 64;
    if (word != 0) {
      from += (uint32_t)__builtin_ctzll(word);
      return from < entries ? from : entries; /* rubbish behind the end is no entry */
    }
    from = (from / 64 + 1) * 64;
  }
  return entries;
}

bool adm_table_in_use(const adm_table *table) {
  for (uint32_t i = 0; i < users_in_use(table); i++)
    if (!user_is_free(table->shared->user[i])) return true;
  for (uint32_t e = adm_entry_next(table, 0); e < table->shape.entries; e = adm_entry_next(table, e + 1))
    if (permits_weight(table, entry_at(table, e)) > 0) return true;
  return false;
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
    uint64_t token = cells_of(entry)[i], since = since_of(table, entry)[i];
    unsigned state = token_state(token);
    if (state != CELL_HELD && state != CELL_LINGER) continue;
    seen->held += token_cost(token);
    if (state == CELL_LINGER && !token_is_carried(token)) seen->lingering += token_cost(token);
    if (since != 0 && since < oldest) oldest = since;
  }
  seen->oldest_ns = now_ns - oldest;
  seen->waiting = queue_length(table, entry);
  return true;
}

void adm_holders(const adm_table *table, uint64_t now_ns, void (*each)(void *, const adm_holder *), void *world) {
  for (uint32_t e = adm_entry_next(table, 0); e < table->shape.entries; e = adm_entry_next(table, e + 1)) {
    adm_entry *entry = entry_at(table, e);
    for (uint32_t i = 0; i < cells_in_use(table, entry); i++) {
      uint64_t token = cells_of(entry)[i], since = since_of(table, entry)[i];
      if (token_state(token) != CELL_HELD) continue;
      uint32_t place = (token_owner(token) >> 9) % ADM_OWNERS;
      uint64_t user = table->shared->user[place];
      adm_holder holder = {.process = user_process(user),
                           .group = (int)(entry->group % ADM_GROUPS),
                           .request = token_sequence(token),
                           .cost = token_cost(token),
                           .held_ns = since != 0 && since < now_ns ? now_ns - since : 0};
      if (!user_is_free(user) && user_owner(place, user) == token_owner(token)) each(world, &holder);
    }
  }
}

/* ---- the hash ---------------------------------------------------------------------------------------------------- */

/* Both halves of the product, one over the other. */
static inline uint64_t fold(uint64_t a, uint64_t b) {
#ifdef __SIZEOF_INT128__
  unsigned __int128 product = (unsigned __int128)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
  uint64_t low = (uint32_t)a * (uint64_t)(uint32_t)b, cross = (a >> 32) * (uint32_t)b + (low >> 32);
  uint64_t other = (uint32_t)a * (b >> 32) + (uint32_t)cross;
  return ((other << 32) | (uint32_t)low) ^ ((a >> 32) * (b >> 32) + (cross >> 32) + (other >> 32));
#endif
}

/* So many bytes as a number, in the order that this machine has: elsewhere it is another hash, as good. */
static inline uint64_t eight(const unsigned char *byte) {
  uint64_t word;
  memcpy(&word, byte, sizeof word);
  return word;
}
static inline uint64_t four(const unsigned char *byte) {
  uint32_t word;
  memcpy(&word, byte, sizeof word);
  return word;
}

/* Sixteen bytes a step: words that nobody outside knows are laid over the bytes, and what that gives is multiplied (Wang Yi's
 * wyhash, which Go's maps have where there is no AES instruction). Clients choose what is hashed; as the hash is never shown to
 * them and is another one after each start, they cannot choose where it lands. */
uint64_t adm_hash(const adm_table *table, const void *bytes, size_t length) {
  const unsigned char *byte = bytes;
  uint64_t over = table->seed[0], sum = table->seed[1] ^ length, first = 0, last = 0;
  /* The end in two words, which may overlap each other and what was taken before. */
  if (length > 16) { /* as most names of files are */
    const unsigned char *end = byte + length - 16;
    for (; byte < end; byte += 16) sum = fold(eight(byte) ^ over, eight(byte + 8) ^ sum);
    first = eight(end);
    last = eight(end + 8);
  } else if (length >= 8) {
    first = eight(byte);
    last = eight(byte + length - 8);
  } else if (length >= 4) {
    first = four(byte);
    last = four(byte + length - 4);
  } else if (length > 0) {
    first = (uint64_t)byte[0] << 16 | (uint64_t)byte[length / 2] << 8 | byte[length - 1];
  }
  return fold(fold(first ^ over, last ^ sum) ^ table->seed[1], over ^ UINT64_C(0x9e3779b97f4a7c15));
}
