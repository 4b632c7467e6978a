/* SPDX-License-Identifier: Apache-2.0 */
/* thread_sampler: see thread_sampler.h. */
#include "agent/sampler/thread_sampler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/threads.h"
#include "agent/sampler/signal_sampler.h"
#include "agent/sampler/thread_sampler_native.h"
#include "base/clock.h"
#include "base/cost.h"
#include "base/grow.h"
#include "base/procfs.h"

#define THREAD_SAMPLER_MAX_STACKS ((size_t)256 * 1024)
#define THREAD_SAMPLER_TRIE_BYTES ((size_t)6 * 1024 * 1024)
/* for one stack, or the list of threads */
#define THREAD_SAMPLER_ARENA_BYTES ((size_t)4 * 1024 * 1024)
#define THREAD_SAMPLER_MAX_DEAD 512
#define THREAD_SAMPLER_MAX_BROKEN 3
/* maximum time that the list of threads is believed, for names: this */
#define THREAD_SAMPLER_LIST_NS (5 * CLOCK_NS_PER_S)
#define THREAD_SAMPLER_LIST_SHARE 5000 /* or this multiple of the time that reading it takes */
#define THREAD_SAMPLER_MANY_IDLE 48    /* so many are not read at every tick */
/* the list's marks are checked at least this often */
#define THREAD_SAMPLER_MARKS_NS (100 * CLOCK_NS_PER_MS)
/* and at every tick for this long after a change of the list */
#define THREAD_SAMPLER_RESTLESS_NS (5 * CLOCK_NS_PER_S)
/* if nobody has run for this long, usually nobody runs soon */
#define THREAD_SAMPLER_REST_NS (2 * CLOCK_NS_PER_S)
/* CPU time too short for a thread to wake up, run Python and sleep again */
#define THREAD_SAMPLER_IDLE_NS 1500
/* a comparison of clocks is of now: it was made since the sampler woke up */
#define THREAD_SAMPLER_JUST_NS (20 * CLOCK_NS_PER_MS)
/* other threads then wait for the next tick */
#define THREAD_SAMPLER_TICK_NS (300 * CLOCK_NS_PER_MS)
#define THREAD_SAMPLER_NAME_NS (5 * CLOCK_NS_PER_S) /* the same for a native name */

/* With timers: how often to drain what they caused: as often as batches are sent, at least so often, */
#define THREAD_SAMPLER_CALM_NS (500 * CLOCK_NS_PER_MS)
/* if there is little room for more, */
#define THREAD_SAMPLER_CROWDED_NS (125 * CLOCK_NS_PER_MS)
/* if a thread is on a CPU and off it, for its stacks when it is off, */
#define THREAD_SAMPLER_MIXED_NS (40 * CLOCK_NS_PER_MS)
/* at first, if threads come and go, or if more than this share of the copies describes new code, */
#define THREAD_SAMPLER_NEW_SHARE 0.25
#define THREAD_SAMPLER_BUSY_NS (50 * CLOCK_NS_PER_MS)
/* and while a thread that runs has no timer yet */
#define THREAD_SAMPLER_LATER_NS (10 * CLOCK_NS_PER_MS)
#define THREAD_SAMPLER_PATIENCE_NS (2 * CLOCK_NS_PER_S) /* which it must have after so long */
#define THREAD_SAMPLER_CALM 0.02                        /* a share of time that does not count as both */
#define THREAD_SAMPLER_LATELY_S 1.0                     /* the time before now in which it slept or did not */
/* that much sleep within it and stacks off the CPU are wanted often. A wait for a CPU is known only
 * when it ends: until then it looks like sleep, for a few slices of the scheduler at most. */
#define THREAD_SAMPLER_SLEPT_S 0.025
/* what a drain found it doing off the CPU it did before and after, for at most so long, */
#define THREAD_SAMPLER_NEAR_S 0.1
/* and so long if so many drains before found the same */
#define THREAD_SAMPLER_ALIKE_S 0.3
#define THREAD_SAMPLER_ALIKE 3
#define THREAD_SAMPLER_DRAW_NS CLOCK_NS_PER_S
/* ticks of a thread on a CPU that wait for a copy of it */
#define THREAD_SAMPLER_OWED 5.0
/* instead of a row of cells: there was no time for the thread, or no memory */
#define THREAD_SAMPLER_SKIPPED (-2)
/* on_cpu of a cell: the thread has ended by then, or nothing is known of it; nothing was put there yet */
#define THREAD_SAMPLER_GONE 2
#define THREAD_SAMPLER_OPEN 3

int thread_sampler_init(struct thread_sampler *p, void (*flush)(void *arg), void *arg) {
    *p = (struct thread_sampler){.epoch = 1, .flush = flush, .arg = arg};
    trie_init(&p->trie, THREAD_SAMPLER_MAX_STACKS, THREAD_SAMPLER_TRIE_BYTES);
    cost_pace_init(&p->pace, clock_mono_ns());
    p->samples = calloc(THREAD_SAMPLER_BATCH, sizeof *p->samples);
    p->known = calloc(1, sizeof *p->known);
    return p->samples && p->known ? 0 : -1;
}

static void thread_sampler_free_threads(struct thread_sampler_thread *threads, size_t n) {
    for (size_t i = 0; i < n; i++)
        free(threads[i].name);
    free(threads);
}

static void thread_sampler_forget_dead(struct thread_sampler *p) {
    for (size_t i = 0; i < p->n_ended; i++)
        free(p->ended[i].name);
    p->n_ended = 0;
}

void thread_sampler_pause(struct thread_sampler *p) {
    for (size_t i = 0; i < p->n_threads; i++)
        signal_sampler_forget(&p->threads[i].py);
    thread_sampler_free_threads(p->threads, p->n_threads);
    p->threads = NULL;
    p->n_threads = p->n_pending = 0;
    p->listed_ns = p->last_tick_ns = p->marked_ns = p->restless_ns = p->drained_ns = 0;
    signal_sampler_stop_timers();
    thread_sampler_native_pause(p);
    thread_sampler_clear_batch(p);
}

void thread_sampler_fini(struct thread_sampler *p) {
    if (p->samples)
        thread_sampler_pause(p);
    trie_reset(&p->trie);
    free(p->samples);
    free(p->known);
    free(p->ended);
    free(p->states);
    free(p->cells);
    thread_sampler_native_fini(p);
    *p = (struct thread_sampler){0};
}

size_t thread_sampler_bytes(const struct thread_sampler *p) {
    return thread_sampler_native_bytes(p) + trie_bytes(&p->trie) + THREAD_SAMPLER_BATCH * sizeof *p->samples +
           sizeof *p->known + (p->n_threads + p->cap_ended) * sizeof *p->threads +
           p->cap_states * sizeof *p->states + p->cap_cells * sizeof *p->cells;
}

void thread_sampler_clear_batch(struct thread_sampler *p) {
    thread_sampler_forget_dead(p);
    p->n_samples = 0;
    p->elapsed_ns = p->n_ticks = 0;
}

/* ---- the list of threads ---- */

/* The same thread, which runs another interpreter now than it did. */
static bool thread_sampler_is_same(const struct pystack_thread *was, const struct pystack_thread *is) {
    return is->tid && was->tid == is->tid && was->ident == is->ident && was->interpreter != is->interpreter;
}

/* Copy the known facts about the thread from the previous list. */
static void thread_sampler_keep(struct thread_sampler *p, struct thread_sampler_thread *to,
                                const struct pystack_thread *py, size_t guess) {
    ssize_t at = pystack_find_thread(py, p->threads, p->n_threads, sizeof *p->threads, guess);
    bool is_other = at < 0;
    for (size_t i = 0; at < 0 && i < p->n_threads; i++)
        if (thread_sampler_is_same(&p->threads[i].py, py))
            at = (ssize_t)i;
    if (at < 0)
        return;
    *to = p->threads[at];
    p->threads[at].kept = true;
    p->threads[at].name = NULL;
    if (!is_other)
        return;
    signal_sampler_forget(&p->threads[at].py);
    to->timer = SIGNAL_SAMPLER_TIMER_OFF;
    to->asked = to->late = false;
    to->broken = 0;
}

