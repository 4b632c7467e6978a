/* SPDX-License-Identifier: Apache-2.0 */
/* rank_grid: see rank_grid.h. */
#include "tui/view/rank_grid.h"

#define RANK_GRID_MOST (1 << 20) /* slots a cell */
#define RANK_GRID_EVEN 8         /* long lines have a multiple of so many cells */

static int rank_grid_up(int n, int by) { return (n + by - 1) / by; }

int rank_grid_cells(const struct rank_grid *p, const struct rank_grid_group *g) {
    return rank_grid_up(g->n, p->per_cell);
}

/* Blocks side by side. False: they do not fit. */
static bool rank_grid_plan_blocks(struct rank_grid *p, int widest, int cols, int lines) {
    int block = p->name_cols + (p->name_cols ? 1 : 0) + widest;
    if (block > cols)
        return false;
    int beside = (cols + RANK_GRID_GAP) / (block + RANK_GRID_GAP);
    if (rank_grid_up(p->n_groups, beside) > lines)
        return false;
    p->per_line = widest;
    p->lines = rank_grid_up(p->n_groups, beside);
    for (int i = 0; i < p->n_groups; i++) {
        p->groups[i].line = i / beside;
        p->groups[i].col = i % beside * (block + RANK_GRID_GAP) + block - widest;
    }
    return true;
}

/* Each group on lines of its own. False: they do not fit. */
static bool rank_grid_plan_lines(struct rank_grid *p, int cols, int lines) {
    int before = p->name_cols + (p->name_cols ? 1 : 0), room = cols - before;
    if (room < 1)
        return false;
    p->per_line = room > 2 * RANK_GRID_EVEN ? room / RANK_GRID_EVEN * RANK_GRID_EVEN : room;
    p->lines = 0;
    for (int i = 0; i < p->n_groups; i++) {
        struct rank_grid_group *g = &p->groups[i];
        g->line = p->lines;
        g->col = before;
        p->lines += rank_grid_up(rank_grid_cells(p, g), p->per_line);
    }
    return p->lines <= lines;
}

bool rank_grid_plan(struct rank_grid *p, struct rank_grid_group *groups, int n_groups, int cols, int lines) {
    *p = (struct rank_grid){.groups = groups, .n_groups = n_groups};
    for (int i = 0; i < n_groups; i++)
        if (groups[i].name_cols > p->name_cols)
            p->name_cols = groups[i].name_cols;
    for (p->per_cell = 1; n_groups > 0 && lines > 0 && p->per_cell <= RANK_GRID_MOST; p->per_cell *= 2) {
        int widest = 0;
        for (int i = 0; i < n_groups; i++) {
            int cells = rank_grid_cells(p, &groups[i]);
            widest = cells > widest ? cells : widest;
        }
        if (rank_grid_plan_blocks(p, widest, cols, lines) || rank_grid_plan_lines(p, cols, lines))
            return true;
        if (widest <= 1)
            break;
    }
    p->per_cell = p->lines = 0;
    return false;
}

void rank_grid_place(const struct rank_grid *p, const struct rank_grid_group *g, int cell, int *line,
                     int *col) {
    *line = g->line + cell / p->per_line;
    *col = g->col + cell % p->per_line;
}

bool rank_grid_find(const struct rank_grid *p, int slot, int *group, int *cell) {
    for (int i = 0; p->per_cell && i < p->n_groups; i++) {
        const struct rank_grid_group *g = &p->groups[i];
        if (slot < g->first || slot >= g->first + g->n)
            continue;
        *group = i;
        *cell = (slot - g->first) / p->per_cell;
        return true;
    }
    return false;
}

bool rank_grid_at(const struct rank_grid *p, int line, int col, int *first, int *n) {
    for (int i = 0; p->per_cell && i < p->n_groups; i++) {
        const struct rank_grid_group *g = &p->groups[i];
        int at = col - g->col, cell = (line - g->line) * p->per_line + at;
        if (line < g->line || at < 0 || at >= p->per_line || cell >= rank_grid_cells(p, g))
            continue;
        *first = g->first + cell * p->per_cell;
        *n = g->first + g->n - *first < p->per_cell ? g->first + g->n - *first : p->per_cell;
        return true;
    }
    return false;
}
