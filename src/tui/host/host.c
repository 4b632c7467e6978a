/* SPDX-License-Identifier: Apache-2.0 */
/* host: see host.h. */
#include "tui/host/host.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "client/history.h"
#include "client/session/session.h"
#include "client/sql/saved.h"
#include "client/target/proc_stats.h"
#include "tui/core/app.h"
#include "tui/core/app_arm.h"
#include "tui/core/app_debug.h"
#include "tui/core/app_draw.h"
#include "tui/core/app_input.h"
#include "tui/core/app_life.h"
#include "tui/core/app_repl.h"
#include "tui/core/app_take.h"
#include "tui/host/host_internal.h"
#include "tui/workers/source_reader.h"
#include "tui/term/term.h"

/* Block them and make the descriptor, which is readable when one has arrived; SIGPIPE is ignored.
 * The caller closes it. -1 with the error. */
static int host_signals_open(struct err *e);

/* The next one; 0: none. */
static int host_signals_next(int fd);

#define HOST_PROC_STATS_S 1.0 /* between two readings */

/* Read, and ask, if the app wants it and it is due. `s` may be NULL. */
static void host_proc_stats_poll(struct proc_stats_reader *r, struct app *a, struct session *s);

/* The session is left for another target: interrupt what runs there. */
static void host_repl_leave(struct app *app, struct session *s);

#define HOST_FRAME_US 33000ULL  /* least time between a frame and one for new data */
#define HOST_JOIN_US 300000ULL  /* and one for repeated data other than snapshots */
#define HOST_ANSWER_US 14000ULL /* and one for a key */
#define HOST_OPEN_US 200000ULL  /* a target that does not answer for so long: show that we wait */
#define HOST_TICK_US 1000000ULL /* ages and countdowns */
/* A terminal that does not read: shortest and longest time to wait. */
#define HOST_RETRY_US 20000ULL
#define HOST_RETRY_MAX_US 500000ULL

static const struct app_host host_app;

static void host_stop(struct host *r) {
    r->stopping = true;
    loop_stop(r->loop);
}

static void host_fail(struct host *r, const struct err *why) {
    r->error = *why;
    r->failed = true;
    host_stop(r);
}

void host_set_time(struct host *r) { app_set_time(r->app, (double)clock_mono_ns() / 1e9, clock_epoch_s()); }

/* ---- painting ---- */

/* Paint after a while, or sooner if that was requested already. */
static void host_paint_in(struct host *r, uint64_t delay_us) {
    uint64_t due_ns = clock_mono_ns() + delay_us * CLOCK_NS_PER_US;
    if (!r->term || (r->paint_due_ns && r->paint_due_ns <= due_ns))
        return;
    r->paint_due_ns = due_ns;
    loop_timer_set(r->paint, delay_us ? delay_us : 1);
}

/* Paint if something has changed: immediately if the last frame is old enough. */
static void host_paint_after(struct host *r, uint64_t pause_us) {
    if (!r->app->dirty || r->retry_us)
        return;
    uint64_t since_us = (clock_mono_ns() - r->painted_ns) / CLOCK_NS_PER_US;
    host_paint_in(r, since_us >= pause_us ? 0 : pause_us - since_us);
}

void host_want_paint(struct host *r) { host_paint_after(r, HOST_FRAME_US); }

static void host_on_paint(void *arg) {
    struct host *r = arg;
    int rows, cols;
    r->paint_due_ns = 0;
    if (!r->term || r->stopping || host_row_actions_is_editing(&r->row_actions))
        return;
    if (!term_flush(r->term)) {
        r->retry_us = r->retry_us ? r->retry_us * 2 : HOST_RETRY_US;
        if (r->retry_us > HOST_RETRY_MAX_US)
            r->retry_us = HOST_RETRY_MAX_US;
        host_paint_in(r, r->retry_us);
        return;
    }
    r->retry_us = 0;
    if (!r->app->dirty)
        return;
    host_set_time(r);
    term_size(r->term, &rows, &cols);
    if ((rows != r->grid.rows || cols != r->grid.cols) && grid_resize(&r->grid, rows, cols) != 0)
        return;
    app_draw(r->app, &r->grid);
    term_paint(r->term, &r->grid, r->app->cursor_row, r->app->cursor_col);
    r->painted_ns = clock_mono_ns();
    if (!term_flush(r->term)) {
        r->retry_us = HOST_RETRY_US;
        host_paint_in(r, r->retry_us);
    }
    if (app_needs_tick(r->app))
        loop_timer_set(r->tick, HOST_TICK_US);
}

