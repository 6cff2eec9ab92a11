/*
 * places.h: what directives.c and places.c share and nobody else needs.
 */
#ifndef ADMISSION_PLACES_H
#define ADMISSION_PLACES_H

#include "directives.h"

/* The configuration while it is read: setters write into it. */
configuration *configuring(void);

#endif
