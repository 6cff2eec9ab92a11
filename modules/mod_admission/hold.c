/*
 * hold.c: locks of open file descriptions on bytes of the hold file. It does not decide who may run.
 */
#include "hold.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct flock one_byte(short type, uint64_t byte) {
  return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)byte, .l_len = 1};
}

int hold_make(const char *path, unsigned uid, unsigned gid) {
  /* The directory belongs to the server's user, this process perhaps to root: nothing that the user may have put in
   * the file's place, a link least of all, is followed or given away. */
  int file = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
  if (file < 0) return -1;
  struct stat about;
  if (fstat(file, &about) < 0 || !S_ISREG(about.st_mode) || about.st_nlink != 1) {
    close(file);
    errno = EPERM;
    return -1;
  }
  if (uid != (unsigned)-1 && about.st_uid != uid && fchown(file, uid, gid) < 0) {
    int why = errno;
    close(file);
    errno = why;
    return -1;
  }
  return file;
}

int hold_lock(const char *path, const adm_table *table, const adm_answer *answer) {
  /* No O_CLOEXEC: to be inherited is what it is for. A program can do no more with it than hold locks that keep nobody else from his. */
  int file = open(path, O_RDONLY | O_NOFOLLOW);
  if (file < 0) return -1;
  for (unsigned i = 0; i < answer->permits; i++) {
    struct flock lock = one_byte(F_RDLCK, adm_hold_byte(table, &answer->permit[i]));
    if (fcntl(file, F_OFD_SETLK, &lock) < 0) {
      int why = errno;
      close(file);
      errno = why;
      return -1;
    }
  }
  return file;
}

static bool same_file(int a, int b) {
  struct stat of_a, of_b;
  return fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 && of_a.st_ino == of_b.st_ino && of_a.st_dev == of_b.st_dev;
}

void hold_add(hold_files *files, int file) {
  unsigned at = 0;
  while (at < files->count && !same_file(files->file[at], file)) at++;
  if (at == HOLD_FILES) at--;
  if (at < files->count) close(files->file[at]);
  else files->count++;
  memmove(files->file + 1, files->file, at * sizeof *files->file);
  files->file[0] = file;
}

bool hold_lingers(void *world, uint64_t byte) {
  const hold_files *files = world;
  for (unsigned i = 0; i < files->count; i++) {
    struct flock lock = one_byte(F_WRLCK, byte);
    if (fcntl(files->file[i], F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK) return true;
  }
  return false;
}
