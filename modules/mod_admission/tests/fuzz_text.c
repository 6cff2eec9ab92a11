/*
 * fuzz_text.c: control files, words of AdmissionGroup, values of the other directives and the kernel's texts, damaged in every
 * way.
 *
 *   fuzz_text [ITERATIONS [SEED]]
 *
 * Built plainly it damages a small corpus by itself, the same way for the same seed; built with
 * `clang -fsanitize=fuzzer -DFUZZER` the damage is libFuzzer's. What is asked of both: what is accepted is within
 * bounds and reads back as the same when it is written; what is refused is refused in one printable line.
 */
#include "../core/control.h"
#include "../core/pressure.h"
#include "../core/values.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RULES 5
#define INPUT 2048

static const adm_shape shape = {1024, 64, 32};

static void broken(const char *what, const uint8_t *data, size_t size) {
  fprintf(stderr, "fuzz_text: %s, with:\n", what);
  fwrite(data, 1, size, stderr);
  fputc('\n', stderr);
  abort();
}

static bool in_bounds(const adm_settings *s, adm_subject subject) {
  uint32_t most = subject == ADM_FOR_GROUP ? shape.cells : subject == ADM_FOR_WAITING ? ADM_OWNERS : ADM_COST_MAX;
  bool limits = s->limit >= 1 && (s->limit == ADM_UNLIMITED || s->limit <= most);
  for (unsigned i = 0; i < s->windows && i < ADM_WINDOWS; i++)
    limits &= s->window[i].from < 1440 && s->window[i].until <= 1440 && s->window[i].limit >= 1;
  return limits && s->queue <= shape.waiters && s->timeout_ms >= 1 && s->timeout_ms <= 3600000 && s->status >= 400 &&
         s->status <= 599 && s->cost <= ADM_COST_MAX && s->min <= s->max && s->mode <= ADM_ENFORCE &&
         s->order <= ADM_ADAPTIVE && s->key <= ADM_KEY_EXPR && s->windows <= ADM_WINDOWS && s->hold <= 1 && s->learn <= 1 &&
         s->adaptive <= 1 && (!s->adaptive || (s->min >= 1 && s->limit >= s->min && s->limit <= s->max));
}

/* One line, at least one byte, nothing that a terminal or a log could stumble over. */
static bool printable(const char *text, size_t size) {
  size_t length = strnlen(text, size);
  for (size_t i = 0; i < length; i++)
    if ((unsigned char)text[i] < ' ' || text[i] == 127) return false;
  return length > 0 && length < size;
}

static bool same_text(const char *a, const char *b) { return (!a && !b) || (a && b && strcmp(a, b) == 0); }

