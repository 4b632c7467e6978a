/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_row_actions: what the app requests from this machine besides the target: the clipboard, an
 * editor, the user's files; see struct app_host for each.
 *
 * Belongs to the host, on its thread. While an editor has the terminal the loop goes on: data are
 * taken, nothing is painted or read from the terminal.
 */
#ifndef TUI_HOST_HOST_ROW_ACTIONS_H
#define TUI_HOST_HOST_ROW_ACTIONS_H

#include <stdbool.h>

#include "client/loop.h"
#include "tui/core/app.h"
#include "tui/host/editor_process.h"
#include "tui/workers/exporter.h"
#include "tui/term/term.h"

struct host_row_actions {
    struct app *app;
    struct loop *loop;
    struct term *term; /* NULL: not open yet */
    /* The terminal goes to another program, or comes back. */
    void (*on_terminal)(void *arg, bool given);
    void (*changed)(void *arg); /* there is something to paint */
    void *arg;
    struct editor_process editor;
    struct loop_watch *watch;  /* for its end */
    struct exporter *exporter; /* NULL: nothing has been exported yet */
    struct loop_watch *exported;
};

void host_row_actions_copy(struct host_row_actions *h, const char *what, const char *text, size_t len);
void host_row_actions_edit(struct host_row_actions *h, pid_t pid, const char *file, int line);
void host_row_actions_write(struct host_row_actions *h, struct export_job *job);

/* Does an editor have the terminal? */
bool host_row_actions_is_editing(const struct host_row_actions *h);

void host_row_actions_stop(struct host_row_actions *h);

#endif
