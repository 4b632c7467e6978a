/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline: what each thread did when: a lane a thread, a column a slice of time, the newest at the
 * right; or the calls of one thread. A span that is selected becomes the window of all screens.
 *
 * A thread and a time are selected: they stay while samples arrive. Cells are made when they are
 * drawn, new ones as they arrive; while the view is frozen they are too.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "client/samples/thread_runs.h"
#include "tui/view/pick.h"
#include "tui/core/app.h"
#include "tui/core/app_diff.h"
#include "tui/core/app_history.h"
#include "tui/core/app_screen.h"
#include "tui/core/screen.h"
#include "tui/core/window.h"
#include "tui/keys/input.h"
#include "tui/screens/timeline/timeline_state.h"

#define TIMELINE_FIRST_SCALE 3 /* a tenth of a second a slice */

/* Put the cursor on an earlier moment that is shown; back at the newest, follow that if it was
 * followed before. */
static void timeline_follow_time(struct timeline_state *s, const struct app *app) {
    bool is_stepped = data_is_stepped(&app->data);
    if (is_stepped && !s->is_stepped)
        s->followed = s->follows;
    if (is_stepped && (!s->is_stepped || s->pauses != app->data.pauses))
        timeline_show_time(s, app, data_shown(&app->data)->snapshot.timestamp);
    else if (s->is_stepped && !is_stepped && s->followed && !s->selecting)
        s->follows = true;
    s->is_stepped = is_stepped;
    s->pauses = app->data.pauses;
}

static void timeline_init(void *state, struct app *app) {
    struct timeline_state *s = state;
    s->timeline = timeline_new();
    s->scale = TIMELINE_FIRST_SCALE;
    s->follows = true;
    if (app->config.filter)
        match_set(&s->filter, app->config.filter, true);
    timeline_follow_time(s, app);
}

static void timeline_fini(void *state) {
    struct timeline_state *s = state;
    timeline_free(s->timeline);
    free(s->shown);
}

/* The functions of the cells no longer exist. */
static void timeline_drop(struct timeline_state *s) {
    s->view.cols = 0;
    s->n_shown = 0;
    s->tally = NULL;
    if (s->timeline)
        timeline_clear(s->timeline);
}

static void timeline_update_screen(void *state, struct app *app) {
    struct timeline_state *s = state;
    const struct sample_store *tally = app->data.tally;
    if (s->tally && s->tally != tally) { /* a position in time means nothing for another target */
        s->follows = true;
        s->selecting = s->by_depth = s->is_stepped = false;
        timeline_drop(s);
    } else if (s->tally && sample_store_get_mark(tally).ids != s->ids)
        timeline_drop(s);
    if (!app->data.paused || s->pauses != app->data.pauses)
        s->is_stale = true;
    timeline_follow_time(s, app);
}

/* ---- search and filter ---- */

static bool timeline_typed(void *state, struct app *app, enum action what, const char *text,
                           enum screen_typed phase) {
    struct timeline_state *s = state;
    if (phase == SCREEN_CANCEL)
        text = "";
    match_set(what == ACTION_FILTER ? &s->filter : &s->search, text, what == ACTION_FILTER);
    if (what == ACTION_SEARCH)
        return !s->search.active || timeline_search(s, app, 0);
    s->is_stale = true;
    timeline_refresh(s, app, s->view.cols);
    return s->n_shown > 0;
}

static const char *timeline_typed_before(const void *state, enum action what) {
    const struct timeline_state *s = state;
    return what == ACTION_FILTER ? s->filter.text : s->search.text;
}

static void timeline_search_on(struct timeline_state *s, struct app *app, int step) {
    if (!s->search.active)
        app_message(app, false, "no search yet: / searches");
    else if (!timeline_search(s, app, step))
        app_refuse(app, "nothing that is shown matches '%s'", s->search.text);
}

/* ---- a span ---- */

static void timeline_begin_span(struct timeline_state *s, const struct app *app) {
    double middle_s = timeline_middle(s, timeline_cursor(s, app));
    if (s->selecting) { /* again: from here */
        s->mark_s = middle_s;
        return;
    }
    s->right_s = timeline_middle(s, timeline_right(s, app));
    s->mark_s = s->cursor_s = middle_s;
    s->follows = false; /* the selection stands still */
    s->selecting = true;
}

