/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sheet: a result as a table to look round in: the head stays, rows and columns scroll, each column has its width, may be hidden, sorted
 * by, or drawn with bars; or a value a line, for rows that are too wide. As fast with a million rows as with ten. Pure.
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
    double high; /* the largest number: a full bar */
};

struct sheet {
    struct result *rows; /* one reference is ours */
    struct sheet_column *columns;
    uint32_t *order;  /* rows as shown; NULL: as they came */
    struct tags tags; /* by the rows' numbers in the result */
    uint32_t *shown;  /* rows as shown, where those are not all; NULL: they are */
    size_t n_shown;
    struct list list;
    int column, left; /* the one selected, the first one shown */
    int sort_column;  /* -1: as they came */
    bool sort_descends;
    bool vertical; /* a value a line */
    int line_top;  /* then: the first line shown */
    struct match search;
};

/* Show a result; takes the reference. 0; -1 out of memory, and the reference is gone. */
int sheet_init(struct sheet *s, struct result *rows);
void sheet_fini(struct sheet *s); /* a zeroed one too */

/* How many rows are shown; the row of the result that stands at place `at`. */
size_t sheet_rows(const struct sheet *s);
size_t sheet_row(const struct sheet *s, int at);

/* Is there a cell that is selected? */
bool sheet_has_cell(const struct sheet *s);

/* Do the visible columns need more than `cols`? */
bool sheet_is_too_wide(const struct sheet *s, int cols);

int sheet_hidden(const struct sheet *s);

void sheet_draw(struct sheet *s, struct grid *g, struct rect area, bool focused);

/* Other rows are tagged, or only those are to be shown, or no more. */
void sheet_renew_rows(struct sheet *s);

/* Tag the rows that are the same as those tagged in the result of before, which has the same columns. */
void sheet_take_tags(struct sheet *to, const struct sheet *from);

/* Motions and what is done to columns. False when it is not for the sheet. */
bool sheet_act(struct sheet *s, enum action action);

/* Go to the cell that matches next, from the one selected (or after it, with `step` 1 or -1; 0: stay if it matches). */
bool sheet_find(struct sheet *s, int step);

/* A click at a place of `area` as last drawn: select; on the head: sort. The wheel scrolls. */
void sheet_click(struct sheet *s, int row, int col);
void sheet_wheel(struct sheet *s, int rows);

#endif
