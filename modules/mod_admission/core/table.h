/*
 * table.h: how a table lies in memory. For the core and its tests only; everybody else uses admission.h.
 *
 * All of it is fixed in size from the start: header, groups, owners, then the entries, each with its cells and waiters
 * behind it. Every index that is read from shared memory is bounded before it is used, and sizes are not read from there
 * at all once a table is known, so that a child that writes rubbish can spoil decisions but not lead another process,
 * which may be the server's parent with all its rights, out of the table.
 */
#ifndef ADMISSION_TABLE_H
#define ADMISSION_TABLE_H

#include "admission.h"
#include "step.h"

#define ADM_MAGIC UINT64_C(0x4e4f495353494d44) /* "DMISSION" */
#ifndef ADM_VERSION
#define ADM_VERSION 14u /* of what stands in a table, the keys' hash and the bytes of the hold file included; a test builds a module with another one */
#endif

/* A token: who holds or claims a cell or a place in a queue, in one word.
 *
 *   63 62 | 61   | 60 .. 49 | 48 .. 40    | 39   | 38 .. 24 | 23 .. 0
 *   state | hold | owner    | incarnation | over | sequence | cost
 *
 * The incarnation tells the users of one owner's place apart, the sequence the requests of one process. Over: there was no room for the
 * permit, and its group only observes. */
#define TOKEN_STATE_SHIFT 62
#define TOKEN_HOLD (UINT64_C(1) << 61)
#define TOKEN_OWNER_SHIFT 49
#define TOKEN_INCARNATION_SHIFT 40
#define TOKEN_INCARNATION_MASK 0x1ffu
#define TOKEN_OVER (UINT64_C(1) << 39) /* only observed: there was no room, or others would have gone first */
#define TOKEN_SEQUENCE_SHIFT 24
#define TOKEN_SEQUENCE_MASK 0x7fffu

/* What a cell's token says. CLAIM: written, not yet looked. HELD: a permit. LINGER: its process has let go of it or is
 * dead, the program that it started has not ended; or, without TOKEN_HOLD, what other tables hold (carry.c). */
enum { CELL_FREE = 0, CELL_CLAIM = 1, CELL_HELD = 2, CELL_LINGER = 3 };
/* What a waiter's token says. CLAIM: being written. WOKEN: told to look for its permit. */
enum { WAITER_FREE = 0, WAITER_CLAIM = 1, WAITER_WAITING = 2, WAITER_WOKEN = 3 };

/* Who has an owner's place: process and incarnation are one word, so that nobody takes the process that joins for the one that was swept:
 *
 *   63 .. 42 | 41 .. 10 | 9 | 8 .. 0
 *   pid      | start    |   | incarnation
 *
 * No process has a number of more than 22 bits (PID_MAX_LIMIT). A place without a pid is free, and the incarnation is the next user's. */
#define USER_PID_SHIFT 42
#define USER_PID_MAX ((1u << 22) - 1)
#define USER_START_SHIFT 10

static inline adm_process user_process(uint64_t user) {
  return (adm_process){(uint32_t)(user >> USER_PID_SHIFT), (uint32_t)(user >> USER_START_SHIFT)};
}
static inline bool user_is_free(uint64_t user) { return user >> USER_PID_SHIFT == 0; }
/* The adm_owner that this user of a place is. */
static inline adm_owner user_owner(uint32_t place, uint64_t user) { return place << 9 | (uint32_t)(user & TOKEN_INCARNATION_MASK); }

/* What the others need to know of a waiter; its token is in a row of its own, which is all that most look at. */
typedef struct adm_waiter {
  _Atomic uint32_t bell; /* the futex: moves on when the waiter is woken */
  _Atomic int32_t priority;
  _Atomic uint64_t since_ns;
  _Atomic uint64_t woken_ns; /* when it was woken, of one that was */
  _Atomic uint32_t at_most; /* its own limit, if that is below its group's */
  _Atomic uint32_t group;   /* whose places in the queue it is one of: in that of the memory budget those of many groups wait */
} adm_waiter;

/* Where a request stands, or would, in a queue. */
typedef struct standing {
  int32_t priority;
  uint64_t since_ns;
  uint32_t at_most;
  uint32_t group;
} standing;

