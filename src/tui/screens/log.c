/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log: events, newest last. Stays at the end while the last entry is selected; the full text of the
 * selected entry is below the list.
 */
#include "tui/screens/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tui/core/app.h"
#include "tui/core/screen.h"
#include "tui/view/pick.h"
#include "tui/view/view.h"

#define LOG_DETAIL_ROWS 5 /* at most, for the selected entry */
#define LOG_TEXT_AT 12    /* columns: after the time and the mark of the level */

/* An entry that is shown, and its number since the beginning. */
struct log_row {
    const struct log_entry *entry;
    uint64_t number;
};

struct log_state {
    struct log_row *rows;
    int n;
    uint64_t serial; /* of the log that they were made from */
    struct view view;
    bool leaves_end; /* another than the last one is selected: new entries do not move it */
};

/* ---- an entry ---- */

enum theme_role log_level_role(enum log_level level) {
    return level == LOG_LEVEL_BAD ? ROLE_CONN_LOST : level == LOG_LEVEL_WARN ? ROLE_CONN_WAIT : ROLE_TEXT;
}

/* How often it was repeated, and its target: before the text. Returns its bytes. */
static int log_put_head(const struct log_entry *e, char *buf, size_t cap) {
    int n = 0;
    buf[0] = '\0';
    if (e->pid)
        n = snprintf(buf, cap, "%lld: ", (long long)e->pid);
    if (e->times > 1)
        n += snprintf(buf + n, cap - (size_t)n, "%u times: ", e->times);
    return n;
}

void log_draw_entry(const struct log_entry *e, int scroll, struct grid *g, struct rect row) {
    static const char *const marks[] = {" ", "!", "E"};
    char when[16] = "?", head[64];
    time_t t = (time_t)e->last_s;
    struct tm tm;
    if (localtime_r(&t, &tm))
        strftime(when, sizeof when, "%H:%M:%S", &tm);
    grid_text(g, row, 0, 1, ROLE_MUTED, when);
    grid_text(g, row, 0, 10, log_level_role(e->level), marks[e->level]);
    int at = LOG_TEXT_AT + log_put_head(e, head, sizeof head);
    grid_text(g, row, 0, LOG_TEXT_AT, ROLE_LABEL, head);
    if (at < row.cols)
        grid_text_scroll(g, row, 0, at, row.cols - at, scroll, log_level_role(e->level), GRID_LEFT, e->text);
}

/* ---- rows ---- */

static int log_count_rows(const void *state) { return ((const struct log_state *)state)->n; }

static const void *log_row(const void *state, int at) { return &((const struct log_state *)state)->rows[at]; }

static uint64_t log_key(const void *row) { return ((const struct log_row *)row)->number; }

static void log_draw_row(const void *state, const void *row, int scroll, struct grid *g, struct rect area) {
    (void)state;
    log_draw_entry(((const struct log_row *)row)->entry, scroll, g, area);
}

static bool log_matches(const void *row, const struct match *m) {
    const struct log_entry *e = ((const struct log_row *)row)->entry;
    char pid[24];
    snprintf(pid, sizeof pid, "%lld", (long long)e->pid);
    return match_text(m, e->text) || match_text(m, log_level_name(e->level)) ||
           (e->pid && match_text(m, pid));
}

static void log_put(const void *state, const void *row, struct screen_pick *what, struct strbuf *one,
                    struct strbuf *whole) {
    (void)state;
    (void)what;
    (void)whole;
    pick_put_text(one, ((const struct log_row *)row)->entry->text);
}

/* Make the rows again; the selection stays on its entry, or at the end. */
static void log_rebuild(void *state, struct app *app) {
    struct log_state *s = state;
    size_t n = log_count(app->log);
    free(s->rows);
    s->rows = calloc(n + 1, sizeof *s->rows);
    s->n = 0;
    s->serial = log_serial(app->log);
    int selected = -1;
    for (size_t i = 0; s->rows && i < n; i++) {
        struct log_row row = {log_at(app->log, i), log_lost(app->log) + i};
        if (!view_shows(&s->view, &row))
            continue;
        if (row.number <= s->view.key)
            selected = s->n;
        s->rows[s->n++] = row;
    }
    list_fit(&s->view.list, s->n, s->view.list.page);
    list_select(&s->view.list, s->leaves_end && selected >= 0 ? selected : s->n - 1);
}

