/* SPDX-License-Identifier: Apache-2.0 */
/* cost: see cost.h. */
#include "base/cost.h"

#include <math.h>

#include "base/hash.h"

#define COST_MEMORY 8.0     /* runs that the mean looks back */
#define COST_WARM 4         /* first runs, which may find nothing cached */
#define COST_OUTLIER 4.0    /* a single run counts as at most so many means */
#define COST_PACE_LIMIT 8.0 /* longest wait, in means */
#define COST_LIMITING 0.5   /* of the budget: what is measured varies, and lags by seconds */
#define COST_METER_NEAR (1 * CLOCK_NS_PER_S)
#define COST_METER_SHIFT (5 * CLOCK_NS_PER_S)

void cost_add(struct cost *c, uint64_t run_ns) {
    double run = (double)run_ns;
    bool warm = c->runs >= COST_WARM;
    if (c->runs == 0 || (!warm && run < c->run_ns))
        c->run_ns = run;
    else if (warm && c->run_ns > 0 && run > COST_OUTLIER * c->run_ns)
        c->run_ns += (COST_OUTLIER - 1) * c->run_ns / COST_MEMORY;
    else
        c->run_ns += (run - c->run_ns) / COST_MEMORY;
    c->runs++;
}

uint64_t cost_interval_ns(const struct cost *c, uint64_t wanted_ns, double budget_pct, bool *stretched) {
    double least = c->run_ns * 100.0 / budget_pct;
    *stretched = least > (double)wanted_ns * 1.05;
    return least > (double)wanted_ns ? (uint64_t)least : wanted_ns;
}

uint64_t cost_stream_ns(const struct cost *c, uint64_t wanted_ns, double budget_pct, bool *stretched) {
    bool beyond;
    uint64_t interval = cost_interval_ns(c, wanted_ns, budget_pct, stretched);
    uint64_t most = cost_interval_ns(c, wanted_ns, COST_STREAM_BUDGETS * budget_pct, &beyond);
    most = most > COST_STREAM_NS ? most : COST_STREAM_NS;
    return interval < most ? interval : most;
}

bool cost_is_limiting(double cost_pct, double budget_pct) {
    return budget_pct > 0 && cost_pct >= COST_LIMITING * budget_pct;
}

double cost_meter_add(struct cost_meter *m, uint64_t now_ns, uint64_t cpu_ns) {
    if (m->n == 0) {
        m->at_ns[0] = m->at_ns[1] = now_ns;
        m->cpu_ns[0] = m->cpu_ns[1] = cpu_ns;
        m->n = 1;
        return NAN;
    }
    if (now_ns - m->at_ns[1] >= COST_METER_SHIFT) {
        m->at_ns[0] = m->at_ns[1];
        m->cpu_ns[0] = m->cpu_ns[1];
        m->at_ns[1] = now_ns;
        m->cpu_ns[1] = cpu_ns;
    }
    int from = now_ns - m->at_ns[1] >= COST_METER_NEAR;
    uint64_t span = now_ns - m->at_ns[from];
    if (span == 0 || cpu_ns < m->cpu_ns[from])
        return NAN;
    return 100.0 * (double)(cpu_ns - m->cpu_ns[from]) / (double)span;
}

void cost_pace_init(struct cost_pace *p, uint64_t seed) { p->state = hash_mix(seed) | 1; }

/* In (0, 1]. xorshift64* (Marsaglia 2003, Vigna 2014). */
static double cost_pace_uniform(struct cost_pace *p) {
    p->state ^= p->state >> 12;
    p->state ^= p->state << 25;
    p->state ^= p->state >> 27;
    uint64_t bits = p->state * 0x2545F4914F6CDD1DULL >> 11;
    return ((double)bits + 1.0) / 9007199254740993.0; /* 53 bits */
}

uint64_t cost_pace_near_ns(struct cost_pace *p, uint64_t mean_ns) {
    return (uint64_t)((0.5 + cost_pace_uniform(p)) * (double)mean_ns);
}

uint64_t cost_pace_below_ns(struct cost_pace *p, uint64_t limit_ns) {
    return (uint64_t)((1 - cost_pace_uniform(p)) * (double)limit_ns);
}

uint64_t cost_pace_next_ns(struct cost_pace *p, uint64_t mean_ns) {
    double wait = -log(cost_pace_uniform(p));
    return (uint64_t)((wait < COST_PACE_LIMIT ? wait : COST_PACE_LIMIT) * (double)mean_ns);
}
