/*
 * render_html.c: a table for people: HTML tables without a page around them, and mod_status' short lines.
 *
 * It has no style and no script of its own, so that it looks like the page that it stands in. Percentiles are ends of
 * buckets, and are written as what they are: "< 4.1 ms", rounded up.
 */
#include "settings.h"
#include "survey.h"
#include "text.h"

#include <string.h>

#define ENTRIES_SHOWN 20 /* per group; the JSON has more */

static void escaped(adm_text *text, const char *from) { adm_text_escape(text, ADM_TEXT_HTML, from); }

static void number(adm_text *text, uint64_t value) { adm_text_say(text, "%llu", (unsigned long long)value); }

/* A time with two or three digits; `up`: never less than it is, for what has to lie below. */
static void duration(adm_text *text, uint64_t us, bool up) {
  static const struct { uint64_t below, step; unsigned digits; const char *unit; } scales[] = {
      {1000, 1, 0, "&micro;s"}, {10000, 100, 1, "ms"}, {1000000, 1000, 0, "ms"}, {UINT64_MAX, 100000, 1, "s"}};
  int at = 0;
  while (us >= scales[at].below && at < 3) at++;
  adm_text_decimal(text, (us + (up ? scales[at].step - 1 : scales[at].step / 2)) / scales[at].step, scales[at].digits);
  adm_text_say(text, " %s", scales[at].unit);
}

/* As the directives take it: 800M, 1.5G. */
static void size(adm_text *text, uint64_t bytes) {
  static const char letter[] = "KMGT";
  int at = 0;
  uint64_t tenths = bytes * 10 / 1024;
  for (; tenths >= 10240 && letter[at + 1]; at++) tenths /= 1024;
  adm_text_decimal(text, tenths, 1);
  adm_text_add(text, &letter[at], 1);
}

static void amount(adm_text *text, int group, uint64_t units) {
  if (group == ADM_GROUP_MEMORY) size(text, units * ADM_COST_UNIT);
  else number(text, units);
}

static void limit(adm_text *text, int index, const adm_group *group) {
  uint32_t now = group->limit, configured = group->settings_limit;
  if (now == ADM_UNLIMITED) adm_text_say(text, "none");
  else amount(text, index, now);
  if (now == configured) return;
  adm_text_say(text, " (configured ");
  if (configured == ADM_UNLIMITED) adm_text_say(text, "none");
  else amount(text, index, configured);
  adm_text_say(text, ")");
}

static void cell(adm_text *text, uint64_t value) { adm_text_say(text, "<td align=\"right\">%llu</td>", (unsigned long long)value); }

static void amount_cell(adm_text *text, int group, uint64_t units) {
  adm_text_say(text, "<td align=\"right\">");
  amount(text, group, units);
  adm_text_say(text, "</td>");
}

static void time_cell(adm_text *text, uint64_t us) {
  adm_text_say(text, "<td align=\"right\">");
  if (us) duration(text, us, false);
  else adm_text_say(text, "-");
  adm_text_say(text, "</td>");
}

static void percentile_cell(adm_text *text, const adm_histogram *from, unsigned percent) {
  uint64_t below = adm_histogram_below(from, percent), last = (uint64_t)1 << (ADM_BUCKETS - 2);
  adm_text_say(text, "<td align=\"right\">");
  if (below == 0) adm_text_say(text, "-");
  else if (below == UINT64_MAX) adm_text_say(text, "&ge; "), duration(text, last, false);
  else adm_text_say(text, "&lt; "), duration(text, below, true);
  adm_text_say(text, "</td>");
}

static void group_row(adm_text *text, const adm_report *report, const adm_survey *survey, int index) {
  const adm_group *group = adm_group_at(report->table, index);
  const adm_total *total = &survey->total[index];
  const adm_counts *counts = &group->counts;
  adm_text_say(text, "<tr><th align=\"left\">");
  escaped(text, group->name);
  adm_text_say(text, "</th><td>%s</td><td align=\"right\">", adm_mode_name(group->mode));
  limit(text, index, group);
  adm_text_say(text, "</td>");
  amount_cell(text, index, total->held);
  amount_cell(text, index, total->fullest);
  cell(text, total->waiting);
  time_cell(text, adm_mean_us(&group->service));
  percentile_cell(text, &group->service, 99);
  percentile_cell(text, &group->wait, 50);
  percentile_cell(text, &group->wait, 99);
  cell(text, counts->admitted);
  cell(text, counts->queued);
  cell(text, counts->rejected);
  cell(text, counts->timeout);
  cell(text, counts->gone);
  cell(text, counts->would_reject);
  cell(text, counts->would_queue);
  cell(text, counts->bypass);
  cell(text, counts->open);
  cell(text, counts->reaped);
  adm_text_say(text, "</tr>\n");
}

