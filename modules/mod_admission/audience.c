/*
 * audience.c: who can ask for variables when a request is logged. httpd's own loggers know no names but those that stand in the
 * configuration; a logger that is a script, or that this file does not know, may ask for anything.
 */
#include "audience.h"

#include "respond.h"

#include <apr_strings.h>
#include <http_config.h>
#include <http_protocol.h>

static bool is_one_of(const char *name, const char *const *names) {
  for (; *names; names++)
    if (!strcmp(name, *names)) return true;
  return false;
}

static bool stands(const char *name, const ap_directive_t *directive) {
  for (; directive; directive = directive->next)
    if (!strcasecmp(directive->directive, name) || stands(name, directive->first_child)) return true;
  return false;
}

static bool loggers_are_configured(void) {
  static const char *const known[] = {"mod_log_config.c", "mod_log_debug.c", "mod_log_forensic.c", "mod_logio.c", NULL};
  const apr_array_header_t *loggers = ap_hook_get_log_transaction();
  for (int i = 0; loggers && i < loggers->nelts; i++) {
    const char *name = APR_ARRAY_IDX(loggers, i, ap_LINK_log_transaction_t).szName;
    bool silent = !strcmp(name, "mod_lua.c") && !stands("LuaHookLog", ap_conftree); /* it is always there to log */
    if (!silent && !is_one_of(name, known)) return false;
  }
  return true;
}

static bool has_variable(const char *text) {
  for (const char *const *name = respond_variables; *name; name++)
    if (ap_strcasestr(text, *name)) return true; /* tables are asked in either case */
  return false;
}

static bool has_variables(const ap_directive_t *directive) {
  for (; directive; directive = directive->next)
    if ((directive->args && has_variable(directive->args)) || has_variables(directive->first_child)) return true;
  return false;
}

bool audience_listens(void) { return !loggers_are_configured() || has_variables(ap_conftree); }
