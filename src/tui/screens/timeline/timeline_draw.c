/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline_draw: the picture of the Timeline screen: head, axis, lanes, shares of the GIL and of
 * garbage collection, details of the selected slice; see timeline_state.h.
 *
 * A run of slices with the same function is one block with one label. Unknown time is never drawn
 * like known time.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tui/core/app_screen.h"
#include "tui/core/window.h"
#include "tui/screens/flame/flame_color.h"
#include "tui/screens/timeline/timeline_state.h"
#include "tui/screens/top/top_head.h"
#include "tui/view/time_text.h"

/* Rows from which on the head takes two, and so do the details of the slice. */
#define TIMELINE_TWO_LINES 12
#define TIMELINE_SHARE_ROWS 8 /* from which on there are lanes for the GIL and for garbage */
#define TIMELINE_MOST_NAME 20 /* columns for the names of threads */
#define TIMELINE_MAX_DEPTH 512

static const char *const timeline_times[] = {
    [TIMELINE_ON_CPU] = "ON CPU", [TIMELINE_ALL_TIME] = "WALL", [TIMELINE_GIL_HOLDING] = "GIL HELD"};

/* The areas of the screen; they share their columns. */
struct timeline_place {
    struct rect names, cells;                          /* of lanes */
    int axis_row, gil_row, gc_row, facts_row, n_facts; /* -1: not drawn; rows of the screen */
};

/* ---- blocks ---- */

/* The content of one column of a row. */
struct timeline_spot {
    enum timeline_does state;
    const struct model_frame *frame; /* NULL: no Python frame, or nothing here */
    uint32_t id;                     /* equal for equal functions */
    bool is_hit;
};

static bool timeline_is_block(const struct timeline_spot *a, const struct timeline_spot *b) {
    return a->state == b->state && a->state >= TIMELINE_IDLE && a->id == b->id && a->is_hit == b->is_hit;
}

static void timeline_label(const struct timeline_spot *spot, char *buf, size_t cap) {
    const char *func = spot->frame ? spot->frame->func : NULL;
    text_sanitize(buf, cap, spot->frame ? func ? func : "?" : "(no Python frame)");
}

static void timeline_fill(struct grid *g, struct rect area, enum theme_role role, const char *with) {
    for (int col = 0; col < area.cols; col++)
        grid_text(g, area, 0, col, role, with);
}

/* A run of slices with the same function. */
static void timeline_draw_block(struct grid *g, struct rect cell, const struct timeline_spot *spot) {
    char text[256];
    bool active = spot->state == TIMELINE_ACTIVE;
    enum theme_role role = spot->is_hit            ? ROLE_FLAME_MATCH
                           : active && spot->frame ? flame_color_of(spot->frame, false)
                           : active                ? ROLE_FLAME_OUTER
                                                   : ROLE_MUTED;
    const char *end = glyph(g, GLYPH_CELL_END);
    int borders = *end && cell.cols > 1 ? 2 : 1, room = cell.cols - borders;
    timeline_label(spot, text, sizeof text);
    if (active || spot->is_hit) {
        grid_fill(g, cell, role);
        grid_text(g, cell, 0, 0, role, cell.cols > 1 ? glyph(g, GLYPH_CELL) : glyph(g, GLYPH_CELL_THIN));
        if (borders == 2)
            grid_text(g, cell, 0, cell.cols - 1, role, end);
    } else
        timeline_fill(g, cell, role, glyph(g, GLYPH_DOT));
    if (room < 2)
        return;
    int width = grid_text_width(g, text);
    if (!active && !spot->is_hit && width > room - 2)
        return; /* dots are enough */
    if (room < 3)
        grid_text_skip(g, cell, 0, 1, room, 0, role, text);
    else
        grid_text_fit(g, cell, 0, 1, active || width > room ? room : width, role, GRID_LEFT, text);
}

/* The slices of one row; `spots` has one per column. */
static void timeline_draw_spots(struct grid *g, struct rect row, const struct timeline_spot *spots) {
    for (int col = 0, n = 1; col < row.cols; col += n) {
        struct rect cell = {row.row, row.col + col, 1, 1};
        for (n = 1; col + n < row.cols && timeline_is_block(&spots[col], &spots[col + n]); n++)
            ;
        cell.cols = n;
        if (spots[col].state >= TIMELINE_IDLE)
            timeline_draw_block(g, cell, &spots[col]);
        else if (spots[col].state != TIMELINE_ABSENT)
            grid_text(g, cell, 0, 0, ROLE_MUTED,
                      spots[col].state == TIMELINE_TORN ? "?" : glyph(g, GLYPH_GAP));
    }
}

