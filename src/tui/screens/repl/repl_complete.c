/* SPDX-License-Identifier: Apache-2.0 */
/* repl_complete: the Repl screen's completion: names that the job tells, and of lines with % what is known here. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tui/screens/repl/repl_state.h"

void repl_close_completion(struct repl_state *s) {
    free(s->choices);
    s->choices = NULL;
    s->n_names = 0;
    strbuf_clear(&s->names);
    s->typing.completing = false;
}

/* Where the word before the cursor begins; that of a line with % has it. */
static size_t repl_word(const struct editor *e) {
    size_t at = e->cursor;
    while (at > 0 &&
           (isalnum((unsigned char)e->text[at - 1]) || e->text[at - 1] == '_' || (e->text[at - 1] & 0x80)))
        at--;
    return at > 0 && e->text[at - 1] == '%' && strspn(e->text, " \t\n") == at - 1 ? at - 1 : at;
}

static bool repl_fits(const struct repl_state *s, const char *name) {
    const char *word = s->typing.editor.text + s->from;
    size_t typed = s->typing.editor.cursor - s->from;
    return (s->any_case ? strncasecmp(name, word, typed) : strncmp(name, word, typed)) == 0;
}

/* Those that begin as what is typed now; false when none do. */
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

/* Bytes that all choices have in common at their beginning; whole characters. */
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

/* Keep words, a line each; behind a tab may be a help. */
static void repl_keep_names(struct repl_state *s, const char *text, size_t len) {
    const char *end = text + len;
    while (text < end) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        const char *tab = memchr(text, '\t', (size_t)((stop ? stop : end) - text));
        size_t n = (size_t)((stop ? stop : end) - text), word = tab ? (size_t)(tab - text) : n;
        (void)strbuf_add(&s->names, text, word);
        (void)strbuf_addc(&s->names, '\0');
        (void)strbuf_add(&s->names, text + word + (tab != NULL), n - word - (tab != NULL));
        (void)strbuf_addc(&s->names, '\0');
        s->n_names++;
        text += n + (stop != NULL);
    }
    s->choices = calloc(s->n_names + 1, sizeof *s->choices);
}

/* Offer words for what is behind byte `from`; what they have in common is typed at once. */
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
        (void)repl_choose(s);
    }
    free(part);
}

void repl_take_names(struct repl_state *s, struct app *app) {
    const struct editor *e = &s->typing.editor;
    const struct app_repl *r = &app->repl;
    repl_close_completion(s);
    /* What was typed meanwhile may mean something else. */
    if (s->code_from > e->cursor || r->code.len != e->cursor - s->code_from ||
        memcmp(strbuf_str(&r->code), e->text + s->code_from, r->code.len) != 0)
        return;
    s->any_case = false;
    repl_offer(s, app, repl_word(e), strbuf_str(&r->answer), r->answer.len,
               "the job knows no name that goes on like this");
}

static void repl_ask_names(struct repl_state *s, struct app *app, size_t from) {
    const struct editor *e = &s->typing.editor;
    const char *why = app_repl_why_busy(app);
    if (app->repl.asked == APP_REPL_NAMES)
        return; /* they are on their way */
    if (why) {
        app_message(app, false, "%s", why);
        return;
    }
    s->code_from = from;
    (void)app_repl_ask(app, APP_REPL_NAMES, e->text + from, e->cursor - from);
}

/* What this line is has nothing to do with what is behind the cursor. */
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
        repl_offer(s, app, from, strbuf_str(&words), words.len, "nothing is known that goes on like this");
    strbuf_fini(&words);
    free(before);
}

void repl_tab(struct repl_state *s, struct app *app) {
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

void repl_edited(struct repl_state *s, struct app *app) {
    const struct editor *e = &s->typing.editor;
    s->typing.history_at = -1;
    if (s->typing.completing && (e->cursor < s->from || repl_word(e) != s->from || !repl_choose(s)))
        repl_close_completion(s);
    if (s->tables_of != app->pid && magic_is(e->text)) { /* they are known by the time that Tab is pressed */
        s->tables_of = app->pid;
        app_query_tables(app);
    }
}

bool repl_act_choices(struct repl_state *s, enum action action) {
    if (action == ACTION_SQL_ACCEPT)
        repl_accept(s);
    else if (action == ACTION_BACK || action == ACTION_SQL_CANCEL)
        repl_close_completion(s);
    else
        return typing_act_choices(&s->typing, action);
    return true;
}
