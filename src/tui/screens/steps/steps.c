/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps: the training steps: how long each took and what it was spent on; loss, gradients and
 * learning rate if they are known; and what slow ones had in common.
 *
 * The tables are queried once a second, for as many of the newest steps as can be drawn, over a
 * time that follows from how long they take.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client/sql/steps_model.h"
#include "tui/core/app.h"
#include "tui/core/app_arm.h"
#include "tui/core/app_feed.h"
#include "tui/core/app_screen.h"
#include "tui/core/job_state.h"
#include "tui/core/screen.h"
#include "tui/view/outline.h"
#include "tui/view/table.h"

#define STEPS_EVERY_S 1.0
#define STEPS_DATABASE_EVERY_S 5.0 /* which has new ones every ten seconds */
#define STEPS_SAMPLES_EVERY_S 2.0
#define STEPS_STACKS_EVERY_S 4.0
#define STEPS_LEAST 256           /* that are requested */
#define STEPS_FIRST_S 64.0        /* over this time at first, */
#define STEPS_LAST_S 262144.0     /* at most, */
#define STEPS_SHORT_S 2.0         /* and at least */
#define STEPS_SAMPLES_S 240.0     /* of samples, with few threads, */
#define STEPS_SAMPLES_MANY_S 60.0 /* and with many */
#define STEPS_MANY_THREADS 16
#define STEPS_OF_RANK " AND rank = "

#define STEPS_MAX_ZOOM 64 /* steps a column */

struct steps_state {
    struct steps_model model;
    struct outline table;
    bool has_looks;
    unsigned version, looks_version, stacks_version; /* of the feeds, as shown */
    unsigned zoom;                                   /* steps a column */
    double window_s, looks_s;                        /* the time that steps and samples are requested for */
    size_t first;                                    /* the newest column that is drawn */
    int cols;                                        /* of the strips, as last drawn */
    struct rect chart_area;                          /* where they are */
    bool has_ranks;                                  /* beside it, all ranks of the job */
    int32_t rank;                                    /* of a database: whose rows are shown; -1: no rank's */
    bool is_read;                                    /* they have come */
};

enum { STEPS_COLUMN_STEP = 0 };

/* No process is shown: the rows are those of a rank in a database. */
static bool steps_is_of_job(const struct app *app) { return app->job.has_past && job_state_is_alone(app); }

/* ---- table ---- */

static const struct steps_row *steps_of(const void *node) { return ((const struct outline_node *)node)->row; }

static void steps_cell_ms(struct table_cell *c, double ms, bool is_cause) {
    steps_put_ms(c->text, sizeof c->text, ms);
    c->role = isnan(ms) ? ROLE_MUTED : is_cause ? ROLE_CPU_HIGH : ROLE_VALUE;
}

static void steps_cell_number(struct table_cell *c, double v, bool is_bad) {
    steps_put_number(c->text, sizeof c->text, v);
    c->role = isnan(v) ? ROLE_MUTED : ROLE_VALUE;
    if (is_bad) {
        snprintf(c->text, sizeof c->text, "nan!");
        c->role = ROLE_CONN_LOST;
    }
}

