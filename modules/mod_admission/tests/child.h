/*
 * child.h: real processes for tests that ask who goes on.
 */
#ifndef ADMISSION_TESTS_CHILD_H
#define ADMISSION_TESTS_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A process that does nothing, and ends with this one at the latest. */
static inline pid_t child(void) {
  pid_t child = fork();
  if (child < 0) abort();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) pause();
}

/* Whether the kernel gives descriptors of processes here. */
static inline bool has_descriptors(void) {
#ifdef SYS_pidfd_open
  int descriptor = (int)syscall(SYS_pidfd_open, getpid(), 0);
  if (descriptor >= 0) close(descriptor);
  return descriptor >= 0;
#else
  return false;
#endif
}

#endif