static void thread_sampler_name(struct thread_sampler *p, struct thread_sampler_thread *t, const char *name,
                                uint64_t now) {
    bool same = t->name && name ? strcmp(t->name, name) == 0 : t->name == name;
    if (!same) {
        free(t->name);
        t->name = name ? strdup(name) : NULL;
    }
    if (t->names_at_ns == 0 || now - t->names_at_ns > THREAD_SAMPLER_NAME_NS) {
        char comm[sizeof t->native_name] = "";
        procfs_read_comm(0, (pid_t)t->py.tid, comm, sizeof comm);
        same = same && t->names_at_ns && strcmp(comm, t->native_name) == 0;
        memcpy(t->native_name, comm, sizeof comm);
        t->names_at_ns = now;
    }
    if (!same)
        t->names = ++p->names;
}

/* Threads that are gone: clients of this batch still need their names. */
static void thread_sampler_keep_dead(struct thread_sampler *p) {
    for (size_t i = 0; i < p->n_threads; i++)
        if (!p->threads[i].kept)
            signal_sampler_forget(&p->threads[i].py); /* all of them, also where memory is short */
    for (size_t i = 0; i < p->n_threads; i++) {
        if (p->threads[i].kept || !p->threads[i].looked)
            continue;
        if (p->n_ended == THREAD_SAMPLER_MAX_DEAD) {
            p->flush(p->arg);
            thread_sampler_clear_batch(p);
        }
        if (p->n_ended == p->cap_ended) {
            size_t cap = p->cap_ended ? 2 * p->cap_ended : 16;
            struct thread_sampler_thread *ended = realloc(p->ended, cap * sizeof *ended);
            if (!ended)
                return;
            p->ended = ended;
            p->cap_ended = cap;
        }
        p->ended[p->n_ended++] = p->threads[i];
        p->threads[i].name = NULL;
    }
}

/* Remove our own threads from a list: the python worker has a thread state while it works.
 * Returns the number of the others. */
static size_t thread_sampler_leave_out_own(struct pystack_thread *list, size_t n, const int64_t *own,
                                           size_t n_own) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_own = false;
        for (size_t k = 0; k < n_own; k++)
            is_own = is_own || own[k] == list[i].tid;
        if (!is_own)
            list[kept++] = list[i];
    }
    return kept;
}

/* Read the list of Python threads again. 0 or -1 (the old one stays). */
static int thread_sampler_list(struct thread_sampler *p, struct pystack *ps, uint64_t now) {
    struct arena arena;
    struct pystack_thread *list = NULL;
    uint64_t cpu = clock_self_cpu_ns();
    int64_t own[2 * THREADS_MAX]; /* threads that end meanwhile, and threads that start */
    size_t n_own = threads_own_tids(own, THREADS_MAX);
    arena_init(&arena, THREAD_SAMPLER_ARENA_BYTES);
    ssize_t n = pystack_read_threads(ps, &arena, &list);
    n_own += threads_own_tids(own + n_own, THREADS_MAX);
    struct thread_sampler_thread *threads = n > 0 ? calloc((size_t)n, sizeof *threads) : NULL;
    if (n < 0 || (n > 0 && !threads)) {
        arena_fini(&arena);
        p->read_errors++;
        return -1;
    }
    n = (ssize_t)thread_sampler_leave_out_own(list, (size_t)n, own, n_own);
    n = (ssize_t)pystack_keep_one_state(ps, list, (size_t)n);
    for (size_t i = 0; i < (size_t)n; i++) {
        struct thread_sampler_thread *t = &threads[i];
        thread_sampler_keep(p, t, &list[i], i);
        t->py = list[i];
        t->py.name = NULL;
        t->kept = false;
        thread_sampler_name(p, t, list[i].name, now);
    }
    thread_sampler_keep_dead(p);
    thread_sampler_free_threads(p->threads, p->n_threads);
    p->threads = threads;
    p->n_threads = (size_t)n;
    p->listed_ns = now;
    p->list_cpu_ns = clock_self_cpu_ns() - cpu;
    arena_fini(&arena);
    return 0;
}

/* ---- a tick ---- */

static void thread_sampler_read_clock(struct thread_sampler_thread *t) {
    t->cpu_now_ns = clock_thread_cpu_ns((pid_t)t->py.tid);
    t->moved = t->cpu_now_ns != t->cpu_ns;
}

/* CPU time of everything except our threads and active threads. These go on meanwhile, so their
 * clocks are read once more, then our own, and the process's immediately after it: what passes in
 * between looks like a run of an idle thread. For the agent's other threads their last reading
 * counts. */
static uint64_t thread_sampler_idle_cpu(const struct thread_sampler *p) {
    uint64_t known = p->others_cpu_ns;
    for (size_t i = 0; i < p->n_threads; i++)
        known += p->threads[i].active ? clock_thread_cpu_ns((pid_t)p->threads[i].py.tid) : 0;
    known += clock_self_cpu_ns();
    uint64_t process = clock_process_cpu_ns();
    return process > known ? process - known : 0;
}

/* CPU time of the agent's other threads since the last call. */
static uint64_t thread_sampler_others_cpu(struct thread_sampler *p) {
    uint64_t before = p->others_cpu_ns, now = threads_others_cpu_ns();
    p->others_cpu_ns = now > before ? now : before;
    return p->others_cpu_ns - before;
}

/* True if no thread has run except the active ones. That does not need all clocks: their sum
 * would have moved. */
static bool thread_sampler_idle_are_idle(struct thread_sampler *p) {
    uint64_t idle = thread_sampler_idle_cpu(p);
    if (idle < p->idle_cpu_ns)
        p->idle_cpu_ns = idle;
    if (idle < p->idle_cpu_ns + THREAD_SAMPLER_IDLE_NS)
        return true;
    /* Or it was the agent, or the time between the two clocks, which were cold. The error is
     * always an excess. */
    uint64_t ours = thread_sampler_others_cpu(p), again = thread_sampler_idle_cpu(p);
    idle = idle > ours ? idle - ours : 0;
    return (idle < again ? idle : again) < p->idle_cpu_ns + THREAD_SAMPLER_IDLE_NS;
}

/* Read the clocks of threads that were idle, and find which threads are active now. */
static void thread_sampler_read_idle(struct thread_sampler *p) {
    for (size_t i = 0; i < p->n_threads; i++)
        if (!p->threads[i].active)
            thread_sampler_read_clock(&p->threads[i]);
    for (size_t i = 0; i < p->n_threads; i++)
        p->threads[i].active = p->threads[i].moved || !p->threads[i].looked;
    p->total_swept++;
    thread_sampler_others_cpu(p);
    /* Too large a value would hide a thread's next run, so the smaller of two counts. */
    uint64_t once = thread_sampler_idle_cpu(p), again = thread_sampler_idle_cpu(p);
    p->idle_cpu_ns = once < again ? once : again;
}

/* What is known of the thread now, as what it did at a tick. */
static struct thread_sampler_cell thread_sampler_cell_now(const struct thread_sampler_thread *t,
                                                          int8_t on_cpu) {
    return (struct thread_sampler_cell){
        .stack_id = t->stack_id, .on_cpu = on_cpu, .gil = (uint8_t)t->gil, .gc = t->gc, .torn = t->torn};
}