#define IDLE_NS UINT64_C(1000000000) /* an entry unused for this long may be given to another key */
#define FORGET_NS (60 * IDLE_NS)      /* and after this one it is not known any more how long its requests take */
#define KEY_FREE 0u
#define KEY_LEAVING 1u /* being given to another key: nobody may take a permit in it */

struct adm_entry {
  _Alignas(64) _Atomic uint64_t key; /* of group and key together; hashes 0 and 1 stand for others */
  _Atomic uint64_t leaving_key; /* the key that is KEY_LEAVING now */
  _Atomic uint32_t group;
  /* No cell at or above it was ever used: how far looking goes. Never lowered, not for another key either: a claim raises it first
   * and then stands, and a top that is lowered in between hides the claim from whoever adds up the cells. */
  _Atomic uint32_t cells_top;
  _Atomic uint32_t waiters_top; /* the same for waiters */
  _Atomic uint64_t used_ns;     /* when it last was looked up */
  _Atomic uint64_t calm_ns;     /* when its queue last was empty */
  char label[ADM_LABEL];
  /* How long a permit is held here, a moving mean; 0: unknown. Written by each release, so not in the line that all look at. */
  _Atomic uint64_t service_ns;
  _Atomic uint64_t clear_ns; /* when nobody last waited in its queue but those with lower limits of their own */
  _Atomic uint64_t shadow;   /* of those who would wait here, were it enforced, or be served after that; 0: nobody (observe.h) */
  /* then: _Atomic uint64_t cell[cells], waiting[waiters], since_ns[cells]; waiter waiter[waiters] */
};

/* What stands at the beginning of the shared memory. */
typedef struct adm_shared {
  uint64_t magic;
  uint32_t version, layout; /* layout: a digest of sizes and offsets, so that a rebuilt module notices a change by itself */
  uint64_t bytes, seed;
  adm_shape shape;
  _Atomic uint32_t users_top; /* no place at or above it was ever an owner's; never lowered */
  _Atomic uint64_t inserting; /* token of the owner that may add entries */
  _Atomic uint64_t table_full, cells_full, owners_full, late_wakes;
  adm_group group[ADM_GROUPS];
  _Atomic uint64_t user[ADM_OWNERS];
  /* then the entries; then _Atomic uint64_t used[], a bit for each entry that ever had a key */
} adm_shared;

/* A table as a process has it, in memory of its own: how large things are is not read from memory that others write. */
struct adm_table {
  adm_shared *shared;
  size_t bytes, entry_bytes;
  adm_shape shape;
  uint64_t seed[2];
  uint64_t hold_first; /* the first byte of the hold file that is this table's */
  /* Of this process's requests; nobody else has to know it. In a line of its own: each request writes it, and all threads read the rest. */
  _Alignas(64) _Atomic uint32_t sequence;
};

/* How many places of owners have to be looked at. */
static inline uint32_t users_in_use(const adm_table *table) {
  uint32_t top = table->shared->users_top;
  return top < ADM_OWNERS ? top : ADM_OWNERS;
}

/* ---- places ---- */

/* Here and not in table.c: every request comes by them several times, and a call costs more than what they do. */

#define HEAD_BYTES ((sizeof(adm_shared) + 63) / 64 * 64)

static inline adm_entry *entry_at(const adm_table *table, uint32_t index) {
  char *first = (char *)table->shared + HEAD_BYTES;
  return (adm_entry *)(void *)(first + (index & (table->shape.entries - 1)) * table->entry_bytes);
}
static inline uint32_t entry_index(const adm_table *table, const adm_entry *entry) {
  size_t offset = (size_t)((const char *)entry - (const char *)entry_at(table, 0));
  return (uint32_t)(offset / table->entry_bytes);
}
/* The byte of the hold file for a cell. */
static inline uint64_t hold_byte(const adm_table *table, const adm_entry *entry, uint32_t cell) {
  return table->hold_first + (uint64_t)entry_index(table, entry) * table->shape.cells + cell;
}
/* Behind the entries, so that those are found as quickly. Whoever looks at all of them goes by it: to read an entry that was never used
 * would take its memory into use. */
