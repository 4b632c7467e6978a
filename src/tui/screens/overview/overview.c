/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overview: the Overview screen: what the job costs and waits for, its functions, its events. Enter
 * on a line opens the screen that it is about. Two columns if it is wide, with a small flame graph;
 * scrolls if it is low.
 * While the view is frozen functions stand still; meters go on, as the header does.
 */
#include "tui/core/app.h"
#include "tui/core/app_input.h"
#include "tui/core/job_state.h"
#include "tui/core/app_screen.h"
#include "tui/core/screen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/view/pick.h"
#include "tui/screens/flame/flame_state.h"
#include "tui/screens/log.h"
#include "tui/screens/overview/overview_job.h"
#include "tui/screens/overview/overview_lines.h"
#include "tui/screens/overview/overview_verdicts.h"
#include "tui/core/window.h"
#include "tui/keys/input.h"
#include "tui/view/layout.h"
#include "tui/view/list.h"
#include "tui/view/meter_draw.h"

#define OVERVIEW_PICK_S 0.9 /* between two additions of the functions */
#define OVERVIEW_VALUE_COLS 9
#define OVERVIEW_WHEEL 3
#define OVERVIEW_FLAME_ROWS 8 /* of cells: events give way to them, */
#define OVERVIEW_LEAST_EVENTS 3
#define OVERVIEW_FLAME_LEAST 4 /* and without so many there is no flame graph */

struct overview_state {
    struct overview_functions functions;
    struct sample_store_mark mark; /* of the tally that they were taken from */
    unsigned window;               /* version of their window */
    double picked_s;
    struct overview summary;
    int n_verdicts;   /* lines of the summary when the selection was settled */
    struct list list; /* of rows in one column; of lines if there are two, see overview_row */
    /* The selected line, by what it is about; "": by its place, as lines of verdicts are */
    char selected[128];
    enum overview_kind selected_kind;
    double selected_s; /* of an event */
    bool is_wide;
    struct rect area;
    struct flame_state flame;
};

/* Row of a line: in its column, if there are two. */
static int overview_row(const struct overview_state *s, int line) {
    int row = 0;
    for (int i = 0; i < line; i++)
        row += !s->is_wide || s->summary.lines[i].is_right == s->summary.lines[line].is_right;
    return row;
}

/* Columns of a line on the left. */
static int overview_cols(const struct overview_state *s) {
    return s->is_wide ? s->area.cols / 2 : s->area.cols;
}

/* Rows on the right that functions, events and the headings leave. */
static int overview_rest(const struct overview_state *s, const struct app *app, size_t most) {
    size_t n = log_count(app->log), events = n < most ? n : most;
    return s->area.rows - s->functions.n - (int)events - 3;
}

static void overview_make(struct overview_state *s, const struct app *app) {
    if (job_state_is_alone(app)) {
        overview_job_build(&s->summary, app, overview_cols(s), OVERVIEW_EVENTS);
        return;
    }
    struct overview_form form = {.cols = overview_cols(s), .events = OVERVIEW_EVENTS};
    while (s->is_wide && form.events > OVERVIEW_LEAST_EVENTS &&
           overview_rest(s, app, form.events) < OVERVIEW_FLAME_ROWS)
        form.events--;
    form.has_flame = s->is_wide && overview_rest(s, app, form.events) >= OVERVIEW_FLAME_LEAST;
    if (s->is_wide && !form.has_flame)
        form.events = OVERVIEW_EVENTS;
    overview_build(&s->summary, app, &s->functions, &form);
}

static bool overview_has_flame(const struct overview_state *s) {
    const struct overview_line *last = &s->summary.lines[s->summary.n - 1];
    return s->summary.n > 0 && last->kind == OVERVIEW_TITLE && last->opens == ACTION_SHOW_FLAME;
}

static void overview_follow_flame(struct overview_state *s, struct app *app) {
    if (overview_has_flame(s))
        flame_picture_follow(&s->flame, app, s->functions.on_cpu ? FLAME_ON_CPU : FLAME_ALL_TIME);
}

