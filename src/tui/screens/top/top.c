/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top: functions or lines by their share of the samples, with a pane of callers and callees of the
 * selected one.
 *
 * The selection belongs to a function, not to a row. The table is made again when samples arrive,
 * as often as snapshots are requested (at first, with few samples, more often); while the view is
 * frozen its samples are, too.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client/samples/sample_store_table.h"
#include "tui/core/app.h"
#include "tui/core/app_diff.h"
#include "tui/core/app_history.h"
#include "tui/core/app_screen.h"
#include "tui/core/screen.h"
#include "tui/core/window.h"
#include "tui/view/pick.h"
#include "tui/screens/top/top_head.h"
#include "tui/screens/top/top_rows.h"
#include "tui/view/layout.h"
#include "tui/view/view.h"

struct top_compare {
    bool on;                          /* the rows are those of `diff` */
    struct sample_store_table before; /* what it is compared with; empty: not available */
    struct sample_store_diff diff;    /* of both */
    struct table_sort sort_other;     /* of the table that is hidden: compared, or not */
};

/* Make `table` for `query`, and what it is compared with. Each of the two has its order in
 * `*sort`. */
static void top_compare_build(struct top_compare *c, struct app *app, const struct sample_store_query *query,
                              struct sample_store_table *table, struct table_sort *sort);
static void top_compare_fini(struct top_compare *c);

/* The columns that are shown. */
static const struct table_column *top_compare_columns(const struct top_compare *c, int *n);

struct top_state {
    struct sample_store_query query;
    struct sample_store_table table;
    struct top_rows rows;
    struct top_compare compare;
    struct top_filter filter;
    /* Of the rows, by their ids; until the user selects one it is the first; its pane: the
     * calls. */
    struct view view;
    int threshold;
    struct sample_store_call *calls; /* of the selected function */
    size_t n_calls;
    struct list calls_list;
    bool calls_open, zoomed;
    double built_s;         /* when the table was made; without samples: not yet */
    uint64_t built_samples; /* of the stream at that time */
    uint64_t ids;           /* of the tally that the numbers refer to; 0: none */
    unsigned pauses;
    unsigned window;      /* version of the window that is shown */
    unsigned tag_changes; /* of the tags that the rows were selected by */
    bool tagged_only;
    int call_widths[TABLE_MAX_COLUMNS];
    struct rect calls_area; /* as last drawn; no rows: not drawn */
};

static bool top_pick(const void *state, const struct app *app, struct screen_pick *what, struct strbuf *one,
                     struct strbuf *whole);
static bool top_show(void *state, struct app *app, const struct screen_pick *what);
static bool top_mouse(void *state, struct app *app, const struct input_event *e);

#define TOP_SCROLL 8
#define TOP_FIRST_SAMPLES 10 /* from here on there is something to show */
#define TOP_EARLY_SAMPLES 500
#define TOP_TWO_LINES 8 /* rows from which on the head takes two */

static const double top_thresholds[] = {0, 0.1, 0.5, 1, 2, 5, 10, 20, 50};
#define TOP_N_THRESHOLDS ((int)(sizeof top_thresholds / sizeof top_thresholds[0]))

/* The selected row of the table; NULL: none. */
static const struct sample_store_row *top_selected(const struct top_state *s) {
    const struct top_row *row = top_rows_at(&s->rows, (size_t)s->view.list.selected);
    return row ? row->row : NULL;
}

/* Callers and callees of the current selection. */
static void top_find_calls(void *state, struct app *app) {
    struct top_state *s = state;
    const struct sample_store_row *row = top_selected(s);
    free(s->calls);
    s->calls = NULL;
    s->n_calls = 0;
    if (s->calls_open && row && app->data.tally)
        s->calls = sample_store_table_calls(&s->table, app->data.tally, row->id, &s->n_calls);
    list_fit(&s->calls_list, (int)s->n_calls, s->calls_list.page);
}

/* Make the rows of the table again; and the table. */
static void top_order(void *state, struct app *app) {
    struct top_state *s = state;
    s->tagged_only = app->functions.only;
    s->tag_changes = app->functions.changes;
    s->filter.threshold = top_thresholds[s->threshold];
    if (s->compare.on)
        top_rows_build_diff(&s->rows, &s->compare.diff, s->query.by_line, &s->filter, s->view.sort);
    else
        top_rows_build(&s->rows, &s->table, &s->filter, s->view.sort);
    view_settle(&s->view);
    top_find_calls(s, app);
}

