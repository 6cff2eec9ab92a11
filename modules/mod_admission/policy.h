/*
 * policy.h: the administrator's policy in Lua: a request in, a group, a cost, a limit out.
 *
 *   function admission(r)
 *     if r.host == "shop.example" and r:load("shop") > 3 then return { group = "slow", cost = "200M", limit = 4 } end
 *   end
 *
 * r.host r.file r.uri r.handler r.method r.client r.args are strings (or nil); r:load("name") gives held, limit, waiting
 * of a group, over all its entries; r.budget.used and r.budget.limit are bytes of the memory budget (limit nil: none).
 * `return group, cost, limit` is the same as the table; what is nil, or nothing at all, changes nothing.
 * The script is compiled once per process and state; when its file changes it is compiled again within a second, and
 * when that fails the last good one is in force: in all processes the same, of whichever it was the last (shared.h). A
 * policy is the administrator's own and may say any limit; in force is the lower one of it and the group's, so a group that
 * a policy is to govern alone has limit=none. It has no files, no network, no modules, 16 MiB (an interpreter that has
 * filled them is made anew) and one million instructions per request. These end every loop, but bound no time: what one of
 * them does in C (a pattern match, a long text copied) takes as long as it takes. No httpd types here.
 */
#ifndef ADMISSION_POLICY_H
#define ADMISSION_POLICY_H

#include "core/admission.h"
#include "shared.h"

#include <sys/types.h>

typedef struct policy policy;

/* Whether this build has Lua; without it policy_new returns NULL and says so. */
bool policy_available(void);

typedef struct policy_request {
  const char *host, *file, *uri, *handler, *method, *client, *args; /* NULL: nil */
} policy_request;

typedef struct policy_answer {
  bool has_group, has_cost, has_limit;
  char group[ADM_NAME];  /* `none`: no group */
  uint32_t cost;         /* ADM_COST_UNITs; 0: none */
  uint32_t limit;        /* ADM_UNLIMITED: none */
} policy_answer;

/* Told once for each version of the file and kind of trouble, per process. */
typedef void (*policy_log)(void *world, const char *message);

/* Compiles the file, for the configuration; false for what does not compile and what others than root and `owner` could
 * have written (watch.h). Here as below a text that compiles is kept as the last good one of this path. What is kept
 * already is not run here: children can write it, and who reads the configuration may be root.
 * `error` has ADM_ERROR (core/settings.h) bytes. */
bool policy_check(const char *path, uid_t owner, shared_text *kept, char *error);

/* A policy with at most `states` interpreters, made when they are needed (so nothing is running yet when a process
 * forks): one for prefork, a few for threads. NULL without memory or Lua. */
policy *policy_new(const char *path, uid_t owner, shared_text *kept, unsigned states);

/* Asks about one request; safe from several threads. False: no answer, by nil, by an error that went to `log`, or, which goes there
 * too, because others had all interpreters for a second. */
bool policy_ask(policy *policy, const adm_table *table, const policy_request *request, policy_answer *answer,
                policy_log log, void *world);

/* Closes all interpreters; nobody may be asking. */
void policy_free(policy *policy);

#endif