/* A key was pressed: paint immediately, without a turn of the loop, if the last frame is old
 * enough. */
static void host_answer(struct host *r) {
    bool is_due = (clock_mono_ns() - r->painted_ns) / CLOCK_NS_PER_US >= HOST_ANSWER_US;
    if (!r->app->dirty || r->retry_us || !is_due) {
        host_paint_after(r, HOST_ANSWER_US);
        return;
    }
    loop_timer_cancel(r->paint);
    host_on_paint(r);
}

static void host_on_tick(void *arg) {
    struct host *r = arg;
    host_set_time(r);
    if (app_needs_tick(r->app))
        r->app->dirty = true;
    app_tick(r->app);
    host_proc_stats_poll(&r->proc_stats, r->app, r->session);
    host_do_noted(r);
    host_want_paint(r);
}

static void host_on_answer(void *arg) {
    struct host *r = arg;
    host_set_time(r);
    host_do_noted(r);
    host_want_paint(r);
}

/* New data that may wait: painted with the next snapshot, or soon. */
static void host_on_followed(void *arg) {
    struct host *r = arg;
    host_set_time(r);
    host_do_noted(r);
    host_paint_after(r, HOST_JOIN_US);
}

/* ---- session ---- */

static void host_on_input(void *arg);

void host_open_term(struct host *r) {
    struct err e;
    if (r->term || r->stopping)
        return;
    loop_timer_cancel(r->open);
    r->term = host_theme_open(&r->theme, &r->config->term, &e);
    if (!r->term) {
        host_fail(r, &e);
        return;
    }
    r->row_actions.term = r->term;
    host_theme_ask(&r->theme);
    r->input = loop_watch_fd(r->loop, r->config->term.in_fd, host_on_input, r, &e);
    if (!r->input)
        host_fail(r, &e);
    r->app->dirty = true;
    host_want_paint(r);
}

/* Another program has the terminal, or we have it again. */
static void host_on_terminal(void *arg, bool is_lent) {
    struct host *r = arg;
    struct err e;
    if (is_lent) {
        loop_unwatch(r->input);
        r->input = NULL;
        return;
    }
    r->input = loop_watch_fd(r->loop, r->config->term.in_fd, host_on_input, r, &e);
    if (!r->input)
        host_fail(r, &e);
    host_set_time(r);
    r->app->dirty = true;
    host_want_paint(r);
}

static void host_on_open(void *arg) { host_open_term(arg); }

static void host_on_state(void *arg, enum session_state state, const struct err *why) {
    struct host *r = arg;
    bool is_over = state == SESSION_LOST || state == SESSION_FAILED;
    /* The terminal was never opened: say in a line that the command led to nothing. */
    if (is_over && why && !r->app->data.received && r->config->n_targets == 1 && !r->moved) {
        host_fail(r, why);
        return;
    }
    if (state == SESSION_LOST)
        host_query_end_target(&r->query);
    host_set_time(r);
    app_set_state(r->app, state, why, r->session ? session_retry_in_s(r->session) : 0);
    if (is_over)
        host_end_tunnel(&r->tunnel);
    host_do_noted(r);
    host_follow_phases(r); /* a new connection has nothing armed */
    host_want_paint(r);
}

static void host_on_target(void *arg, struct model_target *target) {
    struct host *r = arg;
    host_set_time(r);
    app_take_target(r->app, target);
    host_do_noted(r);
    host_want_paint(r);
}

void host_follow_samples(struct host *r, bool again) {
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
        session_unsubscribe(r->session, WIRE_STREAM_SAMPLES, NULL);
    if (wanted && session_subscribe(r->session, WIRE_STREAM_SAMPLES, r->app->config.sample_hz, &e) != 0)
        app_message(r->app, true, "%s", e.text);
    r->sampling = wanted;
}

