/*
 * observe.h: what would become of requests that are only observed: they go on at once, whatever that is.
 *
 * Who would be turned away would not be there, and is in nobody's way: his permit has TOKEN_OVER. So has who would wait, as his request ends
 * long before it would. In its stead the work that it is stands in the entry's shadow: at first the mean time that permits are held, corrected to
 * its own when it ends. It is worked off by the permits that those who were let in leave free.
 */
#ifndef ADMISSION_OBSERVE_H
#define ADMISSION_OBSERVE_H

#include "permit.h"

/* A request for which there would be no room. */
typedef struct observed {
  uint32_t limit; /* the lower one of its group's and its own */
  uint32_t cost;
  uint32_t queue;  /* the most that may wait; 0: it would not */
  uint64_t may_ns; /* how long it would wait at most */
} observed;

/* Whether there would be room, as a request comes: before its permit is taken. */
bool observe_has_room(const adm_table *table, adm_entry *entry, uint32_t limit, uint32_t cost, uint64_t now_ns);

/* Whether a request that has its permit, with TOKEN_OVER, would have waited for it; else it would have been turned away. `*reckoned` is what its
 * permit is to remember. */
bool observe_would_wait(const adm_table *table, adm_entry *entry, const observed *who, uint64_t now_ns, float *reckoned);

/* Called before a permit is given back, where there is a shadow or it may have something in one. */
void observe_ended(const adm_table *table, const adm_permit *permit, uint64_t held_ns, uint64_t now_ns);

#endif
