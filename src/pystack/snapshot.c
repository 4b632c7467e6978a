/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot: every OS thread of the process with the facts of the kernel and the interpreter.
 *
 * CPU time: of our own threads by their clocks (clock_gettime), of others' by
 * /proc/PID/task/TID/schedstat (Documentation/scheduler/sched-stats.rst), or by the ticks of
 * stat where the kernel has no schedstat.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "pystack/locals.h"
#include "pystack/pystack_internal.h"
#include "pystack/tasks.h"
#include "pystack/waits.h"

#define SNAPSHOT_ARENA_MAX ((size_t)48 << 20)
/* the shortest time of a rate, once two snapshots are so far apart */
#define SNAPSHOT_RATE_NS CLOCK_NS_PER_S
/* then it ends incomplete: the remaining threads have no frames */
#define SNAPSHOT_NS_MAX (2 * CLOCK_NS_PER_S)
/* attempts on a thread that wakes up while its native frames are copied */
#define SNAPSHOT_NATIVE_TRIES 3

/* A snapshot being made. */
struct snapshot_work {
    struct pystack *ps;
    struct model_snapshot *out;
    const int64_t *skip;
    size_t n_skip;
    struct pystack_thread *threads; /* of the interpreter, sorted by tid */
    size_t n_threads;
    bool interpreter_read;
    const struct pystack_locals_request *request; /* NULL: no locals */
    struct pystack_locals_budget locals;
    uint64_t tstate; /* of the frames that were read last */
    uint64_t now_ns;
    size_t n_clocks;
    const struct pystack_clock *before; /* of the current thread; NULL if it is new */
};

static uint64_t snapshot_read_schedstat(pid_t pid, pid_t tid) {
    char path[64], buf[64];
    unsigned long long ns = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, buf, sizeof buf - 1);
    close(fd);
    if (n <= 0)
        return 0;
    buf[n] = '\0';
    return sscanf(buf, "%llu", &ns) == 1 ? ns : 0;
}

static uint64_t snapshot_ticks_ns(const struct procfs_stat *st) {
    return (st->utime_ticks + st->stime_ticks) * (CLOCK_NS_PER_S / (uint64_t)procfs_ticks_per_s());
}

uint64_t pystack_thread_cpu(const struct pystack *ps, pid_t tid, const struct procfs_stat *st) {
    uint64_t ns = ps->self ? clock_thread_cpu_ns(tid) : snapshot_read_schedstat(ps->pid, tid);
    return ns ? ns : snapshot_ticks_ns(st);
}

static uint64_t snapshot_process_cpu(const struct pystack *ps) {
    struct timespec ts;
    clockid_t id = CLOCK_PROCESS_CPUTIME_ID;
    struct procfs_stat st;
    if ((ps->self || clock_getcpuclockid(ps->pid, &id) == 0) && clock_gettime(id, &ts) == 0)
        return (uint64_t)ts.tv_sec * CLOCK_NS_PER_S + (uint64_t)ts.tv_nsec;
    return procfs_read_stat(ps->pid, 0, &st) == 0 ? snapshot_ticks_ns(&st) : 0;
}

/* Share of one core, in percent, up to now; NAN for the first snapshot. */
static double snapshot_rate(struct pystack_rate *r, uint64_t cpu_ns, uint64_t now_ns) {
    bool apart = r->at_ns[1] && now_ns - r->at_ns[1] >= SNAPSHOT_RATE_NS;
    size_t from = apart || !r->at_ns[0] ? 1 : 0;
    double pct = NAN;
    if (r->at_ns[from] && now_ns > r->at_ns[from] && cpu_ns >= r->cpu_ns[from])
        pct = 100.0 * (double)(cpu_ns - r->cpu_ns[from]) / (double)(now_ns - r->at_ns[from]);
    if (apart || !r->at_ns[1]) {
        r->cpu_ns[0] = r->cpu_ns[1];
        r->at_ns[0] = r->at_ns[1];
        r->cpu_ns[1] = cpu_ns;
        r->at_ns[1] = now_ns;
    }
    return pct;
}

