/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_targets: the target that is shown, and the others: one of several, one that is picked, a
 * child; see host_internal.h.
 *
 * Of several targets each has a session. Data of the shown one go where those of a single target
 * go; the others send a snapshot now and then, which is put aside (targets.h).
 */
#include "tui/host/host_internal.h"

#include <stdio.h>
#include <unistd.h>

#include "tui/core/app_life.h"
#include "tui/core/app.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_take.h"
#include "tui/core/targets.h"
#include "tui/host/host.h"

#define HOST_LIST_US 3000000ULL  /* between two lists of processes */
#define HOST_JOBS_US 15000000ULL /* and after one of jobs: the server sums over a month of rows */

/* ---- sessions with several targets ---- */

static bool host_target_is_shown(const struct host_target *t) {
    return t->index == t->host->app->targets.shown;
}

/* Data of a target that is not shown were put aside. */
static void host_target_came(struct host_target *t) {
    host_do_noted(t->host);
    host_open_term(t->host);
    host_want_paint(t->host);
}

void host_end_tunnel(int *tunnel) {
    if (*tunnel >= 0)
        close(*tunnel);
    *tunnel = -1;
}

static void host_target_on_state(void *arg, enum session_state state, const struct err *why) {
    struct host_target *t = arg;
    if (state == SESSION_LOST || state == SESSION_FAILED)
        host_end_tunnel(&t->tunnel);
    if (host_target_is_shown(t)) {
        host_handler.on_state(t->host, state, why);
        return;
    }
    host_set_time(t->host);
    targets_take_state(t->host->app, t->index, state, why, t->session ? session_retry_in_s(t->session) : 0);
    host_target_came(t);
}

static void host_target_on_target(void *arg, struct model_target *target) {
    struct host_target *t = arg;
    if (host_target_is_shown(t)) {
        host_handler.on_target(t->host, target);
        return;
    }
    host_set_time(t->host);
    targets_take_target(t->host->app, t->index, target);
    host_target_came(t);
}

static void host_target_on_snapshot(void *arg, struct model_snapshot *snapshot) {
    struct host_target *t = arg;
    if (host_target_is_shown(t)) {
        host_handler.on_snapshot(t->host, snapshot);
        return;
    }
    host_set_time(t->host);
    targets_take_snapshot(t->host->app, t->index, snapshot);
    host_target_came(t);
}

/* An answer that arrives after its target was hidden is dropped. */
static void host_target_on_details(void *arg, struct model_snapshot *snapshot) {
    struct host_target *t = arg;
    if (host_target_is_shown(t))
        host_handler.on_details(t->host, snapshot);
}

static void host_target_on_note(void *arg, const char *line) {
    struct host_target *t = arg;
    host_set_time(t->host);
    log_add_of(t->host->app->log, t->addr.pid, t->host->app->epoch_s, LOG_LEVEL_WARN, "%s", line);
    host_target_came(t);
}

static void host_target_on_samples(void *arg, struct model_sample_batch *batch) {
    struct host_target *t = arg;
    if (host_target_is_shown(t))
        host_handler.on_samples(t->host, batch);
}

static void host_target_on_status(void *arg, struct model_status *status) {
    struct host_target *t = arg;
    if (host_target_is_shown(t))
        host_handler.on_status(t->host, status);
}

static void host_target_on_evaluated(void *arg, const struct wire_evaluated *what) {
    struct host_target *t = arg;
    if (host_target_is_shown(t))
        host_handler.on_evaluated(t->host, what);
}

static void host_target_on_debugger(void *arg, enum wire_method method, struct wire_debugger *what) {
    struct host_target *t = arg;
    if (host_target_is_shown(t))
        host_handler.on_debugger(t->host, method, what);
}

static void host_target_on_reply(void *arg, enum wire_method method, const struct err *error) {
    struct host_target *t = arg;
    if (host_target_is_shown(t))
        host_handler.on_reply(t->host, method, error);
}

/* A snapshot now and then, and no samples. */
static void host_target_slow(struct host_target *t) {
    struct err e;
    if (!t->session)
        return;
    session_set_native(t->session, false, &e);
    session_unsubscribe(t->session, WIRE_STREAM_SAMPLES, NULL);
    session_subscribe(t->session, WIRE_STREAM_THREADS, 1 / TARGETS_BACKGROUND_S, NULL);
}

