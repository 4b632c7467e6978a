/* SPDX-License-Identifier: Apache-2.0 */
/* rank_stack: see rank_stack.h. */
#include "tui/screens/ranks/rank_stack.h"

#include <stdio.h>

#define RANK_STACK_DEPTH 3 /* columns of the number of a frame */

static int rank_stack_frames(const struct job_shot *s, uint32_t node) {
    return node < s->stacks.n_nodes ? (int)s->stacks.nodes[node].depth : 0;
}

int rank_stack_rows(const struct job_shot *s, uint32_t node) {
    int rows = rank_stack_frames(s, node) + 1;
    return rows < RANK_STACK_ROWS ? RANK_STACK_ROWS : rows;
}

/* Columns for the names of functions: as many as the widest needs, at most half. */
static int rank_stack_func_cols(const struct job_shot *s, uint32_t node, const struct grid *g, int cols) {
    int widest = 8;
    for (int i = rank_stack_frames(s, node); i > 0; i--, node = s->stacks.nodes[node].parent) {
        int width = grid_text_width(g, s->stacks.nodes[node].func);
        widest = width > widest ? width : widest;
    }
    return widest < cols / 2 ? widest : cols / 2;
}

static void rank_stack_draw_frame(const struct stack_node *n, int number, int func_cols, struct grid *g,
                                  struct rect area, int row) {
    char text[32], file[2048];
    snprintf(text, sizeof text, "%d", number);
    grid_text_fit(g, area, row, 0, RANK_STACK_DEPTH, ROLE_DEPTH, GRID_RIGHT, text);
    int col = RANK_STACK_DEPTH + 1;
    grid_text_fit(g, area, row, col, func_cols, n->own ? ROLE_FUNC : ROLE_FUNC_LIBRARY, GRID_LEFT,
                  *n->func ? n->func : "?");
    col += func_cols + 2;
    if (n->line > 0)
        snprintf(file, sizeof file, "%.2000s:%d", n->file, n->line);
    else
        snprintf(file, sizeof file, "%.2000s", n->file);
    if (col < area.cols)
        grid_text_fit(g, area, row, col, area.cols - col, ROLE_FILE, GRID_TAIL, file);
}

void rank_stack_draw(const struct job_shot *s, uint32_t node, const char *title, struct grid *g,
                     struct rect area) {
    int n = rank_stack_frames(s, node), shown = n < area.rows - 1 ? n : area.rows - 1,
        func_cols = rank_stack_func_cols(s, node, g, area.cols);
    grid_fill(g, (struct rect){area.row, area.col, 1, area.cols}, ROLE_TABLE_HEAD);
    int col = grid_printf(g, area, 0, 0, ROLE_TITLE, " %s ", title);
    if (shown < n)
        grid_printf(g, area, 0, col, ROLE_TABLE_HEAD, " %d of %d frames", shown, n);
    else if (n > 0)
        grid_printf(g, area, 0, col, ROLE_TABLE_HEAD, " %d frame%s", n, n == 1 ? "" : "s");
    if (n == 0)
        grid_text(g, area, 1, 1, ROLE_MUTED, "no stack is known");
    for (int i = 0; i < shown; i++, node = s->stacks.nodes[node].parent)
        rank_stack_draw_frame(&s->stacks.nodes[node], i, func_cols, g, area, i + 1);
}
