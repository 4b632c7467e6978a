/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_magic: looks of the Repl screen (app_magic.h) on the runner's loop, by a querier of their own, so that none waits for the SQL
 * screen's. Opened with the first. One thread.
 */
#ifndef TUI_HOST_HOST_MAGIC_H
#define TUI_HOST_HOST_MAGIC_H

#include <stdbool.h>

#include "client/loop.h"
#include "client/session/session.h"
#include "tui/core/app.h"

struct host_magic {
    struct loop *loop;
    struct app *app;
    void (*answered)(void *arg); /* the app took an answer, and may wish for something now */
    void *arg;
    struct querier *querier; /* NULL until something is asked for */
    struct loop_watch *watch;
    struct target_address address;
    bool has_address;
};

/* The target is another from here on; NULL none. A look that is under way ends. */
void host_magic_set_target(struct host_magic *r, const struct target_address *addr);

/* Begin, or end, what the app asks for. */
void host_magic_apply(struct host_magic *r);

#endif
