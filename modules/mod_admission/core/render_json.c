/*
 * render_json.c: a table as JSON, version 1 of the format that docs/admission/status.md describes.
 *
 * Programs of other versions read it: a member keeps its meaning, new ones may come. Memory is in bytes here, whatever
 * the table counts it in, and what has no limit is null.
 */
#include "settings.h"
#include "survey.h"
#include "text.h"

#define ENTRIES_SHOWN 100 /* per group; the sums are over all */

/* Text and whether the next member is the first of its object. */
typedef struct json_out {
  adm_text text;
  bool first;
} json_out;

static void key(json_out *json, const char *name) {
  if (!json->first) adm_text_add(&json->text, ",", 1);
  json->first = false;
  if (name) adm_text_say(&json->text, "\"%s\":", name);
}

static void open(json_out *json, const char *name, char bracket) {
  key(json, name);
  adm_text_add(&json->text, &bracket, 1);
  json->first = true;
}

static void close(json_out *json, char bracket) {
  adm_text_add(&json->text, &bracket, 1);
  json->first = false;
}

static void number(json_out *json, const char *name, uint64_t value) {
  key(json, name);
  adm_text_say(&json->text, "%llu", (unsigned long long)value);
}

static void null(json_out *json, const char *name) {
  key(json, name);
  adm_text_add(&json->text, "null", 4);
}

static void boolean(json_out *json, const char *name, bool value) {
  key(json, name);
  adm_text_say(&json->text, "%s", value ? "true" : "false");
}

static void string(json_out *json, const char *name, const char *value) {
  key(json, name);
  adm_text_add(&json->text, "\"", 1);
  adm_text_escape(&json->text, ADM_TEXT_JSON, value);
  adm_text_add(&json->text, "\"", 1);
}

static void string_or_null(json_out *json, const char *name, const char *value) {
  if (value && *value) string(json, name, value);
  else null(json, name);
}

/* Milliseconds since 1970 as seconds. */
static void moment(json_out *json, const char *name, uint64_t ms) {
  if (ms == 0) {
    null(json, name);
    return;
  }
  key(json, name);
  adm_text_decimal(&json->text, ms, 3);
}

static void limit(json_out *json, const char *name, uint32_t value, uint64_t unit) {
  if (value == ADM_UNLIMITED) null(json, name);
  else number(json, name, value * unit);
}

static void histogram(json_out *json, const char *name, const adm_histogram *from) {
  open(json, name, '{');
  number(json, "sum_us", from->sum_us);
  open(json, "buckets", '[');
  for (int b = 0; b < ADM_BUCKETS; b++) number(json, NULL, from->bucket[b]);
  close(json, ']');
  close(json, '}');
}

static void counts(json_out *json, const adm_counts *from) {
  open(json, "counts", '{');
  number(json, "admitted", from->admitted);
  number(json, "queued", from->queued);
  number(json, "rejected", from->rejected);
  number(json, "timeout", from->timeout);
  number(json, "gone", from->gone);
  number(json, "would_reject", from->would_reject);
  number(json, "would_queue", from->would_queue);
  number(json, "open", from->open);
  number(json, "bypass", from->bypass);
  number(json, "reaped", from->reaped);
  number(json, "long_hold", from->long_hold);
  close(json, '}');
}

static void settings(json_out *json, const adm_group *group, uint64_t unit) {
  string(json, "mode", adm_mode_name(group->mode));
  limit(json, "limit", group->limit, unit);
  limit(json, "configured_limit", group->settings_limit, unit);
  number(json, "queue", group->queue);
  number(json, "timeout_ms", group->timeout_ms);
  string(json, "order", adm_order_name(group->order));
  number(json, "status", group->status);
  number(json, "cost", (uint64_t)group->cost * ADM_COST_UNIT);
  number(json, "configured_cost", (uint64_t)group->settings_cost * ADM_COST_UNIT);
  boolean(json, "learn", group->learn != 0);
  boolean(json, "adaptive", group->adaptive != 0);
  limit(json, "min", group->min, unit);
  limit(json, "max", group->max, unit);
  string(json, "hold", group->hold ? "response" : "handler");
}

