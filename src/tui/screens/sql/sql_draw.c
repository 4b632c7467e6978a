/* SPDX-License-Identifier: Apache-2.0 */
/* sql_draw: the picture of the SQL screen: the query, what cannot be seen, the view, and completion
 * above them. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tui/core/app_query.h"
#include "tui/screens/sql/sql_state.h"
#include "tui/view/layout.h"

#define SQL_EDIT_MIN 3
#define SQL_SCHEMA_COLS 44
#define SQL_NOTE_ROWS 12 /* body rows from which on there is room for a note */

/* ---- the query ---- */

static void sql_draw_title(const struct sql_state *s, const struct app *app, struct grid *g,
                           struct rect line) {
    const struct app_query *q = &app->query;
    grid_fill(g, line, ROLE_TABLE_HEAD);
    int col = grid_text(g, line, 0, 0, s->in_sheet ? ROLE_TITLE : ROLE_TITLE_FOCUS, " Query ") + 1;
    if (q->running && (q->exporting || q->pending == APP_QUERY_NONE) && app->now_s - q->began_s >= 0.5)
        col += grid_printf(g, line, 0, col, ROLE_STATUS_ON, " %s %.0f s: ctrl-c ends it ",
                           q->exporting ? "writing" : "running", app->now_s - q->began_s) +
               1;
    if (q->watch_s > 0)
        col += grid_printf(g, line, 0, col, ROLE_STATUS_ON, " every %g s ", q->watch_s) + 1;
    if (q->answer.is_past)
        grid_text(g, line, 0, col, ROLE_TABLE_HEAD, "ended: now() is the last recorded moment");
}

static void sql_draw_editor(struct sql_state *s, struct app *app, struct grid *g, struct rect area) {
    int row, col;
    s->typing.area = area;
    editor_draw(&s->typing.editor, g, area, &row, &col);
    if (s->typing.editor.len == 0)
        grid_text_fit(g, area, 0, 0, area.cols, ROLE_MUTED, GRID_LEFT,
                      "SELECT ... ; and Enter runs it, Tab completes, F2 has queries, F4 the tables");
    if (!s->in_sheet && !app->prompt_for) {
        app->cursor_row = row;
        app->cursor_col = col;
    }
}

/* ---- the view ---- */

static void sql_result_facts(const struct sql_view *v, const struct app *app, char *buf, size_t cap) {
    const struct querier_answer *a = &app->query.answer;
    const struct result *r = v->sheet.rows;
    char lost[64] = "";
    if (a->lost)
        snprintf(lost, sizeof lost, "   %llu chunks were overwritten while they were read",
                 (unsigned long long)a->lost);
    snprintf(buf, cap, "%zu row%s in %.*f ms%s", r->n_rows, r->n_rows == 1 ? "" : "s",
             a->elapsed_s < 0.01 ? 1 : 0, a->elapsed_s * 1000, lost);
}

static void sql_draw_view_title(const struct sql_state *s, const struct sql_view *v, const struct app *app,
                                struct grid *g, struct rect line) {
    char facts[160] = "";
    grid_fill(g, line, ROLE_TABLE_HEAD);
    int col = grid_printf(g, line, 0, 0, s->in_sheet ? ROLE_TITLE_FOCUS : ROLE_TITLE, " %s ",
                          v ? v->title : "Result") +
              1;
    if (!v || v->kind != SQL_VIEW_RESULT)
        return;
    if (app->query.answer.truncated && app->query.answer.rows == v->sheet.rows)
        col +=
            grid_printf(g, line, 0, col, ROLE_STATUS_ON, " THE FIRST %zu ROWS ONLY ", v->sheet.rows->n_rows) +
            1;
    sql_result_facts(v, app, facts, sizeof facts);
    grid_text(g, line, 0, col, ROLE_TABLE_HEAD, facts);
}

static void sql_draw_nothing(const struct app *app, struct grid *g, struct rect area) {
    static const char *const lines[] = {
        "History: python.samples, memory_usage, system.process_history, ...",
        "Live tables: python.backtrace, python.threads, system.threads, ...",
        "",
        "ctrl-r finds an earlier query. In the result (Esc): letters are keys,",
        "F6 sorts, = describes, % counts a column, v shows a value a line.",
    };
    if (app->query.running)
        return;
    for (int i = 0; i < (int)(sizeof lines / sizeof lines[0]) && i + 1 < area.rows; i++)
        grid_text(g, area, i + 1, 2, ROLE_MUTED, lines[i]);
}

