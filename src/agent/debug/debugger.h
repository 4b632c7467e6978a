/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debugger: the methods debug, pause and catch: calls a function of python/units/debug.py,
 * pause.py or catch.py with the fields of the request; its result becomes the fields of the
 * answer. Both are converted by the tables of wire/field.h.
 *
 * The call is made on the thread that evals run on (agent/python/eval_run.h).
 */
#ifndef AGENT_DEBUG_DEBUGGER_H
#define AGENT_DEBUG_DEBUGGER_H

#include "agent/python/eval_run.h"
#include "wire/wire.h"

struct debugger;

/* The call for this request; `*want` is moved. `owner`: the client whose disconnection ends the
 * debugger; 0: none. NULL without memory. */
struct debugger *debugger_new(enum wire_method method, struct wire_debug *want, uint32_t owner);

/* The call, for eval_run_new_call, which takes ownership of it and the debugger. */
struct eval_call *debugger_get_call(struct debugger *d);

/* The state after the run has ended; points into the debugger, without an arena. */
void debugger_get(const struct debugger *d, struct wire_debugger *out);

/* Describe the request in words, for the table of events. Any thread. */
void debugger_describe(enum wire_method method, const struct wire_debug *want, char *out, size_t cap);

#endif
