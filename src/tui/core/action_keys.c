/* SPDX-License-Identifier: Apache-2.0 */
/* action_keys: see action_keys.h. */
#include "tui/core/action_keys.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/option.h"
#include "tui/core/action_table.h"
#include "tui/keys/input.h"

#define ACTION_LINE 256
#define ACTION_MAX_NAMES 256 /* actions of one context that are searched for a suggestion */

#define ACTION_MAX_CHANGES 2048

/* The keys of a row in a context, as codes. */
struct action_keys {
    int line; /* of the user's file; 0: what its other lines leave; -1: the keys of the table */
    size_t n;
    uint32_t codes[ACTION_MAX_KEYS];
};

static struct action_keys action_defaults[ACTION_MAX_ROWS];
static bool action_has_defaults;
static struct action_keys action_changes[ACTION_MAX_CHANGES];
static size_t action_n_changes;

/* Number of a row's change in a context, plus 1, because it is needed for every key that is drawn;
 * 0: none. */
static uint16_t action_change_at[ACTION_MAX_ROWS][CONTEXT_COUNT];

/* Resolve the names in the table, once. */
static void action_load_defaults(void) {
    for (const struct action_def *a = action_table(); a->action; a++) {
        struct action_keys *keys = &action_defaults[a - action_table()];
        keys->line = -1;
        for (size_t i = 0; i < ACTION_MAX_KEYS && a->keys[i]; i++)
            keys->codes[keys->n++] = input_key_parse(a->keys[i]);
    }
    action_has_defaults = true;
}

static const struct action_keys *action_keys_of(const struct action_def *row, enum action_context context) {
    size_t at = (size_t)(row - action_table());
    if (!action_has_defaults)
        action_load_defaults();
    uint16_t change = action_change_at[at][context];
    return change ? &action_changes[change - 1] : &action_defaults[at];
}

void action_reset_keys(void) {
    memset(action_change_at, 0, sizeof action_change_at);
    action_n_changes = 0;
}

/* Give a row other keys in a context. False: no room for more. */
static bool action_set_keys(const struct action_def *row, enum action_context context,
                            const struct action_keys *keys) {
    uint16_t *change = &action_change_at[row - action_table()][context];
    if (!*change) {
        if (action_n_changes == ACTION_MAX_CHANGES)
            return false;
        *change = (uint16_t)++action_n_changes;
    }
    action_changes[*change - 1] = *keys;
    return true;
}

static bool action_has_key(const struct action_def *row, enum action_context context, uint32_t key) {
    const struct action_keys *keys = action_keys_of(row, context);
    for (size_t i = 0; i < keys->n; i++)
        if (keys->codes[i] == key)
            return true;
    return false;
}

uint32_t action_key(const struct action_def *row, enum action_context context, size_t i) {
    const struct action_keys *keys = action_keys_of(row, context);
    return i < keys->n ? keys->codes[i] : (uint32_t)INPUT_NONE;
}

enum action action_find(enum action_context context, uint32_t key) {
    for (const struct action_def *a = action_table(); a->action; a++)
        if ((a->contexts & ACTION_IN(context)) && action_has_key(a, context, key))
            return a->action;
    return ACTION_NONE;
}

void action_keys_text(const struct action_def *row, enum action_context context, char *buf, size_t cap) {
    const struct action_keys *keys = action_keys_of(row, context);
    size_t used = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < keys->n && used < cap; i++) {
        char name[ACTION_KEY_NAME];
        input_key_name(keys->codes[i], name, sizeof name);
        int n = snprintf(buf + used, cap - used, "%s%s", used ? " " : "", name);
        if (n < 0)
            return;
        used += (size_t)n;
    }
}

void action_list_keys(struct strbuf *out) {
    for (int at = 0; at < CONTEXT_COUNT; at++) {
        enum action_context c = (enum action_context)at;
        for (const struct action_def *a = action_table(); a->action; a++) {
            uint32_t key;
            for (size_t i = 0; (a->contexts & ACTION_IN(c)) && (key = action_key(a, c, i)); i++) {
                char name[ACTION_KEY_NAME];
                input_key_name(key, name, sizeof name);
                strbuf_addf(out, "%-8s %-10s %-16s %s\n", action_context_name(c), name, a->name, a->help);
            }
        }
    }
}

/* ---- keys from the user's file ---- */

