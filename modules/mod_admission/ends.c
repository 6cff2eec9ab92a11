/*
 * ends.c: a descriptor of each process, found by its number.
 */
#include "ends.h"

#include "process.h"

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
};

/* glibc has it since 2.36. */
static int open_process(uint32_t pid) {
#ifdef SYS_pidfd_open
  return (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
#else
  (void)pid;
  return -1;
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

ends_state ends_ask(ends *e, adm_process process) {
  unsigned *slot = slot_of(e, process);
  if (*slot == 0) {
    if (e->count == e->most) return ENDS_UNKNOWN;
    int descriptor = open_process(process.pid);
    if (descriptor < 0) return ENDS_UNKNOWN;
    /* Who has the number now is whom the descriptor is of: only if that is known to be the one that is meant may nobody ask again. */
    if (descriptor >= e->highest || process.start == 0 || process_of(process.pid).start != process.start) {
      close(descriptor);
      return ENDS_UNKNOWN;
    }
    unsigned i = e->count++;
    e->end[i] = (struct pollfd){.fd = descriptor, .revents = POLLERR};
    e->process[i] = process;
    *slot = i + 1;
  }
  unsigned i = *slot - 1;
  e->asked[i] = true;
  return e->end[i].revents == 0 ? ENDS_GOES_ON : ENDS_WATCHED;
}

void ends_drop(ends *e, adm_process process) {
  unsigned slot = *slot_of(e, process);
  if (slot != 0) e->asked[slot - 1] = false;
}
