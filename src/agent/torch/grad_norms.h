/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grad_norms: squares of the gradients that parameters have when an optimizer's step begins, in a training step that is looked into.
 *
 * There all gradients are, and are what the optimizer goes by: many jobs give them up right after. The job's own thread looks, in a hook of
 * torch (module_hooks.h), which takes a millisecond for a million numbers: so no more are read. On the CPU alone. Memory is fixed.
 */
#ifndef AGENT_TORCH_GRAD_NORMS_H
#define AGENT_TORCH_GRAD_NORMS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/python/pyapi.h"

#define GRAD_NORMS_MAX 2048                        /* parameters, and */
#define GRAD_NORMS_NUMBERS ((uint64_t)1024 * 1024) /* numbers, of a step; what is beyond is not known */

struct grad_norm {
    uint64_t parameter; /* its address */
    double squares;     /* of the numbers that are finite */
    uint64_t bad;       /* how many are not */
};

/* ---- the sampler's ---- */

/* Before a window opens. */
void grad_norms_clear(void);

/* Once it is done: those that were read; how many. */
size_t grad_norms_get(const struct grad_norm **out);

/* ---- the worker's, with the GIL ---- */

/* Take what the unit tells of torch for tensor_read.h: items of a tuple from `first` on. Where it does not, nothing is read. */
void grad_norms_begin(const struct pyapi *api, struct pyapi_object *tuple, ssize_t first);
/* Let go of it. */
void grad_norms_end(void);

/* ---- the job's threads, with the GIL ---- */

/* An optimizer's step begins. If the gradients of all of its parameters are read, their norm goes to the step (spans.h). */
void grad_norms_on_optimizer(struct pyapi_object *optimizer);

#endif
