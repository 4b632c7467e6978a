/* SPDX-License-Identifier: Apache-2.0 */
/* evals: see evals.h. */
#include "agent/server/evals.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/debug/debugger_state.h"
#include "agent/debug/pause.h"
#include "agent/python/gil_late.h"
#include "base/clock.h"
#include "base/text.h"
#include "pystack/gate.h"

/* while the worker runs it: the worker wakes the sampler when it ends */
#define EVALS_POLL_NS (50 * CLOCK_NS_PER_MS)
#define EVALS_POLL_SOON_NS (5 * CLOCK_NS_PER_MS) /* while others run it, or it is about to end */
/* with a thread that interrupts and cannot end */
#define EVALS_PATIENCE_NS (3 * CLOCK_NS_PER_S / 2)
/* how long an interrupted run may take to end before its client hears that it has not ended */
#define EVALS_GRACE_NS CLOCK_NS_PER_S
#define EVALS_TEXT_CHARS 80 /* of the code, in the table of events */
#define EVALS_NOTHING "; nothing was run, and nothing will be"

/* ---- texts for events and errors ---- */

/* The first characters of the code, on one line. */
static void evals_describe(const struct wire_eval *w, char *out, size_t cap) {
    char raw[4 * EVALS_TEXT_CHARS + 1];
    size_t n = w->code_len < sizeof raw - 1 ? w->code_len : sizeof raw - 1, chars = 0, at = 0;
    memcpy(raw, w->code, n);
    raw[n] = '\0';
    text_sanitize(out, cap, raw);
    for (size_t len = strlen(out); at < len && chars < EVALS_TEXT_CHARS; chars++) {
        uint32_t cp;
        at += text_utf8_next(out + at, len - at, &cp);
    }
    out[at] = '\0';
}

static void evals_note(struct evals *v, const struct evals_ask *ask, const char *kind, const char *text) {
    if (v->record && !ask->want->code.complete)
        record_event(v->record, kind, ask->uid, ask->pid, text);
}

static void evals_answer_error(struct evals *v, const char *why) {
    struct err e;
    err_set(&e, ERR_FAILED, "%s", why);
    if (v->peer)
        v->answer(v->mailbox, v->peer, v->id, NULL, &e);
    v->peer = 0;
}

static void evals_answer(struct evals *v) {
    struct wire_evaluated what;
    struct wire_debugger how;
    bool timed_out = v->late && !v->stopped && eval_run_interrupts(v->run) > 0;
    if (v->peer && v->method == WIRE_EVAL) {
        eval_run_get(v->run, &what);
        what.timed_out = timed_out;
        v->answer(v->mailbox, v->peer, v->id, &what, NULL);
    } else if (v->peer) {
        eval_run_get(v->run, &what);
        debugger_get(v->debugger, &how);
        how.raised = what.type.s;
        how.timed_out = timed_out;
        v->answer_debugger(v->mailbox, v->peer, v->id, v->method, &how);
    }
    v->peer = 0;
}

/* It was interrupted and has not ended. */
static void evals_answer_unended(struct evals *v) {
    const struct wire_evaluated what = {
        .duration_ms = v->timeout_s * 1e3, .output = {.s = ""}, .timed_out = !v->stopped, .unended = true};
    const struct wire_debugger how = {
        .timed_out = !v->stopped, .unended = true, .left_s = NAN, .limit_s = NAN};
    if (v->peer && v->method == WIRE_EVAL)
        v->answer(v->mailbox, v->peer, v->id, &what, NULL);
    else if (v->peer)
        v->answer_debugger(v->mailbox, v->peer, v->id, v->method, &how);
    v->peer = 0;
}

