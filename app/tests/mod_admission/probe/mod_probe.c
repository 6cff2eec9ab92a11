/*
 * mod_probe.c: a handler, `probe`, that does what probe.h says in the server's own process or thread: it ends when that
 * dies, as the permit of its request must. Files handed to it are only names. With `spawn` a copy of that process ends the
 * request first, as one that pcntl_fork() made may. With `Define PROBE_FORKS` each connection is served by a copy, as
 * mpm-itk does.
 */
#include <httpd.h>

#include "probe.h"

#include <http_config.h>
#include <http_connection.h>
#include <http_core.h>
#include <http_protocol.h>
#include <stdbool.h>
#include <sys/wait.h>

static apr_status_t leave(void *nothing) {
  (void)nothing;
  _exit(0);
}

static int copy_per_connection(conn_rec *c) {
  static bool is_copy;
  if (is_copy || !ap_exists_config_define("PROBE_FORKS")) return DECLINED;
  pid_t copy = fork();
  if (copy == 0) {
    is_copy = true;
    ap_run_process_connection(c);
    ap_lingering_close(c);
    _exit(0);
  }
  waitpid(copy, NULL, 0);
  return OK;
}

static int probe_handler(request_rec *r) {
  if (!r->handler || strcmp(r->handler, "probe") != 0) return DECLINED;
  const char *folder = apr_table_get(r->subprocess_env, "PROBE_HOME");
  if (!folder) return HTTP_INTERNAL_SERVER_ERROR;
  probe p;
  probe_read(&p, folder, r->args ? r->args : "", (int)getpid());
  pid_t copy = *p.spawn ? fork() : 1;
  if (copy == 0) {
    r->connection->aborted = 1; /* the answer is the other's */
    apr_pool_cleanup_register(r->pool, NULL, leave, apr_pool_cleanup_null);
    return OK;
  }
  if (*p.spawn) waitpid(copy, NULL, 0);
  probe_run(&p);
  ap_set_content_type(r, "text/plain");
  if (r->header_only) return OK;
  for (long i = 0; i < p.body; i += 64) ap_rputs("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", r);
  ap_rprintf(r, "done %s\n", p.id);
  return OK;
}

static void register_hooks(apr_pool_t *pool) {
  (void)pool;
  ap_hook_process_connection(copy_per_connection, NULL, NULL, APR_HOOK_REALLY_FIRST);
  ap_hook_handler(probe_handler, NULL, NULL, APR_HOOK_MIDDLE);
}

AP_DECLARE_MODULE(probe) = {STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, NULL, register_hooks};
