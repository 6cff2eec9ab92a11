/*
 * layers.c: from a request_rec to layers. It looks at the request as httpd has resolved it (handler, file, virtual
 * host), never at what the client wrote, unless an expression asks for that. It takes no permits.
 */
#include "layers.h"

#include <ap_expr.h>
#include <apr_strings.h>
#include <http_log.h>
#include <http_protocol.h>

APLOG_USE_MODULE(admission);

/* ---- handlers: static, dynamic, and httpd's own pages ------------------------------------------------------------ */

/* Every file that is served comes by here: compared only where the first letters agree. */
static bool one_of(const char *name, const char *const *names) {
  for (; *names; names++)
    if (name[0] == (*names)[0] && !strcmp(name, *names)) return true;
  return false;
}

/* Pages by which a server is watched and steered: they must answer most of all when everything else is full. */
static bool is_own_page(const char *handler) {
  static const char *const names[] = {"server-status", "server-info", "admission-status", "balancer-manager",
                                      "ldap-status",   "http2-status", "md-status", NULL};
  return one_of(handler, names);
}

/* Where no handler is set httpd hands files out by their content type. Of these only application/x-httpd-* start
 * programs. A SetHandler such as proxy:fcgi://... has a slash too, but a colon before it. */
static bool is_content_type(const char *handler) {
  while (*handler && *handler != '/' && *handler != ':') handler++;
  return *handler == '/';
}

static bool is_static(const char *handler) {
  static const char *const names[] = {"default-handler", "send-as-is", "type-map", "server-parsed", "imap-file", NULL};
  if (!*handler) return true; /* AP_DEFAULT_HANDLER_NAME: a file without a content type */
  if (is_content_type(handler)) return handler[0] != 'a' || strncmp(handler, "application/x-httpd-", 20) != 0;
  return one_of(handler, names);
}

/* handler=proxy stands for proxy:fcgi://... too. */
static bool is_named(const char *handler, const char *const *names) {
  for (; *names; names++) {
    size_t length = strlen(*names);
    if (!strncmp(handler, *names, length) && (handler[length] == '\0' || handler[length] == ':')) return true;
  }
  return false;
}

/* mod_php runs a page of HTML that its owner may execute where its xbithack is on, and that any .htaccess file may say that can change a
 * handler. Which places have it on is mod_php's own knowledge. */
static bool is_page_with_php(const request_rec *r) {
  return running.has_php && (r->finfo.protection & APR_UEXECUTE) && r->handler && !strcmp(r->handler, "text/html");
}

/* The handler by which groups name a request. */
static inline const char *handler_of(const request_rec *r) { return is_page_with_php(r) ? "application/x-httpd-php" : r->handler; }

handler_kind layers_kind_of(const request_rec *r) {
  const char *handler = handler_of(r);
  if (!handler || is_static(handler)) return KIND_STATIC;
  return is_own_page(handler) ? KIND_OWN_PAGE : KIND_DYNAMIC;
}

static ADM_INLINE bool concerns(const group_rule *rule, const request_rec *r, handler_kind kind) {
  if (rule->handlers != HANDLERS_NAMED) return rule->handlers >> kind & 1;
  const char *handler = handler_of(r);
  return is_named(handler && *handler ? handler : "default-handler", rule->handler_names); /* AP_DEFAULT_HANDLER_NAME is "" */
}

/* ---- keys -------------------------------------------------------------------------------------------------------- */

/* Where an address that ProxyPassMatch or RewriteRule made for PHP-FPM, proxy:fcgi://... or proxy:unix:...|fcgi://..., has its script and
 * more behind that: PHP-FPM, which looks for the file, takes it as PATH_INFO. It may be a balancer's, too, of which nobody knows yet what
 * its members speak. Where the name is a folder's, its scripts count together. */
static const char *after_script(const char *address) {
  bool is_fcgi = !strncmp(address, "proxy:fcgi:", 11) || !strncmp(address, "proxy:balancer:", 15) || (!strncmp(address, "proxy:unix:", 11) && strstr(address, "|fcgi:"));
  const char *script = is_fcgi ? strstr(address, ".php/") : NULL;
  return script ? script + 4 : NULL;
}

/* A proxied request's address, without what its client may write behind the script. */
static __attribute__((noinline)) const char *address_of(request_rec *r, const char *address) {
  const char *end = strchr(address, '?'), *script = after_script(address);
  if (script && (!end || script < end)) end = script;
  return end ? apr_pstrmemdup(r->pool, address, (apr_size_t)(end - address)) : address;
}

