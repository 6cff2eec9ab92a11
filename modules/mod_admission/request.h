/*
 * request.h: from a request to the permits it needs, and the hook around its handler.
 */
#ifndef ADMISSION_REQUEST_H
#define ADMISSION_REQUEST_H

#include "runtime.h"

/* A request that was decided about; in its request_config while its handler runs, and after that where it was turned away
 * or still holds permits. */
typedef struct visit {
  request_rec *r;
  const host_rules *host;
  handler_kind kind;
  unsigned layers;
  int manners;      /* the group that says how this request waits for memory, and what it hears then */
  adm_layer layer[ADM_LAYERS];
  const group_rule *rule[ADM_LAYERS]; /* NULL: the memory budget */
  adm_answer answer;
  unsigned copies;  /* those of the process that the permits are of: see runtime */
  int lock;        /* the descriptor that programs inherit; -1: none */
  bool rejected;
  bool memory_outlasts; /* what it takes of the memory budget is held to the last byte, as a group of its own asks for that */
  bool bypass;     /* let through without a permit: an error page, or inside a request that has the same permits */
} visit;

/* The visit of a request, or NULL. */
visit *request_visit(const request_rec *r);

/* The handler hook: runs all other handlers inside itself, with a permit. */
int request_around(request_rec *r);

/* child_init: finds those handlers. */
void request_child_init(apr_pool_t *pool, server_rec *main_server);

#endif
