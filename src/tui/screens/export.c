/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export: writes what the screen below shows to a file: choose a format, then a name. An existing
 * file is replaced only after a second Enter.
 */
#include "tui/core/app.h"

#include <stdio.h>
#include <string.h>

#include "client/export/export.h"
#include "tui/core/app_export.h"
#include "tui/core/app_screen.h"
#include "tui/core/screen.h"
#include "tui/keys/input.h"
#include "tui/view/list.h"

#define EXPORT_MAX_FORMATS 24
#define EXPORT_BOX_COLS 76
#define EXPORT_NAME_COLS 12
#define EXPORT_WHEEL 3

struct export_state {
    const struct export_format *formats[EXPORT_MAX_FORMATS];
    int n;
    struct list list;
    char path[PROMPT_MAX]; /* the existing file to confirm; "": none */
    struct rect box;
};

static void export_init(void *state, struct app *app) {
    struct export_state *s = state;
    for (const struct export_format *f = export_formats; f->name && s->n < EXPORT_MAX_FORMATS; f++)
        if (!app_export_why_not(app, f))
            s->formats[s->n++] = f;
    list_fit(&s->list, s->n, s->n);
}

static void export_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct export_state *s = state;
    int rows = s->n + 1 < area.rows ? s->n + 1 : area.rows,
        cols = area.cols < EXPORT_BOX_COLS ? area.cols : EXPORT_BOX_COLS;
    (void)app;
    s->box = (struct rect){area.row + (area.rows - rows) / 2, area.col + (area.cols - cols) / 2, rows, cols};
    struct rect head = {s->box.row, s->box.col, 1, cols};
    grid_fill(g, s->box, ROLE_STATUS);
    grid_fill(g, head, ROLE_TITLE_FOCUS);
    grid_text(g, head, 0, 1, ROLE_TITLE_FOCUS, "Write the screen's data to a file, as");
    list_fit(&s->list, s->n, rows - 1);
    for (int i = 0; i < s->list.page && s->list.top + i < s->n; i++) {
        int at = s->list.top + i;
        struct rect row = {s->box.row + 1 + i, s->box.col, 1, cols};
        enum theme_role role = at == s->list.selected ? ROLE_SELECTION : ROLE_STATUS;
        grid_fill(g, row, role);
        grid_text_fit(g, row, 0, 1, EXPORT_NAME_COLS, role, GRID_LEFT, s->formats[at]->name);
        grid_text_fit(g, row, 0, EXPORT_NAME_COLS + 2, cols - EXPORT_NAME_COLS - 2, role, GRID_LEFT,
                      s->formats[at]->help);
    }
}

static void export_ask(struct export_state *s, struct app *app) {
    char name[128];
    if (s->list.selected >= s->n)
        return;
    s->path[0] = '\0';
    app_export_name(app, s->formats[s->list.selected], name, sizeof name);
    app_prompt(app, ACTION_SHOW_EXPORT, "File: ", name);
}

/* Begin it; ask first if the file exists. */
static void export_begin(struct export_state *s, struct app *app, const char *path, bool overwrite) {
    const struct export_format *f = s->formats[s->list.selected];
    bool exists;
    s->path[0] = '\0';
    if (app_export(app, f, path, overwrite, &exists)) {
        app_screen_pop(app);
        return;
    }
    if (!exists)
        return;
    snprintf(s->path, sizeof s->path, "%s", path);
    app_refuse(app, "%s already exists: Enter replaces it, Esc does not", s->path);
}

static bool export_typed(void *state, struct app *app, enum action what, const char *text,
                         enum screen_typed phase) {
    struct export_state *s = state;
    if (what == ACTION_SHOW_EXPORT && phase == SCREEN_ACCEPT)
        export_begin(s, app, text, false);
    return true;
}

static bool export_act(void *state, struct app *app, enum action action) {
    struct export_state *s = state;
    char path[PROMPT_MAX];
    switch ((int)action) {
    case ACTION_RUN_ENTRY:
        snprintf(path, sizeof path, "%s", s->path);
        if (*path)
            export_begin(s, app, path, true);
        else
            export_ask(s, app);
        return true;
    case ACTION_BACK:
        if (!*s->path)
            return false;
        s->path[0] = '\0';
        return true;
    default:
        s->path[0] = '\0';
        return list_move(&s->list, action);
    }
}

static bool export_mouse(void *state, struct app *app, const struct input_event *e) {
    struct export_state *s = state;
    int row = e->row - s->box.row - 1;
    bool inside =
        e->col >= s->box.col && e->col < s->box.col + s->box.cols && row >= -1 && row < s->box.rows - 1;
    if (*s->path) { /* as by any other key */
        s->path[0] = '\0';
        app->message[0] = '\0';
    }
    if (e->button == INPUT_WHEEL_UP || e->button == INPUT_WHEEL_DOWN)
        list_wheel(&s->list, e->button == INPUT_WHEEL_UP ? -EXPORT_WHEEL : EXPORT_WHEEL);
    else if (!inside)
        app_screen_pop(app);
    else if (row >= 0 && s->list.top + row < s->n) {
        list_select(&s->list, s->list.top + row);
        export_ask(s, app);
    }
    return true;
}

static void export_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct export_state *s = state;
    (void)app;
    strbuf_addf(out, "Export   %d formats   Enter selects one, Esc closes", s->n);
}

const struct screen_def screen_export = {
    .name = "export",
    .title = "Export",
    .opens = {{ACTION_SHOW_EXPORT,
               "export",
               ACTION_VIEWS | ACTION_IN(CONTEXT_LOG),
               {"x"},
               NULL,
               0,
               "write the screen's data to a file: svg, folded, ..."}},
    .is_overlay = true,
    .state_size = sizeof(struct export_state),
    .init = export_init,
    .keys = CONTEXT_EXPORT,
    .draw = export_draw,
    .act = export_act,
    .mouse = export_mouse,
    .typed = export_typed,
    .status = export_status,
};
