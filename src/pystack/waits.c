/* SPDX-License-Identifier: Apache-2.0 */
/* waits: see waits.h. */
#include "pystack/waits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/text.h"
#include "pystack/loaders.h"
#include "pystack/waits_internal.h"

#define WAITS_NS_MAX (20 * CLOCK_NS_PER_MS)  /* CPU time for all threads of one snapshot, or */
#define WAITS_NS_EACH (50 * CLOCK_NS_PER_US) /* for each, if they are many */
/* The first snapshot knows no answers yet, and is the only one for who asks once. */
#define WAITS_FIRST_NS_EACH (500 * CLOCK_NS_PER_US)
#define WAITS_FIRST_NS_MAX (2 * CLOCK_NS_PER_S)
#define WAITS_FRAMES_NEAR 24 /* innermost frames in which a library is recognised */

#define WAITS_REST 500 /* times what answers that change have cost passes before they are asked for again */

#define WAITS_CLOCK_TIMES 10 /* as much by the clock, for what blocks */

/* By the thread's own clock: on a busy machine its turns are short, and hardly anything would be
 * known. */
bool waits_is_late(const struct waits *w) {
    return w->spent_ns + (clock_self_cpu_ns() - w->entered_ns) > w->most_ns ||
           clock_mono_ns() - w->now_ns > WAITS_CLOCK_TIMES * w->most_ns;
}

/* ---- frames ---- */

bool waits_is_in(const struct model_frame *f, const char *file, const char *func) {
    if (func) {
        const char *dot = f->func ? strrchr(f->func, '.') : NULL;
        if (!f->func || strcmp(dot ? dot + 1 : f->func, func) != 0)
            return false;
    }
    if (!file)
        return true;
    size_t n = f->file ? strlen(f->file) : 0, m = strlen(file);
    return n >= m && strcmp(f->file + n - m, file) == 0 && (n == m || f->file[n - m - 1] == '/');
}

/* Functions of torch through which torch.distributed calls into C++. */
static bool waits_is_of_dispatch(const struct model_frame *f) {
    return waits_is_in(f, "torch/_ops.py", NULL) || waits_is_in(f, "torch/utils/_python_dispatch.py", NULL);
}

/* torchrun and its wrappers start and watch processes, and checkpoints are files: a thread that waits in
 * those does not wait for ranks. */
static bool waits_is_of_distributed(const struct model_frame *f) {
    const char *at = f->file ? strstr(f->file, "/torch/distributed/") : NULL;
    const char *rest = at ? at + sizeof "/torch/distributed/" - 1 : "";
    return at && strncmp(rest, "elastic/", 8) != 0 && strncmp(rest, "launcher/", 9) != 0 &&
           strncmp(rest, "checkpoint/", 11) != 0;
}

/* A collective of torch.distributed: the outermost of the functions of that library in which the
 * thread is, but for those that it wraps them in. It calls them itself: whatever else runs below a
 * frame of that library (a job below @record, a module below FSDP) has waits of its own. */
static void waits_find_collective(struct waits_case *l) {
    const struct model_frame *found = NULL;
    size_t at = 0, i = 0;
    /* A lock or queue of Python is what it waits for, wherever that is. */
    if (l->e->lock || l->e->kind == MODEL_WAIT_QUEUE || l->e->kind == MODEL_WAIT_PROCESS_LOCK)
        return;
    while (i < l->n && waits_is_of_dispatch(&l->frames[i]))
        i++;
    for (; i < l->n && i < WAITS_FRAMES_NEAR && waits_is_of_distributed(&l->frames[i]); i++)
        if (!found || !waits_is_in(&l->frames[i], "torch/distributed/c10d_logger.py", NULL)) {
            found = &l->frames[i];
            at = i;
        }
    if (!found)
        return;
    l->e->kind = MODEL_WAIT_COLLECTIVE;
    l->e->ident = l->e->inode = 0;
    l->e->detail[0] = '\0';
    uint64_t size =
        waits_is_in(found, "torch/distributed/distributed_c10d.py", NULL) ? waits_find_group_size(l, at) : 0;
    int n = snprintf(l->e->what, sizeof l->e->what, "%.60s of torch.distributed", found->func);
    if (size && n > 0 && (size_t)n < sizeof l->e->what)
        snprintf(l->e->what + n, sizeof l->e->what - (size_t)n, ", group of %llu", (unsigned long long)size);
}

