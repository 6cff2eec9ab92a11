/*
 * test_carry.c: a table that replaces another counts what is still held there, by the names of groups and by keys, until it is given back.
 */
#include "check.h"
#include "world.h"

#include <pthread.h>

static const adm_shape LARGE = {.entries = 128, .cells = 32, .waiters = 32};

typedef struct request {
  adm_table *table;
  adm_owner owner;
  adm_layer layer[2];
  adm_request asked;
  adm_answer answer;
} request;

static request *asks(adm_table *table, int group, const char *label, uint32_t memory) {
  request *one = calloc(1, sizeof *one);
  static uint32_t pid = 100;
  one->table = table;
  one->owner = adm_owner_join(table, (adm_process){++pid, 1});
  one->layer[0] = layer_of(table, group, label);
  one->layer[1] = (adm_layer){ADM_GROUP_MEMORY, 0, "", ADM_UNLIMITED, memory};
  one->asked = (adm_request){.layer = one->layer, .layers = memory ? 2 : 1, .may_wait = true, .slice_ms = 10000};
  return one;
}

static request *admitted(adm_table *table, int group, const char *label, uint32_t memory) {
  request *one = asks(table, group, label, memory);
  CHECK_EQUAL(adm_admit(table, one->owner, &one->asked, &one->answer), ADM_ADMITTED);
  return one;
}

static bool refused(adm_table *table, int group, const char *label, uint32_t memory) {
  request *one = asks(table, group, label, memory);
  adm_outcome outcome = adm_admit(table, one->owner, &one->asked, &one->answer);
  adm_release(table, &one->answer, NULL, NULL);
  adm_sweep(table, one->owner, NULL, NULL);
  free(one);
  return outcome == ADM_REJECTED;
}

static void ends(request *one) {
  adm_release(one->table, &one->answer, NULL, NULL);
  adm_sweep(one->table, one->owner, NULL, NULL);
  free(one);
}

/* Cells that stand for others in the entries of a group. */
static unsigned carried_cells(adm_table *table) {
  unsigned count = 0;
  for (uint32_t e = 0; e < table->shape.entries; e++)
    for (uint32_t i = 0; i < table->shape.cells; i++) count += token_is_carried(cells_of(entry_at(table, e))[i]);
  return count;
}

static void a_limit_holds_over_both_tables(void) {
  adm_table *before = table_of(SMALL), *now = table_of(LARGE), *earlier[] = {before, NULL};
  int old = group_with(before, "heavy", 2, 0, ADM_FIFO);
  request *first = admitted(before, old, "/a", 0), *second = admitted(before, old, "/a", 0), *other = admitted(before, old, "/b", 0);
  group_with(now, "another", 1, 0, ADM_FIFO); /* so that the same group has another number */
  int heavy = group_with(now, "heavy", 2, 0, ADM_FIFO);
  adm_carry_first(now, earlier);
  CHECK_EQUAL(weight_in(now, heavy), 3);
  CHECK_EQUAL(carried_cells(now), 2);
  CHECK(refused(now, heavy, "/a", 0));
  request *beside = admitted(now, heavy, "/b", 0);
  CHECK(refused(now, heavy, "/b", 0));
  CHECK(!adm_carry(now, earlier)); /* nothing changed */
  ends(first);
  CHECK(refused(now, heavy, "/a", 0)); /* not known yet */
  CHECK(adm_carry(now, earlier));
  request *third = admitted(now, heavy, "/a", 0);
  CHECK(refused(now, heavy, "/a", 0));
  /* A child of before that takes one more is counted, too. */
  request *late = admitted(before, old, "/a", 0);
  CHECK(adm_carry(now, earlier));
  CHECK_EQUAL(weight_in(now, heavy), 5);
  ends(late), ends(second), ends(other);
  CHECK(adm_carry(now, earlier));
  CHECK_EQUAL(carried_cells(now), 0);
  CHECK_EQUAL(weight_in(now, heavy), 2);
  ends(third), ends(beside);
  CHECK(at_rest(now) && at_rest(before));
  table_end(before), table_end(now);
}

static void what_memory_costs_is_carried(void) {
  adm_table *before = table_of(SMALL), *now = table_of(LARGE), *earlier[] = {before, NULL};
  int old = group_with(before, "g", 9, 0, ADM_FIFO), group = group_with(now, "g", 9, 0, ADM_FIFO);
  adm_group_at(before, ADM_GROUP_MEMORY)->limit = adm_group_at(now, ADM_GROUP_MEMORY)->limit = 10;
  request *holds = admitted(before, old, "/a", 7);
  adm_carry_first(now, earlier);
  CHECK_EQUAL(weight_in(now, ADM_GROUP_MEMORY), 7);
  CHECK(refused(now, group, "/c", 4));
  request *small = admitted(now, group, "/c", 3);
  ends(holds);
  adm_carry(now, earlier);
  CHECK_EQUAL(weight_in(now, ADM_GROUP_MEMORY), 3);
  ends(small);
  table_end(before), table_end(now);
}

