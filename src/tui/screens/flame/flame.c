/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame: the tree of calls as an icicle: each frame a cell as wide as its share of the time, below its caller.
 *
 * Selection, zoom and scroll belong to frames, not to places: they stay while samples come in. The tree is brought up to
 * date as often as snapshots are asked for (and early when there are few samples); while the view is paused it stands.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/core/app_history.h"
#include "tui/screens/flame/flame_state.h"
#include "tui/screens/screens.h"

#define FLAME_EARLY_SAMPLES 500

static const int flame_permille[] = {0, 1, 5, 10, 20, 50, 100, 200, 500};
#define FLAME_N_THRESHOLDS ((int)(sizeof flame_permille / sizeof flame_permille[0]))

bool flame_is_there(const struct flame_state *s) { return s->flame && flame_count(s->flame) > 0; }

double flame_share(const struct flame_state *s, struct flame_weight part, struct flame_weight whole) {
    int64_t all = flame_amount(s->flame, whole);
    return all > 0 ? (double)flame_amount(s->flame, part) / (double)all * 100 : NAN;
}

double flame_threshold_pct(const struct flame_state *s) { return flame_permille[s->threshold] / 10.0; }

/* ---- the tree ---- */

/* Where a node of the tree before is in the one of now, another granularity maybe. */
static uint32_t flame_find_node_in(const struct flame_state *s, uint32_t node, uint32_t stack) {
    uint32_t found = node <= FLAME_FRAMELESS ? node : flame_find_stack(s->flame, stack);
    bool is_outside = found == FLAME_FRAMELESS && s->query.module; /* of the module that is looked at */
    return found == FLAME_NO_NODE || is_outside ? FLAME_ROOT : found;
}

/* Nothing of it is known, or it is another target's. */
static void flame_drop(struct flame_state *s) {
    flame_compare_end(s);
    if (s->flame)
        flame_clear(s->flame);
    s->selected = s->zoom = s->trail = FLAME_ROOT;
    s->top = 0;
    s->ids = 0;
    s->query.module = 0; /* the number of a frame that is no more */
    s->version++;
    flame_forget_hits(s);
}

static void flame_take(struct flame_state *s, struct app *app, const struct sample_store *tally) {
    struct flame_query query = s->query;
    query.window = app_history_window(app, query.window);
    bool was_there = flame_is_there(s);
    s->version++;
    uint64_t before = flame_identity(s->flame);
    uint32_t selected = was_there ? flame_node(s->flame, s->selected)->stack : STACK_COUNTS_NO_STACK,
             zoom = was_there ? flame_node(s->flame, s->zoom)->stack : STACK_COUNTS_NO_STACK;
    if (flame_update(s->flame, tally, &query) != 0) {
        flame_drop(s);
        return;
    }
    flame_compare(s, app);
    s->ids = sample_store_get_mark(tally).ids;
    if (flame_identity(s->flame) == before)
        return;
    flame_forget_hits(s);
    s->selected = s->trail = was_there ? flame_find_node_in(s, s->selected, selected) : FLAME_ROOT;
    s->zoom = was_there ? flame_find_node_in(s, s->zoom, zoom) : FLAME_ROOT;
    if (!flame_is_above(s->flame, s->selected, s->zoom) && !flame_is_above(s->flame, s->zoom, s->selected))
        s->zoom = FLAME_ROOT;
}

void flame_rebuild(struct flame_state *s, struct app *app) {
    const struct sample_store *tally = app->data.tally;
    s->pauses = app->data.pauses;
    s->window = app->window.version;
    s->query.window = window_which(app);
    if (!s->flame || !tally || sample_store_get_mark(tally).ids != s->ids)
        flame_drop(s);
    if (!s->flame || !tally)
        return;
    flame_choose_tagged(s);
    s->query.hides_native = !app_shows_native(app, CONTEXT_FLAME);
    struct sample_store_health health;
    sample_store_get_health(tally, &health);
    s->built_samples = health.samples;
    s->built_s = app->now_s;
    flame_take(s, app, tally);
    flame_find_hits(s);
}

static void flame_follow_tally(struct flame_state *s, struct app *app) {
    struct sample_store_health health;
    const struct sample_store *tally = app->data.tally;
    if (!tally) {
        if (s->ids)
            flame_rebuild(s, app);
        return;
    }
    sample_store_get_health(tally, &health);
    /* Those of the past come once, and all together. */
    bool is_early = (health.samples < FLAME_EARLY_SAMPLES || data_is_recorded(&app->data)) &&
                    health.samples != s->built_samples;
    bool is_due = !app->data.paused && app->now_s - s->built_s >= app->config.delay_s;
    if (sample_store_get_mark(tally).ids != s->ids || app->data.pauses != s->pauses ||
        app->window.version != s->window || is_early || is_due || flame_has_other_tags(s))
        flame_rebuild(s, app);
}