static void top_rebuild(struct top_state *s, struct app *app) {
    struct sample_store_health health;
    const struct sample_store *tally = app->data.tally;
    top_rows_fini(&s->rows);
    sample_store_table_fini(&s->table);
    s->pauses = app->data.pauses;
    s->window = app->window.version;
    s->query.window = window_which(app);
    s->query.hides_native = !app_screen_shows_native(app, CONTEXT_TOP);
    uint64_t ids = tally ? sample_store_get_mark(tally).ids : 0;
    if (ids != s->ids) /* functions have other numbers now */
        s->view.has_key = false;
    s->ids = ids;
    if (tally) {
        sample_store_get_health(tally, &health);
        s->built_samples = health.samples;
        s->built_s = app->now_s;
    }
    top_compare_build(&s->compare, app, &s->query, &s->table, &s->view.sort);
    int n_columns;
    const struct table_column *columns = top_compare_columns(&s->compare, &n_columns);
    view_set_columns(&s->view, columns, n_columns);
    top_order(s, app);
}

static void top_update(void *state, struct app *app) {
    struct top_state *s = state;
    struct sample_store_health health;
    if (!app->data.tally) {
        if (s->ids) /* another target, of which nothing is known yet */
            top_rebuild(s, app);
        return;
    }
    sample_store_get_health(app->data.tally, &health);
    /* Samples of a recording arrive once, and together. */
    bool is_early = (health.samples < TOP_EARLY_SAMPLES || data_is_recorded(&app->data)) &&
                    health.samples != s->built_samples;
    bool is_due = !app->data.paused && app->now_s - s->built_s >= app->config.delay_s;
    if (sample_store_get_mark(app->data.tally).ids != s->ids || app->data.pauses != s->pauses ||
        app->window.version != s->window || is_early || is_due)
        top_rebuild(s, app);
    else if (app->functions.only != s->tagged_only || app->functions.changes != s->tag_changes)
        top_order(s, app);
}

/* ---- rows, for the view ---- */

/* Too few samples for a table: a line would be at 100 % for a short time. */
static bool top_has_rows(const struct top_state *s) {
    return s->rows.n > 0 && s->table.samples >= TOP_FIRST_SAMPLES;
}

static int top_count(const void *state) {
    const struct top_state *s = state;
    return top_has_rows(s) ? (int)s->rows.n : 0;
}

static const void *top_at(const void *state, int row) {
    return top_rows_at(&((const struct top_state *)state)->rows, (size_t)row);
}

static uint64_t top_key(const void *row) { return ((const struct top_row *)row)->row->id; }

static uint64_t top_tag_key(const void *row) {
    const struct top_row *r = row;
    return top_row_key(r->row, r->by_line);
}

static bool top_match(const void *row, const struct match *m) {
    return top_matches(((const struct top_row *)row)->row->frame, m);
}

static void top_put(const void *state, const void *row, struct screen_pick *what, struct strbuf *one,
                    struct strbuf *whole) {
    const struct top_row *r = row;
    (void)state;
    *what =
        (struct screen_pick){.frame = r->row->frame, .by = r->by_line ? FLAME_BY_LINE : FLAME_BY_FUNCTION};
    pick_put_frame(one, r->row->frame);
    top_put_row(whole, r);
}

static const struct view_def top_view_rows = {.count = top_count,
                                              .row = top_at,
                                              .key = top_key,
                                              .tag_key = top_tag_key,
                                              .matches = top_match,
                                              .put = top_put,
                                              .rebuild = top_order,
                                              .selected = top_find_calls};

static struct view *top_view(void *state) { return &((struct top_state *)state)->view; }

static void top_init(void *state, struct app *app) {
    struct top_state *s = state;
    view_init(&s->view, &top_view_rows, s, &app->functions);
    s->filter.match = &s->view.filter;
    s->view.sort = s->compare.sort_other = (struct table_sort){0, true};
    s->query.on_cpu = true; /* waiting threads would lead the list */
    if (app->config.filter)
        match_set(&s->view.filter, app->config.filter, true);
    s->filter.tags = &app->functions;
    top_rebuild(s, app);
}

