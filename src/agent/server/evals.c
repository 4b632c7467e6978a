/* SPDX-License-Identifier: Apache-2.0 */
/* evals: see evals.h. */
#include "agent/server/evals.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/debug/debugger_state.h"
#include "agent/debug/pause.h"
#include "agent/python/gil_late.h"
#include "agent/tables/record.h"
#include "base/clock.h"
#include "base/text.h"
#include "store/ring/ring_tables.h"

/* while the worker runs it: the worker wakes the server when it ends */
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

static void evals_note(struct evals *v, const struct call *call, const char *kind, const char *text) {
    if (v->mailbox->record && !(call->method == WIRE_EVAL && call->want.code->complete))
        record_event(v->mailbox->record, kind, call->uid, call->pid, text);
}

static void evals_answer(struct evals *v) {
    struct wire_evaluated what;
    struct wire_debugger how;
    bool timed_out = v->late && !v->stopped && eval_run_interrupts(v->run) > 0;
    if (v->call && v->call->method == WIRE_EVAL) {
        eval_run_get(v->run, &what);
        what.timed_out = timed_out;
        call_answer_evaluated(v->call, &what);
    } else if (v->call) {
        eval_run_get(v->run, &what);
        debugger_get(v->debugger, &how);
        how.raised = what.type.s;
        how.timed_out = timed_out;
        call_answer_debugger(v->call, &how);
    }
    v->call = NULL;
}

/* It was interrupted and has not ended. */
static void evals_answer_unended(struct evals *v) {
    const struct wire_evaluated what = {
        .duration_ms = v->timeout_s * 1e3, .output = {.s = ""}, .timed_out = !v->stopped, .unended = true};
    const struct wire_debugger how = {
        .timed_out = !v->stopped, .unended = true, .left_s = NAN, .limit_s = NAN};
    if (v->call && v->call->method == WIRE_EVAL)
        call_answer_evaluated(v->call, &what);
    else if (v->call)
        call_answer_debugger(v->call, &how);
    v->call = NULL;
}

void evals_explain(struct call *call, const struct pystack_gate *gate) {
    char why[2 * WORKER_WHY_MAX];
    if (gate && gate->finalizing)
        snprintf(why, sizeof why, "the interpreter is ending" EVALS_NOTHING);
    else if (gil_late_is_owed())
        snprintf(why, sizeof why, GIL_LATE_WHY EVALS_NOTHING);
    else if (gate && gate->held && gate->holder_tid)
        snprintf(why, sizeof why, "could not acquire the GIL within %g s: thread %lld holds it" EVALS_NOTHING,
                 call->limit_s, (long long)gate->holder_tid);
    else if (call->asked_main)
        snprintf(why, sizeof why,
                 "the main thread ran no Python within %g s: it waits, or is in C code" EVALS_NOTHING,
                 call->limit_s);
    else
        snprintf(why, sizeof why, "could not acquire the GIL within %g s" EVALS_NOTHING, call->limit_s);
    call_answer_why(call, why);
}

/* ---- starting a run ---- */

static bool evals_allowed(struct evals *v) {
    pthread_mutex_lock(&v->mailbox->lock);
    bool on = v->mailbox->config.values[CONFIG_EVAL] != 0;
    pthread_mutex_unlock(&v->mailbox->lock);
    return on;
}

static struct eval_run *evals_new_run(struct evals *v, const struct call *call,
                                      const struct model_snapshot *found, struct err *e) {
    bool code = call->method == WIRE_EVAL;
    bool kept = code ? call->want.code->keep : call->want.debug->leased;
    uint32_t owner = kept && evals_kept_add(&v->kept, call->peer) ? call->peer : 0;
    v->debugger = NULL;
    if (code)
        return eval_run_new(call->want.code, found, owner, e);
    v->debugger = debugger_new(call->method, call->want.debug, owner);
    if (v->debugger)
        return eval_run_new_call(debugger_get_call(v->debugger), v->timeout_s, e);
    err_set(e, ERR_FAILED, "no memory for a debugger");
    return NULL;
}

