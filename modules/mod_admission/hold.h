/*
 * hold.h: permits that are tied to a program (AdmissionHoldFd).
 *
 * Each permit has one byte of the hold file. A request locks its bytes through a descriptor that programs started for
 * it inherit; the kernel drops such a lock (of an open file description) when the last of them has closed it. So a
 * program that outlives its request, or the killed child that started it, is known without asking anybody.
 */
#ifndef ADMISSION_HOLD_H
#define ADMISSION_HOLD_H

#include "core/admission.h"

/* Makes the file if there is none, and returns a descriptor to ask through; -1 with errno. `uid` and `gid` become its
 * owner when this process may say so; -1: they stay. */
int hold_make(const char *path, unsigned uid, unsigned gid);

/* Locks the bytes of an answer's permits; the descriptor, to be closed after the handler, or -1 with errno. */
int hold_lock(const char *path, const adm_table *table, const adm_answer *answer);

#define HOLD_FILES 4

/* Descriptors of hold files to ask about locks through, never to lock: the newest first, and those of earlier configurations, whose
 * programs may still run. As each table has bytes of its own, all can be asked about any. */
typedef struct hold_files {
  int file[HOLD_FILES];
  unsigned count;
} hold_files;

/* Puts a descriptor first, which is theirs from now on; of one file there is one, and the oldest of too many is closed. */
void hold_add(hold_files *files, int file);

/* An adm_lingers: `world` points to the hold_files. */
bool hold_lingers(void *world, uint64_t byte);

#endif
