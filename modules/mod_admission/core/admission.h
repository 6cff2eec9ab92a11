/*
 * admission.h: the decisions of mod_admission, in plain C.
 *
 * Who may run now, who waits and who is turned away is decided here, on one piece of memory that all processes of the
 * server share. Nothing here knows httpd, APR, files or the network: the clock and the world come in as arguments, so
 * that every rule is tested without a server (tests/) and by threads and forks that are killed at every step.
 *
 * The words:
 *   group    a rule with a name and a limit, as AdmissionGroup writes it; its settings can change while it is in use
 *   entry    one thing that a group counts: a file, a virtual host, a client; a group with key=server has one entry
 *   cell     a place for one permit in an entry: one 64-bit word, 0 or the token of who holds it
 *   permit   a cell that is held; it weighs its cost (1 where requests are counted, a size where memory is)
 *   owner    a process that may hold permits and wait; its number stands in every token
 *   waiter   a request in the queue of an entry
 *   layer    one entry with a limit and a cost; a request needs a permit in each of its layers at once
 *
 * Why cells and not counters: one atomic write both takes a permit and names its owner. There is no moment at which a
 * process can die and leave a number behind that nobody can explain, so the permits of the dead are simply taken back
 * (adm_sweep) and those of the living, stopped ones included, never are.
 *
 * How a limit is kept without a lock (permit.h): publish, then look. A process writes its claim into a free cell and
 * only then adds up all cells; it keeps the cell when the sum fits. Of all permits held at one moment, the one whose
 * claim was written last has seen all the others, so the sum never passes the limit.
 */
#ifndef ADMISSION_H
#define ADMISSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* For what is a function for its readers only: each request goes through it. */
#define ADM_INLINE inline __attribute__((always_inline))

#define ADM_GROUPS 64        /* groups that fit into a table, the two of the module's own included */
#define ADM_OWNERS 4096      /* processes that can be told apart: 12 bits of a token */
#define ADM_LAYERS 8         /* layers of one request, the memory budget included */
#define ADM_NAME 32          /* bytes of a group's name with its end */
#define ADM_LABEL 120        /* bytes of an entry's label with its end; longer ones keep their end, where files differ */
#define ADM_BUCKETS 28       /* buckets of a histogram: bucket b counts times below 2^b microseconds, the last all others */
#define ADM_WINDOWS 8        /* times of day with a limit of their own, in one group */
#define ADM_COST_UNIT 65536u /* bytes that one unit of a memory cost stands for; 24 bits of a token: up to 1 TiB */
#define ADM_COST_MAX 0xffffffu
#define ADM_UNLIMITED 0xffffffffu

/* The groups that every table has: the memory budget, whose limit and costs are in ADM_COST_UNITs, and the workers that
 * may wait at the same time. */
#define ADM_GROUP_MEMORY 0
#define ADM_GROUP_WAITING 1
#define ADM_GROUP_FIRST 2

/* ---- settings: what a group is told; settings.c reads them from text ------------------------------------------- */

typedef enum { ADM_OFF, ADM_OBSERVE, ADM_ENFORCE } adm_mode;
typedef enum { ADM_FIFO, ADM_LIFO, ADM_ADAPTIVE } adm_order;
typedef enum { ADM_KEY_FILE, ADM_KEY_INODE, ADM_KEY_VHOST, ADM_KEY_LOCATION, ADM_KEY_CLIENT, ADM_KEY_SERVER, ADM_KEY_EXPR } adm_key;

/* A time of day with a limit of its own: from `from` (inclusive) to `until` (exclusive), in minutes of the local day;
 * a window whose end is not after its start goes over midnight. */
typedef struct adm_window {
  uint16_t from, until;
  uint32_t limit;
} adm_window;

typedef struct adm_settings {
  uint32_t limit;      /* permits at once, per entry; ADM_UNLIMITED for none */
  uint32_t queue;      /* requests that may wait, per entry; 0: nobody waits, who finds no permit is turned away */
  uint32_t timeout_ms; /* how long a request may wait */
  uint32_t status;     /* what a rejected client gets, 400 to 599 */
  uint32_t cost;       /* ADM_COST_UNITs of the memory budget that one permit takes; 0: none */
  uint32_t min, max;   /* bounds of an adaptive limit */
  uint8_t mode;        /* adm_mode */
  uint8_t order;       /* adm_order */
  uint8_t key;         /* adm_key */
  uint8_t adaptive;    /* 1: the controller moves the limit between min and max by the pressure on memory */
  uint8_t learn;       /* 1: the cost is learned, `cost` is where it starts */
  uint8_t hold;        /* 0: until the handler returns; 1: until the last byte is sent (hold=response) */
  uint8_t windows;     /* how many of `window` are in use */
  adm_window window[ADM_WINDOWS];
} adm_settings;