/* Not by the user: nothing is said of it, nor if it is refused. */
void host_follow_phases(struct host *r) {
    const struct wire_arm want = {.what = "phases"};
    bool wanted = r->session && app_wants_phases(r->app);
    if (wanted == r->phases)
        return;
    if (r->session)
        (wanted ? session_arm : session_disarm)(r->session, &want, NULL);
    r->phases = wanted;
}

static void host_on_snapshot(void *arg, struct model_snapshot *snapshot) {
    struct host *r = arg;
    host_set_time(r);
    app_take_snapshot(r->app, snapshot);
    host_proc_stats_poll(&r->proc_stats, r->app, r->session);
    host_do_noted(r);
    host_follow_samples(r, false);
    host_follow_phases(r);
    host_open_term(r);
    host_want_paint(r);
    uint64_t late_us = (uint64_t)(app_delay_s(r->app) * 2.1e6);
    loop_timer_set(r->tick, late_us > HOST_TICK_US ? late_us : HOST_TICK_US);
}

static void host_on_samples(void *arg, struct model_sample_batch *batch) {
    struct host *r = arg;
    bool is_first = !r->app->data.tally;
    host_set_time(r);
    bool again = !app_take_samples(r->app, batch);
    host_do_noted(r);
    host_follow_samples(r, again);
    host_paint_after(r, is_first || again ? HOST_FRAME_US : HOST_JOIN_US);
}

static void host_on_note(void *arg, const char *line) {
    struct host *r = arg;
    host_set_time(r);
    log_add(r->app->log, r->app->epoch_s, LOG_LEVEL_WARN, "%s", line);
    host_want_paint(r);
}

static void host_on_details(void *arg, struct model_snapshot *snapshot) {
    struct host *r = arg;
    host_set_time(r);
    app_take_locals(r->app, snapshot);
    host_do_noted(r);
    host_want_paint(r);
}

static void host_on_status(void *arg, struct model_status *status) {
    struct host *r = arg;
    host_set_time(r);
    app_take_status(r->app, status);
    host_do_noted(r);
    host_want_paint(r);
}

static void host_on_evaluated(void *arg, const struct wire_evaluated *what) {
    struct host *r = arg;
    host_set_time(r);
    app_repl_take(r->app, what);
    host_do_noted(r);
    host_want_paint(r);
}

static void host_on_debugger(void *arg, enum wire_method method, struct wire_debugger *what) {
    struct host *r = arg;
    (void)method;
    host_set_time(r);
    app_debug_take(r->app, what);
    host_do_noted(r);
    host_want_paint(r);
}

static void host_on_reply(void *arg, enum wire_method method, const struct err *error) {
    struct host *r = arg;
    if (error && (method == WIRE_EVAL || method == WIRE_COMPLETE || method == WIRE_DEBUG ||
                  method == WIRE_PAUSE || method == WIRE_CATCH)) {
        host_set_time(r);
        app_repl_refused(r->app, error);
        host_do_noted(r);
        host_want_paint(r);
        return;
    }
    bool unasked = method == WIRE_STATUS;
    if (error && method == WIRE_ARM)
        unasked = !app_arm_refused(r->app, error);
    if (error && !unasked) /* otherwise nobody requested that */
        app_message(r->app, true, "%s", error->text);
    host_want_paint(r);
}

void host_subscribe(struct host *r) {
    struct err e;
    r->delay_s = app_delay_s(r->app);
    if (r->session && session_subscribe(r->session, WIRE_STREAM_THREADS, 1 / r->delay_s, &e) != 0)
        app_message(r->app, true, "%s", e.text);
}

/* While the view is frozen data arrive seldom, and samples in large batches; the history loses
 * nothing. Very frequent snapshots mean equally frequent samples, because the Timeline scrolls with
 * them. */
void host_follow_pause(struct host *r) {
    struct err e;
    bool slow = r->session && r->app->data.paused && !data_is_recorded(&r->app->data);
    double delay_s = r->app->config.delay_s, batch_s = slow                                  ? APP_PAUSED_S
                                                       : delay_s > 0 && delay_s < APP_FAST_S ? delay_s
                                                                                             : 0;
    bool is_batch_new = slow != r->slowed || batch_s != r->batch_s;
    if (!is_batch_new && app_delay_s(r->app) == r->delay_s)
        return;
    r->slowed = slow;
    r->batch_s = batch_s;
    if (!r->session)
        return;
    session_set_batch(r->session, batch_s);
    host_subscribe(r);
    if (is_batch_new && r->sampling &&
        session_subscribe(r->session, WIRE_STREAM_SAMPLES, r->app->config.sample_hz, &e) != 0)
        app_message(r->app, true, "%s", e.text);
}

