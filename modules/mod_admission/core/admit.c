/*
 * admit.c: one request and all its layers: in at once, in the queue, or turned away.
 *
 * A request that waits holds nothing: when one layer is full, the permits of the others are given back first. So two
 * requests never wait for each other, whatever layers they share. It waits in the queue of the layer that was full and
 * starts anew when its turn comes there; its age, which the order of a queue goes by, stays that of its arrival.
 */
#include "observe.h"

#include <time.h>

#define MOVES_AT_ONCE 8 /* from one queue to another before it pauses */
#define MOVES 1000      /* in all */

/* A layer that was looked up. */
typedef struct layer_place {
  adm_entry *entry; /* NULL: does not count this time */
  uint64_t key;
  adm_group *group;
  uint32_t mode;
  uint32_t held; /* what others' permits weighed there when this one was taken, or was not */
  bool over;     /* there was no room; where that is only observed it was taken all the same */
} layer_place;

/* A request while it is decided about. */
typedef struct attempt {
  adm_table *table;
  adm_owner owner;
  const adm_request *request;
  adm_answer *answer;
  uint64_t token, now_ns, arrived_ns;
  uint64_t joined_ns; /* when it came to the queue that it waits in, or would */
  uint64_t longest_ns; /* that it may wait, whatever its group says */
  layer_place place[ADM_LAYERS];
  uint32_t refused;  /* a bit for each layer that only observes, and would have turned it away */
  uint32_t delayed;  /* a bit for each that would have had it wait */
  uint32_t no_place; /* a bit for each layer in which there was no cell for the permit */
} attempt;

static void find_place(attempt *a, unsigned k) {
  const adm_layer *layer = &a->request->layer[k];
  layer_place *place = &a->place[k];
  *place = (layer_place){0};
  if (layer->group < 0 || layer->group >= ADM_GROUPS) return;
  place->group = &a->table->shared->group[layer->group];
  place->mode = place->group->mode;
  if (place->mode == ADM_OFF) return;
  place->key = entry_key((uint32_t)layer->group, layer->key);
  place->entry = entry_of(a->table, a->owner, (uint32_t)layer->group, place->key, layer->label, a->now_ns);
}

/* Whether the table could not say whether layer k is full. */
static bool is_uncounted(const attempt *a, unsigned k) {
  const layer_place *place = &a->place[k];
  return place->group && place->mode != ADM_OFF && (!place->entry || a->no_place >> k & 1);
}

static uint32_t limit_of(const attempt *a, unsigned k) {
  uint32_t limit = a->place[k].group->limit, at_most = a->request->layer[k].at_most;
  return limit < at_most ? limit : at_most;
}

static uint64_t token_for(const attempt *a, uint32_t cost) {
  return a->token | (a->request->hold_file ? TOKEN_HOLD : 0) | (cost < ADM_COST_MAX ? cost : ADM_COST_MAX);
}

/* The group that says how long and with how many others a request may wait for layer k: that layer's, or, where that is the
 * memory budget, the one that the request names. */
static uint32_t manners(const attempt *a, unsigned k) {
  int group = a->request->layer[k].group;
  return (uint32_t)(group == ADM_GROUP_MEMORY ? a->request->manners : group);
}

static const adm_group *manners_of(const attempt *a, unsigned k) { return &a->table->shared->group[manners(a, k)]; }

/* Where the request stands, or would, in the queue of layer k. */
static standing standing_in(const attempt *a, unsigned k) {
  const adm_layer *layer = a->request->layer;
  return (standing){a->request->priority, a->arrived_ns, layer[k].at_most, manners(a, k)};
}

/* Whether others have to go first. Newcomers go past nobody who waits, but those that wait for a lower limit of their own; one
 * whose turn it is in another layer's queue goes by its age here, too, or it would give its turn up for people who came after it. */
