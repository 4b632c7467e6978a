/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads_state: what the Threads screen holds, for the files it is made of: threads.c has the screen, threads_pick.c what is
 * selected and tagged in it, and the mouse. Pure.
 */
#ifndef TUI_SCREENS_THREADS_THREADS_STATE_H
#define TUI_SCREENS_THREADS_THREADS_STATE_H

#include "tui/core/app.h"
#include "tui/view/locals.h"
#include "tui/view/stack.h"
#include "tui/screens/threads/threads_rows.h"
#include "tui/view/list.h"

struct threads_state {
    struct thread_rows rows;
    struct thread_filter filter;
    struct table_sort sort;
    struct match search;
    struct list list;
    int64_t tid;        /* key of the selected row; 0 none yet */
    int64_t tid_before; /* what was selected when a prompt was opened */
    bool in_prompt;
    const struct data *data; /* the app's */
    struct stack_pane stack;
    bool native;               /* the stack has native frames too */
    bool in_stack;             /* the keys go to the stack pane */
    struct locals_pane locals; /* below the stack; it has the keys only when the stack has them */
    bool tasks;                /* it shows tasks, not variables */
    bool repr;                 /* variables by the repr() of the job's own classes */
    bool zoomed;               /* the pane with the keys has the whole body */
    int scroll;
    int widths[TABLE_MAX_COLUMNS];
    struct rect table_area, stack_area, locals_area; /* as last drawn; no rows: not drawn */
};

/* ---- threads.c ---- */

/* The selected row; NULL none. */
const struct thread_row *threads_row(const struct threads_state *s);

/* The child that the selected thread is of; NULL none. */
const struct data_child *threads_child(const struct threads_state *s);

/* The selected thread as its stack is shown: with native frames it is of an answer of its own. */
const struct model_thread *threads_shown(const struct threads_state *s);

void threads_select_row(struct threads_state *s, int row);

/* Make the rows again. */
void threads_rebuild(struct threads_state *s, const struct app *app);

/* ---- threads_pick.c ---- */

extern const struct screen_rows threads_tagged;

bool threads_pick(const void *state, const struct app *app, struct screen_pick *what, struct strbuf *one,
                  struct strbuf *whole);
bool threads_show(void *state, struct app *app, const struct screen_pick *what);
bool threads_mouse(void *state, struct app *app, const struct input_event *e);

#endif
