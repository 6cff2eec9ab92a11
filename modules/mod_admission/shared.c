/*
 * shared.c: mapping the shared memory, and knowing it again (shared.h). It does not look into the table.
 */
#include "shared.h"

#include <errno.h>
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
static shared_head *map(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  shared_head *head = memory;
  head->digest = head_digest();
  return head;
}

adm_table *shared_make(shared_memory *memory, adm_shape shape, uint64_t seed) {
  size_t bytes = shared_bytes(shape);
  shared_head *head = map(bytes);
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
  shared_head *head = map(HEAD_BYTES);
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
