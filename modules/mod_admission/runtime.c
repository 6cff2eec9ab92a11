/*
 * runtime.c: from a configuration to a table in force, over restarts; joining it in a child; giving back for the dead.
 * What it deliberately does not do: watch anything while the server runs, which is the controller's business.
 */
#include "runtime.h"

#include "audience.h"
#include "controller.h"
#include "pages.h"
#include "process.h"
#include "streams.h"

#include <apr_strings.h>
#include <http_core.h>
#include <http_log.h>
#include <mpm_common.h>
#include <pthread.h>
#include <scoreboard.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unixd.h>

APLOG_USE_MODULE(admission);

#define KEPT "mod_admission: shared memory, 1" /* another number for another struct kept_memory */
#define KEPT_EARLIER "mod_admission: earlier memory, 1"
#define KEPT_HOLD "mod_admission: hold files, 1"
#define CELLS_MIN 16
#define CELLS_FOR_A_WORKER 4
#define CELLS_MAX 4096
#define WAITERS_MIN 1024 /* so that few reloads need a larger table: only what is used takes memory */
#define HEAL_NS 100000000
#define HEAL_WAITING_NS 1000000000
#define POLICY_STATES 8 /* Lua interpreters of a child with threads */

runtime running = {.owner = ADM_NOBODY};

/* Kept on the process's own pool, which no restart clears. */
typedef struct kept_memory {
  shared_memory shared;
  uint64_t started_ms; /* when its table was made */
} kept_memory;

/* What that memory replaced, the newest first. */
typedef struct kept_earlier {
  shared_memory memory[EARLIER_TABLES];
} kept_earlier;

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

static uint32_t between(uint32_t value, uint32_t low, uint32_t high) { return value < low ? low : value > high ? high : value; }

static uint32_t asked(int query) {
  int value = 0;
  return ap_mpm_query(query, &value) == APR_SUCCESS && value > 0 ? (uint32_t)value : 1;
}

bool runtime_is_threaded(void) {
  int threaded = 0;
  return ap_mpm_query(AP_MPMQ_IS_THREADED, &threaded) == APR_SUCCESS && threaded;
}

/* How many requests can be in work, old generations included. HTTP/2 has workers of its own in each process, beside the MPM's: as many as
 * it says, and never less than the MPM's are counted, so that a change of H2MaxWorkers seldom needs a larger table. */
static uint32_t workers_at_most(server_rec *main_server) {
  uint64_t threads = asked(AP_MPMQ_HARD_LIMIT_THREADS), streams = 0;
  if (ap_find_linked_module("mod_http2.c")) {
    streams = streams_at_most(main_server);
    if (streams < threads) streams = threads;
  }
  uint64_t workers = asked(AP_MPMQ_HARD_LIMIT_DAEMONS) * (threads + streams);
  return workers < UINT32_MAX ? (uint32_t)workers : UINT32_MAX;
}

/* More permits than workers can be held: with hold=response by connections that event only writes to (two for each free worker, as
 * AsyncRequestWorkerFactor is by default) and by streams that nobody reads; by requests inside of others, for what they cost beyond them;
 * by programs that were left behind. Who finds no cell is let in, so there are some for those, too. */
static uint32_t cells_for(server_rec *main_server) {
  uint32_t workers = workers_at_most(main_server);
  return workers < CELLS_MAX ? workers * CELLS_FOR_A_WORKER : CELLS_MAX;
}

static adm_shape shape_for(const configuration *now, server_rec *main_server) {
  uint32_t queue = 0;
  for (int i = 0; i < now->groups->nelts; i++) {
    const adm_settings *settings = &APR_ARRAY_IDX(now->groups, i, group_rule *)->settings;
    if (settings->queue > queue) queue = settings->queue;
  }
  return (adm_shape){.entries = now->entries,
                     .cells = between(cells_for(main_server), CELLS_MIN, CELLS_MAX),
                     .waiters = between(queue, WAITERS_MIN, ADM_QUEUE_MAX)};
}

uint64_t runtime_workers(void) {
  int daemons = 0;
  bool known = ap_mpm_query(AP_MPMQ_MAX_DAEMONS, &daemons) == APR_SUCCESS && daemons > 0;
  return known ? (uint64_t)daemons * asked(AP_MPMQ_MAX_THREADS) : 0;
}