static void top_fini(void *state) {
    struct top_state *s = state;
    top_rows_fini(&s->rows);
    sample_store_table_fini(&s->table);
    top_compare_fini(&s->compare);
    free(s->calls);
}

/* ---- drawing ---- */

/* Place of the selected thread among the sampled ones; -1: all threads are shown, or it has no
 * samples now. */
static int top_thread_at(const struct top_state *s) {
    for (size_t i = 0; i < s->table.n_tids; i++)
        if (s->query.tid && s->table.tids[i] == s->query.tid)
            return (int)i;
    return -1;
}

static void top_empty_text(const struct top_state *s, const struct app *app, char *buf, size_t cap) {
    struct sample_store_health h = {0};
    const char *text = NULL;
    if (app->data.tally)
        sample_store_get_health(app->data.tally, &h);
    if (s->table.n && s->table.samples >= TOP_FIRST_SAMPLES)
        text = "nothing matches: A shows all";
    else if (data_is_stepped(&app->data) && s->query.on_cpu)
        text = "nothing ran on a CPU in this time: a includes waiting time";
    else if (data_is_stepped(&app->data))
        text = "no samples of this time: sampling runs while Flame or Top is open";
    else if (app->data.paused)
        text = "frozen before the first sample: Z shows the latest";
    else if (s->table.n_tids && s->query.tid && top_thread_at(s) < 0)
        text = "this thread has no samples in this time: ( and ) go to others";
    else if (h.samples >= TOP_FIRST_SAMPLES && s->query.on_cpu)
        text = "almost nothing ran on the CPU: a includes waiting time";
    top_head_empty(app, TOP_FIRST_SAMPLES, buf, cap);
    bool is_early = app->data.state == SESSION_CONNECTED && *buf;
    if (!is_early && (text || !*buf))
        snprintf(buf, cap, "%s", text ? text : "sampling ...");
}

static void top_draw_calls(struct top_state *s, struct grid *g, struct rect area) {
    const struct top_row *row = top_rows_at(&s->rows, (size_t)s->view.list.selected);
    grid_fill(g, (struct rect){area.row, area.col, 1, area.cols}, ROLE_TABLE_HEAD);
    char name[128], title[192];
    text_sanitize(name, sizeof name, row && row->row->frame->func ? row->row->frame->func : "?");
    name[text_fit(name, 40)] = '\0';
    snprintf(title, sizeof title, row ? " Calls of %s " : " Calls ", name);
    int col = grid_text(g, area, 0, 0, s->view.in_pane ? ROLE_TITLE_FOCUS : ROLE_TITLE, title);
    if (row && !isnan(row->total_pct))
        grid_printf(g, area, 0, col, ROLE_TABLE_HEAD, " shares of its %.1f%%", row->total_pct);
    list_fit(&s->calls_list, (int)s->n_calls, area.rows - 1);
    table_layout(top_call_columns, top_n_call_columns, area.cols, s->call_widths);
    for (int i = 0; i < s->calls_list.page && s->calls_list.top + i < s->calls_list.count; i++) {
        int at = s->calls_list.top + i;
        const struct sample_store_call *call = &s->calls[at];
        struct top_call shown = {.call = call, .pct = NAN, .by_line = s->query.by_line};
        if (row && row->row->total_us > 0)
            shown.pct = call->us / row->row->total_us * 100;
        else if (row && row->row->total)
            shown.pct = (double)call->samples / (double)row->row->total * 100;
        table_draw_row(top_call_columns, top_n_call_columns, s->call_widths, &shown, s->view.scroll, g, area,
                       i + 1);
        struct rect line = {area.row + i + 1, area.col, 1, area.cols};
        if (s->view.in_pane && at == s->calls_list.selected)
            grid_restyle(g, line, ROLE_SELECTION);
        match_highlight(&s->view.search, g, line, 0);
    }
}