/* ---- lanes ---- */

static void timeline_draw_lane(const struct timeline_state *s, const struct app *app, struct grid *g,
                               struct rect row, size_t lane) {
    struct timeline_spot spots[TIMELINE_MAX_COLS];
    const struct stack_counts *fold = sample_store_counts(app->data.tally);
    for (int col = 0; col < row.cols; col++) {
        const struct timeline_cell *c = timeline_cell(s->timeline, lane, col);
        spots[col] = (struct timeline_spot){.state = (enum timeline_does)c->state, .id = c->function};
        spots[col].frame = c->function != TIMELINE_NO_FRAME ? stack_counts_frame(fold, c->function) : NULL;
        spots[col].is_hit = timeline_is_hit(s, app, c);
    }
    timeline_draw_spots(g, row, spots);
}

static void timeline_draw_name(const struct app *app, struct grid *g, struct rect name, int64_t tid,
                               bool is_selected) {
    const char *text = stack_counts_thread_name(sample_store_counts(app->data.tally), tid);
    char number[32];
    snprintf(number, sizeof number, "%lld", (long long)tid);
    tags_take_rect(&app->threads, &name);
    tags_draw(&app->threads, (uint64_t)tid, g, name, 0);
    grid_text_fit(g, name, 0, 0, name.cols - 1, is_selected ? ROLE_SELECTION : ROLE_TEXT, GRID_LEFT,
                  text && *text ? text : number);
}

static void timeline_draw_lanes(struct timeline_state *s, const struct app *app, struct grid *g,
                                const struct timeline_place *p) {
    int selected = timeline_row(s), rows = p->cells.rows;
    if (selected >= 0 && selected < s->top)
        s->top = selected;
    if (rows > 0 && selected >= s->top + rows)
        s->top = selected - rows + 1;
    if (s->top > 0 && s->top + rows > (int)s->n_shown)
        s->top = (int)s->n_shown > rows ? (int)s->n_shown - rows : 0;
    for (int i = 0; i < rows && s->top + i < (int)s->n_shown; i++) {
        size_t lane = s->shown[s->top + i];
        struct rect name = {p->names.row + i, p->names.col, 1, p->names.cols};
        struct rect row = {p->cells.row + i, p->cells.col, 1, p->cells.cols};
        timeline_draw_name(app, g, name, timeline_lane(s->timeline, lane)->tid, s->top + i == selected);
        timeline_draw_lane(s, app, g, row, lane);
    }
}

/* ---- the calls of one thread ---- */

/* Frame of a stack at a depth, from the outermost; NULL: it is not so deep. */
static const struct model_frame *timeline_frame_at(const struct app *app, uint32_t stack, int depth,
                                                   uint32_t *id) {
    const struct sample_store *tally = app->data.tally;
    uint32_t path[TIMELINE_MAX_DEPTH], above;
    int n = 0;
    bool hides_native = !app_screen_shows_native(app, CONTEXT_TIMELINE);
    for (; stack != STACK_COUNTS_NO_STACK && n < TIMELINE_MAX_DEPTH;
         stack = hides_native ? sample_store_python_stack(tally, above) : above)
        path[n++] =
            sample_store_function(tally, stack_counts_stack_frame(sample_store_counts(tally), stack, &above));
    if (depth >= n)
        return NULL;
    *id = path[n - 1 - depth];
    return stack_counts_frame(sample_store_counts(tally), *id);
}

static int timeline_depth(const struct app *app, uint32_t stack) {
    const struct sample_store *tally = app->data.tally;
    bool hides_native = !app_screen_shows_native(app, CONTEXT_TIMELINE);
    uint32_t above;
    int n = 0;
    for (; stack != STACK_COUNTS_NO_STACK;
         stack = hides_native ? sample_store_python_stack(tally, above) : above) {
        stack_counts_stack_frame(sample_store_counts(tally), stack, &above);
        n++;
    }
    return n ? n : 1;
}

