/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grads: reads gradients of tensors while no thread is about to release them.
 *
 * `p.grad = None` destroys the gradient before p forgets it, and torch releases the GIL
 * meanwhile (THPVariable_set_grad and THPVariable_clear in
 * torch/csrc/autograd/python_variable.cpp, as of 2.13). A thread that reads p.grad at that time
 * reads memory that is being freed, and the job dies. So a C function reads it, which first
 * checks the positions of the other threads: one that is in a function that uses the name
 * "grad", or sets an attribute by a computed name (setattr, __setattr__, __set__ ...), may be
 * doing that. Check and read happen in one hold of the GIL: no Python code runs between them.
 */
#ifndef AGENT_PYTHON_GRADS_H
#define AGENT_PYTHON_GRADS_H

#include <stdbool.h>

#include "agent/python/pyapi.h"
#include "pystack/pystack.h"

/* With the GIL: a new reference to a function of two arguments, for units that the python worker
 * runs: torch's getter of gradients, and a tensor. It returns the getter's result; False if it
 * cannot be read now. `beside`: other threads run at the same time, so it never can. `ps` must
 * outlive all calls, which are on the calling thread. NULL with an exception. */
struct pyapi_object *grads_new(const struct pyapi *api, struct pystack *ps, bool beside);

#endif
