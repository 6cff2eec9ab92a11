/*
 * layers.h: which groups a request is in, and what each of them counts it under.
 */
#ifndef ADMISSION_LAYERS_H
#define ADMISSION_LAYERS_H

#include "request.h"

handler_kind layers_kind_of(const request_rec *r);

/* Where nobody has set a handler httpd takes the content type, which names a program, too, where `AddType cgi-script .cgi` does. Files
 * are mostly of text/ and image/, and no program that httpd knows begins as these do: seen by one letter. To look for the slash takes 25
 * instructions, and a call, for which those would pay who are in no group. What may be executed is looked at more closely: PHP may run it. */
static inline bool layers_is_file(const request_rec *r) {
  return r->handler && r->handler == r->content_type && (r->handler[0] == 't' || r->handler[0] == 'i') && !(r->finfo.protection & APR_UEXECUTE);
}

/* Whether it is seen at once that no group at this place can be meant for this request. It is asked for all requests of the
 * server: cheap on purpose. */
static inline bool layers_are_none(const request_rec *r, const place_rules *place) {
  if (!place || (!place->uses && !place->policy)) return true;
  return running.programs_only && !place->policy && layers_is_file(r);
}

static inline handler_kind layers_kind(const request_rec *r) { return layers_is_file(r) ? KIND_STATIC : layers_kind_of(r); }

/* Whether the handler only starts another request, as mod_rewrite's in a directory does: that one is decided about by itself. */
static inline bool layers_starts_another(const request_rec *r, handler_kind kind) {
  return kind == KIND_DYNAMIC && !strcmp(r->handler, "redirect-handler");
}

/* Whether a group at this place, or a policy, can be meant for this request, where there is no table to look further; `group` is
 * told the name of the first such group. */
bool layers_mean(const request_rec *r, const place_rules *place, const char **group);

/* Fills in the layers of a visit, narrowest first, the memory budget last. None: nothing limits this request. */
void layers_gather(visit *v, const place_rules *place);

/* Takes away what requests around this one hold already. Returns whether one of them holds permits at all. */
bool layers_ride_along(visit *v);

/* The request that this one is the error page of, where that was turned away here; else NULL. */
const visit *layers_turned_away(const request_rec *r);

/* The priority of a request at this place. */
int32_t layers_priority(request_rec *r, const place_rules *place);

#endif
