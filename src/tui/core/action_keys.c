/* SPDX-License-Identifier: Apache-2.0 */
/* action_keys: see action_keys.h. */
#include "tui/core/action_keys.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/option.h"
#include "tui/core/action.h"
#include "tui/core/input.h"

#define ACTION_KEYS_LINE 256
#define ACTION_KEYS_NAMES 256 /* actions of one context that are looked through for a suggestion */

struct action_keys_list {
    char names[ACTION_MAX_KEYS][ACTION_KEY_NAME];
    size_t n;
    bool letters; /* one of them types a character */
};

/* What terminals send for another key; the name of that. NULL: for itself. */
static const char *action_keys_sent_for(const char *name) {
    static const char *const pairs[][2] = {{"ctrl-i", "Tab"}, {"ctrl-m", "Enter"}, {"ctrl-[", "Esc"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (strcmp(pairs[i][0], name) == 0)
            return pairs[i][1];
    return NULL;
}

static int action_keys_add(struct action_keys_list *list, char *word, struct err *e) {
    char name[32];
    char *control = strstr(word, "ctrl-");
    if (control && control[5])
        control[5] = (char)tolower((unsigned char)control[5]);
    uint32_t key = input_key_parse(word);
    if (key == INPUT_NONE)
        return err_set(e, ERR_USAGE,
                       "there is no key '%s': keys are named as in --list-keys (q, Space, ctrl-l, F3)", word);
    input_key_name(key, name, sizeof name);
    const char *same = action_keys_sent_for(name);
    if (same)
        return err_set(e, ERR_USAGE, "a terminal sends %s for %s: name that one", same, name);
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->names[i], name) == 0)
            return 0;
    if (list->n == ACTION_MAX_KEYS || strlen(name) >= ACTION_KEY_NAME)
        return err_set(e, ERR_USAGE, "an action has %d keys at most", ACTION_MAX_KEYS);
    memcpy(list->names[list->n++], name, strlen(name) + 1);
    list->letters |= key < INPUT_SPECIAL;
    return 0;
}

static int action_keys_parse(struct action_keys_list *list, const char *text, struct err *e) {
    char copy[ACTION_KEYS_LINE], *save = NULL;
    *list = (struct action_keys_list){.n = 0};
    if (strlen(text) >= sizeof copy)
        return err_set(e, ERR_USAGE, "too long for a list of keys");
    memcpy(copy, text, strlen(text) + 1);
    if (strcmp(copy, "none") == 0)
        return 0;
    for (char *word = strtok_r(copy, " \t", &save); word; word = strtok_r(NULL, " \t", &save))
        if (action_keys_add(list, word, e) != 0)
            return -1;
    return list->n ? 0 : err_set(e, ERR_USAGE, "no key is named: 'none' if there shall be none");
}

/* Row of an action by its name in a context, or NULL. */
static const struct action_def *action_keys_row(enum action_context context, const char *name) {
    for (const struct action_def *a = action_table; a->action; a++)
        if ((a->contexts & ACTION_IN(context)) && strcmp(a->name, name) == 0)
            return a;
    return NULL;
}

static int action_keys_no_context(const char *name, struct err *e) {
    const char *names[CONTEXT_COUNT + 2];
    for (int c = 0; c < CONTEXT_COUNT; c++)
        names[c] = action_context_name((enum action_context)c);
    names[CONTEXT_COUNT] = "all";
    names[CONTEXT_COUNT + 1] = NULL;
    const char *near = option_suggest(name, names);
    if (near)
        return err_set(e, ERR_USAGE, "there is no context '%s': did you mean %s?", name, near);
    return err_set(e, ERR_USAGE, "there is no context '%s': --list-keys names them, first in each line",
                   name);
}

static int action_keys_no_action(unsigned contexts, const char *context, const char *name, struct err *e) {
    const char *names[ACTION_KEYS_NAMES + 1];
    size_t n = 0;
    for (const struct action_def *a = action_table; a->action && n < ACTION_KEYS_NAMES; a++)
        if (a->contexts & contexts)
            names[n++] = a->name;
    names[n] = NULL;
    const char *near = option_suggest(name, names);
    if (near)
        return err_set(e, ERR_USAGE, "%s has no action '%s': did you mean %s.%s?", context, name, context,
                       near);
    return err_set(e, ERR_USAGE, "%s has no action '%s': --list-keys names them", context, name);
}

/* The contexts of a name before the dot; 0 there is none of that name. */
static unsigned action_keys_contexts(const char *name) {
    if (strcmp(name, "all") == 0)
        return ACTION_EVERYWHERE;
    for (int c = 0; c < CONTEXT_COUNT; c++)
        if (strcmp(action_context_name((enum action_context)c), name) == 0)
            return ACTION_IN(c);
    return 0;
}

