/* SPDX-License-Identifier: Apache-2.0 */
/* peer: see peer.h. */
#include "agent/server/peer.h"

#include <stdio.h>
#include <string.h>

#include "agent/server/calls.h"
#include "agent/server/lease.h"
#include "agent/python/worker.h"
#include "base/clock.h"
#include "store/ring/ring_tables.h"
#include "wire/wire.h"

#define PEER_KEEP_BYTES ((size_t)64 * 1024)     /* a larger buffer is freed after use */
#define PEER_LOOKER_MESSAGE ((size_t)16 * 1024) /* of read-only clients: their requests are short */

#define PEER_PULLING "the answer to the last 'pull', 'rows' or 'eval' was not read yet"

#define PEER_WITHHELD                                                                                        \
    "this table holds values of the job, or code that was run in it: it needs the full-access token"

bool peer_is_read_only(const struct peer *p) { return p->may < WIRE_CHANGES; }

int peer_init(struct peer *p, uint32_t id, struct mailbox *m, enum wire_access may) {
    *p = (struct peer){.id = id, .mailbox = m, .may = may};
    strbuf_init(&p->in, peer_is_read_only(p) ? PEER_LOOKER_MESSAGE : WIRE_MAX_MESSAGE);
    strbuf_init(&p->tail, 0);
    strbuf_init(&p->head, 0);
    return mailbox_attach(m, id, peer_is_read_only(p));
}

void peer_fini(struct peer *p) {
    mailbox_detach(p->mailbox, p->id);
    if (p->mailbox->calls)
        calls_forget(p->mailbox->calls, p->id);
    peer_give_up(p);
    strbuf_fini(&p->in);
    strbuf_fini(&p->tail);
    strbuf_fini(&p->head);
}

size_t peer_bytes(const struct peer *p) {
    size_t n = p->in.cap + p->tail.cap + p->head.cap + (p->out ? sizeof *p->out + p->out->bytes->len : 0);
    for (const struct queue_item *i = p->queue.head; i; i = i->next)
        n += sizeof *i + i->bytes->len;
    return n;
}

/* ---- answers ---- */

static enum peer_verdict peer_answer(struct peer *p, struct strbuf *b) {
    struct queue_item *item = queue_item_new(queue_bytes_new(b), QUEUE_ANSWER, p->id);
    strbuf_fini(b);
    return item ? peer_accept(p, item) : PEER_CLOSE;
}

static enum peer_verdict peer_answer_error(struct peer *p, uint32_t id, enum wire_error code,
                                           const char *text) {
    struct strbuf b;
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    wire_put_error(&b, id, code, text);
    return peer_answer(p, &b);
}

static enum peer_verdict peer_answer_ok(struct peer *p, uint32_t id) {
    struct strbuf b;
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    wire_put_ok(&b, id);
    return peer_answer(p, &b);
}

/* ---- requests: one function each, found by method ---- */

struct peer_request {
    const struct wire_message *m;
    uint32_t id;
    peer_status_fn *status;
    void *arg;
};

/* Refuse the request for lack of access; the table of events gets a row, too. */
static enum peer_verdict peer_deny(struct peer *p, const struct peer_request *r, const char *why) {
    char text[REFUSALS_TEXT];
    snprintf(text, sizeof text, "'%s': %s", wire_method_name(wire_message_method(r->m)), why);
    mailbox_note_refusal(p->mailbox, p->id, -1, text);
    return peer_answer_error(p, r->id, WIRE_E_NOT_ALLOWED, why);
}

/* The sampler or a worker will answer it. */
static enum peer_verdict peer_asked(struct peer *p, const struct peer_request *r, int rc) {
    if (rc == 0)
        return PEER_OK;
    return peer_answer_error(p, r->id, WIRE_E_UNAVAILABLE, "too many requests are waiting for an answer");
}

/* Hand it to the sampler; `ask` has its arguments. */
static enum peer_verdict peer_ask_with(struct peer *p, const struct peer_request *r,
                                       struct mailbox_ask *ask) {
    ask->method = wire_message_method(r->m);
    ask->id = r->id;
    return peer_asked(p, r, mailbox_ask(p->mailbox, p->id, ask));
}

