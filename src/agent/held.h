/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held: debuggers in the job, for the status: debugpy that listens, threads that are held, a thread that has raised. Told by
 * python/debug.py, pause.py and catch.py whenever one begins, ends, or is used, so that who asks for the status needs no GIL. What has
 * an address stands in the file of opened.h too.
 */
#ifndef AGENT_HELD_H
#define AGENT_HELD_H

#include <stdint.h>

#include "base/model.h"

/* The kinds, as the units number them. */
enum held_kind { HELD_DEBUG = 0, HELD_PAUSE, HELD_CATCH, HELD_KINDS };

/* Who asks now: what begins from here on is theirs. -1 not known. */
void held_set_asker(int64_t uid, int64_t pid);

/* How one stands: its state, "" it is over; where it is and what it is about, "" nothing; milliseconds until it ends, < 0 no limit;
 * whether somebody is connected to it. Any thread. */
void held_note(enum held_kind kind, const char *state, const char *address, const char *text, int64_t left_ms,
               bool used);

/* In the child of a fork, which has none. */
void held_in_child(void);

/* Those that there are, into a status. Any thread. */
void held_fill(struct model_status *out);

#endif