static bool others_first(const attempt *a, unsigned k, int turn) {
  if (turn == (int)k) return false;
  if (turn < 0) return queue_is_closed(a->table, a->place[k].entry, a->request->layer[k].at_most, a->now_ns);
  standing mine = standing_in(a, k);
  return queue_before(a->table, a->place[k].entry, &mine, a->now_ns) > 0;
}

/* Tries once to take a permit of layer k, where its place is now. Where that is only observed it goes in though it is `over` the limit, or
 * others would go first. */
static take_result try_take(const attempt *a, unsigned k, bool enforced, bool others_wait, bool *over, adm_taken *taken) {
  const layer_place *place = &a->place[k];
  uint32_t cost = a->request->layer[k].cost, limit = limit_of(a, k);
  uint64_t token = token_for(a, cost);
  *over = !enforced && (others_wait || !observe_has_room(a->table, place->entry, limit, cost, a->now_ns));
  if (*over) token |= TOKEN_OVER;
  return permit_take(a->table, place->entry, place->key, token, enforced ? limit : ADM_UNLIMITED, a->now_ns, taken);
}

static bool is_enforced(const attempt *a, unsigned k) { return a->place[k].mode == ADM_ENFORCE && !a->request->observe; }

/* Says which layer was full. */
static void tell_of(attempt *a, unsigned k) {
  a->answer->group = a->request->layer[k].group;
  a->answer->limit = limit_of(a, k);
  a->answer->held = a->place[k].held;
}

/* Takes a permit of one layer; false when it is full and that counts. */
static bool take(attempt *a, unsigned k, int turn) {
  layer_place *place = &a->place[k];
  adm_taken taken = {0};
  bool others_wait = others_first(a, k, turn), enforced = is_enforced(a, k), over = false;
  take_result result = others_wait && enforced ? FULL : try_take(a, k, enforced, others_wait, &over, &taken);
  if (others_wait && enforced) taken.weight = permits_weight(a->table, place->entry);
  if (enforced && place->entry->shadow != 0) place->entry->shadow = 0; /* of when it only observed */
  for (int again = 0; result == MOVED && again < 4; again++) {
    find_place(a, k);
    if (!place->entry) return true;
    result = try_take(a, k, enforced, others_wait, &over, &taken);
  }
  place->held = taken.weight < UINT32_MAX ? (uint32_t)taken.weight : UINT32_MAX;
  place->over = result == FULL || (over && result != MOVED);
  if (place->over && enforced) {
    tell_of(a, k);
    return false;
  }
  if (a->answer->limit == 0) {
    a->answer->limit = limit_of(a, k);
    a->answer->held = place->held;
  }
  if (result == TAKEN)
    a->answer->permit[a->answer->permits++] = permit_taken(place->entry, &taken, k);
  else if (!place->over)
    a->no_place |= 1u << k;
  return true;
}

/* Whether a request for which layer k, which only observes, had no room would have waited there. */
static bool would_wait(const attempt *a, unsigned k, float *reckoned) {
  const adm_group *manners = manners_of(a, k), *room = &a->table->shared->group[ADM_GROUP_WAITING];
  uint32_t queue = a->request->may_wait ? manners->queue : 0, cost = a->request->layer[k].cost;
  if (room->mode != ADM_OFF && queue > room->limit) queue = room->limit;
  observed who = {.limit = limit_of(a, k), .cost = cost, .queue = queue, .may_ns = (uint64_t)manners->timeout_ms * 1000000u};
  return observe_would_wait(a->table, a->place[k].entry, &who, a->now_ns, reckoned);
}

/* What would have become of one who has all permits, in the layers that only observe, each by itself. Told of is the first that would have
 * turned it away, or else the first that would have had it wait. */
static void foresee(attempt *a) {
  float reckoned[ADM_LAYERS] = {0};
  for (unsigned k = 0; k < a->request->layers; k++) {
    if (!a->place[k].entry || !a->place[k].over) continue;
    bool waits = would_wait(a, k, &reckoned[k]);
    if (a->refused == 0 && (!waits || a->delayed == 0)) tell_of(a, k);
    if (waits) a->delayed |= 1u << k;
    else a->refused |= 1u << k;
  }
  for (unsigned i = 0; i < a->answer->permits && a->delayed; i++) a->answer->permit[i].reckoned = reckoned[a->answer->permit[i].layer];
}

