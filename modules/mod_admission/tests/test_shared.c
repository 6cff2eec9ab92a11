/*
 * test_shared.c: shared memory is known again by the module that made it, and by no other; where there is none, nothing is
 * taken for some. Of texts the last whole one is kept, whoever dies over one.
 */
#include "../shared.h"

#include "../core/table.h"
#include "check.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const adm_shape shape = {64, 32, 16};

/* Whether a view can be had of it now. */
static bool is_known(const shared_memory *memory) {
  adm_table *table = shared_table(memory);
  adm_table_forget(table);
  return table != NULL;
}

/* A word that another version has otherwise: any bit of it. */
static void differs(shared_memory *memory, void *word, size_t bytes, const char *what) {
  for (size_t bit = 0; bit < bytes * 8; bit++) {
    unsigned char *byte = (unsigned char *)word + bit / 8;
    *byte ^= (unsigned char)(1u << bit % 8);
    check_said(!is_known(memory), __FILE__, __LINE__, "%s: known with bit %d changed", what, (int)bit);
    *byte ^= (unsigned char)(1u << bit % 8);
  }
  check_said(is_known(memory), __FILE__, __LINE__, "%s: not known as it was", what);
}

static void other_versions(void) {
  shared_memory memory = {NULL, 0};
  CHECK(!is_known(&memory) && !shared_known(&memory) && !shared_has_table(&memory));
  adm_table *table = shared_make(&memory, shape, 7);
  CHECK(table != NULL && is_known(&memory) && shared_has_table(&memory));
  CHECK_EQUAL(memory.bytes, shared_bytes(shape));
  CHECK_EQUAL((char *)table->shared - (char *)memory.head >= (ptrdiff_t)sizeof(shared_head), true);
  differs(&memory, &memory.head->digest, sizeof memory.head->digest, "the head's digest");
  differs(&memory, &table->shared->magic, sizeof table->shared->magic, "the table's mark");
  differs(&memory, &table->shared->version, sizeof table->shared->version, "the table's version");
  differs(&memory, &table->shared->layout, sizeof table->shared->layout, "the table's layout");
  differs(&memory, &table->shared->bytes, sizeof table->shared->bytes, "the table's size");
  memory.head->digest++;
  CHECK(!shared_known(&memory)); /* what is in it is not to be read either */
  memory.head->digest--;
  for (int off = -64; off <= 64; off += 64) {
    shared_memory other = {memory.head, memory.bytes + (size_t)off};
    CHECK_EQUAL(is_known(&other), off == 0);
  }
  adm_table_forget(table);
}

/* A view of what is there sees what another view wrote. */
static void taken_over(void) {
  shared_memory memory = {NULL, 0};
  adm_table *first = shared_make(&memory, shape, 7);
  int group = adm_group_add(first, "php");
  adm_group_at(first, group)->limit = 5;
  adm_table *second = shared_table(&memory);
  CHECK_EQUAL(adm_group_find(second, "php"), group);
  CHECK_EQUAL(adm_group_at(second, group)->limit, 5);
  adm_table_forget(first);
  adm_table_forget(second);
}

static void head_alone(void) {
  shared_memory memory = {NULL, 0};
  CHECK(shared_make_head(&memory) && shared_known(&memory) == memory.head);
  CHECK(!shared_has_table(&memory) && !is_known(&memory));
  memory.head->let_through.requests = 3;
  memory.head->digest++;
  CHECK(!shared_known(&memory));
  shared_drop_head(&memory);
  CHECK(!memory.head && !shared_known(&memory));
  adm_table *table = shared_make(&memory, shape, 7);
  shared_drop_head(&memory); /* never one with a table: others count in it */
  CHECK(is_known(&memory));
  adm_table_forget(table);
}

/* What cannot be had leaves what there was. */
static void refused(void) {
  shared_memory memory = {NULL, 0};
  adm_table *table = shared_make(&memory, shape, 7);
  shared_memory before = memory;
  CHECK(!shared_make(&memory, (adm_shape){3, 32, 16}, 7)); /* no table has such a shape */
  CHECK(memory.head == before.head && memory.bytes == before.bytes);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they need all the addresses there are */
  struct rlimit room, none = {.rlim_cur = 0};
  getrlimit(RLIMIT_AS, &room);
  none.rlim_max = room.rlim_max;
  setrlimit(RLIMIT_AS, &none);
  bool made = shared_make(&memory, shape, 7) || shared_make_head(&memory);
  setrlimit(RLIMIT_AS, &room);
  CHECK(!made);
  CHECK(memory.head == before.head && memory.bytes == before.bytes && is_known(&memory));
#endif
  adm_table_forget(table);
}

/* ---- texts ---- */

static char text[SHARED_TEXT_BYTES + 1];

/* A text of one letter that is as long as that says. */
static size_t version(char *out, unsigned n) {
  size_t length = 1 + n % 26 * 997;
  memset(out, 'a' + n % 26, length);
  return length;
}

