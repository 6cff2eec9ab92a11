/*
 * test_crash.c: a process dies at every step there is (STEP in core/), one after the other, and then everything must be
 * as if it had never been: after one sweep nothing of it is left, and the full limit can be taken again.
 *
 * Each scenario is run in a fork that ends itself at its n-th step, for n = 1, 2, 3 ... until it lives to its end. At the end no step
 * may be left at which nobody died.
 */
#include "check.h"
#include "world.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned steps_left; /* 0: live on */

/* What happens once while somebody is at a step. */
static struct { const char *at; void (*what)(void); } meanwhile;

/* All steps of core/, as the Makefile finds them. */
static const char *const steps[] = {ADM_STEP_NAMES};
#define STEPS (sizeof steps / sizeof *steps)

/* Where the last one died, and at which steps anybody did, in memory that the forks share. */
static struct { char where[64]; bool died_at[STEPS]; } *grave;

void adm_step(const char *where) {
  if (meanwhile.at && strcmp(where, meanwhile.at) == 0) {
    meanwhile.at = NULL;
    meanwhile.what();
  }
  if (steps_left == 0 || --steps_left > 0) return;
  strncpy(grave->where, where, sizeof grave->where - 1);
  for (size_t i = 0; i < STEPS; i++) grave->died_at[i] |= strcmp(where, steps[i]) == 0;
  _exit(99);
}

typedef struct scene {
  adm_table *table;
  int file, host;
  adm_answer parents; /* what the parent of the test holds */
} scene;

static adm_outcome ask(const scene *scene, adm_owner owner, const char *label, uint32_t slice_ms, adm_answer *answer) {
  adm_layer layers[] = {layer_of(scene->table, scene->file, label), layer_of(scene->table, scene->host, "host")};
  adm_request request = {.layer = layers, .layers = 2, .may_wait = true, .slice_ms = slice_ms};
  return adm_admit(scene->table, owner, &request, answer);
}

static void in_and_out(scene *scene, adm_owner owner) {
  adm_answer first, second;
  ask(scene, owner, "/a", 0, &first);
  ask(scene, owner, "/b", 0, &second);
  adm_release(scene->table, &first, NULL, NULL);
  ask(scene, owner, "/a", 0, &first);
  adm_release(scene->table, &second, NULL, NULL);
  adm_release(scene->table, &first, NULL, NULL);
}

static void turned_away(scene *scene, adm_owner owner) {
  adm_answer held[4], one;
  for (int i = 0; i < 3; i++) ask(scene, owner, "/a", 0, &held[i]);
  adm_group_at(scene->table, scene->host)->queue = 0;
  ask(scene, owner, "/b", 0, &one); /* has its file's permit already when the host is full */
  for (int i = 0; i < 3; i++) adm_release(scene->table, &held[i], NULL, NULL);
}

/* Waits for what nobody gives back, until its time is over. */
static void waits_in_vain(scene *scene, adm_owner owner) {
  adm_answer held[4], one;
  adm_group_at(scene->table, scene->host)->timeout_ms = 3; /* /b is free, the host is not */
  for (int i = 0; i < 3; i++) ask(scene, owner, "/a", 0, &held[i]);
  ask(scene, owner, "/b", 1, &one);
  for (int i = 0; i < 3; i++) adm_release(scene->table, &held[i], NULL, NULL);
}

/* Drives an idle entry out: the table is full and all are two seconds old. */
static void takes_an_idle_place(scene *scene, adm_owner owner) {
  adm_answer one;
  for (uint32_t i = 0; i < scene->table->shape.entries; i++) {
    char label[] = {'/', 'f', (char)('A' + i), 0};
    ask(scene, owner, label, 0, &one);
    adm_release(scene->table, &one, NULL, NULL);
  }
  for (uint32_t i = 0; i < scene->table->shape.entries; i++) entry_at(scene->table, i)->used_ns -= 2000000000u;
  ask(scene, owner, "/new", 0, &one);
  adm_release(scene->table, &one, NULL, NULL);
}

/* Between its two looks another takes all the rest: it has to take its claim back. */
static scene *shared_scene;

static void another_takes_the_rest(void) {
  adm_answer one;
  for (int i = 0; i < 2; i++) ask(shared_scene, adm_owner_of(shared_scene->table, 77), "/a", 0, &one);
}

