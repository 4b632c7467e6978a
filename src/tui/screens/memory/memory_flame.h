/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_flame: bytes that live, as a flame graph: each function as wide as what was allocated in it
 * and below it and lives. From rows of folded stacks. Pure; allocates.
 */
#ifndef TUI_SCREENS_MEMORY_MEMORY_FLAME_H
#define TUI_SCREENS_MEMORY_MEMORY_FLAME_H

#include "client/sql/result.h"
#include "flame/flame.h"
#include "flame/flame_layout.h"
#include "tui/view/grid.h"

#define MEMORY_FLAME_NAMES 8192 /* different ones; what is below others is left out */

struct memory_flame {
    struct flame *tree;        /* NULL: no memory, or nothing yet */
    struct stack_counts *none; /* the tree's names are ours */
    char **names;
    uint32_t *slots; /* open addressing: 1 + name; 0 free */
    size_t n_names;
    struct flame_layout layout;
    uint32_t selected;
    struct rect area; /* as last drawn */
};

/* Make the tree of rows with "stack" (outermost first, separated by ';') and "bytes". NULL: an empty
 * one. What is selected stays selected if it is there. */
void memory_flame_build(struct memory_flame *f, const struct result *rows);
void memory_flame_fini(struct memory_flame *f);

bool memory_flame_is_there(const struct memory_flame *f);

/* The cells, with a line about the selected one above them. */
void memory_flame_draw(struct memory_flame *f, struct grid *g, struct rect area);

/* Go to a neighbour: the caller (dy -1), what it calls most (1), the cell on the left or right (dx).
 * False: there is none. */
bool memory_flame_move(struct memory_flame *f, int dx, int dy);

/* Select the cell at a place of the screen; false: there is none. */
bool memory_flame_click(struct memory_flame *f, int row, int col);

/* Name of the selected one, as it was folded; NULL: none. */
const char *memory_flame_selected(const struct memory_flame *f);

#endif
