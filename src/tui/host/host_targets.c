/* SPDX-License-Identifier: Apache-2.0 */
/* host_targets: see host_targets.h. */
#include "tui/host/host_targets.h"

#include <stdio.h>

#include "base/clock.h"
#include "tui/core/app_take.h"
#include "tui/core/targets.h"

static bool host_target_is_shown(const struct host_target *t) {
    return t->index == t->all->app->targets.shown;
}

static void host_target_set_time(const struct host_target *t) {
    app_set_time(t->all->app, (double)clock_mono_ns() / 1e9, clock_epoch_s());
}

static void host_target_on_state(void *arg, enum session_state state, const struct err *why) {
    struct host_target *t = arg;
    if (host_target_is_shown(t)) {
        t->all->shown->on_state(t->all->arg, state, why);
        return;
    }
    host_target_set_time(t);
    targets_take_state(t->all->app, t->index, state, why, t->session ? session_retry_in_s(t->session) : 0);
    t->all->came(t->all->arg);
}

static void host_target_on_target(void *arg, struct model_target *target) {
    struct host_target *t = arg;
    if (host_target_is_shown(t)) {
        t->all->shown->on_target(t->all->arg, target);
        return;
    }
    host_target_set_time(t);
    targets_take_target(t->all->app, t->index, target);
    t->all->came(t->all->arg);
}

static void host_target_on_snapshot(void *arg, struct model_snapshot *snapshot) {
    struct host_target *t = arg;
    if (host_target_is_shown(t)) {
        t->all->shown->on_snapshot(t->all->arg, snapshot);
        return;
    }
    host_target_set_time(t);
    targets_take_snapshot(t->all->app, t->index, snapshot);
    t->all->came(t->all->arg);
}

/* An answer that arrives after its target was hidden is dropped. */
static void host_target_on_details(void *arg, struct model_snapshot *snapshot) {
    struct host_target *t = arg;
    if (host_target_is_shown(t))
        t->all->shown->on_details(t->all->arg, snapshot);
}

static void host_target_on_note(void *arg, const char *line) {
    struct host_target *t = arg;
    host_target_set_time(t);
    log_add_of(t->all->app->log, t->addr.pid, t->all->app->epoch_s, LOG_LEVEL_WARN, "%s", line);
    t->all->came(t->all->arg);
}

static void host_target_on_samples(void *arg, struct model_sample_batch *batch) {
    struct host_target *t = arg;
    if (host_target_is_shown(t))
        t->all->shown->on_samples(t->all->arg, batch);
}

static void host_target_on_status(void *arg, struct model_status *status) {
    struct host_target *t = arg;
    if (host_target_is_shown(t))
        t->all->shown->on_status(t->all->arg, status);
}

static void host_target_on_evaluated(void *arg, const struct wire_evaluated *what) {
    struct host_target *t = arg;
    if (host_target_is_shown(t))
        t->all->shown->on_evaluated(t->all->arg, what);
}

static void host_target_on_debugger(void *arg, enum wire_method method, struct wire_debugger *what) {
    struct host_target *t = arg;
    if (host_target_is_shown(t))
        t->all->shown->on_debugger(t->all->arg, method, what);
}

static void host_target_on_reply(void *arg, enum wire_method method, const struct err *error) {
    struct host_target *t = arg;
    if (host_target_is_shown(t))
        t->all->shown->on_reply(t->all->arg, method, error);
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

int host_targets_add(struct host_targets *t, const struct target_address *addr, const char *name,
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
    int there = targets_find(t->app, addr->pid);
    if (there >= 0)
        return there;
    snprintf(pid, sizeof pid, "%ld", (long)addr->pid);
    int i = targets_add(t->app, addr->pid, name ? name : pid);
    if (i < 0)
        return err_set(e, ERR_USAGE, "no more than %d targets at a time", TARGETS_MAX);
    struct host_target *item = &t->items[i];
    *item = (struct host_target){.all = t, .index = i, .addr = *addr};
    item->session = session_new(t->loop, &item->addr, &handler, item, e);
    if (!item->session) {
        host_target_on_state(item, SESSION_FAILED, e); /* its entry says so; the others continue */
        return i;
    }
    session_set_sampling(item->session, t->sampling);
    session_set_budget(item->session, t->budget_pct);
    if (!host_target_is_shown(item))
        session_subscribe(item->session, WIRE_STREAM_THREADS, 1 / TARGETS_BACKGROUND_S, NULL);
    return i;
}

void host_targets_show(struct host_targets *t, int i) {
    int before = t->app->targets.shown;
    if (i == before || i < 0 || i >= t->app->targets.n)
        return;
    host_target_slow(&t->items[before]);
    targets_show(t->app, i);
}

struct session *host_targets_session(const struct host_targets *t) {
    return t->app->targets.n ? t->items[t->app->targets.shown].session : NULL;
}

void host_targets_fini(struct host_targets *t) {
    for (int i = 0; t->app && i < t->app->targets.n; i++) {
        session_free(t->items[i].session);
        t->items[i].session = NULL;
    }
}
