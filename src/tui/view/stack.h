/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack: a pane with all frames of one thread, innermost first. Pure.
 */
#ifndef TUI_VIEW_STACK_H
#define TUI_VIEW_STACK_H

#include <stdbool.h>

#include "base/model.h"
#include "tui/view/grid.h"
#include "tui/view/list.h"
#include "tui/view/match.h"

struct stack_pane {
    int64_t tid; /* whose frames were last shown; 0: nobody's */
    int n_frames;
    struct list list; /* the selected and the first visible frame */
    int scroll;       /* columns scrolled to the right */
    int head;         /* rows above the frames, as last drawn */
};

/* Follow a thread (NULL: none). The selected frame stays the same while inner frames come and
 * go. */
void stack_follow(struct stack_pane *p, const struct model_thread *t);

/* Draw title, what the thread waits for ("": nothing is known) and frames. `focused`: it has the
 * focus. */
void stack_draw(struct stack_pane *p, const struct model_thread *t, const char *waits,
                const struct match *search, bool focused, struct grid *g, struct rect area);

/* Draw one frame in a row of `area`; function names get `func_cols` columns. */
void stack_draw_frame(const struct model_frame *f, int depth, int func_cols, int scroll, struct grid *g,
                      struct rect area, int row);

/* Columns for function names of a thread in a pane `cols` wide. */
int stack_func_cols(const struct model_thread *t, int cols);

/* The first frame that matches, from `from` on in steps of `step`, wrapping around; -1: none. */
int stack_search(const struct model_thread *t, const struct match *m, int from, int step);

#endif
