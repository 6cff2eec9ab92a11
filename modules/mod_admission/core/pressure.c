/*
 * pressure.c: numbers out of the kernel's texts, and what happened between two readings.
 *
 * A text that is not what was expected gives no number, never a wrong one. It opens no file.
 */
#include "pressure.h"

#include <string.h>

/* Digits at the start of `text`; false when there are none or too many. */
static bool number(const char *text, uint64_t *value) {
  uint64_t n = 0;
  const char *at = text;
  for (; *at >= '0' && *at <= '9'; at++) {
    uint64_t digit = (uint64_t)(*at - '0');
    if (n > (UINT64_MAX - digit) / 10) return false;
    n = n * 10 + digit;
  }
  *value = n;
  return at != text;
}

/* The line of `text` that begins with `name`, from behind the name; NULL when there is none. */
static const char *line_of(const char *text, const char *name) {
  size_t length = strlen(name);
  while (text) {
    if (strncmp(text, name, length) == 0) return text + length;
    text = strchr(text, '\n');
    if (text) text++;
  }
  return NULL;
}

/* The number behind a name and blanks: `MemTotal:   1024 kB`, `pswpin 7`. */
static bool named(const char *text, const char *name, uint64_t *value) {
  const char *at = line_of(text, name);
  return at && number(at + strspn(at, " \t"), value);
}

/* The number behind `total=` on one line. */
static bool psi_total(const char *text, const char *which, uint64_t *value) {
  const char *at = line_of(text, which);
  if (!at) return false;
  const char *total = strstr(at, "total="), *end = strchr(at, '\n');
  return total && (!end || total < end) && number(total + strlen("total="), value);
}

bool adm_read_psi(const char *text, adm_stalls *stalls) {
  uint64_t some;
  if (!text || !psi_total(text, "some ", &some)) return false;
  stalls->some_us = some;
  return stalls->known = true;
}

bool adm_read_meminfo(const char *text, adm_reading *reading) {
  uint64_t available, total;
  if (!text || !named(text, "MemAvailable:", &available) || !named(text, "MemTotal:", &total)) return false;
  if (available > UINT64_MAX / 1024 || total > UINT64_MAX / 1024) return false;
  reading->available = available * 1024;
  reading->total = total * 1024;
  return reading->knows_memory = true;
}

bool adm_read_vmstat(const char *text, adm_reading *reading) {
  uint64_t pages;
  if (!text || !named(text, "pswpin ", &pages)) return false;
  reading->swapped_in = pages;
  return reading->knows_swap = true;
}

/* A cgroup's bound: a number, or none where there is no file or it says `max`. */
static uint64_t bound(const char *text) {
  uint64_t value;
  return text && number(text, &value) && value < ADM_UNBOUNDED / 2 ? value : ADM_UNBOUNDED;
}

/* What a group uses and can give up: pages of files and, of v2, the kernel's own of them. What v1 calls active_file is that of this group
 * alone; the total is with the groups below it. Pages that are in use all the same stall who needs them, which is seen as such. */
static uint64_t droppable(const char *stat) {
  uint64_t sum = 0, bytes;
  if (!stat) return 0;
  if (named(stat, "total_inactive_file ", &bytes) || named(stat, "inactive_file ", &bytes)) sum += bytes;
  if (named(stat, "total_active_file ", &bytes) || named(stat, "active_file ", &bytes)) sum += bytes;
  if (named(stat, "slab_reclaimable ", &bytes)) sum += bytes;
  return sum;
}

bool adm_read_cgroup(const char *current, const char *high, const char *max, const char *stat, adm_reading *reading) {
  uint64_t used, free, limit = bound(max);
  if (!current || !number(current, &used)) return false;
  if (bound(high) < limit) limit = bound(high);
  if (limit == ADM_UNBOUNDED) return true;
  free = droppable(stat);
  used -= free < used ? free : used;
  uint64_t available = used < limit ? limit - used : 0;
  /* v1 says "no limit" by a number larger than any machine, which leaves more than the machine does. */
  if (reading->knows_memory && available + adm_reserve(reading->total) >= reading->available + adm_reserve(limit)) return true;
  reading->available = available;
  reading->total = limit;
  return reading->knows_memory = true;
}

bool adm_cgroup_path(const char *text, const char *controller, char *path, size_t size) {
  for (const char *line = text; line && *line;) {
    const char *end = line + strcspn(line, "\n"), *names = memchr(line, ':', (size_t)(end - line));
    const char *colon = names ? memchr(names + 1, ':', (size_t)(end - names - 1)) : NULL;
    if (colon) {
      size_t wanted = strlen(controller);
      bool found = colon == names + 1 && wanted == 0;
      for (const char *at = names + 1; at < colon && wanted > 0;) {
        const char *comma = memchr(at, ',', (size_t)(colon - at));
        size_t length = (size_t)((comma ? comma : colon) - at);
        found |= length == wanted && memcmp(at, controller, wanted) == 0;
        at += length + 1;
      }
      size_t length = (size_t)(end - colon - 1);
      if (found && length > 0 && length < size && colon[1] == '/') {
        memcpy(path, colon + 1, length);
        path[length] = '\0';
        return true;
      }
    }
    line = *end ? end + 1 : end;
  }
  return false;
}

/* How much a counter that only grows has grown; 0 when it was set back, as after a change of cgroup. */
static double growth(uint64_t before, uint64_t after) { return after > before ? (double)(after - before) : 0; }

static double fraction(uint64_t before_us, uint64_t after_us, double seconds) {
  double part = growth(before_us, after_us) / 1e6 / seconds;
  return part < 1 ? part : 1;
}

/* Adds the stalls of one file, where they are more than those of another. */
static void add_stalls(adm_pressure *p, const adm_stalls *before, const adm_stalls *after, double seconds) {
  if (!before->known || !after->known) return;
  double some = fraction(before->some_us, after->some_us, seconds);
  if (some > p->stall) p->stall = some;
  p->knows_stall = true;
}

adm_pressure adm_pressure_between(const adm_reading *before, const adm_reading *after) {
  adm_pressure p = {.knows_memory = after->knows_memory, .available = after->available, .total = after->total};
  if (after->at_ns <= before->at_ns) return p;
  double seconds = (double)(after->at_ns - before->at_ns) / 1e9;
  p.knows_swap = before->knows_swap && after->knows_swap;
  add_stalls(&p, &before->machine, &after->machine, seconds);
  add_stalls(&p, &before->group, &after->group, seconds);
  if (p.knows_swap) p.swapped_in = growth(before->swapped_in, after->swapped_in) / seconds;
  return p;
}
