/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debugger: the methods debug, pause and catch: a function of python/units/debug.py, pause.py or catch.py is called with the fields of the
 * request, and what it returns becomes the fields of the answer, both by the tables of wire/field.h.
 *
 * With the GIL, on the thread that evals run on.
 */
#ifndef AGENT_DEBUG_DEBUGGER_H
#define AGENT_DEBUG_DEBUGGER_H

#include "agent/python/worker.h"
#include "wire/wire.h"

/* A function to be called, with its arguments. Zeroed to begin. */
struct debugger_call {
    struct pyapi_object *function, *owner, *how; /* owned */
};

/* Make it ready: `owner` is the client that what it begins ends with; 0: none. 0, or -1: this Python cannot do that. */
int debugger_prepare(struct debugger_call *c, struct worker *w, enum wire_method method,
                     const struct wire_debug *want, uint32_t owner);

/* Call it; what it answers goes to `out`, whose texts are in its arena. 0, or -1 with the exception set. */
int debugger_run(struct debugger_call *c, const struct pyapi *api, enum wire_method method,
                 struct wire_debugger *out);

void debugger_let_go(struct debugger_call *c, const struct pyapi *api);

/* What is asked for, in words, for the table of events. Any thread. */
void debugger_describe(enum wire_method method, const struct wire_debug *want, char *out, size_t cap);

#endif
