/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tui_capture: what a terminal would show: the app is painted through ncurses into libvterm, in this process.
 */
#ifndef TESTS_TUI_CAPTURE_H
#define TESTS_TUI_CAPTURE_H

#include "base/strbuf.h"
#include "tui/app.h"
#include "tui/theme.h"

struct capture_config {
    int rows, cols;
    const char *term;  /* terminfo name */
    const char *color; /* --color */
    const struct theme *theme;
};

/* Text of the screen, then a letter for the style of each cell, then what the letters mean. Appended to `out`. False when
 * the terminal could not be opened. */
bool capture_app(struct app *a, const struct capture_config *config, struct strbuf *out);

/* The text alone, of a 256-colour terminal. */
bool capture_text(struct app *a, int rows, int cols, struct strbuf *out);

#endif
