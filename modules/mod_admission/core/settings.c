/*
 * settings.c: settings of a group as text, read and written by one table of keys.
 *
 * A line of the table is all there is to know about a key: what it is called, where it may stand, what is allowed, how
 * it is read and how it is written back. It does not know httpd: expressions and names of handlers pass through as text.
 */
#include "settings.h"

#include "values.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define TIMEOUT_MAX_MS (60u * 60 * 1000)

/* The place of a word in a list that ends with NULL. */
static bool name_read(const char *text, const char *const *names, uint8_t *value) {
  for (uint8_t i = 0; names[i]; i++) {
    if (strcmp(text, names[i]) != 0) continue;
    *value = i;
    return true;
  }
  return false;
}

static const char *const mode_names[] = {"off", "observe", "enforce", NULL};
static const char *const order_names[] = {"fifo", "lifo", "adaptive", NULL};
static const char *const key_names[] = {"file", "inode", "vhost", "location", "client", "server", NULL};
static const char *const hold_names[] = {"handler", "response", NULL};
static const char *const adaptive_names[] = {"none", "memory", NULL};

const char *adm_mode_name(unsigned mode) { return mode <= ADM_ENFORCE ? mode_names[mode] : "unknown"; }
const char *adm_order_name(unsigned order) { return order <= ADM_ADAPTIVE ? order_names[order] : "unknown"; }
const char *adm_key_name(unsigned key) {
  return key < ADM_KEY_EXPR ? key_names[key] : key == ADM_KEY_EXPR ? "expr" : "unknown";
}

/* ---- keys ------------------------------------------------------------------------------------------------------ */

/* What a key's reader and writer work on. */
typedef struct about {
  adm_settings *s;
  adm_texts *texts;
  adm_subject subject;
} about;

static bool read_limit(about *a, const char *v) {
  if (a->subject == ADM_FOR_GROUP || strcmp(v, "none") == 0) return adm_limit_read(v, &a->s->limit);
  if (a->subject == ADM_FOR_WAITING) return adm_number_read(v, 1, ADM_OWNERS, &a->s->limit);
  uint32_t units;
  if (!adm_size_read(v, &units) || units == 0) return false;
  a->s->limit = units;
  return true;
}
static bool read_queue(about *a, const char *v) { return adm_number_read(v, 0, ADM_QUEUE_MAX, &a->s->queue); }
static bool read_timeout(about *a, const char *v) {
  uint32_t ms;
  if (!adm_duration_read(v, &ms) || ms < 1 || ms > TIMEOUT_MAX_MS) return false;
  a->s->timeout_ms = ms;
  return true;
}
static bool read_order(about *a, const char *v) { return name_read(v, order_names, &a->s->order); }
/* Those that httpd has a line for: it would send 500 for any other. */
static bool read_status(about *a, const char *v) {
  static const uint16_t known[] = {400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 421, 422, 423, 424,
                                   426, 428, 429, 431, 451, 500, 501, 502, 503, 504, 505, 506, 507, 508, 510, 511};
  uint32_t status;
  if (!adm_number_read(v, 400, 599, &status)) return false;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (known[i] == status) a->s->status = status;
  return a->s->status == status;
}
static bool read_mode(about *a, const char *v) { return name_read(v, mode_names, &a->s->mode); }
static bool read_hold(about *a, const char *v) { return name_read(v, hold_names, &a->s->hold); }
static bool read_adaptive(about *a, const char *v) { return name_read(v, adaptive_names, &a->s->adaptive); }
static bool read_min(about *a, const char *v) { return adm_number_read(v, 1, ADM_LIMIT_MAX, &a->s->min); }
static bool read_max(about *a, const char *v) { return adm_number_read(v, 1, ADM_LIMIT_MAX, &a->s->max); }

static bool read_cost(about *a, const char *v) {
  bool learn = strncmp(v, "learn", 5) == 0 && (v[5] == '\0' || v[5] == ':');
  const char *size = !learn ? v : v[5] ? v + 6 : "0";
  uint32_t units = 0;
  if (strcmp(v, "none") != 0 && !adm_size_read(size, &units)) return false;
  a->s->cost = units;
  a->s->learn = learn;
  return true;
}

static bool read_key(about *a, const char *v) {
  if (strncmp(v, "expr:", 5) == 0) {
    if (!v[5] || !a->texts) return false;
    a->texts->expr = v + 5;
    a->s->key = ADM_KEY_EXPR;
    return true;
  }
  if (!name_read(v, key_names, &a->s->key)) return false;
  if (a->texts) a->texts->expr = NULL;
  return true;
}

