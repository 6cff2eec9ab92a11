/*
 * test_adapt.c: sequences of readings and the limits they lead to; costs that are learned and fade.
 */
#include "../core/adapt.h"
#include "../core/admission.h"
#include "../core/learn.h"

#include "check.h"

#define MEG (UINT64_C(1) << 20)
#define SECOND UINT64_C(1000000000)
/* The one door. */
static void check(const char *what, const char *got, const char *expected) {
  check_text(got, expected, what, __FILE__, __LINE__);
}

/* Steps of 250 ms under the same conditions; the limit after each second. */
static void steps(const char *what, adm_adapt *state, uint64_t *now, unsigned seconds, adm_demand demand, adm_pressure pressure,
                  const char *expected) {
  char out[256] = "";
  for (unsigned second = 0; second < seconds; second++) {
    for (unsigned i = 0; i < 4; i++) {
      *now += SECOND / 4;
      adm_adapt_step(state, &demand, &pressure, *now);
    }
    size_t length = strlen(out);
    snprintf(out + length, sizeof out - length, "%s%u", length ? " " : "", state->limit);
  }
  check(what, out, expected);
}

static void limits(void) {
  const adm_pressure calm = {.knows_stall = true, .knows_memory = true, .available = 700 * MEG, .total = 1000 * MEG};
  adm_pressure stalled = calm, uneasy = calm, full = calm, blind = {0}, no_psi = calm;
  stalled.stall = 0.11, uneasy.stall = 0.05, full.available = 249 * MEG, no_psi.knows_stall = false;
  const adm_demand busy = {.min = 1, .max = 16, .held = 16, .waiting = 3, .cost = 200 * MEG};
  adm_demand idle = busy, low = busy, none = busy;
  idle.waiting = 0, low.held = 3, none.held = 0;
  uint64_t now = 100 * SECOND;
  adm_adapt state = {.limit = 16};

  steps("stalled: 70 %, then 2 s of rest", &state, &now, 7, busy, stalled, "11 11 7 7 4 4 2");
  steps("down to min", &state, &now, 6, busy, stalled, "2 1 1 1 1 1");
  steps("calm: one more a second after the freeze", &state, &now, 6, busy, calm, "1 2 3 4 5 6");
  steps("nobody waits: stays", &state, &now, 3, idle, calm, "6 6 6");
  idle.refused = true;
  steps("nobody can wait, and somebody is turned away: raises", &state, &now, 1, idle, calm, "7");
  idle.held = 0;
  steps("which came and went between two steps: raises", &state, &now, 1, idle, calm, "8");
  state.limit = 6;
  steps("uneasy: stays", &state, &now, 3, busy, uneasy, "6 6 6");
  steps("half of the limit held: raises", &state, &now, 1, low, calm, "7");
  steps("then 3 of 8: stays", &state, &now, 3, low, calm, "8 8 8");
  steps("less than half held: stays", &state, &now, 2, none, calm, "8 8");
  steps("less than reserve and one more: down", &state, &now, 3, busy, full, "5 5 3");
  state = (adm_adapt){.limit = 15};
  steps("up to max", &state, &now, 3, busy, calm, "16 16 16");
  adm_demand narrow = busy;
  narrow.max = 5;
  steps("bounds that change are kept at once", &state, &now, 1, narrow, calm, "5");
  steps("nothing known: stays", &state, &now, 2, (adm_demand){.min = 1, .max = 16, .held = 9, .waiting = 9}, blind, "5 5");
  steps("without PSI by memory and swap", &state, &now, 2, busy, no_psi, "6 7");
  no_psi.knows_swap = true, no_psi.swapped_in = 2000;
  steps("without PSI, swap is read", &state, &now, 1, busy, no_psi, "4");
  state = (adm_adapt){.limit = 0};
  steps("never below min", &state, &now, 1, (adm_demand){.min = 2, .max = 4}, stalled, "2");
  state = (adm_adapt){.limit = ADM_UNLIMITED};
  steps("never above max", &state, &now, 1, (adm_demand){.min = 2, .max = 4}, calm, "4");
}

static void cost(adm_footprint footprint, const char *expected) {
  char out[32];
  snprintf(out, sizeof out, "%lluK", (unsigned long long)adm_cost_of(&footprint) / 1024);
  check("cost", out, expected);
}

static void costs(void) {
  cost((adm_footprint){200 * MEG, 10 * MEG, 9 * MEG, 1}, "205824K");
  cost((adm_footprint){400 * MEG, 10 * MEG, 10 * MEG, 4}, "102400K");
  cost((adm_footprint){0, 60 * MEG, 20 * MEG, 1}, "40960K");
  cost((adm_footprint){0, 12 * MEG, 9 * MEG, 1}, "0K");  /* a worker's buffers */
  cost((adm_footprint){0, 9 * MEG, 60 * MEG, 1}, "0K");  /* it became smaller */
  cost((adm_footprint){200 * MEG, 0, 0, 0}, "0K");
  cost((adm_footprint){UINT64_MAX, 9, 0, 1}, "0K");

  adm_learned learned = {.peak = 200.0 * MEG};
  char out[64];
  adm_learn(&learned, 0, 5 * SECOND);
  snprintf(out, sizeof out, "%u", adm_learned_cost(&learned));
  check("nothing seen: as configured", out, "3200");
  for (unsigned i = 1; i <= 60 * 4; i++) adm_learn(&learned, 50 * MEG, i * SECOND / 4);
  snprintf(out, sizeof out, "%u", adm_learned_cost(&learned));
  check("a minute of small ones: 1 % less", out, "3169");
  adm_learn(&learned, 300 * MEG + 1, 61 * SECOND);
  snprintf(out, sizeof out, "%u", adm_learned_cost(&learned));
  check("a larger one counts at once, rounded up", out, "4801");
  adm_learn(&learned, 50 * MEG, 36000 * SECOND);
  snprintf(out, sizeof out, "%u", adm_learned_cost(&learned));
  check("hours without a request fade it like a minute", out, "4753");
  learned.peak = 1e30;
  snprintf(out, sizeof out, "%u", adm_learned_cost(&learned) == ADM_COST_MAX);
  check("no more than a cost can be", out, "1");
}

int main(void) {
  limits();
  costs();
  return checked("test_adapt");
}
