/*
 * test_queue.c: the core with several threads at once: the limit holds, nobody is forgotten in the queue, and the queue
 * keeps its order, its time and its length. Clean under the thread sanitizer.
 *
 *   test_queue [HAND-OFFS]   how many permits are passed on in the storm; 100000 unless said
 */
#include "check.h"
#include "world.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define CROWD 8

/* What the threads of a storm share. `inside` is the oracle: it knows nothing of cells. */
typedef struct storm {
  adm_table *table;
  adm_layer layer[2];
  unsigned layers;
  uint32_t limit;
  bool may_wait;
  uint32_t tight; /* a lower limit that half of the threads have; 0: none */
  long turns;
  _Atomic long came;
  _Atomic long inside, most, admitted, refused, queued;
} storm;

static void *runs_in_a_storm(void *of) {
  storm *storm = of;
  adm_owner owner = adm_owner_join(storm->table, somebody());
  adm_layer layer[2] = {storm->layer[0], storm->layer[1]};
  if (storm->tight && storm->came++ % 2) layer[0].at_most = storm->tight;
  adm_request request = {.layer = layer, .layers = storm->layers, .may_wait = storm->may_wait, .slice_ms = 60000};
  for (long i = 0; i < storm->turns; i++) {
    adm_answer answer;
    adm_outcome outcome = adm_admit(storm->table, owner, &request, &answer);
    if (!adm_was_admitted(outcome)) {
      storm->refused++;
      continue;
    }
    long now = storm->inside += storm->layer[storm->layers - 1].cost, most = storm->most;
    while (now > most && !atomic_compare_exchange_weak(&storm->most, &most, now)) {}
    storm->admitted++;
    storm->queued += outcome == ADM_QUEUED;
    if (storm->may_wait) sched_yield(); /* so that the others come while it is held */
    storm->inside -= storm->layer[storm->layers - 1].cost;
    adm_release(storm->table, &answer, NULL, NULL);
  }
  return NULL;
}

static void let_loose(storm *storm) {
  pthread_t thread[CROWD];
  for (int i = 0; i < CROWD; i++) pthread_create(&thread[i], NULL, runs_in_a_storm, storm);
  for (int i = 0; i < CROWD; i++) pthread_join(thread[i], NULL);
}

static void the_limit_holds(uint32_t limit, uint32_t cost, long turns) {
  storm storm = {.table = table_of(SMALL), .layers = 2, .limit = limit, .turns = turns};
  int file = group_with(storm.table, "file", ADM_UNLIMITED, 0, ADM_FIFO), host = group_with(storm.table, "host", limit, 0, ADM_FIFO);
  storm.layer[0] = layer_of(storm.table, file, "/a");
  storm.layer[1] = layer_of(storm.table, host, "h");
  storm.layer[1].cost = cost;
  let_loose(&storm);
  check_said(storm.most <= (long)limit, __FILE__, __LINE__, "%ld at once with a limit of %u", (long)storm.most, limit);
  CHECK_EQUAL(storm.admitted + storm.refused, CROWD * turns);
  CHECK(storm.admitted > 0);
  CHECK(at_rest(storm.table));
  table_end(storm.table);
}

/* An entry that is new has never been full, so that nobody looks before his claim: all come to it at the same moment, and stay
 * until all have their answer. */
typedef struct opening {
  adm_table *table;
  adm_layer layer;
  pthread_barrier_t door;
  _Atomic long inside;
  long days, least, most;
} opening;

static void *comes_to_openings(void *of) {
  opening *opening = of;
  adm_owner owner = adm_owner_join(opening->table, somebody());
  for (long day = 0; day < opening->days; day++) {
    if (pthread_barrier_wait(&opening->door) == PTHREAD_BARRIER_SERIAL_THREAD) opening->layer.key++;
    pthread_barrier_wait(&opening->door);
    adm_request request = {.layer = &opening->layer, .layers = 1};
    adm_answer answer;
    bool in = adm_was_admitted(adm_admit(opening->table, owner, &request, &answer));
    opening->inside += in;
    if (pthread_barrier_wait(&opening->door) == PTHREAD_BARRIER_SERIAL_THREAD) {
      if (opening->inside < opening->least) opening->least = opening->inside;
      if (opening->inside > opening->most) opening->most = opening->inside;
      opening->inside = 0;
    }
    if (in) adm_release(opening->table, &answer, NULL, NULL);
  }
  return NULL;
}

static void the_limit_holds_from_the_first_moment(uint32_t limit, long days) {
  opening opening = {.table = table_of(SMALL), .days = days, .least = CROWD};
  opening.layer = layer_of(opening.table, group_with(opening.table, "g", limit, 0, ADM_FIFO), "/new");
  pthread_t thread[CROWD];
  pthread_barrier_init(&opening.door, NULL, CROWD);
  for (int i = 0; i < CROWD; i++) pthread_create(&thread[i], NULL, comes_to_openings, &opening);
  for (int i = 0; i < CROWD; i++) pthread_join(thread[i], NULL);
  pthread_barrier_destroy(&opening.door);
  CHECK_EQUAL(opening.most, limit);
  CHECK(opening.least > 0);
  CHECK(at_rest(opening.table));
  table_end(opening.table);
}

/* Everybody waits for everybody; a wake-up that got lost would be a timeout, as the next look is a minute away. */
static void nobody_is_forgotten(long hand_offs, adm_order order, uint32_t tight) {
  storm storm = {.table = table_of(SMALL), .layers = 1, .limit = 2, .turns = hand_offs / CROWD, .may_wait = true, .tight = tight};
  int group = group_with(storm.table, "g", storm.limit, CROWD, order);
  /* An hour: where the newest goes first, the oldest may wait until the storm is over. */
  adm_group_at(storm.table, group)->timeout_ms = 3600000;
  storm.layer[0] = layer_of(storm.table, group, "/a");
  let_loose(&storm);
  CHECK(storm.most <= 2);
  if (order != ADM_ADAPTIVE) CHECK_EQUAL(storm.refused, 0);
  CHECK_EQUAL(adm_table_troubles(storm.table).late_wakes, 0);
  CHECK(at_rest(storm.table));
  printf("queue: %ld permits, %ld of them after a wait, none forgotten\n", (long)storm.admitted, (long)storm.queued);
  table_end(storm.table);
}

/* ---- one waiter after the other ---- */

typedef struct visit {
  adm_table *table;
  adm_layer layer;
  int32_t priority;
  bool (*wanted)(void *);
  void *world;
  _Atomic long *turn; /* who comes in how manieth */
  long came;
  adm_outcome outcome;
  adm_answer answer;
  pthread_t thread;
} visit;

