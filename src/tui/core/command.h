/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command: what can be typed behind the colon, as rows of a table.
 *
 * A row is a command: its name, its argument, what it does, and what its argument may be. The line, the words to complete with
 * and the help are made from the table; besides, every action of the action table that means something where one is can be run
 * by its name. A screen brings its own commands (screen_def.commands). Pure, but for what a command does to the app.
 */
#ifndef TUI_CORE_COMMAND_H
#define TUI_CORE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "tui/keys/action.h"

struct app;

#define COMMAND_MAX_CHOICES 400

/* One thing that may stand in the line. */
struct command_choice {
    const char *text; /* what is put in */
    const char *help; /* "" none */
};

/* What may stand at the end of what was typed. */
struct command_choices {
    struct arena arena; /* for texts that live nowhere else */
    struct command_choice items[COMMAND_MAX_CHOICES];
    size_t n;
    const char *line; /* all of it */
    size_t from;      /* byte of the line where the word begins that a choice takes the place of */
};

struct command_def {
    const char *name;
    const char *arguments; /* as in the help; "" none */
    const char *help;
    unsigned contexts; /* ACTION_IN(...) of those where it is known; of two rows of a name the first */
    void (*run)(struct app *app, const char *argument);
    /* Offer words for the argument, which begins at out->from and may be moved on by command_next_word; NULL: none. */
    void (*complete)(struct app *app, struct command_choices *out);
};

/* The rows of command_table.c, which belong to no screen; ends with a NULL name. */
extern const struct command_def command_table[];

/* All rows: those of the screens, then those of command_table; ends with a NULL name. */
#define COMMAND_MAX_ROWS 128
const struct command_def *command_rows(void);

/* The command of that name where one is, or NULL. */
const struct command_def *command_find(const char *name, enum action_context context);

/* The context that commands are looked for in: that of the topmost screen. */
enum action_context command_context(struct app *app);

/* Length of the first word of `line`, which is moved to it. */
size_t command_first_word(const char **line);

/* What may stand at the end of `line`. command_choices_fini frees. */
void command_complete(struct app *app, const char *line, struct command_choices *out);
void command_choices_fini(struct command_choices *c);

/* For `complete`: the word that was begun; leave out a first word that is whole (false: it is not yet); offer a text if it
 * begins with that word. `text` is copied, `help` is not. */
const char *command_word(const struct command_choices *c);
bool command_next_word(struct command_choices *c);
void command_offer(struct command_choices *c, const char *text, const char *help);

#endif
