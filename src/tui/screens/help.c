/* SPDX-License-Identifier: Apache-2.0 */
/*
 * help: first the keys of the screen below on one page, in groups. `?` again: a list of every key and
 * what it does, from the action table; every command, from the command table; the meaning of columns,
 * from their tables. There Enter runs the selected entry on the screen below.
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
#include "tui/keys/input.h"
#include "tui/view/list.h"
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
    bool lists; /* the list is shown; else the page */
    enum action_context below;
    struct help_line lines[HELP_MAX_LINES];
    int n;
    struct view view;
    bool readonly;
};

/* ---- the page: the keys of one screen ---- */

enum help_group { HELP_MOVE, HELP_SHOW, HELP_ACT, HELP_SCREENS, HELP_GROUPS };

#define HELP_ENTRY_COLS 26 /* of the page: keys and words, */
#define HELP_FULL_COLS 70  /* or a line of help */
#define HELP_PAGE_KEYS 8
#define HELP_PAGE_MAX 128

static enum help_group help_group_of(const struct action_def *d) {
    if (screen_of_action(d->action) && d->action != ACTION_SHOW_MENU && d->action != ACTION_SHOW_EXPORT)
        return HELP_SCREENS;
    switch ((int)d->action) {
    case ACTION_SCREEN_NEXT:
    case ACTION_SCREEN_PREV:
    case ACTION_COMMAND_LINE:
    case ACTION_BACK:
    case ACTION_QUIT:
    case ACTION_QUIT_NOW:
    case ACTION_SUSPEND:
    case ACTION_REDRAW:
    case ACTION_SAVE_SETTINGS:
    case ACTION_SWITCH_TARGET:
        return HELP_SCREENS;
    case ACTION_UP:
    case ACTION_DOWN:
    case ACTION_LEFT:
    case ACTION_RIGHT:
    case ACTION_HALF_UP:
    case ACTION_HALF_DOWN:
    case ACTION_PAGE_UP:
    case ACTION_PAGE_DOWN:
    case ACTION_FIRST:
    case ACTION_LAST:
    case ACTION_END:
    case ACTION_SEARCH:
    case ACTION_SEARCH_NEXT:
    case ACTION_SEARCH_PREV:
    case ACTION_THREAD_PREV:
    case ACTION_THREAD_NEXT:
    case ACTION_HISTORY_OLDER:
    case ACTION_HISTORY_NEWER:
    case ACTION_SCROLL_LEFT:
    case ACTION_SCROLL_RIGHT:
    case ACTION_TIME_BACK:
    case ACTION_TIME_FORTH:
    case ACTION_FOCUS:
    case ACTION_SQL_TO_SHEET:
    case ACTION_SQL_TO_EDITOR:
        return HELP_MOVE;
    case ACTION_SHOW_MENU:
    case ACTION_SHOW_EXPORT:
    case ACTION_REFRESH:
    case ACTION_MARK:
    case ACTION_ZERO:
        return HELP_ACT;
    default:
        return d->contexts & (ACTION_FOR_ROW | ACTION_CHANGES) ? HELP_ACT : HELP_SHOW;
    }
}

/* Is it on the page? Arrows and keys of typing speak for themselves; what every terminal program has is
 * in the list. */
static bool help_is_on_page(const struct action_def *d) {
    const struct screen_def *opens = screen_of_action(d->action);
    if (opens && opens->is_tab) /* the line of tabs has it */
        return false;
    switch ((int)d->action) {
    case ACTION_UP:
    case ACTION_DOWN:
    case ACTION_LEFT:
    case ACTION_RIGHT:
    case ACTION_HALF_UP:
    case ACTION_HALF_DOWN:
    case ACTION_PAGE_UP:
    case ACTION_PAGE_DOWN:
    case ACTION_MOUSE:
    case ACTION_REDRAW:
    case ACTION_SUSPEND:
    case ACTION_SAVE_SETTINGS:
        return false;
    default:
        return d->action < ACTION_EDIT_LEFT || d->action > ACTION_EDIT_REDO;
    }
}

