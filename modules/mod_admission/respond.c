/*
 * respond.c: telling. It decides nothing but how long a rejected client should wait before it tries again.
 */
#include "respond.h"

#include "keep.h"
#include "layers.h"

#include <apr_strings.h>
#include <http_log.h>
#include <http_protocol.h>

APLOG_USE_MODULE(admission);

#define RETRY_MAX_S 120

/* ---- environment and notes --------------------------------------------------------------------------------------- */

const char *const respond_variables[] = {"ADMISSION_GROUP", "ADMISSION_RESULT", "ADMISSION_WAIT_US", "ADMISSION_HELD", "ADMISSION_LIMIT", NULL};

/* The layer that the answer speaks of: the one that was full, else the first. */
static unsigned telling_layer(const visit *v) {
  for (unsigned i = 0; i < v->layers; i++)
    if (v->layer[i].group == v->answer.group) return i;
  return 0;
}

/* What the request was for, also where the budget that its groups share was full. */
static const char *label_told(const visit *v) { return v->layer[v->answer.group == ADM_GROUP_MEMORY ? 0 : telling_layer(v)].label; }

static const char *group_name(const visit *v) {
  return v->layers > 0 ? adm_group_at(running.table, v->layer[telling_layer(v)].group)->name : "";
}

static const char *number(const visit *v, uint64_t value) {
  if (value < 10) return "0\0001\0002\0003\0004\0005\0006\0007\0008\0009" + 2 * value; /* most are small */
  return apr_off_t_toa(v->r->pool, (apr_off_t)value);
}

/* As the group's limit is written: requests, or bytes of memory. */
static const char *amount(const visit *v, uint32_t value) {
  if (value == ADM_UNLIMITED) return "none";
  return number(v, v->answer.group == ADM_GROUP_MEMORY ? (uint64_t)value * ADM_COST_UNIT : value);
}

static const char *result_name(const visit *v) { return v->bypass ? "bypass" : adm_outcome_name(v->answer.outcome); }

/* Whose decision a request goes by: its own, or, of a page that goes on as another one (an Action's program, a `Location: /...`) and needs no
 * permit more, that of the page. The log asks the last of them. */
static const visit *decided(const visit *v) {
  for (const request_rec *r = v->r->prev; v->bypass && r; r = r->prev) {
    const visit *before = request_visit(r);
    if (before && before->answer.permits > 0 && !ap_is_HTTP_ERROR(r->status)) return before;
  }
  return v;
}

static void tell(const visit *v) {
  if (v->r->prev && layers_turned_away(v->r)) return; /* has that one's variables */
  const visit *told = decided(v);
  apr_table_t *variables = v->r->subprocess_env;
  /* A subrequest starts with the environment of its main request, and a SetEnv may say these names, too. */
  for (const char *const *name = respond_variables; *name; name++) apr_table_unset(variables, *name);
  apr_table_addn(variables, "ADMISSION_GROUP", group_name(told));
  apr_table_addn(variables, "ADMISSION_RESULT", result_name(told));
  if (told->bypass) return;
  apr_table_addn(variables, "ADMISSION_WAIT_US", number(told, told->answer.wait_ns / 1000));
  apr_table_addn(variables, "ADMISSION_HELD", amount(told, told->answer.held));
  apr_table_addn(variables, "ADMISSION_LIMIT", amount(told, told->answer.limit));
}

static void copy_variables(apr_table_t *to, const request_rec *from) {
  for (const char *const *name = respond_variables; *name; name++) {
    const char *value = apr_table_get(from->subprocess_env, *name);
    if (value) apr_table_setn(to, *name, value);
  }
}

/* For other modules. */
static void note(const visit *v) { copy_variables(v->r->notes, v->r); }

/* mod_log_config reads the variables of the last request of a redirection: an error page says what became of the request
 * that it is the answer to. */
void respond_carry(request_rec *r) {
  const visit *outer = layers_turned_away(r);
  if (outer) copy_variables(r->subprocess_env, outer->r);
}

/* Most requests simply go on: of them only the access log is told, when the handler is done, if it asks (audience.h).
 * Programs would have to carry, and phpinfo() to print, what tells them nothing. */
static bool simply_goes_on(const visit *v) {
  const visit *told = v->bypass ? decided(v) : v;
  return !told->bypass && told->answer.outcome == ADM_ADMITTED;
}

void respond_tell_log(visit *v) {
  if (simply_goes_on(v)) tell(v);
}

/* ---- the error log ----------------------------------------------------------------------------------------------- */

