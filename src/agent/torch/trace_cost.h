/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_cost: what looking into training steps adds to the job's time, and how often a step may be looked into.
 *
 * A look costs what its step is longer than the steps before it, into which nobody looked; what hooks cost outside of that step,
 * as they are put in before it and taken out after it; and the time for which the job could not have the GIL meanwhile. The
 * first is the median over the last traced steps. If step times are too noisy, the time measured inside the hooks, with that of
 * calling them, is used instead; it is the lower bound in any case. Pure: no clock, no job. Belongs to the sampler's thread.
 */
#ifndef AGENT_TORCH_TRACE_COST_H
#define AGENT_TORCH_TRACE_COST_H

#include <stddef.h>
#include <stdint.h>

#define TRACE_COST_KEPT 64        /* looks that are kept in mind */
#define TRACE_COST_LEAST 3        /* before that many it is not known */
#define TRACE_COST_BUDGET_PCT 0.5 /* of the job's time: looks are spread so that they take no more */

/* A look that has been taken. */
struct trace_cost_step {
    double step_ns;         /* duration of the step that was looked into */
    double usual_ns;        /* of those before it; NAN not known */
    double own_ns;          /* of the step, in our functions */
    double hold_ns;         /* the GIL was ours, for putting in and taking out */
    double within, outside; /* calls of hooks in that step, and outside of it */
};

struct trace_cost {
    struct trace_cost_kept {
        double more_ns, hold_ns; /* more_ns: NAN not known */
    } kept[TRACE_COST_KEPT];
    size_t n;
    double hold_ns, own_ns, within, outside; /* sums over all */
};

/* Median (NAN if empty). Sorts `values` in place. */
double trace_cost_median(double *values, size_t n);

void trace_cost_add(struct trace_cost *c, const struct trace_cost_step *l);

/* The GIL was ours for so long without a look having come of it. */
void trace_cost_add_gil(struct trace_cost *c, double ns);

/* What one look takes of the job's time, ns; NAN: not known yet. */
double trace_cost_ns(const struct trace_cost *c);

/* What all of them have taken of `held_ns`, percent; NAN: not known yet. */
double trace_cost_pct(const struct trace_cost *c, double held_ns);

/* From the beginning of one look to that of the next, ns, where `rate_pct` of steps of `step_ns` are wanted. */
double trace_cost_every_ns(const struct trace_cost *c, double step_ns, double rate_pct);

#endif
