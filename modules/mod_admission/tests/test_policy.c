/*
 * test_policy.c: policies in Lua: what they see, what they may answer, what they cannot do, and what happens to them when
 * their file changes.
 */
#include "../policy.h"

#include "../core/settings.h"
#include "check.h"
#include "place.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char path[4200], told[2048];
static adm_table *table;
static shared_text *kept; /* the last good version, as all processes know it */

static void log_line(void *world, const char *message) {
  (void)world;
  size_t length = strlen(told);
  snprintf(told + length, sizeof told - length, "%s\n", message);
}

/* Writes the policy, as if a second ago. */
static void write_policy(const char *text) {
  FILE *out = fopen(path, "w");
  if (!out) return;
  fputs(text, out);
  fclose(out);
  static time_t age = 1000;
  struct timespec times[2] = {{.tv_sec = time(NULL) - age, .tv_nsec = 0}, {.tv_sec = time(NULL) - age, .tv_nsec = 0}};
  age--;
  if (utimensat(AT_FDCWD, path, times, 0) < 0) perror(path);
}

static const policy_request request = {.host = "shop.example", .file = "/srv/shop/index.php", .uri = "/index.php",
                                       .handler = "application/x-httpd-php", .method = "GET", .client = "192.0.2.7"};

static const char *describe(bool said, const policy_answer *answer) {
  static char out[ADM_NAME + 64];
  size_t length = (size_t)snprintf(out, sizeof out, "%s", said ? "" : "nothing");
  if (answer->has_group) length += (size_t)snprintf(out + length, sizeof out - length, "group=%s ", answer->group);
  if (answer->has_cost) length += (size_t)snprintf(out + length, sizeof out - length, "cost=%u ", answer->cost);
  if (answer->has_limit) snprintf(out + length, sizeof out - length, "limit=%u", answer->limit);
  return out;
}

/* The name of the file, which differs each time, and the way to it cut out. */
static const char *short_names(char *text) {
  const char *names[] = {path, strrchr(path, '/') + 1};
  for (int i = 0; i < 2; i++) {
    char *name = strstr(text, names[i]);
    if (name) memmove(name, name + strlen(names[i]), strlen(name + strlen(names[i])) + 1);
  }
  return text;
}

/* The one door: what a policy with this body says to the request, or what is logged of it. */
static void check(const char *body, const char *expected) {
  char text[4096], error[ADM_ERROR];
  policy_answer answer;
  snprintf(text, sizeof text, "function admission(r) %s end", body);
  write_policy(text);
  told[0] = '\0';
  policy *p = policy_check(path, geteuid(), kept, error) ? policy_new(path, geteuid(), kept, 1) : NULL;
  if (!p) {
    CHECK_TEXT(short_names(error), expected);
    return;
  }
  bool said = policy_ask(p, table, &request, &answer, log_line, NULL);
  const char *got = told;
  if (*told) got = short_names(told);
  if (!*told) got = describe(said, &answer);
  else CHECK(!said && !answer.has_group && !answer.has_cost && !answer.has_limit);
  check_text(got, expected, body, __FILE__, __LINE__);
  policy_free(p);
}

static void answers(void) {
  check("", "nothing");
  check("return nil", "nothing");
  check("return {}", "nothing");
  check("return {group='heavy', cost='200M', limit=4}", "group=heavy cost=3200 limit=4");
  check("return 'heavy', '200M', 4", "group=heavy cost=3200 limit=4");
  check("return nil, nil, 4.0", "limit=4");
  check("return {limit='none', cost=1048576}", "cost=16 limit=4294967295");
  check("return {group='none', cost='none'}", "group=none cost=0 ");
  check("return {group='havy'}", ": group: there is no `havy`\n");
}

static void mistakes(void) {
  check("return {limit=0}", ": limit: `0` is no number from 1 to 1000000, or \"none\"\n");
  check("return {limit=1.5}", ": limit: `1.5` is no number from 1 to 1000000, or \"none\"\n");
  check("return {limit=true}", ": limit: `true` is no number from 1 to 1000000, or \"none\"\n");
  check("return {cost='lots'}", ": cost: `lots` is no size such as \"200M\"\n");
  check("return {cost=-1}", ": cost: `-1` is no size such as \"200M\"\n");
  check("return {limits=4}", ": limits: an answer has group, cost and limit\n");
  check("return {4}", ": an answer has group, cost and limit by name\n");
  check("return 'memory'", ": group: there is no `memory`\n");
  check("return r.hots", ": :1: r.hots: there is no such member\n");
  check("error('no\\nway')", ": :1: no way\n");
  check("error({})", ": an error that is no text\n");
  check("local x = nil; return x.y", ": :1: attempt to index a nil value (local 'x')\n");
}

