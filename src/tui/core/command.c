/* SPDX-License-Identifier: Apache-2.0 */
/* command: see command.h. The rows are in command_table.c. */
#include "tui/core/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/core/action_table.h"
#include "tui/core/app.h"
#include "tui/core/app_screen.h"
#include "tui/core/screen.h"
#include "tui/keys/input.h"

#define COMMAND_ARENA ((size_t)256 * 1024)

enum action_context command_context(struct app *app) {
    struct app_screen *s = app_screen_top(app);
    return screen_context(s->def, s->state);
}

static struct command_def command_all[COMMAND_MAX_ROWS];

/* Append rows; the last one is left free, because it ends the table. Returns their number. */
static size_t command_add(size_t n, const struct command_def *rows) {
    for (const struct command_def *d = rows; d && d->name && n + 1 < COMMAND_MAX_ROWS; d++)
        command_all[n++] = *d;
    return n;
}

const struct command_def *command_rows(void) {
    size_t n = 0;
    if (command_all[0].name)
        return command_all;
    for (const struct screen_def *const *s = screen_list; *s; s++)
        n = command_add(n, (*s)->commands);
    command_add(n, command_table);
    return command_all;
}

const struct command_def *command_find(const char *name, enum action_context context) {
    for (const struct command_def *d = command_rows(); d->name; d++)
        if ((d->contexts & ACTION_IN(context)) && strcmp(d->name, name) == 0)
            return d;
    return NULL;
}

size_t command_first_word(const char **line) {
    *line += strspn(*line, " :");
    return strcspn(*line, " ");
}

/* ---- what may stand there ---- */

const char *command_word(const struct command_choices *c) { return c->line + c->from; }

bool command_next_word(struct command_choices *c) {
    const char *word = command_word(c);
    size_t len = strcspn(word, " ");
    if (!word[len])
        return false;
    c->from += len + strspn(word + len, " ");
    return true;
}

void command_offer(struct command_choices *c, const char *text, const char *help) {
    const char *word = command_word(c);
    if (c->n == COMMAND_MAX_CHOICES || strncmp(text, word, strlen(word)) != 0)
        return;
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->items[i].text, text) == 0)
            return;
    const char *copy = arena_strdup(&c->arena, text);
    if (copy)
        c->items[c->n++] = (struct command_choice){copy, help};
}

void command_complete(struct app *app, const char *line, struct command_choices *out) {
    char word[64];
    enum action_context context = command_context(app);
    const char *first = line;
    size_t len = command_first_word(&first);
    *out = (struct command_choices){.line = line, .from = (size_t)(first - line)};
    arena_init(&out->arena, COMMAND_ARENA);
    if (first[len]) {
        snprintf(word, sizeof word, "%.*s", (int)(len < sizeof word ? len : sizeof word - 1), first);
        const struct command_def *d = command_find(word, context);
        command_next_word(out);
        if (d && d->complete)
            d->complete(app, out);
        return;
    }
    for (const struct command_def *d = command_rows(); d->name; d++)
        if (d->contexts & ACTION_IN(context))
            command_offer(out, d->name, d->help);
    for (const struct action_def *d = action_table(); d->action; d++)
        if ((d->contexts & ACTION_IN(context)) && d->action != ACTION_COMMAND_LINE)
            command_offer(out, d->name, d->help);
}

void command_choices_fini(struct command_choices *c) {
    arena_fini(&c->arena);
    c->n = 0;
}

/* ---- the line while it is typed ---- */

#define COMMAND_LINE_ROWS 10      /* of the list */
#define COMMAND_LINE_NAME_COLS 24 /* of a choice; its help has the rest */

void command_line_init(struct command_line *c) { c->at = -1; }

static void command_line_close_list(struct command_line *c) {
    if (c->choices)
        command_choices_fini(c->choices);
    c->listing = false;
}

void command_line_fini(struct command_line *c) {
    command_line_close_list(c);
    free(c->choices);
    history_fini(&c->history);
}

void command_line_open(struct app *app, const char *text) {
    struct command_line *c = &app->command;
    app_prompt(app, ACTION_COMMAND_LINE, ":", text);
    app_open_history(app, "commands", &c->history, &c->has_history);
    c->at = -1;
    command_line_close_list(c);
}

static void command_line_set(struct app *app, const char *text) {
    prompt_start(&app->prompt, ":", text);
    app->prompt_failed = false;
}

/* ---- words to complete with ---- */

/* Compute the completions again; the list stays while there are some. */
static void command_line_refresh(struct app *app) {
    struct command_line *c = &app->command;
    if (!c->choices)
        c->choices = calloc(1, sizeof *c->choices);
    if (!c->choices)
        return;
    command_choices_fini(c->choices);
    command_complete(app, app->prompt.text, c->choices);
    c->list = (struct list){0};
    list_fit(&c->list, (int)c->choices->n, COMMAND_LINE_ROWS);
}

/* Replace the word that is being typed. */
static void command_line_put(struct app *app, const char *text, size_t len, bool whole) {
    char line[PROMPT_MAX];
    size_t from = app->command.choices->from;
    bool goes_on = len > 0 && (text[len - 1] == '/' || text[len - 1] == '=');
    snprintf(line, sizeof line, "%.*s%.*s%s", (int)from, app->prompt.text, (int)len, text,
             whole && !goes_on ? " " : "");
    command_line_set(app, line);
}

