/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grad_norms: squares of the gradients of parameters when an optimizer's step begins, in a
 * traced training step.
 *
 * At that time all gradients exist and are the ones that the optimizer uses; many jobs release
 * them right afterwards. The job's own thread reads them, in a hook of torch (module_hooks.h),
 * which takes a millisecond for a million numbers: so no more are read. On the CPU only. Memory
 * is fixed.
 */
#ifndef AGENT_TORCH_GRAD_NORMS_H
#define AGENT_TORCH_GRAD_NORMS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/python/pyapi.h"

#define GRAD_NORMS_MAX 2048 /* parameters */
/* and numbers of a step; the others are unknown */
#define GRAD_NORMS_NUMBERS ((uint64_t)1024 * 1024)

struct grad_norm {
    uint64_t parameter; /* its address */
    double squares;     /* of the finite numbers */
    uint64_t bad;       /* number of the others */
};

/* ---- for the sampler ---- */

/* Before a window opens. */
void grad_norms_clear(void);

/* After it is done: the gradients that were read. Returns their number. */
size_t grad_norms_get(const struct grad_norm **out);

/* ---- for the worker, with the GIL ---- */

/* Take the parts of torch for tensor_read.h from the unit: items of a tuple from `first` on. If
 * the unit has none, nothing is read. */
void grad_norms_begin(const struct pyapi *api, struct pyapi_object *tuple, ssize_t first);
/* Release them. */
void grad_norms_end(void);

/* ---- the job's threads, with the GIL ---- */

/* An optimizer's step begins. If the gradients of all its parameters are read, their norm goes
 * to the step (spans.h). */
void grad_norms_on_optimizer(struct pyapi_object *optimizer);

#endif
