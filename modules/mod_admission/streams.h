/*
 * streams.h: how many streams of HTTP/2 wait in this process at the same time.
 *
 * mod_http2 has workers of its own, in each process a number of them, and serves few streams of one connection at once.
 * A bound over the whole server (AdmissionQueueWorkers) keeps neither from being taken by those that wait, and then files
 * on HTTP/2 wait behind them. Requests of HTTP/1 are none of its business.
 */
#ifndef ADMISSION_STREAMS_H
#define ADMISSION_STREAMS_H

#include <httpd.h>
#include <stdbool.h>
#include <stdint.h>

/* How many streams mod_http2 works on at once in one process, at most; 0 where it is not there, does not tell, or cannot work (under an
 * MPM without threads). */
uint32_t streams_at_most(server_rec *main_server);

/* child_init: how many workers there are. */
void streams_begin(server_rec *main_server);

/* For adm_request, with a request_rec: whether it may wait here, and that it does no more. */
bool streams_enter(void *request);
void streams_leave(void *request);

#endif
