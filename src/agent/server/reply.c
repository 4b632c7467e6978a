/* SPDX-License-Identifier: Apache-2.0 */
/* reply: see reply.h. */
#include "agent/server/reply.h"

#include "wire/wire.h"

/* Post the encoded message. */
static void reply_post(struct mailbox *m, uint32_t peer, struct strbuf *b) {
    mailbox_post(m, queue_item_new(queue_bytes_new(b), QUEUE_ANSWER, peer));
    strbuf_fini(b);
}

/* The same for an answer that mailbox_begin_snapshot has started. `open`: the number of dropped
 * notifications is added when it is sent. */
static void reply_snapshot_begun(struct mailbox *m, uint32_t peer, struct strbuf *b, bool open) {
    struct queue_item *item = queue_item_new(queue_bytes_new(b), QUEUE_ANSWER, peer);
    if (item) {
        item->open = open;
        item->looked = true;
    }
    if (mailbox_post(m, item) != 0)
        mailbox_end_snapshot(m, peer);
    strbuf_fini(b);
}

static void reply_snapshot_error(struct mailbox *m, uint32_t peer, uint32_t id, const struct err *e) {
    struct strbuf b;
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    wire_put_error(&b, id, WIRE_E_UNAVAILABLE, e->text);
    reply_snapshot_begun(m, peer, &b, false);
}

void reply_error(struct mailbox *m, uint32_t peer, uint32_t id, const struct err *e) {
    struct strbuf b;
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    wire_put_error(&b, id, WIRE_E_UNAVAILABLE, e->text);
    reply_post(m, peer, &b);
}

void reply_ok(struct mailbox *m, uint32_t peer, uint32_t id) {
    struct strbuf b;
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    wire_put_ok(&b, id);
    reply_post(m, peer, &b);
}

void reply_target(struct mailbox *m, uint32_t peer, uint32_t id, const struct model_target *t) {
    struct strbuf b;
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    wire_put_target(&b, id, t);
    reply_post(m, peer, &b);
}

void reply_tables(struct mailbox *m, uint32_t peer, uint32_t id, const struct wire_table *tables, size_t n,
                  const struct err *e) {
    struct strbuf b;
    if (!tables) {
        reply_snapshot_error(m, peer, id, e);
        return;
    }
    strbuf_init(&b, WIRE_MAX_ASSEMBLED);
    wire_put_tables(&b, id, tables, n);
    reply_snapshot_begun(m, peer, &b, false);
}

/* Post an answer that a client gets one of at a time. */
static void reply_pulled(struct mailbox *m, uint32_t peer, struct strbuf *b) {
    struct queue_item *item = queue_item_new(queue_bytes_new(b), QUEUE_ANSWER, peer);
    if (item)
        item->pulled = true;
    if (mailbox_post(m, item) != 0)
        mailbox_end_pull(m, peer);
    strbuf_fini(b);
}

void reply_rows(struct mailbox *m, uint32_t peer, uint32_t id, const struct wire_pulled *p,
                const struct err *e) {
    struct strbuf b;
    strbuf_init(&b, 0);
    if (p)
        wire_put_pulled(&b, id, p);
    else
        wire_put_error(&b, id, WIRE_E_UNAVAILABLE, e->text);
    reply_pulled(m, peer, &b);
}

void reply_table(struct mailbox *m, uint32_t peer, uint32_t id, const struct wire_rows *r,
                 const struct err *e) {
    struct strbuf b;
    strbuf_init(&b, WIRE_MAX_ASSEMBLED);
    if (r)
        wire_put_rows(&b, id, r);
    else
        wire_put_error(&b, id, WIRE_E_UNAVAILABLE, e->text);
    reply_pulled(m, peer, &b);
}

void reply_evaluated(struct mailbox *m, uint32_t peer, uint32_t id, const struct wire_evaluated *v,
                     const struct err *e) {
    struct strbuf b;
    strbuf_init(&b, WIRE_MAX_ASSEMBLED);
    if (v)
        wire_put_evaluated(&b, id, v);
    else
        wire_put_error(&b, id, WIRE_E_UNAVAILABLE, e->text);
    reply_pulled(m, peer, &b);
}

void reply_debugger(struct mailbox *m, uint32_t peer, uint32_t id, enum wire_method method,
                    const struct wire_debugger *d) {
    struct strbuf b;
    strbuf_init(&b, WIRE_MAX_ASSEMBLED);
    wire_put_debugger(&b, id, method, d);
    reply_pulled(m, peer, &b);
}

/* The snapshot for clients that did not ask for native frames: `s` itself, or a copy, returned
 * in `*copy`. NULL without memory. */
static const struct model_snapshot *reply_python(const struct model_snapshot *s,
                                                 struct model_snapshot *copy) {
    *copy = (struct model_snapshot){0};
    if (!model_snapshot_has_native(s))
        return s;
    return model_snapshot_copy_python(s, copy) == 0 ? copy : NULL;
}

struct queue_bytes *reply_stream(const struct model_snapshot *s, size_t most_bytes) {
    struct model_snapshot copy;
    struct queue_bytes *bytes = NULL;
    struct strbuf b;
    const struct model_snapshot *python = reply_python(s, &copy);
    strbuf_init(&b, 0);
    if (python && wire_put_threads_notify_most(&b, python, most_bytes) == 0)
        bytes = queue_bytes_new(&b);
    strbuf_fini(&b);
    model_snapshot_fini(&copy);
    return bytes;
}

void reply_snapshot(void *mailbox, const struct reply_to *ask, const struct model_snapshot *s) {
    struct model_snapshot copy = {0};
    struct err e;
    struct strbuf b;
    const struct model_snapshot *wanted = ask->want.native ? s : reply_python(s, &copy);
    if (wanted) {
        strbuf_init(&b, 0);
        wire_put_snapshot_wanted_open(&b, ask->id, wanted, &ask->want);
        reply_snapshot_begun(mailbox, ask->peer, &b, true);
    } else {
        err_set(&e, ERR_FAILED, "no memory for an answer");
        reply_snapshot_error(mailbox, ask->peer, ask->id, &e);
    }
    model_snapshot_fini(&copy);
}

void reply_threads(struct mailbox *m, const struct reply_to *ask, const struct model_snapshot *s,
                   const struct err *e) {
    if (s)
        reply_snapshot(m, ask, s);
    else
        reply_snapshot_error(m, ask->peer, ask->id, e);
}
