/* SPDX-License-Identifier: Apache-2.0 */
/* sql_views: the stack of views below the editor. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "client/sql/result_stats.h"
#include "client/sql/saved.h"
#include "tui/core/app.h"
#include "tui/core/app_query.h"
#include "tui/screens/sql/sql_state.h"

struct sql_view *sql_top_view(struct sql_state *s) {
    return s->n_views ? &s->views[s->n_views - 1] : NULL;
}

bool sql_view_is_sheet(const struct sql_view *v) {
    return v && v->sheet.rows && v->sheet.rows->n_columns > 0;
}

static void sql_close_view(struct sql_view *v) {
    sheet_fini(&v->sheet);
    pager_fini(&v->pager);
}

void sql_pop_view(struct sql_state *s) {
    if (s->n_views == 0)
        return;
    struct sql_view *v = &s->views[--s->n_views];
    s->in_sheet = !v->from_editor;
    sql_close_view(v);
}

void sql_drop_views(struct sql_state *s) {
    while (s->n_views > 0)
        sql_close_view(&s->views[--s->n_views]);
}

/* A view above the others; if there are too many, in place of the topmost. NULL, and `rows` is
 * released. */
static struct sql_view *sql_push_view(struct sql_state *s, enum sql_view_kind kind, struct result *rows,
                                      const char *title) {
    struct sql_view v = {.kind = kind, .from_editor = !s->in_sheet};
    if (rows && sheet_init(&v.sheet, rows) != 0)
        return NULL;
    char clean[sizeof v.title];
    text_sanitize(clean, sizeof clean, title);
    snprintf(v.title, sizeof v.title, "%s", clean);
    if (s->n_views == SQL_MAX_VIEWS)
        sql_close_view(&s->views[--s->n_views]);
    s->views[s->n_views++] = v;
    return &s->views[s->n_views - 1];
}

static void sql_push_text(struct sql_state *s, enum sql_view_kind kind, const char *text, size_t len,
                          const char *title) {
    struct sql_view *v = sql_push_view(s, kind, NULL, title);
    if (v)
        pager_init(&v->pager, text, len);
}

/* ---- answers ---- */

static bool sql_same_columns(const struct result *a, const struct result *b) {
    if (!a || a->n_columns != b->n_columns)
        return false;
    for (size_t i = 0; i < a->n_columns; i++)
        if (strcmp(a->columns[i].name, b->columns[i].name) != 0)
            return false;
    return true;
}

/* A new result replaces one with the same columns: widths, order and place stay. */
static void sql_renew(struct sheet *sheet, struct result *rows) {
    struct sheet fresh;
    if (sheet_init(&fresh, rows) != 0)
        return;
    for (size_t i = 0; i < rows->n_columns; i++) {
        bool numeric = fresh.columns[i].numeric;
        fresh.columns[i] = sheet->columns[i];
        fresh.columns[i].numeric = numeric;
        fresh.columns[i].bar = false;
    }
    for (size_t i = 0; i < rows->n_columns; i++) {
        fresh.column = (int)i;
        if (sheet->columns[i].bar)
            sheet_act(&fresh, ACTION_SHEET_BAR);
    }
    if (sheet->sort_column >= 0) {
        fresh.column = sheet->sort_column;
        sheet_act(&fresh, sheet->sort_descends ? ACTION_SHEET_DESCEND : ACTION_SHEET_ASCEND);
    }
    fresh.column = sheet->column;
    fresh.left = sheet->left;
    fresh.vertical = sheet->vertical;
    fresh.line_top = sheet->line_top;
    fresh.search = sheet->search;
    fresh.list.top = sheet->list.top;
    fresh.list.page = sheet->list.page;
    fresh.list.selected = sheet->list.selected;
    sheet_take_tags(&fresh, sheet);
    list_fit(&fresh.list, fresh.list.count, fresh.list.page);
    sheet_fini(sheet);
    *sheet = fresh;
}

/* The lowest view shows the rows. */
static void sql_show_rows(struct sql_state *s, struct result *rows) {
    struct sql_view *base = s->n_views ? &s->views[0] : NULL;
    bool renews = base && base->kind == SQL_VIEW_RESULT && sql_same_columns(base->sheet.rows, rows);
    if (renews && s->again) {
        sql_renew(&base->sheet, result_ref(rows));
        if (s->n_views > 1 && sql_top_view(s)->kind == SQL_VIEW_ERROR)
            sql_pop_view(s);
        return;
    }
    bool in_sheet = s->in_sheet;
    sql_drop_views(s);
    s->in_sheet = true; /* so that the view does not cover the editor */
    sql_push_view(s, SQL_VIEW_RESULT, result_ref(rows), "Result");
    s->in_sheet = in_sheet;
}