static enum peer_verdict peer_ask(struct peer *p, const struct peer_request *r) {
    struct mailbox_ask ask = {.id = r->id};
    return peer_ask_with(p, r, &ask);
}

static enum peer_verdict peer_threads(struct peer *p, const struct peer_request *r) {
    struct err e = {0};
    struct mailbox_ask ask = {.id = r->id};
    struct wire_threads *want = &ask.threads;
    if (wire_get_threads(r->m, want, &e) != 0)
        return peer_answer_error(p, r->id, WIRE_E_BAD_PARAMS, e.text);
    if (p->may < (want->repr ? WIRE_CHANGES : want->locals ? WIRE_VALUES : WIRE_READ_ONLY))
        return peer_deny(p, r, PEER_READ_ONLY);
    want->most_bytes = peer_is_read_only(p) ? MAILBOX_LOOKER_ANSWER : 0;
    return peer_ask_with(p, r, &ask);
}

static enum peer_verdict peer_hello(struct peer *p, const struct peer_request *r) {
    struct err e = {0};
    int version = 0;
    char text[128];
    if (wire_get_hello(r->m, &version, &e) != 0)
        return peer_answer_error(p, r->id, WIRE_E_BAD_PARAMS, e.text);
    if (version != WIRE_VERSION) {
        snprintf(text, sizeof text, "the agent speaks version %d of the protocol, the client version %d",
                 WIRE_VERSION, version);
        return peer_answer_error(p, r->id, WIRE_E_VERSION, text);
    }
    p->said_hello = true;
    return peer_ask(p, r);
}

static enum peer_verdict peer_subscribe(struct peer *p, const struct peer_request *r) {
    static const double fastest[] = {
        [WIRE_STREAM_THREADS] = WIRE_MAX_SNAPSHOT_HZ, [WIRE_STREAM_SAMPLES] = WIRE_MAX_SAMPLE_HZ};
    struct err e = {0};
    struct wire_subscribe s;
    if (wire_get_subscribe(r->m, &s, &e) != 0)
        return peer_answer_error(p, r->id, WIRE_E_BAD_PARAMS, e.text);
    if (s.rate_hz < WIRE_MIN_HZ)
        s.rate_hz = WIRE_MIN_HZ;
    if (s.rate_hz > fastest[s.stream])
        s.rate_hz = fastest[s.stream];
    mailbox_set_budget(p->mailbox, p->id, s.stream, s.budget_pct);
    mailbox_subscribe(p->mailbox, p->id, s.stream, s.rate_hz, s.mode);
    if (s.stream == WIRE_STREAM_SAMPLES) {
        mailbox_set_native(p->mailbox, p->id, s.native);
        mailbox_set_batch(p->mailbox, p->id, s.batch_s);
    }
    return peer_answer_ok(p, r->id);
}

static enum peer_verdict peer_unsubscribe(struct peer *p, const struct peer_request *r) {
    struct err e = {0};
    enum wire_stream stream;
    if (wire_get_unsubscribe(r->m, &stream, &e) != 0)
        return peer_answer_error(p, r->id, WIRE_E_BAD_PARAMS, e.text);
    if (stream == WIRE_STREAM_SAMPLES)
        return peer_ask(p, r);
    mailbox_subscribe(p->mailbox, p->id, stream, 0, MODEL_SAMPLING_EXACT);
    return peer_answer_ok(p, r->id);
}

static enum peer_verdict peer_config(struct peer *p, const struct peer_request *r) {
    struct err e = {0};
    struct wire_config c;
    if (wire_get_config(r->m, &c, &e) != 0)
        return peer_answer_error(p, r->id, WIRE_E_BAD_PARAMS, e.text);
    if (p->may < WIRE_OWNS && mailbox_would_allow_eval(p->mailbox, c.key, c.value))
        return peer_deny(
            p, r,
            "probing.eval is off and cannot be switched on from another machine: use the agent's own socket");
    if (mailbox_configure(p->mailbox, c.key, c.value, &e) != 0)
        return peer_answer_error(p, r->id, WIRE_E_BAD_PARAMS, e.text);
    return peer_answer_ok(p, r->id);
}

