/* SPDX-License-Identifier: Apache-2.0 */
/* layout: divides rows and columns. Pure; the parts fill the whole exactly. */
#ifndef TUI_VIEW_LAYOUT_H
#define TUI_VIEW_LAYOUT_H

#include <stdbool.h>

#include "tui/view/grid.h"

#define LAYOUT_MIN_COLS 40
#define LAYOUT_MIN_ROWS 12
#define LAYOUT_PANES_COLS 60 /* below this, one pane at a time is shown: the focused one */
#define LAYOUT_WIDE_COLS 140 /* from here on, panes are side by side */

/* What a column needs. */
struct layout_column {
    int min;    /* columns that it needs to be useful */
    int weight; /* its share of the remaining columns; 0: it never grows */
    int rank;   /* higher ones are left out first when there is no room; 0: never */
};

/* Widths of `n` columns in `cols` with `gap` between visible ones; 0 = left out. If a growing
 * column is visible, widths and gaps add up to `cols`, or to less only if `cols` does not hold the
 * columns that are never left out. */
void layout_columns(const struct layout_column *want, int n, int cols, int gap, int *widths);

/* Is there room for two panes? */
bool layout_has_panes(struct rect body);

/* Two panes in `body`, which has room for them: side by side with a column between them if it is
 * wide, else one above the other. Stacked, the first gets what its `rows` need (including the
 * title), at least a third and at most half. */
void layout_panes(struct rect body, int rows, struct rect *first, struct rect *second, struct rect *line);

#endif
