/*
 * learn.h: what one request of a group costs in memory, learned from processes that hold its permits.
 *
 * The highest cost seen, which fades by 1 % per minute while requests are seen at all; without anything seen the
 * configured cost stays. Pure arithmetic on bytes; who holds what and how large processes are comes from the controller.
 * Programs that are not below the process that holds the permit (mod_cgid, FPM, a proxied server) are not seen: their
 * groups want cost=SIZE.
 */
#ifndef ADMISSION_LEARN_H
#define ADMISSION_LEARN_H

#include <stdbool.h>
#include <stdint.h>

/* What is remembered of one group. */
typedef struct adm_learned {
  double peak;      /* bytes; to begin with, the configured cost */
  uint64_t seen_ns; /* when something was seen last; 0: never */
} adm_learned;

/* A process that holds permits, and what is below it. */
typedef struct adm_footprint {
  uint64_t programs; /* bytes of all its descendants */
  uint64_t own;      /* bytes of itself */
  uint64_t before;   /* bytes of itself without a request */
  unsigned requests; /* that it works on */
} adm_footprint;

/* Bytes per request of a process, or 0 when nothing can be said (too little growth to be a program's). */
uint64_t adm_cost_of(const adm_footprint *footprint);

/* Takes one process's bytes per request (from adm_cost_of) into account. */
void adm_learn(adm_learned *learned, uint64_t bytes, uint64_t now_ns);

/* The cost in ADM_COST_UNITs, rounded up. */
uint32_t adm_learned_cost(const adm_learned *learned);

#endif