static void *visits(void *of) {
  visit *visit = of;
  adm_owner owner = adm_owner_join(visit->table, somebody());
  adm_client client = {.wanted = visit->wanted};
  adm_request request = {.layer = &visit->layer, .layers = 1, .may_wait = true, .priority = visit->priority,
                         .slice_ms = visit->wanted ? 5 : 60000, .client = &client, .world = visit->world};
  visit->outcome = adm_admit(visit->table, owner, &request, &visit->answer);
  visit->came = visit->turn ? (*visit->turn)++ : 0;
  adm_release(visit->table, &visit->answer, NULL, NULL);
  return NULL;
}

/* How many can be given their turn: who has only claimed a place is passed over until he has said who he is. */
static uint32_t waiting_in(const adm_table *table) {
  uint32_t waiting = 0;
  for (uint32_t e = adm_entry_next(table, 0); e < table->shape.entries; e = adm_entry_next(table, e + 1)) {
    adm_entry *entry = entry_at(table, e);
    for (uint32_t i = 0; i < waiters_in_use(table, entry); i++) waiting += token_state(waiting_of(table, entry)[i]) == WAITER_WAITING;
  }
  return waiting;
}

/* Starts a visitor and comes back when it waits. */
static void comes_and_waits(visit *visit) {
  uint32_t before = waiting_in(visit->table);
  pthread_create(&visit->thread, NULL, visits, visit);
  while (waiting_in(visit->table) == before) sched_yield();
}

static void the_order_of_a_queue(adm_order order, const int32_t priority[4], const char *expected) {
  adm_table *table = table_of(SMALL);
  int group = group_with(table, "g", 1, 8, order);
  adm_layer layer = layer_of(table, group, "/a");
  adm_owner me = adm_owner_join(table, (adm_process){1, 1});
  adm_request request = {.layer = &layer, .layers = 1};
  adm_answer mine;
  adm_admit(table, me, &request, &mine);
  visit visit[4];
  _Atomic long turn = 0;
  for (int i = 0; i < 4; i++) {
    visit[i] = (struct visit){.table = table, .layer = layer, .priority = priority[i], .turn = &turn};
    comes_and_waits(&visit[i]);
  }
  adm_answer newcomer;
  CHECK_EQUAL(adm_admit(table, me, &request, &newcomer), ADM_REJECTED);
  adm_release(table, &mine, NULL, NULL);
  char seen[5] = "";
  for (int i = 0; i < 4; i++) {
    pthread_join(visit[i].thread, NULL);
    CHECK_EQUAL(visit[i].outcome, ADM_QUEUED);
    seen[visit[i].came] = (char)('a' + i);
  }
  CHECK_TEXT(seen, expected);
  CHECK_EQUAL(adm_group_at(table, group)->counts.queued, 4);
  CHECK(at_rest(table));
  table_end(table);
}

static void newcomers_do_not_go_past_the_queue(void) {
  adm_table *table = table_of(SMALL);
  int group = group_with(table, "g", 1, 8, ADM_FIFO);
  adm_layer layer = layer_of(table, group, "/a");
  adm_owner me = adm_owner_join(table, (adm_process){1, 1});
  adm_request request = {.layer = &layer, .layers = 1};
  adm_answer mine, newcomer;
  adm_admit(table, me, &request, &mine);
  visit visit = {.table = table, .layer = layer};
  comes_and_waits(&visit);
  /* The permit is free and the waiter not yet woken: the moment at which a newcomer could go past it. */
  permit_return(&mine.permit[0], false);
  CHECK_EQUAL(adm_admit(table, me, &request, &newcomer), ADM_REJECTED);
  adm_wake_all(table);
  pthread_join(visit.thread, NULL);
  CHECK_EQUAL(visit.outcome, ADM_QUEUED);
  table_end(table);
}

static bool not_wanted(void *world) { return !*(_Atomic bool *)world; }

static void the_bounds_of_waiting(void) {
  adm_table *table = table_of(SMALL);
  int group = group_with(table, "g", 1, 2, ADM_FIFO);
  adm_layer layer = layer_of(table, group, "/a");
  adm_owner me = adm_owner_join(table, (adm_process){1, 1});
  adm_request request = {.layer = &layer, .layers = 1, .may_wait = true};
  adm_answer mine, one;
  adm_admit(table, me, &request, &mine);
  adm_group *group_now = adm_group_at(table, group);

  group_now->timeout_ms = 5;
  CHECK_EQUAL(adm_admit(table, me, &request, &one), ADM_TIMEOUT);
  CHECK(one.wait_ns >= 5000000);

  group_now->timeout_ms = 60000;
  _Atomic bool left = false;
  visit leaves = {.table = table, .layer = layer, .wanted = not_wanted, .world = &left}, stays = {.table = table, .layer = layer};
  comes_and_waits(&leaves);
  comes_and_waits(&stays);
  CHECK_EQUAL(adm_admit(table, me, &request, &one), ADM_REJECTED); /* two wait already */
  left = true;
  pthread_join(leaves.thread, NULL);
  CHECK_EQUAL(leaves.outcome, ADM_GONE);

  adm_group_at(table, ADM_GROUP_WAITING)->limit = 0;
  CHECK_EQUAL(adm_admit(table, me, &request, &one), ADM_REJECTED); /* no worker may wait */
  adm_group_at(table, ADM_GROUP_WAITING)->limit = ADM_UNLIMITED;

  mine.permit[0].entry->service_ns = UINT64_C(61000000000); /* no use in waiting */
  uint64_t before = adm_now_ns();
  CHECK_EQUAL(adm_admit(table, me, &request, &one), ADM_REJECTED);
  CHECK(adm_now_ns() - before < UINT64_C(30000000000));
  CHECK_EQUAL(one.predicted_ns, 2 * UINT64_C(61000000000));

  adm_release(table, &mine, NULL, NULL);
  pthread_join(stays.thread, NULL);
  CHECK_EQUAL(stays.outcome, ADM_QUEUED);
  CHECK_EQUAL(group_now->counts.timeout, 1);
  CHECK_EQUAL(group_now->counts.gone, 1);
  CHECK_EQUAL(group_now->counts.rejected, 3);
  CHECK(at_rest(table));
  table_end(table);
}

/* What is known of one file says nothing about another of its group: who waits for a quick one is not turned away because of
 * a slow one, and who would wait for the slow one is, however many quick ones there are. */
