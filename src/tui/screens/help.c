/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help: every key and what it does, from the action table; every command, from the command table;
 * the meaning of columns, from their tables. Enter runs the selected entry on the screen below.
 */
#include "tui/core/action_keys.h"
#include "tui/core/action_table.h"
#include "tui/core/app.h"
#include "tui/core/app_input.h"
#include "tui/core/app_screen.h"
#include "tui/core/command.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tui/core/screen.h"
#include "tui/view/view.h"
#include "tui/view/table.h"
#include "tui/screens/threads/threads_rows.h"
#include "tui/screens/top/top_rows.h"
#include "tui/view/layout.h"

#define HELP_MAX_LINES 640
#define HELP_KEY_COLS 20
#define HELP_NARROW_KEY_COLS 11 /* the full text of the selected line is below the list */
#define HELP_WHOLE_ROWS 2

struct help_line {
    const char *heading;               /* a title, or NULL */
    const struct action_def *def;      /* a key, or NULL */
    enum action_context context;       /* where it is read */
    const struct command_def *command; /* a command, or NULL */
    const char *name, *text;           /* anything else */
    bool works_below;                  /* the key or command has this meaning on the screen below */
};

struct help_state {
    struct help_line lines[HELP_MAX_LINES];
    int n;
    struct view view;
    bool readonly;
};

static void help_add(struct help_state *s, struct help_line line) {
    if (s->n < HELP_MAX_LINES)
        s->lines[s->n++] = line;
}

/* What is typed or pressed for a line. */
static const char *help_line_keys(const struct help_line *l, char *buf, size_t cap) {
    if (l->def)
        action_keys_text(l->def, l->context, buf, cap);
    else if (l->command)
        snprintf(buf, cap, ":%s %s", l->command->name, l->command->arguments);
    else
        return l->name;
    return buf;
}

static const char *help_line_text(const struct help_line *l) {
    return l->def ? l->def->help : l->command ? l->command->help : l->text;
}

static void help_draw_row(const void *state, const void *line, int scroll, struct grid *g, struct rect area) {
    const struct help_line *l = line;
    bool readonly = ((const struct help_state *)state)->readonly;
    char keys[64];
    (void)scroll;
    int key_cols = layout_has_panes(area) ? HELP_KEY_COLS : HELP_NARROW_KEY_COLS;
    if (l->heading) {
        grid_text(g, area, 0, 1, ROLE_HELP_GROUP, l->heading);
        return;
    }
    grid_text_fit(g, area, 0, 2, key_cols, ROLE_HELP_KEY, GRID_LEFT, help_line_keys(l, keys, sizeof keys));
    grid_text_fit(g, area, 0, key_cols + 3, area.cols - key_cols - 3,
                  readonly && l->def && (l->def->contexts & ACTION_CHANGES) ? ROLE_MUTED : ROLE_TEXT,
                  GRID_LEFT, help_line_text(l));
}

/* The text of a line that is cut in the list, broken at blanks. */
static void help_draw_whole(const struct help_line *l, struct grid *g, struct rect area) {
    const char *text = help_line_text(l);
    grid_fill(g, area, ROLE_STATUS);
    for (int row = 0; text && *text && row < area.rows; row++) {
        char line[160];
        size_t n = text_fit(text, area.cols - 2);
        while (text[n] && n > 0 && text[n] != ' ')
            n--;
        n = n ? n : text_fit(text, area.cols - 2);
        snprintf(line, sizeof line, "%.*s", (int)n, text);
        grid_text(g, area, row, 1, ROLE_STATUS, line);
        text += n + (text[n] == ' ');
    }
}

static bool help_matches(const void *line, const struct match *m) {
    const struct help_line *l = line;
    char keys[64];
    if (l->heading)
        return match_text(m, l->heading);
    return match_text(m, help_line_keys(l, keys, sizeof keys)) || match_text(m, help_line_text(l)) ||
           (l->def && match_text(m, l->def->name));
}

static int help_count(const void *state) { return ((const struct help_state *)state)->n; }

static const void *help_line_at(const void *state, int at) {
    return &((const struct help_state *)state)->lines[at];
}

static const struct view_def help_rows = {
    .count = help_count, .row = help_line_at, .matches = help_matches, .draw_row = help_draw_row};

static struct view *help_view(void *state) { return &((struct help_state *)state)->view; }

