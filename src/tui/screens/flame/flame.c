/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame: the tree of calls as an icicle: each frame a cell as wide as its share of the time, below
 * its caller.
 *
 * Selection, zoom and scroll belong to frames, not to places: they stay while samples arrive. The
 * tree is updated as often as snapshots are requested (at first, with few samples, more often);
 * while the view is frozen it is too.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tui/core/app_history.h"
#include "tui/view/pick.h"
#include "tui/screens/flame/flame_state.h"
#include "tui/core/app.h"
#include "tui/core/app_diff.h"
#include "tui/core/app_screen.h"
#include "tui/core/screen.h"
#include "tui/core/window.h"
#include "tui/keys/input.h"
#include "tui/view/diff_cell.h"

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

/* Where a node of the last tree is in the current one, perhaps with another granularity. */
static uint32_t flame_find_node_in(const struct flame_state *s, uint32_t node, uint32_t stack) {
    uint32_t found = node <= FLAME_FRAMELESS ? node : sample_flame_find_stack(s->samples, stack);
    bool is_outside = found == FLAME_FRAMELESS && s->query.module; /* of the module that is shown */
    return found == FLAME_NO_NODE || is_outside ? FLAME_ROOT : found;
}

/* Forget everything, or it is another target. */
static void flame_drop(struct flame_state *s) {
    flame_compare_end(s);
    if (s->flame)
        sample_flame_clear(s->samples);
    s->selected = s->zoom = s->trail = FLAME_ROOT;
    s->top = 0;
    s->ids = 0;
    s->query.module = 0; /* the number of a frame that is gone */
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
    if (sample_flame_update(s->samples, tally, &query) != 0) {
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
    s->query.hides_native = !app_screen_shows_native(app, CONTEXT_FLAME);
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
    /* Samples of a recording arrive once, and together. */
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
    s->samples = sample_flame_new();
    s->flame = s->samples ? sample_flame_tree(s->samples) : NULL;
    s->tags = &app->functions;
    s->query.time = FLAME_ON_CPU; /* waiting threads would take most of the width */
    if (app->config.filter)
        flame_set_filter(s, app->config.filter);
    flame_rebuild(s, app);
}

static void flame_fini(void *state) {
    struct flame_state *s = state;
    flame_compare_end(s);
    sample_flame_free(s->samples);
    flame_layout_fini(&s->layout);
    flame_calls_fini(&s->calls);
    free(s->hits.known);
    free(s->shown.frames);
}

/* ---- the cells alone ---- */

void flame_picture_init(struct flame_state *s) {
    static const struct tags none;
    s->samples = sample_flame_new();
    s->flame = s->samples ? sample_flame_tree(s->samples) : NULL;
    s->tags = &none;
}

void flame_picture_fini(struct flame_state *s) { flame_fini(s); }

void flame_picture_follow(struct flame_state *s, struct app *app, enum flame_time time) {
    bool is_other = s->query.time != time;
    s->query.time = time;
    if (is_other)
        flame_rebuild(s, app);
    else
        flame_follow_tally(s, app);
}

const struct model_frame *flame_picture_at(const struct flame_state *s, int row, int col) {
    const struct flame_cell *c =
        flame_is_there(s) ? flame_layout_at(&s->layout, row - s->area.row, col - s->area.col) : NULL;
    return c && c->node != FLAME_NO_NODE ? flame_frame(s->flame, c->node) : NULL;
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
        app_message(app, false, "no search yet: / searches");
    else if (!flame_search_step(s, step))
        app_refuse(app, "nothing %smatches '%s'", s->zoom == FLAME_ROOT ? "" : "in the zoomed part ",
                   s->search.text);
}

/* ---- actions ---- */

/* Samples of the next thread, the previous one, or all, in a circle. */
static void flame_step_thread(struct flame_state *s, int step) {
    size_t n_all;
    const struct flame_thread *threads = sample_flame_threads(s->samples, &n_all);
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

/* Show the module of the selected frame, or all modules. */
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

/* Actions that change which samples are added up; false: another one. */
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
        app_screen_toggle_native(app, CONTEXT_FLAME);
        break;
    default:
        return false;
    }
    flame_rebuild(s, app);
    flame_select(s, s->selected);
    return true;
}

