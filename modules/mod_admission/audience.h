/*
 * audience.h: whether anybody could notice what requests that simply went on are told.
 */
#ifndef ADMISSION_AUDIENCE_H
#define ADMISSION_AUDIENCE_H

#include <stdbool.h>

/* Whether a variable of respond_variables can be asked for when a request is logged, in the configuration as it is now. */
bool audience_listens(void);

#endif
