/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pending_snapshots: snapshots that wait for the python worker, and the clients that wait for
 * them.
 *
 * The sampler never waits: it stores a snapshot here with its requests, and checks it again when
 * the worker has woken it, or at the deadline. Then the answer is sent with the available data,
 * and a note lists the missing data. Belongs to the sampler's thread.
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
    struct worker_job *values, *tasks; /* NULL if not wanted or finished */
    uint64_t deadline_ns;
    char note[2 * WORKER_WHY_MAX];
};

struct pending_snapshots {
    struct worker *worker;
    void (*answer)(void *arg, const struct reply_to *ask, const struct model_snapshot *s);
    void *arg;
    bool memory_tells_tasks; /* from 3.14 on: tasks are read from memory, the worker is not asked */
    struct pending_snapshots_item items[PENDING_SNAPSHOTS_MAX];
};

/* Answer these requests with `s`, completed: immediately if nothing is to be completed or there
 * is no room to wait, otherwise later. The snapshot is moved out of `*s`. */
void pending_snapshots_begin(struct pending_snapshots *c, const struct reply_to *asks, size_t n,
                             struct model_snapshot *s);

/* Answer what is ready or late. `ps`: for the name of the thread that has the GIL; may be NULL. */
void pending_snapshots_poll(struct pending_snapshots *c, struct pystack *ps);

/* The latest time of the next poll; UINT64_MAX if nothing waits. */
uint64_t pending_snapshots_next_ns(const struct pending_snapshots *c);

/* From now on nobody gets an answer. */
void pending_snapshots_fini(struct pending_snapshots *c);

#endif
