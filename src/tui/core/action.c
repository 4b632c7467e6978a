/* SPDX-License-Identifier: Apache-2.0 */
/* action: see action.h. */
#include "tui/core/action.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tui/core/input.h"

static const struct {
    const char *name, *title;
} action_contexts[CONTEXT_COUNT] = {
    [CONTEXT_THREADS] = {"threads", "Threads"},
    [CONTEXT_STACK] = {"stack", "Stack of a thread"},
    [CONTEXT_TOP] = {"top", "Top"},
    [CONTEXT_FLAME] = {"flame", "Flame"},
    [CONTEXT_OVERVIEW] = {"overview", "Overview"},
    [CONTEXT_LOG] = {"log", "Log"},
    [CONTEXT_TARGETS] = {"targets", "Targets"},
    [CONTEXT_TIMELINE] = {"timeline", "Timeline"},
    [CONTEXT_STEPS] = {"steps", "Steps"},
    [CONTEXT_TENSORS] = {"tensors", "Tensors"},
    [CONTEXT_MODULES] = {"modules", "Modules"},
    [CONTEXT_LOADER] = {"loader", "Loader"},
    [CONTEXT_PICKER] = {"picker", "Choice of a process"},
    [CONTEXT_SQL_EDIT] = {"query", "SQL: the query"},
    [CONTEXT_SQL_COMPLETE] = {"complete", "SQL: words to complete with"},
    [CONTEXT_SQL_SHEET] = {"result", "SQL: the result"},
    [CONTEXT_REPL_EDIT] = {"code", "Repl: the code"},
    [CONTEXT_REPL_COMPLETE] = {"names", "Repl: names to complete with"},
    [CONTEXT_REPL_OUTPUT] = {"output", "Repl: the output"},
    [CONTEXT_HELP] = {"help", "Help"},
    [CONTEXT_MENU] = {"menu", "Menu of a row"},
    [CONTEXT_EXPORT] = {"export", "Export"},
    [CONTEXT_SETUP] = {"setup", "Setup"},
    [CONTEXT_THEMES] = {"themes", "Choice of a theme"},
};

#define ACTION_MAX_CHANGES 2048

/* Keys that a row has in one context instead of its own. */
struct action_change {
    int line;
    size_t n;
    char keys[ACTION_MAX_KEYS][ACTION_KEY_NAME];
};

static struct action_change action_changes[ACTION_MAX_CHANGES];
static size_t action_n_changes;

/* One more than the number of a row's change in a context, which is asked for at every key that is drawn; 0 none. */
static uint16_t action_change_at[ACTION_MAX_ROWS][CONTEXT_COUNT];

static uint16_t *action_place(const struct action_def *row, enum action_context context) {
    size_t at = (size_t)(row - action_table);
    return at < ACTION_MAX_ROWS ? &action_change_at[at][context] : NULL;
}

static struct action_change *action_find_change(const struct action_def *row, enum action_context context) {
    const uint16_t *place = action_place(row, context);
    return place && *place ? &action_changes[*place - 1] : NULL;
}

void action_reset_keys(void) {
    memset(action_change_at, 0, sizeof action_change_at);
    action_n_changes = 0;
}

bool action_set_keys(const struct action_def *row, enum action_context context, const char *const *keys,
                     size_t n, int line) {
    struct action_change *c = action_find_change(row, context);
    uint16_t *place = action_place(row, context);
    if (!c && (action_n_changes == ACTION_MAX_CHANGES || !place))
        return false;
    if (!c) {
        c = &action_changes[action_n_changes++];
        *place = (uint16_t)action_n_changes;
    }
    struct action_change made = {.line = line};
    for (size_t i = 0; i < n && i < ACTION_MAX_KEYS; i++)
        (void)snprintf(made.keys[made.n++], ACTION_KEY_NAME, "%s", keys[i]);
    *c = made;
    return true;
}

int action_keys_line(const struct action_def *row, enum action_context context) {
    const struct action_change *c = action_find_change(row, context);
    return c ? c->line : -1;
}

const char *action_key(const struct action_def *row, enum action_context context, size_t i) {
    const struct action_change *c = action_find_change(row, context);
    if (c)
        return i < c->n ? c->keys[i] : NULL;
    return i < ACTION_MAX_KEYS ? row->keys[i] : NULL;
}

enum action action_find(enum action_context context, uint32_t key) {
    char name[32];
    const char *own;
    input_key_name(key, name, sizeof name);
    for (const struct action_def *a = action_table; a->action; a++) {
        if (!(a->contexts & ACTION_IN(context)))
            continue;
        for (size_t i = 0; (own = action_key(a, context, i)); i++)
            if (strcmp(own, name) == 0)
                return a->action;
    }
    return ACTION_NONE;
}

const struct action_def *action_row(enum action action, enum action_context context) {
    for (const struct action_def *a = action_table; a->action; a++)
        if (a->action == action && (a->contexts & ACTION_IN(context)))
            return a;
    return NULL;
}

const struct action_def *action_named(const char *name, enum action_context context) {
    for (const struct action_def *a = action_table; a->action; a++)
        if ((a->contexts & ACTION_IN(context)) && strcmp(a->name, name) == 0)
            return a;
    return NULL;
}

const char *action_context_name(enum action_context context) { return action_contexts[context].name; }

const char *action_context_title(enum action_context context) { return action_contexts[context].title; }

void action_keys_text(const struct action_def *row, enum action_context context, char *buf, size_t cap) {
    size_t used = 0;
    const char *key;
    buf[0] = '\0';
    for (size_t i = 0; (key = action_key(row, context, i)) && used < cap; i++) {
        int n = snprintf(buf + used, cap - used, "%s%s", used ? " " : "", key);
        if (n < 0)
            return;
        used += (size_t)n;
    }
}

void action_list_keys(struct strbuf *out) {
    for (int at = 0; at < CONTEXT_COUNT; at++) {
        enum action_context c = (enum action_context)at;
        const char *key;
        for (const struct action_def *a = action_table; a->action; a++)
            for (size_t i = 0; (a->contexts & ACTION_IN(c)) && (key = action_key(a, c, i)); i++)
                (void)strbuf_addf(out, "%-8s %-10s %-16s %s\n", action_context_name(c), key, a->name,
                                  a->help);
    }
}
