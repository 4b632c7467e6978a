/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop: stops one thread of another process at a time, for reading.
 *
 * Seized, stopped and released without a trace: signals on their way arrive, and a call that saw
 * the stop is repeated. The kernel releases everything when we end, for whatever reason. All
 * calls come from one thread of ours, which may not end before stop_tend has said that nothing
 * is left (or ends with the process: then the kernel does the rest).
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
    struct thread thread; /* the stopped thread */
    /* asked to stop and not stopped yet: released as soon as they do */
    struct thread late[STOP_MAX_LATE];
    size_t n_late;
    uint64_t stops, refused; /* so far */
};

void stop_init(struct stop *s, pid_t pid);

/* Whether we may stop threads of process `pid`. Tries it on the main thread without stopping it.
 * Where another of our programs traces that one, it waits for seconds. 0, or -1 with ERR_ATTACH
 * (already traced, or not permitted) or ERR_LOST. */
int stop_check(pid_t pid, struct err *e);

/* Stop thread `tid`, in our numbering. 0: it is stopped until stop_release, which must follow
 * within milliseconds. -1: it could not be stopped in time, and runs, or it sleeps in a call that would end
 * there with a part of its work done. */
int stop_thread(struct stop *s, pid_t tid);

/* Release it. Returns how long it was stopped, in nanoseconds. */
uint64_t stop_release(struct stop *s);

/* Release those that stopped too late. True if some are still to come: then call again within
 * milliseconds. */
bool stop_tend(struct stop *s);

#endif
