/*
 * mod_probe.c: a handler, `probe`, that does what probe.h says in the server's own process or thread: it ends when that
 * dies, as the permit of its request must. Files handed to it are only names.
 */
#include <httpd.h>

#include "probe.h"

#include <http_config.h>
#include <http_protocol.h>

static int probe_handler(request_rec *r) {
  if (!r->handler || strcmp(r->handler, "probe") != 0) return DECLINED;
  const char *folder = apr_table_get(r->subprocess_env, "PROBE_HOME");
  if (!folder) return HTTP_INTERNAL_SERVER_ERROR;
  probe p;
  probe_read(&p, folder, r->args ? r->args : "", (int)getpid());
  probe_run(&p);
  ap_set_content_type(r, "text/plain");
  if (r->header_only) return OK;
  for (long i = 0; i < p.body; i += 64) ap_rputs("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", r);
  ap_rprintf(r, "done %s\n", p.id);
  return OK;
}

static void register_hooks(apr_pool_t *pool) {
  (void)pool;
  ap_hook_handler(probe_handler, NULL, NULL, APR_HOOK_MIDDLE);
}

AP_DECLARE_MODULE(probe) = {STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, NULL, register_hooks};
