/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pending_snapshots: snapshots that wait for the python worker, and who waits for them.
 *
 * The sampler never waits: it puts a snapshot here with those who asked for it, and looks again when the worker has woken it,
 * or at the deadline. Then the answer goes out with what there is, and a note says what could not be had. Belongs to the
 * sampler's thread.
 */
#ifndef AGENT_SAMPLER_PENDING_SNAPSHOTS_H
#define AGENT_SAMPLER_PENDING_SNAPSHOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/python/worker.h"
#include "agent/server/reply.h"
#include "base/model.h"
#include "wire/wire.h"

#define PENDING_SNAPSHOTS_MAX 4   /* snapshots that wait at the same time */
#define PENDING_SNAPSHOTS_ASKS 32 /* requests that wait for one of them */
#define PENDING_SNAPSHOTS_LIMIT_MS 500

struct pending_snapshots_item {
    bool used;
    struct model_snapshot snapshot; /* owned */
    struct reply_to asks[PENDING_SNAPSHOTS_ASKS];
    size_t n_asks;
    struct worker_job *values, *tasks; /* NULL: not wanted, or over */
    uint64_t deadline_ns;
    char note[2 * WORKER_WHY_MAX];
};

struct pending_snapshots {
    struct worker *worker;
    void (*answer)(void *arg, const struct reply_to *ask, const struct model_snapshot *s);
    void *arg;
    bool memory_tells_tasks; /* from 3.14 on: the worker is not asked for them */
    struct pending_snapshots_item items[PENDING_SNAPSHOTS_MAX];
};

/* Answer these requests with what `s` is, completed: at once when there is nothing to complete or no room to wait, later
 * otherwise. The snapshot is moved out of `*s`. */
void pending_snapshots_begin(struct pending_snapshots *c, const struct reply_to *asks, size_t n,
                             struct model_snapshot *s);

/* Answer what is ready or late. `ps`: to tell who holds the GIL; may be NULL. */
void pending_snapshots_poll(struct pending_snapshots *c, struct pystack *ps);

/* When to look again at the latest; UINT64_MAX: nothing waits. */
uint64_t pending_snapshots_next_ns(const struct pending_snapshots *c);

/* Nobody gets an answer any more. */
void pending_snapshots_fini(struct pending_snapshots *c);

#endif
