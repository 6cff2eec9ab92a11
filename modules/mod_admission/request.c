/*
 * request.c: the hook around the handler: permits before, the handler, permits back.
 *
 * Why here and not in access or log hooks: when a handler runs, the request is what it will be (directory index,
 * fallback resource, rewriting in .htaccess, internal redirects and error pages are done with), and what was taken
 * before it is given back after it, whatever happened. Which permits is layers.c, what the client hears is respond.c.
 */
#include "request.h"

#include "hold.h"
#include "layers.h"
#include "respond.h"
#include "streams.h"

#include <apr_portable.h>
#include <apr_strings.h>
#include <errno.h>
#include <http_core.h>
#include <http_log.h>
#include <http_protocol.h>
#include <poll.h>
#include <unistd.h>
#include <util_filter.h>

APLOG_USE_MODULE(admission);

visit *request_visit(const request_rec *r) { return ap_get_module_config(r->request_config, &admission_module); }

/* ---- while it waits ---------------------------------------------------------------------------------------------- */

/* Asked now and then while it waits: whether somebody waits for the answer still. Streams of HTTP/2 share the socket of their connection.
 * What it waits for may be what the dead hold. */
static bool client_waits(void *world) {
  const request_rec *r = world;
  runtime_heal(true);
  conn_rec *connection = r->connection->master ? r->connection->master : r->connection;
  if (connection->aborted || r->connection->aborted) return false;
  apr_socket_t *socket = ap_get_conn_socket(connection);
  apr_os_sock_t number;
  if (!socket || apr_os_sock_get(&number, socket) != APR_SUCCESS || number < 0) return true;
  struct pollfd client = {.fd = number, .events = POLLRDHUP};
  return poll(&client, 1, 0) <= 0 || !(client.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL));
}

/* A request that comes while the one before it on its connection is answered has httpd keep the end of that answer back, with the permit
 * that is held for it (hold=response): nobody sends it while this one waits for just that permit. */
static void send_what_is_kept_back(const request_rec *r) {
  conn_rec *connection = r->connection;
  apr_bucket_brigade *brigade = apr_brigade_create(r->pool, connection->bucket_alloc);
  APR_BRIGADE_INSERT_TAIL(brigade, apr_bucket_flush_create(connection->bucket_alloc));
  ap_pass_brigade(connection->output_filters, brigade); /* who cannot be written to is seen to be gone */
  apr_brigade_destroy(brigade);
}

/* mod_http2 ends a connection of which nothing was heard for Timeout, and with it all that wait on it: who hears before that he waited in
 * vain can come again. */
static uint32_t longest_wait(const request_rec *r) {
  const conn_rec *connection = r->connection->master;
  apr_interval_time_t timeout = connection ? connection->base_server->timeout : 0;
  apr_time_t most = timeout > 0 ? apr_time_as_msec(timeout) * 9 / 10 : UINT32_MAX;
  return most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
}

static uint32_t enter_wait(void *world) {
  const request_rec *r = world;
  if (running.holds_responses && !r->connection->master) send_what_is_kept_back(r);
  return streams_enter(world) ? longest_wait(r) : 0;
}

static const adm_client who_waits = {.wanted = client_waits, .enter = enter_wait, .leave = streams_leave};

/* ---- permits back ------------------------------------------------------------------------------------------------ */

/* Called once: after the handler, or with a pool. Where neither comes, because the process ends within the handler, its permits
 * are taken back with it. A copy that is made in the middle of a request (pcntl_fork) ends it too, but the permits are not its own; one
 * that is made before (mpm-itk makes one for each connection) takes its own. */
static ADM_INLINE apr_status_t give_back(void *world) {
  visit *v = world;
  if (v->copies != running.copies) return APR_SUCCESS;
  if (v->lock >= 0) close(v->lock); /* before asking who else holds the lock */
  adm_release(running.table, &v->answer, hold_lingers, &running.hold_asks);
  return APR_SUCCESS;
}

