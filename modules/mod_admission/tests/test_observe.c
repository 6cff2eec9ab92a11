/*
 * test_observe.c: what observing counts against what enforcing does: the same visitors come, by a clock of their own, to a queue that is
 * simulated exactly and to an entry that only observes. `--all` prints each.
 */
#include "check.h"
#include "world.h"

#include "../core/observe.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>

#define VISITORS 40000
#define MS UINT64_C(1000000)

/* What visitors are like. `burst` of them come at a time; one in `hangs` takes a hundred times as long. */
typedef struct traffic {
  const char *name;
  double load; /* how many come, of as many as can be served */
  unsigned burst, hangs;
  bool even; /* they come at equal distances and all take the same time; else at random, exponentially distributed */
  double waited, refused; /* how far the shares that are counted may be from those that would be */
} traffic;

typedef struct rule {
  uint32_t limit, queue;
  uint64_t timeout_ns;
} rule;

typedef struct fates {
  double waited, refused; /* shares of all */
} fates;

typedef struct visitor {
  uint64_t comes_ns, takes_ns;
} visitor;

/* Numbers between 0 and 1, the same in each run. */
static double draw(void) {
  static uint64_t state = 88172645463325252u;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static visitor *visitors_of(const traffic *like, const rule *rule, uint64_t takes_ns) {
  visitor *all = malloc(VISITORS * sizeof *all);
  double mean_ns = (double)takes_ns * (like->hangs > 0 ? 1 + 99.0 / like->hangs : 1);
  double between = mean_ns / rule->limit / like->load * like->burst, now = 3600e9;
  for (unsigned i = 0; i < VISITORS; i++) {
    if (i % like->burst == 0) now += like->even ? between : -log(draw()) * between;
    bool hangs = like->hangs > 0 && draw() * like->hangs < 1;
    double takes = (double)takes_ns * (like->even ? 1 : -log(draw())) * (hangs ? 100 : 1);
    all[i] = (visitor){(uint64_t)now, (uint64_t)takes};
  }
  return all;
}

static void learn(uint64_t *mean_ns, uint64_t held_ns) { *mean_ns = *mean_ns == 0 ? held_ns : (7 * *mean_ns + held_ns) / 8; }

/* Those who are served, in the order in which they end. */
typedef struct served {
  uint64_t ends_ns, took_ns;
  adm_permit permit; /* of one who is observed */
} served;

static served heap[VISITORS];
static unsigned in_heap;

static void heap_push(served one) {
  unsigned i = in_heap++;
  for (; i > 0 && heap[(i - 1) / 2].ends_ns > one.ends_ns; i = (i - 1) / 2) heap[i] = heap[(i - 1) / 2];
  heap[i] = one;
}

static served heap_pop(void) {
  served first = heap[0], last = heap[--in_heap];
  unsigned i = 0;
  for (unsigned child = 1; child < in_heap; child = 2 * i + 1) {
    if (child + 1 < in_heap && heap[child + 1].ends_ns < heap[child].ends_ns) child++;
    if (heap[child].ends_ns >= last.ends_ns) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = last;
  return first;
}

/* First come, first served; refused at once is who finds the queue full, or would wait in vain by the mean so far. */
static fates enforced(const visitor *all, const rule *rule) {
  unsigned waited = 0, refused = 0, waiting = 0, next = 0;
  static unsigned row[VISITORS];
  uint64_t mean_ns = 0;
  in_heap = 0;
  for (unsigned i = 0; i < VISITORS; i++) {
    uint64_t now = all[i].comes_ns;
    while (in_heap > 0 && heap[0].ends_ns <= now) {
      served done = heap_pop();
      learn(&mean_ns, done.took_ns);
      if (waiting == 0) continue;
      const visitor *one = &all[row[next++]];
      waiting--;
      heap_push((served){.ends_ns = done.ends_ns + one->takes_ns, .took_ns = one->takes_ns});
    }
    if (in_heap < rule->limit) {
      heap_push((served){.ends_ns = now + all[i].takes_ns, .took_ns = all[i].takes_ns});
    } else if (waiting < rule->queue && mean_ns / rule->limit * (waiting + 1) <= rule->timeout_ns) {
      row[next + waiting++] = i;
      waited++;
    } else {
      refused++;
    }
  }
  return (fates){(double)waited / VISITORS, (double)refused / VISITORS};
}

static fates observing(const visitor *all, const rule *rule) {
  adm_table *table = table_of((adm_shape){.entries = 64, .cells = 4096, .waiters = 32});
  int group = group_with(table, "g", rule->limit, rule->queue, ADM_FIFO);
  adm_owner me = adm_owner_join(table, somebody());
  adm_layer layer = layer_of(table, group, "/a");
  uint64_t key = entry_key((uint32_t)group, layer.key);
  adm_entry *entry = entry_insert(table, (uint32_t)group, key, "/a", 0);
  unsigned waits = 0, refused = 0;
  in_heap = 0;
  for (unsigned i = 0; i < VISITORS; i++) {
    uint64_t now = all[i].comes_ns;
    while (in_heap > 0 && heap[0].ends_ns <= now) {
      served done = heap_pop();
      observe_ended(table, &done.permit, done.took_ns, done.ends_ns);
      uint64_t mean_ns = entry->service_ns;
      learn(&mean_ns, done.took_ns);
      entry->service_ns = mean_ns;
      permit_return(&done.permit, false);
    }
    bool over = !observe_has_room(table, entry, rule->limit, 1, now);
    adm_taken taken;
    take_result took = permit_take(table, entry, key, token_make(table, me) | 1 | (over ? TOKEN_OVER : 0), ADM_UNLIMITED, now, &taken);
    if (took != TAKEN) return (fates){NAN, NAN};
    adm_permit permit = permit_taken(entry, &taken, 0);
    observed who = {.limit = rule->limit, .cost = 1, .queue = rule->queue, .may_ns = rule->timeout_ns};
    bool wait = over && observe_would_wait(table, entry, &who, now, &permit.reckoned);
    heap_push((served){.ends_ns = now + all[i].takes_ns, .took_ns = all[i].takes_ns, .permit = permit});
    waits += wait;
    refused += over && !wait;
  }
  table_end(table);
  return (fates){(double)waits / VISITORS, (double)refused / VISITORS};
}

/* An entry whose group has room for 1 and a queue for 5, and in which one is. */
static adm_entry *full_entry(adm_table *table, adm_answer *held) {
  int group = group_with(table, "g", 1, 5, ADM_FIFO);
  adm_group_at(table, group)->mode = ADM_OBSERVE;
  adm_layer layer = layer_of(table, group, "/a");
  adm_admit(table, adm_owner_join(table, somebody()), &(adm_request){.layer = &layer, .layers = 1}, held);
  return held->permit[0].entry;
}

/* As many have a place as there are, whatever the mean is and however it is rounded. */
static void places_are_counted_whole(void) {
  adm_table *table = table_of(SMALL);
  adm_answer held;
  adm_entry *entry = full_entry(table, &held);
  for (uint64_t mean_ns = MS; mean_ns < 1000 * MS; mean_ns += 1234567) {
    entry->service_ns = mean_ns;
    entry->shadow = 0;
    observed who = {.limit = 1, .cost = 1, .queue = 5, .may_ns = UINT64_MAX};
    unsigned places = 0;
    for (float reckoned; places < 9 && observe_would_wait(table, entry, &who, 1, &reckoned);) places++;
    CHECK_EQUAL(places, 5);
  }
  adm_release(table, &held, NULL, NULL);
  table_end(table);
}

/* What is taken off when a request ends is what was put there for it, though the mean is another then. */
static void a_mean_that_changes_leaves_nothing_behind(void) {
  adm_table *table = table_of(SMALL);
  adm_answer held;
  adm_entry *entry = full_entry(table, &held);
  observed who = {.limit = 1, .cost = 1, .queue = 5, .may_ns = UINT64_MAX};
  adm_permit permit = {.entry = entry, .token = TOKEN_OVER | 1};
  for (uint64_t later_ns = MS; later_ns < 100000 * MS; later_ns *= 7) {
    entry->service_ns = 100 * MS;
    entry->shadow = 0;
    CHECK(observe_would_wait(table, entry, &who, MS, &permit.reckoned));
    uint64_t shadow = entry->shadow;
    entry->service_ns = later_ns;
    observe_ended(table, &permit, 100 * MS, MS);
    CHECK_EQUAL(entry->shadow, shadow); /* it has not had its turn */
    observe_ended(table, &permit, 0, MS);
    CHECK_EQUAL(entry->shadow, 0);
  }
  adm_release(table, &held, NULL, NULL);
  table_end(table);
}

typedef struct crowd {
  adm_table *table;
  adm_layer layer;
  adm_owner owner;
} crowd;

static void *is_observed(void *of) {
  crowd *c = of;
  for (int i = 0; i < 5000; i++) {
    adm_answer answer;
    adm_admit(c->table, c->owner, &(adm_request){.layer = &c->layer, .layers = 1, .may_wait = true}, &answer);
    if (i % 16 == 0) sched_yield();
    adm_release(c->table, &answer, NULL, NULL);
  }
  return NULL;
}

/* Each is counted once, whoever comes at the same time. */
static void many_are_observed_at_once(void) {
  adm_table *table = table_of(SMALL);
  int group = group_with(table, "g", 1, 2, ADM_FIFO);
  adm_group_at(table, group)->mode = ADM_OBSERVE;
  crowd c = {table, layer_of(table, group, "/a"), adm_owner_join(table, somebody())};
  pthread_t thread[4];
  for (int i = 0; i < 4; i++) pthread_create(&thread[i], NULL, is_observed, &c);
  for (int i = 0; i < 4; i++) pthread_join(thread[i], NULL);
  const adm_counts *counts = &adm_group_at(table, group)->counts;
  CHECK_EQUAL(counts->admitted + counts->would_queue + counts->would_reject, 20000);
  CHECK(at_rest(table));
  table_end(table);
}

int main(int argc, char **argv) {
  places_are_counted_whole();
  a_mean_that_changes_leaves_nothing_behind();
  many_are_observed_at_once();
  static const traffic all[] = {
      {"few", 0.5, 1, 0, false, 0.03, 0.03},
      {"many", 0.9, 1, 0, false, 0.07, 0.03},
      {"as many as can be served", 1, 1, 0, false, 0.07, 0.03},
      {"half too many", 1.5, 1, 0, false, 0.07, 0.03},
      {"three times too many", 3, 1, 0, false, 0.01, 0.01},
      {"evenly, a third too many", 1.33, 1, 0, true, 0.002, 0.002},
      {"20 at a time", 0.7, 20, 0, false, 0.07, 0.05},
      {"20 at a time, a third too many", 1.33, 20, 0, false, 0.07, 0.05},
      {"20 at a time, evenly", 0.9, 20, 0, true, 0.002, 0.002},
      {"20 at a time, evenly, too many", 1.33, 20, 0, true, 0.002, 0.002},
      {"one of 50 hangs", 0.5, 1, 50, false, 0.05, 0.03},
      {"one of 50 hangs, many", 0.9, 1, 50, false, 0.25, 0.12},
  };
  static const rule rules[] = {{10, 20, 60000 * MS}, {1, 4, 60000 * MS}, {4, 100, 300 * MS}, {4, 0, 1000 * MS}};
  double most = 0;
  for (unsigned r = 0; r < sizeof rules / sizeof *rules; r++)
    for (unsigned t = 0; t < sizeof all / sizeof *all; t++) {
      visitor *come = visitors_of(&all[t], &rules[r], 50 * MS);
      fates real = enforced(come, &rules[r]), seen = observing(come, &rules[r]);
      if (argc > 1 && strcmp(argv[1], "--all") == 0)
        printf("%-31s limit %2u, queue %3u: wait %.3f (enforced %.3f), turned away %.3f (%.3f)\n", all[t].name, rules[r].limit, rules[r].queue,
               seen.waited, real.waited, seen.refused, real.refused);
      most = fmax(most, fabs(real.refused - seen.refused));
      bool reckons = rules[r].queue > 0;
      CHECK(fabs(real.waited - seen.waited) <= (reckons ? all[t].waited : 0));
      CHECK(fabs(real.refused - seen.refused) <= (reckons ? all[t].refused : 0));
      free(come);
    }
  printf("observe: the share of those who would be turned away is at most %.3f off\n", most);
  return checked("observe");
}
