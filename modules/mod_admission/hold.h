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

/* An adm_lingers: `world` points to the descriptor to ask through. */
bool hold_lingers(void *world, uint64_t byte);

#endif