static void sql_show_error(struct sql_state *s, const struct querier_answer *answer) {
    if (s->n_views && sql_top_view(s)->kind == SQL_VIEW_ERROR) {
        sql_close_view(sql_top_view(s));
        s->n_views--;
    }
    sql_push_text(s, SQL_VIEW_ERROR, answer->error.text, strlen(answer->error.text), "Error");
    editor_mark_error(&s->typing.editor, answer->error_at);
}

void sql_take_answer(struct sql_state *s, struct app *app) {
    const struct querier_answer *answer = &app->query.answer;
    char text[160];
    if (s->answers == app->query.answers)
        return;
    s->answers = app->query.answers;
    editor_mark_error(&s->typing.editor, -1);
    if (answer->cancelled)
        app_message(app, false, "the query was ended after %.1f s", answer->elapsed_s);
    else if (answer->error.code != ERR_OK) {
        sql_show_error(s, answer);
        app->query.watch_s = 0;
    } else if (answer->rows)
        sql_show_rows(s, answer->rows);
    else {
        snprintf(text, sizeof text, "done: %zu statement%s, without rows", answer->statements,
                 answer->statements == 1 ? "" : "s");
        sql_drop_views(s);
        bool in_sheet = s->in_sheet;
        s->in_sheet = true;
        sql_push_text(s, SQL_VIEW_TEXT, text, strlen(text), "Result");
        s->in_sheet = in_sheet;
    }
    s->again = false;
}

/* ---- lists ---- */

/* The same list again closes it. */
static bool sql_close_same(struct sql_state *s, enum sql_view_kind kind) {
    if (!s->n_views || sql_top_view(s)->kind != kind)
        return false;
    sql_pop_view(s);
    return true;
}

void sql_open_saved(struct sql_state *s, struct app *app) {
    if (sql_close_same(s, SQL_VIEW_SAVED))
        return;
    struct result *rows = saved_list(app->query.saved_dir);
    struct sql_view *v =
        rows ? sql_push_view(s, SQL_VIEW_SAVED, rows, "Saved queries: Enter runs one") : NULL;
    if (!v)
        return;
    v->sheet.columns[2].hidden = true; /* it goes into the editor */
    s->in_sheet = true;
}

void sql_open_tables(struct sql_state *s, struct app *app) {
    if (sql_close_same(s, SQL_VIEW_TABLES))
        return;
    const struct catalog *c = app_catalog(app);
    struct result *rows = c ? catalog_list_tables(c) : NULL;
    if (rows && sql_push_view(s, SQL_VIEW_TABLES, rows, "Tables: Enter shows the columns of one"))
        s->in_sheet = true;
}

/* Text of a cell of the selected row. */
static const char *sql_cell_text(const struct sheet *sheet, size_t column) {
    size_t row = sheet_row(sheet, sheet->list.selected);
    return result_kind(sheet->rows, row, column) == SQL_TEXT ? sheet->rows->columns[column].values[row].s
                                                             : "";
}

static void sql_open_columns(struct sql_state *s, struct app *app, const char *table) {
    char title[160];
    const struct catalog *c = app_catalog(app);
    const struct catalog_table *t = c ? catalog_find(c, table, strlen(table)) : NULL;
    struct result *rows = t ? catalog_list_columns(t) : NULL;
    snprintf(title, sizeof title, "%s: %s. Enter types a name", t ? t->name : "", t ? t->help : "");
    if (rows)
        sql_push_view(s, SQL_VIEW_COLUMNS, rows, title);
}

static void sql_open_cell(struct sql_state *s, const struct sheet *sheet) {
    char title[160];
    struct strbuf text;
    size_t row = sheet_row(sheet, sheet->list.selected), column = (size_t)sheet->column;
    strbuf_init(&text, PAGER_MAX + 64);
    if (result_kind(sheet->rows, row, column) == SQL_NULL)
        strbuf_adds(&text, "NULL");
    else if (strcmp(sheet->rows->columns[column].type, "timestamp") == 0) {
        char when[64];
        result_text(sheet->rows, row, column, when, sizeof when);
        strbuf_addf(&text, "%s UTC\n", when);
    }
    result_put_whole(sheet->rows, row, column, &text);
    snprintf(title, sizeof title, "%.80s of row %d", sheet->rows->columns[column].name,
             sheet->list.selected + 1);
    sql_push_text(s, SQL_VIEW_TEXT, strbuf_str(&text), text.len, title);
    strbuf_fini(&text);
}

