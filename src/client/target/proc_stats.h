/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc_stats: the kernel's facts about a process, whether or not it answers: whether it is
 * stopped, and memory and limits of it and its control group. Any thread; reads a few small
 * files of /proc and the group, none of which wait for the process.
 */
#ifndef CLIENT_TARGET_PROC_STATS_H
#define CLIENT_TARGET_PROC_STATS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cgroup.h"

/* MODEL_UNKNOWN if it cannot be read. */
struct proc_stats {
    char state;         /* of the main thread, the kernel's letter; '?' unknown */
    int64_t tracer_pid; /* its tracer (a debugger); 0 none */
    int64_t rss_bytes, swap_bytes;
    int64_t group_bytes; /* memory of its control group, of the one that leaves the least room */
    int64_t limit_bytes; /* and its limit; MODEL_UNKNOWN also for no limit */
};

/* reads until the group is searched for again: limits change, processes are moved */
#define PROC_STATS_FIND 60U

/* Caches the group of a process. Starts with zeros. */
struct proc_stats_reader {
    pid_t pid;
    unsigned reads;
    struct cgroup group;
};

/* Read the facts about process `pid`, in our numbering. */
void proc_stats_read(struct proc_stats_reader *r, pid_t pid, struct proc_stats *out);

/* Make everything unknown. */
void proc_stats_init(struct proc_stats *v);

#endif
