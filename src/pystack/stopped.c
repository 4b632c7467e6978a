/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stopped: frames of a thread that stands still, for exactness from outside.
 *
 * A thread that sleeps stands still by itself: read as it is, and kept when the kernel's counters say that it has not been on a
 * processor meanwhile (/proc/PID/task/TID/schedstat: Documentation/scheduler/sched-stats.rst). Only one that runs is stopped,
 * by whoever can do that. Used by the pystack's thread.
 */
#include "pystack/pystack_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/procfs.h"

#define STOPPED_MARK_MAX 96
#define STOPPED_TRIES 3

/* What changes whenever the thread is put on a processor. */
struct stopped_mark {
    char text[STOPPED_MARK_MAX];
};

static bool stopped_read_mark(const struct pystack *ps, pid_t tid, struct stopped_mark *m) {
    char path[64];
    memset(m, 0, sizeof *m);
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)ps->pid, (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, m->text, sizeof m->text - 1);
    (void)close(fd);
    return n > 0;
}

/* Is it asleep or stopped? A kernel that keeps no counters gives no mark: then the walk's own second look has to do. */
static bool stopped_is_still(const struct pystack *ps, pid_t tid, struct stopped_mark *m, bool *marked) {
    struct procfs_stat st;
    *marked = stopped_read_mark(ps, tid, m);
    return procfs_read_stat(ps->pid, tid, &st) == 0 && st.state != 'R' && st.state != '?';
}

void pystack_set_stopper(struct pystack *ps, const struct pystack_stopper *hold) {
    ps->hold = hold ? *hold : (struct pystack_stopper){.stop = NULL};
}

uint64_t pystack_stopped_ns(const struct pystack *ps) { return ps->stopped_ns; }

ssize_t pystack_walk_stopped(struct pystack *ps, const struct pystack_thread *t, struct arena *arena,
                             struct model_frame **out, bool *torn, bool *truncated, bool retry_moved) {
    struct stopped_mark before, after;
    bool marked;
    pid_t tid = ps->hold.stop ? pystack_outer_tid(ps, t->tid) : 0;
    ps->stopped_ns = 0;
    /* For native frames all registers are needed, of one that sleeps too. */
    if (tid && !ps->entries && stopped_is_still(ps, tid, &before, &marked)) {
        ssize_t n = pystack_walk_frames(ps, t, arena, out, torn, truncated, false);
        if (marked ? stopped_read_mark(ps, tid, &after) && memcmp(&before, &after, sizeof after) == 0
                   : !*torn)
            return n;
    }
    for (int i = 0;; i++) {
        bool held = tid && ps->hold.stop(ps->hold.arg, tid) == 0;
        ps->standing = held;
        ssize_t n = pystack_walk_frames(ps, t, arena, out, torn, truncated, retry_moved && !held);
        ps->standing = false;
        if (held)
            ps->stopped_ns += ps->hold.go(ps->hold.arg);
        /* It may stand where a frame is linked and not yet filled: some instructions later it does not. */
        if (!held || (n >= 0 && !*torn) || i == STOPPED_TRIES - 1)
            return n;
    }
}