static void steps_cell_step(const void *node, struct table_cell *c) {
    const struct steps_row *r = steps_of(node);
    c->role = ROLE_TEXT;
    if (r->step == APP_FEED_UNKNOWN)
        snprintf(c->text, sizeof c->text, "?");
    else
        snprintf(c->text, sizeof c->text, "%" PRId64, r->step);
}
static void steps_cell_time(const void *node, struct table_cell *c) {
    const struct steps_row *r = steps_of(node);
    steps_cell_ms(c, r->ms, r->cause >= 0);
}
static void steps_cell_slowness(const void *node, struct table_cell *c) {
    const struct steps_row *r = steps_of(node);
    c->role = r->cause >= 0 ? ROLE_CPU_HIGH : ROLE_MUTED;
    if (isnan(r->slowness))
        snprintf(c->text, sizeof c->text, "\xe2\x80\x94");
    else
        snprintf(c->text, sizeof c->text, "%.2fx%s", r->slowness, r->cause >= 0 ? "!" : " ");
}
static void steps_cell_why(const void *node, struct table_cell *c) {
    const struct steps_row *r = steps_of(node);
    c->role = ROLE_TEXT;
    steps_put_why(r, c->text, sizeof c->text);
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
static int steps_compare_why(const void *a, const void *b) {
    const struct steps_row *x = steps_of(a), *y = steps_of(b);
    if (x->cause != y->cause || x->cause != STEPS_SITE)
        return x->cause - y->cause;
    int by_func = text_compare(x->site.func, y->site.func);
    return by_func ? by_func : x->site.line - y->site.line;
}

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
    {"FORWARD", "from the batch to the backward pass", {8, 0, 4}, GRID_RIGHT, true, steps_cell_forward, steps_compare_forward},
    {"BACKWARD", "the backward passes", {8, 0, 4}, GRID_RIGHT, true, steps_cell_backward, steps_compare_backward},
    {"OPTIM", "Optimizer.step and zero_grad", {8, 0, 4}, GRID_RIGHT, true, steps_cell_optimizer, steps_compare_optimizer},
    {"COMM", "while a collective went on", {8, 0, 5}, GRID_RIGHT, true, steps_cell_comm, steps_compare_comm},
    {"GC", "collecting garbage, within the others", {8, 0, 2}, GRID_RIGHT, true, steps_cell_gc, steps_compare_gc},
    {"OTHER", "the rest", {8, 0, 6}, GRID_RIGHT, true, steps_cell_other, steps_compare_other},
    {"LOSS", "where it is found", {8, 0, 2}, GRID_RIGHT, true, steps_cell_loss, steps_compare_loss},
    {"GRAD", "norm of the gradients", {8, 0, 5}, GRID_RIGHT, true, steps_cell_grad, steps_compare_grad},
    {"LR", "learning rate", {8, 0, 6}, GRID_RIGHT, true, steps_cell_lr, steps_compare_lr},
    {"WHY", "where the extra time of a slow step went: a part or, by its samples, a function", {9, 1, 1}, GRID_LEFT, true, steps_cell_why, steps_compare_why},
};
/* clang-format on */

_Static_assert(sizeof steps_columns / sizeof steps_columns[0] <= TABLE_MAX_COLUMNS, "columns of steps");

static bool steps_matches(const void *node, const struct match *m) {
    const struct steps_row *r = ((const struct outline_node *)node)->row;
    char number[32];
    char why[TABLE_CELL];
    snprintf(number, sizeof number, "%" PRId64, r->step);
    steps_put_why(r, why, sizeof why);
    return match_text(m, number) || (r->cause >= 0 && (match_text(m, "slow") || match_text(m, why))) ||
           (r->bad && match_text(m, "nan"));
}

static void steps_put_name(const void *row, struct strbuf *out) {
    strbuf_addf(out, "%" PRId64, ((const struct steps_row *)row)->step);
}

static const struct outline_def steps_outline = {
    .columns = steps_columns,
    .n_columns = sizeof steps_columns / sizeof steps_columns[0],
    .matches = steps_matches,
    .put_name = steps_put_name,
};

/* The table shows the model's rows. */
static void steps_table_take(struct steps_state *s) {
    struct outline_node *nodes = calloc(s->model.n + 1, sizeof *nodes);
    for (size_t i = 0; nodes && i < s->model.n; i++)
        nodes[i] = (struct outline_node){
            .row = &s->model.rows[i], .parent = -1, .key = (uint64_t)s->model.rows[i].step};
    outline_take(&s->table, nodes, s->model.n);
}

/* Number of the selected row in the model; 0: none. */
static size_t steps_selected(const struct steps_state *s) {
    const struct outline_node *n = outline_selected(&s->table);
    return n ? (size_t)((const struct steps_row *)n->row - s->model.rows) : 0;
}

/* ---- what the tables are asked ---- */

/* As many as fill the strips, and the table. */
static unsigned steps_limit(const struct steps_state *s) {
    unsigned limit = STEPS_LEAST, want = (unsigned)(s->cols > 0 ? s->cols : 80) * s->zoom;
    while (limit < want)
        limit *= 2;
    return limit;
}

