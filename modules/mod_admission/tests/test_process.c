/*
 * test_process.c: who counts as dead, asked of real processes.
 */
#include "../process.h"
#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_dead(adm_process process) { return process_dead(NULL, process); }

static pid_t child_of(void (*does)(void)) {
  pid_t child = fork();
  if (child < 0) abort();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  does();
  _exit(0);
}

/* Comes back when the first thread of the process is in this state. */
static void wait_for_state(pid_t pid, char state) {
  char path[32], text[512], after_name[] = {')', ' ', state, 0};
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  for (;;) {
    FILE *file = fopen(path, "r");
    if (!file) abort();
    bool there = fgets(text, sizeof text, file) && strstr(text, after_name);
    fclose(file);
    if (there) return;
    sched_yield();
  }
}

static void waits(void) {
  for (;;) pause();
}

static void *goes_on(void *nothing) {
  waits();
  return nothing;
}

static void ends_its_first_thread(void) {
  pthread_t other;
  if (pthread_create(&other, NULL, goes_on, NULL)) abort();
  pthread_exit(NULL);
}

static void of_one_thread(void) {
  pid_t child = child_of(waits);
  adm_process process = process_of((uint32_t)child), other = process;
  other.start++;
  CHECK(!is_dead(process));
  CHECK(is_dead(other)); /* had the number before */
  kill(child, SIGSTOP);
  wait_for_state(child, 'T');
  CHECK(!is_dead(process));
  kill(child, SIGKILL);
  siginfo_t ended;
  waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT);
  CHECK(is_dead(process)); /* nobody has asked for its end yet */
  waitpid(child, NULL, 0);
  CHECK(is_dead(process));
}

/* It looks like a zombie, and its other thread may still write into the table. */
static void of_several_threads(void) {
  pid_t child = child_of(ends_its_first_thread);
  adm_process process = process_of((uint32_t)child);
  wait_for_state(child, 'Z');
  CHECK(!is_dead(process));
  kill(child, SIGKILL);
  siginfo_t ended;
  waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT);
  CHECK(is_dead(process));
  waitpid(child, NULL, 0);
}

int main(void) {
  CHECK(!is_dead(process_of((uint32_t)getpid())));
  of_one_thread();
  of_several_threads();
  return checked("test_process");
}
