/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debugger: the methods debug, pause and catch: a function of python/units/debug.py, pause.py or catch.py is called with the fields of the
 * request, and what it returns becomes the fields of the answer, both by the tables of wire/field.h.
 *
 * The call is made on the thread that evals run on (agent/python/eval_run.h).
 */
#ifndef AGENT_DEBUG_DEBUGGER_H
#define AGENT_DEBUG_DEBUGGER_H

#include "agent/python/eval_run.h"
#include "wire/wire.h"

struct debugger;

/* What is to be called for this request; `*want` is moved. `owner`: the client that what it begins ends with; 0: none. NULL without memory. */
struct debugger *debugger_new(enum wire_method method, struct wire_debug *want, uint32_t owner);

/* The call, for eval_run_new_call, which owns the debugger with it. */
struct eval_call *debugger_get_call(struct debugger *d);

/* How it stands, once the run has ended; points into it, without an arena. */
void debugger_get(const struct debugger *d, struct wire_debugger *out);

/* What is asked for, in words, for the table of events. Any thread. */
void debugger_describe(enum wire_method method, const struct wire_debug *want, char *out, size_t cap);

#endif