void host_close_session(struct host *r) {
    if (r->app)
        host_repl_leave(r->app, r->session);
    host_leave_children(r);
    if (r->session && r->phases) /* it may go on in the background */
        session_disarm(r->session, &(const struct wire_arm){.what = "phases"}, NULL);
    r->phases = false;
    if (!r->app || !r->app->targets.n) /* otherwise it is kept there */
        session_free(r->session);
    r->session = NULL;
    r->sampling = r->slowed = r->native = false;
    r->batch_s = 0;
}

const struct session_handler host_handler = {
    .on_state = host_on_state,
    .on_target = host_on_target,
    .on_snapshot = host_on_snapshot,
    .on_details = host_on_details,
    .on_samples = host_on_samples,
    .on_status = host_on_status,
    .on_note = host_on_note,
    .on_evaluated = host_on_evaluated,
    .on_debugger = host_on_debugger,
    .on_reply = host_on_reply,
};

int host_open_session(struct host *r, const struct target_address *addr, struct err *e) {
    app_set_pid(r->app, addr->pid);
    host_query_set_target(&r->query, addr);
    r->session = session_new(r->loop, addr, &host_handler, r, e);
    if (!r->session)
        return -1;
    host_follow_children(r, addr->pid);
    session_set_sampling(r->session, r->config->sampling);
    session_set_budget(r->session, r->config->budget_pct);
    host_subscribe(r);
    return 0;
}

/* ---- input and signals ---- */

static void host_suspend(struct host *r) {
    if (!r->term)
        return;
    if (host_row_actions_is_editing(&r->row_actions)) { /* the editor stops, and so do we */
        term_stop();
        return;
    }
    term_suspend(r->term);
    r->app->dirty = true;
}

void host_do_noted(struct host *r) {
    struct host_noted *n = &r->noted;
    while (n->what && !r->stopping) {
        unsigned what = n->what;
        struct err e;
        n->what = 0;
        if (what & HOST_EVAL) {
            err_set(&e, ERR_FAILED, "not connected");
            if (!r->session || session_eval(r->session, &n->eval, &e) != 0)
                app_repl_refused(r->app, &e);
        }
        if (what & HOST_DEBUG) {
            err_set(&e, ERR_FAILED, "not connected");
            if (!r->session || session_debug(r->session, n->debug_method, n->debug, &e) != 0)
                app_repl_refused(r->app, &e);
        }
        if (what & HOST_WATCH_JOB)
            host_job_watch(&r->job, n->job);
        if (what & HOST_QUERY_JOB)
            host_query_set_job(&r->query, n->job_tables);
        if (what & HOST_OPEN_DIFF)
            host_diff_open(&r->diff, n->diff);
        if (what & HOST_READ_FEEDS)
            host_query_read_feeds(&r->query);
        if (what & HOST_RUN_MAGIC)
            host_query_run_magic(&r->query, &n->magic, n->magic_cols);
        if (what & HOST_RUN_QUERY)
            host_query_begin(&r->query);
        if (what & HOST_SET_THEME)
            host_theme_load(&r->theme, n->theme);
        if (what & HOST_LIST_THEMES)
            host_theme_list(&r->theme);
        if (what & HOST_ATTACH)
            host_attach(r, n->attach, n->attach_host);
        if (what & HOST_SHOW_TARGET)
            host_switch(r, n->show_target);
        if ((what & HOST_LIST_PROCESSES) && r->lister)
            host_list(r);
        if (what & HOST_LIST_JOBS)
            host_list_jobs(r);
    }
}

/* After an event of the user: do what the app requested, and adapt the streams to what is shown
 * now. */
static void host_settle(struct host *r) {
    host_do_noted(r);
    if (r->stopping)
        return;
    host_follow_pause(r);
    host_pace_children(r);
    host_follow_samples(r, false);
    host_follow_phases(r);
}

