/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_pace: at which optimizer steps variables are looked at, so that looks take no more than a share of the job's time.
 *
 * Time that passes is saved up, a look is paid from it. Which of the steps these are is drawn: of two optimizers that take turns
 * neither is left out for ever. Pure: no clock. Belongs to whoever looks.
 */
#ifndef AGENT_TORCH_TRACE_PACE_H
#define AGENT_TORCH_TRACE_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define TRACE_PACE_FIRST 8 /* looks that are always taken, on credit: what one costs is learned from them */
#define TRACE_PACE_SURE 8  /* later one of so many is measured */

struct trace_pace {
    double share;           /* of the time; 1: no step is left out */
    double cost_ns;         /* of a look, as the last have taken; 0 not known */
    double saved_ns;        /* may be less than 0 */
    double wanted_ns;       /* saved time at which the next look is taken */
    uint64_t last_ns, seed; /* last_ns 0: no step was seen */
    uint64_t looks;
};

/* Begin; `share` is from 0 to 1. */
void trace_pace_begin(struct trace_pace *p, double share);

/* A step ends at `now_ns`, monotonic clock. Is it looked at? */
bool trace_pace_is_due(struct trace_pace *p, uint64_t now_ns);

/* Is the look that is taken now to be measured? */
bool trace_pace_is_measured(const struct trace_pace *p);

/* A look was taken. `cpu_ns`: what it has cost; 0: it was not measured. */
void trace_pace_took(struct trace_pace *p, uint64_t cpu_ns);

#endif
