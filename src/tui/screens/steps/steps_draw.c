/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps_draw: the picture of the Steps screen: figures, the strip of step times, of loss, gradients and learning rate where they are
 * known, lanes of what steps waited for, the table; see steps_state.h.
 *
 * A column is some steps, the newest at the right. What is not known is never drawn like what is.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/screens/steps/steps_state.h"

#define STEPS_LABEL 21        /* columns for names and values beside the strips */
#define STEPS_LABEL_NARROW 10 /* where there is little room */
#define STEPS_NARROW 60
#define STEPS_LEVELS 8 /* of a cell */
#define STEPS_LINES 16
#define STEPS_MAX_COLS 512

/* A line of the chart: a strip, some rows high, or a lane. */
struct steps_line {
    const char *name, *short_name;
    double (*value)(const struct steps_column *c);
    enum theme_role role;
    int rows;
    bool is_lane;      /* a share, 0 to 1 */
    bool from_zero;    /* else between the least and the most that is shown */
    bool is_known;     /* some value of it is */
    const char *empty; /* what is said where none is */
};

static double line_ms(const struct steps_column *c) { return c->ms; }
static double line_loss(const struct steps_column *c) { return c->loss; }
static double line_grad(const struct steps_column *c) { return c->grad_norm; }
static double line_lr(const struct steps_column *c) { return c->lr; }
static double line_data(const struct steps_column *c) { return c->data; }
static double line_gc(const struct steps_column *c) { return c->gc; }
static double line_gil(const struct steps_column *c) { return c->gil; }

/* Which lines there are, in so many rows; the first is step time. Returns the rows they take. */
static int steps_choose(const struct steps_state *s, int rows, struct steps_line *lines, int *n) {
    const struct steps_model *m = &s->model;
    const struct steps_line all[] = {
        {"step time", "step", line_ms, ROLE_METER_CPU,
         rows >= 26   ? 6
         : rows >= 16 ? 4
         : rows >= 12 ? 3
                      : 2,
         false, true, true, ""},
        {"loss", "loss", line_loss, ROLE_METER_GIL, rows >= 30 ? 3 : 1, false, false, m->has_loss, ""},
        {"grad norm", "grad", line_grad, ROLE_METER_GIL, rows >= 30 ? 2 : 1, false, false, m->has_grad, ""},
        {"lr", "lr", line_lr, ROLE_METER_GIL, 1, false, false, m->has_lr, ""},
        {"loader wait", "loader", line_data, ROLE_STATE_DISK, 1, true, true, m->has_data,
         "no DataLoader is seen"},
        {"GC", "gc", line_gc, ROLE_STATE_STOP, 1, true, true, m->has_gc || m->has_looks,
         "not known: no looks"},
        {"GIL wait", "gil", line_gil, ROLE_STATE_STOP, 1, true, true, m->has_looks, "not known: no looks"},
    };
    int room = rows - 5, used = 0; /* the table has five at least */
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

/* What stands beside a line: the newest value, of a lane the mean of its columns. */
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

/* Eighths of a row that a value is high; at least one where it is more than nothing. */
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
            (void)grid_text(g, area, row, col, ROLE_CONN_LOST, "!");
        return;
    }
    if (isnan(v)) {
        (void)grid_text(g, area, l->rows - 1, col, ROLE_MUTED, glyph(g, GLYPH_DOT));
        return;
    }
    int level = steps_level(v, least, most, l->rows);
    for (int row = l->rows - 1; row >= 0 && level > 0; row--, level -= STEPS_LEVELS) {
        int step = level > STEPS_LEVELS ? STEPS_LEVELS : level;
        (void)grid_text(g, area, row, col, role, glyph(g, (enum glyph)(GLYPH_METER + step)));
    }
}

static void steps_put_value(const struct steps_line *l, double v, char *buf, size_t cap) {
    if (l->value == line_ms)
        steps_put_ms(buf, cap, v);
    else if (!l->is_lane)
        steps_put_number(buf, cap, v);
    else if (isnan(v))
        (void)snprintf(buf, cap, "\xe2\x80\x94");
    else
        (void)snprintf(buf, cap, "%.0f %%", v * 100);
}

/* The name, and of a strip what its top and bottom are; of others what it is now, of a lane in the mean. */
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
    /* The numbers make room for the mark: it takes no digit away. */
    int width = snprintf(text, sizeof text, "%" PRId64, m->rows[oldest - 1].step);
    from = selected >= from && selected < from + width ? selected + 1 : from;
    (void)grid_text(g, area, 0, from, ROLE_MUTED, text);
    width = snprintf(text, sizeof text, "%" PRId64, m->rows[newest].step);
    to = selected >= to - width ? selected : to;
    if (s->cols > 3 * width)
        (void)grid_text(g, area, 0, to - width, ROLE_MUTED, text);
    if (in_view)
        (void)grid_text(g, area, 0, selected, ROLE_VALUE, "^");
}

/* The selected step is in view; while none was selected, the newest. */
static void steps_settle(struct steps_state *s) {
    size_t at = s->table.view.has_key ? steps_selected(s) / s->zoom : 0;
    if (at < s->first)
        s->first = at;
    if (s->cols > 0 && at >= s->first + (size_t)s->cols)
        s->first = at - (size_t)s->cols + 1;
}

