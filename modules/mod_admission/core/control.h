/*
 * control.h: the control file as a whole, from text to settings.
 *
 * A control file says what is different from the configuration now. It is read completely or not at all: the result is
 * the configured settings with the file's words laid over them, or the first line that is wrong. It does not open
 * files, judge who wrote them, or put anything in force: the controller does.
 *
 * The text that is in force is kept in shared memory, so that neither a new configuration nor a new controller forgets
 * it when the file is a bad one by then.
 */
#ifndef ADMISSION_CONTROL_H
#define ADMISSION_CONTROL_H

#include "settings.h"

#include <stdatomic.h>

#define ADM_CONTROL_BYTES 65536 /* a longer file is refused */

#define ADM_CONTROL_MEMORY "memory"         /* the names of the table's own groups in a control file */
#define ADM_CONTROL_WAITING "queue-workers"

typedef struct adm_control_error {
  unsigned line; /* from 1; 0 when no line is to blame */
  char text[ADM_ERROR];
} adm_control_error;

/* Reads a control file's text for `count` configured rules; a rule of ADM_FOR_MEMORY answers to `memory`, one of
 * ADM_FOR_WAITING to `queue-workers`, all of ADM_FOR_GROUP together to `*`. A later line wins over an earlier one.
 * On success `settings` (`count` of them, in the order of the rules) are what is to be in force; otherwise it is
 * not to be used. */
bool adm_control_read(const char *text, size_t length, const adm_rule *rules, unsigned count, const adm_shape *shape,
                      adm_settings *settings, adm_control_error *error);

/* The text in force, zeroed when its memory is made: two places, of which the one that does not count is written. */
typedef struct adm_control_kept {
  _Atomic uint32_t now;
  _Atomic uint32_t length[2]; /* children can write here: read once, and bounded */
  char text[2][ADM_CONTROL_BYTES];
} adm_control_kept;

/* Keeps a text that was read; an empty one when the file is gone. One process at a time writes. */
void adm_control_keep(adm_control_kept *kept, const char *text, size_t length);

/* What the kept text says over these rules, which may be others than those it was read for: as a whole, or line by line
 * without what does not fit any more. */
void adm_control_recall(const adm_control_kept *kept, const adm_rule *rules, unsigned count, const adm_shape *shape,
                        adm_settings *settings);

#endif
