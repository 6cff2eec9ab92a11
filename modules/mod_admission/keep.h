/*
 * keep.h: a connection is kept open after a rejection.
 *
 * httpd closes the connection after every 503. For a server that is full this is the wrong way round: the client comes
 * back with another handshake, and on the pages that it may have the connection is missing.
 */
#ifndef ADMISSION_KEEP_H
#define ADMISSION_KEEP_H

#include <httpd.h>
#include <stdbool.h>

/* Prepares the connection for an answer of this status that does not read the request's body: a short body is read and
 * thrown away, after a long one the connection closes. */
void keep_connection(request_rec *r, int status);

void keep_register(void);

#endif
