/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_recorded: a session with a process that has ended, over the tables that it left; see
 * session.h and source.h.
 *
 * A thread of its own reads the tables, once. Then the loop's side answers from memory: the last
 * state on every request, the samples once, second by second; a subscriber to snapshots first
 * gets those of the earlier moments, once. The data no longer change, so streams end after their
 * first answer.
 */
#include <stdlib.h>
#include <string.h>

#include "base/work.h"
#include "client/sql/database.h"
#include "client/sql/recording.h"
#include "client/session/source.h"

#define RECORDED_SNAPSHOTS 16 /* sent in one round of the loop */
#define RECORDED_SAMPLES 8192 /* also, and the rest of their second */
#define RECORDED_STOP_S 2

/* Shared by the thread and the loop's side until the thread has ended. */
struct session_recorded {
    struct session base; /* first */
    struct target_address addr;
    struct session_handler handler;
    void *arg;
    enum session_state state;
    struct database *db; /* used by the thread */
    struct work work;
    struct loop_watch *done;
    struct loop_timer *answer; /* no request is answered from inside itself */
    struct recording past;     /* used by the thread until it is done */
    struct err error;
    bool failed;
    /* pending answers */
    bool want_snapshot, want_details, want_samples;
    bool want_reply[WIRE_METHOD_COUNT];
    struct wire_threads details;
    size_t samples_given;
    bool want_moments;    /* snapshots of earlier moments */
    size_t moments_given; /* number of them that were sent */
};

static struct session_recorded *session_recorded_of(struct session *base) {
    return (struct session_recorded *)(void *)base;
}

static void session_recorded_run(void *arg) {
    struct session_recorded *s = arg;
    s->failed =
        database_add(s->db, &s->addr, &s->error) != 0 || recording_load(&s->past, s->db, 0, &s->error) != 0;
}

/* ---- answers, on the loop ---- */

static void session_recorded_set_state(struct session_recorded *s, enum session_state state,
                                       const struct err *why) {
    s->state = state;
    if (s->handler.on_state)
        s->handler.on_state(s->arg, state, why);
}

static void session_recorded_fail(struct session_recorded *s) {
    struct err why;
    err_set(&why, ERR_FAILED, "out of memory for what is shown");
    session_recorded_set_state(s, SESSION_FAILED, &why);
}

static void session_recorded_put_snapshot(struct session_recorded *s, bool details) {
    struct model_snapshot snapshot;
    void (*fn)(void *, struct model_snapshot *) = details ? s->handler.on_details : s->handler.on_snapshot;
    int rc = recording_make_snapshot(&s->past, &snapshot);
    if (rc == 0 && details && s->details.tid)
        model_snapshot_keep(&snapshot, s->details.tid);
    if (rc == 0 && details)
        snapshot.note = "values, tasks and native frames are not kept when a process has ended";
    if (rc == 0 && fn)
        fn(s->arg, &snapshot);
    model_snapshot_fini(&snapshot);
    if (rc != 0)
        session_recorded_fail(s);
}

/* Send some of the wanted moments; true if there are more. A few at a time, so that the loop
 * stays responsive. */
static bool session_recorded_put_snapshots(struct session_recorded *s) {
    for (int i = 0; i < RECORDED_SNAPSHOTS && s->moments_given < s->past.n_moments; i++) {
        struct model_snapshot snapshot;
        int rc = recording_make_snapshot_at(&s->past, s->moments_given++, &snapshot);
        if (rc == 0 && s->handler.on_snapshot)
            s->handler.on_snapshot(s->arg, &snapshot);
        model_snapshot_fini(&snapshot);
        if (rc != 0)
            session_recorded_fail(s);
    }
    return s->state == SESSION_CONNECTED && s->moments_given < s->past.n_moments;
}

/* Send some of the samples, each once; true if there are more. */
static bool session_recorded_put_samples(struct session_recorded *s) {
    size_t until = s->samples_given + RECORDED_SAMPLES;
    while (s->state == SESSION_CONNECTED && s->samples_given < s->past.n_samples &&
           s->samples_given < until) {
        struct model_sample_batch batch;
        int rc = recording_make_batch(&s->past, &s->samples_given, &batch);
        if (rc == 0 && s->handler.on_samples)
            s->handler.on_samples(s->arg, &batch);
        model_sample_batch_fini(&batch);
        if (rc != 0)
            session_recorded_fail(s);
    }
    return s->state == SESSION_CONNECTED && s->samples_given < s->past.n_samples;
}

static void session_recorded_answer(void *arg) {
    struct session_recorded *s = arg;
    if (s->state != SESSION_CONNECTED)
        return;
    if (s->want_moments && session_recorded_put_snapshots(s)) { /* the last state follows them */
        loop_timer_set(s->answer, 0);
        return;
    }
    if (s->state != SESSION_CONNECTED)
        return;
    bool snapshot = s->want_snapshot, details = s->want_details;
    s->want_snapshot = s->want_details = false;
    if (snapshot)
        session_recorded_put_snapshot(s, false);
    if (details)
        session_recorded_put_snapshot(s, true);
    /* the answer to the subscription follows them */
    if (s->want_samples && session_recorded_put_samples(s)) {
        loop_timer_set(s->answer, 0);
        return;
    }
    s->want_samples = false;
    for (int m = 0; m < WIRE_METHOD_COUNT; m++) {
        bool wanted = s->want_reply[m];
        s->want_reply[m] = false;
        if (wanted && s->handler.on_reply)
            s->handler.on_reply(s->arg, (enum wire_method)m, NULL);
    }
}

