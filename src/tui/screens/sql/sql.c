/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql: queries over what the job did and does: an editor above, the result below.
 *
 * Nothing is computed here: the querier's thread runs the query, and the answer arrives with an
 * update. What was typed stays when the screen is left.
 */
#include <stdlib.h>
#include <string.h>

#include "store/sql/sql_rewrite.h"
#include "tui/view/pick.h"
#include "tui/core/app.h"
#include "tui/core/app_input.h"
#include "tui/core/app_query.h"
#include "tui/screens/sql/sql_state.h"
#include "tui/view/view.h"

#define SQL_WHEEL 3

static void sql_init(void *state, struct app *app) {
    struct sql_state *s = state;
    typing_init(&s->typing);
    s->answers = app->query.answers;
    app_query_tables(app);
}

static void sql_fini(void *state) {
    struct sql_state *s = state;
    sql_close_completion(s);
    sql_drop_views(s);
    typing_fini(&s->typing);
}

static void sql_update(void *state, struct app *app) {
    struct sql_state *s = state;
    if (s->typing.completing && s->catalogs != app->query.catalogs)
        sql_complete_refresh(s, app);
    sql_take_answer(s, app);
}

static enum action_context sql_context(const void *state) {
    const struct sql_state *s = state;
    return s->in_sheet ? CONTEXT_SQL_SHEET : s->typing.completing ? CONTEXT_SQL_COMPLETE : CONTEXT_SQL;
}

static void sql_tick(void *state, struct app *app) {
    struct sql_state *s = state;
    struct app_query *q = &app->query;
    if (q->watch_s <= 0 || q->running || !q->text || app->now_s < q->due_s - 0.05)
        return;
    char *text = strdup(q->text);
    s->again = text && app_ask(app, text, true);
    free(text);
}

static bool sql_key(void *state, struct app *app, uint32_t key) {
    struct sql_state *s = state;
    if (s->in_sheet || !editor_key(&s->typing.editor, key))
        return false;
    sql_edited(s, app);
    return true;
}

static void sql_paste(void *state, struct app *app, const char *text) {
    struct sql_state *s = state;
    if (s->in_sheet) {
        app_message(app, false, "o goes to the query, where text can be pasted");
        return;
    }
    typing_paste(&s->typing, app, text);
    sql_close_completion(s);
    sql_edited(s, app);
}

/* One step back; false: leave the screen. */
static bool sql_back(struct sql_state *s) {
    struct sql_view *v = sql_top_view(s);
    struct match *search = v ? sql_view_is_sheet(v) ? &v->sheet.search : &v->pager.search : NULL;
    if (search && search->active)
        match_clear(search);
    else if (v && v->kind != SQL_VIEW_RESULT && (s->n_views > 1 || v->kind != SQL_VIEW_TEXT))
        sql_pop_view(s);
    else if (s->zoomed)
        s->zoomed = false;
    else
        return false;
    return true;
}

/* ctrl-c in the result. */
static void sql_stop_or_quit(struct app *app) {
    if (app->query.running)
        app_cancel(app);
    else
        app_quit(app);
}

static void sql_rerun(struct sql_state *s, struct app *app) {
    if (!app->query.text) {
        sql_run(s, app);
        return;
    }
    char *text = strdup(app->query.text);
    s->again = text && app_ask(app, text, true);
    free(text);
}

static bool sql_act_sheet(struct sql_state *s, struct app *app, enum action action) {
    struct sql_view *v = sql_top_view(s);
    switch ((int)action) {
    case ACTION_SQL_RUN:
        sql_rerun(s, app);
        return true;
    case ACTION_SQL_TO_EDITOR:
        s->in_sheet = false;
        return true;
    case ACTION_SQL_CANCEL:
        sql_stop_or_quit(app);
        return true;
    case ACTION_ZOOM:
        s->zoomed = !s->zoomed && v;
        return true;
    case ACTION_BACK:
        return sql_back(s);
    case ACTION_QUIT:
        if (s->n_views < 2 || !sql_back(s))
            app_quit(app);
        return true;
    default:
        return sql_act_view(s, app, action);
    }
}

