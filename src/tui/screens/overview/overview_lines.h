/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overview_lines: the lines of the Overview screen: meters, threads, functions, events. Pure.
 *
 * Every number has its unit; an unknown one is "?", and words say what does not exist.
 */
#ifndef TUI_SCREENS_OVERVIEW_OVERVIEW_LINES_H
#define TUI_SCREENS_OVERVIEW_OVERVIEW_LINES_H

#include "tui/core/app.h"
#include "tui/screens/overview/overview_state.h"

/* The top functions of a table by their own time. Copies the texts. */
void overview_pick_functions(struct overview_functions *out, const struct sample_store *tally,
                             enum sample_store_window window);

/* Make all lines from what is known now, for a column that is `cols` wide. */
void overview_build(struct overview *out, const struct app *app, const struct overview_functions *functions,
                    int cols);

#endif
