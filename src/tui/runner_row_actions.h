/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runner_row_actions: what the app wishes of this machine beside the target: the clipboard, an editor, files of the user's own.
 *
 * Belongs to the runner, on its thread. While an editor has the terminal the loop goes on: data are taken in, nothing is
 * painted or read.
 */
#ifndef TUI_RUNNER_ROW_ACTIONS_H
#define TUI_RUNNER_ROW_ACTIONS_H

#include <stdbool.h>

#include "client/loop.h"
#include "tui/app.h"
#include "tui/editor_process.h"
#include "tui/exporter.h"
#include "tui/term/term.h"

struct runner_row_actions {
    struct app *app;
    struct loop *loop;
    struct term *term;                          /* NULL: not open yet */
    void (*on_terminal)(void *arg, bool given); /* to another program, or back */
    void (*changed)(void *arg);                 /* there is something to paint */
    void *arg;
    bool has_history; /* of the command line */
    struct editor_process editor;
    struct loop_watch *watch;  /* of its end */
    struct exporter *exporter; /* NULL: nothing was exported yet */
    struct loop_watch *exported;
};

/* Do what is wished for. */
void runner_row_actions_apply(struct runner_row_actions *h, const struct app_requests *w);

/* Does an editor have the terminal? */
bool runner_row_actions_is_editing(const struct runner_row_actions *h);

void runner_row_actions_stop(struct runner_row_actions *h);

#endif