/* The time that contains so many: longer while there are fewer, shorter if it is more than twice
 * what these took, because everything in it is read and sorted. */
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
    char text[APP_FEED_TEXT], rank[48] = "";
    const struct job_shot_rank *r = steps_is_of_job(app) ? job_state_selected(app) : NULL;
    if (steps_is_of_job(app) && !r)
        return;
    /* it stays, though another one becomes the worst */
    const struct app_job *j = &app->job;
    if (r && (isnan(j->moment) || (j->read && j->read->moment == j->moment)))
        app->job.rank = r->rank;
    if (r)
        snprintf(rank, sizeof rank, STEPS_OF_RANK "%" PRId32, r->rank);
    steps_adapt(s, app);
    snprintf(text, sizeof text,
             "SELECT timestamp, step, duration_ms, data_ms, forward_ms, backward_ms, optimizer_ms, comm_ms, "
             "gc_ms, other_ms, loss, lr, grad_norm, nonfinite FROM python.steps WHERE timestamp > now() - "
             "%.0f%s ORDER BY timestamp DESC LIMIT %u",
             s->window_s, rank, steps_limit(s));
    app_feed_follow(app, FEED_STEPS, text, r ? STEPS_DATABASE_EVERY_S : STEPS_EVERY_S);
    if (!app->data.live.valid && !data_is_recorded(&app->data))
        return;
    bool many = app->data.live.valid && app->data.live.snapshot.n_threads > STEPS_MANY_THREADS;
    s->looks_s = many ? STEPS_SAMPLES_MANY_S : STEPS_SAMPLES_S;
    if (s->looks_s > s->window_s) /* older ones belong to no step that is shown */
        s->looks_s = s->window_s;
    if (steps_sites_ask_samples(text, sizeof text, s->looks_s) == 0)
        app_feed_follow(app, FEED_STEP_SAMPLES, text, STEPS_SAMPLES_EVERY_S);
    if (steps_sites_ask_stacks(text, sizeof text, s->looks_s) == 0)
        app_feed_follow(app, FEED_STEP_STACKS, text, STEPS_STACKS_EVERY_S);
}

/* A query for that rank, or with -1 for none. */
static bool steps_is_of_rank(const char *text, int32_t rank) {
    const char *at = strstr(text, STEPS_OF_RANK);
    return at ? strtol(at + strlen(STEPS_OF_RANK), NULL, 10) == rank : rank < 0;
}

/* Take new data; while the view is frozen the display stays. */
static void steps_take(struct steps_state *s, const struct app *app) {
    const struct app_feed *f = app_feed_get(app, FEED_STEPS), *looks = app_feed_get(app, FEED_STEP_SAMPLES);
    const struct app_feed *stacks = app_feed_get(app, FEED_STEP_STACKS);
    const struct job_shot_rank *r = steps_is_of_job(app) ? job_state_selected(app) : NULL;
    int32_t rank = r ? r->rank : -1;
    bool is_new = rank != s->rank || f->version != s->version || looks->version != s->looks_version ||
                  stacks->version != s->stacks_version;
    /* They arrive after the steps. */
    bool is_whole = s->model.n > 0 && (s->has_looks || !looks->rows);
    if (!is_new || (app->data.paused && is_whole && !steps_is_of_job(app)))
        return;
    s->has_looks = looks->rows != NULL;
    s->version = f->version;
    s->looks_version = looks->version;
    s->stacks_version = stacks->version;
    const struct result *rows = steps_is_of_rank(f->answered, rank) ? f->rows : NULL;
    if (!rows || rank != s->rank) /* another target, or another rank */
        tags_clear(&s->table.view.own_tags);
    s->rank = rank;
    s->is_read = rows != NULL;
    steps_model_build(&s->model, rows, looks->rows, stacks->rows);
    steps_table_take(s);
}

static void steps_update(void *state, struct app *app) {
    struct steps_state *s = state;
    steps_take(s, app);
    if (app_screen_top(app)->state == state)
        steps_follow(s, app);
}

/* Of a job that has ended nothing new comes that would ask again after an error. */
static void steps_tick(void *state, struct app *app) {
    if (steps_is_of_job(app))
        steps_follow(state, app);
}

static void steps_init(void *state, struct app *app) {
    struct steps_state *s = state;
    outline_init(&s->table, &steps_outline, app->config.ascii);
    s->table.flat = true;
    s->table.view.sort = (struct table_sort){STEPS_COLUMN_STEP, true};
    s->zoom = 1;
    s->window_s = STEPS_FIRST_S;
    s->version = s->looks_version = s->stacks_version = UINT32_MAX; /* none were seen */
    s->rank = -1;
    steps_model_build(&s->model, NULL, NULL, NULL);
    if (app->config.filter)
        match_set(&s->table.view.filter, app->config.filter, true);
    steps_update(state, app);
}

static void steps_fini(void *state) {
    struct steps_state *s = state;
    outline_fini(&s->table);
    steps_model_fini(&s->model);
}