static void thread_sampler_record(struct thread_sampler *p, const struct thread_sampler_thread *t,
                                  double timestamp, struct thread_sampler_cell cell) {
    if (p->n_samples == THREAD_SAMPLER_BATCH) {
        p->flush(p->arg);
        thread_sampler_clear_batch(p);
    }
    p->samples[p->n_samples++] = (struct model_sample){.timestamp = timestamp,
                                                       .tid = t->py.tid,
                                                       .stack_id = cell.stack_id,
                                                       .native_id = t->native_id,
                                                       .merged_id = t->merged_id,
                                                       .on_cpu = cell.on_cpu,
                                                       .torn = cell.torn,
                                                       .gil = (enum model_gil)cell.gil,
                                                       .gc = cell.gc};
    p->total_samples++;
    p->total_torn += cell.torn;
}

/* Record the pending ticks of threads that were idle: those that did not move have been the same
 * all the time. For the others it is unknown when they started to run. */
static void thread_sampler_record_pending(struct thread_sampler *p) {
    size_t n = p->n_pending;
    p->n_pending = 0; /* a full batch is sent on the way */
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < p->n_threads; i++) {
            const struct thread_sampler_thread *t = &p->threads[i];
            if (!t->rested || !t->looked || !t->py.tid)
                continue;
            struct thread_sampler_cell cell = thread_sampler_cell_now(t, t->moved ? MODEL_UNKNOWN : 0);
            cell.torn = cell.torn || t->moved;
            thread_sampler_record(p, t, p->pending[k], cell);
        }
}

/* Read the clocks of active threads. Returns the number of the others. */
static size_t thread_sampler_read_active(struct thread_sampler *p, uint64_t now) {
    size_t n_idle = 0;
    for (size_t i = 0; i < p->n_threads; i++) {
        struct thread_sampler_thread *t = &p->threads[i];
        t->moved = false;
        t->rested = !t->active;
        if (t->active)
            thread_sampler_read_clock(t);
        n_idle += !t->active;
        if (t->moved || !t->looked)
            p->moved_ns = now;
    }
    return n_idle;
}

/* True if threads other than the active ones have run. `all`: each of them is checked in any
 * case. */
static bool thread_sampler_scan_idle(struct thread_sampler *p, bool all, uint64_t now) {
    bool ran = !thread_sampler_idle_are_idle(p);
    if (ran)
        p->moved_ns = now;
    if (all || ran)
        thread_sampler_read_idle(p);
    p->idle_looked_ns = clock_mono_ns();
    return ran;
}

/* True if there are threads that are not in the list. The list has not changed while nobody ran
 * except threads in it, unless one of them has replaced its thread state by another: that is
 * seen a little later, and from then on checked at every tick. */
static bool thread_sampler_marks_changed(struct thread_sampler *p, struct pystack *ps, uint64_t now) {
    p->marked_ns = now;
    if (!pystack_threads_changed(ps))
        return false;
    p->restless_ns = now;
    return true;
}

static bool thread_sampler_is_restless(const struct thread_sampler *p, uint64_t now) {
    return p->restless_ns && now - p->restless_ns < THREAD_SAMPLER_RESTLESS_NS;
}

/* Read the clocks. True if the list of threads has to be read again. It is also read now and
 * then, for names. */
static bool thread_sampler_read_clocks(struct thread_sampler *p, struct pystack *ps, uint64_t now,
                                       uint64_t wanted_ns, double timestamp) {
    uint64_t believed = THREAD_SAMPLER_LIST_NS;
    if (THREAD_SAMPLER_LIST_SHARE * p->list_cpu_ns > believed)
        believed = THREAD_SAMPLER_LIST_SHARE * p->list_cpu_ns;
    /* names change only when somebody runs */
    bool stale = p->n_threads == 0 || (now - p->listed_ns > believed && p->moved_ns >= p->listed_ns);
    bool due = now - p->marked_ns >= THREAD_SAMPLER_MARKS_NS || thread_sampler_is_restless(p, now);
    stale = stale || (due && thread_sampler_marks_changed(p, ps, now));
    size_t n_idle = thread_sampler_read_active(p, now);
    bool yields = n_idle < p->n_threads && now - p->moved_ns > THREAD_SAMPLER_REST_NS;
    p->waiting = !p->timed && !stale && n_idle >= THREAD_SAMPLER_MANY_IDLE &&
                 p->n_pending < THREAD_SAMPLER_PENDING &&
                 now + wanted_ns - p->idle_looked_ns < THREAD_SAMPLER_WAIT_NS;
    if (p->waiting)
        p->pending[p->n_pending++] = timestamp;
    else if (thread_sampler_scan_idle(p, stale || yields, now) && !due)
        stale = stale || thread_sampler_marks_changed(p, ps, now);
    for (size_t i = 0; i < p->n_threads; i++)
        stale |= p->threads[i].cpu_now_ns == 0;
    return stale;
}

void thread_sampler_new_epoch(struct thread_sampler *p, struct pystack *ps) {
    thread_sampler_settle(p, ps);
    p->flush(p->arg);
    thread_sampler_clear_batch(p);
    trie_reset(&p->trie);
    p->epoch++;
    for (size_t i = 0; i < p->n_threads; i++) {
        struct thread_sampler_thread *t = &p->threads[i];
        t->looked = t->rests = false;
        t->stack_id = t->native_id = t->merged_id = 0;
        t->rest.timestamp = t->spare.timestamp = 0;
    }
    p->kept_stacks = 0;
}

/* A thread's stack is mostly equal to its previous one. */
static uint32_t thread_sampler_add(struct thread_sampler *p, uint32_t last, const struct model_frame *frames,
                                   size_t n, bool cut) {
    return cut ? trie_add_truncated(&p->trie, frames, n) : trie_add_like(&p->trie, last, frames, n);
}

/* Number a stack, with native frames if they were unwound; `cut`: its outermost frames are
 * missing. 0, or -1 without memory. */
static int thread_sampler_add_stack(struct thread_sampler *p, struct pystack *ps,
                                    struct thread_sampler_thread *t, struct model_frame *frames, size_t n,
                                    bool cut) {
    struct thread_sampler_native native = {0};
    thread_sampler_native_join(p, ps, frames, n, cut, &native);
    n = p->native ? model_frames_strip_native(frames, n, NULL) : n;
    p->total_cut += cut;
    uint32_t before = t->stack_id;
    for (int try = 0; try < 2; try++) {
        t->stack_id = thread_sampler_add(p, t->stack_id, frames, n, cut);
        t->native_id = native.n ? thread_sampler_add(p, t->native_id, native.frames, native.n, cut) : 0;
        t->merged_id =
            native.n_merged ? thread_sampler_add(p, t->merged_id, native.merged, native.n_merged, cut) : 0;
        if (t->stack_id != TRIE_FULL && t->native_id != TRIE_FULL && t->merged_id != TRIE_FULL) {
            if (!t->looked || t->stack_id != before)
                t->changed_ns = clock_mono_ns();
            return 0;
        }
        thread_sampler_new_epoch(p, ps);
    }
    return -1;
}

uint32_t thread_sampler_number(struct thread_sampler *p, struct pystack *ps, const struct model_frame *frames,
                               size_t n) {
    uint32_t number = trie_add(&p->trie, frames, n);
    if (number != TRIE_FULL)
        return number;
    thread_sampler_new_epoch(p, ps);
    return trie_add(&p->trie, frames, n);
}

static int thread_sampler_fail(struct thread_sampler *p, struct thread_sampler_thread *t) {
    p->read_errors++;
    t->looked = false;
    t->stack_id = t->native_id = t->merged_id = 0;
    p->listed_ns = 0; /* the thread state may belong to another thread by now */
    p->restless_ns = clock_mono_ns();
    return -1;
}