static void give_back(adm_table *table, adm_answer *answer, uint64_t now_ns) {
  while (answer->permits > 0) {
    const adm_permit *permit = &answer->permit[--answer->permits];
    if (permit_return(permit, false)) queue_wake(table, permit->entry, now_ns);
  }
}

/* Whether layer k is full by the looks of it, and that counts: nothing is taken. Who takes the permits of narrow layers only to find a wide
 * one full keeps others out of the narrow ones meanwhile, who may be turned away there. */
static bool looks_full(attempt *a, unsigned k, int turn) {
  layer_place *place = &a->place[k];
  if (!place->entry || place->entry->key != place->key || place->group->mode != ADM_ENFORCE || a->request->observe) return false;
  uint64_t weight = permits_held(a->table, place->entry);
  if (weight + a->request->layer[k].cost <= limit_of(a, k) && !others_first(a, k, turn)) return false;
  place->held = weight < UINT32_MAX ? (uint32_t)weight : UINT32_MAX;
  tell_of(a, k);
  return true;
}

/* Takes the permits of all layers, or none. Returns the layer that is full, -1 when all are taken. `turn`: the layer in
 * whose queue this request stands and is the next, -1 for none. */
static int take_all(attempt *a, int turn) {
  a->answer->limit = a->answer->held = 0;
  a->answer->group = -1;
  a->refused = a->delayed = a->no_place = 0;
  for (unsigned k = 0; k < a->request->layers && a->request->layers > 1; k++)
    if (looks_full(a, k, turn)) return (int)k;
  for (unsigned k = 0; k < a->request->layers; k++) {
    a->place[k].over = false;
    if (a->place[k].group) a->place[k].mode = a->place[k].group->mode;
    if (!a->place[k].entry || a->place[k].mode == ADM_OFF || take(a, k, turn)) continue;
    STEP("admit: partly");
    give_back(a->table, a->answer, a->now_ns);
    return (int)k;
  }
  foresee(a);
  return -1;
}

/* When the request may find its permit in the queue of layer k, by the means so far; 0: unknown. */
static uint64_t predict(const attempt *a, unsigned k) {
  uint32_t limit = limit_of(a, k), cost = a->request->layer[k].cost;
  if (limit == 0 || cost == 0) return 0;
  standing mine = standing_in(a, k);
  uint64_t before = queue_before(a->table, a->place[k].entry, &mine, a->now_ns);
  return turn_ns(a->place[k].entry, limit, cost) * (before + 1); /* whose holders make room */
}

static bool wanted(const attempt *a) {
  const adm_client *client = a->request->client;
  return !client || !client->wanted || client->wanted(a->request->world);
}

static uint64_t left_of(uint64_t may, uint64_t spent) { return spent < may ? may - spent : 0; }

/* How much longer this waiter may wait. Under overload an adaptive queue lets nobody wait in it longer than its patience: who
 * is served then is served soon, and the others hear so soon. */
static uint64_t rest(const attempt *a, unsigned k) {
  adm_entry *entry = a->place[k].entry;
  uint64_t may = (uint64_t)manners_of(a, k)->timeout_ms * 1000000u;
  uint64_t left = left_of(may < a->longest_ns ? may : a->longest_ns, a->now_ns - a->arrived_ns);
  if (!queue_overloaded(a->table, entry, a->request->layer[k].at_most, a->now_ns)) return left;
  uint64_t here = left_of(queue_patience_ns(entry), a->now_ns - a->joined_ns);
  return here < left ? here : left;
}

/* Whether there is no use in waiting for layer k: there is no room for the request even when it is empty, or, by the means so
 * far, not in time. */
