/*
 * pages.c: the handler `admission-status` and the section of mod_status (pages.h). What they say is rendered by the
 * core; here is only what httpd has to do with it: which format was asked for, its headers, and where the bytes go.
 */
#include "pages.h"

#include "core/render.h"

#include <ap_config.h>
#include <apr_optional_hooks.h>
#include <apr_strings.h>
#include <apr_time.h>
#include <errno.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>
#include <httpd.h>
#include <mod_status.h>
#include <signal.h>
#include <unistd.h>

#define REFRESH_DEFAULT 10 /* seconds, as mod_status does for a bare ?refresh */
#define REFRESH_MOST 3600

/* Written in post_config before the children are started, only read after. */
static pages_shown shown;
static uint32_t server_pid;

void pages_show(const pages_shown *what) {
  shown = *what;
  server_pid = (uint32_t)getpid(); /* post_config runs in the parent */
}

/* An adm_put into a response. */
static void respond(void *world, const char *text, size_t length) {
  ap_rwrite(text, (int)length, world);
}

static void respond_escaped(void *world, const char *text, size_t length) {
  request_rec *r = world;
  ap_rputs(ap_escape_html(r->pool, apr_pstrmemdup(r->pool, text, length)), r);
}

static adm_report report_now(void) {
  adm_report report = {
      .table = shown.table,
      .without_table = shown.without_table ? *shown.without_table : 0,
      .now_ns = adm_now_ns(),
      .written_ms = (uint64_t)apr_time_as_msec(apr_time_now()),
      .started_ms = shown.started_ms,
      .server_pid = server_pid,
      .control_file = shown.control_file,
      .engine = shown.engine,
      .idle = shown.idle,
  };
  adm_news_read(shown.board, &report.news);
  if (report.news.pid != 0 && kill((pid_t)report.news.pid, 0) != 0 && errno == ESRCH) report.news.pid = 0; /* it cannot say so itself */
  return report;
}

/* What the query string asks for. */
typedef struct query {
  enum { PAGE, JSON, PROMETHEUS } format;
  int refresh; /* seconds; 0: not */
} query;

static query read_query(request_rec *r) {
  query asked = {PAGE, 0};
  char *rest = apr_pstrdup(r->pool, r->args ? r->args : ""), *last;
  for (char *word = apr_strtok(rest, "&;", &last); word; word = apr_strtok(NULL, "&;", &last)) {
    if (strcmp(word, "json") == 0) asked.format = JSON;
    else if (strcmp(word, "prometheus") == 0) asked.format = PROMETHEUS;
    else if (strcmp(word, "refresh") == 0) asked.refresh = REFRESH_DEFAULT;
    else if (strncmp(word, "refresh=", 8) == 0) {
      apr_int64_t seconds = apr_atoi64(word + 8);
      asked.refresh = seconds < 1 ? REFRESH_DEFAULT : seconds > REFRESH_MOST ? REFRESH_MOST : (int)seconds;
    }
  }
  return asked;
}

static void page(request_rec *r, const adm_report *report) {
  ap_rputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Admission</title>\n"
           "<style>body{font:14px sans-serif;margin:1.5em}table{border-collapse:collapse;margin:1em 0}"
           "th,td{padding:.2em .6em;border-bottom:1px solid #ccc;white-space:nowrap}table tr:first-child th{white-space:normal;vertical-align:bottom}dl{margin:0}</style></head><body>\n"
           "<h1>Admission for ", r);
  ap_rputs(ap_escape_html(r->pool, ap_get_server_name(r)), r);
  ap_rputs("</h1>\n", r);
  if (report->started_ms) {
    char since[APR_RFC822_DATE_LEN];
    apr_rfc822_date(since, (apr_time_t)report->started_ms * 1000);
    ap_rprintf(r, "<p>%s; counting since %s.</p>\n", ADM_MODULE, since);
  }
  adm_render_html(report, respond, r);
  ap_rputs("<p><a href=\"?json\">JSON</a> &middot; <a href=\"?prometheus\">Prometheus</a> &middot; "
           "<a href=\"?refresh=2\">refresh each 2 s</a></p>\n</body></html>\n", r);
}

static __attribute__((noinline)) int status_page(request_rec *r) {
  r->allowed = AP_METHOD_BIT << M_GET;
  if (r->method_number != M_GET) return HTTP_METHOD_NOT_ALLOWED;
  query asked = read_query(r);
  static const char *const type[] = {"text/html; charset=utf-8", "application/json", "text/plain; version=0.0.4; charset=utf-8"};
  ap_set_content_type(r, type[asked.format]);
  apr_table_setn(r->headers_out, "Cache-Control", "no-store");
  if (asked.refresh) apr_table_setn(r->headers_out, "Refresh", apr_itoa(r->pool, asked.refresh));
  if (r->header_only) return OK;
  adm_report report = report_now();
  if (asked.format == JSON) adm_render_json(&report, respond, r);
  else if (asked.format == PROMETHEUS) adm_render_prometheus(&report, respond, r);
  else page(r, &report);
  return OK;
}

/* Asked for all requests of the server, so what it costs the others is little. */
int pages_handler(request_rec *r) {
  if (!r->handler || r->handler[0] != 'a' || strcmp(r->handler, "admission-status") != 0) return DECLINED;
  return status_page(r);
}

/* mod_status asks each module for its part of the page, in the form that was asked of it. */
static int section(request_rec *r, int flags) {
  if (shown.idle) return DECLINED;
  adm_report report = report_now();
  if (flags & AP_STATUS_SHORT) {
    adm_render_short(&report, respond, r);
    return OK;
  }
  ap_rputs("<hr />\n<h2>Admission</h2>\n", r);
  if (flags & AP_STATUS_NOTABLE) {
    ap_rputs("<pre>\n", r);
    adm_render_short(&report, respond_escaped, r);
    ap_rputs("</pre>\n", r);
  } else {
    adm_render_html(&report, respond, r);
  }
  return OK;
}

void pages_register(apr_pool_t *pool) {
  (void)pool;
  APR_OPTIONAL_HOOK(ap, status_hook, section, NULL, NULL, APR_HOOK_MIDDLE);
}
