/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: limits and usage of the process's control group, versions 1 and 2 (cgroups(7)).
 *
 * Limits of the enclosing groups count too, as far as they are visible. The group that leaves
 * the least room is the one reported, with its usage; callers search again now and then. No
 * thread of its own; usable inside the job.
 */
#ifndef BASE_CGROUP_H
#define BASE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/reread.h"

#define CGROUP_PATH 512

/* The groups that count; "" where there is none of that kind. All zero before the first search. */
struct cgroup {
    bool unified;             /* version 2 */
    char memory[CGROUP_PATH]; /* folder of the group with the tightest memory limit */
    char cpu[CGROUP_PATH];    /* folder of the nearest group with a CPU limit, otherwise its own */
    bool keep;                /* its files stay open until cgroup_close or another search */
    struct reread used, limit, throttled, pressure[2];
};

/* What tasks of a group may have to wait for (Documentation/accounting/psi.rst). */
enum cgroup_pressure { CGROUP_PRESSURE_MEMORY = 0, CGROUP_PRESSURE_IO };

/* Find the groups through the files "cgroup" and "mountinfo" in the folder `proc`
 * ("/proc/self"). */
void cgroup_find(struct cgroup *g, const char *proc);

/* Memory in use and its limit, in bytes; MODEL_UNKNOWN where there is none. */
void cgroup_read_memory(struct cgroup *g, int64_t *used, int64_t *limit);

/* Seconds for which threads of the group were throttled; NAN unknown. */
double cgroup_read_throttled_s(struct cgroup *g);

/* CPUs that the group may use at once; NAN without a limit. */
double cgroup_read_cpus(const struct cgroup *g);

/* Seconds, so far, in which some task of the group waited for it; of the machine, where groups do
 * not have it. NAN unknown. */
double cgroup_read_pressure_s(struct cgroup *g, enum cgroup_pressure which);

/* The folder of another process's memory group, into `buf`: by its file "cgroup" in the folder `proc`
 * ("/proc/17"), and this one's "mountinfo" in `self` ("/proc/self"). 0, or -1: it has none, or none that
 * can be seen from here. */
int cgroup_find_memory_of(const char *proc, const char *self, char *buf, size_t cap);

/* How many processes of the group in this folder the kernel has killed for lack of memory; MODEL_UNKNOWN where it
 * does not count them (before Linux 4.13). */
int64_t cgroup_read_memory_kills(const char *folder);

/* Close files that were kept open; only needed with `keep`. */
void cgroup_close(struct cgroup *g);

#endif