static bool in_vain(attempt *a, unsigned k) {
  a->answer->predicted_ns = predict(a, k);
  return a->request->layer[k].cost > limit_of(a, k) || a->answer->predicted_ns > rest(a, k);
}

/* Whether a waiter that looks round, and was not woken, goes in: when it is the next, and takes no turn of one who was. That who made room
 * was killed before he woke anybody, or that the one who was woken is stopped, is what it looks round for. */
static bool goes_unwoken(const attempt *a, unsigned k, uint32_t place, uint64_t token, uint64_t late_ns) {
  adm_entry *entry = a->place[k].entry;
  if (a->place[k].group->mode != ADM_ENFORCE) return true;
  return queue_next_is(a->table, entry, place, a->now_ns) && queue_leaves_room(a->table, entry, token_cost(token), a->now_ns, late_ns);
}

/* Waits in the queue of layer k, whose place it has. Returns how it ended, or ADM_REJECTED with `*full` at another layer
 * in whose queue it has to wait next. */
static adm_outcome wait_turn(attempt *a, int k, uint32_t place, uint64_t token, int *full) {
  adm_entry *entry = a->place[k].entry;
  for (;;) {
    uint64_t left = rest(a, (unsigned)k), given = (uint64_t)a->request->slice_ms * 1000000u;
    uint64_t slice = given ? given : queue_slice_ns(a->table, entry);
    bool woken = queue_sleep(a->table, entry, place, token, left < slice ? left : slice);
    a->now_ns = adm_now_ns();
    if (!wanted(a)) return ADM_GONE;
    *full = woken || goes_unwoken(a, (unsigned)k, place, token, given ? given : LOOK_NS) ? take_all(a, k) : k;
    if (*full < 0) {
      /* Found its permit by looking round; not at its last look before the end, which comes at any moment. */
      if (!woken && left >= slice && a->place[k].group->mode == ADM_ENFORCE) a->table->shared->late_wakes++;
      return ADM_QUEUED;
    }
    if (*full != k) return ADM_REJECTED;
    if (rest(a, (unsigned)k) == 0) return ADM_TIMEOUT;
    if (woken) queue_again(a->table, entry, place, token);
  }
}

/* Takes one of the places that all waiting requests of the server share. Its token has no TOKEN_HOLD: no program is behind it. Where they
 * cannot be counted, it waits without. */
static bool enter_waiting_room(attempt *a, adm_permit *room) {
  adm_group *group = &a->table->shared->group[ADM_GROUP_WAITING];
  *room = (adm_permit){0};
  if (group->limit == ADM_UNLIMITED || group->mode == ADM_OFF) return true;
  uint64_t key = entry_key(ADM_GROUP_WAITING, 0);
  adm_entry *entry = entry_of(a->table, a->owner, ADM_GROUP_WAITING, key, "", a->now_ns);
  adm_taken taken;
  take_result result = entry ? permit_take(a->table, entry, key, a->token | 1, group->limit, a->now_ns, &taken) : NO_CELL;
  if (result == TAKEN) *room = permit_taken(entry, &taken, 0);
  return result != FULL;
}

/* Stands in one queue after the other until all permits are taken or it makes no sense any more. */
static adm_outcome wait_for(attempt *a, int full) {
  adm_outcome outcome = ADM_REJECTED;
  for (int moves = 0; outcome == ADM_REJECTED && full >= 0 && moves < MOVES; moves++) {
    if (moves >= MOVES_AT_ONCE) { /* those whom it lets go first, now here, now there, are woken and need a CPU to come in */
      nanosleep(&(struct timespec){0, 1000000}, NULL);
      a->now_ns = adm_now_ns();
    }
    int k = full;
    adm_entry *entry = a->place[k].entry;
    uint64_t token = token_for(a, a->request->layer[k].cost);
    standing mine = standing_in(a, (unsigned)k);
    uint32_t place;
    a->joined_ns = a->now_ns;
    if (in_vain(a, (unsigned)k)) break;
    if (!queue_join(a->table, entry, token, manners_of(a, (unsigned)k)->queue, &mine, &place)) break;
    /* The entry may have been given to another key before we stood in its queue; it is not while we do. */
    if (entry->key == a->place[k].key) {
      outcome = wait_turn(a, k, place, token, &full);
    } else {
      find_place(a, (unsigned)k);
      full = take_all(a, -1);
      if (full < 0) outcome = ADM_QUEUED;
    }
    queue_leave(a->table, entry, place, token);
  }
  a->answer->wait_ns = a->now_ns - a->arrived_ns;
  return outcome;
}

