/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_layout: computes the terminal cells of the nodes of a flame tree: a row for each depth,
 * with widths proportional to their shares.
 *
 * The beginning and the end of a frame are rounded, never its width, so widths add up. Callees
 * that are smaller than a cell, or below the threshold, share one at the end of their siblings.
 * Pure; allocates.
 */
#ifndef FLAME_FLAME_LAYOUT_H
#define FLAME_FLAME_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "flame/flame.h"

/* The wanted part of the tree. */
struct flame_view {
    uint32_t zoom; /* this node has the full width, and its callers above it */
    int cols;      /* 1 to FLAME_MAX_COLS */
    int top, rows; /* depths from `top` on; the root has 0 */
    int permille;  /* of the zoomed node: smaller callees share a cell; 0 none */
};

#define FLAME_MAX_COLS 10000

struct flame_cell {
    uint32_t node;   /* FLAME_NO_NODE: `n` callees of `parent` that are too small */
    uint32_t parent; /* FLAME_NO_NODE for the root */
    uint32_t n;
    int row, col, width; /* row counted from the view's top */
    struct flame_weight weight;
};

struct flame_layout {
    struct flame_view view;
    struct flame_cell *cells; /* by row, then from the left */
    size_t n, cap;
    bool has_more; /* more cells are below the last row */
};

/* Replace the layout. 0, or -1 without memory: then it is empty. */
int flame_layout_build(struct flame_layout *l, struct flame *f, const struct flame_view *view);
void flame_layout_fini(struct flame_layout *l);

/* True if a callee of a laid-out node shares the cell of the small ones. */
bool flame_layout_is_small(const struct flame *f, const struct flame_view *view, uint32_t node);

/* The cell of a node, or the shared cell that contains it or its caller; NULL if it is in no
 * laid-out cell. */
const struct flame_cell *flame_layout_find(const struct flame_layout *l, const struct flame *f,
                                           uint32_t node);

/* The cell at a place, or NULL. */
const struct flame_cell *flame_layout_at(const struct flame_layout *l, int row, int col);

#endif
