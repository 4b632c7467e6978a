/* SPDX-License-Identifier: Apache-2.0 */
/* call: see call.h. */
#include "agent/server/call.h"

#include <stdlib.h>

#include "agent/server/reply.h"

void call_init(struct call *c, struct mailbox *m, uint32_t peer, uint32_t id, enum wire_method method) {
    *c = (struct call){.peer = peer, .id = id, .method = method, .mailbox = m};
    mailbox_get_client(m, peer, &c->uid, &c->pid);
}

void call_fini(struct call *c) {
    if (c->reading)
        c->reading->call = NULL;
    if (c->method == WIRE_EVAL)
        free(c->want.code);
    else if (c->method == WIRE_ROWS)
        free(c->want.rows);
    else if (c->want.debug) {
        wire_debug_fini(c->want.debug);
        free(c->want.debug);
    }
    *c = (struct call){.peer = 0};
}

int call_read(struct call *c, enum mailbox_reading_kind kind, int64_t tid) {
    struct mailbox_reading *r = calloc(1, sizeof *r);
    if (!r)
        return -1;
    *r = (struct mailbox_reading){.kind = kind, .tid = tid, .call = c};
    c->reading = r;
    mailbox_ask_reading(c->mailbox, r);
    return 0;
}

/* ---- answers ---- */

void call_answer_error(struct call *c, const struct err *e) {
    if (c->method == WIRE_ROWS)
        reply_table(c->mailbox, c->peer, c->id, NULL, e);
    else
        reply_evaluated(c->mailbox, c->peer, c->id, NULL, e);
    call_fini(c);
}

void call_answer_why(struct call *c, const char *why) {
    struct err e;
    err_set(&e, ERR_FAILED, "%s", why);
    call_answer_error(c, &e);
}

void call_answer_evaluated(struct call *c, const struct wire_evaluated *v) {
    reply_evaluated(c->mailbox, c->peer, c->id, v, NULL);
    call_fini(c);
}

void call_answer_debugger(struct call *c, const struct wire_debugger *d) {
    reply_debugger(c->mailbox, c->peer, c->id, c->method, d);
    call_fini(c);
}

void call_answer_rows(struct call *c, const struct wire_rows *r) {
    reply_table(c->mailbox, c->peer, c->id, r, NULL);
    call_fini(c);
}