/* Names with commas, or one of the three words that stand for many: that among names would be taken for a name that no handler has. */
static bool read_handler(about *a, const char *v) {
  static const char *const kinds[] = {"dynamic", "static", "any"};
  if (!a->texts) return false;
  bool is_list = strchr(v, ',') != NULL;
  for (const char *name = v, *end; name; name = *end ? end + 1 : NULL) {
    end = name + strcspn(name, ",");
    if (end == name) return false;
    for (size_t i = 0; is_list && i < sizeof kinds / sizeof *kinds; i++)
      if ((size_t)(end - name) == strlen(kinds[i]) && strncasecmp(name, kinds[i], strlen(kinds[i])) == 0) return false;
  }
  a->texts->handlers = v;
  return true;
}

static bool read_at(about *a, const char *v) {
  adm_window window;
  const char *rest = adm_time_read(v, &window.from);
  if (!rest || *rest != '-' || window.from >= 24 * 60) return false;
  rest = adm_time_read(rest + 1, &window.until);
  if (!rest || *rest != ':' || !adm_limit_read(rest + 1, &window.limit)) return false;
  if (a->s->windows >= ADM_WINDOWS) return false;
  a->s->window[a->s->windows++] = window;
  return true;
}

static void write_limit(const about *a, adm_sink *to) {
  if (a->subject == ADM_FOR_MEMORY && a->s->limit != ADM_UNLIMITED) adm_sink_size(to, a->s->limit);
  else adm_sink_limit(to, a->s->limit);
}
static void write_queue(const about *a, adm_sink *to) { adm_sink_number(to, a->s->queue); }
static void write_timeout(const about *a, adm_sink *to) { adm_sink_duration(to, a->s->timeout_ms); }
static void write_order(const about *a, adm_sink *to) { adm_sink_text(to, adm_order_name(a->s->order)); }
static void write_status(const about *a, adm_sink *to) { adm_sink_number(to, a->s->status); }
static void write_mode(const about *a, adm_sink *to) { adm_sink_text(to, adm_mode_name(a->s->mode)); }
static void write_hold(const about *a, adm_sink *to) { adm_sink_text(to, hold_names[a->s->hold != 0]); }
static void write_adaptive(const about *a, adm_sink *to) { adm_sink_text(to, adaptive_names[a->s->adaptive != 0]); }
static void write_min(const about *a, adm_sink *to) { adm_sink_number(to, a->s->min); }
static void write_max(const about *a, adm_sink *to) { adm_sink_number(to, a->s->max); }
static void write_cost(const about *a, adm_sink *to) {
  if (a->s->learn) adm_sink_text(to, a->s->cost ? "learn:" : "learn");
  if (a->s->cost || !a->s->learn) adm_sink_size(to, a->s->cost);
}
static void write_key(const about *a, adm_sink *to) {
  adm_sink_text(to, adm_key_name(a->s->key));
  if (a->s->key == ADM_KEY_EXPR) adm_sink_text(to, ":");
  if (a->s->key == ADM_KEY_EXPR && a->texts && a->texts->expr) adm_sink_text(to, a->texts->expr);
}
static void write_handler(const about *a, adm_sink *to) { adm_sink_text(to, a->texts->handlers); }

#define GROUP (1u << ADM_FOR_GROUP)
#define MEMORY (1u << ADM_FOR_MEMORY)
#define WAITING (1u << ADM_FOR_WAITING)

typedef struct key {
  const char *name, *allowed;
  unsigned subjects; /* GROUP, MEMORY, WAITING */
  bool live;
  bool (*read)(about *, const char *value);
  void (*write)(const about *, adm_sink *); /* NULL: written apart, it can repeat */
} key;

static const key keys[] = {
  {"limit", "a " ADM_LIMIT_WORDS ", or `none`", GROUP | MEMORY | WAITING, true, read_limit, write_limit},
  {"queue", "how many may wait, from 0 to " ADM_IN_WORDS(ADM_QUEUE_MAX), GROUP, true, read_queue, write_queue},
  {"timeout", "a time from 1ms to 1h, such as 3s or 500ms", GROUP, true, read_timeout, write_timeout},
  {"key", "file, inode, vhost, location, client, server or expr:EXPRESSION", GROUP, false, read_key, write_key},
  {"handler", "dynamic, static or any, or names of handlers with commas", GROUP, false, read_handler, write_handler},
  {"order", "fifo, lifo or adaptive", GROUP | MEMORY, true, read_order, write_order},
  {"status", "a number from 400 to 599 that httpd knows", GROUP, true, read_status, write_status},
  {"cost", "a size such as 200M, `none`, `learn` or learn:SIZE", GROUP, true, read_cost, write_cost},
  {"mode", "off, observe or enforce", GROUP | MEMORY, true, read_mode, write_mode},
  {"adaptive", "`memory` or `none`", GROUP, false, read_adaptive, write_adaptive},
  {"min", "a " ADM_LIMIT_WORDS, GROUP, true, read_min, write_min},
  {"max", "a " ADM_LIMIT_WORDS, GROUP, true, read_max, write_max},
  {"hold", "`handler` or `response`", GROUP, false, read_hold, write_hold},
  {"at", "FROM-UNTIL:LIMIT such as 09:00-18:00:4, up to 8 times", GROUP, false, read_at, NULL},
};
#define KEYS (sizeof keys / sizeof *keys)

