/*
 * table.c: the shared memory itself: its layout, its groups, owners and entries, and what is taken back from the dead.
 * It does not know when a request may run; that is permit.h, queue.c and, for all layers together, admit.c.
 */
#include "table.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PROBES 16                         /* places that a key may be in */
#define INSERT_SPINS 2000                 /* how long to try for the right to add an entry, before failing open */

/* ---- layout ---- */

static size_t entry_bytes(adm_shape shape) {
  size_t bytes = sizeof(adm_entry) + (size_t)shape.cells * 2 * sizeof(uint64_t) + (size_t)shape.waiters * (sizeof(uint64_t) + sizeof(adm_waiter));
  return (bytes + 63) / 64 * 64;
}

static uint32_t layout_digest(void) {
  const size_t parts[] = {sizeof(adm_shared), sizeof(adm_group), sizeof(adm_waiter), sizeof(adm_entry),
                          offsetof(adm_shared, group), offsetof(adm_shared, user), offsetof(adm_group, counts),
                          offsetof(adm_group, wait), offsetof(adm_entry, label), offsetof(adm_entry, service_ns),
                          ADM_GROUPS, ADM_OWNERS, ADM_BUCKETS};
  uint32_t digest = 2166136261u;
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) digest = (digest ^ (uint32_t)parts[i]) * 16777619u;
  return digest;
}

static bool shape_fits(adm_shape shape) {
  return shape.entries >= PROBES && shape.entries <= 1u << 20 && (shape.entries & (shape.entries - 1)) == 0 &&
         shape.cells >= 1 && shape.cells <= 1u << 16 && shape.waiters >= 1 && shape.waiters <= 1u << 12;
}

size_t adm_table_bytes(adm_shape shape) {
  size_t used = (shape.entries / 8 + 63) / 64 * 64;
  return shape_fits(shape) ? HEAD_BYTES + shape.entries * entry_bytes(shape) + used : 0;
}

/* What this process keeps of a table of this shape in `shared`. */
static adm_table *handle_of(adm_shared *shared, adm_shape shape, uint64_t seed) {
  adm_table *table = aligned_alloc(_Alignof(adm_table), sizeof *table);
  if (!table) return NULL;
  *table = (adm_table){.shared = shared, .bytes = adm_table_bytes(shape), .entry_bytes = entry_bytes(shape), .shape = shape,
                       .seed = {seed, seed * UINT64_C(0x9e3779b97f4a7c15) + 1}};
  /* A program may outlive the table that its permit was in, and goes on to lock its byte: those of the next table begin elsewhere, at one
   * of 2^30 places. Everybody may read where locks are (/proc/locks): to find the seed from these few bits takes trying all of them. A
   * table with the seed of the one that it replaces has another shape. */
  table->hold_first = adm_hash(table, &shape, sizeof shape) >> 34 << 32;
  return table;
}

adm_table *adm_table_make(void *memory, adm_shape shape, uint64_t seed) {
  adm_shared *shared = memory;
  adm_table *table = shape_fits(shape) ? handle_of(shared, shape, seed) : NULL;
  if (!table) return NULL;
  shared->version = ADM_VERSION;
  shared->layout = layout_digest();
  shared->bytes = table->bytes;
  shared->seed = seed;
  shared->shape = shape;
  adm_settings own = {.limit = ADM_UNLIMITED, .mode = ADM_ENFORCE, .status = 503};
  strcpy(shared->group[ADM_GROUP_MEMORY].name, "memory");
  strcpy(shared->group[ADM_GROUP_WAITING].name, "queue-workers");
  adm_group_apply(&shared->group[ADM_GROUP_MEMORY], &own);
  adm_group_apply(&shared->group[ADM_GROUP_WAITING], &own);
  /* There always, however full the table gets (vacate). */
  entry_insert(table, ADM_GROUP_WAITING, entry_key(ADM_GROUP_WAITING, 0), "", 0);
  entry_insert(table, ADM_GROUP_MEMORY, entry_key(ADM_GROUP_MEMORY, 0), "memory", 0);
  shared->magic = ADM_MAGIC; /* last: a table that was not finished is not known */
  return table;
}

adm_table *adm_table_known(void *memory, size_t bytes) {
  adm_shared *shared = memory;
  bool ours = shared != NULL && bytes >= sizeof *shared && shared->magic == ADM_MAGIC && shared->version == ADM_VERSION &&
              shared->layout == layout_digest();
  if (!ours) return NULL;
  adm_shape shape = shared->shape;
  return shape_fits(shape) && adm_table_bytes(shape) == bytes && shared->bytes == bytes ? handle_of(shared, shape, shared->seed) : NULL;
}