static int snapshot_cmp_clock(const void *a, const void *b) {
    pid_t x = ((const struct pystack_clock *)a)->tid, y = ((const struct pystack_clock *)b)->tid;
    return (x > y) - (x < y);
}

/* CPU figures of a thread; remembers its clock for the next snapshot. */
static void snapshot_put_cpu(struct snapshot_work *w, pid_t tid, const struct procfs_stat *st,
                             struct model_thread *t) {
    struct pystack *ps = w->ps;
    struct pystack_clock now = {
        .tid = tid, .cpu_ns = pystack_thread_cpu(ps, tid, st), .started = st->start_ticks};
    const struct pystack_clock *before =
        bsearch(&now, ps->clocks, ps->n_clocks, sizeof now, snapshot_cmp_clock);
    w->before = before && before->started == now.started ? before : NULL;
    if (w->before) {
        now.rate = before->rate;
        t->on_cpu = now.cpu_ns > before->cpu_ns;
    }
    t->cpu_pct = snapshot_rate(&now.rate, now.cpu_ns, w->now_ns);
    ps->clocks_next[w->n_clocks++] = now;
}

/* The first of the thread states of an OS thread, or NULL. */
static const struct pystack_thread *snapshot_find_python(const struct snapshot_work *w, int64_t tid) {
    size_t low = 0, high = w->n_threads;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (w->threads[middle].tid < tid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < w->n_threads && w->threads[low].tid == tid ? &w->threads[low] : NULL;
}

/* True if the GIL went to no other thread since the previous snapshot, in which this one waited
 * for it or held it. */
static bool snapshot_gil_stayed(const struct snapshot_work *w, const struct pystack_thread *p,
                                enum model_gil gil) {
    const struct pystack_clock *before = w->before;
    return p->gil_counted && before && before->gil == gil && before->gil_tstate == p->tstate &&
           before->gil_switches == p->gil_switches;
}

/* How long the thread has certainly waited for the GIL, or held it; `p` was read before its
 * state. A thread that waits while another holds the GIL still waits as long as it goes to
 * nobody else, even if it is awake for a moment to ask for it: changes of the holder are
 * counted. For the holder it means that nobody else has had it. */
static void snapshot_put_gil_for(struct snapshot_work *w, const struct pystack_thread *p,
                                 struct model_thread *t) {
    struct pystack_clock *now = &w->ps->clocks_next[w->n_clocks - 1];
    bool still_waits = t->gil != MODEL_GIL_HOLDING && snapshot_gil_stayed(w, p, MODEL_GIL_WAITING);
    if (still_waits) {
        t->gil = MODEL_GIL_WAITING;
        t->gc = 0;
    }
    bool waits =
        t->gil == MODEL_GIL_WAITING && (still_waits || (p->gil_holder && p->gil_holder != p->tstate));
    bool holds = t->gil == MODEL_GIL_HOLDING && p->holds_gil;
    t->gil_for_us = NAN;
    now->gil = MODEL_GIL_UNKNOWN;
    if (!p->gil_counted || !(waits || holds))
        return;
    now->gil = t->gil;
    now->gil_tstate = p->tstate;
    now->gil_switches = p->gil_switches;
    now->gil_since_ns = clock_mono_ns();
    t->gil_for_us = 0;
    if (!snapshot_gil_stayed(w, p, t->gil))
        return;
    now->gil_since_ns = w->before->gil_since_ns;
    if (w->now_ns > now->gil_since_ns)
        t->gil_for_us = (double)(w->now_ns - now->gil_since_ns) / (double)CLOCK_NS_PER_US;
}

/* Fill in one thread state. False if it has no frames. */
static bool snapshot_put_state(struct snapshot_work *w, const struct pystack_thread *p,
                               struct model_thread *t) {
    t->has_python = true;
    w->tstate = p->tstate;
    t->ident = p->ident;
    if (t->state == 'R' && w->ps->asker.read) {
        ssize_t own = w->ps->asker.read(w->ps->asker.arg, p, &w->out->arena, &t->frames, &t->truncated,
                                        &t->gil, &t->gc);
        t->n_frames = own > 0 ? (size_t)own : 0;
        snapshot_put_gil_for(w, p, t);
        if (own >= 0)
            return own != 0;
    }
    t->gil = pystack_read_gil(w->ps, p);
    t->gc = pystack_read_gc(w->ps, p, t->gil);
    snapshot_put_gil_for(w, p, t);
    ssize_t n = pystack_walk_stopped(w->ps, p, &w->out->arena, &t->frames, &t->torn, &t->truncated, true);
    t->stopped_us += (pystack_stopped_ns(w->ps) + CLOCK_NS_PER_US - 1) / CLOCK_NS_PER_US;
    t->n_frames = n > 0 ? (size_t)n : 0;
    t->torn = t->torn || n < 0;
    return n != 0;
}

/* A thread that has not been on a processor in between has the values that were read. For one
 * that has, nothing else is proof: a frame that was left keeps its bytes, a variable its
 * address, and freed memory is soon reused. The clock of another process's thread stands still
 * while it runs (it is updated at the next tick), so it does not prove that a running one stood
 * still. */
static void snapshot_put_locals(struct snapshot_work *w, pid_t tid, uint64_t cpu_before,
                                struct model_thread *t) {
    struct procfs_stat st;
    bool moved = false, cut = false, running = t->state == 'R';
    if (!w->request || w->request->without_locals || (w->request->tid && w->request->tid != t->tid))
        return;
    t->locals = pystack_locals_read(w->ps, w->tstate, t->frames, t->n_frames, running, &w->out->arena,
                                    &w->locals, &moved, &cut);
    bool ran = procfs_read_stat(w->ps->pid, tid, &st) != 0 || (!running && st.state == 'R') ||
               (running && !w->ps->self) || pystack_thread_cpu(w->ps, tid, &st) != cpu_before;
    t->torn = t->torn || moved || ran;
    w->out->incomplete = w->out->incomplete || cut;
}

static void snapshot_put_python(struct snapshot_work *w, struct model_thread *t) {
    const struct pystack_thread *end = w->threads + w->n_threads, *p = snapshot_find_python(w, t->tid);
    if (!w->interpreter_read)
        return;
    if (!p) {
        /* no thread state: it can neither hold nor want it, unless the list was cut */
        bool cut = w->n_threads >= PYSTACK_MAX_THREADS;
        t->gil = cut ? MODEL_GIL_UNKNOWN : MODEL_GIL_NONE;
        t->gc = cut ? MODEL_UNKNOWN : 0;
        return;
    }
    /* One that runs nothing has no frames; then another may have. */
    size_t n = 1;
    while (p + n < end && p[n].tid == t->tid)
        n++;
    for (size_t i = 0; i < n && !snapshot_put_state(w, &p[i], t) && !pystack_is_late(w->ps);)
        i++;
    t->name = pystack_name_of_thread(p, n);
    if (t->truncated)
        w->out->incomplete = true;
}

bool pystack_is_late(const struct pystack *ps) { return ps->until_ns && clock_mono_ns() > ps->until_ns; }

static bool snapshot_is_skipped(const struct snapshot_work *w, int64_t tid) {
    if (w->request && w->request->alone && w->request->tid != tid)
        return true;
    for (size_t i = 0; i < w->n_skip; i++)
        if (w->skip[i] == tid)
            return true;
    return false;
}

/* Walk one thread. True if its native frames are unknown because it did not sleep on; another
 * try may find them. */
static bool snapshot_walk(struct snapshot_work *w, pid_t tid, uint64_t cpu, struct model_thread *t) {
    struct procfs_stat st;
    if (pystack_is_late(w->ps)) {
        w->out->incomplete = t->truncated = true;
        return false;
    }
    bool copied = pystack_native_begin(w->ps, t->tid, tid, t->state != 'R');
    snapshot_put_python(w, t);
    snapshot_put_locals(w, tid, cpu, t);
    bool moved = copied && (procfs_read_stat(w->ps->pid, tid, &st) != 0 || st.state == 'R' ||
                            pystack_thread_cpu(w->ps, tid, &st) != cpu);
    pystack_native_attach(w->ps, tid, copied, moved, t, &w->out->arena);
    return moved;
}

static void snapshot_add_thread(struct snapshot_work *w, const struct pystack_tid *id) {
    struct model_snapshot *out = w->out;
    struct procfs_stat st;
    /* ended since the listing */
    if (snapshot_is_skipped(w, id->inner) || procfs_read_stat(w->ps->pid, id->outer, &st) != 0)
        return;
    struct model_thread *t = &out->threads[out->n_threads++];
    *t = (struct model_thread){.tid = id->inner,
                               .state = st.state,
                               .on_cpu = MODEL_UNKNOWN,
                               .gc = MODEL_UNKNOWN,
                               .gil_for_us = NAN,
                               .cpu_pct = NAN,
                               .native_name = arena_strdup(&out->arena, st.comm)};
    snapshot_put_cpu(w, id->outer, &st, t);
    uint64_t cpu = w->ps->clocks_next[w->n_clocks - 1].cpu_ns;
    const struct model_thread fresh = *t;
    for (int left = SNAPSHOT_NATIVE_TRIES; snapshot_walk(w, id->outer, cpu, t) && --left > 0;) {
        if (procfs_read_stat(w->ps->pid, id->outer, &st) != 0)
            return;
        *t = fresh;
        t->state = st.state;
        cpu = pystack_thread_cpu(w->ps, id->outer, &st);
    }
    if (t->gc == 1) /* a thread's own copy may be of a later moment */
        out->gc_running = 1;
    struct pystack_clock now = w->ps->clocks_next[w->n_clocks - 1];
    now.cpu_ns = cpu;
    pystack_waits_add(w->ps, &now, w->tstate, t->on_cpu == 0, out->n_threads - 1, out);
}

/* A GIL in use and a collection of any interpreter count for the process. */
static void snapshot_put_facts(struct model_snapshot *out, const struct pystack_thread *t) {
    if (t->gil_enabled > out->gil_enabled)
        out->gil_enabled = t->gil_enabled;
    if (t->collecting > out->gc_running)
        out->gc_running = t->collecting;
}

static void snapshot_read_interpreter(struct snapshot_work *w) {
    ssize_t n = pystack_read_threads(w->ps, &w->out->arena, &w->threads);
    w->interpreter_read = n >= 0;
    w->n_threads = n > 0 ? (size_t)n : 0;
    w->out->gil_tid = n >= 0 && !w->ps->holder_unlisted ? 0 : MODEL_UNKNOWN;
    if (n < 0 || n >= PYSTACK_MAX_THREADS)
        w->out->incomplete = true;
    /* with a GIL for each interpreter, the first one's holder is reported */
    int64_t best = INT64_MAX;
    for (size_t i = 0; i < w->n_threads; i++) {
        snapshot_put_facts(w->out, &w->threads[i]);
        if (w->threads[i].holds_gil && w->threads[i].interpreter < best) {
            best = w->threads[i].interpreter;
            w->out->gil_tid = w->threads[i].tid ? w->threads[i].tid : MODEL_UNKNOWN;
        }
    }
    pystack_sort_threads(w->ps, w->threads, w->n_threads);
}

/* Tasks of asyncio, if its library publishes their layout. */
static void snapshot_put_tasks(struct snapshot_work *w) {
    struct pystack_asyncio asyncio;
    int rc =
        w->request && w->request->tasks && w->interpreter_read ? pystack_asyncio_find(w->ps, &asyncio) : -1;
    if (rc == 0)
        pystack_tasks_read(w->ps, &asyncio, w->threads, w->n_threads, w->out);
    else if (rc == 1) /* there are none */
        w->out->tasks = arena_calloc(&w->out->arena, 1, sizeof *w->out->tasks);
}

static void snapshot_put_process(struct snapshot_work *w, int64_t n_threads) {
    struct pystack *ps = w->ps;
    struct model_process *p = &w->out->process;
    struct procfs_status st;
    *p = (struct model_process){.cpu_pct = NAN,
                                .uptime_s = w->out->timestamp - ps->started_at,
                                .rss_bytes = MODEL_UNKNOWN,
                                .n_threads = n_threads,
                                .agent_cpu_pct = NAN,
                                .agent_rss_bytes = MODEL_UNKNOWN};
    if (procfs_read_status(ps->pid, 0, &st) == 0)
        p->rss_bytes = st.rss_bytes;
    uint64_t cpu = snapshot_process_cpu(ps);
    if (cpu)
        p->cpu_pct = snapshot_rate(&ps->process_rate, cpu, w->now_ns);
}

/* The main thread first, the others in the order of their numbers. */
static int snapshot_cmp_model(const void *a, const void *b, void *arg) {
    const struct model_thread *x = a, *y = b;
    pid_t main_tid = *(const pid_t *)arg;
    if ((x->tid == main_tid) != (y->tid == main_tid))
        return x->tid == main_tid ? -1 : 1;
    return (x->tid > y->tid) - (x->tid < y->tid);
}

static void snapshot_keep_clocks(struct snapshot_work *w) {
    struct pystack *ps = w->ps;
    struct pystack_clock *swap = ps->clocks;
    ps->clocks = ps->clocks_next;
    ps->clocks_next = swap;
    ps->n_clocks = w->n_clocks;
    qsort(ps->clocks, ps->n_clocks, sizeof *ps->clocks, snapshot_cmp_clock);
}

static int snapshot_lost(const struct pystack *ps, struct err *e) {
    if (ps->self) /* it is this process, which has not ended */
        return err_set_errno(e, ERR_FAILED, errno, "/proc does not show the threads of this process");
    return err_set(e, ERR_LOST, "process %d has ended", (int)(ps->pid ? ps->pid : getpid()));
}

int pystack_snapshot(struct pystack *ps, const int64_t *skip, size_t n_skip, struct model_snapshot *out,
                     struct err *e) {
    return pystack_snapshot_locals(ps, skip, n_skip, NULL, out, e);
}

int pystack_snapshot_locals(struct pystack *ps, const int64_t *skip, size_t n_skip,
                            const struct pystack_locals_request *request, struct model_snapshot *out,
                            struct err *e) {
    struct snapshot_work w = {
        .ps = ps, .out = out, .skip = skip, .n_skip = n_skip, .request = request, .now_ns = clock_mono_ns()};
    w.locals = pystack_locals_budget(request && request->tid);
    ps->until_ns = w.now_ns + SNAPSHOT_NS_MAX;
    *out = (struct model_snapshot){
        .timestamp = clock_epoch_s(), .seq = ++ps->seq, .gil_tid = MODEL_UNKNOWN, .cost_us = NAN};
    out->gil_enabled = out->gc_running = MODEL_UNKNOWN;
    arena_init(&out->arena, SNAPSHOT_ARENA_MAX);
    if (procfs_is_gone(ps->pid))
        return snapshot_lost(ps, e);
    ssize_t total = pystack_list_tids(ps);
    if (total < 0)
        return snapshot_lost(ps, e);
    pystack_codes_begin(&ps->codes, &out->arena);
    snapshot_read_interpreter(&w);
    out->threads = arena_calloc(&out->arena, ps->n_tids ? ps->n_tids : 1, sizeof *out->threads);
    if (!out->threads)
        return err_set(e, ERR_FAILED, "out of memory for a snapshot of %zu threads", ps->n_tids);
    pystack_waits_begin(ps, ps->n_tids);
    for (size_t i = 0; i < ps->n_tids; i++)
        snapshot_add_thread(&w, &ps->tids[i]);
    pystack_waits_end(ps, w.threads, w.n_threads, out);
    snapshot_put_tasks(&w);
    snapshot_put_process(&w, total);
    snapshot_keep_clocks(&w);
    qsort_r(out->threads, out->n_threads, sizeof *out->threads, snapshot_cmp_model, &ps->main_tid);
    if (total > PYSTACK_MAX_THREADS || out->arena.failed)
        out->incomplete = true;
    if (!pystack_is_same(ps)) {
        if (procfs_is_gone(ps->pid))
            return snapshot_lost(ps, e);
        return err_set(e, ERR_FAILED, "process %d started another program (exec) while it was read",
                       (int)ps->pid);
    }
    out->cost_us = (double)(clock_mono_ns() - w.now_ns) / 1e3;
    return 0;
}

/* ---- native frames of the threads ----
 *
 * A thread that runs copies itself (struct pystack_asker) or is held (struct pystack_hold). One that sleeps in a system call is
 * copied as it is, and that counts only if it has not been on a processor since: the caller says so at the end. */

int pystack_want_native(struct pystack *ps, const struct native_request *request) {
    ps->native_request = request ? *request : (struct native_request){.wanted = false};
    if (!ps->native_request.wanted)
        return 0;
    if (!ps->native)
        ps->native = native_new(ps->pid);
    if (!ps->native_copy)
        ps->native_copy = calloc(1, sizeof *ps->native_copy);
    if (!ps->native_hints)
        ps->native_hints = calloc(NATIVE_HINTS, sizeof *ps->native_hints);
    if (!ps->native_frames)
        ps->native_frames = calloc(NATIVE_MAX_FRAMES, sizeof *ps->native_frames);
    if (ps->native && ps->native_copy && ps->native_hints && ps->native_frames)
        return 0;
    ps->native_request.wanted = false;
    return -1;
}

void pystack_native_fini(struct pystack *ps) {
    native_free(ps->native);
    free(ps->native_copy);
    free(ps->native_hints);
    free(ps->native_frames);
}

bool pystack_wants_native(const struct pystack *ps, int64_t tid) {
    return ps->native_request.wanted && (ps->native_request.tid == 0 || ps->native_request.tid == tid);
}

struct native_copy *pystack_native_copy(struct pystack *ps) {
    return ps->native_request.wanted ? ps->native_copy : NULL;
}

size_t pystack_native_bytes(const struct pystack *ps) { return native_bytes(ps->native); }

struct native_maps *pystack_native_maps(struct pystack *ps) {
    return ps->native ? native_get_maps(ps->native) : NULL;
}

void pystack_put_native(struct pystack *ps, struct native_copy *c) {
    if (!ps->native_request.wanted)
        return;
    ps->n_native_frames = native_unwind(ps->native, c, ps->native_frames, NATIVE_MAX_FRAMES);
    if (c == ps->native_copy)
        ps->native_hints[ps->native_hint].stack_end = c->stack_end;
}

/* The earlier end of the thread's stack. A wrong one makes a copy too short at worst, and is
 * then forgotten. */
static void native_take_hint(struct pystack *ps, int64_t tid) {
    ps->native_hint = (size_t)tid % NATIVE_HINTS;
    struct native_hint *hint = &ps->native_hints[ps->native_hint];
    if (hint->tid != tid)
        *hint = (struct native_hint){.tid = tid};
    ps->native_copy->stack_end = hint->stack_end;
}

bool pystack_native_begin(struct pystack *ps, int64_t tid, pid_t outer_tid, bool asleep) {
    ps->n_native_frames = 0;
    ps->entries = pystack_wants_native(ps, tid);
    if (!ps->entries)
        return false;
    native_take_hint(ps, tid);
    native_refresh(ps->native, ps->native_request.max_age_ns);
    /* If it can be stopped, all registers are known. */
    return asleep && !ps->stopper.stop && native_copy_asleep(ps->native_copy, ps->pid, outer_tid) == 0;
}

const struct model_frame *pystack_native_end(struct pystack *ps, size_t *n) {
    ps->entries = false;
    *n = ps->n_native_frames;
    return ps->native_frames;
}

/* A thread without Python frames, or one whose frames were not read. */
static void native_ask(struct pystack *ps, const struct model_thread *t, pid_t outer_tid) {
    if (ps->stopper.stop) {
        if (ps->stopper.stop(ps->stopper.arg, outer_tid) == 0)
            ps->stopper.go(ps->stopper.arg);
    } else if (t->state == 'R' && ps->asker.native) {
        ps->asker.native(ps->asker.arg, t->tid);
    }
}

/* Make room for `more` frames before those of the thread. 0, or -1 without memory. */
static int native_reserve(struct model_thread *t, size_t more, struct arena *arena) {
    struct model_frame *frames = arena_calloc(arena, t->n_frames + more, sizeof *frames);
    const struct model_locals **locals =
        t->locals ? arena_calloc(arena, t->n_frames + more, sizeof *locals) : NULL;
    if (!frames || (t->locals && !locals))
        return -1;
    if (t->n_frames)
        memcpy(frames + more, t->frames, t->n_frames * sizeof *frames);
    if (locals && t->n_frames)
        memcpy(locals + more, t->locals, t->n_frames * sizeof *locals);
    t->frames = frames;
    t->locals = locals;
    t->n_frames += more;
    return 0;
}

void pystack_native_attach(struct pystack *ps, pid_t outer_tid, bool copied, bool moved,
                           struct model_thread *t, struct arena *arena) {
    size_t n;
    if (!ps->entries)
        return;
    if (copied && !moved)
        pystack_put_native(ps, ps->native_copy);
    else if (!copied && !ps->n_native_frames && !t->has_python)
        native_ask(ps, t, outer_tid);
    const struct model_frame *frames = pystack_native_end(ps, &n);
    if (n == 0 || t->torn || native_reserve(t, n, arena) != 0)
        return;
    for (size_t i = 0; i < n; i++) {
        t->frames[i] = frames[i];
        t->frames[i].module = arena_strdup(arena, frames[i].module);
    }
}

/* ---- frames of a thread that stands still, for exactness from outside ----
 *
 * A thread that sleeps stands still by itself: its frames are read as they are, and believed if the
 * kernel's counters show that it has not been on a processor meanwhile
 * (/proc/PID/task/TID/schedstat: Documentation/scheduler/sched-stats.rst). Any other is stopped by
 * the stopper (pystack_set_stopper), as is a sleeping one whose native frames are read, too: those
 * need all its registers. */

#define STOPPED_MARK_MAX 96
#define STOPPED_TRIES 3

/* Changes whenever the thread is put on a processor. */
struct stopped_mark {
    char text[STOPPED_MARK_MAX];
};

static bool stopped_read_mark(const struct pystack *ps, pid_t tid, struct stopped_mark *m) {
    char path[64];
    memset(m, 0, sizeof *m);
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)ps->pid, (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, m->text, sizeof m->text - 1);
    close(fd);
    return n > 0;
}

