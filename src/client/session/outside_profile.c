/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outside_profile: see outside_profile.h.
 *
 * /proc/PID/task/TID/schedstat (Documentation/scheduler/sched-stats.rst) shows whether a thread
 * has run: it changes when a thread gets a processor and when it leaves it, but not always in
 * between. So the counters are read before the state: a thread that was asleep then and has the
 * same counters now has slept all the time.
 */
#include "client/session/outside_profile.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"

#define OUTSIDE_PROFILE_STACKS ((size_t)512 * 1024)
#define OUTSIDE_PROFILE_TRIE ((size_t)32 * 1024 * 1024)
#define OUTSIDE_PROFILE_ARENA ((size_t)4 * 1024 * 1024) /* for one stack, or the list of threads */
#define OUTSIDE_PROFILE_OUT ((size_t)64 * 1024 * 1024)  /* for a batch */
/* longest time that the list of threads is used */
#define OUTSIDE_PROFILE_LIST_NS CLOCK_NS_PER_S
/* after this the other threads wait for the next tick */
#define OUTSIDE_PROFILE_TICK_NS (300 * CLOCK_NS_PER_MS)
#define OUTSIDE_PROFILE_MARK 96

struct outside_profile_thread {
    struct pystack_thread py;        /* name is NULL: see below */
    pid_t tid;                       /* in our numbering; 0 unknown */
    char mark[OUTSIDE_PROFILE_MARK]; /* schedstat before the last sample; "" there is none */
    bool asleep;                     /* it was asleep after the mark was read */
    bool kept;                       /* it is also in the new list */
    bool looked;                     /* stack_id, torn and gil are those of the last sample */
    bool named;                      /* its names are queued, or sent */
    bool torn;
    enum model_gil gil;
    int8_t gc;
    uint32_t stack_id;
    char *name; /* owned; NULL unknown */
    char native_name[16];
};

int outside_profile_init(struct outside_profile *p, pid_t pid) {
    *p = (struct outside_profile){.pid = pid, .epoch = 1};
    trie_init(&p->trie, OUTSIDE_PROFILE_STACKS, OUTSIDE_PROFILE_TRIE);
    arena_init(&p->named, OUTSIDE_PROFILE_OUT);
    p->samples = calloc(OUTSIDE_PROFILE_BATCH, sizeof *p->samples);
    return p->samples ? 0 : -1;
}

static void outside_profile_free_threads(struct outside_profile_thread *threads, size_t n) {
    for (size_t i = 0; i < n; i++)
        free(threads[i].name);
    free(threads);
}

void outside_profile_drop(struct outside_profile *p) {
    p->n_samples = 0;
    p->elapsed_ns = p->n_ticks = 0;
}

static void outside_profile_forget_names(struct outside_profile *p) {
    arena_fini(&p->named);
    free(p->names);
    p->names = NULL;
    p->n_names = p->cap_names = 0;
}

void outside_profile_forget(struct outside_profile *p) {
    outside_profile_free_threads(p->threads, p->n_threads);
    p->threads = NULL;
    p->n_threads = 0;
    p->listed_ns = p->last_tick_ns = p->process_cpu_ns = 0;
    outside_profile_drop(p);
    outside_profile_forget_names(p);
    trie_reset(&p->trie);
    p->epoch++;
    p->sent_frames = p->sent_stacks = 0;
}

void outside_profile_fini(struct outside_profile *p) {
    outside_profile_forget(p);
    free(p->samples);
    *p = (struct outside_profile){.pid = 0};
}

static void outside_profile_flush(struct outside_profile *p) {
    if (p->n_samples)
        p->flush(p->flush_arg);
}

/* ---- the list of threads ---- */

static void outside_profile_keep(struct outside_profile *p, struct outside_profile_thread *to,
                                 const struct pystack_thread *py, size_t guess) {
    ssize_t at = pystack_find_thread(py, p->threads, p->n_threads, sizeof *p->threads, guess);
    if (at < 0)
        return;
    *to = p->threads[at];
    p->threads[at].kept = true;
    p->threads[at].name = NULL;
}

static void outside_profile_name(struct outside_profile_thread *t, const char *name) {
    if (t->name && name ? strcmp(t->name, name) == 0 : t->name == name)
        return;
    free(t->name);
    t->name = name ? strdup(name) : NULL;
    t->named = false;
}

