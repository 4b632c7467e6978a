/* SPDX-License-Identifier: Apache-2.0 */
/* screen: see screen.h. */
#include "tui/core/screen.h"

#define SCREEN_POINTER(NAME, name) &screen_##name,

const struct screen_def *const screen_list[] = {SCREEN_LIST(SCREEN_POINTER, ACTION_NOTHING) NULL};

const struct screen_def *screen_of_action(enum action action) {
    for (const struct screen_def *const *s = screen_list; *s; s++)
        if (action && (*s)->opens[0].action == action)
            return *s;
    return NULL;
}

const struct screen_def *screen_tab(int i) {
    for (const struct screen_def *const *s = screen_list; *s; s++)
        if ((*s)->is_tab && i-- == 0)
            return *s;
    return NULL;
}

char screen_tab_key(const struct screen_def *def) { return def->is_tab ? def->opens[0].keys[0][0] : '\0'; }

enum action_context screen_context(const struct screen_def *def, const void *state) {
    return def->context ? def->context(state) : def->keys;
}

uint64_t screen_contexts(const struct screen_def *def) {
    uint64_t contexts = 0;
    for (int i = 0; i < SCREEN_MAX_CONTEXTS && def->contexts[i].name; i++)
        contexts |= ACTION_IN(def->contexts[i].context);
    return contexts ? contexts : ACTION_IN(def->keys);
}