static adm_outcome wait_in_room(attempt *a, int full) {
  adm_permit room;
  if (!enter_waiting_room(a, &room)) return ADM_REJECTED;
  adm_outcome outcome = wait_for(a, full);
  if (room.token && permit_return(&room, false)) queue_wake(a->table, room.entry, a->now_ns);
  return outcome;
}

static bool may_wait(attempt *a, unsigned full) {
  const adm_request *request = a->request;
  if (!request->may_wait || manners_of(a, full)->queue == 0) return false;
  if (!request->client || !request->client->enter) return true;
  a->longest_ns = (uint64_t)request->client->enter(request->world) * 1000000u;
  return a->longest_ns > 0;
}

/* Notes who was turned away by `limit`, or would have been, or would have waited: who waits is seen. */
static void count_full(adm_group *group, uint32_t limit) {
  if (limit >= group->limit) atomic_fetch_add_explicit(&group->full, 1, memory_order_relaxed);
}

static void count(attempt *a, adm_outcome outcome) {
  if (outcome == ADM_REJECTED && a->request->tells_later) return;
  for (unsigned k = 0; k < a->request->layers; k++) {
    adm_group *group = a->place[k].group;
    if (!group || a->place[k].mode == ADM_OFF) continue;
    if (is_uncounted(a, k)) {
      if (adm_was_admitted(outcome)) group->counts.open++;
      continue;
    }
    bool here = a->request->layer[k].group == a->answer->group;
    adm_counts *counts = &group->counts;
    _Atomic uint64_t *which = NULL;
    if (outcome == ADM_QUEUED && here) which = &counts->queued;
    else if (adm_was_admitted(outcome) && a->refused >> k & 1) which = &counts->would_reject;
    else if (adm_was_admitted(outcome) && a->delayed >> k & 1) which = &counts->would_queue;
    else if (adm_was_admitted(outcome)) which = &counts->admitted;
    else if (outcome == ADM_REJECTED && here) which = &counts->rejected;
    else if (outcome == ADM_TIMEOUT && here) which = &counts->timeout;
    else if (outcome == ADM_GONE && here) which = &counts->gone;
    if (which) atomic_fetch_add_explicit(which, 1, memory_order_relaxed);
    bool was_full = which == &counts->rejected || which == &counts->timeout;
    if (was_full || which == &counts->would_reject || which == &counts->would_queue) count_full(group, limit_of(a, k));
  }
}

static ADM_INLINE void measure(adm_histogram *histogram, uint64_t ns) {
  uint64_t us = ns / 1000;
  unsigned bucket = 63u ^ (unsigned)__builtin_clzll(2 * us + 1); /* 63 - n, in fewer steps: 0 for 0, 1 for 1, 2 for 2 and 3 ... */
  if (bucket >= ADM_BUCKETS) bucket = ADM_BUCKETS - 1;
  atomic_fetch_add_explicit(&histogram->bucket[bucket], 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&histogram->sum_us, us, memory_order_relaxed);
}

/* A moving mean of how long permits are held. */
static inline void learn(_Atomic uint64_t *mean_ns, uint64_t held_ns) {
  uint64_t mean = atomic_load_explicit(mean_ns, memory_order_relaxed);
  atomic_store_explicit(mean_ns, mean == 0 ? held_ns : (7 * mean + held_ns) / 8, memory_order_relaxed);
}

