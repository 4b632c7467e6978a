/* SPDX-License-Identifier: Apache-2.0 */
/* pending_snapshots: see pending_snapshots.h. */
#include "agent/sampler/pending_snapshots.h"

#include <stdio.h>
#include <string.h>

#include "agent/threads.h"
#include "agent/python/gil_late.h"
#include "agent/python/worker_tasks.h"
#include "agent/python/worker_values.h"
#include "base/clock.h"
#include "pystack/gate.h"

static void pending_snapshots_note(struct pending_snapshots_item *item, const char *what, const char *why) {
    size_t n = strlen(item->note);
    snprintf(item->note + n, sizeof item->note - n, "%s%s: %s", n ? "; " : "", what, why);
}

static void pending_snapshots_note_values(struct pending_snapshots_item *item, const char *why) {
    pending_snapshots_note(item, "values of types made in Python are only named", why);
}

static void pending_snapshots_note_tasks(struct pending_snapshots_item *item, const char *why) {
    pending_snapshots_note(item, "tasks are not known", why);
}

static void pending_snapshots_answer(struct pending_snapshots *c, struct pending_snapshots_item *item) {
    if (item->note[0])
        item->snapshot.note = arena_strdup(&item->snapshot.arena, item->note);
    for (size_t i = 0; i < item->n_asks; i++)
        c->answer(c->arg, &item->asks[i], &item->snapshot);
    model_snapshot_fini(&item->snapshot);
    *item = (struct pending_snapshots_item){.used = false};
}

static struct pending_snapshots_item *pending_snapshots_find_free(struct pending_snapshots *c) {
    for (size_t i = 0; i < PENDING_SNAPSHOTS_MAX; i++)
        if (!c->items[i].used)
            return &c->items[i];
    return NULL;
}

/* Submit a job; NULL on failure. */
static struct worker_job *
pending_snapshots_submit(struct pending_snapshots *c, struct pending_snapshots_item *item,
                         struct worker_job *job,
                         void (*note)(struct pending_snapshots_item *, const char *)) {
    struct err e = {0};
    if (!job || worker_submit(c->worker, job, &e) == 0)
        return job;
    note(item, e.text);
    job->fini(job);
    return NULL;
}

static void pending_snapshots_start(struct pending_snapshots *c, struct pending_snapshots_item *item) {
    bool locals = false, tasks = false, own = false, all = false;
    int64_t tid = 0;
    for (size_t i = 0; i < item->n_asks; i++) {
        const struct wire_threads *want = &item->asks[i].want;
        tasks |= want->tasks;
        if (!want->locals)
            continue;
        all |= want->tid == 0 || (locals && want->tid != tid);
        tid = want->tid;
        locals = true;
        own |= want->repr;
    }
    item->deadline_ns = clock_mono_ns() + PENDING_SNAPSHOTS_LIMIT_MS * CLOCK_NS_PER_MS;
    if (locals)
        item->values = pending_snapshots_submit(
            c, item, worker_values_new(&item->snapshot, all ? 0 : tid, own, item->deadline_ns),
            pending_snapshots_note_values);
    if (tasks && !item->snapshot.tasks && c->memory_tells_tasks)
        pending_snapshots_note_tasks(item, "asyncio's records of them cannot be read");
    else if (tasks && !item->snapshot.tasks)
        item->tasks = pending_snapshots_submit(c, item, worker_tasks_new(item->deadline_ns),
                                               pending_snapshots_note_tasks);
}

void pending_snapshots_begin(struct pending_snapshots *c, const struct reply_to *asks, size_t n,
                             struct model_snapshot *s) {
    struct pending_snapshots_item at_once = {.used = false}, *item = pending_snapshots_find_free(c);
    bool room = item != NULL;
    if (!room)
        item = &at_once;
    *item = (struct pending_snapshots_item){
        .used = true, .snapshot = *s, .n_asks = n < PENDING_SNAPSHOTS_ASKS ? n : PENDING_SNAPSHOTS_ASKS};
    memset(s, 0, sizeof *s);
    memcpy(item->asks, asks, item->n_asks * sizeof *asks);
    if (room)
        pending_snapshots_start(c, item);
    else
        pending_snapshots_note(item, "only memory was read", "too many requests wait for the python worker");
    if (!item->values && !item->tasks)
        pending_snapshots_answer(c, item);
}