static void sql_draw_view(struct sql_state *s, struct app *app, struct grid *g, struct rect area) {
    struct sql_view *v = sql_top_view(s);
    struct rect line = {area.row, area.col, 1, area.cols};
    struct rect body = {area.row + 1, area.col, area.rows - 1, area.cols};
    s->view_area = body;
    sql_draw_view_title(s, v, app, g, line);
    if (!v)
        sql_draw_nothing(app, g, body);
    else if (sql_view_is_sheet(v)) {
        sheet_draw(&v->sheet, g, body, s->in_sheet);
        if (v->sheet.rows->n_rows == 0 && body.rows > 2)
            grid_text(g, body, 2, 2, ROLE_MUTED, "no rows");
    } else {
        pager_draw(&v->pager, g, body);
        if (v->kind == SQL_VIEW_ERROR)
            for (int i = 0; i < body.rows && i < v->pager.list.count; i++)
                grid_restyle(g, (struct rect){body.row + i, body.col, 1, body.cols}, ROLE_PROMPT_FAILED);
    }
}

/* ---- words to complete with ---- */

static const char *sql_kind_name(enum sql_complete_kind kind) {
    static const char *const names[] = {[SQL_COMPLETE_COLUMN] = "column",
                                        [SQL_COMPLETE_TABLE] = "table",
                                        [SQL_COMPLETE_FUNCTION] = "function",
                                        [SQL_COMPLETE_KEYWORD] = "keyword"};
    return names[kind];
}

static struct typing_choice sql_choice(const void *arg, int i) {
    const struct sql_complete_item *item = &((const struct sql_completion *)arg)->items[i];
    return (struct typing_choice){item->text, *item->help ? item->help : sql_kind_name(item->kind)};
}

/* ---- the tables, where there is room ---- */

/* Does the query contain the table's name? */
static bool sql_is_mentioned(const struct sql_state *s, const struct catalog_table *t) {
    return strcasestr(s->typing.editor.text, t->name) != NULL ||
           (*t->alias && strcasestr(s->typing.editor.text, t->alias));
}

static void sql_draw_schema(const struct sql_state *s, const struct catalog *c, struct grid *g,
                            struct rect area) {
    int row = 1;
    struct rect line = {area.row, area.col, 1, area.cols};
    grid_fill(g, line, ROLE_TABLE_HEAD);
    grid_text(g, line, 0, 0, ROLE_TITLE, " Tables ");
    for (size_t i = 0; i < c->n_tables && row < area.rows; i++) {
        const struct catalog_table *t = &c->tables[i];
        bool named = sql_is_mentioned(s, t);
        grid_text_fit(g, area, row, 1, 26, named ? ROLE_VALUE : ROLE_TEXT, GRID_LEFT, t->name);
        if (t->cost != RING_COST_NOW)
            grid_printf(g, area, row, 28, ROLE_MUTED, "%llu row%s", (unsigned long long)t->rows,
                        t->rows == 1 ? "" : "s");
        else
            grid_text(g, area, row, 28, ROLE_MUTED, "now");
        row++;
        for (size_t k = 3; named && k < t->n_columns && row < area.rows; k++, row++) {
            grid_text_fit(g, area, row, 3, 17, ROLE_LABEL, GRID_LEFT, t->columns[k].name);
            grid_text_fit(g, area, row, 21, area.cols - 21, ROLE_MUTED, GRID_LEFT, t->columns[k].help);
        }
    }
}

/* ---- all of it ---- */

/* One line, or two broken at a blank. Returns the lines used. */
static int sql_draw_note(const char *note, struct grid *g, struct rect area) {
    char first[512];
    snprintf(first, sizeof first, "%s", note);
    if (text_width(first) <= area.cols) {
        grid_text(g, area, 0, 0, ROLE_CONN_WAIT, first);
        return 1;
    }
    size_t cut = text_fit(first, area.cols);
    while (cut > 0 && first[cut] != ' ')
        cut--;
    if (cut == 0)
        cut = text_fit(first, area.cols);
    grid_text_fit(g, area, 1, 0, area.cols, ROLE_CONN_WAIT, GRID_LEFT, note + cut + (note[cut] == ' '));
    first[cut] = '\0';
    grid_text(g, area, 0, 0, ROLE_CONN_WAIT, first);
    return 2;
}

