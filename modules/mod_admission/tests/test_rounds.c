/*
 * test_rounds.c: the controller's rounds, done by hand over a real table and a made-up /proc: the dead, the control file,
 * times of day, adaptive limits, learned costs, long holds and status.json.
 */
#include "../rounds.h"

#include "../core/control.h"
#include "../core/news.h"
#include "../process.h"
#include "check.h"
#include "child.h"
#include "place.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define SECOND UINT64_C(1000000000)
#define RULES 5
#define PARENT 99
enum { MEMORY, WAITING, HEAVY, NIGHT, ELASTIC };

static char place[4096], log_text[4096], dead_pids[64];
static adm_table *table, *earlier[2];
static adm_rule rules[RULES];
static int groups[RULES];
static adm_news_board board;
static adm_control_kept kept;
static uint64_t now_ns = 1000 * SECOND, wall_ns;

static void log_line(void *world, rounds_level level, const char *text) {
  (void)world;
  (void)level;
  size_t length = strlen(log_text);
  snprintf(log_text + length, sizeof log_text - length, "%s\n", text);
}

static bool dead(void *world, adm_process process) {
  (void)world;
  char word[16];
  snprintf(word, sizeof word, " %u ", process.pid);
  return strstr(dead_pids, word) != NULL;
}

/* Writes PLACE/NAME; directories in the name are made. */
static void write_file(const char *name, const char *text) {
  char path[4400], fresh[4410];
  snprintf(path, sizeof path, "%s/%s", place, name);
  for (char *slash = path + strlen(place) + 1; (slash = strchr(slash, '/')); slash++) {
    *slash = '\0';
    mkdir(path, 0755);
    *slash = '/';
  }
  snprintf(fresh, sizeof fresh, "%s.new", path);
  FILE *out = fopen(fresh, "w");
  if (!out) return;
  fputs(text, out);
  fclose(out);
  chmod(fresh, 0644);
  if (rename(fresh, path) < 0) perror(path);
}

static bool file_has(const char *name, const char *what) {
  char path[4400], text[65536] = "";
  snprintf(path, sizeof path, "%s/%s", place, name);
  FILE *in = fopen(path, "r");
  if (!in) return false;
  text[fread(text, 1, sizeof text - 1, in)] = '\0';
  fclose(in);
  return strstr(text, what) != NULL;
}

static ino_t inode_of(const char *name) {
  char path[4400];
  struct stat s;
  snprintf(path, sizeof path, "%s/%s", place, name);
  return stat(path, &s) == 0 ? s.st_ino : 0;
}

static adm_table *empty_table(adm_shape shape) {
  size_t bytes = adm_table_bytes(shape);
  return adm_table_make(mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), shape, 7);
}

static void make_table(void) {
  adm_shape shape = {64, 32, 16};
  table = empty_table(shape);
  earlier[0] = empty_table((adm_shape){32, 16, 16});
  static const char *const words[RULES] = {"limit=1G", "limit=10", "limit=4 cost=learn:200M queue=5", "limit=8 at=22:00-06:00:2",
                                           "limit=8 adaptive=memory min=2 max=12 queue=5"};
  static const char *const names[RULES] = {"memory", "queue-workers", "heavy", "night", "elastic"};
  for (unsigned i = 0; i < RULES; i++) {
    adm_subject subject = i == MEMORY ? ADM_FOR_MEMORY : i == WAITING ? ADM_FOR_WAITING : ADM_FOR_GROUP;
    char copy[128], error[ADM_ERROR] = "", *rest = NULL;
    snprintf(copy, sizeof copy, "%s", words[i]);
    rules[i] = (adm_rule){names[i], subject, adm_settings_default(subject)};
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
      if (!adm_settings_word(&rules[i].settings, NULL, subject, ADM_CONFIGURED, word, error)) puts(error);
    if (!adm_settings_check(&rules[i].settings, subject, &shape, NULL, error)) puts(error);
    groups[i] = i == MEMORY ? ADM_GROUP_MEMORY : i == WAITING ? ADM_GROUP_WAITING : adm_group_add(table, names[i]);
    adm_group_apply(adm_group_at(table, groups[i]), &rules[i].settings);
  }
}

static bool alone; /* whether pages of a process come one at a time */
static adm_dead is_dead = dead;

