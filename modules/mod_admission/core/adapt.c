/*
 * adapt.c: the arithmetic of a limit that follows the pressure on memory (adapt.h). No clock, no files, no table.
 */
#include "adapt.h"

#define STALL_HIGH 0.10 /* of the time: memory is short */
#define STALL_LOW 0.01  /* below: there is no sign of it */
#define SWAP_HIGH 1000  /* pages per second read back from swap: the sign of it where the kernel has no PSI */
#define FREEZE_NS UINT64_C(2000000000)
#define RAISE_NS UINT64_C(1000000000)

static bool short_of_memory(const adm_demand *demand, const adm_pressure *pressure) {
  if (pressure->knows_stall && pressure->stall > STALL_HIGH) return true;
  if (!pressure->knows_stall && pressure->knows_swap && pressure->swapped_in > SWAP_HIGH) return true;
  uint64_t reserve = adm_reserve(pressure->total);
  return pressure->knows_memory && (pressure->available < reserve || pressure->available - reserve < demand->cost);
}

/* Whether there is a use for one more permit, and nothing against it. Nothing known about memory is against it. Who was turned away found all
 * places taken, whatever is held at the moment of this step. */
static bool may_raise(uint32_t limit, const adm_demand *demand, const adm_pressure *pressure) {
  bool calm = pressure->knows_stall ? pressure->stall < STALL_LOW : pressure->knows_memory && pressure->swapped_in < 1;
  bool used = demand->refused || (demand->waiting > 0 && demand->held >= limit / 2);
  return calm && used && limit < demand->max;
}

static uint32_t between(uint32_t limit, uint32_t min, uint32_t max) {
  if (limit > max) limit = max;
  return limit < min ? min : limit;
}

uint32_t adm_adapt_step(adm_adapt *state, const adm_demand *demand, const adm_pressure *pressure, uint64_t now_ns) {
  state->limit = between(state->limit, demand->min, demand->max);
  if (now_ns < state->frozen_until_ns) return state->limit;
  if (short_of_memory(demand, pressure)) {
    state->limit = between((uint32_t)((uint64_t)state->limit * 7 / 10), demand->min, demand->max);
    state->frozen_until_ns = now_ns + FREEZE_NS;
    state->next_raise_ns = state->frozen_until_ns;
  } else if (now_ns >= state->next_raise_ns && may_raise(state->limit, demand, pressure)) {
    state->limit++;
    state->next_raise_ns = now_ns + RAISE_NS;
  }
  return state->limit;
}