/* Decides: in at once, by waiting, or not. */
static adm_outcome decide(attempt *a) {
  int full = take_all(a, -1);
  if (full < 0) return a->refused ? ADM_WOULD_REJECT : a->delayed ? ADM_WOULD_QUEUE : ADM_ADMITTED;
  int blocked = a->request->layer[full].group;
  uint32_t limit = a->answer->limit, held = a->answer->held;
  if (in_vain(a, (unsigned)full) || !may_wait(a, (unsigned)full)) return ADM_REJECTED;
  adm_outcome outcome = wait_in_room(a, full);
  const adm_client *client = a->request->client;
  if (client && client->leave) client->leave(a->request->world);
  if (outcome == ADM_QUEUED) { /* let in: what it waited for, not what only observes */
    a->answer->group = blocked;
    a->answer->limit = limit;
    a->answer->held = held;
  }
  if (a->answer->wait_ns > 0) measure(&a->table->shared->group[a->answer->group % ADM_GROUPS].wait, a->answer->wait_ns);
  return outcome;
}

/* The whole way: wherever anything may be in it. Not inlined, so that its large frame is not everybody's. */
static __attribute__((noinline)) adm_outcome go(adm_table *table, adm_owner owner, const adm_request *request, uint64_t token, adm_answer *answer) {
  attempt a;
  a.table = table;
  a.owner = owner;
  a.request = request;
  a.answer = answer;
  a.token = token;
  a.now_ns = a.arrived_ns = a.joined_ns = answer->since_ns;
  a.longest_ns = UINT64_MAX;
  a.refused = a.delayed = a.no_place = 0;
  for (unsigned k = 0; k < request->layers; k++) find_place(&a, k);
  answer->outcome = decide(&a);
  for (unsigned k = 0; k < request->layers && answer->outcome == ADM_ADMITTED; k++)
    if (is_uncounted(&a, k)) answer->outcome = ADM_OPEN;
  answer->since_ns = a.now_ns;
  count(&a, answer->outcome);
  return answer->outcome;
}

/* ---- at once ---- */

/* Where one layer of a request finds its permit. */
typedef struct open_place {
  adm_group *group;
  adm_entry *entry;
  uint64_t key;
  uint32_t limit;
} open_place;

static ADM_INLINE bool is_open(const adm_table *table, const adm_layer *layer, open_place *place) {
  if (layer->group < 0 || layer->group >= ADM_GROUPS || layer->cost != 1) return false;
  place->group = &table->shared->group[layer->group];
  place->key = entry_key((uint32_t)layer->group, layer->key);
  place->entry = entry_at(table, (uint32_t)place->key);
  uint32_t limit = place->group->limit;
  place->limit = limit < layer->at_most ? limit : layer->at_most;
  return place->group->mode != ADM_OFF && entry_is(place->entry, place->key) && permit_had_room(place->entry, place->limit);
}

/* Takes the permit of layer k there, and writes it down. */
static ADM_INLINE bool take_open(adm_table *table, const open_place *place, unsigned k, uint64_t token, adm_answer *answer) {
  uint64_t now_ns = answer->since_ns;
  adm_taken taken;
  if (!permit_take_at_once(table, place->entry, place->key, token, place->limit, now_ns, &taken)) return false;
  STEP("admit: partly at once");
  entry_touch(place->entry, now_ns);
  answer->permit[k] = permit_taken(place->entry, &taken, k);
  answer->permits = k + 1;
  if (k > 0) return true;
  answer->limit = place->limit;
  answer->held = (uint32_t)taken.weight;
  return true;
}

static ADM_INLINE void count_admitted(const open_place *place) {
  atomic_fetch_add_explicit(&place->group->counts.admitted, 1, memory_order_relaxed);
}