static void steps_back(scene *scene, adm_owner owner) {
  adm_answer first, second;
  adm_group_at(scene->table, scene->file)->queue = 0;
  ask(scene, owner, "/a", 0, &first);
  for (uint32_t i = 0; i < scene->table->shape.entries; i++) entry_at(scene->table, i)->waiters_top = 1; /* nobody goes in at once */
  shared_scene = scene;
  meanwhile.at = "take: looked round";
  meanwhile.what = another_takes_the_rest;
  ask(scene, owner, "/a", 0, &second);
  adm_release(scene->table, &first, NULL, NULL);
}

/* Sweeps another dead one, which holds two permits and waits for a third. */
static void sweeps(scene *scene, adm_owner owner) {
  (void)owner;
  adm_sweep(scene->table, adm_owner_of(scene->table, 77), NULL, NULL);
}

static scene scene_new(void) {
  scene scene = {.table = table_of((adm_shape){16, 8, 8})};
  scene.file = group_with(scene.table, "file", 3, 4, ADM_FIFO);
  scene.host = group_with(scene.table, "host", 3, 4, ADM_FIFO);
  return scene;
}

static void all_is_free(const scene *scene, const char *name, unsigned step) {
  check_said(at_rest(scene->table), __FILE__, __LINE__, "%s: something is left after a death at step %u (%s)", name, step, grave->where);
  check_said(scene->table->shared->inserting == 0, __FILE__, __LINE__, "%s: the right to insert is gone after step %u (%s)", name, step, grave->where);
  adm_group_at(scene->table, scene->file)->queue = 0;
  for (uint32_t i = 0; i < scene->table->shape.entries; i++) entry_at(scene->table, i)->used_ns -= 2000000000u;
  adm_owner me = adm_owner_join(scene->table, (adm_process){1, 1});
  adm_answer held[4];
  for (int i = 0; i < 4; i++) {
    adm_outcome outcome = ask(scene, me, "/new", 0, &held[i]);
    check_said(outcome == (i < 3 ? ADM_ADMITTED : ADM_REJECTED), __FILE__, __LINE__, "%s: permit %d is %s after a death at step %u (%s)",
               name, i, adm_outcome_name(outcome), step, grave->where);
  }
}

static void dies_with_two_permits_in_a_queue(scene *scene, adm_owner dead) {
  adm_answer one;
  for (int i = 0; i < 2; i++) ask(scene, dead, i ? "/a" : "/b", 0, &one);
  standing last = {.since_ns = adm_now_ns(), .at_most = ADM_UNLIMITED, .group = (uint32_t)scene->host};
  uint32_t place;
  CHECK(queue_join(scene->table, one.permit[1].entry, token_make(scene->table, dead) | 1, 4, &last, &place));
}

static void dies_at_every_step(const char *name, void (*scenario)(scene *, adm_owner)) {
  for (unsigned step = 1;; step++) {
    scene scene = scene_new();
    adm_owner dead = adm_owner_join(scene.table, (adm_process){77, 1});
    adm_owner victim = adm_owner_join(scene.table, (adm_process){78, 1});
    if (scenario == sweeps)
      dies_with_two_permits_in_a_queue(&scene, dead);
    pid_t child = fork();
    if (child == 0) {
      steps_left = step;
      scenario(&scene, victim);
      _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status));
    adm_sweep(scene.table, victim, NULL, NULL);
    adm_sweep(scene.table, dead, NULL, NULL);
    all_is_free(&scene, name, step);
    table_end(scene.table);
    if (WEXITSTATUS(status) == 0) {
      printf("crash: %s: %u steps\n", name, step - 1);
      check_said(step > 3, __FILE__, __LINE__, "%s: there are no steps to die at", name);
      return;
    }
  }
}

/* One process gives its permit back and dies at each step of it; another waits for that permit and must get it soon,
 * and a third, which is woken and dies at each step, must not keep a fourth from it. */
