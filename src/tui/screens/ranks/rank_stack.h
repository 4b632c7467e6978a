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

/* Draw a title and the frames of a node of s->stacks, innermost first; if they do not all fit, the
 * outermost are left out, and the title says so. */
void rank_stack_draw(const struct job_shot *s, uint32_t node, const char *title, struct grid *g,
                     struct rect area);

#endif
