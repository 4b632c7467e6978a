/* SPDX-License-Identifier: Apache-2.0 */
/* complete: see complete.h. */
#include "agent/complete.h"

#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/gil_late.h"
#include "agent/worker_tasks.h"
#include "agent/worker_values.h"
#include "base/clock.h"
#include "pystack/gate.h"

static void complete_note(struct complete_item *item, const char *what, const char *why) {
    size_t n = strlen(item->note);
    (void)snprintf(item->note + n, sizeof item->note - n, "%s%s: %s", n ? "; " : "", what, why);
}

static void complete_note_values(struct complete_item *item, const char *why) {
    complete_note(item, "values of types made in Python are only named", why);
}

static void complete_note_tasks(struct complete_item *item, const char *why) {
    complete_note(item, "tasks are not known", why);
}

static void complete_answer(struct complete *c, struct complete_item *item) {
    if (item->note[0])
        item->snapshot.note = arena_strdup(&item->snapshot.arena, item->note);
    for (size_t i = 0; i < item->n_asks; i++)
        c->answer(c->arg, &item->asks[i], &item->snapshot);
    model_snapshot_fini(&item->snapshot);
    *item = (struct complete_item){.used = false};
}

static struct complete_item *complete_find_room(struct complete *c) {
    for (size_t i = 0; i < COMPLETE_MAX; i++)
        if (!c->items[i].used)
            return &c->items[i];
    return NULL;
}

/* Have a job done: NULL when it is not. */
static struct worker_job *complete_submit(struct complete *c, struct complete_item *item,
                                          struct worker_job *job,
                                          void (*note)(struct complete_item *, const char *)) {
    struct err e = {0};
    if (!job || worker_submit(c->worker, job, &e) == 0)
        return job;
    note(item, e.text);
    job->fini(job);
    return NULL;
}

static void complete_start(struct complete *c, struct complete_item *item) {
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
    item->deadline_ns = clock_mono_ns() + COMPLETE_LIMIT_MS * CLOCK_NS_PER_MS;
    if (locals)
        item->values = complete_submit(
            c, item, worker_values_new(&item->snapshot, all ? 0 : tid, own, item->deadline_ns),
            complete_note_values);
    if (tasks && !item->snapshot.tasks && c->memory_tells_tasks)
        complete_note_tasks(item, "what asyncio tells of them cannot be read");
    else if (tasks && !item->snapshot.tasks)
        item->tasks = complete_submit(c, item, worker_tasks_new(item->deadline_ns), complete_note_tasks);
}

void complete_begin(struct complete *c, const struct complete_ask *asks, size_t n, struct model_snapshot *s) {
    struct complete_item at_once = {.used = false}, *item = complete_find_room(c);
    bool room = item != NULL;
    if (!room)
        item = &at_once;
    *item =
        (struct complete_item){.used = true, .snapshot = *s, .n_asks = n < COMPLETE_ASKS ? n : COMPLETE_ASKS};
    memset(s, 0, sizeof *s);
    memcpy(item->asks, asks, item->n_asks * sizeof *asks);
    if (room)
        complete_start(c, item);
    else
        complete_note(item, "memory alone was read", "too many questions wait for the python worker");
    if (!item->values && !item->tasks)
        complete_answer(c, item);
}

static bool complete_is_own(int64_t tid) {
    int64_t own[AGENT_MAX_TIDS];
    size_t n = agent_own_tids(own, AGENT_MAX_TIDS);
    for (size_t i = 0; i < n; i++)
        if (own[i] == tid)
            return true;
    return false;
}

/* Why a job that has not ended yet was waited for in vain. */
static void complete_explain(struct pystack *ps, char *why, size_t cap) {
    struct pystack_gate gate;
    if (!ps || pystack_gate_look(ps, &gate) != 0)
        (void)snprintf(why, cap, "the GIL was not had within %d ms", COMPLETE_LIMIT_MS);
    else if (gate.finalizing)
        (void)snprintf(why, cap, "the interpreter is ending");
    else if (gil_late_is_owed())
        (void)snprintf(why, cap, GIL_LATE_WHY);
    else if (gate.held && complete_is_own(gate.holder_tid))
        (void)snprintf(why, cap, "a repr() of the job needs more than %d ms", COMPLETE_LIMIT_MS);
    else if (gate.held && gate.holder_tid)
        (void)snprintf(why, cap, "the GIL was not had within %d ms: thread %lld holds it", COMPLETE_LIMIT_MS,
                       (long long)gate.holder_tid);
    else
        (void)snprintf(why, cap, "the python worker needs more than %d ms", COMPLETE_LIMIT_MS);
}

/* Take what a job has found. NULL when it is over, else the job. */
static struct worker_job *complete_take(struct complete *c, struct complete_item *item,
                                        struct worker_job *job, struct pystack *ps, bool late,
                                        void (*apply)(const struct worker_job *, struct model_snapshot *),
                                        void (*note)(struct complete_item *, const char *)) {
    char why[WORKER_WHY_MAX];
    enum worker_end end = job ? worker_get_end(c->worker, job) : WORKER_DONE;
    if (!job || (end == WORKER_PENDING && !late))
        return job;
    if (end == WORKER_PENDING)
        complete_explain(ps, why, sizeof why);
    else
        memcpy(why, job->why, sizeof why);
    if (end != WORKER_PENDING || apply == worker_values_apply)
        apply(job, &item->snapshot); /* what there is */
    if (end != WORKER_DONE)
        note(item, why);
    worker_release(c->worker, job);
    return NULL;
}

void complete_poll(struct complete *c, struct pystack *ps) {
    uint64_t now = clock_mono_ns();
    for (size_t i = 0; i < COMPLETE_MAX; i++) {
        struct complete_item *item = &c->items[i];
        bool late = now >= item->deadline_ns;
        if (!item->used)
            continue;
        item->values =
            complete_take(c, item, item->values, ps, late, worker_values_apply, complete_note_values);
        item->tasks = complete_take(c, item, item->tasks, ps, late, worker_tasks_apply, complete_note_tasks);
        if (!item->values && !item->tasks)
            complete_answer(c, item);
    }
}

uint64_t complete_next_ns(const struct complete *c) {
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < COMPLETE_MAX; i++)
        if (c->items[i].used && c->items[i].deadline_ns < next)
            next = c->items[i].deadline_ns;
    return next;
}

void complete_fini(struct complete *c) {
    for (size_t i = 0; i < COMPLETE_MAX; i++) {
        worker_release(c->worker, c->items[i].values);
        worker_release(c->worker, c->items[i].tasks);
        if (c->items[i].used)
            model_snapshot_fini(&c->items[i].snapshot);
        c->items[i] = (struct complete_item){.used = false};
    }
}
