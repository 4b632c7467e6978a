/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repl: code that runs in the job, typed line by line: an editor below, its log above.
 *
 * Nothing runs here: the app asks the agent through the host, and the answer arrives with an
 * update. Input and output stay when the screen is left.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "tui/core/app.h"
#include "tui/core/app_input.h"
#include "tui/core/app_query.h"
#include "tui/core/app_repl.h"
#include "tui/view/pager.h"
#include "tui/screens/typing.h"

#define REPL_AHEAD 512
#define REPL_INDENT 4

/* Something that was pressed while code was running, after an Enter. */
struct repl_ahead {
    enum action action; /* ACTION_NONE: the key types */
    uint32_t key;
};

struct repl_state {
    struct typing typing;
    bool in_output;       /* it has the focus */
    struct pager pager;   /* the log */
    bool follows;         /* its end is visible */
    unsigned logged;      /* of the app's log, when the pager got it */
    unsigned answers;     /* of the app, when they were last read */
    struct rect out_area; /* as last drawn */

    /* In their order, one a line; NULs instead of the line ends, and before a help. */
    struct strbuf names;
    struct typing_choice *choices; /* those of them that fit what is typed, owned */
    size_t n_names;                /* there are */
    size_t from;                   /* byte of the text where the word begins */
    size_t code_from;              /* and where the code begins that the job was asked about */
    bool any_case;                 /* they fit in any case: words of SQL */
    pid_t tables_of;               /* the job whose tables were requested, for completion */
    struct repl_ahead ahead[REPL_AHEAD];
    int n_ahead;
};

/* repl.c: complete what is typed, or indent; names have arrived; the text has changed; keys of the
 * list. */
static void repl_tab(struct repl_state *s, struct app *app);
static void repl_take_names(struct repl_state *s, struct app *app);
static void repl_edited(struct repl_state *s, struct app *app);
static bool repl_act_choices(struct repl_state *s, enum action action);
static void repl_close_completion(struct repl_state *s);

/* repl.c: an action of the editor; false: another one. A key that types. An answer. */
static bool repl_act_edit(struct repl_state *s, struct app *app, enum action action);
static bool repl_key(struct repl_state *s, struct app *app, uint32_t key);
static void repl_take_answer(struct repl_state *s, struct app *app);

/* repl.c */
static void repl_draw(void *state, struct app *app, struct grid *g, struct rect area);
static void repl_status(const void *state, const struct app *app, struct strbuf *out);

/* Give the pager the new part of the log. */
static void repl_follow(struct repl_state *s, const struct app *app);

#define REPL_WHEEL 3

static void repl_init(void *state, struct app *app) {
    struct repl_state *s = state;
    typing_init(&s->typing);
    s->typing.editor.plain = true;
    strbuf_init(&s->names, 1 << 20);
    app_open_history(app, "repl", &app->repl.engine.history, &app->repl.has_history);
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
    return s->in_output ? CONTEXT_REPL_OUTPUT : s->typing.completing ? CONTEXT_REPL_COMPLETE : CONTEXT_REPL;
}

static bool repl_typed_key(void *state, struct app *app, uint32_t key) {
    struct repl_state *s = state;
    return !s->in_output && repl_key(s, app, key);
}

/* Is there an Enter whose outcome is not known, so that what comes next has to wait? */
static bool repl_awaits_enter(const struct repl_state *s, const struct app *app) {
    return s->n_ahead > 0 || app->repl.engine.asked == REPL_WHOLE;
}

