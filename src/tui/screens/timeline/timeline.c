/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline: what each thread did when: a lane a thread, a column a slice of time, the newest at the right; or the calls of one
 * thread. A span that is selected becomes the window of all screens.
 *
 * What is selected is a thread and a time: it stays while samples come in. Cells are made when they are drawn, those that
 * came since; while the view is paused they stand.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/screens/screens.h"
#include "tui/screens/timeline/timeline_state.h"

#define TIMELINE_FIRST_SCALE 3 /* a tenth of a second a slice */

/* A moment that was stepped to stands under the cursor; out of the past the newest is followed if it was before. */
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

/* Cells are of functions that there are no more. */
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
    if (s->tally && s->tally != tally) { /* where one was in time means nothing for another target */
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
    (void)timeline_refresh(s, app, s->view.cols);
    return s->n_shown > 0;
}

static const char *timeline_typed_before(const void *state, enum action what) {
    const struct timeline_state *s = state;
    return what == ACTION_FILTER ? s->filter.text : s->search.text;
}

static void timeline_search_on(struct timeline_state *s, struct app *app, int step) {
    if (!s->search.active)
        app_message(app, false, "nothing was searched for: / searches");
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
    s->follows = false; /* what is selected stands still */
    s->selecting = true;
}

/* Enter: what is selected becomes the window; else one thread's calls, or all threads. */
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
    app_message(app, false, "%s: the window of Flame, Top and SQL (:from, :to)%s; Esc lets it go", text,
                data_is_stepped(&app->data) ? "; Threads shows its last moment" : "");
}

/* d: what is selected is what Flame and Top compare the window with; nothing is: they compare, or not. */
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

/* One step back; false when there is none. */
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

/* Actions that change what is shown; false when it is none of them. */
static bool timeline_act_view(struct timeline_state *s, struct app *app, enum action action) {
    switch ((int)action) {
    case ACTION_ON_CPU:
        s->time = (enum timeline_time)((s->time + 1) % TIMELINE_TIMES);
        break;
    case ACTION_NATIVE:
        app_toggle_native(app, CONTEXT_TIMELINE);
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
    case ACTION_QUIT:
        app->requests.quit = true;
        return true;
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
           (action == ACTION_NATIVE && app_shows_native(app, CONTEXT_TIMELINE)) ||
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
    .number = '9',
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