static void log_selected(void *state, struct app *app) {
    struct log_state *s = state;
    (void)app;
    s->leaves_end = s->n > 0 && s->view.list.selected < s->n - 1;
}

static const struct view_def log_rows = {.count = log_count_rows,
                                         .row = log_row,
                                         .key = log_key,
                                         .draw_row = log_draw_row,
                                         .matches = log_matches,
                                         .put = log_put,
                                         .rebuild = log_rebuild,
                                         .selected = log_selected,
                                         .newest_last = true};

static struct view *log_view(void *state) { return &((struct log_state *)state)->view; }

static void log_update(void *state, struct app *app) {
    struct log_state *s = state;
    if (!s->rows || s->serial != log_serial(app->log))
        log_rebuild(s, app);
}

static void log_init(void *state, struct app *app) {
    struct log_state *s = state;
    view_init(&s->view, &log_rows, s, &s->view.own_tags);
    log_rebuild(s, app);
}

static void log_fini(void *state) {
    struct log_state *s = state;
    free(s->rows);
    view_fini(&s->view);
}

/* ---- drawing ---- */

/* The entry's text over as many rows as it needs, at most those of `area`. */
static void log_draw_detail(const struct log_entry *e, struct grid *g, struct rect area) {
    int width = area.cols - 2, skip = 0;
    for (int row = 0; row < area.rows; row++, skip += width)
        grid_text_skip(g, area, row, 1, width, skip, log_level_role(e->level), e->text);
}

/* Rows that the selected entry needs below the list; 0: it fits into its row. */
static int log_detail_rows(const struct log_entry *e, const struct grid *g, struct rect area) {
    char head[64];
    int width = grid_text_width(g, e->text);
    if (width <= area.cols - LOG_TEXT_AT - log_put_head(e, head, sizeof head) || area.rows < 8)
        return 0;
    int rows = (width + area.cols - 3) / (area.cols - 2);
    return rows > LOG_DETAIL_ROWS ? LOG_DETAIL_ROWS : rows;
}

static void log_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct log_state *s = state;
    log_update(s, app);
    const struct log_row *selected = view_row(&s->view);
    int detail = selected ? log_detail_rows(selected->entry, g, area) : 0;
    struct rect below = {area.row + area.rows - detail, area.col, detail, area.cols};
    area.rows -= detail ? detail + 1 : 0;
    view_draw(&s->view, g, area,
              log_count(app->log) ? "no entry matches: A shows all" : "nothing has happened yet");
    if (detail) {
        struct rect title = {below.row - 1, below.col, 1, below.cols};
        grid_fill(g, title, ROLE_TABLE_HEAD);
        grid_text(g, title, 0, 1, ROLE_TABLE_HEAD, "The selected entry");
        log_draw_detail(selected->entry, g, below);
    }
}

static void log_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct log_state *s = state;
    strbuf_addf(out, "Log %d", s->n);
    if ((size_t)s->n != log_count(app->log))
        strbuf_addf(out, " of %zu", log_count(app->log));
    if (log_lost(app->log))
        strbuf_addf(out, "   %llu older ones are gone", (unsigned long long)log_lost(app->log));
    view_put_filter(&s->view, out);
    strbuf_adds(out, s->leaves_end ? "   End follows what comes" : "   follows what comes");
}

/* The key of the prompt, pressed in it, goes on to an older entry. */
static bool log_typed(void *state, struct app *app, enum action what, const char *text,
                      enum screen_typed phase) {
    struct view *v = &((struct log_state *)state)->view;
    if (phase == SCREEN_REDRAW)
        return view_search(v, app, v->list.selected - 1, -1);
    return view_typed(v, app, what, phase == SCREEN_CANCEL ? "" : text);
}

const struct screen_def screen_log = {
    .name = "log",
    .title = "Log",
    .is_tab = true,
    .opens = {SCREEN_TAB_KEY(LOG, "log", "L", "the Log screen: what happened, and what failed")},
    .of_session = true,
    .is_kept = true,
    .state_size = sizeof(struct log_state),
    .init = log_init,
    .fini = log_fini,
    .keys = CONTEXT_LOG,
    .view = log_view,
    .draw = log_draw,
    .update = log_update,
    .typed = log_typed,
    .status = log_status,
};
