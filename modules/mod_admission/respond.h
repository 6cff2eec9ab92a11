/*
 * respond.h: what a decision looks like from outside: environment, notes, the error log, and the answer to a client
 * that is turned away.
 */
#ifndef ADMISSION_RESPOND_H
#define ADMISSION_RESPOND_H

#include "request.h"

/* Tells programs about a request that goes on, if there is anything to tell: that it simply goes on is the rule, and would
 * be five variables more in the environment of every program. */
void respond_tell(visit *v);

/* Tells the access log the rest, when the handler has returned. */
void respond_tell_log(visit *v);

/* Turns a request away; returns the status for the handler hook. */
int respond_reject(visit *v);

/* The output filter that keeps a connection open after a rejection. */
void respond_register(void);

#endif
