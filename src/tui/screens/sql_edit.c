/* SPDX-License-Identifier: Apache-2.0 */
/* sql_edit: what the editor's keys do beyond editing: completion, and the queries of before. */
#include <stdlib.h>
#include <string.h>

#include "store/sql_rewrite.h"
#include "tui/screens/sql_state.h"

/* ---- completion ---- */

void sql_close_completion(struct sql_state *s) {
    if (s->completing)
        sql_complete_fini(&s->completion);
    s->completing = false;
}

/* Find what fits at the cursor now; false when nothing does, or memory is short. */
static bool sql_find_completion(struct sql_state *s, struct app *app) {
    const struct catalog *c = app_catalog(app);
    sql_close_completion(s);
    if (!c || sql_complete(&s->completion, c, s->editor.text, s->editor.cursor) != 0)
        return false;
    s->completing = s->completion.n > 0;
    s->catalogs = app->query.catalogs;
    if (!s->completing)
        sql_complete_fini(&s->completion);
    s->choices = (struct list){.count = (int)s->completion.n, .page = 1};
    return s->completing;
}

static void sql_accept(struct sql_state *s) {
    const struct sql_completion *c = &s->completion;
    editor_replace(&s->editor, c->from, c->to, c->items[s->choices.selected].text);
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
    if (common > typed && strncasecmp(c->items[0].text, s->editor.text + c->from, typed) == 0) {
        char *part = strndup(c->items[0].text, common);
        if (part) {
            editor_replace(&s->editor, c->from, c->to, part);
            (void)sql_find_completion(s, app);
        }
        free(part);
    }
}

void sql_complete_again(struct sql_state *s, struct app *app) {
    int selected = s->choices.selected;
    if (sql_find_completion(s, app))
        list_select(&s->choices, selected);
}

/* After a key that changed the text: the list follows the word, and goes with it. */
void sql_edited(struct sql_state *s, struct app *app) {
    s->history_at = -1;
    if (!s->completing)
        return;
    if (!sql_find_completion(s, app))
        return;
    if (s->completion.from == s->completion.to &&
        s->editor.text[s->editor.cursor - (s->editor.cursor > 0)] != '.')
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
    case ACTION_UP: /* round and round */
        list_select(&s->choices, s->choices.selected ? s->choices.selected - 1 : s->choices.count - 1);
        return true;
    case ACTION_DOWN:
        list_select(&s->choices, (s->choices.selected + 1) % s->choices.count);
        return true;
    default:
        return false;
    }
}

/* ---- history ---- */

static void sql_show_entry(struct sql_state *s, struct app *app, long at) {
    const struct history *h = &app->query.history;
    if (at >= (long)h->n) {
        if (s->history_at >= 0)
            editor_set(&s->editor, s->draft ? s->draft : "");
        s->history_at = -1;
        return;
    }
    if (at < 0)
        return;
    if (s->history_at < 0) {
        free(s->draft);
        s->draft = strdup(s->editor.text);
    }
    editor_set(&s->editor, h->entries[at]);
    s->history_at = at;
}

static void sql_step_history(struct sql_state *s, struct app *app, int step) {
    long n = (long)app->query.history.n, at = s->history_at < 0 ? n : s->history_at;
    if (n == 0)
        app_message(app, false, "no query was run yet");
    else if (at + step < 0)
        app_message(app, false, "this is the oldest query that is kept");
    else
        sql_show_entry(s, app, at + step);
}

bool sql_search_history(struct sql_state *s, struct app *app, const char *text, enum screen_typed phase) {
    const struct history *h = &app->query.history;
    if (phase == SCREEN_CANCEL) {
        if (s->sought)
            editor_set(&s->editor, s->sought);
        return true;
    }
    if (phase == SCREEN_ACCEPT || !*text)
        return s->found_at >= 0 || !*text;
    size_t before = phase == SCREEN_AGAIN && s->found_at >= 0 ? (size_t)s->found_at : h->n;
    /* The same query again is no other one. */
    long at = history_find(h, text, before);
    while (phase == SCREEN_AGAIN && at >= 0 && strcmp(h->entries[at], s->editor.text) == 0)
        at = history_find(h, text, (size_t)at);
    if (at < 0)
        return false;
    s->found_at = at;
    editor_set(&s->editor, h->entries[at]);
    return true;
}

static void sql_begin_search(struct sql_state *s, struct app *app) {
    free(s->sought);
    s->sought = strdup(s->editor.text);
    s->found_at = -1;
    app_prompt(app, ACTION_SQL_HISTORY, "History (ctrl-r: older): ", "");
}

/* ---- actions ---- */

/* Does a text end with a semicolon that a statement stands before? */
static bool sql_is_ended(const char *text) {
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
    if (sql_is_ended(s->editor.text)) {
        sql_run(s, app);
        return;
    }
    (void)editor_act(&s->editor, ACTION_EDIT_NEWLINE);
    if (strspn(s->editor.text, " \t\n") == s->editor.len)
        editor_set(&s->editor, ""); /* nothing was there */
    else
        app_message(app, false, "a new line; with ; at the end Enter runs the query, F5 always does");
}

static void sql_stop(struct sql_state *s, struct app *app) {
    if (app->query.running)
        app_cancel(app);
    else if (app->query.watch_s > 0)
        sql_watch(s, app, 0);
    else if (s->editor.len > 0)
        editor_set(&s->editor, "");
    else
        app_message(app, false, "F10 quits, Esc goes to the result");
}

bool sql_act_edit(struct sql_state *s, struct app *app, enum action action) {
    if (s->completing && sql_act_choices(s, action))
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
        sql_begin_search(s, app);
        return true;
    case ACTION_SQL_PREVIOUS:
    case ACTION_SQL_NEXT:
        sql_step_history(s, app, action == ACTION_SQL_NEXT ? 1 : -1);
        return true;
    case ACTION_EDIT_UP:
    case ACTION_EDIT_DOWN:
        if (!editor_act(&s->editor, action))
            sql_step_history(s, app, action == ACTION_EDIT_DOWN ? 1 : -1);
        return true;
    default:
        break;
    }
    const char *before = s->editor.text;
    if (!editor_act(&s->editor, action))
        return false;
    if (s->editor.text != before)
        sql_edited(s, app);
    else
        sql_close_completion(s);
    return true;
}
