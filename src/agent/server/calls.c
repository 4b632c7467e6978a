/* SPDX-License-Identifier: Apache-2.0 */
/* calls: see calls.h. */
#include "agent/server/calls.h"

#include <stdlib.h>
#include <string.h>

void calls_init(struct calls *c, struct mailbox *m, void (*on_due)(void *arg), void (*wake)(void *arg),
                void *arg) {
    *c = (struct calls){.mailbox = m,
                        .evals = {.worker = m->evaluator, .mailbox = m},
                        .rows = {.worker = m->worker, .wake = wake, .arg = arg},
                        .on_due = on_due,
                        .arg = arg};
}

static void calls_set_due(struct calls *c) {
    c->due = true;
    if (c->on_due)
        c->on_due(c->arg);
}

/* ---- requests ---- */

static struct call *calls_find(struct calls *c, uint32_t peer) {
    for (size_t i = 0; i < CALLS_MAX; i++)
        if (c->all[i].peer == peer)
            return &c->all[i];
    return NULL;
}

/* `args`: owned; NULL: there was no memory for them. */
static int calls_add(struct calls *c, uint32_t peer, uint32_t id, enum wire_method method,
                     union call_want args, bool copied) {
    struct call *call = copied && !calls_find(c, peer) ? calls_find(c, 0) : NULL;
    struct call refused = {.method = method, .want = args};
    if (!call) {
        call_fini(&refused);
        return -1;
    }
    call_init(call, c->mailbox, peer, id, method);
    call->want = args;
    calls_set_due(c);
    return 0;
}

int calls_add_eval(struct calls *c, uint32_t peer, uint32_t id, const struct wire_eval *want) {
    struct wire_eval *copy = calloc(1, sizeof *copy + want->code_len + 1);
    if (copy) {
        *copy = *want;
        memcpy(copy + 1, want->code, want->code_len);
        copy->code = (const char *)(copy + 1);
    }
    return calls_add(c, peer, id, WIRE_EVAL, (union call_want){.code = copy}, copy != NULL);
}

int calls_add_debug(struct calls *c, uint32_t peer, uint32_t id, enum wire_method method,
                    struct wire_debug *want) {
    struct wire_debug *copy = calloc(1, sizeof *copy);
    if (copy) {
        *copy = *want;
        *want = (struct wire_debug){.action = WIRE_DEBUG_UNKNOWN};
    }
    return calls_add(c, peer, id, method, (union call_want){.debug = copy}, copy != NULL);
}

int calls_add_rows(struct calls *c, uint32_t peer, uint32_t id, const struct wire_rows_ask *want) {
    struct wire_rows_ask *copy = calloc(1, sizeof *copy);
    if (copy) {
        *copy = *want;
        copy->text = NULL; /* of the message, and of no table here */
    }
    return calls_add(c, peer, id, WIRE_ROWS, (union call_want){.rows = copy}, copy != NULL);
}

void calls_interrupt(struct calls *c, uint32_t peer) {
    struct call *call = calls_find(c, peer);
    if (!call || call->method == WIRE_ROWS)
        return;
    call->stopped = true;
    calls_set_due(c);
}

void calls_forget(struct calls *c, uint32_t peer) {
    struct call *call = calls_find(c, peer);
    if (call) {
        evals_forget(&c->evals, call);
        virtual_tables_forget(&c->rows, call);
        call_fini(call);
    }
    calls_set_due(c); /* the value kept for it can be dropped, too */
}

bool calls_are_evaluating(const struct calls *c) { return c->evals.run != NULL; }

/* ---- polls ---- */

/* `found`: the frames that were read for it; NULL if there are none. */
static void calls_begin(struct calls *c, struct call *call, const struct model_snapshot *found) {
    call->begun = true;
    if (call->method == WIRE_ROWS)
        virtual_tables_begin(&c->rows, call, found);
    else
        evals_begin(&c->evals, call, found);
}

/* Some requests see variables of frames, of one thread or of all: true if the sampler reads these
 * now. */
static bool calls_read_frames(struct call *call) {
    const struct virtual_tables_table *table =
        call->method == WIRE_ROWS ? virtual_tables_find_table(call->want.rows->table) : NULL;
    int64_t tid = call->method == WIRE_EVAL ? call->want.code->tid : 0;
    return ((table && table->roots) || tid) && call_read(call, MAILBOX_READ_FRAMES, tid) == 0;
}

/* What the sampler has read. */
static void calls_take_readings(struct calls *c) {
    struct mailbox_reading *next, *r = mailbox_take_readings(c->mailbox);
    for (; r; r = next) {
        struct call *call = r->call;
        next = r->next;
        if (call)
            call->reading = NULL;
        if (call && r->kind == MAILBOX_READ_FRAMES)
            calls_begin(c, call, r->is_read ? &r->frames : NULL);
        else if (call && call->method == WIRE_ROWS)
            virtual_tables_explain(call, r->is_read ? &r->gate : NULL);
        else if (call)
            evals_explain(call, r->is_read ? &r->gate : NULL);
        mailbox_reading_free(r);
    }
}

void calls_poll(struct calls *c) {
    c->due = false;
    calls_take_readings(c);
    for (size_t i = 0; i < CALLS_MAX; i++) {
        struct call *call = &c->all[i];
        if (call->peer && !call->begun && !call->reading && !calls_read_frames(call))
            calls_begin(c, call, NULL);
    }
    virtual_tables_poll(&c->rows);
    evals_poll(&c->evals);
}

uint64_t calls_next_ns(const struct calls *c) {
    uint64_t evals = evals_next_ns(&c->evals), rows = virtual_tables_next_ns(&c->rows);
    if (c->due)
        return 0;
    return evals < rows ? evals : rows;
}

void calls_fini(struct calls *c) {
    if (!c->mailbox)
        return;
    virtual_tables_fini(&c->rows);
    evals_fini(&c->evals);
    for (size_t i = 0; i < CALLS_MAX; i++)
        call_fini(&c->all[i]);
    c->on_due = NULL;
}