static bool pending_snapshots_is_own(int64_t tid) {
    int64_t own[THREADS_MAX];
    size_t n = threads_own_tids(own, THREADS_MAX);
    for (size_t i = 0; i < n; i++)
        if (own[i] == tid)
            return true;
    return false;
}

/* Explain why a job has not ended in time. */
static void pending_snapshots_explain(struct pystack *ps, char *why, size_t cap) {
    struct pystack_gate gate;
    if (!ps || pystack_gate_read(ps, &gate) != 0)
        snprintf(why, cap, "could not acquire the GIL within %d ms", PENDING_SNAPSHOTS_LIMIT_MS);
    else if (gate.finalizing)
        snprintf(why, cap, "the interpreter is ending");
    else if (gil_late_is_owed())
        snprintf(why, cap, GIL_LATE_WHY);
    else if (gate.held && pending_snapshots_is_own(gate.holder_tid))
        snprintf(why, cap, "a repr() of the job needs more than %d ms", PENDING_SNAPSHOTS_LIMIT_MS);
    else if (gate.held && gate.holder_tid)
        snprintf(why, cap, "could not acquire the GIL within %d ms: thread %lld holds it",
                 PENDING_SNAPSHOTS_LIMIT_MS, (long long)gate.holder_tid);
    else
        snprintf(why, cap, "the python worker needs more than %d ms", PENDING_SNAPSHOTS_LIMIT_MS);
}

/* Take the results of a job. NULL if it has ended, otherwise the job. */
static struct worker_job *
pending_snapshots_take(struct pending_snapshots *c, struct pending_snapshots_item *item,
                       struct worker_job *job, struct pystack *ps, bool late,
                       void (*apply)(const struct worker_job *, struct model_snapshot *),
                       void (*note)(struct pending_snapshots_item *, const char *)) {
    char why[WORKER_WHY_MAX];
    enum worker_end end = job ? worker_get_end(c->worker, job) : WORKER_DONE;
    if (!job || (end == WORKER_PENDING && !late))
        return job;
    if (end == WORKER_PENDING)
        pending_snapshots_explain(ps, why, sizeof why);
    else
        memcpy(why, job->why, sizeof why);
    /* the results so far */
    if (end != WORKER_PENDING || apply == worker_values_apply)
        apply(job, &item->snapshot);
    if (end != WORKER_DONE)
        note(item, why);
    worker_release(c->worker, job);
    return NULL;
}

void pending_snapshots_poll(struct pending_snapshots *c, struct pystack *ps) {
    uint64_t now = clock_mono_ns();
    for (size_t i = 0; i < PENDING_SNAPSHOTS_MAX; i++) {
        struct pending_snapshots_item *item = &c->items[i];
        bool late = now >= item->deadline_ns;
        if (!item->used)
            continue;
        item->values = pending_snapshots_take(c, item, item->values, ps, late, worker_values_apply,
                                              pending_snapshots_note_values);
        item->tasks = pending_snapshots_take(c, item, item->tasks, ps, late, worker_tasks_apply,
                                             pending_snapshots_note_tasks);
        if (!item->values && !item->tasks)
            pending_snapshots_answer(c, item);
    }
}

uint64_t pending_snapshots_next_ns(const struct pending_snapshots *c) {
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < PENDING_SNAPSHOTS_MAX; i++)
        if (c->items[i].used && c->items[i].deadline_ns < next)
            next = c->items[i].deadline_ns;
    return next;
}

void pending_snapshots_fini(struct pending_snapshots *c) {
    for (size_t i = 0; i < PENDING_SNAPSHOTS_MAX; i++) {
        worker_release(c->worker, c->items[i].values);
        worker_release(c->worker, c->items[i].tasks);
        if (c->items[i].used)
            model_snapshot_fini(&c->items[i].snapshot);
        c->items[i] = (struct pending_snapshots_item){.used = false};
    }
}