static void steps_draw_chart(struct steps_state *s, struct grid *g, struct rect area,
                             const struct steps_line *lines, int n, bool axis) {
    static struct steps_column columns[STEPS_MAX_COLS]; /* of the thread that draws */
    int label = area.cols >= STEPS_NARROW ? STEPS_LABEL : STEPS_LABEL_NARROW, row = 0;
    s->cols = area.cols - label - 1;
    s->cols = s->cols > STEPS_MAX_COLS ? STEPS_MAX_COLS : s->cols;
    steps_settle(s);
    for (int i = 0; i < s->cols; i++)
        steps_model_column(&s->model, (s->first + (size_t)i) * s->zoom, s->zoom, &columns[i]);
    for (int i = 0; i < n; i++) {
        const struct steps_line *l = &lines[i];
        struct rect at = {area.row + row, area.col + 1, l->rows, area.cols - 1};
        double least, most;
        row += l->rows;
        if (!l->is_known) {
            grid_text_fit(g, at, 0, 0, label - 1, ROLE_LABEL, GRID_LEFT,
                          label == STEPS_LABEL ? l->name : l->short_name);
            (void)grid_text(g, at, 0, label, ROLE_MUTED, l->empty);
            continue;
        }
        steps_extent(l, columns, s->cols, &least, &most);
        steps_draw_label(l, steps_now(l, columns, s->cols), least, most, g, at, label);
        for (int k = 0; k < s->cols; k++)
            steps_draw_cell(l, &columns[k], g, at, label + s->cols - 1 - k, least, most);
    }
    if (axis)
        steps_draw_axis(s, g, (struct rect){area.row + row, area.col + 1, 1, area.cols - 1}, label);
}

/* ---- all ---- */

/* A line of the head, as wide as it is; what is cut is seen to be. */
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
        (void)strbuf_addf(&line, m->rate < 0.0995 ? "%.3g steps/min" : "%.3g steps/s",
                          m->rate < 0.0995 ? m->rate * 60 : m->rate);
    (void)strbuf_addf(&line, "   median %s  90 %% %s  99 %% %s", p50, p90, p99);
    if (!isnan(m->trend))
        (void)strbuf_addf(&line, "   trend %+.1f %%", m->trend * 100);
    double age = m->n ? app->epoch_s - m->rows[0].at_s : NAN;
    if (age > 2 * m->p99 / 1000 + 2 && !data_is_recorded(&app->data) && !app->data.paused)
        (void)strbuf_addf(&line, "   last %.0f s ago", age);
    steps_draw_line(g, area, 0, ROLE_VALUE, strbuf_str(&line));
    strbuf_clear(&line);
    steps_put_causes(m, &line);
    const struct app_feed *f = app_feed_get(app, FEED_STEPS);
    char arms[3 * ARMS_TEXT];
    app_arm_put_all(app, arms, sizeof arms);
    if (rows > 1 && f->failed_s <= 0 && arms[0])
        steps_draw_line(g, area, 1, ROLE_STATUS_ON, arms);
    else if (rows > 1 && f->failed_s > 0)
        steps_draw_line(g, area, 1, ROLE_STATUS_BAD, f->error.text);
    else if (rows > 1)
        steps_draw_line(g, area, 1, m->slow ? ROLE_TEXT : ROLE_MUTED,
                        m->slow ? strbuf_str(&line) : "no slow steps: none took over 1.2 x the median");
    strbuf_fini(&line);
}

/* Why there are no steps. */
static void steps_put_empty(const struct app *app, char *buf, size_t cap) {
    const struct app_feed *f = app_feed_get(app, FEED_STEPS);
    char why[512];
    const struct events *p = &app->data.pulse;
    bool is_agent = app->data.has_target && app->data.target.mode == MODEL_MODE_AGENT;
    if (!f->rows) {
        app_feed_put_empty(app, FEED_STEPS, "", buf, cap);
        return;
    }
    app_feed_put_empty(app, FEED_STEPS, "", why, sizeof why);
    if (app->data.has_target && !app->data.target.torch)
        (void)snprintf(why, sizeof why, "this process has not imported torch");
    else if (!*why && *p->steps_note)
        (void)snprintf(why, sizeof why, "%s", p->steps_note);
    else if (!*why && is_agent && p->status_at_s > 0 && !p->steps_told)
        (void)snprintf(why, sizeof why, "torch does not tell of them yet");
    else if (!*why)
        (void)snprintf(why, sizeof why, "none has ended since the agent came in");
    (void)snprintf(buf, cap, "no optimizer step seen yet: %s", why);
}

void steps_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct steps_state *s = state;
    struct steps_line lines[STEPS_LINES];
    char empty[640];
    int n = 0, head = area.rows >= 11 ? 2 : 1;
    s->chart_area = (struct rect){0};
    s->table.view.area.rows = 0;
    if (s->model.n == 0) {
        steps_put_empty(app, empty, sizeof empty);
        view_draw(&s->table.view, g, area, empty);
        return;
    }
    steps_draw_head(s, app, g, area, head);
    area.row += head;
    area.rows -= head;
    bool axis = area.rows >= 12;
    int rows = steps_choose(s, area.rows - axis, lines, &n) + axis;
    s->chart_area = (struct rect){area.row, area.col, rows, area.cols};
    steps_draw_chart(s, g, s->chart_area, lines, n, axis);
    area.row += rows;
    area.rows -= rows;
    view_draw(&s->table.view, g, area, "nothing matches: A shows all");
}

void steps_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct steps_state *s = state;
    outline_status(&s->table, app->data.paused ? "Steps stand still:" : "Steps", out);
    if (s->zoom > 1)
        (void)strbuf_addf(out, "   %u a column", s->zoom);
}