/* Enter: the selection becomes the window; without one, toggle between one thread's calls and all
 * threads. */
static void timeline_enter(struct timeline_state *s, struct app *app) {
    int64_t from, to;
    if (!timeline_selection(s, app, &from, &to)) {
        s->by_depth = !s->by_depth && timeline_row(s) >= 0;
        s->depth_top = 0;
        return;
    }
    double scale_s = timeline_scale_s(s);
    if (!window_select(app, timeline_begin(scale_s, from), timeline_begin(scale_s, to)))
        return;
    s->selecting = false;
    char text[WINDOW_TEXT];
    window_put_text(app, text, sizeof text);
    app_message(app, false, "%s: the window of Flame, Top and SQL (:from, :to)%s; Esc clears it", text,
                data_is_stepped(&app->data) ? "; Threads shows its last moment" : "");
}

/* d: Flame and Top compare the window with the selection; without one, toggle comparing. */
static void timeline_compare(struct timeline_state *s, struct app *app) {
    int64_t from, to;
    if (timeline_selection(s, app, &from, &to)) {
        double scale_s = timeline_scale_s(s);
        s->selecting = !app_diff_choose_span(app, timeline_begin(scale_s, from), timeline_begin(scale_s, to));
        return;
    }
    app_diff_toggle(app);
    app_diff_say(app);
}

/* One step back; false: none. */
static bool timeline_back(struct timeline_state *s, struct app *app) {
    if (s->selecting)
        s->selecting = false;
    else if (s->by_depth)
        s->by_depth = false;
    else if (s->search.active)
        match_clear(&s->search);
    else if (s->filter.active)
        match_clear(&s->filter);
    else if (window_which(app) == SAMPLE_STORE_SPAN)
        window_let_go(app);
    else
        return false;
    s->is_stale = true;
    return true;
}

/* ---- actions ---- */

static void timeline_show_all(struct timeline_state *s, struct app *app) {
    match_clear(&s->filter);
    app->threads.only = false;
    s->hides_idle = s->by_depth = false;
    s->time = TIMELINE_ALL_TIME;
}

/* Actions that change what is shown; false: another one. */
static bool timeline_act_view(struct timeline_state *s, struct app *app, enum action action) {
    switch ((int)action) {
    case ACTION_ON_CPU:
        s->time = (enum timeline_time)((s->time + 1) % TIMELINE_TIMES);
        break;
    case ACTION_NATIVE:
        app_screen_toggle_native(app, CONTEXT_TIMELINE);
        break;
    case ACTION_HIDE_IDLE:
        s->hides_idle = !s->hides_idle;
        break;
    case ACTION_SHOW_ALL:
        timeline_show_all(s, app);
        break;
    case ACTION_PAUSE:
        app_set_paused(app, !app->data.paused);
        break;
    case ACTION_WINDOW:
        window_step(app);
        break;
    default:
        return false;
    }
    s->is_stale = true;
    return true;
}

static bool timeline_act(void *state, struct app *app, enum action action) {
    struct timeline_state *s = state;
    switch ((int)action) {
    case ACTION_BACK:
        return timeline_back(s, app);
    case ACTION_TIME_SELECT:
        timeline_begin_span(s, app);
        return true;
    case ACTION_TIME_ENTER:
        timeline_enter(s, app);
        return true;
    case ACTION_DIFF:
        timeline_compare(s, app);
        return true;
    case ACTION_SEARCH_NEXT:
    case ACTION_SEARCH_PREV:
        timeline_search_on(s, app, action == ACTION_SEARCH_NEXT ? 1 : -1);
        return true;
    default:
        return timeline_act_view(s, app, action) || timeline_move(s, app, action);
    }
}

static bool timeline_is_on(const void *state, const struct app *app, enum action action) {
    const struct timeline_state *s = state;
    return (action == ACTION_FILTER && s->filter.active) || (action == ACTION_PAUSE && app->data.paused) ||
           (action == ACTION_ON_CPU && s->time == TIMELINE_ON_CPU) ||
           (action == ACTION_HIDE_IDLE && s->hides_idle) || (action == ACTION_TIME_SELECT && s->selecting) ||
           (action == ACTION_TIME_ENTER && s->by_depth) || (action == ACTION_DIFF && app->diff.on) ||
           (action == ACTION_NATIVE && app_screen_shows_native(app, CONTEXT_TIMELINE)) ||
           (action == ACTION_WINDOW && window_which(app) != SAMPLE_STORE_ALL);
}