/* Whether the permit of a layer is held to the last byte: of a group that asks for it, and of the memory budget where it is taken for
 * such a group. */
static bool outlasts_handler(const visit *v, unsigned layer) {
  return v->rule[layer] ? v->rule[layer]->settings.hold : v->memory_outlasts;
}

/* The handler is over, not yet the response: what other groups hold is given back now, and these are the visit's no more, whose error page
 * would else ride along on them. */
static void give_back_handlers(visit *v) {
  if (v->copies != running.copies) return;
  adm_answer over = v->answer;
  over.permits = 0;
  unsigned permits = 0;
  uint16_t layers = 0, place[ADM_LAYERS];
  for (unsigned k = 0; k < v->layers; k++) {
    place[k] = ADM_LAYERS;
    if (!outlasts_handler(v, k)) continue;
    v->layer[layers] = v->layer[k];
    v->rule[layers] = v->rule[k];
    place[k] = layers++;
  }
  for (unsigned i = 0; i < v->answer.permits; i++) {
    adm_permit permit = v->answer.permit[i];
    if (place[permit.layer] == ADM_LAYERS) {
      over.permit[over.permits++] = permit;
    } else {
      permit.layer = place[permit.layer];
      v->answer.permit[permits++] = permit;
    }
  }
  v->layers = layers;
  v->answer.permits = permits;
  if (v->lock >= 0) close(v->lock);
  v->lock = -1;
  adm_release(running.table, &over, hold_lingers, &running.hold_asks);
}

/* hold=response: the pool of a request is destroyed by the bucket that follows the last byte of its response through all filters, in
 * the MPMs that write asynchronously too. What a page includes is held for its handler: to the last byte of the page, the next one that
 * it includes would wait for a permit that comes back when that one is done. */
static bool holds_for_response(const visit *v) {
  if (!running.holds_responses || v->r->main) return false;
  for (unsigned i = 0; i < v->layers; i++)
    if (v->rule[i] && v->rule[i]->settings.hold) return true;
  return false;
}

/* Most visits are over with their handler, and on the stack. This one, and its permits, are to stay as long as the pool. */
static visit *keep(const visit *v, apr_pool_t *pool) {
  visit *kept = apr_pmemdup(pool, v, sizeof *v);
  ap_set_module_config(v->r->request_config, &admission_module, kept);
  if (kept->answer.permits > 0) apr_pool_cleanup_register(pool, kept, give_back, apr_pool_cleanup_null);
  return kept;
}

/* ---- the decision ------------------------------------------------------------------------------------------------ */

/* Turned away at once: perhaps because of permits and waiters of the dead. */
static void try_again(visit *v, const adm_request *request) {
  if (!runtime_heal(false)) return;
  uint64_t waited_ns = v->answer.wait_ns;
  adm_request again = *request;
  again.may_wait &= waited_ns == 0; /* once is enough: it would come to the end of a queue */
  adm_admit(running.table, running.owner, &again, &v->answer);
  v->answer.wait_ns += waited_ns;
}

/* The permit may be that of the answer before this one on its connection, whose end httpd keeps back. Who waits has seen to that
 * (enter_wait). */
static void try_again_behind_oneself(visit *v, const adm_request *request) {
  if (!running.holds_responses || v->answer.wait_ns > 0 || v->r->connection->master || v->r->connection->keepalives == 0) return;
  const adm_group *full = adm_group_at(running.table, v->answer.group);
  if (!full || !(full->hold || full == running.budget)) return;
  send_what_is_kept_back(v->r);
  adm_request at_once = *request;
  at_once.may_wait = false;
  adm_admit(running.table, running.owner, &at_once, &v->answer);
}

static void lock_for_programs(visit *v) {
  static _Atomic bool told; /* once in each process: it would be so for each request */
  v->lock = hold_lock(running.hold_path, running.table, &v->answer);
  /* Of a copy, which is a process for each connection, it is told at the start (ADM0005). */
  if (v->lock < 0 && !atomic_exchange(&told, true))
    ap_log_rerror(APLOG_MARK, running.copies > 0 && errno == EACCES ? APLOG_INFO : APLOG_ERR, errno, v->r, "ADM0023: AdmissionHoldFd: %s: this request is held until its handler ends only",
                  running.hold_path);
}

