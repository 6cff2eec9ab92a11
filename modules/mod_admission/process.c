/*
 * process.c: reads /proc/PID/stat. Where there is no /proc it falls back to the number alone.
 */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What /proc/PID/stat says of a process. */
typedef struct process_stat {
  char state;
  unsigned long threads;
  uint32_t start;
} process_stat;

/* False when there is no such file. The name in between may contain anything but its last `)`. */
static bool read_stat(uint32_t pid, process_stat *stat) {
  char path[32], text[1024];
  snprintf(path, sizeof path, "/proc/%u/stat", pid);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  if (length <= 0) return false;
  text[length] = '\0';
  char *field = strrchr(text, ')');
  if (!field || field[1] != ' ') return false;
  stat->state = field[2];
  field += 2; /* field 3; the number of threads is field 20, the start time 22 */
  for (int number = 3; number < 22 && field; number++) {
    if (number == 20) stat->threads = strtoul(field, NULL, 10);
    field = strchr(field + 1, ' ');
  }
  if (!field) return false;
  stat->start = (uint32_t)strtoull(field, NULL, 10);
  return true;
}

adm_process process_of(uint32_t pid) {
  adm_process process = {.pid = pid};
  process_stat stat;
  if (read_stat(pid, &stat)) process.start = stat.start;
  return process;
}

bool process_dead(void *unused, adm_process process) {
  (void)unused;
  if (kill((pid_t)process.pid, 0) < 0 && errno == ESRCH) return true;
  process_stat stat;
  if (!read_stat(process.pid, &stat)) return false; /* it is there, so /proc is not */
  /* The state is that of the first thread; while others are left, they may write yet. */
  bool ended = (stat.state == 'Z' || stat.state == 'X') && stat.threads <= 1;
  return ended || (process.start != 0 && stat.start != process.start);
}
