/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_peer: see fuzz_peer.h. */
#include "support/fuzz_peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/debug/debugger_state.h"
#include "agent/server/server_status.h"
#include "agent/python/worker.h"
#include "base/address.h"
#include "base/clock.h"
#include "store/ring/ring_tables.h"

/* What a thread has raised, as a status tells of it: not for who may only look. */
#define FUZZ_PEER_SECRET "SECRET_OF_A_VALUE"

static void fuzz_peer_fail(const char *what) {
    fprintf(stderr, "%s\n", what);
    abort();
}

static void fuzz_peer_status(void *arg, struct model_status *out) {
    struct fuzz_peer *f = arg;
    static struct cost_meter meter;
    struct server_facts facts = {
        .mailbox = &f->mailbox, .meter = &meter, .endpoint = "/tmp/probing-0/1.sock", .clients = 1};
    server_status_fill(&facts, out);
}

/* As the server does it, but that no socket is made. */
static int fuzz_peer_listen(void *arg, const struct wire_listen *want, struct wire_listening *out,
                            struct err *e) {
    struct fuzz_peer *f = arg;
    struct address a;
    if (f->peer.may < WIRE_OWNS)
        fuzz_peer_fail("a door was opened for somebody who may not");
    if (strcmp(want->address, "off") != 0) {
        if (address_parse(&a, want->address, e) != 0)
            return -1;
        address_format(&a, out->address, sizeof out->address);
    }
    return 0;
}

static void fuzz_peer_wake(void *arg) { (void)arg; }

/* One that has nothing to do, and so no thread; it is that of all clients. */
static struct worker *fuzz_peer_worker(void) {
    static struct worker *worker;
    struct err e;
    if (!worker && !(worker = worker_new(fuzz_peer_wake, NULL, false, &e)))
        fuzz_peer_fail("no worker could be made");
    return worker;
}

void fuzz_peer_open(struct fuzz_peer *f, uint8_t how) {
    if (mailbox_init(&f->mailbox) != 0)
        fuzz_peer_fail("no mailbox could be made");
    f->mailbox.worker = f->mailbox.evaluator = fuzz_peer_worker();
    calls_init(&f->calls, &f->mailbox, NULL, NULL, NULL);
    f->mailbox.calls = &f->calls;
    if (peer_init(&f->peer, 1, &f->mailbox, (enum wire_access)(WIRE_READ_ONLY + how % WIRE_OWNS)) != 0)
        fuzz_peer_fail("no client could be made");
    f->peer.said_hello = how & 0x80;
    debugger_state_note(DEBUGGER_STATE_CATCH, "kept", "", FUZZ_PEER_SECRET, -1, false);
    if (how & 0x40)
        (void)mailbox_configure(&f->mailbox, "probing.eval", "off", NULL);
    f->peer.listen = fuzz_peer_listen;
    f->peer.listen_arg = f;
    f->config_changes = f->mailbox.config_changes;
    f->eval_was_on = f->mailbox.config.values[CONFIG_EVAL] != 0;
}

/* What waits for the sampler must be what this client may have; then it is taken, so that more can be asked. */
static void fuzz_peer_take(struct fuzz_peer *f) {
    struct mailbox_slot *slot = &f->mailbox.slots[0];
    enum wire_access may = f->peer.may;
    for (size_t i = 0; i < slot->n_asks; i++) {
        const struct mailbox_ask *ask = &slot->asks[i];
        if (wire_method_access(ask->method) > may)
            fuzz_peer_fail("a request was taken that the client may not make");
        if (ask->method == WIRE_THREADS &&
            ((ask->threads.locals && may < WIRE_VALUES) || (ask->threads.repr && may < WIRE_CHANGES)))
            fuzz_peer_fail("values of frames were asked for by somebody who may only look");
        const struct ring_table_def *table =
            ask->method == WIRE_PULL ? ring_table_find(ask->pull.table) : NULL;
        if (table && ring_table_access(table) > may)
            fuzz_peer_fail("rows were asked for with columns that are not for who asks");
        if (ask->method == WIRE_THREADS && may < WIRE_CHANGES && ask->threads.most_bytes == 0)
            fuzz_peer_fail("an answer to somebody who may only look has no bound");
    }
    for (size_t i = 0; i < CALLS_MAX; i++) {
        struct call *call = &f->calls.all[i];
        if (call->peer && (wire_method_access(call->method) > may || call->begun || call->reading))
            fuzz_peer_fail("a request was taken for the job that the client may not make");
        if (call->peer && call->stopped && may < WIRE_CHANGES)
            fuzz_peer_fail("code was interrupted by somebody who may not");
        call_fini(call);
    }
    if (f->mailbox.config_changes != f->config_changes && may < WIRE_CHANGES)
        fuzz_peer_fail("something was changed by somebody who may not");
    if (!f->eval_was_on && f->mailbox.config.values[CONFIG_EVAL] != 0 && may < WIRE_OWNS)
        fuzz_peer_fail("eval was switched on from afar");
    f->eval_was_on = f->mailbox.config.values[CONFIG_EVAL] != 0;
    slot->n_asks = 0;
    f->peer.pulling = false;
}

/* What the agent answers is a message. */
static void fuzz_peer_read(struct fuzz_peer *f) {
    struct err e;
    struct strbuf frame;
    strbuf_init(&frame, 0);
    while (peer_next_frame(&f->peer, &frame) == 1) {
        struct wire_message *m = wire_parse(frame.data, frame.len, &e);
        if (!m)
            fuzz_peer_fail("own message refused");
        if (f->peer.may < WIRE_VALUES &&
            memmem(frame.data, frame.len, FUZZ_PEER_SECRET, strlen(FUZZ_PEER_SECRET)))
            fuzz_peer_fail("a value was told to somebody who may only look");
        wire_message_free(m);
        strbuf_clear(&frame);
    }
    strbuf_fini(&frame);
}

int fuzz_peer_say(struct fuzz_peer *f, const void *data, size_t len) {
    enum peer_verdict v = peer_receive(&f->peer, data, len, true, fuzz_peer_status, f);
    if (v == PEER_EJECT && f->peer.may < WIRE_CHANGES)
        fuzz_peer_fail("the agent was ended by somebody who may not");
    fuzz_peer_take(f);
    fuzz_peer_read(f);
    return v == PEER_OK ? 0 : -1;
}

void fuzz_peer_close(struct fuzz_peer *f) {
    peer_fini(&f->peer);
    if (f->mailbox.rooms[0].used || f->mailbox.rooms[1].used)
        fuzz_peer_fail("what waited is not given back");
    calls_fini(&f->calls);
    mailbox_fini(&f->mailbox);
}
