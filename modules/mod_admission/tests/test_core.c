/*
 * test_core.c: the rules of the core, one request at a time: limits, layers, costs, modes, entries, owners, settings.
 */
#include "check.h"
#include "world.h"

#include <unistd.h>

static adm_outcome ask(adm_table *table, adm_owner owner, const adm_layer *layer, unsigned layers, adm_answer *answer) {
  adm_request request = {.layer = layer, .layers = layers, .may_wait = true};
  return adm_admit(table, owner, &request, answer);
}

static void a_limit_is_kept_and_given_back(void) {
  adm_table *table = table_of(SMALL);
  adm_owner owner = adm_owner_join(table, (adm_process){10, 1});
  int group = group_with(table, "php", 2, 0, ADM_FIFO);
  adm_layer file = layer_of(table, group, "/a.php"), other = layer_of(table, group, "/b.php");
  adm_answer first, second, third;
  CHECK_EQUAL(ask(table, owner, &file, 1, &first), ADM_ADMITTED);
  CHECK_EQUAL(ask(table, owner, &file, 1, &second), ADM_ADMITTED);
  CHECK_EQUAL(ask(table, owner, &file, 1, &third), ADM_REJECTED);
  CHECK_EQUAL(third.group, group);
  CHECK_EQUAL(third.limit, 2);
  CHECK_EQUAL(third.held, 2);
  CHECK_EQUAL(ask(table, owner, &other, 1, &third), ADM_ADMITTED); /* each file by itself */
  adm_release(table, &third, NULL, NULL);
  adm_release(table, &first, NULL, NULL);
  adm_release(table, &first, NULL, NULL); /* once is enough */
  CHECK_EQUAL(weight_in(table, group), 1);
  CHECK_EQUAL(ask(table, owner, &file, 1, &first), ADM_ADMITTED);
  adm_release(table, &first, NULL, NULL);
  adm_release(table, &second, NULL, NULL);
  CHECK(at_rest(table));
  adm_group *seen = adm_group_at(table, group);
  CHECK_EQUAL(seen->counts.admitted, 4);
  CHECK_EQUAL(seen->counts.rejected, 1);
  table_end(table);
}

static void a_request_needs_all_its_layers_or_holds_none(void) {
  adm_table *table = table_of(SMALL);
  adm_owner owner = adm_owner_join(table, (adm_process){10, 1});
  int file = group_with(table, "file", 4, 0, ADM_FIFO), host = group_with(table, "host", 1, 0, ADM_FIFO);
  adm_layer a[] = {layer_of(table, file, "/a"), layer_of(table, host, "h")}, b[] = {layer_of(table, file, "/b"), layer_of(table, host, "h")};
  adm_answer first, second;
  CHECK_EQUAL(ask(table, owner, a, 2, &first), ADM_ADMITTED);
  CHECK_EQUAL(ask(table, owner, b, 2, &second), ADM_REJECTED);
  CHECK_EQUAL(second.group, host);
  CHECK_EQUAL(weight_in(table, file), 1);
  /* Nor did it take a permit of its file for a moment, in which others of that file would have found it full. */
  for (uint32_t e = adm_entry_next(table, 0); e < table->shape.entries; e = adm_entry_next(table, e + 1))
    if (entry_at(table, e)->key == entry_key((uint32_t)file, b[0].key)) CHECK_EQUAL(entry_at(table, e)->cells_top, 0);
  adm_release(table, &first, NULL, NULL);
  CHECK(at_rest(table));
  table_end(table);
}

static void memory_is_a_limit_on_costs_over_all_groups(void) {
  adm_table *table = table_of(SMALL);
  adm_owner owner = adm_owner_join(table, (adm_process){10, 1});
  adm_group_apply(adm_group_at(table, ADM_GROUP_MEMORY), &(adm_settings){.limit = 800, .mode = ADM_ENFORCE});
  int group = group_with(table, "cgi", ADM_UNLIMITED, 0, ADM_FIFO);
  adm_answer held[5], one;
  for (int i = 0; i < 5; i++) {
    char label[] = {'/', (char)('a' + i), 0};
    adm_layer layers[] = {layer_of(table, group, label), {.group = ADM_GROUP_MEMORY, .label = "", .at_most = ADM_UNLIMITED, .cost = 200}};
    CHECK_EQUAL(ask(table, owner, layers, 2, &held[i]), i < 4 ? ADM_ADMITTED : ADM_REJECTED);
  }
  CHECK_EQUAL(held[4].group, ADM_GROUP_MEMORY);
  CHECK_EQUAL(weight_in(table, ADM_GROUP_MEMORY), 800);
  adm_release(table, &held[0], NULL, NULL);
  adm_layer large[] = {{.group = ADM_GROUP_MEMORY, .label = "", .at_most = ADM_UNLIMITED, .cost = 201}};
  CHECK_EQUAL(ask(table, owner, large, 1, &one), ADM_REJECTED);
  large[0].cost = 200;
  CHECK_EQUAL(ask(table, owner, large, 1, &one), ADM_ADMITTED);
  adm_release(table, &one, NULL, NULL);
  for (int i = 1; i < 4; i++) adm_release(table, &held[i], NULL, NULL);
  CHECK(at_rest(table));
  table_end(table);
}

static void observing_counts_and_lets_through(void) {
  adm_table *table = table_of(SMALL);
  adm_owner owner = adm_owner_join(table, (adm_process){10, 1});
  int group = group_with(table, "g", 1, 0, ADM_FIFO);
  adm_group_at(table, group)->mode = ADM_OBSERVE;
  adm_layer layer = layer_of(table, group, "/a");
  adm_answer first, second;
  CHECK_EQUAL(ask(table, owner, &layer, 1, &first), ADM_ADMITTED);
  CHECK_EQUAL(ask(table, owner, &layer, 1, &second), ADM_WOULD_REJECT);
  CHECK_EQUAL(weight_in(table, group), 2);
  adm_release(table, &second, NULL, NULL);
  adm_group_at(table, group)->mode = ADM_ENFORCE; /* the same for one request only */
  adm_request observed = {.layer = &layer, .layers = 1, .may_wait = true, .observe = true};
  CHECK_EQUAL(adm_admit(table, owner, &observed, &second), ADM_WOULD_REJECT);
  CHECK_EQUAL(weight_in(table, group), 2);
  adm_release(table, &first, NULL, NULL);
  adm_release(table, &second, NULL, NULL);
  adm_group_at(table, group)->mode = ADM_OFF;
  CHECK_EQUAL(ask(table, owner, &layer, 1, &first), ADM_ADMITTED);
  CHECK(at_rest(table));
  CHECK_EQUAL(adm_group_at(table, group)->counts.would_reject, 2);
  table_end(table);
}

