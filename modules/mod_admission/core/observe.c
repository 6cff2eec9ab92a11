/*
 * observe.c: what requests that are only observed would do to a queue (observe.h). It makes nobody wait, and writes nothing but shadows.
 */
#include "observe.h"

#include <string.h>

/* A shadow is one word: its work, and at what time that was left of it. Work is permits times ticks, a float. */
#define TICK_NS (UINT64_C(1) << 16)
#define MOST_WORK 1e15F /* more than any: two thousand permits for a year */
#define MANY 1e9        /* permits */

typedef struct shadow {
  float work;
  uint32_t tick;
} shadow;

static uint32_t tick_of(uint64_t now_ns) { return (uint32_t)(now_ns / TICK_NS); }
static double ticks_in(uint64_t ns) { return (double)ns / (double)TICK_NS; }

static shadow read_shadow(uint64_t word) {
  shadow s;
  memcpy(&s, &word, sizeof s);
  if (!(s.work > 0 && s.work < MOST_WORK)) s.work = 0; /* nobody's shadow: the memory is damaged */
  return s;
}

/* 0 where no work is left: that there is no shadow is seen at once. */
static uint64_t word_of(double work, uint32_t tick) {
  shadow s = {(float)work, tick};
  uint64_t word;
  memcpy(&word, &s, sizeof s);
  return s.work > 0 ? word : 0;
}

/* So many whole permits; what a float is off by is none. */
static uint64_t rounded_up(double number) {
  double exact = number < MANY ? number * (1 - 1e-6) : MANY;
  return (uint64_t)exact + ((double)(uint64_t)exact < exact);
}

/* How many permits' worth of requests a work is, by the mean time. */
static double weight_of(const adm_entry *entry, double work) { return entry->service_ns > 0 ? work / ticks_in(entry->service_ns) : 0; }

/* What is left of a shadow where so much was held since then. */
static double work_left(const adm_table *table, adm_entry *entry, shadow s, uint64_t within, uint32_t tick) {
  uint32_t elapsed = tick - s.tick, limit = group_of(table, entry)->limit;
  uint64_t room = limit > within ? limit - within : 0, weight = rounded_up(weight_of(entry, s.work));
  return s.work - (double)(weight < room ? weight : room) * elapsed;
}

/* Brings the shadow up to date and adds `more` to it; returns the work that is in it then. */
static double reckon(const adm_table *table, adm_entry *entry, uint64_t within, double more, uint64_t now_ns) {
  uint64_t word = entry->shadow;
  while (word != 0 || more > 0) {
    shadow s = read_shadow(word);
    uint32_t tick = tick_of(now_ns);
    if (word != 0 && tick - s.tick > UINT32_MAX / 2) tick = s.tick; /* somebody whose look at the clock was later was here before */
    double left = work_left(table, entry, s, within, tick), work = (left > 0 ? left : 0) + more;
    if (atomic_compare_exchange_weak(&entry->shadow, &word, word_of(work, tick))) return work > 0 ? work : 0;
  }
  return 0;
}

bool observe_has_room(const adm_table *table, adm_entry *entry, uint32_t limit, uint32_t cost, uint64_t now_ns) {
  uint64_t within = permits_within(table, entry);
  return within + cost + rounded_up(weight_of(entry, reckon(table, entry, within, 0, now_ns))) <= limit;
}

/* Who is over a limit and goes on, but for the one that asks: of these nobody knows any more who would wait. */
static uint64_t others_over(const adm_table *table, adm_entry *entry) {
  uint64_t over = 0;
  for (uint32_t i = 0; i < cells_in_use(table, entry); i++) over += (cells_of(entry)[i] & TOKEN_OVER) != 0;
  return over > 0 ? over - 1 : 0;
}

bool observe_would_wait(const adm_table *table, adm_entry *entry, const observed *who, uint64_t now_ns, float *reckoned) {
  *reckoned = 0;
  if (who->queue == 0 || who->cost > who->limit) return false;
  uint32_t limit = group_of(table, entry)->limit;
  uint64_t within = permits_within(table, entry), each_ns = turn_ns(entry, who->limit, who->cost);
  double held = (double)within + weight_of(entry, reckon(table, entry, within, 0, now_ns));
  /* Who is held up by a lower limit of his own holds up nobody else; and before the first one is over nobody knows how long they take. */
  bool apart = each_ns == 0 || (who->limit < limit && held + who->cost <= limit);
  uint64_t would_be = held > limit ? rounded_up((held - limit) / who->cost) : 0;
  uint64_t before = apart ? others_over(table, entry) : queue_length(table, entry) + would_be;
  /* As in_vain (admit.c) has it. */
  if (before >= who->queue || (double)(before + 1) * (double)each_ns > (double)who->may_ns) return false;
  if (!apart) reckon(table, entry, within, *reckoned = (float)(who->cost * ticks_in(entry->service_ns)), now_ns);
  return true;
}

void observe_ended(const adm_table *table, const adm_permit *permit, uint64_t held_ns, uint64_t now_ns) {
  adm_entry *entry = permit->entry;
  bool has_shadow = permit->reckoned > 0;
  if (permit->token & TOKEN_OVER && !has_shadow) return;
  double more = has_shadow ? token_cost(permit->token) * ticks_in(held_ns) - (double)permit->reckoned : 0;
  reckon(table, entry, permits_within(table, entry), more, now_ns);
}
