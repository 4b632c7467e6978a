/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gil_late: the GIL of Python 3.6, which is not there before the job's first thread.
 *
 * Until then the main thread runs without one, and a thread of ours that asked for it would make it, run at the same time as the
 * main thread, and be taken for the main thread ever after. So the main thread is asked to make it, as it would for a thread of
 * the job's own; while it does not, because it is in C, nobody takes the GIL. Later versions make it when they begin. Any thread.
 */
#ifndef AGENT_PYTHON_GIL_LATE_H
#define AGENT_PYTHON_GIL_LATE_H

#include <stdbool.h>

#include "agent/python/pyapi.h"

/* Is there a GIL to be asked for? Otherwise the main thread has been asked to make it: look again. */
bool gil_late_is_there(const struct pyapi *api);

#define GIL_LATE_WHY                                                                                         \
    "there is no GIL: Python 3.6 has none before its first thread, and its main thread, which alone can "    \
    "make it, has run no Python since it was asked to"

/* Does the main thread still owe one that it was asked for? */
bool gil_late_is_owed(void);

#endif
