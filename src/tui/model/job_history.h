/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_history: what the ranks of a job did before, to step through.
 *
 * Bounded: of old moments ever fewer are kept, so that those that are left are spaced by their age. One thread.
 */
#ifndef TUI_MODEL_JOB_HISTORY_H
#define TUI_MODEL_JOB_HISTORY_H

#include <stddef.h>

#include "tui/model/job_shot.h"

#define JOB_HISTORY_BYTES ((size_t)16 << 20)

/* A zeroed struct is empty. */
struct job_history {
    struct job_shot **items; /* the oldest first; owned */
    size_t n, cap;
    size_t bytes;
};

void job_history_fini(struct job_history *p);

/* Take over a shot, which is the newest, and drop others, or itself, until `limit` bytes are left; but not `shown`
 * (may be NULL). 0, or -1 without memory: then it is still the caller's. */
int job_history_add(struct job_history *p, struct job_shot *shot, const struct job_shot *shown, size_t limit);

/* The newest that is not after a time, in seconds since the epoch. NULL: none. */
const struct job_shot *job_history_find(const struct job_history *p, double at_s);

/* The number of a shot; `p->n`: it is not among them. */
size_t job_history_index(const struct job_history *p, const struct job_shot *shot);

#endif