static bool sql_act(void *state, struct app *app, enum action action) {
    struct sql_state *s = state;
    struct sql_view *v = sql_top_view(s);
    switch ((int)action) {
    case ACTION_SQL_SAVED:
        sql_close_completion(s);
        sql_open_saved(s, app);
        return true;
    case ACTION_SQL_TABLES:
        sql_close_completion(s);
        sql_open_tables(s, app);
        return true;
    case ACTION_SQL_WATCH:
        sql_watch(s, app, app->query.watch_s > 0 ? 0 : SQL_WATCH_S);
        return true;
    default:
        break;
    }
    if (s->in_sheet)
        return sql_act_sheet(s, app, action);
    switch ((int)action) {
    case ACTION_SQL_RUN:
        sql_run(s, app);
        return true;
    case ACTION_SQL_TO_SHEET:
        s->in_sheet = true;
        return true;
    case ACTION_PAGE_UP:
    case ACTION_PAGE_DOWN:
        return v ? sql_act_view(s, app, action) : true;
    default:
        return sql_act_edit(s, app, action);
    }
}

static bool sql_typed(void *state, struct app *app, enum action what, const char *text,
                      enum screen_typed phase) {
    struct sql_state *s = state;
    struct sql_view *v = sql_top_view(s);
    if (what == ACTION_SQL_HISTORY)
        return sql_search_history(s, app, text, phase);
    if (!v)
        return false;
    bool in_sheet = sql_view_is_sheet(v);
    match_set(in_sheet ? &v->sheet.search : &v->pager.search, phase == SCREEN_CANCEL ? "" : text, false);
    if (phase == SCREEN_CANCEL || !*text)
        return true;
    int step = phase == SCREEN_REDRAW ? 1 : 0;
    return in_sheet ? sheet_find(&v->sheet, step) : pager_find(&v->pager, s->view_area.cols, step);
}

static bool sql_mouse(void *state, struct app *app, const struct input_event *e) {
    struct sql_state *s = state;
    struct sql_view *v = sql_top_view(s);
    int edit_row = e->row - s->typing.area.row, view_row = e->row - s->view_area.row;
    int wheel = e->button == INPUT_WHEEL_UP ? -SQL_WHEEL : e->button == INPUT_WHEEL_DOWN ? SQL_WHEEL : 0;
    (void)app;
    if (!wheel && edit_row >= 0 && edit_row < s->typing.area.rows &&
        e->col < s->typing.area.col + s->typing.area.cols) {
        struct grid as_drawn = {.ascii = app->config.ascii};
        sql_close_completion(s);
        editor_click(&s->typing.editor, &as_drawn, edit_row, e->col - s->typing.area.col);
        s->in_sheet = false;
        return true;
    }
    if (!v || view_row < 0 || view_row >= s->view_area.rows || e->col >= s->view_area.col + s->view_area.cols)
        return false;
    if (wheel && sql_view_is_sheet(v))
        sheet_wheel(&v->sheet, wheel);
    else if (wheel)
        list_wheel(&v->pager.list, wheel);
    else {
        sql_close_completion(s);
        s->in_sheet = true;
        if (sql_view_is_sheet(v))
            sheet_click(&v->sheet, view_row, e->col - s->view_area.col);
    }
    return true;
}

static bool sql_is_on(const void *state, const struct app *app, enum action action) {
    const struct sql_state *s = state;
    const struct sql_view *v = s->n_views ? &s->views[s->n_views - 1] : NULL;
    return (action == ACTION_SQL_WATCH && app->query.watch_s > 0) ||
           (action == ACTION_SHEET_VERTICAL && v && v->sheet.vertical) ||
           (action == ACTION_SHEET_BAR && sql_view_is_sheet(v) && v->sheet.columns[v->sheet.column].bar);
}

const struct screen_def screen_sql = {
    .name = "sql",
    .title = "SQL",
    .is_tab = true,
    .opens = {SCREEN_TAB_KEY(SQL, "sql", "S", "the SQL screen: queries over history and live tables")},
    .contexts = {{CONTEXT_SQL, "query", "SQL: the query"},
                 {CONTEXT_SQL_COMPLETE, "complete", "SQL: words to complete with"},
                 {CONTEXT_SQL_SHEET, "result", "SQL: the result"}},
    .of_session = true,
    .is_kept = true,
    .reads_job = true,
    .state_size = sizeof(struct sql_state),
    .init = sql_init,
    .fini = sql_fini,
    .context = sql_context,
    .draw = sql_draw,
    .act = sql_act,
    .key = sql_key,
    .paste = sql_paste,
    .tick = sql_tick,
    .mouse = sql_mouse,
    .update = sql_update,
    .typed = sql_typed,
    .pick = sql_pick,
    .rows = &sql_tagged,
    .is_on = sql_is_on,
    .status = sql_status,
    .commands = sql_commands,
};

/* ---- pick ---- */

/* The selected cell of a result and its row, as they are copied. */

/* A value as a file would have it, without controls. */
static void sql_put_value(const struct result *r, size_t row, size_t column, struct strbuf *out) {
    struct strbuf text;
    strbuf_init(&text, PICK_MAX);
    result_put_whole(r, row, column, &text);
    pick_put_text(out, strbuf_str(&text));
    strbuf_fini(&text);
}