/* One thread's depth, or all threads; the window is that of all screens. */
static void timeline_choose(const void *state, struct screen_choice *out) {
    const struct timeline_state *s = state;
    out->query.tid = s->by_depth ? s->tid : 0;
}

const struct screen_def screen_timeline = {
    .name = "timeline",
    .title = "Timeline",
    .is_tab = true,
    .opens = {SCREEN_TAB_KEY(TIMELINE, "timeline", "5", "the Timeline screen: what each thread did when")},
    .needs_samples = true,
    .is_kept = true,
    .state_size = sizeof(struct timeline_state),
    .init = timeline_init,
    .fini = timeline_fini,
    .keys = CONTEXT_TIMELINE,
    .draw = timeline_draw,
    .act = timeline_act,
    .mouse = timeline_mouse,
    .update = timeline_update_screen,
    .typed = timeline_typed,
    .pick = timeline_pick,
    .rows = &timeline_tagged,
    .show = timeline_show,
    .choose = timeline_choose,
    .typed_before = timeline_typed_before,
    .is_on = timeline_is_on,
    .status = timeline_status,
};

/* ---- move ---- */

/*
 * The position in time and among the threads of the Timeline screen, and motions. Places are times,
 * not columns: they stay while samples arrive and when slices get longer. Pure.
 */

static const double timeline_scales[] = {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10};
#define TIMELINE_N_SCALES ((int)(sizeof timeline_scales / sizeof timeline_scales[0]))
#define TIMELINE_WHEEL_ROWS 3

double timeline_scale_s(const struct timeline_state *s) { return timeline_scales[s->scale]; }

/* The slice of a time. */
static int64_t timeline_slice_of(const struct timeline_state *s, double time_s) {
    return timeline_column(timeline_scale_s(s), time_s);
}

double timeline_middle(const struct timeline_state *s, int64_t slice) {
    return timeline_begin(timeline_scale_s(s), slice) + timeline_scale_s(s) / 2;
}

/* The newest slice with data. */
static int64_t timeline_newest(const struct timeline_state *s, const struct app *app) {
    double newest_s = app->data.tally ? sample_store_newest_tick_s(app->data.tally) : NAN;
    return timeline_slice_of(s, isnan(newest_s) ? app->epoch_s : newest_s);
}

/* The oldest slice: in memory, or of the earlier moment that is shown. */
static int64_t timeline_oldest(const struct timeline_state *s, const struct app *app) {
    const struct thread_runs *t = app->data.tally ? sample_store_runs(app->data.tally) : NULL;
    if (!t || thread_runs_first_tick(t) == thread_runs_end_tick(t))
        return timeline_newest(s, app);
    return timeline_slice_of(s, thread_runs_tick_time(t, thread_runs_first_tick(t)));
}

int64_t timeline_right(const struct timeline_state *s, const struct app *app) {
    return s->follows ? timeline_newest(s, app) : timeline_slice_of(s, s->right_s);
}

int64_t timeline_cursor(const struct timeline_state *s, const struct app *app) {
    return s->follows ? timeline_newest(s, app) : timeline_slice_of(s, s->cursor_s);
}

int64_t timeline_mark(const struct timeline_state *s) { return timeline_slice_of(s, s->mark_s); }

bool timeline_selection(const struct timeline_state *s, const struct app *app, int64_t *from, int64_t *to) {
    int64_t mark = timeline_mark(s), cursor = timeline_cursor(s, app);
    *from = mark < cursor ? mark : cursor;
    *to = (mark < cursor ? cursor : mark) + 1;
    return s->selecting;
}

/* ---- threads ---- */

static const struct model_frame *timeline_frame(const struct app *app, const struct timeline_cell *c) {
    bool has_one = c->state >= TIMELINE_IDLE && c->function != TIMELINE_NO_FRAME && app->data.tally;
    return has_one ? stack_counts_frame(sample_store_counts(app->data.tally), c->function) : NULL;
}