static void help_init(void *state, struct app *app) {
    struct help_state *s = state;
    /* Help is never the only screen. */
    const struct app_screen *below = &app->screens[app->n_screens - 2];
    enum action_context here = screen_context(below->def, below->state);
    help_add(s, (struct help_line){.heading = action_context_title(here)});
    for (const struct action_def *d = action_table(); d->action; d++)
        if (d->contexts & ACTION_IN(here))
            help_add(s, (struct help_line){.def = d, .context = here, .works_below = true});
    for (int c = 0; c < CONTEXT_COUNT; c++) {
        bool titled = false;
        for (const struct action_def *d = action_table(); d->action; d++) {
            unsigned lower = ACTION_IN(c) - 1U;
            if ((d->contexts & ACTION_IN(here)) || !(d->contexts & ACTION_IN(c)) || (d->contexts & lower))
                continue;
            if (!titled)
                help_add(s, (struct help_line){.heading = action_context_title((enum action_context)c)});
            titled = true;
            help_add(s, (struct help_line){.def = d, .context = (enum action_context)c});
        }
    }
    help_add(s, (struct help_line){.heading = "Columns of the threads"});
    for (int i = 0; i < thread_n_columns; i++)
        help_add(s, (struct help_line){.name = thread_columns[i].title, .text = thread_columns[i].help});
    help_add(s, (struct help_line){.heading = "Columns of the Top screen"});
    for (int i = 0; i < top_n_columns; i++)
        help_add(s, (struct help_line){.name = top_columns[i].title, .text = top_columns[i].help});
    help_add(s, (struct help_line){.heading = "Commands, after the colon; every action's name works, too"});
    for (const struct command_def *d = command_rows(); d->name; d++)
        help_add(s, (struct help_line){.command = d, .works_below = (d->contexts & ACTION_IN(here)) != 0});
    help_add(s, (struct help_line){.heading = "In the command line"});
    help_add(s, (struct help_line){.name = "Tab", .text = "list the choices; Enter takes the selected one"});
    help_add(
        s, (struct help_line){.name = "Up Down", .text = "earlier commands that begin with the typed text"});
    help_add(s, (struct help_line){.heading = "In a search or filter"});
    help_add(s, (struct help_line){.name = "Enter Esc", .text = "keep it, or drop it"});
    help_add(s, (struct help_line){.name = "ctrl-u ctrl-w", .text = "delete to the start, delete a word"});
    s->readonly = app->row_actions.readonly;
    view_init(&s->view, &help_rows, s, NULL);
    list_fit(&s->view.list, s->n, 1);
    s->view.list.selected = 1;
}

static void help_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct help_state *s = state;
    (void)app;
    if (!layout_has_panes(area)) {
        area.rows -= HELP_WHOLE_ROWS;
        help_draw_whole(&s->lines[s->view.list.selected], g,
                        (struct rect){area.row + area.rows, area.col, HELP_WHOLE_ROWS, area.cols});
    }
    view_draw(&s->view, g, area, "");
}

static void help_run(struct help_state *s, struct app *app) {
    const struct help_line *l = &s->lines[s->view.list.selected];
    const struct command_def *command = l->works_below ? l->command : NULL;
    enum action action = l->def && l->works_below ? l->def->action : ACTION_NONE;
    if (command) {
        char line[64];
        snprintf(line, sizeof line, "%s ", command->name);
        app_screen_pop(app);
        command_line_open(app, line);
        return;
    }
    if (!action) {
        app_message(app, false, "this line cannot be run here");
        return;
    }
    app_screen_pop(app);
    app_input_act(app, action);
}

static bool help_act(void *state, struct app *app, enum action action) {
    if (action != ACTION_RUN_ENTRY)
        return false;
    help_run(state, app);
    return true;
}

static void help_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct help_state *s = state;
    (void)app;
    strbuf_addf(out, "Help   line %d of %d   / searches, Enter runs the selected entry, q closes",
                s->view.list.selected + 1, s->n);
}

const struct screen_def screen_help = {
    .name = "help",
    .title = "Help",
    .opens = {{ACTION_SHOW_HELP,
               "help",
               ACTION_LETTERS & ~ACTION_IN(CONTEXT_HELP),
               {"?", "F1", "h"},
               "Help",
               0,
               "show all keys and what they do"},
              {ACTION_SHOW_HELP, "help", ACTION_TYPED, {"F1"}, "Help", 0, "show all keys and what they do"}},
    .state_size = sizeof(struct help_state),
    .init = help_init,
    .keys = CONTEXT_HELP,
    .view = help_view,
    .draw = help_draw,
    .act = help_act,
    .status = help_status,
};
