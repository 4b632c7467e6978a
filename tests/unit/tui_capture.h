/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tui_capture: what a terminal would show: the app is painted through ncurses into libvterm, in this process.
 */
#ifndef TESTS_TUI_CAPTURE_H
#define TESTS_TUI_CAPTURE_H

#include "base/strbuf.h"
#include "tui/core/app.h"
#include "tui/theme/theme.h"

struct capture_config {
    int rows, cols;
    const char *term;  /* terminfo name */
    const char *color; /* --color */
    const struct theme *theme;
};

/* Text of the screen, then a letter for the style of each cell, then what the letters mean. Appended to `out`. False when
 * the terminal could not be opened. */
bool capture_app(struct app *a, const struct capture_config *config, struct strbuf *out);

/* What a terminal shows of cells that are drawn: every cell, row by row, what stands in it (" " nothing) and how: "15 on 4 bold". The
 * right half of a wide character is left out. False when the terminal could not be opened. */
bool capture_grid(const struct grid *g, const struct capture_config *config,
                  void (*cell)(void *arg, int row, int col, const char *text, const char *style), void *arg);

/* The text alone, of a 256-colour terminal. */
bool capture_text(struct app *a, int rows, int cols, struct strbuf *out);

#endif
