/*
 * test_render.c: what the status says of one table that is set by hand, in each format, against tests/golden; and that
 * whatever a label holds stays inside its quotes. ADM_GOLDEN=write writes the golden files anew, for review.
 *
 * tests/golden/status.json is also what the Rust side reads in its tests: one file says what both mean.
 */
#include "../core/render.h"
#include "../core/survey.h"
#include "../core/text.h"

#include "check.h"
#include "world.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Text that was put, terminated. */
typedef struct page {
  char text[1 << 16];
  size_t length;
} page;

static void keep(void *world, const char *text, size_t length) {
  page *to = world;
  if (length >= sizeof to->text - to->length) abort();
  memcpy(to->text + to->length, text, length);
  to->length += length;
  to->text[to->length] = '\0';
}

/* ---- the table of the golden files ---- */

#define NOW_NS UINT64_C(9000000000000)

/* Requests that hold a permit since `held_ms` milliseconds, and some that wait. */
static void fill(adm_table *table, adm_owner owner, adm_layer layer, unsigned permits, unsigned waiters, uint64_t held_ms) {
  adm_request request = {.layer = &layer, .layers = 1};
  adm_answer answer;
  adm_entry *entry = NULL;
  for (unsigned i = 0; i < permits; i++) {
    CHECK_EQUAL(adm_admit(table, owner, &request, &answer), ADM_ADMITTED);
    entry = answer.permit[0].entry;
    since_of(table, entry)[answer.permit[0].cell] = NOW_NS - held_ms * 1000000;
  }
  for (unsigned i = 0; i < waiters; i++) waiting_of(table, entry)[i] = token_in_state(token_make(table, owner) | 1, WAITER_WAITING);
  entry->waiters_top = waiters;
}

static void measured(adm_group *group, uint64_t mean_us) {
  group->service.bucket[17] = 900;
  group->service.bucket[20] = 100;
  group->service.sum_us = 1000 * mean_us;
  group->wait.bucket[10] = 40;
  group->wait.bucket[21] = 9;
  group->wait.bucket[ADM_BUCKETS - 1] = 1;
  group->wait.sum_us = 91500000;
}

static void php(adm_table *table, adm_owner owner) {
  int group = group_with(table, "php", 4, 20, ADM_FIFO);
  fill(table, owner, layer_of(table, group, "/var/www/html/sleep.php"), 4, 2, 2500);
  fill(table, owner, layer_of(table, group, "/var/www/html/\xe6\x97\xa5\xe6\x9c\xac/\"<b>\".php"), 1, 0, 12);
  adm_group *seen = adm_group_at(table, group);
  measured(seen, 96000);
  adm_counts *counts = &seen->counts;
  counts->admitted = 12345;
  counts->queued = 678;
  counts->rejected = 90;
  counts->timeout = 12;
  counts->gone = 3;
  counts->bypass = 5;
  counts->open = 1;
  counts->reaped = 2;
}

static void uploads(adm_table *table, adm_owner owner) {
  int group = adm_group_add(table, "uploads");
  adm_settings settings = {.limit = 8, .queue = 4, .timeout_ms = 500, .status = 429, .cost = 3200, .min = 1, .max = 16,
                           .mode = ADM_OBSERVE, .order = ADM_ADAPTIVE, .adaptive = 1, .learn = 1, .hold = 1};
  adm_group *seen = adm_group_at(table, group);
  adm_group_apply(seen, &settings);
  seen->limit = 2;
  seen->cost = 3000;
  fill(table, owner, layer_of(table, group, "cut\xe6\x97 within a letter"), 2, 0, 70000);
  seen->counts.admitted = 20;
  seen->counts.would_reject = 7;
  seen->counts.would_queue = 11;
}

