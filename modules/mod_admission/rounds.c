/*
 * rounds.c: one round of the controller after the other (rounds.h): the dead, the control file, limits, costs, status.
 */
#include "rounds.h"

#include "core/adapt.h"
#include "core/control.h"
#include "core/news.h"
#include "core/render.h"
#include "costs.h"
#include "ends.h"
#include "watch.h"
#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

/* The pause between two looks at a table that was replaced, and for how long: who is left there then may stay for hours. A look reads all
 * entries that were ever used, 30 ns for each (of 921 and of 14745, in both tables): about a hundredth of a CPU for each such table. */
#define CARRY_NS UINT64_C(10000000)
#define CARRY_ENTRY_NS UINT64_C(2500)
#define CARRY_FOR_NS (60 * SECOND_NS)

#define STATUS_MODE 0644u /* of status.json, but for what the server's umask takes away */

struct rounds {
  controller_plan plan;
  uid_t owner;
  uint32_t server_pid;
  rounds_log log;
  void *log_world;

  uint64_t now_ns, wall_ns, last_ns; /* of this round, and when the last was */
  uint64_t began_ns;                 /* when the first was */
  unsigned turn;
  bool changed;                      /* something that waiters or readers of status.json want to know */

  adm_settings *settings;            /* what each rule is to be now, by configuration and control file */
  adm_adapt *adapt;                  /* of each rule */
  uint32_t turned_away[ADM_GROUPS];  /* so far, of each group: `full` */
  bool adapts, learns;               /* whether any rule does */
  bool carries;                      /* whether anybody may be left in an earlier table */
  adm_reading reading;
  costs *costs;
  ends *ends;                        /* of the processes that may hold permits; NULL where they are asked about one by one */

  watch_stamp stamp;                 /* of the control file that was judged last */
  bool judged, refused;
  uint64_t judged_ns;
  adm_news news;
  uint64_t status_ns;                /* when status.json was written */
  bool status_failed;
  mode_t mask;                       /* the process's umask */
  unsigned long_holds[ADM_GROUPS];   /* since they were logged */
  uint64_t long_logged_ns;
};

