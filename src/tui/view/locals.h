/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locals: a pane with the arguments and local variables of one frame. Pure.
 *
 * Values come by an answer of their own, which has a stack of its own: a frame is found in it again by its distance from the
 * outermost one and its function. One that is not there any more has no values to show.
 */
#ifndef TUI_VIEW_LOCALS_H
#define TUI_VIEW_LOCALS_H

#include <stdbool.h>

#include "base/model.h"
#include "tui/model/data.h"
#include "tui/view/grid.h"
#include "tui/view/list.h"
#include "tui/view/match.h"

#define LOCALS_MIN_ROWS 3 /* of a pane: its title and two lines */

struct locals_pane {
    bool open;
    bool focused; /* the keys go here */
    struct list list;
    int scroll; /* columns to the right */
};

/* Take the lower half of `stack` for the pane, if there is room; without, the pane has no rows. */
struct rect locals_take_rect(const struct locals_pane *p, struct rect *stack);

/* Draw title and variables of frame `depth` of thread `t` (NULL: none). */
void locals_draw(struct locals_pane *p, const struct data *d, const struct model_thread *t, bool of_child,
                 int depth, const struct match *search, struct grid *g, struct rect area);

/* The same with the tasks of asyncio that the thread runs, each with what it awaits; those of a child process are not known. */
void locals_draw_tasks(struct locals_pane *p, const struct data *d, const struct model_thread *t,
                       bool of_child, const struct match *search, struct grid *g, struct rect area);

/* The selected variable and the function it is of; false when none is, or the pane does not have the keys. */
bool locals_pick(const struct locals_pane *p, const struct data *d, const struct model_thread *t, int depth,
                 const char **name, const char **func);

#endif
