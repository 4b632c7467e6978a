/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module_hooks: torch's global forward hooks, as C functions, for one training step at a time.
 *
 * They are entries of the registries of torch.nn.modules.module, and of torch.optim if gradients
 * are read. The python worker installs and removes them, with the GIL, while no thread is within
 * a call of a module or an optimizer's step, so that no thread is iterating over a registry.
 * Between the ends of two Optimizer.step (the window) each call is recorded in fixed memory;
 * outside of it the functions return immediately, as they always do in the child of a fork. They
 * run no Python of ours and none of the job: outputs are read if their type is torch.Tensor
 * itself; autograd is asked by Node.register_prehook, which only adds a report to a graph. With
 * a GIL only.
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

/* ---- for the worker, in a step of a job whose unit is "nonfinite" ---- */

/* Check whether a thread is within a call of a module, by reading frames from memory. 1, 0, or
 * -1: unknown now. Also without the GIL, but then the answer may be out of date. */
int module_hooks_are_called(struct pystack *ps);

/* Install the entries: 1 done; 0 not now; -1 with `why`. `compiled`: even if torch.compile is
 * used. */
int module_hooks_insert(struct worker *w, enum module_mode mode, bool compiled, char *why);

/* Remove them: 1 done; 0 not now. `anyway`: do not wait for a quiet time. */
int module_hooks_remove(struct worker *w, bool anyway);

/* Pass the roots of the recorded calls to the unit, as weak references. */
void module_hooks_send_roots(struct worker *w);

/* ---- for the sampler ---- */

/* Start a window (module_window.h), without records. A window that searches for numbers is done
 * when one is found. */
void module_hooks_open(enum module_mode mode, unsigned steps, unsigned per_step);
/* The recorded calls of a window that is done. */
struct module_calls *module_hooks_calls(void);
/* True if entries are in torch's registries, as far as is known. Any thread. */
bool module_hooks_are_in(void);
/* The number of their calls since they were installed: within the window, and outside of it. */
void module_hooks_count(uint64_t *within, uint64_t *outside);

/* ---- the job's threads ---- */

/* A backward pass has ended. */
void module_hooks_on_backward(uint64_t ns);

#endif
