/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module_hooks: torch's global forward hooks, as C functions, for one training step at a time.
 *
 * Entries of torch.nn.modules.module's registries, and of torch.optim's, where gradients are looked at: they are put in and taken out by
 * the python worker, with the GIL, at a moment at which no thread is within a call of a module, or of an optimizer's step, so that no
 * thread is in the middle of a registry. Between the ends of two
 * Optimizer.step (the window) each call is noted in fixed memory; outside of it the functions return at once, as they do in
 * the child of a fork, and for ever after. They run no Python of ours and none of the job: outputs are looked at if their type is
 * torch.Tensor itself; autograd is asked by Node.register_prehook, which changes nothing of a graph but that it tells.
 * With a GIL only.
 */
#ifndef AGENT_TORCH_MODULE_HOOKS_H
#define AGENT_TORCH_MODULE_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/torch/module_calls.h"
#include "agent/torch/module_window.h"
#include "agent/python/worker.h"

#define MODULE_HOOKS_KEY "probing" /* of the entries in torch's registries */
#define MODULE_HOOKS_WHY WORKER_WHY_MAX

/* ---- the worker's, in a step of a job whose unit is "nonfinite" ---- */

/* Is a thread within a call of a module? Frames are read from memory. 1, 0, or -1: that cannot be told now. Without the GIL, too;
 * but then it may not be so any more. */
int module_hooks_are_called(struct pystack *ps);

/* Put the entries in: 1, they are; 0, not now; -1 with `why`. `compiled`: even where torch.compile is used. */
int module_hooks_insert(struct worker *w, enum module_mode look, bool compiled, char *why);

/* Take them out: 1, there are none; 0, not now. `anyway`: do not wait for the best of moments. */
int module_hooks_remove(struct worker *w, bool anyway);

/* Hand the roots of the calls that were noted to the unit: it gets weak references. */
void module_hooks_send_roots(struct worker *w);

/* ---- the sampler's ---- */

/* Begin a window (module_window.h), with nothing noted in it. One that looks for numbers is done when one was found. */
void module_hooks_open(enum module_mode look, unsigned steps, unsigned per_step);
/* Of one that is done: what was noted. */
struct module_calls *module_hooks_calls(void);
/* Are entries in torch's registries, as far as is known? From any thread. */
bool module_hooks_are_in(void);
/* How often they were called since they were put in: within the window, and outside of it, to return at once. */
void module_hooks_count(uint64_t *within, uint64_t *outside);

/* ---- the job's threads ---- */

/* A backward pass has ended. */
void module_hooks_on_backward(uint64_t ns);

#endif