static void sights(void) {
  check("assert(r.host == 'shop.example' and r.file == '/srv/shop/index.php' and r.uri == '/index.php') "
        "assert(r.handler == 'application/x-httpd-php' and r.method == 'GET' and r.client == '192.0.2.7' and r.args == nil) "
        "return {limit=1}", "limit=1");
  check("local held, limit, waiting = r:load('heavy') return {limit = 100 * held + 10 * limit + waiting + 1}", "limit=241");
  check("assert(r:load('nobody') == nil) return {limit = r:load('heavy') + 1}", "limit=3");
  check("return {cost = r.budget.used, limit = r.budget.limit // 65536}", "cost=3200 limit=12800");
  check("if r.host:match('^shop%.') then return 'heavy' end", "group=heavy ");
  check("return {limit = os.time() > 1000000000 and tonumber(os.date('%Y')) > 2000 and math.floor(2.5)}", "limit=2");
}

static void bounds(void) {
  alarm(120); /* ends the test where a loop has no end */
  check("while true do end", ": :1: more than 1000000 instructions\n");
  check("while true do pcall(function() while true do end end) end", ": :1: more than 1000000 instructions\n");
  check("local function eat() local t = {} for i = 1, 100 do t[i] = string.rep('x', 1000000) .. i end end "
        "return {limit = pcall(eat) and 1 or 2}", "limit=2");
  check("return {limit = pcall(string.rep, 'x', 1 << 40) and 1 or 2}", "limit=2");
  check("local function f() return f() + 1 end return {limit = pcall(f) and 1 or 2}", "limit=2");
  check("assert(xpcall == nil) return {limit=1}", "limit=1"); /* a loop in its handler would have no end */
  check("return {limit = #string.rep('', math.maxinteger) + #string.rep('', math.maxinteger, '') + #string.rep('ab', 2, '-')}", "limit=5");
  /* What goes over a list in C goes over as much as that says it is. */
  check("table.insert(setmetatable({}, {__len = function() return 1 << 60 end}), 1, 0)", ": :1: table.insert of what has a __len\n");
  check("table.remove(setmetatable({}, {__len = function() return 1 << 60 end}), 1)", ": :1: table.remove of what has a __len\n");
  check("table.sort(setmetatable({}, {__len = function() return (1 << 31) - 2 end, __index = rawlen, __newindex = type}))",
        ": :1: table.sort of what has a __len\n");
  char sparse[2048] = "local t = {"; /* 41 elements, of which the last one is at 1 << 40 */
  for (int k = 0; k <= 40; k++) snprintf(sparse + strlen(sparse), sizeof sparse - strlen(sparse), "[1 << %d] = 0, ", k);
  strcat(sparse, "} assert(#t >= 1 << 40) table.insert(t, 1, 0)");
  check(sparse, ": :1: table.insert of more than 1000000\n");
  check("table.concat(setmetatable({}, {__index = table.concat}), '', 1, 1 << 60)", ": :1: table.concat of more than 1000000\n");
  check("table.concat(setmetatable({}, {__len = function() return 1 << 60 end, __index = table.concat}))",
        ": :1: table.concat of what has a __len\n");
  check("getmetatable('').__len = function() return 1 << 60 end getmetatable('').__newindex = type table.insert('', 1, 0)",
        ": :1: bad argument #1 to 'insert' (table expected, got string)\n");
  check("return {limit = pcall(table.unpack, {}, 1, 1 << 60) and 1 or 2}", "limit=2");
  check("return {limit = pcall(table.unpack, setmetatable({}, {__len = function() return 1 << 60 end})) and 1 or 2}", "limit=2");
  check("local t = {4, 5} table.insert(t, 6) table.insert(t, 1, 3) assert(table.remove(t, 1) == 3 and table.remove({}) == nil) "
        "table.sort(t, function(a, b) return a > b end) return {limit = tonumber(table.concat(t) .. table.concat(t, '', 2, 3))}", "limit=65454");
  check("table.insert({}, 1, 2, 3)", ": :1: wrong number of arguments to 'insert'\n"); /* with its line, as Lua's own */
  check("table.move({}, 1, math.maxinteger - 1, 2)", ": :1: table.move of more than 1000000\n");
  check("table.move({}, math.mininteger, math.maxinteger, 2)", ": :1: table.move of more than 1000000\n");
  check("return {limit = table.move({4, 5, 6}, 2, 3, 1)[2] + #table.move({1}, 1, 0, 2)}", "limit=7");
  check("assert(io == nil and debug == nil and package == nil and coroutine == nil) "
        "assert(load == nil and loadfile == nil and dofile == nil and require == nil and print == nil) "
        "assert(os.execute == nil and os.remove == nil and os.getenv == nil and os.exit == nil and string.dump == nil) "
        "return {limit=1}", "limit=1");
  check("setmetatable({}, {__gc = function() while true do end end})", ": :1: a policy has no finalizers (__gc)\n");
  check("local meta = {__index = {limit=3}} local t = setmetatable({}, meta) meta.__gc = function() while true do end end "
        "return {limit = t.limit}", "limit=3");
  check("return {limit = pcall(setmetatable, {}, 4) and 1 or 2}", "limit=2");
  check("assert(getmetatable(r) == false) return {limit = pcall(setmetatable, r, {}) and 1 or 2}", "limit=2");
  /* What is kept of a request is empty after it. */
  policy_answer answer;
  write_policy("local kept function admission(r) if kept then return kept.host end kept = r end");
  policy *p = policy_new(path, geteuid(), kept, 1);
  told[0] = '\0';
  CHECK(!policy_ask(p, table, &request, &answer, log_line, NULL));
  CHECK(!policy_ask(p, table, &(policy_request){.host = "other"}, &answer, log_line, NULL)); /* it is the next request's */
  CHECK_TEXT(short_names(told), ": group: there is no `other`\n");
  policy_free(p);
  alarm(0);
}