/* Who would have been turned away would not be there: nobody after it is turned away because of it, and it counts as held all the same. */
static void whom_a_limit_would_have_kept_out_is_in_nobodys_way(void) {
  adm_table *table = table_of(SMALL);
  adm_owner owner = adm_owner_join(table, (adm_process){10, 1});
  int group = group_with(table, "g", 2, 0, ADM_FIFO);
  adm_group_at(table, group)->mode = ADM_OBSERVE;
  adm_layer layer = layer_of(table, group, "/a");
  adm_answer in[2], over[3], next;
  for (int i = 0; i < 2; i++) CHECK_EQUAL(ask(table, owner, &layer, 1, &in[i]), ADM_ADMITTED);
  for (int i = 0; i < 3; i++) CHECK_EQUAL(ask(table, owner, &layer, 1, &over[i]), ADM_WOULD_REJECT);
  adm_release(table, &in[0], NULL, NULL);
  CHECK_EQUAL(ask(table, owner, &layer, 1, &next), ADM_ADMITTED);
  CHECK_EQUAL(next.held, 4);
  CHECK_EQUAL(ask(table, owner, &layer, 1, &in[0]), ADM_WOULD_REJECT);
  CHECK_EQUAL(weight_in(table, group), 6);
  adm_release(table, &in[1], NULL, NULL);
  adm_group_at(table, group)->mode = ADM_ENFORCE; /* those that are there are there */
  CHECK_EQUAL(ask(table, owner, &layer, 1, &in[1]), ADM_REJECTED);
  for (int i = 0; i < 3; i++) adm_release(table, &over[i], NULL, NULL);
  CHECK_EQUAL(ask(table, owner, &layer, 1, &in[1]), ADM_REJECTED);
  adm_release(table, &in[0], NULL, NULL);
  CHECK_EQUAL(ask(table, owner, &layer, 1, &in[1]), ADM_ADMITTED);
  adm_release(table, &in[1], NULL, NULL);
  adm_release(table, &next, NULL, NULL);
  CHECK(at_rest(table));
  table_end(table);
}

/* A group that only observes, which has room for 2, and the permits that its requests hold. */
typedef struct watched {
  adm_table *table;
  adm_owner owner;
  adm_layer layer;
  adm_answer held[8];
  unsigned count;
} watched;

static watched watch_group(uint32_t queue, uint32_t timeout_ms) {
  watched w = {.table = table_of(SMALL)};
  w.owner = adm_owner_join(w.table, (adm_process){10, 1});
  int group = group_with(w.table, "g", 2, queue, ADM_FIFO);
  adm_group_at(w.table, group)->mode = ADM_OBSERVE;
  adm_group_at(w.table, group)->timeout_ms = timeout_ms;
  w.layer = layer_of(w.table, group, "/a");
  return w;
}

static adm_outcome one_more(watched *w, bool may_wait) {
  adm_request request = {.layer = &w->layer, .layers = 1, .may_wait = may_wait};
  return adm_admit(w->table, w->owner, &request, &w->held[w->count++]);
}

static adm_entry *entry_watched(const watched *w) { return w->held[0].permit[0].entry; }

static void watched_end(watched *w) {
  while (w->count > 0) adm_release(w->table, &w->held[--w->count], NULL, NULL);
  CHECK(at_rest(w->table));
  table_end(w->table);
}

/* As many as there are places in the queue would wait; when permits are back, some of them would have been let in. */
static void who_would_wait_is_not_who_would_be_turned_away(void) {
  watched w = watch_group(3, 600000);
  for (int i = 0; i < 2; i++) CHECK_EQUAL(one_more(&w, true), ADM_ADMITTED);
  adm_entry *entry = entry_watched(&w);
  entry->service_ns = UINT64_C(100000000000); /* 50 s until one comes free */
  CHECK_EQUAL(one_more(&w, false), ADM_WOULD_REJECT);
  for (int i = 0; i < 3; i++) CHECK_EQUAL(one_more(&w, true), ADM_WOULD_QUEUE);
  CHECK_EQUAL(one_more(&w, true), ADM_WOULD_REJECT);
  for (int i = 0; i < 2; i++) adm_release(w.table, &w.held[i], NULL, NULL);
  entry->service_ns = UINT64_C(100000000000);
  CHECK_EQUAL(one_more(&w, true), ADM_WOULD_QUEUE);
  const adm_counts *counts = &adm_group_at(w.table, w.layer.group)->counts;
  CHECK_EQUAL(counts->admitted, 2);
  CHECK_EQUAL(counts->would_reject, 2);
  CHECK_EQUAL(counts->would_queue, 4);
  CHECK_EQUAL(w.held[7].group, w.layer.group); /* is told of */
  CHECK_EQUAL(w.held[7].held, 5);
  CHECK(entry->shadow != 0);
  adm_group_at(w.table, w.layer.group)->mode = ADM_ENFORCE; /* and nobody reckons any more */
  adm_answer enforced;
  CHECK_EQUAL(adm_admit(w.table, w.owner, &(adm_request){.layer = &w.layer, .layers = 1}, &enforced), ADM_REJECTED);
  CHECK_EQUAL(entry->shadow, 0);
  watched_end(&w);
}

/* Permits that are free are those of who would wait first; when all of them would have been served, nobody waits. */
static void who_comes_after_those_who_would_wait_waits_too(void) {
  watched w = watch_group(3, 600000);
  for (int i = 0; i < 2; i++) CHECK_EQUAL(one_more(&w, true), ADM_ADMITTED);
  entry_watched(&w)->service_ns = UINT64_C(100000000000);
  CHECK_EQUAL(one_more(&w, true), ADM_WOULD_QUEUE);
  adm_release(w.table, &w.held[1], NULL, NULL);
  entry_watched(&w)->service_ns = UINT64_C(100000000000);
  CHECK_EQUAL(one_more(&w, true), ADM_WOULD_QUEUE);
  CHECK_EQUAL(one_more(&w, false), ADM_WOULD_REJECT);
  entry_watched(&w)->used_ns -= UINT64_C(61000000000); /* nobody came for a minute */
  CHECK_EQUAL(one_more(&w, true), ADM_ADMITTED);
  watched_end(&w);
}

/* Who could not be served in time is turned away at once. */
static void who_would_wait_in_vain_would_be_turned_away(void) {
  watched w = watch_group(100, 120000);
  for (int i = 0; i < 2; i++) CHECK_EQUAL(one_more(&w, true), ADM_ADMITTED);
  entry_watched(&w)->service_ns = UINT64_C(100000000000); /* 50 s, 100 s, 150 s */
  for (int i = 0; i < 2; i++) CHECK_EQUAL(one_more(&w, true), ADM_WOULD_QUEUE);
  CHECK_EQUAL(one_more(&w, true), ADM_WOULD_REJECT);
  watched_end(&w);
}

