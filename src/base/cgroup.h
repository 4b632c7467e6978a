/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup: what the process's control group allows it and has taken from it, of both versions (cgroups(7)).
 *
 * Limits of the groups around it count too, as far as they can be seen from here: the one that leaves the least room is the one
 * that is told, with what is used of it; whoever reads it finds it again now and then. No thread of its own; usable inside the job.
 */
#ifndef BASE_CGROUP_H
#define BASE_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CGROUP_PATH 512

/* The groups that count; "" where there is none, or none of that kind. */
struct cgroup {
    bool unified;             /* version 2 */
    char memory[CGROUP_PATH]; /* folder of the group whose memory is the tightest */
    char cpu[CGROUP_PATH];    /* of the nearest group whose CPU time is limited; else of its own */
};

/* Find them by the files "cgroup" and "mountinfo" in the folder `proc` ("/proc/self"). */
void cgroup_find(struct cgroup *g, const char *proc);

/* Memory used and the most that may be used; MODEL_UNKNOWN, of the limit also: there is none. */
void cgroup_read_memory(const struct cgroup *g, int64_t *used, int64_t *limit);

/* Seconds for which threads of the group were kept from running; NAN unknown. */
double cgroup_read_throttled_s(const struct cgroup *g);

#endif