/* Whether it is asleep or stopped. A kernel without counters gives no mark: then the walk's own
 * second reading has to do. */
static bool stopped_is_still(const struct pystack *ps, pid_t tid, struct stopped_mark *m, bool *marked) {
    struct procfs_stat st;
    *marked = stopped_read_mark(ps, tid, m);
    return procfs_read_stat(ps->pid, tid, &st) == 0 && st.state != 'R' && st.state != '?';
}

void pystack_set_stopper(struct pystack *ps, const struct pystack_stopper *stopper) {
    ps->stopper = stopper ? *stopper : (struct pystack_stopper){.stop = NULL};
}

uint64_t pystack_stopped_ns(const struct pystack *ps) { return ps->stopped_ns; }

ssize_t pystack_walk_stopped(struct pystack *ps, const struct pystack_thread *t, struct arena *arena,
                             struct model_frame **out, bool *torn, bool *truncated, bool retry_moved) {
    struct stopped_mark before, after;
    bool marked;
    pid_t tid = ps->stopper.stop ? pystack_outer_tid(ps, t->tid) : 0;
    ps->stopped_ns = 0;
    /* Native frames need all registers, of a sleeping thread too. */
    if (tid && !ps->entries && stopped_is_still(ps, tid, &before, &marked)) {
        ssize_t n = pystack_walk_frames(ps, t, arena, out, torn, truncated, false);
        if (marked ? stopped_read_mark(ps, tid, &after) && memcmp(&before, &after, sizeof after) == 0
                   : !*torn)
            return n;
    }
    for (int i = 0;; i++) {
        bool held = tid && ps->stopper.stop(ps->stopper.arg, tid) == 0;
        ps->standing = held;
        ssize_t n = pystack_walk_frames(ps, t, arena, out, torn, truncated, retry_moved && !held);
        ps->standing = false;
        if (held)
            ps->stopped_ns += ps->stopper.go(ps->stopper.arg);
        /* It may stand where a frame is linked and not yet filled; some instructions later it
         * does not. */
        if (!held || (n >= 0 && !*torn) || i == STOPPED_TRIES - 1)
            return n;
    }
}