/* ---- all ranks ---- */

/* The process as a rank of the job that is watched, or the rank whose rows a database has; NULL: it is none. */
static const struct job_shot_rank *steps_rank(const struct app *app) {
    int32_t world;
    if (steps_is_of_job(app))
        return job_state_selected(app);
    return job_shot_find(job_state_shown(app), job_state_rank(app, &world));
}

/* A step in all ranks that end theirs together; NULL: not known. */
static const struct fleet_fan *steps_fan(const struct app *app, int64_t step) {
    const struct job_shot *f = job_state_shown(app);
    const struct job_shot_rank *r = steps_rank(app);
    if (!r || r->role < 0 || step < 0 || step > INT32_MAX)
        return NULL;
    size_t low = 0, high = f->n_fan;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct fleet_fan *at = &f->fan[middle];
        if (at->role < r->role || (at->role == r->role && at->step < step + r->shift))
            low = middle + 1;
        else
            high = middle;
    }
    const struct fleet_fan *found = low < f->n_fan ? &f->fan[low] : NULL;
    return found && found->role == r->role && found->step == step + r->shift ? found : NULL;
}

/* Of the steps of a column the one that took longest in any rank. */
static void steps_put_ranks(const struct steps_state *s, const struct app *app, size_t first,
                            struct steps_column *c) {
    for (size_t i = first; i < first + c->n && i < s->model.n; i++) {
        const struct fleet_fan *f = steps_fan(app, s->model.rows[i].step);
        if (!f || f->most <= c->ranks[2])
            continue;
        c->ranks[0] = f->least;
        c->ranks[1] = f->median;
        c->ranks[2] = f->most;
    }
}

/* The selected step in this rank and in all, or why that is not known. */
static void steps_put_ranks_line(const struct steps_state *s, const struct app *app, struct strbuf *out) {
    const struct job_shot_rank *r = steps_rank(app);
    size_t at = steps_selected(s);
    const struct fleet_fan *f = NULL;
    char own[24], least[24], median[24], most[24];
    /* the newest steps are not known of all ranks yet */
    while (r && at < s->model.n && !(f = steps_fan(app, s->model.rows[at].step)) && !s->table.view.has_key)
        at++;
    if (!r)
        strbuf_adds(out, "all ranks: this process is not a rank of a job that is watched");
    else if (!f)
        strbuf_addf(out, "all ranks: the step is not known in the others of rank %" PRId32, r->rank);
    if (!r || !f)
        return;
    steps_put_ms(own, sizeof own, s->model.rows[at].ms);
    steps_put_ms(least, sizeof least, f->least);
    steps_put_ms(median, sizeof median, f->median);
    steps_put_ms(most, sizeof most, f->most);
    strbuf_addf(out, "step %" PRId64 ": %s in rank %" PRId32 "; in %u ranks %s to %s, median %s",
                s->model.rows[at].step, own, r->rank, (unsigned)f->n, least, most, median);
}

/* ---- chart ---- */

/* A column is some steps, the newest at the right. Unknown values are never drawn like known
 * ones. */

#define STEPS_LABEL 21        /* columns for names and values beside the strips */
#define STEPS_LABEL_NARROW 10 /* if there is little room */
#define STEPS_NARROW 60
#define STEPS_LEVELS 8 /* of a cell */
#define STEPS_LINES 16
#define STEPS_MAX_COLS 512

/* A line of the chart: a strip several rows high, or a lane. */
struct steps_line {
    const char *name, *short_name;
    double (*value)(const struct steps_column *c);
    enum theme_role role;
    int rows;
    bool is_lane;      /* a share, 0 to 1 */
    bool from_zero;    /* otherwise between the least and the greatest value that is shown */
    bool is_known;     /* it has a value somewhere */
    const char *empty; /* the text if it has none */
};

static double line_ms(const struct steps_column *c) { return c->ms; }
static double line_least(const struct steps_column *c) { return c->ranks[0]; }
static double line_median(const struct steps_column *c) { return c->ranks[1]; }
static double line_most(const struct steps_column *c) { return c->ranks[2]; }
static double line_loss(const struct steps_column *c) { return c->loss; }
static double line_grad(const struct steps_column *c) { return c->grad_norm; }
static double line_lr(const struct steps_column *c) { return c->lr; }
static double line_data(const struct steps_column *c) { return c->data; }
static double line_gc(const struct steps_column *c) { return c->gc; }
static double line_gil(const struct steps_column *c) { return c->gil; }