static void host_on_input(void *arg) {
    struct host *r = arg;
    struct input_event e;
    bool any = false;
    host_set_time(r);
    while (!r->stopping && !host_row_actions_is_editing(&r->row_actions) && term_read(r->term, &e)) {
        any = true;
        if (e.kind == INPUT_EVENT_BACKGROUND)
            host_theme_take_background(&r->theme, e.text);
        app_input(r->app, &e);
        host_settle(r);
    }
    if (!any && term_is_gone(r->term))
        host_stop(r);
    host_answer(r);
}

static void host_on_signal(void *arg) {
    struct host *r = arg;
    for (int signal; !r->stopping && (signal = host_signals_next(r->signal_fd)) != 0;) {
        switch (signal) {
        case SIGWINCH:
            if (r->term)
                term_resized(r->term);
            r->app->dirty = true;
            break;
        case SIGTSTP:
            host_suspend(r);
            break;
        case SIGUSR2:
            host_theme_reload(&r->theme);
            break;
        case SIGINT: /* not from the terminal, where ctrl-c is a key */
            if (host_row_actions_is_editing(&r->row_actions))
                break; /* it was meant for the editor */
            host_set_time(r);
            app_input_key(r->app, INPUT_CTRL + 'c');
            host_settle(r);
            break;
        default: /* TERM, HUP */
            host_stop(r);
        }
    }
    host_want_paint(r);
}

/* ---- signals ---- */

static int host_signals_open(struct err *e) {
    static const int wanted[] = {SIGWINCH, SIGTSTP, SIGUSR2, SIGINT, SIGTERM, SIGHUP};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        sigaddset(&set, wanted[i]);
    signal(SIGPIPE, SIG_IGN);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "cannot block signals");
    int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    return fd >= 0 ? fd : err_set_errno(e, ERR_FAILED, errno, "cannot watch signals");
}

static int host_signals_next(int fd) {
    struct signalfd_siginfo info;
    return read(fd, &info, sizeof info) == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}

/* ---- proc stats ---- */

static void host_proc_stats_poll(struct proc_stats_reader *r, struct app *a, struct session *s) {
    struct events *q = &a->data.pulse;
    if (app_wants_proc_stats(a) && a->pid > 0 &&
        !(q->vitals_at_s > 0 && a->now_s - q->vitals_at_s < HOST_PROC_STATS_S)) {
        struct proc_stats v;
        proc_stats_read(r, a->pid, &v);
        app_take_proc_stats(a, &v);
    }
    if (s && app_wants_status(a)) {
        q->status_at_s = a->now_s; /* whatever the outcome: it is due again later */
        session_request(s, WIRE_STATUS, NULL);
    }
}

/* ---- children ---- */

/* The processes that the target has started, on the host's loop. */

void host_pace_children(struct host *r) {
    enum children_pace pace = r->app->data.paused && !data_is_recorded(&r->app->data) ? CHILDREN_STILL
                              : app_shows_children(r->app)                            ? CHILDREN_OFTEN
                                                                                      : CHILDREN_SELDOM;
    if (pace != r->children_pace)
        children_set_pace(r->children, pace);
    r->children_pace = pace;
}

static void host_on_children(void *arg) {
    struct host *r = arg;
    struct children_list list;
    if (!r->children || !children_take(r->children, &list))
        return;
    host_set_time(r);
    app_take_children(r->app, &list);
    host_do_noted(r);
    host_want_paint(r);
}

/* Children are an extra: an error is not reported. */
void host_follow_children(struct host *r, pid_t pid) {
    struct err e;
    r->children = pid > 0 ? children_start(pid, &e) : NULL;
    r->children_pace = CHILDREN_OFTEN;
    host_pace_children(r);
    if (r->children)
        r->children_watch = loop_watch_fd(r->loop, children_fd(r->children), host_on_children, r, &e);
}

void host_leave_children(struct host *r) {
    loop_unwatch(r->children_watch);
    children_stop(r->children);
    r->children_watch = NULL;
    r->children = NULL;
}

/* ---- repl ---- */

static void host_repl_leave(struct app *app, struct session *s) {
    if (s && app_repl_runs(app) && app->repl.engine.asked != REPL_QUERY)
        session_interrupt(s, NULL);
    app_repl_forget(app);
    app_debug_forget(app);
}

/* ---- source ---- */

