/*
 * controller.h: the helper process of mod_admission.
 *
 * One process beside the workers, made by the parent: it takes permits of dead processes back, reads the control file,
 * moves limits by time of day and by pressure on memory, learns costs and writes status.json. Requests never wait for
 * it: without it the server goes on with the last settings. When it dies, the parent starts another, and tries again where that fails; when the parent
 * dies or the configuration is replaced, it ends.
 */
#ifndef ADMISSION_CONTROLLER_H
#define ADMISSION_CONTROLLER_H

#include "httpd.h"
#include "rounds.h"

/* Starts the process. To be called in post_config, not in its first (pre-flight) pass, with the table's groups already
 * set as configured; what the plan points to lives as long as the pool; `pool` is pconf: when it is cleared, the process ends. */
apr_status_t controller_start(apr_pool_t *pool, server_rec *server, const controller_plan *plan);

/* For httpd's hook `monitor`: starts the process where that was to be done and no process could be made. */
int controller_monitor(apr_pool_t *pool, server_rec *server);

#endif
