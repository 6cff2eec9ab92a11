/*
 * news.h: what the controller says to all other processes of the server, in shared memory.
 *
 * One process writes (the controller), any number reads (status pages). A reader never waits and never sees half a
 * sentence: it takes its copy again when a writer was at work meanwhile, and after a few attempts goes without, which
 * is what a controller that was killed in the middle of a sentence comes to; the next controller's first words heal it.
 */
#ifndef ADMISSION_NEWS_H
#define ADMISSION_NEWS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define ADM_NEWS_TEXT 256 /* bytes of the error with its end; a multiple of 8 */

typedef struct adm_news {
  uint32_t pid;              /* the controller; 0: none has spoken */
  uint64_t generation;       /* how many contents of the control file were put in force, by all controllers */
  char error[ADM_NEWS_TEXT]; /* why the last content was refused; empty when it is in force */
} adm_news;

/* The place in shared memory, zeroed when it is made; it outlives a controller. */
typedef struct adm_news_board {
  _Atomic uint64_t version; /* odd while it is written */
  _Atomic uint64_t word[sizeof(adm_news) / sizeof(uint64_t)];
} adm_news_board;

void adm_news_write(adm_news_board *board, const adm_news *news);

/* False, and *news says that nobody has spoken, when there is no board or no whole copy was to be had. */
bool adm_news_read(const adm_news_board *board, adm_news *news);

#endif