/* Undo one level. Always consumes the key. */
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

/* Actions that change the display; false: another one. */
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
           (action == ACTION_NATIVE && app_screen_shows_native(app, CONTEXT_FLAME)) ||
           (action == ACTION_FLAME_ZOOM && s->zoom != FLAME_ROOT) ||
           (action == ACTION_DIFF && app->diff.on) ||
           (action == ACTION_WINDOW && window_which(app) != SAMPLE_STORE_ALL);
}

const struct screen_def screen_flame = {
    .name = "flame",
    .title = "Flame",
    .is_tab = true,
    .opens = {SCREEN_TAB_KEY(FLAME, "flame", "3", "the Flame screen: calls as wide as their share of time")},
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

/* ---- compare ---- */

/*
 * The Flame screen while comparing: cells have the width of the newer time and are coloured by the
 * difference of their shares.
 */

#define COMPARE_GONE 8 /* callees that are gone, named at most */

void flame_compare_end(struct flame_state *s) {
    flame_diff_fini(&s->diff);
    sample_flame_free(s->before);
    s->before = NULL;
    s->compared = false;
}

void flame_compare(struct flame_state *s, struct app *app) {
    struct app_diff_side side;
    if (!app->diff.on) {
        flame_compare_end(s);
        return;
    }
    s->compared = true;
    if (!s->before)
        s->before = sample_flame_new();
    if (!s->before || !app_diff_find(app, s->query.window, s->query.tid, &side)) {
        flame_diff_fini(&s->diff);
        return;
    }
    struct flame_query q = s->query;
    q.window = side.window;
    q.tid = side.tid;
    if (sample_flame_update(s->before, side.tally, &q) != 0 ||
        flame_diff_update(&s->diff, s->flame, sample_flame_tree(s->before)) != 0)
        flame_diff_fini(&s->diff);
}

double flame_delta(const struct flame_state *s, const struct flame_cell *c) {
    if (!s->diff.now || c->node == FLAME_NO_NODE)
        return NAN;
    return flame_diff_now(&s->diff, c->node) - flame_diff_before(&s->diff, c->node);
}

static void flame_compare_share(double pct, char *buf, size_t cap) {
    if (isnan(pct))
        snprintf(buf, cap, "?");
    else
        snprintf(buf, cap, "%.1f%%", pct);
}

/* Name of a node of the other tree. */
static void flame_gone_name(const struct flame_state *s, uint32_t node, char *buf, size_t cap) {
    const struct model_frame *f = flame_frame(sample_flame_tree(s->before), node);
    char raw[160];
    const char *text = !f ? "(no Python frame)" : s->query.by == FLAME_BY_MODULE ? f->file : f->func;
    if (f && s->query.by == FLAME_BY_LINE && f->line > 0)
        snprintf(raw, sizeof raw, "%s:%d", f->func ? f->func : "?", f->line);
    else
        snprintf(raw, sizeof raw, "%s", text ? text : "?");
    text_sanitize(buf, cap, raw);
    buf[text_fit(buf, 40)] = '\0';
}

static void flame_draw_gone(const struct flame_state *s, struct grid *g, struct rect area, int row,
                            int *col) {
    struct flame_gone gone[COMPARE_GONE];
    size_t n = flame_diff_gone(&s->diff, s->selected, gone, COMPARE_GONE), shown = 0;
    char name[160], text[220];
    for (; shown < n && shown < COMPARE_GONE; shown++) {
        flame_gone_name(s, gone[shown].node, name, sizeof name);
        snprintf(text, sizeof text, "%s %.1f%%", name, gone[shown].before_pct);
        int need = grid_text_width(g, text) + 1,
            label = shown ? 0 : grid_text_width(g, "no longer called:") + 1;
        if (*col + need + label + (shown + 1 < n ? 6 : 0) > area.cols)
            break;
        if (!shown)
            *col += grid_text(g, area, row, *col, ROLE_LABEL, "no longer called:") + 1;
        *col += grid_text(g, area, row, *col, ROLE_DIFF_LESS_2, text) + 1;
    }
    if (shown < n)
        *col +=
            grid_printf(g, area, row, *col, ROLE_LABEL, shown ? "+%zu" : "no longer called: %zu", n - shown);
}

void flame_draw_compared(const struct flame_state *s, const struct app *app, struct grid *g, struct rect area,
                         int row, int col) {
    char now[32], before[32], delta[32];
    (void)app;
    double now_pct = s->diff.now ? flame_diff_now(&s->diff, s->selected) : NAN,
           before_pct = s->diff.now ? flame_diff_before(&s->diff, s->selected) : NAN;
    flame_compare_share(now_pct, now, sizeof now);
    flame_compare_share(before_pct, before, sizeof before);
    diff_text(now_pct - before_pct, delta, sizeof delta);
    flame_fact(g, area, row, &col, "now", now);
    flame_fact(g, area, row, &col, "before", before);
    if (col + 12 <= area.cols) {
        col += grid_text(g, area, row, col, ROLE_LABEL, "delta") + 1;
        col += grid_text(g, area, row, col, diff_role(now_pct - before_pct), delta) + 2;
    }
    if (s->diff.now)
        flame_draw_gone(s, g, area, row, &col);
}

/* ---- move ---- */

/* The position in the tree of the Flame screen, and motions. Pure. */

#define FLAME_CALLERS_SHOWN 3 /* above the zoomed node, if there is no room for all */

static int64_t flame_amount_of(const struct flame_state *s, uint32_t node) {
    return flame_amount(s->flame, flame_node(s->flame, node)->total);
}

static void flame_view_of(const struct flame_state *s, struct flame_view *v) {
    *v = s->layout.view;
    v->zoom = s->zoom;
    v->permille = (int)(flame_threshold_pct(s) * 10 + 0.5);
    v->cols = s->area.cols > 0 ? s->area.cols : 1;
}

void flame_select(struct flame_state *s, uint32_t node) {
    s->selected = node;
    if (!flame_is_there(s) || !flame_is_above(s->flame, node, s->trail))
        s->trail = node;
    int depth = flame_is_there(s) ? (int)flame_node(s->flame, node)->depth : 0, rows = s->area.rows;
    if (depth < s->top)
        s->top = depth;
    else if (rows > 0 && depth >= s->top + rows)
        s->top = depth - rows + 1;
}

void flame_zoom_to(struct flame_state *s, uint32_t node) {
    int depth = (int)flame_node(s->flame, node)->depth;
    s->zoom = node;
    s->top = depth > FLAME_CALLERS_SHOWN ? depth - FLAME_CALLERS_SHOWN : 0;
    flame_find_hits(s);
    flame_select(s, s->selected);
}

bool flame_zoom_out(struct flame_state *s) {
    if (!flame_is_there(s) || s->zoom == FLAME_ROOT)
        return false;
    uint32_t to = flame_node(s->flame, s->zoom)->parent;
    while (to != FLAME_ROOT && flame_amount_of(s, to) == flame_amount_of(s, s->zoom))
        to = flame_node(s->flame, to)->parent;
    flame_zoom_to(s, to);
    return true;
}

/* The callee to go down to: the one that the selection came from, or that leads to the zoomed node,
 * else the widest. */
static uint32_t flame_callee(struct flame_state *s, uint32_t node) {
    uint32_t to = s->trail != node && flame_is_above(s->flame, node, s->trail) ? s->trail
                  : s->zoom != node && flame_is_above(s->flame, node, s->zoom) ? s->zoom
                                                                               : FLAME_NO_NODE;
    if (to != FLAME_NO_NODE) {
        while (flame_node(s->flame, to)->parent != node)
            to = flame_node(s->flame, to)->parent;
        return to;
    }
    int64_t most = 0;
    for (uint32_t c = flame_first_child(s->flame, node); c != FLAME_NO_NODE;
         c = flame_node(s->flame, c)->next)
        if (flame_amount_of(s, c) > most) {
            most = flame_amount_of(s, c);
            to = c;
        }
    return to;
}

/* Siblings in the order of their cells: the visible ones, then the small ones. The one before (step
 * -1) or after (1) a node; FLAME_NO_NODE: none. */
static uint32_t flame_sibling(struct flame_state *s, uint32_t node, int step) {
    struct flame_view view;
    uint32_t parent = flame_node(s->flame, node)->parent, before = FLAME_NO_NODE;
    bool is_next = false;
    flame_view_of(s, &view);
    if (parent == FLAME_NO_NODE || flame_is_above(s->flame, node, s->zoom))
        return FLAME_NO_NODE;
    for (int small = 0; small < 2; small++)
        for (uint32_t c = flame_first_child(s->flame, parent); c != FLAME_NO_NODE;
             c = flame_node(s->flame, c)->next) {
            bool is_small = flame_layout_is_small(s->flame, &view, c);
            if (is_small != (small == 1) || (c != node && flame_amount_of(s, c) <= 0))
                continue;
            if (is_next)
                return c;
            if (c == node && step < 0)
                return before;
            is_next = c == node;
            before = c;
        }
    return FLAME_NO_NODE;
}

/* The next frame in the same row, of another caller; FLAME_NO_NODE: none. */
static uint32_t flame_neighbour(const struct flame_state *s, int step) {
    const struct flame_cell *at = flame_layout_find(&s->layout, s->flame, s->selected), *best = NULL;
    for (size_t i = 0; at && i < s->layout.n; i++) {
        const struct flame_cell *c = &s->layout.cells[i];
        bool is_there = step > 0 ? c->col > at->col : c->col < at->col;
        if (c->row != at->row || c->node == FLAME_NO_NODE || !is_there)
            continue;
        if (!best || (step > 0 ? c->col < best->col : c->col > best->col))
            best = c;
    }
    return best ? best->node : FLAME_NO_NODE;
}

/* Up to `n` steps to callers (negative) or callees. */
static void flame_step_depth(struct flame_state *s, int n) {
    uint32_t at = s->selected;
    for (; n < 0 && flame_node(s->flame, at)->parent != FLAME_NO_NODE; n++)
        at = flame_node(s->flame, at)->parent;
    for (; n > 0; n--) {
        uint32_t to = flame_callee(s, at);
        if (to == FLAME_NO_NODE)
            break;
        at = to;
    }
    flame_select(s, at);
}

static void flame_step_side(struct flame_state *s, int step) {
    uint32_t to = flame_sibling(s, s->selected, step);
    if (to == FLAME_NO_NODE)
        to = flame_neighbour(s, step);
    if (to != FLAME_NO_NODE)
        flame_select(s, to);
}

bool flame_move(struct flame_state *s, enum action action) {
    int down = s->flipped ? -1 : 1, page = s->area.rows > 1 ? s->area.rows - 1 : 1, n = 0;
    switch ((int)action) {
    case ACTION_UP:
        n = -down;
        break;
    case ACTION_DOWN:
        n = down;
        break;
    case ACTION_HALF_UP:
    case ACTION_HALF_DOWN:
        n = (action == ACTION_HALF_UP ? -down : down) * (page / 2 + 1);
        break;
    case ACTION_PAGE_UP:
    case ACTION_PAGE_DOWN:
        n = (action == ACTION_PAGE_UP ? -down : down) * page;
        break;
    case ACTION_FIRST:
        n = -INT_MAX;
        break;
    case ACTION_LAST:
        n = INT_MAX;
        break;
    case ACTION_LEFT:
    case ACTION_RIGHT:
        break;
    default:
        return false;
    }
    if (flame_is_there(s) && n)
        flame_step_depth(s, n);
    else if (flame_is_there(s))
        flame_step_side(s, action == ACTION_LEFT ? -1 : 1);
    return true;
}

/* The widest of the callees that share a cell. */
static uint32_t flame_largest_small(struct flame_state *s, uint32_t parent) {
    uint32_t found = FLAME_NO_NODE;
    for (uint32_t c = flame_first_child(s->flame, parent); c != FLAME_NO_NODE;
         c = flame_node(s->flame, c)->next)
        if (flame_layout_is_small(s->flame, &s->layout.view, c) && flame_amount_of(s, c) > 0 &&
            (found == FLAME_NO_NODE || flame_amount_of(s, c) > flame_amount_of(s, found)))
            found = c;
    return found;
}

bool flame_mouse(void *state, struct app *app, const struct input_event *e) {
    struct flame_state *s = state;
    int row = e->row - s->area.row;
    if (!flame_is_there(s) || row < 0 || row >= s->area.rows)
        return false;
    if (e->button == INPUT_WHEEL_UP || e->button == INPUT_WHEEL_DOWN)
        return flame_move(s, e->button == INPUT_WHEEL_UP ? ACTION_UP : ACTION_DOWN);
    if (s->flipped)
        row = s->area.rows - 1 - row;
    const struct flame_cell *cell = flame_layout_at(&s->layout, row, e->col - s->area.col);
    uint32_t node = !cell                         ? FLAME_NO_NODE
                    : cell->node == FLAME_NO_NODE ? flame_largest_small(s, cell->parent)
                                                  : cell->node;
    if (node == FLAME_NO_NODE)
        return false;
    if (node == s->selected && e->button == INPUT_CLICK)
        flame_zoom_to(s, node);
    else
        flame_select(s, node);
    flame_follow_details(s, app);
    return true;
}

/* ---- pick ---- */

/* The selection in the flame graph, for other parts of the program; and showing theirs. */

#define FLAME_PICK_DEPTH 2048 /* frames of a stack; the innermost if there are more */

/* A node and its callers, innermost first, a line each. */
static void flame_put_stack(const struct flame_state *s, uint32_t node, struct strbuf *out) {
    for (int i = 0; node != FLAME_NO_NODE && node != FLAME_ROOT && i < FLAME_PICK_DEPTH; i++) {
        const struct model_frame *f = flame_frame(s->flame, node);
        if (f)
            pick_put_frame(out, f);
        strbuf_addc(out, '\n');
        node = flame_node(s->flame, node)->parent;
    }
}

bool flame_pick(const void *state, const struct app *app, struct screen_pick *what, struct strbuf *one,
                struct strbuf *whole) {
    const struct flame_state *s = state;
    const struct model_frame *f = flame_is_there(s) ? flame_frame(s->flame, s->selected) : NULL;
    (void)app;
    if (!f)
        return false;
    what->tid = s->query.tid;
    what->frame = f;
    pick_put_frame(one, f);
    flame_put_stack(s, s->selected, whole);
    return true;
}

void flame_choose(const void *state, struct screen_choice *out) {
    const struct flame_state *s = state;
    out->query = s->query;
    out->filter = s->filter.active ? s->filter.text : NULL;
    out->name_module = flame_module_name;
}

/* The widest node of a frame's function; FLAME_NO_NODE: none. */
static uint32_t flame_find_function(const struct flame_state *s, const struct model_frame *f) {
    uint32_t found = FLAME_NO_NODE;
    int64_t widest = 0;
    for (uint32_t i = FLAME_FRAMELESS + 1; flame_is_there(s) && i < flame_count(s->flame); i++) {
        const struct model_frame *own = flame_frame(s->flame, i);
        int64_t amount = flame_amount(s->flame, flame_node(s->flame, i)->total);
        if (own && amount > widest && own->kind == f->kind && text_compare(own->file, f->file) == 0 &&
            (s->query.by == FLAME_BY_MODULE || text_compare(own->func, f->func) == 0)) {
            found = i;
            widest = amount;
        }
    }
    return found;
}

bool flame_show(void *state, struct app *app, const struct screen_pick *what) {
    struct flame_state *s = state;
    s->query.tid = what->tid;
    flame_rebuild(s, app);
    uint32_t node = what->frame ? flame_find_function(s, what->frame) : s->selected;
    if (what->frame && node == FLAME_NO_NODE && s->query.time != FLAME_ALL_TIME) {
        s->query.time = FLAME_ALL_TIME; /* it may only wait */
        flame_rebuild(s, app);
        node = flame_find_function(s, what->frame);
    }
    if (!flame_is_there(s) || node == FLAME_NO_NODE)
        return false;
    if (!flame_is_above(s->flame, s->zoom, node))
        flame_zoom_to(s, FLAME_ROOT);
    flame_select(s, node);
    return true;
}

/* ---- search ---- */

/* The search in the Flame screen, and the share of time that matches. Pure. */

enum flame_hit { FLAME_HIT_UNKNOWN = 0, FLAME_HIT_NO, FLAME_HIT_YES };

bool flame_filter_matches(const void *arg, const struct model_frame *frame) {
    const struct match *m = arg;
    return match_text(m, frame->func) || match_text(m, frame->file);
}

/* By module, the function of a node is that of any of its frames: ignore it. */
static bool flame_matches(const struct flame_state *s, const struct model_frame *frame) {
    bool by_module = s->query.by == FLAME_BY_MODULE;
    return (!by_module && match_text(&s->search, frame->func)) || match_text(&s->search, frame->file) ||
           (frame->kind == MODEL_FRAME_NATIVE && match_text(&s->search, frame->module));
}

bool flame_is_hit(const struct flame_state *s, uint32_t node) {
    const struct model_frame *frame = flame_frame(s->flame, node);
    uint32_t at = flame_node(s->flame, node)->frame;
    if (!frame || !s->search.active)
        return false;
    if (at >= s->hits.cap)
        return flame_matches(s, frame);
    if (s->hits.known[at] == FLAME_HIT_UNKNOWN)
        s->hits.known[at] = flame_matches(s, frame) ? FLAME_HIT_YES : FLAME_HIT_NO;
    return s->hits.known[at] == FLAME_HIT_YES;
}

void flame_forget_hits(struct flame_state *s) {
    free(s->hits.known);
    memset(&s->hits, 0, sizeof s->hits);
}

/* Room for a result per frame; out of memory each is matched again. */
static void flame_grow_hits(struct flame_state *s) {
    size_t most = 0;
    for (uint32_t i = FLAME_FRAMELESS + 1; i < flame_count(s->flame); i++)
        if (flame_node(s->flame, i)->frame >= most)
            most = flame_node(s->flame, i)->frame + 1;
    if (most <= s->hits.cap)
        return;
    unsigned char *known = realloc(s->hits.known, 2 * most);
    if (!known)
        return;
    memset(known + s->hits.cap, FLAME_HIT_UNKNOWN, 2 * most - s->hits.cap);
    s->hits.known = known;
    s->hits.cap = 2 * most;
}

void flame_find_hits(struct flame_state *s) {
    s->hits.n = 0;
    s->hits.covered = (struct flame_weight){0, 0};
    if (!s->search.active || !flame_is_there(s))
        return;
    flame_grow_hits(s);
    uint32_t outer = FLAME_NO_NODE; /* the current match */
    for (uint32_t at = s->zoom; at != FLAME_NO_NODE;) {
        const struct flame_node *n = flame_node(s->flame, at);
        bool is_empty = flame_amount(s->flame, n->total) <= 0;
        if (!is_empty && flame_is_hit(s, at)) {
            s->hits.n++;
            if (outer == FLAME_NO_NODE || !flame_is_above(s->flame, outer, at)) {
                outer = at;
                s->hits.covered.ns += n->total.ns;
                s->hits.covered.samples += n->total.samples;
            }
        }
        at = flame_walk(s->flame, s->zoom, at, is_empty);
    }
}

bool flame_search_step(struct flame_state *s, int step) {
    uint32_t first = FLAME_NO_NODE, before = FLAME_NO_NODE, after = FLAME_NO_NODE, last = FLAME_NO_NODE;
    bool is_passed = false;
    if (!flame_is_there(s))
        return false;
    for (uint32_t at = s->zoom; at != FLAME_NO_NODE;) {
        bool is_empty = flame_amount(s->flame, flame_node(s->flame, at)->total) <= 0;
        bool is_hit = !is_empty && flame_is_hit(s, at);
        if (at == s->selected && is_hit && step == 0)
            return true;
        if (is_hit && first == FLAME_NO_NODE)
            first = at;
        if (is_hit && at != s->selected && !is_passed)
            before = at;
        if (is_hit && is_passed && after == FLAME_NO_NODE)
            after = at;
        is_passed = is_passed || at == s->selected;
        last = is_hit ? at : last;
        at = flame_walk(s->flame, s->zoom, at, is_empty);
    }
    if (first == FLAME_NO_NODE)
        return false;
    uint32_t to = step < 0 ? (is_passed && before != FLAME_NO_NODE ? before : last)
                           : (after != FLAME_NO_NODE ? after : first);
    flame_select(s, to);
    return true;
}

/* ---- tags ---- */

/*
 * Tagged frames in the Flame screen, wherever they are in the tree: a function, or a line or a
 * module if cells are those; shared with Top. Shown alone, it is the stacks that contain one of
 * them, as in exports. Pure.
 */

bool flame_is_tagged(const struct flame_state *s, uint32_t node) {
    const struct model_frame *f = s->tags->n ? flame_frame(s->flame, node) : NULL;
    return f && tags_has(s->tags, pick_frame_key(f, s->query.by));
}

static bool flame_keeps(const void *arg, const struct model_frame *f) {
    const struct flame_state *s = arg;
    return tags_has(s->tags, pick_frame_key(f, s->query.by));
}

bool flame_has_other_tags(const struct flame_state *s) {
    return s->tagged_only != s->tags->only || (s->tagged_only && s->tag_changes != s->tags->changes);
}

void flame_choose_tagged(struct flame_state *s) {
    s->tagged_only = s->tags->only;
    s->tag_changes = s->tags->changes;
    s->query.kept = (struct flame_filter){0};
    if (s->tagged_only) /* the filter depends on both */
        s->query.kept = (struct flame_filter){
            .matches = flame_keeps, .arg = s, .version = s->tag_changes * FLAME_BYS + s->query.by};
}

/* ---- rows: frames that have time ---- */

static int flame_compare_frames(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void flame_find_shown(struct flame_state *s) {
    size_t n = flame_is_there(s) ? flame_count(s->flame) : 0, kept = 0;
    free(s->shown.frames);
    s->shown.frames = malloc((n + 1) * sizeof *s->shown.frames);
    s->shown.n = 0;
    if (!s->shown.frames)
        return;
    for (uint32_t i = FLAME_FRAMELESS + 1; i < n; i++)
        if (flame_amount(s->flame, flame_node(s->flame, i)->total) > 0)
            s->shown.frames[s->shown.n++] = flame_node(s->flame, i)->frame;
    if (s->shown.n)
        qsort(s->shown.frames, s->shown.n, sizeof *s->shown.frames, flame_compare_frames);
    for (size_t i = 0; i < s->shown.n; i++)
        if (i == 0 || s->shown.frames[i] != s->shown.frames[i - 1])
            s->shown.frames[kept++] = s->shown.frames[i];
    s->shown.n = kept;
}

static struct tags *flame_tags(void *state, struct app *app) {
    flame_find_shown(state);
    return &app->functions;
}

static int flame_count_shown(const void *state, const struct app *app) {
    (void)app;
    return (int)((const struct flame_state *)state)->shown.n;
}

static int flame_selected_shown(const void *state, const struct app *app) {
    const struct flame_state *s = state;
    (void)app;
    if (!s->shown.n || !flame_is_there(s) || !flame_frame(s->flame, s->selected))
        return -1;
    const uint32_t *at = bsearch(&flame_node(s->flame, s->selected)->frame, s->shown.frames, s->shown.n,
                                 sizeof *s->shown.frames, flame_compare_frames);
    return at ? (int)(at - s->shown.frames) : -1;
}

static const struct model_frame *flame_shown_frame(const struct flame_state *s, int row) {
    return sample_flame_frame(s->samples, s->shown.frames[row]);
}

static uint64_t flame_key(const void *state, const struct app *app, int row) {
    const struct flame_state *s = state;
    (void)app;
    return pick_frame_key(flame_shown_frame(s, row), s->query.by);
}

/* Has a node a caller that is equal? */
static bool flame_recurs(const struct flame_state *s, uint32_t node) {
    uint32_t frame = flame_node(s->flame, node)->frame;
    for (uint32_t at = flame_node(s->flame, node)->parent; at != FLAME_ROOT;
         at = flame_node(s->flame, at)->parent)
        if (flame_node(s->flame, at)->frame == frame)
            return true;
    return false;
}

/* The total of all its cells, with what is below one of them counted once. */
static void flame_weigh_frame(const struct flame_state *s, uint32_t frame, struct flame_weight *own,
                              struct flame_weight *total) {
    *own = *total = (struct flame_weight){0, 0};
    for (uint32_t i = FLAME_FRAMELESS + 1; i < flame_count(s->flame); i++) {
        const struct flame_node *n = flame_node(s->flame, i);
        if (n->frame != frame)
            continue;
        own->ns += n->self.ns;
        own->samples += n->self.samples;
        if (flame_recurs(s, i))
            continue;
        total->ns += n->total.ns;
        total->samples += n->total.samples;
    }
}

static void flame_put(const void *state, const struct app *app, int row, struct screen_pick *what,
                      struct strbuf *one, struct strbuf *whole) {
    const struct flame_state *s = state;
    const struct model_frame *f = flame_shown_frame(s, row);
    struct flame_weight own, total, all = flame_node(s->flame, FLAME_ROOT)->total;
    struct strbuf name;
    (void)app;
    *what = (struct screen_pick){.frame = f, .by = s->query.by};
    strbuf_init(&name, PICK_MAX);
    if (s->query.by == FLAME_BY_MODULE)
        pick_put_text(&name, sample_flame_module(f) ? sample_flame_module(f) : "?");
    else
        pick_put_frame(&name, f);
    flame_weigh_frame(s, s->shown.frames[row], &own, &total);
    strbuf_adds(one, strbuf_str(&name));
    strbuf_addf(whole, "own %.1f%% total %.1f%% %s", flame_share(s, own, all), flame_share(s, total, all),
                strbuf_str(&name));
    strbuf_fini(&name);
}

static void flame_renew(void *state, struct app *app) { flame_rebuild(state, app); }

const struct screen_rows flame_tagged = {.tags = flame_tags,
                                         .count = flame_count_shown,
                                         .selected = flame_selected_shown,
                                         .key = flame_key,
                                         .put = flame_put,
                                         .stays = true,
                                         .renew = flame_renew};
