/*
 * place.h: a folder for tests of files that are believed only where nobody else can write. The checkout need not be in such a
 * place: it may be below /tmp.
 */
#ifndef ADMISSION_TESTS_PLACE_H
#define ADMISSION_TESTS_PLACE_H

#include "../core/settings.h"
#include "../watch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLACE_USER 65534 /* another user, of whom nothing is asked but that he is not root */

/* Whether others come there, where the test is root's: its home is closed to them. */
static bool place_reached(const char *path) {
  if (geteuid() != 0) return true;
  if (seteuid(PLACE_USER) < 0) return false;
  bool reached = faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
  return seteuid(0) == 0 && reached;
}

/* Makes a folder here, among what is root's, or at home, if it can be where others come; false where none of them will do. */
static bool place_make(char *path, size_t size) {
  const char *parents[] = {".", "/var/lib", getenv("HOME")};
  const unsigned count = sizeof parents / sizeof *parents;
  for (unsigned attempt = 0; attempt < 2 * count; attempt++) {
    unsigned i = attempt % count;
    bool anywhere = attempt >= count;
    char parent[4096], probe[4200], text[8], error[ADM_ERROR];
    if (!parents[i] || !realpath(parents[i], parent)) continue;
    if ((size_t)snprintf(path, size, "%s/test_admission.XXXXXX", parent) >= size || !mkdtemp(path)) continue;
    chmod(path, 0755);
    snprintf(probe, sizeof probe, "%.4100s/probe", path);
    FILE *file = fopen(probe, "w");
    if (file) fclose(file);
    bool believed = watch_read(probe, geteuid(), text, sizeof text, error) >= 0;
    unlink(probe);
    if (believed && (anywhere || place_reached(path))) return true;
    rmdir(path);
  }
  return false;
}

#endif
