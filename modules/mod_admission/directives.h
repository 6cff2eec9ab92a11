/*
 * directives.h: what the configuration says, parsed once.
 *
 * Three scopes, as httpd has them: the whole server (configuration), a virtual host (host_rules) and a directory,
 * location, file, <If> or .htaccess (place_rules). Words are checked where they stand, so that a mistake is reported
 * with its file and line; what depends on the rest of the configuration is checked by directives_check. Nothing here
 * runs while requests are served, but for .htaccess files.
 */
#ifndef ADMISSION_DIRECTIVES_H
#define ADMISSION_DIRECTIVES_H

#include "core/settings.h"
#include "policy.h"

#include <ap_expr.h>
#include <http_config.h>
#include <httpd.h>

#define ADMISSION_NAME "admission" /* of the module's record, as LogLevel writes it */

extern module AP_MODULE_DECLARE_DATA admission_module;

typedef enum { ENGINE_UNSET, ENGINE_OFF, ENGINE_OBSERVE, ENGINE_ON } engine_mode;
typedef enum { LOG_UNSET, LOG_DEFAULT, LOG_COMPAT, LOG_OFF } log_style;

/* What a handler does, as far as its name tells. */
typedef enum { KIND_STATIC, KIND_DYNAMIC, KIND_OWN_PAGE } handler_kind;

/* A group's handlers: of which kinds, a bit for each, or which by name. */
typedef enum {
  HANDLERS_STATIC = 1 << KIND_STATIC,
  HANDLERS_DYNAMIC = 1 << KIND_DYNAMIC,
  HANDLERS_ANY = HANDLERS_STATIC | HANDLERS_DYNAMIC, /* httpd's own pages are in none of them */
  HANDLERS_NAMED = 0
} handler_choice;

/* AdmissionGroup: a rule and what only the module can judge. */
typedef struct group_rule {
  const char *name;
  adm_settings settings;
  const ap_expr_info_t *expr; /* of key=expr: */
  handler_choice handlers;
  const char *const *handler_names; /* HANDLERS_NAMED: ends with NULL */
  const char *stands;               /* file and line, for messages */
  unsigned place;                   /* among the groups of the configuration, as they stand in it */
  int index;                        /* the table's group; -1 until post_config, or when the table has no room */
  adm_group *group;                 /* that group; NULL when there is none */
} group_rule;

/* A group's name where it is used or limited. */
typedef struct group_use {
  const char *name;
  group_rule *group; /* found by directives_check, or at once in .htaccess */
  const char *path;  /* of the section it stands in; NULL: of the server or virtual host itself */
  server_rec *server;
  const char *stands;
  uint32_t at_most; /* AdmissionLimit only */
} group_use;

/* A priority that applies when the expression (NULL: always) is true. */
typedef struct priority_rule {
  int32_t priority;
  const ap_expr_info_t *expr;
} priority_rule;

/* AdmissionPolicy: a file; compiled in each child. */
typedef struct policy_file {
  const char *path;  /* NULL: AdmissionPolicy none */
  uid_t owner;       /* who reads the configuration, and so starts the server */
  shared_text *kept; /* its last good version */
  policy *compiled;  /* made by child_init */
} policy_file;

/* The whole server. */
typedef struct configuration {
  apr_array_header_t *groups;   /* group_rule * */
  apr_array_header_t *named;    /* group_use *: all of them outside .htaccess, to be found by directives_check */
  apr_array_header_t *policies; /* policy_file * */
  adm_settings budget;          /* its limit in ADM_COST_UNITs; ADM_UNLIMITED: none */
  uint32_t queue_workers;       /* a number, or ... */
  unsigned queue_percent;       /* ... a share of MaxRequestWorkers when this is not 0 */
  uint32_t entries;
  const char *control_file;     /* NULL: none */
  const char *runtime_dir;
  uint32_t max_hold_ms;         /* 0: none */
  bool holds_files;             /* AdmissionHoldFd on stands somewhere */
} configuration;

/* A virtual host. After post_config each server_rec has its own. */
typedef struct host_rules {
  engine_mode engine;
  log_style log;
  const char *label; /* name:port, the same after a graceful restart */
} host_rules;

/* A directory, location, file, <If>, .htaccess, or the defaults of a virtual host. */
typedef struct place_rules {
  apr_array_header_t *uses;       /* group_use *; NULL: not said; empty: none */
  bool adds;                      /* .htaccess: `uses` come on top of what is above */
  apr_array_header_t *limits;     /* group_use *; all along the path count */
  apr_array_header_t *priorities; /* priority_rule *; the first that is true */
  int hold_file;                  /* -1: not said */
  policy_file *policy;
} place_rules;

extern const command_rec directives[];

/* The configuration that is being read or in force. */
const configuration *directives_now(void);

/* Starts a new one, from pre_config. */
void directives_begin(apr_pool_t *pool);

/* Likewise: of policies that the configuration before did not name, no good version is kept any more. */
void policies_begin(void);

/* Finds the groups that are named, and judges what depends on several directives, and on the room that there is. Logs what is wrong. */
bool directives_check(server_rec *main_server, const adm_shape *room);

/* The group of this name, or NULL. */
group_rule *directives_group(const char *name);

void *directives_host_create(apr_pool_t *pool, server_rec *server);
void *directives_host_merge(apr_pool_t *pool, void *above, void *below);
void *directives_place_create(apr_pool_t *pool, char *path);
void *directives_place_merge(apr_pool_t *pool, void *above, void *below);

#endif
