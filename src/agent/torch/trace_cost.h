/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_cost: the time that traced steps add to the job, and how often a step may be traced.
 *
 * A traced step costs its extra duration compared with the untraced steps before it; the cost of
 * hooks outside of that step, because they are installed before it and removed after it; and the
 * time for which the job could not have the GIL meanwhile. The first is the median over the last
 * traced steps. If step times are too noisy, the time measured inside the hooks, with that of
 * calling them, is used instead; it is the lower bound in any case. Pure: no clock, no job.
 * Belongs to the sampler's thread.
 */
#ifndef AGENT_TORCH_TRACE_COST_H
#define AGENT_TORCH_TRACE_COST_H

#include <stddef.h>
#include <stdint.h>

#define TRACE_COST_KEPT 64 /* traced steps that are remembered */
#define TRACE_COST_LEAST 3 /* with fewer it is not known */
/* of the job's time: traced steps are spread so that they do not exceed it */
#define TRACE_COST_BUDGET_PCT 0.5

/* A traced step. */
struct trace_cost_step {
    double step_ns;         /* duration of the traced step */
    double usual_ns;        /* of those before it; NAN if unknown */
    double own_ns;          /* in our functions, within the step */
    double hold_ns;         /* the GIL was ours, to install and to remove hooks */
    double within, outside; /* calls of hooks in that step, and outside of it */
};

struct trace_cost {
    struct trace_cost_kept {
        double more_ns, hold_ns; /* more_ns: NAN if unknown */
    } kept[TRACE_COST_KEPT];
    size_t n;
    double hold_ns, own_ns, within, outside; /* sums over all */
};

/* Median (NAN if empty). Sorts `values` in place. */
double trace_cost_median(double *values, size_t n);

void trace_cost_add(struct trace_cost *c, const struct trace_cost_step *l);

/* The GIL was ours for that long, but no step was traced. */
void trace_cost_add_gil(struct trace_cost *c, double ns);

/* The job's time taken by one traced step, ns; NAN if not known yet. */
double trace_cost_ns(const struct trace_cost *c);

/* The part of `held_ns` taken by all of them, percent; NAN if not known yet. */
double trace_cost_pct(const struct trace_cost *c, double held_ns);

/* From the beginning of one traced step to that of the next, ns, if `rate_pct` of steps of
 * `step_ns` are wanted. */
double trace_cost_every_ns(const struct trace_cost *c, double step_ns, double rate_pct);

#endif
