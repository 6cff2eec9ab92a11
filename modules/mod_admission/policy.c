/*
 * policy.c: the interpreters of one policy file: how many there are, who has which, and when they are made anew.
 *
 * What happens inside one is script.c's.
 */
#include "policy.h"

#include "core/settings.h"
#include "script.h"
#include "watch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool policy_available(void) {
#ifdef ADMISSION_LUA
  return true;
#else
  return false;
#endif
}

#ifdef ADMISSION_LUA

#define SECOND_NS UINT64_C(1000000000)
#define TAKE_S 1    /* how long a request waits for an interpreter at most: a hundred times what a decision takes */
#define BUSY_S 60   /* how often it is told that all are in use */

/* An interpreter and which version of the file it has seen. */
typedef struct place {
  struct place *next; /* while nobody uses it */
  script *script;     /* NULL: there was no version that compiles yet */
  uint64_t digest;    /* of its text */
  watch_stamp stamp;
  bool bad;           /* that version: the last good one is in force */
  bool unread;        /* and its folders may be what was wrong, of which the stamp tells nothing */
  uint64_t looked_ns, renewed_ns;
} place;

struct policy {
  char *path;
  uid_t owner;           /* whose file is believed, beside root's */
  shared_text *kept;     /* the last good version */
  pthread_mutex_t mutex; /* for all below */
  pthread_cond_t returned;
  unsigned most, made;
  place *free;
  watch_stamp told;      /* the version whose troubles were told, and which of them */
  bool told_compile, told_run;
  uint64_t told_busy_ns; /* when it was told that all interpreters are in use; 0: never */
};

/* An interpreter with the version that the file has now, which is kept; NULL with `error`, and whether it did not come to
 * reading the file. */
static script *from_file(const char *path, uid_t owner, shared_text *kept, uint64_t *digest, bool *unread, char *error) {
  *unread = true;
  char *text = malloc(SHARED_TEXT_BYTES + 1);
  if (!text) {
    snprintf(error, ADM_ERROR, "no memory");
    return NULL;
  }
  ssize_t length = watch_read(path, owner, text, SHARED_TEXT_BYTES + 1, error);
  *unread = length < 0;
  script *s = *unread ? NULL : script_new(path, text, (size_t)length, error);
  if (s) *digest = shared_text_keep(kept, text, (size_t)length);
  free(text);
  return s;
}

/* An interpreter with the last good version, if that is another than `digest`, which it becomes; or NULL. */
static script *last_good(const policy *p, uint64_t *digest) {
  char error[ADM_ERROR];
  size_t length;
  char *text = malloc(SHARED_TEXT_BYTES);
  uint64_t good = text ? shared_text_recall(p->kept, text, &length) : 0;
  script *s = good && good != *digest ? script_new(p->path, text, length, error) : NULL;
  if (s) *digest = good;
  free(text);
  return s;
}

bool policy_check(const char *path, uid_t owner, shared_text *kept, char *error) {
  uint64_t digest;
  bool unread;
  script *s = from_file(path, owner, kept, &digest, &unread, error);
  script_free(s);
  return s != NULL;
}

policy *policy_new(const char *path, uid_t owner, shared_text *kept, unsigned states) {
  policy *p = calloc(1, sizeof *p);
  if (!p || !(p->path = strdup(path))) {
    free(p);
    return NULL;
  }
  p->owner = owner;
  p->kept = kept;
  p->most = states ? states : 1;
  pthread_mutex_init(&p->mutex, NULL);
  pthread_condattr_t steady; /* a clock that nobody sets */
  pthread_condattr_init(&steady);
  pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
  pthread_cond_init(&p->returned, &steady);
  pthread_condattr_destroy(&steady);
  return p;
}

void policy_free(policy *p) {
  if (!p) return;
  for (place *at = p->free, *next; at; at = next) {
    next = at->next;
    script_free(at->script);
    free(at);
  }
  pthread_cond_destroy(&p->returned);
  pthread_mutex_destroy(&p->mutex);
  free(p->path);
  free(p);
}

/* An interpreter for this thread alone, or NULL. Where all are in use it waits, which is mostly for the time of a decision. But not
 * for longer than TAKE_S: who has one always gives it back (nothing in between can leave policy_ask: all of Lua runs protected),
 * yet only instructions are bounded, and a pattern match is one of these; and in a copy of this process that another module
 * makes (pcntl_fork) the threads that have them are not there. */
static place *take(policy *p) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += TAKE_S;
  int waited = 0;
  pthread_mutex_lock(&p->mutex);
  while (!p->free && p->made >= p->most && waited == 0) waited = pthread_cond_timedwait(&p->returned, &p->mutex, &until);
  place *mine = p->free;
  if (mine) p->free = mine->next;
  else if (p->made < p->most && (mine = calloc(1, sizeof *mine))) p->made++;
  pthread_mutex_unlock(&p->mutex);
  return mine;
}

static void give_back(policy *p, place *mine) {
  pthread_mutex_lock(&p->mutex);
  mine->next = p->free;
  p->free = mine;
  pthread_cond_signal(&p->returned);
  pthread_mutex_unlock(&p->mutex);
}

