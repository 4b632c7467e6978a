/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps: the training steps: how long each took, what it was spent on, loss, gradients and learning rate where they are known, and what slow
 * ones had in common.
 *
 * The tables are asked once a second, for as many of the newest steps as can be drawn, over a time that follows from how long they take.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/core/app.h"
#include "tui/screens/steps/steps_state.h"
#include "tui/view/table.h"

#define STEPS_EVERY_S 1.0
#define STEPS_SAMPLES_EVERY_S 2.0
#define STEPS_LEAST 256           /* that are asked for */
#define STEPS_FIRST_S 64.0        /* over so long at first, */
#define STEPS_LAST_S 262144.0     /* at most, */
#define STEPS_SHORT_S 2.0         /* and at least */
#define STEPS_SAMPLES_S 240.0     /* of looks, where threads are few, */
#define STEPS_SAMPLES_MANY_S 60.0 /* and where they are many */
#define STEPS_MANY_THREADS 16

/* So many as fill the strips, and the table. */
static unsigned steps_limit(const struct steps_state *s) {
    unsigned limit = STEPS_LEAST, want = (unsigned)(s->cols > 0 ? s->cols : 80) * s->zoom;
    while (limit < want)
        limit *= 2;
    return limit;
}

/* Over which time there are that many: longer while there are fewer, shorter when it is more than twice as long as these took: all that
 * lie in it are read and sorted. */
static void steps_adapt(struct steps_state *s, const struct app *app) {
    const struct app_feed *f = app_feed_get(app, FEED_STEPS);
    const struct steps_model *m = &s->model;
    if (!f->rows || f->version != s->version || f->wanted || f->running)
        return;
    double span = m->n > 1 ? m->rows[0].at_s - m->rows[m->n - 1].at_s : NAN;
    if (f->rows->n_rows < steps_limit(s) && s->window_s < STEPS_LAST_S)
        s->window_s *= 4;
    else if (f->rows->n_rows >= steps_limit(s) && span < s->window_s / 2.5 && s->window_s > STEPS_SHORT_S)
        s->window_s /= 2;
}

static void steps_follow(struct steps_state *s, struct app *app) {
    char text[APP_FEED_TEXT];
    steps_adapt(s, app);
    (void)snprintf(
        text, sizeof text,
        "SELECT timestamp, step, duration_ms, data_ms, forward_ms, backward_ms, optimizer_ms, comm_ms, "
        "gc_ms, other_ms, loss, lr, grad_norm, nonfinite FROM python.steps WHERE timestamp > now() - "
        "%.0f ORDER BY timestamp DESC LIMIT %u",
        s->window_s, steps_limit(s));
    app_feed_follow(app, FEED_STEPS, text, STEPS_EVERY_S);
    if (!app->data.live.valid && !data_is_recorded(&app->data))
        return;
    bool many = app->data.live.valid && app->data.live.snapshot.n_threads > STEPS_MANY_THREADS;
    s->looks_s = many ? STEPS_SAMPLES_MANY_S : STEPS_SAMPLES_S;
    if (s->looks_s > s->window_s) /* older ones are of no step that is shown */
        s->looks_s = s->window_s;
    (void)snprintf(
        text, sizeof text,
        "SELECT timestamp, gil = 'waiting' AS waits, gc FROM python.samples WHERE tid = pid AND timestamp > "
        "now() - %.0f ORDER BY timestamp DESC LIMIT 4096",
        s->looks_s);
    app_feed_follow(app, FEED_STEP_SAMPLES, text, STEPS_SAMPLES_EVERY_S);
}

/* Take what came; while the view is paused what is shown stays. */
static void steps_take(struct steps_state *s, const struct app *app) {
    const struct app_feed *f = app_feed_get(app, FEED_STEPS), *looks = app_feed_get(app, FEED_STEP_SAMPLES);
    bool is_new = f->version != s->version || looks->version != s->looks_version;
    bool is_whole = s->model.n > 0 && (s->has_looks || !looks->rows); /* they come after the steps */
    if (!is_new || (app->data.paused && is_whole))
        return;
    s->has_looks = looks->rows != NULL;
    s->version = f->version;
    s->looks_version = looks->version;
    if (!f->rows) /* another target */
        tags_clear(&s->table.view.own_tags);
    steps_model_build(&s->model, f->rows, looks->rows);
    steps_table_take(s);
}

