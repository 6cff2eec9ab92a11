/*
 * news.c: the controller's words in shared memory: written by one, copied by any (news.h).
 *
 * Every access is an atomic one in the one order that all processes agree on, so that a copy between two equal, even
 * versions is a whole one; a fence would be cheaper, and once a second nobody can tell.
 */
#include "news.h"

#include "step.h"

#include <string.h>

#define WORDS (sizeof(adm_news) / sizeof(uint64_t))
#define ATTEMPTS 100

_Static_assert(sizeof(adm_news) % sizeof(uint64_t) == 0, "the news are copied word by word");

void adm_news_write(adm_news_board *board, const adm_news *news) {
  uint64_t word[WORDS];
  memcpy(word, news, sizeof word);
  /* Odd already when the last writer was killed at it. */
  uint64_t writing = atomic_load(&board->version) | 1;
  atomic_store(&board->version, writing);
  for (size_t i = 0; i < WORDS; i++) {
    STEP("news: word");
    atomic_store(&board->word[i], word[i]);
  }
  STEP("news: written");
  atomic_store(&board->version, writing + 1);
}

bool adm_news_read(const adm_news_board *board, adm_news *news) {
  uint64_t word[WORDS];
  for (int attempt = 0; board && attempt < ATTEMPTS; attempt++) {
    uint64_t before = atomic_load(&board->version);
    if (before % 2) continue;
    for (size_t i = 0; i < WORDS; i++) word[i] = atomic_load(&board->word[i]);
    if (atomic_load(&board->version) != before) continue;
    memcpy(news, word, sizeof *news);
    news->error[ADM_NEWS_TEXT - 1] = '\0';
    return true;
  }
  memset(news, 0, sizeof *news);
  return false;
}