/* Lets it go on without a permit of its own. */
static void pass(visit *v) {
  v->bypass = true;
  v->answer = (adm_answer){.outcome = ADM_ADMITTED, .group = -1};
}

/* Nobody waits who holds: it might be for itself. Nor does who was turned away, for the page that says so. */
static bool must_not_wait(visit *v) { return layers_ride_along(v) || layers_turned_away(v->r); }

/* `inside`: there are requests around this one. */
static bool decide(visit *v, const place_rules *place, bool inside) {
  bool at_once = inside && must_not_wait(v);
  if (inside && v->layers == 0) {
    pass(v);
    return true;
  }
  adm_request request;
  request.layer = v->layer;
  request.layers = v->layers;
  request.manners = v->manners;
  request.may_wait = !at_once;
  request.observe = v->host->engine == ENGINE_OBSERVE;
  request.hold_file = running.hold_path && place->hold_file == 1;
  request.priority = place->priorities ? layers_priority(v->r, place) : 0;
  request.tells_later = true; /* turn_away does */
  request.slice_ms = 0;
  request.client = &who_waits;
  request.world = v->r;
  if (running.copies > 0) runtime_join_copy(v->r->server);
  if (adm_admit(running.table, running.owner, &request, &v->answer) != ADM_ADMITTED) {
    if (v->answer.outcome == ADM_REJECTED) try_again_behind_oneself(v, &request);
    if (v->answer.outcome == ADM_REJECTED) try_again(v, &request);
    v->rejected = !adm_was_admitted(v->answer.outcome);
    if (v->rejected) return false;
  }
  if (request.hold_file && v->answer.permits > 0) lock_for_programs(v);
  return true;
}

/* A page that tells a client why it was turned away is let through: turned away itself it could not tell. */
static void let_error_page_through(visit *v) {
  for (unsigned i = 0; i < v->layers; i++) adm_group_at(running.table, v->layer[i].group)->counts.bypass++;
  pass(v);
}

/* But not a program: it would be started for each of them, without a limit, and a .htaccess file can name it. Where that finds no permit
 * httpd tells them in its own words. It is no further refusal: the request's own is counted. */
static __attribute__((noinline)) int turn_away(visit *v) {
  request_rec *r = v->r;
  const visit *refused = layers_turned_away(r);
  if (!refused) {
    if (v->answer.outcome == ADM_REJECTED) adm_tell_rejected(running.table, &v->answer);
    return respond_reject(keep(v, r->pool)); /* its error page will ask what became of it */
  }
  ap_set_module_config(r->request_config, &admission_module, NULL);
  return refused->r->status;
}

/* ---- around the handler ------------------------------------------------------------------------------------------ */

/* The handlers behind ours. They are in order before a child begins, and stay so. */
static const ap_LINK_handler_t *behind, *behind_end;

void request_child_init(apr_pool_t *pool, server_rec *main_server) {
  (void)pool;
  (void)main_server;
  const apr_array_header_t *handlers = ap_hook_get_handler();
  behind = (const void *)handlers->elts;
  behind_end = behind + handlers->nelts;
  while (behind < behind_end && behind++->pFunc != request_around) {}
}

/* Runs the handlers behind ours as ap_run_handler() does, which itself would begin anew: with those before ours, which have
 * had their turn, and with ours. */
static int run_handlers_behind(request_rec *r) {
  for (const ap_LINK_handler_t *handler = behind; handler < behind_end; handler++) {
    int result = handler->pFunc(r);
    if (result != DECLINED) return result;
  }
  return DECLINED;
}

