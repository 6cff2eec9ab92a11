/*
 * respond.h: what a decision looks like from outside: environment, notes, the error log, and the answer to a client
 * that is turned away.
 */
#ifndef ADMISSION_RESPOND_H
#define ADMISSION_RESPOND_H

#include "request.h"

/* The names of all variables, ending with NULL. */
extern const char *const respond_variables[];

/* Tells programs and logs about a request that goes on. */
void respond_tell(visit *v);

/* After the handler: tells the access log about a request that nobody was told of before, if it asks (audience.h). No hook of
 * its own: that would be called for all requests of the server. */
void respond_tell_log(visit *v);

/* Gives the page that answers a rejected request that request's variables. */
void respond_carry(request_rec *r);

/* Turns a request away; returns the status for the handler hook. */
int respond_reject(visit *v);

/* The output filter that keeps a connection open after a rejection. */
void respond_register(void);

#endif