static void overview_update(void *state, struct app *app) {
    struct overview_state *s = state;
    const struct sample_store *tally = app->data.tally;
    struct sample_store_mark mark = tally ? sample_store_get_mark(tally) : (struct sample_store_mark){0};
    bool is_new = mark.ids != s->mark.ids || mark.counts != s->mark.counts || mark.changes != s->mark.changes;
    bool is_other = app->window.version != s->window;
    bool is_due = !(app->now_s - s->picked_s < OVERVIEW_PICK_S) || mark.ids != s->mark.ids;
    if ((is_new && is_due) || is_other) {
        s->window = app->window.version;
        s->mark = mark;
        s->picked_s = app->now_s;
        overview_pick_functions(&s->functions, tally, window_which(app));
    }
    if (app_screen_top(app)->state == state)
        overview_verdicts_follow(app);
    overview_make(s, app);
    overview_follow_flame(s, app);
}

static void overview_init(void *state, struct app *app) {
    struct overview_state *s = state;
    s->picked_s = -INFINITY;
    s->functions.on_cpu = true;
    flame_picture_init(&s->flame);
    overview_update(s, app);
}

static void overview_fini(void *state) { flame_picture_fini(&((struct overview_state *)state)->flame); }

/* ---- drawing ---- */

static void overview_draw_meter(const struct overview_line *l, struct grid *g, struct rect row) {
    int col = OVERVIEW_LABEL_COLS + OVERVIEW_VALUE_COLS + 2, width = 0;
    grid_text_fit(g, row, 0, 1, OVERVIEW_LABEL_COLS, ROLE_LABEL, GRID_LEFT, l->label);
    grid_text_fit(g, row, 0, 1 + OVERVIEW_LABEL_COLS, OVERVIEW_VALUE_COLS, l->role, GRID_RIGHT, l->value);
    if (l->meter && row.cols >= OVERVIEW_NARROW)
        width = (row.cols - col) / 4;
    if (width > METER_MAX)
        width = METER_MAX;
    if (width)
        meter_draw(l->meter, g, row, 0, col, width, l->scale, l->meter_role);
    col += width ? width + 1 : 0;
    if (col < row.cols)
        grid_text_fit(g, row, 0, col, row.cols - col, ROLE_TEXT, GRID_LEFT, l->text);
}

static void overview_draw_function(const struct overview_function *f, struct grid *g, struct rect row) {
    char own[16] = "?", total[16] = "?";
    int file = row.cols >= OVERVIEW_NARROW ? row.cols / 3 : 0, name = row.cols - 17 - (file ? file + 1 : 0);
    if (!isnan(f->own_pct))
        snprintf(own, sizeof own, "%.1f %%", f->own_pct);
    if (!isnan(f->total_pct))
        snprintf(total, sizeof total, "%.1f %%", f->total_pct);
    grid_text_fit(g, row, 0, 1, 7, ROLE_VALUE, GRID_RIGHT, own);
    grid_text_fit(g, row, 0, 9, 7, ROLE_TEXT, GRID_RIGHT, total);
    grid_text_fit(g, row, 0, 17, name, f->role, GRID_LEFT, f->func);
    if (file)
        grid_text_fit(g, row, 0, row.cols - file, file, ROLE_FILE, GRID_LEFT, f->file);
}

static void overview_draw_line(const struct overview_line *l, struct grid *g, struct rect row) {
    switch (l->kind) {
    case OVERVIEW_VERDICT: {
        int text = 1 + overview_verdicts_indent(row.cols);
        if (l->label[0])
            grid_text_fit(g, row, 0, 1, row.cols - 1, l->role, GRID_LEFT, l->label);
        if (l->text[0])
            grid_text_fit(g, row, 0, text, row.cols - text, ROLE_TEXT, GRID_LEFT, l->text);
        break;
    }
    case OVERVIEW_METER:
        overview_draw_meter(l, g, row);
        break;
    case OVERVIEW_TITLE:
        grid_fill(g, row, ROLE_TABLE_HEAD);
        grid_printf(g, row, 0, 1, ROLE_TABLE_HEAD, "%s: %s", l->label, l->text);
        break;
    case OVERVIEW_FUNCTION:
        overview_draw_function(l->function, g, row);
        break;
    case OVERVIEW_EVENT:
        log_draw_entry(l->event, -1, g, row);
        break;
    }
}

/* What a line is about; "": a verdict, whose lines are many. */
static const char *overview_name(const struct overview_line *l) {
    if (l->function || l->event)
        return l->function ? l->function->func : l->event->text;
    return l->kind != OVERVIEW_VERDICT && l->label ? l->label : "";
}