/* ---- messages -------------------------------------------------------------------------------------------------- */

/* A word as it can be shown in one line of a log, not longer than 60 bytes. */
static const char *shown(const char *word, char out[64]) {
  size_t n = strnlen(word, 61);
  for (size_t i = 0; i < n && i < 60; i++) out[i] = (unsigned char)word[i] < ' ' || word[i] == 127 ? '?' : word[i];
  memcpy(out + (n > 60 ? 57 : n), n > 60 ? "..." : "", n > 60 ? 4 : 1);
  return out;
}

/* "NAME, NAME, NAME" of the keys that may stand there. */
static void list_keys(adm_subject subject, adm_place place, char *out, size_t size) {
  const char *names[KEYS];
  unsigned count = 0;
  for (size_t i = 0; i < KEYS; i++)
    if (keys[i].subjects & 1u << subject && (place == ADM_CONFIGURED || keys[i].live)) names[count++] = keys[i].name;
  adm_sink to = {out, size, 0};
  for (unsigned i = 0; i < count; i++) {
    adm_sink_text(&to, i == 0 ? "" : ", ");
    adm_sink_text(&to, names[i]);
  }
  adm_sink_end(&to);
}

static const char *allowed(const key *key, adm_subject subject) {
  if (key->read != read_limit || subject == ADM_FOR_GROUP) return key->allowed;
  return subject == ADM_FOR_MEMORY ? "a size such as 800M, or `none`" : "a number from 1 to " ADM_IN_WORDS(ADM_OWNERS) ", or `none`";
}

static const key *find_key(const char *word, size_t length) {
  for (size_t i = 0; i < KEYS; i++)
    if (strlen(keys[i].name) == length && memcmp(keys[i].name, word, length) == 0) return &keys[i];
  return NULL;
}

static bool refuse_key(const char *word, bool known, adm_subject subject, adm_place place, char *error) {
  char quoted[64], list[128];
  list_keys(subject, place, list, sizeof list);
  bool later = known && place == ADM_LIVE;
  const char *why = later ? "cannot change while the server runs; what can is" : "not a key here; keys are";
  snprintf(error, ADM_ERROR, "%s: %s %s", shown(word, quoted), why, list);
  return false;
}

/* ---- public ---------------------------------------------------------------------------------------------------- */

adm_settings adm_settings_default(adm_subject subject) {
  (void)subject; /* the same for all today; the argument says whose they are where they are read */
  return (adm_settings){.limit = ADM_UNLIMITED, .timeout_ms = 3000, .status = 503, .mode = ADM_ENFORCE};
}

bool adm_settings_word(adm_settings *settings, adm_texts *texts, adm_subject subject, adm_place place, const char *word,
                       char *error) {
  char quoted[64];
  const char *equals = strchr(word, '=');
  if (!equals) {
    snprintf(error, ADM_ERROR, "%s: not of the form key=value", shown(word, quoted));
    return false;
  }
  const key *found = find_key(word, (size_t)(equals - word));
  if (!found || !(found->subjects & 1u << subject) || (place == ADM_LIVE && !found->live))
    return refuse_key(word, found && found->subjects & 1u << subject, subject, place, error);
  adm_settings changed = *settings;
  about of = {&changed, texts, subject};
  if (!found->read(&of, equals + 1)) {
    snprintf(error, ADM_ERROR, "%s: %s", shown(word, quoted), allowed(found, subject));
    return false;
  }
  *settings = changed;
  return true;
}