static bool timeline_matches(const struct match *m, const struct model_frame *f) {
    return f && (match_text(m, f->func) || match_text(m, f->file));
}

bool timeline_is_hit(const struct timeline_state *s, const struct app *app, const struct timeline_cell *c) {
    return s->search.active && timeline_matches(&s->search, timeline_frame(app, c));
}

/* Is a thread shown, by its name and by what it does in view? */
static bool timeline_passes(const struct timeline_state *s, const struct app *app, size_t lane) {
    const struct timeline_lane *l = timeline_lane(s->timeline, lane);
    if (!l->seen || (s->hides_idle && !l->ran) || !tags_shows(&app->threads, (uint64_t)l->tid))
        return false;
    if (!s->filter.active)
        return true;
    bool found =
        match_text(&s->filter, stack_counts_thread_name(sample_store_counts(app->data.tally), l->tid));
    uint32_t before = TIMELINE_NO_FRAME;
    for (int col = 0; !found && col < s->view.cols; col++) {
        const struct timeline_cell *c = timeline_cell(s->timeline, lane, col);
        if (c->function != before) /* most equal the last one */
            found = timeline_matches(&s->filter, timeline_frame(app, c));
        before = c->function;
    }
    return found != s->filter.negated;
}

static bool timeline_list(struct timeline_state *s, const struct app *app) {
    size_t n = timeline_count_lanes(s->timeline);
    s->n_shown = 0;
    if (grow_array(&s->shown, sizeof *s->shown, n + 1, &s->cap_shown) != 0)
        return false;
    for (size_t i = 0; i < n; i++)
        if (timeline_passes(s, app, i))
            s->shown[s->n_shown++] = i;
    return true;
}

int timeline_row(const struct timeline_state *s) {
    for (size_t i = 0; i < s->n_shown; i++)
        if (timeline_lane(s->timeline, s->shown[i])->tid == s->tid)
            return (int)i;
    return s->n_shown ? 0 : -1;
}

int64_t timeline_tid(const struct timeline_state *s) {
    int row = timeline_row(s);
    return row < 0 ? 0 : timeline_lane(s->timeline, s->shown[row])->tid;
}

static void timeline_select_row(struct timeline_state *s, int row) {
    if (!s->n_shown)
        return;
    row = row < 0 ? 0 : row >= (int)s->n_shown ? (int)s->n_shown - 1 : row;
    s->tid = timeline_lane(s->timeline, s->shown[row])->tid;
    s->depth_top = 0;
}

/* ---- the cells ---- */

static bool timeline_is_same(const struct timeline_view *a, const struct timeline_view *b) {
    return a->column_s == b->column_s && a->first == b->first && a->cols == b->cols && a->time == b->time &&
           a->hides_native == b->hides_native;
}

bool timeline_refresh(struct timeline_state *s, const struct app *app, int cols) {
    const struct sample_store *tally = app->data.tally;
    struct timeline_view view = {.column_s = timeline_scale_s(s),
                                 .cols = cols > 0 ? cols : 1,
                                 .time = s->time,
                                 .hides_native = !app_screen_shows_native(app, CONTEXT_TIMELINE)};
    view.first = timeline_right(s, app) - view.cols + 1;
    if (!s->timeline || !tally)
        return false;
    /* Another tally may have the same address: its ids identify it. */
    bool is_same = s->tally == tally && s->ids == sample_store_get_mark(tally).ids;
    bool same_tags = s->tag_changes == app->threads.changes && s->tagged_only == app->threads.only;
    if (s->view.cols && !s->is_stale && is_same && same_tags && timeline_is_same(&view, &s->view))
        return true;
    s->is_stale = false;
    s->tag_changes = app->threads.changes;
    s->tagged_only = app->threads.only;
    s->tally = tally;
    s->ids = sample_store_get_mark(tally).ids;
    s->view = view;
    if (timeline_update(s->timeline, tally, &view) != 0 || !timeline_list(s, app)) {
        s->view.cols = 0;
        s->n_shown = 0;
        return false;
    }
    return true;
}

const struct timeline_cell *timeline_selected(const struct timeline_state *s, const struct app *app) {
    int64_t col = timeline_cursor(s, app) - s->view.first;
    int row = timeline_row(s);
    if (row < 0 || col < 0 || col >= s->view.cols)
        return NULL;
    return timeline_cell(s->timeline, s->shown[row], (int)col);
}

