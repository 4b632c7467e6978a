/* SPDX-License-Identifier: Apache-2.0 */
/* sql_edit: what the editor's keys do beyond editing: completion, and the queries of before. */
#include <stdlib.h>
#include <string.h>

#include "store/sql/sql_rewrite.h"
#include "tui/screens/sql/sql_state.h"

/* ---- completion ---- */

void sql_close_completion(struct sql_state *s) {
    if (s->typing.completing)
        sql_complete_fini(&s->completion);
    s->typing.completing = false;
}

/* Find what fits at the cursor now; false when nothing does, or memory is short. */
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
        app_message(app, false, "nothing is known that goes on like this");
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
            (void)sql_find_completion(s, app);
        }
        free(part);
    }
}

void sql_complete_refresh(struct sql_state *s, struct app *app) {
    int selected = s->typing.choices.selected;
    if (sql_find_completion(s, app))
        list_select(&s->typing.choices, selected);
}

/* After a key that changed the text: the list follows the word, and goes with it. */
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

/* Does a text end with a semicolon that a statement stands before? */
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
    (void)editor_act(&s->typing.editor, ACTION_EDIT_NEWLINE);
    if (strspn(s->typing.editor.text, " \t\n") == s->typing.editor.len)
        editor_set(&s->typing.editor, ""); /* nothing was there */
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
