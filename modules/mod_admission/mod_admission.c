/*
 * mod_admission.c: the module's record and its hooks. All work is done in the files next to it:
 * directives and places (configuration), runtime (shared memory, children), layers, streams and request (one request),
 * respond, audience and keep (what clients and logs see), pages (what people see), controller (the process beside),
 * core/ (the decisions).
 */
#include "controller.h"
#include "directives.h"
#include "pages.h"
#include "request.h"
#include "respond.h"
#include "runtime.h"

#include <http_config.h>
#include <http_protocol.h>
#include <mpm_common.h>

static int pre_config(apr_pool_t *pool, apr_pool_t *log_pool, apr_pool_t *temporary) {
  (void)log_pool;
  (void)temporary;
  directives_begin(pool);
  policies_begin();
  return OK;
}

static int check_config(apr_pool_t *pool, apr_pool_t *log_pool, apr_pool_t *temporary, server_rec *main_server) {
  (void)log_pool;
  (void)temporary;
  return runtime_check(pool, main_server) ? OK : HTTP_INTERNAL_SERVER_ERROR;
}

static void register_hooks(apr_pool_t *pool) {
  /* mod_cache's handler is a first one, too (CacheQuickHandler off): behind ours, whichever was loaded first. As it is by
   * default, mod_cache has answered long before any handler. */
  static const char *const before_cache[] = {"mod_cache.c", NULL};
  ap_hook_pre_config(pre_config, NULL, NULL, APR_HOOK_MIDDLE);
  ap_hook_check_config(check_config, NULL, NULL, APR_HOOK_LAST); /* the MPM has settled its limits */
  ap_hook_post_config(runtime_post_config, NULL, NULL, APR_HOOK_MIDDLE);
  ap_hook_child_init(runtime_child_init, NULL, NULL, APR_HOOK_MIDDLE);
  ap_hook_child_init(request_child_init, NULL, NULL, APR_HOOK_REALLY_LAST);
  ap_hook_child_status(runtime_child_status, NULL, NULL, APR_HOOK_MIDDLE);
  ap_hook_monitor(controller_monitor, NULL, NULL, APR_HOOK_MIDDLE);
  ap_hook_handler(request_around, NULL, before_cache, APR_HOOK_REALLY_FIRST); /* around all others */
  ap_hook_handler(pages_handler, NULL, NULL, APR_HOOK_MIDDLE);
  pages_register(pool);
  respond_register();
}

/* httpd's own macro for this declares nothing about visibility; all else in this file's library is hidden. */
#pragma GCC visibility push(default)
AP_DECLARE_MODULE(admission) = {
  STANDARD20_MODULE_STUFF,
  directives_place_create,
  directives_place_merge,
  directives_host_create,
  directives_host_merge,
  directives,
  register_hooks,
#ifdef AP_MODULE_FLAG_NONE
  AP_MODULE_FLAG_NONE,
#endif
};
#pragma GCC visibility pop