static void top_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct top_state *s = state;
    int head = area.rows >= TOP_TWO_LINES ? 2 : 1;
    struct top_head facts = {.tid = s->query.tid,
                             .n_tids = s->table.n_tids,
                             .by = s->query.by_line ? "line" : "function",
                             .time = s->query.on_cpu ? "ON CPU" : "WALL",
                             .compared = s->compare.on,
                             .samples = s->table.samples,
                             .gc_pct = sample_store_table_share(&s->table, s->table.gc_us, s->table.gc)};
    top_head_draw(&facts, app, g, (struct rect){area.row, area.col, head, area.cols});
    area.row += head;
    area.rows -= head;
    struct rect table = area, calls = area, line = area;
    calls.rows = line.rows = 0;
    if (s->calls_open && (s->zoomed || !layout_has_panes(area))) {
        calls.rows = s->view.in_pane ? area.rows : 0;
        table.rows = s->view.in_pane ? 0 : area.rows;
    } else if (s->calls_open)
        layout_panes(area, (int)s->rows.n + 1, &table, &calls, &line);
    s->view.area = table;
    s->calls_area = calls;
    if (table.rows > 0) {
        char empty[128] = "";
        if (!top_has_rows(s))
            top_empty_text(s, app, empty, sizeof empty);
        view_draw(&s->view, g, table, empty);
    }
    for (int i = 0; i < line.rows; i++)
        grid_text(g, line, i, 0, ROLE_BORDER, glyph(g, GLYPH_VLINE));
    if (calls.rows > 0)
        top_draw_calls(s, g, calls);
}

static void top_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct top_state *s = state;
    size_t shown = top_has_rows(s) ? s->rows.n : 0;
    strbuf_addf(out, "%s %zu", s->query.by_line ? "Lines" : "Functions", shown);
    if (shown != s->rows.total)
        strbuf_addf(out, " of %zu", s->rows.total);
    if (app_screen_shows_native(app, CONTEXT_TOP))
        strbuf_adds(out, "   native too");
    if (s->threshold)
        strbuf_addf(out, "   from %g%%", top_thresholds[s->threshold]);
    view_put_filter(&s->view, out);
    view_put_sort(&s->view, out);
    if (s->view.search.active)
        strbuf_addf(out, "   /%s: %d", s->view.search.text, view_hits(&s->view));
}

static bool top_is_on(const void *state, const struct app *app, enum action action) {
    const struct top_state *s = state;
    return (action == ACTION_BY_LINE && s->query.by_line) || (action == ACTION_ON_CPU && s->query.on_cpu) ||
           (action == ACTION_DIFF && app->diff.on) ||
           (action == ACTION_NATIVE && app_screen_shows_native(app, CONTEXT_TOP)) ||
           (action == ACTION_WINDOW && window_which(app) != SAMPLE_STORE_ALL);
}

/* ---- actions ---- */

/* One step back; false: none here, or a search comes first. */
static bool top_back(struct top_state *s, struct app *app) {
    bool *last = s->zoomed ? &s->zoomed : s->view.in_pane ? &s->view.in_pane : &s->calls_open;
    if (s->view.search.active || !*last)
        return false;
    *last = false;
    top_find_calls(s, app);
    return true;
}

/* Enter: open the pane and focus it; in it, go to the selected function. */
static void top_open_calls(struct top_state *s, struct app *app) {
    if (!s->view.in_pane) {
        s->calls_open = s->view.in_pane = true;
        s->calls_list.selected = s->calls_list.top = 0;
        view_select(&s->view, app, s->view.list.selected);
        return;
    }
    size_t at = (size_t)s->calls_list.selected;
    int row = at < s->n_calls ? top_rows_find(&s->rows, s->calls[at].id) : -1;
    if (row < 0) {
        app_message(app, false, "it is not in the table: filtered, below the threshold, or no function");
        return;
    }
    s->calls_list.selected = s->calls_list.top = 0;
    view_select(&s->view, app, row);
}

/* Samples of the next thread, the previous one, or all, in a circle. */
static void top_step_thread(struct top_state *s, int step) {
    int n = (int)s->table.n_tids + 1, at = (top_thread_at(s) + 1 + step + n) % n;
    s->query.tid = at ? s->table.tids[at - 1] : 0;
}

/* Lines or functions; the selection stays visible: a line's function, a function's first line in
 * the order. */
