/*
 * ends.c: a descriptor of each process, found by its number.
 */
#include "ends.h"

#include "process.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct ends {
  struct pollfd *end;   /* readable once the last thread has ended */
  adm_process *process; /* whose they are */
  bool *asked;          /* since the last look */
  unsigned count, most;
  unsigned *slot, slots; /* by number: a place and 1, or 0; at most half are taken */
  int highest;
  bool no_more; /* descriptors, until the next look */
};

/* glibc has it since 2.36. */
static int open_process(uint32_t pid) {
#ifdef SYS_pidfd_open
  return (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
#else
  (void)pid;
  return errno = ENOSYS, -1;
#endif
}

ends *ends_new(unsigned most, int highest) {
  ends *e = calloc(1, sizeof *e);
  if (!e) return NULL;
  e->most = most;
  e->highest = highest;
  e->slots = 2;
  while (e->slots < 2 * most) e->slots *= 2;
  e->slot = calloc(e->slots, sizeof *e->slot);
  e->end = calloc(most + 1, sizeof *e->end);
  e->process = calloc(most + 1, sizeof *e->process);
  e->asked = calloc(most + 1, sizeof *e->asked);
  if (e->slot && e->end && e->process && e->asked) return e;
  ends_free(e);
  return NULL;
}

void ends_free(ends *e) {
  if (!e) return;
  for (unsigned i = 0; i < e->count; i++) close(e->end[i].fd);
  free(e->end);
  free(e->process);
  free(e->asked);
  free(e->slot);
  free(e);
}

/* The slot that has the process, or is free for it. */
static unsigned *slot_of(const ends *e, adm_process process) {
  for (unsigned at = process.pid;; at++) {
    unsigned *slot = &e->slot[at & (e->slots - 1)];
    if (*slot == 0) return slot;
    const adm_process *its = &e->process[*slot - 1];
    if (its->pid == process.pid && its->start == process.start) return slot;
  }
}

void ends_look(ends *e) {
  unsigned kept = 0;
  e->no_more = false;
  for (unsigned i = 0; i < e->count; i++) {
    if (!e->asked[i]) {
      close(e->end[i].fd);
      continue;
    }
    e->end[kept] = (struct pollfd){.fd = e->end[i].fd, .events = POLLIN};
    e->process[kept] = e->process[i];
    e->asked[kept++] = false;
  }
  if (kept != e->count) {
    e->count = kept;
    memset(e->slot, 0, e->slots * sizeof *e->slot);
    for (unsigned i = 0; i < kept; i++) *slot_of(e, e->process[i]) = i + 1;
  }
  /* Nobody is told to go on by a look that failed. */
  if (poll(e->end, e->count, 0) >= 0) return;
  for (unsigned i = 0; i < e->count; i++) e->end[i].revents = POLLERR;
}

/* A descriptor of the process, or a number below 0. It is of whom the number belongs to now: if that is another, the one that is meant has
 * ended. Where /proc does not tell, that other's end is its end, too, at the latest. */
static int watch(ends *e, adm_process process) {
  if (e->no_more || e->count == e->most || process.start == 0) return -1;
  int descriptor = open_process(process.pid);
  if (descriptor < 0) {
    e->no_more = errno != ESRCH && errno != EINVAL;
    return -1;
  }
  uint32_t start = process_of(process.pid).start;
  e->no_more = descriptor >= e->highest;
  if (!e->no_more && (start == 0 || start == process.start)) return descriptor;
  close(descriptor);
  return -1;
}

ends_state ends_ask(ends *e, adm_process process) {
  unsigned *slot = slot_of(e, process);
  if (*slot == 0) {
    int descriptor = watch(e, process);
    if (descriptor < 0) return ENDS_UNKNOWN;
    unsigned i = e->count++;
    e->end[i] = (struct pollfd){.fd = descriptor, .revents = POLLERR};
    e->process[i] = process;
    *slot = i + 1;
  }
  unsigned i = *slot - 1;
  e->asked[i] = true;
  if (e->end[i].revents & POLLERR) return ENDS_WATCHED;
  return e->end[i].revents == 0 ? ENDS_GOES_ON : ENDS_ENDED;
}
