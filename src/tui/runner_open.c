/* SPDX-License-Identifier: Apache-2.0 */
/* runner_open: which target is looked at: one of several, one that is picked, a child; see runner_internal.h. */
#include "tui/runner_internal.h"

#include <stdio.h>

#define RUNNER_LIST_US 3000000ULL /* the list of processes is made again */

/* ---- several targets ---- */

static void runner_on_came(void *arg) {
    runner_open_term(arg);
    runner_want_paint(arg);
}

/* Look at the one that is shown from here on: the session is there. */
static void runner_take_shown(struct runner *r) {
    const struct runner_target *t = &r->targets.items[r->app->targets.shown];
    r->session = t->session;
    runner_query_set_target(&r->query, &t->addr);
    if (data_is_over(&r->app->data)) {
        runner_query_end_target(&r->query);
        return;
    }
    runner_follow_children(r, t->addr.pid);
    if (!r->session)
        return;
    session_set_batch(r->session, 0);
    runner_subscribe(r);
    runner_follow_pause(r);
    runner_follow_samples(r, false);
}

void runner_switch(struct runner *r, int i) {
    if (i < 0 || i >= r->app->targets.n || i == r->app->targets.shown)
        return;
    runner_close_session(r);
    runner_targets_show(&r->targets, i);
    runner_take_shown(r);
}

static void runner_begin_targets(struct runner *r) {
    r->targets = (struct runner_targets){
        r->loop, r->app, &runner_handler, runner_on_came, r, r->config->sampling, r->config->budget_pct,
        {{0}}};
}

int runner_open_all(struct runner *r, struct err *e) {
    runner_begin_targets(r);
    for (int i = 0; i < r->config->n_targets; i++)
        if (runner_targets_add(&r->targets, &r->config->address[i], r->config->names[i], e) < 0)
            return -1;
    runner_take_shown(r);
    return 0;
}

/* ---- picking a process ---- */

void runner_list(struct runner *r) {
    struct err e;
    if (lister_start(r->lister, &e) != 0)
        app_message(r->app, true, "%s", e.text);
    loop_timer_set(r->list, RUNNER_LIST_US);
}

void runner_on_listed(void *arg) {
    struct runner *r = arg;
    struct target_process *list;
    char hidden[TARGET_HIDDEN_MAX];
    struct err e;
    ssize_t n = lister_take(r->lister, &list, hidden, sizeof hidden, &e);
    if (n == -1)
        app_message(r->app, true, "%s", e.text);
    else if (n >= 0)
        app_take_processes(r->app, list, (size_t)n, hidden);
    runner_set_time(r);
    runner_want_paint(r);
}

void runner_on_list(void *arg) {
    struct runner *r = arg;
    if (r->session || r->attach.helper)
        return;
    runner_list(r);
    runner_want_paint(r);
}

/* One of several that were chosen together becomes a target; the first one is shown. */
static int runner_take_chosen(struct runner *r, const struct session_address *addr, struct err *e) {
    bool is_first = r->app->targets.n == 0;
    if (is_first)
        runner_begin_targets(r);
    if (runner_targets_add(&r->targets, addr, NULL, e) < 0)
        return -1;
    r->moved = true;
    if (is_first)
        runner_take_shown(r);
    return 0;
}

/* An attach ended. Of several the next one follows; those that failed are said, the others are looked at. */
static void runner_end_attach(struct runner *r, int rc, const struct err *e) {
    bool several = r->app->attaches_several;
    pid_t next = app_attach_next(r->app);
    runner_set_time(r);
    if (rc != 0 && several)
        log_add(r->app->log, r->app->epoch_s, LOG_LEVEL_BAD, "%s", e->text);
    if (next > 0) {
        r->app->attaching = next;
        runner_attach(r, next);
        return;
    }
    bool any = rc == 0 || (several && r->app->targets.n > 0);
    app_attach_done(r->app, any ? NULL : e);
    if (any && rc != 0)
        app_message(r->app, true, "%s", e->text);
    if (rc != 0 && !r->session)
        loop_timer_set(r->list, RUNNER_LIST_US);
    runner_want_paint(r);
}

static void runner_on_attached(void *arg) {
    struct runner *r = arg;
    struct session_address addr;
    struct err e;
    loop_unwatch(r->attaching);
    r->attaching = NULL;
    int rc = attach_finish(&r->attach, &addr, &e);
    if (rc == 0 && r->app->attaches_several)
        rc = runner_take_chosen(r, &addr, &e);
    else if (rc == 0 && r->app->targets.n) {
        int i = runner_targets_add(&r->targets, &addr, NULL, &e);
        rc = i < 0 ? -1 : 0;
        runner_switch(r, i);
    } else if (rc == 0) {
        r->moved = true;
        runner_close_session(r);
        rc = runner_open_session(r, &addr, &e);
    }
    runner_end_attach(r, rc, &e);
}

void runner_attach(struct runner *r, pid_t pid) {
    char target[24];
    struct err e;
    (void)snprintf(target, sizeof target, "%ld", (long)pid);
    if (attach_start(&r->attach, target, &r->config->how, &e) != 0) {
        runner_end_attach(r, -1, &e);
        return;
    }
    r->attaching = loop_watch_fd(r->loop, r->attach.fd, runner_on_attached, r, &e);
    if (!r->attaching)
        runner_on_attached(r);
}
