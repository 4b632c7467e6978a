/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sheet: a result as a table to explore: the head stays, rows and columns scroll, each column has a
 * width, can be hidden, sorted by, or drawn with bars; or one value a line, for rows that are too
 * wide. A million rows are as fast as ten. Pure.
 */
#ifndef TUI_VIEW_SHEET_H
#define TUI_VIEW_SHEET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "client/sql/result.h"
#include "tui/view/grid.h"
#include "tui/view/list.h"
#include "tui/view/match.h"
#include "tui/view/tags.h"

struct sheet_column {
    int width; /* of the values */
    bool hidden, bar, numeric, fitted;
    double high; /* the largest number, which is a full bar */
};

struct sheet {
    struct result *rows; /* we own one reference */
    struct sheet_column *columns;
    uint32_t *order;  /* rows as shown; NULL: in the order of the result */
    struct tags tags; /* by the rows' numbers in the result */
    uint32_t *shown;  /* the rows that are shown; NULL: all */
    size_t n_shown;
    struct list list;
    int column, left; /* the selected one, the first visible one */
    int sort_column;  /* -1: in the order of the result */
    bool sort_descends;
    bool vertical; /* one value a line */
    int line_top;  /* then: the first visible line */
    struct match search;
};

/* Show a result; takes the reference. 0; -1: out of memory, and the reference is gone. */
int sheet_init(struct sheet *s, struct result *rows);
void sheet_fini(struct sheet *s); /* works on a zeroed one */

/* How many rows are shown; the row of the result at place `at`. */
size_t sheet_rows(const struct sheet *s);
size_t sheet_row(const struct sheet *s, int at);

/* Is a cell selected? */
bool sheet_has_cell(const struct sheet *s);

/* Do the visible columns need more than `cols`? */
bool sheet_is_too_wide(const struct sheet *s, int cols);

int sheet_hidden(const struct sheet *s);

void sheet_draw(struct sheet *s, struct grid *g, struct rect area, bool focused);

/* The tags have changed, or whether only tagged rows are shown. */
void sheet_renew_rows(struct sheet *s);

/* Tag the rows that equal those tagged in the last result, which has the same columns. */
void sheet_take_tags(struct sheet *to, const struct sheet *from);

/* Motions and actions on columns. False: another action. */
bool sheet_act(struct sheet *s, enum action action);

/* Go to the next cell that matches, from the selected one (or after it, with `step` 1 or -1; 0:
 * stay if it matches). */
bool sheet_find(struct sheet *s, int step);

/* A click at a place of `area` as last drawn: select; on the head: sort. The wheel scrolls. */
void sheet_click(struct sheet *s, int row, int col);
void sheet_wheel(struct sheet *s, int rows);

#endif