/* The resolved file, without PATH_INFO. */
static inline const char *file_of(request_rec *r) {
  const char *file = r->filename ? r->filename : r->uri ? r->uri : "";
  return r->proxyreq ? address_of(r, file) : file;
}

/* The section where the group is used. One of the main server is the same for all virtual hosts that inherit it. */
static const char *location_of(request_rec *r, const group_use *use) {
  if (!use) return "";
  const host_rules *host = ap_get_module_config(use->server->module_config, &admission_module);
  const char *path = use->path ? use->path : "/";
  return use->server->is_virtual ? apr_pstrcat(r->pool, host->label, " ", path, NULL) : path;
}

static const char *expression_of(request_rec *r, const group_rule *rule) {
  const char *error = NULL, *text = ap_expr_str_exec(r, rule->expr, &error);
  if (!error) return text && *text ? text : NULL; /* nothing to tell requests by: not counted */
  ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "ADM0020: AdmissionGroup %s: key=expr: %s", rule->name, error);
  return NULL;
}

/* What a file is known by, whatever its names are. */
typedef struct identity {
  apr_dev_t device;
  apr_ino_t inode;
} identity;

static bool has_identity(const request_rec *r) {
  return r->finfo.filetype != APR_NOFILE && (r->finfo.valid & APR_FINFO_IDENT) == APR_FINFO_IDENT;
}

static uint64_t hash_of_identity(const request_rec *r) {
  identity file;
  memset(&file, 0, sizeof file); /* what is between its members, too */
  file.device = r->finfo.device;
  file.inode = r->finfo.inode;
  return adm_hash(running.table, &file, sizeof file);
}

static const char *label_of(visit *v, const group_rule *rule, const group_use *use) {
  switch ((adm_key)rule->settings.key) {
  case ADM_KEY_FILE:
  case ADM_KEY_INODE: break;
  case ADM_KEY_VHOST: return v->host->label;
  case ADM_KEY_LOCATION: return location_of(v->r, use);
  case ADM_KEY_CLIENT: return v->r->useragent_ip;
  case ADM_KEY_SERVER: return "server";
  case ADM_KEY_EXPR: return expression_of(v->r, rule);
  }
  return file_of(v->r);
}

/* What the group counts this request under, as a key for the table and as text for people. False: not at all. */
static ADM_INLINE bool find_key(visit *v, const group_rule *rule, const group_use *use, adm_layer *layer) {
  layer->label = rule->settings.key == ADM_KEY_FILE ? file_of(v->r) : label_of(v, rule, use);
  if (!layer->label) return false;
  bool by_identity = rule->settings.key == ADM_KEY_INODE && has_identity(v->r);
  layer->key = by_identity ? hash_of_identity(v->r) : adm_hash(running.table, layer->label, strlen(layer->label));
  return true;
}

/* ---- layers in their fixed order --------------------------------------------------------------------------------- */

/* Narrow before wide, and as they stand in the configuration, the same for all requests; the memory budget comes last. */
static unsigned rank(const visit *v, unsigned i) {
  static const uint8_t ranks[] = {[ADM_KEY_FILE] = 0,   [ADM_KEY_INODE] = 1, [ADM_KEY_LOCATION] = 2, [ADM_KEY_CLIENT] = 3,
                                  [ADM_KEY_EXPR] = 4,   [ADM_KEY_VHOST] = 5, [ADM_KEY_SERVER] = 6};
  return v->rule[i] ? ranks[v->rule[i]->settings.key] * ADM_GROUPS + v->rule[i]->place : UINT32_MAX;
}

static void sort_layers(visit *v) {
  for (unsigned i = 1; i < v->layers; i++)
    for (unsigned k = i; k > 0 && rank(v, k) < rank(v, k - 1); k--) {
      adm_layer layer = v->layer[k];
      const group_rule *rule = v->rule[k];
      v->layer[k] = v->layer[k - 1], v->rule[k] = v->rule[k - 1];
      v->layer[k - 1] = layer, v->rule[k - 1] = rule;
    }
}

static uint32_t lowest_limit(const place_rules *place, const group_rule *rule) {
  uint32_t lowest = ADM_UNLIMITED;
  for (int i = 0; i < place->limits->nelts; i++) {
    const group_use *limit = APR_ARRAY_IDX(place->limits, i, group_use *);
    if (limit->group == rule && limit->at_most < lowest) lowest = limit->at_most;
  }
  return lowest;
}

/* One group more than a request can be in: .htaccess files can name so many, a section of the configuration cannot. Those
 * of the wider places came first. */