static void a_wait_is_predicted_by_the_entry(void) {
  adm_table *table = table_of(SMALL);
  int group = group_with(table, "g", 1, 8, ADM_FIFO);
  adm_layer slow = layer_of(table, group, "/slow"), quick = layer_of(table, group, "/quick");
  adm_owner me = adm_owner_join(table, (adm_process){1, 1});
  adm_request of_slow = {.layer = &slow, .layers = 1, .may_wait = true}, of_quick = {.layer = &quick, .layers = 1, .may_wait = true};
  adm_answer mine, one;
  adm_admit(table, me, &of_slow, &mine);
  mine.since_ns -= UINT64_C(61000000000);
  adm_release(table, &mine, NULL, NULL);

  adm_group_at(table, group)->timeout_ms = 5;
  adm_admit(table, me, &of_quick, &mine);
  CHECK_EQUAL(adm_admit(table, me, &of_quick, &one), ADM_TIMEOUT);
  mine.since_ns = adm_now_ns() - 1000;
  adm_release(table, &mine, NULL, NULL);
  for (int i = 0; i < 99; i++) {
    adm_admit(table, me, &of_quick, &mine);
    adm_release(table, &mine, NULL, NULL);
  }

  adm_admit(table, me, &of_slow, &mine);
  CHECK_EQUAL(adm_admit(table, me, &of_slow, &one), ADM_REJECTED);
  CHECK(one.predicted_ns >= UINT64_C(61000000000));
  CHECK(queue_patience_ns(mine.permit[0].entry) >= UINT64_C(122000000000));
  adm_entry *entry = mine.permit[0].entry;
  adm_release(table, &mine, NULL, NULL);

  /* Of what nobody asked for in the last minute nothing is known. */
  entry->used_ns = adm_now_ns() - FORGET_NS - 1;
  adm_admit(table, me, &of_slow, &mine);
  CHECK_EQUAL(adm_admit(table, me, &of_slow, &one), ADM_TIMEOUT);
  CHECK_EQUAL(one.predicted_ns, 0);
  adm_release(table, &mine, NULL, NULL);
  CHECK(at_rest(table));
  table_end(table);
}

/* Memory comes back when those are done who hold it, however long the one takes who waits for it. */
static void a_wait_for_memory_is_predicted_by_its_holders(adm_order order) {
  adm_table *table = table_of(SMALL);
  int group = group_with(table, "g", 8, 8, order);
  adm_settings budget = {.limit = 10, .mode = ADM_ENFORCE, .order = (uint8_t)order};
  adm_group_apply(adm_group_at(table, ADM_GROUP_MEMORY), &budget);
  adm_group_at(table, group)->timeout_ms = 5;
  adm_layer layers[2] = {layer_of(table, group, "/slow"), layer_of(table, ADM_GROUP_MEMORY, "memory")};
  layers[1].cost = 6;
  adm_owner me = adm_owner_join(table, (adm_process){1, 1});
  adm_request request = {.layer = layers, .layers = 2, .manners = group, .may_wait = true};
  adm_answer mine, one;
  adm_admit(table, me, &request, &mine);
  CHECK_EQUAL(mine.permits, 2);
  for (unsigned i = 0; i < 2; i++) {
    adm_entry *entry = mine.permit[i].entry;
    entry->service_ns = entry->group == ADM_GROUP_MEMORY ? 1000 : UINT64_C(61000000000);
  }
  CHECK_EQUAL(adm_admit(table, me, &request, &one), ADM_TIMEOUT);
  CHECK_EQUAL(one.predicted_ns, 1000);
  table_end(table);
}

/* Of those who wait only they count who go first by the order of the queue; where even so the turn comes too late, the wait is
 * not begun, whatever the order. */
static void a_wait_is_predicted_by_the_order(adm_order order, unsigned ahead) {
  adm_table *table = table_of(SMALL);
  int group = group_with(table, "g", 1, 8, order);
  adm_layer layer = layer_of(table, group, "/a");
  adm_owner me = adm_owner_join(table, (adm_process){1, 1});
  adm_request request = {.layer = &layer, .layers = 1, .may_wait = true};
  adm_answer mine, one;
  adm_admit(table, me, &request, &mine);
  adm_entry *entry = mine.permit[0].entry;
  for (int32_t priority = -1; priority <= 1; priority++) {
    standing here = {.priority = priority, .since_ns = adm_now_ns(), .at_most = ADM_UNLIMITED, .group = (uint32_t)group};
    uint32_t place;
    CHECK(queue_join(table, entry, token_make(table, me) | 1, 8, &here, &place));
  }
  entry->service_ns = UINT64_C(3001000000) / (ahead + 1);
  CHECK_EQUAL(adm_admit(table, me, &request, &one), ADM_REJECTED);
  CHECK_EQUAL(one.predicted_ns, entry->service_ns * (ahead + 1));
  adm_group_at(table, group)->timeout_ms = 5;
  entry->service_ns = 1000;
  CHECK_EQUAL(adm_admit(table, me, &request, &one), ADM_TIMEOUT);
  table_end(table);
}

/* A queue that has stood for longer than its patience turns round, and gives up on those who waited that long. */
static void an_adaptive_queue_under_overload(void) {
  adm_table *table = table_of(SMALL);
  int group = group_with(table, "g", 1, 8, ADM_ADAPTIVE);
  adm_group_at(table, group)->timeout_ms = 60000;
  adm_layer layer = layer_of(table, group, "/a");
  adm_owner me = adm_owner_join(table, (adm_process){1, 1});
  adm_request request = {.layer = &layer, .layers = 1};
  adm_answer mine;
  adm_admit(table, me, &request, &mine);
  bool wanted = false;
  visit old = {.table = table, .layer = layer, .wanted = not_wanted, .world = &wanted}; /* looks round each 5 ms */
  comes_and_waits(&old);
  pthread_join(old.thread, NULL);
  CHECK_EQUAL(old.outcome, ADM_TIMEOUT);
  CHECK(old.answer.wait_ns >= 100000000 && old.answer.wait_ns < UINT64_C(30000000000));
  adm_release(table, &mine, NULL, NULL);
  table_end(table);
}

static bool counts_looks(void *world) {
  ++*(_Atomic unsigned *)world;
  return true;
}

