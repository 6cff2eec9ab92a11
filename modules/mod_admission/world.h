/*
 * world.h: what the controller reads of the machine: pressure on memory, and what processes take of it.
 *
 * It only opens files below `root` ("/" but in tests; it ends with a slash) and hands their texts to core/pressure.c; what is not there is
 * unknown, never an error.
 */
#ifndef ADMISSION_WORLD_H
#define ADMISSION_WORLD_H

#include "core/pressure.h"

/* The counters of this moment: stalls of the machine, and of the own cgroup (v2); memory of the machine or, where that leaves less, of the
 * own cgroup or one above it (v2 or v1). */
adm_reading world_reading(const char *root, uint64_t now_ns);

/* Bytes that a process has for itself: anonymous memory, and what of it is in swap; 0 when it is gone. */
uint64_t world_own_bytes(const char *root, uint32_t pid);

/* Bytes of all that is below a process, shared memory of their own included. A copy of the process that has not become
 * a program yet has its name, and does not count: its memory is the process's. */
uint64_t world_program_bytes(const char *root, uint32_t pid);

#endif
