/* SPDX-License-Identifier: Apache-2.0 */
/*
 * targets: the targets, to switch between them: what each is, its state, whether it still exists.
 * Enter shows the selected one.
 */
#include "tui/core/app.h"
#include "tui/core/app_screen.h"
#include "tui/core/screen.h"
#include "tui/core/targets.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tui/view/view.h"

#define TARGETS_MEAN 40 /* snapshots that shares are computed from */

/* One target as it is drawn. */
struct targets_row {
    int index;
    bool is_shown;
    pid_t pid;
    const char *name;
    const struct data *data;
};

struct targets_state {
    struct targets_row rows[TARGETS_MAX];
    int n;
    struct view view;
};

static const struct targets_row *targets_of(const void *row) { return row; }

static const struct data_shot *targets_shot(const void *row) {
    const struct data *d = targets_of(row)->data;
    return d->live.valid ? &d->live : NULL;
}

static void targets_cell_mark(const void *row, struct table_cell *c) {
    snprintf(c->text, sizeof c->text, "%d%s", targets_of(row)->index + 1,
             targets_of(row)->is_shown ? "*" : "");
    c->role = targets_of(row)->is_shown ? ROLE_TITLE_FOCUS : ROLE_MUTED;
}

static void targets_cell_pid(const void *row, struct table_cell *c) {
    const struct targets_row *t = targets_of(row);
    if (t->pid > 0)
        snprintf(c->text, sizeof c->text, "%ld", (long)t->pid);
    else if (t->data->has_target)
        snprintf(c->text, sizeof c->text, "%lld", (long long)t->data->target.pid);
    else
        snprintf(c->text, sizeof c->text, "?");
    c->role = ROLE_VALUE;
}

static void targets_cell_state(const void *row, struct table_cell *c) {
    const struct data *d = targets_of(row)->data;
    static const struct {
        const char *text;
        enum theme_role role;
    } states[] = {[SESSION_CONNECTING] = {"connecting", ROLE_CONN_WAIT},
                  [SESSION_CONNECTED] = {"connected", ROLE_CONN_OK},
                  [SESSION_RECONNECTING] = {"reconnecting", ROLE_CONN_WAIT},
                  [SESSION_LOST] = {"GONE", ROLE_CONN_LOST},
                  [SESSION_FAILED] = {"NO AGENT", ROLE_CONN_LOST}};
    bool ended = d->state == SESSION_CONNECTED && data_is_recorded(d);
    snprintf(c->text, sizeof c->text, "%s",
             ended                                               ? "ended"
             : d->state == SESSION_CONNECTED && d->pulse.stopped ? "STOPPED"
                                                                 : states[d->state].text);
    c->role = ended ? ROLE_CONN_LOST : d->pulse.stopped ? ROLE_CONN_WAIT : states[d->state].role;
}

static void targets_put_percent(struct table_cell *c, double v, enum theme_role role) {
    if (isnan(v))
        snprintf(c->text, sizeof c->text, "?");
    else
        snprintf(c->text, sizeof c->text, "%.*f", v < 99.95 ? 1 : 0, v);
    c->role = isnan(v) ? ROLE_MUTED : role;
}

static void targets_cell_cpu(const void *row, struct table_cell *c) {
    const struct data_shot *shot = targets_shot(row);
    targets_put_percent(c, shot ? shot->snapshot.process.cpu_pct : NAN, ROLE_CPU_MID);
}

static void targets_cell_gil(const void *row, struct table_cell *c) {
    const struct data_shot *shot = targets_shot(row);
    targets_put_percent(c, meter_mean(&targets_of(row)->data->gil, TARGETS_MEAN), ROLE_GIL_HELD);
    if (shot && shot->snapshot.gil_enabled == 0)
        snprintf(c->text, sizeof c->text, "none");
}

static void targets_cell_threads(const void *row, struct table_cell *c) {
    const struct data_shot *shot = targets_shot(row);
    if (shot)
        snprintf(c->text, sizeof c->text, "%zu", shot->snapshot.n_threads);
    else
        snprintf(c->text, sizeof c->text, "?");
    c->role = ROLE_TEXT;
}

static void targets_cell_mode(const void *row, struct table_cell *c) {
    const struct data *d = targets_of(row)->data;
    snprintf(c->text, sizeof c->text, "%s",
             !d->has_target                          ? "?"
             : d->target.mode == MODEL_MODE_AGENT    ? "agent"
             : d->target.mode == MODEL_MODE_READONLY ? "outside"
                                                     : "recorded");
    c->role = ROLE_TEXT;
}

static void targets_cell_command(const void *row, struct table_cell *c) {
    const struct data *d = targets_of(row)->data;
    const char *what = d->has_target && d->target.cmdline ? d->target.cmdline : targets_of(row)->name;
    snprintf(c->text, sizeof c->text, "%s", *what ? data_short_command(what) : "?");
    c->role = ROLE_TEXT;
}

