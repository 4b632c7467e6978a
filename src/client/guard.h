/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard: work that a stranger can hold up, in a process of its own that can be left alone.
 *
 * A page of a target's memory, a file of its file system, a folder on the way to it may lie where only the target answers (FUSE), and
 * who waits for them in the kernel can be deaf to every signal. So whoever attaches waits here, for the answer, a signal or
 * the end of the time, and the work is done by a child. One that is left dies as soon as the kernel lets it; what it has begun in
 * a target puts itself back (inject/sigreturn_chain.h).
 */
#ifndef CLIENT_GUARD_H
#define CLIENT_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

/* How the work ended. */
enum guard_end {
    GUARD_DONE = 0,
    GUARD_BLOCKED,     /* it was not done within the limit, and left */
    GUARD_INTERRUPTED, /* nor in some seconds after a signal that asks us to end, and left */
    GUARD_BROKEN,      /* it crashed */
    GUARD_NONE,        /* no child could be made, with errno; nothing was done */
};

/* Call `work` with a copy of `arg` (`size` bytes) in a child, for at most `limit_ms`, and copy back what it has made of them.
 * It has no descriptors of ours, and no signals but those that it takes itself: SIGINT, SIGTERM, SIGHUP and SIGQUIT for us wait until
 * this returns, and the child finds a SIGTERM among its pending ones. */
enum guard_end guard_run(void (*work)(void *arg), void *arg, size_t size, unsigned limit_ms);

/* The one line about process `pid` (0: about `path`), which has held up a child for `limit_ms`. -1, with ERR_ATTACH. */
int guard_explain_blocked(pid_t pid, const char *path, unsigned limit_ms, struct err *e);

/* A child that works while its parent goes on. */
struct guard {
    pid_t child;
    int fd; /* what it says, in whole messages (SOCK_SEQPACKET), and its end; to be polled */
};

/* Call `work` in a child with `fd`, the only descriptor it has, by which it says what it has found. It ends when `work` returns, when this
 * process does, and some seconds after `limit_ms` in any case. `about` is the process that it looks at, 0 none. 0, or -1 with
 * errno: EBUSY when an earlier child is still held up at the same process, or too many are. */
int guard_start(struct guard *g, void (*work)(void *arg, int fd), void *arg, pid_t about, unsigned limit_ms);

/* Its time is over, or it has said all: it is killed, waited for a moment, and remembered if it is held up. */
void guard_stop(struct guard *g, pid_t about);

/* Is an earlier child still held up at that process? */
bool guard_is_blocked(pid_t about);

#endif
