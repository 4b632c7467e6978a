/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tabs: the line that names the screens with their keys, from their descriptors; the current one is
 * marked, and an overlay is named after it. With few rows it is folded into the end of the status
 * line: keys alone. Pure.
 */
#ifndef TUI_CORE_TABS_H
#define TUI_CORE_TABS_H

#include "tui/core/app.h"

#define TABS_LINE_ROWS 24 /* from here on it has a line of its own */

/* How many of so many rows it takes: 1 or 0. */
int tabs_rows(const struct app *a, int screen_rows);

/* Draw the line. */
void tabs_draw(struct app *a, struct grid *g, struct rect area);

/* Draw the folded form at the right end of the status line; returns its columns. */
int tabs_draw_folded(struct app *a, struct grid *g, struct rect area);

/* What a click there does; ACTION_NONE: nothing. */
enum action tabs_at(const struct app *a, int row, int col);

#endif
