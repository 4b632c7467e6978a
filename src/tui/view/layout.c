/* SPDX-License-Identifier: Apache-2.0 */
/* layout: see layout.h. */
#include "tui/view/layout.h"

#include <stdbool.h>

static int layout_needed(const struct layout_column *want, int n, int gap, const int *widths) {
    int sum = 0, visible = 0;
    for (int i = 0; i < n; i++)
        if (widths[i]) {
            sum += want[i].min;
            visible++;
        }
    return sum + (visible > 1 ? (visible - 1) * gap : 0);
}

void layout_columns(const struct layout_column *want, int n, int cols, int gap, int *widths) {
    for (int i = 0; i < n; i++)
        widths[i] = want[i].min;
    for (;;) {
        int victim = -1;
        for (int i = 0; i < n; i++)
            if (widths[i] && want[i].rank > 0 && (victim < 0 || want[i].rank > want[victim].rank))
                victim = i;
        if (victim < 0 || layout_needed(want, n, gap, widths) <= cols)
            break;
        widths[victim] = 0;
    }
    int left = cols - layout_needed(want, n, gap, widths), weights = 0;
    for (int i = 0; i < n; i++)
        weights += widths[i] ? want[i].weight : 0;
    /* Shares by rounding the running sum, so that nothing is lost. */
    int seen = 0, given = 0, total = left;
    for (int i = 0; i < n && total > 0 && weights > 0; i++) {
        if (!widths[i] || !want[i].weight)
            continue;
        seen += want[i].weight;
        int upto = (int)((long)total * seen / weights);
        widths[i] += upto - given;
        given = upto;
    }
}

bool layout_has_panes(struct rect body) { return body.cols >= LAYOUT_PANES_COLS; }

void layout_panes(struct rect body, int rows, struct rect *first, struct rect *second, struct rect *line) {
    *first = *second = *line = body;
    if (body.cols >= LAYOUT_WIDE_COLS) {
        first->cols = (body.cols - 1) * 11 / 20;
        line->col = body.col + first->cols;
        line->cols = 1;
        second->col = line->col + 1;
        second->cols = body.cols - first->cols - 1;
        return;
    }
    int low = body.rows / 3, high = body.rows / 2;
    first->rows = rows < low ? low : rows > high ? high : rows;
    second->row = body.row + first->rows;
    second->rows = body.rows - first->rows;
    line->rows = 0;
}
