/* SPDX-License-Identifier: Apache-2.0 */
/* rank_stack: the stack of ranks of a job, below a table of them. Pure. */
#ifndef TUI_SCREENS_RANKS_RANK_STACK_H
#define TUI_SCREENS_RANKS_RANK_STACK_H

#include "tui/model/job_shot.h"
#include "tui/view/grid.h"

/* Rows that it needs at least, with its title. */
#define RANK_STACK_ROWS 4

/* Rows that a node's frames need. */
int rank_stack_rows(const struct job_shot *s, uint32_t node);

/* The leaf of the stack that most ranks have, of those that do not end in a node, or that do not go through it;
 * STACK_CLASSES_NONE: all do. */
uint32_t rank_stack_find_other(const struct job_shot *s, uint32_t node, bool through);

/* A stack, by its innermost frame in s->stacks. */
struct rank_stack_shown {
    uint32_t node;
    char title[96];
};

/* Draw a title and its frames, innermost first; if they do not all fit, the outermost are left out, and the title
 * says so. `other` (NULL: none) is drawn beside it, and the calls that both have in common are muted. */
void rank_stack_draw(const struct job_shot *s, const struct rank_stack_shown *one,
                     const struct rank_stack_shown *other, struct grid *g, struct rect area);

#endif
