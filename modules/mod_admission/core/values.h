/*
 * values.h: the values of settings, one at a time: for settings.c, which knows whose they are.
 */
#ifndef ADMISSION_VALUES_H
#define ADMISSION_VALUES_H

#include "admission.h"

/* Digits and nothing else, from `least` to `most`. */
bool adm_number_read(const char *text, uint32_t least, uint32_t most, uint32_t *number);

/* `09:00` at the start of `text`, as minutes of the day, up to 24:00; returns what follows, or NULL. */
const char *adm_time_read(const char *text, uint16_t *minutes);

/* Where words are written to; counts on when there is no room, as snprintf does, and leaves the end to the caller. */
typedef struct adm_sink {
  char *out;
  size_t size, length;
} adm_sink;

void adm_sink_text(adm_sink *to, const char *text);
void adm_sink_number(adm_sink *to, uint64_t number);
void adm_sink_limit(adm_sink *to, uint32_t limit);
void adm_sink_size(adm_sink *to, uint32_t units); /* in the largest unit that says it exactly */
void adm_sink_duration(adm_sink *to, uint32_t milliseconds);
void adm_sink_time(adm_sink *to, unsigned minutes);

/* Ends what was written, cut where there was no room; returns its whole length. */
size_t adm_sink_end(const adm_sink *to);

#endif
