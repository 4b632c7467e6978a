/* SPDX-License-Identifier: Apache-2.0 */
/*
 * typing: shared by the screens on which a text is typed and run: an editor, its history, and
 * completion. Pure.
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

    bool completing;     /* `choices` are shown; the screen owns their texts */
    struct list choices; /* at least one, if they are shown */

    long history_at; /* the entry that is shown; -1: what was typed */
    char *draft;     /* what was typed, while an entry is shown; owned */
    long found_at;   /* the entry that the search has found; -1: none */
    char *sought;    /* the text before the search; owned */
};

/* A completion, as it is drawn. */
struct typing_choice {
    const char *text, *help;
};

void typing_init(struct typing *t);
void typing_fini(struct typing *t);

/* Show the entry before (-1) or after (1) the one that is shown; after the newest comes what was
 * typed. NULL, or a line that says why there is none; `what` is the name of an entry. */
const char *typing_step_history(struct typing *t, const struct history *h, int step, const char *what);

/* Insert what was pasted; a message says so if it is too long. */
void typing_paste(struct typing *t, struct app *app, const char *text);

/* Ask for a text to search in the history, by a prompt of `action`; the screen gets it and calls
 * typing_search. */
void typing_begin_search(struct typing *t, struct app *app, enum action action);
bool typing_search(struct typing *t, const struct history *h, const char *text, enum screen_typed phase);

/* Up and down in the choices, wrapping around; false: another action. */
bool typing_act_choices(struct typing *t, enum action action);

/* Draw the choices over `area`: below the word that begins at byte `from`, or above it if there is
 * no room. `get` returns the `i`th. */
void typing_draw_choices(struct typing *t, struct grid *g, struct rect area, size_t from,
                         struct typing_choice (*get)(const void *arg, int i), const void *arg);

#endif