static inline _Atomic uint64_t *used_of(const adm_table *table) {
  return (_Atomic uint64_t *)(void *)((char *)table->shared + HEAD_BYTES + table->shape.entries * table->entry_bytes);
}
/* The group that an entry belongs to. */
static inline adm_group *group_of(const adm_table *table, const adm_entry *entry) {
  return &table->shared->group[entry->group % ADM_GROUPS];
}
static inline _Atomic uint64_t *cells_of(adm_entry *entry) { return (_Atomic uint64_t *)(void *)(entry + 1); }
static inline _Atomic uint64_t *waiting_of(const adm_table *table, adm_entry *entry) { return cells_of(entry) + table->shape.cells; }
static inline _Atomic uint64_t *since_of(const adm_table *table, adm_entry *entry) { return waiting_of(table, entry) + table->shape.waiters; }
static inline adm_waiter *waiters_of(const adm_table *table, adm_entry *entry) {
  return (adm_waiter *)(void *)(since_of(table, entry) + table->shape.cells);
}
/* How many were ever used, bounded. */
static inline uint32_t cells_in_use(const adm_table *table, const adm_entry *entry) {
  uint32_t top = entry->cells_top;
  return top < table->shape.cells ? top : table->shape.cells;
}
static inline uint32_t waiters_in_use(const adm_table *table, const adm_entry *entry) {
  uint32_t top = entry->waiters_top;
  return top < table->shape.waiters ? top : table->shape.waiters;
}

static inline unsigned token_state(uint64_t token) { return (unsigned)(token >> TOKEN_STATE_SHIFT); }
static inline uint32_t token_sequence(uint64_t token) { return (uint32_t)(token >> TOKEN_SEQUENCE_SHIFT & TOKEN_SEQUENCE_MASK); }
static inline uint32_t token_cost(uint64_t token) { return (uint32_t)(token & ADM_COST_MAX); }
static inline uint64_t token_in_state(uint64_t token, unsigned state) {
  return (token & ~(UINT64_C(3) << TOKEN_STATE_SHIFT)) | ((uint64_t)state << TOKEN_STATE_SHIFT);
}
/* Whether a cell stands for permits of the tables before this one. */
static inline bool token_is_carried(uint64_t token) { return token_state(token) == CELL_LINGER && !(token & TOKEN_HOLD); }
/* The adm_owner that stands in a token. */
static inline adm_owner token_owner(uint64_t token) {
  return (adm_owner)((token >> TOKEN_INCARNATION_SHIFT) & 0x1fffff);
}

/* A token of this owner, which is this process, that no other request of it has (for the next 32768), in state FREE and of cost 0. */
static inline uint64_t token_make(adm_table *table, adm_owner owner) {
  uint64_t sequence = atomic_fetch_add_explicit(&table->sequence, 1, memory_order_relaxed) & TOKEN_SEQUENCE_MASK;
  return (uint64_t)owner << TOKEN_INCARNATION_SHIFT | sequence << TOKEN_SEQUENCE_SHIFT;
}

/* What a group's keys have mixed in, by XOR. */
static inline uint64_t group_mark(uint32_t group) { return ((uint64_t)group + 1) * UINT64_C(0x9e3779b97f4a7c15); }

/* The key of an entry: that of the request with the group mixed in. */
static inline uint64_t entry_key(uint32_t group, uint64_t key) {
  uint64_t mixed = key ^ group_mark(group);
  return mixed > KEY_LEAVING ? mixed : mixed + 2;
}

/* Whether this is the entry of an entry_key. */
static inline bool entry_is(const adm_entry *entry, uint64_t key) { return atomic_load_explicit(&entry->key, memory_order_acquire) == key; }

/* Called when it is looked up. Once a second is enough to be told from the idle, and keeps the line from going back and forth. What is
 * known from long ago says nothing any more: one slow request would turn others away for as long as few come. */
static ADM_INLINE void entry_touch(adm_entry *entry, uint64_t now_ns) {
  uint64_t used_ns = atomic_load_explicit(&entry->used_ns, memory_order_relaxed);
  if (now_ns - used_ns <= IDLE_NS / 4) return;
  if (now_ns > used_ns && now_ns - used_ns > FORGET_NS) entry->service_ns = entry->shadow = 0;
  entry->used_ns = now_ns;
}