/* ---- DataLoader ---- */

/* The worker from which the next batch is to come. */
struct waits_due {
    int64_t batch, worker;
};

static int waits_match_due(struct pystack_reader *r, uint32_t index, uint64_t key, uint64_t value,
                           void *arg) {
    struct waits_due *due = arg;
    uint64_t number, item, worker;
    (void)index;
    if (pystack_read_int(r, key, &number) != 0 || (int64_t)number != due->batch)
        return 0;
    if (mem_read_u64(&r->mem, value + (uint64_t)r->off.tuple_items, &item) == 0 &&
        pystack_read_int(r, item, &worker) == 0 && worker < PYSTACK_LOADER_WORKERS)
        due->worker = (int64_t)worker;
    return 1;
}

static void waits_find_loader(struct waits_case *l) {
    struct pystack_reader *r = &l->ps->reader;
    struct pystack_loader *loader;
    uint64_t info;
    size_t i = 0;
    while (i < l->n && i < WAITS_FRAMES_NEAR &&
           !waits_is_in(&l->frames[i], "torch/utils/data/dataloader.py", "_try_get_data"))
        i++;
    if (i >= l->n || i >= WAITS_FRAMES_NEAR)
        return;
    uint64_t object = waits_self(l, i);
    loader = malloc(sizeof *loader);
    if (loader && object && pystack_read_loader(l->ps, object, loader) == 0 && loader->processes) {
        struct waits_due due = {.batch = loader->received, .worker = -1};
        if (loader->received >= 0 && pystack_attr_find(r, object, "_task_info", NULL, &info) == 0)
            pystack_dict_each(r, info, waits_match_due, &due);
        l->e->kind = MODEL_WAIT_LOADER;
        l->e->lock = l->e->ident = l->e->pid = l->e->inode = 0;
        l->e->detail[0] = '\0';
        if (due.worker >= 0 && (size_t)due.worker < loader->n && loader->worker[due.worker].pid > 0) {
            snprintf(l->e->what, sizeof l->e->what, "batch %lld of its DataLoader, from worker %lld",
                     (long long)due.batch, (long long)due.worker);
            waits_put_child(l, loader->worker[due.worker].pid, NULL);
        } else {
            snprintf(l->e->what, sizeof l->e->what, "a batch of its DataLoader");
        }
    }
    free(loader);
}

/* ---- asyncio ---- */

/* The loop waits in its selector. A callback that blocks has frames between the two, and is what waits. */
static void waits_find_loop(struct waits_case *l) {
    size_t i = 0;
    while (i < l->n && i < WAITS_FRAMES_NEAR && waits_is_in(&l->frames[i], "selectors.py", NULL))
        i++;
    if (i == l->n || !waits_is_in(&l->frames[i], "asyncio/base_events.py", "_run_once"))
        return;
    l->e->kind = MODEL_WAIT_LOOP;
    l->e->pid = l->e->inode = 0;
    l->e->detail[0] = '\0';
    snprintf(l->e->what, sizeof l->e->what, "events of its asyncio loop");
}

/* subprocess and multiprocessing ask again and again, or wait for a pipe that closes: the frames know
 * whom they wait for. */
static void waits_find_children(struct waits_case *l) {
    uint64_t pid, at;
    for (size_t i = 0; i < l->n && i < 4; i++) {
        if (!waits_is_in(&l->frames[i], "subprocess.py", "_wait") &&
            !waits_is_in(&l->frames[i], "multiprocessing/popen_fork.py", "wait"))
            continue;
        uint64_t object = waits_self(l, i);
        if (object && pystack_attr_find(&l->ps->reader, object, "pid", NULL, &at) == 0 &&
            pystack_read_int(&l->ps->reader, at, &pid) == 0 && pid <= INT32_MAX)
            waits_put_child(l, (int64_t)pid, "child process");
        return;
    }
}

/* ---- one thread ---- */

