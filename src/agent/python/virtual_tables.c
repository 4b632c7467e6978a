/* SPDX-License-Identifier: Apache-2.0 */
/* virtual_tables: see virtual_tables.h. */
#include "agent/python/virtual_tables.h"

#include <stdio.h>
#include <string.h>

#include "agent/python/worker_rows.h"
#include "base/clock.h"
#include "pystack/gate.h"

#define VIRTUAL_TABLES_POLL_NS (100 * CLOCK_NS_PER_MS) /* between two checks of waiting requests */

static const struct virtual_tables_table virtual_tables_all[] = {
#define PYTHON_TABLE(id, name, unit, function, roots, key, help) {name, #unit, #function, roots},
#include "store/ring/tables.def"
};

const struct virtual_tables_table *virtual_tables_find_table(const char *name) {
    for (size_t i = 0; i < sizeof virtual_tables_all / sizeof virtual_tables_all[0]; i++)
        if (strcmp(virtual_tables_all[i].name, name) == 0)
            return &virtual_tables_all[i];
    return NULL;
}

/* No rows, with the reason. A missing torch, or a GIL that is not available, is not an error of
 * the request. */
static void virtual_tables_answer_none(struct virtual_tables *m, uint32_t peer, uint32_t id,
                                       const char *why) {
    struct wire_rows none = {.more = true};
    snprintf(none.note, sizeof none.note, "%s", why);
    m->answer(m->arg, peer, id, &none, NULL);
}

static struct virtual_tables_item *virtual_tables_find_free(struct virtual_tables *m) {
    for (size_t i = 0; i < VIRTUAL_TABLES_MAX; i++)
        if (!m->items[i].job)
            return &m->items[i];
    return NULL;
}

void virtual_tables_begin(struct virtual_tables *m, uint32_t peer, uint32_t id,
                          const struct wire_rows_ask *ask, const struct model_snapshot *roots) {
    const struct virtual_tables_table *table = virtual_tables_find_table(ask->table);
    struct virtual_tables_item *item = virtual_tables_find_free(m);
    struct err e = {0};
    if (!table || !item) {
        (void)(table ? err_set(&e, ERR_FAILED, "too many questions wait for the python worker")
                     : err_set(&e, ERR_FAILED, "this agent makes no table '%s'", ask->table));
        m->answer(m->arg, peer, id, NULL, &e);
        return;
    }
    uint64_t now = clock_mono_ns(), deadline = now + VIRTUAL_TABLES_LIMIT_MS * CLOCK_NS_PER_MS;
    const struct worker_rows_request request = {
        .unit = table->unit, .function = table->function, .ask = ask, .roots = roots};
    struct worker_job *job = worker_rows_new(&request, deadline);
    if (!job || worker_submit(m->worker, job, &e) != 0) {
        virtual_tables_answer_none(m, peer, id, job ? e.text : "no memory for the question");
        if (job)
            job->fini(job);
        return;
    }
    m->look_ns = now + VIRTUAL_TABLES_POLL_NS;
    *item = (struct virtual_tables_item){
        .job = job, .peer = peer, .id = id, .deadline_ns = deadline, .moved_ns = now};
}

/* Explain why a job has made no progress. */
static void virtual_tables_explain(struct pystack *ps, char *why, size_t cap) {
    struct pystack_gate gate = {.held = false};
    if (ps && pystack_gate_read(ps, &gate) == 0 && gate.finalizing)
        snprintf(why, cap, "the interpreter is ending");
    else if (gate.held && gate.holder_tid)
        snprintf(why, cap, "the GIL was not had within %d ms: thread %lld holds it", VIRTUAL_TABLES_STILL_MS,
                 (long long)gate.holder_tid);
    else
        snprintf(why, cap, "the GIL was not had within %d ms", VIRTUAL_TABLES_STILL_MS);
}

static void virtual_tables_free_item(struct virtual_tables *m, struct virtual_tables_item *item) {
    worker_release(m->worker, item->job);
    *item = (struct virtual_tables_item){.job = NULL};
}

static void virtual_tables_answer_done(struct virtual_tables *m, const struct virtual_tables_item *item,
                                       enum worker_end end) {
    struct wire_rows rows;
    worker_rows_get(item->job, &rows);
    if (end == WORKER_FAILED) {
        size_t n = strlen(rows.note);
        rows.more = true;
        snprintf(rows.note + n, sizeof rows.note - n, "%s%s", n ? "; " : "", item->job->why);
    } else if (item->stopped) {
        size_t n = strlen(rows.note);
        snprintf(rows.note + n, sizeof rows.note - n, "%sthere is more than was found in %d s", n ? "; " : "",
                 VIRTUAL_TABLES_LIMIT_MS / 1000);
    }
    m->answer(m->arg, item->peer, item->id, &rows, NULL);
}

static void virtual_tables_poll_item(struct virtual_tables *m, struct virtual_tables_item *item,
                                     struct pystack *ps, uint64_t now) {
    char why[WORKER_WHY_MAX];
    enum worker_end end = worker_get_end(m->worker, item->job);
    if (end != WORKER_PENDING) {
        virtual_tables_answer_done(m, item, end);
        virtual_tables_free_item(m, item);
    } else if (now - item->moved_ns >= VIRTUAL_TABLES_STILL_MS * CLOCK_NS_PER_MS) {
        virtual_tables_explain(ps, why, sizeof why);
        virtual_tables_answer_none(m, item->peer, item->id, why);
        virtual_tables_free_item(m, item);
    } else if (now >= item->deadline_ns) {
        item->stopped = true;
        worker_rows_stop(item->job);
    }
}

/* Record which requests have made progress. One that has not started waits for earlier ones. */
static void virtual_tables_note_progress(struct virtual_tables *m, uint64_t now) {
    bool moved = false;
    for (size_t i = 0; i < VIRTUAL_TABLES_MAX; i++) {
        struct virtual_tables_item *item = &m->items[i];
        uint64_t progress = item->job ? worker_rows_progress(item->job) : 0;
        if (progress != item->progress) {
            item->progress = progress;
            item->moved_ns = now;
            moved = true;
        }
    }
    for (size_t i = 0; moved && i < VIRTUAL_TABLES_MAX; i++)
        if (m->items[i].progress == 0)
            m->items[i].moved_ns = now;
}

void virtual_tables_poll(struct virtual_tables *m, struct pystack *ps) {
    uint64_t now = clock_mono_ns();
    m->look_ns = now + VIRTUAL_TABLES_POLL_NS;
    virtual_tables_note_progress(m, now);
    for (size_t i = 0; i < VIRTUAL_TABLES_MAX; i++)
        if (m->items[i].job)
            virtual_tables_poll_item(m, &m->items[i], ps, now);
}

uint64_t virtual_tables_next_ns(const struct virtual_tables *m) {
    for (size_t i = 0; i < VIRTUAL_TABLES_MAX; i++)
        if (m->items[i].job)
            return m->look_ns;
    return UINT64_MAX;
}

void virtual_tables_fini(struct virtual_tables *m) {
    for (size_t i = 0; i < VIRTUAL_TABLES_MAX; i++)
        if (m->items[i].job)
            virtual_tables_free_item(m, &m->items[i]);
}