static void *waits(void *world) {
  request *one = world;
  adm_admit(one->table, one->owner, &one->asked, &one->answer);
  return NULL;
}

static void who_waits_hears_of_it(void) {
  adm_table *before = table_of(SMALL), *now = table_of(LARGE), *earlier[] = {before, NULL};
  int old = group_with(before, "g", 1, 4, ADM_FIFO), group = group_with(now, "g", 1, 4, ADM_FIFO);
  adm_group_at(now, group)->timeout_ms = 60000;
  request *holds = admitted(before, old, "/a", 0), *one = asks(now, group, "/a", 0);
  adm_carry_first(now, earlier);
  pthread_t thread;
  pthread_create(&thread, NULL, waits, one);
  adm_seen seen = {0};
  do adm_look(now, first_of(now, group), adm_now_ns(), &seen);
  while (seen.waiting == 0);
  ends(holds);
  adm_carry(now, earlier);
  pthread_join(thread, NULL);
  CHECK_EQUAL(one->answer.outcome, ADM_QUEUED);
  CHECK(one->answer.wait_ns < UINT64_C(10000000000)); /* woken, not at its next look */
  ends(one);
  CHECK(at_rest(now));
  table_end(before), table_end(now);
}

/* Who was given the turn there, and has not run since, has the permit already. */
static void the_turn_of_before_counts(void) {
  adm_table *before = table_of(SMALL), *now = table_of(LARGE), *earlier[] = {before, NULL};
  int old = group_with(before, "g", 1, 4, ADM_FIFO), group = group_with(now, "g", 1, 0, ADM_FIFO);
  request *holds = admitted(before, old, "/a", 0), *next = asks(before, old, "/a", 0);
  adm_entry *entry = entry_at(before, first_of(before, old));
  uint64_t token = token_make(before, next->owner) | 1;
  standing mine = {.since_ns = adm_now_ns(), .at_most = ADM_UNLIMITED, .group = (uint32_t)old};
  uint32_t place = 0;
  CHECK(queue_join(before, entry, token, 4, &mine, &place));
  adm_carry_first(now, earlier);
  ends(holds);
  adm_carry(now, earlier);
  CHECK_EQUAL(weight_in(now, group), 1);
  CHECK(refused(now, group, "/a", 0));
  queue_leave(before, entry, place, token);
  adm_carry(now, earlier);
  ends(admitted(now, group, "/a", 0));
  ends(next);
  table_end(before), table_end(now);
}

static size_t resident(const adm_table *table) {
  static unsigned char page[1 << 16];
  size_t pages = (table->bytes + 4095) / 4096, count = 0;
  if (pages > sizeof page || mincore(table->shared, table->bytes, page) < 0) return 0;
  for (size_t i = 0; i < pages; i++) count += page[i] & 1;
  return count;
}

/* Places of the earlier table that nobody ever used are not read: that would take their memory. */
static void what_was_never_used_stays_so(void) {
  const adm_shape many = {.entries = 4096, .cells = 32, .waiters = 32};
  adm_table *before = table_of(many), *now = table_of(many), *earlier[] = {before, NULL};
  request *holds = admitted(before, group_with(before, "g", 2, 0, ADM_FIFO), "/a", 0), *here[200];
  int group = group_with(now, "g", 2, 0, ADM_FIFO);
  for (int i = 0; i < 200; i++) {
    char label[16];
    snprintf(label, sizeof label, "/%d", i);
    here[i] = admitted(now, group, label, 0);
  }
  size_t pages = resident(before);
  adm_carry_first(now, earlier);
  adm_carry(now, earlier);
  CHECK(pages > 0);
  CHECK_EQUAL(resident(before), pages);
  CHECK_EQUAL(weight_in(now, group), 201);
  for (int i = 0; i < 200; i++) ends(here[i]);
  ends(holds);
  table_end(before), table_end(now);
}