static void the_waiting_get_it_when_others_die(bool the_woken_dies) {
  for (unsigned step = 1;; step++) {
    scene scene = scene_new();
    adm_group_at(scene.table, scene.host)->limit = 1;
    adm_owner owner[3];
    for (uint32_t i = 0; i < 3; i++) owner[i] = adm_owner_join(scene.table, (adm_process){70 + i, 1});
    pid_t child[3];
    uint32_t expected = 0; /* how many wait */
    int go[2], held[2];
    if (pipe(go) || pipe(held)) abort();
    for (int i = 0; i < 3; i++) {
      child[i] = fork();
      if (child[i] == 0) {
        adm_answer one;
        char byte;
        if (i == 0) { /* holds it until told */
          ask(&scene, owner[0], "/a", 20, &one);
          if (write(held[1], "x", 1) != 1 || read(go[0], &byte, 1) != 1) _exit(1);
          if (!the_woken_dies) steps_left = step;
          adm_release(scene.table, &one, NULL, NULL);
          _exit(0);
        }
        if (i == 1 && the_woken_dies) steps_left = step;
        bool in = adm_was_admitted(ask(&scene, owner[i], "/a", 20, &one));
        adm_release(scene.table, &one, NULL, NULL);
        _exit(in ? 0 : 1);
      }
      char byte;
      if (i == 0 && read(held[0], &byte, 1) != 1) abort();
      /* The next comes when this one waits, or has died on its way there. */
      expected += i > 0;
      while (i > 0) {
        if (waitpid(child[i], NULL, WNOHANG) != 0) {
          expected--;
          break;
        }
        adm_seen seen;
        uint32_t waiting = 0;
        for (uint32_t e = 0; e < scene.table->shape.entries; e++)
          if (adm_look(scene.table, e, adm_now_ns(), &seen)) waiting += seen.waiting;
        if (waiting >= expected) break;
        usleep(200);
      }
    }
    if (write(go[1], "x", 1) != 1) abort();
    int status[3] = {0};
    int dying = the_woken_dies ? 1 : 0;
    for (int i = 0; i < 3; i++) {
      int order = i == 0 ? dying : i <= dying ? i - 1 : i;
      if (waitpid(child[order], &status[order], 0) < 0) status[order] = -1; /* seen above already */
      if (i == 0) adm_sweep(scene.table, owner[dying], NULL, NULL); /* as the parent of the server does */
    }
    for (int i = 0; i < 3; i++)
      if (i != dying)
        check_said(status[i] == 0, __FILE__, __LINE__, "process %d did not get its permit when %s died at step %u (%s)", i,
                   the_woken_dies ? "the woken" : "the releaser", step, grave->where);
    for (int i = 0; i < 3; i++) adm_sweep(scene.table, owner[i], NULL, NULL);
    adm_group_at(scene.table, scene.host)->limit = 3;
    all_is_free(&scene, "wait", step);
    table_end(scene.table);
    close(go[0]); close(go[1]); close(held[0]); close(held[1]);
    if (step > 60 || (status[dying] >= 0 && WIFEXITED(status[dying]) && WEXITSTATUS(status[dying]) == 0)) {
      printf("crash: %s: %u steps\n", the_woken_dies ? "the woken dies" : "the releaser dies", step - 1);
      check_said(step > 1 && step < 60, __FILE__, __LINE__, "the steps never ended");
      return;
    }
  }
}

/* Costs are mixed, and there are more units than cells: 10 of 16 are held, and 6 are taken between the two looks of one who wants 1. */
static struct { adm_table *table; int group; } mixed;

static adm_outcome take_units(uint32_t cost) {
  adm_layer layer = layer_of(mixed.table, mixed.group, "/a");
  adm_answer answer;
  layer.cost = cost;
  return adm_admit(mixed.table, adm_owner_of(mixed.table, 77), &(adm_request){.layer = &layer, .layers = 1}, &answer);
}

static void take_six(void) { CHECK_EQUAL(take_units(6), ADM_ADMITTED); }

static void the_limit_holds_where_costs_are_mixed(void) {
  mixed.table = table_of((adm_shape){16, 8, 8});
  mixed.group = group_with(mixed.table, "mixed", 16, 0, ADM_FIFO);
  adm_owner_join(mixed.table, (adm_process){77, 1});
  CHECK_EQUAL(take_units(10), ADM_ADMITTED);
  for (uint32_t i = 0; i < mixed.table->shape.entries; i++) entry_at(mixed.table, i)->waiters_top = 1; /* nobody goes in at once */
  meanwhile.at = "take: looked round";
  meanwhile.what = take_six;
  CHECK_EQUAL(take_units(1), ADM_REJECTED);
  CHECK_EQUAL(weight_in(mixed.table, mixed.group), 16);
  table_end(mixed.table);
}