static void waits_find_kind(struct waits_case *l) {
    struct waits_entry *e = l->e;
    if (e->state == 'T' || e->state == 't') {
        e->kind = MODEL_WAIT_STOPPED;
        snprintf(e->what, sizeof e->what, "%s",
                 e->state == 'T' ? "a signal to continue (it is stopped)" : "a debugger that has stopped it");
        return;
    }
    if (e->gil == MODEL_GIL_WAITING) {
        e->kind = MODEL_WAIT_GIL;
        snprintf(e->what, sizeof e->what, "the GIL");
        return;
    }
    int rc = procfs_read_syscall(l->ps->pid, e->tid, &l->call);
    if (rc == 1 && e->state == 'D') {
        e->kind = MODEL_WAIT_FILE;
        snprintf(e->what, sizeof e->what, "a page of memory, from disk or swap");
    }
    if (rc != 0)
        return;
    if (l->call.nr == SYS_futex)
        waits_find_futex(l);
    else
        waits_find_call(l);
    waits_find_loop(l);
    waits_find_children(l);
    waits_find_collective(l);
    waits_find_loader(l);
}

/* True if an answer like this stays true as long as the thread does not move. What others change meanwhile
 * (how many are at a barrier, who has the other end of a pipe) is asked for again after a while. */
static bool waits_lasts(const struct waits *w, const struct waits_entry *e) {
    return e->known && e->kind != MODEL_WAIT_CHILD && e->kind != MODEL_WAIT_LOADER &&
           (!e->changes || w->now_ns - e->asked_ns < w->again_ns);
}

static int waits_compare(const void *a, const void *b) {
    pid_t x = ((const struct waits_entry *)a)->tid, y = ((const struct waits_entry *)b)->tid;
    return (x > y) - (x < y);
}

static void waits_compute(struct pystack *ps, struct waits_entry *e, const struct model_thread *t) {
    struct waits *w = ps->waits;
    struct waits_case l = {.ps = ps, .w = w, .e = e, .t = t, .frames = w->frames, .places = w->places};
    struct procfs_stat st;
    size_t first = 0;
    /* Native frames stand before those that the walk has found, and what ends a call of the interpreter's
     * loop among them: neither is a function of Python. */
    while (first < t->n_frames && t->frames[first].kind == MODEL_FRAME_NATIVE)
        first++;
    for (size_t i = first; i < t->n_frames && l.n < WAITS_FRAMES; i++)
        if (t->frames[i].kind == MODEL_FRAME_PYTHON) {
            w->frames[l.n] = t->frames[i];
            w->places[l.n++] = ps->places[i - first];
        }
    waits_find_kind(&l);
    /* It counts only if the thread has not moved meanwhile. */
    e->known = procfs_read_stat(ps->pid, e->tid, &st) == 0 && st.state == e->state &&
               pystack_thread_cpu(ps, e->tid, &st) == e->cpu_ns;
}

void pystack_waits_add(struct pystack *ps, const struct pystack_clock *clock, uint64_t tstate, bool same,
                       size_t index, struct model_snapshot *out) {
    struct waits *w = ps->waits;
    struct model_thread *t = &out->threads[index];
    if (!w || !t->has_python || w->n == w->cap || !ps->reader.off.type_name)
        return;
    struct waits_entry *e = &w->now[w->n++];
    e->tid = clock->tid;
    const struct waits_entry *before =
        w->n_before ? bsearch(e, w->before, w->n_before, sizeof *e, waits_compare) : NULL;
    same = same && before && before->started == clock->started && before->cpu_ns == clock->cpu_ns &&
           before->tstate == tstate && before->state == t->state && before->gil == t->gil;
    *e = same ? *before : (struct waits_entry){.tid = clock->tid};
    if (same && waits_lasts(w, before)) {
        e->index = index;
        return;
    }
    *e = (struct waits_entry){.tid = clock->tid,
                              .state = t->state,
                              .gil = t->gil,
                              .started = clock->started,
                              .cpu_ns = clock->cpu_ns,
                              .tstate = tstate,
                              .index = index};
    if (t->state == 'R' || t->torn || t->gil == MODEL_GIL_HOLDING)
        return;
    w->entered_ns = clock_self_cpu_ns();
    if (waits_is_late(w)) {
        w->left_out++;
        return;
    }
    waits_compute(ps, e, t);
    e->cost_ns = clock_self_cpu_ns() - w->entered_ns;
    w->spent_ns += e->cost_ns;
    if (e->changes)
        e->asked_ns = w->now_ns;
    e->since_ns = same && before->known && before->kind == e->kind ? before->since_ns : w->now_ns;
    if (same) {
        e->looked = before->looked;
        e->set = before->set;
        e->n_claims = before->n_claims;
        memcpy(e->claims, before->claims, sizeof e->claims);
    }
}