static void top_by_line(struct top_state *s, struct app *app) {
    s->query.by_line = !s->query.by_line;
    uint32_t id = (uint32_t)s->view.key;
    uint32_t function = s->view.has_key && !(id & SAMPLE_STORE_DIFF_FOREIGN) && app->data.tally
                            ? sample_store_function(app->data.tally, id)
                            : SAMPLE_STORE_NO_FRAME;
    top_rebuild(s, app);
    if (function == SAMPLE_STORE_NO_FRAME)
        return;
    for (size_t i = 0; i < s->rows.n; i++) {
        id = top_rows_at(&s->rows, i)->row->id;
        if (!(id & SAMPLE_STORE_DIFF_FOREIGN) && sample_store_function(app->data.tally, id) == function) {
            view_select(&s->view, app, (int)i);
            return;
        }
    }
}

static void top_zero(struct app *app) {
    app_set_paused(app, false);
    if (app->data.tally)
        sample_store_reset(app->data.tally, app->now_s);
    app_message(app, false, "counting from zero");
}

/* Actions that change which samples are added up; false: another one. */
static bool top_act_query(struct top_state *s, struct app *app, enum action action) {
    switch ((int)action) {
    case ACTION_BY_LINE:
        top_by_line(s, app);
        return true;
    case ACTION_ON_CPU:
        s->query.on_cpu = !s->query.on_cpu;
        break;
    case ACTION_WINDOW:
        window_step(app);
        return true;
    case ACTION_NATIVE:
        app_screen_toggle_native(app, CONTEXT_TOP);
        break;
    case ACTION_ZERO:
        top_zero(app);
        break;
    case ACTION_THREAD_PREV:
    case ACTION_THREAD_NEXT:
        top_step_thread(s, action == ACTION_THREAD_NEXT ? 1 : -1);
        break;
    default:
        return false;
    }
    top_rebuild(s, app);
    return true;
}

/* Actions that change which rows are shown; false: another one. */
static bool top_act_order(struct top_state *s, struct app *app, enum action action) {
    switch ((int)action) {
    case ACTION_THRESHOLD_UP:
        s->threshold += s->threshold < TOP_N_THRESHOLDS - 1;
        break;
    case ACTION_THRESHOLD_DOWN:
        s->threshold -= s->threshold > 0;
        break;
    case ACTION_SHOW_ALL:
        match_clear(&s->view.filter);
        app->functions.only = false;
        s->threshold = 0;
        s->query.on_cpu = false;
        top_rebuild(s, app);
        return true;
    default:
        return false;
    }
    top_order(s, app);
    return true;
}

static bool top_act(void *state, struct app *app, enum action action) {
    struct top_state *s = state;
    switch ((int)action) {
    case ACTION_BACK:
        return top_back(s, app);
    case ACTION_OPEN_CALLS:
        top_open_calls(s, app);
        return true;
    case ACTION_FOCUS:
        s->view.in_pane = !s->view.in_pane;
        s->calls_open |= s->view.in_pane;
        top_find_calls(s, app);
        return true;
    case ACTION_ZOOM:
        s->zoomed = !s->zoomed && s->calls_open;
        return true;
    default:
        return top_act_query(s, app, action) || top_act_order(s, app, action) ||
               (s->view.in_pane && list_move(&s->calls_list, action));
    }
}

/* The filter is for rows: the time of a hidden function is part of the others' total. */
static void top_choose(const void *state, struct screen_choice *out) {
    const struct top_state *s = state;
    out->query.tid = s->query.tid;
    out->query.time = s->query.on_cpu ? FLAME_ON_CPU : FLAME_ALL_TIME;
    out->query.by = s->query.by_line ? FLAME_BY_LINE : FLAME_BY_FUNCTION;
}

const struct screen_def screen_top = {
    .name = "top",
    .title = "Top",
    .is_tab = true,
    .opens = {SCREEN_TAB_KEY(TOP, "top", "4", "the Top screen: functions by their share of the time")},
    .needs_samples = true,
    .is_kept = true,
    .state_size = sizeof(struct top_state),
    .init = top_init,
    .fini = top_fini,
    .keys = CONTEXT_TOP,
    .view = top_view,
    .draw = top_draw,
    .act = top_act,
    .mouse = top_mouse,
    .update = top_update,
    .pick = top_pick,
    .choose = top_choose,
    .show = top_show,
    .is_on = top_is_on,
    .status = top_status,
};

