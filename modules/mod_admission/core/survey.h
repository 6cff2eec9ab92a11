/*
 * survey.h: all entries of a table looked at once, in the order in which readers want them, with the sums of each group.
 *
 * One pass, so that the sums of a page agree with its lines. Each entry is as it was at its own moment; the server does
 * not stand still for a page.
 */
#ifndef ADMISSION_SURVEY_H
#define ADMISSION_SURVEY_H

#include "admission.h"

typedef struct adm_total {
  uint32_t known, busy;              /* entries; busy ones have permits or waiters */
  uint64_t held, lingering, waiting; /* over all entries, in units of the group */
  uint32_t fullest;                  /* held by the entry that holds most: what the limit bounds */
  uint64_t oldest_ns;
} adm_total;

typedef struct adm_survey {
  adm_total total[ADM_GROUPS];
  uint32_t known, busy;       /* entries of all groups */
  adm_seen *seen;             /* the busy ones by group, those that hold most first; NULL: no memory for them */
  uint32_t first[ADM_GROUPS]; /* where a group's entries begin in `seen` */
} adm_survey;

void adm_survey_take(adm_survey *survey, const adm_table *table, uint64_t now_ns);
void adm_survey_free(adm_survey *survey);

/* A group that has a name; the module's own two are not among them. */
bool adm_survey_shows(adm_table *table, int group);

/* The upper end, in microseconds, of the bucket that holds the `percent`th of 100 times; 0 when there are none, and
 * UINT64_MAX when it lies in the last bucket, which has no end. */
uint64_t adm_histogram_below(const adm_histogram *histogram, unsigned percent);
uint64_t adm_histogram_count(const adm_histogram *histogram);

#endif