static bool overview_is_selected(const struct overview_state *s, const struct overview_line *l) {
    return l->kind == s->selected_kind && (!l->event || l->event->epoch_s == s->selected_s) &&
           strncmp(overview_name(l), s->selected, sizeof s->selected - 1) == 0;
}

/* Follow the selected line, if it is still there; the nearest of several that are alike. */
static void overview_settle(struct overview_state *s) {
    int best = -1;
    int more = s->summary.n_verdicts - s->n_verdicts; /* lines below them have moved so far */
    if (s->n_verdicts && s->list.selected >= s->n_verdicts)
        s->list.selected += more;
    s->n_verdicts = s->summary.n_verdicts;
    for (int i = 0; *s->selected && i < s->summary.n; i++)
        if (overview_is_selected(s, &s->summary.lines[i]) &&
            (best < 0 || abs(i - s->list.selected) < abs(best - s->list.selected)))
            best = i;
    s->list.selected = best >= 0 ? best : s->list.selected;
    s->list.selected = s->list.selected < s->summary.n ? s->list.selected : s->summary.n - 1;
}

static void overview_note(struct overview_state *s) {
    const struct overview_line *l = &s->summary.lines[s->list.selected];
    snprintf(s->selected, sizeof s->selected, "%s", overview_name(l));
    s->selected_kind = l->kind;
    s->selected_s = l->event ? l->event->epoch_s : NAN;
}

/* Scroll until the row of the selected line is visible. */
static void overview_fit(struct overview_state *s, int page) {
    int rows = 0, at = overview_row(s, s->list.selected);
    for (int i = 0; i < s->summary.n; i++)
        rows = overview_row(s, i) + 1 > rows ? overview_row(s, i) + 1 : rows;
    s->list.count = s->summary.n;
    s->list.page = page;
    if (at < s->list.top)
        s->list.top = at;
    if (at >= s->list.top + page)
        s->list.top = at - page + 1;
    if (s->list.top > rows - page)
        s->list.top = rows > page ? rows - page : 0;
}

static void overview_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct overview_state *s = state;
    s->area = area;
    s->is_wide = area.cols >= LAYOUT_WIDE_COLS;
    overview_make(s, app);
    overview_settle(s);
    overview_fit(s, area.rows);
    int left = overview_cols(s);
    for (int i = 0; i < s->summary.n; i++) {
        const struct overview_line *l = &s->summary.lines[i];
        int row = overview_row(s, i) - s->list.top;
        bool right = s->is_wide && l->is_right;
        if (row < 0 || row >= area.rows)
            continue;
        struct rect line = {area.row + row, area.col + (right ? left + 1 : 0), 1,
                            right ? area.cols - left - 1 : left};
        overview_draw_line(l, g, line);
        if (i == s->list.selected)
            grid_restyle(g, line, ROLE_SELECTION);
    }
    for (int row = 0; s->is_wide && row < area.rows; row++)
        grid_text(g, area, row, left, ROLE_BORDER, glyph(g, GLYPH_VLINE));
    s->flame.area.rows = 0;
    int above = overview_row(s, s->summary.n - 1) + 1 - s->list.top;
    if (!overview_has_flame(s) || above >= area.rows)
        return;
    overview_follow_flame(s, app); /* the first time that there is room */
    flame_picture_draw(
        &s->flame, app, g,
        (struct rect){area.row + above, area.col + left + 1, area.rows - above, area.cols - left - 1});
}

/* ---- actions ---- */

/* Open the screen that the selected line is about; search for a function there. */
static void overview_open(struct overview_state *s, struct app *app) {
    struct overview_line line = s->summary.lines[s->list.selected];
    char func[128] = "";
    if (!line.opens) {
        app_message(app, false, "this line opens no screen");
        return;
    }
    if (line.function)
        snprintf(func, sizeof func, "%s", line.function->func);
    app_input_act(app, line.opens); /* this screen is closed from here on */
    struct app_screen *top = app_screen_top(app);
    if (*func && app_screen_can_type(top) && !app_screen_typed(top, app, ACTION_SEARCH, func, SCREEN_ACCEPT))
        app_message(app, false, "searching for '%s' in the next samples", func);
}