/* http-access-limiter's own lines, one for each request, for those who have programs that read them. */
static void log_compat(const visit *v, int status) {
  if (v->layers == 0 || v->bypass) return;
  const char *label = label_told(v);
  uint32_t with_this_one = v->answer.held + v->layer[telling_layer(v)].cost;
  ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, v->r->server, "access_limiter: file:%s counter:%s", label, amount(v, with_this_one));
  if (v->rejected)
    ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, v->r->server, "access_limiter: file:%s reached threshold: %s: return %d", label,
                 amount(v, v->answer.limit), status);
}

/* Whether this process may write for the group in this second, and how many lines were not written since the last. */
static bool may_log(int group, uint64_t *suppressed) {
  log_stamp *stamp = &running.stamps[group];
  uint64_t now = (uint64_t)apr_time_sec(apr_time_now()), last = stamp->second;
  if (last == now || !atomic_compare_exchange_strong(&stamp->second, &last, now)) {
    atomic_fetch_add_explicit(&stamp->suppressed, 1, memory_order_relaxed);
    return false;
  }
  *suppressed = atomic_exchange(&stamp->suppressed, 0);
  return true;
}

static const char *why(const visit *v) {
  if (v->answer.outcome == ADM_WOULD_REJECT) return "would be full, it only observes";
  if (v->answer.outcome == ADM_TIMEOUT) return "is full, waited in vain";
  return v->answer.outcome == ADM_GONE ? "is full, and the client has gone" : "is full";
}

static void log_full(const visit *v, int status, const char *retry) {
  uint64_t suppressed;
  if (!may_log(v->answer.group, &suppressed)) return;
  bool memory = v->answer.group == ADM_GROUP_MEMORY;
  const char *answered = "", *others = "";
  if (v->rejected && v->answer.outcome != ADM_GONE)
    answered = apr_psprintf(v->r->pool, ": status %d, Retry-After %s", status, retry);
  if (suppressed)
    others = apr_psprintf(v->r->pool, " (and %" APR_UINT64_T_FMT " more since the last line)", suppressed);
  ap_log_rerror(APLOG_MARK, APLOG_WARNING, 0, v->r, "ADM0030: %s%s %s: %s: %s of %s%s held, waited %" APR_UINT64_T_FMT " ms%s%s",
                memory ? "the budget of " : "group ", group_name(v), why(v), label_told(v), amount(v, v->answer.held),
                amount(v, v->answer.limit), memory ? " bytes" : "", v->answer.wait_ns / 1000000, answered, others);
}

static void write_log(const visit *v, int status, const char *retry) {
  if (v->host->log == LOG_COMPAT) log_compat(v, status);
  else if (v->host->log != LOG_OFF && v->answer.group >= 0 && (v->rejected || v->answer.outcome == ADM_WOULD_REJECT))
    log_full(v, status, retry);
}

/* ---- going on, and turning away ---------------------------------------------------------------------------------- */

void respond_tell(visit *v) {
  if (!simply_goes_on(v)) {
    tell(v);
    note(v);
  }
  write_log(v, 0, NULL);
}

/* When to try again: the predicted wait, and up to half of it more, so that those who were turned away together do not
 * come back together. The header has whole seconds: of the shortest wait there are three to draw from. */
static const char *retry_after(const visit *v) {
  uint64_t soonest = (v->answer.predicted_ns + 999999999) / 1000000000;
  if (soonest < 1) soonest = 1;
  if (soonest > RETRY_MAX_S * 2 / 3) soonest = RETRY_MAX_S * 2 / 3; /* half of it more is the most there is */
  uint64_t more = soonest / 2 > 2 ? soonest / 2 : 2;
  return apr_itoa(v->r->pool, (int)ap_random_pick((apr_uint32_t)soonest, (apr_uint32_t)(soonest + more)));
}

int respond_reject(visit *v) {
  request_rec *r = v->r;
  /* The budget has no status of its own: the request's own group says it. */
  const adm_group *group = adm_group_at(running.table, v->answer.group == ADM_GROUP_MEMORY ? v->manners : v->answer.group);
  int status = group ? (int)group->status : HTTP_SERVICE_UNAVAILABLE;
  const char *retry = retry_after(v);
  tell(v);
  note(v);
  write_log(v, status, retry);
  if (v->answer.outcome == ADM_GONE) { /* nobody to answer, nor to run the program of an error page for */
    r->connection->aborted = 1;
    r->status = status;
    return DONE;
  }
  apr_table_setn(r->err_headers_out, "Retry-After", retry);
  apr_table_setn(r->err_headers_out, "Cache-Control", "no-store");
  keep_connection(r, status);
  return status;
}

void respond_register(void) { keep_register(); }