/* What was accepted, written and read again. */
static bool same_again(const adm_settings *s, const adm_texts *texts, adm_subject subject) {
  char written[ADM_WORDS + INPUT], error[ADM_ERROR], *rest = NULL;
  if (adm_settings_write(s, texts, subject, written, sizeof written) >= sizeof written) return false;
  adm_settings again = adm_settings_default(subject);
  adm_texts again_texts = {NULL, NULL};
  for (char *word = strtok_r(written, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
    if (!adm_settings_word(&again, &again_texts, subject, ADM_CONFIGURED, word, error)) return false;
  return adm_settings_check(&again, subject, &shape, NULL, error) && memcmp(s, &again, sizeof again) == 0 &&
         same_text(texts->expr, again_texts.expr) && same_text(texts->handlers, again_texts.handlers);
}

static void control(const uint8_t *data, size_t size) {
  static const char *const names[RULES] = {"memory", "queue-workers", "heavy", "light", "elastic"};
  adm_rule rules[RULES];
  adm_settings settings[RULES];
  adm_control_error error;
  for (unsigned i = 0; i < RULES; i++) {
    adm_subject subject = i == 0 ? ADM_FOR_MEMORY : i == 1 ? ADM_FOR_WAITING : ADM_FOR_GROUP;
    rules[i] = (adm_rule){names[i], subject, adm_settings_default(subject)};
  }
  rules[4].settings.adaptive = 1, rules[4].settings.min = 1, rules[4].settings.max = 16, rules[4].settings.limit = 4;
  if (!adm_control_read((const char *)data, size, rules, RULES, &shape, settings, &error)) {
    if (!printable(error.text, sizeof error.text)) broken("a message that is not a line", data, size);
    return;
  }
  adm_texts none = {NULL, NULL};
  for (unsigned i = 0; i < RULES; i++) {
    if (!in_bounds(&settings[i], rules[i].subject)) broken("out of bounds", data, size);
    if (!same_again(&settings[i], &none, rules[i].subject)) broken("written, not read back", data, size);
  }
}

/* The input as the words of an AdmissionGroup. */
static void words(const uint8_t *data, size_t size) {
  char text[INPUT + 1], error[ADM_ERROR], *rest = NULL;
  if (size > INPUT) size = INPUT;
  memcpy(text, data, size);
  text[size] = '\0';
  adm_settings settings = adm_settings_default(ADM_FOR_GROUP);
  adm_texts texts = {NULL, NULL};
  for (char *word = strtok_r(text, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest))
    if (!adm_settings_word(&settings, &texts, ADM_FOR_GROUP, ADM_CONFIGURED, word, error)) {
      if (!printable(error, sizeof error)) broken("a message that is not a line", data, size);
      if (!adm_name_check(word, error) && !printable(error, sizeof error)) broken("a message about a name", data, size);
    }
  if (!adm_settings_check(&settings, ADM_FOR_GROUP, &shape, NULL, error)) {
    if (!printable(error, sizeof error)) broken("a message that is not a line", data, size);
  } else if (!in_bounds(&settings, ADM_FOR_GROUP)) {
    broken("out of bounds", data, size);
  } else if (!same_again(&settings, &texts, ADM_FOR_GROUP)) {
    broken("written, not read back", data, size);
  }
}

/* A number that a sink wrote, read by what reads the directive. */
static bool reads_back(bool (*read)(const char *, uint32_t *), void (*write)(adm_sink *, uint32_t), uint32_t value) {
  char written[64];
  uint32_t again;
  adm_sink to = {written, sizeof written, 0};
  write(&to, value);
  return adm_sink_end(&to) < sizeof written && read(written, &again) && again == value;
}

/* One word as the value of each directive that has a number, a share, a size or a time: AdmissionQueueWorkers, AdmissionTableSize,
 * AdmissionPriority, AdmissionMaxHold, AdmissionBudget, AdmissionLimit. */
static bool value_is_right(const char *word) {
  uint32_t number, limit;
  unsigned percent;
  int32_t priority;
  char written[32], error[ADM_ERROR];
  if (adm_workers_read(word, &number, &percent)) {
    uint32_t again;
    unsigned share;
    if (percent ? percent > 90 || number != percent : number > ADM_OWNERS) return false;
    snprintf(written, sizeof written, "%u%s", number, percent ? "%" : "");
    if (!adm_workers_read(written, &again, &share) || again != number || share != percent) return false;
  }
  if (adm_entries_read(word, &number) && (number < ADM_ENTRIES_MIN || number > ADM_ENTRIES_MAX || (number & (number - 1)) != 0)) return false;
  if (adm_priority_read(word, &priority)) {
    int32_t again;
    snprintf(written, sizeof written, "%d", priority);
    if (priority < -ADM_PRIORITY_MAX || priority > ADM_PRIORITY_MAX || !adm_priority_read(written, &again) || again != priority) return false;
  }
  if (adm_duration_read(word, &number) && !reads_back(adm_duration_read, adm_sink_duration, number)) return false;
  if (adm_size_read(word, &number) && (number > ADM_COST_MAX || !reads_back(adm_size_read, adm_sink_size, number))) return false;
  if (adm_limit_read(word, &limit) && (limit < 1 || !reads_back(adm_limit_read, adm_sink_limit, limit))) return false;
  adm_settings budget = adm_settings_default(ADM_FOR_MEMORY);
  if (adm_settings_word(&budget, NULL, ADM_FOR_MEMORY, ADM_CONFIGURED, word, error)) return in_bounds(&budget, ADM_FOR_MEMORY);
  return printable(error, sizeof error);
}

static void values(const uint8_t *data, size_t size) {
  char text[INPUT + 1], *rest = NULL;
  if (size > INPUT) size = INPUT;
  memcpy(text, data, size);
  text[size] = '\0';
  for (char *word = strtok_r(text, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest))
    if (!value_is_right(word)) broken("a directive's value that is out of bounds, or not read back", data, size);
}

static void kernel(const uint8_t *data, size_t size) {
  char text[INPUT + 1], path[64];
  if (size > INPUT) size = INPUT;
  memcpy(text, data, size);
  text[size] = '\0';
  adm_reading reading = {0}, before = {0};
  adm_read_psi(text, &reading.machine);
  adm_read_meminfo(text, &reading);
  adm_read_vmstat(text, &reading);
  adm_read_cgroup(text, text, text, text, &reading);
  reading.at_ns = 250000000;
  adm_pressure pressure = adm_pressure_between(&before, &reading);
  if (!(pressure.stall >= 0 && pressure.stall <= 1)) broken("a stall that is no fraction", data, size);
  if (adm_cgroup_path(text, "memory", path, sizeof path) && path[0] != '/') broken("a path that is none", data, size);
  adm_cgroup_path(text, "", path, sizeof path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  control(data, size);
  words(data, size);
  values(data, size);
  kernel(data, size);
  return 0;
}

#ifndef FUZZER

static const char *const corpus[] = {
  "heavy limit=2 queue=20 timeout=500ms mode=observe # sale\nlight limit=none order=adaptive status=429\n* mode=off\n",
  "memory limit=800M\nqueue-workers limit=20\nelastic min=2 max=8 limit=4 cost=learn:200M\n",
  "limit=4 queue=20 timeout=3s key=expr:%{REMOTE_ADDR} handler=cgi-script,php order=lifo cost=200M at=09:00-18:00:4",
  "limit=4 adaptive=memory min=1 max=16 hold=response at=22:00-06:00:none mode=enforce cost=learn status=503",
  "25% 0 4096 90% 2048 1048576 16 -10 1000 -1000 +7 5m 30s 0 500ms 800M 2G 16777215K order=lifo mode=observe limit=600M none 3",
  "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=56\n",
  "MemTotal: 1024000 kB\nMemAvailable: 512000 kB\npswpin 77\n9:name=systemd:/\n4:cpu,memory:/box\n0::/a\n",
};
static const char *const pieces[] = {
  "limit=", "none", "4294967295", "18446744073709551616", "=", ":", "-", "#", "\n", " ", "*", "heavy ", "elastic ", "memory ", "queue-workers ", "4096", "4097",
  "queue=", "timeout=", "ms", "h", "cost=", "learn:", "1T", "M", "at=", "00:00-24:00:1", "min=", "max=", "64", "65", "33", "0",
  "adaptive=memory ", "key=expr:", "handler=", "\x1b", "\xff", "\r", "%s%n", "9:memory:/", "total=", "mode=off ",
  " at=01:00-02:00:1", " at=24:00-06:00:3", "24:00-", "-24:00", "%", " 90% ", " 91% ", " 0% ", " 4097 ", " 15 ", " 1048577 ", " -1001 ", " -0 ", "+", " 4294968 ", " 18446744073709551615ms ", " 1024T ", "handler=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
};

static uint64_t state;
/* xorshift64*: the same on every machine. */
static uint32_t chance(uint32_t below) {
  state ^= state >> 12, state ^= state << 25, state ^= state >> 27;
  return (uint32_t)((state * UINT64_C(2685821657736338717)) >> 33) % below;
}

/* Puts `with` in the place of `length` bytes. */
static size_t replace(char *text, size_t size, size_t at, size_t length, const char *with, size_t with_length) {
  if (size - length + with_length > INPUT) return size;
  memmove(text + at + with_length, text + at + length, size - at - length);
  memcpy(text + at, with, with_length);
  return size - length + with_length;
}

static size_t damage(char *text, size_t size) {
  size_t at = chance((uint32_t)size + 1), length = chance((uint32_t)(size - at) + 1) % 16;
  char copy[64];
  switch (chance(6)) {
  case 0:
    if (at < size) text[at] = (char)((unsigned char)text[at] ^ 1u << chance(8));
    return size;
  case 1: return replace(text, size, at, length, "", 0);
  case 2:
    memcpy(copy, text + at, length);
    return replace(text, size, chance((uint32_t)size + 1), 0, copy, length);
  case 3: { /* one thing very often */
    const char *piece = pieces[chance(sizeof pieces / sizeof *pieces)];
    for (unsigned n = chance(32); n > 0; n--) size = replace(text, size, at, 0, piece, strlen(piece));
    return size;
  }
  case 4: length = 0; /* fall through */
  default: {
    const char *piece = pieces[chance(sizeof pieces / sizeof *pieces)];
    return replace(text, size, at, length, piece, strlen(piece));
  }
  }
}

int main(int argc, char **argv) {
  unsigned long iterations = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
  /* Others each time; said beforehand, so that what fails can be had again. */
  uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : adm_now_ns() % 1000000;
  printf("fuzz_text: %lu inputs, seed %" PRIu64 "\n", iterations, seed);
  fflush(stdout);
  state = seed * 2 + 1;
  char text[INPUT];
  for (unsigned long i = 0; i < iterations; i++) {
    const char *start = corpus[chance(sizeof corpus / sizeof *corpus)];
    size_t size = strlen(start);
    memcpy(text, start, size);
    for (unsigned n = chance(8); n > 0; n--) size = damage(text, size);
    /* A copy of the exact size, so that one byte too far is seen. */
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact) return 1;
    memcpy(exact, text, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
  }
  return 0;
}

#endif