static struct timeline_spot timeline_spot_at(const struct timeline_state *s, const struct app *app,
                                             const struct timeline_cell *c, int depth) {
    struct timeline_spot spot = {.state = (enum timeline_does)c->state, .id = TIMELINE_NO_FRAME};
    if (c->state < TIMELINE_IDLE)
        return spot;
    if (c->stack == STACK_COUNTS_NO_STACK && depth > 0)
        spot.state = TIMELINE_ABSENT;
    if (c->stack == STACK_COUNTS_NO_STACK)
        return spot;
    spot.frame = timeline_frame_at(app, c->stack, depth, &spot.id);
    if (!spot.frame)
        spot.state = TIMELINE_ABSENT;
    else if (s->search.active)
        spot.is_hit = match_text(&s->search, spot.frame->func) || match_text(&s->search, spot.frame->file);
    return spot;
}

static void timeline_draw_depths(struct timeline_state *s, const struct app *app, struct grid *g,
                                 const struct timeline_place *p) {
    struct timeline_spot spots[TIMELINE_MAX_COLS];
    int at = timeline_row(s), deepest = 1;
    if (at < 0)
        return;
    size_t lane = s->shown[at];
    for (int col = 0; col < p->cells.cols; col++) {
        const struct timeline_cell *c = timeline_cell(s->timeline, lane, col);
        int depth = c->state >= TIMELINE_IDLE ? timeline_depth(app, c->stack) : 1;
        deepest = depth > deepest ? depth : deepest;
    }
    if (s->depth_top + p->cells.rows > deepest)
        s->depth_top = deepest > p->cells.rows ? deepest - p->cells.rows : 0;
    timeline_draw_name(app, g, (struct rect){p->names.row, p->names.col, 1, p->names.cols}, timeline_tid(s),
                       true);
    for (int i = 0; i < p->cells.rows && s->depth_top + i < deepest; i++) {
        struct rect row = {p->cells.row + i, p->cells.col, 1, p->cells.cols};
        if (i > 0 || s->depth_top > 0)
            grid_printf(g, p->names, i, p->names.cols - 5, ROLE_DEPTH, "%4d", s->depth_top + i);
        const struct timeline_cell *before = NULL;
        for (int col = 0; col < row.cols; col++) { /* most equal the last one */
            const struct timeline_cell *c = timeline_cell(s->timeline, lane, col);
            bool is_same = before && before->state == c->state && before->stack == c->stack;
            spots[col] = is_same ? spots[col - 1] : timeline_spot_at(s, app, c, s->depth_top + i);
            before = c;
        }
        timeline_draw_spots(g, row, spots);
    }
}

/* ---- time ---- */

/* Time between two marks of the axis, so that their texts have room. */
static double timeline_axis_step(double column_s, int room) {
    static const double steps[] = {0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 3600};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (steps[i] / column_s >= room)
            return steps[i];
    return 7200;
}

/* Slices [from, to), as far as they are visible. */
static void timeline_mark_span(const struct timeline_state *s, struct grid *g, struct rect row, int64_t from,
                               int64_t to, enum theme_role role) {
    int64_t left = s->view.first, right = left + row.cols;
    from = from < left ? left : from;
    to = to > right ? right : to;
    if (from < to)
        grid_restyle(g, (struct rect){row.row, row.col + (int)(from - left), 1, (int)(to - from)}, role);
}

/* What the window is compared with; a letter where it begins, because it is not the window
 * itself. */
static void timeline_mark_other(const struct timeline_state *s, const struct app *app, struct grid *g,
                                struct rect row) {
    double step = s->view.column_s;
    int64_t from = timeline_column(step, app->diff.span_from_s),
            to = timeline_column(step, app->diff.span_to_s - step * 1e-3) + 1;
    timeline_mark_span(s, g, row, from, to, ROLE_DIFF_LESS_2);
    from -= s->view.first;
    if (from >= 0 && from < row.cols)
        grid_text(g, row, 0, (int)from, ROLE_DIFF_LESS_2, "B");
}