static adm_table *golden_table(void) {
  adm_table *table = table_of(SMALL);
  adm_owner owner = adm_owner_join(table, (adm_process){10, 1});
  php(table, owner);
  uploads(table, owner);
  adm_group_add(table, "never-set");
  adm_group_apply(adm_group_at(table, ADM_GROUP_MEMORY), &(adm_settings){.limit = 12800, .mode = ADM_ENFORCE, .status = 503});
  adm_group_apply(adm_group_at(table, ADM_GROUP_WAITING), &(adm_settings){.limit = 38, .mode = ADM_ENFORCE, .status = 503});
  adm_layer memory = layer_of(table, ADM_GROUP_MEMORY, "memory"), waiting = layer_of(table, ADM_GROUP_WAITING, "");
  memory.cost = 3000;
  memory.key = waiting.key = 0; /* the entries that there always are */
  fill(table, owner, memory, 2, 0, 70000);
  fill(table, owner, waiting, 2, 0, 300);
  table->shared->table_full = 4;
  return table;
}

static adm_report golden_report(adm_table *table) {
  return (adm_report){.table = table,
                      .now_ns = NOW_NS,
                      .written_ms = 1795370400250,
                      .started_ms = 1795366800000,
                      .server_pid = 4242,
                      .control_file = "/etc/apache2/admission.control",
                      .engine = "observe",
                      .news = {.pid = 4243, .generation = 3, .error = "line 2: no group is called \"pph\""}};
}

/* ---- golden files ---- */

static void golden(const char *name, void (*render)(const adm_report *, adm_put, void *)) {
  static page seen, expected;
  char path[4096];
  const char *slash = strrchr(__FILE__, '/');
  snprintf(path, sizeof path, "%.*sgolden/%s", slash ? (int)(slash - __FILE__) + 1 : 0, __FILE__, name);
  adm_table *table = golden_table();
  adm_report report = golden_report(table);
  seen.length = 0;
  render(&report, keep, &seen);
  const char *wish = getenv("ADM_GOLDEN");
  FILE *file = fopen(path, wish && strcmp(wish, "write") == 0 ? "w+" : "r");
  CHECK(file != NULL);
  if (!file) return;
  if (wish && strcmp(wish, "write") == 0) fwrite(seen.text, 1, seen.length, file), rewind(file);
  expected.length = fread(expected.text, 1, sizeof expected.text - 1, file);
  expected.text[expected.length] = '\0';
  fclose(file);
  check_text(seen.text, expected.text, name, __FILE__, __LINE__);
  table_end(table);
}

static void an_empty_table_says_so(void) {
  static page seen;
  adm_table *table = table_of(SMALL);
  adm_report report = {.table = table};
  adm_render_html(&report, keep, &seen);
  CHECK(strstr(seen.text, "<p>No permit is held and nobody waits.</p>") != NULL);
  seen.length = 0;
  adm_render_json(&report, keep, &seen);
  CHECK(strstr(seen.text, "\"written\":null,\"started\":null,\"pid\":null,\"server_pid\":null,\"control_file\":null,"
                          "\"control_error\":null,\"control_generation\":0") != NULL);
  CHECK(strstr(seen.text, "\"groups\":[]") != NULL);
  table_end(table);
}

/* Without memory for a table there is still something to say: that nothing is limited, and for how many requests that was so. */
static void without_a_table_it_says_so(void) {
  static page seen;
  adm_report report = {.engine = "on", .without_table = 42};
  adm_render_json(&report, keep, &seen);
  CHECK_TEXT(seen.text, "{\"version\":1,\"module\":\"" ADM_MODULE "\",\"written\":null,\"started\":null,\"pid\":null,\"server_pid\":null,"
                        "\"control_file\":null,\"control_error\":null,\"control_generation\":0,\"engine\":\"on\",\"budget\":null,"
                        "\"queue_workers\":null,\"groups\":[],\"troubles\":{\"table_full\":0,\"cells_full\":0,\"owners_full\":0,"
                        "\"late_wakes\":0,\"no_memory\":42},\"table\":null}\n");
  seen.length = 0;
  adm_render_prometheus(&report, keep, &seen);
  CHECK_TEXT(strstr(seen.text, "# TYPE"), "# TYPE admission_engine gauge\nadmission_engine{engine=\"on\"} 1\n"
             "# HELP admission_no_memory_total Requests let through because there was no shared memory.\n"
             "# TYPE admission_no_memory_total counter\nadmission_no_memory_total 42\n");
  seen.length = 0;
  adm_render_html(&report, keep, &seen);
  CHECK_TEXT(seen.text, "<dl>\n<dt><strong>No shared memory: nothing is limited (the error log says why).</strong></dt>\n"
                        "<dt>Requests let through for that: 42</dt>\n</dl>\n");
  seen.length = 0;
  adm_render_short(&report, keep, &seen);
  CHECK_TEXT(seen.text, "AdmissionNoMemory: 42\n");
}

