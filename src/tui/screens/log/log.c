/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log: what happened, newest last. Stays at the end while the last entry is selected; what does not fit into its row is written out
 * below.
 */
#include "tui/core/app.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tui/core/pick.h"
#include "tui/screens/log/log_rows.h"
#include "tui/view/list.h"

#define LOG_SCROLL 8
#define LOG_WHEEL 3
#define LOG_DETAIL_ROWS 5 /* at most, of the entry that is selected */

struct log_state {
    size_t *rows; /* entries shown, by their place in the log */
    int n;
    uint64_t serial; /* of the log they were made of */
    uint64_t number; /* of the entry selected, since the beginning */
    struct list list;
    bool leaves_end; /* another than the last one is selected: what comes does not move it */
    struct match filter, search;
    struct tags tags; /* by the entries' numbers */
    int scroll;
    struct rect area;
};

static const struct log_entry *log_selected(const struct log_state *s, const struct app *app) {
    return s->list.selected < s->n ? log_at(app->log, s->rows[s->list.selected]) : NULL;
}

static bool log_matches(const struct log_entry *e, const struct match *m) {
    char pid[24];
    (void)snprintf(pid, sizeof pid, "%lld", (long long)e->pid);
    return match_text(m, e->text) || match_text(m, log_level_name(e->level)) ||
           (e->pid && match_text(m, pid));
}

/* The rows anew; the selected entry stays, or the end. */
static void log_rebuild(struct log_state *s, const struct app *app) {
    size_t n = log_count(app->log);
    uint64_t kept_from = log_lost(app->log);
    free(s->rows);
    s->rows = calloc(n + 1, sizeof *s->rows);
    s->n = 0;
    s->serial = log_serial(app->log);
    int selected = -1;
    for (size_t i = 0; s->rows && i < n; i++) {
        const struct log_entry *e = log_at(app->log, i);
        if (s->filter.active && log_matches(e, &s->filter) == s->filter.negated)
            continue;
        if (!tags_shows(&s->tags, kept_from + i))
            continue;
        if (kept_from + i <= s->number)
            selected = s->n;
        s->rows[s->n++] = i;
    }
    list_fit(&s->list, s->n, s->list.page);
    list_select(&s->list, s->leaves_end && selected >= 0 ? selected : s->n - 1);
}

/* Remember what is selected, by its number since the beginning. */
static void log_settle(struct log_state *s, const struct app *app) {
    s->leaves_end = s->n > 0 && s->list.selected < s->n - 1;
    if (s->n > 0)
        s->number = log_lost(app->log) + s->rows[s->list.selected];
}

static bool log_pick(const void *state, const struct app *app, struct screen_pick *what, struct strbuf *one,
                     struct strbuf *whole) {
    const struct log_entry *e = log_selected(state, app);
    (void)what;
    (void)whole;
    if (e)
        pick_put_text(one, e->text);
    return e != NULL;
}

static void log_update(void *state, struct app *app) {
    struct log_state *s = state;
    if (!s->rows || s->serial != log_serial(app->log))
        log_rebuild(s, app);
}

static void log_init(void *state, struct app *app) { log_rebuild(state, app); }

static void log_fini(void *state) {
    struct log_state *s = state;
    free(s->rows);
    tags_fini(&s->tags);
}

/* ---- tagged rows ---- */

static struct tags *log_tags(void *state, struct app *app) {
    (void)app;
    return &((struct log_state *)state)->tags;
}

static int log_count_rows(const void *state, const struct app *app) {
    (void)app;
    return ((const struct log_state *)state)->n;
}

static int log_selected_row(const void *state, const struct app *app) {
    const struct log_state *s = state;
    (void)app;
    return s->n ? s->list.selected : -1;
}

static uint64_t log_key(const void *state, const struct app *app, int row) {
    return log_lost(app->log) + ((const struct log_state *)state)->rows[row];
}

static void log_put(const void *state, const struct app *app, int row, struct screen_pick *what,
                    struct strbuf *one, struct strbuf *whole) {
    const struct log_entry *e = log_at(app->log, ((const struct log_state *)state)->rows[row]);
    (void)what;
    (void)whole;
    pick_put_text(one, e->text);
}

static void log_renew(void *state, struct app *app) { log_rebuild(state, app); }

static const struct screen_rows log_tagged = {.tags = log_tags,
                                              .count = log_count_rows,
                                              .selected = log_selected_row,
                                              .key = log_key,
                                              .put = log_put,
                                              .renew = log_renew};

/* ---- drawing ---- */

/* The entry's text over as many rows as it needs, at most those of `area`. */
static void log_draw_detail(const struct log_entry *e, struct grid *g, struct rect area) {
    int width = area.cols - 2, skip = 0;
    for (int row = 0; row < area.rows; row++, skip += width)
        grid_text_skip(g, area, row, 1, width, skip, log_level_role(e->level), e->text);
}

/* Rows that the selected entry needs below the list; 0: it fits into its row. */
static int log_detail_rows(const struct log_entry *e, const struct grid *g, struct rect area) {
    int width = e ? grid_text_width(g, e->text) : 0;
    if (!e || width <= log_text_cols(e, area.cols) || area.rows < 8)
        return 0;
    int rows = (width + area.cols - 3) / (area.cols - 2);
    return rows > LOG_DETAIL_ROWS ? LOG_DETAIL_ROWS : rows;
}