static void say(const rounds *r, rounds_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void say(const rounds *r, rounds_level level, const char *format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  r->log(r->log_world, level, text);
}

static adm_group *group_of(const rounds *r, unsigned rule) { return adm_group_at(r->plan.table, r->plan.groups[rule]); }

/* ---- the dead --------------------------------------------------------------------------------------------------- */

/* Whether anybody has the number, of whatever account. */
static bool is_taken(uint32_t pid) { return kill((pid_t)pid, 0) == 0 || errno == EPERM; }

/* An adm_dead. Whether a process is a zombie or another of the same number costs reading a file; where its end cannot be watched for, to
 * ask that once a second is enough, since the parent gives back at once what a child had whose end it sees. */
static bool dead(void *world, adm_process process) {
  const rounds *r = world;
  switch (r->ends ? ends_ask(r->ends, process) : ENDS_UNKNOWN) {
  case ENDS_GOES_ON: return false;
  case ENDS_ENDED: return true;
  case ENDS_WATCHED: break;
  case ENDS_UNKNOWN:
    if (process.pid % 4 != r->turn % 4 && is_taken(process.pid)) return false;
  }
  return r->plan.dead(NULL, process);
}

/* The same of a process whose requests are counted now: what it has in memory tells what they cost. */
static bool dead_or_learned_from(void *world, adm_process process) {
  const rounds *r = world;
  if (dead(world, process)) return true;
  if (r->learns) costs_living(r->costs, process);
  return false;
}

/* An adm_lingers with the same world. */
static bool lingers(void *world, uint64_t hold) {
  rounds *r = world;
  return r->plan.lingers && r->plan.lingers(r->plan.lingers_world, hold);
}

static void take_back_from(rounds *r, adm_table *table, adm_dead is_dead) {
  adm_swept swept = adm_sweep_dead(table, 0, is_dead, lingers, r);
  if (swept.permits > 0) say(r, ROUNDS_NOTICE, "ADM0040: %u permits of processes that are gone were taken back", swept.permits);
  unsigned settled = adm_settle(table, lingers, r);
  if (swept.permits > 0 || swept.room || settled > 0) r->changed = true;
}

/* What is left in tables that were replaced weighs on those after them, until nobody is left. */
static void carry(rounds *r) {
  r->carries = false;
  for (adm_table *const *earlier = r->plan.earlier; *earlier; earlier++) {
    r->carries |= adm_table_in_use(*earlier);
    adm_carry(*earlier, earlier + 1);
  }
  r->changed |= adm_carry(r->plan.table, r->plan.earlier);
}

/* Nobody else does it for tables that were replaced: their processes only end. */
static void take_back(rounds *r) {
  static adm_table *const none[] = {NULL};
  if (r->plan.healed_ns) *r->plan.healed_ns = r->now_ns;
  if (r->ends) ends_look(r->ends);
  take_back_from(r, r->plan.table, dead_or_learned_from);
  if (r->carries) {
    for (adm_table *const *earlier = r->plan.earlier; *earlier; earlier++) take_back_from(r, *earlier, dead);
    carry(r);
  } else if (r->turn % 4 == 0) {
    r->changed |= adm_carry(r->plan.table, none); /* whatever a child wrote there by mistake */
  }
}

/* ---- settings --------------------------------------------------------------------------------------------------- */

static unsigned minute_of_day(uint64_t wall_ns) {
  time_t seconds = (time_t)(wall_ns / SECOND_NS);
  struct tm local;
  return localtime_r(&seconds, &local) ? (unsigned)(local.tm_hour * 60 + local.tm_min) : 0;
}

void rounds_apply(adm_group *group, const adm_settings *settings, uint64_t wall_ns) {
  adm_settings now = *settings;
  if (!now.adaptive) now.limit = adm_limit_at(settings, minute_of_day(wall_ns));
  adm_group_apply(group, &now);
  group->settings_limit = settings->limit;
}

/* Puts a rule's settings in force. */
static void apply(rounds *r, unsigned rule, const adm_settings *settings) {
  adm_settings *old = &r->settings[rule];
  adm_group *group = group_of(r, rule);
  if (!group) return;
  rounds_apply(group, settings, r->wall_ns);
  if (settings->limit != old->limit) r->adapt[rule] = (adm_adapt){.limit = settings->limit};
  /* What was learned stays in the group's cost unless the settings begin anew; then that is where learning begins. */
  int index = r->plan.groups[rule];
  if (settings->learn && costs_of(r->costs, index) != group->cost) costs_start(r->costs, index, group->cost);
  *old = *settings;
}

static void apply_all(rounds *r, const adm_settings *settings) {
  r->adapts = r->learns = false;
  for (unsigned i = 0; i < r->plan.rule_count; i++) {
    apply(r, i, &settings[i]);
    r->adapts |= settings[i].adaptive;
    r->learns |= settings[i].learn;
  }
  r->news.error[0] = '\0';
  r->refused = false;
  r->changed = true;
}

/* The values in force stay. Each reason is logged once for each version of the file. */
static void refuse(rounds *r, bool other_file, const char *why) {
  char error[ADM_NEWS_TEXT];
  snprintf(error, sizeof error, "%s", why);
  if (other_file || strcmp(error, r->news.error) != 0)
    say(r, ROUNDS_ERROR, "ADM0041: control file %s: %s: the earlier values stay in force", r->plan.control_file, why);
  r->changed |= strcmp(error, r->news.error) != 0;
  memcpy(r->news.error, error, sizeof error);
  r->refused = true;
}

static void use_configured(rounds *r) {
  adm_settings configured[ADM_GROUPS];
  for (unsigned i = 0; i < r->plan.rule_count; i++) configured[i] = r->plan.rules[i].settings;
  adm_control_keep(r->plan.kept, "", 0);
  apply_all(r, configured);
}

/* As directives_check() warns at start-up: of what the control file changes. */
static void warn_of_waiting(rounds *r, const adm_settings *settings) {
  for (unsigned i = 0; i < r->plan.rule_count; i++) {
    bool said_there = r->plan.groups[i] == ADM_GROUP_WAITING && settings[i].limit != r->plan.rules[i].settings.limit;
    if (said_there && r->plan.workers > 0 && settings[i].limit >= r->plan.workers)
      say(r, ROUNDS_WARNING, "ADM0008: control file %s: queue-workers: requests that wait can take all %" PRIu64 " workers of the server, "
          "and files wait too", r->plan.control_file, r->plan.workers);
  }
}

/* Reads and judges the file as it is now. */
static void judge_control(rounds *r, bool other_file) {
  static char text[ADM_CONTROL_BYTES + 1]; /* one controller, one thread: too large for a stack */
  char why[ADM_ERROR + 32];
  adm_settings settings[ADM_GROUPS];
  adm_control_error error;
  ssize_t length = watch_read(r->plan.control_file, r->owner, text, sizeof text, why);
  if (length < 0) {
    refuse(r, other_file, why);
    return;
  }
  adm_shape shape = adm_table_shape(r->plan.table);
  if (adm_control_read(text, (size_t)length, r->plan.rules, r->plan.rule_count, &shape, settings, &error)) {
    adm_control_keep(r->plan.kept, text, (size_t)length);
    apply_all(r, settings);
    r->news.generation++;
    say(r, ROUNDS_NOTICE, "ADM0042: control file %s is in force", r->plan.control_file);
    warn_of_waiting(r, settings);
    return;
  }
  if (error.line) snprintf(why, sizeof why, "line %u: %s", error.line, error.text);
  else snprintf(why, sizeof why, "%s", error.text);
  refuse(r, other_file, why);
}

/* Looks whether the control file is another than was judged last. One that was refused is judged again each second: a
 * directory's permissions may be what was wrong, and nothing about the file tells that they are right now. */
static void look_at_control(rounds *r) {
  if (!r->plan.control_file) return;
  watch_stamp stamp = watch_look(r->plan.control_file);
  bool other_file = !r->judged || !watch_same(&stamp, &r->stamp);
  bool again = r->refused && r->now_ns - r->judged_ns >= SECOND_NS;
  if (!other_file && !again) return;
  if (r->judged && watch_fresh(&stamp, (int64_t)r->wall_ns)) return; /* next round: it may still be written */
  bool had_one = r->judged && r->stamp.there;
  r->judged = true;
  r->judged_ns = r->now_ns;
  r->stamp = stamp;
  if (stamp.there) {
    judge_control(r, other_file);
  } else if (other_file) {
    use_configured(r);
    r->news.generation += had_one;
    if (had_one) say(r, ROUNDS_NOTICE, "ADM0043: control file %s is gone: back to the configuration", r->plan.control_file);
  }
}

/* ---- limits ----------------------------------------------------------------------------------------------------- */

/* What the busiest entry of each group has: the one most wait for, or, where nobody waits, that is held most. */
static void survey(const rounds *r, adm_demand demand[ADM_GROUPS]) {
  uint32_t entries = adm_table_shape(r->plan.table).entries;
  adm_seen seen;
  for (uint32_t i = adm_entry_next(r->plan.table, 0); i < entries; i = adm_entry_next(r->plan.table, i + 1)) {
    if (!adm_look(r->plan.table, i, r->now_ns, &seen) || seen.group < 0 || seen.group >= ADM_GROUPS) continue;
    adm_demand *d = &demand[seen.group];
    if (seen.waiting < d->waiting || (seen.waiting == d->waiting && seen.held <= d->held)) continue;
    d->held = seen.held;
    d->waiting = seen.waiting;
  }
}

/* Whether the group's limit has turned somebody away since the round before. */
static bool has_refused(rounds *r, unsigned rule) {
  uint32_t now = group_of(r, rule)->full, *before = &r->turned_away[r->plan.groups[rule]];
  bool more = r->last_ns && now != *before; /* what was counted before this controller began is nobody's who asks now */
  *before = now;
  return more;
}

/* The limit of a group that follows the pressure: between its bounds, and below that of the time of day. */
static uint32_t adapted(rounds *r, unsigned rule, adm_demand demand, const adm_pressure *pressure, unsigned minute) {
  const adm_settings *s = &r->settings[rule];
  adm_settings windows_only = *s;
  windows_only.limit = s->max;
  uint32_t most = adm_limit_at(&windows_only, minute);
  demand.max = most < s->max ? most : s->max;
  demand.min = s->min < demand.max ? s->min : demand.max;
  demand.cost = (uint64_t)group_of(r, rule)->cost * ADM_COST_UNIT;
  demand.refused = has_refused(r, rule);
  return adm_adapt_step(&r->adapt[rule], &demand, pressure, r->now_ns);
}

static void set_limits(rounds *r) {
  adm_demand demand[ADM_GROUPS] = {0};
  adm_pressure pressure = {0};
  unsigned minute = minute_of_day(r->wall_ns);
  if (r->adapts) {
    adm_reading reading = world_reading(r->plan.root, r->now_ns);
    pressure = adm_pressure_between(&r->reading, &reading);
    r->reading = reading;
    survey(r, demand);
  }
  for (unsigned i = 0; i < r->plan.rule_count; i++) {
    adm_group *group = group_of(r, i);
    if (!group) continue;
    const adm_settings *s = &r->settings[i];
    uint32_t limit = s->adaptive ? adapted(r, i, demand[r->plan.groups[i]], &pressure, minute) : adm_limit_at(s, minute);
    if (group->limit == limit) continue;
    group->limit = limit;
    r->changed = true;
  }
}

/* ---- costs ------------------------------------------------------------------------------------------------------ */

/* A cost above the budget would keep its group out for good; at the budget its requests run one by one. */
static void learn(rounds *r) {
  bool learns[ADM_GROUPS] = {false};
  uint32_t budget = ADM_COST_MAX;
  if (!r->learns) return;
  for (unsigned i = 0; i < r->plan.rule_count; i++) {
    int group = r->plan.groups[i];
    if (r->settings[i].learn && group >= 0 && group < ADM_GROUPS) learns[group] = true;
    if (r->plan.rules[i].subject == ADM_FOR_MEMORY && r->settings[i].limit < budget) budget = r->settings[i].limit;
  }
  costs_round(r->costs, learns, r->now_ns);
  for (unsigned i = 0; i < r->plan.rule_count; i++) {
    adm_group *group = group_of(r, i);
    uint32_t cost = costs_of(r->costs, r->plan.groups[i]);
    if (cost > budget) cost = budget;
    if (group && r->settings[i].learn && group->cost != cost) group->cost = cost;
  }
}

/* ---- long holds ------------------------------------------------------------------------------------------------- */

/* A permit is counted in the round in which it passes the bound, so once. */
static void count_long_hold(void *world, const adm_holder *holder) {
  rounds *r = world;
  uint64_t bound = (uint64_t)r->plan.max_hold_ms * 1000000u, round = r->now_ns - r->last_ns;
  if (holder->group < ADM_GROUP_FIRST || holder->group >= ADM_GROUPS) return;
  if (holder->held_ns < bound || holder->held_ns - bound >= round) return;
  adm_group_at(r->plan.table, holder->group)->counts.long_hold++;
  r->long_holds[holder->group]++;
}

static void tell_long_holds(rounds *r) {
  if (!r->plan.max_hold_ms) return;
  if (r->last_ns) adm_holders(r->plan.table, r->now_ns, count_long_hold, r);
  if (r->now_ns - r->long_logged_ns < SECOND_NS) return;
  r->long_logged_ns = r->now_ns;
  for (unsigned i = 0; i < r->plan.rule_count; i++) {
    int group = r->plan.groups[i];
    if (group < 0 || group >= ADM_GROUPS || r->long_holds[group] == 0) continue;
    say(r, ROUNDS_WARNING, "ADM0044: group %s: %u permits are held longer than %u ms (AdmissionMaxHold)", r->plan.rules[i].name,
        r->long_holds[group], r->plan.max_hold_ms);
    r->long_holds[group] = 0;
  }
}

/* ---- status ----------------------------------------------------------------------------------------------------- */

static void put(void *world, const char *text, size_t length) { fwrite(text, 1, length, world); }

/* Puts a file in the place of another, if there is one, which then has its name: ext4 writes what is renamed over a file to the disk at
 * once, lest it be lost, but not what changes places. */
static bool put_in_place(const char *fresh, const char *path) {
#ifdef RENAME_EXCHANGE
  if (renameat2(AT_FDCWD, fresh, AT_FDCWD, path, RENAME_EXCHANGE) == 0) return true;
#endif
  return rename(fresh, path) == 0;
}

static int open_new(const char *path) {
  if (unlink(path) < 0 && errno != ENOENT) return -1;
  return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, STATUS_MODE);
}