/* Where many wait each looks round less often: once, as its time is over, of 600 ms among two hundred. */
static void many_look_round_less_often(void) {
  adm_table *table = table_of((adm_shape){.entries = 64, .cells = 32, .waiters = 256});
  int group = group_with(table, "g", 1, 256, ADM_FIFO);
  adm_group_at(table, group)->timeout_ms = 600;
  adm_owner me = adm_owner_join(table, (adm_process){1, 1});
  adm_layer layer = layer_of(table, group, "/a");
  adm_answer held, mine;
  CHECK_EQUAL(adm_admit(table, me, &(adm_request){.layer = &layer, .layers = 1}, &held), ADM_ADMITTED);
  adm_entry *entry = held.permit[0].entry;
  standing others = {.priority = 0, .since_ns = adm_now_ns(), .at_most = ADM_UNLIMITED, .group = (uint32_t)group};
  uint32_t place[200];
  uint64_t token[200], expected[] = {50, LOOK_NS, 100, 2 * LOOK_NS, 200, 4 * LOOK_NS};
  for (uint32_t i = 0, next = 0; i < 200; i++) {
    token[i] = token_make(table, me) | 1;
    CHECK(queue_join(table, entry, token[i], 256, &others, &place[i]));
    if (i + 1 < expected[next]) continue;
    CHECK_EQUAL(queue_slice_ns(table, entry), expected[next + 1]);
    next += 2;
  }
  _Atomic unsigned looks = 0;
  adm_client client = {.wanted = counts_looks};
  adm_request request = {.layer = &layer, .layers = 1, .may_wait = true, .client = &client, .world = (void *)&looks};
  CHECK_EQUAL(adm_admit(table, me, &request, &mine), ADM_TIMEOUT);
  CHECK_EQUAL(looks, 1);
  adm_group_at(table, group)->order = ADM_ADAPTIVE;
  CHECK_EQUAL(queue_slice_ns(table, entry), LOOK_NS);
  for (uint32_t i = 0; i < 200; i++) queue_leave(table, entry, place[i], token[i]);
  adm_release(table, &held, NULL, NULL);
  CHECK(at_rest(table));
  table_end(table);
}

/* Who looks round, as his time is over, leaves the turn to one who was woken and has not come yet; not to one who was long ago. */
static void who_looks_round_takes_nobodys_turn(void) {
  adm_table *table = table_of(SMALL);
  int group = group_with(table, "g", 1, 8, ADM_FIFO);
  adm_group_at(table, group)->timeout_ms = 20;
  adm_layer layer = layer_of(table, group, "/a");
  adm_owner me = adm_owner_join(table, (adm_process){1, 1});
  adm_answer mine;
  adm_admit(table, me, &(adm_request){.layer = &layer, .layers = 1}, &mine);
  adm_entry *entry = mine.permit[0].entry;
  uint64_t token = token_make(table, me) | 1;
  standing first = {.since_ns = adm_now_ns(), .at_most = ADM_UNLIMITED, .group = (uint32_t)group};
  uint32_t place;
  CHECK(queue_join(table, entry, token, 8, &first, &place));
  adm_release(table, &mine, NULL, NULL);
  entry->service_ns = 0; /* nothing is known of how long it takes: a wait is begun */
  adm_request request = {.layer = &layer, .layers = 1, .may_wait = true, .slice_ms = 30000};
  CHECK_EQUAL(adm_admit(table, me, &request, &mine), ADM_TIMEOUT);
  CHECK_EQUAL(token_state(waiting_of(table, entry)[place]), WAITER_WOKEN);
  /* By then he should have come. */
  request.slice_ms = 5;
  waiters_of(table, entry)[place].woken_ns = adm_now_ns() - 10000000;
  CHECK_EQUAL(adm_admit(table, me, &request, &mine), ADM_QUEUED);
  adm_release(table, &mine, NULL, NULL);
  /* He is stopped, it seems: nobody has to wait for him, and whose turn is next is woken. */
  waiters_of(table, entry)[place].woken_ns = 0;
  CHECK_EQUAL(adm_admit(table, me, &(adm_request){.layer = &layer, .layers = 1}, &mine), ADM_ADMITTED);
  uint32_t second_place;
  CHECK(queue_join(table, entry, token, 8, &first, &second_place));
  CHECK_EQUAL(token_state(waiting_of(table, entry)[second_place]), WAITER_WAITING);
  adm_release(table, &mine, NULL, NULL);
  CHECK_EQUAL(token_state(waiting_of(table, entry)[second_place]), WAITER_WOKEN);
  /* That one is of the stopped process, too: nobody waits for it either, and another's turn comes before that of a third of it. */
  CHECK_EQUAL(adm_admit(table, me, &(adm_request){.layer = &layer, .layers = 1}, &mine), ADM_ADMITTED);
  queue_again(table, entry, second_place, token);
  standing later = {.since_ns = adm_now_ns(), .at_most = ADM_UNLIMITED, .group = (uint32_t)group};
  uint64_t others = token_make(table, adm_owner_join(table, somebody())) | 1;
  uint32_t others_place;
  CHECK(queue_join(table, entry, others, 1, &later, &others_place)); /* whose places are no others' */
  CHECK(queue_next_is(table, entry, others_place, adm_now_ns()));
  adm_release(table, &mine, NULL, NULL);
  CHECK_EQUAL(token_state(waiting_of(table, entry)[others_place]), WAITER_WOKEN);
  CHECK_EQUAL(token_state(waiting_of(table, entry)[second_place]), WAITER_WAITING);
  queue_leave(table, entry, others_place, others);
  queue_leave(table, entry, second_place, token);
  queue_leave(table, entry, place, token);
  table_end(table);
}

/* First come first served while the queue is empty now and then; the newest first when it has not been for as long as its patience,
 * and back when it has. */
static void an_adaptive_queue_turns_round_and_back(void) {
  adm_table *table = table_of(SMALL);
  int group = group_with(table, "g", 1, 8, ADM_ADAPTIVE);
  adm_layer layer = layer_of(table, group, "/a");
  adm_owner me = adm_owner_join(table, (adm_process){1, 1});
  adm_answer mine;
  adm_admit(table, me, &(adm_request){.layer = &layer, .layers = 1}, &mine);
  adm_entry *entry = mine.permit[0].entry;
  entry->service_ns = UINT64_C(60000000000); /* patience of two minutes: nothing turns by itself */
  uint64_t now = adm_now_ns(), token = token_make(table, me) | 1;
  uint32_t place[3];
  for (uint32_t i = 0; i < 3; i++) {
    standing here = {.since_ns = now - 3 + i, .at_most = ADM_UNLIMITED, .group = (uint32_t)group};
    CHECK(queue_join(table, entry, token, 8, &here, &place[i]));
  }
  CHECK(queue_next_is(table, entry, place[0], now));
  entry->clear_ns = now - queue_patience_ns(entry) - 1;
  CHECK(queue_next_is(table, entry, place[2], now));
  adm_release(table, &mine, NULL, NULL);
  CHECK_EQUAL(token_state(waiting_of(table, entry)[place[2]]), WAITER_WOKEN);
  /* Whoever is the next now leaves the turn to the one who was woken; not for ever, as that one may be stopped. */
  uint64_t woken = waiters_of(table, entry)[place[2]].woken_ns;
  CHECK(!queue_leaves_room(table, entry, 1, woken + 9, 10));
  CHECK(queue_leaves_room(table, entry, 1, woken + 11, 10));
  CHECK_EQUAL(token_state(waiting_of(table, entry)[place[0]]), WAITER_WAITING);

  /* All leave, and the next three come to an empty queue. */
  for (uint32_t i = 0; i < 3; i++) queue_leave(table, entry, place[i], token);
  adm_admit(table, me, &(adm_request){.layer = &layer, .layers = 1}, &mine);
  now = adm_now_ns();
  for (uint32_t i = 0; i < 3; i++) {
    standing here = {.since_ns = now + i, .at_most = ADM_UNLIMITED, .group = (uint32_t)group};
    CHECK(queue_join(table, entry, token, 8, &here, &place[i]));
  }
  CHECK(queue_next_is(table, entry, place[0], now + 3));
  adm_release(table, &mine, NULL, NULL);
  CHECK_EQUAL(token_state(waiting_of(table, entry)[place[0]]), WAITER_WOKEN);
  table_end(table);
}

