/* SPDX-License-Identifier: Apache-2.0 */
/* screen: see screen.h. */
#include "tui/core/screen.h"

#include "tui/core/app.h"
#include "tui/view/view.h"

#define SCREEN_POINTER(NAME, name) &screen_##name,

const struct screen_def *const screen_list[] = {SCREEN_LIST(SCREEN_POINTER, ACTION_NOTHING) NULL};

const struct screen_def *screen_of_action(enum action action) {
    for (const struct screen_def *const *s = screen_list; *s; s++)
        if (action && (*s)->opens[0].action == action)
            return *s;
    return NULL;
}

const struct screen_def *screen_tab(int i) {
    static const struct screen_def *const first[] = {&screen_overview, &screen_threads, &screen_flame,
                                                     &screen_top,      &screen_sql,     &screen_repl};
    int n_first = (int)(sizeof first / sizeof first[0]);
    if (i < n_first)
        return first[i];
    i -= n_first;
    for (const struct screen_def *const *s = screen_list; *s; s++) {
        bool is_first = false;
        for (int k = 0; k < n_first; k++)
            is_first |= first[k] == *s;
        if ((*s)->is_tab && !is_first && i-- == 0)
            return *s;
    }
    return NULL;
}

char screen_tab_key(const struct screen_def *def) { return def->is_tab ? def->opens[0].keys[0][0] : '\0'; }

enum action_context screen_context(const struct screen_def *def, const void *state) {
    return def->context ? def->context(state) : def->keys;
}

unsigned screen_contexts(const struct screen_def *def) {
    unsigned contexts = 0;
    for (int i = 0; i < SCREEN_MAX_CONTEXTS && def->contexts[i].name; i++)
        contexts |= ACTION_IN(def->contexts[i].context);
    return contexts ? contexts : ACTION_IN(def->keys);
}

/* ---- what an open screen does ---- */

struct view *screen_view(const struct app_screen *s) {
    return s->def->view ? s->def->view(s->state) : NULL;
}

bool screen_act(const struct app_screen *s, struct app *app, enum action action) {
    if (s->def->act && s->def->act(s->state, app, action))
        return true;
    struct view *v = screen_view(s);
    enum view_result result = v ? view_act(v, app, action) : VIEW_IGNORED;
    if (result == VIEW_NO_SEARCH)
        app_message(app, false, "nothing was searched for: / searches");
    else if (result == VIEW_NO_MATCH)
        app_refuse(app, "nothing matches '%s'", v->search.text);
    return result != VIEW_IGNORED;
}

bool screen_mouse(const struct app_screen *s, struct app *app, const struct input_event *e) {
    if (s->def->mouse)
        return s->def->mouse(s->state, app, e);
    struct view *v = screen_view(s);
    return v && view_mouse(v, app, e, NULL);
}

bool screen_can_pick(const struct app_screen *s) {
    const struct view *v = screen_view(s);
    return s->def->pick || (v && v->def->put);
}

bool screen_pick(const struct app_screen *s, const struct app *app, struct screen_pick *what,
                 struct strbuf *one, struct strbuf *whole) {
    if (s->def->pick)
        return s->def->pick(s->state, app, what, one, whole);
    const struct view *v = screen_view(s);
    const void *row = v && v->def->put ? view_row(v) : NULL;
    if (row)
        v->def->put(v->owner, row, what, one, whole);
    return row != NULL;
}

bool screen_can_type(const struct app_screen *s) {
    const struct view *v = screen_view(s);
    return s->def->typed || (v && v->def->matches);
}

bool screen_typed(const struct app_screen *s, struct app *app, enum action what, const char *text,
                  enum screen_typed phase) {
    if (s->def->typed)
        return s->def->typed(s->state, app, what, text, phase);
    return view_typed(screen_view(s), app, what, phase == SCREEN_CANCEL ? "" : text);
}

const char *screen_typed_before(const struct app_screen *s, enum action what) {
    const struct view *v = screen_view(s);
    if (s->def->typed_before)
        return s->def->typed_before(s->state, what);
    return v && what == ACTION_FILTER ? v->filter.text : "";
}

bool screen_is_on(const struct app_screen *s, const struct app *app, enum action action) {
    const struct view *v = screen_view(s);
    return (v && action == ACTION_FILTER && v->filter.active) ||
           (v && action == ACTION_PAUSE && app->data.paused) ||
           (s->def->is_on && s->def->is_on(s->state, app, action));
}
