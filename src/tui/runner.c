/* SPDX-License-Identifier: Apache-2.0 */
/* runner: see runner.h. */
#include "tui/runner.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tui/runner_internal.h"
#include "tui/runner_repl.h"
#include "tui/runner_signals.h"
#include "tui/runner_proc_stats.h"
#include "tui/term/term.h"

#define RUNNER_FRAME_US 33000ULL  /* least time between a painting and one for new data */
#define RUNNER_JOIN_US 300000ULL  /* and one for what comes again and again beside snapshots */
#define RUNNER_ANSWER_US 14000ULL /* and one for a key */
#define RUNNER_OPEN_US 200000ULL  /* a target that says nothing for so long: show that we wait */
#define RUNNER_TICK_US 1000000ULL /* ages and countdowns */
#define RUNNER_RETRY_US 20000ULL  /* a terminal that takes nothing: first, and longest, time to wait */
#define RUNNER_RETRY_MAX_US 500000ULL

static void runner_stop(struct runner *r) {
    r->stopping = true;
    loop_stop(r->loop);
}

static void runner_fail(struct runner *r, const struct err *why) {
    r->error = *why;
    r->failed = true;
    runner_stop(r);
}

void runner_set_time(struct runner *r) {
    app_set_time(r->app, (double)clock_mono_ns() / 1e9, clock_epoch_s());
}

/* ---- painting ---- */

/* Paint after a while, or sooner if that was already wanted. */
static void runner_paint_in(struct runner *r, uint64_t delay_us) {
    uint64_t due_ns = clock_mono_ns() + delay_us * CLOCK_NS_PER_US;
    if (!r->term || (r->paint_due_ns && r->paint_due_ns <= due_ns))
        return;
    r->paint_due_ns = due_ns;
    loop_timer_set(r->paint, delay_us ? delay_us : 1);
}

/* Paint if something changed: at once when the last frame is long enough ago. */
static void runner_paint_after(struct runner *r, uint64_t pause_us) {
    if (!r->app->dirty || r->retry_us)
        return;
    uint64_t since_us = (clock_mono_ns() - r->painted_ns) / CLOCK_NS_PER_US;
    runner_paint_in(r, since_us >= pause_us ? 0 : pause_us - since_us);
}

void runner_want_paint(struct runner *r) {
    runner_source_apply(&r->source);
    runner_paint_after(r, RUNNER_FRAME_US);
}

static void runner_on_paint(void *arg) {
    struct runner *r = arg;
    int rows, cols;
    r->paint_due_ns = 0;
    if (!r->term || r->stopping || runner_row_actions_is_editing(&r->hands))
        return;
    if (!term_flush(r->term)) {
        r->retry_us = r->retry_us ? r->retry_us * 2 : RUNNER_RETRY_US;
        if (r->retry_us > RUNNER_RETRY_MAX_US)
            r->retry_us = RUNNER_RETRY_MAX_US;
        runner_paint_in(r, r->retry_us);
        return;
    }
    r->retry_us = 0;
    if (!r->app->dirty)
        return;
    runner_set_time(r);
    term_size(r->term, &rows, &cols);
    if ((rows != r->grid.rows || cols != r->grid.cols) && grid_resize(&r->grid, rows, cols) != 0)
        return;
    app_draw(r->app, &r->grid);
    (void)term_paint(r->term, &r->grid, r->app->cursor_row, r->app->cursor_col);
    r->painted_ns = clock_mono_ns();
    if (!term_flush(r->term)) {
        r->retry_us = RUNNER_RETRY_US;
        runner_paint_in(r, r->retry_us);
    }
    if (app_needs_tick(r->app))
        loop_timer_set(r->tick, RUNNER_TICK_US);
}

/* A key was pressed: paint at once, without a turn of the loop, when the last frame is long enough ago. */
static void runner_answer(struct runner *r) {
    bool is_due = (clock_mono_ns() - r->painted_ns) / CLOCK_NS_PER_US >= RUNNER_ANSWER_US;
    if (!r->app->dirty || r->retry_us || !is_due) {
        runner_paint_after(r, RUNNER_ANSWER_US);
        return;
    }
    loop_timer_cancel(r->paint);
    runner_on_paint(r);
}

