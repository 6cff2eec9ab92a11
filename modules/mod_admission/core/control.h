/*
 * control.h: the control file as a whole, from text to settings.
 *
 * A control file says what is different from the configuration now. It is read completely or not at all: the result is
 * the configured settings with the file's words laid over them, or the first line that is wrong. It does not open
 * files, judge who wrote them, or put anything in force: the controller does.
 */
#ifndef ADMISSION_CONTROL_H
#define ADMISSION_CONTROL_H

#include "settings.h"

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

#endif
