/*
 * test_hold.c: hold files with real locks: who runs is known by every file that was ever in use, not by the newest alone.
 */
#include "../hold.h"

#include "../core/table.h"
#include "check.h"
#include "world.h"

#include <fcntl.h>
#include <unistd.h>

static char place[] = "/tmp/test_hold.XXXXXX";

static int hold_file(unsigned number, char *path, size_t size) {
  snprintf(path, size, "%s/%u", place, number);
  return hold_make(path, (unsigned)-1, (unsigned)-1);
}

int main(void) {
  if (!mkdtemp(place)) return nothing_tried("test_hold", "no folder below /tmp");
  adm_table *table = table_of(SMALL);
  adm_owner owner = adm_owner_join(table, (adm_process){10, 1});
  adm_layer layer = layer_of(table, group_with(table, "g", 2, 0, ADM_FIFO), "/a");
  adm_request request = {.layer = &layer, .layers = 1, .hold_file = true};
  adm_answer answer;
  adm_admit(table, owner, &request, &answer);
  uint64_t byte = adm_hold_byte(table, &answer.permit[0]);

  char path[HOLD_FILES + 1][64];
  hold_files files = {0};
  hold_add(&files, hold_file(0, path[0], sizeof path[0]));
  int program = hold_lock(path[0], table, &answer);
  CHECK(program >= 0);
  CHECK(hold_lingers(&files, byte));
  CHECK(!hold_lingers(&files, byte + 1));
  /* What it can do with it keeps nobody else from a lock, and writes nothing. */
  int other = hold_lock(path[0], table, &answer);
  CHECK(other >= 0);
  CHECK(write(program, "x", 1) < 0);
  close(other);

  /* The next configuration has another file, and asks about the old one still. */
  hold_add(&files, hold_file(1, path[1], sizeof path[1]));
  CHECK_EQUAL(files.count, 2);
  CHECK(hold_lingers(&files, byte));
  /* The same file again, by another descriptor, is one of them. */
  int again = hold_file(0, path[0], sizeof path[0]);
  hold_add(&files, again);
  CHECK_EQUAL(files.count, 2);
  CHECK_EQUAL(files.file[0], again);
  CHECK(hold_lingers(&files, byte));
  for (unsigned i = 1; i <= HOLD_FILES; i++) {
    CHECK(hold_lingers(&files, byte)); /* of too many the oldest goes */
    hold_add(&files, hold_file(i + 1, path[i], sizeof path[i]));
  }
  CHECK_EQUAL(files.count, HOLD_FILES);
  CHECK(!hold_lingers(&files, byte));
  hold_add(&files, hold_file(0, path[0], sizeof path[0]));
  CHECK(hold_lingers(&files, byte));
  close(program); /* the last that had it */
  CHECK(!hold_lingers(&files, byte));

  for (unsigned i = 0; i < files.count; i++) close(files.file[i]);
  adm_release(table, &answer, NULL, NULL);
  table_end(table);
  char remove[80];
  snprintf(remove, sizeof remove, "rm -rf '%s'", place);
  CHECK_EQUAL(system(remove), 0);
  return checked("test_hold");
}