/* A waiter that is killed, and gets its turn while its place is being taken back: neither may be kept for it. */
static scene woken_dead;

static void parents_permit_comes_back(void) { adm_release(woken_dead.table, &woken_dead.parents, NULL, NULL); }

static void nothing_is_left_of_one_who_is_woken_while_swept(void) {
  woken_dead = scene_new();
  adm_group_at(woken_dead.table, woken_dead.host)->limit = 1;
  adm_owner parent = adm_owner_join(woken_dead.table, (adm_process){77, 1}), dead = adm_owner_join(woken_dead.table, (adm_process){78, 1});
  CHECK_EQUAL(ask(&woken_dead, parent, "/a", 0, &woken_dead.parents), ADM_ADMITTED);
  pid_t child = fork();
  if (child == 0) {
    adm_answer never;
    ask(&woken_dead, dead, "/a", 60000, &never);
    _exit(0);
  }
  adm_entry *host = woken_dead.parents.permit[1].entry;
  while (queue_length(woken_dead.table, host) == 0) sched_yield();
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  meanwhile.at = "sweep: found waiting";
  meanwhile.what = parents_permit_comes_back;
  adm_sweep(woken_dead.table, dead, NULL, NULL);
  CHECK(meanwhile.at == NULL);
  adm_group_at(woken_dead.table, woken_dead.host)->limit = 3;
  all_is_free(&woken_dead, "woken while swept", 0);
  table_end(woken_dead.table);
}

/* Two wake at the same time, and there is room for one: only one gets the turn, or the second might go in before the first. */
static struct { adm_table *table; adm_entry *entry; } two_wake;

static void another_wakes(void) { queue_wake(two_wake.table, two_wake.entry, adm_now_ns()); }

static void two_that_wake_give_one_turn(void) {
  adm_table *table = table_of(SMALL);
  int group = group_with(table, "g", 1, 8, ADM_LIFO);
  adm_layer layer = layer_of(table, group, "/a");
  adm_owner me = adm_owner_join(table, somebody());
  adm_answer mine;
  adm_admit(table, me, &(adm_request){.layer = &layer, .layers = 1}, &mine);
  two_wake.table = table;
  two_wake.entry = mine.permit[0].entry;
  for (uint32_t i = 0; i < 3; i++) {
    standing here = {.since_ns = adm_now_ns(), .at_most = ADM_UNLIMITED, .group = (uint32_t)group};
    uint32_t place;
    CHECK(queue_join(table, two_wake.entry, token_make(table, me) | 1, 8, &here, &place));
  }
  meanwhile.at = "wake: looked";
  meanwhile.what = another_wakes;
  adm_release(table, &mine, NULL, NULL);
  CHECK(meanwhile.at == NULL);
  unsigned woken = 0;
  for (uint32_t i = 0; i < 3; i++) woken += token_state(waiting_of(table, two_wake.entry)[i]) == WAITER_WOKEN;
  CHECK_EQUAL(woken, 1);
  table_end(table);
}

static void somebody_died_at_each_step(void) {
  CHECK(STEPS > 10);
  for (size_t i = 0; i < STEPS; i++) check_said(grave->died_at[i], __FILE__, __LINE__, "nobody died at the step %s", steps[i]);
}

int main(void) {
  grave = mmap(NULL, sizeof *grave, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  dies_at_every_step("in and out", in_and_out);
  dies_at_every_step("turned away", turned_away);
  dies_at_every_step("waits in vain", waits_in_vain);
  dies_at_every_step("takes an idle place", takes_an_idle_place);
  dies_at_every_step("steps back", steps_back);
  dies_at_every_step("sweeps", sweeps);
  the_waiting_get_it_when_others_die(false);
  the_waiting_get_it_when_others_die(true);
  nothing_is_left_of_one_who_is_woken_while_swept();
  the_limit_holds_where_costs_are_mixed();
  two_that_wake_give_one_turn();
  somebody_died_at_each_step();
  return checked("crash");
}