/* One tenant's limit of its own, which many of his requests wait for, overloads the queue for him, and not for his neighbours. */
static void a_limit_of_ones_own_overloads_nobody_else(void) {
  adm_table *table = table_of(SMALL);
  int group = group_with(table, "g", 2, 8, ADM_ADAPTIVE);
  adm_layer layer = layer_of(table, group, "/a");
  adm_owner me = adm_owner_join(table, somebody());
  adm_answer mine;
  adm_admit(table, me, &(adm_request){.layer = &layer, .layers = 1}, &mine);
  adm_entry *entry = mine.permit[0].entry;
  uint64_t now = adm_now_ns(), token = token_make(table, me) | 1;
  uint32_t place[3];
  for (uint32_t i = 0; i < 2; i++) {
    standing tenant = {.since_ns = now - 3 + i, .at_most = 1, .group = (uint32_t)group};
    CHECK(queue_join(table, entry, token, 8, &tenant, &place[i]));
    CHECK_EQUAL(token_state(waiting_of(table, entry)[place[i]]), WAITER_WAITING);
  }
  entry->calm_ns = entry->clear_ns = now - UINT64_C(10000000000);
  CHECK(queue_overloaded(table, entry, 1, now));
  CHECK(!queue_overloaded(table, entry, 2, now));
  CHECK(!queue_overloaded(table, entry, ADM_UNLIMITED, now));
  /* A neighbour who finds it full begins to wait in a calm queue, as the first. */
  adm_answer other;
  CHECK_EQUAL(adm_admit(table, me, &(adm_request){.layer = &layer, .layers = 1}, &other), ADM_ADMITTED);
  standing neighbour = {.since_ns = now, .at_most = ADM_UNLIMITED, .group = (uint32_t)group};
  CHECK(queue_join(table, entry, token, 8, &neighbour, &place[2]));
  CHECK(entry->clear_ns >= now);
  CHECK(!queue_overloaded(table, entry, ADM_UNLIMITED, adm_now_ns()));
  CHECK_EQUAL(queue_before(table, entry, &neighbour, adm_now_ns()), 0);
  /* Among the tenant's it is the newest that goes first. */
  standing newest = {.since_ns = now + 1, .at_most = 1, .group = (uint32_t)group};
  adm_release(table, &mine, NULL, NULL);
  CHECK_EQUAL(token_state(waiting_of(table, entry)[place[2]]), WAITER_WOKEN);
  queue_leave(table, entry, place[2], token);
  adm_release(table, &other, NULL, NULL);
  CHECK_EQUAL(queue_before(table, entry, &newest, adm_now_ns()), 0);
  CHECK_EQUAL(token_state(waiting_of(table, entry)[place[1]]), WAITER_WOKEN);
  for (uint32_t i = 0; i < 2; i++) queue_leave(table, entry, place[i], token);
  table_end(table);
}

/* A queue in which nobody waits is not overloaded, however long ago that was noted; nor is one by how long a request that joins it has
 * waited for another. */
static void an_empty_queue_is_calm(void) {
  adm_table *table = table_of(SMALL);
  int group = group_with(table, "g", 1, 8, ADM_ADAPTIVE);
  adm_layer layer = layer_of(table, group, "/a");
  adm_owner me = adm_owner_join(table, somebody());
  adm_answer mine;
  adm_admit(table, me, &(adm_request){.layer = &layer, .layers = 1}, &mine);
  adm_entry *entry = mine.permit[0].entry;
  uint64_t before = adm_now_ns(), token = token_make(table, me) | 1;
  entry->clear_ns = before - UINT64_C(10000000000);
  CHECK(!queue_overloaded(table, entry, ADM_UNLIMITED, adm_now_ns()));
  standing here = {.since_ns = before - UINT64_C(10000000000), .at_most = ADM_UNLIMITED, .group = (uint32_t)group};
  uint32_t place = 0;
  CHECK(queue_join(table, entry, token, 8, &here, &place));
  CHECK(entry->clear_ns >= before);
  CHECK(!queue_overloaded(table, entry, ADM_UNLIMITED, entry->clear_ns + 1));
  entry->clear_ns = before - UINT64_C(10000000000);
  CHECK(queue_overloaded(table, entry, ADM_UNLIMITED, adm_now_ns()));
  queue_leave(table, entry, place, token);
  table_end(table);
}

/* A queue that becomes adaptive while somebody waits in it is not overloaded by that. */
static void an_order_that_changes_overloads_nothing(void) {
  adm_table *table = table_of(SMALL);
  int group = group_with(table, "g", 1, 8, ADM_FIFO);
  adm_layer layer = layer_of(table, group, "/a");
  adm_owner me = adm_owner_join(table, somebody());
  adm_answer mine;
  adm_admit(table, me, &(adm_request){.layer = &layer, .layers = 1}, &mine);
  adm_entry *entry = mine.permit[0].entry;
  entry->clear_ns = entry->calm_ns = adm_now_ns() - UINT64_C(10000000000); /* it was made long ago */
  uint64_t token = token_make(table, me) | 1;
  standing tenant = {.since_ns = adm_now_ns(), .at_most = 0, .group = (uint32_t)group};
  standing here = {.since_ns = adm_now_ns(), .at_most = ADM_UNLIMITED, .group = (uint32_t)group};
  uint32_t place[2];
  CHECK(queue_join(table, entry, token, 8, &tenant, &place[0]));
  entry->calm_ns -= UINT64_C(10000000000); /* those with limits of their own have waited all the time */
  CHECK(queue_join(table, entry, token, 8, &here, &place[1]));
  adm_group_at(table, group)->order = ADM_ADAPTIVE;
  CHECK(!queue_overloaded(table, entry, ADM_UNLIMITED, entry->clear_ns + 1));
  CHECK(queue_overloaded(table, entry, 0, entry->clear_ns + 1));
  for (uint32_t i = 0; i < 2; i++) queue_leave(table, entry, place[i], token);
  table_end(table);
}

