/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call: see call.h. Each function runs the loop until the awaited event, the session's end or
 * the deadline.
 */
#include "client/session/call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "client/loop.h"
#include "client/output.h"

#define CALL_READ_S 600.0 /* for a large recording on a slow disk */
/* nobody watches the samples arrive, and each batch costs the job something */
#define CALL_BATCH_S 1.0
#define CALL_SNAPSHOT_S (SESSION_SNAPSHOT_S + 2)
#define CALL_NATIVE_S 60 /* reading the symbols of large libraries takes time */
#define CALL_STOP_POLL_US (20 * 1000ULL)
#define CALL_GRACE_US (500 * 1000ULL) /* time for the reason of a broken connection to arrive */

enum call_await {
    CALL_NOTHING = 0,
    CALL_CONNECTED,
    CALL_SNAPSHOT,
    CALL_STATUS,
    CALL_REPLY,
    CALL_TIME,
    CALL_EVALUATED,
    CALL_DEBUGGER,
    CALL_LISTENING,
    CALL_ANSWER
};

struct call {
    struct loop *loop;
    struct session *session;
    struct loop_timer *deadline;
    struct model_target target;
    enum call_await await;
    bool arrived;
    bool failed;
    bool refused;      /* nothing was done, and the connection is good; `error` has the reason */
    bool broken;       /* the connection broke; `error` has the reason */
    bool disconnected; /* it broke, or the session has ended */
    bool in_time;      /* the deadline is a normal end, not a failure */
    bool recorded;     /* there is no agent: the answer takes as long as reading the tables */
    double limit_s;    /* of the present wait */
    double reply_s;    /* how long the last samples may take to arrive; 0: as any answer */
    struct err error;
    struct model_snapshot *snapshot; /* the place for the answer */
    struct model_status *status;
    struct strbuf *keep; /* for the texts of an evaluation's result */
    struct wire_evaluated *what;
    struct wire_debugger *debugger;
    struct wire_listening *listening;
    struct wire_message *answer;
    int (*on_batch)(void *arg, struct model_sample_batch *batch);
    void *batch_arg;
    struct loop_timer *look; /* calls `stop`; NULL if there is none */
    bool (*stop)(void *arg);
    void *stop_arg;
};

static void call_arrive(struct call *c, enum call_await what) {
    if (c->await != what)
        return;
    c->arrived = true;
    loop_stop(c->loop);
}

static void call_fail(struct call *c, const struct err *why) {
    if (!c->failed && why != &c->error)
        c->error = *why;
    c->failed = true;
    loop_stop(c->loop);
}

/* A reconnect does not help a caller that waits for one answer: the answer was lost with the
 * connection. But a process that ends closes its sockets before it is gone, so the call waits
 * for the reason. */
static void call_on_state(void *arg, enum session_state state, const struct err *why) {
    struct call *c = arg;
    c->disconnected |= state == SESSION_LOST || state == SESSION_FAILED || state == SESSION_RECONNECTING;
    if (state == SESSION_CONNECTED && !c->broken)
        call_arrive(c, CALL_CONNECTED);
    else if (state == SESSION_LOST || state == SESSION_FAILED)
        call_fail(c, why);
    else if (state == SESSION_RECONNECTING && !c->broken) {
        c->broken = true;
        c->error = *why;
        loop_timer_set(c->deadline, CALL_GRACE_US);
    }
}

static void call_on_target(void *arg, struct model_target *target) {
    struct call *c = arg;
    model_target_fini(&c->target);
    c->target = *target;
    memset(target, 0, sizeof *target);
}

static void call_on_snapshot(void *arg, struct model_snapshot *snapshot) {
    struct call *c = arg;
    if (c->await != CALL_SNAPSHOT || c->arrived)
        return;
    *c->snapshot = *snapshot;
    memset(snapshot, 0, sizeof *snapshot);
    call_arrive(c, CALL_SNAPSHOT);
}

static void call_on_status(void *arg, struct model_status *status) {
    struct call *c = arg;
    if (c->await != CALL_STATUS || c->arrived)
        return;
    *c->status = *status;
    memset(status, 0, sizeof *status);
    call_arrive(c, CALL_STATUS);
}

