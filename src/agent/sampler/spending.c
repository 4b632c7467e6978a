/* SPDX-License-Identifier: Apache-2.0 */
/* spending: see spending.h. */
#include "agent/sampler/spending.h"

#include "agent/threads.h"
#include "base/clock.h"

static uint64_t spending_difference(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

void spending_begin(struct spending *s, uint64_t signals_ns) {
    if (s->ticked_ns)
        return;
    s->ticked_ns = clock_self_cpu_ns();
    s->signals_ns = signals_ns;
    s->elsewhere_ns = 0;
}

void spending_begin_batches(struct spending *s) { s->server_ns = threads_others_cpu_ns(); }

void spending_elsewhere(struct spending *s, uint64_t cpu_ns) {
    s->elsewhere_ns += spending_difference(clock_self_cpu_ns(), cpu_ns);
}

void spending_batch(struct spending *s, uint64_t cpu_ns) {
    uint64_t own = spending_difference(clock_self_cpu_ns(), cpu_ns), server = threads_others_cpu_ns();
    uint64_t spent = own + spending_difference(server, s->server_ns);
    s->server_ns = server;
    s->elsewhere_ns += own;
    s->total_ns += spent;
    cost_add(&s->batch, spent);
}

/* The thread's own time and that of signals since the last tick or drain. */
static uint64_t spending_since(struct spending *s, uint64_t signals_ns, uint64_t *signals) {
    uint64_t now = clock_self_cpu_ns();
    uint64_t own = spending_difference(spending_difference(now, s->ticked_ns), s->elsewhere_ns);
    *signals = spending_difference(signals_ns, s->signals_ns);
    s->ticked_ns = now;
    s->elsewhere_ns = 0;
    s->signals_ns = signals_ns;
    s->total_ns += own + *signals;
    return own;
}

void spending_tick(struct spending *s, uint64_t signals_ns) {
    uint64_t signals, own = spending_since(s, signals_ns, &signals);
    cost_add(&s->tick, own + signals);
}

void spending_drain(struct spending *s, uint64_t signals_ns, size_t n_ticks) {
    uint64_t signals, own = spending_since(s, signals_ns, &signals);
    cost_add(&s->drain, own);
    if (n_ticks)
        cost_add(&s->tick, (own + signals) / n_ticks);
}

double spending_batches_pct(const struct spending *s, uint64_t interval_ns) {
    return s->batch.run_ns / (double)interval_ns * 100.0;
}
