/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repl: code that runs in the job, typed line by line: an editor below, what was said above.
 *
 * Nothing is asked here: the app is, the runner asks the agent, the answer comes with an update. What was typed, and what came of it,
 * stays when the screen is left.
 */
#include "tui/screens/screens.h"

#include <string.h>

#include "tui/screens/repl/repl_state.h"

#define REPL_WHEEL 3

static void repl_init(void *state, struct app *app) {
    struct repl_state *s = state;
    typing_init(&s->typing);
    s->typing.editor.plain = true;
    strbuf_init(&s->names, 1 << 20);
    app->repl.opened = true;
    s->answers = app->repl.answers;
    s->logged = app->repl.logged - 1;
    s->tables_of = -1;
    s->follows = true;
}

static void repl_fini(void *state) {
    struct repl_state *s = state;
    repl_close_completion(s);
    strbuf_fini(&s->names);
    pager_fini(&s->pager);
    typing_fini(&s->typing);
}

static void repl_update(void *state, struct app *app) {
    struct repl_state *s = state;
    if (app->repl.to_output) {
        app->repl.to_output = false;
        repl_close_completion(s);
        s->in_output = s->follows = true;
    }
    repl_follow(s, app);
    repl_take_answer(s, app);
}

static enum action_context repl_context(const void *state) {
    const struct repl_state *s = state;
    return s->in_output           ? CONTEXT_REPL_OUTPUT
           : s->typing.completing ? CONTEXT_REPL_COMPLETE
                                  : CONTEXT_REPL_EDIT;
}

static bool repl_typed_key(void *state, struct app *app, uint32_t key) {
    struct repl_state *s = state;
    return !s->in_output && repl_key(s, app, key);
}

static void repl_paste(void *state, struct app *app, const char *text) {
    struct repl_state *s = state;
    if (s->in_output) {
        app_message(app, false, "i goes to the code, where text can be pasted");
        return;
    }
    editor_paste(&s->typing.editor, text);
    s->typing.history_at = -1;
    repl_close_completion(s);
}

static bool repl_scroll(struct repl_state *s, enum action action) {
    if (!list_scroll(&s->pager.list, action))
        return false;
    s->follows = s->pager.list.top + s->pager.list.page >= s->pager.list.count;
    return true;
}

static bool repl_act_output(struct repl_state *s, struct app *app, enum action action) {
    switch ((int)action) {
    case ACTION_SQL_TO_EDITOR:
        s->in_output = false;
        return true;
    case ACTION_SQL_CANCEL:
        if (app_repl_runs(app))
            app_repl_interrupt(app);
        else
            app->requests.quit = true;
        return true;
    case ACTION_SEARCH_NEXT:
    case ACTION_SEARCH_PREV:
        if (!s->pager.search.active)
            app_message(app, false, "nothing was searched for: / searches");
        else if (!pager_find(&s->pager, s->out_area.cols, action == ACTION_SEARCH_NEXT ? 1 : -1))
            app_refuse(app, "nothing matches '%s'", s->pager.search.text);
        s->follows = false;
        return true;
    case ACTION_BACK:
        if (!s->pager.search.active)
            return false;
        match_clear(&s->pager.search);
        return true;
    default:
        return repl_scroll(s, action);
    }
}

static bool repl_act(void *state, struct app *app, enum action action) {
    struct repl_state *s = state;
    if (action == ACTION_SHOW_REPL)
        return true;
    if (action == ACTION_QUIT) {
        app->requests.quit = true;
        return true;
    }
    if (s->in_output)
        return repl_act_output(s, app, action);
    if (action == ACTION_SQL_TO_SHEET) {
        s->in_output = true;
        return true;
    }
    if (action == ACTION_PAGE_UP || action == ACTION_PAGE_DOWN)
        return repl_scroll(s, action);
    return repl_act_edit(s, app, action);
}

static bool repl_typed(void *state, struct app *app, enum action what, const char *text,
                       enum screen_typed phase) {
    struct repl_state *s = state;
    if (what == ACTION_SQL_HISTORY)
        return typing_search(&s->typing, &app->repl.history, text, phase);
    match_set(&s->pager.search, phase == SCREEN_CANCEL ? "" : text, false);
    if (phase == SCREEN_CANCEL || !*text)
        return true;
    bool found = pager_find(&s->pager, s->out_area.cols, phase == SCREEN_REDRAW ? 1 : 0) ||
                 (phase != SCREEN_REDRAW && pager_find(&s->pager, s->out_area.cols, -1));
    s->follows = false;
    return found;
}

static bool repl_mouse(void *state, struct app *app, const struct input_event *e) {
    struct repl_state *s = state;
    const struct rect *code = &s->typing.area;
    int row = e->row - code->row;
    if (e->button == INPUT_WHEEL_UP || e->button == INPUT_WHEEL_DOWN) {
        list_wheel(&s->pager.list, e->button == INPUT_WHEEL_UP ? -REPL_WHEEL : REPL_WHEEL);
        s->follows = s->pager.list.top + s->pager.list.page >= s->pager.list.count;
        return true;
    }
    s->in_output = row < 0;
    if (row >= 0 && row < code->rows && e->col >= code->col) {
        struct grid as_drawn = {.ascii = app->config.ascii};
        repl_close_completion(s);
        editor_click(&s->typing.editor, &as_drawn, row, e->col - code->col);
    }
    return true;
}

/* What the last code gave; all that was said, without its marks. */
static bool repl_pick(const void *state, const struct app *app, struct screen_pick *what, struct strbuf *one,
                      struct strbuf *whole) {
    const struct strbuf *log = &app->repl.log;
    bool begins = true;
    (void)state;
    (void)what;
    (void)strbuf_add(one, strbuf_str(&app->repl.last), app->repl.last.len);
    for (size_t i = 0; i < log->len; i++) {
        if (!begins)
            (void)strbuf_addc(whole, log->data[i]);
        begins = log->data[i] == '\n';
    }
    return log->len > 0;
}

const struct screen_def screen_repl = {
    .name = "repl",
    .title = "Repl",
    .number = 'J',
    .of_session = true,
    .is_kept = true,
    .state_size = sizeof(struct repl_state),
    .init = repl_init,
    .fini = repl_fini,
    .context = repl_context,
    .draw = repl_draw,
    .act = repl_act,
    .key = repl_typed_key,
    .paste = repl_paste,
    .mouse = repl_mouse,
    .update = repl_update,
    .typed = repl_typed,
    .pick = repl_pick,
    .status = repl_status,
};
