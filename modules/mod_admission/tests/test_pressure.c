/*
 * test_pressure.c: the kernel's texts, whole, broken and absent, and what is between two readings.
 */
#include "../core/pressure.h"

#include "check.h"

#include <inttypes.h>

#define MEG (UINT64_C(1) << 20)
/* The one door. */
static void check(const char *what, const char *got, const char *expected) {
  check_text(got, expected, what, __FILE__, __LINE__);
}

static const char *say(const adm_reading *r, bool read) {
  static char out[160];
  snprintf(out, sizeof out, "%s stall %d %" PRIu64 " swap %d %" PRIu64 " memory %d %" PRIu64 "M/%" PRIu64 "M",
           read ? "read" : "no", r->group.known, r->group.some_us, r->knows_swap, r->swapped_in, r->knows_memory,
           r->available / MEG, r->total / MEG);
  return out;
}

static void psi(const char *text, const char *expected) {
  adm_reading r = {0};
  bool read = adm_read_psi(text, &r.group);
  check(text ? text : "(absent)", say(&r, read), expected);
}

static void cgroup(const char *current, const char *high, const char *max, const char *stat, const char *expected) {
  adm_reading r = {.knows_memory = true, .available = 600 * MEG, .total = 1000 * MEG};
  bool read = adm_read_cgroup(current, high, max, stat, &r);
  check(current ? current : "(absent)", say(&r, read), expected);
}

static void path(const char *text, const char *controller, const char *expected) {
  char out[64] = "none";
  if (!adm_cgroup_path(text, controller, out, sizeof out)) strcpy(out, "none");
  check(text, out, expected);
}

static void texts(void) {
  psi("some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=56\n",
      "read stall 1 1234 swap 0 0 memory 0 0M/0M");
  psi("some avg10=0.00 avg60=0.00 avg300=0.00 total=1234", "read stall 1 1234 swap 0 0 memory 0 0M/0M");
  psi("some avg10=0.00\nfull total=5\n", "no stall 0 0 swap 0 0 memory 0 0M/0M");
  psi("some total=\n", "no stall 0 0 swap 0 0 memory 0 0M/0M");
  psi("some total=99999999999999999999999\n", "no stall 0 0 swap 0 0 memory 0 0M/0M");
  psi("", "no stall 0 0 swap 0 0 memory 0 0M/0M");
  psi(NULL, "no stall 0 0 swap 0 0 memory 0 0M/0M");

  adm_reading r = {0};
  bool read = adm_read_meminfo("MemTotal:        1024000 kB\nMemFree:          1 kB\nMemAvailable:     512000 kB\n", &r);
  check("meminfo", say(&r, read), "read stall 0 0 swap 0 0 memory 1 500M/1000M");
  r = (adm_reading){0};
  check("old meminfo", say(&r, adm_read_meminfo("MemTotal: 1024 kB\nMemFree: 1 kB\n", &r)),
        "no stall 0 0 swap 0 0 memory 0 0M/0M");
  r = (adm_reading){0};
  read = adm_read_vmstat("pswpinx 9\npgpgin 3\npswpin 77\npswpout 8\n", &r);
  check("vmstat", say(&r, read), "read stall 0 0 swap 1 77 memory 0 0M/0M");
}

static void cgroups(void) {
  cgroup("314572800\n", "max\n", "524288000\n", "anon 5\ninactive_file 104857600\n", "read stall 0 0 swap 0 0 memory 1 300M/500M");
  cgroup("314572800\n", "419430400\n", "524288000\n", NULL, "read stall 0 0 swap 0 0 memory 1 100M/400M");
  cgroup("524288000\n", NULL, "419430400\n", "inactive_file 1\ntotal_inactive_file 209715200\n",
         "read stall 0 0 swap 0 0 memory 1 100M/400M");
  cgroup("524288000\n", NULL, "419430400\n", NULL, "read stall 0 0 swap 0 0 memory 1 0M/400M");
  /* A server of files: its group is full of them, as it always would be. */
  cgroup("523239424\n", "max\n", "524288000\n", "anon 5\ninactive_file 104857600\nactive_file 209715200\nslab_reclaimable 10485760\n",
         "read stall 0 0 swap 0 0 memory 1 311M/500M");
  cgroup("523239424\n", NULL, "524288000\n", "active_file 1\ntotal_inactive_file 104857600\ntotal_active_file 209715200\n",
         "read stall 0 0 swap 0 0 memory 1 301M/500M");
  cgroup("5\n", "max\n", "max\n", NULL, "read stall 0 0 swap 0 0 memory 1 600M/1000M");
  cgroup("5\n", NULL, "9223372036854771712\n", NULL, "read stall 0 0 swap 0 0 memory 1 600M/1000M");
  cgroup("5\n", NULL, NULL, NULL, "read stall 0 0 swap 0 0 memory 1 600M/1000M");
  cgroup("1048576\n", "max", "996147200\n", NULL, "read stall 0 0 swap 0 0 memory 1 600M/1000M");
  cgroup(NULL, NULL, "5", NULL, "no stall 0 0 swap 0 0 memory 1 600M/1000M");
  cgroup("rubbish", NULL, "5", NULL, "no stall 0 0 swap 0 0 memory 1 600M/1000M");
}