/* Explain why the run has not started in time. */
static void evals_explain(struct evals *v, struct pystack *ps, char *why, size_t cap) {
    struct pystack_gate gate = {.held = false};
    bool looked = ps && pystack_gate_read(ps, &gate) == 0;
    if (v->stopped)
        snprintf(why, cap, "it was interrupted before it began" EVALS_NOTHING);
    else if (looked && gate.finalizing)
        snprintf(why, cap, "the interpreter is ending" EVALS_NOTHING);
    else if (gil_late_is_owed())
        snprintf(why, cap, GIL_LATE_WHY EVALS_NOTHING);
    else if (gate.held && gate.holder_tid)
        snprintf(why, cap, "the GIL was not had within %g s: thread %lld holds it" EVALS_NOTHING,
                 v->timeout_s, (long long)gate.holder_tid);
    else if (v->main && !v->job)
        snprintf(why, cap,
                 "the main thread ran no Python within %g s: it waits, or is in C code" EVALS_NOTHING,
                 v->timeout_s);
    else
        snprintf(why, cap, "the GIL was not had within %g s" EVALS_NOTHING, v->timeout_s);
}

/* ---- starting a run ---- */

static void evals_set_busy(struct evals *v, bool busy) {
    __atomic_store_n(&v->mailbox->evaluating, busy, __ATOMIC_RELEASE);
}

static bool evals_allowed(struct evals *v) {
    pthread_mutex_lock(&v->mailbox->lock);
    bool on = v->mailbox->config.values[CONFIG_EVAL] != 0;
    pthread_mutex_unlock(&v->mailbox->lock);
    return on;
}

static struct eval_run *evals_new_run(struct evals *v, const struct evals_ask *ask,
                                      const struct model_snapshot *found, struct err *e) {
    struct mailbox_eval *want = ask->want;
    bool kept = want->method == WIRE_EVAL ? want->code.keep : want->debug.leased;
    uint32_t owner = kept && evals_kept_add(&v->kept, ask->peer) ? ask->peer : 0;
    if (want->method == WIRE_EVAL)
        return eval_run_new(&want->code, found, owner, e);
    v->debugger = debugger_new(want->method, &want->debug, owner);
    if (v->debugger)
        return eval_run_new_call(debugger_get_call(v->debugger), v->timeout_s, e);
    err_set(e, ERR_FAILED, "no memory for a debugger");
    return NULL;
}

/* `text`: a description for the table of events. */
static int evals_start(struct evals *v, const struct evals_ask *ask, const struct model_snapshot *found,
                       const char *text, struct err *e) {
    if (!evals_allowed(v))
        return err_set(e, ERR_FAILED, "code is not run in this job: probing.eval is off");
    if (v->run)
        return err_set(e, ERR_FAILED,
                       v->interrupted
                           ? "code that was run before has not ended yet, though it was interrupted"
                           : "other code is being run, and only one piece is at a time: try again");
    uint64_t now = clock_mono_ns();
    v->timeout_s = ask->want->method == WIRE_EVAL ? ask->want->code.timeout_s : ask->want->debug.timeout_s;
    v->deadline_ns = now + (uint64_t)(v->timeout_s * 1e9);
    v->run = v->worker ? evals_new_run(v, ask, found, e) : NULL;
    v->job = v->run ? eval_run_new_job(v->run, v->deadline_ns) : NULL;
    if (v->run && !v->job)
        err_set(e, ERR_FAILED, "no memory for the code");
    /* first, because the code may end the process immediately */
    if (v->job)
        evals_note(v, ask, RING_EVENT_EVAL, text);
    if (v->job && worker_submit(v->worker, v->job, e) != 0) {
        v->job->fini(v->job);
        v->job = NULL;
    }
    if (v->job)
        return 0;
    eval_run_unref(v->run);
    v->run = NULL;
    return -1;
}

void evals_begin(struct evals *v, const struct evals_ask *ask, const struct model_snapshot *found) {
    struct err e = {0};
    char text[16 * EVALS_TEXT_CHARS];
    if (ask->want->method == WIRE_EVAL)
        evals_describe(&ask->want->code, text, sizeof text);
    else
        debugger_describe(ask->want->method, &ask->want->debug, text, sizeof text);
    if (evals_start(v, ask, found, text, &e) != 0) {
        evals_note(v, ask, RING_EVENT_EVAL_REFUSED, text);
        v->answer(v->mailbox, ask->peer, ask->id, NULL, &e);
        return;
    }
    if (ask->want->method != WIRE_EVAL)
        debugger_state_set_asker(ask->uid, ask->pid);
    v->peer = ask->peer;
    v->id = ask->id;
    v->method = ask->want->method;
    v->main = ask->want->code.main;
    v->late = v->interrupted = v->stopped = false;
    v->look_ns = clock_mono_ns() + EVALS_POLL_SOON_NS;
    evals_set_busy(v, true);
}

