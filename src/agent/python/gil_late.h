/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gil_late: the GIL of Python 3.6, which does not exist before the job's first thread.
 *
 * Until then the main thread runs without one, and a thread of ours that asked for it would make
 * it, run at the same time as the main thread, and be mistaken for the main thread from then on.
 * So the main thread is asked to make it, as it would for a thread of the job; while it does
 * not, because it is in C, nobody takes the GIL. Later versions make it at their start. Any
 * thread.
 */
#ifndef AGENT_PYTHON_GIL_LATE_H
#define AGENT_PYTHON_GIL_LATE_H

#include <stdbool.h>

#include "agent/python/pyapi.h"

/* True if there is a GIL to ask for. Otherwise the main thread has been asked to make it: check
 * again. */
bool gil_late_is_there(const struct pyapi *api);

#define GIL_LATE_WHY                                                                                         \
    "there is no GIL: Python 3.6 has none before its first thread, and its main thread, which alone can "    \
    "make it, has run no Python since it was asked to"

/* True if the main thread was asked and has not made it yet. */
bool gil_late_is_owed(void);

#endif
