/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finder: a screen that is one list in which can be searched: what Help, Setup and the themes have in common. The screen says what
 * its rows are, and which of them match.
 */
#ifndef TUI_VIEW_FINDER_H
#define TUI_VIEW_FINDER_H

#include <stdbool.h>

#include "tui/core/app.h"
#include "tui/view/list.h"
#include "tui/view/match.h"

struct finder {
    struct list list;
    struct match search;
    struct rect area; /* of the rows, as last drawn */
};

/* Of a screen: its state has a finder within. */
struct finder_def {
    bool (*matches)(const void *state, int row); /* what is searched for */
    void (*draw_row)(const void *state, const struct app *app, int row, struct grid *g, struct rect area);
};

/* Rows into `area`, of `count`. */
void finder_draw(struct finder *f, const struct finder_def *def, const void *state, const struct app *app,
                 struct grid *g, struct rect area, int count);

/* The text of a search; true when something matches, which is selected then. */
bool finder_typed(struct finder *f, const struct finder_def *def, const void *state, const char *text,
                  enum screen_typed phase);

/* The next match, the one before, no search any more, motion; false when the action is none of them. */
bool finder_act(struct finder *f, const struct finder_def *def, const void *state, struct app *app,
                enum action action);

/* The wheel, or a click on a row, which is selected; true when it was the selected one already. */
bool finder_mouse(struct finder *f, const struct input_event *e);

#endif