static __attribute__((noinline)) void leave_out(const visit *v, const group_use *use) {
  static _Atomic bool told; /* once in each process: it would be so for each request */
  use->group->group->counts.open++;
  if (!atomic_exchange(&told, true))
    ap_log_rerror(APLOG_MARK, APLOG_WARNING, 0, v->r, "ADM0024: %s: AdmissionUse %s: a request can be in %d groups at most: this one does "
                  "not limit it", use->stands, use->name, ADM_LAYERS - 1);
}

static ADM_INLINE void add_group(visit *v, const place_rules *place, const group_rule *rule, const group_use *use) {
  if (!rule || !rule->group) return;
  if (rule->group->mode == ADM_OFF || !concerns(rule, v->r, v->kind)) return;
  if (v->layers >= ADM_LAYERS - 1) {
    leave_out(v, use); /* never the one that a policy names: that is the only one */
    return;
  }
  adm_layer *layer = &v->layer[v->layers];
  layer->group = rule->index;
  layer->at_most = place->limits ? lowest_limit(place, rule) : ADM_UNLIMITED;
  layer->cost = 1;
  if (find_key(v, rule, use, layer)) v->rule[v->layers++] = rule;
}

static ADM_INLINE void add_groups(visit *v, const place_rules *place) {
  if (!place->uses) return;
  group_use *const *use = (const void *)place->uses->elts, *const *end = use + place->uses->nelts;
  for (; use < end; use++) add_group(v, place, (*use)->group, *use);
}

/* Whether a .htaccess file put the group in use. */
static bool is_added(const group_use *use) {
  const apr_array_header_t *named = directives_now()->named; /* all the others */
  for (int i = 0; i < named->nelts; i++)
    if (APR_ARRAY_IDX(named, i, group_use *) == use) return false;
  return true;
}

/* The request's first group, of those that no .htaccess file added where there are such. A .htaccess file can add a narrower one, and
 * would else choose what a policy's limit is for, and how long and with how many others a request waits for memory: it only tightens. */
static unsigned first_group(const visit *v, const place_rules *place) {
  /* Mostly nothing has to be looked for: one that a .htaccess file adds to is made for its request. */
  if (v->layers < 2 || place->uses->pool == v->r->server->process->pconf) return 0;
  for (unsigned i = 0; i < v->layers; i++)
    for (int k = 0; k < place->uses->nelts; k++) {
      const group_use *use = APR_ARRAY_IDX(place->uses, k, group_use *);
      if (use->group == v->rule[i] && !is_added(use)) return i;
    }
  return 0;
}

static bool has_budget(const visit *v) { return running.budget->limit != ADM_UNLIMITED && v->layers > 0; }

/* What the request takes of the memory budget: the most that one of its groups says. Groups that only observe must not
 * be the reason that a request is turned away. */
static void add_memory(visit *v, const place_rules *place, const policy_answer *told) {
  uint32_t cost = 0;
  bool by_policy = told && told->has_cost, enforced = false;
  for (unsigned i = 0; i < v->layers; i++) {
    const adm_group *group = v->rule[i]->group;
    if (group->mode != ADM_ENFORCE) continue;
    enforced = true;
    if (group->cost > cost) cost = group->cost;
    if (v->rule[i]->settings.hold && (by_policy || group->cost > 0)) v->memory_outlasts = true;
  }
  if (by_policy && enforced) cost = told->cost;
  if (cost == 0) return;
  v->manners = v->rule[first_group(v, place)]->index;
  v->rule[v->layers] = NULL;
  v->layer[v->layers++] = (adm_layer){.group = ADM_GROUP_MEMORY, .key = 0, .label = "memory", .at_most = ADM_UNLIMITED, .cost = cost};
}

/* ---- the policy -------------------------------------------------------------------------------------------------- */

static void policy_trouble(void *world, const char *message) {
  request_rec *r = world;
  ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "ADM0021: AdmissionPolicy: %s", message);
}

static bool ask_policy(visit *v, const place_rules *place, policy_answer *answer) {
  request_rec *r = v->r;
  policy_request request = {.host = r->hostname ? r->hostname : r->server->server_hostname, .file = r->filename, .uri = r->uri,
                            .handler = r->handler, .method = r->method, .client = r->useragent_ip, .args = r->args};
  return policy_ask(place->policy->compiled, running.table, &request, answer, policy_trouble, r);
}