/* Read the list of Python threads again. 0 or -1 (the old one stays). */
static int outside_profile_list(struct outside_profile *p, struct pystack *ps, uint64_t now) {
    struct arena arena;
    struct pystack_thread *list = NULL;
    arena_init(&arena, OUTSIDE_PROFILE_ARENA);
    /* Thread numbers are the same on both sides except across pid namespaces, where listing them
     * is expensive. */
    if (now - p->listed_ns > OUTSIDE_PROFILE_LIST_NS)
        pystack_refresh_tids(ps);
    ssize_t n = pystack_read_threads(ps, &arena, &list);
    struct outside_profile_thread *threads = n > 0 ? calloc((size_t)n, sizeof *threads) : NULL;
    if (n <= 0 || !threads) {
        arena_fini(&arena);
        return -1;
    }
    n = (ssize_t)pystack_keep_one_state(ps, list, (size_t)n);
    for (size_t i = 0; i < (size_t)n; i++) {
        struct outside_profile_thread *t = &threads[i];
        outside_profile_keep(p, t, &list[i], i);
        t->py = list[i];
        t->py.name = NULL;
        t->kept = false;
        if (!t->tid)
            t->tid = pystack_outer_tid(ps, t->py.tid);
        outside_profile_name(t, list[i].name);
    }
    outside_profile_free_threads(p->threads, p->n_threads);
    p->threads = threads;
    p->n_threads = (size_t)n;
    p->listed_ns = now;
    arena_fini(&arena);
    return 0;
}

/* ---- sampling ---- */

