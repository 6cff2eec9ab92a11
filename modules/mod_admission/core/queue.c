/*
 * queue.c: waiting for a permit of one entry. A waiter sleeps on a futex of its own and is woken by whoever makes room;
 * nobody polls for permits. Being woken gives no permit, it gives the turn: the waiter takes the permit itself, as
 * everybody does (permit.h), while its place in the queue keeps newcomers from going past it (admit.c).
 *
 * No wake-up is lost: who makes room changes the cells first and looks for waiters then (queue_wake); a waiter takes its
 * place first and then calls queue_wake itself, which wakes the next in order if there is room, itself included. A woken
 * waiter that takes its permit, gives up or dies makes one more call follow: in admit.c, in queue_leave, in adm_sweep.
 */
#include "permit.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NOBODY UINT32_MAX
#define PATIENCE_NS UINT64_C(100000000)
#define LONGEST_SLICE_NS UINT64_C(1000000000)
#define APART_NS UINT64_C(5000000)

uint64_t queue_patience_ns(const adm_entry *entry) {
  uint64_t twice = 2 * entry->service_ns;
  return twice > PATIENCE_NS ? twice : PATIENCE_NS;
}

uint32_t queue_length(const adm_table *table, adm_entry *entry) {
  uint32_t length = 0;
  for (uint32_t i = 0; i < waiters_in_use(table, entry); i++) length += token_state(waiting_of(table, entry)[i]) != WAITER_FREE;
  return length;
}

uint64_t queue_slice_ns(const adm_table *table, adm_entry *entry) {
  if (group_of(table, entry)->order == ADM_ADAPTIVE) return LOOK_NS; /* where one may hear soon that he waits no longer */
  uint64_t apart = queue_length(table, entry) * APART_NS;
  if (apart < LOOK_NS) return LOOK_NS;
  return apart < LONGEST_SLICE_NS ? apart : LONGEST_SLICE_NS;
}

/* A queue at one moment. */
typedef struct queue_seen {
  uint64_t weight; /* of the permits, and of those whose turn it is already */
  bool any;        /* a waiter in any state, but for those whose turn it is and who do not come */
  bool absent;     /* one of those */
} queue_seen;

/* Whether it is a waiter's turn since before `since_ns`, and he has not come. */
static bool is_absent(const adm_table *table, adm_entry *entry, uint32_t place, uint64_t token, uint64_t since_ns) {
  return token_state(token) == WAITER_WOKEN && waiters_of(table, entry)[place].woken_ns < since_ns;
}

/* The waiters first: who takes his permit and leaves the queue meanwhile is then seen twice, and not never. Whose turn it is since before
 * `since_ns` does not count. */
static queue_seen see_since(const adm_table *table, adm_entry *entry, uint64_t since_ns) {
  queue_seen seen = {0};
  for (uint32_t i = 0; i < waiters_in_use(table, entry); i++) {
    uint64_t token = waiting_of(table, entry)[i];
    bool absent = is_absent(table, entry, i, token, since_ns);
    seen.absent |= absent;
    seen.any |= token_state(token) != WAITER_FREE && !absent;
    if (token_state(token) == WAITER_WOKEN && !absent) seen.weight += token_cost(token);
  }
  seen.weight += permits_weight(table, entry);
  return seen;
}

static queue_seen see(const adm_table *table, adm_entry *entry, uint64_t now_ns) { return see_since(table, entry, ago(now_ns, TURN_NS)); }

/* Whether nobody has to wait for a waiter: it, or another request of its process, had its turn and did not come. A process is stopped with
 * all of its threads. */
static bool is_passed_over(const adm_table *table, adm_entry *entry, uint64_t token, const queue_seen *seen, uint64_t now_ns) {
  for (uint32_t i = 0; seen->absent && i < waiters_in_use(table, entry); i++) {
    uint64_t other = waiting_of(table, entry)[i];
    if (is_absent(table, entry, i, other, ago(now_ns, TURN_NS)) && token_owner(other) == token_owner(token)) return true;
  }
  return false;
}

/* Whether a waiter, who is still to be woken, lets those go first who are let in up to `at_most`: a lower limit of its own is in
 * its way, or the group's has become less than it costs. One with the same limit does not, since there is room for both or for
 * none; nor one that the group has no room for now, or what is large would never have its turn. */