/* Who would wait for a lower limit of his own holds up nobody else. */
static void who_has_a_limit_of_his_own_would_wait_by_himself(void) {
  watched w = watch_group(2, 600000);
  CHECK_EQUAL(one_more(&w, true), ADM_ADMITTED);
  entry_watched(&w)->service_ns = UINT64_C(100000000000);
  w.layer.at_most = 1;
  for (int i = 0; i < 2; i++) CHECK_EQUAL(one_more(&w, true), ADM_WOULD_QUEUE);
  CHECK_EQUAL(one_more(&w, true), ADM_WOULD_REJECT);
  w.layer.at_most = ADM_UNLIMITED;
  CHECK_EQUAL(one_more(&w, true), ADM_ADMITTED);
  w.layer.at_most = 0;
  CHECK_EQUAL(one_more(&w, true), ADM_WOULD_REJECT); /* whoever waits or does not */
  adm_entry *entry = entry_watched(&w);
  entry->service_ns = 1;
  for (unsigned i = 0; i < w.count; i++) adm_release(w.table, &w.held[i], NULL, NULL);
  CHECK_EQUAL(entry->shadow, 0);
  watched_end(&w);
}

/* No more would wait than the workers that may, in the queues of the whole server. */
static void no_more_would_wait_than_workers_may(void) {
  watched w = watch_group(100, 600000);
  adm_group_apply(adm_group_at(w.table, ADM_GROUP_WAITING), &(adm_settings){.limit = 1, .mode = ADM_ENFORCE});
  for (int i = 0; i < 2; i++) CHECK_EQUAL(one_more(&w, true), ADM_ADMITTED);
  CHECK_EQUAL(one_more(&w, true), ADM_WOULD_QUEUE);
  CHECK_EQUAL(one_more(&w, true), ADM_WOULD_REJECT);
  watched_end(&w);
}

/* Told of is the group that would turn a request away, before one that would have it wait. */
static void who_would_turn_away_is_told_of_first(void) {
  adm_table *table = table_of(SMALL);
  adm_owner owner = adm_owner_join(table, (adm_process){10, 1});
  adm_layer layer[2];
  for (unsigned i = 0; i < 2; i++) {
    int group = group_with(table, i == 0 ? "waits" : "turns-away", 1, i == 0 ? 4 : 0, ADM_FIFO);
    adm_group_at(table, group)->mode = ADM_OBSERVE;
    layer[i] = layer_of(table, group, "/a");
  }
  adm_request request = {.layer = layer, .layers = 2, .may_wait = true};
  adm_answer first, second;
  CHECK_EQUAL(adm_admit(table, owner, &request, &first), ADM_ADMITTED);
  CHECK_EQUAL(adm_admit(table, owner, &request, &second), ADM_WOULD_REJECT);
  CHECK_EQUAL(second.group, layer[1].group);
  CHECK_EQUAL(adm_group_at(table, layer[0].group)->counts.would_queue, 1);
  CHECK_EQUAL(adm_group_at(table, layer[1].group)->counts.would_reject, 1);
  adm_release(table, &first, NULL, NULL);
  adm_release(table, &second, NULL, NULL);
  table_end(table);
}

/* Each group that only observes counts what it would have turned away, whatever the others do. */
static void each_group_that_observes_counts_for_itself(void) {
  adm_table *table = table_of(SMALL);
  adm_owner owner = adm_owner_join(table, (adm_process){10, 1});
  const char *const name[] = {"a", "b", "enforced"};
  adm_layer layer[3];
  for (int i = 0; i < 3; i++) {
    int group = group_with(table, name[i], i < 2 ? 1 : 2, 0, ADM_FIFO);
    if (i < 2) adm_group_at(table, group)->mode = ADM_OBSERVE;
    layer[i] = layer_of(table, group, "/a");
  }
  adm_answer first, second, third;
  CHECK_EQUAL(ask(table, owner, layer, 3, &first), ADM_ADMITTED);
  CHECK_EQUAL(ask(table, owner, layer, 3, &second), ADM_WOULD_REJECT);
  CHECK_EQUAL(second.group, layer[0].group); /* which would have turned it away */
  CHECK_EQUAL(ask(table, owner, layer, 3, &third), ADM_REJECTED);
  CHECK_EQUAL(third.group, layer[2].group);
  for (int i = 0; i < 3; i++) {
    const adm_counts *counts = &adm_group_at(table, layer[i].group)->counts;
    CHECK_EQUAL(counts->would_reject, i < 2);
    CHECK_EQUAL(counts->admitted, i < 2 ? 1 : 2);
    CHECK_EQUAL(counts->rejected, i == 2);
  }
  adm_release(table, &first, NULL, NULL);
  adm_release(table, &second, NULL, NULL);
  table_end(table);
}

/* What a table has learned and adapted is there in the one that replaces it, as long as the settings say the same. */
static void what_was_learned_is_taken_over(void) {
  adm_table *old = table_of(SMALL), *new = table_of(SMALL);
  adm_settings settings = {.limit = 8, .cost = 0, .learn = 1, .adaptive = 1, .min = 1, .max = 8, .status = 503, .mode = ADM_ENFORCE};
  adm_group *before = adm_group_at(old, adm_group_add(old, "g")), *after = adm_group_at(new, adm_group_add(new, "g"));
  adm_group_apply(before, &settings);
  before->cost = 200;
  before->limit = 2;
  adm_group_learned(after, before);
  adm_group_apply(after, &settings);
  CHECK_EQUAL(after->cost, 200);
  CHECK_EQUAL(after->limit, 2);
  settings.limit = 6;
  settings.cost = 100;
  adm_group_apply(after, &settings);
  CHECK_EQUAL(after->cost, 100);
  CHECK_EQUAL(after->limit, 6);
  table_end(old);
  table_end(new);
}

static void limits_can_shrink_under_those_who_hold(void) {
  adm_table *table = table_of(SMALL);
  adm_owner owner = adm_owner_join(table, (adm_process){10, 1});
  int group = group_with(table, "g", 3, 0, ADM_FIFO);
  adm_layer layer = layer_of(table, group, "/a");
  adm_answer held[3], one;
  for (int i = 0; i < 3; i++) CHECK_EQUAL(ask(table, owner, &layer, 1, &held[i]), ADM_ADMITTED);
  adm_group_at(table, group)->limit = 2;
  adm_release(table, &held[0], NULL, NULL); /* the lowest cell is free, two are held */
  CHECK_EQUAL(ask(table, owner, &layer, 1, &one), ADM_REJECTED);
  adm_release(table, &held[1], NULL, NULL);
  layer.at_most = 1; /* tightened for this request */
  CHECK_EQUAL(ask(table, owner, &layer, 1, &one), ADM_REJECTED);
  layer.at_most = 99; /* never raised */
  CHECK_EQUAL(ask(table, owner, &layer, 1, &one), ADM_ADMITTED);
  CHECK_EQUAL(ask(table, owner, &layer, 1, &held[0]), ADM_REJECTED);
  table_end(table);
}