static void runner_on_tick(void *arg) {
    struct runner *r = arg;
    runner_set_time(r);
    if (app_needs_tick(r->app))
        r->app->dirty = true;
    app_tick(r->app);
    runner_proc_stats_poll(&r->vitals, r->app, r->session);
    runner_query_apply(&r->query);
    runner_want_paint(r);
}

/* What screens want to know, of tables and of the agent. */
static void runner_apply_questions(struct runner *r) {
    runner_query_apply(&r->query);
    runner_repl_apply(r->app, r->session);
}

static void runner_on_answer(void *arg) {
    struct runner *r = arg;
    runner_set_time(r);
    runner_want_paint(r);
}

/* What was typed ahead of the answer may be a question. */
static void runner_on_tables(void *arg) {
    runner_on_answer(arg);
    runner_apply_questions(arg);
}

/* Something came that the picture of a moment ago is not wrong without: it is painted with the next snapshot, or soon. */
static void runner_paint_with_next(struct runner *r) {
    runner_source_apply(&r->source);
    runner_paint_after(r, RUNNER_JOIN_US);
}

static void runner_on_followed(void *arg) {
    struct runner *r = arg;
    runner_set_time(r);
    runner_paint_with_next(r);
}

/* ---- session ---- */

static void runner_on_input(void *arg);

void runner_open_term(struct runner *r) {
    struct err e;
    if (r->term || r->stopping)
        return;
    loop_timer_cancel(r->open);
    r->term = runner_theme_open(&r->looks, &r->config->term, &e);
    if (!r->term) {
        runner_fail(r, &e);
        return;
    }
    r->hands.term = r->term;
    r->input = loop_watch_fd(r->loop, r->config->term.in_fd, runner_on_input, r, &e);
    if (!r->input)
        runner_fail(r, &e);
    r->app->dirty = true;
    runner_want_paint(r);
}

/* Another program has the terminal, or (`given` false) it is ours again. */
static void runner_on_terminal(void *arg, bool given) {
    struct runner *r = arg;
    struct err e;
    if (given) {
        loop_unwatch(r->input);
        r->input = NULL;
        return;
    }
    r->input = loop_watch_fd(r->loop, r->config->term.in_fd, runner_on_input, r, &e);
    if (!r->input)
        runner_fail(r, &e);
    runner_set_time(r);
    r->app->dirty = true;
    runner_want_paint(r);
}

static void runner_on_open(void *arg) { runner_open_term(arg); }

static void runner_on_state(void *arg, enum session_state state, const struct err *why) {
    struct runner *r = arg;
    bool is_over = state == SESSION_LOST || state == SESSION_FAILED;
    /* Nothing was ever shown: what the user typed led nowhere, and a line says so. */
    if (is_over && why && !r->app->data.received && r->config->n_targets == 1 && !r->moved) {
        runner_fail(r, why);
        return;
    }
    if (state == SESSION_LOST)
        runner_query_end_target(&r->query);
    runner_set_time(r);
    app_set_state(r->app, state, why, r->session ? session_retry_in_s(r->session) : 0);
    runner_want_paint(r);
}

static void runner_on_target(void *arg, struct model_target *target) {
    struct runner *r = arg;
    runner_set_time(r);
    app_take_target(r->app, target);
    runner_want_paint(r);
}

/* Have samples come while the app wants them, and only then; `again`: with all definitions anew. */
void runner_follow_samples(struct runner *r, bool again) {
    struct err e;
    bool wanted = app_wants_samples(r->app);
    if (!r->session || (wanted == r->sampling && r->app->native == r->native && !again))
        return;
    if (r->app->native != r->native && session_set_native(r->session, r->app->native, &e) != 0) {
        app_message(r->app, true, "%s", e.text);
        r->app->native = r->native;
    }
    r->native = r->app->native;
    if (r->sampling)
        (void)session_unsubscribe(r->session, WIRE_STREAM_SAMPLES, NULL);
    if (wanted && session_subscribe(r->session, WIRE_STREAM_SAMPLES, APP_SAMPLE_HZ, &e) != 0)
        app_message(r->app, true, "%s", e.text);
    r->sampling = wanted;
}

/* What the panes with variables and tasks show. */
static void runner_ask_details(struct runner *r) {
    struct err e;
    struct wire_threads want = r->app->requests.details;
    r->app->requests.details.tid = 0;
    if (want.tid <= 0 || !r->session || session_ask_details(r->session, &want, &e) == 0)
        return;
    app_message(r->app, true, "%s", e.text);
    if (want.native) {
        r->app->data.native_refused = true;
        r->app->dirty = true;
    }
}

