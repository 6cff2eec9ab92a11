/*
 * adapt.h: a limit that follows the pressure on memory, between min and max.
 *
 * Additive increase, multiplicative decrease: a stall above 10 % of the time, or less memory available than a reserve
 * and one more request need, cuts the limit to 70 % and freezes it for 2 seconds, in which memory that is being freed
 * can show; one more permit per second comes back while requests wait for it, or are turned away, and there is no stall. Pure
 * arithmetic: readings in, limit out. It uses no gradient of latency: programs are too different for that.
 */
#ifndef ADMISSION_ADAPT_H
#define ADMISSION_ADAPT_H

#include "pressure.h"

/* What one adaptive limit remembers. Zero is a good start but for `limit`. */
typedef struct adm_adapt {
  uint32_t limit;
  uint64_t frozen_until_ns; /* no change before */
  uint64_t next_raise_ns;   /* no raise before */
} adm_adapt;

typedef struct adm_demand {
  uint32_t min, max;      /* bounds now */
  uint32_t held, waiting; /* of the group's busiest entry */
  uint64_t cost;          /* bytes that one more request needs; 0: unknown */
  bool refused;           /* whether somebody was turned away by the limit since the last step */
} adm_demand;

/* The limit from now on, which is also state->limit. */
uint32_t adm_adapt_step(adm_adapt *state, const adm_demand *demand, const adm_pressure *pressure, uint64_t now_ns);

#endif
