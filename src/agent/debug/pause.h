/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pause: C functions for python/units/pdb_server.py and python/units/pause.py: they make the
 * job's threads call a function at their next line, and decide who may use a debugger.
 *
 * A trace function in C creates no dict of a frame's variables, as one in Python does, and an
 * exception of a signal handler is raised in the job where it would have been raised anyway.
 * With the GIL.
 */
#ifndef AGENT_DEBUG_PAUSE_H
#define AGENT_DEBUG_PAUSE_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/python/worker.h"

#define PAUSE_NOTE_MAX 1024 /* bytes of a report of python/units/catch.py, with its NUL */

/* Give the functions to the unit. If this Python lacks one, or has no GIL, threads cannot be
 * paused: the unit is informed of that. 0, or -1. */
int pause_give(struct worker *w);

/* The last report of python/units/catch.py, once: an uncaught exception. True if there was one.
 * Any thread. */
bool pause_take_note(char *buf, size_t cap);

/* In the child of a fork, whose only thread has none of the locks of other threads. */
void pause_in_child(void);

#endif