/* One at a time, so that little memory waits for a client that does not read. */
static enum peer_verdict peer_pull(struct peer *p, const struct peer_request *r) {
    struct err e = {0};
    struct mailbox_ask ask = {.method = WIRE_PULL, .id = r->id};
    if (wire_get_pull(r->m, &ask.pull, &e) != 0)
        return peer_answer_error(p, r->id, WIRE_E_BAD_PARAMS, e.text);
    const struct ring_table_def *table = ring_table_find(ask.pull.table);
    if (table && ring_table_access(table) > p->may)
        return peer_deny(p, r, PEER_WITHHELD);
    if (p->pulling)
        return peer_answer_error(p, r->id, WIRE_E_UNAVAILABLE,
                                 "the answer to the last 'pull' or 'rows' was not read yet");
    int rc = mailbox_ask(p->mailbox, p->id, &ask);
    p->pulling = rc == 0;
    return peer_asked(p, r, rc);
}

static enum peer_verdict peer_rows(struct peer *p, const struct peer_request *r) {
    struct err e = {0};
    struct wire_rows_ask want;
    if (wire_get_rows_ask(r->m, &want, &e) != 0)
        return peer_answer_error(p, r->id, WIRE_E_BAD_PARAMS, e.text);
    if (p->pulling)
        return peer_answer_error(p, r->id, WIRE_E_UNAVAILABLE,
                                 "the answer to the last 'pull' or 'rows' was not read yet");
    int rc = calls_add_rows(p->mailbox->calls, p->id, r->id, &want);
    p->pulling = rc == 0;
    return peer_asked(p, r, rc);
}

static enum peer_verdict peer_eval(struct peer *p, const struct peer_request *r) {
    struct err e = {0};
    struct wire_eval want;
    if (wire_get_eval(r->m, &want, &e) != 0)
        return peer_answer_error(p, r->id, WIRE_E_BAD_PARAMS, e.text);
    if (p->pulling)
        return peer_answer_error(p, r->id, WIRE_E_UNAVAILABLE, PEER_PULLING);
    int rc = calls_add_eval(p->mailbox->calls, p->id, r->id, &want);
    p->pulling = rc == 0;
    return peer_asked(p, r, rc);
}

static enum peer_verdict peer_debug(struct peer *p, const struct peer_request *r) {
    enum wire_method method = wire_message_method(r->m);
    struct err e = {0};
    struct wire_debug want;
    enum peer_verdict v;
    if (wire_get_debug(r->m, &want, &e) != 0) {
        v = peer_answer_error(p, r->id, WIRE_E_BAD_PARAMS, e.text);
    } else if (p->pulling) {
        v = peer_answer_error(p, r->id, WIRE_E_UNAVAILABLE, PEER_PULLING);
    } else {
        int rc = calls_add_debug(p->mailbox->calls, p->id, r->id, method, &want);
        p->pulling = rc == 0;
        v = peer_asked(p, r, rc);
    }
    wire_debug_fini(&want);
    return v;
}

static enum peer_verdict peer_interrupt(struct peer *p, const struct peer_request *r) {
    calls_interrupt(p->mailbox->calls, p->id);
    return peer_answer_ok(p, r->id);
}

static enum peer_verdict peer_listen(struct peer *p, const struct peer_request *r) {
    struct err e = {0};
    struct wire_listen want;
    struct wire_listening got = {.address = ""};
    struct strbuf b;
    if (wire_get_listen(r->m, &want, &e) != 0)
        return peer_answer_error(p, r->id, WIRE_E_BAD_PARAMS, e.text);
    if (!p->listen || p->listen(p->listen_arg, &want, &got, &e) != 0)
        return peer_answer_error(p, r->id, WIRE_E_UNAVAILABLE,
                                 p->listen ? e.text : "this agent has no listeners");
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    wire_put_listening(&b, r->id, &got);
    return peer_answer(p, &b);
}

