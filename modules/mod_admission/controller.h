/*
 * controller.h: the helper process of mod_admission.
 *
 * One process beside the workers, made by the parent: it takes permits of dead processes back, reads the control file,
 * moves limits by time of day and by pressure on memory, learns costs and writes status.json. Requests never wait for
 * it: without it the server goes on with the last settings. When it dies, the parent starts another; when the parent
 * dies or the configuration is replaced, it ends.
 */
#ifndef ADMISSION_CONTROLLER_H
#define ADMISSION_CONTROLLER_H

#include "core/settings.h"
#include "httpd.h"

/* All that the controller works with; lives as long as the pool. */
typedef struct controller_plan {
  adm_table *table;
  const adm_rule *rules;     /* as configured: all groups, the budget (ADM_FOR_MEMORY) and the waiting workers
                                (ADM_FOR_WAITING) included when there are such */
  const int *groups;         /* the table's group of each rule */
  unsigned rule_count;
  const char *control_file;  /* NULL: none */
  const char *runtime_dir;   /* status.json goes here; NULL: no status.json */
  struct adm_news_board *board; /* where the controller tells pages of itself (core/news.h); NULL: nowhere */
  uint64_t started_ms;       /* wall clock at which the table was made, milliseconds since 1970 */
  const char *root;          /* where proc and sys/fs/cgroup are: "/" but in tests */
  uint32_t max_hold_ms;      /* AdmissionMaxHold; 0: none */
  adm_lingers lingers;       /* for permits with a program behind them; NULL: none */
  void *lingers_world;
} controller_plan;

/* Starts the process. To be called in post_config, not in its first (pre-flight) pass, with the table's groups already
 * set as configured; `pool` is pconf: when it is cleared, the process ends. */
apr_status_t controller_start(apr_pool_t *pool, server_rec *server, const controller_plan *plan);

#endif