/* ---- the table: shared memory, made once in the life of the parent process ------------------------------------- */

/* How many of what a table has room for. */
typedef struct adm_shape {
  uint32_t entries; /* a power of two */
  uint32_t cells;   /* per entry: also the most permits that an entry can count */
  uint32_t waiters; /* per adm_entry */
} adm_shape;

typedef struct adm_counts {
  _Atomic uint64_t admitted;     /* at once */
  _Atomic uint64_t queued;       /* after a wait */
  _Atomic uint64_t rejected;     /* no permit, and no place in the queue or no use in waiting */
  _Atomic uint64_t timeout;      /* waited in vain */
  _Atomic uint64_t gone;         /* the client left while it waited */
  _Atomic uint64_t would_reject; /* observe: let through, and would have been turned away */
  _Atomic uint64_t would_queue;  /* observe: let through at once, and would have waited */
  _Atomic uint64_t open;         /* let through because the table could not say: table full, no owner */
  _Atomic uint64_t bypass;       /* error pages and requests inside requests that were let through */
  _Atomic uint64_t reaped;       /* permits of dead processes taken back */
  _Atomic uint64_t long_hold;    /* permits held longer than AdmissionMaxHold */
} adm_counts;

typedef struct adm_histogram {
  _Atomic uint64_t bucket[ADM_BUCKETS];
  _Atomic uint64_t sum_us;
} adm_histogram;

/* A group as all processes see it. Every word is changed and read by itself; `settings_limit` is what the configuration
 * or the control file says, `limit` what is in force now (adaptive control and times of day move it). */
typedef struct adm_group {
  char name[ADM_NAME]; /* empty: free */
  _Atomic uint32_t limit, settings_limit, queue, timeout_ms, status, cost, settings_cost, min, max;
  _Atomic uint32_t mode, order, adaptive, learn, hold;
  _Atomic uint32_t retired;    /* how many configurations in a row have not named it: its place may be given to another */
  _Atomic uint32_t full;       /* how often somebody was turned away, or would have been, by `limit` itself and no lower one of his own; also who would have waited */
  adm_counts counts;
  adm_histogram wait, service;
} adm_group;

/* table.h has the layout of both, for the core and its tests only. */
typedef struct adm_table adm_table;
typedef struct adm_entry adm_entry;

/* Bytes that a table of this shape takes. */
size_t adm_table_bytes(adm_shape shape);

/* Makes a table in `memory`, which is zeroed, shared and adm_table_bytes long. `seed` keys the hash. What comes back is the
 * process's own view of it, which its forks inherit (and join anew); NULL when the shape is impossible or there is no memory. */
adm_table *adm_table_make(void *memory, adm_shape shape, uint64_t seed);

/* The table in `memory` of `bytes`, or NULL when it was made by another version of this module or is damaged. */
adm_table *adm_table_known(void *memory, size_t bytes);

/* Gives the view back; the table itself stays in its memory. */
void adm_table_forget(adm_table *table);

adm_shape adm_table_shape(const adm_table *table);
uint64_t adm_table_seed(const adm_table *table);

/* The group of this name, or -1. */
int adm_group_find(const adm_table *table, const char *name);
/* Whether a group of the configuration in force has this name; one that a reload has left out keeps it for a while. */
bool adm_group_is_configured(const adm_table *table, const char *name);

/* The group of this name, made if there is none, in the place of a retired one that nobody is in if need be, of these the one that was
 * named longest ago; -1 when all are in use. Called by the parent only, at configuration, when the groups that it names are kept and all
 * others retired: else one that comes back might have to share its place. */
int adm_group_add(adm_table *table, const char *name);

adm_group *adm_group_at(adm_table *table, int group);

/* Puts settings in force, word by word. Waiters look at them again within a slice (adm_request.slice_ms). */
void adm_group_apply(adm_group *group, const adm_settings *settings);

/* Before settings are put in force for the first time: what was learned and adapted in a table that this one replaces, so that they find it
 * there as after any reload. */
void adm_group_learned(adm_group *group, const adm_group *before);

