/* SPDX-License-Identifier: Apache-2.0 */
/* worker_why: why the python worker has not had the GIL, in words. */
#include <stdio.h>

#include "agent/python/gil_late.h"
#include "agent/python/worker.h"
#include "pystack/gate.h"

void worker_explain(const struct pystack_gate *gate, bool up, char *why) {
    if (!up)
        (void)snprintf(why, WORKER_WHY_MAX, "Python has not started yet, or has ended");
    else if (gil_late_is_owed())
        (void)snprintf(why, WORKER_WHY_MAX, GIL_LATE_WHY);
    else if (!gate->held)
        (void)snprintf(why, WORKER_WHY_MAX, "the GIL was not had in time");
    else if (gate->holder_tid)
        (void)snprintf(why, WORKER_WHY_MAX, "the GIL was not had in time: thread %lld holds it",
                       (long long)gate->holder_tid);
    else
        (void)snprintf(why, WORKER_WHY_MAX,
                       "the GIL was not had in time: a thread that is not known holds it");
}