/* The patience of an overloaded queue is for who waits in it: what he has waited for another group is not a part of it. Time is what is
 * tested here, so time is waited for. */
static void *visits_two(void *of) {
  visit *visit = of;
  adm_owner owner = adm_owner_join(visit->table, somebody());
  adm_layer layers[] = {visit->layer, layer_of(visit->table, adm_group_find(visit->table, "adaptive"), "/a")};
  adm_request request = {.layer = layers, .layers = 2, .may_wait = true, .slice_ms = 60000};
  visit->outcome = adm_admit(visit->table, owner, &request, &visit->answer);
  adm_release(visit->table, &visit->answer, NULL, NULL);
  return NULL;
}

static void who_waited_elsewhere_overloads_no_queue(void) {
  adm_table *table = table_of(SMALL);
  int first = group_with(table, "first", 1, 8, ADM_FIFO), adaptive = group_with(table, "adaptive", 1, 8, ADM_ADAPTIVE);
  adm_owner me = adm_owner_join(table, somebody());
  adm_layer of_first = layer_of(table, first, "/a"), of_adaptive = layer_of(table, adaptive, "/a");
  adm_answer held_first, held_adaptive;
  adm_admit(table, me, &(adm_request){.layer = &of_first, .layers = 1}, &held_first);
  adm_admit(table, me, &(adm_request){.layer = &of_adaptive, .layers = 1}, &held_adaptive);
  adm_entry *entry = held_adaptive.permit[0].entry;
  /* Another, older, has waited there for long. */
  uint64_t long_ago = adm_now_ns() - UINT64_C(10000000000), token = token_make(table, me) | 1;
  standing older = {.since_ns = long_ago, .at_most = ADM_UNLIMITED, .group = (uint32_t)adaptive};
  uint32_t place = 0;
  CHECK(queue_join(table, entry, token, 8, &older, &place));
  entry->service_ns = 400000000;
  entry->clear_ns = long_ago;
  visit visit = {.table = table, .layer = of_first};
  pthread_create(&visit.thread, NULL, visits_two, &visit);
  while (waiting_in(table) == 1) sched_yield();
  nanosleep(&(struct timespec){0, 900000000}, NULL); /* longer than its patience would be */
  adm_release(table, &held_first, NULL, NULL);
  while (waiting_in(table) == 1 && !adm_group_at(table, adaptive)->counts.timeout && !adm_group_at(table, adaptive)->counts.rejected)
    sched_yield();
  adm_release(table, &held_adaptive, NULL, NULL);
  pthread_join(visit.thread, NULL);
  CHECK_EQUAL(visit.outcome, ADM_QUEUED);
  queue_leave(table, entry, place, token);
  CHECK(at_rest(table));
  table_end(table);
}

/* Settings that change while somebody waits count for it: a raised limit, a group that only observes. */
static void changes_reach_the_waiting(void) {
  adm_table *table = table_of(SMALL);
  int group = group_with(table, "g", 1, 8, ADM_FIFO);
  adm_layer layer = layer_of(table, group, "/a");
  adm_owner me = adm_owner_join(table, (adm_process){1, 1});
  adm_request request = {.layer = &layer, .layers = 1};
  adm_answer mine;
  adm_admit(table, me, &request, &mine);
  for (int i = 0; i < 2; i++) {
    visit visit = {.table = table, .layer = layer};
    comes_and_waits(&visit);
    adm_group_at(table, group)->limit = i == 0 ? 2 : 1;
    adm_group_at(table, group)->mode = i == 0 ? ADM_ENFORCE : ADM_OBSERVE;
    adm_wake_all(table);
    pthread_join(visit.thread, NULL);
    CHECK_EQUAL(visit.outcome, ADM_QUEUED);
    adm_group_at(table, group)->limit = 1;
    adm_group_at(table, group)->mode = ADM_ENFORCE;
  }
  adm_release(table, &mine, NULL, NULL);
  CHECK(at_rest(table));
  table_end(table);
}

/* Two layers that are full at different times: a request waits for one, then for the other, and holds none meanwhile. */
static void from_one_queue_to_the_next(void) {
  adm_table *table = table_of(SMALL);
  int file = group_with(table, "file", 1, 8, ADM_FIFO), host = group_with(table, "host", 1, 8, ADM_FIFO);
  adm_layer layers[] = {layer_of(table, file, "/a"), layer_of(table, host, "h")};
  adm_owner me = adm_owner_join(table, (adm_process){1, 1});
  adm_answer of_file, of_host;
  adm_admit(table, me, &(adm_request){.layer = &layers[0], .layers = 1}, &of_file);
  adm_admit(table, me, &(adm_request){.layer = &layers[1], .layers = 1}, &of_host);
  storm storm = {.table = table, .layers = 2, .turns = 1, .may_wait = true};
  memcpy(storm.layer, layers, sizeof layers);
  pthread_t thread;
  pthread_create(&thread, NULL, runs_in_a_storm, &storm);
  while (waiting_in(table) == 0) sched_yield();
  adm_release(table, &of_file, NULL, NULL);
  adm_seen seen;
  bool at_host = false;
  while (!at_host)
    for (uint32_t i = 0; i < SMALL.entries; i++)
      if (adm_look(table, i, adm_now_ns(), &seen)) at_host |= seen.group == host && seen.waiting == 1;
  while (weight_in(table, file) != 0) sched_yield();
  CHECK_EQUAL(storm.admitted, 0);
  adm_release(table, &of_host, NULL, NULL);
  pthread_join(thread, NULL);
  CHECK_EQUAL(storm.queued, 1);
  CHECK(at_rest(table));
  table_end(table);
}

/* One whose own limit (AdmissionLimit) is in its way keeps nobody else from the permits that are left, and is not woken
 * for what it cannot take. */
static void a_limit_of_its_own_holds_up_nobody_else(void) {
  adm_table *table = table_of(SMALL);
  int group = group_with(table, "g", 4, 8, ADM_FIFO);
  adm_layer layer = layer_of(table, group, "/a"), tight = layer;
  tight.at_most = 1;
  adm_owner me = adm_owner_join(table, (adm_process){1, 1});
  adm_request request = {.layer = &layer, .layers = 1};
  adm_answer mine;
  adm_admit(table, me, &request, &mine);
  visit tightened = {.table = table, .layer = tight}, other = {.table = table, .layer = layer};
  comes_and_waits(&tightened);
  uint32_t rung = 0;
  for (uint32_t i = 0; i < SMALL.entries; i++) rung += waiters_of(table, entry_at(table, i))[0].bell;
  CHECK_EQUAL(rung, 0);
  pthread_create(&other.thread, NULL, visits, &other);
  pthread_join(other.thread, NULL);
  CHECK(adm_was_admitted(other.outcome));
  CHECK_EQUAL(waiting_in(table), 1);
  adm_release(table, &mine, NULL, NULL);
  pthread_join(tightened.thread, NULL);
  CHECK_EQUAL(tightened.outcome, ADM_QUEUED);
  CHECK_EQUAL(adm_table_troubles(table).late_wakes, 0);
  CHECK(at_rest(table));
  table_end(table);
}