void adm_table_forget(adm_table *table) { free(table); }

adm_shape adm_table_shape(const adm_table *table) { return table->shape; }

uint64_t adm_table_seed(const adm_table *table) { return table->seed[0]; }

adm_troubles adm_table_troubles(const adm_table *table) {
  return (adm_troubles){table->shared->table_full, table->shared->cells_full, table->shared->owners_full, table->shared->late_wakes};
}

/* ---- groups ---- */

static bool unused(const adm_table *table, adm_entry *entry) {
  for (uint32_t i = 0; i < cells_in_use(table, entry); i++)
    if (cells_of(entry)[i] != 0) return false;
  for (uint32_t i = 0; i < waiters_in_use(table, entry); i++)
    if (waiting_of(table, entry)[i] != 0) return false;
  return true;
}

/* Whether somebody waits here by what this group says: in the queue of the budget, before it holds anything. */
static bool waits_by_its_manners(const adm_table *table, adm_entry *entry, uint32_t group) {
  for (uint32_t i = 0; i < waiters_in_use(table, entry); i++)
    if (waiting_of(table, entry)[i] != 0 && waiters_of(table, entry)[i].group == group) return true;
  return false;
}

static bool group_is_used(const adm_table *table, uint32_t group) {
  for (uint32_t i = adm_entry_next(table, 0); i < table->shape.entries; i = adm_entry_next(table, i + 1)) {
    adm_entry *entry = entry_at(table, i);
    if (entry->key != KEY_FREE && entry->group == group && !unused(table, entry)) return true;
    if (entry->group == ADM_GROUP_MEMORY && waits_by_its_manners(table, entry, group)) return true;
  }
  return false;
}

int adm_group_find(const adm_table *table, const char *name) {
  for (int i = 0; i < ADM_GROUPS; i++)
    if (name[0] != '\0' && strncmp(table->shared->group[i].name, name, ADM_NAME) == 0) return i;
  return -1;
}

bool adm_group_is_configured(const adm_table *table, const char *name) {
  int group = adm_group_find(table, name);
  return group >= ADM_GROUP_FIRST && !table->shared->group[group].retired;
}

int adm_group_add(adm_table *table, const char *name) {
  int known = adm_group_find(table, name);
  if (known >= 0 || name[0] == '\0' || strlen(name) >= ADM_NAME) return known;
  adm_group *groups = table->shared->group;
  int place = -1;
  for (int i = ADM_GROUP_FIRST; i < ADM_GROUPS; i++) {
    bool is_free = groups[i].name[0] == '\0';
    if (!is_free && (groups[i].retired == 0 || group_is_used(table, (uint32_t)i))) continue;
    /* Children of the configuration before may still come to a place that it named: those of long ago go first. */
    if (is_free || place < 0 || groups[i].retired > groups[place].retired) place = i;
    if (is_free) break;
  }
  if (place < 0) return -1;
  memset((void *)&groups[place], 0, sizeof groups[place]);
  strcpy(groups[place].name, name);
  return place;
}

adm_group *adm_group_at(adm_table *table, int group) {
  return group >= 0 && group < ADM_GROUPS ? &table->shared->group[group] : NULL;
}

void adm_group_apply(adm_group *group, const adm_settings *settings) {
  group->queue = settings->queue;
  group->timeout_ms = settings->timeout_ms;
  group->status = settings->status;
  group->min = settings->min;
  group->max = settings->max;
  group->order = settings->order;
  group->hold = settings->hold;
  group->learn = settings->learn;
  STEP("settings: partly");
  /* A learned cost and an adapted limit outlive the settings that they started from, unless these are others now. */
  if (!settings->learn || group->settings_cost != settings->cost) group->cost = settings->cost;
  if (!settings->adaptive || !group->adaptive || group->settings_limit != settings->limit) group->limit = settings->limit;
  group->settings_cost = settings->cost;
  STEP("settings: mostly");
  group->settings_limit = settings->limit;
  group->adaptive = settings->adaptive;
  group->retired = 0;
  group->mode = settings->mode;
}

void adm_group_learned(adm_group *group, const adm_group *before) {
  group->cost = before->cost;
  group->settings_cost = before->settings_cost;
  group->limit = before->limit;
  group->settings_limit = before->settings_limit;
  group->adaptive = before->adaptive;
}