/* A file of ours as open_new() makes it, and known by one name. */
static bool as_new(const rounds *r, const struct stat *s) {
  return s->st_mode == (S_IFREG | (STATUS_MODE & ~r->mask)) && s->st_nlink == 1 && s->st_uid == geteuid();
}

/* The file of before, to write into it what comes next, unless somebody still reads it: a lease to write, which the descriptor has until it
 * is closed, is not given then. Where there are no leases each is a new one, whose inode costs ext4 as much as all else of such a round. */
static int open_again(const rounds *r, const char *path) {
  struct stat s;
  int descriptor = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return -1;
  if (fstat(descriptor, &s) == 0 && as_new(r, &s) && fcntl(descriptor, F_SETLEASE, F_WRLCK) == 0) return descriptor;
  close(descriptor);
  return -1;
}

/* Ends the file where it was written to. */
static bool end_here(FILE *file) { return fflush(file) == 0 && ftruncate(fileno(file), ftello(file)) == 0; }

/* Writes status.json under another name first: readers find the old one or the new one, whole. */
static bool write_status(const rounds *r) {
  char path[4096], fresh[4096 + 8];
  int length = snprintf(path, sizeof path, "%s/status.json", r->plan.runtime_dir);
  if (length < 0 || (size_t)length >= sizeof path) return errno = ENAMETOOLONG, false;
  snprintf(fresh, sizeof fresh, "%s.new", path);
  int descriptor = open_again(r, fresh);
  if (descriptor < 0) descriptor = open_new(fresh);
  if (descriptor < 0) return false;
  FILE *file = fdopen(descriptor, "w");
  if (!file) return close(descriptor), false;
  adm_report report = {.table = r->plan.table, .now_ns = r->now_ns, .written_ms = r->wall_ns / 1000000,
                       .started_ms = r->plan.started_ms, .server_pid = r->server_pid, .control_file = r->plan.control_file,
                       .engine = r->plan.engine, .without_table = r->plan.without_table ? *r->plan.without_table : 0,
                       .news = r->news};
  adm_render_json(&report, put, file);
  bool good = !ferror(file) && end_here(file);
  return fclose(file) == 0 && good && put_in_place(fresh, path);
}

