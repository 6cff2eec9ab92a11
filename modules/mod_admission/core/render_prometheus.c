/*
 * render_prometheus.c: a table in the text format 0.0.4 of Prometheus.
 *
 * A family is written whole before the next, as the format wants it, so the groups are gone through once per family.
 * Entries have no series of their own: a label for each file or client would grow without bound. What a limit bounds is
 * one entry, so the fullest one of each group is here.
 */
#include "settings.h"
#include "survey.h"
#include "text.h"

/* What every family is written from. */
typedef struct metrics {
  adm_text text;
  const adm_report *report;
  const adm_survey *survey;
} metrics;

typedef struct group_gauge {
  const char *name, *help;
  uint64_t (*value)(const adm_group *group, const adm_total *total);
} group_gauge;

static uint64_t limit_now(const adm_group *group, const adm_total *total) { return (void)total, group->limit; }
static uint64_t limit_configured(const adm_group *group, const adm_total *total) { return (void)total, group->settings_limit; }
static uint64_t queue_places(const adm_group *group, const adm_total *total) { return (void)total, group->queue; }
static uint64_t held(const adm_group *group, const adm_total *total) { return (void)group, total->held; }
static uint64_t fullest(const adm_group *group, const adm_total *total) { return (void)group, total->fullest; }
static uint64_t lingering(const adm_group *group, const adm_total *total) { return (void)group, total->lingering; }
static uint64_t waiting(const adm_group *group, const adm_total *total) { return (void)group, total->waiting; }
static uint64_t busy(const adm_group *group, const adm_total *total) { return (void)group, total->busy; }

static const group_gauge GAUGES[] = {
    {"admission_limit", "Permits at once per entry (file, host, ...) in force now.", limit_now},
    {"admission_configured_limit", "The limit that the configuration or the control file asks for.", limit_configured},
    {"admission_queue_places", "Requests that may wait, per entry.", queue_places},
    {"admission_held", "Permits held, over all entries.", held},
    {"admission_held_max", "Permits held in the entry that holds most: what the limit bounds.", fullest},
    {"admission_lingering", "Permits whose request is over and whose program still runs.", lingering},
    {"admission_waiting", "Requests that wait, over all entries.", waiting},
    {"admission_entries", "Entries that hold a permit or have a request waiting.", busy},
};

/* The results of a request, as ADMISSION_RESULT names them, and where each is counted. */
typedef struct result {
  const char *name;
  size_t count;
} result;

#define COUNT(member) offsetof(adm_counts, member)
static const result RESULTS[] = {
    {"admit", COUNT(admitted)}, {"queued", COUNT(queued)}, {"reject", COUNT(rejected)},
    {"timeout", COUNT(timeout)}, {"gone", COUNT(gone)}, {"would-reject", COUNT(would_reject)},
    {"would-queue", COUNT(would_queue)}, {"open", COUNT(open)}, {"bypass", COUNT(bypass)},
};

static uint64_t count_at(const adm_group *group, size_t offset) {
  return *(const _Atomic uint64_t *)(const void *)((const char *)&group->counts + offset);
}