static void repl_paste(void *state, struct app *app, const char *text) {
    struct repl_state *s = state;
    if (s->in_output) {
        app_message(app, false, "o goes to the code, where text can be pasted");
        return;
    }
    /* An Enter that was typed before is not for it. */
    if (repl_awaits_enter(s, app)) {
        app_refuse(app, "nothing was pasted: the Enter before it still waits for the job");
        return;
    }
    typing_paste(&s->typing, app, text);
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
            app_quit(app);
        return true;
    case ACTION_SEARCH_NEXT:
    case ACTION_SEARCH_PREV:
        if (!s->pager.search.active)
            app_message(app, false, "no search yet: / searches");
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
        return typing_search(&s->typing, &app->repl.engine.history, text, phase);
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

/* The output of the last code; the whole log, without its marks. */
static bool repl_pick(const void *state, const struct app *app, struct screen_pick *what, struct strbuf *one,
                      struct strbuf *whole) {
    const struct strbuf *log = &app->repl.log;
    bool begins = true;
    (void)state;
    (void)what;
    strbuf_add(one, strbuf_str(&app->repl.last), app->repl.last.len);
    for (size_t i = 0; i < log->len; i++) {
        if (!begins)
            strbuf_addc(whole, log->data[i]);
        begins = log->data[i] == '\n';
    }
    return log->len > 0;
}

const struct screen_def screen_repl = {
    .name = "repl",
    .title = "Repl",
    .is_tab = true,
    .opens = {{ACTION_SHOW_REPL,
               "repl",
               ACTION_TABS | ACTION_CHANGES,
               {"R"},
               NULL,
               0,
               "the Repl screen: code that runs in the job"}},
    .contexts = {{CONTEXT_REPL, "code", "Repl: the code"},
                 {CONTEXT_REPL_COMPLETE, "names", "Repl: names to complete with"},
                 {CONTEXT_REPL_OUTPUT, "output", "Repl: the output"}},
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

/* ---- edit ---- */

/*
 * The keys of the Repl screen's editor: running code after asking whether it is complete, lines
 * with %, keys typed ahead.
 */

/* ---- running ---- */

/* A new line, as deep as the last one, or deeper after a colon. */
static void repl_new_line(struct editor *e) {
    size_t line = e->cursor, deep;
    while (line > 0 && e->text[line - 1] != '\n')
        line--;
    deep = strspn(e->text + line, " ");
    if (deep > e->cursor - line)
        deep = e->cursor - line;
    if (e->cursor > 0 && e->text[e->cursor - 1] == ':')
        deep += REPL_INDENT;
    editor_act(e, ACTION_EDIT_NEWLINE);
    while (deep-- > 0)
        editor_insert(e, " ", 1);
}

/* It was accepted: begin the next one. */
static void repl_empty(struct repl_state *s) {
    editor_set(&s->typing.editor, "");
    s->typing.history_at = -1;
    s->follows = true;
}

static void repl_run_magic(struct repl_state *s, struct app *app) {
    if (app_repl_run_magic(app, s->typing.editor.text, s->out_area.cols - 2))
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
    if (app_repl_ask(app, REPL_RUN, e->text, len))
        repl_empty(s);
}

/* The cursor is at the end: is the code complete? The job's Python knows; an empty line ends a
 * block. */
static void repl_enter(struct repl_state *s, struct app *app) {
    struct editor *e = &s->typing.editor;
    if (repl_engine_is_blank(e->text)) {
        editor_set(e, "");
        return;
    }
    if (magic_is(e->text)) { /* complete in any line, wherever the cursor is */
        repl_run_magic(s, app);
        return;
    }
    if (!repl_engine_is_blank(e->text + e->cursor)) {
        repl_new_line(e);
        return;
    }
    e->cursor = e->len;
    app_repl_ask(app, REPL_WHOLE, e->text, e->len);
}

static void repl_take_whole(struct repl_state *s, struct app *app) {
    struct editor *e = &s->typing.editor;
    const struct strbuf *asked = &app->repl.engine.code;
    enum repl_code state = app->repl.code_state;
    size_t line = e->len;
    /* It was another text when Enter was pressed: this one may not be meant to run. */
    if (asked->len != e->len || memcmp(strbuf_str(asked), e->text, e->len) != 0) {
        s->n_ahead = 0;
        app_refuse(app, "nothing was run: the code has changed since Enter");
        return;
    }
    while (line > 0 && e->text[line - 1] != '\n')
        line--;
    if (state == REPL_CODE_DONE || (line > 0 && repl_engine_ends_block(state, e->text + line)))
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

/* Keys after an Enter wait for its outcome, as at a shell's prompt. True: this one is kept. */
static bool repl_keep(struct repl_state *s, const struct app *app, enum action action, uint32_t key) {
    bool waits = repl_awaits_enter(s, app) ||
                 (app->repl.engine.asked && (action == ACTION_SQL_ENTER || action == ACTION_SQL_RUN));
    if (waits && s->n_ahead < REPL_AHEAD)
        s->ahead[s->n_ahead++] = (struct repl_ahead){action, key};
    return waits;
}

static void repl_step_history(struct repl_state *s, struct app *app, int step) {
    const char *why = typing_step_history(&s->typing, &app->repl.engine.history, step, "code");
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

static bool repl_act_edit(struct repl_state *s, struct app *app, enum action action) {
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

static bool repl_key(struct repl_state *s, struct app *app, uint32_t key) {
    struct editor *e = &s->typing.editor;
    if (repl_keep(s, app, ACTION_NONE, key))
        return true;
    if (!editor_key(e, key))
        return false;
    repl_edited(s, app);
    return true;
}

/* Handle the keys that were kept, until one has to wait again. */
static void repl_go_on(struct repl_state *s, struct app *app) {
    while (s->n_ahead > 0) {
        struct repl_ahead next = s->ahead[0];
        bool runs = next.action == ACTION_SQL_ENTER || next.action == ACTION_SQL_RUN;
        if (app->repl.engine.asked == REPL_WHOLE || (app->repl.engine.asked && runs))
            return;
        memmove(s->ahead, s->ahead + 1, (size_t)--s->n_ahead * sizeof next);
        if (next.action)
            repl_do(s, app, next.action);
        else if (editor_key(&s->typing.editor, next.key))
            repl_edited(s, app);
    }
}

static void repl_take_answer(struct repl_state *s, struct app *app) {
    const struct app_repl *r = &app->repl;
    if (s->answers == r->answers)
        return;
    s->answers = r->answers;
    if (r->end == APP_REPL_REFUSED && r->ended != REPL_NAMES)
        s->n_ahead = 0; /* the rest was typed for another outcome */
    else if (r->end == APP_REPL_ANSWERED && r->ended == REPL_NAMES)
        repl_take_names(s, app);
    else if (r->end == APP_REPL_ANSWERED && r->ended == REPL_WHOLE)
        repl_take_whole(s, app);
    repl_go_on(s, app);
}

/* ---- complete ---- */

/* The Repl screen's completion: names from the job, and for lines with % what is known here. */

static void repl_close_completion(struct repl_state *s) {
    free(s->choices);
    s->choices = NULL;
    s->n_names = 0;
    strbuf_clear(&s->names);
    s->typing.completing = false;
}

/* Where the word before the cursor begins; in a line with % magic decides. */
static size_t repl_word(const struct editor *e) {
    size_t at = repl_engine_find_word(e->text, e->cursor);
    return at > 0 && e->text[at - 1] == '%' && strspn(e->text, " \t\n") == at - 1 ? at - 1 : at;
}

static bool repl_fits(const struct repl_state *s, const char *name) {
    const char *word = s->typing.editor.text + s->from;
    size_t typed = s->typing.editor.cursor - s->from;
    return (s->any_case ? strncasecmp(name, word, typed) : strncmp(name, word, typed)) == 0;
}

/* Keep those that begin with what is typed now; false: none do. */
static bool repl_choose(struct repl_state *s) {
    const char *end = strbuf_str(&s->names) + s->names.len;
    size_t n = 0;
    for (const char *name = strbuf_str(&s->names), *help; name < end; name = help + strlen(help) + 1) {
        help = name + strlen(name) + 1;
        if (repl_fits(s, name) && n < s->n_names)
            s->choices[n++] = (struct typing_choice){name, help};
    }
    s->typing.choices = (struct list){.count = (int)n, .page = 1};
    s->typing.completing = n > 0;
    return n > 0;
}

static void repl_accept(struct repl_state *s) {
    struct typing *t = &s->typing;
    editor_replace(&t->editor, s->from, t->editor.cursor, s->choices[t->choices.selected].text);
    repl_close_completion(s);
}

/* Length of the common beginning of all choices; whole characters. */
static size_t repl_common(const struct repl_state *s) {
    const char *first = s->choices[0].text;
    size_t n = strlen(first);
    for (int i = 1; i < s->typing.choices.count; i++)
        for (size_t k = 0; k < n; k++)
            if (s->choices[i].text[k] != first[k])
                n = k;
    while (n > 0 && ((unsigned char)first[n] & 0xc0) == 0x80)
        n--;
    return n;
}

/* Keep words, one a line; a help may follow after a tab. */
static void repl_keep_names(struct repl_state *s, const char *text, size_t len) {
    const char *end = text + len;
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        const char *tab = memchr(text, '\t', (size_t)((stop ? stop : end) - text));
        size_t n = (size_t)((stop ? stop : end) - text), word = tab ? (size_t)(tab - text) : n;
        strbuf_add(&s->names, text, word);
        strbuf_addc(&s->names, '\0');
        strbuf_add(&s->names, text + word + (tab != NULL), n - word - (tab != NULL));
        strbuf_addc(&s->names, '\0');
        s->n_names++;
        text += n + (stop != NULL);
    }
    s->choices = calloc(s->n_names + 1, sizeof *s->choices);
}

/* Offer words for the text after byte `from`; inserts their common beginning. */
static void repl_offer(struct repl_state *s, struct app *app, size_t from, const char *text, size_t len,
                       const char *nothing) {
    struct typing *t = &s->typing;
    s->from = from;
    repl_keep_names(s, text, len);
    if (!s->choices || s->names.failed || !repl_choose(s)) {
        repl_close_completion(s);
        app_message(app, false, "%s", nothing);
        return;
    }
    size_t typed = t->editor.cursor - s->from, common = repl_common(s);
    char *part = common > typed ? strndup(s->choices[0].text, common) : NULL;
    if (t->choices.count == 1) {
        repl_accept(s);
    } else if (part) {
        editor_replace(&t->editor, s->from, t->editor.cursor, part);
        repl_choose(s);
    }
    free(part);
}

static void repl_take_names(struct repl_state *s, struct app *app) {
    const struct editor *e = &s->typing.editor;
    const struct app_repl *r = &app->repl;
    repl_close_completion(s);
    /* What was typed meanwhile may mean something else. */
    if (s->code_from > e->cursor || r->engine.code.len != e->cursor - s->code_from ||
        memcmp(strbuf_str(&r->engine.code), e->text + s->code_from, r->engine.code.len) != 0)
        return;
    s->any_case = false;
    repl_offer(s, app, repl_word(e), strbuf_str(&r->names), r->names.len,
               "the job has no name that starts like this");
}

static void repl_ask_names(struct repl_state *s, struct app *app, size_t from) {
    const struct editor *e = &s->typing.editor;
    const char *why = app_repl_why_busy(app);
    if (app->repl.engine.asked == REPL_NAMES)
        return; /* they are under way */
    if (why) {
        app_message(app, false, "%s", why);
        return;
    }
    s->code_from = from;
    app_repl_ask(app, REPL_NAMES, e->text + from, e->cursor - from);
}

/* The kind of this line does not depend on the text after the cursor. */
static void repl_complete_magic(struct repl_state *s, struct app *app) {
    const struct editor *e = &s->typing.editor;
    struct strbuf words;
    char *before = strndup(e->text, e->cursor);
    size_t from = 0;
    if (!before)
        return;
    strbuf_init(&words, 1 << 20);
    enum magic_completion how = magic_complete(before, app_catalog(app), &words, &from);
    repl_close_completion(s);
    s->any_case = true;
    if (how == MAGIC_COMPLETES_CODE)
        repl_ask_names(s, app, from);
    else
        repl_offer(s, app, from, strbuf_str(&words), words.len, "no completion");
    strbuf_fini(&words);
    free(before);
}

static void repl_tab(struct repl_state *s, struct app *app) {
    struct editor *e = &s->typing.editor;
    size_t line = e->cursor;
    while (line > 0 && e->text[line - 1] != '\n')
        line--;
    if (strspn(e->text + line, " \t") >= e->cursor - line)
        editor_insert(e, "    ", REPL_INDENT);
    else if (magic_is(e->text))
        repl_complete_magic(s, app);
    else
        repl_ask_names(s, app, 0);
}

static void repl_edited(struct repl_state *s, struct app *app) {
    const struct editor *e = &s->typing.editor;
    s->typing.history_at = -1;
    if (s->typing.completing && (e->cursor < s->from || repl_word(e) != s->from || !repl_choose(s)))
        repl_close_completion(s);
    /* They will be there when Tab is pressed. */
    if (s->tables_of != app->pid && magic_is(e->text)) {
        s->tables_of = app->pid;
        app_query_tables(app);
    }
}

static bool repl_act_choices(struct repl_state *s, enum action action) {
    if (action == ACTION_SQL_ACCEPT)
        repl_accept(s);
    else if (action == ACTION_BACK || action == ACTION_SQL_CANCEL)
        repl_close_completion(s);
    else
        return typing_act_choices(&s->typing, action);
    return true;
}

/* ---- draw ---- */

/* The Repl screen: the log, a status line, what is typed, and completion above it. */

#define REPL_PROMPT ">>> "
#define REPL_PROMPT_MORE "... "
#define REPL_PROMPT_COLS 4
#define REPL_RUNS_S 0.5 /* code that runs for so long is mentioned */

static void repl_follow(struct repl_state *s, const struct app *app) {
    if (s->logged == app->repl.logged)
        return;
    struct match search = s->pager.search;
    struct list list = s->pager.list;
    s->logged = app->repl.logged;
    pager_fini(&s->pager);
    if (pager_init(&s->pager, strbuf_str(&app->repl.log), app->repl.log.len) != 0)
        return;
    s->pager.marked = true;
    s->pager.search = search;
    s->pager.list = list;
}

/* Words of a line, over as many rows as they take; returns these. */
static int repl_draw_words(struct grid *g, struct rect area, int row, enum theme_role role,
                           const char *text) {
    int rows = 0;
    for (char line[512]; *text && row + rows < area.rows; rows++) {
        snprintf(line, sizeof line, "%s", text);
        size_t n = text_fit(line, area.cols - 2);
        size_t cut = n;
        while (line[n] && cut > 0 && line[cut] != ' ')
            cut--;
        n = cut ? cut : n ? n : 1;
        line[n] = '\0';
        grid_text(g, area, row + rows, 1, role, line);
        text += n + (text[n] == ' ');
    }
    return rows;
}

static void repl_draw_nothing(const struct app *app, struct grid *g, struct rect area) {
    static const char *const lines[] = {
        "Code typed here runs in the job, with the names of its __main__.",
        "Enter runs a statement, an empty line ends a block; _ is the last value.",
        "Tab completes names of the job, ctrl-r finds earlier code.",
        "ctrl-c interrupts. Esc: to the output, where letters are keys.",
        "%help lists commands of our own: %bt, %q SQL, %tensors, %steps, ...",
    };
    const char *why = app_repl_why_not(app);
    int row = 0;
    if (why)
        row += repl_draw_words(g, area, row, ROLE_CONN_WAIT, why) + 1;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        row += repl_draw_words(g, area, row, ROLE_MUTED, lines[i]);
}

static void repl_draw_output(struct repl_state *s, const struct app *app, struct grid *g, struct rect area) {
    s->out_area = area;
    repl_follow(s, app);
    if (!app->repl.log.len) {
        repl_draw_nothing(app, g, area);
        return;
    }
    if (s->follows)
        s->pager.list.top = s->pager.list.selected = INT_MAX / 2;
    pager_draw(&s->pager, g, area);
    s->follows = s->follows || s->pager.list.top + s->pager.list.page >= s->pager.list.count;
}

/* Where code runs. */
static void repl_draw_where(const struct app *app, struct grid *g, struct rect line, int col) {
    const struct wire_eval *want = &app->repl.engine.want;
    char text[160] = "runs in the job, with the names of its __main__";
    if (want->tid > 0)
        snprintf(text, sizeof text, "runs in the job, with the names of frame %lld:%lld; %%frame off",
                 (long long)want->tid, (long long)want->depth);
    else if (data_is_recorded(&app->data) || app->data.paused)
        snprintf(text, sizeof text, "runs in the job now, not at the time shown");
    grid_text_fit(g, line, 0, col, line.cols - col, ROLE_TABLE_HEAD, GRID_LEFT, text);
}

static void repl_draw_title(const struct repl_state *s, const struct app *app, struct grid *g,
                            struct rect line) {
    const struct app_repl *r = &app->repl;
    const char *why = app_repl_why_not(app);
    grid_fill(g, line, ROLE_TABLE_HEAD);
    int col = grid_text(g, line, 0, 0, s->in_output ? ROLE_TITLE : ROLE_TITLE_FOCUS, " Code ") + 1;
    double age_s = app->now_s - r->began_s;
    if (app_repl_runs(app) && r->engine.interrupted)
        col += grid_text(g, line, 0, col, ROLE_STATUS_ON, " ending ") + 1;
    else if (app_repl_runs(app) && age_s >= REPL_RUNS_S)
        col += grid_printf(g, line, 0, col, ROLE_STATUS_ON,
                           r->engine.asked == REPL_QUERY ? " looking %.0f s: ctrl-c ends it "
                                                         : " running %.0f s: ctrl-c ends it ",
                           age_s) +
               1;
    else if (why)
        grid_text_fit(g, line, 0, col, line.cols - col, ROLE_STATUS_BAD, GRID_LEFT, why);
    else
        repl_draw_where(app, g, line, col);
    if (!s->follows && s->pager.list.count > 0 && col < line.cols - 24)
        grid_text_fit(g, line, 0, line.cols - 22, 22, ROLE_STATUS_ON, GRID_LEFT, " PgDn: more below ");
}

static void repl_draw_code(struct repl_state *s, struct app *app, struct grid *g, struct rect area) {
    struct editor *e = &s->typing.editor;
    int row, col;
    struct rect text = {area.row, area.col + REPL_PROMPT_COLS, area.rows, area.cols - REPL_PROMPT_COLS};
    s->typing.area = text;
    grid_fill(g, area, ROLE_TEXT);
    editor_draw(e, g, text, &row, &col);
    for (int i = 0; i < area.rows && e->top + i < editor_lines(e); i++)
        grid_text(g, area, i, 0, ROLE_LABEL, e->top + i ? REPL_PROMPT_MORE : REPL_PROMPT);
    if (!s->in_output && !app->prompt_for) {
        app->cursor_row = row;
        app->cursor_col = col;
    }
}

static struct typing_choice repl_choice(const void *arg, int i) {
    return ((const struct repl_state *)arg)->choices[i];
}

static void repl_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct repl_state *s = state;
    int rows = editor_lines(&s->typing.editor), most = area.rows / 2;
    rows = rows > most ? most : rows;
    rows = rows < 1 ? 1 : rows;
    struct rect out = {area.row, area.col, area.rows - rows - 1, area.cols};
    struct rect line = {area.row + out.rows, area.col, 1, area.cols};
    repl_draw_output(s, app, g, out);
    repl_draw_title(s, app, g, line);
    repl_draw_code(s, app, g, (struct rect){line.row + 1, area.col, rows, area.cols});
    if (s->typing.completing && !s->in_output)
        typing_draw_choices(&s->typing, g, area, s->from, repl_choice, s);
}

static void repl_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct repl_state *s = state;
    const struct list *l = &s->pager.list;
    if (s->in_output) {
        if (l->count)
            strbuf_addf(out, "Line %d of %d", l->top + 1, l->count);
        if (s->pager.search.active)
            strbuf_addf(out, "   /%s", s->pager.search.text);
        return;
    }
    if (s->typing.completing) {
        strbuf_addf(out, "%d of %d", s->typing.choices.selected + 1, s->typing.choices.count);
        return;
    }
    if (s->n_ahead)
        strbuf_addf(out, "%d key%s wait for the running code", s->n_ahead, s->n_ahead == 1 ? "" : "s");
    else if (s->typing.history_at >= 0)
        strbuf_addf(out, "code %ld of %zu that was run", s->typing.history_at + 1,
                    app->repl.engine.history.n);
    else if (editor_lines(&s->typing.editor) > 1)
        strbuf_adds(out, "an empty line runs the block; F5 runs it as it is");
}
