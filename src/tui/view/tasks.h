/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tasks: a pane with the tasks of asyncio that a thread runs, each with what it awaits. Pure.
 *
 * Drawn in the place of the pane with the variables, from an answer of its own.
 */
#ifndef TUI_VIEW_TASKS_H
#define TUI_VIEW_TASKS_H

#include "base/model.h"
#include "tui/model/data.h"
#include "tui/view/locals.h"
#include "tui/view/grid.h"
#include "tui/view/match.h"

/* Draw title and tasks of the loop of thread `t` (NULL: none); those of a child process are not known. */
void tasks_draw(struct locals_pane *p, const struct data *d, const struct model_thread *t, bool of_child,
                const struct match *search, struct grid *g, struct rect area);

#endif
