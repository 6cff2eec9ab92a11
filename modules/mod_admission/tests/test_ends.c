/*
 * test_ends.c: who is seen to end, and who goes on, asked of real processes.
 */
#include "../ends.h"
#include "../process.h"
#include "check.h"
#include "child.h"

#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

/* Ends it, and leaves it a zombie. */
static void end(pid_t pid) {
  siginfo_t ended;
  kill(pid, SIGKILL);
  waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT);
}

static void seen_to_end(void) {
  pid_t one = child(), two = child();
  adm_process first = process_of((uint32_t)one), second = process_of((uint32_t)two);
  ends *e = ends_new(2, 1000);
  if (!e) abort();
  ends_look(e);
  CHECK_EQUAL(ends_ask(e, first), ENDS_WATCHED); /* whether it is the one that is meant is not known yet */
  CHECK_EQUAL(ends_ask(e, second), ENDS_WATCHED);
  ends_look(e);
  CHECK_EQUAL(ends_ask(e, first), ENDS_GOES_ON);
  CHECK_EQUAL(ends_ask(e, second), ENDS_GOES_ON);
  CHECK_EQUAL(ends_ask(e, process_of((uint32_t)getpid())), ENDS_UNKNOWN); /* no room */
  end(one);
  kill(two, SIGSTOP);
  CHECK_EQUAL(ends_ask(e, first), ENDS_GOES_ON); /* by the last look */
  ends_look(e);
  CHECK_EQUAL(ends_ask(e, second), ENDS_GOES_ON); /* in any order */
  CHECK_EQUAL(ends_ask(e, first), ENDS_ENDED);
  CHECK(process_dead(NULL, first));
  waitpid(one, NULL, 0);
  ends_look(e);
  CHECK_EQUAL(ends_ask(e, second), ENDS_GOES_ON);
  CHECK_EQUAL(ends_ask(e, first), ENDS_ENDED);
  ends_look(e);
  CHECK_EQUAL(ends_ask(e, second), ENDS_GOES_ON); /* and not the first, who is forgotten by the next look */
  ends_look(e);
  CHECK_EQUAL(ends_ask(e, second), ENDS_GOES_ON);
  CHECK_EQUAL(ends_ask(e, first), ENDS_UNKNOWN); /* there is none of that number */
  ends_look(e);
  ends_look(e); /* nobody asked for it meanwhile */
  CHECK_EQUAL(ends_ask(e, second), ENDS_WATCHED);
  end(two);
  waitpid(two, NULL, 0);
  ends_look(e);
  CHECK_EQUAL(ends_ask(e, second), ENDS_ENDED);
  ends_free(e);
}

/* Many of them, asked about in any order, and those of the same slot. */
static void in_any_order(void) {
  enum { MANY = 40 };
  pid_t pid[MANY];
  adm_process process[MANY];
  for (int i = 0; i < MANY; i++) process[i] = process_of((uint32_t)(pid[i] = child()));
  ends *e = ends_new(MANY, 1000);
  if (!e) abort();
  for (int i = 0; i < MANY; i++) CHECK_EQUAL(ends_ask(e, process[i]), ENDS_WATCHED);
  adm_process before = process[3];
  before.start--;
  CHECK_EQUAL(ends_ask(e, before), ENDS_UNKNOWN); /* had the number before */
  ends_look(e);
  ends_look(e); /* nobody was asked about: all are forgotten */
  for (int i = MANY; i-- > 0;) CHECK_EQUAL(ends_ask(e, process[i]), ENDS_WATCHED);
  ends_look(e);
  for (int i = 0; i < MANY; i++) {
    int of = i * 7 % MANY;
    CHECK_EQUAL(ends_ask(e, process[of]), ENDS_GOES_ON);
  }
  end(pid[7]);
  ends_look(e);
  for (int i = MANY; i-- > 0;) CHECK_EQUAL(ends_ask(e, process[i]), i == 7 ? ENDS_ENDED : ENDS_GOES_ON);
  ends_free(e);
  int first = dup(0), second = dup(0); /* the two that are free, and no others below the second */
  close(first);
  close(second);
  ends *few = ends_new(MANY, second + 1);
  if (!few) abort();
  int watched = 0;
  for (int i = 0; i < MANY; i++) watched += ends_ask(few, process[i]) == ENDS_WATCHED;
  CHECK_EQUAL(watched, 2);
  ends_free(few);
  for (int i = 0; i < MANY; i++) {
    kill(pid[i], SIGKILL);
    waitpid(pid[i], NULL, 0);
  }
}

enum { SEEN = 0, OTHERWISE = 1, NOT_HERE = 2, NOBODY = 65534 };

/* Root's group sees all. */
static bool becomes_nobody(void) { return setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0; }

/* A process of the same account that the other may not read of, as workers are to the controller with hidepid: its start is known from itself. */
static int of_a_hidden_process(void) {
  bool hides = unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
               mount("proc", "/proc", "proc", 0, "hidepid=2") == 0;
  if (!hides) return NOT_HERE;
  pid_t one = fork();
  if (one < 0) return NOT_HERE;
  if (one == 0) {
    if (!becomes_nobody()) _exit(1);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    raise(SIGSTOP);
    for (;;) pause();
  }
  int status;
  waitpid(one, &status, WUNTRACED); /* it is another's by now */
  adm_process hidden = process_of((uint32_t)one);
  if (!becomes_nobody() || hidden.start == 0 || process_of((uint32_t)one).start != 0) return NOT_HERE;
  ends *e = ends_new(2, 1000);
  if (!e) return NOT_HERE;
  bool seen = ends_ask(e, hidden) == ENDS_WATCHED && !process_dead(NULL, hidden);
  ends_look(e);
  seen &= ends_ask(e, hidden) == ENDS_GOES_ON;
  end(one);
  ends_look(e);
  seen &= ends_ask(e, hidden) == ENDS_ENDED;
  return seen ? SEEN : OTHERWISE;
}

static void hidden(void) {
  pid_t apart = fork();
  if (apart < 0) abort();
  if (apart == 0) _exit(of_a_hidden_process());
  int status = 0;
  waitpid(apart, &status, 0);
  CHECK(WIFEXITED(status));
  if (WEXITSTATUS(status) == NOT_HERE) puts("test_ends: skipped: needs root, and a /proc of its own with hidepid");
  else CHECK_EQUAL(WEXITSTATUS(status), SEEN);
}

static void no_room(void) {
  ends *e = ends_new(0, 1000);
  if (!e) abort();
  ends_look(e);
  CHECK_EQUAL(ends_ask(e, process_of((uint32_t)getpid())), ENDS_UNKNOWN);
  ends_look(e);
  ends_free(e);
  ends_free(NULL);
}

int main(void) {
  no_room();
  if (!has_descriptors()) return nothing_tried("test_ends", "no descriptors of processes");
  seen_to_end();
  in_any_order();
  hidden();
  return checked("test_ends");
}
