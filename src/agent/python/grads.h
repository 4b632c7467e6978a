/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grads: gradients of tensors, read when no thread is about to give them up.
 *
 * `p.grad = None` destroys the gradient before p forgets it, and torch lets others have the GIL meanwhile (THPVariable_set_grad and
 * THPVariable_clear in torch/csrc/autograd/python_variable.cpp, as of 2.13): who reads p.grad then reads what is being freed,
 * and the job dies. So it is read by a C function, which looks first at where the other threads are: one that is in a function
 * that knows the name "grad", or a way to set an attribute by a name that it computes (setattr, __setattr__, __set__ ...), may be at it. Both happen under one hold of the GIL: nothing of Python's is run between them.
 */
#ifndef AGENT_PYTHON_GRADS_H
#define AGENT_PYTHON_GRADS_H

#include <stdbool.h>

#include "agent/python/pyapi.h"
#include "pystack/pystack.h"

/* With the GIL: a new reference to a function of two arguments, for units that the python worker runs: torch's getter of gradients, and a
 * tensor. It gives what the getter does; False: it cannot be asked now. `beside`: other threads run meanwhile, so never.
 * `ps` must outlive all calls, which are on the calling thread. NULL with an exception. */
struct pyapi_object *grads_new(const struct pyapi *api, struct pystack *ps, bool beside);

#endif
