/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost: what our work costs the job, and how far to slow it down to stay within the budget.
 *
 * Costs are CPU nanoseconds of our own threads. Pure arithmetic on its own structs; whoever owns
 * one uses it.
 */
#ifndef BASE_COST_H
#define BASE_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define COST_BUDGET_PCT 1.0 /* of one core, for everything the sampler does */

/* Cost of one kind of work: a moving mean over about the last eight runs. The first runs find
 * nothing cached, so a cheaper one replaces them. Later a single run that is much more expensive
 * than usual moves the mean a little; several in a row move it fully. */
struct cost {
    double run_ns; /* 0 before the first run */
    uint64_t runs;
};

void cost_add(struct cost *c, uint64_t run_ns);

/* The interval between two runs: `wanted_ns`, or more if that would cost more than `budget_pct`
 * of one core. Sets `*stretched` when it is longer by more than a twentieth. */
uint64_t cost_interval_ns(const struct cost *c, uint64_t wanted_ns, double budget_pct, bool *stretched);

/* The same of what somebody watches, which has to move: once a second, although that costs more than
 * the budget, as long as it is not ten times as much. */
#define COST_STREAM_NS CLOCK_NS_PER_S
#define COST_STREAM_BUDGETS 10.0
uint64_t cost_stream_ns(const struct cost *c, uint64_t wanted_ns, double budget_pct, bool *stretched);

/* Is the budget the reason for a rate that is lower than requested? True if the measured cost
 * reaches at least half of it; NAN: unknown. */
bool cost_is_limiting(double cost_pct, double budget_pct);

/* CPU use over the last seconds. */
struct cost_meter {
    uint64_t at_ns[2], cpu_ns[2]; /* two earlier times, the older first */
    int n;
};

/* So long what was used before the first seconds is part of the figure. */
#define COST_METER_S 10.0

/* Add the CPU time used until `now_ns` (monotonic). Returns percent of one core since a time 1
 * to 10 s ago, or since the first call; NAN at the first call. */
double cost_meter_add(struct cost_meter *m, uint64_t now_ns, uint64_t cpu_ns);

/* Random waiting times of a Poisson process, so that ticks do not run in step with the job's
 * loops. */
struct cost_pace {
    uint64_t state;
};

void cost_pace_init(struct cost_pace *p, uint64_t seed);

/* A time near the mean: evenly distributed from half of it to one and a half. */
uint64_t cost_pace_near_ns(struct cost_pace *p, uint64_t mean_ns);

/* Evenly distributed in [0, limit_ns). */
uint64_t cost_pace_below_ns(struct cost_pace *p, uint64_t limit_ns);

/* The next waiting time, exponentially distributed with this mean, at most eight times the mean. */
uint64_t cost_pace_next_ns(struct cost_pace *p, uint64_t mean_ns);

#endif