static void family(metrics *to, const char *name, const char *type, const char *help) {
  adm_text_say(&to->text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* `name{group="..."` without what closes it. */
static void sample(metrics *to, const char *name, const char *suffix, int group) {
  adm_text_say(&to->text, "%s%s{group=\"", name, suffix);
  adm_text_escape(&to->text, ADM_TEXT_PROMETHEUS, adm_group_at(to->report->table, group)->name);
  adm_text_say(&to->text, "\"");
}

static void number(metrics *to, uint64_t value) { adm_text_say(&to->text, " %llu\n", (unsigned long long)value); }

static void limit(metrics *to, uint64_t value, uint64_t unit) {
  if (value == ADM_UNLIMITED) adm_text_say(&to->text, " +Inf\n");
  else number(to, value * unit);
}

static void single(metrics *to, const char *name, const char *type, const char *help, uint64_t value) {
  family(to, name, type, help);
  adm_text_say(&to->text, "%s", name);
  number(to, value);
}

/* The groups that series are written for; `budget`: the memory budget as well, which turns requests away like a group. */
static bool shown(const metrics *to, int group, bool budget) {
  return adm_survey_shows(to->report->table, group) || (budget && group == ADM_GROUP_MEMORY);
}

static void gauges(metrics *to) {
  for (size_t i = 0; i < sizeof GAUGES / sizeof GAUGES[0]; i++) {
    const group_gauge *gauge = &GAUGES[i];
    family(to, gauge->name, "gauge", gauge->help);
    for (int g = 0; g < ADM_GROUPS; g++) {
      if (!shown(to, g, false)) continue;
      sample(to, gauge->name, "", g);
      adm_text_say(&to->text, "}");
      uint64_t value = gauge->value(adm_group_at(to->report->table, g), &to->survey->total[g]);
      bool may_be_none = gauge->value == limit_now || gauge->value == limit_configured;
      if (may_be_none) limit(to, value, 1);
      else number(to, value);
    }
  }
}

static void modes(metrics *to) {
  family(to, "admission_mode", "gauge", "1 for the mode that the group is in.");
  for (int g = 0; g < ADM_GROUPS; g++)
    for (uint32_t mode = ADM_OFF; mode <= ADM_ENFORCE && shown(to, g, false); mode++) {
      sample(to, "admission_mode", "", g);
      adm_text_say(&to->text, ",mode=\"%s\"}", adm_mode_name(mode));
      number(to, adm_group_at(to->report->table, g)->mode == mode);
    }
}

static void counter(metrics *to, const char *name, const char *help, size_t count) {
  family(to, name, "counter", help);
  for (int g = 0; g < ADM_GROUPS; g++) {
    if (!shown(to, g, true)) continue;
    sample(to, name, "", g);
    adm_text_say(&to->text, "}");
    number(to, count_at(adm_group_at(to->report->table, g), count));
  }
}

static void counters(metrics *to) {
  family(to, "admission_requests_total", "counter", "Requests by what became of them; for a rejection, the group that was full.");
  for (int g = 0; g < ADM_GROUPS; g++)
    for (size_t i = 0; i < sizeof RESULTS / sizeof RESULTS[0] && shown(to, g, true); i++) {
      sample(to, "admission_requests_total", "", g);
      adm_text_say(&to->text, ",result=\"%s\"}", RESULTS[i].name);
      number(to, count_at(adm_group_at(to->report->table, g), RESULTS[i].count));
    }
  counter(to, "admission_reaped_total", "Permits of dead processes taken back.", COUNT(reaped));
  counter(to, "admission_long_hold_total", "Permits held longer than AdmissionMaxHold.", COUNT(long_hold));
}

/* Buckets are read once and the count is their sum, so that the series agree with each other. */
static void histogram(metrics *to, const char *name, int group, const adm_histogram *from) {
  uint64_t count = 0;
  for (int b = 0; b < ADM_BUCKETS; b++) {
    count += from->bucket[b];
    sample(to, name, "_bucket", group);
    adm_text_say(&to->text, ",le=\"");
    if (b == ADM_BUCKETS - 1) adm_text_say(&to->text, "+Inf");
    else adm_text_decimal(&to->text, (uint64_t)1 << b, 6);
    adm_text_say(&to->text, "\"}");
    number(to, count);
  }
  sample(to, name, "_sum", group);
  adm_text_say(&to->text, "} ");
  adm_text_decimal(&to->text, from->sum_us, 6);
  adm_text_say(&to->text, "\n");
  sample(to, name, "_count", group);
  adm_text_say(&to->text, "}");
  number(to, count);
}

static void histograms(metrics *to) {
  family(to, "admission_wait_seconds", "histogram", "How long requests waited for a permit.");
  for (int g = 0; g < ADM_GROUPS; g++)
    if (shown(to, g, true)) histogram(to, "admission_wait_seconds", g, &adm_group_at(to->report->table, g)->wait);
  family(to, "admission_service_seconds", "histogram", "How long permits were held.");
  for (int g = 0; g < ADM_GROUPS; g++)
    if (shown(to, g, false)) histogram(to, "admission_service_seconds", g, &adm_group_at(to->report->table, g)->service);
}

/* The module's own two groups under names of their own, because one of them is not counted in requests. */
static void module(metrics *to) {
  const adm_report *report = to->report;
  const adm_total *total = to->survey->total;
  family(to, "admission_memory_limit_bytes", "gauge", "The memory budget.");
  adm_text_say(&to->text, "admission_memory_limit_bytes");
  limit(to, adm_group_at(report->table, ADM_GROUP_MEMORY)->limit, ADM_COST_UNIT);
  single(to, "admission_memory_held_bytes", "gauge", "Costs of the permits held.", total[ADM_GROUP_MEMORY].held * ADM_COST_UNIT);
  family(to, "admission_queue_workers_limit", "gauge", "Workers that may wait at the same time.");
  adm_text_say(&to->text, "admission_queue_workers_limit");
  limit(to, adm_group_at(report->table, ADM_GROUP_WAITING)->limit, 1);
  single(to, "admission_queue_workers_waiting", "gauge", "Workers that wait now.", total[ADM_GROUP_WAITING].held);
  single(to, "admission_control_generation", "gauge", "Contents of the control file put in force so far.", report->news.generation);
  single(to, "admission_control_ok", "gauge", "0 while the control file is refused.", report->news.error[0] == '\0');
  single(to, "admission_table_entries", "gauge", "Entries that the table has room for.", adm_table_shape(report->table).entries);
  single(to, "admission_table_entries_known", "gauge", "Entries in the table, idle ones included.", to->survey->known);
  adm_troubles seen = adm_table_troubles(report->table);
  single(to, "admission_table_full_total", "counter", "Requests let through because the table had no place for their entry.", seen.table_full);
  single(to, "admission_cells_full_total", "counter", "Requests let through because their entry had no free cell.", seen.cells_full);
  single(to, "admission_owners_full_total", "counter", "Processes that found no place in the table.", seen.owners_full);
  single(to, "admission_late_wakes_total", "counter", "Waiters that found their permit by looking, not by being woken.", seen.late_wakes);
  if (report->started_ms == 0) return;
  family(to, "admission_start_time_seconds", "gauge", "When the table was made: what the counters count from.");
  adm_text_say(&to->text, "admission_start_time_seconds ");
  adm_text_decimal(&to->text, report->started_ms, 3);
  adm_text_say(&to->text, "\n");
}

static void engine(metrics *to) {
  if (!to->report->engine) return;
  family(to, "admission_engine", "gauge", "1 for what AdmissionEngine says; mixed where virtual hosts differ.");
  adm_text_say(&to->text, "admission_engine{engine=\"%s\"} 1\n", to->report->engine);
}

static void all_of_table(metrics *to) {
  adm_survey survey;
  adm_survey_take(&survey, to->report->table, to->report->now_ns);
  to->survey = &survey;
  gauges(to);
  modes(to);
  counters(to);
  histograms(to);
  module(to);
  adm_survey_free(&survey);
}

void adm_render_prometheus(const adm_report *report, adm_put put, void *world) {
  metrics to = {.report = report};
  adm_text_open(&to.text, put, world);
  engine(&to);
  if (report->table) all_of_table(&to);
  single(&to, "admission_no_memory_total", "counter", "Requests let through because there was no shared memory.", report->without_table);
  adm_text_close(&to.text);
}
