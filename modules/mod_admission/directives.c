/*
 * directives.c: the directives themselves: one setter each, in the order of the table at the end.
 *
 * A setter returns NULL or one line that says what is wrong and what to do; httpd adds the file and the line. It does
 * not decide anything about requests, and it does not touch shared memory. Creating, merging and cross checks are in
 * places.c.
 */
#include "directives.h"
#include "places.h"

#include <apr_strings.h>
#include <http_core.h>
#include <http_log.h>
#include <stdlib.h>
#include <unistd.h>

APLOG_USE_MODULE(admission);

#define KEPT_POLICIES "mod_admission: policies, 1" /* another number for another struct kept_policy or shared_text */

static const char *complain(cmd_parms *cmd, const char *about, const char *error) {
  return apr_pstrcat(cmd->pool, cmd->cmd->name, about && *about ? " " : "", about ? about : "", ": ", error, NULL);
}

static bool in_htaccess(cmd_parms *cmd) { return ap_check_cmd_context(cmd, NOT_IN_HTACCESS) != NULL; }

static const char *stands_at(cmd_parms *cmd) {
  return apr_psprintf(cmd->pool, "%s:%d", cmd->directive->filename, cmd->directive->line_num);
}

/* ---- the server ------------------------------------------------------------------------------------------------- */

static const char *set_engine(cmd_parms *cmd, void *unused, const char *word) {
  (void)unused;
  host_rules *host = ap_get_module_config(cmd->server->module_config, &admission_module);
  const char *error = ap_check_cmd_context(cmd, NOT_IN_DIR_CONTEXT);
  if (error) return error;
  if (!strcasecmp(word, "on")) host->engine = ENGINE_ON;
  else if (!strcasecmp(word, "off")) host->engine = ENGINE_OFF;
  else if (!strcasecmp(word, "observe")) host->engine = ENGINE_OBSERVE;
  else return complain(cmd, word, "must be on, off or observe");
  return NULL;
}

static const char *set_log(cmd_parms *cmd, void *unused, const char *word) {
  (void)unused;
  host_rules *host = ap_get_module_config(cmd->server->module_config, &admission_module);
  const char *error = ap_check_cmd_context(cmd, NOT_IN_DIR_CONTEXT);
  if (error) return error;
  if (!strcasecmp(word, "default")) host->log = LOG_DEFAULT;
  else if (!strcasecmp(word, "compat")) host->log = LOG_COMPAT;
  else if (!strcasecmp(word, "off")) host->log = LOG_OFF;
  else return complain(cmd, word, "must be default, compat or off");
  return NULL;
}

/* handler=dynamic|static|any|NAME,NAME */
static void choose_handlers(group_rule *group, apr_pool_t *pool, const char *text) {
  if (!strcasecmp(text, "dynamic")) group->handlers = HANDLERS_DYNAMIC;
  else if (!strcasecmp(text, "static")) group->handlers = HANDLERS_STATIC;
  else if (!strcasecmp(text, "any")) group->handlers = HANDLERS_ANY;
  else {
    apr_array_header_t *names = apr_array_make(pool, 4, sizeof(char *));
    char *last, *name = apr_strtok(apr_pstrdup(pool, text), ",", &last);
    for (; name; name = apr_strtok(NULL, ",", &last)) APR_ARRAY_PUSH(names, const char *) = name;
    APR_ARRAY_PUSH(names, const char *) = NULL;
    group->handlers = HANDLERS_NAMED;
    group->handler_names = (const char *const *)names->elts;
  }
}

