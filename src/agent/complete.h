/* SPDX-License-Identifier: Apache-2.0 */
/*
 * complete: snapshots that wait for the python worker, and who waits for them.
 *
 * The sampler never waits: it puts a snapshot here with those who asked for it, and looks again when the worker has woken it,
 * or at the deadline. Then the answer goes out with what there is, and a note says what could not be had. Belongs to the
 * sampler's thread.
 */
#ifndef AGENT_COMPLETE_H
#define AGENT_COMPLETE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/worker.h"
#include "base/model.h"
#include "wire/wire.h"

#define COMPLETE_MAX 4   /* snapshots that wait at the same time */
#define COMPLETE_ASKS 32 /* requests that wait for one of them */
#define COMPLETE_LIMIT_MS 500

/* Who asked, and for what. */
struct complete_ask {
    uint32_t peer, id;
    struct wire_threads want;
};

struct complete_item {
    bool used;
    struct model_snapshot snapshot; /* owned */
    struct complete_ask asks[COMPLETE_ASKS];
    size_t n_asks;
    struct worker_job *values, *tasks; /* NULL: not wanted, or over */
    uint64_t deadline_ns;
    char note[2 * WORKER_WHY_MAX];
};

struct complete {
    struct worker *worker;
    void (*answer)(void *arg, const struct complete_ask *ask, const struct model_snapshot *s);
    void *arg;
    bool memory_tells_tasks; /* from 3.14 on: the worker is not asked for them */
    struct complete_item items[COMPLETE_MAX];
};

/* Answer these requests with what `s` is, completed: at once when there is nothing to complete or no room to wait, later
 * otherwise. The snapshot is moved out of `*s`. */
void complete_begin(struct complete *c, const struct complete_ask *asks, size_t n, struct model_snapshot *s);

/* Answer what is ready or late. `ps`: to tell who holds the GIL; may be NULL. */
void complete_poll(struct complete *c, struct pystack *ps);

/* When to look again at the latest; UINT64_MAX: nothing waits. */
uint64_t complete_next_ns(const struct complete *c);

/* Nobody gets an answer any more. */
void complete_fini(struct complete *c);

#endif
