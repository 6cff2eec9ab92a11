/*
 * process.h: processes as the table knows them, by number and start time, from /proc.
 */
#ifndef ADMISSION_PROCESS_H
#define ADMISSION_PROCESS_H

#include "core/admission.h"

adm_process process_of(uint32_t pid);

/* An adm_dead: gone, a zombie with no thread left, or another process of the same number. A stopped process is not dead. */
bool process_dead(void *unused, adm_process process);

#endif
