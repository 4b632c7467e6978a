/* SPDX-License-Identifier: Apache-2.0 */
/* virtual_tables: see virtual_tables.h. */
#include "agent/server/virtual_tables.h"

#include <stdio.h>
#include <string.h>

#include "agent/python/worker_rows.h"
#include "agent/tables/record.h"
#include "base/clock.h"

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
static void virtual_tables_answer_none(struct call *call, const char *why) {
    struct wire_rows none = {.more = true};
    snprintf(none.note, sizeof none.note, "%s", why);
    call_answer_rows(call, &none);
}

static struct virtual_tables_item *virtual_tables_find_free(struct virtual_tables *m) {
    for (size_t i = 0; i < VIRTUAL_TABLES_MAX; i++)
        if (!m->items[i].job)
            return &m->items[i];
    return NULL;
}

/* The job's last step, for comparisons over steps. */
static void virtual_tables_put_step(const struct mailbox *m, struct wire_rows_ask *ask) {
    int64_t step = __atomic_load_n(&m->last_step, __ATOMIC_RELAXED);
    if (step >= 0 && ask->n_args < WIRE_ROWS_ARGS)
        ask->args[ask->n_args++] = (struct wire_rows_arg){.key = "step", .number = step};
}

void virtual_tables_begin(struct virtual_tables *m, struct call *call, const struct model_snapshot *roots) {
    struct wire_rows_ask *ask = call->want.rows;
    const struct virtual_tables_table *table = virtual_tables_find_table(ask->table);
    struct virtual_tables_item *item = virtual_tables_find_free(m);
    struct err e = {0};
    if (!table || !item) {
        (void)(table ? err_set(&e, ERR_FAILED, "too many requests wait for the python worker")
                     : err_set(&e, ERR_FAILED, "this agent has no table '%s'", ask->table));
        call_answer_error(call, &e);
        return;
    }
    virtual_tables_put_step(call->mailbox, ask);
    uint64_t now = clock_mono_ns(), deadline = now + VIRTUAL_TABLES_LIMIT_MS * CLOCK_NS_PER_MS;
    const struct worker_rows_request request = {
        .unit = table->unit, .function = table->function, .ask = ask, .roots = roots};
    struct worker_job *job = worker_rows_new(&request, deadline);
    if (job) {
        job->on_end = m->wake;
        job->on_end_arg = m->arg;
    }
    if (!job || worker_submit(m->worker, job, &e) != 0) {
        virtual_tables_answer_none(call, job ? e.text : "no memory for the request");
        if (job)
            job->fini(job);
        return;
    }
    m->look_ns = now + VIRTUAL_TABLES_POLL_NS;
    *item = (struct virtual_tables_item){.job = job, .call = call, .deadline_ns = deadline, .moved_ns = now};
}

void virtual_tables_explain(struct call *call, const struct pystack_gate *gate) {
    char why[WORKER_WHY_MAX];
    if (gate && gate->finalizing)
        snprintf(why, sizeof why, "the interpreter is ending");
    else if (gate && gate->held && gate->holder_tid)
        snprintf(why, sizeof why, "could not acquire the GIL within %d ms: thread %lld holds it",
                 VIRTUAL_TABLES_STILL_MS, (long long)gate->holder_tid);
    else
        snprintf(why, sizeof why, "could not acquire the GIL within %d ms", VIRTUAL_TABLES_STILL_MS);
    virtual_tables_answer_none(call, why);
}

static void virtual_tables_free_item(struct virtual_tables *m, struct virtual_tables_item *item) {
    worker_release(m->worker, item->job);
    *item = (struct virtual_tables_item){.job = NULL};
}

/* Sums of torch's allocator go into python.memory, too, if no device is missing: units/gpu_memory.py. */
static void virtual_tables_keep_gpu(const struct call *call, struct wire_rows rows) {
    enum { DEVICE, UUID, ALLOCATED, RESERVED, COUNT };
    struct wire_value v[COUNT];
    double allocated = 0, reserved = 0;
    size_t n = 0;
    if (strcmp(call->want.rows->table, "python.gpu_memory") != 0 || !call->mailbox->record || rows.more ||
        rows.note[0])
        return;
    while (wire_next_row(&rows, v, COUNT) == 1)
        if (v[ALLOCATED].kind == WIRE_VALUE_DOUBLE && v[RESERVED].kind == WIRE_VALUE_DOUBLE) {
            allocated += v[ALLOCATED].f;
            reserved += v[RESERVED].f;
            n++;
        }
    if (n)
        record_set_gpu(call->mailbox->record, allocated, reserved);
}

static void virtual_tables_answer_done(const struct virtual_tables_item *item, enum worker_end end) {
    struct wire_rows rows;
    worker_rows_get(item->job, &rows);
    if (end == WORKER_FAILED) {
        size_t n = strlen(rows.note);
        rows.more = true;
        snprintf(rows.note + n, sizeof rows.note - n, "%s%s", n ? "; " : "", item->job->why);
    } else if (item->stopped && rows.more) {
        size_t n = strlen(rows.note);
        snprintf(rows.note + n, sizeof rows.note - n, "%sthere is more than was found in %d s", n ? "; " : "",
                 VIRTUAL_TABLES_LIMIT_MS / 1000);
    }
    virtual_tables_keep_gpu(item->call, rows);
    call_answer_rows(item->call, &rows);
}

static void virtual_tables_poll_item(struct virtual_tables *m, struct virtual_tables_item *item,
                                     uint64_t now) {
    struct call *call = item->call;
    enum worker_end end = worker_get_end(m->worker, item->job);
    if (end != WORKER_PENDING) {
        virtual_tables_answer_done(item, end);
        virtual_tables_free_item(m, item);
    } else if (now - item->moved_ns >= VIRTUAL_TABLES_STILL_MS * CLOCK_NS_PER_MS) {
        virtual_tables_free_item(m, item);
        if (call_read(call, MAILBOX_READ_GIL, 0) != 0)
            virtual_tables_explain(call, NULL);
    } else if (now >= item->deadline_ns) {
        item->stopped = true;
        worker_rows_stop(item->job);
    }
}

void virtual_tables_forget(struct virtual_tables *m, const struct call *call) {
    for (size_t i = 0; i < VIRTUAL_TABLES_MAX; i++)
        if (m->items[i].call == call)
            virtual_tables_free_item(m, &m->items[i]);
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

void virtual_tables_poll(struct virtual_tables *m) {
    uint64_t now = clock_mono_ns();
    m->look_ns = now + VIRTUAL_TABLES_POLL_NS;
    virtual_tables_note_progress(m, now);
    for (size_t i = 0; i < VIRTUAL_TABLES_MAX; i++)
        if (m->items[i].job)
            virtual_tables_poll_item(m, &m->items[i], now);
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