/* Enter. */
static void sql_open_row(struct sql_state *s, struct app *app, struct sql_view *v) {
    if (!sheet_has_cell(&v->sheet))
        return;
    switch (v->kind) {
    case SQL_VIEW_SAVED:
        editor_set(&s->typing.editor, sql_cell_text(&v->sheet, 2));
        sql_pop_view(s);
        s->in_sheet = true;
        sql_run(s, app);
        return;
    case SQL_VIEW_TABLES:
        sql_open_columns(s, app, sql_cell_text(&v->sheet, 0));
        return;
    case SQL_VIEW_COLUMNS: {
        const char *name = sql_cell_text(&v->sheet, 0);
        editor_replace(&s->typing.editor, s->typing.editor.cursor, s->typing.editor.cursor, name);
        s->in_sheet = false;
        return;
    }
    case SQL_VIEW_RESULT:
    case SQL_VIEW_FIGURES:
    case SQL_VIEW_TEXT:
    case SQL_VIEW_ERROR:
        break;
    }
    sql_open_cell(s, &v->sheet);
}

/* ---- figures ---- */

static void sql_open_figures(struct sql_state *s, struct app *app, const struct sheet *sheet,
                             bool frequency) {
    char title[160];
    size_t column = (size_t)sheet->column;
    const char *name = sheet->rows->columns[column].name;
    struct result *rows =
        frequency ? result_frequency(sheet->rows, column) : result_describe(sheet->rows, column);
    snprintf(title, sizeof title, frequency ? "Counts of %s" : "Statistics of %s", name);
    if (!rows) {
        app_message(app, true, "out of memory for the statistics");
        return;
    }
    struct sql_view *v = sql_push_view(s, SQL_VIEW_FIGURES, rows, title);
    if (v && frequency) {
        v->sheet.column = 2;
        sheet_act(&v->sheet, ACTION_SHEET_BAR);
        v->sheet.column = 0;
    }
}

/* ---- actions ---- */

static void sql_search_on(const struct match *search, struct app *app, bool found) {
    if (!search->active)
        app_message(app, false, "no search yet: / searches");
    else if (!found)
        app_refuse(app, "nothing matches '%s'", search->text);
}

static bool sql_act_pager(struct sql_state *s, struct app *app, struct sql_view *v, enum action action) {
    if (action == ACTION_SEARCH_NEXT || action == ACTION_SEARCH_PREV) {
        int step = action == ACTION_SEARCH_NEXT ? 1 : -1;
        sql_search_on(&v->pager.search, app, pager_find(&v->pager, s->view_area.cols, step));
        return true;
    }
    if (action == ACTION_SHEET_OPEN && s->n_views > 1) {
        sql_pop_view(s);
        return true;
    }
    return list_scroll(&v->pager.list, action);
}

static bool sql_is_sheet_action(enum action action) {
    return action >= ACTION_SHEET_OPEN && action <= ACTION_SHEET_LAST_COLUMN;
}

bool sql_act_view(struct sql_state *s, struct app *app, enum action action) {
    struct sql_view *v = sql_top_view(s);
    if (!v)
        return sql_is_sheet_action(action);
    if (!sql_view_is_sheet(v))
        return sql_act_pager(s, app, v, action) || sql_is_sheet_action(action);
    switch ((int)action) {
    case ACTION_SHEET_OPEN:
        sql_open_row(s, app, v);
        return true;
    case ACTION_SHEET_DESCRIBE:
    case ACTION_SHEET_FREQUENCY:
        sql_open_figures(s, app, &v->sheet, action == ACTION_SHEET_FREQUENCY);
        return true;
    case ACTION_SHEET_BAR:
        if (!v->sheet.columns[v->sheet.column].numeric)
            app_message(app, false, "bars need a column with numbers only");
        break;
    case ACTION_SEARCH_NEXT:
    case ACTION_SEARCH_PREV:
        sql_search_on(&v->sheet.search, app, sheet_find(&v->sheet, action == ACTION_SEARCH_NEXT ? 1 : -1));
        return true;
    default:
        break;
    }
    return sheet_act(&v->sheet, action);
}
