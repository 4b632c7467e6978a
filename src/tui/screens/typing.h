/* SPDX-License-Identifier: Apache-2.0 */
/*
 * typing: what screens share on which a text is typed and run: an editor, texts of before, a list of words to complete with. Pure.
 */
#ifndef TUI_SCREENS_TYPING_H
#define TUI_SCREENS_TYPING_H

#include <stdbool.h>

#include "client/history.h"
#include "tui/core/screen.h"
#include "tui/view/editor.h"
#include "tui/view/list.h"

struct typing {
    struct editor editor;
    struct rect area; /* of the editor, as last drawn */

    bool completing;     /* `choices` are shown; what they are is the screen's */
    struct list choices; /* at least one then */

    long history_at; /* entry that is shown; -1: what was typed */
    char *draft;     /* what was typed, while an entry is shown; owned */
    long found_at;   /* entry that the search stands on; -1 none */
    char *sought;    /* the text before the search; owned */
};

/* A word to complete with, as it is drawn. */
struct typing_choice {
    const char *text, *help;
};

void typing_init(struct typing *t);
void typing_fini(struct typing *t);

/* Show the entry of before (-1) or after (1) the one that is shown; after the newest comes what was typed. NULL, or a line that says why
 * there is none; `what` is what an entry is. */
const char *typing_step_history(struct typing *t, const struct history *h, int step, const char *what);

/* Ask for what is to be searched in the history, by a prompt of `action`; the screen gets it, and has typing_search answer. */
void typing_begin_search(struct typing *t, struct app *app, enum action action);
bool typing_search(struct typing *t, const struct history *h, const char *text, enum screen_typed phase);

/* Up and down in the choices, round and round; false when the action is neither. */
bool typing_act_choices(struct typing *t, enum action action);

/* Draw the choices over `area`: below the word that begins at byte `from`, or above it where there is no room. `get` says the `i`th. */
void typing_draw_choices(struct typing *t, struct grid *g, struct rect area, size_t from,
                         struct typing_choice (*get)(const void *arg, int i), const void *arg);

#endif
