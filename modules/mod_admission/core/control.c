/*
 * control.c: the control file as a whole: lines to settings, or the first line that is wrong.
 *
 * The settings are laid over a copy of the configured ones, and only a file without any mistake leaves that copy to the
 * caller. What words mean is settings.c's.
 */
#include "control.h"

#include "step.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINE_BYTES 1024
#define BLANKS " \t\r\v\f"

/* A file that is being read. */
typedef struct reading {
  const adm_rule *rules;
  unsigned count;
  adm_settings *settings;
  adm_control_error *error;
  unsigned line;              /* the one that is being read */
  unsigned said[ADM_GROUPS];  /* the last line that changed each rule, 0 for none */
} reading;

static bool refuse(reading *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool refuse(reading *r, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(r->error->text, sizeof r->error->text, format, arguments);
  va_end(arguments);
  r->error->line = r->line;
  return false;
}

/* Whether a line's first word means this rule. */
static bool means(const char *name, const adm_rule *rule) {
  switch (rule->subject) {
  case ADM_FOR_MEMORY: return strcmp(name, ADM_CONTROL_MEMORY) == 0;
  case ADM_FOR_WAITING: return strcmp(name, ADM_CONTROL_WAITING) == 0;
  default: return strcmp(name, "*") == 0 || strcmp(name, rule->name) == 0;
  }
}

/* Lays one word over the settings of all rules that the line means. */
static bool apply_word(reading *r, const char *name, const char *word) {
  char error[ADM_ERROR];
  for (unsigned i = 0; i < r->count; i++) {
    if (!means(name, &r->rules[i])) continue;
    if (!adm_settings_word(&r->settings[i], NULL, r->rules[i].subject, ADM_LIVE, word, error)) return refuse(r, "%s", error);
    r->said[i] = r->line;
  }
  return true;
}

/* Whether a word's key, up to its `=`, already stood before it on the line. */
static bool repeated(const char *const *words, unsigned count, const char *word) {
  size_t key = strcspn(word, "=");
  for (unsigned i = 0; i < count; i++)
    if (strncmp(words[i], word, key) == 0 && words[i][key] == '=') return true;
  return false;
}

static bool known(const reading *r, const char *name) {
  for (unsigned i = 0; i < r->count; i++)
    if (means(name, &r->rules[i])) return true;
  return strcmp(name, "*") == 0;
}

/* The names that a line can begin with, for who mistook one. */
static const char *names_of(const reading *r, char *out, size_t size) {
  size_t length = 0;
  out[0] = '\0';
  for (unsigned i = 0; i < r->count && length < size; i++) {
    int more = snprintf(out + length, size - length, "%s%s", i ? ", " : "", r->rules[i].name);
    length += more > 0 ? (size_t)more : 0;
  }
  return out;
}

/* Bytes that do not belong into a log are shown as `?`. */
static void make_printable(char *text) {
  for (; *text; text++)
    if ((unsigned char)*text < ' ' || *text == 127) *text = '?';
}

static bool read_line(reading *r, char *text) {
  const char *words[LINE_BYTES / 2];
  unsigned count = 0;
  char *rest = NULL, names[160];
  text[strcspn(text, "#")] = '\0';
  char *name = strtok_r(text, BLANKS, &rest);
  if (!name) return true;
  make_printable(name);
  if (!known(r, name)) return refuse(r, "%.40s: no such group; there are %s", name, names_of(r, names, sizeof names));
  for (char *word; (word = strtok_r(NULL, BLANKS, &rest)); words[count++] = word) {
    if (repeated(words, count, word)) {
      make_printable(word);
      return refuse(r, "%.40s: this key stands twice on the line", word);
    }
    if (!apply_word(r, name, word)) return false;
  }
  if (count == 0) return refuse(r, "%.40s: nothing is said about it, such as limit=4", name);
  return true;
}

/* Whether what all lines together ask for fits together. Blames the last line about the rule that does not, or about the
 * budget that it does not fit into; what the configuration alone says was judged with it. */
static bool check_all(reading *r, const adm_shape *shape) {
  char error[ADM_ERROR];
  uint32_t budget = ADM_UNLIMITED;
  unsigned budget_line = 0;
  for (unsigned i = 0; i < r->count; i++) {
    if (r->rules[i].subject != ADM_FOR_MEMORY) continue;
    budget = r->settings[i].limit;
    budget_line = r->said[i];
  }
  for (unsigned i = 0; i < r->count; i++) {
    bool fits = !r->said[i] || adm_settings_check(&r->settings[i], r->rules[i].subject, shape, &r->rules[i].settings, error);
    if (fits && (r->said[i] || budget_line)) fits = adm_cost_check(&r->settings[i], budget, error);
    if (fits) continue;
    r->line = r->said[i] ? r->said[i] : budget_line;
    return refuse(r, "%s: %s", r->rules[i].name, error);
  }
  return true;
}

bool adm_control_read(const char *text, size_t length, const adm_rule *rules, unsigned count, const adm_shape *shape,
                      adm_settings *settings, adm_control_error *error) {
  reading r = {.rules = rules, .count = count, .settings = settings, .error = error};
  char line[LINE_BYTES];
  *error = (adm_control_error){0, ""};
  if (count > ADM_GROUPS) return refuse(&r, "%u groups, more than a table has", count);
  for (unsigned i = 0; i < count; i++) settings[i] = rules[i].settings;
  if (length > ADM_CONTROL_BYTES) return refuse(&r, "longer than %d bytes", ADM_CONTROL_BYTES);
  for (size_t at = 0; at < length;) {
    const char *end = memchr(text + at, '\n', length - at);
    size_t size = end ? (size_t)(end - (text + at)) : length - at;
    r.line++;
    if (size >= sizeof line) return refuse(&r, "longer than %zu bytes", sizeof line - 1);
    if (memchr(text + at, '\0', size)) return refuse(&r, "a byte of value 0: not a text");
    memcpy(line, text + at, size);
    line[size] = '\0';
    if (!read_line(&r, line)) return false;
    at += size + 1;
  }
  return check_all(&r, shape);
}

/* ---- the text in force ------------------------------------------------------------------------------------------ */

void adm_control_keep(adm_control_kept *kept, const char *text, size_t length) {
  uint32_t other = kept->now % 2 ^ 1;
  if (length > ADM_CONTROL_BYTES) return;
  memcpy(kept->text[other], text, length);
  STEP("control: copied");
  kept->length[other] = (uint32_t)length;
  STEP("control: written");
  kept->now = other; /* who is killed before this has changed nothing */
}

void adm_control_recall(const adm_control_kept *kept, const adm_rule *rules, unsigned count, const adm_shape *shape,
                        adm_settings *settings) {
  adm_rule fitting[ADM_GROUPS];
  adm_control_error error;
  uint32_t now = kept->now % 2;
  const char *text = kept->text[now];
  size_t length = kept->length[now];
  if (adm_control_read(text, length, rules, count, shape, settings, &error) || count > ADM_GROUPS) return;
  if (length > ADM_CONTROL_BYTES) length = 0; /* somebody wrote where he should not */
  memcpy(fitting, rules, count * sizeof *rules);
  for (size_t at = 0, size; at < length; at += size + 1) {
    const char *end = memchr(text + at, '\n', length - at);
    size = end ? (size_t)(end - (text + at)) : length - at;
    if (!adm_control_read(text + at, size, fitting, count, shape, settings, &error)) continue;
    for (unsigned i = 0; i < count; i++) fitting[i].settings = settings[i];
  }
  for (unsigned i = 0; i < count; i++) settings[i] = fitting[i].settings;
}