static enum peer_verdict peer_arm(struct peer *p, const struct peer_request *r) {
    struct err e = {0};
    struct mailbox_ask ask = {.id = r->id};
    if (wire_get_arm(r->m, &ask.arm, &e) != 0 || lease_find(ask.arm.what, &e) < 0)
        return peer_answer_error(p, r->id, WIRE_E_BAD_PARAMS, e.text);
    return peer_ask_with(p, r, &ask);
}

static enum peer_verdict peer_status(struct peer *p, const struct peer_request *r) {
    struct model_status status = {0};
    struct strbuf b;
    arena_init(&status.arena, WIRE_MAX_MESSAGE);
    r->status(r->arg, &status);
    if (status.arena.failed) { /* a missing part would look like an error in the message */
        model_status_fini(&status);
        return peer_answer_error(p, r->id, WIRE_E_UNAVAILABLE, "out of memory for the status");
    }
    wire_hide_status(&status, p->may);
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    wire_put_status(&b, r->id, &status);
    model_status_fini(&status);
    return peer_answer(p, &b);
}

/* Everything that needs the GIL. 0, or -1 with the error. */
static int peer_leave(const struct mailbox *m, struct err *e) {
    if (m->worker && m->leave && m->leave(m->worker, e) != 0)
        return -1;
    if (m->worker && worker_leave(m->worker, e) != 0)
        return -1;
    return m->evaluator ? worker_leave(m->evaluator, e) : 0;
}

/* Those that had left begin again when they are needed. */
static void peer_stay(const struct mailbox *m) {
    if (m->stay)
        m->stay();
    if (m->worker)
        worker_stay(m->worker);
    if (m->evaluator)
        worker_stay(m->evaluator);
}

/* The python worker goes first: the interpreter may block it, and then the agent stays. */
static enum peer_verdict peer_eject(struct peer *p, const struct peer_request *r) {
    struct err e = {0};
    if (calls_are_evaluating(p->mailbox->calls))
        return peer_answer_error(p, r->id, WIRE_E_UNAVAILABLE,
                                 "cannot remove the agent while an eval is running; try again later");
    if (peer_leave(p->mailbox, &e) != 0) {
        peer_stay(p->mailbox);
        return peer_answer_error(p, r->id, WIRE_E_UNAVAILABLE, e.text);
    }
    enum peer_verdict v = peer_answer_ok(p, r->id);
    return v == PEER_OK ? PEER_EJECT : v;
}

static enum peer_verdict (*const peer_methods[WIRE_METHOD_COUNT])(struct peer *,
                                                                  const struct peer_request *) = {
    [WIRE_HELLO] = peer_hello,
    [WIRE_THREADS] = peer_threads,
    [WIRE_SUBSCRIBE] = peer_subscribe,
    [WIRE_UNSUBSCRIBE] = peer_unsubscribe,
    [WIRE_STATUS] = peer_status,
    [WIRE_EJECT] = peer_eject,
    [WIRE_CONFIG] = peer_config,
    [WIRE_TABLES] = peer_ask,
    [WIRE_PULL] = peer_pull,
    [WIRE_ROWS] = peer_rows,
    [WIRE_ARM] = peer_arm,
    [WIRE_DISARM] = peer_arm,
    [WIRE_EVAL] = peer_eval,
    [WIRE_COMPLETE] = peer_eval,
    [WIRE_INTERRUPT] = peer_interrupt,
    [WIRE_LISTEN] = peer_listen,
    [WIRE_DEBUG] = peer_debug,
    [WIRE_PAUSE] = peer_debug,
    [WIRE_CATCH] = peer_debug,
};

