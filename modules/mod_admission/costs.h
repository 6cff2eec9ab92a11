/*
 * costs.h: learns what requests cost in memory, by looking at the processes that hold permits.
 *
 * A few processes per round, one after the other, so that looking costs the same however many there are. The arithmetic
 * is core/learn.c's, the reading of processes world.c's.
 */
#ifndef ADMISSION_COSTS_H
#define ADMISSION_COSTS_H

#include "core/admission.h"

typedef struct costs costs;

/* `root` is world.h's, `parent` the process that starts all of the table; `alone`: a process works on one page at a time, with what that
 * includes. NULL without memory. */
costs *costs_new(const adm_table *table, const char *root, uint32_t parent, bool alone);
void costs_free(costs *costs);

/* Where learning begins for a group of the table: its configured cost, or what a controller before this one learned. */
void costs_start(costs *costs, int group, uint32_t cost);

/* Tells of a living process of the table, before costs_round; all of them, each round. How large it is when it is told of
 * first, or its parent where that has less and pages come one at a time, is what its growth is measured from. */
void costs_living(costs *costs, adm_process process);

/* Looks at some processes that hold permits of groups for which `learns` is true. */
void costs_round(costs *costs, const bool learns[ADM_GROUPS], uint64_t now_ns);

/* What a group's requests cost, in ADM_COST_UNITs. */
uint32_t costs_of(const costs *costs, int group);

#endif