/* ---- time ---- */

/* Put the cursor on a slice; scrolls only as far as necessary. */
static void timeline_place(struct timeline_state *s, const struct app *app, int64_t to) {
    int64_t right = timeline_right(s, app), cols = s->view.cols > 0 ? s->view.cols : 1;
    right = to > right ? to : to <= right - cols ? to + cols - 1 : right;
    s->follows = false;
    s->right_s = timeline_middle(s, right);
    s->cursor_s = timeline_middle(s, to);
}

void timeline_show_time(struct timeline_state *s, const struct app *app, double time_s) {
    timeline_place(s, app, timeline_slice_of(s, time_s));
}

/* The same within the known time; at the newest slice the view follows. */
static void timeline_go(struct timeline_state *s, const struct app *app, int64_t to) {
    int64_t newest = timeline_newest(s, app), oldest = timeline_oldest(s, app);
    int64_t left = timeline_right(s, app) - s->view.cols + 1;
    /* What is visible may be older than what is in memory. */
    oldest = oldest < left ? oldest : left;
    to = to > newest ? newest : to < oldest ? oldest : to;
    if (to == newest && !s->selecting) {
        s->follows = true;
        return;
    }
    timeline_place(s, app, to);
}

/* Scroll, and move the cursor with the view. */
static void timeline_pan(struct timeline_state *s, const struct app *app, int64_t by) {
    int64_t cursor = timeline_cursor(s, app), right = timeline_right(s, app),
            newest = timeline_newest(s, app);
    int64_t oldest = timeline_oldest(s, app);
    if (by < 0 && cursor + by < oldest)
        by = cursor > oldest ? oldest - cursor : 0;
    if (by > 0 && right + by >= newest) {
        timeline_go(s, app, newest);
        return;
    }
    s->follows = false;
    s->right_s = timeline_middle(s, right + by);
    s->cursor_s = timeline_middle(s, cursor + by);
}

void timeline_zoom(struct timeline_state *s, const struct app *app, int step, int col) {
    int64_t right = timeline_right(s, app), cursor = timeline_cursor(s, app);
    int64_t fixed = col >= 0 ? right - s->view.cols + 1 + col : cursor, behind = right - fixed;
    double fixed_s = timeline_middle(s, fixed), cursor_s = timeline_middle(s, cursor);
    int scale = s->scale - step;
    if (scale < 0 || scale >= TIMELINE_N_SCALES)
        return;
    s->scale = scale;
    if (s->follows)
        return;
    right = timeline_slice_of(s, fixed_s) + behind;
    int64_t newest = timeline_newest(s, app);
    s->right_s = timeline_middle(s, right < newest ? right : newest);
    s->cursor_s = cursor_s;
}

/* ---- search ---- */

bool timeline_search(struct timeline_state *s, const struct app *app, int step) {
    int cols = s->view.cols, n = (int)s->n_shown, row = timeline_row(s);
    int64_t col = timeline_cursor(s, app) - s->view.first;
    if (row < 0 || cols <= 0 || !s->search.active)
        return false;
    int64_t all = (int64_t)n * cols, at = row * (int64_t)cols + (col < 0 ? 0 : col >= cols ? cols - 1 : col);
    int64_t way = step < 0 ? -1 : 1;
    bool was_hit = step != 0; /* a block that continues from the selected slice is the same place */
    for (int64_t i = step ? 1 : 0; i <= all; i++) {
        int64_t k = ((at + way * i) % all + all) % all;
        bool hit = timeline_is_hit(s, app, timeline_cell(s->timeline, s->shown[k / cols], (int)(k % cols)));
        if (hit && !was_hit) {
            timeline_select_row(s, (int)(k / cols));
            timeline_go(s, app, s->view.first + k % cols);
            return true;
        }
        was_hit = hit && k % cols != (way > 0 ? cols - 1 : 0);
    }
    return timeline_is_hit(s, app, timeline_cell(s->timeline, s->shown[at / cols], (int)(at % cols)));
}

/* ---- actions ---- */