int action_keys_bind(const char *name, const char *keys, int line, struct err *e) {
    struct action_keys_list list;
    const char *given[ACTION_MAX_KEYS];
    char context[32];
    const char *dot = strchr(name, '.');
    if (!dot || dot == name || !dot[1] || (size_t)(dot - name) >= sizeof context)
        return err_set(e, ERR_USAGE, "'%s' names no action: write CONTEXT.ACTION, such as threads.pause",
                       name);
    memcpy(context, name, (size_t)(dot - name));
    context[dot - name] = '\0';
    unsigned contexts = action_keys_contexts(context), with_it = 0;
    if (!contexts)
        return action_keys_no_context(context, e);
    for (int c = 0; c < CONTEXT_COUNT; c++)
        if ((contexts & ACTION_IN(c)) && action_keys_row((enum action_context)c, dot + 1))
            with_it |= ACTION_IN(c);
    if (!with_it)
        return action_keys_no_action(contexts, context, dot + 1, e);
    if (action_keys_parse(&list, keys, e) != 0)
        return -1;
    if (list.letters && !(with_it &= ~ACTION_TYPED))
        return err_set(e, ERR_USAGE,
                       "in %s letters are typed: give a key with ctrl- or alt-, or a function key", context);
    for (size_t i = 0; i < list.n; i++)
        given[i] = list.names[i];
    for (int c = 0; c < CONTEXT_COUNT; c++)
        if ((with_it & ACTION_IN(c)) && !action_set_keys(action_keys_row((enum action_context)c, dot + 1),
                                                         (enum action_context)c, given, list.n, line))
            return err_set(e, ERR_USAGE, "too many keys are changed");
    return 0;
}

/* ---- settling ---- */

struct action_keys_clash {
    enum action_context context;
    const struct action_def *winner, *loser;
    const char *key;
    const char *source;
    struct strbuf *warnings;
};

static void action_keys_warn(const struct action_keys_clash *k, bool is_left_without) {
    const char *context = action_context_name(k->context);
    int won = action_keys_line(k->winner, k->context), lost = action_keys_line(k->loser, k->context);
    char place[ACTION_KEYS_LINE];
    if (!k->warnings || (lost <= 0 && !is_left_without))
        return;
    /* A line is said to be wrong once, in however many contexts it is. */
    (void)snprintf(place, sizeof place, "%s:%d: ", k->source, lost > 0 ? lost : won);
    if (strstr(strbuf_str(k->warnings), place))
        return;
    if (lost > 0)
        (void)strbuf_addf(k->warnings, "%sin %s '%s' is %s already, by line %d: give %s another\n", place,
                          context, k->key, k->winner->name, won, k->loser->name);
    else
        (void)strbuf_addf(k->warnings,
                          "%sin %s '%s' was the only key of %s: give it another, %s.%s = KEY (or none)\n",
                          place, context, k->key, k->loser->name, context, k->loser->name);
}

/* The loser goes without the key. */
static void action_keys_take(const struct action_keys_clash *k) {
    const char *left[ACTION_MAX_KEYS], *key;
    char copies[ACTION_MAX_KEYS][ACTION_KEY_NAME];
    size_t n = 0;
    int line = action_keys_line(k->loser, k->context);
    for (size_t i = 0; (key = action_key(k->loser, k->context, i)); i++)
        if (strcmp(key, k->key) != 0) {
            (void)snprintf(copies[n], sizeof copies[n], "%s", key);
            left[n] = copies[n];
            n++;
        }
    action_keys_warn(k, n == 0);
    (void)action_set_keys(k->loser, k->context, left, n, line > 0 ? line : 0);
}

static bool action_keys_has(const struct action_def *row, enum action_context context, const char *key) {
    const char *own;
    for (size_t i = 0; (own = action_key(row, context, i)); i++)
        if (strcmp(own, key) == 0)
            return true;
    return false;
}

/* Who else has a key of `row`, which a line of the file has changed? */
static void action_keys_settle_row(const struct action_def *row, enum action_context context,
                                   const char *source, struct strbuf *warnings) {
    const char *key;
    int line = action_keys_line(row, context);
    for (size_t i = 0; (key = action_key(row, context, i));) {
        char name[ACTION_KEY_NAME];
        bool kept = true;
        (void)snprintf(name, sizeof name, "%s", key);
        for (const struct action_def *a = action_table; a->action && kept; a++) {
            if (a == row || !(a->contexts & ACTION_IN(context)) || !action_keys_has(a, context, name))
                continue;
            int other = action_keys_line(a, context);
            kept = other <= 0 || other > line;
            action_keys_take(&(struct action_keys_clash){.context = context,
                                                         .winner = kept ? row : a,
                                                         .loser = kept ? a : row,
                                                         .key = name,
                                                         .source = source,
                                                         .warnings = warnings});
        }
        i += kept;
    }
}

void action_keys_settle(const char *source, struct strbuf *warnings) {
    for (int c = 0; c < CONTEXT_COUNT; c++)
        for (const struct action_def *a = action_table; a->action; a++)
            if ((a->contexts & ACTION_IN(c)) && action_keys_line(a, (enum action_context)c) > 0)
                action_keys_settle_row(a, (enum action_context)c, source, warnings);
}

void action_keys_print(const char *source, struct strbuf *out) {
    for (int at = 0; at < CONTEXT_COUNT; at++) {
        enum action_context c = (enum action_context)at;
        (void)strbuf_addf(out, "# %s\n", action_context_title(c));
        for (const struct action_def *a = action_table; a->action; a++) {
            char keys[ACTION_MAX_KEYS * ACTION_KEY_NAME];
            if (!(a->contexts & ACTION_IN(c)))
                continue;
            action_keys_text(a, c, keys, sizeof keys);
            int line = action_keys_line(a, c);
            if (line > 0)
                (void)strbuf_addf(out, "# %s:%d\n", source, line);
            else if (line == 0)
                (void)strbuf_addf(out, "# what other lines of %s leave\n", source);
            (void)strbuf_addf(out, "%s.%s = %s\n", action_context_name(c), a->name, *keys ? keys : "none");
        }
    }
}