static enum peer_verdict peer_dispatch(struct peer *p, const struct peer_request *r) {
    enum wire_method method = wire_message_method(r->m);
    /* no answer or notification of a client has a meaning yet */
    if (wire_message_type(r->m) != WIRE_REQUEST)
        return PEER_OK;
    if (method >= WIRE_METHOD_COUNT)
        return peer_answer_error(p, r->id, WIRE_E_UNKNOWN_METHOD, "this agent knows no such method");
    if (!p->said_hello && method != WIRE_HELLO)
        return peer_answer_error(p, r->id, WIRE_E_BAD_PARAMS, "the first request must be hello");
    if (wire_method_access(method) > p->may)
        return peer_deny(p, r,
                         p->may >= WIRE_CHANGES ? "only the agent's own socket allows that: give the pid"
                                                : PEER_READ_ONLY);
    return peer_methods[method](p, r);
}

enum peer_verdict peer_receive(struct peer *p, const void *data, size_t len, bool last,
                               peer_status_fn *status, void *arg) {
    struct err e;
    if (strbuf_add(&p->in, data, len) != 0)
        return PEER_CLOSE;
    if (!last)
        return PEER_OK;
    struct wire_message *m = wire_parse(p->in.data, p->in.len, &e);
    if (p->in.cap > PEER_KEEP_BYTES)
        strbuf_fini(&p->in);
    strbuf_clear(&p->in);
    if (!m)
        return PEER_CLOSE;
    struct peer_request r = {.m = m, .id = wire_message_id(m), .status = status, .arg = arg};
    enum peer_verdict v = peer_dispatch(p, &r);
    wire_message_free(m);
    return v;
}

/* ---- output ---- */

/* A batch of samples is dropped: later ones need its definitions, so all are dropped, and the
 * sampler starts again there. */
static void peer_drop_samples(struct peer *p, struct queue_item *first) {
    uint64_t lost = 0;
    mailbox_rollback(p->mailbox, p->id, &first->mark);
    for (struct queue_item *i = first; i; i = queue_take_kind(&p->queue, QUEUE_SAMPLES)) {
        lost += i->mark.n_samples;
        queue_item_free(i);
    }
    p->dropped_samples += lost;
    mailbox_count_dropped(p->mailbox, lost);
}

/* The item was taken out of the queue. */
static void peer_drop_note(struct peer *p, struct queue_item *item) {
    if (item->kind == QUEUE_SAMPLES) {
        peer_drop_samples(p, item);
        return;
    }
    p->dropped_snapshots++;
    queue_item_free(item);
}

enum peer_verdict peer_accept(struct peer *p, struct queue_item *item) {
    enum mailbox_batch batch = MAILBOX_CURRENT;
    if (item->kind == QUEUE_SAMPLES)
        batch = mailbox_judge(p->mailbox, p->id, item->mark.generation);
    if (batch == MAILBOX_LOST) {
        p->dropped_samples += item->mark.n_samples;
        mailbox_count_dropped(p->mailbox, item->mark.n_samples);
    }
    if (batch != MAILBOX_CURRENT) {
        queue_item_free(item);
        return PEER_OK;
    }
    if (queue_push(&p->queue, item) != 0) {
        queue_item_free(item);
        mailbox_note_refusal(p->mailbox, p->id, -1, PEER_UNREAD);
        return PEER_CLOSE;
    }
    queue_bytes_count(item->bytes, mailbox_budget(p->mailbox, peer_is_read_only(p)));
    if (!p->waits_ns)
        p->waits_ns = clock_mono_ns();
    for (struct queue_item *old; (old = queue_overflow(&p->queue));)
        peer_drop_note(p, old);
    return PEER_OK;
}

void peer_say_bye(struct peer *p, const char *reason) {
    struct strbuf b;
    strbuf_init(&b, WIRE_MAX_MESSAGE);
    wire_put_bye(&b, reason);
    struct queue_item *item = queue_item_new(queue_bytes_new(&b), QUEUE_BYE, p->id);
    strbuf_fini(&b);
    if (item && queue_push(&p->queue, item) != 0)
        queue_item_free(item);
    else if (item && !p->waits_ns)
        p->waits_ns = clock_mono_ns();
}

bool peer_has_output(const struct peer *p) { return p->out || p->queue.head; }