static rounds *make_rounds(void) {
  static char control[4400], root[4400];
  snprintf(control, sizeof control, "%s/control", place);
  snprintf(root, sizeof root, "%s/root/", place);
  controller_plan plan = {.table = table, .earlier = earlier, .rules = rules, .groups = groups, .rule_count = RULES, .workers = 20, .control_file = control,
                          .runtime_dir = place, .board = &board, .kept = &kept, .root = root, .max_hold_ms = 3000, .dead = is_dead, .watches = is_dead == process_dead,
                          .alone = alone};
  return rounds_new(&plan, geteuid(), PARENT, log_line, NULL);
}

/* Some rounds of 250 ms of the rounds' time; files are always as old as they have to be. */
static void turn(rounds *r, unsigned count) {
  struct timespec now;
  log_text[0] = '\0';
  for (unsigned i = 0; i < count; i++) {
    clock_gettime(CLOCK_REALTIME, &now);
    now_ns += SECOND / 4;
    rounds_turn(r, now_ns, wall_ns ? wall_ns : (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec + SECOND / 5);
  }
}

static adm_group *group(unsigned rule) { return adm_group_at(table, groups[rule]); }

static adm_owner admit_of(adm_process process, unsigned rule, const char *file, adm_answer *answer) {
  adm_owner owner = adm_owner_join(table, process);
  adm_layer layer = {groups[rule], adm_hash(table, file, strlen(file)), file, ADM_UNLIMITED, 1};
  adm_request request = {.layer = &layer, .layers = 1};
  adm_admit(table, owner, &request, answer);
  return owner;
}

static adm_owner admit(uint32_t pid, unsigned rule, const char *file, adm_answer *answer) {
  return admit_of((adm_process){pid, 1}, rule, file, answer);
}

/* What all entries of a rule's group hold. */
static unsigned weight_of(unsigned rule) {
  unsigned sum = 0;
  for (uint32_t i = 0; i < adm_table_shape(table).entries; i++) {
    adm_seen seen;
    if (adm_look(table, i, now_ns, &seen) && seen.group == groups[rule]) sum += seen.held;
  }
  return sum;
}

/* ---- the control file ------------------------------------------------------------------------------------------- */

static void control_file(rounds *r) {
  char path[4400];
  adm_news news;
  turn(r, 1);
  CHECK_EQUAL(group(HEAVY)->limit, 4);
  CHECK_TEXT(log_text, "");
  write_file("control", "heavy limit=2 mode=observe\nmemory limit=512M\n");
  turn(r, 1);
  CHECK_EQUAL(group(HEAVY)->limit, 2);
  CHECK_EQUAL(group(HEAVY)->settings_limit, 2);
  CHECK_EQUAL(group(HEAVY)->mode, ADM_OBSERVE);
  CHECK_EQUAL(group(HEAVY)->queue, 5);
  CHECK_EQUAL(group(MEMORY)->limit, 512 * 16);
  CHECK(strstr(log_text, "is in force"));
  CHECK(adm_news_read(&board, &news) && news.generation == 1 && news.pid == (uint32_t)getpid() && !news.error[0]);
  turn(r, 8);
  CHECK_TEXT(log_text, ""); /* once */

  write_file("control", "heavy limit=1\nheavy limit=many\n"); /* a mistake anywhere: nothing of it */
  turn(r, 1);
  CHECK_EQUAL(group(HEAVY)->limit, 2);
  CHECK(strstr(log_text, "line 2: limit=many: a number from 1 to 1000000, or `none`: the earlier values stay in force"));
  CHECK(adm_news_read(&board, &news) && news.generation == 1);
  CHECK_TEXT(news.error, "line 2: limit=many: a number from 1 to 1000000, or `none`");
  rounds *next = make_rounds(); /* another controller goes on counting, and finds out itself what is wrong */
  write_file("control", "heavy limit=2\n");
  turn(next, 1);
  CHECK(adm_news_read(&board, &news) && news.generation == 2 && !news.error[0]);
  rounds_free(next);
  adm_news_write(&board, &(adm_news){.pid = 1, .generation = 1});
  write_file("control", "heavy limit=1\nheavy limit=many\n");
  turn(r, 1);
  CHECK(file_has("status.json", "line 2: limit=many"));
  turn(r, 20);
  CHECK_TEXT(log_text, ""); /* logged once, though judged again */
  next = make_rounds();
  turn(next, 2); /* one that finds a bad file: as it was, not as configured */
  CHECK_EQUAL(group(HEAVY)->limit, 2);
  CHECK_EQUAL(group(HEAVY)->settings_limit, 2);
  CHECK(strstr(log_text, "line 2: limit=many"));
  rounds_free(next);

  snprintf(path, sizeof path, "%s/control", place);
  write_file("control", "heavy limit=1\n");
  chmod(path, 0666);
  turn(r, 1);
  CHECK_EQUAL(group(HEAVY)->limit, 2);
  CHECK(strstr(log_text, "can be written by others"));
  chmod(path, 0644); /* nothing but permissions changed */
  turn(r, 1);
  CHECK_EQUAL(group(HEAVY)->limit, 1);
  CHECK_EQUAL(group(HEAVY)->mode, ADM_ENFORCE); /* not said any more: as configured */
  CHECK_EQUAL(group(MEMORY)->limit, 1024 * 16);

  write_file("control", "heavy limit=3\n");
  chmod(place, 0777);
  turn(r, 1);
  CHECK_EQUAL(group(HEAVY)->limit, 1);
  CHECK(strstr(log_text, "can be written by others"));
  chmod(place, 0755); /* the file itself is as it was */
  turn(r, 5);
  CHECK_EQUAL(group(HEAVY)->limit, 3);

  unlink(path);
  turn(r, 1);
  CHECK_EQUAL(group(HEAVY)->limit, 4);
  CHECK(strstr(log_text, "is gone"));
  write_file("control", "heavy limit=many\n");
  next = make_rounds();
  turn(next, 1); /* what was in force is the configuration */
  CHECK_EQUAL(group(HEAVY)->limit, 4);
  rounds_free(next);
  unlink(path);
  turn(r, 1);
}

/* A file that is written in place is not read half-way. */
static void fresh_file(rounds *r) {
  struct timespec now;
  write_file("control", "heavy limit=3\n");
  clock_gettime(CLOCK_REALTIME, &now);
  wall_ns = (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
  turn(r, 1);
  CHECK_EQUAL(group(HEAVY)->limit, 4);
  wall_ns += SECOND / 4;
  turn(r, 1);
  CHECK_EQUAL(group(HEAVY)->limit, 3);
  wall_ns = 0;
  write_file("control", "\n");
  turn(r, 1);
  CHECK_EQUAL(group(HEAVY)->limit, 4);
}

static void all_workers_may_wait(rounds *r) {
  write_file("control", "queue-workers limit=19\n");
  turn(r, 1);
  CHECK(strstr(log_text, "is in force") && !strstr(log_text, "ADM0008"));
  write_file("control", "queue-workers limit=20\n");
  turn(r, 1);
  CHECK(strstr(log_text, "control: queue-workers: requests that wait can take all 20 workers of the server, and files wait too"));
  write_file("control", "\n");
  turn(r, 1);
  CHECK_EQUAL(group(WAITING)->limit, 10);
}

/* ---- limits ----------------------------------------------------------------------------------------------------- */

static uint64_t at_hour(int hour, int minute) {
  time_t now = time(NULL);
  struct tm local;
  localtime_r(&now, &local);
  local.tm_hour = hour, local.tm_min = minute, local.tm_sec = 0;
  return (uint64_t)mktime(&local) * SECOND;
}

static void times_of_day(rounds *r) {
  static const struct { int hour, minute; uint32_t limit; } cases[] = {
    {21, 59, 8}, {22, 0, 2}, {23, 59, 2}, {0, 0, 2}, {5, 59, 2}, {6, 0, 8}, {12, 0, 8}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wall_ns = at_hour(cases[i].hour, cases[i].minute);
    turn(r, 1);
    CHECK_EQUAL(group(NIGHT)->limit, cases[i].limit);
    CHECK_EQUAL(group(NIGHT)->settings_limit, 8);
    group(NIGHT)->limit = 77;
    rounds_apply(group(NIGHT), &rules[NIGHT].settings, wall_ns); /* as the parent does before there are rounds */
    CHECK_EQUAL(group(NIGHT)->limit, cases[i].limit);
    CHECK_EQUAL(group(NIGHT)->settings_limit, 8);
  }
  group(NIGHT)->limit = 77; /* a child wrote where it should not */
  turn(r, 1);
  CHECK_EQUAL(group(NIGHT)->limit, 8);
  wall_ns = 0;
}

static void machine(unsigned available_mb, unsigned long stalled_us) {
  char text[256];
  snprintf(text, sizeof text, "MemTotal: %u kB\nMemAvailable: %u kB\n", 1000 * 1024, available_mb * 1024);
  write_file("root/proc/meminfo", text);
  snprintf(text, sizeof text, "some avg10=0.00 avg60=0.00 avg300=0.00 total=%lu\n", stalled_us);
  write_file("root/proc/pressure/memory", text);
}

static void adaptive(rounds *r) {
  machine(500, 1000);
  turn(r, 1);
  CHECK_EQUAL(group(ELASTIC)->limit, 8);
  machine(500, 1000 + 30000); /* 12 % of 250 ms */
  turn(r, 1);
  CHECK_EQUAL(group(ELASTIC)->limit, 5);
  CHECK(file_has("status.json", "\"limit\":5"));
  turn(r, 20); /* calm, and nobody waits */
  CHECK_EQUAL(group(ELASTIC)->limit, 5);
  machine(49, 1000 + 30000); /* below the reserve of 5 % */
  turn(r, 9);
  CHECK_EQUAL(group(ELASTIC)->limit, 2);
  machine(500, 1000 + 30000);
  turn(r, 1);
  CHECK_EQUAL(group(ELASTIC)->settings_limit, 8);
}

/* A fifth of the time between two rounds somebody waits for memory, by this file. */
static void stall(rounds *r, const char *file) {
  write_file(file, "some avg10=0.00 total=900000000\n");
  turn(r, 1);
  write_file(file, "some avg10=0.00 total=900060000\n");
  turn(r, 1);
}

/* A cgroup that is smaller than the machine. */
static void in_a_cgroup(rounds *r) {
  write_file("control", "elastic limit=9\n");
  turn(r, 1);
  CHECK_EQUAL(group(ELASTIC)->limit, 9);
  write_file("root/proc/self/cgroup", "4:memory:/gone\n0::/web/apache\n");
  write_file("root/sys/fs/cgroup/web/apache/memory.current", "1048576\n"); /* itself it has room, in one that is full */
  write_file("root/sys/fs/cgroup/web/apache/memory.max", "100000000\n");
  write_file("root/sys/fs/cgroup/web/memory.current", "104857600\n");
  write_file("root/sys/fs/cgroup/web/memory.max", "105906176\n");
  turn(r, 1);
  CHECK_EQUAL(group(ELASTIC)->limit, 6);
  write_file("root/sys/fs/cgroup/web/memory.max", "max\n");
  turn(r, 12);
  CHECK_EQUAL(group(ELASTIC)->limit, 6);
  stall(r, "root/sys/fs/cgroup/web/apache/memory.pressure");
  CHECK_EQUAL(group(ELASTIC)->limit, 4);
  turn(r, 12);
  CHECK_EQUAL(group(ELASTIC)->limit, 4);
  /* The group's own processes do not wait, those of another do: PHP-FPM's, for which these requests are. */
  stall(r, "root/proc/pressure/memory");
  CHECK_EQUAL(group(ELASTIC)->limit, 2);
}

/* A request that waits for an adaptive limit: the limit is raised for it, and it is woken. */
static void raised_for_waiters(rounds *r) {
  adm_answer first, second, third;
  write_file("control", "elastic limit=2\n");
  turn(r, 1);
  admit(4000030, ELASTIC, "/e.cgi", &first);
  admit(4000031, ELASTIC, "/e.cgi", &second);
  pid_t child = fork();
  if (child == 0) {
    adm_owner owner = adm_owner_join(table, (adm_process){4000032, 1});
    adm_layer layer = {groups[ELASTIC], adm_hash(table, "/e.cgi", 6), "/e.cgi", ADM_UNLIMITED, 1};
    adm_outcome outcome = adm_admit(table, owner, &(adm_request){.layer = &layer, .layers = 1, .may_wait = true}, &third);
    adm_release(table, &third, NULL, NULL);
    _exit(outcome == ADM_QUEUED ? 0 : 1);
  }
  adm_seen seen = {0};
  for (int i = 0; i < 1000 && seen.waiting == 0; i++) {
    usleep(1000);
    for (uint32_t e = 0; e < 64 && seen.waiting == 0; e++)
      if (!adm_look(table, e, adm_now_ns(), &seen)) seen.waiting = 0;
  }
  CHECK_EQUAL(seen.waiting, 1);
  turn(r, 1);
  CHECK_EQUAL(group(ELASTIC)->limit, 3);
  int status = -1;
  waitpid(child, &status, 0);
  CHECK_EQUAL(status, 0);
  turn(r, 8); /* nobody waits any more */
  CHECK_EQUAL(group(ELASTIC)->limit, 3);
  adm_release(table, &first, NULL, NULL);
  adm_release(table, &second, NULL, NULL);
}

/* ---- costs, the dead, long holds ---------------------------------------------------------------------------------- */

static void status_of(unsigned pid, const char *name, unsigned anon_mb, unsigned swap_mb, const char *children) {
  char path[128], text[256];
  snprintf(path, sizeof path, "root/proc/%u/status", pid);
  snprintf(text, sizeof text, "Name:\t%s\nVmRSS:\t9 kB\nRssAnon:\t%u kB\nRssFile:\t7 kB\nRssShmem:\t0 kB\nVmSwap:\t%u kB\n", name,
           anon_mb * 1024, swap_mb * 1024);
  write_file(path, text);
  snprintf(path, sizeof path, "root/proc/%u/task/%u/children", pid, pid);
  write_file(path, children);
}

static void costs(rounds *r) {
  adm_answer first, second;
  CHECK_EQUAL(group(HEAVY)->cost, 200 * 16);
  status_of(4000001, "apache2", 10, 0, "");
  admit(4000001, HEAVY, "/a.cgi", &first);
  turn(r, 1);
  CHECK_EQUAL(group(HEAVY)->cost, 200 * 16); /* nothing seen */
  status_of(4000001, "apache2", 10, 0, "4000002 4000005 ");
  status_of(4000002, "sh", 1, 0, "4000003 ");
  status_of(4000003, "perl", 200, 100, "4000999 ");      /* whose child has just ended */
  status_of(4000005, "apache2", 500, 0, "");             /* a copy that is not a program yet */
  turn(r, 2);
  CHECK_EQUAL(group(HEAVY)->cost, 301 * 16);
  adm_owner owner = adm_owner_of(table, 4000001);
  adm_layer layer = {groups[HEAVY], 5, "/b.cgi", ADM_UNLIMITED, 1};
  adm_request request = {.layer = &layer, .layers = 1};
  adm_admit(table, owner, &request, &second); /* a second request: a thread beside the first */
  status_of(4000003, "perl", 900, 0, "");
  turn(r, 1);
  CHECK_EQUAL(group(HEAVY)->cost, 901 * 8); /* shared between two */
  adm_layer other = {groups[NIGHT], 6, "/n", ADM_UNLIMITED, 1};
  adm_answer third;
  adm_admit(table, owner, &(adm_request){.layer = &other, .layers = 1}, &third); /* of another group: whose programs are they? */
  status_of(4000003, "perl", 2400, 0, "");
  turn(r, 1);
  CHECK_EQUAL(group(HEAVY)->cost, 901 * 8);
  adm_release(table, &third, NULL, NULL);
  adm_release(table, &second, NULL, NULL);
  status_of(4000003, "perl", 3000, 0, "");
  turn(r, 1);
  CHECK_EQUAL(group(HEAVY)->cost, 1024 * 16); /* never above the budget */
  rounds *next = make_rounds();               /* another controller goes on with what is known */
  turn(next, 1);
  CHECK_EQUAL(group(HEAVY)->cost, 1024 * 16);
  rounds_free(next);
  write_file("control", "heavy cost=learn:100M\n"); /* said anew: learned anew */
  status_of(4000003, "perl", 150, 0, "");
  turn(r, 2);
  CHECK_EQUAL(group(HEAVY)->cost, 151 * 16);
  next = make_rounds(); /* and one that finds the same file */
  turn(next, 1);
  CHECK_EQUAL(group(HEAVY)->cost, 151 * 16);
  rounds_free(next);
  write_file("control", "heavy cost=64M\n");
  turn(r, 2);
  CHECK_EQUAL(group(HEAVY)->cost, 64 * 16);
  adm_release(table, &first, NULL, NULL);
}

/* Who is in a page already when it is seen first was a copy of the parent when it began: with prefork that is what the page is measured from. */
static void costs_of_who_is_in_a_page_at_once(rounds *r) {
  adm_answer held;
  write_file("control", "heavy cost=learn:10M\n");
  turn(r, 2);
  status_of(PARENT, "apache2", 12, 0, "");
  status_of(4000040, "apache2", 90, 0, "");
  admit(4000040, HEAVY, "/a.php", &held);
  turn(r, 2);
  CHECK_EQUAL(group(HEAVY)->cost, 10 * 16); /* with threads it may be what pages before have left */
  alone = true;
  rounds *next = make_rounds();
  alone = false;
  turn(next, 2);
  CHECK_EQUAL(group(HEAVY)->cost, 78 * 16);
  rounds_free(next);
  adm_release(table, &held, NULL, NULL);
  write_file("control", "heavy cost=64M\n");
  turn(r, 2);
}

/* A process whose requests are all in the same two groups is learned from. */
static void costs_of_several_groups(rounds *r) {
  adm_owner owner = adm_owner_join(table, (adm_process){4000007, 1});
  adm_layer layers[] = {{groups[HEAVY], 7, "/a.cgi", ADM_UNLIMITED, 1}, {groups[NIGHT], 8, "/n", ADM_UNLIMITED, 1}};
  adm_answer answer[2];
  status_of(4000007, "apache2", 10, 0, "");
  write_file("control", "heavy cost=learn:10M\n");
  turn(r, 2);
  for (int i = 0; i < 2; i++) adm_admit(table, owner, &(adm_request){.layer = layers, .layers = 2}, &answer[i]);
  status_of(4000007, "apache2", 10, 0, "4000008 ");
  status_of(4000008, "perl", 300, 0, "");
  turn(r, 2);
  CHECK_EQUAL(group(HEAVY)->cost, 150 * 16);
  for (int i = 0; i < 2; i++) adm_release(table, &answer[i], NULL, NULL);
  write_file("control", "heavy cost=64M\n");
  turn(r, 2);
}

static void the_dead(rounds *r) {
  adm_answer mine;
  admit(4000010, HEAVY, "/d.cgi", &mine);
  turn(r, 4);
  CHECK_EQUAL(group(HEAVY)->counts.reaped, 0);
  strcpy(dead_pids, " 4000010 ");
  turn(r, 1);
  CHECK_EQUAL(group(HEAVY)->counts.reaped, 1);
  CHECK(strstr(log_text, "1 permits of processes that are gone were taken back"));
  CHECK_EQUAL(adm_owner_of(table, 4000010), ADM_NOBODY);
}

/* What the dead held in a table that was replaced is taken back, too; what the living hold there weighs on the table in force. */
static void the_dead_of_before(void) {
  adm_owner owner = adm_owner_join(earlier[0], (adm_process){4000030, 1}), alive = adm_owner_join(earlier[0], (adm_process){4000031, 1});
  int of_before = adm_group_add(earlier[0], "night");
  adm_settings settings = adm_settings_default(ADM_FOR_GROUP);
  adm_group_apply(adm_group_at(earlier[0], of_before), &settings);
  adm_layer layer = {.group = of_before, .key = adm_hash(earlier[0], "/a", 2), .label = "/a", .at_most = ADM_UNLIMITED, .cost = 1};
  adm_request request = {.layer = &layer, .layers = 1};
  adm_answer of_dead, of_alive;
  adm_admit(earlier[0], owner, &request, &of_dead);
  adm_admit(earlier[0], alive, &request, &of_alive);
  adm_carry_first(table, earlier);
  rounds *r = make_rounds();
  CHECK_EQUAL(weight_of(NIGHT), 2);
  strcpy(dead_pids, " 4000030 ");
  turn(r, 1);
  CHECK_EQUAL(weight_of(NIGHT), 1);
  CHECK(strstr(log_text, "ADM0040: 1 permits"));
  CHECK_EQUAL(adm_group_at(earlier[0], of_before)->counts.reaped, 1);
  CHECK(adm_table_in_use(earlier[0]));
  /* What is given back there is known here without a round. */
  adm_release(earlier[0], &of_alive, NULL, NULL);
  CHECK(rounds_carry(r, now_ns) < ROUNDS_NS / 10);
  CHECK_EQUAL(weight_of(NIGHT), 0);
  adm_admit(earlier[0], alive, &request, &of_alive);
  CHECK(rounds_carry(r, now_ns) < ROUNDS_NS / 10);
  CHECK_EQUAL(weight_of(NIGHT), 1);
  /* Who is left there after a minute may stay for hours: then the rounds do it. */
  adm_release(earlier[0], &of_alive, NULL, NULL);
  CHECK_EQUAL(rounds_carry(r, now_ns + 61 * SECOND), ROUNDS_NS);
  CHECK_EQUAL(weight_of(NIGHT), 1);
  turn(r, 1);
  CHECK_EQUAL(weight_of(NIGHT), 0);
  adm_admit(earlier[0], alive, &request, &of_alive);
  strcpy(dead_pids, " 4000030 4000031 ");
  turn(r, 1);
  CHECK(!adm_table_in_use(earlier[0]));
  CHECK_EQUAL(rounds_carry(r, now_ns), ROUNDS_NS);
  CHECK_EQUAL(weight_of(NIGHT), 0);
  dead_pids[0] = '\0';
  rounds_free(r);
}

/* A process with a permit. */
static pid_t holder(void) {
  pid_t pid = child();
  adm_answer its;
  admit_of(process_of((uint32_t)pid), NIGHT, "/real", &its);
  return pid;
}

/* Asked of real processes: by descriptors, or, where none may be opened, one by one, a quarter of them in each round. */
static void real_processes(bool by_descriptors) {
  struct rlimit before, few;
  getrlimit(RLIMIT_NOFILE, &before);
  few = before;
  if (!by_descriptors) few.rlim_cur = 63;
  is_dead = process_dead;
  setrlimit(RLIMIT_NOFILE, &few);
  rounds *r = make_rounds();
  setrlimit(RLIMIT_NOFILE, &before);
  uint64_t reaped = group(NIGHT)->counts.reaped;
  pid_t one = holder(), two = holder(), three = holder();
  turn(r, 8);
  kill(two, SIGSTOP);
  turn(r, 8);
  CHECK_EQUAL(weight_of(NIGHT), 3);
  siginfo_t ended;
  kill(one, SIGKILL);
  waitid(P_PID, (id_t)one, &ended, WEXITED | WNOWAIT); /* and nobody takes notice: a zombie */
  turn(r, by_descriptors ? 1 : 4);
  CHECK_EQUAL(weight_of(NIGHT), 2);
  waitpid(one, NULL, 0);
  kill(three, SIGKILL);
  waitpid(three, NULL, 0);
  turn(r, 1);
  CHECK_EQUAL(weight_of(NIGHT), 1);
  turn(r, 8);
  CHECK_EQUAL(weight_of(NIGHT), 1);
  kill(two, SIGKILL);
  waitpid(two, NULL, 0);
  turn(r, 1);
  CHECK_EQUAL(weight_of(NIGHT), 0);
  CHECK_EQUAL(group(NIGHT)->counts.reaped, reaped + 3);
  rounds_free(r);
  is_dead = dead;
}

static void long_holds(rounds *r) {
  adm_answer mine;
  admit(4000020, HEAVY, "/l.cgi", &mine);
  now_ns = adm_now_ns(); /* permits know the real clock only */
  turn(r, 11);
  CHECK_EQUAL(group(HEAVY)->counts.long_hold, 0);
  turn(r, 5);
  CHECK_EQUAL(group(HEAVY)->counts.long_hold, 1);
  CHECK(strstr(log_text, "group heavy: 1 permits are held longer than 3000 ms"));
  turn(r, 20);
  CHECK_EQUAL(group(HEAVY)->counts.long_hold, 1); /* once */
  adm_release(table, &mine, NULL, NULL);
}

static unsigned mode_of(const char *name) {
  char path[4400];
  struct stat s;
  snprintf(path, sizeof path, "%s/%s", place, name);
  return stat(path, &s) == 0 ? s.st_mode & 07777 : 0;
}

/* Whether the kernel gives leases on files of this place. */
static bool has_leases(void) {
  char path[4400];
  write_file("leased", "");
  snprintf(path, sizeof path, "%s/leased", place);
  int file = open(path, O_WRONLY | O_CLOEXEC);
  bool has = fcntl(file, F_SETLEASE, F_WRLCK) == 0;
  close(file);
  return has;
}

/* Two files change places, as long as nobody reads the one that was in its place; he reads it to its end. */
static void status_files(rounds *r) {
  char path[4400], fresh[4400], other[4400];
  snprintf(path, sizeof path, "%s/status.json", place);
  snprintf(fresh, sizeof fresh, "%s/status.json.new", place);
  snprintf(other, sizeof other, "%s/other", place);
  turn(r, 8);
  ino_t one = inode_of("status.json"), two = inode_of("status.json.new");
  CHECK(one != 0 && two != 0 && one != two);
  turn(r, 4);
  if (has_leases()) CHECK(inode_of("status.json") == two && inode_of("status.json.new") == one); /* fails if others have it open */
  else puts("test_rounds: skipped: no leases on files here");

  FILE *reader = fopen(path, "r");
  char first[64], rest[65536];
  size_t length = 0;
  CHECK(reader && fgets(first, 16, reader) && first[0] == '{');
  ino_t his = inode_of("status.json");
  turn(r, 12);
  CHECK(inode_of("status.json") != his && inode_of("status.json.new") != his);
  if (reader) {
    rewind(reader);
    length = fread(rest, 1, sizeof rest, reader);
    fclose(reader);
  }
  CHECK(length > 2 && length < sizeof rest && rest[0] == '{' && !strncmp(rest + length - 2, "}\n", 2));

  memset(rest, 'x', sizeof rest - 1); /* what is longer than the status leaves nothing of itself */
  rest[sizeof rest - 1] = '\0';
  write_file("status.json.new", rest);
  turn(r, 4);
  CHECK(file_has("status.json", "\"groups\"") && !file_has("status.json", "xxxx"));

  CHECK_EQUAL(chmod(fresh, 0600), 0); /* one that others may not read is none that is left there */
  turn(r, 8);
  CHECK_EQUAL(mode_of("status.json") | mode_of("status.json.new"), 0644);

  write_file("other", "not ours\n"); /* neither what others know by another name nor what a link leads to is written to */
  CHECK_EQUAL(unlink(fresh) + symlink(other, fresh), 0);
  turn(r, 4);
  CHECK_EQUAL(unlink(fresh) + link(other, fresh), 0);
  turn(r, 4);
  CHECK(file_has("other", "not ours\n") && file_has("status.json", "\"groups\""));
}

/* It is about noon here whenever the tests run: a group has another limit at night. */
static void be_at_noon(void) {
  char zone[32];
  snprintf(zone, sizeof zone, "HERE%d", (int)(time(NULL) / 3600 % 24) - 12);
  setenv("TZ", zone, 1);
  tzset();
}

int main(void) {
  be_at_noon();
  if (!place_make(place, sizeof place)) {
    return nothing_tried("test_rounds", "no place that others cannot write to");
  }
  signal(SIGIO, SIG_IGN);
  umask(022);
  make_table();
  rounds *r = make_rounds();
  control_file(r);
  fresh_file(r);
  all_workers_may_wait(r);
  times_of_day(r);
  adaptive(r);
  raised_for_waiters(r);
  in_a_cgroup(r);
  costs(r);
  costs_of_several_groups(r);
  costs_of_who_is_in_a_page_at_once(r);
  the_dead(r);
  the_dead_of_before();
  long_holds(r);
  status_files(r);
  rounds_free(r);
  if (has_descriptors()) real_processes(true);
  else puts("test_rounds: skipped: no descriptors of processes");
  real_processes(false);
  char remove[4500];
  snprintf(remove, sizeof remove, "rm -rf '%s'", place);
  CHECK_EQUAL(system(remove), 0);
  return checked("test_rounds");
}