static void steps_update(void *state, struct app *app) {
    struct steps_state *s = state;
    steps_take(s, app);
    if (app_top(app)->state == state)
        steps_follow(s, app);
}

static void steps_init(void *state, struct app *app) {
    struct steps_state *s = state;
    outline_init(&s->table, &steps_outline, app->config.ascii);
    s->table.flat = true;
    s->table.view.sort = (struct table_sort){STEPS_COLUMN_STEP, true};
    s->zoom = 1;
    s->window_s = STEPS_FIRST_S;
    s->version = s->looks_version = UINT32_MAX; /* none was seen */
    steps_model_build(&s->model, NULL, NULL);
    if (app->config.filter)
        match_set(&s->table.view.filter, app->config.filter, true);
    steps_update(state, app);
}

static void steps_fini(void *state) {
    struct steps_state *s = state;
    outline_fini(&s->table);
    steps_model_fini(&s->model);
}

/* ---- actions ---- */

static void steps_zoom(struct steps_state *s, struct app *app, bool shorter) {
    unsigned zoom = shorter ? s->zoom / 2 : s->zoom * 2;
    if (zoom < 1 || zoom > STEPS_MAX_ZOOM) {
        app_message(app, false, shorter ? "a step a column is the finest" : "%d steps a column are the most",
                    STEPS_MAX_ZOOM);
        return;
    }
    s->zoom = zoom;
    app_message(app, false, zoom > 1 ? "%u steps a column: the longest of them" : "a step a column", zoom);
}

static bool steps_back(struct steps_state *s) {
    if (view_can_go_back(&s->table.view) || !s->table.view.has_key)
        return false;
    s->table.view.has_key = false; /* the newest is selected again, and stays so */
    s->first = 0;
    outline_order(&s->table);
    return true;
}

static bool steps_act(void *state, struct app *app, enum action action) {
    struct steps_state *s = state;
    switch ((int)action) {
    case ACTION_BACK:
        return steps_back(s);
    case ACTION_TIME_SHORTER:
    case ACTION_TIME_LONGER:
        steps_zoom(s, app, action == ACTION_TIME_SHORTER);
        return true;
    case ACTION_LEFT: /* back in time: to the step before */
    case ACTION_RIGHT:
        action = (action == ACTION_LEFT) == s->table.view.sort.descends ? ACTION_DOWN : ACTION_UP;
        return view_act(&s->table.view, app, action) != VIEW_IGNORED;
    default:
        return false;
    }
}

static bool steps_mouse(void *state, struct app *app, const struct input_event *e) {
    struct steps_state *s = state;
    const struct rect *r = &s->chart_area;
    if (e->row >= r->row && e->row < r->row + r->rows) {
        if (e->button != INPUT_WHEEL_UP && e->button != INPUT_WHEEL_DOWN)
            return false;
        steps_zoom(s, app, e->button == INPUT_WHEEL_UP);
        return true;
    }
    return outline_mouse(&s->table, app, e);
}

static struct view *steps_view(void *state) { return &((struct steps_state *)state)->table.view; }

const struct screen_def screen_steps = {
    .name = "steps",
    .title = "Steps",
    .is_tab = true,
    .opens = {{ACTION_SHOW_STEPS,
               "steps",
               ACTION_TABS,
               {"E"},
               NULL,
               0,
               "the Steps screen: training steps, and why some are slow"}},
    .needs_vitals = true,
    .is_kept = true,
    .tells_arms = true,
    .state_size = sizeof(struct steps_state),
    .init = steps_init,
    .fini = steps_fini,
    .keys = CONTEXT_STEPS,
    .view = steps_view,
    .draw = steps_draw,
    .act = steps_act,
    .mouse = steps_mouse,
    .update = steps_update,
    .status = steps_status,
};

