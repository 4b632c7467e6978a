/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop: a thread of another process stands still while we look at it, one thread at a time.
 *
 * Seized, stopped, let go, as if nothing had been: signals on their way arrive, a call that saw the stop is called again. The
 * kernel lets go of everything when we end, however that happens. All calls come from one thread of ours, which may not end
 * before stop_tend has said that nothing is left (or ends for good: then the kernel cares for the rest).
 */
#ifndef INJECT_STOP_H
#define INJECT_STOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "inject/thread.h"

#define STOP_MAX_LATE 16

struct stop {
    pid_t pid;
    struct thread thread;              /* the one that stands still */
    struct thread late[STOP_MAX_LATE]; /* asked to stop, but not stopped yet: to be let go when they do */
    size_t n_late;
    uint64_t stops, refused; /* so far */
};

void stop_init(struct stop *s, pid_t pid);

/* May threads of process `pid` be stopped by us? Tries it on the main thread, which is not stopped by that; where another of our programs
 * traces that one, it waits for seconds. 0, or -1 with ERR_ATTACH (somebody traces it already, not permitted), ERR_LOST. */
int stop_check(pid_t pid, struct err *e);

/* Stop thread `tid`, as we number it. 0: it stands still until stop_release, which must follow within milliseconds. -1: it
 * could not be stopped soon, and runs. */
int stop_thread(struct stop *s, pid_t tid);

/* Let it go. How long it stood still, in nanoseconds. */
uint64_t stop_release(struct stop *s);

/* Let go of those that stopped too late. Are some still to come? Then call again within milliseconds. */
bool stop_tend(struct stop *s);

#endif