/* ---- watching a run ---- */

static void evals_release_job(struct evals *v) {
    worker_release(v->worker, v->job);
    v->job = NULL;
}

static void evals_poll_waiting(struct evals *v, struct pystack *ps, bool gone, bool late) {
    char why[2 * WORKER_WHY_MAX];
    enum worker_end end = v->job ? worker_get_end(v->worker, v->job) : WORKER_DONE;
    bool failed = end == WORKER_FAILED;
    if (v->job && end == WORKER_DONE)
        evals_release_job(v); /* it has asked the main thread */
    if ((!gone && !late && !failed) || !eval_run_withdraw(v->run))
        return;
    if (failed)
        snprintf(why, sizeof why, "%s" EVALS_NOTHING, v->job->why);
    else
        evals_explain(v, ps, why, sizeof why);
    evals_answer_error(v, why);
    evals_release_job(v);
}

static void evals_poll_begun(struct evals *v, bool gone, bool late, uint64_t now) {
    v->late = v->late || late;
    if ((gone || late) && !v->interrupted) {
        v->interrupted = eval_run_interrupt(v->run) == 0;
        v->interrupted_ns = now;
    }
    if (late && now - v->deadline_ns >= EVALS_GRACE_NS)
        evals_answer_unended(v);
}

/* True if the worker has finished with the job. */
static bool evals_job_is_over(struct evals *v) {
    if (v->job && worker_get_end(v->worker, v->job) != WORKER_PENDING)
        evals_release_job(v);
    return !v->job;
}

void evals_poll(struct evals *v, struct pystack *ps) {
    uint64_t now = clock_mono_ns();
    char note[PAUSE_NOTE_MAX];
    evals_kept_poll(&v->kept, v->worker, v->mailbox, now);
    if (v->record && pause_take_note(note, sizeof note))
        record_event(v->record, RING_EVENT_UNCAUGHT, -1, -1, note);
    if (!v->run)
        return;
    if (v->peer && !v->stopped && mailbox_take_interrupt(v->mailbox, v->peer)) {
        v->stopped = true;
        v->deadline_ns = now;
    }
    bool soon = v->main || v->interrupted || eval_run_state(v->run) != EVAL_BEGUN;
    v->look_ns = now + (soon ? EVALS_POLL_SOON_NS : EVALS_POLL_NS);
    bool gone = !v->peer || !mailbox_has(v->mailbox, v->peer);
    if (eval_run_state(v->run) == EVAL_WAITING)
        evals_poll_waiting(v, ps, gone, now >= v->deadline_ns);
    if (eval_run_state(v->run) == EVAL_BEGUN)
        evals_poll_begun(v, gone, now >= v->deadline_ns, now);
    bool over = eval_run_is_left(v->run) && evals_job_is_over(v);
    /* only now, because the client that gets it may send the next request immediately */
    if (eval_run_state(v->run) == EVAL_DONE &&
        (over || (v->late && now - v->deadline_ns >= EVALS_PATIENCE_NS)))
        evals_answer(v);
    if (!over)
        return;
    eval_run_unref(v->run);
    v->run = NULL;
    evals_set_busy(v, false);
}

uint64_t evals_next_ns(const struct evals *v) {
    uint64_t kept_ns = v->kept.look_ns ? v->kept.look_ns : UINT64_MAX;
    if (!v->run)
        return kept_ns;
    uint64_t next = v->deadline_ns < v->look_ns && !v->late ? v->deadline_ns : v->look_ns;
    return next < kept_ns ? next : kept_ns;
}

void evals_fini(struct evals *v) {
    evals_kept_fini(&v->kept, v->worker);
    if (!v->run)
        return;
    eval_run_withdraw(v->run);
    evals_release_job(v);
    eval_run_unref(v->run);
    v->run = NULL;
}
