/*
 * pages.h: where people and programs look: the handler `admission-status` and a section of mod_status.
 *
 * Pages read the table and change nothing. Access to them is the configuration's matter (`Require`), as for mod_status.
 */
#ifndef ADMISSION_PAGES_H
#define ADMISSION_PAGES_H

#include "core/admission.h"
#include "core/news.h"

#include <httpd.h>

/* What the pages show, as post_config knows it. `board` may be NULL; `control_file` too. */
typedef struct pages_shown {
  adm_table *table;
  const adm_news_board *board;
  const char *control_file;
  const char *engine;  /* AdmissionEngine of the whole server */
  uint64_t started_ms; /* wall clock at which the table was made, milliseconds since 1970; kept over graceful restarts */
  const _Atomic uint64_t *without_table; /* requests let through while there was no table; NULL: nobody counts them */
  bool idle;           /* no group is configured, so there is no table either */
} pages_shown;

/* Called in post_config, each time. The struct is copied, what it points to is not. */
void pages_show(const pages_shown *shown);

/* The handler. Register it as any other: ap_hook_handler(pages_handler, NULL, NULL, APR_HOOK_MIDDLE). */
int pages_handler(request_rec *r);

/* Registers the section of mod_status; from register_hooks. It does nothing where mod_status is not loaded. */
void pages_register(apr_pool_t *pool);

#endif