static uint32_t queue_workers(const configuration *now) {
  if (now->queue_percent == 0) return now->queue_workers;
  uint64_t share = runtime_workers() * now->queue_percent / 100;
  return share > 0 ? (uint32_t)share : 1;
}

bool runtime_check(apr_pool_t *pool, server_rec *main_server) {
  (void)pool;
  adm_shape room = shape_for(directives_now(), main_server);
  /* A limit above all that an entry can count is noted when it is put in force (find_group). Where the server can have more in work than
   * that, those that find no cell are let through: no limit above the cells is kept. */
  if (workers_at_most(main_server) <= room.cells) room.cells = ADM_UNLIMITED;
  return directives_check(main_server, &room);
}

/* Zeroed where there is none yet. */
static void *retained(const char *key, apr_size_t size) {
  void *kept = ap_retained_data_get(key);
  return kept ? kept : ap_retained_data_create(key, size);
}

/* ---- the memory -------------------------------------------------------------------------------------------------- */

static bool same_shape(adm_shape a, adm_shape b) { return a.entries == b.entries && a.cells == b.cells && a.waiters == b.waiters; }

/* A table only grows: what replaces one has room for all that it had room for. */
static adm_shape at_least(adm_shape wanted, adm_shape has) {
  return (adm_shape){between(wanted.entries, has.entries, UINT32_MAX), between(wanted.cells, has.cells, UINT32_MAX),
                     between(wanted.waiters, has.waiters, UINT32_MAX)};
}

static apr_status_t forget_table(void *table) {
  if (running.table == table) running.table = NULL;
  for (int i = 0; i < EARLIER_TABLES; i++)
    if (running.earlier[i] == table) running.earlier[i] = NULL; /* the others go, too */
  adm_table_forget(table);
  return APR_SUCCESS;
}

/* A view of the table lives as long as its configuration; the memory behind it does not end with it. */
static adm_table *in_view(apr_pool_t *pool, adm_table *table) {
  if (table) apr_pool_cleanup_register(pool, table, forget_table, apr_pool_cleanup_null);
  return table;
}

/* Memory that does not fit any more stays mapped: children of earlier generations still count in it, and what they leave behind when they
 * are killed is theirs who wait there. */
static void keep_earlier(const shared_memory *replaced) {
  kept_earlier *earlier = retained(KEPT_EARLIER, sizeof *earlier);
  shared_drop(&earlier->memory[EARLIER_TABLES - 1]); /* the oldest is looked at no more */
  memmove(earlier->memory + 1, earlier->memory, (EARLIER_TABLES - 1) * sizeof *earlier->memory);
  earlier->memory[0] = *replaced;
}

/* Costs that were learned and limits that were adapted, of groups that there are still: without them a budget would be open until the
 * controller has learned anew. */
static void take_over_learned(adm_table *table, adm_table *known) {
  for (int i = 0; i < directives_now()->groups->nelts; i++) {
    const char *name = APR_ARRAY_IDX(directives_now()->groups, i, group_rule *)->name;
    const adm_group *before = adm_group_at(known, adm_group_find(known, name));
    adm_group *group = before ? adm_group_at(table, adm_group_add(table, name)) : NULL;
    if (group) adm_group_learned(group, before);
  }
}

/* `known`: what it replaces, whose keys it has, so that what is held there can be counted here; or NULL. */
static adm_table *new_table(kept_memory *kept, adm_shape shape, adm_table *known, server_rec *main_server) {
  shared_memory before = kept->shared;
  shared_head *head = shared_known(&before);
  uint64_t seed;
  if (known) seed = adm_table_seed(known);
  else ap_random_insecure_bytes(&seed, sizeof seed);
  adm_table *table = shared_make(&kept->shared, shape, seed);
  if (!table) return NULL;
  kept->started_ms = (uint64_t)apr_time_as_msec(apr_time_now());
  if (shared_has_table(&before))
    ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, main_server,
                 "ADM0011: %s",
                 known ? "a larger table is needed: its counts begin at 0, permits that are held stay"
                       : "the table was made by another version of this module: requests of the earlier configuration are not counted "
                         "until they end");
  if (head && known) memcpy(&kept->shared.head->control, &head->control, sizeof head->control);
  if (known) take_over_learned(table, known);
  if (head) kept->shared.head->let_through.requests = head->let_through.requests;
  shared_drop_head(&before);
  if (known) keep_earlier(&before);
  return table;
}

