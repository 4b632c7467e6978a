/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overview_lines: what the Overview screen says, line by line: meters, threads, functions, events. Pure.
 *
 * Every number has its unit; what is not known is "?", what there is none of is said in words.
 */
#ifndef TUI_SCREENS_OVERVIEW_OVERVIEW_LINES_H
#define TUI_SCREENS_OVERVIEW_OVERVIEW_LINES_H

#include "tui/core/app.h"
#include "tui/screens/overview/overview_state.h"

/* The first functions of a table by their own time. The texts are copied. */
void overview_pick_functions(struct overview_functions *out, const struct sample_store *tally,
                             enum sample_store_window window);

/* All lines, from what is known now, for a column that is so wide. */
void overview_build(struct overview *out, const struct app *app, const struct overview_functions *functions,
                    int cols);

#endif
