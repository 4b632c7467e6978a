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

/* True if a stack goes through a node. */
static bool rank_stack_has(const struct job_shot *s, uint32_t leaf, uint32_t node) {
    for (; leaf != node && leaf != STACK_CLASSES_ROOT; leaf = s->stacks.nodes[leaf].parent)
        ;
    return leaf == node;
}

uint32_t rank_stack_find_other(const struct job_shot *s, uint32_t node, bool through) {
    uint32_t best = STACK_CLASSES_NONE;
    for (size_t i = 0; i < s->stacks.n_classes; i++) {
        uint32_t leaf = s->stacks.classes[i];
        if (leaf != STACK_CLASSES_ROOT && !(through ? rank_stack_has(s, leaf, node) : leaf == node) &&
            (best == STACK_CLASSES_NONE || s->stacks.nodes[leaf].n_here > s->stacks.nodes[best].n_here))
            best = leaf;
    }
    return best;
}

static void rank_stack_draw_frame(const struct stack_node *n, int number, int func_cols, bool is_common,
                                  struct grid *g, struct rect area, int row) {
    char text[32], file[2048];
    snprintf(text, sizeof text, "%d", number);
    grid_text_fit(g, area, row, 0, RANK_STACK_DEPTH, ROLE_DEPTH, GRID_RIGHT, text);
    int col = RANK_STACK_DEPTH + 1;
    grid_text_fit(g, area, row, col, func_cols,
                  is_common ? ROLE_MUTED
                  : n->own  ? ROLE_FUNC
                            : ROLE_FUNC_LIBRARY,
                  GRID_LEFT, *n->func ? n->func : "?");
    col += func_cols + 2;
    if (n->line > 0)
        snprintf(file, sizeof file, "%.2000s:%d", n->file, n->line);
    else
        snprintf(file, sizeof file, "%.2000s", n->file);
    if (col < area.cols)
        grid_text_fit(g, area, row, col, area.cols - col, is_common ? ROLE_MUTED : ROLE_FILE, GRID_TAIL,
                      file);
}

static void rank_stack_draw_one(const struct job_shot *s, const struct rank_stack_shown *one,
                                const struct rank_stack_shown *other, struct grid *g, struct rect area) {
    uint32_t node = one->node;
    int n = rank_stack_frames(s, node), shown = n < area.rows - 1 ? n : area.rows - 1,
        func_cols = rank_stack_func_cols(s, node, g, area.cols);
    grid_fill(g, (struct rect){area.row, area.col, 1, area.cols}, ROLE_TABLE_HEAD);
    int col = grid_printf(g, area, 0, 0, ROLE_TITLE, " %s ", one->title);
    if (shown < n)
        grid_printf(g, area, 0, col, ROLE_TABLE_HEAD, " %d of %d frames", shown, n);
    else if (n > 0)
        grid_printf(g, area, 0, col, ROLE_TABLE_HEAD, " %d frame%s", n, n == 1 ? "" : "s");
    if (n == 0)
        grid_text(g, area, 1, 1, ROLE_MUTED, "no stack is known");
    for (int i = 0; i < shown; i++, node = s->stacks.nodes[node].parent)
        rank_stack_draw_frame(&s->stacks.nodes[node], i, func_cols,
                              other && rank_stack_has(s, other->node, node), g, area, i + 1);
}

void rank_stack_draw(const struct job_shot *s, const struct rank_stack_shown *one,
                     const struct rank_stack_shown *other, struct grid *g, struct rect area) {
    struct rect left = area, right = area;
    if (other) {
        left.cols = (area.cols - 1) / 2;
        right.col += left.cols + 1;
        right.cols = area.cols - left.cols - 1;
        rank_stack_draw_one(s, other, one, g, right);
        for (int row = 0; row < area.rows; row++)
            grid_text(g, area, row, left.cols, ROLE_BORDER, glyph(g, GLYPH_VLINE));
    }
    rank_stack_draw_one(s, one, other, g, left);
}
