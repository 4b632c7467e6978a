/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tabs: the line that names the screens with a number, from their descriptors; the one that is shown is marked, and what
 * lies over it is named behind. Where rows are few it is folded into the end of the status line: numbers alone. Pure.
 */
#ifndef TUI_CORE_TABS_H
#define TUI_CORE_TABS_H

#include "tui/core/app.h"

#define TABS_LINE_ROWS 24 /* from here it has a line of its own */

/* Rows it takes of a screen with so many: 1 or 0. */
int tabs_rows(const struct app *a, int screen_rows);

/* Draw the line. */
void tabs_draw(struct app *a, struct grid *g, struct rect area);

/* Draw the folded form at the right end of the status line; columns used. */
int tabs_draw_folded(struct app *a, struct grid *g, struct rect area);

/* What a click there does; ACTION_NONE nothing. */
enum action tabs_at(const struct app *a, int row, int col);

#endif
