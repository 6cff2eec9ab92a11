/*
 * runtime.h: the shared memory of a running server and this process's part in it.
 *
 * The memory is made once in the life of the parent process and outlives configurations: after a graceful restart the
 * children that still work on old requests and the new ones count in the same table. It does not look at requests.
 */
#ifndef ADMISSION_RUNTIME_H
#define ADMISSION_RUNTIME_H

#include "directives.h"
#include "hold.h"
#include "shared.h"

#include <ap_mpm.h>

#define EARLIER_TABLES 4 /* so many that were replaced are seen to: who is left in older ones waits to the end of its time */

typedef struct runtime {
  adm_table *table;      /* NULL: nothing is limited */
  adm_table *earlier[EARLIER_TABLES + 1]; /* in which requests of before a reload end, NULL behind the last */
  let_through *without_table; /* where requests are counted that would have been; NULL: there is a table, or no group */
  const adm_group *budget; /* the table's group of memory */
  log_stamp *stamps;     /* one per group of the table */
  _Atomic uint64_t *healed_ns; /* when a process last looked for the dead */
  adm_owner owner;       /* this process; ADM_NOBODY in the parent */
  const char *hold_path; /* the hold file; NULL: AdmissionHoldFd is not used */
  hold_files hold_asks;  /* of it and of those before, to ask who still runs */
  unsigned copies;       /* how many forks lie between the child that Apache started and this process: a copy's permits may be another's */
  bool programs_only;    /* all groups are for programs: of files nothing has to be known */
  bool holds_responses;  /* a group has hold=response */
  bool has_php;          /* mod_php is there, which may run pages that look like files */
  bool audience;         /* somebody can ask for the variables of requests that simply went on */
} runtime;

/* Said to be hidden here, too: what is only declared could else be another library's, and each use would look up where it is. */
extern __attribute__((visibility("hidden"))) runtime running;

/* Whether a process works on several requests at a time. */
bool runtime_is_threaded(void);

/* How many requests the MPM has in work at most; 0: it does not tell. */
uint64_t runtime_workers(void);

/* check_config: the configuration as a whole, and how large its table would be. */
bool runtime_check(apr_pool_t *pool, server_rec *main_server);

/* post_config: the table is found again or made, the groups are put in force, the controller is started. */
int runtime_post_config(apr_pool_t *pool, apr_pool_t *log_pool, apr_pool_t *temporary, server_rec *main_server);

/* child_init: this process joins the table. */
void runtime_child_init(apr_pool_t *pool, server_rec *main_server);

/* child_status, in the parent: gives back at once what a child that ended had. */
void runtime_child_status(server_rec *main_server, pid_t pid, ap_generation_t generation, int slot, mpm_child_status state);

/* Lets a fork of the child (mpm-itk makes one for each connection) join the table for requests of its own. */
void runtime_join_copy(server_rec *server);

/* Takes back what dead processes and programs have; whether anything was. For a request that is turned away, at most ten times a second in all
 * processes together; for one that waits, where nobody has for a second, which is where the controller is not at work: each process has to be
 * asked after. */
bool runtime_heal(bool waits);

#endif
