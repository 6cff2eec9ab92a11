/*
 * streams.c: a list of the streams that wait in this process (streams.h). It is as short as its bound, and only who is
 * about to wait comes by.
 */
#include "streams.h"

#include "runtime.h"

#include <http_config.h>
#include <httpd.h>
#include <pthread.h>
#include <stdlib.h>

#define OF_CONNECTION 3 /* half of the streams that mod_http2 begins to serve at once on a new connection */

typedef struct waiting_stream {
  struct waiting_stream *next;
  const request_rec *request;
} waiting_stream;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static waiting_stream *first;
static uint32_t request_workers, stream_workers; /* of the server, and of mod_http2 in this process */

/* The last value of a directive of the main server, 0 when it does not stand there: other modules' settings are their own. */
static uint32_t configured(const char *name) {
  uint32_t value = 0;
  for (const ap_directive_t *at = ap_conftree; at; at = at->next)
    if (!strcasecmp(at->directive, name)) value = (uint32_t)atoi(at->args);
  return value;
}

void streams_begin(void) {
  int daemons = 0, threads = 0;
  ap_mpm_query(AP_MPMQ_MAX_DAEMONS, &daemons);
  ap_mpm_query(AP_MPMQ_MAX_THREADS, &threads);
  request_workers = (uint32_t)daemons * (uint32_t)threads;
  /* As h2_get_workers_config() of mod_http2 does. */
  uint32_t least = configured("H2MinWorkers");
  if (least == 0) least = (uint32_t)threads;
  stream_workers = configured("H2MaxWorkers");
  if (stream_workers == 0) stream_workers = least * 3 / 2 > 4 ? least * 3 / 2 : 4;
}

/* The share that may wait of all workers, of these; at least one. What takes no share of the server's takes none here. */
static uint32_t most(void) {
  uint32_t limit = adm_group_at(running.table, ADM_GROUP_WAITING)->limit;
  if (limit >= request_workers) return UINT32_MAX;
  uint32_t share = (uint32_t)((uint64_t)limit * stream_workers / request_workers);
  return share > 0 ? share : 1;
}

static bool has_room(const conn_rec *connection) {
  uint32_t all = 0, own = 0, bound = most();
  for (const waiting_stream *at = first; at; at = at->next) {
    all++;
    own += at->request->connection->master == connection;
  }
  return bound == UINT32_MAX || (all < bound && own < OF_CONNECTION);
}

bool streams_enter(void *request) {
  const request_rec *r = request;
  const conn_rec *connection = r->connection->master;
  if (!connection) return true;
  waiting_stream *mine = apr_palloc(r->pool, sizeof *mine);
  pthread_mutex_lock(&mutex);
  bool room = has_room(connection);
  if (room) {
    *mine = (waiting_stream){first, r};
    first = mine;
  }
  pthread_mutex_unlock(&mutex);
  return room;
}

void streams_leave(void *request) {
  const request_rec *r = request;
  if (!r->connection->master) return;
  pthread_mutex_lock(&mutex);
  waiting_stream **at = &first;
  while (*at && (*at)->request != r) at = &(*at)->next;
  if (*at) *at = (*at)->next;
  pthread_mutex_unlock(&mutex);
}
