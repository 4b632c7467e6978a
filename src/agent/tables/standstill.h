/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standstill: the rows of python.waits: what threads wait for that stand still.
 *
 * A job that hangs, and is killed before anybody looks, leaves the reason. Once a second the CPU
 * clocks of the threads, which are read anyway, show which have not run for two seconds. Only if one
 * of those has not been looked at since, or a minute after the last time, one snapshot is made, within
 * a share of the cost of all tables. The sampler's thread.
 */
#ifndef AGENT_TABLES_STANDSTILL_H
#define AGENT_TABLES_STANDSTILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/tables/collect.h"
#include "base/cost.h"
#include "base/model.h"
#include "pystack/pystack.h"
#include "store/ring/ring.h"

/* A thread, ascending by number. */
struct standstill_thread {
    pid_t tid;
    uint64_t cpu_ns, still_ns; /* its clock, and since when that stands; monotonic */
    uint64_t written;          /* what the last row said; 0: none since it stands */
    bool looked;               /* a snapshot was made since it stands */
};

struct standstill {
    struct standstill_thread *threads;
    size_t n;
    uint64_t due_ns, looked_ns; /* the next snapshot may be made, the last one was; monotonic */
    struct cost cost;
};

void standstill_fini(struct standstill *w);

/* The clocks of the job's threads were read again. */
void standstill_take(struct standstill *w, const struct collect_thread *threads, size_t n, uint64_t now_ns);

/* True if a snapshot should be made now. */
bool standstill_is_due(const struct standstill *w, uint64_t now_ns);

/* Make it, except of the threads in `skip`, and give a row of RING_WAITS_COUNT values for each
 * thread about which there is something new to `put`. */
void standstill_read(struct standstill *w, struct pystack *ps, const int64_t *skip, size_t n_skip,
                     uint64_t now_ns, void (*put)(void *arg, const union ring_value *row), void *arg);

/* The rows of a snapshot; part of standstill_read. */
void standstill_put_rows(struct standstill *w, const struct model_snapshot *s, uint64_t now_ns, bool again,
                         void (*put)(void *arg, const union ring_value *row), void *arg);

/* Memory in use. */
size_t standstill_bytes(const struct standstill *w);

#endif