/* The name of the key that terminals send for another one. NULL: it stands for itself. */
static const char *action_key_sent_as(uint32_t key) {
    switch (key) {
    case INPUT_CTRL + 'i':
        return "Tab";
    case INPUT_CTRL + 'm':
        return "Enter";
    case INPUT_CTRL + '[':
        return "Esc";
    default:
        return NULL;
    }
}

static int action_parse_key(struct action_keys *keys, char *word, struct err *e) {
    char *control = strstr(word, "ctrl-");
    if (control && control[5])
        control[5] = (char)tolower((unsigned char)control[5]);
    uint32_t key = input_key_parse(word);
    if (key == INPUT_NONE)
        return err_set(e, ERR_USAGE,
                       "there is no key '%s': keys are named as in --list-keys (q, Space, ctrl-l, F3)", word);
    const char *same = action_key_sent_as(key);
    if (same) {
        char name[ACTION_KEY_NAME];
        input_key_name(key, name, sizeof name);
        return err_set(e, ERR_USAGE, "terminals send %s for %s: use that name", same, name);
    }
    for (size_t i = 0; i < keys->n; i++)
        if (keys->codes[i] == key)
            return 0;
    if (keys->n == ACTION_MAX_KEYS)
        return err_set(e, ERR_USAGE, "an action can have at most %d keys", ACTION_MAX_KEYS);
    keys->codes[keys->n++] = key;
    return 0;
}

static int action_parse_keys(struct action_keys *keys, const char *text, struct err *e) {
    char copy[ACTION_LINE], *save = NULL;
    if (strlen(text) >= sizeof copy)
        return err_set(e, ERR_USAGE, "too long for a list of keys");
    memcpy(copy, text, strlen(text) + 1);
    if (strcmp(copy, "none") == 0)
        return 0;
    for (char *word = strtok_r(copy, " \t", &save); word; word = strtok_r(NULL, " \t", &save))
        if (action_parse_key(keys, word, e) != 0)
            return -1;
    return keys->n ? 0 : err_set(e, ERR_USAGE, "no key given: write 'none' for no key");
}