static void host_source_start(struct host *r);

static void host_source_on_read(void *arg) {
    struct host *r = arg;
    struct source_text *text = source_reader_take(r->source.reader);
    if (!text)
        return;
    app_take_source(r->app, text);
    host_source_start(r); /* other lines may be wanted by now */
    host_on_answer(r);
}

static int host_source_open(struct host *r, struct err *e) {
    struct host_source *s = &r->source;
    if (s->reader)
        return 0;
    s->reader = source_reader_new(e);
    if (s->reader)
        s->watch = loop_watch_fd(r->loop, source_reader_fd(s->reader), host_source_on_read, r, e);
    if (s->watch)
        return 0;
    source_reader_free(s->reader);
    s->reader = NULL;
    return -1;
}

/* Read what is wanted, unless other lines are being read: then it is next. */
static void host_source_start(struct host *r) {
    struct host_source *s = &r->source;
    const struct app_source *asked = &r->app->source_asked;
    struct err e;
    if (!s->is_wanted || (s->reader && source_reader_is_busy(s->reader)))
        return;
    s->is_wanted = false;
    if (!asked->path[0]) /* of the last target */
        return;
    if (host_source_open(r, &e) != 0 ||
        source_reader_start(s->reader, r->app->pid, asked->path, asked->from, &e) != 0)
        app_message(r->app, true, "%s", e.text);
}

/* ---- what the app asks for: struct app_host ---- */

static void host_app_quit(void *arg) { host_stop(arg); }

static void host_app_suspend(void *arg) { host_suspend(arg); }

static void host_app_repaint(void *arg) {
    struct host *r = arg;
    if (r->term)
        term_repaint(r->term);
}

static void host_app_set_mouse(void *arg, bool on) {
    struct host *r = arg;
    if (r->term)
        term_set_mouse(r->term, on);
}

static void host_note(void *arg, enum host_note what) {
    struct host *r = arg;
    r->noted.what |= what;
}

static void host_app_set_theme(void *arg, const char *name) {
    struct host *r = arg;
    snprintf(r->noted.theme, sizeof r->noted.theme, "%s", name);
    host_note(r, HOST_SET_THEME);
}

static void host_app_list_themes(void *arg) { host_note(arg, HOST_LIST_THEMES); }

static void host_app_save_settings(void *arg) {
    struct host *r = arg;
    host_theme_save_settings(&r->theme);
}

static int host_app_open_history(void *arg, const char *name, struct history *h, struct err *e) {
    char path[512];
    (void)arg;
    history_path(name, path, sizeof path);
    return history_open(h, path, e);
}

static void host_app_copy(void *arg, const char *what, const char *text, size_t len) {
    struct host *r = arg;
    host_row_actions_copy(&r->row_actions, what, text, len);
}

static void host_app_write(void *arg, struct export_job *job) {
    struct host *r = arg;
    host_row_actions_write(&r->row_actions, job);
}

static void host_app_edit(void *arg, pid_t pid, const char *file, int line) {
    struct host *r = arg;
    host_row_actions_edit(&r->row_actions, pid, file, line);
}

static void host_app_read_source(void *arg) {
    struct host *r = arg;
    r->source.is_wanted = true;
    host_source_start(r);
}

static void host_app_list_processes(void *arg) { host_note(arg, HOST_LIST_PROCESSES); }

static void host_app_list_jobs(void *arg) { host_note(arg, HOST_LIST_JOBS); }

static void host_app_attach(void *arg, pid_t pid, const char *host) {
    struct host *r = arg;
    r->noted.attach = pid;
    snprintf(r->noted.attach_host, sizeof r->noted.attach_host, "%s", host ? host : "");
    host_note(r, HOST_ATTACH);
}

static void host_app_show_target(void *arg, int target) {
    struct host *r = arg;
    r->noted.show_target = target;
    host_note(r, HOST_SHOW_TARGET);
}

static void host_app_open_diff(void *arg, const char *name) {
    struct host *r = arg;
    snprintf(r->noted.diff, sizeof r->noted.diff, "%s", name);
    host_note(r, HOST_OPEN_DIFF);
}

static void host_app_watch_job(void *arg, const char *target) {
    struct host *r = arg;
    snprintf(r->noted.job, sizeof r->noted.job, "%s", target);
    host_note(r, HOST_WATCH_JOB);
}