static void timeline_draw_axis(const struct timeline_state *s, const struct app *app, struct grid *g,
                               const struct timeline_place *p) {
    struct rect row = {p->axis_row, p->cells.col, 1, p->cells.cols};
    double step = timeline_axis_step(s->view.column_s, 13);
    char text[32];
    int64_t from, to;
    double begin_s = timeline_begin(s->view.column_s, s->view.first),
           newest_s = sample_store_newest_tick_s(app->data.tally);
    grid_fill(g, (struct rect){p->axis_row, p->names.col, 1, p->names.cols + row.cols}, ROLE_TABLE_HEAD);
    time_text_length(fmax(newest_s - begin_s, 0), text, sizeof text);
    if (!isnan(newest_s) && p->names.cols > 12)
        grid_printf(g, (struct rect){p->axis_row, p->names.col, 1, p->names.cols - 1}, 0, 0, ROLE_TABLE_HEAD,
                    "from %s ago", text);
    for (int col = 0; col < row.cols; col++) {
        double at = timeline_begin(s->view.column_s, s->view.first + col) + s->view.column_s * 1e-3;
        if (floor(at / step) == floor((at - s->view.column_s) / step))
            continue;
        time_text_clock(floor(at / step) * step + 1e-4, text, sizeof text);
        if (step >= 1)
            *strchr(text, '.') = '\0';
        int col_after = grid_text(g, row, 0, col, ROLE_TABLE_HEAD, glyph(g, GLYPH_VLINE)) + col;
        if (col_after + (int)strlen(text) <= row.cols)
            grid_text(g, row, 0, col_after, ROLE_TABLE_HEAD, text);
    }
    double span_from, span_to;
    if (window_which(app) == SAMPLE_STORE_SPAN &&
        sample_store_get_span(app->data.tally, SAMPLE_STORE_SPAN, &span_from, &span_to)) {
        from = timeline_column(s->view.column_s, span_from);
        to = timeline_column(s->view.column_s, span_to - s->view.column_s * 1e-3) + 1;
        timeline_mark_span(s, g, row, from, to, ROLE_SELECTION_OTHER);
    }
    if (app->diff.on && app->diff.has_span)
        timeline_mark_other(s, app, g, row);
    if (timeline_selection(s, app, &from, &to))
        timeline_mark_span(s, g, row, from, to, ROLE_SELECTION);
    int64_t cursor = timeline_cursor(s, app) - s->view.first;
    if (cursor >= 0 && cursor < row.cols)
        grid_text(g, row, 0, (int)cursor, ROLE_TABLE_SORT, glyph(g, GLYPH_SORT_DOWN));
}

static void timeline_draw_share(const struct timeline_state *s, struct grid *g,
                                const struct timeline_place *p, int row, const char *name, bool is_gc) {
    struct rect area = {row, p->cells.col, 1, p->cells.cols};
    if (row < 0)
        return;
    grid_text_fit(g, (struct rect){row, p->names.col, 1, p->names.cols}, 0, 0, p->names.cols - 1, ROLE_LABEL,
                  GRID_LEFT, name);
    for (int col = 0; col < area.cols; col++) {
        struct timeline_share share = timeline_share(s->timeline, col);
        int pct = is_gc ? share.gc : share.gil;
        if (pct == TIMELINE_UNKNOWN)
            grid_text(g, area, 0, col, ROLE_MUTED, glyph(g, GLYPH_GAP));
        else
            grid_text(g, area, 0, col, is_gc ? ROLE_METER_CPU : ROLE_METER_GIL,
                      glyph(g, (enum glyph)(GLYPH_METER + (pct * 8 + 99) / 100)));
    }
}

/* ---- the selected slice ---- */

static void timeline_put_share(char *buf, size_t cap, const char *what, uint8_t pct) {
    if (pct == TIMELINE_UNKNOWN)
        snprintf(buf, cap, "%s ?", what);
    else
        snprintf(buf, cap, "%s %u%%", what, pct);
}

/* Words for a slice without a known function. */
static const char *timeline_words(const struct timeline_cell *c) {
    return !c || c->state == TIMELINE_UNSAMPLED ? "no data for this time"
           : c->state == TIMELINE_ABSENT        ? "the thread did not exist"
           : c->state == TIMELINE_TORN          ? "torn: it moved while it was read"
           : c->function == TIMELINE_NO_FRAME   ? "(no Python frame)"
                                                : NULL;
}