/* Tells of a trouble, and what follows, if it is the first of its kind (one of told_...) with this version of the file. */
static void tell(policy *p, const watch_stamp *version, bool *told, const char *error, const char *then, policy_log log,
                 void *world) {
  pthread_mutex_lock(&p->mutex);
  if (!watch_same(&p->told, version)) p->told_compile = p->told_run = false;
  p->told = *version;
  bool first = !*told;
  *told = true;
  pthread_mutex_unlock(&p->mutex);
  if (!first || !log) return;
  char message[1024];
  snprintf(message, sizeof message, "%.600s: %s%s", p->path, error, then);
  log(world, message);
}

static uint64_t coarse_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* Tells, once in a while, that a request went on without the policy. */
static void tell_busy(policy *p, policy_log log, void *world) {
  uint64_t now_ns = coarse_ns(CLOCK_MONOTONIC_COARSE);
  pthread_mutex_lock(&p->mutex);
  bool first = !p->told_busy_ns || now_ns - p->told_busy_ns >= BUSY_S * SECOND_NS;
  if (first) p->told_busy_ns = now_ns;
  unsigned most = p->most;
  pthread_mutex_unlock(&p->mutex);
  if (!first || !log) return;
  char message[1024];
  snprintf(message, sizeof message, "%.600s: no interpreter was free for %d s (of %u): a decision takes too long, others go on as configured",
           p->path, TAKE_S, most);
  log(world, message);
}

static void take_over(place *mine, script *next) {
  if (!next) return;
  script_free(mine->script);
  mine->script = next;
}

/* Looks at the file, at most once a second, and compiles it when it is another than before. While that is a bad one, the
 * last good one may be a version that only others have seen. */
static void refresh(policy *p, place *mine, policy_log log, void *world) {
  char error[ADM_ERROR];
  uint64_t now_ns = coarse_ns(CLOCK_MONOTONIC_COARSE);
  bool first = mine->looked_ns == 0;
  if (!first && now_ns - mine->looked_ns < SECOND_NS) return;
  watch_stamp stamp = watch_look(p->path);
  bool other = first || mine->unread || !watch_same(&stamp, &mine->stamp);
  if (!first && other && watch_fresh(&stamp, (int64_t)coarse_ns(CLOCK_REALTIME))) return; /* it may still be written */
  mine->looked_ns = now_ns;
  if (other) {
    mine->stamp = stamp;
    script *next = from_file(p->path, p->owner, p->kept, &mine->digest, &mine->unread, error);
    mine->bad = !next;
    take_over(mine, next);
  }
  if (mine->bad) take_over(mine, last_good(p, &mine->digest));
  if (other && mine->bad)
    tell(p, &stamp, &p->told_compile, error,
         mine->script ? ": the last good version stays in use" : ": there is no good version yet, requests go on as configured", log, world);
}

/* An interpreter that has kept all the memory it may have would fail at every request from now on: another one takes its
 * place, once a second at most. */
static void renew(policy *p, place *mine) {
  uint64_t now_ns = coarse_ns(CLOCK_MONOTONIC_COARSE);
  if (mine->renewed_ns && now_ns - mine->renewed_ns < SECOND_NS) return;
  mine->renewed_ns = now_ns;
  if (!p->kept) { /* no version can be kept: the file is looked at as by a new interpreter */
    mine->looked_ns = 0;
    return;
  }
  mine->digest = 0; /* also the version that it has */
  take_over(mine, last_good(p, &mine->digest));
}

bool policy_ask(policy *p, const adm_table *table, const policy_request *request, policy_answer *answer, policy_log log,
                void *world) {
  char error[ADM_ERROR];
  *answer = (policy_answer){.has_group = false};
  place *mine = take(p);
  if (!mine) {
    tell_busy(p, log, world);
    return false;
  }
  refresh(p, mine, log, world);
  int said = mine->script ? script_ask(mine->script, table, request, answer, error) : 0;
  bool starved = said < 0 && script_starved(mine->script);
  if (said < 0) tell(p, &mine->stamp, &p->told_run, error, starved ? ": it begins anew, without what it had kept" : "", log, world);
  if (starved) renew(p, mine);
  give_back(p, mine);
  return said > 0;
}

#else

bool policy_check(const char *path, uid_t owner, shared_text *kept, char *error) {
  (void)path;
  (void)owner;
  (void)kept;
  snprintf(error, ADM_ERROR, "this build has no Lua");
  return false;
}

policy *policy_new(const char *path, uid_t owner, shared_text *kept, unsigned states) {
  (void)path;
  (void)owner;
  (void)kept;
  (void)states;
  return NULL;
}

bool policy_ask(policy *p, const adm_table *table, const policy_request *request, policy_answer *answer, policy_log log,
                void *world) {
  (void)p;
  (void)table;
  (void)request;
  (void)log;
  (void)world;
  *answer = (policy_answer){.has_group = false};
  return false;
}

void policy_free(policy *p) { (void)p; }

#endif
