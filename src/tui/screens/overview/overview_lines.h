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

/* Append a line; its texts are empty. One too many goes nowhere. */
struct overview_line *overview_add(struct overview *s, enum overview_kind kind, const char *label,
                                   enum action opens);

/* Append to its text. */
void overview_say(struct overview_line *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Append the newest events, `most` at most. */
void overview_add_events(struct overview *s, const struct app *app, size_t most);

/* What there is room for. */
struct overview_form {
    int cols;       /* of a line on the left */
    size_t events;  /* that are listed at most */
    bool has_flame; /* a flame graph is below the lines on the right */
};

/* Make all lines from what is known now. */
void overview_build(struct overview *out, const struct app *app, const struct overview_functions *functions,
                    const struct overview_form *form);

#endif
