/* SPDX-License-Identifier: Apache-2.0 */
/*
 * menu: what can be done with the selected row of the screen below, from the action table. Enter
 * runs the selected action, and so does its key; / narrows the list, Esc closes it.
 */
#include "tui/core/action_keys.h"
#include "tui/core/action_table.h"
#include "tui/core/app.h"
#include "tui/core/app_input.h"
#include "tui/core/app_screen.h"

#include <stdio.h>
#include <string.h>

#include "tui/core/row_actions.h"
#include "tui/core/screen.h"
#include "tui/keys/input.h"
#include "tui/view/list.h"
#include "tui/view/match.h"

#define MENU_MAX 64
#define MENU_COLS 72
#define MENU_KEY_COLS 9
#define MENU_WHEEL 3

struct menu_state {
    enum action_context below;
    const struct action_def *all[MENU_MAX], *items[MENU_MAX]; /* items: those that match */
    int n_all, n;
    struct match search;
    struct list list;
    int row, col; /* where it was opened; -1: in the middle */
    struct rect box;
};

static void menu_narrow(struct menu_state *s) {
    s->n = 0;
    for (int i = 0; i < s->n_all; i++)
        if (!s->search.active || match_text(&s->search, s->all[i]->help) ||
            match_text(&s->search, s->all[i]->name))
            s->items[s->n++] = s->all[i];
    list_fit(&s->list, s->n, s->list.page);
}

static void menu_init(void *state, struct app *app) {
    struct menu_state *s = state;
    /* A menu is never the only screen. */
    const struct app_screen *below = &app->screens[app->n_screens - 2];
    s->below = screen_context(below->def, below->state);
    s->row = app->row_actions.menu_row;
    s->col = app->row_actions.menu_col;
    for (const struct action_def *d = action_table(); d->action && s->n_all < MENU_MAX; d++)
        if ((d->contexts & ACTION_FOR_ROW) && (d->contexts & ACTION_IN(s->below)) &&
            row_actions_can(app, below, d->action))
            s->all[s->n_all++] = d;
    list_fit(&s->list, s->n_all, s->n_all);
    menu_narrow(s);
}

/* Where the menu is in `area`; its title takes one more row. */
static struct rect menu_box(const struct menu_state *s, struct rect area) {
    struct rect box = {0, 0, s->n_all + 1, area.cols < MENU_COLS ? area.cols : MENU_COLS};
    box.rows = box.rows < area.rows ? box.rows : area.rows;
    box.rows = box.rows < 2 ? 2 : box.rows;
    bool by_key = s->row < 0;
    box.row = by_key ? area.row + (area.rows - box.rows) / 2 : s->row;
    box.col = by_key ? area.col + (area.cols - box.cols) / 2 : s->col;
    if (box.row + box.rows > area.row + area.rows)
        box.row = area.row + area.rows - box.rows;
    if (box.col + box.cols > area.col + area.cols)
        box.col = area.col + area.cols - box.cols;
    box.row = box.row < area.row ? area.row : box.row;
    box.col = box.col < area.col ? area.col : box.col;
    return box;
}

static void menu_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct menu_state *s = state;
    s->box = menu_box(s, area);
    struct rect head = {s->box.row, s->box.col, 1, s->box.cols};
    grid_fill(g, s->box, ROLE_STATUS);
    grid_fill(g, head, ROLE_TITLE_FOCUS);
    grid_text(g, head, 0, 1, ROLE_TITLE_FOCUS, "Actions");
    if (s->n == 0)
        grid_text(g, s->box, 1, 1, ROLE_STATUS, s->n_all ? "nothing matches" : "nothing is selected");
    list_fit(&s->list, s->n, s->box.rows - 1);
    for (int i = 0; i < s->list.page && s->list.top + i < s->n; i++) {
        int at = s->list.top + i;
        const struct action_def *d = s->items[at];
        struct rect row = {s->box.row + 1 + i, s->box.col, 1, s->box.cols};
        bool off = app->row_actions.readonly && (d->contexts & ACTION_CHANGES);
        enum theme_role role = at == s->list.selected ? ROLE_SELECTION : off ? ROLE_MUTED : ROLE_STATUS;
        uint32_t code = action_key(d, s->below, 0);
        char key[ACTION_KEY_NAME] = "";
        if (code)
            input_key_name(code, key, sizeof key);
        grid_fill(g, row, role);
        grid_text_fit(g, row, 0, 1, MENU_KEY_COLS, role, GRID_LEFT, key);
        grid_text_fit(g, row, 0, MENU_KEY_COLS + 2, row.cols - MENU_KEY_COLS - 2, role, GRID_LEFT, d->help);
        match_highlight(&s->search, g, row, 0);
    }
}

