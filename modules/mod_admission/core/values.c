/*
 * values.c: the values of settings, one at a time: numbers, limits, sizes, durations and times of day, read and written.
 *
 * It knows neither keys nor groups: settings.c does.
 */
#include "values.h"

#include "settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* Digits at the start of `text`, at most `most`; returns what follows, or NULL. */
static const char *digits(const char *text, uint64_t most, uint64_t *number) {
  const char *at = text;
  uint64_t n = 0;
  for (; *at >= '0' && *at <= '9'; at++) {
    n = n * 10 + (uint64_t)(*at - '0');
    if (n > most) return NULL;
  }
  if (at == text) return NULL;
  *number = n;
  return at;
}

bool adm_number_read(const char *text, uint32_t least, uint32_t most, uint32_t *number) {
  uint64_t n;
  const char *rest = digits(text, most, &n);
  if (!rest || *rest || n < least) return false;
  *number = (uint32_t)n;
  return true;
}

bool adm_limit_read(const char *text, uint32_t *limit) {
  if (strcmp(text, "none") == 0) {
    *limit = ADM_UNLIMITED;
    return true;
  }
  return adm_number_read(text, 1, ADM_LIMIT_MAX, limit);
}

bool adm_workers_read(const char *text, uint32_t *number, unsigned *percent) {
  uint64_t n;
  const char *rest = digits(text, ADM_OWNERS, &n);
  bool share = rest && strcmp(rest, "%") == 0;
  if (!rest || (*rest && !share) || (share && (n < 1 || n > 90))) return false;
  *number = (uint32_t)n;
  *percent = share ? (unsigned)n : 0;
  return true;
}

bool adm_entries_read(const char *text, uint32_t *entries) {
  uint32_t number, power = ADM_ENTRIES_MIN;
  if (!adm_number_read(text, ADM_ENTRIES_MIN, ADM_ENTRIES_MAX, &number)) return false;
  while (power < number) power *= 2;
  *entries = power;
  return true;
}

bool adm_priority_read(const char *text, int32_t *priority) {
  uint32_t number;
  bool negative = *text == '-';
  if (!adm_number_read(text + (negative || *text == '+'), 0, ADM_PRIORITY_MAX, &number)) return false;
  *priority = negative ? -(int32_t)number : (int32_t)number;
  return true;
}

/* How often 1024 a unit stands for, or -1. */
static int size_power(char letter) {
  switch (letter) {
  case '\0': return 0;
  case 'k': case 'K': return 1;
  case 'm': case 'M': return 2;
  case 'g': case 'G': return 3;
  case 't': case 'T': return 4;
  default: return -1;
  }
}

bool adm_size_read(const char *text, uint32_t *units) {
  const uint64_t most = (uint64_t)ADM_COST_MAX * ADM_COST_UNIT;
  uint64_t n;
  const char *rest = digits(text, most, &n);
  if (!rest) return false;
  int power = size_power(*rest);
  if (power < 0 || (*rest && rest[1])) return false;
  for (; power > 0; power--) {
    if (n > most / 1024) return false;
    n *= 1024;
  }
  *units = (uint32_t)((n + ADM_COST_UNIT - 1) / ADM_COST_UNIT);
  return true;
}

bool adm_duration_read(const char *text, uint32_t *milliseconds) {
  static const struct { const char *name; uint32_t milliseconds; } unit[] = {
    {"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60 * 1000}, {"min", 60 * 1000}, {"h", 60 * 60 * 1000}
  };
  uint64_t n;
  const char *rest = digits(text, UINT32_MAX, &n);
  if (!rest) return false;
  for (size_t i = 0; i < sizeof unit / sizeof *unit; i++) {
    if (strcmp(rest, unit[i].name) != 0) continue;
    if (n * unit[i].milliseconds > UINT32_MAX) return false;
    *milliseconds = (uint32_t)(n * unit[i].milliseconds);
    return true;
  }
  return false;
}

/* `09:00`, as minutes of the day; 24:00 where a day ends. */
const char *adm_time_read(const char *text, uint16_t *minutes) {
  uint64_t hour, minute;
  const char *at = digits(text, 24, &hour);
  if (!at || at - text > 2 || *at != ':') return NULL;
  const char *rest = digits(at + 1, 59, &minute);
  if (!rest || rest - at != 3 || hour * 60 + minute > 24 * 60) return NULL;
  *minutes = (uint16_t)(hour * 60 + minute);
  return rest;
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

void adm_sink_text(adm_sink *to, const char *text) {
  for (; *text; text++) {
    if (to->length + 1 < to->size) to->out[to->length] = *text;
    to->length++;
  }
}

void adm_sink_number(adm_sink *to, uint64_t number) {
  char text[24];
  snprintf(text, sizeof text, "%" PRIu64, number);
  adm_sink_text(to, text);
}

void adm_sink_limit(adm_sink *to, uint32_t limit) {
  if (limit == ADM_UNLIMITED) adm_sink_text(to, "none");
  else adm_sink_number(to, limit);
}

/* The largest unit that says it exactly. */
void adm_sink_size(adm_sink *to, uint32_t units) {
  static const char *const letter[] = {"K", "M", "G", "T"};
  uint64_t n = (uint64_t)units * (ADM_COST_UNIT / 1024);
  unsigned unit = 0;
  while (unit < 3 && n && n % 1024 == 0) {
    n /= 1024;
    unit++;
  }
  adm_sink_number(to, n);
  adm_sink_text(to, n ? letter[unit] : "");
}

void adm_sink_duration(adm_sink *to, uint32_t milliseconds) {
  bool seconds = milliseconds % 1000 == 0;
  adm_sink_number(to, seconds ? milliseconds / 1000 : milliseconds);
  adm_sink_text(to, seconds ? "s" : "ms");
}

void adm_sink_time(adm_sink *to, unsigned minutes) {
  char text[16];
  snprintf(text, sizeof text, "%02u:%02u", minutes / 60 % 100, minutes % 60);
  adm_sink_text(to, text);
}

size_t adm_sink_end(const adm_sink *to) {
  if (to->size) to->out[to->length < to->size ? to->length : to->size - 1] = '\0';
  return to->length;
}