static void flame_update_screen(void *state, struct app *app) {
    flame_follow_tally(state, app);
    flame_follow_details(state, app);
}

static void flame_set_filter(struct flame_state *s, const char *text) {
    match_set(&s->filter, text, true);
    s->query.filter = (struct flame_filter){.matches = s->filter.active ? flame_filter_matches : NULL,
                                            .arg = &s->filter,
                                            .negated = s->filter.negated,
                                            .version = s->query.filter.version + 1};
}

static void flame_init(void *state, struct app *app) {
    struct flame_state *s = state;
    s->flame = flame_new();
    s->tags = &app->functions;
    s->query.time = FLAME_ON_CPU; /* threads that wait would take most of the width */
    if (app->config.filter)
        flame_set_filter(s, app->config.filter);
    flame_rebuild(s, app);
}

static void flame_fini(void *state) {
    struct flame_state *s = state;
    flame_compare_end(s);
    flame_free(s->flame);
    flame_layout_fini(&s->layout);
    flame_calls_fini(&s->calls);
    free(s->hits.known);
    free(s->shown.frames);
}

/* ---- search and filter ---- */

static bool flame_take_text(struct flame_state *s, struct app *app, enum action what, const char *text,
                            enum screen_typed phase) {
    if (phase == SCREEN_CANCEL)
        text = "";
    if (what == ACTION_FILTER) {
        flame_set_filter(s, text);
        flame_rebuild(s, app);
        return flame_is_there(s) && flame_node(s->flame, FLAME_ROOT)->total.samples > 0;
    }
    match_set(&s->search, text, false);
    flame_forget_hits(s);
    flame_find_hits(s);
    return !s->search.active || flame_search_step(s, 0);
}

static bool flame_typed(void *state, struct app *app, enum action what, const char *text,
                        enum screen_typed phase) {
    bool found = flame_take_text(state, app, what, text, phase);
    flame_follow_details(state, app);
    return found;
}

static const char *flame_typed_before(const void *state, enum action what) {
    const struct flame_state *s = state;
    return what == ACTION_FILTER ? s->filter.text : s->search.text;
}

static void flame_search_on(struct flame_state *s, struct app *app, int step) {
    if (!s->search.active)
        app_message(app, false, "nothing was searched for: / searches");
    else if (!flame_search_step(s, step))
        app_refuse(app, "nothing %smatches '%s'", s->zoom == FLAME_ROOT ? "" : "in the zoomed part ",
                   s->search.text);
}

/* ---- actions ---- */

/* Samples of the next thread, the previous one, or all: they stand in a circle. */
static void flame_step_thread(struct flame_state *s, int step) {
    size_t n_all;
    const struct flame_thread *threads = flame_threads(s->flame, &n_all);
    int n = 1, at = 0;
    for (size_t i = 0; i < n_all; i++)
        if (threads[i].samples) {
            at = threads[i].tid == s->query.tid ? n : at;
            n++;
        }
    at = (at + step + n) % n;
    s->query.tid = 0;
    for (size_t i = 0; at > 0 && i < n_all; i++)
        if (threads[i].samples && --at == 0)
            s->query.tid = threads[i].tid;
}

static void flame_zero(struct app *app) {
    app_set_paused(app, false);
    if (app->data.tally)
        sample_store_reset(app->data.tally, app->now_s);
    app_message(app, false, "counting from zero");
}

/* What the module of the selected frame does, or all of them. */
static void flame_only_module(struct flame_state *s, struct app *app) {
    const struct model_frame *f = flame_is_there(s) ? flame_frame(s->flame, s->selected) : NULL;
    if (s->query.module)
        s->query.module = 0;
    else if (f)
        s->query.module = flame_node(s->flame, s->selected)->frame + 1;
    else
        app_message(app, false, "select a frame: then only what its module does is shown");
}

static void flame_show_all(struct flame_state *s, struct app *app) {
    app->functions.only = false;
    flame_set_filter(s, "");
    s->threshold = 0;
    s->query.time = FLAME_ALL_TIME;
    s->query.tid = 0;
    s->query.module = 0;
    s->zoom = FLAME_ROOT;
    s->top = 0;
}