/* The memory budget stands among the groups where it has a limit: it turns requests away as they do. */
static bool shown(const adm_report *report, int index) {
  const adm_group *budget = adm_group_at(report->table, ADM_GROUP_MEMORY);
  bool has_budget = budget->limit != ADM_UNLIMITED || budget->settings_limit != ADM_UNLIMITED;
  return adm_survey_shows(report->table, index) || (index == ADM_GROUP_MEMORY && has_budget);
}

static void groups(adm_text *text, const adm_report *report, const adm_survey *survey) {
  adm_text_say(text,
               "<table border=\"0\" class=\"admission\"><tr><th align=\"left\">Group</th><th>Mode</th><th>Limit</th><th>Held</th>"
               "<th>Fullest</th><th>Waiting</th><th>Mean hold</th><th>Hold p99</th><th>Wait p50</th><th>Wait p99</th><th>Admitted</th>"
               "<th>After a wait</th><th>Rejected</th><th>Timed out</th><th>Gone</th><th>Would reject</th><th>Would wait</th><th>Bypassed</th>"
               "<th>Let through</th><th>Reaped</th></tr>\n");
  for (int group = 0; group < ADM_GROUPS; group++)
    if (shown(report, group)) group_row(text, report, survey, group);
  adm_text_say(text, "</table>\n");
}

static void entry_row(adm_text *text, const adm_report *report, const adm_seen *seen) {
  adm_text_say(text, "<tr><td>");
  escaped(text, adm_group_at(report->table, seen->group)->name);
  adm_text_say(text, "</td><td>");
  escaped(text, seen->label);
  adm_text_say(text, "</td>");
  cell(text, seen->held);
  cell(text, seen->lingering);
  cell(text, seen->waiting);
  time_cell(text, seen->oldest_ns / 1000);
  adm_text_say(text, "</tr>\n");
}

static void entries(adm_text *text, const adm_report *report, const adm_survey *survey) {
  uint32_t from = survey->first[ADM_GROUP_FIRST], left_out = 0;
  if (!survey->seen || survey->busy == from) {
    adm_text_say(text, "<p>No permit is held and nobody waits.</p>\n");
    return;
  }
  adm_text_say(text, "<table border=\"0\" class=\"admission\"><tr><th align=\"left\">Group</th><th align=\"left\">Counts</th>"
                     "<th>Held</th><th>Program still runs</th><th>Waiting</th><th>Oldest</th></tr>\n");
  for (uint32_t i = from; i < survey->busy; i++) {
    const adm_seen *seen = &survey->seen[i];
    if (i - survey->first[seen->group] < ENTRIES_SHOWN) entry_row(text, report, seen);
    else left_out++;
  }
  adm_text_say(text, "</table>\n");
  if (left_out) adm_text_say(text, "<p>%u more entries hold no more than these.</p>\n", left_out);
}

/* How many workers wait of those that may; nothing where there is no such limit. */
static void waiting_room(adm_text *text, const adm_report *report, const adm_survey *survey) {
  const adm_group *group = adm_group_at(report->table, ADM_GROUP_WAITING);
  if (group->limit == ADM_UNLIMITED && group->settings_limit == ADM_UNLIMITED) return;
  adm_text_say(text, "<dt>Workers that wait: %llu of ", (unsigned long long)survey->total[ADM_GROUP_WAITING].held);
  limit(text, ADM_GROUP_WAITING, group);
  adm_text_say(text, "</dt>\n");
}

/* What the modes of the groups do not say: whether anybody is turned away at all. */
static void engine(adm_text *text, const adm_report *report) {
  if (!report->engine || !strcmp(report->engine, "on")) return;
  const char *means = !strcmp(report->engine, "observe") ? "nobody is turned away, it is only counted who would be"
                      : !strcmp(report->engine, "off")   ? "nothing is limited"
                                                         : "not the same in all virtual hosts";
  adm_text_say(text, "<dt><strong>AdmissionEngine %s: %s</strong></dt>\n", report->engine, means);
}