static void command_line_accept(struct app *app) {
    struct command_line *c = &app->command;
    const char *text = c->choices->items[c->list.selected].text;
    command_line_put(app, text, strlen(text), true);
    command_line_close_list(c);
}

/* Length of the common beginning of all choices. */
static size_t command_line_common(const struct command_choices *c) {
    size_t n = strlen(c->items[0].text);
    for (size_t i = 1; i < c->n; i++)
        for (size_t k = 0; k < n; k++)
            if (c->items[i].text[k] != c->items[0].text[k])
                n = k;
    return n;
}

static void command_line_tab(struct app *app) {
    struct command_line *c = &app->command;
    app->prompt.cursor = strlen(app->prompt.text); /* completion is at the end of the line */
    command_line_refresh(app);
    if (!c->choices || c->choices->n == 0) {
        app->prompt_failed = true;
        return;
    }
    if (c->choices->n == 1) {
        command_line_accept(app);
        return;
    }
    command_line_put(app, c->choices->items[0].text, command_line_common(c->choices), false);
    c->listing = true;
}

/* A key of the list; false: another one. */
static bool command_line_key_list(struct app *app, uint32_t key) {
    struct command_line *c = &app->command;
    enum action move = ACTION_NONE;
    switch (key) {
    case INPUT_TAB:
    case INPUT_DOWN:
    case INPUT_CTRL + 'n':
        move = ACTION_DOWN;
        break;
    case INPUT_BACKTAB:
    case INPUT_UP:
    case INPUT_CTRL + 'p':
        move = ACTION_UP;
        break;
    case INPUT_PAGE_DOWN:
        move = ACTION_PAGE_DOWN;
        break;
    case INPUT_PAGE_UP:
        move = ACTION_PAGE_UP;
        break;
    case INPUT_ENTER:
        command_line_accept(app);
        return true;
    case INPUT_ESC:
        command_line_close_list(c);
        return true;
    default:
        return false;
    }
    list_move(&c->list, move);
    return true;
}

/* ---- the history ---- */

static bool command_line_fits(const struct command_line *c, long at) {
    return strncmp(c->history.entries[at], c->typed, strlen(c->typed)) == 0;
}

/* Show the entry before (`step` -1) or after the one that is shown. */
static void command_line_history(struct app *app, int step) {
    struct command_line *c = &app->command;
    if (c->at < 0)
        snprintf(c->typed, sizeof c->typed, "%s", app->prompt.text);
    long n = (long)c->history.n, at = c->at < 0 ? n : c->at;
    do
        at += step;
    while (at >= 0 && at < n && !command_line_fits(c, at));
    if (at < 0)
        return;
    c->at = at < n ? at : -1;
    command_line_set(app, at < n ? c->history.entries[at] : c->typed);
}

/* ---- the line ---- */

static void command_line_edited(struct app *app) {
    struct command_line *c = &app->command;
    app->prompt_failed = false;
    c->at = -1;
    if (!c->listing)
        return;
    command_line_refresh(app);
    if (c->choices->n == 0)
        command_line_close_list(c);
}

bool command_line_key(struct app *app, uint32_t key) {
    struct command_line *c = &app->command;
    if (c->listing && command_line_key_list(app, key))
        return false;
    switch (key) {
    case INPUT_TAB:
        command_line_tab(app);
        return false;
    case INPUT_UP:
    case INPUT_CTRL + 'p':
        command_line_history(app, -1);
        return false;
    case INPUT_DOWN:
    case INPUT_CTRL + 'n':
        command_line_history(app, 1);
        return false;
    default:
        break;
    }
    switch (prompt_key(&app->prompt, key)) {
    case PROMPT_UNCHANGED:
        break;
    case PROMPT_CHANGED:
        command_line_edited(app);
        break;
    case PROMPT_ACCEPTED:
        return true;
    case PROMPT_CANCELLED:
        app->prompt_for = ACTION_NONE;
        command_line_close_list(c);
        break;
    }
    return false;
}

void command_line_paste(struct app *app, const char *text) {
    prompt_paste(&app->prompt, text);
    command_line_edited(app);
}

void command_line_draw(struct app *app, struct grid *g, struct rect area) {
    struct command_line *c = &app->command;
    if (app->prompt_for != ACTION_COMMAND_LINE || !c->listing)
        return;
    int n = (int)c->choices->n, rows = n < COMMAND_LINE_ROWS ? n : COMMAND_LINE_ROWS;
    rows = rows < area.rows ? rows : area.rows;
    list_fit(&c->list, n, rows);
    for (int i = 0; i < rows; i++) {
        int at = c->list.top + i;
        const struct command_choice *choice = &c->choices->items[at];
        struct rect line = {area.row + area.rows - rows + i, area.col, 1, area.cols};
        enum theme_role role = at == c->list.selected ? ROLE_SELECTION : ROLE_STATUS;
        grid_fill(g, line, role);
        grid_text_fit(g, line, 0, 1, *choice->help ? COMMAND_LINE_NAME_COLS : line.cols - 1, role, GRID_LEFT,
                      choice->text);
        if (*choice->help)
            grid_text_fit(g, line, 0, COMMAND_LINE_NAME_COLS + 2, line.cols - COMMAND_LINE_NAME_COLS - 2,
                          role, GRID_LEFT, choice->help);
    }
}
