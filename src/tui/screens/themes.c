/* SPDX-License-Identifier: Apache-2.0 */
/*
 * themes: choice of a theme. The screen it was opened from is drawn below the list, in the theme that is selected. Enter
 * keeps it; however else it is left, the look is that from before.
 */
#include "tui/screens/screens.h"

#include <stdio.h>
#include <string.h>

#include "tui/widgets/list.h"

#define THEMES_WHEEL 3
#define THEMES_MAX_ROWS 12

struct themes_state {
    struct app *app;
    struct list list;
    struct match search;
    char shown[THEME_MAX_NAME]; /* the one that is selected; "" not yet */
    bool kept;
    struct rect area;
};

/* Look like the selected one. */
static void themes_show(struct themes_state *s) {
    struct app *a = s->app;
    if (s->list.selected >= (int)a->n_themes || strcmp(s->shown, a->themes[s->list.selected]) == 0)
        return;
    (void)snprintf(s->shown, sizeof s->shown, "%s", a->themes[s->list.selected]);
    (void)snprintf(a->wishes.theme, sizeof a->wishes.theme, "%s", s->shown);
}

static void themes_init(void *state, struct app *app) {
    struct themes_state *s = state;
    s->app = app;
    app->wishes.list_themes = true;
}

static void themes_fini(void *state) {
    struct themes_state *s = state;
    if (!s->kept && *s->shown)
        (void)snprintf(s->app->wishes.theme, sizeof s->app->wishes.theme, "%s",
                       s->app->settings.values[SETTINGS_THEME]);
}

/* The names came: the one that is in use is selected, and stays so. */
static void themes_update(void *state, struct app *app) {
    struct themes_state *s = state;
    const char *wanted = *s->shown ? s->shown : app->settings.values[SETTINGS_THEME];
    list_fit(&s->list, (int)app->n_themes, s->list.page);
    for (size_t i = 0; i < app->n_themes; i++)
        if (strcmp(app->themes[i], wanted) == 0) {
            list_select(&s->list, (int)i);
            (void)snprintf(s->shown, sizeof s->shown, "%s", app->themes[i]);
        }
}

static void themes_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct themes_state *s = state;
    int rows = area.rows / 2 < THEMES_MAX_ROWS ? area.rows / 2 : THEMES_MAX_ROWS;
    struct rect list = {area.row + 1, area.col, rows - 1, area.cols};
    struct rect below = {area.row + rows, area.col, area.rows - rows, area.cols};
    s->area = list;
    grid_fill(g, (struct rect){area.row, area.col, 1, area.cols}, ROLE_TABLE_HEAD);
    grid_text_fit(g, area, 0, 1, area.cols - 1, ROLE_TABLE_HEAD, GRID_LEFT,
                  app->n_themes ? "THEME" : "looking for themes");
    list_fit(&s->list, (int)app->n_themes, list.rows);
    for (int i = 0; i < list.rows && s->list.top + i < s->list.count; i++) {
        int at = s->list.top + i;
        struct rect row = {list.row + i, list.col, 1, list.cols};
        const char *name = app->themes[at];
        bool in_use = strcmp(name, app->settings.values[SETTINGS_THEME]) == 0;
        grid_text_fit(g, row, 0, 1, row.cols - 1, ROLE_TEXT, GRID_LEFT, name);
        if (in_use)
            (void)grid_text(g, row, 0, 2 + grid_text_width(g, name), ROLE_MUTED, "(in use)");
        if (at == s->list.selected)
            grid_restyle(g, row, ROLE_SELECTION);
        match_highlight(&s->search, g, row, 0);
    }
    for (int i = app->n_screens - 2; i >= 0; i--) { /* what is set up lies between */
        const struct app_screen *under = &app->screens[i];
        if (under->def == &screen_setup && i > 0)
            continue;
        under->def->draw(under->state, app, g, below);
        return;
    }
}

static bool themes_search(struct themes_state *s, int from, int step) {
    int n = s->list.count;
    for (int i = 0; i < n; i++) {
        int at = ((from + i * step) % n + n) % n;
        if (match_text(&s->search, s->app->themes[at])) {
            list_select(&s->list, at);
            themes_show(s);
            return true;
        }
    }
    return false;
}

static bool themes_typed(void *state, struct app *app, enum action what, const char *text,
                         enum screen_typed phase) {
    struct themes_state *s = state;
    (void)app;
    (void)what;
    match_set(&s->search, phase == SCREEN_CANCEL ? "" : text, false);
    return !s->search.active || themes_search(s, s->list.selected, 1);
}

static void themes_keep(struct themes_state *s, struct app *app) {
    struct err e;
    themes_show(s);
    if (!*s->shown)
        return;
    if (settings_set(app, "theme", s->shown, &e) != 0) {
        app_message(app, true, "%s", e.text);
        return;
    }
    app_message(app, false, "theme %s; F12 saves it", s->shown);
    s->kept = true;
    app_pop(app);
}

static bool themes_act(void *state, struct app *app, enum action action) {
    struct themes_state *s = state;
    switch ((int)action) {
    case ACTION_THEME_KEEP:
        themes_keep(s, app);
        return true;
    case ACTION_SEARCH_NEXT:
    case ACTION_SEARCH_PREV: {
        int step = action == ACTION_SEARCH_NEXT ? 1 : -1;
        if (!s->search.active || !themes_search(s, s->list.selected + step, step))
            app_message(app, false, "nothing was searched for, or nothing matches");
        return true;
    }
    case ACTION_BACK:
        if (!s->search.active)
            return false;
        match_clear(&s->search);
        return true;
    default:
        if (!list_move(&s->list, action))
            return false;
        themes_show(s);
        return true;
    }
}

static bool themes_mouse(void *state, struct app *app, const struct input_event *e) {
    struct themes_state *s = state;
    (void)app;
    if (e->button != INPUT_CLICK)
        list_wheel(&s->list, e->button == INPUT_WHEEL_UP ? -THEMES_WHEEL : THEMES_WHEEL);
    else if (e->row >= s->area.row && e->row < s->area.row + s->area.rows)
        list_select(&s->list, s->list.top + e->row - s->area.row);
    themes_show(s);
    return true;
}

static void themes_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct themes_state *s = state;
    (void)strbuf_addf(out, "Theme %d of %d   Enter keeps it, Esc leaves all as it was (%s)",
                      s->list.count ? s->list.selected + 1 : 0, s->list.count,
                      app->settings.values[SETTINGS_THEME]);
}

const struct screen_def screen_themes = {
    .name = "themes",
    .title = "Theme",
    .state_size = sizeof(struct themes_state),
    .init = themes_init,
    .fini = themes_fini,
    .keys = CONTEXT_THEMES,
    .draw = themes_draw,
    .act = themes_act,
    .mouse = themes_mouse,
    .update = themes_update,
    .typed = themes_typed,
    .status = themes_status,
};
