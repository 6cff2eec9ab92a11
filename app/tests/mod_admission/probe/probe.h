/*
 * probe.h: what a page of these tests does, the same in a program (page.c) and in a process of the server (mod_probe.c).
 *
 * It is the oracle: it writes down when it begins and ends, by a clock that all processes share, and knows nothing of
 * mod_admission. It waits by gates, which are locks that the test holds, so no test has to guess how long anything takes.
 *
 * The query says what to do, in this order:
 *   id=NAME     what it is called in the log
 *   memory=MB   takes so much memory until it ends
 *   gate=NAME   waits while the test holds the gate
 *   work=US     then takes so many microseconds
 *   crash       then dies by SIGSEGV
 *   body=BYTES  answers so many bytes
 *   location=/… answers that the page is there (only of page.c)
 */
#ifndef PROBE_H
#define PROBE_H

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

typedef struct probe {
  const char *folder; /* with `log` and the folder `gates` */
  char id[64], gate[64], spawn[64], location[128];
  long work_us, body, megabytes;
  int crash;
  int child; /* the process of the server that works for this page */
} probe;

static void probe_word(const char *query, const char *name, char *value, size_t size) {
  size_t length = strlen(name);
  *value = '\0';
  for (const char *word = query; word && *word; word = strchr(word, '&') ? strchr(word, '&') + 1 : NULL) {
    if (strncmp(word, name, length) != 0 || (word[length] != '=' && word[length] != '&' && word[length] != '\0')) continue;
    const char *from = word[length] == '=' ? word + length + 1 : "1";
    size_t n = strcspn(from, "&");
    if (n >= size) n = size - 1;
    memcpy(value, from, n);
    value[n] = '\0';
    return;
  }
}

static void probe_read(probe *p, const char *folder, const char *query, int child) {
  char number[32];
  p->folder = folder;
  p->child = child;
  probe_word(query, "id", p->id, sizeof p->id);
  if (!*p->id) strcpy(p->id, "-");
  probe_word(query, "gate", p->gate, sizeof p->gate);
  probe_word(query, "spawn", p->spawn, sizeof p->spawn);
  probe_word(query, "location", p->location, sizeof p->location);
  probe_word(query, "memory", number, sizeof number);
  p->megabytes = atol(number);
  probe_word(query, "work", number, sizeof number);
  p->work_us = atol(number);
  probe_word(query, "body", number, sizeof number);
  p->body = atol(number);
  probe_word(query, "crash", number, sizeof number);
  p->crash = *number != '\0';
}

/* One line, which is one write to a file opened for appending: lines do not mix. */
static void probe_log(const probe *p, const char *word) {
  char path[512], line[256];
  snprintf(path, sizeof path, "%s/log", p->folder);
  int log = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (log < 0) return;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  int length = snprintf(line, sizeof line, "%s %s %lld %d %d\n", word, p->id, (long long)now.tv_sec * 1000000000 + now.tv_nsec,
                        p->child, (int)getpid());
  if (write(log, line, (size_t)length) != length) abort();
  close(log);
}

static void probe_wait(const char *folder, const char *name) {
  char path[512];
  snprintf(path, sizeof path, "%s/gates/%s", folder, name);
  int gate = open(path, O_RDONLY | O_CLOEXEC);
  if (gate < 0) return; /* a gate that the test never made is open */
  while (flock(gate, LOCK_SH) < 0) continue;
  close(gate);
}

/* All between the begin and the end of a page. */
static void probe_run(const probe *p) {
  char *taken = p->megabytes ? malloc((size_t)p->megabytes << 20) : NULL;
  for (long i = 0; taken && i < p->megabytes << 20; i += 4096) ((volatile char *)taken)[i] = 1;
  probe_log(p, "start");
  if (*p->gate) probe_wait(p->folder, p->gate);
  struct timespec left = {p->work_us / 1000000, p->work_us % 1000000 * 1000};
  while (p->work_us && nanosleep(&left, &left) < 0) continue;
  free(taken);
  probe_log(p, p->crash ? "crash" : "stop");
  if (p->crash) {
    signal(SIGSEGV, SIG_DFL); /* no word of httpd's into the log for each */
    raise(SIGSEGV);
  }
}

#endif
