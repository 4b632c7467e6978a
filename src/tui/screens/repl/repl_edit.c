/* SPDX-License-Identifier: Apache-2.0 */
/* repl_edit: what the keys of the Repl screen's editor do: code that is asked about and run, lines with %, keys that are ahead. */
#include <string.h>

#include "tui/core/app_magic.h"
#include "tui/screens/repl/repl_state.h"

static bool repl_is_blank(const char *text) { return text[strspn(text, " \t\n")] == '\0'; }

/* ---- running ---- */

/* A new line, as deep as the one before, or deeper behind a colon. */
static void repl_new_line(struct editor *e) {
    size_t line = e->cursor, deep;
    while (line > 0 && e->text[line - 1] != '\n')
        line--;
    deep = strspn(e->text + line, " ");
    if (deep > e->cursor - line)
        deep = e->cursor - line;
    if (e->cursor > 0 && e->text[e->cursor - 1] == ':')
        deep += REPL_INDENT;
    (void)editor_act(e, ACTION_EDIT_NEWLINE);
    while (deep-- > 0)
        editor_insert(e, " ", 1);
}

/* It was taken: the next one. */
static void repl_empty(struct repl_state *s) {
    editor_set(&s->typing.editor, "");
    s->typing.history_at = -1;
    s->follows = true;
}

static void repl_run_magic(struct repl_state *s, struct app *app) {
    if (app_magic_run(app, s->typing.editor.text, s->out_area.cols - 2))
        repl_empty(s);
}

static void repl_run(struct repl_state *s, struct app *app) {
    struct editor *e = &s->typing.editor;
    size_t len = e->len;
    if (magic_is(e->text)) {
        repl_run_magic(s, app);
        return;
    }
    while (len > 0 && strchr(" \t\n", e->text[len - 1]))
        len--;
    if (len == 0) {
        app_message(app, false, "there is nothing to run: type code of the job");
        return;
    }
    if (app_repl_ask(app, APP_REPL_RUN, e->text, len))
        repl_empty(s);
}

/* The cursor is at the end: is the code, too? The job's Python knows; an empty line ends a block. */
static void repl_enter(struct repl_state *s, struct app *app) {
    struct editor *e = &s->typing.editor;
    if (repl_is_blank(e->text)) {
        editor_set(e, "");
        return;
    }
    if (magic_is(e->text)) { /* whole in any line, wherever the cursor stands */
        repl_run_magic(s, app);
        return;
    }
    if (!repl_is_blank(e->text + e->cursor)) {
        repl_new_line(e);
        return;
    }
    e->cursor = e->len;
    (void)app_repl_ask(app, APP_REPL_WHOLE, e->text, e->len);
}

static void repl_take_whole(struct repl_state *s, struct app *app) {
    struct editor *e = &s->typing.editor;
    const char *state = strbuf_str(&app->repl.answer);
    size_t line = e->len;
    while (line > 0 && e->text[line - 1] != '\n')
        line--;
    bool ends = strcmp(state, WIRE_CODE_BLOCK) == 0 && line > 0 && repl_is_blank(e->text + line);
    if (ends || (strcmp(state, WIRE_CODE_BLOCK) != 0 && strcmp(state, WIRE_CODE_MORE) != 0))
        repl_run(s, app);
    else
        repl_new_line(e);
}

static void repl_stop(struct repl_state *s, struct app *app) {
    s->n_ahead = 0;
    if (app_repl_runs(app))
        app_repl_interrupt(app);
    else if (s->typing.editor.len > 0)
        editor_set(&s->typing.editor, "");
    else
        app_message(app, false, "F10 quits, Esc goes to the output");
}

/* ---- keys ---- */

/* Keys that come behind an Enter wait for what became of it, as those typed ahead at a prompt do. True: this one is kept. */
static bool repl_keep(struct repl_state *s, const struct app *app, enum action action, uint32_t key) {
    bool waits = s->n_ahead > 0 || app->repl.asked == APP_REPL_WHOLE ||
                 (app->repl.asked && (action == ACTION_SQL_ENTER || action == ACTION_SQL_RUN));
    if (waits && s->n_ahead < REPL_AHEAD)
        s->ahead[s->n_ahead++] = (struct repl_ahead){action, key};
    return waits;
}