static void entries(json_out *json, const adm_survey *survey, int group, uint64_t unit) {
  const adm_total *total = &survey->total[group];
  uint32_t shown = !survey->seen ? 0 : total->busy < ENTRIES_SHOWN ? total->busy : ENTRIES_SHOWN;
  open(json, "entries", '[');
  for (uint32_t i = 0; i < shown; i++) {
    const adm_seen *seen = &survey->seen[survey->first[group] + i];
    open(json, NULL, '{');
    string(json, "label", seen->label);
    number(json, "held", seen->held * unit);
    number(json, "lingering", seen->lingering * unit);
    number(json, "waiting", seen->waiting);
    number(json, "oldest_ms", seen->oldest_ns / 1000000);
    close(json, '}');
  }
  close(json, ']');
  number(json, "entries_left_out", total->busy - shown);
  number(json, "entries_known", total->known);
}

static void group_object(json_out *json, const char *name, const adm_report *report, const adm_survey *survey, int index) {
  const adm_group *group = adm_group_at(report->table, index);
  const adm_total *total = &survey->total[index];
  uint64_t unit = index == ADM_GROUP_MEMORY ? ADM_COST_UNIT : 1;
  open(json, name, '{');
  string(json, "name", group->name);
  settings(json, group, unit);
  number(json, "held", total->held * unit);
  number(json, "lingering", total->lingering * unit);
  number(json, "waiting", total->waiting);
  number(json, "fullest", total->fullest * unit);
  number(json, "oldest_ms", total->oldest_ns / 1000000);
  number(json, "service_us", adm_mean_us(&group->service));
  counts(json, &group->counts);
  histogram(json, "wait", &group->wait);
  histogram(json, "service", &group->service);
  entries(json, survey, index, unit);
  close(json, '}');
}

static void header(json_out *json, const adm_report *report) {
  const adm_news *news = &report->news;
  number(json, "version", 1);
  string(json, "module", ADM_MODULE);
  moment(json, "written", report->written_ms);
  moment(json, "started", report->started_ms);
  if (news->pid) number(json, "pid", news->pid);
  else null(json, "pid");
  if (report->server_pid) number(json, "server_pid", report->server_pid);
  else null(json, "server_pid");
  string_or_null(json, "control_file", report->control_file);
  string_or_null(json, "control_error", news->error);
  number(json, "control_generation", news->generation);
  string_or_null(json, "engine", report->engine);
}

static void troubles(json_out *json, const adm_report *report) {
  adm_troubles seen = report->table ? adm_table_troubles(report->table) : (adm_troubles){0};
  open(json, "troubles", '{');
  number(json, "table_full", seen.table_full);
  number(json, "cells_full", seen.cells_full);
  number(json, "owners_full", seen.owners_full);
  number(json, "late_wakes", seen.late_wakes);
  number(json, "no_memory", report->without_table);
  close(json, '}');
}

static void groups(json_out *json, const adm_report *report, const adm_survey *survey) {
  group_object(json, "budget", report, survey, ADM_GROUP_MEMORY);
  group_object(json, "queue_workers", report, survey, ADM_GROUP_WAITING);
  open(json, "groups", '[');
  for (int group = ADM_GROUP_FIRST; group < ADM_GROUPS; group++)
    if (adm_survey_shows(report->table, group)) group_object(json, NULL, report, survey, group);
  close(json, ']');
}

static void table(json_out *json, const adm_report *report, const adm_survey *survey) {
  open(json, "table", '{');
  number(json, "entries", adm_table_shape(report->table).entries);
  number(json, "known", survey->known);
  close(json, '}');
}

static void render_without_table(json_out *json, const adm_report *report) {
  null(json, "budget");
  null(json, "queue_workers");
  open(json, "groups", '[');
  close(json, ']');
  troubles(json, report);
  null(json, "table");
}

static void render_table(json_out *json, const adm_report *report) {
  adm_survey survey;
  adm_survey_take(&survey, report->table, report->now_ns);
  groups(json, report, &survey);
  troubles(json, report);
  table(json, report, &survey);
  adm_survey_free(&survey);
}

void adm_render_json(const adm_report *report, adm_put put, void *world) {
  json_out json = {.first = true};
  adm_text_open(&json.text, put, world);
  open(&json, NULL, '{');
  header(&json, report);
  if (report->table) render_table(&json, report);
  else render_without_table(&json, report);
  close(&json, '}');
  adm_text_add(&json.text, "\n", 1);
  adm_text_close(&json.text);
}