/* ---- drops ---- */

bool peer_shed(struct peer *p) {
    struct queue_item *item;
    bool any = false;
    while ((item = queue_take_note(&p->queue)) != NULL) {
        any = true;
        peer_drop_note(p, item);
    }
    p->waits_ns = peer_has_output(p) ? p->waits_ns : 0;
    return any;
}

/* The outgoing message is finished. */
static void peer_forget_out(struct peer *p) {
    queue_item_free(p->out);
    p->out = NULL;
    strbuf_clear(&p->tail);
    p->chunk = p->chunks = p->at = p->end = 0;
    p->begun = false;
}

void peer_give_up(struct peer *p) {
    peer_forget_out(p);
    queue_fini(&p->queue);
    p->waits_ns = 0;
}

/* ---- sending ---- */

/* Take the next message from the queue. 1, 0 if there is none, -1 without memory. */
static int peer_load(struct peer *p) {
    struct queue_item *item = queue_pop(&p->queue);
    if (!item)
        return 0;
    p->out = item;
    strbuf_clear(&p->tail);
    if (item->open)
        wire_put_dropped(&p->tail, item->kind == QUEUE_SAMPLES ? p->dropped_samples : p->dropped_snapshots);
    p->pulling &= !item->pulled;
    if (item->looked)
        mailbox_end_snapshot(p->mailbox, p->id);
    if (p->tail.failed)
        return -1;
    p->chunks = wire_chunk_count(item->bytes->len + p->tail.len);
    p->chunked += p->chunks > 1;
    return 1;
}

/* Start its next chunk. 0, or -1 without memory. */
static int peer_begin_chunk(struct peer *p) {
    size_t total = p->out->bytes->len + p->tail.len, len;
    p->begun = true;
    p->at = 0;
    p->end = total;
    strbuf_clear(&p->head);
    if (p->chunks == 1)
        return 0;
    if (wire_put_chunk_head(&p->head, p->chunked, total, p->chunk, &p->at, &len) != 0)
        return -1;
    p->end = p->at + len;
    return 0;
}

/* Append bytes from `at` to `end` of the message and its tail. 0, or -1 without memory. */
static int peer_add(const struct peer *p, size_t at, size_t end, struct strbuf *to) {
    size_t len = p->out->bytes->len, in = end < len ? end : len;
    if (at < in)
        strbuf_add(to, p->out->bytes->text.data + at, in - at);
    if (end > len)
        strbuf_add(to, p->tail.data + (at > len ? at - len : 0), end - (at > len ? at : len));
    return to->failed ? -1 : 0;
}

int peer_next_piece(struct peer *p, size_t cap, struct strbuf *frame, bool *first, bool *last) {
    *first = !p->begun;
    if (!p->out) {
        int rc = peer_load(p);
        if (rc <= 0)
            return rc;
    }
    if (*first && (peer_begin_chunk(p) != 0 || strbuf_add(frame, p->head.data, p->head.len) != 0))
        return -1;
    size_t len = p->end - p->at < cap ? p->end - p->at : cap;
    if (peer_add(p, p->at, p->at + len, frame) != 0)
        return -1;
    p->at += len;
    *last = p->at == p->end;
    if (*last)
        p->begun = false;
    if (*last && ++p->chunk == p->chunks)
        peer_forget_out(p);
    p->waits_ns = peer_has_output(p) ? clock_mono_ns() : 0;
    return 1;
}

int peer_next_frame(struct peer *p, struct strbuf *frame) {
    bool first, last;
    return peer_next_piece(p, SIZE_MAX, frame, &first, &last);
}

int peer_next_message(struct peer *p, struct strbuf *message) {
    int rc = p->out ? 1 : peer_load(p);
    if (rc > 0)
        rc = peer_add(p, 0, p->out->bytes->len + p->tail.len, message) == 0 ? 1 : -1;
    peer_forget_out(p);
    p->waits_ns = peer_has_output(p) ? clock_mono_ns() : 0;
    return rc;
}