/* For a group that the configuration does not name any more: it limits nothing, those in it give their permits back as ever. */
void adm_group_retire(adm_group *group);
/* For one that it names, again perhaps: its place is nobody else's. */
void adm_group_keep(adm_group *group);

/* The limit that the settings ask for at this minute of the day. */
uint32_t adm_limit_at(const adm_settings *settings, unsigned minute);

/* Times that the table as a whole could not do its work. */
typedef struct adm_troubles {
  uint64_t table_full;  /* no place for one more adm_entry */
  uint64_t cells_full;  /* an entry below its limit had no free cell */
  uint64_t owners_full; /* no place for one more process */
  uint64_t late_wakes;  /* waiters that found their permit by looking, not by being woken */
} adm_troubles;
adm_troubles adm_table_troubles(const adm_table *table);

/* ---- owners ---------------------------------------------------------------------------------------------------- */

/* A process, told from a later one of the same number by its start time (field 22 of /proc/PID/stat). */
typedef struct adm_process {
  uint32_t pid;
  uint32_t start;
} adm_process;

/* An owner's place in the table and which of its users this one is; ADM_NOBODY when there was no place. */
typedef uint32_t adm_owner;
#define ADM_NOBODY 0xffffffffu

adm_owner adm_owner_join(adm_table *table, adm_process process);

/* What was taken back. */
typedef struct adm_swept {
  unsigned permits; /* those that a program keeps included */
  bool room;        /* whether there is room now for others: a permit's, or in a queue */
} adm_swept;

/* Takes back all that the owner had and frees its place. Any process may call it for any owner that is *dead*, several
 * at once too. `lingers` is asked for permits with a program behind them (hold files). */
typedef bool (*adm_lingers)(void *world, uint64_t hold);
adm_swept adm_sweep(adm_table *table, adm_owner owner, adm_lingers lingers, void *world);

/* Calls `dead` for each owner, or for those of one number of a process, and sweeps those for which it says true. */
typedef bool (*adm_dead)(void *world, adm_process process);
adm_swept adm_sweep_dead(adm_table *table, uint32_t pid, adm_dead dead, adm_lingers lingers, void *world);

/* Frees the permits whose process is gone and whose program has ended since. */
unsigned adm_settle(adm_table *table, adm_lingers lingers, void *world);

/* Whether a process has joined that was not swept yet, or a permit is held. */
bool adm_table_in_use(const adm_table *table);

/* A table that replaces others counts what is still held there: in each entry, the permits of its key in the `earlier` ones (NULL behind
 * the last), found by the names of groups. They have the same seed, or nothing of theirs is known here; what they carry themselves is not
 * counted twice. The first makes entries for all that is held, and is for one who is alone in `table`, before anybody joins it. The second is
 * for the controller, again and again: what was given back there makes room here, and wakes those that wait for it. Whether it changed
 * anything. With no earlier tables nothing is carried any more. */
void adm_carry_first(adm_table *table, adm_table *const *earlier);
bool adm_carry(adm_table *table, adm_table *const *earlier);

/* The owner of a process, or ADM_NOBODY. */
adm_owner adm_owner_of(const adm_table *table, uint32_t pid);

/* ---- requests --------------------------------------------------------------------------------------------------- */

typedef struct adm_layer {
  int group;          /* adm_group_find */
  uint64_t key;       /* adm_hash of what the group counts; the group is mixed in by the table */
  const char *label;  /* for people: the file, the host */
  uint32_t at_most;   /* a limit below the group's, from .htaccess, a policy or a time of day; ADM_UNLIMITED for none */
  uint32_t cost;      /* 1, or units of memory */
} adm_layer;

/* What is asked of the one whose request waits; functions that are not there may be NULL. */
typedef struct adm_client {
  bool (*wanted)(void *world); /* false when nobody waits for the answer any more */
  uint32_t (*enter)(void *world); /* before it waits: for how many milliseconds at most, 0 not at all */
  void (*leave)(void *world);  /* when it waits no more, if it was let */
} adm_client;

typedef struct adm_request {
  const adm_layer *layer; /* in a fixed order, the narrowest first (file, host, server, memory) */
  unsigned layers;
  int manners;            /* the group whose `queue` and `timeout` hold where it waits for memory; 0: the budget's own do */
  bool may_wait;          /* false for a request inside one that holds permits: it must not wait for itself */
  bool observe;           /* no group turns this one away, whatever its mode */
  bool hold_file;         /* the permit is tied to a program (AdmissionHoldFd) */
  bool tells_later;       /* ADM_REJECTED is not counted: the caller may ask once more, and then calls adm_tell_rejected */
  int32_t priority;       /* lower goes first */
  uint32_t slice_ms;      /* how often a waiting request looks around (client gone, settings changed); 0: the less often the more wait */
  const adm_client *client; /* NULL: nobody is asked */
  void *world;              /* the client's */
} adm_request;