static bool stands_aside(const adm_table *table, adm_entry *entry, uint32_t place, uint64_t token, const queue_seen *seen, uint32_t at_most) {
  const adm_group *group = group_of(table, entry);
  if (token_state(token) != WAITER_WAITING || group->mode != ADM_ENFORCE) return false;
  uint32_t limit = group->limit, cost = token_cost(token), own = waiters_of(table, entry)[place].at_most;
  return cost > limit || (own < at_most && own < limit && seen->weight + cost > own);
}

bool queue_holds_up(const adm_table *table, adm_entry *entry, uint32_t at_most, uint64_t now_ns) {
  if (queue_length(table, entry) == 0) return false;
  queue_seen seen = see(table, entry, now_ns);
  for (uint32_t i = 0; i < waiters_in_use(table, entry); i++) {
    uint64_t token = waiting_of(table, entry)[i];
    if (token_state(token) == WAITER_FREE || is_passed_over(table, entry, token, &seen, now_ns)) continue;
    if (!stands_aside(table, entry, i, token, &seen, at_most)) return true;
  }
  return false;
}

/* A lower limit than the group's, by a .htaccess file or a policy. */
static bool has_own_limit(const adm_table *table, adm_entry *entry, uint32_t at_most) { return at_most < group_of(table, entry)->limit; }

/* Whether anybody waits who has no limit of his own, but those whom the group has no room for any more. */
static bool waits_for_group(const adm_table *table, adm_entry *entry, const queue_seen *seen, uint64_t now_ns) {
  for (uint32_t i = 0; seen->any && i < waiters_in_use(table, entry); i++) {
    uint64_t token = waiting_of(table, entry)[i];
    if (token_state(token) == WAITER_FREE || is_absent(table, entry, i, token, ago(now_ns, TURN_NS))) continue;
    bool known = token_state(token) != WAITER_CLAIM; /* else it has not said yet who it is */
    if (known && has_own_limit(table, entry, waiters_of(table, entry)[i].at_most)) continue;
    if (!stands_aside(table, entry, i, token, seen, ADM_UNLIMITED)) return true;
  }
  return false;
}

bool queue_overloaded(const adm_table *table, adm_entry *entry, uint32_t at_most, uint64_t now_ns) {
  if (group_of(table, entry)->order != ADM_ADAPTIVE) return false;
  bool own = has_own_limit(table, entry, at_most);
  uint64_t calm = own ? entry->calm_ns : entry->clear_ns;
  if (now_ns <= calm || now_ns - calm <= queue_patience_ns(entry)) return false;
  /* Where nobody waits it may be long ago that anybody said so. */
  queue_seen seen = see(table, entry, now_ns);
  return own ? seen.any : waits_for_group(table, entry, &seen, now_ns);
}

/* After a look at the queue: it may be calm. Noted in every order, as it may become adaptive while somebody waits. */
static void note_calm(const adm_table *table, adm_entry *entry, const queue_seen *seen, uint64_t now_ns) {
  if (!seen->any) entry->calm_ns = now_ns;
  if (!waits_for_group(table, entry, seen, now_ns)) entry->clear_ns = now_ns;
}

static standing standing_of(const adm_waiter *waiter) { return (standing){waiter->priority, waiter->since_ns, waiter->at_most, waiter->group}; }

/* Which of two goes first at the same priority: the older, or the newer where the order says so; among those with limits of their own too
 * where only they crowd the queue. */
typedef struct queue_order {
  bool newest, newest_of_own;
} queue_order;

static queue_order order_now(const adm_table *table, adm_entry *entry, uint64_t now_ns) {
  if (group_of(table, entry)->order == ADM_LIFO) return (queue_order){true, true};
  return (queue_order){queue_overloaded(table, entry, ADM_UNLIMITED, now_ns), queue_overloaded(table, entry, 0, now_ns)};
}

static bool goes_before(const adm_table *table, adm_entry *entry, const standing *a, const standing *b, const queue_order *order) {
  if (a->priority != b->priority) return a->priority < b->priority;
  bool own = has_own_limit(table, entry, a->at_most) && has_own_limit(table, entry, b->at_most);
  return (own ? order->newest_of_own : order->newest) ? a->since_ns > b->since_ns : a->since_ns < b->since_ns;
}

