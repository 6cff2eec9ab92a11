/*
 * ends.h: processes that are watched for their end, all with one system call.
 *
 * To ask of each process whether it is a zombie, or another of the same number, costs reading a file of /proc, which was half of what the
 * controller did. A descriptor of a process (pidfd_open, Linux 5.3) says it by itself, also where /proc does not (hidepid). Where there are
 * none, nothing is watched.
 */
#ifndef ADMISSION_ENDS_H
#define ADMISSION_ENDS_H

#include "core/admission.h"

typedef struct ends ends;

/* Room for at most `most` processes at a time, with descriptors below `highest`; NULL without memory. */
ends *ends_new(unsigned most, int highest);
void ends_free(ends *e);

/* Looks who has ended. Who was not asked about since the last look is watched no more. */
void ends_look(ends *e);

typedef enum ends_state {
  ENDS_GOES_ON, /* by the last look; or who has its number now does */
  ENDS_ENDED,
  ENDS_WATCHED, /* from now on: whether it goes on is still to be asked */
  ENDS_UNKNOWN, /* cannot be watched, or is not the one that is meant */
} ends_state;

/* Asks about a process, which is watched if it can be. */
ends_state ends_ask(ends *e, adm_process process);

#endif
