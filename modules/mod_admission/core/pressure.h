/*
 * pressure.h: how short of memory the machine is, from the kernel's own texts.
 *
 * Each reader takes the text of one file of /proc or of a cgroup; two readings give what happened between them. Which
 * files there are, and opening them, is the caller's business (world.c): NULL stands for a file that is not there, and
 * what depends on it is then unknown or comes from the next source. Latency is deliberately no signal here.
 */
#ifndef ADMISSION_PRESSURE_H
#define ADMISSION_PRESSURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADM_UNBOUNDED UINT64_MAX /* no limit: `max` in a cgroup v2 file */

/* Of one PSI file: time in which some tasks waited for memory. */
typedef struct adm_stalls {
  bool known;
  uint64_t some_us;
} adm_stalls;

/* Raw counters at one moment. */
typedef struct adm_reading {
  uint64_t at_ns;
  bool knows_swap, knows_memory;
  adm_stalls machine, group;
  uint64_t swapped_in;        /* pages */
  uint64_t available, total;  /* bytes: what can still be taken, and of how much: of the machine or the cgroup that leaves least beside its
                                 reserve */
} adm_reading;

/* Bytes of so many that are to stay free: 5 %. */
static inline uint64_t adm_reserve(uint64_t total) { return total / 20; }

/* What two readings say. */
typedef struct adm_pressure {
  bool knows_stall, knows_swap, knows_memory;
  double stall;               /* fraction of the time between them, 0 to 1, of the machine or the group, whichever is more */
  double swapped_in;          /* pages per second */
  uint64_t available, total;  /* bytes, of the later reading */
} adm_pressure;

adm_pressure adm_pressure_between(const adm_reading *before, const adm_reading *after);

/* /proc/pressure/memory or memory.pressure of a cgroup. */
bool adm_read_psi(const char *text, adm_stalls *stalls);

/* /proc/meminfo: MemAvailable and MemTotal. */
bool adm_read_meminfo(const char *text, adm_reading *reading);

/* /proc/vmstat: pswpin. */
bool adm_read_vmstat(const char *text, adm_reading *reading);

/* One cgroup's texts: v2 memory.current, memory.high, memory.max, memory.stat; v1 memory.usage_in_bytes, (no high),
 * memory.limit_in_bytes, memory.stat. Where the group leaves less beside its reserve than is known already, available and total become its
 * own. Pages of files, and what the kernel keeps about them, count as available, as in MemAvailable: a server of files fills its group with
 * them. False when the texts say nothing. */
bool adm_read_cgroup(const char *current, const char *high, const char *max, const char *stat, adm_reading *reading);

/* The path of the own group from /proc/self/cgroup: for `controller` ("memory", v1) or for v2 (""). */
bool adm_cgroup_path(const char *text, const char *controller, char *path, size_t size);

#endif