static int run_with_permits(visit *v) {
  request_rec *r = v->r;
  visit *to_last_byte = holds_for_response(v) ? keep(v, r->pool) : NULL;
  int result = run_handlers_behind(r);
  if (to_last_byte) {
    if (result != SUSPENDED) give_back_handlers(to_last_byte);
    return result;
  }
  if (result == SUSPENDED) { /* the handler goes on later */
    keep(v, r->pool);
  } else {
    give_back(v);
    ap_set_module_config(r->request_config, &admission_module, NULL);
  }
  return result;
}

/* Most requests simply go on, and nobody has to be told. */
static bool goes_on_quietly(const visit *v) {
  return v->answer.outcome == ADM_ADMITTED && !v->bypass && v->host->log != LOG_COMPAT;
}

/* Not inlined: what it needs of the stack is not to be paid by requests that only come by. */
static __attribute__((noinline)) int run_inside(request_rec *r, const host_rules *host, const place_rules *place) {
  const visit *before = request_visit(r);
  if (before && !before->rejected) return DECLINED; /* a handler runs the handlers: inside of ours */
  visit v; /* large, and hardly any of it is used: not zeroed */
  v.r = r;
  v.host = host;
  v.kind = layers_kind(r);
  v.layers = 0;
  v.manners = 0;
  v.answer.permits = 0; /* requests inside of this one look at it */
  v.copies = running.copies;
  v.lock = -1;
  v.rejected = v.bypass = v.memory_outlasts = false;
  if (layers_starts_another(r, v.kind)) return DECLINED;
  layers_gather(&v, place);
  if (v.layers == 0) return DECLINED;
  ap_set_module_config(r->request_config, &admission_module, &v);
  bool inside = r->prev || r->main;
  if (inside && v.kind != KIND_DYNAMIC && layers_turned_away(r)) let_error_page_through(&v);
  else if (!decide(&v, place, inside)) return turn_away(&v);
  if (!goes_on_quietly(&v)) respond_tell(&v);
  int result = run_with_permits(&v);
  if (running.audience) respond_tell_log(&v);
  return result;
}

static ADM_INLINE int run_around(request_rec *r, const host_rules *host) {
  const place_rules *place = ap_get_module_config(r->per_dir_config, &admission_module);
  return layers_are_none(r, place) ? DECLINED : run_inside(r, host, place);
}

static __attribute__((noinline)) int run_around_redirected(request_rec *r, const host_rules *host) {
  respond_carry(r);
  return run_around(r, host);
}

/* There is no memory to count in: what would have been in a group goes on as if there was none. It is counted, the log says so
 * once a minute, and who logs the result of requests finds it there. */
static __attribute__((noinline)) int go_on_without_table(request_rec *r) {
  const place_rules *place = ap_get_module_config(r->per_dir_config, &admission_module);
  const char *group = NULL;
  if (!running.without_table || layers_are_none(r, place) || !layers_mean(r, place, &group)) return DECLINED;
  uint64_t requests = ++running.without_table->requests;
  uint64_t minute = (uint64_t)apr_time_sec(r->request_time) / 60, last = running.without_table->minute;
  if (last != minute && atomic_compare_exchange_strong(&running.without_table->minute, &last, minute))
    ap_log_rerror(APLOG_MARK, APLOG_WARNING, 0, r, "ADM0025: no shared memory: nothing is limited: %" APR_UINT64_T_FMT
                  " requests of groups were let through so far", requests);
  if (group) apr_table_setn(r->subprocess_env, "ADMISSION_GROUP", group);
  apr_table_setn(r->subprocess_env, "ADMISSION_RESULT", adm_outcome_name(ADM_OPEN));
  return DECLINED;
}

/* All requests of the server come by here, those that concern us by the way of run_inside: it is short on purpose. */
int request_around(request_rec *r) {
  const host_rules *host = ap_get_module_config(r->server->module_config, &admission_module);
  if (host->engine <= ENGINE_OFF) return DECLINED;
  if (!running.table) return go_on_without_table(r);
  return r->prev ? run_around_redirected(r, host) : run_around(r, host);
}