/* Those in which somebody is left; the others are done with. */
static void find_earlier(apr_pool_t *pool) {
  kept_earlier *earlier = retained(KEPT_EARLIER, sizeof *earlier);
  int count = 0;
  for (int i = 0; i < EARLIER_TABLES; i++) {
    shared_memory memory = earlier->memory[i];
    earlier->memory[i] = (shared_memory){NULL, 0};
    adm_table *table = in_view(pool, shared_table(&memory));
    if (!table) continue;
    adm_sweep_dead(table, 0, process_dead, hold_lingers, &running.hold_asks);
    adm_settle(table, hold_lingers, &running.hold_asks);
    if (adm_table_in_use(table)) {
      earlier->memory[count] = memory;
      running.earlier[count++] = table;
    } else {
      shared_drop(&memory);
    }
  }
}

static adm_table *find_or_make_table(apr_pool_t *pool, kept_memory *kept, adm_shape shape, server_rec *main_server) {
  adm_table *known = in_view(pool, shared_table(&kept->shared));
  if (known) shape = at_least(shape, adm_table_shape(known));
  if (known && same_shape(shape, adm_table_shape(known))) return known;
  adm_table *made = in_view(pool, new_table(kept, shape, known, main_server));
  if (made) return made;
  ap_log_error(APLOG_MARK, APLOG_ERR, errno, main_server,
               "ADM0010: no shared memory (%" APR_SIZE_T_FMT " bytes): %s; AdmissionTableSize makes it smaller%s", shared_bytes(shape),
               known ? "the smaller table of before stays in use" : "nothing is limited", known ? " when the server is started anew" : "");
  return known;
}

/* Where there is no table requests are let through, and counted: by all processes together if there is memory for so much. */
static let_through *count_without_table(kept_memory *kept) {
  static let_through own; /* each process's */
  if (!shared_known(&kept->shared) || shared_has_table(&kept->shared)) shared_make_head(&kept->shared);
  return shared_known(&kept->shared) ? &kept->shared.head->let_through : &own;
}

/* ---- groups in force --------------------------------------------------------------------------------------------- */

static void find_group(server_rec *main_server, group_rule *rule) {
  rule->index = adm_group_add(running.table, rule->name);
  if (rule->index < 0) {
    ap_log_error(APLOG_MARK, APLOG_ERR, 0, main_server,
                 "ADM0012: AdmissionGroup %s: no room for one more group beside those of earlier configurations that requests are in: "
                 "it limits nothing until another reload finds room, or the server is stopped and started", rule->name);
    return;
  }
  uint32_t cells = adm_table_shape(running.table).cells;
  if (rule->settings.limit != ADM_UNLIMITED && rule->settings.limit > cells)
    ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, main_server,
                 "ADM0013: AdmissionGroup %s: limit=%u is above the %u permits that an entry can count here: who comes when these "
                 "are held is let in", rule->name,
                 rule->settings.limit, cells);
  rule->group = adm_group_at(running.table, rule->index);
}

/* Groups that the configuration does not name any more stop limiting; requests that hold their permits give them back as ever. */
static void others_off(adm_table *table) {
  for (int i = ADM_GROUP_FIRST; i < ADM_GROUPS; i++) {
    adm_group *group = adm_group_at(table, i);
    if (!group->name[0]) continue;
    if (directives_group(group->name)) adm_group_keep(group);
    else adm_group_retire(group);
  }
}

/* Nothing is limited any more, and nobody is there who would see to those that wait. */
static void let_all_go(adm_table *table) {
  if (!table) return;
  for (int i = 0; i < ADM_GROUPS; i++) adm_group_retire(adm_group_at(table, i));
  adm_wake_all(table);
}

/* AdmissionEngine as one word, where it is the same in all virtual hosts. */
static const char *engine_of(const server_rec *main_server) {
  static const char *const names[] = {[ENGINE_UNSET] = "off", [ENGINE_OFF] = "off", [ENGINE_OBSERVE] = "observe", [ENGINE_ON] = "on"};
  const char *all = NULL;
  for (const server_rec *server = main_server; server; server = server->next) {
    const host_rules *host = ap_get_module_config(server->module_config, &admission_module);
    if (all && strcmp(all, names[host->engine])) return "mixed";
    all = names[host->engine];
  }
  return all;
}