/* Two actions that are one entry, because each undoes the other. */
static const struct help_pair {
    enum action first, second;
    const char *words; /* of both; NULL: their names */
} help_pairs[] = {
    {ACTION_SEARCH_NEXT, ACTION_SEARCH_PREV, "other matches"},
    {ACTION_SORT_PREV, ACTION_SORT_NEXT, "sort by column"},
    {ACTION_SLOWER, ACTION_FASTER, NULL},
    {ACTION_HISTORY_OLDER, ACTION_HISTORY_NEWER, NULL},
    {ACTION_THREAD_PREV, ACTION_THREAD_NEXT, "other threads"},
    {ACTION_FIRST, ACTION_LAST, NULL},
    {ACTION_SCROLL_LEFT, ACTION_SCROLL_RIGHT, "scroll"},
    {ACTION_FOLD, ACTION_UNFOLD, NULL},
    {ACTION_TIME_BACK, ACTION_TIME_FORTH, "move in time"},
    {ACTION_TIME_SHORTER, ACTION_TIME_LONGER, NULL},
    {ACTION_THRESHOLD_UP, ACTION_THRESHOLD_DOWN, "small frames"},
    {ACTION_DIFF, ACTION_DIFF_BEFORE, "compare"},
    {ACTION_SCREEN_NEXT, ACTION_SCREEN_PREV, "other screens"},
    {ACTION_SHEET_DESCEND, ACTION_SHEET_ASCEND, "sort down, up"},
    {ACTION_SQL_PREVIOUS, ACTION_SQL_NEXT, "history"},
    {ACTION_SHEET_NARROW, ACTION_SHEET_WIDEN, "column width"},
    {ACTION_SHEET_FIRST_COLUMN, ACTION_SHEET_LAST_COLUMN, "outer columns"},
    {ACTION_COPY, ACTION_COPY_ROW, NULL},
    {ACTION_QUIT, ACTION_QUIT_NOW, NULL},
};

/* The row of the action that shares the entry of `d` in a context; NULL: it has its own. `*is_second`:
 * the other one has the entry. */
static const struct action_def *help_other(const struct action_def *d, enum action_context context,
                                           const struct help_pair **pair, bool *is_second) {
    *is_second = false;
    for (size_t i = 0; i < sizeof help_pairs / sizeof help_pairs[0]; i++) {
        *pair = &help_pairs[i];
        *is_second = (*pair)->second == d->action;
        if ((*pair)->first != d->action && !*is_second)
            continue;
        const struct action_def *other = action_row(*is_second ? (*pair)->first : (*pair)->second, context);
        bool has_key = other && action_key(other, context, 0);
        *is_second &= has_key;
        return has_key ? other : NULL;
    }
    return NULL;
}

/* The words of an entry: the name, as :NAME takes it, with blanks. */
static void help_put_words(const struct action_def *d, const struct action_def *other,
                           const struct help_pair *pair, char *buf, size_t cap) {
    if (other && pair->words)
        snprintf(buf, cap, "%s", pair->words);
    else
        snprintf(buf, cap, "%s%s%s", d->name, other ? ", " : "", other ? other->name : "");
    for (char *p = buf; *p; p++)
        *p = *p == '-' ? ' ' : *p;
}

/* Its keys as far as there is room; of two actions one each, a character if there is one. */
static void help_put_keys(const struct action_def *d, const struct action_def *other,
                          enum action_context context, char *buf, size_t cap) {
    const struct action_def *const both[] = {d, other};
    if (!other) {
        action_keys_text(d, context, buf, cap);
        while (text_width(buf) > HELP_PAGE_KEYS && strrchr(buf, ' '))
            *strrchr(buf, ' ') = '\0';
        return;
    }
    buf[0] = '\0';
    for (int i = 0; i < 2; i++) {
        uint32_t key = action_key(both[i], context, 0), next;
        for (int k = 1; key > INPUT_SPECIAL && (next = action_key(both[i], context, k)); k++)
            key = next < INPUT_SPECIAL ? next : key;
        char name[ACTION_KEY_NAME];
        input_key_name(key, name, sizeof name);
        size_t n = strlen(buf);
        if (i == 0 || text_width(buf) + 1 + text_width(name) <= HELP_PAGE_KEYS)
            snprintf(buf + n, cap - n, "%s%s", i ? " " : "", name);
    }
}

/* An entry of the page: a title, an action, or two of them. */
struct help_entry {
    enum help_group group;
    const struct action_def *def, *other; /* NULL: a title; NULL: no other */
    const struct help_pair *pair;
};

/* All entries in their order; returns their number. `pairs`: some actions share one. */
static int help_make_page(const struct help_state *s, bool pairs, struct help_entry *entries) {
    int n = 0;
    for (int group = 0; group < HELP_GROUPS; group++) {
        bool titled = false;
        for (const struct action_def *d = action_table(); d->action && n + 1 < HELP_PAGE_MAX; d++) {
            struct help_entry entry = {.group = (enum help_group)group, .def = d};
            bool is_second = false;
            if (!(d->contexts & ACTION_IN(s->below)) || !action_key(d, s->below, 0) || !help_is_on_page(d) ||
                (int)help_group_of(d) != group)
                continue;
            if (pairs)
                entry.other = help_other(d, s->below, &entry.pair, &is_second);
            if (is_second)
                continue;
            if (!titled)
                entries[n++] = (struct help_entry){.group = entry.group};
            titled = true;
            entries[n++] = entry;
        }
    }
    return n;
}