/* Puts one into the queue of an entry that never asks for its turn. */
static bool stand(adm_table *table, adm_entry *entry, adm_owner owner, uint32_t length, uint32_t at_most) {
  standing here = {.since_ns = adm_now_ns(), .at_most = at_most, .group = entry->group};
  uint32_t place;
  return queue_join(table, entry, token_make(table, owner) | 1, length, &here, &place);
}

/* However many wait for a lower limit of their own: permits that are left are for whoever comes, without a place in the queue,
 * and where none are, the places that they have in it are not the others'. Among each other they are a queue as any. */
static void many_with_a_limit_of_their_own_close_nothing(void) {
  adm_table *table = table_of(SMALL);
  int group = group_with(table, "g", 4, 2, ADM_FIFO);
  adm_group_at(table, group)->timeout_ms = 5;
  adm_layer layer = layer_of(table, group, "/a"), tight = layer;
  tight.at_most = 1;
  adm_owner me = adm_owner_join(table, (adm_process){1, 1});
  adm_request request = {.layer = &layer, .layers = 1}, waits = {.layer = &layer, .layers = 1, .may_wait = true};
  adm_request tightened = {.layer = &tight, .layers = 1, .may_wait = true};
  adm_answer held[4], one;
  adm_admit(table, me, &request, &held[0]);
  adm_entry *entry = held[0].permit[0].entry;
  for (int i = 0; i < 2; i++) CHECK(stand(table, entry, me, 2, tight.at_most));
  CHECK(!stand(table, entry, me, 2, tight.at_most));
  CHECK_EQUAL(adm_admit(table, me, &tightened, &one), ADM_REJECTED);
  for (int i = 1; i < 4; i++) CHECK_EQUAL(adm_admit(table, me, &request, &held[i]), ADM_ADMITTED);

  entry->service_ns = 1000;
  CHECK_EQUAL(adm_admit(table, me, &waits, &one), ADM_TIMEOUT); /* had a place */
  CHECK_EQUAL(one.predicted_ns, 1000 / 4);                      /* and nobody before it */
  for (int i = 0; i < 2; i++) CHECK(stand(table, entry, me, 2, ADM_UNLIMITED));
  CHECK_EQUAL(adm_admit(table, me, &waits, &one), ADM_REJECTED);
  CHECK_EQUAL(one.predicted_ns, 3 * (1000 / 4));

  /* A limit that all have is the entry's: nobody goes past those who wait for it. */
  adm_sweep(table, me, NULL, NULL);
  me = adm_owner_join(table, (adm_process){1, 1});
  entry->service_ns = 1000;
  CHECK_EQUAL(adm_admit(table, me, &tightened, &held[0]), ADM_ADMITTED);
  CHECK(stand(table, entry, me, 2, tight.at_most));
  CHECK_EQUAL(adm_admit(table, me, &tightened, &one), ADM_TIMEOUT);
  CHECK_EQUAL(one.predicted_ns, 2 * 1000);
  permit_return(&held[0].permit[0], false); /* not woken yet */
  CHECK_EQUAL(adm_admit(table, me, &(adm_request){.layer = &tight, .layers = 1}, &one), ADM_REJECTED);
  CHECK_EQUAL(adm_admit(table, me, &request, &one), ADM_REJECTED); /* there is room for the one that waits */
  table_end(table);
}

/* One request that wants more than there is at all waits for nothing, and holds up nobody; nor does one that wants more than is
 * left of a budget that was lowered while it waited. */
static void what_never_fits_holds_up_nobody(void) {
  adm_table *table = table_of(SMALL);
  adm_settings budget = {.limit = 800, .queue = 8, .timeout_ms = 3000, .mode = ADM_ENFORCE};
  adm_group_apply(adm_group_at(table, ADM_GROUP_MEMORY), &budget);
  adm_layer big = {.group = ADM_GROUP_MEMORY, .label = "", .at_most = ADM_UNLIMITED, .cost = 900}, large = big, small = big;
  large.cost = 700;
  small.cost = 200;
  adm_owner me = adm_owner_join(table, (adm_process){1, 1});
  adm_request of_big = {.layer = &big, .layers = 1, .may_wait = true}, of_small = {.layer = &small, .layers = 1};
  adm_answer mine, one;
  CHECK_EQUAL(adm_admit(table, me, &of_big, &one), ADM_REJECTED);
  CHECK_EQUAL(one.wait_ns, 0);
  CHECK_EQUAL(adm_admit(table, me, &of_small, &mine), ADM_ADMITTED);
  CHECK_EQUAL(adm_admit(table, me, &of_big, &one), ADM_REJECTED);

  visit first = {.table = table, .layer = large}, next = {.table = table, .layer = small};
  comes_and_waits(&first);
  comes_and_waits(&next); /* there is room for this one, but what is large has its turn, too */
  adm_group_at(table, ADM_GROUP_MEMORY)->limit = 600;
  adm_wake_all(table);
  pthread_join(next.thread, NULL);
  CHECK_EQUAL(next.outcome, ADM_QUEUED);
  CHECK_EQUAL(waiting_in(table), 1);
  CHECK_EQUAL(adm_admit(table, me, &of_small, &one), ADM_ADMITTED);
  adm_release(table, &one, NULL, NULL);
  adm_release(table, &mine, NULL, NULL);
  adm_group_at(table, ADM_GROUP_MEMORY)->limit = 800;
  adm_wake_all(table);
  pthread_join(first.thread, NULL);
  CHECK_EQUAL(first.outcome, ADM_QUEUED);
  CHECK(at_rest(table));
  table_end(table);
}

