/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_loaders: worker processes of the target's DataLoaders, read from outside: the list of
 * workers from the target's memory, their state from their own memory and /proc. The job does no
 * work for it, and a hung job gives the same rows. See live_tables.h.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/procfs.h"
#include "client/sql/live_tables.h"
#include "pystack/loaders.h"
#include "store/ring/ring_tables.h"

#define LIVE_LOADERS_SCANS 5 /* one scan may miss a running thread, */
/* which matters less if it finds all workers of the last scan */
#define LIVE_LOADERS_RESCANS 2
#define LIVE_LOADERS_PAUSE_NS (30L * 1000 * 1000)     /* between two scans */
#define LIVE_LOADERS_INTERVAL_NS (100L * 1000 * 1000) /* between two readings of CPU clocks */

/* An interpreter that stays open between scans: finding it takes longer than reading it. */
struct live_reader {
    pid_t pid;
    uint64_t start_ticks;
    struct pystack *ps;
    bool used; /* by this scan */
};

#define LIVE_LOADERS_PLACE 256 /* bytes of a function with its file and line */

/* State for the target and its workers. Used by the thread that owns the database. */
struct live_loaders {
    struct live_reader *readers;
    size_t n, cap;
    uint64_t addrs[PYSTACK_LOADERS]; /* iterators found by the last scan */
    size_t n_addrs;
};

/* A worker, and the first reading of its CPU clock. */
struct live_worker {
    uint64_t loader, cpu_ns, wait_ns;
    size_t number;
    struct pystack_loader_worker at;
};

struct live_workers {
    struct live_worker *items;
    size_t n, cap;
    uint64_t looked_ns;
    bool here; /* pids are in our numbering */
};

static void live_loaders_pause(long ns) {
    struct timespec interval = {.tv_nsec = ns};
    while (nanosleep(&interval, &interval) != 0 && errno == EINTR)
        ;
}

