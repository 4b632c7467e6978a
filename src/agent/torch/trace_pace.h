/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_pace: chooses the optimizer steps at which variables are read, so that readings take no
 * more than a share of the job's time.
 *
 * Elapsed time is saved up, and a reading is paid from it. The steps are drawn at random, so
 * that of two alternating optimizers neither is always left out. Pure: no clock. Belongs to its
 * user.
 */
#ifndef AGENT_TORCH_TRACE_PACE_H
#define AGENT_TORCH_TRACE_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* readings that are always taken, on credit: they show the cost of one */
#define TRACE_PACE_FIRST 8
#define TRACE_PACE_SURE 8 /* later one in so many is measured */

struct trace_pace {
    double share;           /* of the time; 1: no step is left out */
    double cost_ns;         /* of a reading, as lately measured; 0 if unknown */
    double saved_ns;        /* may be less than 0 */
    double wanted_ns;       /* saved time at which the next reading is taken */
    uint64_t last_ns, seed; /* last_ns is 0 if no step was seen */
    uint64_t looks;
};

/* Start; `share` is from 0 to 1. */
void trace_pace_begin(struct trace_pace *p, double share);

/* A step ends at `now_ns`, monotonic clock. True if variables are read at it. */
bool trace_pace_is_due(struct trace_pace *p, uint64_t now_ns);

/* True if this reading is to be measured. */
bool trace_pace_is_measured(const struct trace_pace *p);

/* A reading was taken. `cpu_ns`: its cost; 0: it was not measured. */
void trace_pace_took(struct trace_pace *p, uint64_t cpu_ns);

#endif
