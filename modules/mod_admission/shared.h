/*
 * shared.h: the memory that all processes of the server share: what this module keeps beside the table, and the table;
 * and, each in a mapping of its own, texts of which the last good one is kept.
 *
 * It is made once in the life of the parent process and outlives configurations, and so may be met by another version of
 * this module than the one that made it: that one must see so, and must not read it. Texts are found by a name that says
 * which version they are of (directives.c). No httpd types here.
 */
#ifndef ADMISSION_SHARED_H
#define ADMISSION_SHARED_H

#include "core/control.h"
#include "core/news.h"

/* When a group last wrote to the error log, so that all processes together write one line per second. */
typedef struct log_stamp {
  _Atomic uint64_t second;
  _Atomic uint64_t suppressed;
} log_stamp;

/* Requests that went through because there was no table to decide by. */
typedef struct let_through {
  _Atomic uint64_t requests;
  _Atomic uint64_t minute; /* in which it was last logged */
} let_through;

/* What stands before the table: what the core has no use for. */
typedef struct shared_head {
  uint64_t digest; /* of its layout: another version of this module has another */
  adm_news_board board;
  adm_control_kept control;
  log_stamp stamp[ADM_GROUPS];
  _Atomic uint64_t healed_ns; /* when a process last looked for the dead */
  let_through let_through;
} shared_head;

/* The head, and the table behind it, if there is one. */
typedef struct shared_memory {
  shared_head *head; /* NULL: nothing is mapped */
  size_t bytes;      /* of all of it */
} shared_memory;

/* Bytes of the head and a table of this shape. */
size_t shared_bytes(adm_shape shape);

/* Maps the head and a table; NULL with errno, and then *memory is as it was. */
adm_table *shared_make(shared_memory *memory, adm_shape shape, uint64_t seed);

/* Maps the head alone; false with errno. */
bool shared_make_head(shared_memory *memory);

/* The head, or NULL where there is none or one of another version. */
shared_head *shared_known(const shared_memory *memory);

/* A view of the table (to be given to adm_table_forget), or NULL where there is none or one of another version. */
adm_table *shared_table(const shared_memory *memory);

/* Whether there is a table, of whatever version. */
bool shared_has_table(const shared_memory *memory);

/* Gives a head that has no table back. */
void shared_drop_head(shared_memory *memory);

/* Gives this process's share in all of it back. */
void shared_drop(shared_memory *memory);

/* ---- the last good version of a text, by whichever process found it good ---- */

#define SHARED_TEXT_BYTES (256u << 10)
#define SHARED_TEXT_PLACES 4

/* Where one version stands, or part of one by a process that was killed over it: then the digest does not fit. */
typedef struct shared_place {
  _Atomic uint64_t turn;   /* of whom wrote it; 0: nobody */
  _Atomic uint64_t digest; /* of the length and the words */
  _Atomic uint64_t length;
  _Atomic uint64_t word[SHARED_TEXT_BYTES / sizeof(uint64_t)];
} shared_place;

/* Several can write at the same time: each takes a turn, and the turns go around the places, so nobody waits for another,
 * who may be dead. Children write here: what is read is bounded, and no more than a text that may have been good. */
typedef struct shared_text {
  _Atomic uint64_t turns;
  shared_place place[SHARED_TEXT_PLACES];
} shared_text;

/* Maps one in which nothing is kept, of which only what is used is taken from the machine; NULL with errno. */
shared_text *shared_text_make(void);

/* Gives this process's share in it back. */
void shared_text_drop(shared_text *kept);

/* Keeps a text, unless it is what is kept already; an empty one is none. Its digest. `kept` may be NULL here and below: then
 * nothing is kept. */
uint64_t shared_text_keep(shared_text *kept, const char *text, size_t length);

/* Copies the last one that is whole into `text` of SHARED_TEXT_BYTES, with its length, or, for NULL, only looks. Its digest;
 * 0: there is none. */
uint64_t shared_text_recall(const shared_text *kept, char *text, size_t *length);

#endif