static void tell_status(rounds *r) {
  if (!r->changed && r->status_ns && r->now_ns - r->status_ns < SECOND_NS) return;
  r->status_ns = r->now_ns;
  if (r->plan.board) adm_news_write(r->plan.board, &r->news);
  if (!r->plan.runtime_dir) return;
  bool failed = !write_status(r);
  if (failed && !r->status_failed)
    say(r, ROUNDS_ERROR, "ADM0045: %s/status.json cannot be written: %s", r->plan.runtime_dir, strerror(errno));
  r->status_failed = failed;
}

/* ---- public ----------------------------------------------------------------------------------------------------- */

/* Descriptors from this number on are left to files. */
static int spare_descriptors(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < 64) return 0;
  return limit.rlim_cur < INT_MAX ? (int)limit.rlim_cur - 64 : INT_MAX;
}

rounds *rounds_new(const controller_plan *plan, uid_t owner, uint32_t server_pid, rounds_log log, void *log_world) {
  rounds *r = plan->rule_count <= ADM_GROUPS ? calloc(1, sizeof *r) : NULL;
  if (!r) return NULL;
  *r = (rounds){.plan = *plan, .owner = owner, .server_pid = server_pid, .log = log, .log_world = log_world};
  r->carries = plan->earlier != NULL;
  umask(r->mask = umask(077)); /* no other way to ask */
  r->settings = calloc(plan->rule_count + 1, sizeof *r->settings);
  r->adapt = calloc(plan->rule_count + 1, sizeof *r->adapt);
  r->costs = costs_new(plan->table, plan->root, server_pid, plan->alone);
  r->ends = plan->watches ? ends_new(ADM_OWNERS, spare_descriptors()) : NULL;
  if (plan->board) adm_news_read(plan->board, &r->news); /* the count goes on where the controller before left it */
  r->news = (adm_news){.pid = (uint32_t)getpid(), .generation = r->news.generation};
  if (!r->settings || !r->adapt || !r->costs) {
    rounds_free(r);
    return NULL;
  }
  adm_shape shape = adm_table_shape(plan->table);
  adm_control_recall(plan->kept, plan->rules, plan->rule_count, &shape, r->settings);
  for (unsigned i = 0; i < plan->rule_count; i++) {
    r->adapts |= r->settings[i].adaptive;
    r->learns |= r->settings[i].learn;
    adm_group *group = group_of(r, i);
    if (!group) continue;
    r->adapt[i].limit = group->limit;
    costs_start(r->costs, plan->groups[i], group->cost);
  }
  return r;
}

void rounds_free(rounds *r) {
  if (!r) return;
  free(r->settings);
  free(r->adapt);
  costs_free(r->costs);
  ends_free(r->ends);
  free(r);
}

void rounds_turn(rounds *r, uint64_t now_ns, uint64_t wall_ns) {
  r->now_ns = now_ns;
  r->wall_ns = wall_ns;
  if (r->turn++ == 0) r->began_ns = now_ns;
  take_back(r);
  look_at_control(r);
  set_limits(r);
  learn(r);
  tell_long_holds(r);
  if (r->changed || r->turn % 4 == 0) adm_wake_all(r->plan.table); /* each second, as a safety net */
  tell_status(r);
  r->changed = false;
  r->last_ns = now_ns;
}

uint64_t rounds_carry(rounds *r, uint64_t now_ns) {
  uint64_t pause = adm_table_shape(r->plan.table).entries * CARRY_ENTRY_NS;
  if (!r->carries || now_ns - r->began_ns > CARRY_FOR_NS || pause >= ROUNDS_NS) return ROUNDS_NS;
  carry(r);
  return pause < CARRY_NS ? CARRY_NS : pause;
}
