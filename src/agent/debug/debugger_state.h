/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debugger_state: debuggers in the job, for the status: debugpy that listens, threads that are held, a thread that has raised. Told by
 * python/units/debug.py, pause.py and catch.py whenever one begins, ends, or is used, so that who asks for the status needs no GIL. What has
 * an address stands in the file of endpoints_file.h too.
 */
#ifndef AGENT_DEBUG_DEBUGGER_STATE_H
#define AGENT_DEBUG_DEBUGGER_STATE_H

#include <stdint.h>

#include "base/model.h"

/* The kinds, as the units number them. */
enum debugger_state_kind {
    DEBUGGER_STATE_DEBUG = 0,
    DEBUGGER_STATE_PAUSE,
    DEBUGGER_STATE_CATCH,
    DEBUGGER_STATE_KINDS
};

/* Who asks now: what begins from here on is theirs. -1 not known. */
void debugger_state_set_asker(int64_t uid, int64_t pid);

/* How one stands: its state, "" it is over; where it is and what it is about, "" nothing; milliseconds until it ends, < 0 no limit;
 * whether somebody is connected to it. Any thread. */
void debugger_state_note(enum debugger_state_kind kind, const char *state, const char *address,
                         const char *text, int64_t left_ms, bool used);

/* In the child of a fork, which has none. */
void debugger_state_in_child(void);

/* Those that there are, into a status. Any thread. */
void debugger_state_fill(struct model_status *out);

#endif
