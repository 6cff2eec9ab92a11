/*
 * keep.c: an output filter behind httpd's own header filter. That one has decided by the status alone to close; this one
 * has it decide again as for a 200, and corrects the Connection line. It changes nothing that httpd would have closed
 * anyway, and nothing in HTTP/2, whose streams end without their connection.
 */
#include "keep.h"

#include <apr_strings.h>
#include <http_log.h>
#include <http_protocol.h>
#include <stdbool.h>
#include <util_filter.h>

#define BODY_READ 65536 /* a longer body is cheaper to drop with its connection */
#define LINE "\r\nConnection: "

static ap_filter_rec_t *keeper;

static bool has_body(const request_rec *r) {
  const char *length = apr_table_get(r->headers_in, "Content-Length");
  return apr_table_get(r->headers_in, "Transfer-Encoding") || (length && strcmp(length, "0") != 0);
}

/* A body that is known to be short and is on its way already. */
static bool body_is_short(const request_rec *r) {
  const char *length = apr_table_get(r->headers_in, "Content-Length");
  return !apr_table_get(r->headers_in, "Transfer-Encoding") && length && !r->expecting_100 &&
         apr_strtoi64(length, NULL, 10) <= BODY_READ;
}

void keep_connection(request_rec *r, int status) {
  conn_rec *connection = r->connection;
  if (r->main || connection->master || connection->aborted || connection->keepalive == AP_CONN_CLOSE) return;
  if (has_body(r) && !body_is_short(r)) {
    connection->keepalive = AP_CONN_CLOSE;
    return;
  }
  if (!ap_status_drops_connection(status)) return; /* httpd does it all */
  if (has_body(r) && ap_discard_request_body(r) != OK) return;
  ap_add_output_filter_handle(keeper, NULL, r, connection);
}

/* The line that says that the connection closes, and what else it says (as HTTP/2 offered by Upgrade); NULL when there is
 * none. `end` is where the next line begins. */
static char *find_close(char *text, apr_pool_t *pool, const char **others, char **end) {
  char *line = strstr(text, LINE), *value = line ? line + strlen(LINE) : NULL;
  char *stop = value ? strstr(value, "\r\n") : NULL;
  if (!stop || stop - value < 5 || strncmp(stop - 5, "close", 5)) return NULL;
  apr_size_t length = (apr_size_t)(stop - 5 - value);
  while (length > 0 && strchr(", ", value[length - 1])) length--;
  *others = apr_pstrmemdup(pool, value, length);
  *end = stop + 2;
  return line;
}

/* Asks httpd's own rules (KeepAlive, MaxKeepAliveRequests, what the client wants) with the status out of the way. */
static bool would_keep(request_rec *r, const char *others) {
  int status = r->status, chunked = r->chunked;
  apr_table_unset(r->headers_out, "Connection");
  if (*others) apr_table_setn(r->headers_out, "Connection", others);
  r->connection->keepalive = AP_CONN_UNKNOWN;
  r->status = HTTP_OK;
  bool keep = ap_set_keepalive(r) != 0;
  r->status = status;
  if (!keep) r->chunked = chunked;
  return keep;
}

static const char *line_of(request_rec *r, const char *name) {
  const char *value = apr_table_get(r->headers_out, name);
  return value ? apr_pstrcat(r->pool, name, ": ", value, "\r\n", NULL) : "";
}

/* Takes the header off the front of a brigade as text; NULL, and the brigade as it was, when it does not start with one. */
static char *take_header(apr_bucket_brigade *brigade, apr_pool_t *pool) {
  char *text = NULL;
  apr_bucket *bucket = APR_BRIGADE_FIRST(brigade);
  while (bucket != APR_BRIGADE_SENTINEL(brigade) && !APR_BUCKET_IS_METADATA(bucket)) {
    const char *piece;
    apr_size_t length;
    if (apr_bucket_read(bucket, &piece, &length, APR_BLOCK_READ) != APR_SUCCESS) return NULL;
    text = apr_pstrcat(pool, text ? text : "", apr_pstrmemdup(pool, piece, length), NULL);
    bucket = APR_BUCKET_NEXT(bucket);
    if (strstr(text, "\r\n\r\n")) break;
  }
  if (!text || strncmp(text, "HTTP/1.", 7)) return NULL;
  while (APR_BRIGADE_FIRST(brigade) != bucket) apr_bucket_delete(APR_BRIGADE_FIRST(brigade));
  return text;
}

/* The header comes first and in one brigade; this filter is gone after it. */
static apr_status_t keep_filter(ap_filter_t *filter, apr_bucket_brigade *brigade) {
  request_rec *r = filter->r;
  ap_filter_t *next = filter->next;
  ap_remove_output_filter(filter);
  char *text = take_header(brigade, r->pool), *end = NULL;
  const char *others = "";
  char *line = text ? find_close(text, r->pool, &others, &end) : NULL;
  bool chunked = r->chunked;
  if (line && would_keep(r, others)) {
    line[2] = '\0';
    /* httpd sends a body without a length in chunks now, and has not said so. */
    const char *coding = r->chunked && !chunked ? "Transfer-Encoding: chunked\r\n" : "";
    text = apr_pstrcat(r->pool, text, coding, line_of(r, "Keep-Alive"), line_of(r, "Connection"), end, NULL);
  }
  if (text) APR_BRIGADE_INSERT_HEAD(brigade, apr_bucket_pool_create(text, strlen(text), r->pool, filter->c->bucket_alloc));
  return ap_pass_brigade(next, brigade);
}

void keep_register(void) {
  /* Behind HTTP_HEADER, which is AP_FTYPE_PROTOCOL, and before the body is cut into chunks. */
  keeper = ap_register_output_filter("ADMISSION_KEEP", keep_filter, NULL, (ap_filter_type)(AP_FTYPE_PROTOCOL + 1));
}
