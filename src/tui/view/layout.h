/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout: shares out rows and columns. Pure; what it gives out tiles what it got exactly.
 */
#ifndef TUI_VIEW_LAYOUT_H
#define TUI_VIEW_LAYOUT_H

#include <stdbool.h>

#include "tui/view/grid.h"

#define LAYOUT_MIN_COLS 40
#define LAYOUT_MIN_ROWS 12
#define LAYOUT_PANES_COLS 60 /* below, one pane at a time is shown: the one with the keys */
#define LAYOUT_WIDE_COLS 140 /* from here panes stand side by side */

/* What a column wants. */
struct layout_column {
    int min;    /* columns it needs to be of use */
    int weight; /* its share of what is left; 0 it never grows */
    int rank;   /* higher ones are left out first when there is no room; 0 never */
};

/* Widths of `n` columns in `cols` with `gap` between visible ones; 0 = left out. With a growing column visible, widths
 * and gaps together are `cols`, or less only when `cols` does not hold the columns that are never left out. */
void layout_columns(const struct layout_column *want, int n, int cols, int gap, int *widths);

/* Is there room for two panes? */
bool layout_has_panes(struct rect body);

/* Two panes in `body`, which has room for them: side by side with a column between them when it is wide, else one above the other. The first gets
 * what its `rows` need (title row included), at least a third and at most half when stacked. */
void layout_panes(struct rect body, int rows, struct rect *first, struct rect *second, struct rect *line);

#endif