static const char *set_group(cmd_parms *cmd, void *unused, int count, char *const words[]) {
  (void)unused;
  char wrong[ADM_ERROR];
  const char *error = ap_check_cmd_context(cmd, GLOBAL_ONLY);
  if (error) return error;
  if (count < 1) return complain(cmd, NULL, "takes a name and settings, as in: AdmissionGroup php limit=4 queue=20");
  const char *name = words[0];
  if (!adm_name_check(name, wrong)) return complain(cmd, name, wrong);
  const group_rule *same = directives_group(name);
  if (same) return complain(cmd, name, apr_pstrcat(cmd->pool, "there is such a group already, at ", same->stands, NULL));
  if (directives_now()->groups->nelts >= ADM_GROUPS - ADM_GROUP_FIRST)
    return complain(cmd, name, apr_psprintf(cmd->pool, "there is room for %d groups", ADM_GROUPS - ADM_GROUP_FIRST));

  group_rule *group = apr_pcalloc(cmd->pool, sizeof *group);
  group->name = apr_pstrdup(cmd->pool, name);
  group->settings = adm_settings_default(ADM_FOR_GROUP);
  group->stands = stands_at(cmd);
  group->place = (unsigned)directives_now()->groups->nelts;
  group->index = -1;
  adm_texts texts = {0};
  for (int i = 1; i < count; i++) {
    const char *word = apr_pstrdup(cmd->pool, words[i]); /* the texts point into it */
    if (!adm_settings_word(&group->settings, &texts, ADM_FOR_GROUP, ADM_CONFIGURED, word, wrong))
      return complain(cmd, name, wrong);
  }
  if (!adm_settings_check(&group->settings, ADM_FOR_GROUP, NULL, NULL, wrong)) return complain(cmd, name, wrong);
  choose_handlers(group, cmd->pool, texts.handlers ? texts.handlers : "dynamic");
  if (texts.expr) {
    group->expr = ap_expr_parse_cmd(cmd, texts.expr, AP_EXPR_FLAG_STRING_RESULT | AP_EXPR_FLAG_DONT_VARY, &error, NULL);
    if (error) return complain(cmd, name, apr_pstrcat(cmd->pool, "key=expr: ", error, NULL));
  }
  APR_ARRAY_PUSH(directives_now()->groups, group_rule *) = group;
  return NULL;
}

static const char *set_budget(cmd_parms *cmd, void *unused, const char *what, const char *size, const char *order) {
  (void)unused;
  const char *error = ap_check_cmd_context(cmd, GLOBAL_ONLY);
  if (error) return error;
  if (strcasecmp(what, "memory")) return complain(cmd, what, "the only budget is of memory: AdmissionBudget memory 800M");
  adm_settings *budget = &configuring()->budget;
  *budget = adm_settings_default(ADM_FOR_MEMORY); /* of two such lines the last one counts, as a whole */
  if (!adm_size_read(size, &budget->limit) || budget->limit == 0) return complain(cmd, size, "must be a size below 1T, such as 800M or 2G");
  char wrong[ADM_ERROR];
  if (!order) return NULL;
  if (strncmp(order, "order=", 6) != 0) return complain(cmd, order, "what may follow the size is order=fifo, lifo or adaptive");
  return adm_settings_word(budget, NULL, ADM_FOR_MEMORY, ADM_CONFIGURED, order, wrong) ? NULL : complain(cmd, what, wrong);
}

static const char *set_queue_workers(cmd_parms *cmd, void *unused, const char *word) {
  (void)unused;
  const char *error = ap_check_cmd_context(cmd, GLOBAL_ONLY);
  if (error) return error;
  if (adm_workers_read(word, &configuring()->queue_workers, &configuring()->queue_percent)) return NULL;
  return complain(cmd, word, "must be a number of workers, or a share of MaxRequestWorkers from 1% to 90%");
}

static const char *set_table_size(cmd_parms *cmd, void *unused, const char *word) {
  (void)unused;
  const char *error = ap_check_cmd_context(cmd, GLOBAL_ONLY);
  if (error) return error;
  if (adm_entries_read(word, &configuring()->entries)) return NULL;
  return complain(cmd, word, "must be the number of files, hosts or clients to count at the same time, 16 to 1048576");
}

static const char *set_control_file(cmd_parms *cmd, void *unused, const char *path) {
  (void)unused;
  const char *error = ap_check_cmd_context(cmd, GLOBAL_ONLY);
  if (error) return error;
  configuring()->control_file = ap_server_root_relative(cmd->pool, path);
  return configuring()->control_file ? NULL : complain(cmd, path, "is not a path");
}

