/*
 * streams.c: a list of the streams that wait in this process (streams.h). It is as short as its bound, and only who is
 * about to wait comes by.
 */
#include "streams.h"

#include "runtime.h"

#include <apr_optional.h>
#include <http_config.h>
#include <httpd.h>
#include <pthread.h>

/* Half of the streams that mod_http2 serves at once on a new connection: six, "the original h1 max parallel connections" of h2_mplx.c
 * (limit_active in its 1.15, processing_limit in its 2.0, which httpd 2.4.71 has as 2.0.42). In a version with another number files
 * wait behind the waiting streams of their own connection, or fewer streams wait than could: nothing worse. */
#define OF_CONNECTION 3

typedef struct waiting_stream {
  struct waiting_stream *next;
  const request_rec *request;
} waiting_stream;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static waiting_stream *first;
static uint32_t request_workers, stream_workers; /* of the server, and of mod_http2 in this process */

/* mod_http2's own word for what H2MinWorkers and H2MaxWorkers come to, which mod_proxy asks, too. How it finds the number is its own
 * affair (in 2.0.42 h2_get_workers_config() of h2_config.c: one and a half times ThreadsPerChild, or H2MinWorkers, and at least 4), and
 * may be another in another version. Declared here, for its header need not be installed. */
APR_DECLARE_OPTIONAL_FN(void, http2_get_num_workers, (server_rec *server, int *least, int *most));

uint32_t streams_at_most(server_rec *main_server) {
  int least = 0, workers = 0;
  APR_OPTIONAL_FN_TYPE(http2_get_num_workers) *ask = APR_RETRIEVE_OPTIONAL_FN(http2_get_num_workers);
  if (runtime_is_threaded() && ask) ask(main_server, &least, &workers);
  return workers > 0 ? (uint32_t)workers : 0;
}

void streams_begin(server_rec *main_server) {
  int daemons = 0, threads = 0;
  ap_mpm_query(AP_MPMQ_MAX_DAEMONS, &daemons);
  ap_mpm_query(AP_MPMQ_MAX_THREADS, &threads);
  request_workers = (uint32_t)daemons * (uint32_t)threads;
  uint32_t workers = streams_at_most(main_server);
  /* One that does not tell has as many as threads, as far as anybody knows: the share is then right of those. */
  stream_workers = workers > 0 ? workers : (uint32_t)threads;
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
