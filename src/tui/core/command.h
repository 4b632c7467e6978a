/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command: the commands behind the colon, as rows of a table, and the line in which they are typed.
 *
 * A row has the name of a command, its argument, its function, and the completion of its argument.
 * The line, its completion and the help are made from the table. Besides, every action that has a
 * meaning in the current context can be run by its name. A screen brings its own commands
 * (screen_def.commands).
 *
 * The line is the app's prompt with two additions. Tab lists completions, and Enter takes the
 * selected one; without a list Enter runs the line. Up and Down go through the history, to entries
 * that begin with what was typed. Pure, but for what a command does to the app.
 */
#ifndef TUI_CORE_COMMAND_H
#define TUI_CORE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "tui/core/app.h"
#include "tui/keys/action.h"

#define COMMAND_MAX_CHOICES 400

/* A completion. */
struct command_choice {
    const char *text; /* the text that is inserted */
    const char *help; /* "": none */
};

/* The completions at the end of the line. */
struct command_choices {
    struct arena arena; /* owns texts that exist nowhere else */
    struct command_choice items[COMMAND_MAX_CHOICES];
    size_t n;
    const char *line; /* the whole line */
    size_t from;      /* byte of the line at which the word begins that a completion replaces */
};

struct command_def {
    const char *name;
    const char *arguments; /* as in the help; "": none */
    const char *help;
    /* ACTION_IN(...) of those that have it; of two rows with one name the first that fits is run. */
    uint64_t contexts;
    void (*run)(struct app *app, const char *argument);
    /* Offer completions of the argument, which begins at out->from; command_next_word moves that
     * on. NULL: none. */
    void (*complete)(struct app *app, struct command_choices *out);
};

/* The rows of command_table.c, which belong to no screen; ends with a NULL name. */
extern const struct command_def command_table[];

/* All rows: those of the screens, then those of command_table; ends with a NULL name. */
#define COMMAND_MAX_ROWS 128
const struct command_def *command_rows(void);

/* The command of that name in a context, or NULL. */
const struct command_def *command_find(const char *name, enum action_context context);

/* The context of the topmost screen. */
enum action_context command_context(struct app *app);

/* Length of the first word of `line`, which is moved to its beginning. */
size_t command_first_word(const char **line);

/* Completions at the end of `line`. command_choices_fini frees them. */
void command_complete(struct app *app, const char *line, struct command_choices *out);
void command_choices_fini(struct command_choices *c);

/* For `complete`: the word that is being typed; skip a complete first word (false: it is
 * incomplete); offer a text if it begins with that word. `text` is copied, `help` is not. */
const char *command_word(const struct command_choices *c);
bool command_next_word(struct command_choices *c);
void command_offer(struct command_choices *c, const char *text, const char *help);

/* ---- the line while it is typed ---- */

void command_line_init(struct command_line *c);
void command_line_fini(struct command_line *c);

/* Open the line with `text` in it. */
void command_line_open(struct app *app, const char *text);

/* A key, or pasted text, while it is open. True: run the line. */
bool command_line_key(struct app *app, uint32_t key);
void command_line_paste(struct app *app, const char *text);

/* The list, at the lower end of `area`; nothing if there is none. */
void command_line_draw(struct app *app, struct grid *g, struct rect area);

#endif