static void the_dead_leave_nothing_and_the_living_keep_all(void) {
  adm_table *table = table_of(SMALL);
  adm_owner dead = adm_owner_join(table, (adm_process){10, 1}), alive = adm_owner_join(table, (adm_process){11, 1});
  int group = group_with(table, "g", 2, 0, ADM_FIFO);
  adm_layer layer = layer_of(table, group, "/a");
  adm_answer of_dead, of_alive, one;
  ask(table, dead, &layer, 1, &of_dead);
  ask(table, alive, &layer, 1, &of_alive);
  CHECK_EQUAL(adm_owner_of(table, 10), dead);
  CHECK_EQUAL(adm_sweep(table, dead, NULL, NULL).permits, 1);
  CHECK_EQUAL(adm_sweep(table, dead, NULL, NULL).permits, 0);
  CHECK_EQUAL(weight_in(table, group), 1);
  CHECK_EQUAL(adm_group_at(table, group)->counts.reaped, 1);
  adm_owner next = adm_owner_join(table, (adm_process){10, 2}); /* the same place, another incarnation */
  CHECK_EQUAL(next >> 9, dead >> 9);
  CHECK(next != dead);
  CHECK_EQUAL(ask(table, next, &layer, 1, &one), ADM_ADMITTED);
  CHECK_EQUAL(adm_sweep(table, dead, NULL, NULL).permits, 0); /* a late sweeper */
  adm_release(table, &of_dead, NULL, NULL);           /* a late release */
  CHECK_EQUAL(weight_in(table, group), 2);
  table_end(table);
}

/* While one looks whether a process is dead, another takes back what it had, and the next process has its place: what that one takes
 * meanwhile is its own, and is found when it dies itself. */
typedef struct overtaken {
  adm_table *table;
  adm_layer layer;
  adm_owner dead, next;
  adm_answer of_next;
} overtaken;

static bool is_overtaken(void *world, adm_process process) {
  overtaken *o = world;
  if (process.pid != 10) return false;
  adm_sweep(o->table, o->dead, NULL, NULL);
  o->next = adm_owner_join(o->table, (adm_process){11, 1});
  ask(o->table, o->next, &o->layer, 1, &o->of_next);
  return true;
}

static void who_sweeps_late_takes_nothing_from_the_next(void) {
  overtaken o = {.table = table_of(SMALL)};
  int group = group_with(o.table, "g", 2, 0, ADM_FIFO);
  o.layer = layer_of(o.table, group, "/a");
  o.dead = adm_owner_join(o.table, (adm_process){10, 1});
  CHECK_EQUAL(adm_sweep_dead(o.table, 0, is_overtaken, NULL, &o).permits, 0);
  CHECK_EQUAL(o.next >> 9, o.dead >> 9);
  CHECK_EQUAL(weight_in(o.table, group), 1);
  CHECK_EQUAL(adm_owner_of(o.table, 11), o.next);
  CHECK_EQUAL(adm_sweep(o.table, o.next, NULL, NULL).permits, 1);
  CHECK(at_rest(o.table));
  table_end(o.table);
}

/* The number of a process and when it was started fill their bits, and the incarnation comes round. */
static void users_of_a_place_are_told_apart(void) {
  adm_table *table = table_of(SMALL);
  adm_process process = {USER_PID_MAX, UINT32_MAX};
  for (int i = 0; i < 600; i++) {
    adm_owner owner = adm_owner_join(table, process);
    CHECK_EQUAL(owner, (adm_owner)i % 512);
    CHECK_EQUAL(adm_owner_of(table, USER_PID_MAX), owner);
    adm_process seen = user_process(table->shared->user[0]);
    CHECK(seen.pid == process.pid && seen.start == process.start);
    adm_sweep(table, owner, NULL, NULL);
    CHECK_EQUAL(adm_owner_of(table, USER_PID_MAX), ADM_NOBODY);
  }
  CHECK_EQUAL(adm_owner_join(table, (adm_process){USER_PID_MAX + 1, 1}), ADM_NOBODY);
  CHECK(!adm_table_in_use(table));
  table_end(table);
}

/* A queue that is full of the dead turns nobody away once they are found: they are room, though they hold no permit. */
static void the_waiting_dead_make_room(void) {
  adm_table *table = table_of(SMALL);
  adm_owner dead = adm_owner_join(table, (adm_process){10, 1}), alive = adm_owner_join(table, (adm_process){11, 1});
  int group = group_with(table, "g", 1, 1, ADM_FIFO);
  adm_group_at(table, group)->timeout_ms = 1;
  adm_layer layer = layer_of(table, group, "/a");
  adm_answer held, one;
  uint32_t place;
  ask(table, alive, &layer, 1, &held);
  CHECK(queue_join(table, held.permit[0].entry, token_make(table, dead) | 1, 1, &(standing){.since_ns = adm_now_ns(), .at_most = ADM_UNLIMITED, .group = (uint32_t)group}, &place));
  CHECK_EQUAL(ask(table, alive, &layer, 1, &one), ADM_REJECTED);
  adm_swept swept = adm_sweep(table, dead, NULL, NULL);
  CHECK_EQUAL(swept.permits, 0);
  CHECK(swept.room);
  CHECK(!adm_sweep(table, dead, NULL, NULL).room);
  CHECK_EQUAL(ask(table, alive, &layer, 1, &one), ADM_TIMEOUT); /* it has a place in the queue */
  table_end(table);
}

static bool lingers_while(void *world, uint64_t hold) {
  (void)hold;
  return *(bool *)world;
}

/* A program may outlive the table in which its permit was, with its byte locked: no permit of the next one may be taken for it. */
static void tables_have_bytes_of_their_own(void) {
  void *memory[3];
  adm_table *table[3], *again;
  for (int i = 0; i < 3; i++) { /* after another start, and a larger one that replaces the first */
    adm_shape shape = {.entries = i < 2 ? SMALL.entries : 2 * SMALL.entries, .cells = SMALL.cells, .waiters = SMALL.waiters};
    memory[i] = calloc(1, adm_table_bytes(shape) + 63);
    table[i] = adm_table_make((void *)(((uintptr_t)memory[i] + 63) & ~(uintptr_t)63), shape, 40 + (uint64_t)(i % 2));
  }
  again = adm_table_known(table[0]->shared, table[0]->bytes);
  adm_permit first = {.entry = entry_at(table[0], 0), .cell = 0, .token = 1};
  adm_permit last = {.entry = entry_at(table[0], SMALL.entries - 1), .cell = (uint16_t)(SMALL.cells - 1), .token = 1};
  CHECK_EQUAL(adm_hold_byte(table[0], &last) - adm_hold_byte(table[0], &first), SMALL.entries * SMALL.cells - 1);
  CHECK_EQUAL(adm_hold_byte(again, &last), adm_hold_byte(table[0], &last));
  for (int i = 1; i < 3; i++) {
    adm_permit others = {.entry = entry_at(table[i], 0), .cell = 0, .token = 1};
    uint64_t byte = adm_hold_byte(table[i], &others);
    CHECK(byte + 2 * SMALL.entries * SMALL.cells < adm_hold_byte(table[0], &first) || byte > adm_hold_byte(table[0], &last));
    CHECK(byte <= INT64_MAX);
  }
  adm_table_forget(again);
  for (int i = 0; i < 3; i++) {
    adm_table_forget(table[i]);
    free(memory[i]);
  }
}

