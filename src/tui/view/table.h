/* SPDX-License-Identifier: Apache-2.0 */
/* table: columns as descriptors; head, cells and sorting of every table in the program. Pure. */
#ifndef TUI_VIEW_TABLE_H
#define TUI_VIEW_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"
#include "tui/view/grid.h"
#include "tui/view/layout.h"

#define TABLE_MAX_COLUMNS 16
#define TABLE_CELL 1024

/* The content of a cell. */
struct table_cell {
    char text[TABLE_CELL];
    enum theme_role role;
};

/* A column, for rows of the type that `row` points to. */
struct table_column {
    const char *title;
    const char *help; /* what it means, for the help */
    struct layout_column size;
    enum grid_align align;
    bool descends; /* sorted by it, the largest comes first */
    void (*cell)(const void *row, struct table_cell *out);
    int (*compare)(const void *a, const void *b); /* ascending; the caller handles unknown values */
};

/* How a table is sorted. */
struct table_sort {
    int column;
    bool descends;
};

/* Widths for an area of `cols` columns. */
void table_layout(const struct table_column *columns, int n, int cols, int *widths);

/* Draw the head; the column it is sorted by is marked. */
void table_draw_head(const struct table_column *columns, int n, const int *widths, struct table_sort sort,
                     struct grid *g, struct rect area);

/* Draw the cells of a row; growing columns are scrolled by `scroll`; -1: the table does not
 * scroll. */
void table_draw_row(const struct table_column *columns, int n, const int *widths, const void *row, int scroll,
                    struct grid *g, struct rect area, int y);

/* The row as text, for copying: all its columns, separated by tabs. */
void table_put_row(const struct table_column *columns, int n, const void *row, struct strbuf *out);

/* The column at `col` of the area; -1: none. */
int table_column_at(const int *widths, int n, int col);

/* Go to the next (+1) or previous (-1) column, in its own direction. */
void table_sort_step(struct table_sort *sort, const struct table_column *columns, int n, int step);

/* Sort by a column; again: reverse. */
void table_sort_by(struct table_sort *sort, const struct table_column *columns, int column);

/* For columns of numbers: NAN, which is unknown, comes before all known ones. */
int table_compare_number(double a, double b);

/* Stable sort of `rows` (pointers). */
void table_sort_rows(const struct table_column *columns, struct table_sort sort, const void **rows, size_t n);

#endif