static bool steps_is_ms(const struct steps_line *l) {
    return l->value == line_ms || l->value == line_most || l->value == line_median || l->value == line_least;
}

/* Choose the lines for so many rows; the first is step time. Returns the rows they take. */
static int steps_choose(const struct steps_state *s, int rows, struct steps_line *lines, int *n) {
    const struct steps_model *m = &s->model;
    const struct steps_line all[] = {
        {"step time", "step", line_ms, ROLE_METER_CPU,
         rows >= 26   ? 6
         : rows >= 16 ? 4
         : rows >= 12 ? 3
                      : 2,
         false, true, true, ""},
        {"all: most", "most", line_most, ROLE_METER_GIL, rows >= 20 ? 2 : 1, false, true, s->has_ranks, ""},
        {"all: median", "median", line_median, ROLE_METER_GIL, rows >= 20 ? 2 : 1, false, true, s->has_ranks,
         ""},
        {"all: least", "least", line_least, ROLE_METER_GIL, rows >= 20 ? 2 : 1, false, true, s->has_ranks,
         ""},
        {"loss", "loss", line_loss, ROLE_METER_GIL, rows >= 30 ? 3 : 1, false, false, m->has_loss, ""},
        {"grad norm", "grad", line_grad, ROLE_METER_GIL, rows >= 30 ? 2 : 1, false, false, m->has_grad, ""},
        {"lr", "lr", line_lr, ROLE_METER_GIL, 1, false, false, m->has_lr, ""},
        {"loader wait", "loader", line_data, ROLE_STATE_DISK, 1, true, true, m->has_data,
         "no DataLoader is seen"},
        {"GC", "gc", line_gc, ROLE_STATE_STOP, 1, true, true, m->has_gc || m->has_looks,
         "unknown: no samples"},
        {"GIL wait", "gil", line_gil, ROLE_STATE_STOP, 1, true, true, m->has_looks, "unknown: no samples"},
    };
    int room = rows - 5, used = 0; /* the table has at least five */
    *n = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        bool shown = all[i].is_known || (all[i].is_lane && rows >= 16);
        if (!shown || used + all[i].rows > room)
            continue;
        lines[(*n)++] = all[i];
        used += all[i].rows;
    }
    return used;
}

/* ---- strips ---- */

static void steps_extent(const struct steps_line *l, const struct steps_column *cols, int n, double *least,
                         double *most) {
    *least = *most = NAN;
    for (int i = 0; i < n; i++) {
        double v = l->value(&cols[i]);
        if (isnan(v))
            continue;
        *least = isnan(*least) || v < *least ? v : *least;
        *most = isnan(*most) || v > *most ? v : *most;
    }
    if (l->is_lane)
        *most = 1;
    if (l->from_zero)
        *least = 0;
}

/* The value beside a line: the newest; for a lane the mean of its columns. */
static double steps_now(const struct steps_line *l, const struct steps_column *cols, int n) {
    double sum = 0;
    int known = 0;
    for (int i = 0; i < n && (l->is_lane || !known); i++) {
        double v = cols[i].n ? l->value(&cols[i]) : NAN;
        sum += isnan(v) ? 0 : v;
        known += !isnan(v);
    }
    return known ? sum / known : NAN;
}

/* Height of a value in eighths of a row; at least one if it is not zero. */
static int steps_level(double v, double least, double most, int rows) {
    double share = most > least ? (v - least) / (most - least) : v > 0 ? 1 : 0;
    int level = (int)lround((share > 0 ? fmin(share, 1) : 0) * rows * STEPS_LEVELS);
    int floor_level = least > 0 || v > 0 ? 1 : 0;
    level = level < floor_level ? floor_level : level;
    return level > rows * STEPS_LEVELS ? rows * STEPS_LEVELS : level;
}

