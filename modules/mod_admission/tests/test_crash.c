/*
 * test_crash.c: a process dies at every step there is (core/step.h), one after the other, and then everything must be
 * as if it had never been: after one sweep nothing of it is left, and the full limit can be taken again; what the controller had half
 * written, or had not told those who wait, the next one does.
 *
 * Each scenario is run in a fork that ends itself at its n-th step, for n = 1, 2, 3 ... until it lives to its end. At the end no step
 * may be left at which nobody died.
 */
#include "../shared.h"

#include "check.h"
#include "world.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned steps_left; /* 0: live on */

/* What happens once while somebody is at a step. */
static struct { const char *at; void (*what)(void); } meanwhile;

/* All steps, as the Makefile finds them. */
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

/* Has it done by a process that dies at its n-th step; whether that lived to its end. */
static bool done_alive(unsigned step, void (*what)(void *), void *world) {
  pid_t child = fork();
  if (child == 0) {
    steps_left = step;
    what(world);
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
  return WEXITSTATUS(status) == 0;
}

static void *shared_zeros(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) abort();
  return memory;
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
  ask(scene, owner, "/b", 0, &one); /* its file is free, and the host full */
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

/* One asks for this file, with no queue of that kind, and others take all the rest while it looks round. */
static void is_overtaken(scene *scene, adm_owner owner, int without_queue, const char *file) {
  adm_answer first, second;
  adm_group_at(scene->table, without_queue)->queue = 0;
  ask(scene, owner, "/a", 0, &first);
  for (uint32_t i = 0; i < scene->table->shape.entries; i++) entry_at(scene->table, i)->waiters_top = 1; /* nobody goes in at once */
  shared_scene = scene;
  meanwhile.at = "take: looked round";
  meanwhile.what = another_takes_the_rest;
  ask(scene, owner, file, 0, &second);
  adm_release(scene->table, &first, NULL, NULL);
}

static void steps_back(scene *scene, adm_owner owner) { is_overtaken(scene, owner, scene->file, "/a"); }

/* The host looks free, and is full when it has its file's permit. */
static void partly(scene *scene, adm_owner owner) { is_overtaken(scene, owner, scene->host, "/b"); }

/* Sweeps another dead one, which holds two permits and waits for a third. */
static void sweeps(scene *scene, adm_owner owner) {
  (void)owner;
  adm_sweep(scene->table, adm_owner_of(scene->table, 77), NULL, NULL);
}

/* Comes new, and dies before it has done anything, or later. */
static void joins(scene *scene, adm_owner owner) {
  (void)owner;
  in_and_out(scene, adm_owner_join(scene->table, (adm_process){79, 1}));
}

/* Looks after the programs of somebody who is dead, two of which have ended. */
static void settles(scene *scene, adm_owner owner) {
  (void)owner;
  adm_settle(scene->table, NULL, NULL);
}

static bool programs_go_on(void *world, uint64_t byte) {
  (void)world;
  (void)byte;
  return true;
}

static void leaves_two_programs(scene *scene, adm_owner dead) {
  for (int i = 0; i < 2; i++) {
    adm_layer layer = layer_of(scene->table, scene->host, "host");
    adm_answer one;
    adm_admit(scene->table, dead, &(adm_request){.layer = &layer, .layers = 1, .hold_file = true}, &one);
  }
  adm_sweep(scene->table, dead, programs_go_on, NULL);
  CHECK_EQUAL(weight_in(scene->table, scene->host), 2);
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

typedef struct scenario {
  void (*play)(scene *, adm_owner);
  scene *scene;
  adm_owner owner;
} scenario;

static void play(void *world) {
  scenario *it = world;
  it->play(it->scene, it->owner);
}

static void dies_at_every_step(const char *name, void (*what)(scene *, adm_owner)) {
  bool lived = false;
  unsigned step = 0;
  while (!lived) {
    scene scene = scene_new();
    adm_owner dead = adm_owner_join(scene.table, (adm_process){77, 1});
    adm_owner victim = adm_owner_join(scene.table, (adm_process){78, 1});
    if (what == sweeps) dies_with_two_permits_in_a_queue(&scene, dead);
    if (what == settles) leaves_two_programs(&scene, dead);
    lived = done_alive(++step, play, &(scenario){what, &scene, victim});
    adm_sweep(scene.table, victim, NULL, NULL);
    adm_sweep(scene.table, dead, NULL, NULL);
    adm_sweep(scene.table, adm_owner_of(scene.table, 79), NULL, NULL);
    adm_settle(scene.table, NULL, NULL);
    all_is_free(&scene, name, step);
    table_end(scene.table);
  }
  printf("crash: %s: %u steps\n", name, step - 1);
  check_said(step > 2, __FILE__, __LINE__, "%s: there are no steps to die at", name);
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

/* Who has others' permits taken back dies at each step of it: the next one, who finds nothing of theirs any more or the rest, is enough
 * for somebody who waits for them. That one looks round twice a second, for its turn, which one who dies before ringing has given it already;
 * a permit that it finds itself is counted as late, and somebody should have told. */
static void waits_to_be_told(void *world) {
  scenario *it = world;
  adm_answer one;
  bool in = adm_was_admitted(ask(it->scene, it->owner, "/c", 500, &one));
  adm_release(it->scene->table, &one, NULL, NULL);
  _exit(in && it->scene->table->shared->late_wakes == 0 ? 0 : 1);
}

/* Until somebody stands in the queue of an entry; or the one who was to has ended. */
static void wait_for_queue(adm_table *table, adm_entry *entry, pid_t child) {
  while (queue_length(table, entry) == 0 && waitpid(child, NULL, WNOHANG) == 0) sched_yield();
}

static void the_waiting_get_it_when_a_sweeper_dies(void (*what)(scene *, adm_owner)) {
  bool lived = false;
  unsigned step = 0;
  while (!lived) {
    scene scene = scene_new();
    adm_group_at(scene.table, scene.host)->limit = 2;
    adm_owner dead = adm_owner_join(scene.table, (adm_process){77, 1}), waiting = adm_owner_join(scene.table, (adm_process){78, 1});
    if (what == sweeps) {
      adm_answer one;
      for (int i = 0; i < 2; i++) ask(&scene, dead, i ? "/a" : "/b", 0, &one);
    } else {
      leaves_two_programs(&scene, dead);
    }
    pid_t child = fork();
    if (child == 0) waits_to_be_told(&(scenario){NULL, &scene, waiting});
    wait_for_queue(scene.table, entry_at(scene.table, first_of(scene.table, scene.host)), child);
    lived = done_alive(++step, play, &(scenario){what, &scene, ADM_NOBODY});
    what(&scene, ADM_NOBODY);
    int status = -1;
    waitpid(child, &status, 0);
    check_said(status == 0, __FILE__, __LINE__, "who waited did not get a permit of the dead when the sweeper died at step %u (%s)", step,
               grave->where);
    adm_group_at(scene.table, scene.host)->limit = 3;
    all_is_free(&scene, "wait for the dead", step);
    table_end(scene.table);
  }
  check_said(step > 3, __FILE__, __LINE__, "there are no steps to die at");
}

/* ---- what the controller writes ---- */

typedef struct carrying {
  adm_table *now, *earlier[2];
} carrying;

static void carries_over(void *world) {
  carrying *it = world;
  adm_carry(it->now, it->earlier);
}

/* Of three permits in the table before one is given back, and one is taken elsewhere, while nobody looks; somebody waits here for that one. */
static void what_is_carried_is_right_whenever_the_controller_dies(void) {
  bool lived = false;
  unsigned step = 0;
  while (!lived) {
    adm_table *before = table_of(SMALL);
    scene now = {.table = table_of((adm_shape){128, 32, 32})};
    carrying it = {now.table, {before, NULL}};
    int old = group_with(before, "g", 3, 0, ADM_FIFO);
    now.file = group_with(now.table, "g", 3, 4, ADM_FIFO);
    now.host = group_with(now.table, "host", 9, 4, ADM_FIFO);
    adm_owner there = adm_owner_join(before, (adm_process){77, 1}), here = adm_owner_join(now.table, (adm_process){78, 1});
    adm_owner waiting = adm_owner_join(now.table, (adm_process){79, 1});
    adm_answer held[4], mine;
    adm_layer c = layer_of(before, old, "/c"), b = layer_of(before, old, "/b"), new_b = layer_of(now.table, now.file, "/b");
    for (int i = 0; i < 3; i++) adm_admit(before, there, &(adm_request){.layer = &c, .layers = 1}, &held[i]);
    adm_carry_first(now.table, it.earlier);
    pid_t child = fork();
    if (child == 0) waits_to_be_told(&(scenario){NULL, &now, waiting});
    wait_for_queue(now.table, entry_at(now.table, first_of(now.table, now.file)), child);
    adm_admit(now.table, here, &(adm_request){.layer = &new_b, .layers = 1}, &mine);
    adm_release(before, &held[0], NULL, NULL);
    adm_admit(before, there, &(adm_request){.layer = &b, .layers = 1}, &held[3]);
    lived = done_alive(++step, carries_over, &it);
    adm_carry(now.table, it.earlier);
    int status = -1;
    waitpid(child, &status, 0);
    check_said(status == 0, __FILE__, __LINE__, "who waited was not told after a death at step %u (%s)", step, grave->where);
    check_said(weight_in(now.table, now.file) == 4, __FILE__, __LINE__, "carried: %u, and 1 of its own, after a death at step %u (%s)",
               (unsigned)weight_in(now.table, now.file) - 1, step, grave->where);
    for (int i = 1; i < 4; i++) adm_release(before, &held[i], NULL, NULL);
    adm_release(now.table, &mine, NULL, NULL);
    adm_carry(now.table, it.earlier);
    check_said(at_rest(now.table), __FILE__, __LINE__, "something is carried for ever after a death at step %u (%s)", step, grave->where);
    table_end(now.table);
    table_end(before);
  }
  check_said(step > 3, __FILE__, __LINE__, "there are no steps to die at");
}

static const adm_settings tight = {.limit = 1, .queue = 7, .timeout_ms = 5, .status = 429, .mode = ADM_OBSERVE, .cost = 9,
                                   .adaptive = true, .min = 1, .max = 3, .learn = true};

static void puts_in_force(void *world) { adm_group_apply(world, &tight); }

static void half_changed_settings_are_put_right(void) {
  bool lived = false;
  for (unsigned step = 1; !lived; step++) {
    scene scene = scene_new();
    adm_group *group = adm_group_at(scene.table, scene.host), whole = {0};
    adm_group_apply(&whole, &tight);
    lived = done_alive(step, puts_in_force, group);
    CHECK_EQUAL(group->mode, lived ? ADM_OBSERVE : ADM_ENFORCE); /* the mode comes last */
    adm_group_apply(group, &tight);
    const bool same = group->limit == whole.limit && group->settings_limit == whole.settings_limit && group->queue == whole.queue &&
                      group->cost == whole.cost && group->settings_cost == whole.settings_cost && group->adaptive == whole.adaptive &&
                      group->learn == whole.learn && group->mode == whole.mode;
    check_said(same, __FILE__, __LINE__, "other settings after a death at step %u (%s)", step, grave->where);
    table_end(scene.table);
  }
}

static void says(void *world) { adm_news_write(world, &(adm_news){.pid = 2, .generation = 2, .error = "line 2: x"}); }

static void half_a_sentence_is_never_read(void) {
  bool lived = false;
  for (unsigned step = 1; !lived; step++) {
    adm_news_board *board = shared_zeros(sizeof *board);
    adm_news seen;
    adm_news_write(board, &(adm_news){.pid = 1, .generation = 1});
    lived = done_alive(step, says, board);
    bool read = adm_news_read(board, &seen);
    check_said(read == lived && seen.generation == (lived ? 2 : 0), __FILE__, __LINE__, "news %d of generation %d after a death at step %u (%s)",
               read, (int)seen.generation, step, grave->where);
    adm_news_write(board, &(adm_news){.pid = 3, .generation = 3});
    CHECK(adm_news_read(board, &seen) && seen.generation == 3 && !seen.error[0]);
    munmap(board, sizeof *board);
  }
}

static void keeps_control(void *world) { adm_control_keep(world, "a limit=3\n", 10); }

static void the_text_in_force_is_the_old_or_the_new(void) {
  bool lived = false;
  for (unsigned step = 1; !lived; step++) {
    adm_control_kept *kept = shared_zeros(sizeof *kept);
    adm_rule rule = {.name = "a", .subject = ADM_FOR_GROUP, .settings = adm_settings_default(ADM_FOR_GROUP)};
    adm_settings settings;
    adm_control_keep(kept, "a limit=2\n", 10);
    lived = done_alive(step, keeps_control, kept);
    adm_control_recall(kept, &rule, 1, &SMALL, &settings);
    check_said(settings.limit == (lived ? 3 : 2), __FILE__, __LINE__, "limit=%u after a death at step %u (%s)", settings.limit, step, grave->where);
    munmap(kept, sizeof *kept);
  }
}

static void keeps_text(void *world) { shared_text_keep(world, "return 'the second'", 19); }

static void the_policy_in_force_is_the_old_or_the_new(void) {
  static char text[SHARED_TEXT_BYTES];
  bool lived = false;
  for (unsigned step = 1; !lived; step++) {
    shared_text *kept = shared_text_make();
    size_t length = 0;
    for (unsigned n = 0; n < SHARED_TEXT_PLACES; n++) shared_text_keep(kept, n % 2 ? "return 0" : "return 2", 8);
    shared_text_keep(kept, "return 1", 8); /* every place has been written in */
    lived = done_alive(step, keeps_text, kept);
    const char *expected = lived ? "return 'the second'" : "return 1";
    bool right = shared_text_recall(kept, text, &length) && length == strlen(expected) && memcmp(text, expected, length) == 0;
    check_said(right, __FILE__, __LINE__, "another text after a death at step %u (%s)", step, grave->where);
    for (unsigned n = 0; n < SHARED_TEXT_PLACES; n++) shared_text_keep(kept, n % 2 ? "b" : "a", 1);
    CHECK(shared_text_recall(kept, text, &length) && length == 1);
    shared_text_drop(kept);
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

/* As soon as a permit is back its entry may be another name's: how long the first one was held is nothing of that one's. */
static struct { adm_table *table; adm_layer layer; adm_answer answer; } comes_next;

static void the_entry_is_anothers(void) {
  adm_owner other = adm_owner_join(comes_next.table, somebody());
  CHECK_EQUAL(adm_admit(comes_next.table, other, &(adm_request){.layer = &comes_next.layer, .layers = 1}, &comes_next.answer), ADM_ADMITTED);
}

static void what_is_learned_is_of_the_one_that_was_held(void) {
  adm_table *table = table_of((adm_shape){16, 8, 8});
  int group = group_with(table, "g", 3, 0, ADM_FIFO);
  adm_owner me = adm_owner_join(table, somebody());
  adm_answer mine, one;
  for (uint32_t i = 0; i < table->shape.entries; i++) { /* the last one is held, and older than the others */
    char label[] = {'/', 'f', (char)('A' + i), 0};
    adm_layer layer = layer_of(table, group, label);
    bool last = i + 1 == table->shape.entries;
    CHECK_EQUAL(adm_admit(table, me, &(adm_request){.layer = &layer, .layers = 1}, last ? &mine : &one), ADM_ADMITTED);
    if (!last) adm_release(table, &one, NULL, NULL);
  }
  adm_entry *entry = mine.permit[0].entry;
  entry->used_ns -= 2000000000u;
  mine.since_ns -= 2000000000u;
  comes_next.table = table;
  comes_next.layer = layer_of(table, group, "/new");
  meanwhile.at = "release: returned";
  meanwhile.what = the_entry_is_anothers;
  adm_release(table, &mine, NULL, NULL);
  CHECK(meanwhile.at == NULL);
  CHECK(comes_next.answer.permits == 1 && comes_next.answer.permit[0].entry == entry);
  CHECK_EQUAL(entry->service_ns, 0);
  CHECK(adm_group_at(table, group)->service.sum_us >= 2000000);
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
  dies_at_every_step("partly", partly);
  dies_at_every_step("sweeps", sweeps);
  dies_at_every_step("joins", joins);
  dies_at_every_step("settles", settles);
  the_waiting_get_it_when_a_sweeper_dies(sweeps);
  the_waiting_get_it_when_a_sweeper_dies(settles);
  what_is_carried_is_right_whenever_the_controller_dies();
  half_changed_settings_are_put_right();
  half_a_sentence_is_never_read();
  the_text_in_force_is_the_old_or_the_new();
  the_policy_in_force_is_the_old_or_the_new();
  the_waiting_get_it_when_others_die(false);
  the_waiting_get_it_when_others_die(true);
  nothing_is_left_of_one_who_is_woken_while_swept();
  the_limit_holds_where_costs_are_mixed();
  two_that_wake_give_one_turn();
  what_is_learned_is_of_the_one_that_was_held();
  somebody_died_at_each_step();
  return checked("crash");
}
