/*
 * places.c: configurations as wholes: created, merged from wide to narrow, and checked when all has been read.
 *
 * Merging is where "a .htaccess file can tighten, never raise" is kept: its groups come on top of those above, and of
 * limits for one group the lowest along the whole path counts. It parses nothing (directives.c).
 */
#include "places.h"

#include "runtime.h"

#include <apr_strings.h>
#include <http_core.h>
#include <http_log.h>
#include <unixd.h>

APLOG_USE_MODULE(admission);

#define DEFAULT_ENTRIES 1024
#define DEFAULT_QUEUE_PERCENT 25

static configuration *current; /* made anew by pre_config; only read while requests are served */

configuration *configuring(void) { return current; }
const configuration *directives_now(void) { return current; }

void directives_begin(apr_pool_t *pool) {
  current = apr_pcalloc(pool, sizeof *current);
  current->groups = apr_array_make(pool, 8, sizeof(group_rule *));
  current->named = apr_array_make(pool, 8, sizeof(group_use *));
  current->policies = apr_array_make(pool, 1, sizeof(policy_file *));
  current->budget = adm_settings_default(ADM_FOR_MEMORY);
  current->queue_percent = DEFAULT_QUEUE_PERCENT;
  current->entries = DEFAULT_ENTRIES;
}

group_rule *directives_group(const char *name) {
  for (int i = 0; i < current->groups->nelts; i++) {
    group_rule *group = APR_ARRAY_IDX(current->groups, i, group_rule *);
    if (!strcmp(group->name, name)) return group;
  }
  return NULL;
}

/* ---- virtual hosts ---- */

void *directives_host_create(apr_pool_t *pool, server_rec *server) {
  (void)server;
  return apr_pcalloc(pool, sizeof(host_rules));
}

void *directives_host_merge(apr_pool_t *pool, void *above, void *below) {
  const host_rules *wide = above, *narrow = below;
  host_rules *merged = apr_pmemdup(pool, narrow, sizeof *narrow);
  if (merged->engine == ENGINE_UNSET) merged->engine = wide->engine;
  if (merged->log == LOG_UNSET) merged->log = wide->log;
  return merged;
}

/* ---- places ---- */

void *directives_place_create(apr_pool_t *pool, char *path) {
  (void)path;
  place_rules *place = apr_pcalloc(pool, sizeof *place);
  place->hold_file = -1;
  return place;
}

/* The groups of both, each once: a .htaccess file may name what is already in force. */
static apr_array_header_t *united(apr_pool_t *pool, const apr_array_header_t *wide, const apr_array_header_t *narrow) {
  apr_array_header_t *both = apr_array_copy(pool, wide);
  for (int i = 0; i < narrow->nelts; i++) {
    group_use *use = APR_ARRAY_IDX(narrow, i, group_use *);
    bool known = false;
    for (int k = 0; k < both->nelts && !known; k++) known = !strcmp(APR_ARRAY_IDX(both, k, group_use *)->name, use->name);
    if (!known) APR_ARRAY_PUSH(both, group_use *) = use;
  }
  return both;
}

static apr_array_header_t *appended(apr_pool_t *pool, apr_array_header_t *first, apr_array_header_t *then) {
  return first && then ? apr_array_append(pool, first, then) : first ? first : then;
}

void *directives_place_merge(apr_pool_t *pool, void *above, void *below) {
  const place_rules *wide = above, *narrow = below;
  place_rules *merged = apr_pmemdup(pool, narrow, sizeof *narrow);
  if (!narrow->uses) {
    merged->uses = wide->uses;
    merged->adds = wide->adds;
  } else if (narrow->adds && wide->uses) {
    merged->uses = united(pool, wide->uses, narrow->uses);
    merged->adds = wide->adds;
  }
  merged->limits = appended(pool, narrow->limits, wide->limits);
  merged->priorities = appended(pool, narrow->priorities, wide->priorities);
  if (merged->hold_file < 0) merged->hold_file = wide->hold_file;
  if (!merged->policy) merged->policy = wide->policy;
  return merged;
}

/* ---- checks over several directives ---- */

static bool find_names(server_rec *main_server) {
  bool right = true;
  for (int i = 0; i < current->named->nelts; i++) {
    group_use *use = APR_ARRAY_IDX(current->named, i, group_use *);
    use->group = directives_group(use->name);
    if (use->group) continue;
    right = false;
    ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_EMERG, 0, main_server,
                 "ADM0001: %s: %s %s: there is no AdmissionGroup of this name", use->stands,
                 use->at_most == ADM_UNLIMITED ? "AdmissionUse" : "AdmissionLimit", use->name);
  }
  return right;
}

static bool fit_groups(server_rec *main_server, const adm_shape *room) {
  bool right = true;
  for (int i = 0; i < current->groups->nelts; i++) {
    group_rule *group = APR_ARRAY_IDX(current->groups, i, group_rule *);
    char wrong[ADM_ERROR];
    if (adm_settings_check(&group->settings, ADM_FOR_GROUP, room, NULL, wrong) && adm_cost_check(&group->settings, current->budget.limit, wrong)) continue;
    right = false;
    ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_EMERG, 0, main_server, "ADM0002: %s: AdmissionGroup %s: %s",
                 group->stands, group->name, wrong);
  }
  return right;
}

