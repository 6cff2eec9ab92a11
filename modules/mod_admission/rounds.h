/*
 * rounds.h: what the controller does every 250 ms, and a little of it in between. No httpd types: tests do rounds by hand, with clocks of their own.
 *
 * It reads shared memory that unprivileged children may have damaged: names and settings come from the plan, and
 * every group that the table names is bounded before it is used.
 */
#ifndef ADMISSION_ROUNDS_H
#define ADMISSION_ROUNDS_H

#include "core/settings.h"

#include <sys/types.h>

struct adm_news_board;
struct adm_control_kept;

/* All that the controller works with. */
typedef struct controller_plan {
  adm_table *table;
  adm_table *const *earlier; /* tables that it replaced, in which requests of before end, NULL behind the last; NULL: none */
  const adm_rule *rules;     /* as configured: all groups, the budget (ADM_FOR_MEMORY) and the waiting workers
                                (ADM_FOR_WAITING), with a limit of ADM_UNLIMITED where nothing is configured */
  const int *groups;         /* the table's group of each rule */
  unsigned rule_count;
  uint64_t workers;          /* how many requests the MPM has in work at most; 0: unknown */
  const char *control_file;  /* NULL: none */
  const char *engine;        /* AdmissionEngine, for those who read the status */
  const char *runtime_dir;   /* status.json goes here; NULL: no status.json */
  struct adm_news_board *board; /* where the controller tells pages of itself (core/news.h); NULL: nowhere */
  struct adm_control_kept *kept; /* the text of the control file that is in force (core/control.h) */
  _Atomic uint64_t *healed_ns; /* where it is noted that the dead were looked for; NULL: nowhere */
  const _Atomic uint64_t *without_table; /* requests let through while there was no table; NULL: none */
  uint64_t started_ms;       /* wall clock at which the table was made, milliseconds since 1970 */
  const char *root;          /* where proc and sys/fs/cgroup are, with a slash at its end: "/" but in tests */
  bool alone;                /* a process works on one request at a time: no threads */
  uint32_t max_hold_ms;      /* AdmissionMaxHold; 0: none */
  adm_dead dead;
  bool watches;              /* those that `dead` is asked about are processes of this machine: their ends are watched for */
  adm_lingers lingers;       /* for permits with a program behind them; NULL: none */
  void *lingers_world;
} controller_plan;

typedef enum { ROUNDS_ERROR, ROUNDS_WARNING, ROUNDS_NOTICE } rounds_level;
typedef void (*rounds_log)(void *world, rounds_level level, const char *text);

/* Whoever opens status.json.new while it is written sends the process SIGIO, which it has to ignore: else it ends. */
typedef struct rounds rounds;

/* `owner` is whose control file is believed, `server_pid` the parent. NULL without memory. */
rounds *rounds_new(const controller_plan *plan, uid_t owner, uint32_t server_pid, rounds_log log, void *log_world);

/* Puts settings in force in a group. A limit of this time of day comes with them at once, not after a moment of another. */
void rounds_apply(adm_group *group, const adm_settings *settings, uint64_t wall_ns);

/* One round, at CLOCK_MONOTONIC and at the wall clock in nanoseconds since 1970. */
void rounds_turn(rounds *rounds, uint64_t now_ns, uint64_t wall_ns);

/* The time from one round to the next, in nanoseconds. */
#define ROUNDS_NS UINT64_C(250000000)

/* Between two rounds: lets the table know what was given back in those that it replaced; until then that counts. When to do it again,
 * in nanoseconds from then; ROUNDS_NS: the rounds are enough. */
uint64_t rounds_carry(rounds *rounds, uint64_t now_ns);

void rounds_free(rounds *rounds);

#endif