/* Read a stack from here. 0, or -1 on failure. */
static int thread_sampler_read(struct thread_sampler *p, struct pystack *ps,
                               struct thread_sampler_thread *t) {
    struct arena arena;
    struct model_frame *frames = NULL;
    bool torn = false, truncated = false;
    arena_init(&arena, THREAD_SAMPLER_ARENA_BYTES);
    thread_sampler_native_begin(p, ps, t);
    ssize_t n = pystack_read_frames(ps, &t->py, &arena, &frames, &torn, &truncated);
    thread_sampler_native_end(p, ps, t, torn);
    int rc = n < 0 ? -1 : thread_sampler_add_stack(p, ps, t, frames, (size_t)n, truncated);
    arena_fini(&arena);
    if (rc != 0)
        return thread_sampler_fail(p, t);
    t->torn = torn;
    t->py.holds_gil = pystack_has_gil(ps, &t->py);
    t->gil = t->py.holds_gil ? MODEL_GIL_HOLDING : pystack_read_gil(ps, &t->py);
    t->gc = pystack_read_gc(ps, &t->py, t->gil);
    return 0;
}

static struct thread_sampler_state thread_sampler_state(const struct thread_sampler_thread *t,
                                                        double timestamp, uint32_t weight) {
    return (struct thread_sampler_state){
        .timestamp = timestamp, .stack_id = t->stack_id, .weight = weight, .gil = t->gil, .gc = t->gc};
}

/* The `n` frames of the thread's copy (-1: it is not valid), and what that says of GIL and collector,
 * are what is known of it last. 0, or -1: nothing is. */
static int thread_sampler_take_frames(struct thread_sampler *p, struct pystack *ps,
                                      struct thread_sampler_thread *t, struct model_frame *frames, ssize_t n,
                                      bool truncated, enum model_gil gil, int8_t gc) {
    if (n < 0 || thread_sampler_add_stack(p, ps, t, frames, (size_t)n, truncated) != 0)
        return thread_sampler_fail(p, t);
    t->torn = false;
    t->looked = true;
    t->gil = gil;
    t->gc = gc;
    p->total_exact++;
    return 0;
}

/* Make a sample from the copy of a thread that was asked. */
static void thread_sampler_take_copy(struct thread_sampler *p, struct pystack *ps,
                                     struct thread_sampler_thread *t, const struct pystack_self *copy) {
    struct arena arena;
    struct model_frame *frames = NULL;
    bool truncated = false;
    arena_init(&arena, THREAD_SAMPLER_ARENA_BYTES);
    thread_sampler_native_copied(p, ps, copy);
    ssize_t n = pystack_self_decode(ps, copy, p->known, &arena, &frames, &truncated, &p->unknown_frames);
    thread_sampler_native_stop(p, ps);
    int rc = thread_sampler_take_frames(p, ps, t, frames, n, truncated, copy->gil_state, copy->gc_state);
    arena_fini(&arena);
    if (rc != 0)
        return;
    if (p->timed)
        t->spare = thread_sampler_state(t, t->asked_at, 1);
    else
        thread_sampler_record(p, t, t->asked_at, thread_sampler_cell_now(t, 1));
}

static void thread_sampler_collect_thread(struct thread_sampler *p, struct pystack *ps,
                                          struct thread_sampler_thread *t) {
    const struct pystack_self *copy;
    enum signal_sampler_answer answer = signal_sampler_get(&t->py, &copy);
    if (answer == SIGNAL_SAMPLER_WAITING || answer == SIGNAL_SAMPLER_COPYING) {
        signal_sampler_count_late(&t->py);
        return;
    }
    bool again = answer == SIGNAL_SAMPLER_READY && !t->late && copy->end == PYSTACK_SELF_BROKEN;
    if (answer == SIGNAL_SAMPLER_READY && !t->late && !again)
        thread_sampler_take_copy(p, ps, t, copy);
    if (answer == SIGNAL_SAMPLER_READY)
        signal_sampler_release(&t->py);
    t->asked = t->late = false;
    t->broken = again ? t->broken + 1 : 0;
    if (!again)
        return;
    /* It was just entering a function, where its frames are inconsistent for an instant. */
    p->total_retried++;
    t->looked = false;
    t->asked = t->broken < THREAD_SAMPLER_MAX_BROKEN &&
               signal_sampler_is_running(t->py.tid, clock_thread_cpu_ns((pid_t)t->py.tid)) &&
               signal_sampler_ask(ps, &t->py, p->known);
    if (t->asked || p->timed || thread_sampler_read(p, ps, t) != 0)
        return;
    t->torn = t->torn || t->broken >= THREAD_SAMPLER_MAX_BROKEN;
    thread_sampler_record(p, t, t->asked_at, thread_sampler_cell_now(t, 1));
}

void thread_sampler_collect(struct thread_sampler *p, struct pystack *ps) {
    for (size_t i = 0; i < p->n_threads; i++)
        if (p->threads[i].asked)
            thread_sampler_collect_thread(p, ps, &p->threads[i]);
}

/* A thread that was asked and has not answered has not run since. A read from here gives the
 * same as its copy, if it still has not answered afterwards. 0, or -1. */
static int thread_sampler_read_late(struct thread_sampler *p, struct pystack *ps,
                                    struct thread_sampler_thread *t) {
    const struct pystack_self *copy;
    if (signal_sampler_get(&t->py, &copy) != SIGNAL_SAMPLER_WAITING || thread_sampler_read(p, ps, t) != 0 ||
        signal_sampler_get(&t->py, &copy) != SIGNAL_SAMPLER_WAITING)
        return -1;
    if (!t->late)
        thread_sampler_record(p, t, t->asked_at, thread_sampler_cell_now(t, 1));
    t->late = true;
    return 0;
}

/* Ask the thread for its frames, if it runs. */
static bool thread_sampler_ask(struct thread_sampler *p, struct pystack *ps, struct thread_sampler_thread *t,
                               double timestamp) {
    if (!p->exact || !signal_sampler_is_running(t->py.tid, t->cpu_now_ns) ||
        !signal_sampler_ask(ps, &t->py, p->known))
        return false;
    t->asked = true;
    t->asked_at = timestamp;
    return true;
}

/* A thread that has run since the last reading. `*on_cpu` becomes 0 if it no longer runs: a sample
 * is about one moment, and a thread that often wakes up for an instant would otherwise be
 * charged all the time between two readings. 0: it was read, 1: it was asked, or -1. */
static int thread_sampler_read_moved(struct thread_sampler *p, struct pystack *ps,
                                     struct thread_sampler_thread *t, double timestamp, int8_t *on_cpu) {
    if (t->asked)
        return thread_sampler_read_late(p, ps, t);
    if (thread_sampler_ask(p, ps, t, timestamp))
        return 1;
    bool asleep = !signal_sampler_is_running(t->py.tid, t->cpu_now_ns);
    if (thread_sampler_read(p, ps, t) != 0)
        return -1;
    if (asleep && *on_cpu == 1)
        *on_cpu = 0;
    /* asleep before and after, and not moved in between: it is consistent */
    if (!p->exact || clock_thread_cpu_ns((pid_t)t->py.tid) == t->cpu_now_ns)
        return 0;
    if (thread_sampler_ask(p, ps, t, timestamp))
        return 1;
    t->torn = true;
    return 0;
}

static void thread_sampler_tick_thread(struct thread_sampler *p, struct pystack *ps,
                                       struct thread_sampler_thread *t, double timestamp) {
    int8_t on_cpu = t->cpu_ns ? t->moved : MODEL_UNKNOWN;
    if (t->cpu_now_ns == 0)
        t->cpu_now_ns = clock_thread_cpu_ns((pid_t)t->py.tid);
    int rc = t->moved || !t->looked ? thread_sampler_read_moved(p, ps, t, timestamp, &on_cpu) : 0;
    if (rc < 0)
        return;
    t->cpu_ns = t->cpu_now_ns;
    if (rc > 0)
        return;
    t->looked = true;
    thread_sampler_record(p, t, timestamp, thread_sampler_cell_now(t, on_cpu));
}