static void a_table_is_in_use_as_long_as_somebody_may_come_back_to_it(void) {
  adm_table *table = table_of(SMALL);
  int group = group_with(table, "g", 2, 0, ADM_FIFO);
  CHECK(!adm_table_in_use(table));
  adm_owner owner = adm_owner_join(table, (adm_process){10, 1});
  CHECK(adm_table_in_use(table));
  adm_layer layer = layer_of(table, group, "/a");
  adm_request request = {.layer = &layer, .layers = 1, .hold_file = true};
  adm_answer answer;
  bool runs = true;
  adm_admit(table, owner, &request, &answer);
  adm_sweep(table, owner, lingers_while, &runs);
  CHECK(adm_table_in_use(table));
  runs = false;
  adm_settle(table, lingers_while, &runs);
  CHECK(!adm_table_in_use(table));
  table_end(table);
}

static void a_program_keeps_the_permit_of_its_dead_process(void) {
  adm_table *table = table_of(SMALL);
  adm_owner owner = adm_owner_join(table, (adm_process){10, 1}), other = adm_owner_join(table, (adm_process){11, 1});
  int group = group_with(table, "g", 2, 0, ADM_FIFO);
  adm_layer layer = layer_of(table, group, "/a");
  adm_request request = {.layer = &layer, .layers = 1, .hold_file = true};
  adm_answer killed, ended, one;
  bool runs = true;
  adm_admit(table, owner, &request, &killed);
  adm_admit(table, other, &request, &ended);
  CHECK(adm_hold_byte(table, &killed.permit[0]) != adm_hold_byte(table, &ended.permit[0]));
  adm_sweep(table, owner, lingers_while, &runs);
  adm_release(table, &ended, lingers_while, &runs);
  CHECK_EQUAL(weight_in(table, group), 2);
  CHECK_EQUAL(adm_admit(table, other, &request, &one), ADM_REJECTED);
  CHECK_EQUAL(adm_settle(table, lingers_while, &runs), 0);
  runs = false;
  CHECK_EQUAL(adm_settle(table, lingers_while, &runs), 2);
  CHECK(at_rest(table));
  table_end(table);
}

/* A request that waits has no program yet: its place among all that wait must not outlive it. */
static bool looks_into_the_waiting_room(void *world) {
  adm_table *table = world;
  unsigned there = 0;
  for (uint32_t e = 0; e < table->shape.entries; e++) {
    adm_entry *entry = entry_at(table, e);
    if (entry->key <= KEY_LEAVING || entry->group != ADM_GROUP_WAITING) continue;
    for (uint32_t i = 0; i < table->shape.cells; i++) {
      CHECK(!(cells_of(entry)[i] & TOKEN_HOLD));
      there += cells_of(entry)[i] != 0;
    }
  }
  CHECK_EQUAL(there, 1);
  return false; /* goes away */
}

static void the_waiting_have_no_program(void) {
  adm_table *table = table_of(SMALL);
  adm_owner owner = adm_owner_join(table, (adm_process){10, 1});
  int group = group_with(table, "g", 1, 1, ADM_FIFO);
  adm_group_at(table, ADM_GROUP_WAITING)->limit = 4;
  adm_layer layer = layer_of(table, group, "/a");
  adm_request request = {.layer = &layer, .layers = 1, .may_wait = true, .hold_file = true, .slice_ms = 1,
                         .client = &(adm_client){.wanted = looks_into_the_waiting_room}, .world = table};
  adm_answer first, second;
  CHECK_EQUAL(adm_admit(table, owner, &request, &first), ADM_ADMITTED);
  CHECK(first.permit[0].token & TOKEN_HOLD);
  CHECK_EQUAL(adm_admit(table, owner, &request, &second), ADM_GONE);
  adm_release(table, &first, NULL, NULL);
  CHECK(at_rest(table));
  table_end(table);
}

static void a_full_table_lets_through_and_idle_entries_make_room(void) {
  adm_table *table = table_of((adm_shape){16, 4, 4});
  adm_owner owner = adm_owner_join(table, (adm_process){10, 1});
  int group = group_with(table, "g", 1, 0, ADM_FIFO);
  adm_answer held[16];
  for (int i = 0; i < 15; i++) { /* of the 16 places one is for all that wait, and one for the budget */
    char label[] = {(char)('a' + i), 0};
    adm_layer layer = layer_of(table, group, label);
    CHECK_EQUAL(ask(table, owner, &layer, 1, &held[i]), i < 14 ? ADM_ADMITTED : ADM_OPEN);
  }
  CHECK_EQUAL(adm_table_troubles(table).table_full, 1);
  CHECK_EQUAL(adm_group_at(table, group)->counts.open, 1);
  adm_layer both[] = {layer_of(table, group, "none"), layer_of(table, ADM_GROUP_MEMORY, "memory")};
  both[1].key = 0;
  adm_group_at(table, ADM_GROUP_MEMORY)->limit = 1;
  adm_answer of_budget, beyond;
  uint64_t open_before = adm_group_at(table, ADM_GROUP_MEMORY)->counts.open, admitted_before = adm_group_at(table, ADM_GROUP_MEMORY)->counts.admitted;
  CHECK_EQUAL(ask(table, owner, both, 2, &of_budget), ADM_OPEN); /* its key finds no place; the budget has its own */
  CHECK_EQUAL(adm_group_at(table, ADM_GROUP_MEMORY)->counts.open, open_before); /* and counted it */
  CHECK_EQUAL(adm_group_at(table, ADM_GROUP_MEMORY)->counts.admitted, admitted_before + 1);
  CHECK_EQUAL(of_budget.permits, 1);
  CHECK_EQUAL(ask(table, owner, both, 2, &beyond), ADM_REJECTED);
  CHECK_EQUAL(adm_group_at(table, group)->counts.open, 2); /* who was turned away was not let in */
  adm_release(table, &of_budget, NULL, NULL);
  adm_release(table, &held[3], NULL, NULL);
  for (uint32_t i = 0; i < 16; i++) entry_at(table, i)->used_ns -= 2000000000u; /* two seconds ago */
  adm_layer layer = layer_of(table, group, "new");
  adm_answer one;
  CHECK_EQUAL(ask(table, owner, &layer, 1, &one), ADM_ADMITTED); /* in the place of the idle one */
  CHECK_EQUAL(weight_in(table, group), 14);
  adm_release(table, &held[3], NULL, NULL);
  CHECK_EQUAL(weight_in(table, group), 14);
  table_end(table);
}