size_t adm_settings_write(const adm_settings *settings, const adm_texts *texts, adm_subject subject, char *out, size_t size) {
  adm_settings copy = *settings;
  adm_texts no_texts = {NULL, NULL}, some_texts = texts ? *texts : no_texts;
  about of = {&copy, &some_texts, subject};
  adm_sink to = {out, size, 0};
  for (size_t i = 0; i < KEYS; i++) {
    if (!(keys[i].subjects & 1u << subject) || !keys[i].write) continue;
    if (keys[i].write == write_handler && !some_texts.handlers) continue;
    if ((keys[i].write == write_min && !copy.min) || (keys[i].write == write_max && !copy.max)) continue;
    adm_sink_text(&to, to.length ? " " : "");
    adm_sink_text(&to, keys[i].name);
    adm_sink_text(&to, "=");
    keys[i].write(&of, &to);
  }
  for (unsigned i = 0; subject == ADM_FOR_GROUP && i < copy.windows && i < ADM_WINDOWS; i++) {
    adm_sink_text(&to, " at=");
    adm_sink_time(&to, copy.window[i].from);
    adm_sink_text(&to, "-");
    adm_sink_time(&to, copy.window[i].until);
    adm_sink_text(&to, ":");
    adm_sink_limit(&to, copy.window[i].limit);
  }
  return adm_sink_end(&to);
}

/* Whether a limit fits into the entries of a table, or is as it was. */
static bool fits(const char *name, uint32_t number, const uint32_t *before, uint32_t room, const char *what, char *error) {
  if (number <= room || number == ADM_UNLIMITED || (before && number == *before)) return true;
  snprintf(error, ADM_ERROR, "%s=%u: the running table has room for %u %s at most", name, number, room, what);
  return false;
}

static bool check_adaptive(adm_settings *s, char *error) {
  if (!s->adaptive) {
    if (!s->min && !s->max) return true;
    snprintf(error, ADM_ERROR, "%s=%u: only with adaptive=memory", s->min ? "min" : "max", s->min ? s->min : s->max);
    return false;
  }
  if (!s->max && s->limit == ADM_UNLIMITED) {
    snprintf(error, ADM_ERROR, "adaptive=memory: needs max=NUMBER or limit=NUMBER");
    return false;
  }
  if (!s->max) s->max = s->limit;
  if (!s->min) s->min = 1;
  if (s->limit == ADM_UNLIMITED) s->limit = s->max;
  if (s->min <= s->limit && s->limit <= s->max) return true;
  if (s->min > s->max) snprintf(error, ADM_ERROR, "min=%u: is above max=%u", s->min, s->max);
  else snprintf(error, ADM_ERROR, "limit=%u: is not between min=%u and max=%u", s->limit, s->min, s->max);
  return false;
}

bool adm_settings_check(adm_settings *settings, adm_subject subject, const adm_shape *shape, const adm_settings *before,
                        char *error) {
  adm_settings s = *settings;
  if (!check_adaptive(&s, error)) return false;
  if (shape && subject == ADM_FOR_GROUP) {
    const char *permits = "permits per entry", *waiters = "waiters per entry";
    if (!fits("limit", s.limit, before ? &before->limit : NULL, shape->cells, permits, error)) return false;
    if (!fits("max", s.max, before ? &before->max : NULL, shape->cells, permits, error)) return false;
    for (unsigned i = 0; i < s.windows && i < ADM_WINDOWS; i++) {
      const uint32_t *limit = before && i < before->windows ? &before->window[i].limit : NULL;
      if (!fits("at", s.window[i].limit, limit, shape->cells, permits, error)) return false;
    }
    if (!fits("queue", s.queue, before ? &before->queue : NULL, shape->waiters, waiters, error)) return false;
  }
  *settings = s;
  return true;
}

bool adm_cost_check(const adm_settings *settings, uint32_t budget, char *error) {
  if (settings->cost <= budget) return true;
  char cost[32], limit[32];
  adm_sink first = {cost, sizeof cost, 0}, second = {limit, sizeof limit, 0};
  adm_sink_size(&first, settings->cost);
  adm_sink_size(&second, budget);
  adm_sink_end(&first);
  adm_sink_end(&second);
  snprintf(error, ADM_ERROR, "cost=%s: is above the memory budget of %s, so that nothing could ever run", cost, limit);
  return false;
}

bool adm_name_check(const char *name, char *error) {
  static const char *const taken[] = {"memory", "queue-workers"};
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  char quoted[64];
  size_t length = strlen(name);
  bool is_taken = strcasecmp(name, "none") == 0; /* AdmissionUse takes that in any case */
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) is_taken |= strcmp(name, taken[i]) == 0;
  if (is_taken) {
    snprintf(error, ADM_ERROR, "%s: this name has a meaning of its own", name);
    return false;
  }
  if (length && length < ADM_NAME && strspn(name, allowed) == length) return true;
  snprintf(error, ADM_ERROR, "%s: not a group's name: 1 to %d letters, digits, `-`, `_`, `.`", shown(name, quoted),
           ADM_NAME - 1);
  return false;
}