/* The mean time between the ticks of this batch. */
static void thread_sampler_note_period(struct thread_sampler *p, uint64_t now, uint64_t wanted_ns) {
    p->elapsed_ns += p->last_tick_ns ? now - p->last_tick_ns : wanted_ns;
    p->last_tick_ns = now;
    if (p->n_ticks)
        p->period_us = (double)p->elapsed_ns / (double)p->n_ticks / 1e3;
}

void thread_sampler_tick(struct thread_sampler *p, struct pystack *ps, uint64_t wanted_ns) {
    uint64_t now = clock_mono_ns();
    double timestamp = clock_epoch_s();
    thread_sampler_collect(p, ps);
    bool stale = thread_sampler_read_clocks(p, ps, now, wanted_ns, timestamp);
    if (!p->waiting)
        thread_sampler_record_pending(p);
    if (stale)
        thread_sampler_settle(p, ps);
    if (stale && thread_sampler_list(p, ps, now) != 0)
        return;
    p->n_ticks++;
    thread_sampler_note_period(p, now, wanted_ns);
    for (size_t i = 0; i < p->n_threads && clock_mono_ns() - now < THREAD_SAMPLER_TICK_NS; i++)
        if (p->threads[i].py.tid && !(p->waiting && p->threads[i].rested))
            thread_sampler_tick_thread(p, ps, &p->threads[i], timestamp);
}

/* ---- with timers ---- */

static struct thread_sampler_state *thread_sampler_add_state(struct thread_sampler *p) {
    if (p->n_states == p->cap_states &&
        grow_array(&p->states, sizeof *p->states, p->n_states + 1, &p->cap_states) != 0)
        return NULL;
    return &p->states[p->n_states++];
}

/* The arguments of thread_sampler_take_record. */
struct thread_sampler_taking {
    struct thread_sampler *p;
    struct pystack *ps;
    struct thread_sampler_thread *t;
    struct arena arena; /* the texts of its copies */
    uint32_t epoch;     /* in which that was begun; 0: it was not */
};

/* Number the stack of a copy. 0, or -1. */
static int thread_sampler_decode_record(struct thread_sampler_taking *w,
                                        const struct pystack_self_result *copy) {
    struct thread_sampler *p = w->p;
    struct model_frame *frames;
    bool truncated;
    /* a new epoch has sent a batch, which may have had another use for pystack */
    if (w->epoch != p->epoch || w->arena.used > THREAD_SAMPLER_ARENA_BYTES / 2) {
        arena_fini(&w->arena);
        pystack_self_begin(w->ps, &w->arena);
        w->epoch = p->epoch;
    }
    ssize_t n = pystack_self_decode_next(w->ps, copy, p->known, &frames, &truncated, &p->unknown_frames);
    return thread_sampler_take_frames(p, w->ps, w->t, frames, n, truncated, copy->gil_state, copy->gc_state);
}

/* Add a copy that the thread's timer has caused to its states. */
static void thread_sampler_take_record(void *arg, const struct pystack_self_result *copy, uint32_t weight) {
    struct thread_sampler_taking *w = arg;
    struct thread_sampler *p = w->p;
    p->total_retried += copy->end == PYSTACK_SELF_BROKEN;
    if (copy->end == PYSTACK_SELF_GONE)
        p->listed_ns = 0;
    p->n_copies++;
    p->n_describing += copy->n_keys > 0;
    /* without frames: the others stand for its time */
    if (copy->end == PYSTACK_SELF_BROKEN || copy->end == PYSTACK_SELF_GONE ||
        copy->end == PYSTACK_SELF_REFUSED || thread_sampler_decode_record(w, copy) != 0)
        return;
    struct thread_sampler_state *m = thread_sampler_add_state(p);
    if (m)
        *m = thread_sampler_state(w->t, p->epoch_s + (double)copy->taken_ns / 1e9, weight);
}

/* Read a thread that is not on a CPU: it sleeps, or waits for one. */
static void thread_sampler_read_resting(struct thread_sampler *p, struct pystack *ps,
                                        struct thread_sampler_thread *t, double now_s) {
    t->rests = false;
    uint64_t clock_ns = t->cpu_now_ns ? clock_thread_cpu_ns((pid_t)t->py.tid) : 0;
    t->runs = clock_ns > t->cpu_now_ns;
    if (t->cpu_now_ns == 0 || clock_ns != t->cpu_now_ns || thread_sampler_read(p, ps, t) != 0)
        return;
    t->looked = true;
    t->rests = clock_thread_cpu_ns((pid_t)t->py.tid) == t->cpu_now_ns;
    t->torn = t->torn && !t->rests;
    if (!t->rests)
        return;
    t->alike = t->rest.timestamp > 0 && t->rest.stack_id == t->stack_id ? t->alike + 1 : 0;
    t->rest = thread_sampler_state(t, now_s, 1);
}

/* Collect what the thread has copied since the last drain, and read it if it is not on a CPU. */
static void thread_sampler_read_timed(struct thread_sampler *p, struct pystack *ps,
                                      struct thread_sampler_thread *t, double now_s) {
    struct thread_sampler_taking w = {.p = p, .ps = ps, .t = t};
    p->n_states = 0;
    struct thread_sampler_state spare = t->spare;
    t->spare.timestamp = 0;
    struct thread_sampler_state *m = spare.timestamp > 0 ? thread_sampler_add_state(p) : NULL;
    if (m)
        *m = spare;
    arena_init(&w.arena, THREAD_SAMPLER_ARENA_BYTES);
    if (t->timer == SIGNAL_SAMPLER_TIMER_ON)
        p->crowded |= signal_sampler_drain(&t->py, thread_sampler_take_record, &w);
    arena_fini(&w.arena);
    thread_sampler_read_resting(p, ps, t, now_s);
}

/* The first reading of a thread. */
static void thread_sampler_begin(struct thread_sampler *p, struct pystack *ps,
                                 struct thread_sampler_thread *t, double now_s) {
    t->cpu_ns = t->cpu_now_ns = clock_thread_cpu_ns((pid_t)t->py.tid);
    t->owed = cost_pace_below_ns(&p->pace, CLOCK_NS_PER_S) / 1e9 - 0.5;
    thread_sampler_read_timed(p, ps, t, now_s);
}

/* True if it should have its timer by now. */
static bool thread_sampler_is_overdue(const struct thread_sampler_thread *t, uint64_t now) {
    return t->untimed_ns && now - t->untimed_ns > THREAD_SAMPLER_PATIENCE_NS;
}

/* The share of `span_ns` that the thread was on a CPU; that of one that has ended is known from
 * its copies alone. */
static double thread_sampler_share(const struct thread_sampler *p, const struct thread_sampler_thread *t,
                                   uint64_t span_ns) {
    /* less than before: of another thread, to which the kernel has given this number */
    uint64_t cpu = t->cpu_now_ns > t->cpu_ns ? t->cpu_now_ns - t->cpu_ns : 0;
    if (t->cpu_now_ns == 0) {
        cpu = 0;
        for (size_t i = 0; i < p->n_states; i++)
            cpu += p->states[i].weight * t->timer_ns;
    }
    return span_ns == 0 ? 0 : cpu >= span_ns ? 1 : (double)cpu / (double)span_ns;
}

static struct thread_sampler_cell thread_sampler_cell(const struct thread_sampler_state *m, bool on_cpu,
                                                      bool torn) {
    return (struct thread_sampler_cell){
        .stack_id = m->stack_id, .on_cpu = on_cpu, .gil = (uint8_t)m->gil, .gc = m->gc, .torn = torn};
}