static void a_flood_of_names_does_not_fill_the_table(void) {
  adm_table *table = table_of((adm_shape){64, 4, 4});
  adm_owner owner = adm_owner_join(table, (adm_process){10, 1});
  int group = group_with(table, "g", 1, 0, ADM_FIFO);
  adm_layer slow = layer_of(table, group, "/slow");
  adm_answer held, one;
  ask(table, owner, &slow, 1, &held);
  for (int i = 0; i < 5000; i++) {
    char label[16];
    snprintf(label, sizeof label, "/none%d", i);
    adm_layer layer = layer_of(table, group, label);
    CHECK_EQUAL(ask(table, owner, &layer, 1, &one), ADM_ADMITTED);
    adm_release(table, &one, NULL, NULL);
  }
  CHECK_EQUAL(ask(table, owner, &slow, 1, &one), ADM_REJECTED); /* its entry was given to nobody */
  CHECK_EQUAL(adm_table_troubles(table).table_full, 0);
  table_end(table);
}

/* One that wanted to give an entry to another key died after it had taken the key away and before it put it back. */
static void a_key_that_was_taken_away_is_put_back(void) {
  adm_table *table = table_of(SMALL);
  adm_owner owner = adm_owner_join(table, (adm_process){10, 1});
  int group = group_with(table, "g", 1, 0, ADM_FIFO);
  adm_layer layer = layer_of(table, group, "/a");
  adm_answer held, one;
  ask(table, owner, &layer, 1, &held);
  adm_entry *entry = held.permit[0].entry;
  entry->leaving_key = entry->key;
  entry->key = KEY_LEAVING;
  CHECK_EQUAL(ask(table, owner, &layer, 1, &one), ADM_REJECTED);
  adm_release(table, &held, NULL, NULL);
  CHECK(at_rest(table));
  table_end(table);
}

static void groups_of_earlier_configurations_make_room(void) {
  adm_table *table = table_of(SMALL);
  adm_owner owner = adm_owner_join(table, (adm_process){10, 1});
  adm_answer one;
  for (int i = 0; i < ADM_GROUPS - ADM_GROUP_FIRST; i++) {
    char name[16];
    snprintf(name, sizeof name, "g%d", i);
    CHECK(group_with(table, name, 1, 0, ADM_FIFO) >= 0);
  }
  CHECK_EQUAL(adm_group_add(table, "new"), -1);
  int used = adm_group_find(table, "g0"), unused = adm_group_find(table, "g1");
  adm_layer layer = layer_of(table, used, "/a");
  ask(table, owner, &layer, 1, &one);
  adm_group_at(table, adm_group_find(table, "g2"))->mode = ADM_OFF; /* switched off, not retired */
  adm_group_retire(adm_group_at(table, used));
  adm_group_retire(adm_group_at(table, unused));
  CHECK_EQUAL(adm_group_add(table, "new"), unused); /* nobody is in it; somebody is in the other */
  CHECK_EQUAL(adm_group_find(table, "g1"), -1);
  adm_group *later = adm_group_at(table, adm_group_find(table, "g3")), *longest = adm_group_at(table, adm_group_find(table, "g4"));
  adm_group *again = adm_group_at(table, adm_group_find(table, "g5"));
  adm_group_retire(longest);
  adm_group_retire(again);
  adm_group_retire(longest);
  adm_group_retire(later);
  adm_group_keep(again); /* the configuration names it again */
  CHECK(adm_group_at(table, adm_group_add(table, "newer")) == longest); /* children of before may still come to the other one */
  CHECK(adm_group_at(table, adm_group_add(table, "newest")) == later);
  CHECK_EQUAL(adm_group_add(table, "one more"), -1);
  table_end(table);
}

static void without_a_place_in_the_table_everything_is_open(void) {
  adm_table *table = table_of(SMALL);
  int group = group_with(table, "g", 1, 0, ADM_FIFO);
  adm_layer layer = layer_of(table, group, "/a");
  adm_answer one;
  CHECK_EQUAL(ask(table, ADM_NOBODY, &layer, 1, &one), ADM_OPEN);
  CHECK_EQUAL(one.permits, 0);
  CHECK_EQUAL(adm_group_at(table, group)->counts.open, 1);
  for (uint32_t i = 0; i < ADM_OWNERS; i++) adm_owner_join(table, (adm_process){i + 1, 1});
  CHECK_EQUAL(adm_owner_join(table, (adm_process){1, 2}), ADM_NOBODY);
  CHECK_EQUAL(adm_table_troubles(table).owners_full, 1);
  table_end(table);
}

/* Where all places for keys are taken, who finds his group full may still wait for it. */
static void a_full_table_leaves_the_waiting_room(void) {
  adm_table *table = table_of(SMALL);
  adm_owner owner = adm_owner_join(table, (adm_process){10, 1});
  int group = group_with(table, "g", 1, 4, ADM_FIFO);
  adm_group_at(table, group)->timeout_ms = 1;
  adm_group_at(table, ADM_GROUP_WAITING)->limit = 2;
  static adm_answer held[1000], one;
  adm_layer full = layer_of(table, group, "/0");
  ask(table, owner, &full, 1, &held[0]);
  char label[16];
  unsigned known = 1;
  for (int i = 1; i < 1000; i++) {
    snprintf(label, sizeof label, "/%d", i);
    adm_layer layer = layer_of(table, group, label);
    known += ask(table, owner, &layer, 1, &held[i]) == ADM_ADMITTED;
  }
  CHECK_EQUAL(known, SMALL.entries - 2);
  CHECK_EQUAL(ask(table, owner, &full, 1, &one), ADM_TIMEOUT);
  adm_entry *room = entry_at(table, first_of(table, ADM_GROUP_WAITING));
  cells_of(room)[0] = cells_of(room)[1] = token_held(token_make(table, owner) | 1); /* two wait */
  room->cells_top = 2;
  CHECK_EQUAL(ask(table, owner, &full, 1, &one), ADM_REJECTED);
  cells_of(room)[0] = cells_of(room)[1] = 0;
  for (int i = 0; i < 1000; i++) adm_release(table, &held[i], NULL, NULL);
  CHECK(at_rest(table));
  table_end(table);
}

/* One who died while he gave an entry away, another who made a second one for its key, and a third who had found the first before and
 * claims in it now: the first must not be the key's again. */