/* ---- the snapshot ---- */

/* The CPU time for the waits of a snapshot of `n` threads. */
static uint64_t waits_most_ns(const struct waits *w, size_t n) {
    uint64_t most = n * WAITS_NS_EACH > WAITS_NS_MAX ? n * WAITS_NS_EACH : WAITS_NS_MAX;
    uint64_t first =
        n * WAITS_FIRST_NS_EACH < WAITS_FIRST_NS_MAX ? n * WAITS_FIRST_NS_EACH : WAITS_FIRST_NS_MAX;
    return w->n_before == 0 && first > most ? first : most;
}

void pystack_waits_begin(struct pystack *ps, size_t n) {
    if (!ps->waits)
        ps->waits = calloc(1, sizeof *ps->waits);
    struct waits *w = ps->waits;
    if (!w)
        return;
    w->now_ns = clock_mono_ns();
    w->most_ns = waits_most_ns(w, n);
    w->spent_ns = 0;
    w->n = w->left_out = w->n_wanted = 0;
    memset(w->labels, 0, sizeof w->labels);
    memset(w->acquirers, 0, sizeof w->acquirers);
    w->names.code = 0;
    values_begin(&w->values, &ps->reader, -1);
    if (n <= w->cap)
        return;
    struct waits_entry *now = realloc(w->now, n * sizeof *now);
    w->now = now ? now : w->now;
    struct waits_entry *before = realloc(w->before, n * sizeof *before);
    w->before = before ? before : w->before;
    if (now && before)
        w->cap = n;
}

static void waits_put(struct waits *w, const struct waits_entry *e, struct model_snapshot *out) {
    struct model_wait *wait = &out->threads[e->index].wait;
    if (!e->known || e->kind == MODEL_WAIT_UNKNOWN)
        return;
    wait->kind = e->kind;
    wait->flags |= e->flags;
    wait->pid = e->pid;
    wait->what = arena_strdup(&out->arena, e->what[0] ? e->what : NULL);
    wait->detail = arena_strdup(&out->arena, e->detail[0] ? e->detail : NULL);
    wait->for_us = e->since_ns && w->now_ns > e->since_ns ? (w->now_ns - e->since_ns) / CLOCK_NS_PER_US : 0;
    if (e->deadline_ns > w->now_ns)
        wait->left_us = (e->deadline_ns - w->now_ns) / CLOCK_NS_PER_US;
}

void pystack_waits_end(struct pystack *ps, const struct pystack_thread *threads, size_t n,
                       struct model_snapshot *out) {
    struct waits *w = ps->waits;
    if (!w)
        return;
    w->entered_ns = clock_self_cpu_ns();
    /* as much again, so that many waits do not hide their holders */
    w->most_ns *= 2;
    waits_find_sockets(ps);
    for (size_t i = 0; i < w->n; i++)
        waits_put(w, &w->now[i], out);
    waits_find_holders(ps, threads, n, out);
    w->again_ns = 0;
    for (size_t i = 0; i < w->n; i++)
        w->again_ns += w->now[i].changes ? WAITS_REST * w->now[i].cost_ns : 0;
    w->again_ns = w->again_ns > WAITS_ASKED_NS ? w->again_ns : WAITS_ASKED_NS;
    if (w->left_out && !out->note) {
        char note[96];
        snprintf(note, sizeof note, "the waits of %zu threads were left out: reading them took too long",
                 w->left_out);
        out->note = arena_strdup(&out->arena, note);
    }
    struct waits_entry *swap = w->before;
    w->before = w->now;
    w->now = swap;
    w->n_before = w->n;
    qsort(w->before, w->n_before, sizeof *w->before, waits_compare);
}

void pystack_waits_fini(struct pystack *ps) {
    if (!ps->waits)
        return;
    free(ps->waits->now);
    free(ps->waits->before);
    table_fini(&ps->waits->tids);
    table_fini(&ps->waits->idents);
    free(ps->waits);
}