static void runner_on_snapshot(void *arg, struct model_snapshot *snapshot) {
    struct runner *r = arg;
    runner_set_time(r);
    app_take_snapshot(r->app, snapshot);
    runner_proc_stats_poll(&r->vitals, r->app, r->session);
    runner_ask_details(r);
    runner_query_apply(&r->query); /* tables that screens show, when they are due */
    runner_follow_samples(r, false);
    runner_open_term(r);
    runner_want_paint(r);
    uint64_t late_us = (uint64_t)(app_delay_s(r->app) * 2.1e6);
    loop_timer_set(r->tick, late_us > RUNNER_TICK_US ? late_us : RUNNER_TICK_US);
}

static void runner_on_samples(void *arg, struct model_sample_batch *batch) {
    struct runner *r = arg;
    bool is_first = !r->app->data.tally;
    runner_set_time(r);
    app_take_samples(r->app, batch);
    bool again = r->app->requests.again;
    r->app->requests.again = false;
    runner_follow_samples(r, again);
    if (is_first || again)
        runner_want_paint(r);
    else
        runner_paint_with_next(r);
}

static void runner_on_note(void *arg, const char *line) {
    struct runner *r = arg;
    runner_set_time(r);
    log_add(r->app->log, r->app->epoch_s, LOG_LEVEL_WARN, "%s", line);
    runner_want_paint(r);
}

static void runner_on_details(void *arg, struct model_snapshot *snapshot) {
    struct runner *r = arg;
    runner_set_time(r);
    app_take_locals(r->app, snapshot);
    runner_want_paint(r);
}

/* Set what the app wants to be set in the agent. */
static void runner_configure(struct runner *r) {
    struct app_watch *w = &r->app->watch;
    struct wire_config c = {.key = ""};
    struct err e;
    if (!w->key[0] || !r->session)
        return;
    (void)snprintf(c.key, sizeof c.key, "%s", w->key);
    (void)snprintf(c.value, sizeof c.value, "%s", w->value);
    w->key[0] = '\0';
    if (session_configure(r->session, &c, &e) != 0)
        app_message(r->app, true, "%s", e.text);
}

/* Have something armed for us, or no longer. */
static void runner_arm(struct runner *r, const struct app_requests *w) {
    struct err e;
    (void)err_set(&e, ERR_FAILED, "not connected");
    int rc = !r->session ? -1
             : w->disarm ? session_disarm(r->session, &w->arm, &e)
                         : session_arm(r->session, &w->arm, &e);
    if (rc == 0)
        return;
    app_arm_refused(r->app, &e);
    app_message(r->app, true, "%s", e.text);
}

static void runner_on_status(void *arg, struct model_status *status) {
    struct runner *r = arg;
    runner_set_time(r);
    app_take_status(r->app, status);
    runner_configure(r);
    runner_want_paint(r);
}

static void runner_on_evaluated(void *arg, const struct wire_evaluated *what) {
    struct runner *r = arg;
    runner_set_time(r);
    app_repl_take(r->app, what);
    runner_apply_questions(r);
    runner_want_paint(r);
}

static void runner_on_reply(void *arg, enum wire_method method, const struct err *error) {
    struct runner *r = arg;
    if (error && (method == WIRE_EVAL || method == WIRE_COMPLETE)) {
        runner_set_time(r);
        app_repl_refused(r->app, error);
        runner_apply_questions(r);
        runner_want_paint(r);
        return;
    }
    if (error && method == WIRE_ARM)
        app_arm_refused(r->app, error);
    if (error && method != WIRE_STATUS) /* nobody asked for that one */
        app_message(r->app, true, "%s", error->text);
    runner_want_paint(r);
}

void runner_subscribe(struct runner *r) {
    struct err e;
    if (r->session && session_subscribe(r->session, WIRE_STREAM_THREADS, 1 / app_delay_s(r->app), &e) != 0)
        app_message(r->app, true, "%s", e.text);
}

/* While the view is paused data come seldom, and samples in large batches; nothing of the history is lost. Who wants snapshots very often
 * gets samples as often: the Timeline scrolls by them. */
