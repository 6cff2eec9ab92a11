/*
 * test_control.c: a whole control file: what it changes, and that a mistake anywhere in it changes nothing.
 */
#include "../core/control.h"

#include "check.h"

#define RULES 5

static void rules_make(adm_rule rules[RULES]) {
  const char *const names[RULES] = {"memory", "queue-workers", "heavy", "light", "elastic"};
  for (unsigned i = 0; i < RULES; i++) {
    adm_subject subject = i == 0 ? ADM_FOR_MEMORY : i == 1 ? ADM_FOR_WAITING : ADM_FOR_GROUP;
    rules[i] = (adm_rule){names[i], subject, adm_settings_default(subject)};
  }
  rules[0].settings.limit = 800 * 16; /* 800M */
  rules[2].settings.limit = 4;
  rules[2].settings.cost = 200 * 16;
  rules[4].settings.limit = 4, rules[4].settings.adaptive = 1;
  rules[4].settings.min = 1, rules[4].settings.max = 16;
}

/* What differs from the configuration, as `name key=value ...;` */
static void describe(const adm_rule *rules, const adm_settings *settings, char *out, size_t size) {
  out[0] = '\0';
  for (unsigned i = 0; i < RULES; i++) {
    char before[ADM_WORDS], after[ADM_WORDS], *rest = NULL;
    adm_settings_write(&rules[i].settings, NULL, rules[i].subject, before, sizeof before);
    adm_settings_write(&settings[i], NULL, rules[i].subject, after, sizeof after);
    bool named = false;
    for (char *word = strtok_r(after, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
      char padded_before[ADM_WORDS + 2], padded_word[128];
      snprintf(padded_before, sizeof padded_before, " %s ", before);
      snprintf(padded_word, sizeof padded_word, " %s ", word);
      if (strstr(padded_before, padded_word)) continue;
      size_t length = strlen(out);
      snprintf(out + length, size - length, "%s%s%s %s", length && !named ? "; " : "", named ? "" : rules[i].name, "", word);
      named = true;
    }
  }
}

/* The one door: a file's text in, and what it changes or why it is refused. */
static void check_bytes(const char *text, size_t length, const char *expected) {
  adm_rule rules[RULES];
  adm_settings settings[RULES];
  adm_control_error error;
  char got[1024];
  rules_make(rules);
  if (adm_control_read(text, length, rules, RULES, &(adm_shape){1024, 64, 32}, settings, &error))
    describe(rules, settings, got, sizeof got);
  else
    snprintf(got, sizeof got, "line %u: %s", error.line, error.text);
  check_text(got, expected, text, __FILE__, __LINE__);
}
static void check(const char *text, const char *expected) { check_bytes(text, strlen(text), expected); }

static void read(void) {
  check("", "");
  check("\n\n# nothing\n   \t\n", "");
  check("heavy limit=2", "heavy limit=2");
  check("heavy limit=2 queue=20 timeout=500ms mode=observe # for the sale\r\nlight limit=7\r\n",
        "heavy limit=2 queue=20 timeout=500ms mode=observe; light limit=7");
  check("* mode=off\nlight mode=observe\n", "heavy mode=off; light mode=observe; elastic mode=off");
  check("light mode=observe\n* mode=off\n", "heavy mode=off; light mode=off; elastic mode=off");
  check("memory limit=1G\nqueue-workers limit=20\n", "memory limit=1G; queue-workers limit=20");
  check("memory limit=none mode=observe", "memory limit=none mode=observe");
  check("heavy limit=2\nheavy limit=3\n", "heavy limit=3");
  check("elastic min=2 max=8 limit=8", "elastic limit=8 min=2 max=8");
  check("heavy cost=learn:100M", "heavy cost=learn:100M");
  check("heavy limit=4", ""); /* as configured */
}

static void refused(void) {
  check("heavy limit=2\nheavi limit=2\n", "line 2: heavi: no such group; there are memory, queue-workers, heavy, light, elastic");
  check("heavy limit=2\n\nlight limit=four\n", "line 3: limit=four: a number from 1 to 1000000, or `none`");
  check("heavy\n", "line 1: heavy: nothing is said about it, such as limit=4");
  check("heavy limit=2 limit=3\n", "line 1: limit=3: this key stands twice on the line");
  check("heavy limit = 2\n", "line 1: limit: not of the form key=value");
  check("heavy key=vhost\n", "line 1: key=vhost: cannot change while the server runs; what can is limit, queue, timeout, "
        "order, status, cost, mode, min, max");
  check("memory cost=4M\n", "line 1: cost=4M: not a key here; keys are limit, order, mode");
  check("heavy limit=2\nqueue-workers limit=4097\n", "line 2: limit=4097: a number from 1 to 4096, or `none`");
  check("queue-workers mode=off\n", "line 1: mode=off: not a key here; keys are limit");
  check("light limit=65\n", "line 1: light: limit=65: the running table has room for 64 permits per entry at most");
  check("light queue=33\n", "line 1: light: queue=33: the running table has room for 32 waiters per entry at most");
  check("light min=2\n", "line 1: light: min=2: only with adaptive=memory");
  check("elastic limit=2\nelastic min=3\n", "line 2: elastic: limit=2: is not between min=3 and max=16");
  check("\nmemory limit=100M\n",
        "line 2: heavy: cost=200M: is above the memory budget of 100M, so that nothing could ever run");
  check("heavy cost=1G", "line 1: heavy: cost=1G: is above the memory budget of 800M, so that nothing could ever run");
  check("\x1b]0;evil\x07 limit=2\n", "line 1: ?]0;evil?: no such group; there are memory, queue-workers, heavy, light, elastic");
  check_bytes("heavy limit=2\0\n", 15, "line 1: a byte of value 0: not a text");
  static char large[ADM_CONTROL_BYTES + 1];
  memset(large, ' ', sizeof large);
  check_bytes(large, 1024, "line 1: longer than 1023 bytes");
  check_bytes(large, sizeof large, "line 0: longer than 65536 bytes");
}

/* What is left of a text that was read for another configuration. */
static void check_recalled(const char *text, const char *expected) {
  static adm_control_kept kept;
  adm_rule rules[RULES];
  adm_settings settings[RULES];
  char got[1024];
  rules_make(rules);
  adm_control_keep(&kept, text, strlen(text));
  adm_control_recall(&kept, rules, RULES, &(adm_shape){1024, 64, 32}, settings);
  describe(rules, settings, got, sizeof got);
  check_text(got, expected, text, __FILE__, __LINE__);
}

static void recalled(void) {
  check_recalled("", "");
  check_recalled("heavy limit=2\nlight mode=off", "heavy limit=2; light mode=off");
  check_recalled("heavy limit=2\nremoved limit=1\nlight mode=off\n", "heavy limit=2; light mode=off");
  check_recalled("elastic max=32\nelastic limit=20\nlight limit=65\n", "elastic limit=20 max=32");
  check_recalled("removed limit=1\n", "");
}

/* What was noted of the configuration when the server started is no mistake of a file, be it about the same group. */
static void configured_beyond(void) {
  adm_rule rules[RULES];
  adm_settings settings[RULES];
  adm_control_error error;
  rules_make(rules);
  rules[2].settings.limit = 5000, rules[3].settings.cost = 900 * 16;
  CHECK(adm_control_read("elastic limit=5\n", 16, rules, RULES, &(adm_shape){1024, 64, 32}, settings, &error));
  CHECK_EQUAL(settings[2].limit, 5000);
  CHECK(adm_control_read("heavy queue=3\n", 14, rules, RULES, &(adm_shape){1024, 64, 32}, settings, &error));
  CHECK_EQUAL(settings[2].queue, 3);
  CHECK(!adm_control_read("heavy limit=4000\n", 17, rules, RULES, &(adm_shape){1024, 64, 32}, settings, &error));
}

int main(void) {
  read();
  refused();
  recalled();
  configured_beyond();
  return checked("test_control");
}