static void timeline_draw_facts(const struct timeline_state *s, const struct app *app, struct grid *g,
                                const struct timeline_place *p) {
    const struct timeline_cell *c = timeline_selected(s, app);
    struct rect area = {p->facts_row, p->names.col, p->n_facts, p->names.cols + p->cells.cols};
    double at = timeline_begin(timeline_scale_s(s), timeline_cursor(s, app)),
           newest_s = sample_store_newest_tick_s(app->data.tally);
    const char *words = timeline_words(c),
               *name = stack_counts_thread_name(sample_store_counts(app->data.tally), timeline_tid(s));
    const struct model_frame *f =
        words ? NULL : stack_counts_frame(sample_store_counts(app->data.tally), c->function);
    char clock[32], ago[32], text[256], cpu[24], gil[24], waits[24], gc[24];
    grid_fill(g, (struct rect){area.row, area.col, 1, area.cols}, ROLE_TABLE_HEAD);
    time_text_clock(at, clock, sizeof clock);
    time_text_length(fmax(newest_s - at, 0), ago, sizeof ago);
    int col = grid_printf(g, area, 0, 0, ROLE_TABLE_HEAD, "%s  %s ago  ", clock, ago);
    text_sanitize(text, sizeof text, name ? name : "?");
    text[text_fit(text, TIMELINE_MOST_NAME)] = '\0';
    col += grid_printf(g, area, 0, col, ROLE_TABLE_HEAD, "%s  ", timeline_row(s) < 0 ? "" : text);
    text_sanitize(text, sizeof text, words ? words : f->func ? f->func : "?");
    col += grid_text(g, area, 0, col, ROLE_TITLE, text);
    if (!c || c->state < TIMELINE_TORN || p->n_facts < 2)
        return;
    timeline_put_share(cpu, sizeof cpu, "on CPU", c->cpu);
    timeline_put_share(gil, sizeof gil, "GIL held", c->gil);
    timeline_put_share(waits, sizeof waits, "waited for", c->waiting);
    timeline_put_share(gc, sizeof gc, "GC", c->gc);
    col = grid_printf(g, area, 1, 0, ROLE_VALUE, "%u sample%s  %s  %s  %s  %s  ", c->looks,
                      c->looks == 1 ? "" : "s", cpu, gil, waits, gc);
    const char *file = f && f->file ? f->file : f && f->module ? f->module : "";
    if (*file && area.cols - col > 8)
        grid_text_fit(g, area, 1, col, area.cols - col, ROLE_FILE, GRID_TAIL, file);
}

/* ---- the screen ---- */

static struct timeline_place timeline_arrange(struct rect area, int head) {
    struct timeline_place p = {
        .gil_row = -1, .gc_row = -1, .n_facts = area.rows >= TIMELINE_TWO_LINES ? 2 : 1};
    int names = area.cols / 4 < TIMELINE_MOST_NAME ? area.cols / 4 : TIMELINE_MOST_NAME;
    int cols = area.cols - names < TIMELINE_MAX_COLS ? area.cols - names : TIMELINE_MAX_COLS;
    int shares = area.rows >= TIMELINE_SHARE_ROWS ? 2 : 0;
    int rows = area.rows - head - 1 - shares - p.n_facts;
    p.axis_row = area.row + head;
    p.names = (struct rect){p.axis_row + 1, area.col, rows > 0 ? rows : 0, names};
    p.cells = (struct rect){p.axis_row + 1, area.col + names, rows > 0 ? rows : 0, cols};
    if (shares) {
        p.gil_row = p.cells.row + p.cells.rows;
        p.gc_row = p.gil_row + 1;
    }
    p.facts_row = area.row + area.rows - p.n_facts;
    return p;
}

static void timeline_empty_text(const struct timeline_state *s, const struct app *app, char *buf,
                                size_t cap) {
    struct sample_store_health h = {0};
    const char *text = NULL;
    if (app->data.tally)
        sample_store_get_health(app->data.tally, &h);
    if (!s->timeline)
        text = "out of memory";
    else if (s->view.cols && timeline_count_lanes(s->timeline) && !s->n_shown)
        text = s->filter.active || s->hides_idle || app->threads.only
                   ? "nothing matches: A shows all"
                   : "no data for this time: End goes to now";
    else if (app->data.paused)
        text = "frozen before the first sample: Z shows the latest";
    top_head_empty(app, TIMELINE_FIRST_SAMPLES, buf, cap);
    bool is_early = app->data.state == SESSION_CONNECTED && *buf;
    if (!is_early && (text || !*buf))
        snprintf(buf, cap, "%s", text ? text : "sampling ...");
}