/* Put `on` of the `n` ticks on a CPU, in the order of the copies and near their times. */
static void thread_sampler_fill_on(const struct thread_sampler *p, struct thread_sampler_cell *cells,
                                   const double *times, size_t n, size_t on) {
    uint64_t weights = 0, passed = 0;
    size_t at = 0, m = 0;
    for (size_t i = 0; i < p->n_states; i++)
        weights += p->states[i].weight;
    for (size_t q = 0; q < on; q++, at++) {
        double wanted = ((double)q + 0.5) / (double)on * (double)weights;
        while (m + 1 < p->n_states && (double)(passed + p->states[m].weight) <= wanted)
            passed += p->states[m++].weight;
        while (at < n - (on - q) && times[at] < p->states[m].timestamp)
            at++;
        cells[at] = thread_sampler_cell(&p->states[m], true, false);
    }
}

/* The same of a thread of which no copy was made: `on` ticks of an unknown stack; or nothing is
 * said of them, while it waits for its timer. */
static void thread_sampler_fill_unknown(const struct thread_sampler_thread *t,
                                        struct thread_sampler_cell *cells, size_t n, size_t on, bool rested,
                                        bool is_said) {
    const struct thread_sampler_state last = thread_sampler_state(t, 0, 1);
    size_t from = !rested ? 0 : !t->rests ? n - on : (n - on) / 2;
    for (size_t i = 0; i < on; i++)
        cells[from + i] = is_said && t->looked ? thread_sampler_cell(&last, true, true)
                                               : (struct thread_sampler_cell){.on_cpu = THREAD_SAMPLER_GONE};
}

/* The copy that was made closest to `time_s`. */
static const struct thread_sampler_state *thread_sampler_nearest_copy(const struct thread_sampler *p,
                                                                      double time_s) {
    size_t k = 0;
    while (k + 1 < p->n_states && p->states[k + 1].timestamp - time_s <= time_s - p->states[k].timestamp)
        k++;
    return &p->states[k];
}

/* True if no copy was made between the two times. */
static bool thread_sampler_is_gap(const struct thread_sampler *p, double from_s, double until_s) {
    for (size_t k = 0; k < p->n_states; k++)
        if (p->states[k].timestamp > from_s && p->states[k].timestamp < until_s)
            return false;
    return true;
}

/* The share of `span_ns` that the thread was ready to run and others had the CPU. `*once`: it has got
 * a CPU once since the last drain. */
static double thread_sampler_wait_share(struct thread_sampler_thread *t, uint64_t span_ns, bool *once) {
    uint64_t before = t->wait_ns, got_cpu = t->got_cpu;
    bool known = t->wait_known;
    t->wait_known = procfs_read_cpu_wait(0, (pid_t)t->py.tid, &t->wait_ns, &t->got_cpu) == 0;
    *once = known && t->wait_known && t->got_cpu == got_cpu + 1;
    if (!known || !t->wait_known || t->wait_ns < before || span_ns == 0)
        return 0;
    return fmin((double)(t->wait_ns - before) / (double)span_ns, 1);
}

/* Of the ticks off the CPU with a copy between them and each drain that found it off the CPU, those
 * that it waited for a CPU, spread evenly: it did what the nearest copy shows. */
static void thread_sampler_fill_waits(const struct thread_sampler *p, struct thread_sampler_thread *t,
                                      struct thread_sampler_cell *cells, const double *times, size_t n,
                                      const struct thread_sampler_state *before, double wait_share) {
    size_t between[THREAD_SAMPLER_PASSED], n_between = 0;
    for (size_t i = 0; i < n; i++)
        if (cells[i].on_cpu == THREAD_SAMPLER_OPEN &&
            !(before->timestamp > 0 && thread_sampler_is_gap(p, before->timestamp, times[i])) &&
            !(t->rests && thread_sampler_is_gap(p, times[i], t->rest.timestamp)))
            between[n_between++] = i;
    double due = wait_share * (double)n + t->wait_owed;
    size_t waits = due < 0.5 ? 0 : (size_t)(due + 0.5);
    waits = waits < n_between ? waits : n_between;
    t->wait_owed = fmin(due - (double)waits, 0.5);
    for (size_t k = 0; k < n_between; k++)
        if ((k + 1) * waits / n_between > k * waits / n_between)
            cells[between[k]] =
                thread_sampler_cell(thread_sampler_nearest_copy(p, times[between[k]]), false, false);
}

/* What is known of the thread off the CPU at `time_s`; NULL if nothing is. `before`: the drain at
 * the beginning, if it found it so. */
static const struct thread_sampler_state *thread_sampler_find_off(const struct thread_sampler *p,
                                                                  const struct thread_sampler_thread *t,
                                                                  const struct thread_sampler_state *before,
                                                                  double time_s, bool hardly) {
    const struct thread_sampler_state *m = t->rests ? &t->rest : NULL;
    if (before->timestamp > 0 && (!m || time_s - before->timestamp < m->timestamp - time_s))
        m = before;
    bool same = before->timestamp > 0 && t->rests && before->stack_id == t->rest.stack_id;
    double near_s = t->alike >= THREAD_SAMPLER_ALIKE ? THREAD_SAMPLER_ALIKE_S : THREAD_SAMPLER_NEAR_S;
    if (m && (same || fabs(m->timestamp - time_s) < near_s))
        return m;
    if (t->rest.timestamp > 0 && fabs(time_s - t->rest.timestamp) < near_s)
        return &t->rest;
    /* one that is nearly always on a CPU has lost it for a moment where it ran */
    return hardly && p->n_states ? thread_sampler_nearest_copy(p, time_s) : NULL;
}

/* The ticks that are left: off the CPU. Until it ran for the first time, and since it did for the
 * last time, it did what the drains at both ends found; in between what one of them found nearby.
 * Else they are torn. `once`: it has got a CPU once, so it slept once if it still runs. */
static void thread_sampler_fill_off(const struct thread_sampler *p, const struct thread_sampler_thread *t,
                                    struct thread_sampler_cell *cells, const double *times, size_t n,
                                    const struct thread_sampler_state *before, double share, bool once) {
    double ended_s = p->n_states ? p->states[p->n_states - 1].timestamp : 0;
    size_t first = 0, end = n;
    while (first < n && cells[first].on_cpu == THREAD_SAMPLER_OPEN)
        first++;
    while (end > first && cells[end - 1].on_cpu == THREAD_SAMPLER_OPEN)
        end--;
    for (size_t i = 0; i < n; i++) {
        if (cells[i].on_cpu != THREAD_SAMPLER_OPEN)
            continue;
        const struct thread_sampler_state *m = NULL;
        if (before->timestamp > 0 && ((once && t->runs) || (first < n && i < first)))
            m = before;
        else if (first < n && i >= end && t->rests)
            m = &t->rest;
        else
            m = thread_sampler_find_off(p, t, before, times[i], share > 1 - THREAD_SAMPLER_CALM);
        struct thread_sampler_state last = thread_sampler_state(t, times[i], 1);
        cells[i] = thread_sampler_cell(m ? m : &last, false, !m);
        if ((t->cpu_now_ns == 0 && times[i] > ended_s) || (!m && !t->looked))
            cells[i].on_cpu = THREAD_SAMPLER_GONE;
    }
}

