/*
 * test_shared.c: shared memory is known again by the module that made it, and by no other; where there is none, nothing is
 * taken for some.
 */
#include "../shared.h"

#include "../core/table.h"
#include "check.h"

#include <sys/resource.h>

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

int main(void) {
  other_versions();
  taken_over();
  head_alone();
  refused();
  return checked("test_shared");
}