static __attribute__((noinline)) void gather_by_policy(visit *v, const place_rules *place) {
  policy_answer answer;
  bool told = ask_policy(v, place, &answer);
  bool names = told && answer.has_group, none = names && !strcmp(answer.group, "none");
  const group_rule *rule = names && !none ? directives_group(answer.group) : NULL;
  if (rule) add_group(v, place, rule, NULL);
  else if (!none) add_groups(v, place); /* also where the group that it names is in no configuration any more */
  sort_layers(v);
  if (told && answer.has_limit && v->layers > 0) {
    adm_layer *first = &v->layer[first_group(v, place)];
    if (answer.limit < first->at_most) first->at_most = answer.limit;
  }
  if (has_budget(v)) add_memory(v, place, told ? &answer : NULL);
}

void layers_gather(visit *v, const place_rules *place) {
  if (place->policy && place->policy->compiled) {
    gather_by_policy(v, place);
    return;
  }
  add_groups(v, place);
  if (v->layers > 1) sort_layers(v);
  if (has_budget(v)) add_memory(v, place, NULL);
}

bool layers_mean(const request_rec *r, const place_rules *place, const char **group) {
  handler_kind kind = layers_kind(r);
  if (layers_starts_another(r, kind)) return false;
  for (int i = 0; place->uses && i < place->uses->nelts; i++) {
    const group_rule *rule = APR_ARRAY_IDX(place->uses, i, group_use *)->group;
    if (!rule || rule->settings.mode == ADM_OFF || !concerns(rule, r, kind)) continue;
    *group = rule->name;
    return true;
  }
  return place->policy && place->policy->path && kind == KIND_DYNAMIC;
}

/* ---- requests inside requests ------------------------------------------------------------------------------------ */

static const request_rec *around(const request_rec *r) { return r->prev ? r->prev : r->main; }

/* Whether it is a part of the request before it: an Action's program, which mod_actions asks for when it has left the handler's name with the
 * file that it is run for (HANDLER; whoever may set that in .htaccess may write an Action), or its error page. Where the program's own folder
 * has rewritten its name, there is that step between the two. */
static bool is_part_of_previous(const request_rec *r) {
  const request_rec *file = r->prev;
  while (file && file->handler && !strcmp(file->handler, "redirect-handler")) file = file->prev;
  if (!file) return false;
  if (ap_is_HTTP_ERROR(file->status)) return true;
  const char *action = apr_table_get(file->subprocess_env, "HANDLER");
  return action && file->handler && !strcmp(action, file->handler);
}

/* What the requests around this one hold of the same group: an Action's program belongs to the file that it is run for, whatever its own
 * name is; but what a page includes, or names in its `Location: /...`, is a program beside it, and has a part in what the page holds only
 * where that is the same entry. */
static uint32_t held_around(const request_rec *r, const adm_layer *layer) {
  uint32_t sum = 0; /* of the memory budget each took only what was more than the others' */
  bool beside = false;
  for (; around(r); r = around(r)) {
    beside |= !is_part_of_previous(r);
    const visit *outer = request_visit(around(r));
    if (!outer || outer->answer.permits == 0) continue;
    for (unsigned i = 0; i < outer->layers; i++) {
      const adm_layer *held = &outer->layer[i];
      bool same = held->group == layer->group && (!beside || held->key == layer->key);
      if (same) sum += held->cost;
    }
  }
  return sum;
}

bool layers_ride_along(visit *v) {
  bool holds = false;
  for (const request_rec *r = around(v->r); r && !holds; r = around(r)) {
    const visit *outer = request_visit(r);
    holds = outer && outer->answer.permits > 0;
  }
  unsigned left = 0;
  for (unsigned i = 0; holds && i < v->layers; i++) {
    adm_layer layer = v->layer[i];
    uint32_t held = held_around(v->r, &layer);
    if (held >= layer.cost) {
      adm_group_at(running.table, layer.group)->counts.bypass++;
      continue;
    }
    layer.cost -= held; /* of the memory budget: only what is more than the outer request's */
    v->rule[left] = v->rule[i];
    v->layer[left++] = layer;
  }
  if (holds) v->layers = left;
  return holds;
}

const visit *layers_turned_away(const request_rec *r) {
  while (r->main) r = r->main; /* what a page includes is a part of it */
  for (; r->prev && ap_is_HTTP_ERROR(r->prev->status); r = r->prev) {
    const visit *outer = request_visit(r->prev);
    if (outer && outer->rejected) return outer;
  }
  return NULL;
}

int32_t layers_priority(request_rec *r, const place_rules *place) {
  for (int i = 0; place->priorities && i < place->priorities->nelts; i++) {
    const priority_rule *rule = APR_ARRAY_IDX(place->priorities, i, priority_rule *);
    const char *error = NULL;
    if (!rule->expr || ap_expr_exec(r, rule->expr, &error) > 0) return rule->priority;
  }
  return 0;
}