static void control(adm_text *text, const adm_report *report) {
  if (!report->control_file) return;
  adm_text_say(text, "<dt>Control file: ");
  escaped(text, report->control_file);
  if (report->news.error[0] == '\0') {
    adm_text_say(text, ", taken %llu times</dt>\n", (unsigned long long)report->news.generation);
    return;
  }
  adm_text_say(text, "<br /><strong>Refused, the values before it stay in force: ");
  escaped(text, report->news.error);
  adm_text_say(text, "</strong></dt>\n");
}

/* Nothing else matters as much while it is so. */
static void no_table(adm_text *text, const adm_report *report) {
  if (report->idle) {
    adm_text_say(text, "<dt>No AdmissionGroup is configured: nothing is counted or limited.</dt>\n");
    return;
  }
  adm_text_say(text, "<dt><strong>No shared memory: nothing is limited (the error log says why).</strong></dt>\n"
                     "<dt>Requests let through for that: %llu</dt>\n", (unsigned long long)report->without_table);
}

static void troubles(adm_text *text, const adm_report *report) {
  adm_troubles seen = adm_table_troubles(report->table);
  static const char *const what[] = {"table full (AdmissionTableSize)", "no free cell in an entry",
                                     "no place for a process", "waiters woken late", "let through without shared memory"};
  uint64_t times[] = {seen.table_full, seen.cells_full, seen.owners_full, seen.late_wakes, report->without_table};
  for (int i = 0; i < 5; i++)
    if (times[i]) adm_text_say(text, "<dt><strong>%s: %llu times</strong></dt>\n", what[i], (unsigned long long)times[i]);
}

static void all_of_table(adm_text *text, const adm_report *report) {
  adm_survey survey;
  adm_survey_take(&survey, report->table, report->now_ns);
  waiting_room(text, report, &survey);
  control(text, report);
  troubles(text, report);
  adm_text_say(text, "</dl>\n");
  groups(text, report, &survey);
  entries(text, report, &survey);
  adm_survey_free(&survey);
}

void adm_render_html(const adm_report *report, adm_put put, void *world) {
  adm_text text;
  adm_text_open(&text, put, world);
  adm_text_say(&text, "<dl>\n");
  engine(&text, report);
  if (report->table) {
    all_of_table(&text, report);
  } else {
    no_table(&text, report);
    adm_text_say(&text, "</dl>\n");
  }
  adm_text_close(&text);
}

static void short_line(adm_text *text, const adm_group *group, const char *what, uint64_t value) {
  adm_text_say(text, "AdmissionGroup[");
  adm_text_escape(text, ADM_TEXT_LINE, group->name);
  adm_text_say(text, "]%s: ", what);
  if (value == ADM_UNLIMITED && what[0] == 'L') adm_text_say(text, "none\n");
  else adm_text_say(text, "%llu\n", (unsigned long long)value);
}

static void short_lines(adm_text *text, const adm_report *report) {
  adm_survey survey;
  adm_survey_take(&survey, report->table, report->now_ns);
  adm_text_say(text, "AdmissionMemoryHeldBytes: %llu\nAdmissionQueueWorkersWaiting: %llu\n",
               (unsigned long long)(survey.total[ADM_GROUP_MEMORY].held * ADM_COST_UNIT),
               (unsigned long long)survey.total[ADM_GROUP_WAITING].held);
  for (int index = ADM_GROUP_FIRST; index < ADM_GROUPS; index++) {
    if (!adm_survey_shows(report->table, index)) continue;
    const adm_group *group = adm_group_at(report->table, index);
    const adm_total *total = &survey.total[index];
    short_line(text, group, "Limit", group->limit);
    short_line(text, group, "Held", total->held);
    short_line(text, group, "Fullest", total->fullest);
    short_line(text, group, "Waiting", total->waiting);
    short_line(text, group, "Admitted", group->counts.admitted + group->counts.queued);
    short_line(text, group, "Rejected", group->counts.rejected + group->counts.timeout);
    short_line(text, group, "Reaped", group->counts.reaped);
  }
  adm_survey_free(&survey);
}

void adm_render_short(const adm_report *report, adm_put put, void *world) {
  adm_text text;
  adm_text_open(&text, put, world);
  if (report->table) short_lines(&text, report);
  if (!report->table || report->without_table)
    adm_text_say(&text, "AdmissionNoMemory: %llu\n", (unsigned long long)report->without_table);
  adm_text_close(&text);
}
