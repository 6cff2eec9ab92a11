/*
 * test_damage.c: the controller's rounds over a table that a child has damaged: any word of it, many times. Decisions may
 * be wrong then; the process must live, since it is another user's word that it would die or write by.
 */
#include "../rounds.h"

#include "../core/control.h"
#include "../core/table.h"
#include "check.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static adm_table *table, *earlier[2];
static size_t bytes, earlier_bytes;
static adm_control_kept *kept;
static char place[4200];

static void log_line(void *world, rounds_level level, const char *text) {
  (void)world;
  (void)level;
  (void)text;
}
static bool dead(void *world, adm_process process) {
  (void)world;
  return process.pid % 3 == 0;
}
static bool lingers(void *world, uint64_t byte) {
  (void)world;
  return byte % 2;
}

static adm_rule rules[] = {{"memory", ADM_FOR_MEMORY, {0}}, {"queue-workers", ADM_FOR_WAITING, {0}},
                           {"first", ADM_FOR_GROUP, {0}}, {"second", ADM_FOR_GROUP, {0}}};
static int groups[4] = {ADM_GROUP_MEMORY, ADM_GROUP_WAITING};

/* Memory that nothing may be touched before and behind of. */
static void *guarded(size_t size) {
  size_t page = 4096, whole = (size + page - 1) / page * page;
  char *memory = mmap(NULL, whole + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mprotect(memory + page, whole, PROT_READ | PROT_WRITE) < 0) return NULL;
  return memory + page + (whole - size); /* ends where it must not be passed; sizes are multiples of what is in it */
}

static void fill_table(void) {
  adm_shape shape = {64, 32, 16};
  bytes = adm_table_bytes(shape);
  table = adm_table_make(guarded(bytes), shape, 7);
  kept = guarded(sizeof *kept);
  for (int i = 0; i < 4; i++) {
    rules[i].settings = adm_settings_default(rules[i].subject);
    rules[i].settings.limit = 8;
  }
  rules[2].settings.adaptive = 1, rules[2].settings.min = 1, rules[2].settings.max = 16;
  rules[3].settings.learn = 1;
  for (int i = 2; i < 4; i++) groups[i] = adm_group_add(table, rules[i].name);
  for (int i = 0; i < 4; i++) adm_group_apply(adm_group_at(table, groups[i]), &rules[i].settings);
  for (uint32_t n = 0; n < 40; n++) {
    static adm_answer answers[40];
    adm_owner owner = adm_owner_join(table, (adm_process){4000000 + n, n + 1});
    adm_layer layers[2] = {{groups[2 + n % 2], n % 20, "/srv/www/a.php", ADM_UNLIMITED, 1}, {ADM_GROUP_MEMORY, 0, "", ADM_UNLIMITED, 1}};
    adm_admit(table, owner, &(adm_request){.layer = layers, .layers = 2, .hold_file = n % 4 == 0}, &answers[n]);
  }
}

/* One that the table replaced, in which all of the first group's files are in work. */
static void fill_earlier(void) {
  adm_shape shape = {32, 16, 16};
  earlier_bytes = adm_table_bytes(shape);
  earlier[0] = adm_table_make(guarded(earlier_bytes), shape, 7);
  int group = adm_group_add(earlier[0], rules[2].name);
  adm_group_apply(adm_group_at(earlier[0], group), &rules[2].settings);
  for (uint32_t n = 0; n < 20; n++) {
    static adm_answer answers[20];
    adm_owner owner = adm_owner_join(earlier[0], (adm_process){4000100 + n, n + 1});
    adm_layer layer = {group, n, "/srv/www/a.php", ADM_UNLIMITED, 1};
    adm_admit(earlier[0], owner, &(adm_request){.layer = &layer, .layers = 1}, &answers[n]);
  }
  adm_carry_first(table, earlier);
  CHECK_EQUAL(adm_table_in_use(earlier[0]), true);
}

static uint64_t state;
static uint64_t chance(void) {
  state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
  return state * UINT64_C(2685821657736338717);
}

/* Some words become others; rarely all of a stretch. */
static void damage(adm_table *which, size_t size) {
  uint64_t *word = (uint64_t *)(void *)which->shared;
  size_t words = size / 8;
  for (uint64_t n = chance() % 64; n > 0; n--) {
    size_t at = chance() % words, length = chance() % 8 ? 1 : chance() % 64;
    for (size_t i = 0; i < length && at + i < words; i++) word[at + i] = chance() % 2 ? chance() : chance() >> (chance() % 64);
  }
}

/* What the control file said last is shared memory, too. */
static void damage_kept(void) {
  static const char *const lines[] = {"first limit=2\n", "* queue=0\n", "memory limit=", "\n", "second", " mode=off\n"};
  kept->now = (uint32_t)(chance() >> (chance() % 64));
  for (int slot = 0; slot < 2; slot++) {
    size_t at = 0;
    while (at + 64 < ADM_CONTROL_BYTES && chance() % 1024) {
      if (chance() % 16 == 0) kept->text[slot][at++] = (char)chance();
      const char *line = lines[chance() % (sizeof lines / sizeof *lines)];
      at = (size_t)(stpcpy(&kept->text[slot][at], line) - kept->text[slot]);
    }
    kept->length[slot] = (uint32_t)(chance() % 2 ? at : chance() >> (chance() % 64));
  }
}

/* A copy of this process does some rounds over its own copy of the table; how it ended. */
static int live_with(uint64_t seed) {
  pid_t child = fork();
  if (child == 0) {
    state = seed * 2 + 1;
    alarm(60);
    damage_kept();
    controller_plan plan = {.table = table, .earlier = earlier, .rules = rules, .groups = groups, .rule_count = 4, .runtime_dir = place, .kept = kept,
                            .root = "/nowhere/", .max_hold_ms = 1, .dead = dead, .lingers = lingers};
    rounds *r = rounds_new(&plan, geteuid(), 1, log_line, NULL);
    for (unsigned turn = 1; turn <= 6; turn++) {
      damage(table, bytes);
      damage(earlier[0], earlier_bytes);
      if (turn == 3) adm_carry_first(table, earlier); /* as the parent does at a reload */
      uint64_t now_ns = adm_now_ns();
      rounds_turn(r, now_ns, now_ns);
    }
    rounds_free(r);
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

int main(int argc, char **argv) {
  uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 200;
  signal(SIGIO, SIG_IGN);
  if (!getcwd(place, 4096)) return 1;
  strcat(place, "/test_damage.XXXXXX");
  if (!mkdtemp(place)) return 1;
  fill_table();
  fill_earlier();
  for (uint64_t seed = 1; seed <= count; seed++) check_said(live_with(seed) == 0, __FILE__, __LINE__, "seed %d", (int)seed);
  char remove[4300];
  snprintf(remove, sizeof remove, "rm -rf '%s'", place);
  CHECK_EQUAL(system(remove), 0);
  return checked("test_damage");
}
