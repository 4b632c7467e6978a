/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline_move: where one is in time and among the threads of the Timeline screen, and how one gets on; see
 * timeline_state.h. Places are times, not columns: they stay while samples come in and when slices get longer. Pure.
 */
#include "tui/screens/timeline/timeline_state.h"

#include <math.h>
#include <stdlib.h>

#include "base/grow.h"
#include "client/samples/thread_runs.h"

static const double timeline_scales[] = {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10};
#define TIMELINE_N_SCALES ((int)(sizeof timeline_scales / sizeof timeline_scales[0]))
#define TIMELINE_WHEEL_ROWS 3

double timeline_scale_s(const struct timeline_state *s) { return timeline_scales[s->scale]; }

/* Slice that a time is in. */
static int64_t timeline_slice_of(const struct timeline_state *s, double time_s) {
    return timeline_column(timeline_scale_s(s), time_s);
}

double timeline_middle(const struct timeline_state *s, int64_t slice) {
    return timeline_begin(timeline_scale_s(s), slice) + timeline_scale_s(s) / 2;
}

/* The newest slice there is something of. */
static int64_t timeline_newest(const struct timeline_state *s, const struct app *app) {
    double newest_s = app->data.tally ? sample_store_newest_tick_s(app->data.tally) : NAN;
    return timeline_slice_of(s, isnan(newest_s) ? app->epoch_s : newest_s);
}

/* The oldest: of what is in memory, or of what is shown of before. */
static int64_t timeline_oldest(const struct timeline_state *s, const struct app *app) {
    const struct thread_runs *t = app->data.tally ? sample_store_tracks(app->data.tally) : NULL;
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
    return has_one ? stack_counts_frame(sample_store_fold(app->data.tally), c->function) : NULL;
}

static bool timeline_matches(const struct match *m, const struct model_frame *f) {
    return f && (match_text(m, f->func) || match_text(m, f->file));
}

bool timeline_is_hit(const struct timeline_state *s, const struct app *app, const struct timeline_cell *c) {
    return s->search.active && timeline_matches(&s->search, timeline_frame(app, c));
}

/* Is a thread to be shown, by its name and by what it does in view? */
static bool timeline_passes(const struct timeline_state *s, const struct app *app, size_t lane) {
    const struct timeline_lane *l = timeline_lane(s->timeline, lane);
    if (!l->seen || (s->hides_idle && !l->ran) || !tags_shows(&app->threads, (uint64_t)l->tid))
        return false;
    if (!s->filter.active)
        return true;
    bool found = match_text(&s->filter, stack_counts_thread_name(sample_store_fold(app->data.tally), l->tid));
    uint32_t before = TIMELINE_NO_FRAME;
    for (int col = 0; !found && col < s->view.cols; col++) {
        const struct timeline_cell *c = timeline_cell(s->timeline, lane, col);
        if (c->function != before) /* most are the same as the one before */
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
                                 .hides_native = !app_shows_native(app, CONTEXT_TIMELINE)};
    view.first = timeline_right(s, app) - view.cols + 1;
    if (!s->timeline || !tally)
        return false;
    /* Another tally may lie where the one before did: it is known by its ids. */
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

/* Put the cursor on a slice; the view moves as far as it has to. */
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

/* The same where something is known; at the newest slice the view follows. */
static void timeline_go(struct timeline_state *s, const struct app *app, int64_t to) {
    int64_t newest = timeline_newest(s, app), oldest = timeline_oldest(s, app);
    int64_t left = timeline_right(s, app) - s->view.cols + 1;
    oldest = oldest < left ? oldest : left; /* what is in view may be older than what is in memory */
    to = to > newest ? newest : to < oldest ? oldest : to;
    if (to == newest && !s->selecting) {
        s->follows = true;
        return;
    }
    timeline_place(s, app, to);
}

/* Move the view, and the cursor with it. */
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
    bool was_hit = step != 0; /* what goes on from the selected slice is the same place */
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
