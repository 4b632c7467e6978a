/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_values: values of the job's own variables at the end of each optimizer step, reported to
 * spans.h: loss, learning rate, gradient norm and epoch by their usual names, and watched
 * expressions.
 *
 * The thread that trains reads its own frames when torch reports the end of Optimizer.step
 * (torch_spans.h), in the middle of a call of torch: without Python, without the GIL, and
 * without calling torch. A loss is a variable of the function that calls step, or, if it is a
 * tensor, of one of its callers; or the result of step itself, if that gets a closure. A value
 * that is not a number in memory by then (because it is on a GPU), or has another name, is
 * unknown. If a watched function is not on the stack of steps, its variables are read in the
 * same way when it returns (py_callbacks.h).
 */
#ifndef AGENT_TORCH_STEP_VALUES_H
#define AGENT_TORCH_STEP_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/watch.h"
#include "pystack/pystack.h"

/* Torch's name of an optimizer's step. */
#define STEP_VALUES_STEP "Optimizer.step#"

/* Start: `current` returns the state of the calling thread (PyGILState_GetThisThreadState). On
 * any thread that is not the job's. */
void step_values_begin(struct pystack *ps, const char *torch, void *(*current)(void));

/* Stop. */
void step_values_end(void);

/* Set the watch list; `set` is the number of this list. Takes a copy. */
void step_values_watch(const struct watch *w, uint32_t set);

/* The share of the job's time that readings at steps may take, 0 to 1; 1: none is left out, as
 * for watched values. */
void step_values_set_share(double share);

/* The number of steps left out because of that. */
uint64_t step_values_skipped(void);

/* On a thread of the job: at the end of an optimizer step. */
void step_values_at_step(void);

/* On a thread of the job: the innermost function returns. Reads only variables that were not
 * found at a step. */
void step_values_at_return(void);

/* CPU time of one reading, us: at steps, as lately measured, otherwise at returns; NAN if there
 * was none. The number of readings. */
double step_values_us(void);
uint64_t step_values_count(void);

/* In the child of a fork: nothing is read there. Async-signal-safe. */
void step_values_in_child(void);

#endif