static void host_app_query_job(void *arg, const char *target) {
    struct host *r = arg;
    snprintf(r->noted.job_tables, sizeof r->noted.job_tables, "%s", target);
    host_note(r, HOST_QUERY_JOB);
}

static void host_app_find_job(void *arg, pid_t pid) {
    struct host *r = arg;
    host_job_find(&r->job, pid);
}

static void host_app_request(void *arg, enum wire_method method) {
    struct host *r = arg;
    if (r->session)
        session_request(r->session, method, NULL);
}

static int host_app_ask_details(void *arg, const struct wire_threads *want, struct err *e) {
    struct host *r = arg;
    return r->session ? session_ask_details(r->session, want, e) : 0;
}

static int host_app_arm(void *arg, const struct wire_arm *want, struct err *e) {
    struct host *r = arg;
    return r->session ? session_arm(r->session, want, e) : err_set(e, ERR_FAILED, "not connected");
}

static int host_app_disarm(void *arg, const struct wire_arm *want, struct err *e) {
    struct host *r = arg;
    return r->session ? session_disarm(r->session, want, e) : err_set(e, ERR_FAILED, "not connected");
}

static int host_app_configure(void *arg, const struct wire_config *want, struct err *e) {
    struct host *r = arg;
    return r->session ? session_configure(r->session, want, e) : err_set(e, ERR_FAILED, "not connected");
}

static void host_app_eval(void *arg, const struct wire_eval *want) {
    struct host *r = arg;
    r->noted.eval = *want;
    host_note(r, HOST_EVAL);
}

static void host_app_debug(void *arg, enum wire_method method, const struct wire_debug *want) {
    struct host *r = arg;
    r->noted.debug_method = method;
    r->noted.debug = want;
    host_note(r, HOST_DEBUG);
}

static void host_app_run_query(void *arg) { host_note(arg, HOST_RUN_QUERY); }

static void host_app_cancel_query(void *arg) {
    struct host *r = arg;
    host_query_cancel(&r->query);
}

static void host_app_read_feeds(void *arg) { host_note(arg, HOST_READ_FEEDS); }

static void host_app_run_magic(void *arg, struct magic *m, int cols) {
    struct host *r = arg;
    magic_fini(&r->noted.magic);
    r->noted.magic = *m;
    r->noted.magic_cols = cols;
    memset(m, 0, sizeof *m);
    host_note(r, HOST_RUN_MAGIC);
}

static void host_app_cancel_magic(void *arg) {
    struct host *r = arg;
    host_query_cancel_magic(&r->query);
}

static const struct app_host host_app = {
    .quit = host_app_quit,
    .suspend = host_app_suspend,
    .repaint = host_app_repaint,
    .set_mouse = host_app_set_mouse,
    .set_theme = host_app_set_theme,
    .list_themes = host_app_list_themes,
    .save_settings = host_app_save_settings,
    .open_history = host_app_open_history,
    .copy = host_app_copy,
    .write = host_app_write,
    .edit = host_app_edit,
    .read_source = host_app_read_source,
    .list_processes = host_app_list_processes,
    .list_jobs = host_app_list_jobs,
    .attach = host_app_attach,
    .show_target = host_app_show_target,
    .open_diff = host_app_open_diff,
    .watch_job = host_app_watch_job,
    .query_job = host_app_query_job,
    .find_job = host_app_find_job,
    .request = host_app_request,
    .ask_details = host_app_ask_details,
    .arm = host_app_arm,
    .disarm = host_app_disarm,
    .configure = host_app_configure,
    .eval = host_app_eval,
    .debug = host_app_debug,
    .run_query = host_app_run_query,
    .cancel_query = host_app_cancel_query,
    .read_feeds = host_app_read_feeds,
    .run_magic = host_app_run_magic,
    .cancel_magic = host_app_cancel_magic,
};

/* ---- life ---- */

