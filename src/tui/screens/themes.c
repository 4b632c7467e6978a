/* SPDX-License-Identifier: Apache-2.0 */
/*
 * themes: choice of a theme. The screen below the list is drawn in the selected theme. Enter keeps
 * it; leaving in any other way restores the last one.
 */
#include "tui/core/app.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_settings.h"
#include "tui/core/screen.h"

#include <stdio.h>
#include <string.h>

#include "tui/view/view.h"

#define THEMES_MAX_ROWS 12

struct themes_state {
    struct app *app;
    struct view view;
    char shown[THEME_MAX_NAME]; /* the selected one; "": none yet */
    bool kept;
};

static int themes_count(const void *state) {
    return (int)((const struct themes_state *)state)->app->n_themes;
}

static const void *themes_name(const void *state, int at) {
    return ((const struct themes_state *)state)->app->themes[at];
}

static bool themes_matches(const void *name, const struct match *m) { return match_text(m, name); }

static void themes_draw_row(const void *state, const void *name, int scroll, struct grid *g,
                            struct rect row) {
    const struct app *app = ((const struct themes_state *)state)->app;
    (void)scroll;
    grid_text_fit(g, row, 0, 1, row.cols - 1, ROLE_TEXT, GRID_LEFT, name);
    if (strcmp(name, app->settings.values[SETTINGS_THEME]) == 0)
        grid_text(g, row, 0, 2 + grid_text_width(g, name), ROLE_MUTED, "(in use)");
}

/* Use the selected one. */
static void themes_show(void *state, struct app *a) {
    struct themes_state *s = state;
    if (s->view.list.selected >= (int)a->n_themes || strcmp(s->shown, a->themes[s->view.list.selected]) == 0)
        return;
    snprintf(s->shown, sizeof s->shown, "%s", a->themes[s->view.list.selected]);
    a->host.set_theme(a->host.arg, s->shown);
}

static const struct view_def themes_rows = {.count = themes_count,
                                            .row = themes_name,
                                            .matches = themes_matches,
                                            .draw_row = themes_draw_row,
                                            .selected = themes_show};

static struct view *themes_view(void *state) { return &((struct themes_state *)state)->view; }

static void themes_init(void *state, struct app *app) {
    struct themes_state *s = state;
    s->app = app;
    view_init(&s->view, &themes_rows, s, NULL);
    app->host.list_themes(app->host.arg);
}

static void themes_fini(void *state) {
    struct themes_state *s = state;
    if (!s->kept && *s->shown)
        s->app->host.set_theme(s->app->host.arg, s->app->settings.values[SETTINGS_THEME]);
}

/* The names have arrived: select the current one. */
static void themes_update(void *state, struct app *app) {
    struct themes_state *s = state;
    const char *wanted = *s->shown ? s->shown : app->settings.values[SETTINGS_THEME];
    list_fit(&s->view.list, (int)app->n_themes, s->view.list.page);
    for (size_t i = 0; i < app->n_themes; i++)
        if (strcmp(app->themes[i], wanted) == 0) {
            list_select(&s->view.list, (int)i);
            snprintf(s->shown, sizeof s->shown, "%s", app->themes[i]);
        }
}

static void themes_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct themes_state *s = state;
    int rows = area.rows / 2 < THEMES_MAX_ROWS ? area.rows / 2 : THEMES_MAX_ROWS;
    struct rect list = {area.row + 1, area.col, rows - 1, area.cols};
    struct rect below = {area.row + rows, area.col, area.rows - rows, area.cols};
    grid_fill(g, (struct rect){area.row, area.col, 1, area.cols}, ROLE_TABLE_HEAD);
    grid_text_fit(g, area, 0, 1, area.cols - 1, ROLE_TABLE_HEAD, GRID_LEFT,
                  app->n_themes ? "THEME" : "looking for themes");
    view_draw(&s->view, g, list, "");
    for (int i = app->n_screens - 2; i >= 0; i--) { /* there are other screens between */
        const struct app_screen *under = &app->screens[i];
        if (under->def == &screen_setup && i > 0)
            continue;
        under->def->draw(under->state, app, g, below);
        return;
    }
}

static void themes_keep(struct themes_state *s, struct app *app) {
    struct err e;
    themes_show(s, app);
    if (!*s->shown)
        return;
    if (app_settings_set(app, "theme", s->shown, &e) != 0) {
        app_message(app, true, "%s", e.text);
        return;
    }
    app_message(app, false, "theme %s; F12 saves it", s->shown);
    s->kept = true;
    app_screen_pop(app);
}

static bool themes_act(void *state, struct app *app, enum action action) {
    if (action != ACTION_THEME_KEEP)
        return false;
    themes_keep(state, app);
    return true;
}

static void themes_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct themes_state *s = state;
    strbuf_addf(out, "Theme %d of %d   Enter keeps it, Esc leaves all as it was (%s)",
                s->view.list.count ? s->view.list.selected + 1 : 0, s->view.list.count,
                app->settings.values[SETTINGS_THEME]);
}

const struct screen_def screen_themes = {
    .name = "themes",
    .title = "Theme",
    .opens = {{ACTION_SHOW_THEMES,
               "themes",
               ACTION_LETTERS & ~(ACTION_OVERLAYS | ACTION_IN(CONTEXT_THEMES)),
               {"alt-t"},
               NULL,
               0,
               "choose a theme with a preview"}},
    .contexts = {{CONTEXT_THEMES, "themes", "Choose a theme"}},
    .state_size = sizeof(struct themes_state),
    .init = themes_init,
    .fini = themes_fini,
    .keys = CONTEXT_THEMES,
    .view = themes_view,
    .draw = themes_draw,
    .act = themes_act,
    .update = themes_update,
    .status = themes_status,
};