static bool overview_act(void *state, struct app *app, enum action action) {
    struct overview_state *s = state;
    switch ((int)action) {
    case ACTION_OPEN_LINE:
        overview_open(s, app);
        return true;
    case ACTION_WINDOW:
        window_step(app);
        return true;
    default:
        if (!list_move(&s->list, action))
            return false;
        overview_note(s);
        return true;
    }
}

/* The thread or the function that the line is about; else its text. */
static bool overview_pick(const void *state, const struct app *app, struct screen_pick *what,
                          struct strbuf *one, struct strbuf *whole) {
    const struct overview_state *s = state;
    const struct overview_line *l = &s->summary.lines[s->list.selected];
    const struct overview_function *f = l->function;
    bool is_same = app->data.tally && sample_store_get_mark(app->data.tally).ids == s->mark.ids;
    what->tid = l->tid;
    what->frame = f && is_same ? f->frame : NULL;
    if (what->frame)
        pick_put_frame(one, what->frame);
    else if (f)
        pick_put_text(one, f->func);
    else
        pick_put_text(one, l->event ? l->event->text : l->text);
    if (f)
        strbuf_addf(whole, "own %.1f%% total %.1f%% %s", f->own_pct, f->total_pct, strbuf_str(one));
    else if (l->event)
        pick_put_text(whole, l->event->text);
    else
        strbuf_addf(whole, "%s %s %s", l->label + strspn(l->label, " "), l->value, strbuf_str(one));
    return true;
}

/* A click on a cell opens Flame, with that frame selected. */
static bool overview_click_flame(struct overview_state *s, struct app *app, const struct input_event *e) {
    int row = e->row - s->flame.area.row;
    bool is_there = row >= 0 && row < s->flame.area.rows && e->col >= s->flame.area.col;
    struct screen_pick what = {.frame = is_there ? flame_picture_at(&s->flame, e->row, e->col) : NULL};
    if (!is_there)
        return false;
    app_input_act(app, ACTION_SHOW_FLAME);
    struct app_screen *top = app_screen_top(app);
    if (what.frame && top->def->show)
        top->def->show(top->state, app, &what);
    return true;
}

static bool overview_mouse(void *state, struct app *app, const struct input_event *e) {
    struct overview_state *s = state;
    if (e->button != INPUT_CLICK && e->button != INPUT_MENU) {
        list_select(&s->list,
                    s->list.selected + (e->button == INPUT_WHEEL_UP ? -OVERVIEW_WHEEL : OVERVIEW_WHEEL));
        overview_note(s);
        return true;
    }
    if (e->button == INPUT_CLICK && overview_click_flame(s, app, e))
        return true;
    bool right = s->is_wide && e->col > s->area.col + s->area.cols / 2;
    for (int i = 0; i < s->summary.n; i++) {
        bool here = !s->is_wide || s->summary.lines[i].is_right == right;
        if (!here || overview_row(s, i) - s->list.top != e->row - s->area.row)
            continue;
        if (s->list.selected == i && e->button == INPUT_CLICK)
            overview_open(s, app);
        else {
            s->list.selected = i;
            overview_note(s);
        }
        return true;
    }
    return false;
}

static bool overview_is_on(const void *state, const struct app *app, enum action action) {
    (void)state;
    return (action == ACTION_PAUSE && app->data.paused) ||
           (action == ACTION_WINDOW && window_which(app) != SAMPLE_STORE_ALL);
}

static void overview_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct overview_state *s = state;
    bool has_both = app->data.paused && !job_state_is_alone(app);
    strbuf_adds(out, has_both ? "Overview: functions are frozen, meters are live" : "Overview");
    strbuf_addf(out, "   line %d of %d", s->list.selected + 1, s->summary.n);
}

const struct screen_def screen_overview = {
    .name = "overview",
    .title = "Overview",
    .is_tab = true,
    .opens = {SCREEN_TAB_KEY(OVERVIEW, "overview", "1",
                             "the Overview screen: what the job costs and waits for")},
    .needs_samples = true,
    .needs_vitals = true,
    .is_kept = true,
    .shows_job = true,
    .tells_arms = true,
    .state_size = sizeof(struct overview_state),
    .init = overview_init,
    .fini = overview_fini,
    .keys = CONTEXT_OVERVIEW,
    .draw = overview_draw,
    .act = overview_act,
    .mouse = overview_mouse,
    .update = overview_update,
    .pick = overview_pick,
    .is_on = overview_is_on,
    .status = overview_status,
};