static void refused(void) {
  char error[ADM_ERROR];
  static const struct { const char *text, *expected; } cases[] = {
    {"function admission(r", ":1: ')' expected near <eof>"},
    {"x = 1", "no function admission(r) is defined"},
    {"admission = 5", "no function admission(r) is defined"},
    {"while true do end", ":1: more than 1000000 instructions"},
    {"\x1bLua", "attempt to load a binary chunk (mode is 't')"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_policy(cases[i].text);
    CHECK(!policy_check(path, geteuid(), kept, error));
    CHECK_TEXT(short_names(error), cases[i].expected);
  }
  CHECK(!policy_check("/nowhere/policy.lua", geteuid(), kept, error));
  CHECK_TEXT(error, "its directory: No such file or directory");
  write_policy("function admission(r) end");
  chmod(path, 0666); /* who can write it can turn away or let in whom he likes */
  CHECK(!policy_check(path, geteuid(), kept, error));
  CHECK_TEXT(error, "can be written by others: chmod go-w");
  chmod(path, 0644);
  CHECK(policy_check(path, geteuid(), kept, error));
}

static uint32_t limit_now(policy *p) {
  policy_answer answer;
  return policy_ask(p, table, &request, &answer, log_line, NULL) ? answer.limit : 0;
}

static void pause_ms(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

/* The file changes: seen within a second, and a spoilt one changes nothing. */
static void changes(void) {
  char error[ADM_ERROR];
  write_policy("function admission(r) return {limit=1} end");
  policy *p = policy_new(path, geteuid(), kept, 1);
  CHECK_EQUAL(limit_now(p), 1);
  write_policy("function admission(r) return {limit=2} end");
  CHECK_EQUAL(limit_now(p), 1);
  pause_ms(1050);
  CHECK_EQUAL(limit_now(p), 2);
  told[0] = '\0';
  write_policy("function admission(r) return {limit=3}");
  pause_ms(1050);
  CHECK_EQUAL(limit_now(p), 2);
  CHECK(strstr(told, "'end' expected near <eof>: the last good version stays in use"));
  told[0] = '\0';
  pause_ms(1050);
  CHECK_EQUAL(limit_now(p), 2);
  CHECK_TEXT(told, ""); /* told once */
  policy *later = policy_new(path, geteuid(), kept, 1); /* as a child does that is born now */
  CHECK_EQUAL(limit_now(later), 2);
  policy_free(later);
  told[0] = '\0';
  char late[128]; /* it will compile later, but is not tried again: its text is the same */
  time_t due = time(NULL) + 3;
  snprintf(late, sizeof late, "assert(os.time() > %lld) function admission(r) return {limit=3} end", (long long)due);
  write_policy(late);
  pause_ms(1050);
  CHECK_EQUAL(limit_now(p), 2);
  CHECK(strstr(told, "assertion failed!: the last good version stays in use"));
  do pause_ms(1050);
  while (time(NULL) <= due);
  CHECK_EQUAL(limit_now(p), 2);
  unlink(path);
  pause_ms(1050);
  CHECK_EQUAL(limit_now(p), 2);
  write_policy("function admission(r) return {limit=4} end");
  CHECK(policy_check(path, geteuid(), kept, error));
  pause_ms(1050);
  CHECK_EQUAL(limit_now(p), 4);
  chmod(path, 0666); /* as one that cannot be read */
  told[0] = '\0';
  pause_ms(1050);
  CHECK_EQUAL(limit_now(p), 4);
  CHECK(strstr(told, "can be written by others: chmod go-w: the last good version stays in use"));
  write_policy("function admission(r) return {limit=5} end");
  pause_ms(1050);
  CHECK_EQUAL(limit_now(p), 4);
  chmod(path, 0644);
  pause_ms(1050);
  CHECK_EQUAL(limit_now(p), 5);
  policy_free(p);
}

/* What a process that is born now has as its limit. */
static int limit_of_newborn(void) {
  int status = 0;
  pid_t pid = fork();
  if (pid == 0) _exit((int)limit_now(policy_new(path, geteuid(), kept, 1)));
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A version that this process has never seen is the last good one all the same, in those that it forks as well. */
static void versions_of_others(void) {
  char error[ADM_ERROR];
  write_policy("function admission(r) return {limit=1} end");
  CHECK(policy_check(path, geteuid(), kept, error));
  policy *idle = policy_new(path, geteuid(), kept, 1);
  CHECK_EQUAL(limit_now(idle), 1);
  write_policy("function admission(r) return {limit=2} end");
  CHECK_EQUAL(limit_of_newborn(), 2);
  write_policy("function admission(r) return {limit=3}");
  CHECK_EQUAL(limit_of_newborn(), 2);
  pause_ms(1050);
  CHECK_EQUAL(limit_now(idle), 2); /* which has seen the first and the third only */
  CHECK(!policy_check(path, geteuid(), kept, error)); /* a reload */
  CHECK(shared_text_recall(kept, NULL, NULL));
  CHECK_EQUAL(limit_of_newborn(), 2);
  CHECK_EQUAL(limit_now(idle), 2);
  /* As an interpreter sees it that has the third version before its eyes while another one is still at the second. */
  static const char late[] = "function admission(r) return {limit=4} end";
  shared_text_keep(kept, late, strlen(late));
  pause_ms(1050);
  CHECK_EQUAL(limit_now(idle), 4);
  policy_free(idle);
}

/* What children have written there may be anything: it is none that compiles then. */
static void nothing_good(void) {
  write_policy("function admission(r) return {limit=3}");
  for (int garbage = 0; garbage < 2; garbage++) {
    shared_text *other = shared_text_make();
    if (garbage) shared_text_keep(other, "\x1bLua", 4);
    policy *p = policy_new(path, geteuid(), other, 1);
    told[0] = '\0';
    CHECK_EQUAL(limit_now(p), 0);
    CHECK(strstr(told, "'end' expected near <eof>: there is no good version yet, requests go on as configured"));
    policy_free(p);
    shared_text_drop(other);
  }
  write_policy("function admission(r) return {limit=3} end"); /* and where nothing can be kept, the file decides */
  policy *p = policy_new(path, geteuid(), NULL, 1);
  CHECK_EQUAL(limit_now(p), 3);
  policy_free(p);
}

/* One that keeps what it should forget fails when its memory is full, and begins anew, once a second at most, also where no good
 * version can be kept; that is told once. */
static void leak(shared_text *good) {
  write_policy("kept = {} function admission(r) kept[#kept + 1] = string.rep('x', 1 << 20) .. #kept return {limit = #kept} end");
  policy *p = policy_new(path, geteuid(), good, 1);
  told[0] = '\0';
  uint64_t began_ns = adm_now_ns();
  uint32_t begun = 0, failed = 0, most = 0;
  for (int i = 0; i < 200; i++) {
    uint32_t now = limit_now(p);
    begun += now == 1;
    failed += now == 0;
    if (now > most) most = now;
  }
  CHECK(most > 8 && most < 16);
  CHECK(failed > 0 && begun > 1);
  CHECK(begun <= 3 + (adm_now_ns() - began_ns) / 1000000000);
  CHECK_TEXT(short_names(told), ": not enough memory: it begins anew, without what it had kept\n");
  policy_free(p);
}

/* One request that wants more than there is costs the others nothing of what is kept. */
static void one_oversized_request(void) {
  write_policy("n = 0 function admission(r) n = n + 1 if r.args then string.rep(r.args, 1 << 26) end return {limit = n} end");
  policy *p = policy_new(path, geteuid(), kept, 1);
  policy_answer answer;
  told[0] = '\0';
  CHECK_EQUAL(limit_now(p), 1);
  CHECK(!policy_ask(p, table, &(policy_request){.args = "x"}, &answer, log_line, NULL));
  CHECK_TEXT(short_names(told), ": not enough memory\n");
  CHECK_EQUAL(limit_now(p), 3);
  policy_free(p);
}

static void *ask_often(void *world) {
  policy_answer answer;
  unsigned wrong = 0;
  for (int i = 0; i < 2000; i++)
    wrong += !policy_ask(world, table, &request, &answer, log_line, NULL) || strcmp(answer.group, "heavy") != 0;
  return (void *)(uintptr_t)wrong;
}

static void threads(void) {
  write_policy("n = 0 function admission(r) n = n + 1 return {group='heavy', limit=n} end");
  policy *p = policy_new(path, geteuid(), kept, 3);
  pthread_t thread[8];
  for (int i = 0; i < 8; i++) pthread_create(&thread[i], NULL, ask_often, p);
  for (int i = 0; i < 8; i++) {
    void *wrong;
    pthread_join(thread[i], &wrong);
    CHECK(wrong == NULL);
  }
  policy_free(p);
}

/* Somebody who has the only interpreter and does not come back with it for as long as the gate is closed: its log is written meanwhile. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool at_gate;

static void wait_at_gate(void *world, const char *message) {
  (void)world;
  (void)message;
  at_gate = true;
  pthread_mutex_lock(&gate);
  pthread_mutex_unlock(&gate);
}

static void *ask_and_stay(void *world) {
  policy_answer answer;
  policy_ask(world, table, &(policy_request){.args = "fail"}, &answer, wait_at_gate, NULL);
  return NULL;
}

/* Who finds no interpreter goes on without an answer; nobody waits for ever. */
static void busy(void) {
  write_policy("function admission(r) if r.args then error('no') end return {limit = 1} end");
  policy *p = policy_new(path, geteuid(), kept, 1);
  CHECK_EQUAL(limit_now(p), 1);
  pthread_t thread;
  at_gate = false;
  pthread_mutex_lock(&gate);
  pthread_create(&thread, NULL, ask_and_stay, p);
  while (!at_gate) pause_ms(1);
  told[0] = '\0';
  uint64_t began_ns = adm_now_ns();
  alarm(60); /* ends the test where it would wait for ever */
  CHECK_EQUAL(limit_now(p), 0);
  CHECK(adm_now_ns() - began_ns >= 900000000);
  CHECK_EQUAL(limit_now(p), 0);
  alarm(0);
  CHECK_TEXT(short_names(told), ": no interpreter was free for 1 s (of 1): a decision takes too long, others go on as configured\n"); /* once */
  pthread_mutex_unlock(&gate);
  pthread_join(thread, NULL);
  CHECK_EQUAL(limit_now(p), 1);
  policy_free(p);
}

static void make_table(void) {
  adm_shape shape = {64, 32, 16};
  table = adm_table_make(mmap(NULL, adm_table_bytes(shape), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), shape, 7);
  adm_settings settings = adm_settings_default(ADM_FOR_GROUP);
  settings.limit = 4;
  int heavy = adm_group_add(table, "heavy");
  adm_group_apply(adm_group_at(table, heavy), &settings);
  adm_group_at(table, ADM_GROUP_MEMORY)->limit = 800 * 16;
  static adm_answer first, second; /* two requests in work, 200M together */
  adm_owner owner = adm_owner_join(table, (adm_process){(uint32_t)getpid(), 1});
  adm_layer layers[2] = {{heavy, 1, "/a.php", ADM_UNLIMITED, 1}, {ADM_GROUP_MEMORY, 0, "memory", ADM_UNLIMITED, 100 * 16}};
  adm_request two = {.layer = layers, .layers = 2};
  adm_admit(table, owner, &two, &first);
  layers[0].key = 2;
  adm_admit(table, owner, &two, &second);
}

int main(void) {
  if (!policy_available()) {
    return nothing_tried("test_policy", "built without Lua");
  }
  static char place[4096];
  if (!place_make(place, sizeof place)) {
    return nothing_tried("test_policy", "no place that others cannot write to");
  }
  snprintf(path, sizeof path, "%s/policy.lua", place);
  kept = shared_text_make();
  make_table();
  answers();
  mistakes();
  sights();
  bounds();
  refused();
  changes();
  versions_of_others();
  nothing_good();
  leak(kept);
  leak(NULL);
  one_oversized_request();
  threads();
  busy();
  unlink(path);
  CHECK_EQUAL(rmdir(place), 0);
  return checked("test_policy");
}
