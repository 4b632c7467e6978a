/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql: queries over what the job did and does: an editor above, the result below.
 *
 * Nothing is computed here: the app is asked, the querier's thread works, the answer comes with an update. What was typed stays when
 * the screen is left.
 */
#include "tui/screens/screens.h"

#include <stdlib.h>
#include <string.h>

#include "tui/screens/sql/sql_state.h"

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
    return s->in_sheet ? CONTEXT_SQL_SHEET : s->typing.completing ? CONTEXT_SQL_COMPLETE : CONTEXT_SQL_EDIT;
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
        app_message(app, false, "i goes to the query, where text can be pasted");
        return;
    }
    editor_paste(&s->typing.editor, text);
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
        app->requests.quit = true;
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
            app->requests.quit = true;
        return true;
    default:
        return sql_act_view(s, app, action);
    }
}

static bool sql_act(void *state, struct app *app, enum action action) {
    struct sql_state *s = state;
    struct sql_view *v = sql_top_view(s);
    switch ((int)action) {
    case ACTION_SHOW_SQL:
        return true;
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
    case ACTION_QUIT:
        app->requests.quit = true;
        return true;
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
    .number = '7',
    .of_session = true,
    .is_kept = true,
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
};
