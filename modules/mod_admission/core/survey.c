/*
 * survey.c: looks at every entry of a table once (survey.h). It takes memory for its own copy and changes nothing.
 */
#include "survey.h"

#include <stdlib.h>
#include <string.h>

/* By group, then the busiest first, then by label, so that two looks at the same state read the same. */
static int before(const void *left, const void *right) {
  const adm_seen *a = left, *b = right;
  if (a->group != b->group) return a->group < b->group ? -1 : 1;
  if (a->held != b->held) return a->held > b->held ? -1 : 1;
  if (a->waiting != b->waiting) return a->waiting > b->waiting ? -1 : 1;
  return strcmp(a->label, b->label);
}

static void add(adm_total *total, const adm_seen *seen) {
  total->busy++;
  total->held += seen->held;
  total->lingering += seen->lingering;
  total->waiting += seen->waiting;
  if (seen->held > total->fullest) total->fullest = seen->held;
  if (seen->oldest_ns > total->oldest_ns) total->oldest_ns = seen->oldest_ns;
}

void adm_survey_take(adm_survey *survey, const adm_table *table, uint64_t now_ns) {
  uint32_t room = adm_table_shape(table).entries;
  memset(survey, 0, sizeof *survey);
  survey->seen = calloc(room, sizeof *survey->seen);
  for (uint32_t i = adm_entry_next(table, 0); i < room; i = adm_entry_next(table, i + 1)) {
    adm_seen seen;
    if (!adm_look(table, i, now_ns, &seen) || seen.group < 0 || seen.group >= ADM_GROUPS) continue;
    survey->known++;
    survey->total[seen.group].known++;
    if (seen.held == 0 && seen.lingering == 0 && seen.waiting == 0) continue;
    seen.label[ADM_LABEL - 1] = '\0';
    add(&survey->total[seen.group], &seen);
    if (survey->seen) survey->seen[survey->busy] = seen;
    survey->busy++;
  }
  if (survey->seen) qsort(survey->seen, survey->busy, sizeof *survey->seen, before);
  uint32_t first = 0;
  for (int group = 0; group < ADM_GROUPS; group++) {
    survey->first[group] = first;
    first += survey->total[group].busy;
  }
}

void adm_survey_free(adm_survey *survey) {
  free(survey->seen);
  survey->seen = NULL;
}

bool adm_survey_shows(adm_table *table, int group) {
  return group >= ADM_GROUP_FIRST && group < ADM_GROUPS && adm_group_at(table, group)->name[0] != '\0';
}

uint64_t adm_histogram_count(const adm_histogram *histogram) {
  uint64_t count = 0;
  for (int b = 0; b < ADM_BUCKETS; b++) count += atomic_load_explicit(&histogram->bucket[b], memory_order_relaxed);
  return count;
}

uint64_t adm_histogram_below(const adm_histogram *histogram, unsigned percent) {
  uint64_t bucket[ADM_BUCKETS], count = 0, seen = 0;
  for (int b = 0; b < ADM_BUCKETS; b++) {
    bucket[b] = atomic_load_explicit(&histogram->bucket[b], memory_order_relaxed);
    count += bucket[b];
  }
  if (count == 0) return 0;
  uint64_t wanted = (count * percent + 99) / 100;
  for (int b = 0; b < ADM_BUCKETS - 1; b++) {
    seen += bucket[b];
    if (seen >= wanted) return (uint64_t)1 << b;
  }
  return UINT64_MAX;
}
