/*
 * test_watch.c: which control files and policies are believed: every permission and owner that must not be, and that reading them is
 * refused with a reason. Some of it can only be tried as root.
 */
#include "../watch.h"

#include "../core/settings.h"
#include "check.h"
#include "place.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char place[4096], outer[4200], inner[4300], file[4400];

static void write_file(const char *path, const char *text, mode_t mode) {
  FILE *out = fopen(path, "w");
  if (!out) return;
  fputs(text, out);
  fclose(out);
  chmod(path, mode);
}

/* What comes of reading it: the text, or the reason with the long name of the test's own directory cut out. */
static const char *trusted(const char *path, uid_t owner, size_t size) {
  static char text[256], error[ADM_ERROR];
  if (watch_read(path, owner, text, size, error) >= 0) return text;
  char *name = strstr(error, place);
  if (name) memmove(name, name + strlen(place), strlen(name + strlen(place)) + 1);
  return error;
}

static void permissions(uid_t owner) {
  CHECK_TEXT(trusted(file, owner, 256), "heavy limit=4\n");
  CHECK_TEXT(trusted(file, owner, 14), "is longer than 13 bytes");
  CHECK_TEXT(trusted(file, owner, 15), "heavy limit=4\n");
  chmod(file, 0664);
  CHECK_TEXT(trusted(file, owner, 256), "can be written by others: chmod go-w");
  chmod(file, 0646);
  CHECK_TEXT(trusted(file, owner, 256), "can be written by others: chmod go-w");
  chmod(file, 0600);
  CHECK_TEXT(trusted(file, owner, 256), "heavy limit=4\n");
  chmod(inner, 0775);
  CHECK_TEXT(trusted(file, owner, 256), "its directory /outer/inner can be written by others");
  chmod(inner, 0755);
  chmod(outer, 01777);
  CHECK_TEXT(trusted(file, owner, 256), "its directory /outer can be written by others");
  chmod(outer, 0755);
  CHECK_TEXT(trusted(file, owner, 256), "heavy limit=4\n");
}

static void kinds(uid_t owner) {
  char other[4500];
  snprintf(other, sizeof other, "%s/link", inner);
  if (symlink("control", other) < 0) return;
  CHECK_TEXT(trusted(other, owner, 256), "is a symbolic link");
  unlink(other);
  mkdir(other, 0755);
  CHECK_TEXT(trusted(other, owner, 256), "is not a regular file");
  rmdir(other);
  mkfifo(other, 0644);
  CHECK_TEXT(trusted(other, owner, 256), "is not a regular file"); /* and does not wait for a writer */
  unlink(other);
  CHECK_TEXT(trusted(other, owner, 256), "cannot be opened: No such file or directory");
  CHECK_TEXT(trusted("control", owner, 256), "is not an absolute path");
  /* A link in the way is followed to where it leads, and that is judged. */
  snprintf(other, sizeof other, "%s/way", place);
  if (symlink("outer", other) < 0) return;
  strcat(other, "/inner/control");
  CHECK_TEXT(trusted(other, owner, 256), "heavy limit=4\n");
  chmod(outer, 0777);
  CHECK_TEXT(trusted(other, owner, 256), "its directory /outer can be written by others");
  chmod(outer, 0755);
}

static void owners(void) {
  if (geteuid() != 0) return;
  bool given = chown(file, 12345, 0) == 0;
  if (given) CHECK_TEXT(trusted(file, 0, 256), "belongs to user 12345, not to 0 who started the server");
  if (given) CHECK_TEXT(trusted(file, 12345, 256), "heavy limit=4\n"); /* all directories are root's */
  given = chown(file, 0, 0) == 0 && chown(inner, 12345, 0) == 0;
  if (given) CHECK_TEXT(trusted(file, 0, 256), "its directory /outer/inner belongs to user 12345");
  if (chown(inner, 0, 0) == 0) CHECK_TEXT(trusted(file, 0, 256), "heavy limit=4\n");
  CHECK_TEXT(trusted(file, 12345, 256), "heavy limit=4\n"); /* who starts a server may use what is root's */
}

/* What is closed to the server's user, who is another than the owner where the test is root's. */
static void closed(uid_t owner) {
  static const char entered[] = "its directory, or one above it, cannot be entered by the server's user: chmod a+x";
  const struct {
    const char *path, *why;
    mode_t mode;
  } part[] = {{file, "cannot be read by the server's user: chmod 644", 0644}, {inner, entered, 0755}, {outer, entered, 0755}};
  const uid_t user = owner == 0 ? PLACE_USER : owner;
  if (!place_reached(place)) {
    puts("test_watch: skipped: no other user comes to the test's own folder");
    return;
  }
  chmod(file, 0644);
  for (unsigned i = 0; i < sizeof part / sizeof *part; i++) {
    CHECK_EQUAL(chmod(part[i].path, 0), 0);
    CHECK_EQUAL(seteuid(user), 0);
    CHECK_TEXT(trusted(file, owner, 256), part[i].why);
    CHECK_EQUAL(seteuid(owner), 0);
    CHECK_EQUAL(chmod(part[i].path, part[i].mode), 0);
    CHECK_EQUAL(seteuid(user), 0);
    CHECK_TEXT(trusted(file, owner, 256), "heavy limit=4\n");
    CHECK_EQUAL(seteuid(owner), 0);
  }
}

static void stamps(void) {
  watch_stamp before = watch_look(file), none = watch_look("/nowhere/at/all"), zero = {0};
  CHECK(before.there && !none.there && watch_same(&none, &zero));
  watch_stamp again = watch_look(file);
  CHECK(watch_same(&before, &again));
  chmod(file, 0640);
  again = watch_look(file);
  CHECK(!watch_same(&before, &again));
  write_file(file, "light\n", 0644);
  again = watch_look(file);
  CHECK(!watch_same(&before, &again) && again.size == 6);
  CHECK(watch_fresh(&again, again.modified_ns) && watch_fresh(&again, again.modified_ns + 99000000));
  CHECK(!watch_fresh(&again, again.modified_ns + 100000000));
  CHECK(!watch_fresh(&again, again.modified_ns - 1)); /* a clock that was set back must not hide a file */
}

int main(void) {
  if (!place_make(place, sizeof place)) {
    return nothing_tried("test_watch", "no place that others cannot write to");
  }
  snprintf(outer, sizeof outer, "%s/outer", place);
  snprintf(inner, sizeof inner, "%s/inner", outer);
  snprintf(file, sizeof file, "%s/control", inner);
  mkdir(outer, 0755);
  mkdir(inner, 0755);
  chmod(outer, 0755), chmod(inner, 0755);
  write_file(file, "heavy limit=4\n", 0644);
  permissions(geteuid());
  kinds(geteuid());
  owners();
  closed(geteuid());
  stamps();
  char remove[4500];
  snprintf(remove, sizeof remove, "rm -rf '%s'", place);
  CHECK_EQUAL(system(remove), 0);
  return checked("test_watch");
}