static int action_no_context(const char *name, struct err *e) {
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

static int action_no_action(uint64_t contexts, const char *context, const char *name, struct err *e) {
    const char *names[ACTION_MAX_NAMES + 1];
    size_t n = 0;
    for (const struct action_def *a = action_table(); a->action && n < ACTION_MAX_NAMES; a++)
        if (a->contexts & contexts)
            names[n++] = a->name;
    names[n] = NULL;
    const char *near = option_suggest(name, names);
    if (near)
        return err_set(e, ERR_USAGE, "%s has no action '%s': did you mean %s.%s?", context, name, context,
                       near);
    return err_set(e, ERR_USAGE, "%s has no action '%s': --list-keys names them", context, name);
}

/* The contexts of a name before the dot; 0: there is none with that name. */
static uint64_t action_contexts_named(const char *name) {
    if (strcmp(name, "all") == 0)
        return ACTION_EVERYWHERE;
    for (int c = 0; c < CONTEXT_COUNT; c++)
        if (strcmp(action_context_name((enum action_context)c), name) == 0)
            return ACTION_IN(c);
    return 0;
}

/* Does one of the keys type a character? */
static bool action_keys_type(const struct action_keys *keys) {
    for (size_t i = 0; i < keys->n; i++)
        if (keys->codes[i] < INPUT_SPECIAL)
            return true;
    return false;
}

int action_bind_keys(const char *name, const char *text, int line, struct err *e) {
    struct action_keys keys = {.line = line};
    char context[32];
    const char *dot = strchr(name, '.');
    if (!dot || dot == name || !dot[1] || (size_t)(dot - name) >= sizeof context)
        return err_set(e, ERR_USAGE, "'%s' is not an action: write CONTEXT.ACTION, such as threads.freeze",
                       name);
    memcpy(context, name, (size_t)(dot - name));
    context[dot - name] = '\0';
    uint64_t contexts = action_contexts_named(context), with_it = 0;
    if (!contexts)
        return action_no_context(context, e);
    for (int c = 0; c < CONTEXT_COUNT; c++)
        if ((contexts & ACTION_IN(c)) && action_named(dot + 1, (enum action_context)c))
            with_it |= ACTION_IN(c);
    if (!with_it)
        return action_no_action(contexts, context, dot + 1, e);
    if (action_parse_keys(&keys, text, e) != 0)
        return -1;
    if (action_keys_type(&keys) && !(with_it &= ~ACTION_TYPED))
        return err_set(e, ERR_USAGE,
                       "in %s letters are typed: give a key with ctrl- or alt-, or a function key", context);
    for (int c = 0; c < CONTEXT_COUNT; c++)
        if ((with_it & ACTION_IN(c)) &&
            !action_set_keys(action_named(dot + 1, (enum action_context)c), (enum action_context)c, &keys))
            return err_set(e, ERR_USAGE, "too many keys are changed");
    return 0;
}

/* Two rows of a context that have the same key. */
struct action_clash {
    enum action_context context;
    const struct action_def *winner, *loser;
    uint32_t key;
    const char *source;
    struct strbuf *warnings;
};

static void action_warn_of_clash(const struct action_clash *k, bool is_left_without) {
    const char *context = action_context_name(k->context);
    int won = action_keys_of(k->winner, k->context)->line, lost = action_keys_of(k->loser, k->context)->line;
    char place[ACTION_LINE], key[ACTION_KEY_NAME];
    if (!k->warnings || (lost <= 0 && !is_left_without))
        return;
    /* One warning for a line, in however many contexts it is wrong. */
    snprintf(place, sizeof place, "%s:%d: ", k->source, lost > 0 ? lost : won);
    if (strstr(strbuf_str(k->warnings), place))
        return;
    input_key_name(k->key, key, sizeof key);
    if (lost > 0)
        strbuf_addf(k->warnings, "%sin %s '%s' is %s already, by line %d: give %s another\n", place, context,
                    key, k->winner->name, won, k->loser->name);
    else
        strbuf_addf(k->warnings,
                    "%sin %s '%s' was the only key of %s: give it another, %s.%s = KEY (or none)\n", place,
                    context, key, k->loser->name, context, k->loser->name);
}

/* The loser loses the key. */
static void action_settle_clash(const struct action_clash *k) {
    const struct action_keys *before = action_keys_of(k->loser, k->context);
    struct action_keys left = {.line = before->line > 0 ? before->line : 0};
    for (size_t i = 0; i < before->n; i++)
        if (before->codes[i] != k->key)
            left.codes[left.n++] = before->codes[i];
    action_warn_of_clash(k, left.n == 0);
    action_set_keys(k->loser, k->context, &left);
}

/* Find other rows with a key of `row`, which a line of the file has changed. */
static void action_settle_row(const struct action_def *row, enum action_context context, const char *source,
                              struct strbuf *warnings) {
    uint32_t key;
    int line = action_keys_of(row, context)->line;
    for (size_t i = 0; (key = action_key(row, context, i));) {
        bool kept = true;
        for (const struct action_def *a = action_table(); a->action && kept; a++) {
            if (a == row || !(a->contexts & ACTION_IN(context)) || !action_has_key(a, context, key))
                continue;
            int other = action_keys_of(a, context)->line;
            kept = other <= 0 || other > line;
            action_settle_clash(&(struct action_clash){.context = context,
                                                       .winner = kept ? row : a,
                                                       .loser = kept ? a : row,
                                                       .key = key,
                                                       .source = source,
                                                       .warnings = warnings});
        }
        i += kept;
    }
}

void action_settle_keys(const char *source, struct strbuf *warnings) {
    for (int c = 0; c < CONTEXT_COUNT; c++)
        for (const struct action_def *a = action_table(); a->action; a++)
            if ((a->contexts & ACTION_IN(c)) && action_keys_of(a, (enum action_context)c)->line > 0)
                action_settle_row(a, (enum action_context)c, source, warnings);
}

void action_print_keys(const char *source, struct strbuf *out) {
    for (int at = 0; at < CONTEXT_COUNT; at++) {
        enum action_context c = (enum action_context)at;
        strbuf_addf(out, "# %s\n", action_context_title(c));
        for (const struct action_def *a = action_table(); a->action; a++) {
            char keys[ACTION_MAX_KEYS * ACTION_KEY_NAME];
            if (!(a->contexts & ACTION_IN(c)))
                continue;
            action_keys_text(a, c, keys, sizeof keys);
            int line = action_keys_of(a, c)->line;
            if (line > 0)
                strbuf_addf(out, "# %s:%d\n", source, line);
            else if (line == 0)
                strbuf_addf(out, "# keys that other lines of %s leave\n", source);
            strbuf_addf(out, "%s.%s = %s\n", action_context_name(c), a->name, *keys ? keys : "none");
        }
    }
}