static void steps_draw_cell(const struct steps_line *l, const struct steps_column *c, struct grid *g,
                            struct rect area, int col, double least, double most) {
    double v = c->n ? l->value(c) : NAN;
    enum theme_role role = l->value == line_ms && c->is_slow ? ROLE_CPU_HIGH : l->role;
    if (c->n == 0)
        return;
    if ((l->value == line_loss && c->bad_loss) || (l->value == line_grad && c->bad_grad)) {
        for (int row = 0; row < l->rows; row++)
            grid_text(g, area, row, col, ROLE_CONN_LOST, "!");
        return;
    }
    if (isnan(v)) {
        grid_text(g, area, l->rows - 1, col, ROLE_MUTED, glyph(g, GLYPH_DOT));
        return;
    }
    int level = steps_level(v, least, most, l->rows);
    for (int row = l->rows - 1; row >= 0 && level > 0; row--, level -= STEPS_LEVELS) {
        int step = level > STEPS_LEVELS ? STEPS_LEVELS : level;
        grid_text(g, area, row, col, role, glyph(g, (enum glyph)(GLYPH_METER + step)));
    }
}

static void steps_put_value(const struct steps_line *l, double v, char *buf, size_t cap) {
    if (steps_is_ms(l))
        steps_put_ms(buf, cap, v);
    else if (!l->is_lane)
        steps_put_number(buf, cap, v);
    else if (isnan(v))
        snprintf(buf, cap, "\xe2\x80\x94");
    else
        snprintf(buf, cap, "%.0f %%", v * 100);
}

/* The name, and the top and bottom of a strip; or the current value, or the mean of a lane. */
static void steps_draw_label(const struct steps_line *l, double now, double least, double most,
                             struct grid *g, struct rect area, int width) {
    char value[32];
    bool narrow = width < STEPS_LABEL;
    int name = narrow ? 0 : width - 9;
    if (!narrow)
        grid_text_fit(g, area, 0, 0, name, ROLE_LABEL, GRID_LEFT, l->name);
    else if (l->rows == 1)
        grid_text_fit(g, area, 0, 0, width - 1, ROLE_LABEL, GRID_LEFT, l->short_name);
    if (narrow && l->rows == 1)
        return;
    steps_put_value(l, l->rows > 1 ? most : now, value, sizeof value);
    grid_text_fit(g, area, 0, name, width - 1 - name, ROLE_VALUE, GRID_RIGHT, value);
    if (l->rows < 2)
        return;
    steps_put_value(l, least, value, sizeof value);
    grid_text_fit(g, area, l->rows - 1, name, width - 1 - name, ROLE_MUTED, GRID_RIGHT, value);
}

/* A line under the strips: which steps they are, and where the selected one is. */
static void steps_draw_axis(const struct steps_state *s, struct grid *g, struct rect area, int label) {
    const struct steps_model *m = &s->model;
    size_t newest = s->first * s->zoom, oldest = (s->first + (size_t)s->cols) * s->zoom;
    char text[48];
    if (m->n == 0)
        return;
    oldest = oldest > m->n ? m->n : oldest;
    int from = label + s->cols - (int)((oldest - newest + s->zoom - 1) / s->zoom), to = label + s->cols;
    size_t at = steps_selected(s) / s->zoom;
    bool in_view = at >= s->first && at < s->first + (size_t)s->cols;
    int selected = in_view ? to - 1 - (int)(at - s->first) : -1;
    /* The numbers make room for the mark: it hides no digit. */
    int width = snprintf(text, sizeof text, "%" PRId64, m->rows[oldest - 1].step);
    from = selected >= from && selected < from + width ? selected + 1 : from;
    grid_text(g, area, 0, from, ROLE_MUTED, text);
    width = snprintf(text, sizeof text, "%" PRId64, m->rows[newest].step);
    to = selected >= to - width ? selected : to;
    if (s->cols > 3 * width)
        grid_text(g, area, 0, to - width, ROLE_MUTED, text);
    if (in_view)
        grid_text(g, area, 0, selected, ROLE_VALUE, "^");
}

/* Keep the selected step visible; while none was selected, the newest. */
static void steps_settle(struct steps_state *s) {
    size_t at = s->table.view.has_key ? steps_selected(s) / s->zoom : 0;
    if (at < s->first)
        s->first = at;
    if (s->cols > 0 && at >= s->first + (size_t)s->cols)
        s->first = at - (size_t)s->cols + 1;
}