/* Up and down: threads, or the calls of one. */
static void timeline_step_rows(struct timeline_state *s, int by) {
    if (s->by_depth) {
        s->depth_top = s->depth_top + by < 0 ? 0 : s->depth_top + by;
        return;
    }
    timeline_select_row(s, timeline_row(s) + by);
}

static bool timeline_move_rows(struct timeline_state *s, enum action action) {
    int page = s->area.rows > 1 ? s->area.rows : 1;
    switch ((int)action) {
    case ACTION_UP:
    case ACTION_DOWN:
        timeline_step_rows(s, action == ACTION_DOWN ? 1 : -1);
        return true;
    case ACTION_HALF_UP:
    case ACTION_HALF_DOWN:
        timeline_step_rows(s, (action == ACTION_HALF_DOWN ? 1 : -1) * ((page + 1) / 2));
        return true;
    case ACTION_PAGE_UP:
    case ACTION_PAGE_DOWN:
        timeline_step_rows(s, (action == ACTION_PAGE_DOWN ? 1 : -1) * page);
        return true;
    case ACTION_THREAD_PREV:
    case ACTION_THREAD_NEXT:
        timeline_select_row(s, timeline_row(s) + (action == ACTION_THREAD_NEXT ? 1 : -1));
        return true;
    default:
        return false;
    }
}

bool timeline_move(struct timeline_state *s, const struct app *app, enum action action) {
    int64_t half = s->view.cols > 1 ? s->view.cols / 2 : 1;
    switch ((int)action) {
    case ACTION_LEFT:
    case ACTION_RIGHT:
        timeline_go(s, app, timeline_cursor(s, app) + (action == ACTION_RIGHT ? 1 : -1));
        return true;
    case ACTION_TIME_BACK:
    case ACTION_TIME_FORTH:
        timeline_pan(s, app, action == ACTION_TIME_FORTH ? half : -half);
        return true;
    case ACTION_FIRST:
        timeline_go(s, app, timeline_oldest(s, app));
        return true;
    case ACTION_LAST:
        timeline_go(s, app, timeline_newest(s, app));
        return true;
    case ACTION_TIME_SHORTER:
    case ACTION_TIME_LONGER:
        timeline_zoom(s, app, action == ACTION_TIME_SHORTER ? 1 : -1, -1);
        return true;
    default:
        return timeline_move_rows(s, action);
    }
}

bool timeline_mouse(void *state, struct app *app, const struct input_event *e) {
    struct timeline_state *s = state;
    int row = e->row - s->area.row, col = e->col - s->area.col;
    if (row < 0 || row >= s->area.rows || !s->view.cols)
        return false;
    if (e->button != INPUT_CLICK && e->button != INPUT_MENU) {
        int way = e->button == INPUT_WHEEL_UP ? 1 : -1;
        if (col >= 0)
            timeline_zoom(s, app, way, col);
        else /* over the names */
            timeline_step_rows(s, -way * TIMELINE_WHEEL_ROWS);
        return true;
    }
    if (!s->by_depth && s->top + row < (int)s->n_shown)
        timeline_select_row(s, s->top + row);
    if (col >= 0 && col < s->view.cols)
        timeline_go(s, app, s->view.first + col);
    return true;
}

/* ---- pick ---- */

/*
 * The selection in the Timeline screen, a thread and what it did in a slice of time, and its tagged
 * threads, for other parts of the program; and going to a thread that they have selected.
 */

#define TIMELINE_PICK_DEPTH 2048 /* frames of a stack; the innermost if there are more */

/* The cell of a row under the cursor, if it has a function; NULL. */
static const struct timeline_cell *timeline_cell_of(const struct timeline_state *s, const struct app *app,
                                                    int row) {
    int64_t col = timeline_cursor(s, app) - s->view.first;
    if (!app->data.tally || s->tally != app->data.tally || row < 0 || row >= (int)s->n_shown || col < 0 ||
        col >= s->view.cols)
        return NULL;
    const struct timeline_cell *c = timeline_cell(s->timeline, s->shown[row], (int)col);
    return c->state >= TIMELINE_IDLE && c->function != TIMELINE_NO_FRAME ? c : NULL;
}

