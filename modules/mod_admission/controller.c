/*
 * controller.c: the process that does the rounds (rounds.c): how it comes to life, lives beside the server and ends.
 *
 * It is a child of the parent like mod_cgid's daemon, and none of the MPM's: it takes no requests, holds no permits and
 * no listening socket. Whatever becomes of it, requests go on with the settings that are in shared memory.
 */
#include "controller.h"

#include "ap_listen.h"
#include "ap_mpm.h"
#include "apr_thread_proc.h"
#include "http_log.h"
#include "mpm_common.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

APLOG_USE_MODULE(admission);

#define NAME "httpd-admission" /* as `ps -o comm` shows it: at most 15 bytes */

/* The process as its parent knows it. */
typedef struct controller {
  controller_plan plan;
  apr_pool_t *pool;
  server_rec *server;
  apr_proc_t process; /* pid 0: none runs */
  uid_t owner;        /* who started the server */
  apr_time_t started;
} controller;

/* ---- in the process itself ------------------------------------------------------------------------------------- */

static void log_line(void *world, rounds_level level, const char *text) {
  static const int levels[] = {[ROUNDS_ERROR] = APLOG_ERR, [ROUNDS_WARNING] = APLOG_WARNING, [ROUNDS_NOTICE] = APLOG_NOTICE};
  ap_log_error(APLOG_MARK, levels[level], 0, (server_rec *)world, "%s", text);
}

/* What the terminal and the parent send to the whole process group is not meant for it, but the order to end is. The
 * parent's handlers, which it has from a restart, would only note a signal down. */
static void set_signals(void) {
  static const int ignored[] = {SIGHUP,  SIGINT,   SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2,
                                SIGWINCH, SIGTSTP, SIGTTIN, SIGTTOU, SIGALRM, SIGIO};
  struct sigaction action = {.sa_handler = SIG_IGN};
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) sigaction(ignored[i], &action, NULL);
  action.sa_handler = SIG_DFL;
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGCHLD, &action, NULL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

static uint64_t clock_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sleep_till_next(rounds *life) {
  uint64_t now = clock_ns(CLOCK_MONOTONIC), due = now + ROUNDS_NS;
  for (; now < due; now = clock_ns(CLOCK_MONOTONIC)) {
    uint64_t pause = rounds_carry(life, now), left = due - now;
    nanosleep(&(struct timespec){.tv_nsec = (long)(pause < left ? pause : left)}, NULL);
  }
}

/* The life of the process. `parent` ends it: by SIGKILL when its configuration goes, and the kernel does when it dies. */
static void live(controller *c, pid_t parent, bool hurry) {
  set_signals();
  prctl(PR_SET_NAME, NAME);
  ap_close_listeners();
  if (ap_run_drop_privileges(c->pool, c->server) != 0) _exit(1);
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* after the change of user, which clears it */
  rounds *life = rounds_new(&c->plan, c->owner, (uint32_t)parent, log_line, c->server);
  if (!life) _exit(1);
  const struct timespec breath = {.tv_sec = 1};
  if (!hurry) nanosleep(&breath, NULL);
  while (getppid() == parent) {
    rounds_turn(life, clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_REALTIME));
    sleep_till_next(life);
  }
  _exit(0);
}

/* ---- in the parent ---------------------------------------------------------------------------------------------- */

/* That of the configuration in force; NULL between two of them. */
static controller *wanted;

static apr_status_t start(controller *c, bool hurry);

static bool server_goes_on(void) {
  int state;
  return ap_mpm_query(AP_MPMQ_MPM_STATE, &state) == APR_SUCCESS && state != AP_MPMQ_STOPPING;
}

/* Ends the process and waits for it: it has nothing to lose, and a zombie would puzzle the MPM. */
static void end(controller *c) {
  pid_t pid = c->process.pid;
  c->process.pid = 0;
  if (pid <= 0) return;
  kill(pid, SIGKILL);
  while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
}

/* Told by httpd what became of the process. Unregistering it comes back here with a reason of its own. */
static void maintain(int reason, void *data, apr_wait_t status) {
  controller *c = data;
  bool died = reason == APR_OC_REASON_DEATH || reason == APR_OC_REASON_LOST;
  if (reason == APR_OC_REASON_UNREGISTER) end(c);
  if (reason == APR_OC_REASON_RESTART) wanted = NULL;
  if (!died && reason != APR_OC_REASON_RESTART) return;
  if (died) c->process.pid = 0;
  apr_proc_other_child_unregister(c);
  if (!died || !server_goes_on()) return;
  ap_log_error(APLOG_MARK, APLOG_ERR, 0, c->server, "ADM0046: the controller ended (status %d): another is started", status);
  /* One that cannot live must not keep the machine busy with being born. */
  start(c, apr_time_now() - c->started > apr_time_from_sec(5));
}

static apr_status_t start(controller *c, bool hurry) {
  pid_t parent = getpid(), pid = fork();
  if (pid < 0) {
    apr_status_t status = errno;
    ap_log_error(APLOG_MARK, APLOG_ERR, status, c->server, "ADM0047: no controller, settings stay as they are: it is tried again");
    return status;
  }
  if (pid == 0) live(c, parent, hurry);
  c->started = apr_time_now();
  c->process.pid = pid;
  apr_proc_other_child_register(&c->process, maintain, c, NULL, c->pool);
  return APR_SUCCESS;
}

/* Every ten seconds or so. */
int controller_monitor(apr_pool_t *pool, server_rec *server) {
  (void)pool;
  (void)server;
  if (wanted && wanted->process.pid == 0 && server_goes_on()) start(wanted, true);
  return OK;
}

static apr_status_t forget_wanted(void *unused) {
  (void)unused;
  wanted = NULL;
  return APR_SUCCESS;
}

apr_status_t controller_start(apr_pool_t *pool, server_rec *server, const controller_plan *plan) {
  controller *c = apr_pcalloc(pool, sizeof *c);
  c->plan = *plan;
  c->pool = pool;
  c->server = server;
  c->owner = geteuid();
  wanted = c;
  apr_pool_cleanup_register(pool, NULL, forget_wanted, apr_pool_cleanup_null);
  return start(c, true);
}
