/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_query: the querier on the runner's loop: what the SQL screen asks for is done, what came of it is given back; and what other
 * screens ask for. One thread.
 */
#ifndef TUI_HOST_HOST_QUERY_H
#define TUI_HOST_HOST_QUERY_H

#include <stdbool.h>

#include "client/loop.h"
#include "client/session/session.h"
#include "tui/core/app.h"
#include "tui/host/host_diff.h"
#include "tui/host/host_feed.h"
#include "tui/host/host_magic.h"

struct host_query {
    struct host_diff diff;   /* a recording that is compared with */
    struct host_feed feed;   /* tables that screens show */
    struct host_magic magic; /* looks of the Repl screen */
    struct loop *loop;
    struct app *app;
    void (*answered)(void *arg); /* the app took an answer */
    void (*followed)(void *arg); /* the same of a table that a screen follows: the picture may wait */
    void (*looked)(void *arg);   /* the app took what a look has found */
    void *arg;
    struct querier *querier; /* NULL until something is asked for */
    struct loop_watch *watch;
    struct target_address address;
    bool has_address, has_history;
    bool ended; /* the target: from the next query on its tables are the past */
};

/* The target is another from here on; NULL none. What ran over the one before is ended. */
void host_query_set_target(struct host_query *r, const struct target_address *addr);

/* The target has ended: what it left is asked from the next query on. */
void host_query_end_target(struct host_query *r);

/* Do what the app asks for. */
void host_query_apply(struct host_query *r);

/* All of it ends. */
void host_query_stop(struct host_query *r);

#endif
