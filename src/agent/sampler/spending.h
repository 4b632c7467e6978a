/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spending: the cost of samples, everything included, by the clocks of the agent's threads.
 *
 * A tick costs more than its own work: waking up and falling asleep are more than half of it. So
 * a tick is charged all the time of its thread since the previous one, except known other work,
 * and the cost of signals in the job's threads. A batch that clients are sent is charged its
 * encoding, and the server's time since the last one, because the server sends it. Belongs to the
 * sampler's thread.
 */
#ifndef AGENT_SAMPLER_SPENDING_H
#define AGENT_SAMPLER_SPENDING_H

#include <stddef.h>
#include <stdint.h>

#include "base/cost.h"

struct spending {
    struct cost tick, batch;
    struct cost drain; /* of the sampler's thread, with timers */
    uint64_t total_ns; /* for samples so far */
    /* the thread's clock at the end of the last tick; 0 before the first one */
    uint64_t ticked_ns;
    uint64_t elsewhere_ns; /* other work since then */
    uint64_t server_ns;    /* clocks of the agent's other threads at the last batch, or before the first */
    uint64_t signals_ns;   /* at the last tick */
};

/* Before a tick. The first one is not charged for the time and the signals before it. */
void spending_begin(struct spending *s, uint64_t signals_ns);

/* The first client of all begins: its batches are not charged for the server's time before. */
void spending_begin_batches(struct spending *s);

/* Since `cpu_ns` on its own clock the thread did other work. */
void spending_elsewhere(struct spending *s, uint64_t cpu_ns);

/* Since `cpu_ns` on its own clock the thread made a batch. */
void spending_batch(struct spending *s, uint64_t cpu_ns);

/* A tick ends; `signals_ns`: the cost of signals in the job's threads so far. */
void spending_tick(struct spending *s, uint64_t signals_ns);

/* With timers: a drain of the `n_ticks` since the last one ends. A tick costs its signals and its
 * part of the drain: of thousands of threads each tick is thousands of rows. */
void spending_drain(struct spending *s, uint64_t signals_ns, size_t n_ticks);

/* Percent of a core that batches use if one is sent every `interval_ns`. */
double spending_batches_pct(const struct spending *s, uint64_t interval_ns);

#endif
