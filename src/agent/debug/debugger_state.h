/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debugger_state: the debuggers in the job, for the status: a listening debugpy, paused threads,
 * a thread with an exception. python/units/debug.py, pause.py and catch.py report here when one
 * starts, ends, or is used, so that a request for the status does not need the GIL. Those with
 * an address are also in the file of endpoints_file.h.
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

/* The client of the current request: debuggers that start from here on are its own. -1 if
 * unknown. */
void debugger_state_set_asker(int64_t uid, int64_t pid);

/* Record the state of one: its state, "" if it has ended; its address and a text, "" if none;
 * milliseconds until it ends, < 0 if there is no limit; whether a client is connected to it. Any
 * thread. */
void debugger_state_note(enum debugger_state_kind kind, const char *state, const char *address,
                         const char *text, int64_t left_ms, bool used);

/* In the child of a fork, which has no debuggers. */
void debugger_state_in_child(void);

/* Put the current debuggers into a status. Any thread. */
void debugger_state_fill(struct model_status *out);

#endif