uint32_t queue_before(const adm_table *table, adm_entry *entry, const standing *mine, uint64_t now_ns) {
  queue_seen seen = see(table, entry, now_ns);
  queue_order order = order_now(table, entry, now_ns);
  uint32_t before = 0;
  for (uint32_t i = 0; i < waiters_in_use(table, entry); i++) {
    uint64_t token = waiting_of(table, entry)[i];
    if (token_state(token) < WAITER_WAITING || is_passed_over(table, entry, token, &seen, now_ns)) continue;
    if (stands_aside(table, entry, i, token, &seen, mine->at_most)) continue;
    standing other = standing_of(&waiters_of(table, entry)[i]);
    before += goes_before(table, entry, &other, mine, &order);
  }
  return before;
}

/* The waiter whose turn is next, NOBODY when none waits that does not stand aside. `asker` is one who can be, as it looks; of the others those
 * who are passed over come last. */
static uint32_t next_in_order(const adm_table *table, adm_entry *entry, const queue_seen *seen, uint32_t asker, uint64_t now_ns) {
  queue_order order = order_now(table, entry, now_ns);
  uint32_t best = NOBODY;
  bool best_is_late = false;
  standing of_best = {0};
  for (uint32_t i = 0; i < waiters_in_use(table, entry); i++) {
    uint64_t token = waiting_of(table, entry)[i];
    if (token_state(token) != WAITER_WAITING || stands_aside(table, entry, i, token, seen, ADM_UNLIMITED)) continue;
    standing here = standing_of(&waiters_of(table, entry)[i]);
    bool late = i != asker && is_passed_over(table, entry, token, seen, now_ns);
    bool is_better = late == best_is_late ? goes_before(table, entry, &here, &of_best, &order) : best_is_late;
    if (best != NOBODY && !is_better) continue;
    best = i;
    best_is_late = late;
    of_best = here;
  }
  return best;
}

bool queue_next_is(adm_table *table, adm_entry *entry, uint32_t place, uint64_t now_ns) {
  queue_seen seen = see(table, entry, now_ns);
  return next_in_order(table, entry, &seen, place, now_ns) == place;
}

bool queue_leaves_room(const adm_table *table, adm_entry *entry, uint32_t cost, uint64_t now_ns, uint64_t late_ns) {
  uint32_t limit = group_of(table, entry)->limit;
  return limit == ADM_UNLIMITED || see_since(table, entry, ago(now_ns, late_ns)).weight + cost <= limit;
}

/* How far the row of places reaches for one whose group has `length` of them: past those that do not count for it. 0: all are taken. */
static uint32_t row_for(const adm_table *table, adm_entry *entry, const queue_seen *seen, uint32_t length, const standing *mine, uint64_t now_ns) {
  uint32_t counted = 0, others = 0;
  for (uint32_t i = 0; i < waiters_in_use(table, entry); i++) {
    uint64_t token = waiting_of(table, entry)[i];
    if (token_state(token) == WAITER_FREE) continue;
    bool known = token_state(token) != WAITER_CLAIM; /* else it has not said yet who it is */
    bool other = known && waiters_of(table, entry)[i].group != mine->group;
    if (other || is_passed_over(table, entry, token, seen, now_ns) || stands_aside(table, entry, i, token, seen, mine->at_most)) others++;
    else counted++;
  }
  if (counted >= length) return 0;
  return length + others < table->shape.waiters ? length + others : table->shape.waiters;
}

