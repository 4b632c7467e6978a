/* SPDX-License-Identifier: Apache-2.0 */
/*
 * header: what is above every screen; and what replaces everything when the terminal is too small.
 */
#ifndef TUI_CORE_HEADER_H
#define TUI_CORE_HEADER_H

#include "tui/view/grid.h"

struct app;

/* How many of so many rows it takes; draws it. */
int header_rows(const struct app *app, int screen_rows);
void header_draw(const struct app *app, struct grid *g, struct rect area);

void header_draw_too_small(const struct app *app, struct grid *g);

#endif
