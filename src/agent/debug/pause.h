/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pause: C functions that python/units/pdb_server.py and python/units/pause.py call: to have the job's threads call a function at their next line, and
 * to tell who may talk to a debugger.
 *
 * A trace function in C makes no dict of a frame's variables, as one in Python does, and what a handler of a signal raises comes
 * up in the job where it would have. With the GIL.
 */
#ifndef AGENT_DEBUG_PAUSE_H
#define AGENT_DEBUG_PAUSE_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/python/worker.h"

#define PAUSE_NOTE_MAX 1024 /* bytes of what python/units/catch.py has to tell, with its end */

/* Give the functions to the unit. Without a function that this Python lacks, or without a GIL, threads cannot be held: the unit is told
 * so. 0, or -1. */
int pause_give(struct worker *w);

/* What python/units/catch.py has told last, once: an exception that nobody caught. True: there was something. Any thread. */
bool pause_take_note(char *buf, size_t cap);

/* In the child of a fork, whose only thread has none of the locks that others held. */
void pause_in_child(void);

#endif
