/*
 * render.h: a table as text: JSON for programs (status.json and `?json`), Prometheus, HTML for people, and the lines of
 * mod_status' `?auto`.
 *
 * It only reads, changes nothing and writes nothing by itself: each piece of text goes to `put`. What is not in the
 * table (the clock, the control file) is told by the caller in an adm_report. No number goes through the locale.
 */
#ifndef ADMISSION_RENDER_H
#define ADMISSION_RENDER_H

#include "admission.h"
#include "news.h"

#define ADM_MODULE "mod_admission/0.1.0" /* name and version, as status files and pages say them */

/* Takes `length` bytes of text, which is not terminated. */
typedef void (*adm_put)(void *world, const char *text, size_t length);

/* What to render, and what the table does not know of itself. Zeros and NULLs stand for "not known" or "none". */
typedef struct adm_report {
  adm_table *table;         /* NULL: there was no memory for one, and nothing is limited */
  uint64_t without_table;   /* requests that were let through for that */
  uint64_t now_ns;          /* adm_now_ns() */
  uint64_t written_ms;      /* the wall clock, milliseconds since 1970 */
  uint64_t started_ms;      /* when the table was made: what the counts count from */
  uint32_t server_pid;      /* the parent process of the server */
  const char *control_file; /* NULL: AdmissionControlFile is not configured */
  const char *engine;       /* AdmissionEngine: on, observe, off, or mixed where virtual hosts differ; NULL: not known */
  adm_news news;            /* the controller's words: adm_news_read, or its own */
  bool idle;                /* no group is configured: that is why there is no table */
} adm_report;

/* The mean of what was measured, in microseconds; 0 where nothing was. */
static inline uint64_t adm_mean_us(const adm_histogram *from) {
  uint64_t count = 0;
  for (unsigned i = 0; i < ADM_BUCKETS; i++) count += from->bucket[i];
  return count > 0 ? from->sum_us / count : 0;
}

/* Version 1 of the format that docs/admission/status.md describes; one line, with its newline. */
void adm_render_json(const adm_report *report, adm_put put, void *world);

/* Text format 0.0.4. Entries are not told apart: their labels have no bound. */
void adm_render_prometheus(const adm_report *report, adm_put put, void *world);

/* A fragment: tables, no page around them. */
void adm_render_html(const adm_report *report, adm_put put, void *world);

/* `Key: value` lines. */
void adm_render_short(const adm_report *report, adm_put put, void *world);

#endif
