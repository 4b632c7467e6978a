/* SPDX-License-Identifier: Apache-2.0 */
/* trace_pace: see trace_pace.h. */
#include "agent/torch/trace_pace.h"

#define PACE_SAVED 4.0    /* readings that may be saved up for */
#define PACE_WEIGHT 0.125 /* of the newest reading in the cost of one */
/* times the cost of one: the reading itself did not take that long, so it counts only in part */
#define PACE_OUTLIER 8.0
#define PACE_SEED 0x9e3779b97f4a7c15ULL

void trace_pace_begin(struct trace_pace *p, double share) {
    *p = (struct trace_pace){.share = share, .seed = PACE_SEED};
}

/* Between 0 and 1. G. Marsaglia, Xorshift RNGs. */
static double pace_draw(struct trace_pace *p) {
    p->seed ^= p->seed << 13;
    p->seed ^= p->seed >> 7;
    p->seed ^= p->seed << 17;
    return (double)(p->seed >> 11) * 0x1p-53;
}

bool trace_pace_is_due(struct trace_pace *p, uint64_t now_ns) {
    if (p->last_ns && now_ns > p->last_ns)
        p->saved_ns += (double)(now_ns - p->last_ns) * p->share;
    p->last_ns = now_ns;
    if (p->saved_ns > PACE_SAVED * p->cost_ns)
        p->saved_ns = PACE_SAVED * p->cost_ns;
    return p->share >= 1 || p->looks < TRACE_PACE_FIRST || p->saved_ns >= p->wanted_ns;
}

bool trace_pace_is_measured(const struct trace_pace *p) {
    return p->looks < TRACE_PACE_FIRST || p->looks % TRACE_PACE_SURE == 0;
}

void trace_pace_took(struct trace_pace *p, uint64_t cpu_ns) {
    double cost = (double)cpu_ns;
    if (cpu_ns && p->looks < TRACE_PACE_FIRST) /* the first ones find the variables */
        p->cost_ns = p->cost_ns > 0 && p->cost_ns < cost ? p->cost_ns : cost;
    else if (cpu_ns) {
        double most = PACE_OUTLIER * p->cost_ns;
        p->cost_ns += PACE_WEIGHT * ((cost < most ? cost : most) - p->cost_ns);
    }
    p->looks++;
    p->saved_ns -= cpu_ns && p->looks > TRACE_PACE_FIRST ? cost : p->cost_ns;
    /* readings that had to be taken are not paid for without end */
    if (p->saved_ns < -TRACE_PACE_FIRST * p->cost_ns)
        p->saved_ns = -TRACE_PACE_FIRST * p->cost_ns;
    p->wanted_ns = p->cost_ns * (0.5 + pace_draw(p));
}
