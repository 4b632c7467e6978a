/* SPDX-License-Identifier: Apache-2.0 */
/*
 * header: what stands over every screen; and what stands in place of everything when the terminal is too small.
 */
#ifndef TUI_CORE_HEADER_H
#define TUI_CORE_HEADER_H

#include "tui/view/grid.h"

struct app;

/* Rows that it takes of so many, and drawing it. */
int header_rows(const struct app *app, int screen_rows);
void header_draw(const struct app *app, struct grid *g, struct rect area);

void toosmall_draw(const struct app *app, struct grid *g);

#endif