static uint64_t live_loaders_cpu_ns(int64_t pid) {
    clockid_t clock;
    struct timespec t;
    if (pid <= 0 || clock_getcpuclockid((pid_t)pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return UINT64_MAX;
    return (uint64_t)t.tv_sec * CLOCK_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* What the main thread of a process has waited for a CPU, so far (Documentation/scheduler/
 * sched-stats.rst); UINT64_MAX unknown. */
static uint64_t live_loaders_wait_ns(int64_t pid) {
    char text[96];
    unsigned long long ns;
    if (pid <= 0 || procfs_read_file((pid_t)pid, 0, "schedstat", text, sizeof text) <= 0 ||
        sscanf(text, "%*u %llu", &ns) != 1)
        return UINT64_MAX;
    return ns;
}

static int live_loaders_add(struct live_workers *w, const struct pystack_loader *l) {
    for (size_t i = 0; i < l->n; i++) {
        if (w->n == w->cap) {
            size_t cap = w->cap ? 2 * w->cap : 32;
            struct live_worker *items = realloc(w->items, cap * sizeof *items);
            if (!items)
                return -1;
            w->items = items;
            w->cap = cap;
        }
        w->items[w->n++] = (struct live_worker){.loader = l->addr, .number = i, .at = l->worker[i]};
    }
    return 0;
}

/* ---- open interpreters ---- */

static void live_loaders_close(struct live_loaders *l, size_t i) {
    pystack_close(l->readers[i].ps);
    l->readers[i] = l->readers[--l->n];
}

void live_loaders_free(struct live_loaders *l) {
    if (!l)
        return;
    while (l->n)
        live_loaders_close(l, l->n - 1);
    free(l->readers);
    free(l);
}

static struct live_loaders *live_loaders_of(struct live_target *t) {
    if (!t->loaders)
        t->loaders = calloc(1, sizeof *t->loaders);
    return t->loaders;
}

static int live_loaders_reserve(struct live_loaders *l, struct err *e) {
    if (l->n < l->cap)
        return 0;
    size_t cap = l->cap ? 2 * l->cap : 16;
    struct live_reader *more = realloc(l->readers, cap * sizeof *more);
    if (!more)
        return err_set(e, ERR_FAILED, "out of memory for the workers");
    l->readers = more;
    l->cap = cap;
    return 0;
}

/* The open interpreter of a process. NULL with the error. The start time shows that it is still
 * the same process. */
static struct pystack *live_loaders_open(struct live_loaders *l, pid_t pid, struct err *e) {
    struct procfs_stat st;
    uint64_t start = procfs_read_stat(pid, 0, &st) == 0 ? st.start_ticks : 0;
    for (size_t i = 0; i < l->n; i++)
        if (l->readers[i].pid == pid && l->readers[i].start_ticks == start) {
            l->readers[i].used = true;
            return l->readers[i].ps;
        }
    if (live_loaders_reserve(l, e) != 0)
        return NULL;
    struct pystack *ps = pystack_open(pid, e);
    if (ps)
        l->readers[l->n++] = (struct live_reader){pid, start, ps, true};
    return ps;
}

/* Close it after a failed read: the process may have become another program. */
static void live_loaders_drop(struct live_loaders *l, const struct pystack *ps) {
    for (size_t i = l->n; i-- > 0;)
        if (l->readers[i].ps == ps)
            live_loaders_close(l, i);
}

/* At the end of a scan, close the interpreters that it did not use. */
static void live_loaders_tidy(struct live_loaders *l) {
    for (size_t i = l->n; i-- > 0;)
        if (!l->readers[i].used)
            live_loaders_close(l, i);
    for (size_t i = 0; i < l->n; i++)
        l->readers[i].used = false;
}

/* ---- finding workers ---- */

/* True if all iterators of the last scan are among them, and there were any. */
static bool live_loaders_has_all(const struct live_loaders *l, const uint64_t *addrs, size_t n) {
    size_t there = 0;
    for (size_t i = 0; i < l->n_addrs; i++)
        for (size_t k = 0; k < n; k++)
            there += addrs[k] == l->addrs[i];
    return l->n_addrs && there == l->n_addrs;
}

/* The iterators found by any of several scans; returns their number. *failed: no scan succeeded. */
static size_t live_loaders_find(struct live_loaders *l, struct pystack *ps, struct sql_sink *sink,
                                uint64_t *addrs, bool *failed) {
    uint64_t seen[PYSTACK_LOADERS];
    size_t n = 0;
    *failed = true;
    for (int look = 0; look < LIVE_LOADERS_SCANS && !sql_sink_cancelled(sink); look++) {
        if (look >= LIVE_LOADERS_RESCANS && live_loaders_has_all(l, addrs, n))
            break;
        if (look)
            live_loaders_pause(LIVE_LOADERS_PAUSE_NS);
        ssize_t found = pystack_find_loaders(ps, seen);
        *failed = *failed && found < 0;
        for (ssize_t i = 0; i < found; i++) {
            size_t k = 0;
            while (k < n && addrs[k] != seen[i])
                k++;
            if (k == n && n < PYSTACK_LOADERS)
                addrs[n++] = seen[i];
        }
    }
    l->n_addrs = n;
    memcpy(l->addrs, addrs, n * sizeof *addrs);
    return n;
}

/* List all workers of process `pid`. 0, or -1 with the error. */
static int live_loaders_list(struct live_target *t, pid_t pid, struct sql_sink *sink, struct live_workers *w,
                             struct err *e) {
    uint64_t addrs[PYSTACK_LOADERS];
    struct procfs_status st;
    struct err why = {0};
    w->here = procfs_read_status(pid, 0, &st) == 0 && st.ns_pid == pid;
    struct live_loaders *kept = t->loaders;
    struct pystack *ps = live_loaders_open(kept, pid, &why);
    struct pystack_loader *l = calloc(1, sizeof *l);
    int rc = l ? 0 : err_set(e, ERR_FAILED, "out of memory for the workers");
    bool failed = false;
    if (!ps) /* it may not be read: not an error of the query */
        snprintf(t->note, sizeof t->note, "python.loader_workers: %s", why.text);
    size_t n = ps && l ? live_loaders_find(kept, ps, sink, addrs, &failed) : 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        if (pystack_read_loader(ps, addrs[i], l) == 0 && live_loaders_add(w, l) != 0)
            rc = err_set(e, ERR_FAILED, "out of memory for the workers");
    for (size_t i = 0; w->here && i < w->n; i++) {
        w->items[i].cpu_ns = live_loaders_cpu_ns(w->items[i].at.pid);
        w->items[i].wait_ns = live_loaders_wait_ns(w->items[i].at.pid);
    }
    w->looked_ns = clock_mono_ns();
    free(l);
    if (ps && failed)
        live_loaders_drop(kept, ps);
    return rc;
}

/* Write "func (file.py:7)" of the innermost frame that is not of a library, within the worker's loop: what
 * is outside of it the worker has inherited by fork. False: there is none. */
static bool live_loaders_put_own(const struct model_thread *t, char *buf, size_t cap) {
    for (size_t i = 0; i < t->n_frames; i++) {
        const struct model_frame *f = &t->frames[i];
        if (!f->file || f->kind != MODEL_FRAME_PYTHON)
            continue;
        if (strstr(f->file, "/torch/utils/data/_utils/worker.py"))
            return false;
        if (path_is_library(f->file))
            continue;
        snprintf(buf, cap, "%.100s (%.100s:%d)", f->func ? f->func : "?", path_short(f->file), f->line);
        return true;
    }
    return false;
}

/* Fill in the current function of the worker's main thread; `s` and `own` have the texts. */
static void live_loaders_read_function(struct live_loaders *l, pid_t pid, struct model_snapshot *s, char *own,
                                       size_t cap, union ring_value *row) {
    struct err e = {0};
    struct pystack *ps = live_loaders_open(l, pid, &e);
    bool read = ps && pystack_snapshot(ps, NULL, 0, s, &e) == 0;
    for (size_t i = 0; read && i < s->n_threads; i++) {
        const struct model_thread *th = &s->threads[i];
        if (th->n_frames == 0 || i > 0) /* the first is the main thread */
            continue;
        row[RING_LOADER_WORKERS_FUNC].s = th->frames[0].func;
        row[RING_LOADER_WORKERS_FILE].s = th->frames[0].file;
        row[RING_LOADER_WORKERS_LINENO].i = th->frames[0].line > 0 ? th->frames[0].line : RING_INT_NULL;
        if (live_loaders_put_own(th, own, cap))
            row[RING_LOADER_WORKERS_OWN].s = own;
    }
    if (ps && !read)
        live_loaders_drop(l, ps);
}

static int live_loaders_put(struct live_loaders *l, const struct live_workers *w, const struct live_worker *k,
                            uint64_t columns, struct sql_sink *sink) {
    union ring_value row[RING_LOADER_WORKERS_COUNT] = {
        [RING_LOADER_WORKERS_LOADER].i = (int64_t)k->loader,
        [RING_LOADER_WORKERS_WORKER].i = (int64_t)k->number,
        [RING_LOADER_WORKERS_PID].i = k->at.pid < 0 ? RING_INT_NULL : k->at.pid,
        [RING_LOADER_WORKERS_ALIVE].i = RING_INT_NULL,
        [RING_LOADER_WORKERS_STATE].i = RING_INT_NULL,
        [RING_LOADER_WORKERS_CPU_PCT].f = NAN,
        [RING_LOADER_WORKERS_CPU_WAIT_PCT].f = NAN,
        [RING_LOADER_WORKERS_RSS_BYTES].i = RING_INT_NULL,
        [RING_LOADER_WORKERS_OUTSTANDING].i = k->at.outstanding < 0 ? RING_INT_NULL : k->at.outstanding,
        [RING_LOADER_WORKERS_LINENO].i = RING_INT_NULL,
    };
    const uint64_t functions = 1U << RING_LOADER_WORKERS_FUNC | 1U << RING_LOADER_WORKERS_FILE |
                               1U << RING_LOADER_WORKERS_LINENO | 1U << RING_LOADER_WORKERS_OWN;
    char own[LIVE_LOADERS_PLACE];
    struct procfs_status st;
    struct model_snapshot s;
    memset(&s, 0, sizeof s);
    if (w->here && k->at.pid > 0) {
        bool there = procfs_read_status((pid_t)k->at.pid, 0, &st) == 0;
        bool alive = there && st.state != 'Z' && st.state != 'X';
        uint64_t now_ns = clock_mono_ns(), cpu_ns = live_loaders_cpu_ns(k->at.pid),
                 wait_ns = live_loaders_wait_ns(k->at.pid);
        int state = there ? ring_state_label(st.state) : -1;
        row[RING_LOADER_WORKERS_ALIVE].i = alive;
        row[RING_LOADER_WORKERS_STATE].i = state < 0 ? RING_INT_NULL : state;
        row[RING_LOADER_WORKERS_RSS_BYTES].i = alive && st.rss_bytes >= 0 ? st.rss_bytes : RING_INT_NULL;
        if (alive && cpu_ns != UINT64_MAX && k->cpu_ns <= cpu_ns && now_ns > w->looked_ns)
            row[RING_LOADER_WORKERS_CPU_PCT].f =
                100.0 * (double)(cpu_ns - k->cpu_ns) / (double)(now_ns - w->looked_ns);
        if (alive && wait_ns != UINT64_MAX && k->wait_ns <= wait_ns && now_ns > w->looked_ns)
            row[RING_LOADER_WORKERS_CPU_WAIT_PCT].f =
                100.0 * (double)(wait_ns - k->wait_ns) / (double)(now_ns - w->looked_ns);
        if (alive && (columns & functions))
            live_loaders_read_function(l, (pid_t)k->at.pid, &s, own, sizeof own, row);
    }
    int rc = sql_sink_put(sink, row);
    model_snapshot_fini(&s);
    return rc;
}

static int live_loaders_scan(struct live_target *t, pid_t pid, uint64_t columns, struct sql_sink *sink,
                             struct err *e) {
    struct live_workers w = {.n = 0};
    int rc = live_loaders_of(t) ? live_loaders_list(t, pid, sink, &w, e)
                                : err_set(e, ERR_FAILED, "out of memory for the workers");
    if (rc != 0) {
        free(w.items);
        t->failure = *e;
        return -1;
    }
    if (w.n && (columns & (1U << RING_LOADER_WORKERS_CPU_PCT | 1U << RING_LOADER_WORKERS_CPU_WAIT_PCT)))
        live_loaders_pause(LIVE_LOADERS_INTERVAL_NS);
    for (size_t i = 0; i < w.n; i++)
        if (live_loaders_put(t->loaders, &w, &w.items[i], columns, sink) != 0)
            break;
    live_loaders_tidy(t->loaders);
    free(w.items);
    return 0;
}

int live_scan_loader_workers(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    struct live_target *t = arg;
    return live_loaders_scan(t, t->addr.pid, columns, sink, e);
}

int live_scan_loader_workers_remote(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    struct live_target *t = arg;
    pid_t pid;
    if (live_remote_find_here(t, &pid, e) != 0)
        return -1;
    if (pid > 0)
        return live_loaders_scan(t, pid, columns, sink, e);
    live_virtual_note(t, sql_sink_table(sink)->name,
                      "made from /proc on the job's machine, and the job runs on another one");
    return 0;
}