/* CPU time of the whole process so far; 0 unknown. */
static uint64_t outside_profile_clock(pid_t pid) {
    struct timespec ts;
    clockid_t id;
    if (clock_getcpuclockid(pid, &id) != 0 || clock_gettime(id, &ts) != 0)
        return 0;
    return (uint64_t)ts.tv_sec * CLOCK_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void outside_profile_read_mark(pid_t pid, pid_t tid, char mark[OUTSIDE_PROFILE_MARK]) {
    char path[64];
    memset(mark, 0, OUTSIDE_PROFILE_MARK);
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (read(fd, mark, OUTSIDE_PROFILE_MARK - 1) < 0)
        mark[0] = '\0';
    close(fd);
}

/* All numbers become invalid: send the samples that use them, and read every stack again. */
static void outside_profile_new_epoch(struct outside_profile *p) {
    outside_profile_flush(p);
    outside_profile_drop(p);
    outside_profile_forget_names(p);
    trie_reset(&p->trie);
    p->epoch++;
    p->sent_frames = p->sent_stacks = 0;
    for (size_t i = 0; i < p->n_threads; i++)
        p->threads[i].looked = p->threads[i].named = false;
}

/* Read a stack. 0, or -1 if that failed. */
static int outside_profile_read(struct outside_profile *p, struct pystack *ps,
                                struct outside_profile_thread *t) {
    struct arena arena;
    struct model_frame *frames = NULL;
    bool torn = false, truncated = false;
    arena_init(&arena, OUTSIDE_PROFILE_ARENA);
    t->gil = pystack_read_gil(ps, &t->py);
    t->gc = pystack_read_gc(ps, &t->py, t->gil);
    ssize_t n = pystack_read_frames(ps, &t->py, &arena, &frames, &torn, &truncated);
    uint32_t (*add)(struct trie *, const struct model_frame *, size_t) =
        truncated ? trie_add_truncated : trie_add;
    uint32_t id = n < 0 ? 0 : add(&p->trie, frames, (size_t)n);
    if (id == TRIE_FULL) {
        outside_profile_new_epoch(p);
        id = add(&p->trie, frames, (size_t)n);
    }
    arena_fini(&arena);
    t->looked = n >= 0 && id != TRIE_FULL;
    t->stack_id = id;
    t->torn = torn;
    return t->looked ? 0 : -1;
}

/* Queue the thread's names for the receiver of its samples. */
static void outside_profile_put_name(struct outside_profile *p, struct outside_profile_thread *t) {
    if (t->named)
        return;
    if (p->n_names == p->cap_names) {
        size_t cap = p->cap_names ? 2 * p->cap_names : 16;
        struct model_thread_def *names = realloc(p->names, cap * sizeof *names);
        if (!names)
            return;
        p->names = names;
        p->cap_names = cap;
    }
    p->names[p->n_names++] = (struct model_thread_def){
        .tid = t->py.tid,
        .name = arena_strdup(&p->named, t->name),
        .native_name = t->native_name[0] ? arena_strdup(&p->named, t->native_name) : NULL};
    t->named = true;
}

/* Sample one thread: read its stack if it may have changed. */
static void outside_profile_sample(struct outside_profile *p, struct pystack *ps,
                                   struct outside_profile_thread *t, bool process_ran, double timestamp) {
    char mark[OUTSIDE_PROFILE_MARK];
    struct procfs_stat st;
    bool first = !t->mark[0] && !t->looked, ran = false;
    if (process_ran || !t->looked) {
        outside_profile_read_mark(p->pid, t->tid, mark);
        ran = !mark[0] || memcmp(mark, t->mark, sizeof mark) != 0 || !t->asleep;
        if (ran || !t->looked) {
            /* ended since the listing */
            if (procfs_read_stat(p->pid, t->tid, &st) != 0)
                return;
            t->asleep = st.state != 'R';
            ran = mark[0] ? ran : !t->asleep;
            memcpy(t->mark, mark, sizeof mark);
            if (strncmp(st.comm, t->native_name, sizeof t->native_name) != 0) {
                snprintf(t->native_name, sizeof t->native_name, "%s", st.comm);
                t->named = false;
            }
            if (outside_profile_read(p, ps, t) != 0)
                return;
        }
    }
    if (p->n_samples == OUTSIDE_PROFILE_BATCH) {
        if (pystack_is_same(ps))
            outside_profile_flush(p);
        outside_profile_drop(p);
    }
    outside_profile_put_name(p, t);
    p->samples[p->n_samples++] = (struct model_sample){.timestamp = timestamp,
                                                       .tid = t->py.tid,
                                                       .stack_id = t->stack_id,
                                                       .on_cpu = first ? MODEL_UNKNOWN : ran && !t->asleep,
                                                       .torn = t->torn,
                                                       .gil = t->gil,
                                                       .gc = t->gc};
}

int outside_profile_tick(struct outside_profile *p, struct pystack *ps, uint64_t wanted_ns) {
    uint64_t now = clock_mono_ns(), cpu = outside_profile_clock(p->pid);
    double timestamp = clock_epoch_s();
    bool ran = !cpu || cpu != p->process_cpu_ns;
    bool stale = p->n_threads == 0 || now - p->listed_ns > OUTSIDE_PROFILE_LIST_NS;
    if ((ran || stale) && outside_profile_list(p, ps, now) != 0)
        return -1;
    p->process_cpu_ns = cpu;
    p->elapsed_ns += p->last_tick_ns ? now - p->last_tick_ns : wanted_ns;
    p->last_tick_ns = now;
    p->n_ticks++;
    for (size_t i = 0; i < p->n_threads && clock_mono_ns() - now < OUTSIDE_PROFILE_TICK_NS; i++)
        if (p->threads[i].tid)
            outside_profile_sample(p, ps, &p->threads[i], ran, timestamp);
    /* A process that has not run has not called exec. */
    if ((!ran && !stale) || pystack_is_same(ps))
        return 0;
    outside_profile_drop(p);
    return -1;
}

/* ---- a batch ---- */

/* Copy the part of the trie that was not sent yet, with strings of its own. 0 or -1. */
static int outside_profile_copy_defs(const struct outside_profile *p, struct model_sample_batch *out) {
    out->n_frames = p->trie.n_frames - p->sent_frames;
    out->n_stacks = p->trie.n_stacks - p->sent_stacks;
    out->frames = arena_calloc(&out->arena, out->n_frames + 1, sizeof *out->frames);
    out->stacks = arena_calloc(&out->arena, out->n_stacks + 1, sizeof *out->stacks);
    if (!out->frames || !out->stacks)
        return -1;
    if (out->n_stacks)
        memcpy(out->stacks, p->trie.stacks + p->sent_stacks, out->n_stacks * sizeof *out->stacks);
    for (size_t i = 0; i < out->n_frames; i++) {
        out->frames[i] = p->trie.frames[p->sent_frames + i];
        out->frames[i].frame.func = arena_strdup(&out->arena, out->frames[i].frame.func);
        out->frames[i].frame.file = arena_strdup(&out->arena, out->frames[i].frame.file);
    }
    return out->arena.failed ? -1 : 0;
}

static int outside_profile_copy_rows(const struct outside_profile *p, struct model_sample_batch *out) {
    out->n_samples = p->n_samples;
    out->n_threads = p->n_names;
    out->samples = arena_calloc(&out->arena, p->n_samples + 1, sizeof *out->samples);
    out->threads = arena_calloc(&out->arena, p->n_names + 1, sizeof *out->threads);
    if (!out->samples || !out->threads)
        return -1;
    memcpy(out->samples, p->samples, p->n_samples * sizeof *out->samples);
    for (size_t i = 0; i < p->n_names; i++)
        out->threads[i] =
            (struct model_thread_def){.tid = p->names[i].tid,
                                      .name = arena_strdup(&out->arena, p->names[i].name),
                                      .native_name = arena_strdup(&out->arena, p->names[i].native_name)};
    return out->arena.failed ? -1 : 0;
}

int outside_profile_take(struct outside_profile *p, struct model_sample_batch *out) {
    *out = (struct model_sample_batch){.epoch = p->epoch};
    arena_init(&out->arena, OUTSIDE_PROFILE_OUT);
    out->period_us = p->n_ticks ? (double)p->elapsed_ns / (double)p->n_ticks / 1e3 : 0;
    if (outside_profile_copy_defs(p, out) != 0 || outside_profile_copy_rows(p, out) != 0)
        return -1;
    p->sent_frames = p->trie.n_frames;
    p->sent_stacks = p->trie.n_stacks;
    outside_profile_forget_names(p);
    outside_profile_drop(p);
    return 0;
}