/* ---- table ---- */

/* The last steps, a row each, with their parts. */

static const struct steps_row *steps_of(const void *node) { return ((const struct outline_node *)node)->row; }

static void steps_cell_ms(struct table_cell *c, double ms, bool is_cause) {
    steps_put_ms(c->text, sizeof c->text, ms);
    c->role = isnan(ms) ? ROLE_MUTED : is_cause ? ROLE_CPU_HIGH : ROLE_VALUE;
}

static void steps_cell_number(struct table_cell *c, double v, bool is_bad) {
    steps_put_number(c->text, sizeof c->text, v);
    c->role = isnan(v) ? ROLE_MUTED : ROLE_VALUE;
    if (is_bad) {
        (void)snprintf(c->text, sizeof c->text, "nan!");
        c->role = ROLE_CONN_LOST;
    }
}

static void steps_cell_step(const void *node, struct table_cell *c) {
    const struct steps_row *r = steps_of(node);
    c->role = ROLE_TEXT;
    if (r->step == APP_FEED_UNKNOWN)
        (void)snprintf(c->text, sizeof c->text, "?");
    else
        (void)snprintf(c->text, sizeof c->text, "%" PRId64, r->step);
}
static void steps_cell_time(const void *node, struct table_cell *c) {
    const struct steps_row *r = steps_of(node);
    steps_cell_ms(c, r->ms, r->cause >= 0);
}
static void steps_cell_slowness(const void *node, struct table_cell *c) {
    const struct steps_row *r = steps_of(node);
    c->role = r->cause >= 0 ? ROLE_CPU_HIGH : ROLE_MUTED;
    if (isnan(r->slowness))
        (void)snprintf(c->text, sizeof c->text, "\xe2\x80\x94");
    else
        (void)snprintf(c->text, sizeof c->text, "%.2fx%s", r->slowness, r->cause >= 0 ? "!" : " ");
}
static void steps_cell_why(const void *node, struct table_cell *c) {
    const struct steps_row *r = steps_of(node);
    c->role = ROLE_TEXT;
    (void)snprintf(c->text, sizeof c->text, "%s",
                   r->cause >= 0 ? steps_part_name((enum steps_part)r->cause) : "");
}
static void steps_cell_loss(const void *node, struct table_cell *c) {
    const struct steps_row *r = steps_of(node);
    steps_cell_number(c, r->loss, r->bad == 'l' || r->bad == 'b');
}
static void steps_cell_grad(const void *node, struct table_cell *c) {
    const struct steps_row *r = steps_of(node);
    steps_cell_number(c, r->grad_norm, r->bad == 'g' || r->bad == 'b');
}
static void steps_cell_lr(const void *node, struct table_cell *c) {
    steps_cell_number(c, steps_of(node)->lr, false);
}

static int steps_compare_time(const void *a, const void *b) {
    return table_compare_number(steps_of(a)->at_s, steps_of(b)->at_s);
}
static int steps_compare_why(const void *a, const void *b) { return steps_of(a)->cause - steps_of(b)->cause; }

#define STEPS_COMPARE(name, field)                                                                           \
    static int steps_compare_##name(const void *a, const void *b) {                                          \
        return table_compare_number(steps_of(a)->field, steps_of(b)->field);                                 \
    }
STEPS_COMPARE(ms, ms)
STEPS_COMPARE(slowness, slowness)
STEPS_COMPARE(loss, loss)
STEPS_COMPARE(grad, grad_norm)
STEPS_COMPARE(lr, lr)

#define STEPS_PART(name, part)                                                                               \
    static void steps_cell_##name(const void *node, struct table_cell *c) {                                  \
        steps_cell_ms(c, steps_of(node)->parts[part], steps_of(node)->cause == (int)(part));                 \
    }                                                                                                        \
    STEPS_COMPARE(name, parts[part])
