/*
 * test_storm.c: processes that take permits, wait for them and are killed at any moment, as the children of a server are.
 * The limit must hold among those that live, all that the dead had must come back, and nobody may be left waiting.
 *
 *   test_storm [KILLS] [HAND-OFFS]   prints how long a permit takes from one process to the next
 */
#include "check.h"
#include "world.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CREW 8
#define LIMIT 3

/* The oracle, in shared memory. `inside` has a bit for each of the crew that is between permit and release: one word, so
 * that all are seen at the same moment. */
typedef struct oracle {
  _Atomic uint32_t inside;
  _Atomic long turns[CREW], too_many, refused;
  _Atomic uint64_t released_ns;
  uint64_t took_ns[1 << 16];
} oracle;

static void works(adm_table *table, oracle *oracle, int me, adm_layer layer) {
  adm_owner owner = adm_owner_join(table, (adm_process){(uint32_t)getpid(), 1});
  adm_request request = {.layer = &layer, .layers = 1, .may_wait = true};
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) {
    adm_answer answer;
    if (!adm_was_admitted(adm_admit(table, owner, &request, &answer))) {
      oracle->refused++;
      continue;
    }
    uint32_t others = atomic_fetch_or(&oracle->inside, 1u << me);
    oracle->too_many += __builtin_popcount(others) >= LIMIT;
    sched_yield();
    atomic_fetch_and(&oracle->inside, ~(1u << me));
    oracle->turns[me]++;
    adm_release(table, &answer, NULL, NULL);
  }
}

static pid_t hire(adm_table *table, oracle *oracle, int me, adm_layer layer) {
  pid_t child = fork();
  if (child < 0) abort();
  if (child == 0) works(table, oracle, me, layer);
  return child;
}

static void killed_at_any_moment(long kills) {
  adm_table *table = table_of(SMALL);
  oracle *oracle = mmap(NULL, sizeof *oracle, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int group = group_with(table, "g", LIMIT, CREW, ADM_FIFO);
  adm_layer layer = layer_of(table, group, "/a");
  pid_t crew[CREW];
  for (int i = 0; i < CREW; i++) crew[i] = hire(table, oracle, i, layer);
  uint32_t dice = 7;
  for (long k = 0; k < kills; k++) {
    dice = dice * 1664525u + 1013904223u;
    int victim = (int)(dice >> 16) % CREW;
    usleep(dice >> 8 & 0x7ff);
    kill(crew[victim], SIGKILL);
    waitpid(crew[victim], NULL, 0);
    atomic_fetch_and(&oracle->inside, ~(1u << victim)); /* the dead are not inside; before the sweep, which lets the next one in */
    adm_sweep(table, adm_owner_of(table, (uint32_t)crew[victim]), NULL, NULL);
    crew[victim] = hire(table, oracle, victim, layer);
  }
  long before[CREW], idle = 0;
  for (int i = 0; i < CREW; i++) before[i] = oracle->turns[i];
  for (int round = 0; round < 5000; round++) { /* each has a turn yet: nobody was left waiting */
    idle = 0;
    for (int i = 0; i < CREW; i++) idle += oracle->turns[i] == before[i];
    if (idle == 0) break;
    usleep(1000);
  }
  CHECK_EQUAL(idle, 0);
  for (int i = 0; i < CREW; i++) {
    kill(crew[i], SIGKILL);
    waitpid(crew[i], NULL, 0);
    atomic_fetch_and(&oracle->inside, ~(1u << i)); /* the others go on until it is their turn */
    adm_sweep(table, adm_owner_of(table, (uint32_t)crew[i]), NULL, NULL);
  }
  CHECK_EQUAL(oracle->too_many, 0);
  CHECK_EQUAL(oracle->refused, 0);
  CHECK(at_rest(table));
  printf("storm: %ld kills, limit %d held, %llu permits of the dead taken back\n", kills, LIMIT,
         (unsigned long long)adm_group_at(table, group)->counts.reaped);
  munmap(oracle, sizeof *oracle);
  table_end(table);
}

static int by_size(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* Two processes pass one permit to and fro; from giving it back to having it. */
static void passes_it_on(long hand_offs) {
  adm_table *table = table_of(SMALL);
  oracle *oracle = mmap(NULL, sizeof *oracle, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int group = group_with(table, "g", 1, 2, ADM_FIFO);
  adm_layer layer = layer_of(table, group, "/a");
  long room = sizeof oracle->took_ns / sizeof oracle->took_ns[0];
  if (hand_offs > room) hand_offs = room;
  pid_t other = fork();
  adm_owner owner = adm_owner_join(table, (adm_process){(uint32_t)getpid(), 1});
  adm_request request = {.layer = &layer, .layers = 1, .may_wait = true};
  long seen = 0;
  while (seen < hand_offs && (other != 0 || getppid() != 1)) {
    adm_answer answer;
    adm_outcome outcome = adm_admit(table, owner, &request, &answer);
    uint64_t now = adm_now_ns();
    if (other != 0 && outcome == ADM_QUEUED) oracle->took_ns[seen++] = now - oracle->released_ns;
    adm_seen at;
    /* Holds it until the other waits, so that each release is a hand-off. */
    for (uint32_t i = 0, waits = 0; waits == 0 && (other != 0 || getppid() != 1); i = (i + 1) % SMALL.entries)
      if (adm_look(table, i, adm_now_ns(), &at)) waits = at.waiting;
    oracle->released_ns = adm_now_ns();
    adm_release(table, &answer, NULL, NULL);
  }
  kill(other, SIGKILL);
  waitpid(other, NULL, 0);
  qsort(oracle->took_ns, (size_t)seen, sizeof oracle->took_ns[0], by_size);
  printf("storm: hand-off between two processes: median %.1f us, p99 %.1f us (%ld)\n", (double)oracle->took_ns[seen / 2] / 1000,
         (double)oracle->took_ns[seen * 99 / 100] / 1000, seen);
  CHECK_EQUAL(adm_table_troubles(table).late_wakes, 0);
  munmap(oracle, sizeof *oracle);
  table_end(table);
}

int main(int argc, char **argv) {
  killed_at_any_moment(argc > 1 ? atol(argv[1]) : 300);
  passes_it_on(argc > 2 ? atol(argv[2]) : 5000);
  return checked("storm");
}
