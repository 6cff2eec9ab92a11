/*
 * check.h: the one door of the unit tests. A check that fails says where and what, and the program ends with 1 when any did.
 */
#ifndef ADMISSION_CHECK_H
#define ADMISSION_CHECK_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned checks_made, checks_failed;

static inline void check_said(bool right, const char *file, int line, const char *format, ...) {
  checks_made++;
  if (right) return;
  checks_failed++;
  va_list values;
  va_start(values, format);
  fprintf(stderr, "%s:%d: ", file, line);
  vfprintf(stderr, format, values);
  fputc('\n', stderr);
  va_end(values);
}

static inline void check_equal(long long seen, long long expected, const char *what, const char *file, int line) {
  check_said(seen == expected, file, line, "%s is %lld, not %lld", what, seen, expected);
}

static inline void check_text(const char *seen, const char *expected, const char *what, const char *file, int line) {
  check_said(strcmp(seen, expected) == 0, file, line, "%s is\n%s\nnot\n%s", what, seen, expected);
}

/* A condition that must hold. */
#define CHECK(condition) check_said(condition, __FILE__, __LINE__, "not true: %s", #condition)
/* Two numbers that must be equal. */
#define CHECK_EQUAL(seen, expected) check_equal((long long)(seen), (long long)(expected), #seen, __FILE__, __LINE__)
/* Two texts that must be equal. */
#define CHECK_TEXT(seen, expected) check_text(seen, expected, #seen, __FILE__, __LINE__)

/* What main returns where nothing can be tried: where everything is to be tried, that is a failure. */
static inline int nothing_tried(const char *name, const char *why) {
  const char *ci = getenv("CI");
  printf("%s: skipped: %s\n", name, why);
  return ci && !strcmp(ci, "true");
}

/* What main returns. */
static inline int checked(const char *name) {
  printf("%s: %u checks, %u failed\n", name, checks_made, checks_failed);
  return checks_failed > 0;
}

#endif
