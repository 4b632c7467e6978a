/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_values: what the job's own variables say at the end of each optimizer step, told to spans.h: loss, learning rate, gradient norm
 * and epoch by the names they mostly have, and the expressions that are watched.
 *
 * The thread that trains looks at its own frames when torch tells that Optimizer.step ends (torch_spans.h), in the middle of
 * a call of torch: without Python, without the GIL, and nothing of torch is called. A loss is a variable of the function that
 * calls step, or, if it is a tensor, of one of its callers; or what step itself gives back, when that gets a closure. What
 * is not a number there by now (on a GPU), or has no such name, is unknown. At the return of a watched function that is not
 * on the stack of steps its variables are looked at in the same way (py_callbacks.h).
 */
#ifndef AGENT_TORCH_STEP_VALUES_H
#define AGENT_TORCH_STEP_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/watch.h"
#include "pystack/pystack.h"

/* What torch calls an optimizer's step. */
#define STEP_VALUES_STEP "Optimizer.step#"

/* Begin: `current` gives the state of the calling thread (PyGILState_GetThisThreadState). On any thread but the job's. */
void step_values_begin(struct pystack *ps, const char *torch, void *(*current)(void));

/* No longer. */
void step_values_end(void);

/* What is watched; `set` is the number of this list. Takes a copy. */
void step_values_watch(const struct watch *w, uint32_t set);

/* Looks at steps may take this share of the job's time, 0 to 1; 1: none is left out, as where something is watched. */
void step_values_set_share(double share);

/* Steps that were left out for it. */
uint64_t step_values_skipped(void);

/* On a thread of the job: at the end of an optimizer step. */
void step_values_at_step(void);

/* On a thread of the job: the innermost function returns. Only what was not found at a step. */
void step_values_at_return(void);

/* CPU time that one takes, us: at steps, as the last have, else at returns; NAN: none yet. How many there were. */
double step_values_us(void);
uint64_t step_values_count(void);

/* In the child of a fork: nothing is looked at there. Async-signal-safe. */
void step_values_in_child(void);

#endif
