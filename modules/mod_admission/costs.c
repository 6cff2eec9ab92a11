/*
 * costs.c: which processes there are, what they were when they came, whose permits they hold (costs.h).
 */
#include "costs.h"

#include "core/learn.h"
#include "world.h"

#include <stdlib.h>
#include <string.h>

#define LOOKS_PER_ROUND 8

/* A process of the table. */
typedef struct known {
  adm_process process;
  uint64_t before;             /* bytes, without a page */
  uint16_t held[ADM_GROUPS];   /* permits it holds, by group; of this round */
  uint32_t whose[ADM_GROUPS];  /* a sum over the requests that hold them: the same where they are the same requests */
} known;

struct costs {
  const adm_table *table;
  const char *root;
  uint32_t parent;             /* of all processes, which were copies of it when they began */
  bool alone;                  /* all permits of a process are of one page */
  adm_learned learned[ADM_GROUPS];
  known *now, *last;           /* told of in this round and in the one before, in the same order but for who came and went */
  unsigned now_count, last_count;
  unsigned expected;           /* where in `last` the next one is likely to be */
  unsigned turn;               /* where looking goes on */
};

costs *costs_new(const adm_table *table, const char *root, uint32_t parent, bool alone) {
  costs *c = calloc(1, sizeof *c);
  if (!c) return NULL;
  *c = (costs){.table = table, .root = root, .parent = parent, .alone = alone};
  c->now = calloc(ADM_OWNERS, sizeof *c->now);
  c->last = calloc(ADM_OWNERS, sizeof *c->last);
  if (c->now && c->last) return c;
  costs_free(c);
  return NULL;
}

void costs_free(costs *c) {
  if (!c) return;
  free(c->now);
  free(c->last);
  free(c);
}

void costs_start(costs *c, int group, uint32_t cost) {
  if (group >= 0 && group < ADM_GROUPS) c->learned[group] = (adm_learned){.peak = (double)cost * ADM_COST_UNIT};
}

uint32_t costs_of(const costs *c, int group) {
  return group >= 0 && group < ADM_GROUPS ? adm_learned_cost(&c->learned[group]) : 0;
}

static bool same(adm_process a, adm_process b) { return a.pid == b.pid && a.start == b.start; }

/* The place of a process in a list, looked for from where it is likely to be; NULL when it is not there. */
static known *find(known *list, unsigned count, unsigned from, adm_process process) {
  for (unsigned i = 0; i < count; i++) {
    known *at = &list[(from + i) % count];
    if (same(at->process, process)) return at;
  }
  return NULL;
}

/* What a process has without a page. It may be in one already when it is told of first, and what that takes would never be seen; under load
 * all may be. Where pages come one at a time it began with what its parent has, of which it was a copy. With threads it has kept memory of
 * many pages since, which one of them is not to be charged with. */
static uint64_t bytes_before(const costs *c, uint32_t pid) {
  uint64_t now = world_own_bytes(c->root, pid), copied = c->alone ? world_own_bytes(c->root, c->parent) : 0;
  return copied > 0 && copied < now ? copied : now;
}

void costs_living(costs *c, adm_process process) {
  if (c->now_count >= ADM_OWNERS) return;
  known *before = find(c->last, c->last_count, c->expected, process);
  if (before) c->expected = (unsigned)(before - c->last) + 1;
  c->now[c->now_count++] = (known){.process = process, .before = before ? before->before : bytes_before(c, process.pid)};
}

/* So that sums tell sets apart: else 1 and 4 were 2 and 3. The constants are those of MurmurHash3's last step. */
static uint32_t scattered(uint32_t number) {
  number = (number ^ number >> 16) * UINT32_C(0x85ebca6b) + 1;
  number = (number ^ number >> 13) * UINT32_C(0xc2b2ae35);
  return number ^ number >> 16;
}

static void count_permit(void *world, const adm_holder *holder) {
  costs *c = world;
  if (holder->group < 0 || holder->group >= ADM_GROUPS) return;
  known *k = find(c->now, c->now_count, c->expected, holder->process);
  if (!k) return; /* it came after this round began */
  c->expected = (unsigned)(k - c->now);
  if (k->held[holder->group] == UINT16_MAX) return;
  k->held[holder->group]++;
  k->whose[holder->group] += scattered(holder->request);
}

/* How many requests a process works on, where one that learns has them and all of its groups have the same ones; else 0: of a process
 * with several pages of different kinds nobody can say which of them needs what. Each has a permit in some groups, and never two in one. */
static uint16_t requests_alike(const costs *c, const known *k, const bool learns[ADM_GROUPS]) {
  bool wanted = false;
  int first = 0;
  for (int group = ADM_GROUP_FIRST; group < ADM_GROUPS; group++) {
    if (k->held[group] == 0) continue;
    wanted |= learns[group];
    if (first == 0) first = group;
    bool same = k->held[group] == k->held[first] && k->whose[group] == k->whose[first];
    if (!same && !c->alone) return 0;
  }
  if (!wanted) return 0;
  return c->alone ? 1 : k->held[first]; /* a page and what it includes may have two of one group */
}

/* Looks at one process; false when it holds nothing that can be learned from. */
static bool look_at(costs *c, const known *k, const bool learns[ADM_GROUPS], uint64_t now_ns) {
  uint16_t requests = requests_alike(c, k, learns);
  if (requests == 0) return false;
  adm_footprint footprint = {.programs = world_program_bytes(c->root, k->process.pid),
                             .own = world_own_bytes(c->root, k->process.pid), .before = k->before, .requests = requests};
  uint64_t bytes = adm_cost_of(&footprint);
  for (int group = 0; group < ADM_GROUPS; group++)
    if (learns[group] && k->held[group] > 0) adm_learn(&c->learned[group], bytes, now_ns);
  return true;
}

void costs_round(costs *c, const bool learns[ADM_GROUPS], uint64_t now_ns) {
  c->expected = 0;
  adm_holders(c->table, now_ns, count_permit, c);
  unsigned looks = 0;
  for (unsigned i = 0; i < c->now_count && looks < LOOKS_PER_ROUND; i++) {
    c->turn = (c->turn + 1) % c->now_count;
    looks += look_at(c, &c->now[c->turn], learns, now_ns);
  }
  known *told = c->now;
  c->now = c->last;
  c->last = told;
  c->last_count = c->now_count;
  c->now_count = c->expected = 0;
}