/* What the thread did at the `n` ticks since the last drain. */
static void thread_sampler_fill(struct thread_sampler *p, struct pystack *ps, struct thread_sampler_thread *t,
                                struct thread_sampler_cell *cells, const double *times, size_t n,
                                uint64_t span_ns, double now_s) {
    bool rested = t->rests;
    uint32_t epoch = p->epoch;
    struct thread_sampler_state before = {0};
    if (rested)
        before = t->rest;
    /* before the thread is read: what is counted later may lie after that */
    bool once = false;
    double wait_share = thread_sampler_wait_share(t, span_ns, &once);
    thread_sampler_read_timed(p, ps, t, now_s);
    double share = thread_sampler_share(p, t, span_ns), due = share * (double)n + t->owed;
    size_t on = due < 0.5 ? 0 : due >= (double)n ? n : (size_t)(due + 0.5);
    bool is_new = t->timer == SIGNAL_SAMPLER_TIMER_LATER && !thread_sampler_is_overdue(t, p->drained_ns);
    /* its clock is ahead of its timer: the next copy shows what it did */
    if (p->n_states == 0 && due < THREAD_SAMPLER_OWED && t->timer == SIGNAL_SAMPLER_TIMER_ON)
        on = 0;
    t->owed = is_new ? 0 : fmin(due - (double)on, THREAD_SAMPLER_OWED);
    double span_s = (double)span_ns / CLOCK_NS_PER_S;
    t->slept_s *= 1 - fmin(span_s / THREAD_SAMPLER_LATELY_S, 1);
    t->slept_s = fmax(t->slept_s + (1 - share - wait_share) * span_s, 0);
    /* one that is off a CPU only because others have it does nothing there that a drain could find */
    bool works = t->slept_s < THREAD_SAMPLER_SLEPT_S;
    bool mixed = share > THREAD_SAMPLER_CALM && now_s - t->rest.timestamp < THREAD_SAMPLER_LATELY_S;
    bool wanders = rested && t->rests && before.stack_id != t->rest.stack_id;
    if (!works && (mixed || wanders) && p->drain_ns > THREAD_SAMPLER_MIXED_NS)
        p->drain_ns = THREAD_SAMPLER_MIXED_NS;
    for (size_t i = 0; i < n; i++)
        cells[i] = (struct thread_sampler_cell){.on_cpu = THREAD_SAMPLER_OPEN};
    if (p->n_states)
        thread_sampler_fill_on(p, cells, times, n, on);
    else
        thread_sampler_fill_unknown(t, cells, n, on, rested, !is_new);
    if (p->n_states)
        thread_sampler_fill_waits(p, t, cells, times, n, &before, wait_share);
    thread_sampler_fill_off(p, t, cells, times, n, &before, share, once);
    if (p->n_states && on == 0 && p->epoch == epoch)
        t->spare = p->states[p->n_states - 1];
}

/* Record the ticks since the last drain, in order. */
static void thread_sampler_record_cells(struct thread_sampler *p, const double *times, size_t n) {
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < p->n_threads; i++) {
            const struct thread_sampler_thread *t = &p->threads[i];
            if (!t->py.tid || t->cells == THREAD_SAMPLER_SKIPPED || (t->cells < 0 && !t->looked))
                continue;
            struct thread_sampler_cell cell =
                t->cells < 0 ? thread_sampler_cell_now(t, 0) : p->cells[(size_t)t->cells * n + k];
            if (cell.on_cpu != THREAD_SAMPLER_GONE)
                thread_sampler_record(p, t, times[k], cell);
        }
}

/* All clocks have been read: what threads did since the last drain. */
static void thread_sampler_record_passed(struct thread_sampler *p, struct pystack *ps, uint64_t now,
                                         double now_s) {
    double times[THREAD_SAMPLER_PASSED];
    size_t n = p->n_pending, rows = 0;
    uint64_t span_ns = p->drained_ns ? now - p->drained_ns : 0;
    uint32_t epoch = p->epoch;
    bool is_first = !p->drained_ns;
    if (n == 0 && !is_first)
        return;
    memcpy(times, p->pending, n * sizeof times[0]);
    p->n_pending = 0; /* a full trie is emptied on the way */
    p->drained_ns = now;
    p->epoch_s = clock_mono_to_epoch_s();
    p->drain_ns = p->batch_ns < THREAD_SAMPLER_CALM_NS ? p->batch_ns : THREAD_SAMPLER_CALM_NS;
    p->n_copies = p->n_describing = 0;
    p->crowded = false;
    for (size_t i = 0; i < p->n_threads; i++) {
        struct thread_sampler_thread *t = &p->threads[i];
        t->cells = -1;
        if (!t->py.tid || !t->cpu_ns || (!t->moved && t->rests && t->looked))
            continue;
        if (clock_mono_ns() - now > THREAD_SAMPLER_TICK_NS) {
            t->cells = THREAD_SAMPLER_SKIPPED;
            t->cpu_ns = t->cpu_now_ns;
            t->rests = false;
            continue;
        }
        if (n && grow_array(&p->cells, sizeof *p->cells, (rows + 1) * n, &p->cap_cells) == 0) {
            t->cells = (long)rows;
            thread_sampler_fill(p, ps, t, &p->cells[rows++ * n], times, n, span_ns, now_s);
        } else {
            t->cells = n ? THREAD_SAMPLER_SKIPPED : -1;
            thread_sampler_read_timed(p, ps, t, now_s);
        }
        t->cpu_ns = t->cpu_now_ns;
    }
    bool learns = (double)p->n_describing > THREAD_SAMPLER_NEW_SHARE * (double)p->n_copies;
    if ((is_first || learns || thread_sampler_is_restless(p, now)) && p->drain_ns > THREAD_SAMPLER_BUSY_NS)
        p->drain_ns = THREAD_SAMPLER_BUSY_NS;
    if (p->crowded && p->drain_ns > THREAD_SAMPLER_CROWDED_NS)
        p->drain_ns = THREAD_SAMPLER_CROWDED_NS;
    if (epoch == p->epoch)
        thread_sampler_record_cells(p, times, n);
    else /* the numbers of the first stacks are no longer valid */
        p->read_errors += rows;
}

/* Begin a new epoch before all numbers are used up: in the middle of a drain it would cost its rows.
 * Not if the stacks of now are most of them. */
static void thread_sampler_renew(struct thread_sampler *p, struct pystack *ps, uint64_t now, double now_s) {
    if (!trie_is_nearly_full(&p->trie) || p->kept_stacks > p->trie.n_stacks / 2)
        return;
    thread_sampler_new_epoch(p, ps);
    for (size_t i = 0; i < p->n_threads && clock_mono_ns() - now < THREAD_SAMPLER_TICK_NS; i++)
        if (p->threads[i].py.tid && p->threads[i].cpu_ns)
            thread_sampler_read_resting(p, ps, &p->threads[i], now_s);
    p->kept_stacks = p->trie.n_stacks;
}

/* A thread that runs and has no timer is asked; if it cannot be asked, it is read from here. */
static void thread_sampler_ask_untimed(struct thread_sampler *p, struct pystack *ps,
                                       struct thread_sampler_thread *t) {
    if (t->asked || !signal_sampler_is_running(t->py.tid, t->cpu_now_ns))
        return;
    t->asked = signal_sampler_ask(ps, &t->py, p->known);
    t->asked_at = clock_epoch_s();
    if (!t->asked && !t->rests && thread_sampler_read(p, ps, t) == 0)
        t->looked = t->torn = true;
}

