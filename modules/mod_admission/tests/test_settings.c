/*
 * test_settings.c: settings as text: what is understood, what is refused and with which words, and that what is written
 * reads back as the same settings.
 */
#include "../core/settings.h"

#include "check.h"

#include <stdlib.h>

static bool same(const char *what, const char *got, const char *expected) {
  check_text(got, expected, what, __FILE__, __LINE__);
  return strcmp(got, expected) == 0;
}

/* Reads words with blanks between them, as a directive or a line of the control file has them. */
static bool read_words(adm_settings *settings, adm_texts *texts, adm_subject subject, adm_place place, char *words,
                       char *error) {
  char *rest = NULL;
  for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
    if (!adm_settings_word(settings, texts, subject, place, word, error)) return false;
  return adm_settings_check(settings, subject, &(adm_shape){1024, 256, 64}, NULL, error);
}

/* The one door: words in; expected is what they are written back as, or the message. */
static void check(adm_subject subject, adm_place place, const char *words, const char *expected) {
  char copy[512], got[ADM_WORDS + 256] = "", again[ADM_WORDS + 256] = "";
  snprintf(copy, sizeof copy, "%s", words);
  adm_settings settings = adm_settings_default(subject);
  adm_texts texts = {NULL, NULL};
  if (!read_words(&settings, &texts, subject, place, copy, got)) {
    same(words, got, expected);
    return;
  }
  adm_settings_write(&settings, &texts, subject, got, sizeof got);
  if (!same(words, got, expected)) return;
  char second[ADM_WORDS + 256];
  snprintf(second, sizeof second, "%s", got);
  adm_settings reread = adm_settings_default(subject);
  adm_texts retexts = {NULL, NULL};
  if (!read_words(&reread, &retexts, subject, ADM_CONFIGURED, second, again)) same(got, again, "readable again");
  adm_settings_write(&reread, &retexts, subject, again, sizeof again);
  same("written, read and written again", again, got);
}

static void group(const char *words, const char *expected) { check(ADM_FOR_GROUP, ADM_CONFIGURED, words, expected); }
static void live(const char *words, const char *expected) { check(ADM_FOR_GROUP, ADM_LIVE, words, expected); }

static void understood(void) {
  group("", "limit=none queue=0 timeout=3s key=file order=fifo status=503 cost=0 mode=enforce adaptive=none hold=handler");
  group("limit=4 queue=20 timeout=500ms key=vhost handler=cgi-script,fcgid-script order=adaptive status=429 cost=200M "
        "mode=observe hold=response at=09:00-18:00:4 at=22:30-6:00:none",
        "limit=4 queue=20 timeout=500ms key=vhost handler=cgi-script,fcgid-script order=adaptive status=429 cost=200M "
        "mode=observe adaptive=none hold=response at=09:00-18:00:4 at=22:30-06:00:none");
  group("limit=4 adaptive=memory max=16", "limit=4 queue=0 timeout=3s key=file order=fifo status=503 cost=0 mode=enforce "
        "adaptive=memory min=1 max=16 hold=handler");
  group("adaptive=memory max=16", "limit=16 queue=0 timeout=3s key=file order=fifo status=503 cost=0 mode=enforce "
        "adaptive=memory min=1 max=16 hold=handler");
  group("key=expr:%{HTTP:X-Shop} cost=learn:1G timeout=2m order=lifo",
        "limit=none queue=0 timeout=120s key=expr:%{HTTP:X-Shop} order=lifo status=503 cost=learn:1G mode=enforce "
        "adaptive=none hold=handler");
  group("key=expr:x key=client cost=learn", "limit=none queue=0 timeout=3s key=client order=fifo status=503 cost=learn "
        "mode=enforce adaptive=none hold=handler");
  group("cost=1 at=0:00-24:00:1", "limit=none queue=0 timeout=3s key=file order=fifo status=503 cost=64K mode=enforce "
        "adaptive=none hold=handler at=00:00-24:00:1");
  group("handler=any", "limit=none queue=0 timeout=3s key=file handler=any order=fifo status=503 cost=0 mode=enforce adaptive=none "
        "hold=handler");
  group("handler=static-of-mine,anyway", "limit=none queue=0 timeout=3s key=file handler=static-of-mine,anyway order=fifo status=503 "
        "cost=0 mode=enforce adaptive=none hold=handler");
  live("limit=4 cost=none mode=off", "limit=4 queue=0 timeout=3s key=file order=fifo status=503 cost=0 mode=off "
       "adaptive=none hold=handler");
  check(ADM_FOR_MEMORY, ADM_CONFIGURED, "limit=800M", "limit=800M order=fifo mode=enforce");
  check(ADM_FOR_MEMORY, ADM_LIVE, "limit=none mode=observe", "limit=none order=fifo mode=observe");
  check(ADM_FOR_WAITING, ADM_LIVE, "limit=20", "limit=20");
  check(ADM_FOR_WAITING, ADM_LIVE, "limit=4096", "limit=4096");
  check(ADM_FOR_WAITING, ADM_LIVE, "limit=none", "limit=none");
}