static int host_init(struct host *r, struct err *e) {
    struct app_config app = r->config->app;
    struct app_host host = host_app;
    host.arg = r;
    app.host = &host;
    r->app = app_new(&app);
    if (!r->app || grid_init(&r->grid, 1, 1) != 0)
        return err_set(e, ERR_FAILED, "out of memory");
    host_set_time(r);
    r->loop = loop_new(e);
    if (!r->loop)
        return -1;
    saved_default_dir(r->app->query.saved_dir, sizeof r->app->query.saved_dir);
    r->query = (struct host_query){
        .loop = r->loop, .app = r->app, .answered = host_on_answer, .followed = host_on_followed, .arg = r};
    r->diff = (struct host_diff){.app = r->app, .loop = r->loop, .changed = host_on_answer, .arg = r};
    r->job = (struct host_job){
        .app = r->app, .loop = r->loop, .reach = r->config->reach, .changed = host_on_answer, .arg = r};
    r->row_actions = (struct host_row_actions){.app = r->app,
                                               .loop = r->loop,
                                               .on_terminal = host_on_terminal,
                                               .changed = host_on_answer,
                                               .arg = r,
                                               .editor = {.pidfd = -1}};
    r->paint = loop_timer_new(r->loop, host_on_paint, r, e);
    r->open = r->paint ? loop_timer_new(r->loop, host_on_open, r, e) : NULL;
    r->tick = r->open ? loop_timer_new(r->loop, host_on_tick, r, e) : NULL;
    r->list = r->tick ? loop_timer_new(r->loop, host_on_list, r, e) : NULL;
    r->signal_fd = r->list ? host_signals_open(e) : -1;
    r->signals = r->signal_fd >= 0 ? loop_watch_fd(r->loop, r->signal_fd, host_on_signal, r, e) : NULL;
    if (!r->signals)
        return -1;
    r->theme = (struct host_theme){
        .app = r->app, .loop = r->loop, .term = &r->term, .changed = host_on_answer, .arg = r};
    host_theme_begin(&r->theme, &r->config->term, r->config->themes, r->config->warnings);
    const struct app_config *start = &r->config->app;
    if (start->job_server && host_open_jobs(r, e) != 0)
        return -1;
    if (!r->config->address && (start->job || start->job_server)) { /* the user opens a rank */
        host_open_term(r);
        host_do_noted(r);
        return 0;
    }
    if (!r->config->address) {
        r->lister = lister_new(e);
        r->listed = r->lister ? loop_watch_fd(r->loop, lister_fd(r->lister), host_on_listed, r, e) : NULL;
        if (!r->listed)
            return -1;
        host_open_term(r);
        host_do_noted(r);
        return 0;
    }
    loop_timer_set(r->open, HOST_OPEN_US);
    int rc = r->config->n_targets > 1 ? host_open_all(r, e) : host_open_session(r, r->config->address, e);
    if (rc == 0)
        host_do_noted(r);
    return rc;
}

static void host_fini(struct host *r) {
    host_row_actions_stop(&r->row_actions);
    term_close(r->term);
    host_query_set_target(&r->query, NULL);
    host_diff_close(&r->diff);
    host_job_close(&r->job);
    magic_fini(&r->noted.magic);
    loop_unwatch(r->source.watch);
    source_reader_free(r->source.reader);
    host_close_session(r);
    host_end_tunnel(&r->tunnel);
    host_close_targets(r);
    loop_unwatch(r->input);
    loop_unwatch(r->signals);
    loop_unwatch(r->attaching);
    loop_unwatch(r->listed);
    host_theme_end(&r->theme);
    lister_free(r->lister);
    job_lister_free(r->job_lister);
    loop_timer_free(r->paint);
    loop_timer_free(r->open);
    loop_timer_free(r->tick);
    loop_timer_free(r->list);
    if (r->loop)
        loop_free(r->loop);
    if (r->signal_fd >= 0)
        close(r->signal_fd);
    attach_abandon(&r->attach);
    app_free(r->app);
    grid_fini(&r->grid);
}

int host_run(const struct host_config *config, struct err *e) {
    struct host r = {
        .config = config, .signal_fd = -1, .attach = {.fd = -1}, .tunnel = -1, .theme = {.inotify = -1}};
    int rc = host_init(&r, e);
    if (rc == 0 && !r.stopping)
        loop_run(r.loop);
    if (rc == 0 && r.failed) {
        *e = r.error;
        rc = -1;
    } else if (rc == 0)
        rc = app_exit_status(r.app);
    host_fini(&r);
    return rc;
}
