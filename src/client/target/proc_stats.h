/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc_stats: what the kernel tells everybody of a process, whether or not it answers: is it stopped, what memory it and its control
 * group take, and may take. Read by whoever asks; a few small files of /proc and the group, none of which wait for the process.
 */
#ifndef CLIENT_TARGET_PROC_STATS_H
#define CLIENT_TARGET_PROC_STATS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cgroup.h"

/* MODEL_UNKNOWN where it cannot be read. */
struct proc_stats {
    char state;         /* of the main thread, as the kernel says; '?' unknown */
    int64_t tracer_pid; /* who traces it (a debugger); 0 nobody */
    int64_t rss_bytes, swap_bytes;
    int64_t group_bytes; /* memory of its control group: of the one that leaves the least room */
    int64_t limit_bytes; /* and the most that one may have; MODEL_UNKNOWN also: there is no limit */
};

#define PROC_STATS_FIND 60U /* reads until the group is found anew: limits change, processes are moved */

/* Knows the group of a process. Zeroed to begin with. */
struct proc_stats_reader {
    pid_t pid;
    unsigned reads;
    struct cgroup group;
};

/* Read those of process `pid`, as seen from here. */
void proc_stats_read(struct proc_stats_reader *r, pid_t pid, struct proc_stats *out);

/* Nothing is known. */
void proc_stats_init(struct proc_stats *v);

#endif