/* The entry of an entry_key in its group, made if there is none; NULL when the table is full or cannot be changed now. */
adm_entry *entry_of(adm_table *table, adm_owner owner, uint32_t group, uint64_t key, const char *label, uint64_t now_ns);

/* The entry of an entry_key, or NULL: for who looks for many that are not there, since to read places that were never used would take
 * their memory into use. */
adm_entry *entry_known(adm_table *table, uint64_t key);
/* Makes one, where nobody else can be doing that and there is none yet; NULL when the table is full. */
adm_entry *entry_insert(adm_table *table, uint32_t group, uint64_t key, const char *label, uint64_t now_ns);

/* ---- the queue (queue.c) ---- */

/* How long a turn is kept for the one whose it is. Who has not come by then is stopped, or is being written to a core file, and may not
 * come for hours; the turn is still his, where there is room when he comes. */
#define TURN_NS UINT64_C(1000000000)

static inline uint64_t ago(uint64_t now_ns, uint64_t ns) { return now_ns > ns ? now_ns - ns : 0; }

/* How long a queue may stand before it counts as overloaded: 100 ms, or twice the time a permit is held if that is more. */
uint64_t queue_patience_ns(const adm_entry *entry);
/* Whether it is, for one who is let in up to `at_most`. Who has no lower limit of his own is not concerned by those who have. */
bool queue_overloaded(const adm_table *table, adm_entry *entry, uint32_t at_most, uint64_t now_ns);
/* Waiters of an entry in any state. */
uint32_t queue_length(const adm_table *table, adm_entry *entry);
/* How long a waiter sleeps, unless it is woken, before it looks round (adm_request.slice_ms): LOOK_NS where up to fifty wait in the queue, so that
 * all of one queue look 200 times a second together, and a second from two hundred on. If each of two hundred looks four times a second they take two per
 * cent of two CPUs from the programs that they wait for. */
#define LOOK_NS UINT64_C(250000000)
uint64_t queue_slice_ns(const adm_table *table, adm_entry *entry);
/* Whether anybody waits whom a newcomer that is let in up to `at_most` may not go past. */
bool queue_holds_up(const adm_table *table, adm_entry *entry, uint32_t at_most, uint64_t now_ns);
static inline bool queue_is_closed(const adm_table *table, adm_entry *entry, uint32_t at_most, uint64_t now_ns) {
  return entry->waiters_top != 0 && queue_holds_up(table, entry, at_most, now_ns);
}
/* How many wait whose turn comes before that of one who stands there. */
uint32_t queue_before(const adm_table *table, adm_entry *entry, const standing *mine, uint64_t now_ns);
/* Takes one of the `length` places that its group has in the queue; false when all are taken. Those of waiters whom this one may
 * go past do not count. The row of all places may be full before. */
bool queue_join(adm_table *table, adm_entry *entry, uint64_t token, uint32_t length, const standing *mine, uint32_t *place);
void queue_leave(adm_table *table, adm_entry *entry, uint32_t place, uint64_t token);
/* Sleeps until woken or `nanoseconds` passed; true when woken. Afterwards the waiter is WOKEN or still WAITING. */
bool queue_sleep(adm_table *table, adm_entry *entry, uint32_t place, uint64_t token, uint64_t nanoseconds);
/* After it was woken, or found its turn, in vain: back to waiting. */
void queue_again(adm_table *table, adm_entry *entry, uint32_t place, uint64_t token);
/* Whether this waiter is the next by the order of its group, the woken not counted. */
bool queue_next_is(adm_table *table, adm_entry *entry, uint32_t place, uint64_t now_ns);
/* Whether there is room for `cost` beside the permits and those whose turn it is, but for those that were woken `late_ns` ago or longer and
 * have not come: their processes are stopped. */
bool queue_leaves_room(const adm_table *table, adm_entry *entry, uint32_t cost, uint64_t now_ns, uint64_t late_ns);
/* Wakes as many waiters as there is room for. Called after everything that makes room. */
void queue_wake_waiting(adm_table *table, adm_entry *entry, uint64_t now_ns);
static inline void queue_wake(adm_table *table, adm_entry *entry, uint64_t now_ns) {
  if (entry->waiters_top != 0) queue_wake_waiting(table, entry, now_ns); /* else nobody ever waited here */
}

#endif