/* The configuration, and over it what the control file said last: it may be a bad one now, and where it is good there is
 * no moment without it. The controller is not there yet to see to times of day. */
static void put_in_force(const controller_plan *plan) {
  adm_settings settings[ADM_GROUPS];
  adm_shape shape = adm_table_shape(plan->table);
  if (!plan->control_file) adm_control_keep(plan->kept, "", 0);
  adm_control_recall(plan->kept, plan->rules, plan->rule_count, &shape, settings);
  for (unsigned i = 0; i < plan->rule_count; i++)
    rounds_apply(adm_group_at(plan->table, plan->groups[i]), &settings[i], (uint64_t)apr_time_now() * 1000);
}

static void start_controller(apr_pool_t *pool, server_rec *main_server, const kept_memory *kept) {
  const configuration *now = directives_now();
  unsigned count = (unsigned)now->groups->nelts;
  adm_rule *rules = apr_pcalloc(pool, (count + 2) * sizeof *rules);
  int *groups = apr_pcalloc(pool, (count + 2) * sizeof *groups);
  unsigned used = 0;
  for (unsigned i = 0; i < count; i++) {
    const group_rule *rule = APR_ARRAY_IDX(now->groups, (int)i, group_rule *);
    if (rule->index < 0) continue;
    groups[used] = rule->index;
    rules[used++] = (adm_rule){rule->name, ADM_FOR_GROUP, rule->settings};
  }
  adm_settings workers = adm_settings_default(ADM_FOR_WAITING);
  workers.limit = queue_workers(now);
  groups[used] = ADM_GROUP_MEMORY;
  rules[used++] = (adm_rule){"memory", ADM_FOR_MEMORY, now->budget};
  groups[used] = ADM_GROUP_WAITING;
  rules[used++] = (adm_rule){"queue-workers", ADM_FOR_WAITING, workers};
  shared_head *head = kept->shared.head;
  controller_plan plan = {.table = running.table, .earlier = running.earlier, .rules = rules, .groups = groups, .rule_count = used,
                          .workers = runtime_workers(),
                          .control_file = now->control_file, .engine = engine_of(main_server), .runtime_dir = now->runtime_dir,
                          .board = &head->board, .kept = &head->control, .healed_ns = &head->healed_ns, .without_table = &head->let_through.requests,
                          .started_ms = kept->started_ms, .root = "/", .alone = !runtime_is_threaded(),
                          .max_hold_ms = now->max_hold_ms, .dead = process_dead, .watches = true, .lingers = hold_lingers, .lingers_world = &running.hold_asks};
  put_in_force(&plan);
  apr_status_t status = controller_start(pool, main_server, &plan);
  if (status != APR_SUCCESS)
    ap_log_error(APLOG_MARK, APLOG_ERR, status, main_server, "ADM0014: the controller was not started: settings stay as configured");
  pages_shown shown = {.table = running.table, .board = &head->board, .control_file = now->control_file, .engine = plan.engine,
                       .started_ms = kept->started_ms, .without_table = plan.without_table};
  pages_show(&shown);
}

/* ---- the runtime directory --------------------------------------------------------------------------------------- */

/* The directory belongs to the user that the server runs as: its children write there. */
static bool make_runtime_dir(apr_pool_t *pool, server_rec *main_server) {
  configuration *now = (configuration *)(uintptr_t)directives_now();
  if (!now->runtime_dir) now->runtime_dir = ap_runtime_dir_relative(pool, ADMISSION_NAME);
  bool root = geteuid() == 0;
  unsigned uid = root ? ap_unixd_config.user_id : (unsigned)-1, gid = root ? ap_unixd_config.group_id : (unsigned)-1;
  struct stat about;
  /* Only a directory that was made here is given away: one that is there may be another's, /run/apache2 with the pid file. */
  bool made = mkdir(now->runtime_dir, 0755) == 0, there = made || errno == EEXIST;
  if (made && root && lchown(now->runtime_dir, uid, gid) < 0) there = false;
  if (!there || lstat(now->runtime_dir, &about) < 0 || !S_ISDIR(about.st_mode) || about.st_uid != (root ? uid : geteuid()) ||
      (about.st_mode & (S_IWGRP | S_IWOTH))) {
    ap_log_error(APLOG_MARK, APLOG_ERR, errno, main_server,
                 "ADM0015: AdmissionRuntimeDir %s: cannot be made, or is no directory of the server's user: no status.json, no "
                 "AdmissionHoldFd", now->runtime_dir);
    now->runtime_dir = NULL;
    return false;
  }
  if (!now->holds_files) return true;
  running.hold_path = apr_pstrcat(pool, now->runtime_dir, "/hold", NULL);
  int asks = hold_make(running.hold_path, uid, gid);
  if (asks >= 0) {
    hold_files *files = retained(KEPT_HOLD, sizeof *files);
    hold_add(files, asks);
    running.hold_asks = *files;
  } else {
    ap_log_error(APLOG_MARK, APLOG_ERR, errno, main_server, "ADM0016: AdmissionHoldFd: %s cannot be made", running.hold_path);
    running.hold_path = NULL;
  }
  return true;
}