static bool engine_runs_somewhere(const server_rec *server) {
  for (; server; server = server->next) {
    const host_rules *host = ap_get_module_config(server->module_config, &admission_module);
    if (host->engine > ENGINE_OFF) return true;
  }
  return false;
}

/* A share leaves workers for what is in no group; a number need not. */
static void warn_of_waiting(server_rec *main_server) {
  if (current->groups->nelts == 0 || current->queue_percent > 0) return;
  uint64_t workers = runtime_workers();
  if (workers > 0 && current->queue_workers >= workers)
    ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_WARNING, 0, main_server,
                 "ADM0008: AdmissionQueueWorkers %u: requests that wait can take all %" APR_UINT64_T_FMT " workers of the server, "
                 "and files wait too", current->queue_workers, workers);
}

/* Whether the configuration says anywhere how many requests of the group, or how much memory for them, is enough. */
static bool is_limited(const group_rule *group) {
  const adm_settings *settings = &group->settings;
  if (settings->limit != ADM_UNLIMITED || settings->adaptive || settings->windows > 0 || current->policies->nelts > 0) return true;
  if (current->budget.limit != ADM_UNLIMITED && (settings->cost > 0 || settings->learn)) return true;
  for (int i = 0; i < current->named->nelts; i++) {
    const group_use *use = APR_ARRAY_IDX(current->named, i, group_use *);
    if (use->group == group && use->at_most != ADM_UNLIMITED) return true;
  }
  return false;
}

/* What works, but hardly as it was meant. */
static void warn(server_rec *main_server) {
  if (current->named->nelts > 0 && !engine_runs_somewhere(main_server))
    ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_WARNING, 0, main_server,
                 "ADM0003: groups are in use, but nothing is limited: AdmissionEngine is off everywhere");
  if (current->holds_files && ap_find_linked_module("mod_cgid.c"))
    ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_WARNING, 0, main_server,
                 "ADM0004: AdmissionHoldFd: programs started by mod_cgid are not children of the request's process and do "
                 "not keep its permit; it works with mod_cgi and with programs that PHP starts");
  if (current->holds_files && ap_find_linked_module("mpm_itk.c"))
    ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_WARNING, 0, main_server,
                 "ADM0005: AdmissionHoldFd: where mpm-itk has another user for a request (AssignUserID) its process may not open the hold "
                 "file, and its programs do not keep its permit");
  if (current->holds_files && runtime_is_threaded())
    ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_WARNING, 0, main_server,
                 "ADM0007: AdmissionHoldFd: in a process with threads a program keeps the permits of all requests that have one "
                 "when it is started, not only its own; it is exact with prefork");
  if (ap_unixd_config.chroot_dir && current->groups->nelts > 0)
    ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_WARNING, 0, main_server,
                 "ADM0019: ChrootDir %s: unless /proc and the files that directives of this module name are laid out below it, these do nothing: the "
                 "control file, status.json, changes of a policy, AdmissionHoldFd, cost=learn, adaptive limits", ap_unixd_config.chroot_dir);
  bool costs = false;
  for (int i = 0; i < current->groups->nelts; i++) {
    const group_rule *group = APR_ARRAY_IDX(current->groups, i, group_rule *);
    const adm_settings *settings = &group->settings;
    bool has_cost = settings->cost > 0 || settings->learn;
    costs |= has_cost;
    /* A control file may say the rest; what is learned is worth looking at by itself. */
    if (current->control_file) continue;
    if (settings->cost > 0 && !settings->learn && current->budget.limit == ADM_UNLIMITED && !settings->adaptive)
      ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_WARNING, 0, main_server,
                   "ADM0026: AdmissionGroup %s: its cost= has no effect: there is no AdmissionBudget, and its limit is not adaptive", group->name);
    if (settings->queue > 0 && current->queue_workers == 0 && current->queue_percent == 0)
      ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_WARNING, 0, main_server,
                   "ADM0027: AdmissionGroup %s: its queue= has no effect: with AdmissionQueueWorkers 0 no worker may wait", group->name);
    if (settings->queue > 0 && !is_limited(group))
      ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_WARNING, 0, main_server,
                   "ADM0028: AdmissionGroup %s: its queue= has no effect: nothing limits it (limit=, or AdmissionBudget with a cost=)", group->name);
  }
  if (current->budget.limit != ADM_UNLIMITED && !costs)
    ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_WARNING, 0, main_server,
                 "ADM0006: AdmissionBudget has no effect: no AdmissionGroup has a cost=");
  warn_of_waiting(main_server);
}

bool directives_check(server_rec *main_server, const adm_shape *room) {
  bool found = find_names(main_server), fit = fit_groups(main_server, room);
  if (found && fit) warn(main_server);
  return found && fit;
}