static void refused(void) {
  group("limit=four", "limit=four: a number from 1 to 1000000, or `none`");
  group("limit=1000001", "limit=1000001: a number from 1 to 1000000, or `none`");
  group("queue=4097", "queue=4097: how many may wait, from 0 to 4096");
  group("limit=0", "limit=0: a number from 1 to 1000000, or `none`");
  group("limit=", "limit=: a number from 1 to 1000000, or `none`");
  group("limit=-1", "limit=-1: a number from 1 to 1000000, or `none`");
  group("limit=99999999999999999999", "limit=99999999999999999999: a number from 1 to 1000000, or `none`");
  group("limit=4.5", "limit=4.5: a number from 1 to 1000000, or `none`");
  group("queue", "queue: not of the form key=value");
  group("=4", "=4: not a key here; keys are limit, queue, timeout, key, handler, order, status, cost, mode, adaptive, "
        "min, max, hold, at");
  group("limits=4", "limits=4: not a key here; keys are limit, queue, timeout, key, handler, order, status, cost, mode, "
        "adaptive, min, max, hold, at");
  group("timeout=0", "timeout=0: a time from 1ms to 1h, such as 3s or 500ms");
  group("timeout=2h", "timeout=2h: a time from 1ms to 1h, such as 3s or 500ms");
  group("timeout=3x", "timeout=3x: a time from 1ms to 1h, such as 3s or 500ms");
  group("status=200", "status=200: a number from 400 to 599 that httpd knows");
  group("status=430", "status=430: a number from 400 to 599 that httpd knows");
  group("cost=200X", "cost=200X: a size such as 200M, `none`, `learn` or learn:SIZE");
  group("cost=learn:", "cost=learn:: a size such as 200M, `none`, `learn` or learn:SIZE");
  group("cost=17000000T", "cost=17000000T: a size such as 200M, `none`, `learn` or learn:SIZE");
  group("key=expr:", "key=expr:: file, inode, vhost, location, client, server or expr:EXPRESSION");
  group("at=25:00-26:00:4", "at=25:00-26:00:4: FROM-UNTIL:LIMIT such as 09:00-18:00:4, up to 8 times");
  group("at=24:00-06:00:4", "at=24:00-06:00:4: FROM-UNTIL:LIMIT such as 09:00-18:00:4, up to 8 times");
  group("at=9:0-18:00:4", "at=9:0-18:00:4: FROM-UNTIL:LIMIT such as 09:00-18:00:4, up to 8 times");
  group("at=1:00-2:00:1 at=2:00-3:00:1 at=3:00-4:00:1 at=4:00-5:00:1 at=5:00-6:00:1 at=6:00-7:00:1 at=7:00-8:00:1 "
        "at=8:00-9:00:1 at=9:00-10:00:1", "at=9:00-10:00:1: FROM-UNTIL:LIMIT such as 09:00-18:00:4, up to 8 times");
  group("handler=", "handler=: dynamic, static or any, or names of handlers with commas");
  group("handler=,", "handler=,: dynamic, static or any, or names of handlers with commas");
  group("handler=cgi-script,", "handler=cgi-script,: dynamic, static or any, or names of handlers with commas");
  group("handler=static,cgi-script", "handler=static,cgi-script: dynamic, static or any, or names of handlers with commas");
  group("handler=proxy,Any", "handler=proxy,Any: dynamic, static or any, or names of handlers with commas");
  group("limit=\x1b[31m\n", "limit=?[31m?: a number from 1 to 1000000, or `none`");
  group("limit=0123456789012345678901234567890123456789012345678901234567890123456789",
        "limit=012345678901234567890123456789012345678901234567890...: a number from 1 to 1000000, or `none`");
  group("limit=257", "limit=257: the running table has room for 256 permits per entry at most");
  group("queue=65", "queue=65: the running table has room for 64 waiters per entry at most");
  group("at=1:00-2:00:300", "at=300: the running table has room for 256 permits per entry at most");
  group("min=4", "min=4: only with adaptive=memory");
  group("adaptive=memory", "adaptive=memory: needs max=NUMBER or limit=NUMBER");
  group("adaptive=memory min=9 max=3 limit=4", "min=9: is above max=3");
  group("adaptive=memory min=2 max=3 limit=4", "limit=4: is not between min=2 and max=3");
  live("key=file", "key=file: cannot change while the server runs; what can is limit, queue, timeout, order, status, cost, "
       "mode, min, max");
  live("kez=file", "kez=file: not a key here; keys are limit, queue, timeout, order, status, cost, mode, min, max");
  check(ADM_FOR_MEMORY, ADM_LIVE, "limit=0", "limit=0: a size such as 800M, or `none`");
  check(ADM_FOR_MEMORY, ADM_LIVE, "cost=1M", "cost=1M: not a key here; keys are limit, order, mode");
  check(ADM_FOR_MEMORY, ADM_LIVE, "status=429", "status=429: not a key here; keys are limit, order, mode");
  check(ADM_FOR_WAITING, ADM_LIVE, "limit=0", "limit=0: a number from 1 to 4096, or `none`");
  check(ADM_FOR_WAITING, ADM_LIVE, "limit=4097", "limit=4097: a number from 1 to 4096, or `none`");
  check(ADM_FOR_WAITING, ADM_LIVE, "mode=off", "mode=off: not a key here; keys are limit");
}

