/*
 * watch.c: looks at files, reads them, and judges by owner and mode whether they may be believed (watch.h).
 */
#include "watch.h"

#include "core/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FRESH_NS INT64_C(100000000)
#define OTHERS_WRITE (S_IWGRP | S_IWOTH)

static int64_t nanoseconds(struct timespec time) { return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec; }

watch_stamp watch_look(const char *path) {
  struct stat s;
  /* What cannot be looked at is there for all we know: reading it will say what the matter is. */
  if (stat(path, &s) < 0) return (watch_stamp){.there = errno != ENOENT && errno != ENOTDIR};
  return (watch_stamp){true, s.st_dev, s.st_ino, (uint64_t)s.st_size, s.st_uid, s.st_mode, nanoseconds(s.st_mtim),
                       nanoseconds(s.st_ctim)};
}

bool watch_same(const watch_stamp *a, const watch_stamp *b) {
  return a->there == b->there && a->device == b->device && a->inode == b->inode && a->size == b->size &&
         a->owner == b->owner && a->mode == b->mode && a->modified_ns == b->modified_ns && a->changed_ns == b->changed_ns;
}

bool watch_fresh(const watch_stamp *stamp, int64_t wall_ns) {
  return stamp->there && wall_ns >= stamp->modified_ns && wall_ns - stamp->modified_ns < FRESH_NS;
}

/* Says why not; returns what a reader that has nothing returns. */
static ssize_t refuse(char *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
static ssize_t refuse(char *error, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error, ADM_ERROR, format, arguments);
  va_end(arguments);
  return -1;
}

/* Reads to the end of the file and ends the text. */
static ssize_t read_all(int file, char *text, size_t size, char *error) {
  size_t length = 0;
  for (;;) {
    ssize_t more = read(file, text + length, size - length);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) return refuse(error, "cannot be read: %s", strerror(errno));
    if (more == 0) break;
    length += (size_t)more;
    if (length == size) return refuse(error, "is longer than %zu bytes", size - 1);
  }
  text[length] = '\0';
  return (ssize_t)length;
}

static ssize_t refuse_closed(char *error) {
  return refuse(error, "its directory, or one above it, cannot be entered by the server's user: chmod a+x");
}

static bool owned(const struct stat *s, uid_t owner) { return s->st_uid == owner || s->st_uid == 0; }

static bool directory_trusted(const char *path, uid_t owner, char *error) {
  struct stat s;
  if (lstat(path, &s) < 0) refuse(error, "its directory %.180s: %s", path, strerror(errno));
  else if (!owned(&s, owner)) refuse(error, "its directory %.160s belongs to user %u", path, s.st_uid);
  else if (s.st_mode & OTHERS_WRITE) refuse(error, "its directory %.160s can be written by others", path);
  else return true;
  return false;
}

/* All directories from this one, which has no links in it, up to `/`. */
static bool directories_trusted(char *real, uid_t owner, char *error) {
  while (strcmp(real, "/") != 0) {
    if (!directory_trusted(real, owner, error)) return false;
    char *last = strrchr(real, '/');
    last[last == real] = '\0'; /* the first slash stays: it is the root */
  }
  return directory_trusted("/", owner, error);
}

/* The file's path without links in its directories, and the directories judged. As it is written it may lead by way of a link that others
 * can turn, to another file than the one whose directories were looked at. */
static bool path_trusted(const char *path, uid_t owner, char real[PATH_MAX], char *error) {
  char directory[PATH_MAX];
  const char *slash = strrchr(path, '/');
  size_t length = slash ? (size_t)(slash - path) : 0;
  if (path[0] != '/' || length >= sizeof directory) return refuse(error, "is not an absolute path"), false;
  memcpy(directory, path, length);
  directory[length] = '\0';
  if (!realpath(length ? directory : "/", real)) {
    if (errno == EACCES) refuse_closed(error);
    else refuse(error, "its directory: %s", strerror(errno));
    return false;
  }
  strcpy(directory, real);
  size_t end = strlen(real), name = strlen(slash);
  if (end + name >= PATH_MAX) return refuse(error, "its path is too long"), false;
  memcpy(real + end, slash, name + 1);
  return directories_trusted(directory, owner, error);
}

ssize_t watch_read(const char *path, uid_t owner, char *text, size_t size, char *error) {
  char real[PATH_MAX];
  if (!path_trusted(path, owner, real, error)) return -1;
  int file = open(real, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (file < 0 && errno == ELOOP) return refuse(error, "is a symbolic link");
  struct stat s;
  /* Closed is the file, if it can be looked at, or else its directory. */
  if (file < 0 && errno == EACCES)
    return lstat(real, &s) == 0 ? refuse(error, "cannot be read by the server's user: chmod 644") : refuse_closed(error);
  if (file < 0) return refuse(error, "cannot be opened: %s", strerror(errno));
  ssize_t length = -1;
  if (fstat(file, &s) < 0) refuse(error, "cannot be looked at: %s", strerror(errno));
  else if (!S_ISREG(s.st_mode)) refuse(error, "is not a regular file");
  else if (!owned(&s, owner)) refuse(error, "belongs to user %u, not to %u who started the server", s.st_uid, owner);
  else if (s.st_mode & OTHERS_WRITE) refuse(error, "can be written by others: chmod go-w");
  else length = read_all(file, text, size, error);
  close(file);
  return length;
}
