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

/* State and start time; false when there is no such file. The name in between may contain anything but its last `)`. */
static bool read_stat(uint32_t pid, char *state, uint32_t *start) {
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
  *state = field[2];
  field += 2; /* field 3; the start time is field 22 */
  for (int number = 3; number < 22 && field; number++) field = strchr(field + 1, ' ');
  if (!field) return false;
  *start = (uint32_t)strtoull(field, NULL, 10);
  return true;
}

adm_process process_of(uint32_t pid) {
  adm_process process = {.pid = pid};
  char state;
  if (!read_stat(pid, &state, &process.start)) process.start = 0;
  return process;
}

bool process_dead(void *unused, adm_process process) {
  (void)unused;
  if (kill((pid_t)process.pid, 0) < 0 && errno == ESRCH) return true;
  char state;
  uint32_t start;
  if (!read_stat(process.pid, &state, &start)) return false; /* it is there, so /proc is not */
  return state == 'Z' || state == 'X' || (process.start != 0 && start != process.start);
}