static void help_draw_entry(const struct help_state *s, const struct help_entry *entry, bool is_full,
                            struct grid *g, struct rect area) {
    static const char *const titles[HELP_GROUPS] = {"Move", "Show", "Act", "Screens"};
    char keys[ACTION_MAX_KEYS * ACTION_KEY_NAME], words[64];
    if (!entry->def) {
        grid_text(g, area, 0, 1, ROLE_HELP_GROUP, titles[entry->group]);
        return;
    }
    help_put_keys(entry->def, entry->other, s->below, keys, sizeof keys);
    help_put_words(entry->def, entry->other, entry->pair, words, sizeof words);
    grid_text_fit(g, area, 0, 2, HELP_PAGE_KEYS, ROLE_HELP_KEY, GRID_LEFT, keys);
    grid_text_fit(g, area, 0, HELP_PAGE_KEYS + 3, area.cols - HELP_PAGE_KEYS - 3,
                  s->readonly && (entry->def->contexts & ACTION_CHANGES) ? ROLE_MUTED : ROLE_TEXT, GRID_LEFT,
                  is_full ? entry->def->help : words);
}

/* Draw the page: groups below each other, in as many columns as are needed: with the whole help of
 * each action, if there is room, else with its name. */
static void help_draw_page(const struct help_state *s, struct grid *g, struct rect area) {
    struct help_entry entries[HELP_PAGE_MAX];
    int n = help_make_page(s, false, entries), cols = area.cols / HELP_FULL_COLS;
    bool is_full = n <= cols * area.rows;
    if (!is_full) {
        n = help_make_page(s, true, entries);
        cols = area.cols / HELP_ENTRY_COLS > 1 ? area.cols / HELP_ENTRY_COLS : 1;
    }
    int needed = area.rows > 0 ? (n + area.rows - 1) / area.rows : cols;
    cols = needed < 1 ? 1 : needed < cols ? needed : cols;
    int width = area.cols / cols, rows = (n + cols - 1) / cols;
    rows = rows < area.rows ? rows : area.rows;
    for (int i = 0; i < n && i < rows * cols; i++) {
        struct rect entry = {area.row + i % rows, area.col + i / rows * width, 1, width};
        if (i == rows * cols - 1 && i < n - 1) {
            grid_text(g, entry, 0, 2, ROLE_MUTED, "... and more: ?");
            break;
        }
        help_draw_entry(s, &entries[i], is_full, g, entry);
    }
}

/* ---- the list: all keys ---- */

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
    s->below = here;
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
    if (!s->lists) {
        help_draw_page(s, g, area);
        return;
    }
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
    struct help_state *s = state;
    if (!s->lists) { /* the page has nothing to select: what moves or searches gets the list */
        bool is_own = action == ACTION_SHOW_HELP || action == ACTION_RUN_ENTRY;
        s->lists = is_own || action == ACTION_SEARCH || list_move(&s->view.list, action);
        return s->lists && action != ACTION_SEARCH;
    }
    if (action == ACTION_SHOW_HELP) {
        s->lists = false;
        return true;
    }
    if (action != ACTION_RUN_ENTRY)
        return false;
    help_run(s, app);
    return true;
}

static void help_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct help_state *s = state;
    (void)app;
    if (!s->lists) {
        strbuf_addf(out, "Keys of %s   ? shows all keys and commands, q closes",
                    action_context_title(s->below));
        return;
    }
    strbuf_addf(out, "Help   line %d of %d   / searches, Enter runs the selected entry, q closes",
                s->view.list.selected + 1, s->n);
}

const struct screen_def screen_help = {
    .name = "help",
    .title = "Help",
    .opens = {{ACTION_SHOW_HELP,
               "help",
               ACTION_LETTERS,
               {"?", "F1", "h"},
               "Help",
               0,
               "the keys of this screen; again: all keys and commands"},
              {ACTION_SHOW_HELP,
               "help",
               ACTION_TYPED,
               {"F1"},
               "Help",
               0,
               "the keys of this screen; again: all keys and commands"}},
    .state_size = sizeof(struct help_state),
    .init = help_init,
    .keys = CONTEXT_HELP,
    .view = help_view,
    .draw = help_draw,
    .act = help_act,
    .status = help_status,
};