static void menu_run(struct app *app, const struct action_def *d) {
    app_screen_pop(app);
    app_input_act(app, d->action);
}

static bool menu_act(void *state, struct app *app, enum action action) {
    struct menu_state *s = state;
    switch ((int)action) {
    case ACTION_RUN_ENTRY:
        if (s->list.selected < s->n)
            menu_run(app, s->items[s->list.selected]);
        return true;
    case ACTION_SEARCH_NEXT:
    case ACTION_SEARCH_PREV:
        return list_move(&s->list, action == ACTION_SEARCH_NEXT ? ACTION_DOWN : ACTION_UP);
    case ACTION_BACK:
        if (!s->search.active)
            return false;
        match_clear(&s->search);
        menu_narrow(s);
        return true;
    default:
        return list_move(&s->list, action);
    }
}

/* Keys of the screen below work here, too. */
static bool menu_key(void *state, struct app *app, uint32_t key) {
    const struct menu_state *s = state;
    enum action action = action_find(s->below, key);
    for (int i = 0; action && i < s->n_all; i++)
        if (s->all[i]->action == action) {
            menu_run(app, s->all[i]);
            return true;
        }
    return false;
}

static bool menu_typed(void *state, struct app *app, enum action what, const char *text,
                       enum screen_typed phase) {
    struct menu_state *s = state;
    (void)app;
    (void)what;
    match_set(&s->search, phase == SCREEN_CANCEL ? "" : text, false);
    menu_narrow(s);
    return s->n > 0;
}

static bool menu_mouse(void *state, struct app *app, const struct input_event *e) {
    struct menu_state *s = state;
    int row = e->row - s->box.row - 1;
    bool inside =
        e->col >= s->box.col && e->col < s->box.col + s->box.cols && row >= -1 && row < s->box.rows - 1;
    if (e->button == INPUT_WHEEL_UP || e->button == INPUT_WHEEL_DOWN)
        list_wheel(&s->list, e->button == INPUT_WHEEL_UP ? -MENU_WHEEL : MENU_WHEEL);
    else if (!inside)
        app_screen_pop(app);
    else if (row >= 0 && s->list.top + row < s->n)
        menu_run(app, s->items[s->list.top + row]);
    return true;
}

static void menu_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct menu_state *s = state;
    (void)app;
    strbuf_addf(out, "Menu   %d of %d   Enter or its key runs it; / narrows, Esc closes", s->n, s->n_all);
}

const struct screen_def screen_menu = {
    .name = "menu",
    .title = "Menu",
    .opens = {{ACTION_SHOW_MENU,
               "menu",
               ACTION_VIEWS | ACTION_IN(CONTEXT_LOG) | ACTION_IN(CONTEXT_PICKER) |
                   ACTION_IN(CONTEXT_JOB_PICKER) | ACTION_IN(CONTEXT_TARGETS),
               {"m", "F9"},
               NULL,
               0,
               "what can be done with the selected row; the right button"},
              {ACTION_SHOW_MENU,
               "menu",
               ACTION_IN(CONTEXT_SQL_SHEET),
               {"m"},
               NULL,
               0,
               "what can be done with the selected cell or row"}},
    .contexts = {{CONTEXT_MENU, "menu", "Menu of a row"}},
    .is_overlay = true,
    .state_size = sizeof(struct menu_state),
    .init = menu_init,
    .keys = CONTEXT_MENU,
    .draw = menu_draw,
    .act = menu_act,
    .key = menu_key,
    .mouse = menu_mouse,
    .typed = menu_typed,
    .status = menu_status,
};
