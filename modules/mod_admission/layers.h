/*
 * layers.h: which groups a request is in, and what each of them counts it under.
 */
#ifndef ADMISSION_LAYERS_H
#define ADMISSION_LAYERS_H

#include "request.h"

/* Whether a group that is used at this place may be meant for a request of this handler, whose kind it finds.
 * Cheap: it is asked for all. */
bool layers_concern(const request_rec *r, const place_rules *place, handler_kind *kind);

/* Fills in the layers of a visit, narrowest first, the memory budget last. None: nothing limits this request. */
void layers_gather(visit *v, const place_rules *place);

/* Takes away what requests around this one hold already. Returns whether one of them holds permits at all. */
bool layers_ride_along(visit *v);

/* Whether this is the error page of a request that was turned away here. */
bool layers_of_rejection(const request_rec *r);

/* The priority of a request at this place. */
int32_t layers_priority(request_rec *r, const place_rules *place);

#endif