/* A row, its values separated by tabs; hidden ones are left out. */
static void sql_put_row(const struct sheet *sheet, size_t row, struct strbuf *out) {
    bool first = true;
    for (size_t i = 0; i < sheet->rows->n_columns; i++) {
        if (sheet->columns[i].hidden)
            continue;
        if (!first)
            strbuf_addc(out, '\t');
        first = false;
        sql_put_value(sheet->rows, row, i, out);
    }
}

/* The sheet that has the focus; NULL: none. */
static struct sheet *sql_sheet(struct sql_state *s) {
    struct sql_view *v = sql_top_view(s);
    return s->in_sheet && v && sql_view_is_sheet(v) ? &v->sheet : NULL;
}

static const struct sheet *sql_sheet_of(const void *state) {
    const struct sql_state *s = state;
    const struct sql_view *v = s->n_views ? &s->views[s->n_views - 1] : NULL;
    return s->in_sheet && v && sql_view_is_sheet(v) ? &v->sheet : NULL;
}

bool sql_pick(const void *state, const struct app *app, struct screen_pick *what, struct strbuf *one,
              struct strbuf *whole) {
    const struct sheet *sheet = sql_sheet_of(state);
    (void)app;
    (void)what;
    if (!sheet || !sheet_has_cell(sheet))
        return false;
    size_t row = sheet_row(sheet, sheet->list.selected);
    sql_put_value(sheet->rows, row, (size_t)sheet->column, one);
    sql_put_row(sheet, row, whole);
    return true;
}

/* ---- tagged rows ---- */

static struct tags *sql_tags(void *state, struct app *app) {
    struct sheet *sheet = sql_sheet(state);
    (void)app;
    return sheet ? &sheet->tags : NULL;
}

static int sql_count_rows(const void *state, const struct app *app) {
    (void)app;
    return (int)sheet_rows(sql_sheet_of(state));
}

static int sql_selected_row(const void *state, const struct app *app) {
    const struct sheet *sheet = sql_sheet_of(state);
    (void)app;
    return sheet_has_cell(sheet) ? sheet->list.selected : -1;
}

static uint64_t sql_row_key(const void *state, const struct app *app, int row) {
    (void)app;
    return sheet_row(sql_sheet_of(state), row);
}

static void sql_put(const void *state, const struct app *app, int row, struct screen_pick *what,
                    struct strbuf *one, struct strbuf *whole) {
    const struct sheet *sheet = sql_sheet_of(state);
    (void)app;
    (void)what;
    sql_put_value(sheet->rows, sheet_row(sheet, row), (size_t)sheet->column, one);
    sql_put_row(sheet, sheet_row(sheet, row), whole);
}

static void sql_renew_rows(void *state, struct app *app) {
    (void)app;
    sheet_renew_rows(sql_sheet(state));
}

const struct screen_rows sql_tagged = {.tags = sql_tags,
                                       .count = sql_count_rows,
                                       .selected = sql_selected_row,
                                       .key = sql_row_key,
                                       .put = sql_put,
                                       .renew = sql_renew_rows};

/* ---- edit ---- */

/* The editor's keys other than editing: completion, and the history. */

/* ---- completion ---- */

void sql_close_completion(struct sql_state *s) {
    if (s->typing.completing)
        sql_complete_fini(&s->completion);
    s->typing.completing = false;
}

/* Find completions at the cursor; false: none, or out of memory. */
static bool sql_find_completion(struct sql_state *s, struct app *app) {
    const struct catalog *c = app_catalog(app);
    sql_close_completion(s);
    if (!c || sql_complete(&s->completion, c, s->typing.editor.text, s->typing.editor.cursor) != 0)
        return false;
    s->typing.completing = s->completion.n > 0;
    s->catalogs = app->query.catalogs;
    if (!s->typing.completing)
        sql_complete_fini(&s->completion);
    s->typing.choices = (struct list){.count = (int)s->completion.n, .page = 1};
    return s->typing.completing;
}

static void sql_accept(struct sql_state *s) {
    const struct sql_completion *c = &s->completion;
    editor_replace(&s->typing.editor, c->from, c->to, c->items[s->typing.choices.selected].text);
    sql_close_completion(s);
}

