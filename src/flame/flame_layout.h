/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_layout: where the nodes of a flame tree stand in cells of a terminal: a row for each depth, as wide as their share.
 *
 * Widths come from rounding where a frame begins and ends, never how wide it is, so they add up to what is there. Callees
 * that are smaller than a cell, or below the threshold, share one at the end of their siblings. Pure; allocates.
 */
#ifndef FLAME_FLAME_LAYOUT_H
#define FLAME_FLAME_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flame/flame.h"

/* What of the tree is wanted. */
struct flame_view {
    uint32_t zoom; /* this node has the whole width, and its callers above it */
    int cols;      /* 1 to FLAME_MAX_COLS */
    int top, rows; /* depths from `top` on, of the root 0 */
    int permille;  /* of the zoomed node: callees below share a cell; 0 none */
};

#define FLAME_MAX_COLS 10000

struct flame_cell {
    uint32_t node;   /* FLAME_NO_NODE: callees of `parent` that are too small, `n` of them */
    uint32_t parent; /* FLAME_NO_NODE of the root */
    uint32_t n;
    int row, col, width; /* row from the view's top */
    struct flame_weight weight;
};

struct flame_layout {
    struct flame_view view;
    struct flame_cell *cells; /* by row, then from the left */
    size_t n, cap;
    bool has_more; /* there are cells below the last row */
};

/* Replaces what was there. 0, or -1 without memory: empty. */
int flame_layout_build(struct flame_layout *l, struct flame *f, const struct flame_view *view);
void flame_layout_fini(struct flame_layout *l);

/* Would a callee of a node that is laid out share the cell of the small ones? */
bool flame_layout_is_small(const struct flame *f, const struct flame_view *view, uint32_t node);

/* The cell of a node, or the one it is in because it, or a caller, is too small; NULL when it is in none that was laid out. */
const struct flame_cell *flame_layout_find(const struct flame_layout *l, const struct flame *f,
                                           uint32_t node);

/* The cell at a place, or NULL. */
const struct flame_cell *flame_layout_at(const struct flame_layout *l, int row, int col);

#endif