static void names(void) {
  char error[ADM_ERROR] = "good";
  same("name", adm_name_check("heavy-php_1.2", error) ? "good" : error, "good");
  same("name", adm_name_check("memory", error) ? "good" : error, "memory: this name has a meaning of its own");
  same("name", adm_name_check("NONE", error) ? "good" : error, "NONE: this name has a meaning of its own");
  same("name", adm_name_check("*", error) ? "good" : error, "*: not a group's name: 1 to 31 letters, digits, `-`, `_`, `.`");
  same("name", adm_name_check("", error) ? "good" : error, ": not a group's name: 1 to 31 letters, digits, `-`, `_`, `.`");
  same("name", adm_name_check("a2345678901234567890123456789012", error) ? "good" : "too long", "too long");
}

/* Random settings, written and read: the same again, whatever the size of the place they are written to. */
static void round_trips(unsigned count) {
  for (unsigned n = 0; n < count; n++) {
    adm_settings s = adm_settings_default(ADM_FOR_GROUP), again = s;
    s.limit = rand() % 4 ? 1 + (uint32_t)rand() % 256 : ADM_UNLIMITED;
    s.queue = (uint32_t)rand() % 65;
    s.timeout_ms = 1 + (uint32_t)rand() % 3600000;
    s.status = 500 + (uint32_t)rand() % 9; /* of those that httpd has a line for */
    s.cost = rand() % 2 ? (uint32_t)rand() % (ADM_COST_MAX + 1) : 1u << rand() % 24;
    s.mode = (uint8_t)(rand() % 3), s.order = (uint8_t)(rand() % 3), s.key = (uint8_t)(rand() % 6);
    s.hold = (uint8_t)(rand() % 2), s.learn = (uint8_t)(rand() % 2);
    s.windows = (uint8_t)(rand() % (ADM_WINDOWS + 1));
    for (unsigned i = 0; i < s.windows; i++)
      s.window[i] = (adm_window){(uint16_t)(rand() % 1440), (uint16_t)(rand() % 1441), 1 + (uint32_t)rand() % 256};
    char out[ADM_WORDS], cut[ADM_WORDS], error[ADM_ERROR] = "";
    size_t length = adm_settings_write(&s, NULL, ADM_FOR_GROUP, out, sizeof out), room = (size_t)rand() % sizeof cut;
    same("length", length < sizeof out && strlen(out) == length ? "fits" : "cut", "fits");
    adm_settings_write(&s, NULL, ADM_FOR_GROUP, cut, room);
    same("cut", room == 0 || (strlen(cut) < room && strncmp(cut, out, strlen(cut)) == 0) ? "a part" : cut, "a part");
    same(out, read_words(&again, NULL, ADM_FOR_GROUP, ADM_CONFIGURED, out, error) ? "read" : error, "read");
    same("round trip", memcmp(&s, &again, sizeof s) == 0 ? "same" : "others", "same");
  }
}

int main(void) {
  srand(1);
  understood();
  refused();
  names();
  round_trips(2000);
  return checked("test_settings");
}
