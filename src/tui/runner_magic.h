/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runner_magic: looks of the Repl screen (app_magic.h) on the runner's loop, by a querier of their own, so that none waits for the SQL
 * screen's. Opened with the first. One thread.
 */
#ifndef TUI_RUNNER_MAGIC_H
#define TUI_RUNNER_MAGIC_H

#include <stdbool.h>

#include "client/loop.h"
#include "client/session.h"
#include "tui/app.h"

struct runner_magic {
    struct loop *loop;
    struct app *app;
    void (*answered)(void *arg); /* the app took an answer, and may wish for something now */
    void *arg;
    struct querier *querier; /* NULL until something is asked for */
    struct loop_watch *watch;
    struct session_address address;
    bool has_address;
};

/* The target is another from here on; NULL none. A look that is under way ends. */
void runner_magic_set_target(struct runner_magic *r, const struct session_address *addr);

/* Begin, or end, what the app asks for. */
void runner_magic_apply(struct runner_magic *r);

#endif