/* What a child wrote by mistake is no permit for ever, and a table with other keys has nothing to say. */
static void nothing_is_carried_without_earlier_tables(void) {
  adm_table *now = table_of(LARGE), *none[] = {NULL};
  int group = group_with(now, "g", 1, 0, ADM_FIFO);
  ends(admitted(now, group, "/a", 0));
  cells_of(entry_at(now, first_of(now, group)))[0] = (uint64_t)CELL_LINGER << TOKEN_STATE_SHIFT | 1;
  CHECK(refused(now, group, "/a", 0));
  CHECK(adm_carry(now, none));
  ends(admitted(now, group, "/a", 0));
  void *memory = mmap(NULL, adm_table_bytes(SMALL), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  adm_table *other = adm_table_make(memory, SMALL, 43), *earlier[] = {other, NULL};
  request *holds = admitted(other, group_with(other, "g", 1, 0, ADM_FIFO), "/a", 0);
  adm_carry_first(now, earlier);
  CHECK_EQUAL(carried_cells(now), 0);
  ends(holds);
  table_end(other), table_end(now);
}

/* A table that was replaced twice: nothing is counted for a second time, and a group that is gone is not counted at all. */
static void over_two_tables(void) {
  const adm_shape larger = {.entries = 256, .cells = 32, .waiters = 32};
  adm_table *first = table_of(SMALL), *second = table_of(LARGE), *third = table_of(larger);
  adm_table *of_second[] = {first, NULL}, *of_third[] = {second, first, NULL};
  request *a = admitted(first, group_with(first, "g", 5, 0, ADM_FIFO), "/a", 0);
  request *gone = admitted(first, group_with(first, "gone", 5, 0, ADM_FIFO), "/a", 0);
  int middle = group_with(second, "g", 5, 0, ADM_FIFO);
  adm_carry_first(second, of_second);
  request *b = admitted(second, middle, "/a", 0);
  CHECK_EQUAL(weight_in(second, middle), 2);
  int last = group_with(third, "g", 5, 0, ADM_FIFO);
  adm_carry_first(third, of_third);
  CHECK_EQUAL(weight_in(third, last), 2);
  CHECK_EQUAL(carried_cells(third), 1);
  ends(a), ends(gone);
  adm_carry(second, of_second);
  adm_carry(third, of_third);
  CHECK_EQUAL(weight_in(third, last), 1);
  ends(b);
  adm_carry(third, of_third);
  CHECK(at_rest(first) && at_rest(second) && at_rest(third));
  table_end(first), table_end(second), table_end(third);
}

static bool goes_on(void *world, uint64_t hold) {
  (void)hold;
  return *(bool *)world;
}

/* A program that goes on is counted in the table after; what is carried is no program, and is not asked for as one. */
static void programs_and_the_carried(void) {
  adm_table *before = table_of(SMALL), *now = table_of(LARGE), *earlier[] = {before, NULL};
  request *holds = asks(before, group_with(before, "g", 1, 0, ADM_FIFO), "/a", 0);
  holds->asked.hold_file = true;
  bool runs = true;
  CHECK_EQUAL(adm_admit(before, holds->owner, &holds->asked, &holds->answer), ADM_ADMITTED);
  adm_sweep(before, holds->owner, goes_on, &runs);
  int group = group_with(now, "g", 1, 0, ADM_FIFO);
  adm_carry_first(now, earlier);
  CHECK_EQUAL(adm_settle(now, NULL, NULL), 0);
  CHECK_EQUAL(weight_in(now, group), 1);
  CHECK(refused(now, group, "/a", 0));
  runs = false;
  CHECK_EQUAL(adm_settle(before, goes_on, &runs), 1);
  adm_carry(now, earlier);
  CHECK_EQUAL(weight_in(now, group), 0);
  free(holds);
  table_end(before), table_end(now);
}

/* An entry without a free cell carries nothing until there is one. */
static void without_a_cell(void) {
  const adm_shape tiny = {.entries = 64, .cells = 2, .waiters = 2};
  adm_table *before = table_of(SMALL), *now = table_of(tiny), *earlier[] = {before, NULL};
  int old = group_with(before, "g", 9, 0, ADM_FIFO), group = group_with(now, "g", 9, 0, ADM_FIFO);
  request *a = admitted(now, group, "/a", 0), *b = admitted(now, group, "/a", 0), *holds = admitted(before, old, "/a", 0);
  CHECK(!adm_carry(now, earlier));
  CHECK_EQUAL(weight_in(now, group), 2);
  ends(b);
  CHECK(adm_carry(now, earlier));
  CHECK_EQUAL(weight_in(now, group), 2);
  ends(a), ends(holds);
  table_end(before), table_end(now);
}

int main(void) {
  a_limit_holds_over_both_tables();
  what_memory_costs_is_carried();
  who_waits_hears_of_it();
  the_turn_of_before_counts();
  what_was_never_used_stays_so();
  nothing_is_carried_without_earlier_tables();
  over_two_tables();
  programs_and_the_carried();
  without_a_cell();
  return checked("test_carry");
}
