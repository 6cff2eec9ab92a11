/*
 * watch.h: a file that may change while the server runs, and whether its text may be believed.
 *
 * For the control file and for policies. It keeps nothing open and knows nothing of what the text means.
 */
#ifndef ADMISSION_WATCH_H
#define ADMISSION_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What tells one version of a file from the next; all zero for a file that is not there. */
typedef struct watch_stamp {
  bool there;
  uint64_t device, inode, size, owner, mode;
  int64_t modified_ns, changed_ns; /* CLOCK_REALTIME: content, and content or permissions */
} watch_stamp;

/* The file as it is now, links followed. */
watch_stamp watch_look(const char *path);

bool watch_same(const watch_stamp *a, const watch_stamp *b);

/* Whether the file was written so short ago that its writer may not have finished. */
bool watch_fresh(const watch_stamp *stamp, int64_t wall_ns);

/* Reads a text of at most `size` - 1 bytes and ends it; its length, or -1 with `error` (ADM_ERROR bytes). Such a text
 * decides over the server: it comes only from a regular file of `owner` or root that nobody else can write, not through a
 * link, in directories of theirs that nobody else can write either. A sticky bit is no excuse: it keeps others from
 * removing a file, not from being there first. */
ssize_t watch_read(const char *path, uid_t owner, char *text, size_t size, char *error);

#endif
