/* SPDX-License-Identifier: Apache-2.0 */
/* session_native: see session_native.h. */
#include "client/session/session_native.h"

static void session_native_refuse(struct session_native *n) {
    struct err why;
    (void)err_set(&why, ERR_FAILED, "too many answers wait for the names of native frames");
    if (n->handler->on_reply)
        n->handler->on_reply(n->arg, WIRE_THREADS, &why);
}

static void session_native_handle(struct session_native *n, struct native_work *work) {
    const struct session_handler *h = n->handler;
    const char *note = work->kind == NATIVE_WORK_SNAPSHOT ? work->snapshot.native_note
                       : work->kind == NATIVE_WORK_BATCH  ? work->batch.native_note
                                                          : NULL;
    if (note && h->on_note)
        h->on_note(n->arg, note);
    switch (work->kind) {
    case NATIVE_WORK_SNAPSHOT:
        if (h->on_details)
            h->on_details(n->arg, &work->snapshot);
        return;
    case NATIVE_WORK_BATCH:
        if (!n->wanted)
            return;
        n->dropped += work->failed ? work->batch.n_samples : 0;
        work->batch.dropped += n->dropped;
        if (h->on_samples && !work->failed)
            h->on_samples(n->arg, &work->batch);
        return;
    case NATIVE_WORK_REPLY:
        if (h->on_reply)
            h->on_reply(n->arg, work->method, NULL);
        return;
    }
}

static void session_native_on_results(void *arg) {
    struct session_native *n = arg;
    for (struct native_work *work = native_worker_take(n->worker); work;) {
        struct native_work *next = work->next;
        session_native_handle(n, work);
        native_work_free(work);
        work = next;
    }
}

int session_native_start(struct session_native *n, struct err *e) {
    if (n->worker)
        return 0;
    n->worker = native_worker_start(n->pid, e);
    if (!n->worker)
        return -1;
    n->watch = loop_watch_fd(n->loop, native_worker_fd(n->worker), session_native_on_results, n, e);
    if (n->watch)
        return 0;
    session_native_stop(n);
    return -1;
}

void session_native_stop(struct session_native *n) {
    loop_unwatch(n->watch);
    native_worker_stop(n->worker);
    n->watch = NULL;
    n->worker = NULL;
}

int session_native_follow(struct session_native *n, bool wanted, struct err *e) {
    n->wanted = wanted && session_native_start(n, e) == 0;
    return n->wanted == wanted ? 0 : -1;
}

void session_native_snapshot(struct session_native *n, struct model_snapshot *s) {
    if (!n->worker || native_worker_put_snapshot(n->worker, s) != 0)
        session_native_refuse(n);
}

void session_native_batch(struct session_native *n, struct model_sample_batch *b) {
    size_t samples = b->n_samples;
    if (!n->worker || native_worker_put_batch(n->worker, b) != 0)
        n->dropped += samples;
}

void session_native_reply(struct session_native *n, enum wire_method method) {
    if (n->worker && native_worker_put_reply(n->worker, method) == 0)
        return;
    if (n->handler->on_reply)
        n->handler->on_reply(n->arg, method, NULL);
}

void session_native_forget(struct session_native *n) {
    n->dropped = 0;
    if (n->worker)
        native_worker_forget(n->worker);
}
