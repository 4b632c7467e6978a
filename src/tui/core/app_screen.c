/* SPDX-License-Identifier: Apache-2.0 */
/* app_screen: see app_screen.h. */
#include "tui/core/app_screen.h"

#include <stdlib.h>

#include "tui/core/action_table.h"
#include "tui/core/app.h"
#include "tui/core/app_feed.h"
#include "tui/core/job_state.h"
#include "tui/view/view.h"

struct app_screen *app_screen_top(struct app *a) {
    return &a->screens[a->n_screens - 1];
}

/* A screen that was kept when it was closed; its state is NULL if there is none. */
static struct app_screen app_screen_take_kept(struct app *a, const struct screen_def *def) {
    for (int i = 0; i < a->n_kept; i++)
        if (a->kept[i].def == def) {
            struct app_screen s = a->kept[i];
            a->kept[i] = a->kept[--a->n_kept];
            return s;
        }
    return (struct app_screen){def, NULL};
}

void app_screen_push(struct app *a, const struct screen_def *def) {
    if (a->n_screens == APP_MAX_SCREENS)
        return;
    struct app_screen s = app_screen_take_kept(a, def);
    bool is_new = !s.state;
    if (is_new)
        s.state = calloc(1, def->state_size ? def->state_size : 1);
    if (!s.state)
        return;
    a->screens[a->n_screens++] = s;
    a->prompt_for = ACTION_NONE; /* it belonged to the other screen */
    if (is_new && def->init)
        def->init(s.state, a);
    else if (!is_new && def->update)
        def->update(s.state, a);
    a->dirty = true;
}

static void app_screen_free(struct app_screen *s) {
    if (s->def->fini)
        s->def->fini(s->state);
    free(s->state);
}

void app_screen_pop(struct app *a) {
    struct app_screen *s = app_screen_top(a);
    if (s->def->needs_samples)
        a->samples_until_s = a->now_s + APP_SAMPLE_STAY_S;
    if (s->def->is_kept && a->n_kept < APP_MAX_SCREENS)
        a->kept[a->n_kept++] = *s;
    else
        app_screen_free(s);
    a->n_screens--;
    a->prompt_for = ACTION_NONE;
    a->dirty = true;
}

void app_screen_drop_all(struct app *a) {
    while (a->n_screens > 0)
        app_screen_pop(a);
    while (a->n_kept > 0)
        app_screen_free(&a->kept[--a->n_kept]);
}

bool app_screen_open(struct app *a, enum action action) {
    const struct screen_def *def = screen_of_action(action);
    if (!def)
        return false;
    if (app_screen_top(a)->def == def)
        return true;
    /* Tabs are beside each other above the first one; each keeps its state. */
    while (def->is_tab && a->n_screens > 1)
        app_screen_pop(a);
    if (app_screen_top(a)->def != def)
        app_screen_push(a, def);
    return app_screen_top(a)->def == def;
}

bool app_screen_is_offered(const struct app *a, const struct screen_def *def) {
    if (def->of_job && !job_state_is_offered(a))
        return false;
    if (def->needs_gpu && !a->feeds.gpus.n)
        return false;
    for (const struct action_def *d = action_table(); a->row_actions.readonly && d->action; d++)
        if (d->action == def->opens[0].action && (d->contexts & ACTION_CHANGES))
            return false;
    return true;
}

bool app_screen_is_choice(const struct app *a) {
    const struct screen_def *first = a->screens[0].def;
    return first == &screen_picker || first == &screen_job_picker;
}

const struct screen_def *app_screen_tab(const struct app *a) {
    for (int i = a->n_screens - 1; i >= 0; i--)
        if (a->screens[i].def->is_tab)
            return a->screens[i].def;
    return NULL;
}

void app_screen_step(struct app *a, int step) {
    const struct screen_def *current = app_screen_tab(a);
    int at = 0, n = 0;
    for (; screen_tab(n); n++)
        if (screen_tab(n) == current)
            at = n;
    do
        at = (at + step + n) % n;
    while (!app_screen_is_offered(a, screen_tab(at)));
    app_screen_open(a, screen_tab(at)->opens[0].action);
}

void app_screen_update_all(struct app *a) {
    for (int i = 0; i < a->n_screens; i++)
        if (a->screens[i].def->update)
            a->screens[i].def->update(a->screens[i].state, a);
    app_feed_follow_badge(a);
    a->dirty = true;
}

bool app_screen_shows_native(const struct app *a, enum action_context context) {
    return a->native && (a->native_on & ACTION_IN(context));
}

void app_screen_toggle_native(struct app *a, enum action_context context) {
    bool shown = app_screen_shows_native(a, context);
    a->native_on = (a->native ? a->native_on : 0) ^ ACTION_IN(context);
    a->native = a->native_on != 0;
    app_message(a, false,
                shown ? "native frames are their callers' time"
                      : "native frames: from the samples of now on");
}

/* ---- what an open screen does ---- */

struct view *app_screen_view(const struct app_screen *s) {
    return s->def->view ? s->def->view(s->state) : NULL;
}

bool app_screen_act(const struct app_screen *s, struct app *app, enum action action) {
    if (s->def->act && s->def->act(s->state, app, action))
        return true;
    struct view *v = app_screen_view(s);
    enum view_result result = v ? view_act(v, app, action) : VIEW_IGNORED;
    if (result == VIEW_NO_SEARCH)
        app_message(app, false, "no search yet: / searches");
    else if (result == VIEW_NO_MATCH)
        app_refuse(app, "nothing matches '%s'", v->search.text);
    return result != VIEW_IGNORED;
}

bool app_screen_mouse(const struct app_screen *s, struct app *app, const struct input_event *e) {
    if (s->def->mouse)
        return s->def->mouse(s->state, app, e);
    struct view *v = app_screen_view(s);
    return v && view_mouse(v, app, e, NULL);
}

bool app_screen_can_pick(const struct app_screen *s) {
    const struct view *v = app_screen_view(s);
    return s->def->pick || (v && v->def->put);
}

bool app_screen_pick(const struct app_screen *s, const struct app *app, struct screen_pick *what,
                     struct strbuf *one, struct strbuf *whole) {
    if (s->def->pick)
        return s->def->pick(s->state, app, what, one, whole);
    const struct view *v = app_screen_view(s);
    const void *row = v && v->def->put ? view_row(v) : NULL;
    if (row)
        v->def->put(v->owner, row, what, one, whole);
    return row != NULL;
}

bool app_screen_can_type(const struct app_screen *s) {
    const struct view *v = app_screen_view(s);
    return s->def->typed || (v && v->def->matches);
}

bool app_screen_typed(const struct app_screen *s, struct app *app, enum action what, const char *text,
                      enum screen_typed phase) {
    if (s->def->typed)
        return s->def->typed(s->state, app, what, text, phase);
    return view_typed(app_screen_view(s), app, what, phase == SCREEN_CANCEL ? "" : text);
}

const char *app_screen_typed_before(const struct app_screen *s, enum action what) {
    const struct view *v = app_screen_view(s);
    if (s->def->typed_before)
        return s->def->typed_before(s->state, what);
    return v && what == ACTION_FILTER ? v->filter.text : "";
}

bool app_screen_is_on(const struct app_screen *s, const struct app *app, enum action action) {
    const struct view *v = app_screen_view(s);
    return (v && action == ACTION_FILTER && v->filter.active) ||
           (v && action == ACTION_PAUSE && app->data.paused) ||
           (s->def->is_on && s->def->is_on(s->state, app, action));
}