/* More entries than a page shows: the sums are over all, and it says how many are left out. */
static void what_is_left_out_is_counted(void) {
  static page seen;
  adm_table *table = table_of((adm_shape){.entries = 1024, .cells = 4, .waiters = 4});
  adm_owner owner = adm_owner_join(table, (adm_process){10, 1});
  int group = group_with(table, "client", 4, 0, ADM_FIFO);
  for (int i = 0; i < 130; i++) {
    char label[16];
    snprintf(label, sizeof label, "10.0.0.%d", i);
    fill(table, owner, layer_of(table, group, label), 1, 0, 1);
  }
  adm_report report = {.table = table, .now_ns = NOW_NS};
  adm_render_json(&report, keep, &seen);
  CHECK(strstr(seen.text, "\"held\":130,") != NULL);
  CHECK(strstr(seen.text, "\"entries_left_out\":30,\"entries_known\":130") != NULL);
  seen.length = 0;
  adm_render_html(&report, keep, &seen);
  CHECK(strstr(seen.text, "<p>110 more entries hold no more than these.</p>") != NULL);
  table_end(table);
}

/* ---- text ---- */

static void escapes(adm_escape how, const char *from, const char *expected) {
  static page seen;
  seen.length = 0;
  seen.text[0] = '\0';
  adm_text text;
  adm_text_open(&text, keep, &seen);
  adm_text_escape(&text, how, from);
  adm_text_close(&text);
  CHECK_TEXT(seen.text, expected);
}

#define NO_LETTER "\xef\xbf\xbd"

static void labels_stay_inside_their_quotes(void) {
  escapes(ADM_TEXT_JSON, "a\"b\\c\n\x01\x7f</script>", "a\\\"b\\\\c\\u000a\\u0001\\u007f</script>");
  escapes(ADM_TEXT_PROMETHEUS, "a\"b\\c\nd\te", "a\\\"b\\\\c\\nd\te");
  escapes(ADM_TEXT_HTML, "<a href='x'>&\"\x1b", "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&#xfffd;");
  escapes(ADM_TEXT_LINE, "a\r\nb", "a" NO_LETTER NO_LETTER "b");
  escapes(ADM_TEXT_JSON, "\xe6\x97\xa5 \xf0\x9f\x9a\x97", "\xe6\x97\xa5 \xf0\x9f\x9a\x97");
  escapes(ADM_TEXT_HTML, "\xe6\x97\xa5\xc3\xa9\xf0\x9f\x9a\x97", "&#x65e5;&#xe9;&#x1f697;");
  escapes(ADM_TEXT_JSON, "\x97\xa5x", NO_LETTER NO_LETTER "x");                         /* cut at its front */
  escapes(ADM_TEXT_JSON, "\xe6\x97", NO_LETTER NO_LETTER);                              /* and at its end */
  escapes(ADM_TEXT_JSON, "\xc0\xaf\xe0\x80\xaf", NO_LETTER NO_LETTER NO_LETTER NO_LETTER NO_LETTER); /* overlong */
  escapes(ADM_TEXT_JSON, "\xed\xa0\x80", NO_LETTER NO_LETTER NO_LETTER);                /* a surrogate */
  escapes(ADM_TEXT_JSON, "\xf4\x90\x80\x80\xff", NO_LETTER NO_LETTER NO_LETTER NO_LETTER NO_LETTER); /* above U+10FFFF */
  escapes(ADM_TEXT_JSON, "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf");
}