/* Whether what is kept now is such a text, and which. */
static int kept_version(const shared_text *kept) {
  static char copy[SHARED_TEXT_BYTES], expected[SHARED_TEXT_BYTES];
  size_t length = 0;
  if (!shared_text_recall(kept, copy, &length)) return -1;
  unsigned n = (unsigned)(copy[0] - 'a');
  return n < 26 && length == version(expected, n) && memcmp(copy, expected, length) == 0 ? (int)n : -2;
}

static void keep_version(shared_text *kept, unsigned n) { shared_text_keep(kept, text, version(text, n)); }

static void texts(void) {
  static char copy[SHARED_TEXT_BYTES];
  const size_t lengths[] = {1, 7, 8, 9, 4096, SHARED_TEXT_BYTES - 1, SHARED_TEXT_BYTES};
  shared_text *kept = shared_text_make();
  size_t length = 0;
  CHECK_EQUAL(shared_text_recall(kept, copy, &length), 0);
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
    memset(text, 'a' + (int)i, lengths[i]);
    text[lengths[i] - 1] = '.';
    uint64_t digest = shared_text_keep(kept, text, lengths[i]);
    CHECK(digest != 0 && shared_text_recall(kept, NULL, NULL) == digest);
    CHECK(shared_text_recall(kept, copy, &length) == digest && length == lengths[i] && memcmp(copy, text, length) == 0);
  }
  uint64_t turns = kept->turns, last = shared_text_recall(kept, NULL, NULL);
  shared_text_keep(kept, text, SHARED_TEXT_BYTES); /* as all children do with the same file */
  CHECK_EQUAL(kept->turns, turns);
  shared_text_keep(kept, text, SHARED_TEXT_BYTES + 1);
  shared_text_keep(kept, text, 0);
  CHECK_EQUAL(shared_text_recall(kept, copy, &length), last);
  shared_text_drop(kept);
  CHECK_EQUAL(shared_text_recall(NULL, copy, &length), 0);
  CHECK_EQUAL(shared_text_keep(NULL, text, SHARED_TEXT_BYTES), last);
  /* Changes of the highest bits alone, as half of one text and half of another may be. */
  char first[16] = "1234567\x01""1234567\x01", second[16] = "1234567\x81""1234567\x81";
  CHECK(shared_text_keep(NULL, first, 16) != shared_text_keep(NULL, second, 16));
}

/* Whatever stands there, what is read is bounded, and the last whole one. */
static void spoilt_texts(void) {
  shared_text *kept = shared_text_make();
  keep_version(kept, 3);
  for (unsigned dead = 1; dead < SHARED_TEXT_PLACES; dead++) { /* one process after the other is killed over it, or means harm */
    uint64_t turn = ++kept->turns;
    shared_place *at = &kept->place[turn % SHARED_TEXT_PLACES];
    at->word[0] = 7;
    at->length = dead == 2 ? UINT64_MAX : 8;
    at->digest = 7;
    if (dead > 1) at->turn = turn;
    CHECK_EQUAL(kept_version(kept), 3);
  }
  keep_version(kept, 4); /* the one behind them has a place at once */
  CHECK_EQUAL(kept_version(kept), 4);
  kept->turns = UINT64_MAX - 1;
  keep_version(kept, 5);
  keep_version(kept, 6);
  keep_version(kept, 7);
  CHECK(kept_version(kept) >= 4);
  memset((void *)kept, 0xff, sizeof *kept);
  CHECK_EQUAL(kept_version(kept), -1);
  shared_text_drop(kept);
}

#define WRITERS (SHARED_TEXT_PLACES + 2) /* more than there are places, so that one writes where another one does, or where is read */

/* They write as fast as they can, and are killed over it: what is read is always a whole text, and who writes then is not held up. */
static void writers_die(void) {
  shared_text *kept = shared_text_make();
  keep_version(kept, 0);
  unsigned torn = 0, late = 0;
  for (unsigned round = 0; round < 40; round++) {
    pid_t pids[WRITERS];
    for (unsigned i = 0; i < WRITERS; i++) {
      pids[i] = fork();
      for (unsigned n = round + i; pids[i] == 0; n++) keep_version(kept, n);
    }
    for (unsigned i = 0; i < WRITERS; i++) {
      nanosleep(&(struct timespec){.tv_nsec = 1000000 + round * 997}, NULL);
      torn += kept_version(kept) == -2;
      kill(pids[i], SIGKILL);
    }
    for (unsigned i = 0; i < WRITERS; i++) waitpid(pids[i], NULL, 0);
    keep_version(kept, round);
    late += kept_version(kept) != (int)(round % 26);
  }
  CHECK_EQUAL(torn, 0);
  CHECK_EQUAL(late, 0);
  shared_text_drop(kept);
}

int main(void) {
  other_versions();
  taken_over();
  head_alone();
  refused();
  texts();
  spoilt_texts();
  writers_die();
  return checked("test_shared");
}