void runner_follow_pause(struct runner *r) {
    struct err e;
    bool slow = r->session && r->app->data.paused && !data_is_recorded(&r->app->data);
    double delay_s = r->app->config.delay_s, batch_s = slow                                  ? APP_PAUSED_S
                                                       : delay_s > 0 && delay_s < APP_FAST_S ? delay_s
                                                                                             : 0;
    if (slow == r->slowed && batch_s == r->batch_s)
        return;
    r->slowed = slow;
    r->batch_s = batch_s;
    if (!r->session)
        return;
    session_set_batch(r->session, batch_s);
    runner_subscribe(r);
    if (r->sampling && session_subscribe(r->session, WIRE_STREAM_SAMPLES, APP_SAMPLE_HZ, &e) != 0)
        app_message(r->app, true, "%s", e.text);
}

void runner_close_session(struct runner *r) {
    if (r->app)
        runner_repl_leave(r->app, r->session);
    runner_leave_children(r);
    if (!r->targets.app) /* else it is kept there */
        session_free(r->session);
    r->session = NULL;
    r->sampling = r->slowed = r->native = false;
    r->batch_s = 0;
}

const struct session_handler runner_handler = {
    .on_state = runner_on_state,
    .on_target = runner_on_target,
    .on_snapshot = runner_on_snapshot,
    .on_details = runner_on_details,
    .on_samples = runner_on_samples,
    .on_status = runner_on_status,
    .on_note = runner_on_note,
    .on_evaluated = runner_on_evaluated,
    .on_reply = runner_on_reply,
};

int runner_open_session(struct runner *r, const struct session_address *addr, struct err *e) {
    app_set_pid(r->app, addr->pid);
    runner_query_set_target(&r->query, addr);
    r->session = session_new(r->loop, addr, &runner_handler, r, e);
    if (!r->session)
        return -1;
    runner_follow_children(r, addr->pid);
    session_set_sampling(r->session, r->config->sampling);
    session_set_budget(r->session, r->config->budget_pct);
    runner_subscribe(r);
    return 0;
}

/* ---- input and signals ---- */

static void runner_suspend(struct runner *r) {
    if (!r->term)
        return;
    if (runner_row_actions_is_editing(&r->hands)) { /* the editor stops, and we with it */
        term_stop();
        return;
    }
    term_suspend(r->term);
    r->app->dirty = true;
}

/* Do what the app asks for. */
static void runner_apply(struct runner *r) {
    runner_ask_details(r);
    runner_apply_questions(r);
    runner_source_apply(&r->source);
    runner_theme_apply(&r->looks);
    struct app_requests w = app_take_requests(r->app);
    if (w.quit) {
        runner_stop(r);
        return;
    }
    runner_row_actions_apply(&r->hands, &w);
    if (w.suspend)
        runner_suspend(r);
    if (w.rate)
        runner_subscribe(r);
    runner_follow_pause(r);
    runner_pace_children(r);
    runner_follow_samples(r, w.again);
    if (w.snapshot && r->session)
        (void)session_request(r->session, WIRE_THREADS, NULL);
    if (w.status && r->session)
        (void)session_request(r->session, WIRE_STATUS, NULL);
    if (w.arm.what[0])
        runner_arm(r, &w);
    if (w.attach > 0)
        runner_attach(r, w.attach);
    if (w.show_target > 0)
        runner_switch(r, w.show_target - 1);
    if (w.list && r->lister)
        runner_list(r);
}

static void runner_on_input(void *arg) {
    struct runner *r = arg;
    struct input_event e;
    bool any = false;
    runner_set_time(r);
    while (!r->stopping && !runner_row_actions_is_editing(&r->hands) && term_read(r->term, &e)) {
        any = true;
        app_input(r->app, &e);
        runner_apply(r);
    }
    if (!any && term_is_gone(r->term))
        runner_stop(r);
    runner_answer(r);
}

