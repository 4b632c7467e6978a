/* SPDX-License-Identifier: Apache-2.0 */
/* host_open: chooses the target: one of several, one that is picked, a child; see
 * host_internal.h. */
#include "tui/core/app_attach.h"
#include "tui/core/app_message.h"
#include "tui/core/app_take.h"
#include "tui/host/host.h"
#include "tui/host/host_internal.h"

#include <stdio.h>

#define HOST_LIST_US 3000000ULL /* between two lists of processes */

/* ---- several targets ---- */

static void host_on_came(void *arg) {
    host_do_noted(arg);
    host_open_term(arg);
    host_want_paint(arg);
}

/* Follow the target that is shown now; its session exists. */
static void host_take_shown(struct host *r) {
    const struct host_target *t = &r->targets.items[r->app->targets.shown];
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
    if (i < 0 || i >= r->app->targets.n || i == r->app->targets.shown)
        return;
    host_close_session(r);
    host_targets_show(&r->targets, i);
    host_take_shown(r);
}

static void host_begin_targets(struct host *r) {
    r->targets = (struct host_targets){
        r->loop, r->app, &host_handler, host_on_came, r, r->config->sampling, r->config->budget_pct, {{0}}};
}

int host_open_all(struct host *r, struct err *e) {
    host_begin_targets(r);
    for (int i = 0; i < r->config->n_targets; i++)
        if (host_targets_add(&r->targets, &r->config->address[i], r->config->names[i], e) < 0)
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
    if (r->session || r->attach.helper)
        return;
    host_list(r);
    host_want_paint(r);
}

/* One of several that were chosen together becomes a target; the first one is shown. */
static int host_take_chosen(struct host *r, const struct target_address *addr, struct err *e) {
    bool is_first = r->app->targets.n == 0;
    if (is_first)
        host_begin_targets(r);
    if (host_targets_add(&r->targets, addr, NULL, e) < 0)
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
    pid_t next = app_attach_next(r->app);
    host_set_time(r);
    if (rc != 0 && several)
        log_add(r->app->log, r->app->epoch_s, LOG_LEVEL_BAD, "%s", e->text);
    if (next > 0) {
        r->app->attaching = next;
        host_attach(r, next);
        return;
    }
    bool any = rc == 0 || (several && r->app->targets.n > 0);
    app_attach_done(r->app, any ? NULL : e);
    if (any && rc != 0)
        app_message(r->app, true, "%s", e->text);
    if (rc != 0 && !r->session)
        loop_timer_set(r->list, HOST_LIST_US);
    host_want_paint(r);
}

static void host_on_attached(void *arg) {
    struct host *r = arg;
    struct target_address addr;
    struct err e;
    loop_unwatch(r->attaching);
    r->attaching = NULL;
    int rc = attach_finish(&r->attach, &addr, &e);
    if (rc == 0 && r->app->attaches_several)
        rc = host_take_chosen(r, &addr, &e);
    else if (rc == 0 && r->app->targets.n) {
        int i = host_targets_add(&r->targets, &addr, NULL, &e);
        rc = i < 0 ? -1 : 0;
        host_switch(r, i);
    } else if (rc == 0) {
        r->moved = true;
        host_close_session(r);
        rc = host_open_session(r, &addr, &e);
    }
    host_end_attach(r, rc, &e);
    host_do_noted(r);
}

void host_attach(struct host *r, pid_t pid) {
    char target[24];
    struct err e;
    snprintf(target, sizeof target, "%ld", (long)pid);
    if (attach_start(&r->attach, target, &r->config->how, &e) != 0) {
        host_end_attach(r, -1, &e);
        return;
    }
    r->attaching = loop_watch_fd(r->loop, r->attach.fd, host_on_attached, r, &e);
    if (!r->attaching)
        host_on_attached(r);
}
