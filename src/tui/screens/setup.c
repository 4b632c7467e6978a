/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setup: what can be set, from the table of settings: value, origin, purpose. A change takes effect
 * immediately where that is possible; nothing is written until the user asks for it.
 */
#include "tui/core/app.h"
#include "tui/core/app_input.h"
#include "tui/core/app_settings.h"
#include "tui/core/screen.h"

#include <stdio.h>
#include <string.h>

#include "tui/view/view.h"

#define SETUP_NAME 12 /* columns */
#define SETUP_HELP 4  /* rows below the list */

struct setup_state {
    const struct app *app;
    struct view view;
};

static int setup_count(const void *state) {
    (void)state;
    return SETTINGS_COUNT;
}

static const void *setup_row(const void *state, int at) {
    (void)state;
    return &settings_table[at];
}

static bool setup_matches(const void *row, const struct match *m) {
    const struct option_def *d = row;
    return match_text(m, d->name) || match_text(m, d->help);
}

static void setup_draw_row(const void *state, const void *setting, int scroll, struct grid *g,
                           struct rect row) {
    const struct app *app = ((const struct setup_state *)state)->app;
    const struct option_def *d = setting;
    enum settings_origin origin = app->settings.origins[d - settings_table];
    const char *value = app->settings.values[d - settings_table];
    (void)scroll;
    int rest = row.cols - SETUP_NAME - 3, values = rest / 2 < 30 ? rest / 2 : 30;
    grid_text_fit(g, row, 0, 1, SETUP_NAME, ROLE_LABEL, GRID_LEFT, d->name);
    grid_text_fit(g, row, 0, SETUP_NAME + 2, values, *value ? ROLE_VALUE : ROLE_MUTED, GRID_LEFT,
                  *value ? value : "-");
    grid_text_fit(g, row, 0, SETUP_NAME + values + 3, rest - values,
                  origin == SETTINGS_BY_KEY ? ROLE_STATE_DISK : ROLE_MUTED, GRID_LEFT,
                  settings_origin_name(origin));
}

static const struct view_def setup_rows = {
    .count = setup_count, .row = setup_row, .matches = setup_matches, .draw_row = setup_draw_row};

static struct view *setup_view(void *state) { return &((struct setup_state *)state)->view; }

static void setup_init(void *state, struct app *app) {
    struct setup_state *s = state;
    s->app = app;
    app_settings_sync(app);
    view_init(&s->view, &setup_rows, s, NULL);
    list_fit(&s->view.list, SETTINGS_COUNT, 1);
}

static void setup_draw_help(const struct app *app, int key, struct grid *g, struct rect area) {
    const struct option_def *d = &settings_table[key];
    const char *path = app->config.config_path;
    grid_text(g, area, 0, 1, ROLE_TEXT, d->help);
    int col = 1 + grid_text(g, area, 1, 1, ROLE_MUTED, "takes ");
    col += grid_text(g, area, 1, col, ROLE_TEXT, d->takes);
    if (d->at_start)
        grid_text(g, area, 1, col, ROLE_MUTED, "; from the next start on");
    col = 1 + grid_text(g, area, 2, 1, ROLE_MUTED, "file  ");
    if (path && *path)
        grid_text_fit(g, area, 2, col, area.cols - col, ROLE_FILE, GRID_TAIL, path);
    else
        grid_text(g, area, 2, col, ROLE_MUTED, "none: HOME is not set");
}

static void setup_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct setup_state *s = state;
    int help = area.rows > 2 * SETUP_HELP ? SETUP_HELP : 0;
    struct rect list = {area.row + 1, area.col, area.rows - 1 - help, area.cols};
    grid_fill(g, (struct rect){area.row, area.col, 1, area.cols}, ROLE_TABLE_HEAD);
    grid_text_fit(g, area, 0, 1, SETUP_NAME, ROLE_TABLE_HEAD, GRID_LEFT, "SETTING");
    grid_text_fit(g, area, 0, SETUP_NAME + 2, area.cols - SETUP_NAME - 2, ROLE_TABLE_HEAD, GRID_LEFT,
                  "VALUE, AND WHERE IT IS FROM");
    view_draw(&s->view, g, list, "");
    if (help)
        setup_draw_help(app, s->view.list.selected, g,
                        (struct rect){area.row + area.rows - help + 1, area.col, help - 1, area.cols});
}

/* A value was typed, or a search. */
static bool setup_typed(void *state, struct app *app, enum action what, const char *text,
                        enum screen_typed phase) {
    struct setup_state *s = state;
    struct err e;
    if (what == ACTION_SHOW_SETUP) { /* not the key that opened it, which ends the line */
        if (phase == SCREEN_ACCEPT &&
            app_settings_set(app, settings_table[s->view.list.selected].name, text, &e) != 0)
            app_message(app, true, "%s", e.text);
        return true;
    }
    return view_typed(&s->view, app, what, phase == SCREEN_CANCEL ? "" : text);
}

static void setup_change(struct setup_state *s, struct app *app, int step) {
    enum settings_key key = (enum settings_key)s->view.list.selected;
    char label[SETUP_NAME + 8];
    if (key == SETTINGS_THEME) {
        app_input_act(app, ACTION_SHOW_THEMES);
        return;
    }
    if (settings_table[key].kind != OPTION_TEXT && !option_is_number(&settings_table[key])) {
        app_settings_step(app, key, step);
        return;
    }
    snprintf(label, sizeof label, "%s: ", settings_table[key].name);
    app_prompt(app, ACTION_SHOW_SETUP, label, app->settings.values[key]);
}

static bool setup_act(void *state, struct app *app, enum action action) {
    struct setup_state *s = state;
    switch ((int)action) {
    case ACTION_SETUP_CHANGE:
    case ACTION_RIGHT:
        setup_change(s, app, 1);
        return true;
    case ACTION_LEFT:
        setup_change(s, app, -1);
        return true;
    default:
        return false;
    }
}

/* A click on the selected one changes it. */
static bool setup_mouse(void *state, struct app *app, const struct input_event *e) {
    struct setup_state *s = state;
    bool again, done = view_mouse(&s->view, app, e, &again);
    if (again)
        setup_change(s, app, 1);
    return done;
}

static void setup_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct setup_state *s = state;
    int unsaved = 0;
    for (int i = 0; i < SETTINGS_COUNT; i++)
        unsaved += app->settings.origins[i] == SETTINGS_BY_KEY;
    strbuf_addf(out, "Setting %d of %d   %d changed and not saved", s->view.list.selected + 1,
                s->view.list.count, unsaved);
}

#define SETUP_FROM                                                                                           \
    (ACTION_LETTERS & ~(ACTION_OVERLAYS | ACTION_IN(CONTEXT_SETUP) | ACTION_IN(CONTEXT_THEMES) |             \
                        ACTION_IN(CONTEXT_SQL_SHEET)))

const struct screen_def screen_setup = {
    .name = "setup",
    .title = "Setup",
    .opens = {{ACTION_SHOW_SETUP, "setup", SETUP_FROM, {"F2", "alt-s"}, NULL, 0, "settings"},
              {ACTION_SHOW_SETUP, "setup", ACTION_IN(CONTEXT_SQL_SHEET), {"alt-s"}, NULL, 0, "settings"}},
    .state_size = sizeof(struct setup_state),
    .init = setup_init,
    .keys = CONTEXT_SETUP,
    .view = setup_view,
    .draw = setup_draw,
    .act = setup_act,
    .mouse = setup_mouse,
    .typed = setup_typed,
    .status = setup_status,
};