static void steps_draw_chart(struct steps_state *s, const struct app *app, struct grid *g, struct rect area,
                             const struct steps_line *lines, int n, bool axis) {
    static struct steps_column columns[STEPS_MAX_COLS]; /* used by the thread that draws */
    int label = area.cols >= STEPS_NARROW ? STEPS_LABEL : STEPS_LABEL_NARROW, row = 0;
    s->cols = area.cols - label - 1;
    s->cols = s->cols > STEPS_MAX_COLS ? STEPS_MAX_COLS : s->cols;
    steps_settle(s);
    for (int i = 0; i < s->cols; i++)
        steps_model_column(&s->model, (s->first + (size_t)i) * s->zoom, s->zoom, &columns[i]);
    double most_ms = 0; /* durations beside each other have one scale */
    for (int i = 0; s->has_ranks && i < s->cols; i++) {
        steps_put_ranks(s, app, (s->first + (size_t)i) * s->zoom, &columns[i]);
        most_ms = fmax(most_ms, fmax(columns[i].ms, columns[i].ranks[2]));
    }
    for (int i = 0; i < n; i++) {
        const struct steps_line *l = &lines[i];
        struct rect at = {area.row + row, area.col + 1, l->rows, area.cols - 1};
        double least, most;
        row += l->rows;
        if (!l->is_known) {
            grid_text_fit(g, at, 0, 0, label - 1, ROLE_LABEL, GRID_LEFT,
                          label == STEPS_LABEL ? l->name : l->short_name);
            grid_text(g, at, 0, label, ROLE_MUTED, l->empty);
            continue;
        }
        steps_extent(l, columns, s->cols, &least, &most);
        if (s->has_ranks && steps_is_ms(l))
            most = most_ms;
        steps_draw_label(l, steps_now(l, columns, s->cols), least, most, g, at, label);
        for (int k = 0; k < s->cols; k++)
            steps_draw_cell(l, &columns[k], g, at, label + s->cols - 1 - k, least, most);
    }
    if (axis)
        steps_draw_axis(s, g, (struct rect){area.row + row, area.col + 1, 1, area.cols - 1}, label);
}

/* ---- all ---- */

/* A line of the head, as wide as it is; a cut is marked. */
static void steps_draw_line(struct grid *g, struct rect area, int row, enum theme_role role,
                            const char *text) {
    int need = grid_text_width(g, text), room = area.cols - 1;
    grid_text_fit(g, area, row, 1, need < room ? need : room, role, GRID_LEFT, text);
}

static void steps_draw_head(const struct steps_state *s, const struct app *app, struct grid *g,
                            struct rect area, int rows) {
    const struct steps_model *m = &s->model;
    char p50[24], p90[24], p99[24];
    struct strbuf line;
    strbuf_init(&line, 1024);
    steps_put_ms(p50, sizeof p50, m->p50);
    steps_put_ms(p90, sizeof p90, m->p90);
    steps_put_ms(p99, sizeof p99, m->p99);
    if (!isnan(m->rate))
        strbuf_addf(&line, m->rate < 0.0995 ? "%.3g steps/min" : "%.3g steps/s",
                    m->rate < 0.0995 ? m->rate * 60 : m->rate);
    strbuf_addf(&line, "   median %s  90 %% %s  99 %% %s", p50, p90, p99);
    if (!isnan(m->trend))
        strbuf_addf(&line, "   trend %+.1f %%", m->trend * 100);
    double age = m->n ? app->epoch_s - m->rows[0].at_s : NAN;
    bool is_past = app->data.paused || (steps_is_of_job(app) && job_state_shown(app)->is_final);
    if (age > 2 * m->p99 / 1000 + 2 && !data_is_recorded(&app->data) && !is_past)
        strbuf_addf(&line, "   last %.0f s ago", age);
    steps_draw_line(g, area, 0, ROLE_VALUE, strbuf_str(&line));
    strbuf_clear(&line);
    steps_put_causes(m, &line);
    const struct app_feed *f = app_feed_get(app, FEED_STEPS);
    char arms[3 * ARMS_TEXT];
    app_arm_put_all(app, arms, sizeof arms);
    if (rows > 1 && f->failed_s <= 0 && s->has_ranks) {
        strbuf_clear(&line);
        steps_put_ranks_line(s, app, &line);
        steps_draw_line(g, area, 1, ROLE_TEXT, strbuf_str(&line));
    } else if (rows > 1 && f->failed_s <= 0 && arms[0])
        steps_draw_line(g, area, 1, ROLE_STATUS_ON, arms);
    else if (rows > 1 && f->failed_s > 0)
        steps_draw_line(g, area, 1, ROLE_STATUS_BAD, f->error.text);
    else if (rows > 1)
        steps_draw_line(g, area, 1, m->slow ? ROLE_TEXT : ROLE_MUTED,
                        m->slow ? strbuf_str(&line) : "no slow steps: none took over 1.2 x the median");
    strbuf_fini(&line);
}