/* Add a target and connect to it; a known one stays as it is. `name`: as the user named
 * it; NULL: its pid. `tunnel` (-1: none) is the target's from here on. Its number, or -1 with the error. */
static int host_targets_add(struct host *r, const struct target_address *addr, const char *name, int tunnel,
                            struct err *e) {
    static const struct session_handler handler = {
        .on_state = host_target_on_state,
        .on_target = host_target_on_target,
        .on_snapshot = host_target_on_snapshot,
        .on_details = host_target_on_details,
        .on_samples = host_target_on_samples,
        .on_status = host_target_on_status,
        .on_note = host_target_on_note,
        .on_evaluated = host_target_on_evaluated,
        .on_debugger = host_target_on_debugger,
        .on_reply = host_target_on_reply,
    };
    char pid[24];
    int there = targets_find(r->app, addr->pid);
    if (there >= 0)
        return there;
    snprintf(pid, sizeof pid, "%ld", (long)addr->pid);
    int i = targets_add(r->app, addr->pid, name ? name : pid);
    if (i < 0) {
        host_end_tunnel(&tunnel);
        return err_set(e, ERR_USAGE, "at most %d targets at a time", TARGETS_MAX);
    }
    struct host_target *item = &r->targets[i];
    *item = (struct host_target){.host = r, .index = i, .addr = *addr, .tunnel = tunnel};
    item->session = session_new(r->loop, &item->addr, &handler, item, e);
    if (!item->session) {
        host_target_on_state(item, SESSION_FAILED, e); /* its entry says so; the others continue */
        return i;
    }
    session_set_sampling(item->session, r->config->sampling);
    session_set_budget(item->session, r->config->budget_pct);
    if (!host_target_is_shown(item))
        session_subscribe(item->session, WIRE_STREAM_THREADS, 1 / TARGETS_BACKGROUND_S, NULL);
    return i;
}

void host_close_targets(struct host *r) {
    for (int i = 0; r->app && i < r->app->targets.n; i++) {
        session_free(r->targets[i].session);
        r->targets[i].session = NULL;
        host_end_tunnel(&r->targets[i].tunnel);
    }
}

/* Follow the target that is shown now; its session exists. */
static void host_take_shown(struct host *r) {
    const struct host_target *t = &r->targets[r->app->targets.shown];
    r->session = t->session;
    host_query_set_target(&r->query, &t->addr);
    if (data_is_over(&r->app->data)) {
        host_query_end_target(&r->query);
        return;
    }
    host_follow_children(r, t->addr.pid);
    if (!r->session)
        return;
    session_set_batch(r->session, 0);
    host_subscribe(r);
    host_follow_pause(r);
    host_follow_samples(r, false);
}

void host_switch(struct host *r, int i) {
    int before = r->app->targets.shown;
    if (i < 0 || i >= r->app->targets.n || i == before)
        return;
    host_close_session(r);
    host_target_slow(&r->targets[before]);
    targets_show(r->app, i);
    host_take_shown(r);
}

int host_open_all(struct host *r, struct err *e) {
    for (int i = 0; i < r->config->n_targets; i++)
        if (host_targets_add(r, &r->config->address[i], r->config->names[i], -1, e) < 0)
            return -1;
    host_take_shown(r);
    return 0;
}

/* ---- picking a process ---- */

void host_list(struct host *r) {
    struct err e;
    if (lister_start(r->lister, &e) != 0)
        app_message(r->app, true, "%s", e.text);
    loop_timer_set(r->list, HOST_LIST_US);
}

void host_on_listed(void *arg) {
    struct host *r = arg;
    struct target_process *list;
    char hidden[TARGET_HIDDEN_MAX];
    struct err e;
    ssize_t n = lister_take(r->lister, &list, hidden, sizeof hidden, &e);
    if (n == -1)
        app_message(r->app, true, "%s", e.text);
    else if (n >= 0)
        app_take_processes(r->app, list, (size_t)n, hidden);
    host_set_time(r);
    host_do_noted(r);
    host_want_paint(r);
}

void host_on_list(void *arg) {
    struct host *r = arg;
    if (r->job_lister) {
        if (app_screen_is_choice(r->app))
            host_list_jobs(r);
        return;
    }
    if (r->session || r->attach.helper)
        return;
    host_list(r);
    host_want_paint(r);
}