void adm_group_retire(adm_group *group) {
  group->mode = ADM_OFF;
  if (group->retired < UINT32_MAX) group->retired++;
}

void adm_group_keep(adm_group *group) { group->retired = 0; }

uint32_t adm_limit_at(const adm_settings *settings, unsigned minute) {
  for (unsigned i = 0; i < settings->windows && i < ADM_WINDOWS; i++) {
    const adm_window *window = &settings->window[i];
    bool over_midnight = window->until <= window->from;
    bool inside = over_midnight ? minute >= window->from || minute < window->until
                                : minute >= window->from && minute < window->until;
    if (inside) return window->limit;
  }
  return settings->limit;
}

/* ---- owners ---- */

adm_owner adm_owner_join(adm_table *table, adm_process process) {
  if (process.pid == 0 || process.pid > USER_PID_MAX) return ADM_NOBODY;
  uint64_t mine = (uint64_t)process.pid << USER_PID_SHIFT | (uint64_t)process.start << USER_START_SHIFT;
  for (uint32_t i = 0; i < ADM_OWNERS; i++) {
    _Atomic uint64_t *place = &table->shared->user[i];
    uint64_t user = *place;
    if (!user_is_free(user)) continue;
    /* Raised before: who looks for the dead must not overlook this one. */
    uint32_t top = table->shared->users_top;
    while (top <= i && !atomic_compare_exchange_weak(&table->shared->users_top, &top, i + 1)) {}
    STEP("owner: top raised");
    if (!atomic_compare_exchange_strong(place, &user, mine | (user & TOKEN_INCARNATION_MASK))) continue;
    STEP("owner: joined");
    return user_owner(i, user);
  }
  table->shared->owners_full++;
  return ADM_NOBODY;
}

adm_owner adm_owner_of(const adm_table *table, uint32_t pid) {
  for (uint32_t i = 0; i < users_in_use(table); i++) {
    uint64_t user = table->shared->user[i];
    if (!user_is_free(user) && user_process(user).pid == pid) return user_owner(i, user);
  }
  return ADM_NOBODY;
}

/* Owners who are gone: each at its place, ADM_NOBODY at the others. To go through all entries once is enough for all of them. */
typedef struct gone {
  adm_owner at[ADM_OWNERS];
  bool any;
} gone;

static uint32_t place_of(adm_owner owner) { return (owner >> 9) % ADM_OWNERS; }

static bool is_gone(const gone *gone, adm_owner owner) { return owner != ADM_NOBODY && gone->at[place_of(owner)] == owner; }

static void add_gone(gone *gone, adm_owner owner) {
  if (!gone->any) { /* the first: mostly nobody is */
    for (uint32_t i = 0; i < ADM_OWNERS; i++) gone->at[i] = ADM_NOBODY;
  }
  gone->at[place_of(owner)] = owner;
  gone->any = true;
}

/* Takes back what they have in one entry. */
static adm_swept sweep_entry(adm_table *table, adm_entry *entry, const gone *gone, adm_lingers lingers, void *world) {
  _Atomic uint64_t *cell = cells_of(entry), *waiting = waiting_of(table, entry);
  adm_swept swept = {0};
  for (uint32_t i = 0; i < cells_in_use(table, entry); i++) {
    uint64_t token = cell[i];
    unsigned state = token_state(token);
    if ((state != CELL_CLAIM && state != CELL_HELD) || !is_gone(gone, token_owner(token))) continue;
    bool stays = state == CELL_HELD && (token & TOKEN_HOLD) && lingers && lingers(world, hold_byte(table, entry, i));
    if (!atomic_compare_exchange_strong(&cell[i], &token, stays ? token_in_state(token, CELL_LINGER) : 0)) continue;
    swept.room |= !stays;
    swept.permits += state == CELL_HELD;
  }
  for (uint32_t i = 0; i < waiters_in_use(table, entry); i++) {
    uint64_t token = waiting[i];
    /* Again, when somebody wakes the dead one meanwhile: a turn that nobody takes would be kept for it for ever. */
    while (token_state(token) != WAITER_FREE && is_gone(gone, token_owner(token))) {
      STEP("sweep: found waiting");
      if (!atomic_compare_exchange_strong(&waiting[i], &token, 0)) continue;
      swept.room = true;
      break;
    }
  }
  STEP("sweep: taken back");
  if (swept.permits > 0) group_of(table, entry)->counts.reaped += swept.permits;
  queue_wake(table, entry, adm_now_ns()); /* always: who took something back before may have died here, and told nobody */
  return swept;
}

