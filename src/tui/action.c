/* SPDX-License-Identifier: Apache-2.0 */
/* action: see action.h. */
#include "tui/action.h"

#include <stdio.h>
#include <string.h>

#include "tui/input.h"

static const struct {
    const char *name, *title;
} action_contexts[CONTEXT_COUNT] = {
    [CONTEXT_THREADS] = {"threads", "Threads"},
    [CONTEXT_STACK] = {"stack", "Stack of a thread"},
    [CONTEXT_TOP] = {"top", "Top"},
    [CONTEXT_FLAME] = {"flame", "Flame"},
    [CONTEXT_PICKER] = {"picker", "Choice of a process"},
    [CONTEXT_SQL_EDIT] = {"query", "SQL: the query"},
    [CONTEXT_SQL_COMPLETE] = {"complete", "SQL: words to complete with"},
    [CONTEXT_SQL_SHEET] = {"result", "SQL: the result"},
    [CONTEXT_HELP] = {"help", "Help"},
};

enum action action_find(enum action_context context, uint32_t key) {
    char name[32];
    input_key_name(key, name, sizeof name);
    for (const struct action_def *a = action_table; a->action; a++) {
        if (!(a->contexts & ACTION_IN(context)))
            continue;
        for (size_t i = 0; i < ACTION_MAX_KEYS && a->keys[i]; i++)
            if (strcmp(a->keys[i], name) == 0)
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

const char *action_context_name(enum action_context context) { return action_contexts[context].name; }

const char *action_context_title(enum action_context context) { return action_contexts[context].title; }

void action_keys_text(const struct action_def *row, char *buf, size_t cap) {
    size_t used = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < ACTION_MAX_KEYS && row->keys[i] && used < cap; i++) {
        int n = snprintf(buf + used, cap - used, "%s%s", used ? " " : "", row->keys[i]);
        if (n < 0)
            return;
        used += (size_t)n;
    }
}

void action_list_keys(struct strbuf *out) {
    for (int c = 0; c < CONTEXT_COUNT; c++)
        for (const struct action_def *a = action_table; a->action; a++)
            for (size_t i = 0; (a->contexts & ACTION_IN(c)) && i < ACTION_MAX_KEYS && a->keys[i]; i++)
                (void)strbuf_addf(out, "%-8s %-10s %-16s %s\n", action_context_name((enum action_context)c),
                                  a->keys[i], a->name, a->help);
}
