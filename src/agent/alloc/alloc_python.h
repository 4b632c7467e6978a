/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_python: hooks in Python's allocators: PyMem_SetAllocator for the domains RAW, MEM and OBJ.
 *
 * Each hook calls the allocator that it was put above. If somebody has put another one above ours
 * meanwhile (tracemalloc does), ours stays below it, where it only passes calls on, for as long
 * as the process lives: removing it would remove the other one. Called with the GIL.
 */
#ifndef AGENT_ALLOC_ALLOC_PYTHON_H
#define AGENT_ALLOC_ALLOC_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/python/pyapi.h"

/* Put the hooks in, after alloc_samples_begin. 0, or -1 with the reason in `why`. */
int alloc_python_insert(const struct pyapi *api, bool has_gil, char *why, size_t cap);

/* Take them out. Returns the number of domains in which they stay, below another allocator. */
int alloc_python_remove(const struct pyapi *api);

/* True if they were put in and not taken out. Any thread. */
bool alloc_python_is_in(void);

/* The interpreter is gone, and nothing can be taken out of it any more. */
void alloc_python_lose(void);

#endif