static void runner_on_signal(void *arg) {
    struct runner *r = arg;
    for (int signal; !r->stopping && (signal = runner_signals_next(r->signal_fd)) != 0;) {
        switch (signal) {
        case SIGWINCH:
            if (r->term)
                term_resized(r->term);
            r->app->dirty = true;
            break;
        case SIGTSTP:
            runner_suspend(r);
            break;
        case SIGUSR2:
            runner_theme_reload(&r->looks);
            break;
        case SIGINT: /* from elsewhere: the terminal gives ctrl-c as a key */
            if (runner_row_actions_is_editing(&r->hands))
                break; /* it was meant for the editor */
            runner_set_time(r);
            app_key(r->app, INPUT_CTRL + 'c');
            runner_apply(r);
            break;
        default: /* TERM, HUP */
            runner_stop(r);
        }
    }
    runner_want_paint(r);
}

/* ---- life ---- */

static int runner_init(struct runner *r, struct err *e) {
    r->app = app_new(&r->config->app);
    if (!r->app || grid_init(&r->grid, 1, 1) != 0)
        return err_set(e, ERR_FAILED, "out of memory");
    runner_set_time(r);
    r->loop = loop_new(e);
    if (!r->loop)
        return -1;
    r->query = (struct runner_query){.loop = r->loop,
                                     .app = r->app,
                                     .answered = runner_on_answer,
                                     .followed = runner_on_followed,
                                     .looked = runner_on_tables,
                                     .arg = r};
    r->hands = (struct runner_row_actions){.app = r->app,
                                           .loop = r->loop,
                                           .on_terminal = runner_on_terminal,
                                           .changed = runner_on_answer,
                                           .arg = r,
                                           .editor = {.pidfd = -1}};
    r->source =
        (struct runner_source){.loop = r->loop, .app = r->app, .answered = runner_on_answer, .arg = r};
    r->paint = loop_timer_new(r->loop, runner_on_paint, r, e);
    r->open = r->paint ? loop_timer_new(r->loop, runner_on_open, r, e) : NULL;
    r->tick = r->open ? loop_timer_new(r->loop, runner_on_tick, r, e) : NULL;
    r->list = r->tick ? loop_timer_new(r->loop, runner_on_list, r, e) : NULL;
    r->signal_fd = r->list ? runner_signals_open(e) : -1;
    r->signals = r->signal_fd >= 0 ? loop_watch_fd(r->loop, r->signal_fd, runner_on_signal, r, e) : NULL;
    if (!r->signals)
        return -1;
    runner_query_apply(&r->query); /* a recording to compare with */
    r->looks = (struct runner_theme){
        .app = r->app, .loop = r->loop, .term = &r->term, .changed = runner_on_answer, .arg = r};
    runner_theme_begin(&r->looks, r->config);
    if (!r->config->address) {
        r->lister = lister_new(e);
        r->listed = r->lister ? loop_watch_fd(r->loop, lister_fd(r->lister), runner_on_listed, r, e) : NULL;
        if (!r->listed)
            return -1;
        runner_open_term(r);
        runner_apply(r);
        return 0;
    }
    loop_timer_set(r->open, RUNNER_OPEN_US);
    return r->config->n_targets > 1 ? runner_open_all(r, e) : runner_open_session(r, r->config->address, e);
}

static void runner_fini(struct runner *r) {
    runner_row_actions_stop(&r->hands);
    term_close(r->term);
    runner_query_stop(&r->query);
    runner_source_stop(&r->source);
    runner_close_session(r);
    runner_targets_fini(&r->targets);
    loop_unwatch(r->input);
    loop_unwatch(r->signals);
    loop_unwatch(r->attaching);
    loop_unwatch(r->listed);
    runner_theme_end(&r->looks);
    lister_free(r->lister);
    loop_timer_free(r->paint);
    loop_timer_free(r->open);
    loop_timer_free(r->tick);
    loop_timer_free(r->list);
    if (r->loop)
        loop_free(r->loop);
    if (r->signal_fd >= 0)
        (void)close(r->signal_fd);
    if (r->attach.helper)
        (void)close(r->attach.fd);
    app_free(r->app);
    grid_fini(&r->grid);
}

int runner_run(const struct runner_config *config, struct err *e) {
    struct runner r = {.config = config, .signal_fd = -1, .attach = {.fd = -1}, .looks = {.inotify = -1}};
    int rc = runner_init(&r, e);
    if (rc == 0 && !r.stopping)
        loop_run(r.loop);
    if (rc == 0 && r.failed) {
        *e = r.error;
        rc = -1;
    } else if (rc == 0)
        rc = app_exit_status(r.app);
    runner_fini(&r);
    return rc;
}