static void decimals_have_no_zeros_at_their_end(void) {
  static const struct { uint64_t value; unsigned digits; const char *expected; } cases[] = {
      {0, 6, "0"}, {1, 6, "0.000001"}, {1500000, 6, "1.5"}, {67108864, 6, "67.108864"}, {1795370400250, 3, "1795370400.25"}, {120, 0, "120"}, {10, 1, "1"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    page *seen = calloc(1, sizeof *seen);
    adm_text text;
    adm_text_open(&text, keep, seen);
    adm_text_decimal(&text, cases[i].value, cases[i].digits);
    adm_text_close(&text);
    CHECK_TEXT(seen->text, cases[i].expected);
    free(seen);
  }
}

/* Text longer than the buffer comes out whole and in order. */
static void nothing_is_lost_between_two_puts(void) {
  static page seen;
  adm_text text;
  adm_text_open(&text, keep, &seen);
  for (int i = 0; i < 5000; i++) adm_text_say(&text, "%04d", i);
  static const char zeros[5000];
  adm_text_add(&text, zeros, sizeof zeros);
  adm_text_close(&text);
  CHECK_EQUAL(seen.length, 25000);
  for (int i = 0; i < 5000; i++) {
    char number[8];
    snprintf(number, sizeof number, "%04d", i);
    CHECK(memcmp(seen.text + 4 * i, number, 4) == 0);
  }
}

static void percentiles_are_ends_of_buckets(void) {
  adm_histogram none = {0}, some = {.bucket = {[0] = 1, [10] = 98, [ADM_BUCKETS - 1] = 1}};
  CHECK_EQUAL(adm_histogram_below(&none, 50), 0);
  CHECK_EQUAL(adm_histogram_below(&some, 1), 1);
  CHECK_EQUAL(adm_histogram_below(&some, 50), 1024);
  CHECK_EQUAL(adm_histogram_below(&some, 99), 1024);
  CHECK(adm_histogram_below(&some, 100) == UINT64_MAX);
}

/* ---- news ---- */

static void news_come_whole_or_not_at_all(void) {
  adm_news_board *board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  adm_news seen;
  CHECK(!adm_news_read(NULL, &seen));
  CHECK_EQUAL(seen.pid, 0);
  CHECK(adm_news_read(board, &seen)); /* nobody has spoken: a whole, empty piece of news */
  CHECK_EQUAL(seen.pid, 0);
  pid_t writer = fork();
  if (writer == 0)
    for (uint64_t i = 1;; i++) {
      adm_news news = {.pid = 7, .generation = i};
      memset(news.error, 'a' + (int)(i % 26), ADM_NEWS_TEXT - 1);
      adm_news_write(board, &news);
    }
  unsigned whole = 0;
  uint64_t patience = adm_now_ns() + UINT64_C(20000000000); /* on a busy machine the writer may be late */
  for (int i = 0; i < 200000 || (whole == 0 && adm_now_ns() < patience); i++) {
    if (!adm_news_read(board, &seen) || seen.pid == 0) continue;
    whole++;
    bool same = true;
    for (int c = 0; c < ADM_NEWS_TEXT - 1; c++) same &= seen.error[c] == (char)('a' + (int)(seen.generation % 26));
    if (!same) CHECK(same);
  }
  kill(writer, SIGKILL);
  waitpid(writer, NULL, 0);
  CHECK(whole > 0);
  board->version |= 1; /* as if it was killed within a sentence */
  CHECK(!adm_news_read(board, &seen));
  CHECK_EQUAL(seen.generation, 0);
  adm_news_write(board, &(adm_news){.pid = 8, .generation = 1, .error = "line 1: x"});
  CHECK(adm_news_read(board, &seen));
  CHECK_TEXT(seen.error, "line 1: x");
  munmap(board, sizeof *board);
}

int main(void) {
  golden("status.json", adm_render_json);
  golden("status.prom", adm_render_prometheus);
  golden("status.html", adm_render_html);
  golden("status.txt", adm_render_short);
  an_empty_table_says_so();
  without_a_table_it_says_so();
  what_is_left_out_is_counted();
  labels_stay_inside_their_quotes();
  decimals_have_no_zeros_at_their_end();
  nothing_is_lost_between_two_puts();
  percentiles_are_ends_of_buckets();
  news_come_whole_or_not_at_all();
  return checked("render");
}