static void call_on_evaluated(void *arg, const struct wire_evaluated *what) {
    struct call *c = arg;
    if (c->await != CALL_EVALUATED || c->arrived)
        return;
    struct wire_text *texts[] = {&c->what->result, &c->what->output, &c->what->type, &c->what->message,
                                 &c->what->traceback};
    *c->what = *what;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        strbuf_add(c->keep, texts[i]->s, texts[i]->len);
    size_t at = 0;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; at += texts[i++]->len)
        if (texts[i]->s)
            texts[i]->s = strbuf_str(c->keep) + at;
    if (c->keep->failed) {
        struct err why;
        err_set(&why, ERR_FAILED, "out of memory for what the code gave");
        call_fail(c, &why);
        return;
    }
    call_arrive(c, CALL_EVALUATED);
}

static void call_on_debugger(void *arg, enum wire_method method, struct wire_debugger *what) {
    struct call *c = arg;
    (void)method;
    if (c->await != CALL_DEBUGGER || c->arrived)
        return;
    *c->debugger = *what;
    memset(what, 0, sizeof *what);
    call_arrive(c, CALL_DEBUGGER);
}

static void call_on_listening(void *arg, const struct wire_listening *what) {
    struct call *c = arg;
    if (c->await != CALL_LISTENING || c->arrived)
        return;
    *c->listening = *what;
    call_arrive(c, CALL_LISTENING);
}

static void call_on_answer(void *arg, struct wire_message **answer) {
    struct call *c = arg;
    if (c->await != CALL_ANSWER || c->arrived)
        return;
    c->answer = *answer;
    *answer = NULL;
    call_arrive(c, CALL_ANSWER);
}

/* A refusal of these leaves the call as it was. */
static bool call_outlives_refusal(const struct call *c, enum wire_method method) {
    if (c->await == CALL_EVALUATED)
        return method == WIRE_EVAL || method == WIRE_COMPLETE;
    return c->await == CALL_ANSWER;
}

static void call_on_reply(void *arg, enum wire_method method, const struct err *error) {
    struct call *c = arg;
    if (error && call_outlives_refusal(c, method)) {
        c->error = *error;
        c->refused = true;
        loop_stop(c->loop);
    } else if (error)
        call_fail(c, error);
    else
        call_arrive(c, CALL_REPLY);
}

static void call_on_samples(void *arg, struct model_sample_batch *batch) {
    struct call *c = arg;
    if (c->on_batch && c->on_batch(c->batch_arg, batch) != 0) {
        struct err why;
        err_set(&why, ERR_FAILED, "too many different stacks: sample for fewer seconds");
        call_fail(c, &why);
    }
}

static void call_on_note(void *arg, const char *line) {
    char clean[1024];
    (void)arg;
    text_sanitize(clean, sizeof clean, line);
    output_say("%s: %s\n", program_invocation_short_name, clean);
}

static const struct session_handler call_handler = {
    .on_state = call_on_state,
    .on_target = call_on_target,
    .on_snapshot = call_on_snapshot,
    .on_details = call_on_snapshot,
    .on_samples = call_on_samples,
    .on_status = call_on_status,
    .on_note = call_on_note,
    .on_evaluated = call_on_evaluated,
    .on_debugger = call_on_debugger,
    .on_listening = call_on_listening,
    .on_answer = call_on_answer,
    .on_reply = call_on_reply,
};

static void call_on_deadline(void *arg) {
    struct call *c = arg;
    struct err why;
    if (c->broken) {
        call_fail(c, &c->error);
        return;
    }
    if (c->in_time) {
        call_arrive(c, CALL_TIME);
        return;
    }
    if (c->recorded)
        err_set(&why, ERR_FAILED, "reading the recording timed out after %.0f s", CALL_READ_S);
    else
        err_set(&why, ERR_FAILED, "no answer from the agent within %.0f s", c->limit_s);
    call_fail(c, &why);
}

static void call_on_poll(void *arg) {
    struct call *c = arg;
    struct err why;
    if (c->stop && c->stop(c->stop_arg)) {
        err_set(&why, ERR_FAILED, "interrupted");
        call_fail(c, &why);
    } else if (c->stop) {
        loop_timer_set(c->look, CALL_STOP_POLL_US);
    }
}

static int call_wait(struct call *c, enum call_await what, double timeout_s, struct err *e) {
    c->await = what;
    c->arrived = c->refused = false;
    c->in_time = what == CALL_TIME;
    if (c->recorded && !c->in_time)
        timeout_s = CALL_READ_S;
    c->limit_s = timeout_s;
    loop_timer_set(c->deadline, c->broken ? CALL_GRACE_US : (uint64_t)(timeout_s * 1e6));
    if (c->look)
        loop_timer_set(c->look, CALL_STOP_POLL_US);
    if (!c->failed)
        loop_run(c->loop);
    if (c->look)
        loop_timer_cancel(c->look);
    loop_timer_cancel(c->deadline);
    c->await = CALL_NOTHING;
    if (c->arrived)
        return 0;
    if (!c->failed && !c->refused)
        return err_set(e, ERR_FAILED, "the event loop ended before there was an answer");
    if (e)
        *e = c->error;
    return -1;
}

