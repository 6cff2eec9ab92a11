/*
 * text.h: text on its way to a `put`: gathered in pieces, escaped for where it goes.
 *
 * Labels come from outside: file names are bytes, hosts and expressions are what a client sent, and a long label was
 * cut at its front, perhaps within a letter. Whatever is in them, what comes out is valid UTF-8 that stays inside its
 * quotes: bytes that are no UTF-8 become U+FFFD, one for each byte. HTML comes out as ASCII alone, because mod_status'
 * page, in which it may stand, says that it is ISO-8859-1.
 */
#ifndef ADMISSION_TEXT_H
#define ADMISSION_TEXT_H

#include "render.h"

typedef struct adm_text {
  adm_put put;
  void *world;
  size_t used;
  char buffer[2048];
} adm_text;

typedef enum {
  ADM_TEXT_JSON,       /* inside the quotes of a string */
  ADM_TEXT_PROMETHEUS, /* inside the quotes of a label's value */
  ADM_TEXT_HTML,       /* between tags or inside the quotes of an attribute */
  ADM_TEXT_LINE        /* a line for people and simple programs: no control characters */
} adm_escape;

void adm_text_open(adm_text *text, adm_put put, void *world);
void adm_text_close(adm_text *text); /* what is left goes to `put` */

/* printf for integers and for short texts of the module's own; nothing that comes from outside, no %f (the locale). */
__attribute__((format(printf, 2, 3))) void adm_text_say(adm_text *text, const char *format, ...);

void adm_text_add(adm_text *text, const char *bytes, size_t length);
void adm_text_escape(adm_text *text, adm_escape how, const char *from);

/* `value` / 10^`digits` as a decimal number, without zeros at its end: (1500000, 6) is 1.5. */
void adm_text_decimal(adm_text *text, uint64_t value, unsigned digits);

#endif