static void session_recorded_on_done(void *arg) {
    struct session_recorded *s = arg;
    struct model_target target;
    if (!work_finish(&s->work))
        return;
    loop_unwatch(s->done);
    s->done = NULL;
    if (s->failed) {
        session_recorded_set_state(s, SESSION_FAILED, &s->error);
        return;
    }
    if (recording_make_target(&s->past, s->addr.why, &target) != 0) {
        model_target_fini(&target);
        session_recorded_fail(s);
        return;
    }
    if (s->handler.on_target)
        s->handler.on_target(s->arg, &target);
    model_target_fini(&target);
    session_recorded_set_state(s, SESSION_CONNECTED, NULL);
    loop_timer_set(s->answer, 0);
}

/* ---- requests ---- */

static int session_recorded_ask(struct session_recorded *s, struct err *e) {
    if (s->state == SESSION_FAILED)
        return err_set(e, ERR_FAILED, "not connected");
    loop_timer_set(s->answer, 0);
    return 0;
}

static int session_recorded_request(struct session *base, enum wire_method m, struct err *e) {
    struct session_recorded *s = session_recorded_of(base);
    if (m != WIRE_THREADS)
        return err_set(e, ERR_LOST, "the process has ended: '%s' needs a running one", wire_method_name(m));
    s->want_snapshot = true;
    return session_recorded_ask(s, e);
}

static int session_recorded_ask_details(struct session *base, const struct wire_threads *want,
                                        struct err *e) {
    struct session_recorded *s = session_recorded_of(base);
    s->details = *want;
    s->want_details = true;
    return session_recorded_ask(s, e);
}

static int session_recorded_subscribe(struct session *base, enum wire_stream stream, double rate_hz,
                                      struct err *e) {
    struct session_recorded *s = session_recorded_of(base);
    (void)rate_hz;
    if (stream == WIRE_STREAM_SAMPLES)
        s->want_samples = true;
    else
        s->want_snapshot = s->want_moments = true;
    s->want_reply[WIRE_SUBSCRIBE] = true;
    return session_recorded_ask(s, e);
}

static int session_recorded_unsubscribe(struct session *base, enum wire_stream stream, struct err *e) {
    struct session_recorded *s = session_recorded_of(base);
    (void)stream;
    s->want_reply[WIRE_UNSUBSCRIBE] = true;
    return session_recorded_ask(s, e);
}

static int session_recorded_set_native(struct session *base, bool native, struct err *e) {
    (void)base;
    return native ? err_set(e, ERR_ATTACH, "the process has ended, and native frames are not kept") : 0;
}

static void session_recorded_set_budget(struct session *base, double budget_pct) {
    (void)base;
    (void)budget_pct;
}

static enum session_state session_recorded_get_state(const struct session *base) {
    return ((const struct session_recorded *)(const void *)base)->state;
}

static double session_recorded_retry_in_s(const struct session *base) {
    (void)base;
    return 0;
}

static void session_recorded_free(struct session *base) {
    struct session_recorded *s = session_recorded_of(base);
    loop_unwatch(s->done);
    loop_timer_free(s->answer);
    if (s->work.is_running)
        database_cancel(s->db);
    if (!work_stop(&s->work, RECORDED_STOP_S))
        return;
    recording_fini(&s->past);
    database_close(s->db);
    free(s);
}

static const struct source session_recorded_source = {
    .free = session_recorded_free,
    .get_state = session_recorded_get_state,
    .retry_in_s = session_recorded_retry_in_s,
    .request = session_recorded_request,
    .ask_details = session_recorded_ask_details,
    .set_budget = session_recorded_set_budget,
    .set_native = session_recorded_set_native,
    .subscribe = session_recorded_subscribe,
    .unsubscribe = session_recorded_unsubscribe,
};

struct session *session_recorded_new(struct loop *l, const struct target_address *addr,
                                     const struct session_handler *h, void *arg, struct err *e) {
    struct session_recorded *s = calloc(1, sizeof *s);
    if (!s) {
        err_set(e, ERR_FAILED, "out of memory for a session");
        return NULL;
    }
    s->base.source = &session_recorded_source;
    s->addr = *addr;
    s->handler = *h;
    s->arg = arg;
    s->db = database_open(e);
    if (s->db)
        s->answer = loop_timer_new(l, session_recorded_answer, s, e);
    int rc = work_init(&s->work);
    if (s->answer && rc == 0)
        s->done = loop_watch_fd(l, s->work.fd, session_recorded_on_done, s, e);
    if (s->done)
        rc = work_start(&s->work, session_recorded_run, s);
    if (s->done && rc == 0)
        return &s->base;
    if (rc != 0)
        err_set_errno(e, ERR_FAILED, rc, "cannot start a thread");
    session_recorded_free(&s->base);
    return NULL;
}
