/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_grid: where each rank of a job is drawn if a rank, or a few of them, is one character.
 *
 * Ranks are in groups (a host, a class of stacks, or all of them), and a group is a block: its name
 * and its cells. Blocks stand side by side while each group fits on a line; else a group begins a
 * line and takes as many as it needs. If there are too many for the rows, a cell holds 2, 4, 8, ...
 * ranks. Pure.
 */
#ifndef TUI_VIEW_RANK_GRID_H
#define TUI_VIEW_RANK_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rank_grid_group {
    const char *name;
    int name_cols; /* of its text */
    int first, n;  /* its slots: ranks in the order in which they are drawn */
    int line;      /* set by rank_grid_plan: where its first cell is */
    int col;
};

struct rank_grid {
    struct rank_grid_group *groups; /* borrowed */
    int n_groups;
    int per_cell;  /* slots a cell; 0: the groups do not fit at all */
    int per_line;  /* cells of a group on one line */
    int name_cols; /* of the names, which stand left of the cells; 0: none */
    int lines;
};

#define RANK_GRID_GAP 2 /* columns between two blocks */

/* Plan them in `cols` columns and at most `lines` lines. Sets where each group is. False: there are
 * more groups than fit. */
bool rank_grid_plan(struct rank_grid *p, struct rank_grid_group *groups, int n_groups, int cols, int lines);

/* How many cells a group has; the line and column of one. */
int rank_grid_cells(const struct rank_grid *p, const struct rank_grid_group *g);
void rank_grid_place(const struct rank_grid *p, const struct rank_grid_group *g, int cell, int *line,
                     int *col);

/* The cell of a slot: its group, and its number there. False: no group has it. */
bool rank_grid_find(const struct rank_grid *p, int slot, int *group, int *cell);

/* The cell at a place: the slots that it holds. False: there is none. */
bool rank_grid_at(const struct rank_grid *p, int line, int col, int *first, int *n);

#endif