/* ---- choosing a job of a database ---- */

void host_list_jobs(struct host *r) {
    struct err e;
    if (job_lister_start(r->job_lister, &e) == 0)
        return;
    app_take_jobs(r->app, NULL, &e);
    loop_timer_set(r->list, HOST_JOBS_US);
    host_want_paint(r);
}

static void host_on_jobs(void *arg) {
    struct host *r = arg;
    struct engine_jobs jobs;
    struct err e;
    int rc = job_lister_take(r->job_lister, &jobs, &e);
    if (rc != 0)
        app_take_jobs(r->app, rc > 0 ? &jobs : NULL, rc > 0 ? NULL : &e);
    loop_timer_set(r->list, HOST_JOBS_US);
    host_set_time(r);
    host_do_noted(r);
    host_want_paint(r);
}

int host_open_jobs(struct host *r, struct err *e) {
    r->job_lister = job_lister_new(r->config->app.job_server, e);
    if (r->job_lister)
        r->listed = loop_watch_fd(r->loop, job_lister_fd(r->job_lister), host_on_jobs, r, e);
    return r->listed ? 0 : -1;
}

/* ---- attaching ---- */

/* One of several that were chosen together becomes a target; the first one is shown. */
static int host_take_chosen(struct host *r, const struct target_address *addr, struct err *e) {
    bool is_first = r->app->targets.n == 0;
    if (host_targets_add(r, addr, NULL, -1, e) < 0)
        return -1;
    r->moved = true;
    if (is_first)
        host_take_shown(r);
    return 0;
}

/* An attach has ended. If several were chosen the next one follows; failures are reported, the
 * others are shown. */
static void host_end_attach(struct host *r, int rc, const struct err *e) {
    bool several = r->app->attaches_several;
    pid_t next = several ? app_attach_next(r->app) : 0;
    host_set_time(r);
    if (rc != 0 && several)
        log_add(r->app->log, r->app->epoch_s, LOG_LEVEL_BAD, "%s", e->text);
    if (next > 0) {
        r->app->attaching = next;
        host_attach(r, next, "");
        return;
    }
    bool any = rc == 0 || (several && r->app->targets.n > 0);
    app_attach_done(r->app, any ? NULL : e);
    if (any && rc != 0)
        app_message(r->app, true, "%s", e->text);
    if (rc != 0 && !r->session && r->lister)
        loop_timer_set(r->list, HOST_LIST_US);
    host_want_paint(r);
}

static void host_on_attached(void *arg) {
    struct host *r = arg;
    struct target_address addr;
    struct err e;
    loop_unwatch(r->attaching);
    r->attaching = NULL;
    int tunnel = -1, rc = attach_finish(&r->attach, &addr, &tunnel, &e);
    if (rc == 0 && r->app->attaches_several)
        rc = host_take_chosen(r, &addr, &e);
    else if (rc == 0 && r->app->targets.n) {
        int i = host_targets_add(r, &addr, addr.pid ? NULL : r->noted.attach_host, tunnel, &e);
        rc = i < 0 ? -1 : 0;
        host_switch(r, i);
    } else if (rc == 0) {
        r->moved = true;
        host_close_session(r);
        host_end_tunnel(&r->tunnel);
        r->tunnel = tunnel;
        rc = host_open_session(r, &addr, &e);
        if (rc != 0)
            host_end_tunnel(&r->tunnel);
    }
    host_end_attach(r, rc, &e);
    host_do_noted(r);
}

void host_attach(struct host *r, pid_t pid, const char *host) {
    const struct target_options *how = &r->config->how;
    const struct relay_tunnel there = {.reach = r->config->reach,
                                       .host = host,
                                       .pid = pid,
                                       .attach = !how->no_inject && !how->readonly,
                                       .owner = getpid()};
    char target[24];
    struct err e;
    snprintf(target, sizeof target, "%ld", (long)pid);
    if (attach_start(&r->attach, target, host[0] ? &there : NULL, how, &e) != 0) {
        host_end_attach(r, -1, &e);
        return;
    }
    r->attaching = loop_watch_fd(r->loop, r->attach.fd, host_on_attached, r, &e);
    if (!r->attaching)
        host_on_attached(r);
}