bool queue_join(adm_table *table, adm_entry *entry, uint64_t token, uint32_t length, const standing *mine, uint32_t *place) {
  _Atomic uint64_t *waiting = waiting_of(table, entry);
  uint64_t now_ns = adm_now_ns(); /* not since it came to the server: it may have waited elsewhere */
  queue_seen seen = see(table, entry, now_ns);
  note_calm(table, entry, &seen, now_ns);
  uint32_t row = row_for(table, entry, &seen, length, mine, now_ns);
  for (uint32_t i = 0; i < row; i++) {
    uint32_t top = entry->waiters_top;
    while (top <= i && !atomic_compare_exchange_weak(&entry->waiters_top, &top, i + 1)) {}
    uint64_t none = 0;
    if (waiting[i] != 0 || !atomic_compare_exchange_strong(&waiting[i], &none, token_in_state(token, WAITER_CLAIM))) continue;
    STEP("join: claimed");
    adm_waiter *waiter = &waiters_of(table, entry)[i];
    waiter->priority = mine->priority;
    waiter->since_ns = mine->since_ns;
    waiter->at_most = mine->at_most;
    waiter->group = mine->group;
    waiting[i] = token_in_state(token, WAITER_WAITING);
    STEP("join: waiting");
    queue_wake(table, entry, adm_now_ns());
    *place = i;
    return true;
  }
  return false;
}

/* Changes the waiter's state from whatever it is; the place is this request's own until it leaves. */
static void put(adm_table *table, adm_entry *entry, uint32_t place, uint64_t token, unsigned state) {
  waiting_of(table, entry)[place] = state == WAITER_FREE ? 0 : token_in_state(token, state);
}

void queue_leave(adm_table *table, adm_entry *entry, uint32_t place, uint64_t token) {
  put(table, entry, place, token, WAITER_FREE);
  STEP("leave: left");
  queue_wake(table, entry, adm_now_ns());
}

void queue_again(adm_table *table, adm_entry *entry, uint32_t place, uint64_t token) {
  put(table, entry, place, token, WAITER_WAITING);
  queue_wake(table, entry, adm_now_ns());
}

/* The futex calls are the shared kind: the sleeper is in another process than the one that wakes it. */
static long futex(_Atomic uint32_t *word, int operation, uint32_t value, const struct timespec *timeout) {
  return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

bool queue_sleep(adm_table *table, adm_entry *entry, uint32_t place, uint64_t token, uint64_t nanoseconds) {
  _Atomic uint64_t *waiting = &waiting_of(table, entry)[place];
  adm_waiter *waiter = &waiters_of(table, entry)[place];
  uint64_t woken = token_in_state(token, WAITER_WOKEN), until = adm_now_ns() + nanoseconds;
  for (;;) {
    uint32_t bell = waiter->bell;
    if (*waiting == woken) return true;
    uint64_t now = adm_now_ns();
    if (now >= until) return false;
    struct timespec rest = {(time_t)((until - now) / 1000000000u), (long)((until - now) % 1000000000u)};
    futex(&waiter->bell, FUTEX_WAIT, bell, &rest);
  }
}

void queue_wake_waiting(adm_table *table, adm_entry *entry, uint64_t now_ns) {
  const adm_group *group = group_of(table, entry);
  for (;;) {
    queue_seen seen = see(table, entry, now_ns);
    note_calm(table, entry, &seen, now_ns);
    STEP("wake: looked");
    uint32_t next = next_in_order(table, entry, &seen, NOBODY, now_ns);
    if (next == NOBODY) return;
    uint64_t token = waiting_of(table, entry)[next];
    bool enforced = group->mode == ADM_ENFORCE && group->limit != ADM_UNLIMITED;
    if (enforced && seen.weight + token_cost(token) > group->limit) return;
    /* Again, now that it is chosen: another may have given the turn to the one before it meanwhile, who goes on from here. */
    if (enforced && see(table, entry, now_ns).weight + token_cost(token) > group->limit) return;
    if (token_state(token) != WAITER_WAITING) continue; /* woken or gone since */
    waiters_of(table, entry)[next].woken_ns = adm_now_ns();
    if (!atomic_compare_exchange_strong(&waiting_of(table, entry)[next], &token, token_in_state(token, WAITER_WOKEN))) continue;
    STEP("wake: woken");
    waiters_of(table, entry)[next].bell++;
    STEP("wake: rung");
    futex(&waiters_of(table, entry)[next].bell, FUTEX_WAKE, INT_MAX, NULL);
  }
}

void adm_wake_all(adm_table *table) {
  for (uint32_t i = adm_entry_next(table, 0); i < table->shape.entries; i = adm_entry_next(table, i + 1))
    queue_wake(table, entry_at(table, i), adm_now_ns());
}