static void timeline_draw_head(const struct timeline_state *s, const struct app *app, struct grid *g,
                               struct rect area) {
    char by[32], length[24];
    time_text_length(timeline_scale_s(s), length, sizeof length);
    snprintf(by, sizeof by, "slices of %s", length);
    struct top_head facts = {.tid = s->by_depth ? timeline_tid(s) : 0,
                             .n_tids = s->n_shown,
                             .by = by,
                             .time = timeline_times[s->time],
                             .gc_pct = NAN};
    struct sample_store_health h = {0};
    if (app->data.tally)
        sample_store_get_health(app->data.tally, &h);
    facts.samples = h.samples;
    top_head_draw(&facts, app, g, area);
}

static void timeline_mark_cursor(const struct timeline_state *s, const struct app *app, struct grid *g,
                                 const struct timeline_place *p) {
    int64_t col = timeline_cursor(s, app) - s->view.first;
    int row = s->by_depth ? 0 : timeline_row(s) - s->top;
    if (col >= 0 && col < p->cells.cols && row >= 0 && row < p->cells.rows)
        grid_restyle(g, (struct rect){p->cells.row + row, p->cells.col + (int)col, 1, 1},
                     ROLE_FLAME_SELECTION);
}

void timeline_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct timeline_state *s = state;
    int head = area.rows >= TIMELINE_TWO_LINES ? 2 : 1;
    struct timeline_place p = timeline_arrange(area, head);
    bool is_made = timeline_refresh(s, app, p.cells.cols);
    s->area = p.cells;
    timeline_draw_head(s, app, g, (struct rect){area.row, area.col, head, area.cols});
    if (is_made) {
        timeline_draw_axis(s, app, g, &p);
        timeline_draw_share(s, g, &p, p.gil_row, "GIL held", false);
        timeline_draw_share(s, g, &p, p.gc_row, "collects garbage", true);
        timeline_draw_facts(s, app, g, &p);
    }
    if (!is_made || !s->n_shown) {
        char text[128];
        timeline_empty_text(s, app, text, sizeof text);
        grid_text(g, p.cells, 0, 2, ROLE_MUTED, text);
        return;
    }
    if (s->by_depth)
        timeline_draw_depths(s, app, g, &p);
    else
        timeline_draw_lanes(s, app, g, &p);
    timeline_mark_cursor(s, app, g, &p);
}

void timeline_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct timeline_state *s = state;
    int64_t from, to;
    char text[64];
    double newest_s = app->data.tally ? sample_store_newest_tick_s(app->data.tally) : NAN;
    if (timeline_selection(s, app, &from, &to)) {
        time_text_length((double)(to - from) * timeline_scale_s(s), text, sizeof text);
        strbuf_addf(out, "SELECT %s: Enter makes it the window", text);
    } else if (s->follows || isnan(newest_s))
        strbuf_adds(out, app->data.paused || data_is_recorded(&app->data) ? "Timeline" : "Timeline   LIVE");
    else {
        time_text_length(fmax(newest_s - timeline_begin(timeline_scale_s(s), timeline_right(s, app) + 1), 0),
                         text, sizeof text);
        strbuf_addf(out, "Timeline   ends %s before now", text);
    }
    if (s->n_shown > (size_t)s->area.rows && !s->by_depth)
        strbuf_addf(out, "   threads %d-%d of %zu", s->top + 1, s->top + s->area.rows, s->n_shown);
    if (s->timeline && timeline_left_out(s->timeline))
        strbuf_addf(out, "   %zu threads not shown", timeline_left_out(s->timeline));
    if (s->filter.active)
        strbuf_addf(out, "   FILTER %s", s->filter.text);
    if (app_screen_shows_native(app, CONTEXT_TIMELINE))
        strbuf_adds(out, "   native too");
    tags_put_text(&app->threads, out);
    if (s->search.active)
        strbuf_addf(out, "   /%s", s->search.text);
}