static adm_swept both(adm_swept a, adm_swept b) { return (adm_swept){a.permits + b.permits, a.room || b.room}; }

static adm_swept sweep(adm_table *table, const gone *gone, adm_lingers lingers, void *world) {
  adm_swept swept = {0};
  uint64_t inserting = table->shared->inserting;
  if (inserting != 0 && is_gone(gone, token_owner(inserting))) atomic_compare_exchange_strong(&table->shared->inserting, &inserting, 0);
  for (uint32_t i = adm_entry_next(table, 0); i < table->shape.entries; i = adm_entry_next(table, i + 1)) {
    adm_entry *entry = entry_at(table, i);
    if (entry->cells_top != 0 || entry->waiters_top != 0) swept = both(swept, sweep_entry(table, entry, gone, lingers, world));
    STEP("sweep: entry");
  }
  for (uint32_t i = 0; i < users_in_use(table); i++) {
    uint64_t user = table->shared->user[i];
    if (user_is_free(user) || !is_gone(gone, user_owner(i, user))) continue;
    /* Free, with the next incarnation: a token of the dead one must not be the next one's. */
    atomic_compare_exchange_strong(&table->shared->user[i], &user, (user + 1) & TOKEN_INCARNATION_MASK);
    STEP("sweep: freed");
  }
  return swept;
}

adm_swept adm_sweep(adm_table *table, adm_owner owner, adm_lingers lingers, void *world) {
  if (owner == ADM_NOBODY) return (adm_swept){0};
  uint64_t user = table->shared->user[place_of(owner)];
  /* Somebody else swept it and it may have a new user already: nothing in the table is the dead one's. */
  if (user_is_free(user) || user_owner(place_of(owner), user) != owner) return (adm_swept){0};
  gone one;
  one.any = false;
  add_gone(&one, owner);
  return sweep(table, &one, lingers, world);
}

adm_swept adm_sweep_dead(adm_table *table, uint32_t pid, adm_dead dead, adm_lingers lingers, void *world) {
  gone all;
  all.any = false;
  for (uint32_t i = 0; i < users_in_use(table); i++) {
    uint64_t user = table->shared->user[i];
    adm_process process = user_process(user);
    if (user_is_free(user) || (pid != 0 && process.pid != pid) || !dead(world, process)) continue;
    add_gone(&all, user_owner(i, user));
  }
  return all.any ? sweep(table, &all, lingers, world) : (adm_swept){0};
}

unsigned adm_settle(adm_table *table, adm_lingers lingers, void *world) {
  unsigned permits = 0;
  for (uint32_t e = adm_entry_next(table, 0); e < table->shape.entries; e = adm_entry_next(table, e + 1)) {
    adm_entry *entry = entry_at(table, e);
    for (uint32_t i = 0; i < cells_in_use(table, entry); i++) {
      uint64_t token = cells_of(entry)[i];
      if (token_state(token) == CELL_LINGER && !token_is_carried(token) && !(lingers && lingers(world, hold_byte(table, entry, i))))
        permits += atomic_compare_exchange_strong(&cells_of(entry)[i], &token, 0);
    }
    STEP("settle: entry");
    queue_wake(table, entry, adm_now_ns()); /* always, as in a sweep */
  }
  return permits;
}

/* ---- entries ---- */

/* Makes the entry free for another key if nobody uses it. Who takes a permit looks at the key again after its claim was
 * written (permit.h), and the claims are looked at here after the key was written: one of the two sees the other. */
static bool vacate(adm_table *table, adm_entry *entry, uint64_t idle_ns, uint64_t now_ns) {
  uint64_t key = entry->key;
  if (key == KEY_LEAVING) return unused(table, entry); /* left behind by one who died here; we have the right to insert */
  if (entry->group < ADM_GROUP_FIRST) return false; /* a table that fills up must take away neither the room to wait in nor the budget */
  if (now_ns - entry->used_ns < idle_ns || now_ns < entry->used_ns || !unused(table, entry)) return false;
  entry->leaving_key = key; /* for put_back, if this one dies */
  if (!atomic_compare_exchange_strong(&entry->key, &key, KEY_LEAVING)) return false;
  STEP("vacate: leaving");
  if (unused(table, entry)) return true;
  entry->key = key;
  return false;
}

