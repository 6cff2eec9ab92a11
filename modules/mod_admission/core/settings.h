/*
 * settings.h: settings of a group as text, `limit=4 queue=20 timeout=3s`, read and written.
 *
 * The tail of AdmissionGroup and the lines of the control file are the same words, so one table of keys reads both.
 * Each word is judged by itself (adm_settings_word) and all of them together at the end (adm_settings_check). What only
 * the module can judge, an expression or the names of handlers, is handed back as text. Nothing here allocates.
 */
#ifndef ADMISSION_SETTINGS_H
#define ADMISSION_SETTINGS_H

#include "admission.h"

#define ADM_ERROR 256 /* bytes that every message fits into */
#define ADM_WORDS 512 /* bytes that written settings fit into, without expression and handlers */

/* What settings are for: it decides which keys there are, and whether `limit` is a number, of which range, or a size. */
typedef enum {
  ADM_FOR_GROUP,  /* what AdmissionGroup names */
  ADM_FOR_MEMORY, /* AdmissionBudget memory: limit is a size, kept in ADM_COST_UNITs */
  ADM_FOR_WAITING /* AdmissionQueueWorkers: only a limit */
} adm_subject;

/* Where a word stands. */
typedef enum {
  ADM_CONFIGURED, /* in the server's configuration: all keys */
  ADM_LIVE        /* in the control file: only keys that can change while the group is in use */
} adm_place;

/* The two values that the core cannot judge: they point into the word they were read from; NULL when not given. */
typedef struct adm_texts {
  const char *expr;     /* after key=expr: */
  const char *handlers; /* after handler= */
} adm_texts;

/* A group's name, what it is for and its settings: what the configuration hands to the control file and the controller. */
typedef struct adm_rule {
  const char *name;
  adm_subject subject;
  adm_settings settings;
} adm_rule;

/* The settings of a group that says nothing about itself. */
adm_settings adm_settings_default(adm_subject subject);

/* Reads one word `key=value` into the settings (and into `texts`, which may be NULL where such keys cannot come). When
 * the word is wrong, says in `error` (ADM_ERROR bytes) what is allowed, and changes nothing. */
bool adm_settings_word(adm_settings *settings, adm_texts *texts, adm_subject subject, adm_place place, const char *word,
                       char *error);

/* Whether the settings fit together, and into a table of this shape (NULL: not known yet); a number that is as it was
 * `before` (NULL: there was none) was found to do no harm. Completes what may be left out: min=1 and max=limit of an
 * adaptive limit. Called once after the last word. */
bool adm_settings_check(adm_settings *settings, adm_subject subject, const adm_shape *shape, const adm_settings *before,
                        char *error);

/* Whether one request of a group fits into the memory budget (in ADM_COST_UNITs) at all. */
bool adm_cost_check(const adm_settings *settings, uint32_t budget, char *error);

/* Writes the words that read back as these settings; returns their length, like snprintf. `texts` may be NULL. */
size_t adm_settings_write(const adm_settings *settings, const adm_texts *texts, adm_subject subject, char *out, size_t size);

/* Whether a name can be a group's: letters, digits, `-`, `_`, `.`, not longer than ADM_NAME allows, and none that the
 * control file or AdmissionUse understand otherwise (`memory`, `queue-workers`, `none`). */
bool adm_name_check(const char *name, char *error);

/* A size (`200M`, `1G`, bytes without a letter) in ADM_COST_UNITs, rounded up. Also for AdmissionBudget and policies. */
bool adm_size_read(const char *text, uint32_t *units);

/* A duration (`3s`, `500ms`, `2m`, `1h`, seconds without a letter) in milliseconds. Also for AdmissionMaxHold. */
bool adm_duration_read(const char *text, uint32_t *milliseconds);

/* The most that a limit and a queue can be; a running table may allow less. */
#define ADM_LIMIT_MAX 1000000
#define ADM_QUEUE_MAX 4096
#define ADM_IN_WORDS_(number) #number
#define ADM_IN_WORDS(number) ADM_IN_WORDS_(number)
#define ADM_LIMIT_WORDS "number from 1 to " ADM_IN_WORDS(ADM_LIMIT_MAX)

/* `none` or a number from 1 to ADM_LIMIT_MAX. */
bool adm_limit_read(const char *text, uint32_t *limit);

/* AdmissionQueueWorkers: a number of workers up to ADM_OWNERS, or with `%` a share of 1 to 90 (`percent` is 0 for a number). */
bool adm_workers_read(const char *text, uint32_t *number, unsigned *percent);

/* AdmissionTableSize: 16 to ADM_ENTRIES_MAX, as the power of two that has room for so many. */
#define ADM_ENTRIES_MIN 16u
#define ADM_ENTRIES_MAX (1u << 20)
bool adm_entries_read(const char *text, uint32_t *entries);

/* AdmissionPriority: -1000 to 1000. */
#define ADM_PRIORITY_MAX 1000
bool adm_priority_read(const char *text, int32_t *priority);

const char *adm_mode_name(unsigned mode);
const char *adm_order_name(unsigned order);
const char *adm_key_name(unsigned key);

#endif
