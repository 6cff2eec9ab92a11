/*
 * text.c: gathers text and escapes it (text.h). It knows nothing of tables.
 */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"

void adm_text_open(adm_text *text, adm_put put, void *world) {
  text->put = put;
  text->world = world;
  text->used = 0;
}

void adm_text_close(adm_text *text) {
  if (text->used) text->put(text->world, text->buffer, text->used);
  text->used = 0;
}

void adm_text_add(adm_text *text, const char *bytes, size_t length) {
  if (length > sizeof text->buffer - text->used) adm_text_close(text);
  if (length > sizeof text->buffer) {
    text->put(text->world, bytes, length);
    return;
  }
  memcpy(text->buffer + text->used, bytes, length);
  text->used += length;
}

void adm_text_say(adm_text *text, const char *format, ...) {
  char piece[1024];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(piece, sizeof piece, format, arguments);
  va_end(arguments);
  if (length <= 0) return;
  adm_text_add(text, piece, (size_t)length < sizeof piece ? (size_t)length : sizeof piece - 1);
}

/* The length of the UTF-8 letter at `from`, or 0 when there is none: no overlong forms, no surrogates, nothing above
 * U+10FFFF. A terminator within it ends it like any other wrong byte. */
static size_t letter(const unsigned char *from) {
  unsigned char first = from[0];
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (from[1] < low || from[1] > high) return 0;
  for (size_t i = 2; i < length; i++)
    if (from[i] < 0x80 || from[i] > 0xbf) return 0;
  return length;
}

/* What stands for an ASCII character in this format, or NULL when it stands for itself. `coded` is room for one that
 * is written by its number. */
static const char *instead(adm_escape how, unsigned char c, char coded[8]) {
  switch (how) {
  case ADM_TEXT_JSON:
    if (c == '"') return "\\\"";
    if (c == '\\') return "\\\\";
    if (c >= 0x20 && c != 0x7f) return NULL;
    snprintf(coded, 8, "\\u%04x", c);
    return coded;
  case ADM_TEXT_PROMETHEUS:
    if (c == '"') return "\\\"";
    if (c == '\\') return "\\\\";
    if (c == '\n') return "\\n";
    return NULL; /* the format knows these three and takes every other character as it is */
  case ADM_TEXT_HTML:
    if (c == '&') return "&amp;";
    if (c == '<') return "&lt;";
    if (c == '>') return "&gt;";
    if (c == '"') return "&quot;";
    if (c == '\'') return "&#39;";
    return c < 0x20 || c == 0x7f ? "&#xfffd;" : NULL;
  case ADM_TEXT_LINE:
    break;
  }
  return c < 0x20 || c == 0x7f ? REPLACEMENT : NULL;
}

/* The number of a UTF-8 letter of two to four bytes. */
static unsigned number_of(const char *from, size_t length) {
  unsigned number = (unsigned char)from[0] & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; i++) number = number << 6 | ((unsigned char)from[i] & 0x3fu);
  return number;
}

void adm_text_escape(adm_text *text, adm_escape how, const char *from) {
  const char *no_letter = how == ADM_TEXT_HTML ? "&#xfffd;" : REPLACEMENT;
  char coded[8];
  while (*from) {
    size_t length = letter((const unsigned char *)from);
    const char *other = length == 0 ? no_letter : length == 1 ? instead(how, (unsigned char)*from, coded) : NULL;
    if (other)
      adm_text_add(text, other, strlen(other));
    else if (how == ADM_TEXT_HTML && length > 1)
      adm_text_say(text, "&#x%x;", number_of(from, length));
    else
      adm_text_add(text, from, length);
    from += length ? length : 1;
  }
}

void adm_text_decimal(adm_text *text, uint64_t value, unsigned digits) {
  char number[48];
  uint64_t scale = 1;
  for (unsigned i = 0; i < digits; i++) scale *= 10;
  int length = snprintf(number, sizeof number, "%llu", (unsigned long long)(value / scale));
  if (value % scale) {
    length += snprintf(number + length, sizeof number - (size_t)length, ".%0*llu", (int)digits,
                       (unsigned long long)(value % scale));
    while (number[length - 1] == '0') length--;
  }
  adm_text_add(text, number, (size_t)length);
}
