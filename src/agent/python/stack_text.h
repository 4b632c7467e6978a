/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_text: the Python stack of the calling thread as a line of text, "func (file:line) < func
 * (file:line) ...", innermost first.
 *
 * Uses attributes of frames and code objects, which CPython's own C code returns: nothing of the
 * job runs. Torch's own calls of modules are left out.
 */
#ifndef AGENT_PYTHON_STACK_TEXT_H
#define AGENT_PYTHON_STACK_TEXT_H

#include <stddef.h>

#include "agent/python/pyapi.h"

/* Write up to `cap` bytes with the NUL; outer functions that do not fit are "...". Returns the
 * length; 0 if there is no stack. With the GIL; leaves no exception. */
size_t stack_text_write(const struct pyapi *api, char *buf, size_t cap);

/* The number of nested calls of modules that the thread is in. With the GIL. */
size_t stack_text_count_calls(const struct pyapi *api);

#endif