STEPS_PART(data, STEPS_DATA)
STEPS_PART(forward, STEPS_FORWARD)
STEPS_PART(backward, STEPS_BACKWARD)
STEPS_PART(optimizer, STEPS_OPTIMIZER)
STEPS_PART(comm, STEPS_COMM)
STEPS_PART(gc, STEPS_GC)
STEPS_PART(other, STEPS_OTHER)

/* clang-format off */
static const struct table_column steps_columns[] = {
    {"STEP", "its number, counted from the first that the agent saw", {6, 0, 0}, GRID_RIGHT, true, steps_cell_step, steps_compare_time},
    {"TIME", "from the end of the step before to its own", {8, 0, 0}, GRID_RIGHT, true, steps_cell_time, steps_compare_ms},
    {"X", "times the median; ! it is slow", {7, 0, 3}, GRID_RIGHT, true, steps_cell_slowness, steps_compare_slowness},
    {"DATA", "fetching batches", {8, 0, 1}, GRID_RIGHT, true, steps_cell_data, steps_compare_data},
    {"FORWARD", "of steps that were looked into", {8, 0, 4}, GRID_RIGHT, true, steps_cell_forward, steps_compare_forward},
    {"BACKWARD", "of steps that were looked into", {8, 0, 4}, GRID_RIGHT, true, steps_cell_backward, steps_compare_backward},
    {"OPTIM", "Optimizer.step and zero_grad", {8, 0, 4}, GRID_RIGHT, true, steps_cell_optimizer, steps_compare_optimizer},
    {"COMM", "while a collective went on", {8, 0, 5}, GRID_RIGHT, true, steps_cell_comm, steps_compare_comm},
    {"GC", "collecting garbage, within the others", {8, 0, 2}, GRID_RIGHT, true, steps_cell_gc, steps_compare_gc},
    {"OTHER", "the rest", {8, 0, 6}, GRID_RIGHT, true, steps_cell_other, steps_compare_other},
    {"LOSS", "where it is found", {8, 0, 2}, GRID_RIGHT, true, steps_cell_loss, steps_compare_loss},
    {"GRAD", "norm of the gradients", {8, 0, 5}, GRID_RIGHT, true, steps_cell_grad, steps_compare_grad},
    {"LR", "learning rate", {8, 0, 6}, GRID_RIGHT, true, steps_cell_lr, steps_compare_lr},
    {"WHY", "the part that most of what a slow one took more is of", {9, 1, 1}, GRID_LEFT, true, steps_cell_why, steps_compare_why},
};
/* clang-format on */

_Static_assert(sizeof steps_columns / sizeof steps_columns[0] <= TABLE_MAX_COLUMNS, "columns of steps");

static bool steps_matches(const void *node, const struct match *m) {
    const struct steps_row *r = ((const struct outline_node *)node)->row;
    char number[32];
    (void)snprintf(number, sizeof number, "%" PRId64, r->step);
    return match_text(m, number) ||
           (r->cause >= 0 &&
            (match_text(m, "slow") || match_text(m, steps_part_name((enum steps_part)r->cause)))) ||
           (r->bad && match_text(m, "nan"));
}

static void steps_put_name(const void *row, struct strbuf *out) {
    (void)strbuf_addf(out, "%" PRId64, ((const struct steps_row *)row)->step);
}

const struct outline_def steps_outline = {
    .columns = steps_columns,
    .n_columns = sizeof steps_columns / sizeof steps_columns[0],
    .matches = steps_matches,
    .put_name = steps_put_name,
};

void steps_table_take(struct steps_state *s) {
    struct outline_node *nodes = calloc(s->model.n + 1, sizeof *nodes);
    for (size_t i = 0; nodes && i < s->model.n; i++)
        nodes[i] = (struct outline_node){
            .row = &s->model.rows[i], .parent = -1, .key = (uint64_t)s->model.rows[i].step};
    outline_take(&s->table, nodes, s->model.n);
}

size_t steps_selected(const struct steps_state *s) {
    const struct outline_node *n = outline_selected(&s->table);
    return n ? (size_t)((const struct steps_row *)n->row - s->model.rows) : 0;
}