/* Actions that change which samples are added up; false when it is none of them. */
static bool flame_act_query(struct flame_state *s, struct app *app, enum action action) {
    switch ((int)action) {
    case ACTION_BY_LINE:
        s->query.by = (enum flame_by)((s->query.by + 1) % FLAME_BYS);
        break;
    case ACTION_ON_CPU:
        s->query.time = (enum flame_time)((s->query.time + 1) % FLAME_TIMES);
        break;
    case ACTION_WINDOW:
        window_step(app);
        break;
    case ACTION_ZERO:
        flame_zero(app);
        break;
    case ACTION_PAUSE:
        app_set_paused(app, !app->data.paused);
        break;
    case ACTION_THREAD_PREV:
    case ACTION_THREAD_NEXT:
        if (flame_is_there(s))
            flame_step_thread(s, action == ACTION_THREAD_NEXT ? 1 : -1);
        break;
    case ACTION_SHOW_ALL:
        flame_show_all(s, app);
        break;
    case ACTION_FLAME_MODULE:
        flame_only_module(s, app);
        break;
    case ACTION_NATIVE:
        app_toggle_native(app, CONTEXT_FLAME);
        break;
    default:
        return false;
    }
    flame_rebuild(s, app);
    flame_select(s, s->selected);
    return true;
}

/* One step back; true: also when there is none, for it does nothing then. */
static void flame_back(struct flame_state *s, struct app *app) {
    if (s->search.active) {
        match_clear(&s->search);
        flame_forget_hits(s);
    } else if (s->zoom != FLAME_ROOT && flame_is_there(s))
        flame_zoom_to(s, FLAME_ROOT);
    else if (s->query.module) {
        s->query.module = 0;
        flame_rebuild(s, app);
    } else if (s->filter.active) {
        flame_set_filter(s, "");
        flame_rebuild(s, app);
    }
}

/* Actions that change how it is looked at; false when it is none of them. */
static bool flame_act_view(struct flame_state *s, struct app *app, enum action action) {
    switch ((int)action) {
    case ACTION_FLAME_ZOOM:
        if (flame_is_there(s))
            flame_zoom_to(s, s->selected);
        return true;
    case ACTION_FLAME_OUT:
        if (!flame_zoom_out(s))
            app_message(app, false, "all of it is shown");
        return true;
    case ACTION_FLAME_FLIP:
        s->flipped = !s->flipped;
        return true;
    case ACTION_DETAILS:
        s->details = !s->details;
        return true;
    case ACTION_THRESHOLD_UP:
        s->threshold += s->threshold < FLAME_N_THRESHOLDS - 1;
        return true;
    case ACTION_THRESHOLD_DOWN:
        s->threshold -= s->threshold > 0;
        return true;
    case ACTION_SEARCH_NEXT:
    case ACTION_SEARCH_PREV:
        flame_search_on(s, app, action == ACTION_SEARCH_NEXT ? 1 : -1);
        return true;
    default:
        return false;
    }
}

static bool flame_do(struct flame_state *s, struct app *app, enum action action) {
    switch ((int)action) {
    case ACTION_SHOW_FLAME:
        return true;
    case ACTION_QUIT:
        app->requests.quit = true;
        return true;
    case ACTION_BACK:
        flame_back(s, app);
        return true;
    default:
        return flame_act_query(s, app, action) || flame_act_view(s, app, action) || flame_move(s, action);
    }
}

static bool flame_act(void *state, struct app *app, enum action action) {
    bool done = flame_do(state, app, action);
    flame_follow_details(state, app);
    return done;
}

static bool flame_is_on(const void *state, const struct app *app, enum action action) {
    const struct flame_state *s = state;
    return (action == ACTION_FILTER && s->filter.active) || (action == ACTION_PAUSE && app->data.paused) ||
           (action == ACTION_BY_LINE && s->query.by == FLAME_BY_LINE) ||
           (action == ACTION_ON_CPU && s->query.time == FLAME_ON_CPU) ||
           (action == ACTION_FLAME_FLIP && s->flipped) || (action == ACTION_DETAILS && s->details) ||
           (action == ACTION_FLAME_MODULE && s->query.module) ||
           (action == ACTION_NATIVE && app_shows_native(app, CONTEXT_FLAME)) ||
           (action == ACTION_FLAME_ZOOM && s->zoom != FLAME_ROOT) ||
           (action == ACTION_DIFF && app->diff.on) ||
           (action == ACTION_WINDOW && window_which(app) != SAMPLE_STORE_ALL);
}

const struct screen_def screen_flame = {
    .name = "flame",
    .title = "Flame",
    .number = '3',
    .needs_samples = true,
    .is_kept = true,
    .state_size = sizeof(struct flame_state),
    .init = flame_init,
    .fini = flame_fini,
    .keys = CONTEXT_FLAME,
    .draw = flame_draw,
    .act = flame_act,
    .mouse = flame_mouse,
    .update = flame_update_screen,
    .typed = flame_typed,
    .pick = flame_pick,
    .rows = &flame_tagged,
    .choose = flame_choose,
    .show = flame_show,
    .typed_before = flame_typed_before,
    .is_on = flame_is_on,
    .status = flame_status,
};
