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
#include <errno.h>
#include <http_core.h>
#include <http_log.h>
#include <http_protocol.h>
#include <poll.h>
#include <unistd.h>

APLOG_USE_MODULE(admission);

visit *request_visit(const request_rec *r) { return ap_get_module_config(r->request_config, &admission_module); }

/* ---- while it waits ---------------------------------------------------------------------------------------------- */

/* Whether somebody waits for the answer still. Streams of HTTP/2 share the socket of their connection. */
static bool client_waits(void *world) {
  const request_rec *r = world;
  conn_rec *connection = r->connection->master ? r->connection->master : r->connection;
  if (connection->aborted || r->connection->aborted) return false;
  apr_socket_t *socket = ap_get_conn_socket(connection);
  apr_os_sock_t number;
  if (!socket || apr_os_sock_get(&number, socket) != APR_SUCCESS || number < 0) return true;
  struct pollfd client = {.fd = number, .events = POLLRDHUP};
  return poll(&client, 1, 0) <= 0 || !(client.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL));
}

/* ---- permits back ------------------------------------------------------------------------------------------------ */

/* Called after the handler, and again by the pool's cleanup in case the handler never returned: the second call finds
 * nothing to do. A copy of this process (pcntl_fork) ends requests too, but the permits are not its own. */
static apr_status_t give_back(void *world) {
  visit *v = world;
  if (running.forked) return APR_SUCCESS;
  if (v->lock >= 0) close(v->lock); /* before asking who else holds the lock */
  v->lock = -1;
  adm_release(running.table, &v->answer, running.hold_path ? hold_lingers : NULL, &running.hold_asks);
  return APR_SUCCESS;
}

/* hold=response: the pool of the request as the client knows it is destroyed by the bucket that follows the last byte of
 * the response through all filters, in the MPMs that write asynchronously too. */
static apr_pool_t *pool_of_response(request_rec *r) {
  while (r->main) r = r->main;
  return r->pool;
}

static bool holds_for_response(const visit *v) {
  for (unsigned i = 0; i < v->layers; i++)
    if (v->rule[i] && v->rule[i]->settings.hold) return true;
  return false;
}

/* ---- the decision ------------------------------------------------------------------------------------------------ */

/* Turned away at once: perhaps because of permits and waiters of the dead. */
static void try_again(visit *v, const adm_request *request) {
  if (v->answer.outcome != ADM_REJECTED || !runtime_heal()) return;
  adm_group *group = adm_group_at(running.table, v->answer.group);
  if (group) atomic_fetch_sub(&group->counts.rejected, 1); /* was none after all */
  adm_admit(running.table, running.owner, request, &v->answer);
}

static void lock_for_programs(visit *v) {
  static _Atomic bool told; /* once in each process: it would be so for each request */
  v->lock = hold_lock(running.hold_path, running.table, &v->answer);
  if (v->lock < 0 && !atomic_exchange(&told, true))
    ap_log_rerror(APLOG_MARK, APLOG_ERR, errno, v->r, "ADM0023: AdmissionHoldFd: %s: this request is held until its handler ends only",
                  running.hold_path);
}

static bool decide(visit *v, const place_rules *place) {
  bool inside = layers_ride_along(v);
  if (v->layers == 0) {
    v->bypass = true;
    return true;
  }
  adm_request request = {.layer = v->layer, .layers = v->layers,
                         .may_wait = !inside, /* nobody waits who holds: it might be for itself */
                         .observe = v->host->engine == ENGINE_OBSERVE,
                         .hold_file = place->hold_file == 1 && running.hold_path,
                         .priority = place->priorities ? layers_priority(v->r, place) : 0,
                         .wanted = client_waits, .enter = streams_enter, .leave = streams_leave, .world = v->r};
  adm_admit(running.table, running.owner, &request, &v->answer);
  try_again(v, &request);
  if (!adm_was_admitted(v->answer.outcome)) {
    v->rejected = true;
    return false;
  }
  if (request.hold_file && v->answer.permits > 0) lock_for_programs(v);
  return true;
}

/* A page that tells a client why it was turned away is let through: turned away itself it could not tell. */
static void let_error_page_through(visit *v) {
  for (unsigned i = 0; i < v->layers; i++) adm_group_at(running.table, v->layer[i].group)->counts.bypass++;
  v->bypass = true;
}

static visit *new_visit(request_rec *r, const host_rules *host, const place_rules *place, handler_kind kind) {
  /* In the pool of the response: with hold=response it outlives a subrequest. Large, and hardly any of it is used: not zeroed. */
  visit *v = apr_palloc(pool_of_response(r), sizeof *v);
  v->r = r;
  v->host = host;
  v->kind = kind;
  v->layers = 0;
  v->lock = -1;
  v->in_handler = v->rejected = v->bypass = false;
  v->answer.permits = 0;
  v->answer.group = -1;
  v->answer.outcome = ADM_ADMITTED;
  v->answer.wait_ns = 0;
  layers_gather(v, place);
  return v;
}

/* Not inlined: what it needs of the stack is not to be paid by requests that only come by. */
static __attribute__((noinline)) int run_inside(request_rec *r, const host_rules *host, const place_rules *place, handler_kind kind) {
  /* mod_rewrite in a directory: the handler only starts another request, which is decided about by itself. */
  if (r->handler && !strcmp(r->handler, "redirect-handler")) return DECLINED;
  visit *v = new_visit(r, host, place, kind);
  if (v->layers == 0) return DECLINED;
  ap_set_module_config(r->request_config, &admission_module, v);
  if (layers_of_rejection(r)) let_error_page_through(v);
  else if (!decide(v, place)) return respond_reject(v);

  respond_tell(v);
  bool to_last_byte = holds_for_response(v);
  if (v->answer.permits > 0)
    apr_pool_cleanup_register(to_last_byte ? pool_of_response(r) : r->pool, v, give_back, apr_pool_cleanup_null);
  v->in_handler = true;
  int result = ap_run_handler(r);
  v->in_handler = false;
  if (!to_last_byte && result != SUSPENDED) give_back(v);
  respond_tell_log(v);
  return result;
}

/* All requests of the server come by here, those that concern us by the way of run_inside: it is short on purpose. */
int request_around(request_rec *r) {
  const host_rules *host = ap_get_module_config(r->server->module_config, &admission_module);
  if (host->engine <= ENGINE_OFF || !running.table) return DECLINED;
  const visit *v = request_visit(r);
  if (v && v->in_handler) return DECLINED; /* called by run_inside */
  if (r->prev) respond_carry(r);
  const place_rules *place = ap_get_module_config(r->per_dir_config, &admission_module);
  handler_kind kind;
  if (!place || !layers_concern(r, place, &kind)) return DECLINED;
  return run_inside(r, host, place, kind);
}