static void sql_complete_word(struct sql_state *s, struct app *app) {
    if (!sql_find_completion(s, app)) {
        app_message(app, false, "no completion");
        return;
    }
    const struct sql_completion *c = &s->completion;
    if (c->n == 1) {
        sql_accept(s);
        return;
    }
    size_t typed = c->to - c->from, common = sql_complete_common(c);
    if (common > typed && strncasecmp(c->items[0].text, s->typing.editor.text + c->from, typed) == 0) {
        char *part = strndup(c->items[0].text, common);
        if (part) {
            editor_replace(&s->typing.editor, c->from, c->to, part);
            sql_find_completion(s, app);
        }
        free(part);
    }
}

void sql_complete_refresh(struct sql_state *s, struct app *app) {
    int selected = s->typing.choices.selected;
    if (sql_find_completion(s, app))
        list_select(&s->typing.choices, selected);
}

/* After a key that has changed the text: the list follows the word, and closes with it. */
void sql_edited(struct sql_state *s, struct app *app) {
    s->typing.history_at = -1;
    if (!s->typing.completing)
        return;
    if (!sql_find_completion(s, app))
        return;
    if (s->completion.from == s->completion.to &&
        s->typing.editor.text[s->typing.editor.cursor - (s->typing.editor.cursor > 0)] != '.')
        sql_close_completion(s);
}

static bool sql_act_choices(struct sql_state *s, enum action action) {
    switch ((int)action) {
    case ACTION_SQL_ACCEPT:
        sql_accept(s);
        return true;
    case ACTION_BACK:
    case ACTION_SQL_CANCEL:
        sql_close_completion(s);
        return true;
    default:
        return typing_act_choices(&s->typing, action);
    }
}

/* ---- history ---- */

static void sql_step_history(struct sql_state *s, struct app *app, int step) {
    const char *why = typing_step_history(&s->typing, &app->query.history, step, "query");
    if (why)
        app_message(app, false, "%s", why);
}

bool sql_search_history(struct sql_state *s, struct app *app, const char *text, enum screen_typed phase) {
    return typing_search(&s->typing, &app->query.history, text, phase);
}

/* ---- actions ---- */

/* Does a text end with a semicolon after a statement? */
static bool sql_is_terminated(const char *text) {
    size_t len = strlen(text);
    struct sql_token t;
    bool any = false, ended = false;
    for (size_t at = 0; (t = sql_token_next(text, len, at)).kind != SQL_TOKEN_END; at = t.at + t.len) {
        if (t.kind == SQL_TOKEN_SPACE)
            continue;
        ended = t.kind == SQL_TOKEN_OTHER && text[t.at] == ';';
        any |= !ended;
    }
    return any && ended;
}

static void sql_enter(struct sql_state *s, struct app *app) {
    if (sql_is_terminated(s->typing.editor.text)) {
        sql_run(s, app);
        return;
    }
    editor_act(&s->typing.editor, ACTION_EDIT_NEWLINE);
    if (strspn(s->typing.editor.text, " \t\n") == s->typing.editor.len)
        editor_set(&s->typing.editor, ""); /* there was nothing there */
    else
        app_message(app, false, "a new line; with ; at the end Enter runs the query, F5 always does");
}

static void sql_stop(struct sql_state *s, struct app *app) {
    if (app->query.running)
        app_cancel(app);
    else if (app->query.watch_s > 0)
        sql_watch(s, app, 0);
    else if (s->typing.editor.len > 0)
        editor_set(&s->typing.editor, "");
    else
        app_message(app, false, "F10 quits, Esc goes to the result");
}

bool sql_act_edit(struct sql_state *s, struct app *app, enum action action) {
    if (s->typing.completing && sql_act_choices(s, action))
        return true;
    switch ((int)action) {
    case ACTION_SQL_COMPLETE:
        sql_complete_word(s, app);
        return true;
    case ACTION_SQL_ENTER:
        sql_enter(s, app);
        return true;
    case ACTION_SQL_CANCEL:
        sql_stop(s, app);
        return true;
    case ACTION_SQL_HISTORY:
        typing_begin_search(&s->typing, app, ACTION_SQL_HISTORY);
        return true;
    case ACTION_SQL_PREVIOUS:
    case ACTION_SQL_NEXT:
        sql_step_history(s, app, action == ACTION_SQL_NEXT ? 1 : -1);
        return true;
    case ACTION_EDIT_UP:
    case ACTION_EDIT_DOWN:
        if (!editor_act(&s->typing.editor, action))
            sql_step_history(s, app, action == ACTION_EDIT_DOWN ? 1 : -1);
        return true;
    default:
        break;
    }
    const char *before = s->typing.editor.text;
    if (!editor_act(&s->typing.editor, action))
        return false;
    if (s->typing.editor.text != before)
        sql_edited(s, app);
    else
        sql_close_completion(s);
    return true;
}
