/*
 * shared.c: mapping the shared memory, and knowing it again; keeping texts (shared.h). It does not look into the table.
 */
#include "shared.h"

#include "core/step.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define HEAD_BYTES ((sizeof(shared_head) + 63) / 64 * 64)

#ifndef HEAD_VERSION
#define HEAD_VERSION 1 /* of what its members mean; a test builds a module with another one */
#endif

static uint64_t head_digest(void) {
  const size_t parts[] = {HEAD_VERSION, sizeof(shared_head), offsetof(shared_head, board), offsetof(shared_head, control),
                          offsetof(shared_head, stamp), offsetof(shared_head, healed_ns), offsetof(shared_head, let_through),
                          sizeof(log_stamp), offsetof(adm_control_kept, text)};
  uint64_t digest = UINT64_C(14695981039346656037);
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) digest = (digest ^ parts[i]) * UINT64_C(1099511628211);
  return digest;
}

size_t shared_bytes(adm_shape shape) { return HEAD_BYTES + adm_table_bytes(shape); }

/* Zeroed, and taken from the machine only as it is used. */
static void *map(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

static shared_head *map_head(size_t bytes) {
  shared_head *head = map(bytes);
  if (head) head->digest = head_digest();
  return head;
}

adm_table *shared_make(shared_memory *memory, adm_shape shape, uint64_t seed) {
  size_t bytes = shared_bytes(shape);
  shared_head *head = map_head(bytes);
  if (!head) return NULL;
  adm_table *table = adm_table_make((char *)head + HEAD_BYTES, shape, seed);
  if (!table) {
    munmap(head, bytes);
    errno = ENOMEM;
    return NULL;
  }
  *memory = (shared_memory){head, bytes};
  return table;
}

bool shared_make_head(shared_memory *memory) {
  shared_head *head = map_head(HEAD_BYTES);
  if (head) *memory = (shared_memory){head, HEAD_BYTES};
  return head != NULL;
}

/* Where a member lies is known once the digest, which is the first in every version, is the own one. */
shared_head *shared_known(const shared_memory *memory) {
  bool ours = memory->head && memory->bytes >= HEAD_BYTES && memory->head->digest == head_digest();
  return ours ? memory->head : NULL;
}

adm_table *shared_table(const shared_memory *memory) {
  if (!shared_known(memory) || !shared_has_table(memory)) return NULL;
  return adm_table_known((char *)memory->head + HEAD_BYTES, memory->bytes - HEAD_BYTES);
}

bool shared_has_table(const shared_memory *memory) { return memory->head && memory->bytes != HEAD_BYTES; }

void shared_drop_head(shared_memory *memory) {
  if (!shared_has_table(memory)) shared_drop(memory);
}

void shared_drop(shared_memory *memory) {
  if (memory->head) munmap(memory->head, memory->bytes);
  *memory = (shared_memory){NULL, 0};
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

/* All bits of the digest depend on a word's highest ones, too: else two changes there could make up for each other. */
static uint64_t mix(uint64_t digest, uint64_t word) {
  digest = (digest ^ word) * UINT64_C(0x9E3779B97F4A7C15);
  return digest ^ digest >> 32;
}

/* A word of a text; the last one is filled up with zeros. */
static uint64_t word_at(const char *text, size_t length, size_t at) {
  uint64_t word = 0;
  memcpy(&word, text + at, length - at < sizeof word ? length - at : sizeof word);
  return word;
}

static uint64_t digest_of(const char *text, size_t length) {
  uint64_t digest = mix(0, length);
  for (size_t at = 0; at < length; at += sizeof(uint64_t)) digest = mix(digest, word_at(text, length, at));
  return digest;
}

/* What stands in a place, where somebody may be writing: its digest, or 0 where it is no whole text. */
static uint64_t copy(const shared_place *from, char *text, size_t *length) {
  uint64_t bytes = from->length, digest = mix(0, bytes);
  if (bytes > SHARED_TEXT_BYTES) return 0;
  for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
    uint64_t word = from->word[at / sizeof word];
    if (text) memcpy(text + at, &word, sizeof word);
    digest = mix(digest, word);
  }
  if (length) *length = bytes;
  return digest == from->digest ? digest : 0;
}

shared_text *shared_text_make(void) { return map(sizeof(shared_text)); }

void shared_text_drop(shared_text *kept) {
  if (kept) munmap(kept, sizeof *kept);
}

uint64_t shared_text_keep(shared_text *kept, const char *text, size_t length) {
  uint64_t digest = digest_of(text, length);
  if (!kept || length > SHARED_TEXT_BYTES || shared_text_recall(kept, NULL, NULL) == digest) return digest;
  uint64_t turn = ++kept->turns;
  shared_place *to = &kept->place[turn % SHARED_TEXT_PLACES];
  STEP("text: turn");
  for (size_t at = 0; at < length; at += sizeof(uint64_t)) {
    to->word[at / sizeof(uint64_t)] = word_at(text, length, at);
    STEP("text: word");
  }
  to->length = length;
  STEP("text: length");
  to->digest = digest;
  STEP("text: digest");
  to->turn = turn; /* who is killed before this has spoilt the oldest one */
  return digest;
}

uint64_t shared_text_recall(const shared_text *kept, char *text, size_t *length) {
  uint64_t before = UINT64_MAX, digest = 0;
  for (int tries = 0; kept && !digest && tries < SHARED_TEXT_PLACES; tries++) {
    const shared_place *newest = NULL;
    uint64_t turn = 0;
    for (int i = 0; i < SHARED_TEXT_PLACES; i++) {
      uint64_t its = kept->place[i].turn;
      if (its <= turn || its >= before) continue;
      newest = &kept->place[i];
      turn = its;
    }
    if (!newest) break;
    digest = copy(newest, text, length);
    before = turn;
  }
  return digest;
}
