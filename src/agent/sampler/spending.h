/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spending: what samples cost, everything included, by the clocks of the agent's threads.
 *
 * A tick costs more than what happens in it: waking up and falling asleep are more than half. So a tick is charged all that its
 * thread has used since the one before, less what is known to have gone elsewhere, and what signals cost the job's threads;
 * a batch is charged its making and what the server has used since the last one, which sends it.
 * Belongs to the sampler's thread.
 */
#ifndef AGENT_SAMPLER_SPENDING_H
#define AGENT_SAMPLER_SPENDING_H

#include <stdint.h>

#include "base/cost.h"

struct spending {
    struct cost tick, batch;
    uint64_t total_ns;     /* for samples so far */
    uint64_t ticked_ns;    /* the thread's clock at the end of the last tick; 0 before the first */
    uint64_t elsewhere_ns; /* what of it since went elsewhere */
    uint64_t server_ns;    /* clocks of the agent's other threads at the last batch */
    uint64_t signals_ns;   /* as of the last tick */
};

/* Before a tick. When it is the first, what was spent before is not its, on signals neither. */
void spending_begin(struct spending *s, uint64_t signals_ns);

/* Since `cpu_ns` on its own clock the thread did something else. */
void spending_elsewhere(struct spending *s, uint64_t cpu_ns);

/* Since `cpu_ns` on its own clock the thread made a batch. */
void spending_batch(struct spending *s, uint64_t cpu_ns);

/* A tick ends; `signals_ns`: what signals have cost the job's threads so far. */
void spending_tick(struct spending *s, uint64_t signals_ns);

/* Percent of a core that batches use, of which one is sent every `interval_ns`. */
double spending_batches_pct(const struct spending *s, uint64_t interval_ns);

#endif