/* ---- virtual hosts ----------------------------------------------------------------------------------------------- */

/* Each server_rec gets rules of its own, with a name that does not depend on where its section stands: httpd lets virtual
 * hosts without directives of ours share those of the main server. */
static void name_hosts(apr_pool_t *pool, server_rec *main_server) {
  apr_hash_t *seen = apr_hash_make(pool);
  for (server_rec *server = main_server; server; server = server->next) {
    host_rules *host = apr_pmemdup(pool, ap_get_module_config(server->module_config, &admission_module), sizeof *host);
    unsigned port = server->addrs && server->addrs->host_port ? server->addrs->host_port : server->port;
    const char *name = server->server_hostname ? server->server_hostname : "";
    char *label = port ? apr_psprintf(pool, "%s:%u", name, port) : apr_pstrdup(pool, name);
    unsigned *same = apr_hash_get(seen, label, APR_HASH_KEY_STRING);
    if (same) {
      label = apr_psprintf(pool, "%s#%u", label, ++*same);
    } else {
      unsigned *first = apr_pcalloc(pool, sizeof *first);
      *first = 1;
      apr_hash_set(seen, label, APR_HASH_KEY_STRING, first);
    }
    host->label = label;
    ap_set_module_config(server->module_config, &admission_module, host);
  }
}

/* ---- hooks ------------------------------------------------------------------------------------------------------- */

int runtime_post_config(apr_pool_t *pool, apr_pool_t *log_pool, apr_pool_t *temporary, server_rec *main_server) {
  (void)log_pool;
  (void)temporary;
  if (ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG) return OK; /* httpd reads its configuration twice */
  const configuration *now = directives_now();
  running = (runtime){.owner = ADM_NOBODY}; /* built into httpd, it still has what was before the restart */
  /* Not closed with a configuration: a program that was started under it keeps its permit, whatever the next one says of hold files. */
  running.hold_asks = *(hold_files *)retained(KEPT_HOLD, sizeof running.hold_asks);
  name_hosts(pool, main_server);
  kept_memory *kept = retained(KEPT, sizeof *kept);
  if (now->groups->nelts == 0) { /* loaded, not used: no memory, no process */
    let_all_go(in_view(pool, shared_table(&kept->shared)));
    find_earlier(pool);
    for (int i = 0; running.earlier[i]; i++) let_all_go(running.earlier[i]);
    pages_show(&(pages_shown){.engine = engine_of(main_server), .idle = true});
    return OK;
  }
  const shared_head *before = kept->shared.head;
  running.table = find_or_make_table(pool, kept, shape_for(now, main_server), main_server);
  if (!running.table) { /* fails open */
    running.without_table = count_without_table(kept);
    pages_show(&(pages_shown){.engine = engine_of(main_server), .without_table = &running.without_table->requests});
    return OK;
  }
  running.budget = adm_group_at(running.table, ADM_GROUP_MEMORY);
  running.stamps = kept->shared.head->stamp;
  running.healed_ns = &kept->shared.head->healed_ns;
  running.programs_only = true;
  /* Children of a restart that was not graceful; and what groups have nothing to do any more, so that there is room for others. */
  adm_sweep_dead(running.table, 0, process_dead, hold_lingers, &running.hold_asks);
  adm_settle(running.table, hold_lingers, &running.hold_asks);
  others_off(running.table);
  for (int i = 0; i < now->groups->nelts; i++) {
    group_rule *rule = APR_ARRAY_IDX(now->groups, i, group_rule *);
    find_group(main_server, rule);
    running.programs_only &= rule->handlers == HANDLERS_DYNAMIC;
    running.holds_responses |= rule->settings.hold != 0;
  }
  running.has_php = ap_find_linked_module("mod_php.c") || ap_find_linked_module("mod_php7.c") || ap_find_linked_module("mod_php5.c");
  running.audience = audience_listens();
  make_runtime_dir(pool, main_server);
  find_earlier(pool);
  if (kept->shared.head != before) adm_carry_first(running.table, running.earlier); /* nobody else can be in a new one yet */
  start_controller(pool, main_server, kept);
  return OK;
}