static void a_key_that_has_an_entry_is_not_given_its_former_one(void) {
  adm_table *table = table_of(SMALL);
  int group = group_with(table, "g", 1, 0, ADM_FIFO);
  uint64_t key = entry_key((uint32_t)group, layer_of(table, group, "/a").key), now = adm_now_ns();
  adm_entry *former = entry_insert(table, (uint32_t)group, key, "/a", now);
  former->leaving_key = key;
  former->key = KEY_LEAVING;
  cells_of(former)[0] = token_claimed(1);
  former->cells_top = 1;
  /* In use: it is still the key's. */
  CHECK(entry_insert(table, (uint32_t)group, key, "/a", now) == former);
  former->leaving_key = key;
  former->key = KEY_LEAVING;
  cells_of(former)[0] = 0;
  adm_entry *other = entry_at(table, entry_index(table, former) + 1);
  other->group = (uint32_t)group;
  used_of(table)[entry_index(table, other) / 64] |= UINT64_C(1) << entry_index(table, other) % 64;
  other->key = key;
  cells_of(former)[0] = token_claimed(1);
  CHECK(entry_insert(table, (uint32_t)group, key, "/a", now) == other);
  CHECK_EQUAL(former->key, KEY_LEAVING);
  table_end(table);
}

/* Whether a process that finds this memory takes it for a table. */
static bool known(adm_shared *memory, size_t bytes) {
  adm_table *table = adm_table_known(memory, bytes);
  bool is = table != NULL && table->shared == memory;
  adm_table_forget(table);
  return is;
}

static void a_table_of_another_version_is_not_read(void) {
  adm_table *table = table_of(SMALL);
  adm_shared *shared = table->shared;
  size_t bytes = adm_table_bytes(SMALL);
  CHECK(known(shared, bytes));
  CHECK(!known(shared, bytes + 64));
  CHECK(!known(NULL, 0));
  shared->version++;
  CHECK(!known(shared, bytes));
  shared->version--;
  shared->layout++;
  CHECK(!known(shared, bytes));
  shared->layout--;
  shared->shape.cells = 1u << 30;
  CHECK(!known(shared, bytes));
  table_end(table);
  CHECK_EQUAL(adm_table_bytes((adm_shape){100, 1, 1}), 0); /* not a power of two */
}

static void times_of_day(void) {
  adm_settings settings = {.limit = 9, .windows = 2, .window = {{540, 1080, 4}, {1320, 360, 20}}};
  static const struct { unsigned minute, limit; } day[] = {{539, 9}, {540, 4}, {1079, 4}, {1080, 9}, {1319, 9}, {1320, 20}, {1439, 20}, {0, 20}, {359, 20}, {360, 9}};
  for (size_t i = 0; i < sizeof day / sizeof day[0]; i++) CHECK_EQUAL(adm_limit_at(&settings, day[i].minute), day[i].limit);
}

static void labels_keep_their_end(void) {
  adm_table *table = table_of(SMALL);
  adm_owner owner = adm_owner_join(table, (adm_process){10, 1});
  int group = group_with(table, "g", 1, 0, ADM_FIFO);
  char label[400];
  memset(label, 'x', sizeof label);
  strcpy(label + 390, "/end.php");
  adm_layer layer = layer_of(table, group, label);
  adm_answer one;
  ask(table, owner, &layer, 1, &one);
  adm_seen seen;
  for (uint32_t i = 0; i < SMALL.entries; i++)
    if (adm_look(table, i, adm_now_ns(), &seen) && seen.group == group) CHECK_TEXT(seen.label + strlen(seen.label) - 8, "/end.php");
  table_end(table);
}

static bool is_dead(void *world, adm_process process) {
  (void)world;
  return process.pid == 10;
}

static size_t resident_bytes(const adm_table *table) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (table->bytes + page - 1) / page, resident = 0;
  unsigned char *in_use = malloc(pages);
  if (!in_use || mincore(table->shared, table->bytes, in_use) != 0) abort();
  for (size_t i = 0; i < pages; i++) resident += in_use[i] & 1u ? page : 0;
  free(in_use);
  return resident;
}

/* A large table takes the memory of what is used of it, whoever looks at all of it. */
static void only_entries_that_were_used_are_looked_at(void) {
  adm_table *table = table_of((adm_shape){.entries = 65536, .cells = 512, .waiters = 32}); /* an entry is larger than a page */
  adm_owner owner = adm_owner_join(table, (adm_process){10, 1});
  int group = group_with(table, "client", 1, 0, ADM_FIFO);
  adm_answer answer;
  for (unsigned i = 0; i < 20; i++) {
    char client[16];
    snprintf(client, sizeof client, "192.0.2.%u", i);
    adm_layer layer = layer_of(table, group, client);
    CHECK_EQUAL(ask(table, owner, &layer, 1, &answer), ADM_ADMITTED);
  }
  unsigned seen = 0;
  uint64_t held = 0;
  for (uint32_t i = adm_entry_next(table, 0); i < 65536; i = adm_entry_next(table, i + 1)) {
    adm_seen at;
    CHECK(adm_look(table, i, adm_now_ns(), &at));
    seen += at.group == group; /* beside the waiting room */
    held += at.held;
  }
  CHECK_EQUAL(seen, 20);
  CHECK_EQUAL(held, 20);
  CHECK_EQUAL(adm_entry_next(table, 65536), 65536);
  adm_wake_all(table);
  adm_settle(table, NULL, NULL);
  CHECK_EQUAL(adm_sweep_dead(table, 0, is_dead, NULL, NULL).permits, 20);
  CHECK(resident_bytes(table) < HEAD_BYTES + 65536 / 8 + (20 + 2 + 4) * 5 * 4096); /* some pages for each, not for each place that it may have */
  table_end(table);
}

/* Who may ask again is not counted before he has; by a lower limit of his own it is not the group's that was full. */
static void a_refusal_is_told_once(void) {
  adm_table *table = table_of(SMALL);
  adm_owner owner = adm_owner_join(table, (adm_process){10, 1});
  int index = group_with(table, "g", 1, 0, ADM_FIFO);
  adm_group *group = adm_group_at(table, index);
  adm_layer layer = layer_of(table, index, "/a");
  adm_answer held, refused;
  CHECK_EQUAL(ask(table, owner, &layer, 1, &held), ADM_ADMITTED);
  adm_request request = {.layer = &layer, .layers = 1, .tells_later = true};
  CHECK_EQUAL(adm_admit(table, owner, &request, &refused), ADM_REJECTED);
  CHECK_EQUAL(group->counts.rejected, 0);
  CHECK_EQUAL(group->full, 0);
  adm_tell_rejected(table, &refused);
  CHECK_EQUAL(group->counts.rejected, 1);
  CHECK_EQUAL(group->full, 1);
  CHECK_EQUAL(ask(table, owner, &layer, 1, &refused), ADM_REJECTED);
  CHECK_EQUAL(group->full, 2);
  group->limit = 2;
  layer.at_most = 1;
  CHECK_EQUAL(ask(table, owner, &layer, 1, &refused), ADM_REJECTED);
  CHECK_EQUAL(adm_admit(table, owner, &request, &refused), ADM_REJECTED);
  adm_tell_rejected(table, &refused);
  CHECK_EQUAL(group->counts.rejected, 4);
  CHECK_EQUAL(group->full, 2);
  adm_release(table, &held, NULL, NULL);
  table_end(table);
}

