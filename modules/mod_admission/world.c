/*
 * world.c: reads /proc and the cgroup files (world.h). What the texts mean is core/pressure.c's, but for processes.
 */
#include "world.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_BYTES 16384
#define PROGRAMS_MOST 256 /* descendants of one process that are looked at */

/* The text of ROOT/PATH/NAME, or NULL when there is none. */
static const char *text_of(const char *root, const char *path, const char *name, char text[TEXT_BYTES]) {
  char full[PATH_MAX];
  int length = snprintf(full, sizeof full, "%s%s%s", root, path, name);
  if (length < 0 || (size_t)length >= sizeof full) return NULL;
  int file = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return NULL;
  size_t got = 0;
  while (got < TEXT_BYTES - 1) {
    ssize_t more = read(file, text + got, TEXT_BYTES - 1 - got);
    if (more <= 0) break;
    got += (size_t)more;
  }
  close(file);
  text[got] = '\0';
  return got > 0 ? text : NULL;
}

/* ---- pressure --------------------------------------------------------------------------------------------------- */

/* The names of the files in which a cgroup version keeps the same things. */
typedef struct cgroup_files {
  const char *mount, *controller, *current, *high, *max;
} cgroup_files;

static const cgroup_files versions[] = {
  {"sys/fs/cgroup", "", "/memory.current", "/memory.high", "/memory.max"},
  {"sys/fs/cgroup/unified", "", "/memory.current", "/memory.high", "/memory.max"},
  {"sys/fs/cgroup/memory", "memory", "/memory.usage_in_bytes", "/none", "/memory.limit_in_bytes"},
};

/* The own group and all above it: each can be the one that is short. The stalls are those of the nearest that tells them. */
static void read_cgroups(const char *root, const char *own, const cgroup_files *files, adm_reading *reading) {
  char path[PATH_MAX + 64], group[PATH_MAX];
  char text[TEXT_BYTES], current[TEXT_BYTES], high[TEXT_BYTES], max[TEXT_BYTES], stat[TEXT_BYTES];
  if (!adm_cgroup_path(own, files->controller, group, sizeof group)) return;
  for (;;) {
    if (strcmp(group, "/") == 0) group[0] = '\0';
    snprintf(path, sizeof path, "%s%s", files->mount, group);
    if (!reading->group.known) adm_read_psi(text_of(root, path, "/memory.pressure", text), &reading->group);
    adm_read_cgroup(text_of(root, path, files->current, current), text_of(root, path, files->high, high),
                    text_of(root, path, files->max, max), text_of(root, path, "/memory.stat", stat), reading);
    char *slash = strrchr(group, '/');
    if (!slash) return;
    *slash = '\0';
  }
}

adm_reading world_reading(const char *root, uint64_t now_ns) {
  char text[TEXT_BYTES], own[TEXT_BYTES];
  adm_reading reading = {.at_ns = now_ns};
  adm_read_meminfo(text_of(root, "proc", "/meminfo", text), &reading);
  adm_read_vmstat(text_of(root, "proc", "/vmstat", text), &reading);
  adm_read_psi(text_of(root, "proc", "/pressure/memory", text), &reading.machine);
  if (text_of(root, "proc", "/self/cgroup", own))
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) read_cgroups(root, own, &versions[i], &reading);
  return reading;
}

/* ---- processes -------------------------------------------------------------------------------------------------- */

/* A number of kB in /proc/PID/status, as bytes. */
static uint64_t field(const char *status, const char *name) {
  const char *at = strstr(status, name);
  return at ? strtoull(at + strlen(name), NULL, 10) % (UINT64_C(1) << 40) * 1024 : 0;
}

static const char *status_of(const char *root, uint32_t pid, char text[TEXT_BYTES]) {
  char path[32];
  snprintf(path, sizeof path, "proc/%u", pid);
  return text_of(root, path, "/status", text);
}

uint64_t world_own_bytes(const char *root, uint32_t pid) {
  char text[TEXT_BYTES];
  const char *status = status_of(root, pid, text);
  return status ? field(status, "\nRssAnon:") + field(status, "\nVmSwap:") : 0;
}

/* Adds the children of a process, which each of its threads has a list of. */
static unsigned add_children(const char *root, uint32_t pid, uint32_t *pids, unsigned count) {
  char path[PATH_MAX], text[TEXT_BYTES];
  int length = snprintf(path, sizeof path, "%sproc/%u/task", root, pid);
  DIR *tasks = length > 0 && (size_t)length < sizeof path ? opendir(path) : NULL;
  if (!tasks) return count;
  for (struct dirent *task; (task = readdir(tasks));) {
    char of[PATH_MAX];
    if (task->d_name[0] == '.') continue;
    snprintf(of, sizeof of, "proc/%u/task/%.16s", pid, task->d_name);
    const char *at = text_of(root, of, "/children", text);
    for (char *end; at && count < PROGRAMS_MOST; at = end) {
      unsigned long child = strtoul(at, &end, 10);
      if (end == at || child == 0 || child > INT_MAX) break;
      pids[count++] = (uint32_t)child;
    }
  }
  closedir(tasks);
  return count;
}

uint64_t world_program_bytes(const char *root, uint32_t pid) {
  char text[TEXT_BYTES], name[64] = "";
  uint32_t pids[PROGRAMS_MOST];
  uint64_t bytes = 0;
  const char *status = status_of(root, pid, text);
  if (!status) return 0;
  snprintf(name, sizeof name, "%.*s\n", (int)strcspn(status, "\n"), status);
  unsigned count = add_children(root, pid, pids, 0);
  for (unsigned i = 0; i < count; i++) {
    status = status_of(root, pids[i], text);
    if (!status) continue;
    if (strncmp(status, name, strlen(name)) != 0)
      bytes += field(status, "\nRssAnon:") + field(status, "\nRssShmem:") + field(status, "\nVmSwap:");
    count = add_children(root, pids[i], pids, count);
  }
  return bytes;
}