static int sql_editor_rows(const struct sql_state *s, int rows) {
    int most = s->in_sheet ? rows / 4 : rows / 3, want = editor_lines(&s->typing.editor) + 1;
    if (want < SQL_EDIT_MIN)
        want = SQL_EDIT_MIN;
    return most < 1 ? 1 : want > most ? most : want;
}

void sql_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct sql_state *s = state;
    struct rect whole = area, part = area;
    const struct catalog *c = app_catalog(app);
    if (s->in_sheet && s->zoomed && s->n_views) {
        s->typing.area.rows = 0;
        sql_draw_view(s, app, g, area);
        return;
    }
    if (area.cols >= LAYOUT_WIDE_COLS && c) {
        struct rect schema = {area.row, area.col + area.cols - SQL_SCHEMA_COLS, area.rows, SQL_SCHEMA_COLS};
        area.cols -= SQL_SCHEMA_COLS + 1;
        for (int i = 0; i < area.rows; i++)
            grid_text(g, whole, i, area.cols, ROLE_BORDER, glyph(g, GLYPH_VLINE));
        sql_draw_schema(s, c, g, schema);
    }
    bool has_note = app->query.note[0] && area.rows >= SQL_NOTE_ROWS;
    int rows = sql_editor_rows(s, area.rows), y = area.row;
    part = (struct rect){y, area.col, 1, area.cols};
    sql_draw_title(s, app, g, part);
    y++;
    if (has_note) {
        y += sql_draw_note(app->query.note, g, (struct rect){y, area.col, 2, area.cols});
    }
    sql_draw_editor(s, app, g, (struct rect){y, area.col, rows, area.cols});
    y += rows;
    sql_draw_view(s, app, g, (struct rect){y, area.col, area.row + area.rows - y, area.cols});
    if (s->typing.completing && !s->in_sheet)
        typing_draw_choices(&s->typing, g, area, s->completion.from, sql_choice, &s->completion);
}

static void sql_sheet_status(const struct sheet *sheet, struct strbuf *out) {
    const struct result *r = sheet->rows;
    char name[128];
    text_sanitize(name, sizeof name, r->columns[sheet->column].name);
    if (r->n_rows)
        strbuf_addf(out, "Row %d of %zu   ", sheet->list.selected + 1, sheet_rows(sheet));
    strbuf_addf(out, "%s, column %d of %zu", name, sheet->column + 1, r->n_columns);
    if (sheet_hidden(sheet))
        strbuf_addf(out, " (%d hidden, + shows them)", sheet_hidden(sheet));
    tags_put_text(&sheet->tags, out);
    if (sheet->sort_column >= 0)
        strbuf_addf(out, "   sorted by %.80s", r->columns[sheet->sort_column].name);
    if (sheet->search.active)
        strbuf_addf(out, "   /%s", sheet->search.text);
}

void sql_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct sql_state *s = state;
    const struct sql_view *v = s->n_views ? &s->views[s->n_views - 1] : NULL;
    if (s->in_sheet) {
        if (sql_view_is_sheet(v))
            sql_sheet_status(&v->sheet, out);
        else
            strbuf_adds(out, "o goes to the query, Esc goes back");
        return;
    }
    if (s->typing.completing) {
        const struct sql_complete_item *item = &s->completion.items[s->typing.choices.selected];
        strbuf_addf(out, "%d of %zu   %s   %s", s->typing.choices.selected + 1, s->completion.n,
                    sql_kind_name(item->kind), item->help);
        return;
    }
    int lines = editor_lines(&s->typing.editor);
    if (lines > 1)
        strbuf_addf(out, "%d lines   ", lines);
    if (s->typing.history_at >= 0)
        strbuf_addf(out, "query %ld of %zu that were run   ", s->typing.history_at + 1, app->query.history.n);
    if (sql_view_is_sheet(v) && sheet_is_too_wide(&v->sheet, s->view_area.cols))
        strbuf_adds(out, "there are more columns: Esc, then Right, or x for a value a line");
}