/* ---- pick ---- */

/* The selection and the tags of the Top screen, for other parts of the program; and the mouse. */

#define TOP_WHEEL 3

static bool top_pick(const void *state, const struct app *app, struct screen_pick *what, struct strbuf *one,
                     struct strbuf *whole) {
    const struct top_state *s = state;
    const struct sample_store_row *row = top_selected(s);
    size_t at = (size_t)s->calls_list.selected;
    const struct sample_store_call *call = s->view.in_pane && at < s->n_calls ? &s->calls[at] : NULL;
    const struct model_frame *f = call ? call->frame : row ? row->frame : NULL;
    (void)app;
    if (!f)
        return false;
    what->tid = s->query.tid;
    what->frame = f;
    pick_put_frame(one, f);
    if (call)
        pick_put_frame(whole, f);
    else
        top_put_row(whole, top_rows_at(&s->rows, (size_t)s->view.list.selected));
    return true;
}

/* Show a function again that a filter or the threshold hides. */
static bool top_show(void *state, struct app *app, const struct screen_pick *what) {
    struct top_state *s = state;
    s->query.tid = what->tid;
    top_rebuild(s, app);
    int at = what->frame ? top_rows_find_function(&s->rows, what->frame) : 0;
    if (at < 0) {
        match_clear(&s->view.filter);
        app->functions.only = false;
        s->threshold = 0;
        s->query.on_cpu = false;
        top_rebuild(s, app);
        at = top_rows_find_function(&s->rows, what->frame);
    }
    if (at >= 0 && what->frame)
        view_select(&s->view, app, at);
    return at >= 0;
}

/* ---- the mouse ---- */

static bool top_inside(struct rect r, int row, int col) {
    return row >= r.row && row < r.row + r.rows && col >= r.col && col < r.col + r.cols;
}

static bool top_mouse(void *state, struct app *app, const struct input_event *e) {
    struct top_state *s = state;
    int wheel = e->button == INPUT_WHEEL_UP ? -TOP_WHEEL : e->button == INPUT_WHEEL_DOWN ? TOP_WHEEL : 0;
    bool in_calls = top_inside(s->calls_area, e->row, e->col);
    if (!in_calls && !top_inside(s->view.area, e->row, e->col))
        return false;
    if (!wheel)
        s->view.in_pane = in_calls;
    if (!in_calls)
        return view_mouse(&s->view, app, e, NULL);
    int row = s->calls_list.top + e->row - s->calls_area.row - 1;
    if (wheel)
        list_wheel(&s->calls_list, wheel);
    else if (e->row > s->calls_area.row && row < s->calls_list.count)
        list_select(&s->calls_list, row);
    return true;
}

/* ---- compare ---- */

static void top_compare_build(struct top_compare *c, struct app *app, const struct sample_store_query *query,
                              struct sample_store_table *table, struct table_sort *sort) {
    struct app_diff_side side;
    struct sample_store_query q = *query;
    q.window = app_history_window(app, query->window);
    if (app->data.tally)
        sample_store_table_build(table, app->data.tally, &q);
    if (app->diff.on != c->on) {
        struct table_sort other = c->sort_other;
        c->sort_other = *sort;
        *sort = other;
        c->on = app->diff.on;
    }
    top_compare_fini(c);
    if (!c->on)
        return;
    bool has_side = app_diff_find(app, query->window, query->tid, &side);
    if (has_side) {
        q.window = side.window;
        q.tid = side.tid;
        sample_store_table_build(&c->before, side.tally, &q);
    }
    /* What is not available is unknown, not left out. */
    sample_store_diff_build(&c->diff, table, &c->before, has_side && side.is_foreign);
}

static void top_compare_fini(struct top_compare *c) {
    sample_store_table_fini(&c->before);
    sample_store_diff_fini(&c->diff);
}

static const struct table_column *top_compare_columns(const struct top_compare *c, int *n) {
    *n = c->on ? top_n_diff_columns : top_n_columns;
    return c->on ? top_diff_columns : top_columns;
}
