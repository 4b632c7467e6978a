/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_row_actions: what the app wishes of this machine beside the target: the clipboard, an editor, files of the user's own.
 *
 * Belongs to the runner, on its thread. While an editor has the terminal the loop goes on: data are taken in, nothing is
 * painted or read.
 */
#ifndef TUI_HOST_HOST_ROW_ACTIONS_H
#define TUI_HOST_HOST_ROW_ACTIONS_H

#include <stdbool.h>

#include "client/loop.h"
#include "tui/core/app.h"
#include "tui/host/editor_process.h"
#include "tui/host/exporter.h"
#include "tui/term/term.h"

struct host_row_actions {
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
void host_row_actions_apply(struct host_row_actions *h, const struct app_requests *w);

/* Does an editor have the terminal? */
bool host_row_actions_is_editing(const struct host_row_actions *h);

void host_row_actions_stop(struct host_row_actions *h);

#endif
