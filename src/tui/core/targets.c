/* SPDX-License-Identifier: Apache-2.0 */
/* targets: see targets.h. */
#include "tui/core/targets.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tui/core/app.h"
#include "tui/core/app_arm.h"
#include "tui/core/app_ask.h"
#include "tui/core/app_feed.h"
#include "tui/core/app_history.h"
#include "tui/core/app_query.h"
#include "tui/core/app_screen.h"
#include "tui/model/events.h"

int targets_count(const struct app *a) { return a->targets.n ? a->targets.n : 1; }

const struct data *targets_data(const struct app *a, int i) {
    return a->targets.n && i != a->targets.shown ? &a->targets.items[i].data : &a->data;
}

pid_t targets_pid(const struct app *a, int i) { return a->targets.n ? a->targets.items[i].pid : a->pid; }

const char *targets_name(const struct app *a, int i) { return a->targets.n ? a->targets.items[i].name : ""; }

int targets_find(const struct app *a, pid_t pid) {
    for (int i = 0; i < a->targets.n; i++)
        if (pid > 0 && a->targets.items[i].pid == pid)
            return i;
    return -1;
}

int targets_named(const struct app *a, const char *text) {
    char *end;
    long v = strtol(text, &end, 10);
    if (end == text || *end || v <= 0 || v > INT_MAX)
        return -1;
    return v <= a->targets.n ? (int)v - 1 : targets_find(a, (pid_t)v);
}

static struct events_place targets_place(const struct app *a, int i) {
    return (struct events_place){
        .log = a->log, .pid = a->targets.items[i].pid, .now_s = a->now_s, .epoch_s = a->epoch_s};
}

/* The rows of the hidden ones, from their current data. */
static void targets_make_rows(struct app *a) {
    struct app_targets *all = &a->targets;
    all->rows = (struct data_children){.items = all->row_items};
    for (int i = 0; i < all->n; i++) {
        const struct data *d = &all->items[i].data;
        if (i == all->shown || !d->live.valid)
            continue;
        struct data_child *c = &all->row_items[all->rows.n++];
        *c = (struct data_child){.pid = all->items[i].pid, .shot = d->live, .tree = {.depth = 1}};
        c->attached = d->has_target && d->target.mode == MODEL_MODE_AGENT;
        c->cmdline =
            (char *)(uintptr_t)(d->has_target && d->target.cmdline ? d->target.cmdline : all->items[i].name);
        if (data_is_over(d))
            c->why = d->why;
    }
    if (all->rows.n)
        all->row_items[all->rows.n - 1].tree.last = 1U << 1;
}

static void targets_changed(struct app *a) {
    targets_make_rows(a);
    app_screen_update_all(a);
}

void targets_fini(struct app *a) {
    for (int i = 0; i < a->targets.n; i++)
        if (i != a->targets.shown)
            data_fini(&a->targets.items[i].data);
    tags_fini(&a->targets.tags);
    memset(&a->targets, 0, sizeof a->targets);
}

int targets_add(struct app *a, pid_t pid, const char *name) {
    struct app_targets *all = &a->targets;
    if (all->n == TARGETS_MAX)
        return -1;
    struct app_target *t = &all->items[all->n];
    memset(t, 0, sizeof *t);
    t->pid = pid;
    text_sanitize(t->name, sizeof t->name, name);
    if (all->n > 0) {
        data_init(&t->data);
        t->data.pulse.began_s = a->began_s;
    } else
        a->pid = pid;
    return all->n++;
}

void targets_show(struct app *a, int i) {
    struct app_targets *all = &a->targets;
    if (i < 0 || i >= all->n || i == all->shown)
        return;
    app_history_leave(a);
    all->items[all->shown].data = a->data;
    a->data = all->items[i].data;
    memset(&all->items[i].data, 0, sizeof all->items[i].data);
    all->shown = i;
    a->pid = all->items[i].pid;
    a->came_from = 0;
    a->native = false; /* as for any target that is opened */
    a->data.locals_awaited = false;
    app_ask_forget(a);
    app_arm_forget_watch(a);
    app_query_forget(&a->query);
    app_feeds_forget(&a->feeds);
    app_forget_source(a);
    targets_changed(a);
}

void targets_take_state(struct app *a, int i, enum session_state state, const struct err *why,
                        double retry_in_s) {
    struct data *d = &a->targets.items[i].data;
    struct events_place place = targets_place(a, i);
    enum session_state before = d->state;
    data_set_state(d, state, why, a->now_s + retry_in_s);
    events_see_state(d, before, &place);
    targets_changed(a);
}

void targets_take_target(struct app *a, int i, struct model_target *t) {
    struct data *d = &a->targets.items[i].data;
    struct events_place place = targets_place(a, i);
    bool is_first = !d->has_target;
    data_take_target(d, t);
    events_see_target(d, is_first, &place);
    targets_changed(a);
}

void targets_take_snapshot(struct app *a, int i, struct model_snapshot *s) {
    struct data *d = &a->targets.items[i].data;
    struct events_place place = targets_place(a, i);
    data_take_snapshot(d, s, a->now_s);
    events_see_snapshot(d, &place);
    targets_changed(a);
}
