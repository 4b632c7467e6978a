/* SPDX-License-Identifier: Apache-2.0 */
/* table: see table.h. */
#include "tui/view/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/view/pick.h"

#define TABLE_GAP 1

void table_layout(const struct table_column *columns, int n, int cols, int *widths) {
    struct layout_column want[TABLE_MAX_COLUMNS];
    for (int i = 0; i < n; i++)
        want[i] = columns[i].size;
    layout_columns(want, n, cols, TABLE_GAP, widths);
}

void table_draw_head(const struct table_column *columns, int n, const int *widths, struct table_sort sort,
                     struct grid *g, struct rect area) {
    struct rect line = {area.row, area.col, 1, area.cols};
    grid_fill(g, line, ROLE_TABLE_HEAD);
    int col = 0;
    for (int i = 0; i < n; i++) {
        if (!widths[i])
            continue;
        char title[64];
        bool sorted = i == sort.column;
        const char *mark = sorted ? glyph(g, sort.descends ? GLYPH_SORT_DOWN : GLYPH_SORT_UP) : "";
        snprintf(title, sizeof title, "%s%s", columns[i].title, mark);
        grid_text_fit(g, line, 0, col, widths[i], sorted ? ROLE_TABLE_SORT : ROLE_TABLE_HEAD,
                      columns[i].align == GRID_RIGHT ? GRID_RIGHT : GRID_LEFT, title);
        col += widths[i] + TABLE_GAP;
    }
}

void table_draw_row(const struct table_column *columns, int n, const int *widths, const void *row, int scroll,
                    struct grid *g, struct rect area, int y) {
    int col = 0;
    for (int i = 0; i < n; i++) {
        if (!widths[i])
            continue;
        struct table_cell cell = {.role = ROLE_TEXT};
        columns[i].cell(row, &cell);
        grid_text_scroll(g, area, y, col, widths[i], columns[i].size.weight > 0 ? scroll : -1, cell.role,
                         columns[i].align, cell.text);
        col += widths[i] + TABLE_GAP;
    }
}

void table_put_row(const struct table_column *columns, int n, const void *row, struct strbuf *out) {
    for (int i = 0; i < n; i++) {
        struct table_cell cell = {.role = ROLE_TEXT};
        columns[i].cell(row, &cell);
        strbuf_adds(out, i ? "\t" : "");
        pick_put_text(out, cell.text + (i ? 0 : strspn(cell.text, " ")));
    }
}

int table_column_at(const int *widths, int n, int col) {
    int at = 0;
    for (int i = 0; i < n; i++) {
        if (!widths[i])
            continue;
        if (col >= at && col < at + widths[i] + TABLE_GAP)
            return i;
        at += widths[i] + TABLE_GAP;
    }
    return -1;
}

void table_sort_step(struct table_sort *sort, const struct table_column *columns, int n, int step) {
    sort->column = (sort->column + step + n) % n;
    sort->descends = columns[sort->column].descends;
}

void table_sort_by(struct table_sort *sort, const struct table_column *columns, int column) {
    sort->descends = sort->column == column ? !sort->descends : columns[column].descends;
    sort->column = column;
}

/* Merge sort from the bottom up: stable, with one scratch array. */
int table_compare_number(double a, double b) {
    a = isnan(a) ? -INFINITY : a;
    b = isnan(b) ? -INFINITY : b;
    return (a > b) - (a < b);
}

void table_sort_rows(const struct table_column *columns, struct table_sort sort, const void **rows,
                     size_t n) {
    int (*compare)(const void *, const void *) = columns[sort.column].compare;
    const void **scratch = calloc(n + 1, sizeof *scratch);
    if (!scratch)
        return;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t low = 0; low < n; low += 2 * width) {
            size_t middle = low + width < n ? low + width : n,
                   high = low + 2 * width < n ? low + 2 * width : n;
            size_t i = low, j = middle;
            for (size_t k = low; k < high; k++) {
                int order = i < middle && j < high ? compare(rows[i], rows[j]) * (sort.descends ? -1 : 1) : 0;
                bool left = j >= high || (i < middle && order <= 0);
                scratch[k] = left ? rows[i++] : rows[j++];
            }
        }
        memcpy(rows, scratch, n * sizeof *rows);
    }
    free(scratch);
}
