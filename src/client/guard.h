/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard: work that a stranger can block, in a process of its own that can be abandoned.
 *
 * A page of a target's memory, a file of its file system, a folder on the way to it may be where
 * only the target answers (FUSE), and a process that waits for them in the kernel can be deaf to
 * every signal. So the caller waits here, for the answer, a signal or the end of the time, and a
 * child does the work. An abandoned child dies as soon as the kernel lets it; its work in a
 * target restores itself (inject/sigreturn_chain.h).
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
    GUARD_BLOCKED,     /* not done within the limit, and abandoned */
    GUARD_INTERRUPTED, /* nor in some seconds after a signal that asks us to end, and abandoned */
    GUARD_BROKEN,      /* it crashed */
    GUARD_NONE,        /* no child could be made (errno); nothing was done */
};

/* Call `work` with a copy of `arg` (`size` bytes) in a child, for at most `limit_ms`, and some
 * seconds more if it is running at the end of that, and copy the result back. The child has none
 * of our descriptors, and takes only its own signals: SIGINT, SIGTERM, SIGHUP and SIGQUIT for us
 * wait until this returns, and the child finds a SIGTERM among its pending ones. */
enum guard_end guard_run(void (*work)(void *arg), void *arg, size_t size, unsigned limit_ms);

/* The same about process `about` (guard_start): GUARD_NONE with EBUSY while an earlier child is stuck there. */
enum guard_end guard_run_about(pid_t about, void (*work)(void *arg), void *arg, size_t size,
                               unsigned limit_ms);

/* The error line about process `pid` (0: about `path`), which has blocked a child for
 * `limit_ms`. -1, with ERR_ATTACH. */
int guard_explain_blocked(pid_t pid, const char *path, unsigned limit_ms, struct err *e);

/* A child that works while its parent continues. */
struct guard {
    pid_t child;
    int fd; /* its results, in whole messages (SOCK_SEQPACKET), and its end; to be polled */
};

/* Call `work` in a child with `fd`, its only descriptor, through which it sends its results. It
 * ends when `work` returns, when this process does, and some seconds after `limit_ms` in any
 * case. `about` is the process that it examines, 0 none. 0, or -1 with errno: EBUSY if an
 * earlier child is still stuck at the same process, or too many are. */
int guard_start(struct guard *g, void (*work)(void *arg, int fd), void *arg, pid_t about, unsigned limit_ms);

/* End it after its time or its last result: it is killed, waited for briefly, and remembered if
 * it is stuck. */
void guard_stop(struct guard *g, pid_t about);

/* In a child that was forked: close all descriptors but `kept` and `other` (-1: there is none); 0 to 2 are
 * /dev/null then. */
void guard_drop_files(int kept, int other);

/* There, too: close all descriptors from `first` on. */
void guard_close_from(int first);

/* True if an earlier child is still stuck at that process. */
bool guard_is_blocked(pid_t about);

#endif
