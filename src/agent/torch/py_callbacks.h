/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py_callbacks: C functions that Python calls, on the job's threads, with the GIL: they report
 * to spans.h, or read variables (step_values.h). They accept any arguments, return None and
 * leave no exception.
 *
 * Their code stays mapped permanently, and they do nothing after py_callbacks_end, or in the
 * child of a fork: a function that could not be removed, because the GIL could not be acquired,
 * is then still installed.
 */
#ifndef AGENT_TORCH_PY_CALLBACKS_H
#define AGENT_TORCH_PY_CALLBACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/python/pyapi.h"

enum py_callbacks_what {
    PY_CALLBACKS_GC = 0, /* for gc.callbacks */
    PY_CALLBACKS_RETURN, /* for sys.monitoring, PY_RETURN */
    PY_CALLBACKS_KINDS,
};

/* With the GIL: a new reference to such a function. NULL with an exception. */
struct pyapi_object *py_callbacks_new(const struct pyapi *api, enum py_callbacks_what what);

/* From now on they report, or no longer. Any thread. */
void py_callbacks_begin(void);
void py_callbacks_end(void);

/* Time of one call, us; NAN if there was none. Number of calls so far. */
double py_callbacks_us(enum py_callbacks_what what);
uint64_t py_callbacks_count(enum py_callbacks_what what);

/* In the child of a fork: nothing is reported there. Async-signal-safe. */
void py_callbacks_in_child(void);

#endif
