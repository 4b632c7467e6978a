/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vitals: what the kernel tells everybody of a process, whether or not it answers: is it stopped, what memory it and its control
 * group take, and may take. Read by whoever asks; a few small files of /proc and the group, none of which wait for the process.
 */
#ifndef CLIENT_VITALS_H
#define CLIENT_VITALS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cgroup.h"

/* MODEL_UNKNOWN where it cannot be read. */
struct vitals {
    char state;         /* of the main thread, as the kernel says; '?' unknown */
    int64_t tracer_pid; /* who traces it (a debugger); 0 nobody */
    int64_t rss_bytes, swap_bytes;
    int64_t group_bytes; /* memory of its control group: of the one that leaves the least room */
    int64_t limit_bytes; /* and the most that one may have; MODEL_UNKNOWN also: there is no limit */
};

#define VITALS_FIND 60U /* reads until the group is found anew: limits change, processes are moved */

/* Knows the group of a process. Zeroed to begin with. */
struct vitals_reader {
    pid_t pid;
    unsigned reads;
    struct cgroup group;
};

/* Read those of process `pid`, as seen from here. */
void vitals_read(struct vitals_reader *r, pid_t pid, struct vitals *out);

/* Nothing is known. */
void vitals_init(struct vitals *v);

#endif
