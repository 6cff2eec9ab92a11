/*
 * learn.c: the arithmetic of learned costs (learn.h). It looks at no process and knows no group.
 */
#include "learn.h"

#include "admission.h"

#define FADES 0.01 /* of the peak, in a minute */
#define LEAST_GROWTH (4u << 20) /* buffers of a proxied request come and go within this; a program does not */
#define MINUTE_NS UINT64_C(60000000000)

uint64_t adm_cost_of(const adm_footprint *footprint) {
  if (footprint->requests == 0) return 0;
  uint64_t growth = footprint->own > footprint->before ? footprint->own - footprint->before : 0;
  uint64_t bytes;
  if (__builtin_add_overflow(footprint->programs, growth, &bytes)) return 0;
  if (footprint->programs == 0 && bytes / footprint->requests < LEAST_GROWTH) return 0;
  return bytes / footprint->requests;
}

void adm_learn(adm_learned *learned, uint64_t bytes, uint64_t now_ns) {
  if (bytes == 0) return;
  /* A night without requests must not forget the day: only time between sightings fades the peak, a minute at most. */
  uint64_t gap = learned->seen_ns && now_ns > learned->seen_ns ? now_ns - learned->seen_ns : 0;
  if (gap > MINUTE_NS) gap = MINUTE_NS;
  double faded = learned->peak * (1 - FADES * (double)gap / (double)MINUTE_NS);
  learned->peak = (double)bytes > faded ? (double)bytes : faded;
  learned->seen_ns = now_ns;
}

uint32_t adm_learned_cost(const adm_learned *learned) {
  double units = learned->peak / ADM_COST_UNIT;
  if (units >= ADM_COST_MAX) return ADM_COST_MAX;
  uint32_t whole = (uint32_t)units;
  return whole + (units > whole);
}