static bool is_odd(void *world, adm_process process) {
  (void)world;
  return process.pid % 2 != 0;
}

/* One walk takes back what many dead hold and wait for, and frees their places; the living keep theirs. */
static void many_dead_at_once(void) {
  adm_table *table = table_of(SMALL);
  int group = group_with(table, "g", 4, 8, ADM_FIFO);
  adm_layer layer = layer_of(table, group, "/a");
  adm_owner owners[4];
  adm_answer answer[4];
  for (uint32_t i = 0; i < 4; i++) {
    owners[i] = adm_owner_join(table, (adm_process){10 + i, 1});
    CHECK_EQUAL(ask(table, owners[i], &layer, 1, &answer[i]), ADM_ADMITTED);
  }
  uint32_t place;
  standing waits = {.since_ns = adm_now_ns(), .at_most = ADM_UNLIMITED, .group = (uint32_t)group};
  CHECK(queue_join(table, answer[0].permit[0].entry, token_make(table, owners[3]) | 1, 8, &waits, &place));
  adm_swept swept = adm_sweep_dead(table, 0, is_odd, NULL, NULL);
  CHECK_EQUAL(swept.permits, 2);
  CHECK(swept.room);
  CHECK_EQUAL(queue_length(table, answer[0].permit[0].entry), 0);
  CHECK_EQUAL(permits_held(table, answer[0].permit[0].entry), 2);
  CHECK_EQUAL(adm_owner_of(table, 11), ADM_NOBODY);
  CHECK_EQUAL(adm_owner_of(table, 13), ADM_NOBODY);
  CHECK_EQUAL(adm_owner_of(table, 12), owners[2]);
  CHECK_EQUAL(adm_sweep_dead(table, 0, is_odd, NULL, NULL).permits, 0);
  table_end(table);
}

/* Whatever differs, a byte anywhere or the length, gives another hash, and each seed another one; the places in a table that
 * it leads to are used evenly. */
static void the_hash_tells_names_apart(void) {
  enum { LONGEST = 70, PLACES = 64, NAMES = 64000 };
  adm_table *table = table_of(SMALL);
  unsigned char name[LONGEST + 1] = {0};
  for (size_t length = 0; length <= LONGEST; length++) {
    uint64_t plain = adm_hash(table, name, length);
    CHECK(plain != adm_hash(table, name, length + 1 <= LONGEST ? length + 1 : 0));
    for (size_t at = 0; at < length; at++)
      for (unsigned bit = 0; bit < 8; bit++) {
        name[at] = (unsigned char)(1u << bit);
        uint64_t other = adm_hash(table, name, length);
        CHECK(other != plain);
        name[at] = 0;
      }
    CHECK(plain == adm_hash(table, name, length));
  }
  unsigned found[PLACES] = {0};
  for (unsigned i = 0; i < NAMES; i++) {
    char file[40];
    int length = snprintf(file, sizeof file, "/var/www/html/page%u.php", i);
    found[adm_hash(table, file, (size_t)length) % PLACES]++;
  }
  for (unsigned i = 0; i < PLACES; i++) CHECK(found[i] > NAMES / PLACES * 4 / 5 && found[i] < NAMES / PLACES * 6 / 5);
  uint64_t before = adm_hash(table, "/a", 2);
  table->seed[0]++;
  CHECK(adm_hash(table, "/a", 2) != before);
  table->seed[0]--;
  table->seed[1]++;
  CHECK(adm_hash(table, "/a", 2) != before);
  table_end(table);
}

/* Rubbish in shared memory, as a broken child may write it: nothing may be read or written outside the table. */
static void rubbish_stays_inside(void) {
  uint64_t dice = 1;
  for (int round = 0; round < 300; round++) {
    adm_table *table = table_of((adm_shape){16, 4, 4});
    adm_owner owner = adm_owner_join(table, (adm_process){10, 1});
    int group = group_with(table, "g", 2, 0, ADM_FIFO);
    adm_layer layer = layer_of(table, group, "/a");
    adm_answer one;
    ask(table, owner, &layer, 1, &one);
    for (int flips = 0; flips < 400; flips++) {
      dice = dice * UINT64_C(6364136223846793005) + 1442695040888963407u;
      size_t at = (size_t)(dice >> 16) % table->bytes;
      ((unsigned char *)table->shared)[at] ^= (unsigned char)(1u << (dice & 7));
    }
    table->shared->inserting = 0; /* else each new key waits for it in vain, which is right but slow */
    adm_request request = {.layer = &layer, .layers = 1};
    if (adm_was_admitted(adm_admit(table, owner, &request, &one))) adm_release(table, &one, NULL, NULL);
    adm_sweep(table, owner, NULL, NULL);
    adm_settle(table, NULL, NULL);
    weight_in(table, group);
    table_end(table);
  }
  CHECK(true);
}

int main(void) {
  a_limit_is_kept_and_given_back();
  a_request_needs_all_its_layers_or_holds_none();
  memory_is_a_limit_on_costs_over_all_groups();
  observing_counts_and_lets_through();
  limits_can_shrink_under_those_who_hold();
  the_dead_leave_nothing_and_the_living_keep_all();
  the_waiting_dead_make_room();
  a_refusal_is_told_once();
  many_dead_at_once();
  who_sweeps_late_takes_nothing_from_the_next();
  users_of_a_place_are_told_apart();
  whom_a_limit_would_have_kept_out_is_in_nobodys_way();
  who_would_wait_is_not_who_would_be_turned_away();
  who_comes_after_those_who_would_wait_waits_too();
  who_would_wait_in_vain_would_be_turned_away();
  who_has_a_limit_of_his_own_would_wait_by_himself();
  no_more_would_wait_than_workers_may();
  who_would_turn_away_is_told_of_first();
  each_group_that_observes_counts_for_itself();
  what_was_learned_is_taken_over();
  a_full_table_leaves_the_waiting_room();
  a_key_that_has_an_entry_is_not_given_its_former_one();
  tables_have_bytes_of_their_own();
  a_table_is_in_use_as_long_as_somebody_may_come_back_to_it();
  a_program_keeps_the_permit_of_its_dead_process();
  the_waiting_have_no_program();
  a_full_table_lets_through_and_idle_entries_make_room();
  a_flood_of_names_does_not_fill_the_table();
  a_key_that_was_taken_away_is_put_back();
  groups_of_earlier_configurations_make_room();
  without_a_place_in_the_table_everything_is_open();
  a_table_of_another_version_is_not_read();
  times_of_day();
  labels_keep_their_end();
  only_entries_that_were_used_are_looked_at();
  the_hash_tells_names_apart();
  rubbish_stays_inside();
  return checked("core");
}