static const char *set_runtime_dir(cmd_parms *cmd, void *unused, const char *path) {
  (void)unused;
  const char *error = ap_check_cmd_context(cmd, GLOBAL_ONLY);
  if (error) return error;
  configuring()->runtime_dir = ap_runtime_dir_relative(cmd->pool, path);
  return configuring()->runtime_dir ? NULL : complain(cmd, path, "is not a path");
}

static const char *set_max_hold(cmd_parms *cmd, void *unused, const char *word) {
  (void)unused;
  const char *error = ap_check_cmd_context(cmd, GLOBAL_ONLY);
  if (error) return error;
  if (!adm_duration_read(word, &configuring()->max_hold_ms)) return complain(cmd, word, "must be a time, such as 30s or 5m");
  return NULL;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* What tells the section from others: its path, or where it has none (<If>, <Files>), how it begins and what is around it, a .htaccess
 * file included. */
static const char *section_of(cmd_parms *cmd) {
  if (!cmd->path || *cmd->path == '/') return cmd->path ? apr_pstrdup(cmd->pool, cmd->path) : NULL;
  const char *text = "";
  for (const ap_directive_t *at = cmd->directive ? cmd->directive->parent : NULL; at; at = at->parent)
    text = apr_pstrcat(cmd->pool, at->directive, " ", at->args, *text ? " " : "", text, NULL);
  return in_htaccess(cmd) ? apr_pstrcat(cmd->pool, cmd->directive->filename, " ", text, NULL) : text;
}

static const char *use_of(cmd_parms *cmd, const char *name, group_use **made) {
  char wrong[ADM_ERROR];
  if (!adm_name_check(name, wrong)) return complain(cmd, name, wrong);
  group_use *use = apr_pcalloc(cmd->pool, sizeof *use);
  use->name = apr_pstrdup(cmd->pool, name);
  use->path = section_of(cmd);
  use->server = cmd->server;
  use->stands = stands_at(cmd);
  use->at_most = ADM_UNLIMITED;
  if (in_htaccess(cmd)) {
    use->group = directives_group(name);
    if (!use->group) return complain(cmd, name, "there is no group of this name; the server's administrator names them");
  } else {
    APR_ARRAY_PUSH(configuring()->named, group_use *) = use;
  }
  *made = use;
  return NULL;
}

static const char *set_use(cmd_parms *cmd, void *config, const char *name) {
  place_rules *place = config;
  const char *error = ap_check_cmd_context(cmd, NOT_IN_LIMIT);
  if (error) return error;
  bool none = !strcasecmp(name, "none"), first = place->uses == NULL;
  if (none && in_htaccess(cmd)) return complain(cmd, name, "a .htaccess file can add groups, not take them away");
  if (!first && (none || (place->uses->nelts == 0 && !place->adds)))
    return complain(cmd, name, "none stands alone: either no group, or the names of groups");
  if (first) place->uses = apr_array_make(cmd->pool, 2, sizeof(group_use *));
  place->adds = in_htaccess(cmd);
  if (none) return NULL;
  /* A file that is included twice says nothing new; a request takes one permit of a group. */
  for (int i = 0; i < place->uses->nelts; i++)
    if (!strcmp(APR_ARRAY_IDX(place->uses, i, group_use *)->name, name)) return NULL;
  if (place->uses->nelts >= ADM_LAYERS - 1)
    return complain(cmd, name, apr_psprintf(cmd->pool, "a request can be in %d groups at most", ADM_LAYERS - 1));
  group_use *use = NULL;
  error = use_of(cmd, name, &use);
  if (!error) APR_ARRAY_PUSH(place->uses, group_use *) = use;
  return error;
}

static const char *set_limit(cmd_parms *cmd, void *config, const char *name, const char *number) {
  place_rules *place = config;
  const char *error = ap_check_cmd_context(cmd, NOT_IN_LIMIT);
  if (error) return error;
  uint32_t limit;
  if (!adm_limit_read(number, &limit) || limit == ADM_UNLIMITED)
    return complain(cmd, number, "must be a " ADM_LIMIT_WORDS "; it only lowers the group's limit here");
  group_use *use = NULL;
  error = use_of(cmd, name, &use);
  if (error) return error;
  use->at_most = limit;
  if (!place->limits) place->limits = apr_array_make(cmd->pool, 2, sizeof(group_use *));
  APR_ARRAY_PUSH(place->limits, group_use *) = use;
  return NULL;
}

static const char *set_priority(cmd_parms *cmd, void *config, const char *number, const char *expression) {
  place_rules *place = config;
  const char *error = ap_check_cmd_context(cmd, NOT_IN_LIMIT | NOT_IN_HTACCESS);
  if (error) return error;
  int32_t priority;
  if (!adm_priority_read(number, &priority))
    return complain(cmd, number, "must be a number from -1000 (goes first) to 1000; 0 is what all others have");
  priority_rule *rule = apr_pcalloc(cmd->pool, sizeof *rule);
  rule->priority = priority;
  if (expression) {
    /* The answer is the same whoever waited first: no Vary, which would spoil caches. */
    rule->expr = ap_expr_parse_cmd(cmd, expression, AP_EXPR_FLAG_DONT_VARY, &error, NULL);
    if (error) return complain(cmd, expression, error);
  }
  if (!place->priorities) place->priorities = apr_array_make(cmd->pool, 2, sizeof(priority_rule *));
  APR_ARRAY_PUSH(place->priorities, priority_rule *) = rule;
  return NULL;
}

static const char *set_hold_file(cmd_parms *cmd, void *config, int on) {
  place_rules *place = config;
  const char *error = ap_check_cmd_context(cmd, NOT_IN_LIMIT | NOT_IN_HTACCESS);
  if (error) return error;
  place->hold_file = on;
  if (on) configuring()->holds_files = true;
  return NULL;
}

/* A policy that a configuration has named, with the last good version of it, for reloads and for children: from the heap, as
 * no pool is cleared just when a policy is not named any more. */
typedef struct kept_policy {
  struct kept_policy *next;
  shared_text *text;
  bool named; /* in the configuration that is being read, or else in the one before */
  char path[];
} kept_policy;

/* What the configuration before did not name is forgotten. Its children, if some are left, have it until they end. */
static void forget_unnamed(kept_policy **at) {
  for (kept_policy *kept; (kept = *at);) {
    if (kept->named) {
      kept->named = false;
      at = &kept->next;
    } else {
      *at = kept->next;
      shared_text_drop(kept->text);
      free(kept);
    }
  }
}

/* NULL without memory. */
static kept_policy *keep_policy(const char *path) {
  kept_policy *kept = malloc(sizeof *kept + strlen(path) + 1);
  if (kept) *kept = (kept_policy){.text = shared_text_make()};
  if (kept && kept->text) {
    strcpy(kept->path, path);
    return kept;
  }
  free(kept);
  return NULL;
}

void policies_begin(void) {
  kept_policy **first = ap_retained_data_get(KEPT_POLICIES);
  if (first) forget_unnamed(first);
}

/* Where the last good version of this policy is; NULL where there is no memory for one. */
static shared_text *last_good_of(const char *path) {
  kept_policy **first = ap_retained_data_get(KEPT_POLICIES), *kept;
  if (!first) first = ap_retained_data_create(KEPT_POLICIES, sizeof *first);
  for (kept = *first; kept && strcmp(kept->path, path); kept = kept->next) continue;
  if (!kept && (kept = keep_policy(path))) {
    kept->next = *first;
    *first = kept;
  }
  if (!kept) return NULL;
  kept->named = true;
  return kept->text;
}

/* A bad policy is refused, but not where a good version of it is in force: a server that is told to reload its configuration, and
 * finds a mistake in it, ends. */
static const char *set_policy(cmd_parms *cmd, void *config, const char *path) {
  place_rules *place = config;
  char wrong[ADM_ERROR];
  const char *error = ap_check_cmd_context(cmd, NOT_IN_LIMIT | NOT_IN_HTACCESS);
  if (error) return error;
  if (!strcasecmp(path, "none")) {
    place->policy = apr_pcalloc(cmd->pool, sizeof *place->policy);
    return NULL;
  }
  if (!policy_available()) return complain(cmd, NULL, "this mod_admission was built without Lua; build it again with Lua's headers installed");
  path = ap_server_root_relative(cmd->pool, path);
  if (!path) return complain(cmd, NULL, "this is not a path");
  apr_array_header_t *known = configuring()->policies;
  for (int i = 0; i < known->nelts; i++)
    if (!strcmp(APR_ARRAY_IDX(known, i, policy_file *)->path, path)) {
      place->policy = APR_ARRAY_IDX(known, i, policy_file *);
      return NULL;
    }
  shared_text *kept = last_good_of(path);
  if (!policy_check(path, geteuid(), kept, wrong)) {
    if (!shared_text_recall(kept, NULL, NULL)) return complain(cmd, path, apr_pstrdup(cmd->pool, wrong));
    ap_log_error(APLOG_MARK, APLOG_ERR, 0, cmd->server, "ADM0009: AdmissionPolicy %s: %s: the last good version stays in use", path,
                 wrong);
  }
  place->policy = apr_pcalloc(cmd->pool, sizeof *place->policy);
  place->policy->path = path;
  place->policy->owner = geteuid();
  place->policy->kept = kept;
  APR_ARRAY_PUSH(known, policy_file *) = place->policy;
  return NULL;
}

#define IN_PLACES (RSRC_CONF | ACCESS_CONF)

const command_rec directives[] = {
  AP_INIT_TAKE1("AdmissionEngine", set_engine, NULL, RSRC_CONF, "on, off (default) or observe"),
  AP_INIT_TAKE1("AdmissionLog", set_log, NULL, RSRC_CONF, "default, compat (http-access-limiter's lines) or off"),
  AP_INIT_TAKE_ARGV("AdmissionGroup", set_group, NULL, RSRC_CONF, "a name and settings: limit=4 queue=20 timeout=3s key=file ..."),
  AP_INIT_TAKE23("AdmissionBudget", set_budget, NULL, RSRC_CONF, "memory, a size that all requests share, and order=..."),
  AP_INIT_TAKE1("AdmissionQueueWorkers", set_queue_workers, NULL, RSRC_CONF, "how many workers may wait: a number or a share (default 25%)"),
  AP_INIT_TAKE1("AdmissionTableSize", set_table_size, NULL, RSRC_CONF, "how many files, hosts, clients can be counted (default 1024)"),
  AP_INIT_TAKE1("AdmissionControlFile", set_control_file, NULL, RSRC_CONF, "a file that changes settings without a restart"),
  AP_INIT_TAKE1("AdmissionRuntimeDir", set_runtime_dir, NULL, RSRC_CONF, "where status.json and the hold file are"),
  AP_INIT_TAKE1("AdmissionMaxHold", set_max_hold, NULL, RSRC_CONF, "permits held longer are logged and counted"),
  AP_INIT_ITERATE("AdmissionUse", set_use, NULL, IN_PLACES | OR_LIMIT, "names of groups, or none"),
  AP_INIT_TAKE2("AdmissionLimit", set_limit, NULL, IN_PLACES | OR_LIMIT, "a group and a lower limit of it here"),
  AP_INIT_TAKE12("AdmissionPriority", set_priority, NULL, IN_PLACES, "a number, lower goes first, and an expression"),
  AP_INIT_FLAG("AdmissionHoldFd", set_hold_file, NULL, IN_PLACES, "on: programs that outlive their request keep its permit"),
  AP_INIT_TAKE1("AdmissionPolicy", set_policy, NULL, IN_PLACES, "a Lua file, or none"),
  {NULL, {NULL}, NULL, 0, RAW_ARGS, NULL},
};