static const struct table_column targets_columns[] = {
    {"#", "", {3, 0, 0}, GRID_LEFT, false, targets_cell_mark, NULL},
    {"PID", "", {7, 0, 0}, GRID_RIGHT, false, targets_cell_pid, NULL},
    {"STATE", "", {12, 0, 0}, GRID_LEFT, false, targets_cell_state, NULL},
    {"CPU%", "", {6, 0, 1}, GRID_RIGHT, true, targets_cell_cpu, NULL},
    {"GIL%", "", {6, 0, 2}, GRID_RIGHT, true, targets_cell_gil, NULL},
    {"THREADS", "", {7, 0, 3}, GRID_RIGHT, true, targets_cell_threads, NULL},
    {"MODE", "", {8, 0, 4}, GRID_LEFT, false, targets_cell_mode, NULL},
    {"COMMAND", "", {12, 1, 0}, GRID_LEFT, false, targets_cell_command, NULL},
};
#define TARGETS_COLUMNS ((int)(sizeof targets_columns / sizeof targets_columns[0]))

/* ---- rows ---- */

static int targets_count_rows(const void *state) { return ((const struct targets_state *)state)->n; }

static const void *targets_row(const void *state, int at) {
    return &((const struct targets_state *)state)->rows[at];
}

static uint64_t targets_key(const void *row) { return (uint64_t)targets_of(row)->index + 1; }

static void targets_put(const void *state, const void *row, struct screen_pick *what, struct strbuf *one,
                        struct strbuf *whole) {
    struct table_cell pid = {.role = ROLE_TEXT};
    (void)state;
    (void)what;
    targets_cell_pid(row, &pid);
    strbuf_adds(one, pid.text);
    table_put_row(targets_columns, TARGETS_COLUMNS, row, whole);
}

static void targets_update(void *state, struct app *app) {
    struct targets_state *s = state;
    s->n = 0;
    for (int i = 0; i < targets_count(app); i++) {
        struct targets_row row = {.index = i,
                                  .is_shown = !app->targets.n || i == app->targets.shown,
                                  .pid = targets_pid(app, i),
                                  .name = targets_name(app, i),
                                  .data = targets_data(app, i)};
        if (view_shows(&s->view, &row))
            s->rows[s->n++] = row;
    }
    view_settle(&s->view);
}

static const struct view_def targets_rows = {.count = targets_count_rows,
                                             .row = targets_row,
                                             .key = targets_key,
                                             .put = targets_put,
                                             .rebuild = targets_update,
                                             .forgets = true};

static struct view *targets_view(void *state) { return &((struct targets_state *)state)->view; }

static void targets_init(void *state, struct app *app) {
    struct targets_state *s = state;
    view_init(&s->view, &targets_rows, s, &app->targets.tags);
    view_set_columns(&s->view, targets_columns, TARGETS_COLUMNS);
    s->view.sort.column = s->view.scroll = -1;
    targets_update(s, app);
    int row = 0; /* if only others are shown */
    for (int i = 0; i < s->n; i++)
        row = s->rows[i].is_shown ? i : row;
    view_select(&s->view, app, row);
}

static void targets_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct targets_state *s = state;
    targets_update(s, app);
    view_draw(&s->view, g, area, "");
}

/* ---- actions ---- */

static void targets_switch(const struct targets_state *s, struct app *app) {
    app->host.show_target(app->host.arg, s->rows[s->view.list.selected].index);
    app_screen_pop(app); /* s is freed */
}

static bool targets_act(void *state, struct app *app, enum action action) {
    if (action != ACTION_SWITCH_TARGET)
        return false;
    targets_switch(state, app);
    return true;
}

/* A click on the selected one shows it. */
static bool targets_mouse(void *state, struct app *app, const struct input_event *e) {
    struct targets_state *s = state;
    bool again, done = view_mouse(&s->view, app, e, &again);
    if (again && e->button == INPUT_CLICK)
        targets_switch(s, app);
    return done;
}

static void targets_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct targets_state *s = state;
    const struct data *d = s->rows[s->view.list.selected].data;
    strbuf_addf(out, "Targets %d", targets_count(app));
    view_put_filter(&s->view, out);
    if (data_is_over(d) && *d->why.text)
        strbuf_addf(out, "   %s", d->why.text);
    else if (targets_count(app) == 1)
        strbuf_adds(out, "   start with several: probing-top TARGET TARGET ...");
    else
        strbuf_adds(out, "   Enter shows the selected one");
}

const struct screen_def screen_targets = {
    .name = "targets",
    .title = "Targets",
    .opens = {{ACTION_SHOW_TARGETS,
               "targets",
               ACTION_TABS,
               {"alt-p"},
               NULL,
               0,
               "all targets; Enter there shows another one"}},
    .state_size = sizeof(struct targets_state),
    .init = targets_init,
    .keys = CONTEXT_TARGETS,
    .view = targets_view,
    .draw = targets_draw,
    .act = targets_act,
    .mouse = targets_mouse,
    .update = targets_update,
    .status = targets_status,
};