/* `text`: a description for the table of events. */
static int evals_start(struct evals *v, const struct call *call, const struct model_snapshot *found,
                       const char *text, struct err *e) {
    if (!evals_allowed(v))
        return err_set(e, ERR_FAILED, "code is not run in this job: probing.eval is off");
    if (v->run)
        return err_set(e, ERR_FAILED,
                       v->interrupted ? "busy: an earlier eval is still running (interrupted, but not ended)"
                                      : "busy: another eval is running; try again");
    uint64_t now = clock_mono_ns();
    v->timeout_s = call->method == WIRE_EVAL ? call->want.code->timeout_s : call->want.debug->timeout_s;
    v->deadline_ns = now + (uint64_t)(v->timeout_s * 1e9);
    v->run = v->worker ? evals_new_run(v, call, found, e) : NULL;
    v->job = v->run ? eval_run_new_job(v->run, v->deadline_ns) : NULL;
    if (v->run && !v->job)
        err_set(e, ERR_FAILED, "no memory for the code");
    /* first, because the code may end the process immediately */
    if (v->job)
        evals_note(v, call, RING_EVENT_EVAL, text);
    if (v->job && call->method != WIRE_EVAL)
        debugger_state_set_asker(call->uid, call->pid);
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

void evals_begin(struct evals *v, struct call *call, const struct model_snapshot *found) {
    struct err e = {0};
    char text[16 * EVALS_TEXT_CHARS];
    if (call->method == WIRE_EVAL)
        evals_describe(call->want.code, text, sizeof text);
    else
        debugger_describe(call->method, call->want.debug, text, sizeof text);
    if (evals_start(v, call, found, text, &e) != 0) {
        evals_note(v, call, RING_EVENT_EVAL_REFUSED, text);
        call_answer_error(call, &e);
        return;
    }
    v->call = call;
    v->main = call->method == WIRE_EVAL && call->want.code->main;
    v->late = v->interrupted = v->stopped = false;
    v->look_ns = clock_mono_ns() + EVALS_POLL_SOON_NS;
}

/* ---- watching a run ---- */

static void evals_release_job(struct evals *v) {
    worker_release(v->worker, v->job);
    v->job = NULL;
}

/* Answer that it has not begun, and never will. */
static void evals_answer_withdrawn(struct evals *v) {
    struct call *call = v->call;
    v->call = NULL;
    if (!call)
        return;
    call->limit_s = v->timeout_s;
    call->asked_main = v->main && !v->job;
    if (v->stopped)
        call_answer_why(call, "it was interrupted before it began" EVALS_NOTHING);
    else if (call_read(call, MAILBOX_READ_GIL, 0) != 0)
        evals_explain(call, NULL);
}

static void evals_poll_waiting(struct evals *v, bool late) {
    char why[2 * WORKER_WHY_MAX];
    enum worker_end end = v->job ? worker_get_end(v->worker, v->job) : WORKER_DONE;
    bool failed = end == WORKER_FAILED;
    if (v->job && end == WORKER_DONE)
        evals_release_job(v); /* it has asked the main thread */
    if ((v->call && !late && !failed) || !eval_run_withdraw(v->run))
        return;
    if (failed && v->call) {
        snprintf(why, sizeof why, "%s" EVALS_NOTHING, v->job->why);
        call_answer_why(v->call, why);
        v->call = NULL;
    }
    evals_answer_withdrawn(v);
    evals_release_job(v);
}

static void evals_poll_begun(struct evals *v, bool late, uint64_t now) {
    v->late = v->late || late;
    if ((!v->call || late) && !v->interrupted) {
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

void evals_forget(struct evals *v, const struct call *call) {
    if (v->call == call)
        v->call = NULL;
}

static void evals_poll_run(struct evals *v, uint64_t now) {
    if (v->call && v->call->stopped && !v->stopped) {
        v->stopped = true;
        v->deadline_ns = now;
    }
    bool soon = v->main || v->interrupted || eval_run_state(v->run) != EVAL_BEGUN;
    v->look_ns = now + (soon ? EVALS_POLL_SOON_NS : EVALS_POLL_NS);
    if (eval_run_state(v->run) == EVAL_WAITING)
        evals_poll_waiting(v, now >= v->deadline_ns);
    if (eval_run_state(v->run) == EVAL_BEGUN)
        evals_poll_begun(v, now >= v->deadline_ns, now);
    bool over = eval_run_is_left(v->run) && evals_job_is_over(v);
    /* only now, because the client that gets it may send the next request immediately */
    if (eval_run_state(v->run) == EVAL_DONE &&
        (over || (v->late && now - v->deadline_ns >= EVALS_PATIENCE_NS)))
        evals_answer(v);
    if (!over)
        return;
    eval_run_unref(v->run);
    v->run = NULL;
}

void evals_poll(struct evals *v) {
    uint64_t now = clock_mono_ns();
    char note[PAUSE_NOTE_MAX];
    evals_kept_poll(&v->kept, v->worker, v->mailbox, now);
    if (v->mailbox->record && pause_take_note(note, sizeof note))
        record_event(v->mailbox->record, RING_EVENT_UNCAUGHT, -1, -1, note);
    if (v->run)
        evals_poll_run(v, now);
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