static bool is_of_this_generation(void) {
  int mine = 0;
  return ap_mpm_query(AP_MPMQ_GENERATION, &mine) != APR_SUCCESS || !ap_scoreboard_image ||
         ap_scoreboard_image->global->running_generation == mine;
}

static bool may_linger(void *world, uint64_t byte) {
  (void)world;
  (void)byte;
  return true;
}

/* What a child takes back. After a reload there may be a hold file that it does not know: what it cannot ask about is left to those that
 * can. Whether there is room now. */
static bool take_back_in_child(void) {
  bool can_ask = is_of_this_generation();
  bool room = adm_sweep_dead(running.table, 0, process_dead, can_ask ? hold_lingers : may_linger, &running.hold_asks).room;
  if (can_ask && running.hold_asks.count > 0) room |= adm_settle(running.table, hold_lingers, &running.hold_asks) > 0;
  return room;
}

/* What it takes is not the child's, which may live long after a copy was killed: it joins when it has a request of its own. */
static void in_forked_copy(void) {
  running.copies++;
  running.owner = ADM_NOBODY;
}

static void warn_no_place(server_rec *server) {
  ap_log_error(APLOG_MARK, APLOG_WARNING, 0, server, "ADM0017: no place for one more process: this one limits nothing");
}

void runtime_join_copy(server_rec *server) {
  static unsigned joined; /* whether there was a place or not: once in each copy */
  if (joined == running.copies) return;
  joined = running.copies;
  adm_process process = process_of((uint32_t)getpid());
  running.owner = adm_owner_join(running.table, process);
  if (running.owner != ADM_NOBODY) return;
  /* Copies come and go quickly, and nobody may have taken note of those that are gone. */
  take_back_in_child();
  running.owner = adm_owner_join(running.table, process);
  if (running.owner == ADM_NOBODY) warn_no_place(server);
}

void runtime_child_init(apr_pool_t *pool, server_rec *main_server) {
  (void)pool;
  if (!running.table) return;
  running.owner = adm_owner_join(running.table, process_of((uint32_t)getpid()));
  if (running.owner == ADM_NOBODY) warn_no_place(main_server);
  pthread_atfork(NULL, NULL, in_forked_copy);
  streams_begin(main_server);
  apr_array_header_t *policies = directives_now()->policies;
  for (int i = 0; i < policies->nelts; i++) {
    policy_file *file = APR_ARRAY_IDX(policies, i, policy_file *);
    file->compiled = policy_new(file->path, file->owner, file->kept, runtime_is_threaded() ? POLICY_STATES : 1);
  }
}

static unsigned give_back_of(adm_table *table, pid_t pid) {
  return adm_sweep_dead(table, (uint32_t)pid, process_dead, hold_lingers, &running.hold_asks).permits;
}

void runtime_child_status(server_rec *main_server, pid_t pid, ap_generation_t generation, int slot, mpm_child_status state) {
  (void)generation;
  (void)slot;
  if (state != MPM_CHILD_EXITED || !running.table) return;
  unsigned back = give_back_of(running.table, pid);
  for (int i = 0; running.earlier[i]; i++) back += give_back_of(running.earlier[i], pid);
  if (back > 0)
    ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, main_server, "ADM0018: child %" APR_PID_T_FMT " ended with %u permits: given back", pid, back);
}

/* The parent hears of a dead child within a second, the controller sees it in a quarter of one, and also a program that has ended; a busy
 * child may not want to turn anybody away until then for the sake of the dead, nor for ever where the controller is not at work. */
bool runtime_heal(bool waits) {
  uint64_t now = adm_now_ns(), last = *running.healed_ns;
  if (now < last || now - last < (waits ? HEAL_WAITING_NS : HEAL_NS) || !atomic_compare_exchange_strong(running.healed_ns, &last, now)) return false;
  return take_back_in_child();
}
