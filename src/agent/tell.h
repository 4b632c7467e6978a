/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tell: C functions that Python calls, on the job's threads, with the GIL: what they hear of goes to spans.h, or is looked at
 * (looks.h). They take any arguments, give None back and leave no exception.
 *
 * Their code stays where it is for ever, and they do nothing once tell_end was called, or in the child of a fork: one that could not be
 * taken out, because the GIL was not had, is still there then.
 */
#ifndef AGENT_TELL_H
#define AGENT_TELL_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/pyapi.h"

enum tell_what {
    TELL_GC = 0, /* for gc.callbacks */
    TELL_RETURN, /* for sys.monitoring, PY_RETURN */
    TELL_KINDS,
};

/* With the GIL: a new reference to such a function. NULL with an exception. */
struct pyapi_object *tell_new(const struct pyapi *api, enum tell_what what);

/* From now on they tell, or no longer. Any thread. */
void tell_begin(void);
void tell_end(void);

/* Time that one call takes, us; NAN: none yet. Calls so far. */
double tell_us(enum tell_what what);
uint64_t tell_count(enum tell_what what);

/* In the child of a fork: nothing is told there. Async-signal-safe. */
void tell_in_child(void);

#endif