typedef enum {
  ADM_ADMITTED,     /* at once */
  ADM_QUEUED,       /* admitted after a wait */
  ADM_WOULD_REJECT, /* admitted because the full group only observes */
  ADM_WOULD_QUEUE,  /* the same where it would have waited for its permit */
  ADM_OPEN,         /* admitted because the table could not say */
  ADM_REJECTED,     /* no permit, and no place in the queue or no use in waiting */
  ADM_TIMEOUT,      /* waited in vain */
  ADM_GONE          /* the client left while it waited */
} adm_outcome;

/* A permit, to be given back. */
typedef struct adm_permit {
  adm_entry *entry;
  uint16_t cell, layer; /* of the entry's and the request's */
  float reckoned;       /* work that stands in its stead in the entry's shadow (core/observe.h); 0: none */
  uint64_t token; /* 0: none */
} adm_permit;

typedef struct adm_answer {
  adm_outcome outcome;
  int group;              /* the group that was full (of those that only observe the first that would have turned it away, or else had it wait), -1 when none was */
  uint32_t limit, held;   /* of that group's entry, or of the first layer's */
  uint64_t wait_ns;       /* how long it waited */
  uint64_t predicted_ns;  /* when a rejected client may find a permit, as far as the means tell; 0: unknown */
  uint64_t since_ns;      /* when it was admitted */
  unsigned permits;
  adm_permit permit[ADM_LAYERS];
} adm_answer;

/* Decides about one request; waits, if it may. `now` is CLOCK_MONOTONIC in nanoseconds. */
adm_outcome adm_admit(adm_table *table, adm_owner owner, const adm_request *request, adm_answer *answer);

/* Counts an answer ADM_REJECTED to a request that `tells_later`: a counter of refusals that went up and down again would be taken for one
 * that began anew. */
void adm_tell_rejected(adm_table *table, const adm_answer *answer);

/* Gives the permits of an answer back; a second call does nothing. `lingers` as for adm_sweep, or NULL. */
void adm_release(adm_table *table, adm_answer *answer, adm_lingers lingers, void *world);

static inline bool adm_was_admitted(adm_outcome outcome) { return outcome <= ADM_OPEN; }
const char *adm_outcome_name(adm_outcome outcome); /* "admit", "queued", "would-reject", "would-queue", "open", "reject", "timeout", "gone" */

/* The byte of the hold file that stands for a permit; that of another table, before or after a restart, is another. */
uint64_t adm_hold_byte(const adm_table *table, const adm_permit *permit);

/* Keyed with the table's seed: who chooses the bytes cannot choose where they land. */
uint64_t adm_hash(const adm_table *table, const void *bytes, size_t length);

static inline uint64_t adm_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Wakes those waiters of all entries that find room now: after a limit was raised, and as a safety net. */
void adm_wake_all(adm_table *table);

/* ---- looking -------------------------------------------------------------------------------------------------- */

/* An entry as it was at one moment, for status pages and the controller. */
typedef struct adm_seen {
  int group;
  char label[ADM_LABEL];
  uint32_t held;      /* permits, in units of the group (requests, or ADM_COST_UNITs of the memory budget) */
  uint32_t lingering; /* permits whose process is gone or done and whose program still runs */
  uint32_t waiting;
  uint64_t oldest_ns; /* how long the oldest permit is held */
} adm_seen;

/* Fills in the entry `index` (0 to shape.entries - 1); false when it is free. */
bool adm_look(const adm_table *table, uint32_t index, uint64_t now_ns, adm_seen *seen);
/* The first entry from `from` on that ever had a key; the number of entries when there is none. */
uint32_t adm_entry_next(const adm_table *table, uint32_t from);

/* A permit as it was at one moment: whose it is. For learning costs. */
typedef struct adm_holder {
  adm_process process;
  int group;          /* the group of the entry it is in */
  uint32_t request;   /* tells the requests of a process apart: the same for all permits of one */
  uint32_t cost;
  uint64_t held_ns;
} adm_holder;

/* Calls `each` for every permit that a living process holds. */
void adm_holders(const adm_table *table, uint64_t now_ns, void (*each)(void *world, const adm_holder *holder), void *world);

#endif
