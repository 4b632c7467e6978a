/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tids: OS threads, numbered by us and by the target, and how pthread_self leads to them.
 *
 * Up to 3.10 CPython keeps only pthread_self, the address of the C library's struct pthread; the thread's id lies in there at
 * an offset that is found by looking for ids that exist. Namespaces: pid_namespaces(7).
 */
#include "pystack/pystack_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/procfs.h"

#define TIDS_PTHREAD_BYTES 1024 /* how far into struct pthread the id is looked for */
#define TIDS_TRIES_MAX 16       /* a C library that hides it is not searched for ever */
#define TIDS_SAMPLE 64          /* threads compared in the search */

/* Offsets to try first, where glibc and musl for x86-64 have it. */
static const int32_t tids_usual[] = {0x2d0, 0x30};

bool pystack_in_other_namespace(pid_t pid) {
    char path[64];
    struct stat ours, theirs;
    (void)snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)pid);
    return stat("/proc/self/ns/pid", &ours) == 0 && stat(path, &theirs) == 0 &&
           (ours.st_ino != theirs.st_ino || ours.st_dev != theirs.st_dev);
}

ssize_t pystack_list_tids(struct pystack *ps) {
    ssize_t total = procfs_list_tids(ps->pid, ps->numbers, PYSTACK_MAX_THREADS);
    if (total < 0)
        return -1;
    size_t n = total < PYSTACK_MAX_THREADS ? (size_t)total : PYSTACK_MAX_THREADS;
    ps->n_tids = 0;
    for (size_t i = 0; i < n; i++) {
        struct pystack_tid t = {.outer = ps->numbers[i], .inner = ps->numbers[i]};
        struct procfs_status status;
        if (ps->other_namespace) {
            if (procfs_read_status(ps->pid, t.outer, &status) != 0)
                continue; /* ended since the listing */
            t.inner = status.ns_pid;
        }
        ps->tids[ps->n_tids++] = t;
    }
    return total;
}

int pystack_refresh_tids(struct pystack *ps) { return pystack_list_tids(ps) < 0 ? -1 : 0; }

static bool tids_exists(const struct pystack *ps, int64_t inner) {
    for (size_t i = 0; i < ps->n_tids; i++)
        if (ps->tids[i].inner == inner)
            return true;
    return false;
}

pid_t pystack_outer_tid(const struct pystack *ps, int64_t inner) {
    if (inner <= 0 || inner > INT32_MAX)
        return 0;
    if (!ps->other_namespace)
        return (pid_t)inner;
    for (size_t i = 0; i < ps->n_tids; i++)
        if (ps->tids[i].inner == inner)
            return ps->tids[i].outer;
    return 0;
}

/* Number of the threads of the sample whose word at `at` is the id of a thread, each another; -1 when one is not. With `usual`, where a C
 * library is known to have it, those that are not do not count against it: a fork leaves 3.6 the states of threads that are gone. */
static int tids_count_matches(struct pystack *ps, const uint64_t *idents, size_t n, int32_t at, bool usual) {
    uint32_t seen[TIDS_SAMPLE];
    int matches = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t tid;
        if (mem_read_u32(&ps->reader.mem, idents[i] + (uint64_t)at, &tid) != 0)
            continue; /* a thread that ended */
        if (!tids_exists(ps, tid)) {
            if (usual)
                continue;
            return -1;
        }
        for (int j = 0; j < matches; j++)
            if (seen[j] == tid)
                return -1;
        seen[matches++] = tid;
    }
    return matches;
}

struct tids_sample {
    uint64_t idents[TIDS_SAMPLE];
    size_t n;
};

/* A thread that runs several interpreters has a thread state in each. */
static bool tids_is_sampled(const struct tids_sample *s, uint64_t ident) {
    for (size_t i = 0; i < s->n; i++)
        if (s->idents[i] == ident)
            return true;
    return false;
}

static int tids_sample_interpreter(struct pystack *ps, uint64_t interp, int64_t id, void *arg) {
    struct tids_sample *s = arg;
    const struct pystack_offsets *o = &ps->reader.off;
    uint64_t tstate, ident;
    (void)id;
    if (pystack_read_u64_at(&ps->reader, interp, o->interp_threads_head, &tstate) != 0)
        return 0;
    for (int i = 0; tstate && s->n < TIDS_SAMPLE && i < PYSTACK_MAX_THREADS; i++) {
        if (pystack_read_u64_at(&ps->reader, tstate, o->tstate_thread_id, &ident) != 0)
            break;
        if (pystack_is_pointer(ident) && !tids_is_sampled(s, ident))
            s->idents[s->n++] = ident;
        if (pystack_read_u64_at(&ps->reader, tstate, o->tstate_next, &tstate) != 0)
            break;
    }
    return s->n == TIDS_SAMPLE;
}

/* Find the offset of the thread id in struct pthread: the first at which every Python thread has an existing id of its own. */
static void tids_find_offset(struct pystack *ps) {
    struct tids_sample s = {.n = 0};
    if (pystack_list_tids(ps) < 0 || pystack_each_interpreter(ps, tids_sample_interpreter, &s) < 0 ||
        s.n == 0)
        return;
    for (size_t i = 0; i < sizeof tids_usual / sizeof tids_usual[0]; i++)
        if (tids_count_matches(ps, s.idents, s.n, tids_usual[i], true) > 0) {
            ps->pthread_tid = tids_usual[i];
            return;
        }
    for (int32_t at = 0; at < TIDS_PTHREAD_BYTES; at += 4)
        if (tids_count_matches(ps, s.idents, s.n, at, false) > 0) {
            ps->pthread_tid = at;
            return;
        }
}

int64_t pystack_tid_of_ident(struct pystack *ps, uint64_t ident) {
    uint32_t tid;
    if (ps->pthread_tid < 0 && ps->pthread_tries < TIDS_TRIES_MAX) {
        ps->pthread_tries++;
        tids_find_offset(ps);
    }
    if (ps->pthread_tid < 0 || !pystack_is_pointer(ident) ||
        mem_read_u32(&ps->reader.mem, ident + (uint64_t)ps->pthread_tid, &tid) != 0 || tid > INT32_MAX)
        return 0;
    return (int64_t)tid;
}