/* All layers or none. Not inlined: its rows of places are not to be paid for by who has one layer. */
static __attribute__((noinline)) bool walk_in_all(adm_table *table, const adm_request *request, uint64_t token, adm_answer *answer) {
  open_place place[ADM_LAYERS];
  unsigned layers = request->layers;
  for (unsigned k = 0; k < layers; k++)
    if (!is_open(table, &request->layer[k], &place[k])) return false;
  for (unsigned k = 0; k < layers; k++) {
    if (take_open(table, &place[k], k, token, answer)) continue;
    give_back(table, answer, answer->since_ns);
    return false;
  }
  for (unsigned k = 0; k < layers; k++) count_admitted(&place[k]);
  return true;
}

/* The way of nearly all requests: each layer has an entry, in the first of its places, in which there had always been room.
 * False: nothing is held, and the whole way has to be gone. */
static ADM_INLINE bool walk_in(adm_table *table, const adm_request *request, uint64_t token, adm_answer *answer) {
  if (request->hold_file) token |= TOKEN_HOLD;
  if (request->layers != 1) return walk_in_all(table, request, token, answer);
  open_place place;
  if (!is_open(table, request->layer, &place) || !take_open(table, &place, 0, token, answer)) return false;
  count_admitted(&place);
  return true;
}

/* A process without a place in the table has nothing to write into a cell: each group says that it limits nothing here. */
static __attribute__((noinline)) adm_outcome let_through(adm_table *table, const adm_request *request) {
  for (unsigned k = 0; k < request->layers; k++) {
    adm_group *group = adm_group_at(table, request->layer[k].group);
    if (group && group->mode != ADM_OFF) group->counts.open++;
  }
  return ADM_OPEN;
}

adm_outcome adm_admit(adm_table *table, adm_owner owner, const adm_request *request, adm_answer *answer) {
  /* Field by field: the places of layers that are not there, and permits not taken, are not worth clearing. */
  answer->group = -1;
  answer->limit = answer->held = 0;
  answer->wait_ns = answer->predicted_ns = 0;
  answer->permits = 0;
  answer->since_ns = adm_now_ns();
  answer->outcome = ADM_OPEN;
  if (owner == ADM_NOBODY || request->layers > ADM_LAYERS) return let_through(table, request);
  uint64_t token = token_make(table, owner);
  if (!walk_in(table, request, token, answer)) return go(table, owner, request, token, answer);
  return answer->outcome = ADM_ADMITTED;
}

void adm_tell_rejected(adm_table *table, const adm_answer *answer) {
  adm_group *group = adm_group_at(table, answer->group);
  if (!group) return;
  atomic_fetch_add_explicit(&group->counts.rejected, 1, memory_order_relaxed);
  count_full(group, answer->limit);
}

void adm_release(adm_table *table, adm_answer *answer, adm_lingers lingers, void *world) {
  uint64_t now_ns = adm_now_ns(), held_ns = now_ns - answer->since_ns;
  const adm_permit *first = answer->permit, *permit = first + answer->permits;
  answer->permits = 0;
  while (permit > first) {
    adm_entry *entry = (--permit)->entry;
    if (permit->token == 0) continue;
    bool lingering = (permit->token & TOKEN_HOLD) && lingers && lingers(world, adm_hold_byte(table, permit));
    /* Before it is given back: an entry that nobody holds may be another name's the next moment. (Who has lost a permit, as he was taken for
     * dead, may feed what is another's now; to look first would cost each request five instructions.) */
    measure(&group_of(table, entry)->service, held_ns);
    if (entry->shadow != 0 || (permit->token & TOKEN_OVER)) observe_ended(table, permit, held_ns, now_ns);
    learn(&entry->service_ns, held_ns);
    STEP("release: learned");
    if (!permit_return(permit, lingering)) continue;
    STEP("release: returned");
    if (!lingering) queue_wake(table, entry, now_ns);
  }
}

const char *adm_outcome_name(adm_outcome outcome) {
  static const char *const names[] = {"admit", "queued", "would-reject", "would-queue", "open", "reject", "timeout", "gone"};
  return names[outcome];
}
