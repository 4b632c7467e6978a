/* SPDX-License-Identifier: Apache-2.0 */
/* facts: a pane with details of one thing, a line each: a name and a value, or a title. Pure. */
#ifndef TUI_VIEW_FACTS_H
#define TUI_VIEW_FACTS_H

#include <stdbool.h>
#include <stddef.h>

#include "client/sql/result.h"
#include "tui/view/grid.h"
#include "tui/view/list.h"
#include "tui/view/match.h"

#define FACTS_MAX 96
#define FACTS_TEXT 256

struct fact {
    char label[24]; /* "": a line of text */
    char text[FACTS_TEXT];
    enum theme_role role;
};

struct facts {
    struct fact items[FACTS_MAX];
    int n;
    struct list list;
    int scroll;
};

void facts_clear(struct facts *f);

/* Add a line; what does not fit is left out. */
void facts_add(struct facts *f, const char *label, enum theme_role role, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Add all values of a row except the columns in `but` (ends with NULL): bytes and times with their
 * units, unknown ones as "?". */
void facts_add_row(struct facts *f, const struct result *rows, size_t row, const char *const *but);

/* Add counts as a row of bars, "12,0,7", with a label. */
void facts_add_bars(struct facts *f, const struct grid *g, const char *label, const char *counts);

void facts_draw(struct facts *f, const char *title, bool focused, const struct match *search, struct grid *g,
                struct rect area);

#endif