/* All wait for memory in one queue, and each group has the places there that its own `queue` says. */
static void each_group_has_its_own_places_in_the_queue_for_memory(void) {
  adm_table *table = table_of(SMALL);
  adm_group_apply(adm_group_at(table, ADM_GROUP_MEMORY), &(adm_settings){.limit = 800, .mode = ADM_ENFORCE});
  int heavy = group_with(table, "heavy", ADM_UNLIMITED, 20, ADM_FIFO), light = group_with(table, "light", ADM_UNLIMITED, 2, ADM_FIFO);
  adm_group_at(table, light)->timeout_ms = 5;
  adm_layer memory = {.group = ADM_GROUP_MEMORY, .label = "", .at_most = ADM_UNLIMITED, .cost = 800};
  adm_owner me = adm_owner_join(table, (adm_process){1, 1});
  adm_answer all, one;
  adm_admit(table, me, &(adm_request){.layer = &memory, .layers = 1}, &all);
  standing of_heavy = {.since_ns = adm_now_ns(), .at_most = ADM_UNLIMITED, .group = (uint32_t)heavy}, of_light = of_heavy;
  of_light.group = (uint32_t)light;
  uint32_t place;
  for (int i = 0; i < 5; i++) CHECK(queue_join(table, all.permit[0].entry, token_make(table, me) | 1, 20, &of_heavy, &place));
  adm_layer layers[] = {layer_of(table, light, "/a"), memory};
  adm_request request = {.layer = layers, .layers = 2, .manners = light, .may_wait = true};
  CHECK_EQUAL(adm_admit(table, me, &request, &one), ADM_TIMEOUT);
  for (int i = 0; i < 2; i++) CHECK(queue_join(table, all.permit[0].entry, token_make(table, me) | 1, 2, &of_light, &place));
  CHECK_EQUAL(adm_admit(table, me, &request, &one), ADM_REJECTED);
  CHECK(queue_join(table, all.permit[0].entry, token_make(table, me) | 1, 6, &of_heavy, &place));
  CHECK(!queue_join(table, all.permit[0].entry, token_make(table, me) | 1, 6, &of_heavy, &place));
  table_end(table);
}

/* However many groups a request is in, narrower ones too: for memory it waits as the one says that it names, be that not at all. */
static void one_group_says_how_a_request_waits_for_memory(void) {
  adm_table *table = table_of(SMALL);
  adm_group_apply(adm_group_at(table, ADM_GROUP_MEMORY), &(adm_settings){.limit = 800, .mode = ADM_ENFORCE});
  int file = group_with(table, "file", ADM_UNLIMITED, 8, ADM_FIFO), host = group_with(table, "host", ADM_UNLIMITED, 0, ADM_FIFO);
  adm_group_at(table, file)->timeout_ms = 5;
  adm_layer layers[] = {layer_of(table, file, "/a"), layer_of(table, host, "h"),
                        {.group = ADM_GROUP_MEMORY, .label = "", .at_most = ADM_UNLIMITED, .cost = 800}};
  adm_owner me = adm_owner_join(table, (adm_process){1, 1});
  adm_request request = {.layer = layers, .layers = 3, .manners = host, .may_wait = true};
  adm_answer all, one;
  CHECK_EQUAL(adm_admit(table, me, &request, &all), ADM_ADMITTED);
  CHECK_EQUAL(adm_admit(table, me, &request, &one), ADM_REJECTED);
  request.manners = file;
  CHECK_EQUAL(adm_admit(table, me, &request, &one), ADM_TIMEOUT);
  request.manners = ADM_GROUP_MEMORY;
  CHECK_EQUAL(adm_admit(table, me, &request, &one), ADM_REJECTED);
  adm_release(table, &all, NULL, NULL);
  CHECK(at_rest(table));
  table_end(table);
}

/* Two layers that are both full and waited for: whose turn has come in one does not give it up for those who came later
 * to the other, and is not sent to and fro between them until it is turned away. */
static void two_full_layers(void) {
  storm storm = {.table = table_of(SMALL), .layers = 2, .limit = 2, .turns = 3000, .may_wait = true};
  int file = group_with(storm.table, "file", 2, CROWD, ADM_FIFO), host = group_with(storm.table, "host", 2, CROWD, ADM_FIFO);
  adm_group_at(storm.table, file)->timeout_ms = adm_group_at(storm.table, host)->timeout_ms = 30000;
  storm.layer[0] = layer_of(storm.table, file, "/a");
  storm.layer[1] = layer_of(storm.table, host, "h");
  let_loose(&storm);
  CHECK(storm.most <= 2);
  CHECK_EQUAL(storm.refused, 0);
  CHECK(at_rest(storm.table));
  table_end(storm.table);
}

int main(int argc, char **argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  long hand_offs = argc > 1 ? atol(argv[1]) : 100000;
  the_limit_holds(2, 1, 20000);
  the_limit_holds(7, 3, 20000);
  the_limit_holds(1, 1, 20000);
  the_limit_holds(1000, 300, 20000);
  for (uint32_t limit = 1; limit < CROWD; limit++) the_limit_holds_from_the_first_moment(limit, 500);
  nobody_is_forgotten(hand_offs, ADM_FIFO, 0);
  nobody_is_forgotten(hand_offs, ADM_LIFO, 0);
  nobody_is_forgotten(hand_offs / 10, ADM_ADAPTIVE, 0);
  nobody_is_forgotten(hand_offs / 2, ADM_FIFO, 1);
  the_order_of_a_queue(ADM_FIFO, (int32_t[]){0, 0, 0, 0}, "abcd");
  the_order_of_a_queue(ADM_LIFO, (int32_t[]){0, 0, 0, 0}, "dcba");
  the_order_of_a_queue(ADM_FIFO, (int32_t[]){5, 0, 5, -1}, "dbac");
  newcomers_do_not_go_past_the_queue();
  the_bounds_of_waiting();
  a_wait_is_predicted_by_the_entry();
  a_wait_is_predicted_by_the_order(ADM_FIFO, 2);
  a_wait_is_predicted_by_the_order(ADM_ADAPTIVE, 2); /* it is calm */
  a_wait_is_predicted_by_the_order(ADM_LIFO, 1);
  for (int order = ADM_FIFO; order <= ADM_ADAPTIVE; order++) a_wait_for_memory_is_predicted_by_its_holders((adm_order)order);
  an_adaptive_queue_under_overload();
  many_look_round_less_often();
  who_looks_round_takes_nobodys_turn();
  an_adaptive_queue_turns_round_and_back();
  changes_reach_the_waiting();
  an_empty_queue_is_calm();
  an_order_that_changes_overloads_nothing();
  a_limit_of_ones_own_overloads_nobody_else();
  who_waited_elsewhere_overloads_no_queue();
  from_one_queue_to_the_next();
  a_limit_of_its_own_holds_up_nobody_else();
  many_with_a_limit_of_their_own_close_nothing();
  what_never_fits_holds_up_nobody();
  each_group_has_its_own_places_in_the_queue_for_memory();
  one_group_says_how_a_request_waits_for_memory();
  two_full_layers();
  return checked("queue");
}