/* A machine that is short, and a small group in it with room: it has fewer bytes, and more than its reserve. */
static void a_group_on_a_short_machine(void) {
  adm_reading r = {.knows_memory = true, .available = 8000 * MEG, .total = 256000 * MEG};
  bool read = adm_read_cgroup("1073741824\n", "max\n", "4294967296\n", NULL, &r);
  check("the machine", say(&r, read), "read stall 0 0 swap 0 0 memory 1 8000M/256000M");
}

/* A group with room in one that is full: the one above has the larger limit, and leaves less. */
static void a_group_in_a_full_one(void) {
  adm_reading r = {.knows_memory = true, .available = 20000 * MEG, .total = 24000 * MEG};
  bool read = adm_read_cgroup("52428800\n", "max\n", "838860800\n", NULL, &r);
  check("the group", say(&r, read), "read stall 0 0 swap 0 0 memory 1 750M/800M");
  read = adm_read_cgroup("1048576000\n", "max\n", "1073741824\n", NULL, &r);
  check("the one above", say(&r, read), "read stall 0 0 swap 0 0 memory 1 24M/1024M");
}

static void paths(void) {
  path("0::/system.slice/apache2.service\n", "", "/system.slice/apache2.service");
  path("0::/\n", "memory", "none");
  path("9:name=systemd:/\n8:pids:/\n4:memory:/box/1\n0::/unified\n", "memory", "/box/1");
  path("9:name=systemd:/\n8:pids:/\n4:memory:/box/1\n0::/unified\n", "", "/unified");
  path("4:cpu,memory,pids:/both\n", "memory", "/both");
  path("4:cpu,memoryx:/both\n5:xmemory:/other", "memory", "none");
  path("4:memory:not-absolute\n", "memory", "none");
  path("4:memory:/12345678901234567890123456789012345678901234567890123456789012345678\n", "memory", "none");
  path("::::\n\n:\n4:memory", "memory", "none");
  path("", "", "none");
}

static void between(adm_reading before, adm_reading after, const char *expected) {
  adm_pressure p = adm_pressure_between(&before, &after);
  char out[160];
  snprintf(out, sizeof out, "stall %d %.3f swap %d %.1f memory %d %" PRIu64 "M/%" PRIu64 "M", p.knows_stall, p.stall,
           p.knows_swap, p.swapped_in, p.knows_memory, p.available / MEG, p.total / MEG);
  check("between", out, expected);
}

int main(void) {
  texts();
  cgroups();
  a_group_in_a_full_one();
  a_group_on_a_short_machine();
  paths();
  const adm_stalls none = {0};
  adm_reading first = {1000000000, true, true, none, {true, 100000}, 10, 200 * MEG, 1000 * MEG};
  adm_reading second = {1250000000, true, true, none, {true, 150000}, 60, 100 * MEG, 1000 * MEG};
  between(first, second, "stall 1 0.200 swap 1 200.0 memory 1 100M/1000M");
  between(second, first, "stall 0 0.000 swap 0 0.0 memory 1 200M/1000M");
  adm_reading other = {1250000000, true, true, none, {true, 5}, 0, 1, 0}; /* counters of another cgroup */
  between(first, other, "stall 1 0.000 swap 1 0.0 memory 1 0M/0M");
  first.machine = second.machine = first.group; /* the machine's are none, and known: those of the group are more */
  between(first, second, "stall 1 0.200 swap 1 200.0 memory 1 100M/1000M");
  second.machine.some_us += 125000; /* what another group stalls is the machine's, too */
  between(first, second, "stall 1 0.500 swap 1 200.0 memory 1 100M/1000M");
  second.group.known = false;
  between(first, second, "stall 1 0.500 swap 1 200.0 memory 1 100M/1000M");
  second.group.known = true;
  between((adm_reading){0}, second, "stall 0 0.000 swap 0 0.0 memory 1 100M/1000M");
  between(first, (adm_reading){.at_ns = 2000000000}, "stall 0 0.000 swap 0 0.0 memory 0 0M/0M");
  return checked("test_pressure");
}