/* Why there are no steps. */
static void steps_put_empty(const struct steps_state *s, const struct app *app, char *buf, size_t cap) {
    const struct app_feed *f = app_feed_get(app, FEED_STEPS);
    char why[512];
    const struct events *p = &app->data.pulse;
    bool is_agent = app->data.has_target && app->data.target.mode == MODEL_MODE_AGENT;
    const struct job_shot_rank *r = steps_is_of_job(app) ? job_state_selected(app) : NULL;
    if (steps_is_of_job(app)) {
        if (!r && job_state_shown(app))
            snprintf(buf, cap, "rank %" PRId32 " is not there at this moment: [ and ] show other ranks",
                     app->job.rank);
        else if (r && f->failed_s > 0)
            snprintf(buf, cap, "%s", f->error.text);
        else if (r && s->is_read)
            snprintf(buf, cap, "the database has no step of rank %" PRId32 ": [ and ] show other ranks",
                     r->rank);
        else
            snprintf(buf, cap, "reading ...");
        return;
    }
    if (!f->rows) {
        app_feed_put_empty(app, FEED_STEPS, "", buf, cap);
        return;
    }
    app_feed_put_empty(app, FEED_STEPS, "", why, sizeof why);
    if (app->data.has_target && !app->data.target.torch)
        snprintf(why, sizeof why, "this process has not imported torch");
    else if (!*why && *p->steps_note)
        snprintf(why, sizeof why, "%s", p->steps_note);
    else if (!*why && is_agent && p->status_at_s > 0 && !p->steps_told)
        snprintf(why, sizeof why, "torch does not report steps yet");
    else if (!*why)
        snprintf(why, sizeof why, "none has ended since the agent was loaded");
    snprintf(buf, cap, "no optimizer step seen yet: %s", why);
}

static void steps_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct steps_state *s = state;
    struct steps_line lines[STEPS_LINES];
    char empty[640];
    int n = 0, head = area.rows >= 11 ? 2 : 1;
    s->chart_area = (struct rect){0};
    s->table.view.area.rows = 0;
    if (s->model.n == 0) {
        steps_put_empty(s, app, empty, sizeof empty);
        view_draw(&s->table.view, g, area, empty);
        return;
    }
    steps_draw_head(s, app, g, area, head);
    area.row += head;
    area.rows -= head;
    bool axis = area.rows >= 12;
    int rows = steps_choose(s, area.rows - axis, lines, &n) + axis;
    s->chart_area = (struct rect){area.row, area.col, rows, area.cols};
    steps_draw_chart(s, app, g, s->chart_area, lines, n, axis);
    area.row += rows;
    area.rows -= rows;
    view_draw(&s->table.view, g, area, "nothing matches: A shows all");
}

static void steps_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct steps_state *s = state;
    const struct job_shot_rank *r = steps_is_of_job(app) ? job_state_selected(app) : NULL;
    if (r)
        strbuf_addf(out, "rank %" PRId32 ": ", r->rank);
    outline_status(&s->table, app->data.paused && !r ? "Steps have stopped:" : "Steps", out);
    if (s->zoom > 1)
        strbuf_addf(out, "   %u a column", s->zoom);
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
    s->table.view.has_key = false; /* the newest is selected again, and stays selected */
    s->first = 0;
    outline_order(&s->table);
    return true;
}

static bool steps_act(void *state, struct app *app, enum action action) {
    struct steps_state *s = state;
    switch ((int)action) {
    case ACTION_BACK:
        return steps_back(s);
    case ACTION_ALL_RANKS:
        s->has_ranks = !s->has_ranks && steps_rank(app);
        if (!steps_rank(app))
            app_message(app, false, "this process is not a rank of a job that is watched: p watches it");
        return true;
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
    .needs_torch = true,
    .opens = {SCREEN_TAB_KEY(STEPS, "steps", "6", "the Steps screen: training steps, and why some are slow")},
    .needs_vitals = true,
    .is_kept = true,
    .reads_job = true,
    .tells_arms = true,
    .needs_phases = true,
    .state_size = sizeof(struct steps_state),
    .init = steps_init,
    .fini = steps_fini,
    .keys = CONTEXT_STEPS,
    .view = steps_view,
    .draw = steps_draw,
    .act = steps_act,
    .mouse = steps_mouse,
    .update = steps_update,
    .tick = steps_tick,
    .status = steps_status,
};