/* The error for a request that was not accepted: the session's own error, if it has ended. */
static int call_not_taken(const struct call *c, struct err *e) {
    if (c->failed && e)
        *e = c->error;
    return -1;
}

struct call *call_open(const struct target_address *addr, struct err *e) {
    return call_open_stoppable(addr, NULL, NULL, e);
}

struct call *call_open_stoppable(const struct target_address *addr, bool (*stop)(void *arg), void *arg,
                                 struct err *e) {
    struct call *c = calloc(1, sizeof *c);
    if (!c) {
        err_set(e, ERR_FAILED, "out of memory for a connection");
        return NULL;
    }
    c->recorded = addr->recorded[0] != '\0';
    c->loop = loop_new(e);
    if (!c->loop)
        goto fail;
    c->deadline = loop_timer_new(c->loop, call_on_deadline, c, e);
    if (!c->deadline)
        goto fail;
    if (stop)
        call_set_stop(c, stop, arg);
    c->session = session_new(c->loop, addr, &call_handler, c, e);
    double limit_s = CALL_TIMEOUT_MS / 1000.0 + (addr->tunnel > 0 ? SESSION_TUNNEL_S : 0);
    if (!c->session || call_wait(c, CALL_CONNECTED, limit_s, e) != 0)
        goto fail;
    return c;
fail:
    call_close(c);
    return NULL;
}

void call_close(struct call *c) {
    if (!c)
        return;
    session_free(c->session);
    loop_timer_free(c->look);
    loop_timer_free(c->deadline);
    loop_free(c->loop);
    model_target_fini(&c->target);
    free(c);
}

void call_set_stop(struct call *c, bool (*stop)(void *arg), void *arg) {
    c->stop = stop;
    c->stop_arg = arg;
    if (!c->look)
        c->look = loop_timer_new(c->loop, call_on_poll, c, NULL);
}

const struct model_target *call_get_target(const struct call *c) { return &c->target; }

int call_snapshot(struct call *c, struct model_snapshot *out, struct err *e) {
    memset(out, 0, sizeof *out);
    c->snapshot = out;
    if (session_request(c->session, WIRE_THREADS, e) != 0)
        return call_not_taken(c, e);
    return call_wait(c, CALL_SNAPSHOT, CALL_SNAPSHOT_S, e);
}

/* Take a first snapshot, and wait until it is time for the second. */
static int call_take_first(struct call *c, unsigned interval_ms, struct model_snapshot *out, struct err *e) {
    if (call_snapshot(c, out, e) != 0)
        return -1;
    model_snapshot_fini(out);
    return call_wait(c, CALL_TIME, interval_ms / 1000.0, e);
}

int call_snapshot_measured(struct call *c, unsigned interval_ms, struct model_snapshot *out, struct err *e) {
    return call_take_first(c, interval_ms, out, e) == 0 ? call_snapshot(c, out, e) : -1;
}

int call_details(struct call *c, const struct wire_threads *want, struct model_snapshot *out, struct err *e) {
    memset(out, 0, sizeof *out);
    c->snapshot = out;
    if (session_ask_details(c->session, want, e) != 0)
        return -1;
    return call_wait(c, CALL_SNAPSHOT, want->native ? CALL_NATIVE_S : CALL_SNAPSHOT_S, e);
}

int call_details_measured(struct call *c, const struct wire_threads *want, unsigned interval_ms,
                          struct model_snapshot *out, struct err *e) {
    return call_take_first(c, interval_ms, out, e) == 0 ? call_details(c, want, out, e) : -1;
}

int call_set_native(struct call *c, bool native, struct err *e) {
    c->reply_s = native ? CALL_NATIVE_S : 0;
    return session_set_native(c->session, native, e);
}

int call_status(struct call *c, struct model_status *out, struct err *e) {
    memset(out, 0, sizeof *out);
    c->status = out;
    if (session_request(c->session, WIRE_STATUS, e) != 0)
        return call_not_taken(c, e);
    return call_wait(c, CALL_STATUS, CALL_TIMEOUT_MS / 1000.0, e);
}

int call_configure(struct call *c, const struct wire_config *config, struct err *e) {
    if (session_configure(c->session, config, e) != 0)
        return call_not_taken(c, e);
    return call_wait(c, CALL_REPLY, CALL_TIMEOUT_MS / 1000.0, e);
}