static void log_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct log_state *s = state;
    log_update(s, app);
    int detail = log_detail_rows(log_selected(s, app), g, area);
    struct rect below = {area.row + area.rows - detail, area.col, detail, area.cols};
    area.rows -= detail ? detail + 1 : 0;
    s->area = area;
    list_fit(&s->list, s->n, area.rows);
    tags_take_rect(&s->tags, &area);
    if (s->n == 0)
        (void)grid_text(g, area, 0, 1, ROLE_MUTED,
                        log_count(app->log) ? "no entry matches: A shows all" : "nothing has happened yet");
    for (int i = 0; i < s->list.page && s->list.top + i < s->n; i++) {
        const struct log_entry *e = log_at(app->log, s->rows[s->list.top + i]);
        struct rect row = {area.row + i, area.col, 1, area.cols};
        log_draw_entry(e, s->scroll, g, row);
        tags_draw(&s->tags, log_key(s, app, s->list.top + i), g, area, i);
        if (s->list.top + i == s->list.selected)
            grid_restyle(g, row, ROLE_SELECTION);
        match_highlight(&s->search, g, row, 0);
    }
    if (detail) {
        struct rect title = {below.row - 1, below.col, 1, below.cols};
        grid_fill(g, title, ROLE_TABLE_HEAD);
        (void)grid_text(g, title, 0, 1, ROLE_TABLE_HEAD, "The selected entry");
        log_draw_detail(log_selected(s, app), g, below);
    }
}

/* ---- actions ---- */

static bool log_search(struct log_state *s, const struct app *app, int from, int step) {
    for (int i = 0; i < s->n; i++) {
        int at = ((from + i * step) % s->n + s->n) % s->n;
        if (log_matches(log_at(app->log, s->rows[at]), &s->search)) {
            list_select(&s->list, at);
            log_settle(s, app);
            return true;
        }
    }
    return false;
}

static bool log_typed(void *state, struct app *app, enum action what, const char *text,
                      enum screen_typed phase) {
    struct log_state *s = state;
    if (phase == SCREEN_CANCEL)
        text = "";
    if (phase == SCREEN_REDRAW)
        return log_search(s, app, s->list.selected - 1, -1);
    match_set(what == ACTION_FILTER ? &s->filter : &s->search, text, what == ACTION_FILTER);
    if (what == ACTION_SEARCH) /* what happened last is what is looked for first */
        return !s->search.active || log_search(s, app, s->list.selected, -1);
    log_rebuild(s, app);
    return s->n > 0;
}

static const char *log_typed_before(const void *state, enum action what) {
    const struct log_state *s = state;
    return what == ACTION_FILTER ? s->filter.text : s->search.text;
}

static bool log_act(void *state, struct app *app, enum action action) {
    struct log_state *s = state;
    int step = action == ACTION_SEARCH_NEXT ? -1 : 1;
    switch ((int)action) {
    case ACTION_SHOW_LOG:
        return true;
    case ACTION_SHOW_ALL:
        match_clear(&s->filter);
        s->tags.only = false;
        log_rebuild(s, app);
        return true;
    case ACTION_BACK:
        if (!s->search.active && !s->filter.active)
            return false;
        match_clear(s->search.active ? &s->search : &s->filter);
        log_rebuild(s, app);
        return true;
    case ACTION_LEFT:
        s->scroll = s->scroll > LOG_SCROLL ? s->scroll - LOG_SCROLL : 0;
        return true;
    case ACTION_RIGHT:
        s->scroll += s->scroll < LOG_TEXT ? LOG_SCROLL : 0;
        return true;
    case ACTION_SEARCH_NEXT:
    case ACTION_SEARCH_PREV:
        if (!s->search.active || !log_search(s, app, s->list.selected + step, step))
            app_message(app, false, "nothing was searched for, or nothing matches");
        return true;
    case ACTION_QUIT:
        app->requests.quit = true;
        return true;
    default:
        if (!list_move(&s->list, action))
            return false;
        log_settle(s, app);
        return true;
    }
}

static bool log_mouse(void *state, struct app *app, const struct input_event *e) {
    struct log_state *s = state;
    int row = e->row - s->area.row;
    if (e->button != INPUT_CLICK && e->button != INPUT_MENU)
        list_wheel(&s->list, e->button == INPUT_WHEEL_UP ? -LOG_WHEEL : LOG_WHEEL);
    else if (row >= 0 && row < s->area.rows && s->list.top + row < s->n)
        list_select(&s->list, s->list.top + row);
    else
        return false;
    log_settle(s, app);
    return true;
}

static bool log_is_on(const void *state, const struct app *app, enum action action) {
    (void)app;
    return action == ACTION_FILTER && ((const struct log_state *)state)->filter.active;
}

static void log_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct log_state *s = state;
    (void)strbuf_addf(out, "Log %d", s->n);
    if ((size_t)s->n != log_count(app->log))
        (void)strbuf_addf(out, " of %zu", log_count(app->log));
    if (log_lost(app->log))
        (void)strbuf_addf(out, "   %llu older ones are gone", (unsigned long long)log_lost(app->log));
    if (s->filter.active)
        (void)strbuf_addf(out, "   FILTER %s", s->filter.text);
    tags_put_text(&s->tags, out);
    (void)strbuf_adds(out, s->leaves_end ? "   End follows what comes" : "   follows what comes");
}

const struct screen_def screen_log = {
    .name = "log",
    .title = "Log",
    .is_tab = true,
    .opens = {{ACTION_SHOW_LOG,
               "log",
               ACTION_TABS,
               {"8"},
               NULL,
               0,
               "the Log screen: what happened, and what failed"}},
    .of_session = true,
    .is_kept = true,
    .state_size = sizeof(struct log_state),
    .init = log_init,
    .fini = log_fini,
    .keys = CONTEXT_LOG,
    .draw = log_draw,
    .act = log_act,
    .mouse = log_mouse,
    .update = log_update,
    .pick = log_pick,
    .rows = &log_tagged,
    .typed = log_typed,
    .typed_before = log_typed_before,
    .is_on = log_is_on,
    .status = log_status,
};