/* Let a thread that runs copy itself from now on; without a timer it is asked. */
static void thread_sampler_set_timer(struct thread_sampler *p, struct pystack *ps,
                                     struct thread_sampler_thread *t, uint64_t now, uint64_t wanted_ns) {
    bool other = wanted_ns > 2 * t->timer_wanted_ns || wanted_ns < t->timer_wanted_ns / 2;
    /* drawn again now and then, so that they do not run in step with the job's loops */
    if (t->timer != SIGNAL_SAMPLER_TIMER_ON || other || now - t->timer_drawn_ns > THREAD_SAMPLER_DRAW_NS) {
        t->timer_ns = cost_pace_near_ns(&p->pace, wanted_ns);
        t->timer_drawn_ns = now;
        t->timer_wanted_ns = wanted_ns;
    }
    t->timer = signal_sampler_set_timer(ps, &t->py, p->known, 1 + cost_pace_below_ns(&p->pace, t->timer_ns),
                                        t->timer_ns);
    if (t->timer == SIGNAL_SAMPLER_TIMER_ON) {
        t->untimed_ns = 0;
        return;
    }
    t->untimed_ns = t->untimed_ns ? t->untimed_ns : now;
    thread_sampler_ask_untimed(p, ps, t); /* one that waits for a CPU, too */
}

static void thread_sampler_set_timers(struct thread_sampler *p, struct pystack *ps, uint64_t now,
                                      uint64_t wanted_ns) {
    for (size_t i = 0; i < p->n_threads && clock_mono_ns() - now < THREAD_SAMPLER_TICK_NS; i++) {
        struct thread_sampler_thread *t = &p->threads[i];
        if (t->py.tid && (t->moved || !t->rests))
            thread_sampler_set_timer(p, ps, t, now, wanted_ns);
        bool soon =
            t->asked || (t->timer == SIGNAL_SAMPLER_TIMER_LATER && !thread_sampler_is_overdue(t, now));
        if (soon && p->drain_ns > THREAD_SAMPLER_LATER_NS)
            p->drain_ns = THREAD_SAMPLER_LATER_NS;
    }
    if (p->drain_ns < wanted_ns)
        p->drain_ns = wanted_ns;
}

void thread_sampler_drain(struct thread_sampler *p, struct pystack *ps, uint64_t wanted_ns) {
    uint64_t now = clock_mono_ns();
    double now_s = clock_epoch_s();
    thread_sampler_collect(p, ps);
    bool stale = thread_sampler_read_clocks(p, ps, now, wanted_ns, now_s);
    thread_sampler_note_period(p, now, wanted_ns);
    thread_sampler_record_passed(p, ps, now, now_s);
    thread_sampler_renew(p, ps, now, now_s);
    if ((stale || p->listed_ns == 0) && thread_sampler_list(p, ps, now) != 0)
        return;
    for (size_t i = 0; i < p->n_threads && clock_mono_ns() - now < THREAD_SAMPLER_TICK_NS; i++)
        if (p->threads[i].py.tid && !p->threads[i].cpu_ns)
            thread_sampler_begin(p, ps, &p->threads[i], now_s);
    thread_sampler_set_timers(p, ps, now, wanted_ns);
}

void thread_sampler_settle(struct thread_sampler *p, struct pystack *ps) {
    uint64_t now = clock_mono_ns();
    if (!p->n_pending)
        return;
    thread_sampler_read_active(p, now);
    thread_sampler_scan_idle(p, false, now);
    if (!p->timed) {
        thread_sampler_record_pending(p);
    } else if (ps) {
        thread_sampler_note_period(p, now, 0);
        thread_sampler_record_passed(p, ps, now, clock_epoch_s());
    }
    p->n_pending = 0;
}

void thread_sampler_set_timed(struct thread_sampler *p, struct pystack *ps, bool timed) {
    if (timed == p->timed)
        return;
    thread_sampler_settle(p, ps);
    p->timed = timed;
    p->drained_ns = 0;
    for (size_t i = 0; i < p->n_threads; i++) {
        struct thread_sampler_thread *t = &p->threads[i];
        t->timer = SIGNAL_SAMPLER_TIMER_OFF;
        t->untimed_ns = 0;
        t->native_id = t->merged_id = 0; /* copies by timers have no native frames */
        t->rests = t->wait_known = false;
        t->rest.timestamp = t->spare.timestamp = t->owed = t->wait_owed = 0;
    }
    if (!timed)
        signal_sampler_stop_timers();
}

uint64_t thread_sampler_idle_ns(const struct thread_sampler *p) {
    uint64_t now = clock_mono_ns();
    if (p->n_threads == 0 || p->n_pending || now - p->moved_ns < THREAD_SAMPLER_REST_NS ||
        thread_sampler_is_restless(p, now))
        return 0;
    for (size_t i = 0; i < p->n_threads; i++)
        if (p->threads[i].active || p->threads[i].asked || !p->threads[i].looked || !p->threads[i].py.tid)
            return 0;
    return now - p->moved_ns;
}

bool thread_sampler_nobody_ran(const struct thread_sampler *p, uint64_t since_ns) {
    uint64_t now = clock_mono_ns();
    return thread_sampler_idle_ns(p) > now - since_ns && now - p->idle_looked_ns < THREAD_SAMPLER_JUST_NS;
}

void thread_sampler_pass(struct thread_sampler *p, struct pystack *ps, double timestamp) {
    if (p->n_pending == THREAD_SAMPLER_PASSED) {
        thread_sampler_settle(p, ps);
        p->n_pending = 0;
    }
    for (size_t i = 0; p->n_pending == 0 && i < p->n_threads; i++)
        p->threads[i].rested = !p->threads[i].active;
    p->pending[p->n_pending++] = timestamp;
    p->n_ticks++;
}

/* ---- a batch ---- */

int thread_sampler_get_batch(const struct thread_sampler *p, const struct queue_mark *seen,
                             size_t first_sample, struct model_sample_batch *out, struct queue_mark *now) {
    bool same = seen->epoch == p->epoch;
    size_t frames = same ? seen->frames : 0, stacks = same ? seen->stacks : 0;
    uint64_t names = same ? seen->names : 0;
    *out = (struct model_sample_batch){.epoch = p->epoch};
    arena_init(&out->arena, THREAD_SAMPLER_ARENA_BYTES);
    out->threads = arena_calloc(&out->arena, p->n_ended + p->n_threads, sizeof *out->threads);
    if (!out->threads)
        return -1;
    for (size_t i = 0; i < p->n_ended + p->n_threads; i++) {
        const struct thread_sampler_thread *t = i < p->n_ended ? &p->ended[i] : &p->threads[i - p->n_ended];
        if (t->names > names)
            out->threads[out->n_threads++] = (struct model_thread_def){
                .tid = t->py.tid, .name = t->name, .native_name = t->native_name[0] ? t->native_name : NULL};
    }
    out->period_us = p->period_us;
    out->n_frames = p->trie.n_frames - frames;
    out->frames = out->n_frames ? p->trie.frames + frames : NULL;
    out->n_stacks = p->trie.n_stacks - stacks;
    out->stacks = out->n_stacks ? p->trie.stacks + stacks : NULL;
    out->n_samples = first_sample < p->n_samples ? p->n_samples - first_sample : 0;
    out->samples = out->n_samples ? p->samples + first_sample : NULL;
    *now = (struct queue_mark){.generation = seen->generation,
                               .epoch = p->epoch,
                               .frames = p->trie.n_frames,
                               .stacks = p->trie.n_stacks,
                               .names = p->names};
    return 0;
}

void thread_sampler_put_same(const struct thread_sampler *p, struct model_snapshot *s) {
    uint64_t now = clock_mono_ns();
    size_t hint = 0, n = p->n_threads;
    for (size_t i = 0; i < s->n_threads; i++)
        for (size_t k = 0; k < n && s->threads[i].has_python; k++) {
            /* both lists have almost the same order, or the opposite one */
            size_t at = (hint + (k % 2 ? (k + 1) / 2 : n - k / 2)) % n;
            const struct thread_sampler_thread *t = &p->threads[at];
            if (t->py.tid != s->threads[i].tid || !t->looked)
                continue;
            s->threads[i].same_us = (now - t->changed_ns) / CLOCK_NS_PER_US + 1;
            hint = at;
            break;
        }
}