int call_arm(struct call *c, const struct wire_arm *want, struct err *e) {
    if (session_arm(c->session, want, e) != 0)
        return call_not_taken(c, e);
    return call_wait(c, CALL_REPLY, SESSION_ARM_S + CALL_TIMEOUT_MS / 1000.0, e);
}

int call_disarm(struct call *c, const struct wire_arm *want, struct err *e) {
    if (session_disarm(c->session, want, e) != 0)
        return call_not_taken(c, e);
    return call_wait(c, CALL_REPLY, CALL_TIMEOUT_MS / 1000.0, e);
}

int call_rest(struct call *c, double seconds, struct err *e) { return call_wait(c, CALL_TIME, seconds, e); }

int call_eval(struct call *c, const struct wire_eval *want, struct strbuf *keep, struct wire_evaluated *out,
              struct err *e) {
    c->keep = keep;
    c->what = out;
    if (session_eval(c->session, want, e) != 0)
        return call_not_taken(c, e);
    return call_wait(c, CALL_EVALUATED, want->timeout_s + CALL_TIMEOUT_MS / 1000.0, e);
}

int call_debug(struct call *c, enum wire_method method, const struct wire_debug *want,
               struct wire_debugger *out, struct err *e) {
    *out = (struct wire_debugger){.on = false};
    c->debugger = out;
    if (session_debug(c->session, method, want, e) != 0)
        return call_not_taken(c, e);
    return call_wait(c, CALL_DEBUGGER, want->timeout_s + CALL_TIMEOUT_MS / 1000.0, e);
}

bool call_is_lost(const struct call *c) { return c->failed || c->broken; }

bool call_is_disconnected(const struct call *c) { return c->disconnected; }

int call_interrupt(struct call *c, struct err *e) { return session_interrupt(c->session, e); }

int call_listen(struct call *c, const struct wire_listen *want, struct wire_listening *out, struct err *e) {
    c->listening = out;
    if (session_listen(c->session, want, e) != 0)
        return call_not_taken(c, e);
    return call_wait(c, CALL_LISTENING, CALL_TIMEOUT_MS / 1000.0, e);
}

struct wire_message *call_ask(struct call *c, enum wire_method method, const void *params, struct err *e) {
    /* The session has more patience than this wait, whose end the caller is to learn of. */
    double limit_s = CALL_TIMEOUT_MS / 1000.0;
    c->answer = NULL;
    if (session_ask(c->session, method, params, 2 * limit_s, e) != 0)
        call_not_taken(c, e);
    else
        call_wait(c, CALL_ANSWER, limit_s, e);
    return c->answer;
}

int call_eject(struct call *c, struct err *e) {
    if (session_request(c->session, WIRE_EJECT, e) != 0)
        return call_not_taken(c, e);
    return call_wait(c, CALL_REPLY, CALL_TIMEOUT_MS / 1000.0, e);
}

void call_set_sampling(struct call *c, enum model_sampling mode) { session_set_sampling(c->session, mode); }

void call_set_budget(struct call *c, double budget_pct) { session_set_budget(c->session, budget_pct); }

int call_sample(struct call *c, double rate_hz, double duration_s,
                int (*fn)(void *arg, struct model_sample_batch *batch), void *arg, double *elapsed_s,
                struct err *e) {
    *elapsed_s = 0;
    /* Before the request: the first batch may follow directly after the answer. */
    c->on_batch = fn;
    c->batch_arg = arg;
    session_set_batch(c->session, CALL_BATCH_S);
    int rc = session_subscribe(c->session, WIRE_STREAM_SAMPLES, rate_hz, e);
    rc = rc == 0 ? 0 : call_not_taken(c, e);
    if (rc == 0)
        rc = call_wait(c, CALL_REPLY, CALL_TIMEOUT_MS / 1000.0, e);
    uint64_t began = clock_mono_ns();
    if (rc == 0) {
        rc = call_wait(c, CALL_TIME, duration_s, e);
        *elapsed_s = (double)(clock_mono_ns() - began) / 1e9;
    }
    if (rc == 0)
        rc = session_unsubscribe(c->session, WIRE_STREAM_SAMPLES, e) == 0 ? 0 : call_not_taken(c, e);
    if (rc == 0)
        rc = call_wait(c, CALL_REPLY, c->reply_s > 0 ? c->reply_s : CALL_TIMEOUT_MS / 1000.0, e);
    c->on_batch = NULL;
    return rc;
}
