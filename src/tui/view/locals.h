/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locals: a pane with the arguments and local variables of one frame. Pure.
 *
 * Values arrive in an answer of their own, with a stack of its own: a frame is found in it by its
 * distance from the outermost one and its function. A frame that no longer exists has no values.
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
    bool focused; /* the pane has the focus */
    struct list list;
    int scroll; /* columns scrolled to the right */
};

/* Use the lower half of `stack` for the pane, if there is room; otherwise the pane has no rows. */
struct rect locals_take_rect(const struct locals_pane *p, struct rect *stack);

/* Draw title and variables of frame `depth` of thread `t` (NULL: none). */
void locals_draw(struct locals_pane *p, const struct data *d, const struct model_thread *t, bool of_child,
                 int depth, const struct match *search, struct grid *g, struct rect area);

/* The same with the asyncio tasks that the thread runs, each with what it awaits; those of a child
 * process are unknown. */
void locals_draw_tasks(struct locals_pane *p, const struct data *d, const struct model_thread *t,
                       bool of_child, const struct match *search, struct grid *g, struct rect area);

/* The selected variable and its function; false: none is selected, or the pane does not have the
 * focus. */
bool locals_pick(const struct locals_pane *p, const struct data *d, const struct model_thread *t, int depth,
                 const char **name, const char **func);

#endif