static void repl_step_history(struct repl_state *s, struct app *app, int step) {
    const char *why = typing_step_history(&s->typing, &app->repl.history, step, "code");
    if (why)
        app_message(app, false, "%s", why);
}

static bool repl_edit(struct repl_state *s, struct app *app, enum action action) {
    struct editor *e = &s->typing.editor;
    const char *before = e->text;
    bool up = action == ACTION_EDIT_UP;
    if (action == ACTION_EDIT_NEWLINE) {
        repl_new_line(e);
        repl_close_completion(s);
        return true;
    }
    if (!editor_act(e, action)) {
        if (!up && action != ACTION_EDIT_DOWN)
            return false;
        repl_step_history(s, app, up ? -1 : 1);
    } else if (e->text != before)
        repl_edited(s, app);
    else
        repl_close_completion(s);
    return true;
}

static bool repl_do(struct repl_state *s, struct app *app, enum action action) {
    switch ((int)action) {
    case ACTION_SQL_COMPLETE:
        repl_tab(s, app);
        return true;
    case ACTION_SQL_ENTER:
        repl_enter(s, app);
        return true;
    case ACTION_SQL_RUN:
        repl_close_completion(s);
        repl_run(s, app);
        return true;
    case ACTION_SQL_PREVIOUS:
    case ACTION_SQL_NEXT:
        repl_step_history(s, app, action == ACTION_SQL_NEXT ? 1 : -1);
        return true;
    default:
        return repl_edit(s, app, action);
    }
}

static bool repl_is_typed(enum action action) {
    return (action >= ACTION_EDIT_LEFT && action <= ACTION_EDIT_REDO) || action == ACTION_SQL_COMPLETE ||
           action == ACTION_SQL_ENTER || action == ACTION_SQL_RUN || action == ACTION_SQL_PREVIOUS ||
           action == ACTION_SQL_NEXT;
}

bool repl_act_edit(struct repl_state *s, struct app *app, enum action action) {
    if (s->typing.completing && repl_act_choices(s, action))
        return true;
    if (action == ACTION_SQL_CANCEL) {
        repl_stop(s, app);
        return true;
    }
    if (action == ACTION_SQL_HISTORY) {
        typing_begin_search(&s->typing, app, ACTION_SQL_HISTORY);
        return true;
    }
    if (!repl_is_typed(action))
        return false;
    return repl_keep(s, app, action, 0) || repl_do(s, app, action);
}

bool repl_key(struct repl_state *s, struct app *app, uint32_t key) {
    struct editor *e = &s->typing.editor;
    if (repl_keep(s, app, ACTION_NONE, key))
        return true;
    if (!editor_key(e, key))
        return false;
    repl_edited(s, app);
    return true;
}

/* What was pressed meanwhile, as far as it does not wait again. */
static void repl_go_on(struct repl_state *s, struct app *app) {
    while (s->n_ahead > 0) {
        struct repl_ahead next = s->ahead[0];
        bool runs = next.action == ACTION_SQL_ENTER || next.action == ACTION_SQL_RUN;
        if (app->repl.asked == APP_REPL_WHOLE || (app->repl.asked && runs))
            return;
        memmove(s->ahead, s->ahead + 1, (size_t)--s->n_ahead * sizeof next);
        if (next.action)
            (void)repl_do(s, app, next.action);
        else if (editor_key(&s->typing.editor, next.key))
            repl_edited(s, app);
    }
}

void repl_take_answer(struct repl_state *s, struct app *app) {
    const struct app_repl *r = &app->repl;
    if (s->answers == r->answers)
        return;
    s->answers = r->answers;
    if (r->end == APP_REPL_REFUSED && r->ended != APP_REPL_NAMES)
        s->n_ahead = 0; /* what follows a refusal was meant otherwise */
    else if (r->end == APP_REPL_ANSWERED && r->ended == APP_REPL_NAMES)
        repl_take_names(s, app);
    else if (r->end == APP_REPL_ANSWERED && r->ended == APP_REPL_WHOLE)
        repl_take_whole(s, app);
    repl_go_on(s, app);
}