/* The thread's line, and its stack in the slice, innermost first. */
static void timeline_put_stack(const struct app *app, int64_t tid, const struct timeline_cell *c,
                               struct strbuf *out) {
    const struct stack_counts *fold = sample_store_counts(app->data.tally);
    const char *name = stack_counts_thread_name(fold, tid);
    strbuf_addf(out, "%" PRId64 " ", tid);
    pick_put_text(out, name ? name : "?");
    strbuf_addc(out, '\n');
    uint32_t stack = c ? c->stack : STACK_COUNTS_NO_STACK, above;
    for (int i = 0; stack != STACK_COUNTS_NO_STACK && i < TIMELINE_PICK_DEPTH; i++, stack = above) {
        const struct model_frame *f = stack_counts_frame(fold, stack_counts_stack_frame(fold, stack, &above));
        if (!app_screen_shows_native(app, CONTEXT_TIMELINE))
            above = sample_store_python_stack(app->data.tally, above);
        strbuf_adds(out, "  ");
        if (f)
            pick_put_frame(out, f);
        strbuf_addc(out, '\n');
    }
}

static const struct model_frame *timeline_put_row(const struct timeline_state *s, const struct app *app,
                                                  int row, struct strbuf *whole) {
    const struct timeline_cell *c = timeline_cell_of(s, app, row);
    timeline_put_stack(app, timeline_lane(s->timeline, s->shown[row])->tid, c, whole);
    return c ? stack_counts_frame(sample_store_counts(app->data.tally), c->function) : NULL;
}

bool timeline_pick(const void *state, const struct app *app, struct screen_pick *what, struct strbuf *one,
                   struct strbuf *whole) {
    const struct timeline_state *s = state;
    int row = timeline_row(s);
    if (row < 0 || !app->data.tally || s->tally != app->data.tally)
        return false;
    const char *name = stack_counts_thread_name(sample_store_counts(app->data.tally), timeline_tid(s));
    what->tid = timeline_tid(s);
    what->frame = timeline_put_row(s, app, row, whole);
    if (what->frame)
        pick_put_frame(one, what->frame);
    else
        pick_put_text(one, name ? name : "?");
    return true;
}

bool timeline_show(void *state, struct app *app, const struct screen_pick *what) {
    struct timeline_state *s = state;
    (void)app;
    for (size_t i = 0; i < s->n_shown; i++)
        if (timeline_lane(s->timeline, s->shown[i])->tid == what->tid) {
            s->tid = what->tid;
            return true;
        }
    return false;
}

/* ---- tagged rows ---- */

static struct tags *timeline_tags(void *state, struct app *app) {
    (void)state;
    return &app->threads;
}

static int timeline_count_rows(const void *state, const struct app *app) {
    const struct timeline_state *s = state;
    return s->tally == app->data.tally ? (int)s->n_shown : 0;
}

static int timeline_selected_row(const void *state, const struct app *app) {
    const struct timeline_state *s = state;
    return s->tally == app->data.tally && !s->by_depth ? timeline_row(s) : -1;
}

static uint64_t timeline_key(const void *state, const struct app *app, int row) {
    const struct timeline_state *s = state;
    (void)app;
    return (uint64_t)timeline_lane(s->timeline, s->shown[row])->tid;
}

static void timeline_put(const void *state, const struct app *app, int row, struct screen_pick *what,
                         struct strbuf *one, struct strbuf *whole) {
    const struct timeline_state *s = state;
    int64_t tid = timeline_lane(s->timeline, s->shown[row])->tid;
    const char *name = stack_counts_thread_name(sample_store_counts(app->data.tally), tid);
    const struct model_frame *f = timeline_put_row(s, app, row, whole);
    *what = (struct screen_pick){.tid = tid};
    strbuf_addf(one, "%" PRId64 " ", tid);
    pick_put_text(one, name ? name : "?");
    if (f) {
        strbuf_addc(one, ' ');
        pick_put_frame(one, f);
    }
}

static void timeline_renew(void *state, struct app *app) {
    struct timeline_state *s = state;
    s->is_stale = true;
    timeline_refresh(s, app, s->view.cols);
}

const struct screen_rows timeline_tagged = {.tags = timeline_tags,
                                            .count = timeline_count_rows,
                                            .selected = timeline_selected_row,
                                            .key = timeline_key,
                                            .put = timeline_put,
                                            .renew = timeline_renew};
