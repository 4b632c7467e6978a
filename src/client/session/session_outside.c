/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_outside: a session with a target that is read from outside; see session.h and
 * source.h.
 *
 * The results of the reader's thread arrive through its descriptor. There is no connection that
 * could break: the session is connected once the interpreter is found, and over when the target
 * ends. Runs on the loop's thread.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/session/outside.h"
#include "client/session/outside_python.h"
#include "client/session/source.h"

struct session_outside {
    struct session base; /* first */
    struct target_address addr;
    struct session_handler handler;
    void *arg;
    enum session_state state;
    struct outside *reader; /* NULL when it is over */
    struct loop_watch *results, *end_watch;
    int pidfd;
};

static struct session_outside *session_outside_of(struct session *base) {
    return (struct session_outside *)(void *)base;
}

static bool session_outside_is_over(const struct session_outside *s) {
    return s->state == SESSION_LOST || s->state == SESSION_FAILED;
}

static void session_outside_set_state(struct session_outside *s, enum session_state state,
                                      const struct err *why) {
    if (s->state == state || session_outside_is_over(s))
        return;
    s->state = state;
    if (s->handler.on_state)
        s->handler.on_state(s->arg, state, why);
}

static void session_outside_handle(struct session_outside *s, struct outside_event *ev) {
    const struct session_handler *h = &s->handler;
    switch (ev->kind) {
    case OUTSIDE_ATTACHED:
    case OUTSIDE_CHANGED:
        if (h->on_target)
            h->on_target(s->arg, &ev->target);
        session_outside_set_state(s, SESSION_CONNECTED, NULL);
        return;
    case OUTSIDE_DETAILS:
        if (ev->snapshot.native_note && h->on_note)
            h->on_note(s->arg, ev->snapshot.native_note);
        if (h->on_details)
            h->on_details(s->arg, &ev->snapshot);
        return;
    case OUTSIDE_SNAPSHOT:
        if (h->on_snapshot)
            h->on_snapshot(s->arg, &ev->snapshot);
        return;
    case OUTSIDE_SAMPLES:
        if (h->on_samples)
            h->on_samples(s->arg, &ev->batch);
        return;
    case OUTSIDE_REPLY:
        if (h->on_reply)
            h->on_reply(s->arg, ev->method, ev->failed ? &ev->error : NULL);
        return;
    case OUTSIDE_GONE:
        session_outside_set_state(s, ev->error.code == ERR_LOST ? SESSION_LOST : SESSION_FAILED, &ev->error);
        return;
    }
}

static void session_outside_on_results(void *arg) {
    struct session_outside *s = arg;
    for (struct outside_event *ev = outside_take(s->reader); ev;) {
        struct outside_event *next = ev->next;
        if (!session_outside_is_over(s))
            session_outside_handle(s, ev);
        outside_event_free(ev);
        ev = next;
    }
}

static void session_outside_on_end(void *arg) {
    struct session_outside *s = arg;
    struct err why;
    loop_unwatch(s->end_watch);
    s->end_watch = NULL;
    session_outside_on_results(s); /* results from before its end */
    err_set(&why, ERR_LOST, "process %d has ended", (int)s->addr.pid);
    session_outside_set_state(s, SESSION_LOST, &why);
}

static int session_outside_check(const struct session_outside *s, struct err *e) {
    return session_outside_is_over(s) ? err_set(e, ERR_FAILED, "not connected") : 0;
}

static int session_outside_request(struct session *base, enum wire_method m, struct err *e) {
    struct session_outside *s = session_outside_of(base);
    if (session_outside_check(s, e) != 0)
        return -1;
    if (m != WIRE_THREADS)
        return err_set(e, ERR_FAILED, "process %d is read from outside: '%s' needs an agent",
                       (int)s->addr.pid, wire_method_name(m));
    return outside_ask_snapshot(s->reader, e);
}

static int session_outside_ask_details(struct session *base, const struct wire_threads *want, struct err *e) {
    struct session_outside *s = session_outside_of(base);
    if (session_outside_check(s, e) != 0)
        return -1;
    if (want->native && !s->addr.block)
        return err_set(
            e, ERR_ATTACH,
            "process %d is read from outside, where the native frames of a thread are known only while "
            "it is stopped: add --no-inject --block",
            (int)s->addr.pid);
    return outside_ask_details(s->reader, want, e);
}

static int session_outside_set_native(struct session *base, bool native, struct err *e) {
    struct session_outside *s = session_outside_of(base);
    if (!native)
        return 0;
    return err_set(e, ERR_ATTACH,
                   "process %d is read from outside: samples with native frames need an agent in it",
                   (int)s->addr.pid);
}

static int session_outside_subscribe(struct session *base, enum wire_stream stream, double rate_hz,
                                     struct err *e) {
    struct session_outside *s = session_outside_of(base);
    return session_outside_check(s, e) == 0 ? outside_ask_stream(s->reader, stream, rate_hz, e) : -1;
}

static int session_outside_unsubscribe(struct session *base, enum wire_stream stream, struct err *e) {
    return session_outside_subscribe(base, stream, 0, e);
}

static enum session_state session_outside_get_state(const struct session *base) {
    return ((const struct session_outside *)(const void *)base)->state;
}

static double session_outside_retry_in_s(const struct session *base) {
    (void)base;
    return 0;
}

static void session_outside_free(struct session *base) {
    struct session_outside *s = session_outside_of(base);
    loop_unwatch(s->results);
    loop_unwatch(s->end_watch);
    outside_stop(s->reader);
    if (s->pidfd >= 0)
        close(s->pidfd);
    free(s);
}

static void session_outside_set_budget(struct session *base, double budget_pct) {
    struct session_outside *s = session_outside_of(base);
    if (s->reader)
        outside_set_budget(s->reader, budget_pct);
}

static const struct source session_outside_source = {
    .free = session_outside_free,
    .get_state = session_outside_get_state,
    .retry_in_s = session_outside_retry_in_s,
    .request = session_outside_request,
    .ask_details = session_outside_ask_details,
    .set_budget = session_outside_set_budget,
    .set_native = session_outside_set_native,
    .subscribe = session_outside_subscribe,
    .unsubscribe = session_outside_unsubscribe,
};

struct session *session_outside_with(struct loop *l, const struct target_address *addr,
                                     const struct outside_reader *reader, void *reader_arg,
                                     const struct session_handler *h, void *arg, struct err *e) {
    struct session_outside *s = calloc(1, sizeof *s);
    if (!s) {
        err_set(e, ERR_FAILED, "out of memory for a session");
        reader->close(reader_arg);
        return NULL;
    }
    s->base.source = &session_outside_source;
    s->addr = *addr;
    s->handler = *h;
    s->arg = arg;
    s->pidfd = -1;
    s->reader = outside_start(reader, reader_arg, e);
    if (!s->reader)
        reader->close(reader_arg);
    else
        s->results = loop_watch_fd(l, outside_fd(s->reader), session_outside_on_results, s, e);
    if (!s->results ||
        source_watch_end(l, addr->pid, session_outside_on_end, s, &s->pidfd, &s->end_watch, e) != 0) {
        session_outside_free(&s->base);
        return NULL;
    }
    return &s->base;
}

struct session *session_outside_new(struct loop *l, const struct target_address *addr,
                                    const struct session_handler *h, void *arg, struct err *e) {
    void *python = outside_python_new(addr, e);
    return python ? session_outside_with(l, addr, &outside_python_reader, python, h, arg, e) : NULL;
}
