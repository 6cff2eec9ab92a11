/*
 * world.h: what the tests of the core share: a table in memory that forks share, and requests in one line.
 */
#ifndef ADMISSION_WORLD_H
#define ADMISSION_WORLD_H

#include "../core/permit.h"

#include <stdlib.h>
#include <sys/mman.h>

static const adm_shape SMALL = {.entries = 64, .cells = 32, .waiters = 32};

static inline adm_table *table_of(adm_shape shape) {
  void *memory = mmap(NULL, adm_table_bytes(shape), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  return adm_table_make(memory, shape, 42);
}

static inline void table_end(adm_table *table) {
  munmap(table->shared, table->bytes);
  adm_table_forget(table);
}

/* A process that there is not, another each time. */
static inline adm_process somebody(void) {
  static _Atomic uint32_t pid;
  return (adm_process){++pid, 1};
}

/* A group that enforces `limit`, with a queue of `queue` and three seconds to wait. */
static inline int group_with(adm_table *table, const char *name, uint32_t limit, uint32_t queue, adm_order order) {
  int group = adm_group_add(table, name);
  adm_settings settings = {.limit = limit, .queue = queue, .timeout_ms = 3000, .status = 503, .mode = ADM_ENFORCE, .order = (uint8_t)order};
  adm_group_apply(adm_group_at(table, group), &settings);
  return group;
}

static inline adm_layer layer_of(const adm_table *table, int group, const char *label) {
  return (adm_layer){.group = group, .key = adm_hash(table, label, strlen(label)), .label = label, .at_most = ADM_UNLIMITED, .cost = 1};
}

/* What all entries of a group weigh. */
static inline uint64_t weight_in(const adm_table *table, int group) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < table->shape.entries; i++) {
    adm_seen seen;
    if (adm_look(table, i, adm_now_ns(), &seen) && seen.group == group) sum += seen.held;
  }
  return sum;
}

/* The first entry of a group that has one. */
static inline uint32_t first_of(const adm_table *table, int group) {
  uint32_t i = adm_entry_next(table, 0);
  while (i < table->shape.entries && entry_at(table, i)->group != (uint32_t)group) i = adm_entry_next(table, i + 1);
  return i;
}

/* Whether no cell and no place in a queue is taken. */
static inline bool at_rest(const adm_table *table) {
  for (uint32_t e = 0; e < table->shape.entries; e++) {
    adm_entry *entry = entry_at(table, e);
    for (uint32_t i = 0; i < table->shape.cells; i++)
      if (cells_of(entry)[i] != 0) return false;
    for (uint32_t i = 0; i < table->shape.waiters; i++)
      if (waiting_of(table, entry)[i] != 0) return false;
  }
  return true;
}

#endif
