/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard: work that a stranger can hold up, in a process of its own that can be left alone.
 *
 * A page of a target's memory, a file of its file system, a folder on the way to it may lie where only the target answers (FUSE), and
 * who waits for them in the kernel can be deaf to every signal. So whoever attaches waits here, for the answer, a signal or
 * the end of the time, and the work is done by a child. One that is left dies as soon as the kernel lets it; what it has begun in
 * a target puts itself back (inject/chain.h).
 */
#ifndef CLIENT_GUARD_H
#define CLIENT_GUARD_H

#include <stddef.h>

#include "base/err.h"

/* How the work ended. */
enum guard_end {
    GUARD_DONE = 0,
    GUARD_HELD,        /* it was not done within the limit, and left */
    GUARD_INTERRUPTED, /* nor in some seconds after a signal that asks us to end, and left */
    GUARD_BROKEN,      /* it crashed */
    GUARD_NONE,        /* no child could be made, with errno; nothing was done */
};

/* Call `work` with a copy of `arg` (`size` bytes) in a child, for at most `limit_ms`, and copy back what it has made of them.
 * It has no descriptors of ours, and no signals but those that it takes itself: SIGINT, SIGTERM, SIGHUP and SIGQUIT for us wait until
 * this returns, and the child finds a SIGTERM among its pending ones. */
enum guard_end guard_run(void (*work)(void *arg), void *arg, size_t size, unsigned limit_ms);

#endif