static bool was_used(const adm_table *table, uint32_t index) { return used_of(table)[index / 64] >> index % 64 & 1; }

adm_entry *entry_known(adm_table *table, uint64_t key) {
  for (uint32_t i = 0; i < PROBES; i++) {
    uint32_t index = (uint32_t)(key + i) & (table->shape.entries - 1);
    if (was_used(table, index) && entry_is(entry_at(table, index), key)) return entry_at(table, index);
  }
  return NULL;
}

/* The same for who makes one where there is none, mostly in the first place: the others are not to be taken into use for it. */
static adm_entry *find(adm_table *table, uint64_t key) {
  adm_entry *first = entry_at(table, (uint32_t)key);
  return entry_is(first, key) ? first : entry_known(table, key);
}

/* Entries that somebody wanted to give to another key, saw in use, and died before the key was back: else their key would
 * be given a second entry, with a limit of its own. Where it has been given one already, what is in the first is about to leave: who
 * claims there finds its key gone. */
static void put_back(adm_table *table, uint64_t key) {
  for (uint32_t i = 0; i < PROBES; i++) {
    adm_entry *entry = entry_at(table, (uint32_t)(key + i));
    if (!was_used(table, entry_index(table, entry))) continue;
    uint64_t left = entry->leaving_key;
    if (entry->key == KEY_LEAVING && left != 0 && !unused(table, entry) && !find(table, left)) entry->key = left;
  }
}

static void describe(adm_entry *entry, uint32_t group, const char *label, uint64_t now_ns) {
  size_t length = strlen(label);
  const char *from = length < ADM_LABEL ? label : label + (length - (ADM_LABEL - 1));
  entry->leaving_key = 0; /* it is the former key's no more, whatever happens now */
  memset(entry->label, 0, ADM_LABEL);
  strncpy(entry->label, from, ADM_LABEL - 1);
  entry->group = group;
  entry->used_ns = entry->calm_ns = entry->clear_ns = now_ns;
  entry->service_ns = entry->shadow = 0;
}

static void mark_used(adm_table *table, const adm_entry *entry) {
  uint32_t index = entry_index(table, entry);
  atomic_fetch_or(&used_of(table)[index / 64], UINT64_C(1) << index % 64);
}

/* Only the one whose token is in `inserting` comes here, or is alone: so a key never has two entries. */
adm_entry *entry_insert(adm_table *table, uint32_t group, uint64_t key, const char *label, uint64_t now_ns) {
  put_back(table, key);
  adm_entry *known = find(table, key);
  if (known) return known;
  /* First the free ones, then the idle ones, then any that nobody is in: who asks for thousands of names that are not
   * there must not be able to fill the table. */
  for (int pass = 0; pass < 3; pass++)
    for (uint32_t i = 0; i < PROBES; i++) {
      adm_entry *entry = entry_at(table, (uint32_t)(key + i));
      if (pass == 0 ? entry->key != KEY_FREE : !vacate(table, entry, pass == 1 ? IDLE_NS : 0, now_ns)) continue;
      describe(entry, group, label, now_ns);
      STEP("insert: described");
      mark_used(table, entry); /* before anybody can have something in it that has to be found again */
      entry->key = key;
      return entry;
    }
  table->shared->table_full++;
  return NULL;
}

adm_entry *entry_of(adm_table *table, adm_owner owner, uint32_t group, uint64_t key, const char *label, uint64_t now_ns) {
  adm_entry *entry = find(table, key);
  if (entry) {
    entry_touch(entry, now_ns);
    return entry;
  }
  uint64_t token = token_in_state(token_make(table, owner), CELL_HELD);
  for (int spin = 0; spin < INSERT_SPINS; spin++) {
    uint64_t nobody = 0;
    if (atomic_compare_exchange_weak(&table->shared->inserting, &nobody, token)) {
      STEP("insert: begun");
      entry = entry_insert(table, group, key, label, now_ns);
      STEP("insert: done");
      uint64_t mine = token;
      atomic_compare_exchange_strong(&table->shared->inserting, &mine, 0);
      return entry;
    }
    if ((entry = find(table, key))) return entry;
    if (spin > INSERT_SPINS / 2) nanosleep(&(struct timespec){0, 20000}, NULL);
  }
  table->shared->table_full++; /* somebody was stopped while adding: better let through than wait for that one */
  return NULL;
}
