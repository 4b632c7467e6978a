/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_query: tables of the target on the host's loop: queries of the SQL screen, tables that other screens show (app_feed.h),
 * and lines of the Repl screen that look something up (app_repl.h). Each has a querier of its own, opened when it is first
 * needed, so that none waits for another. One thread.
 */
#ifndef TUI_HOST_HOST_QUERY_H
#define TUI_HOST_HOST_QUERY_H

#include <stdbool.h>

#include "client/loop.h"
#include "client/session/session.h"
#include "tui/core/app.h"

struct host_querier {
    struct querier *querier; /* NULL until it is needed */
    struct loop_watch *watch;
};

struct host_query {
    struct loop *loop;
    struct app *app;
    void (*answered)(void *arg); /* the app took an answer */
    void (*followed)(
        void *arg); /* the same of a table that a screen reads again and again: the picture may wait */
    void *arg;
    struct host_querier sql, feed, magic;
    enum app_feed_id feed_id; /* that is read, or was last */
    struct target_address address;
    bool has_address;
    bool has_ended; /* the target: from the next query on, what it left is asked */
};

/* The target is another from here on; NULL none. What is asked of the one before ends. */
void host_query_set_target(struct host_query *q, const struct target_address *addr);

/* The target has ended. */
void host_query_end_target(struct host_query *q);

/* Begin the query that is pending in the app, or the next feed, unless one of its kind runs: then they follow its answer. */
void host_query_begin(struct host_query *q);
void host_query_read_feeds(struct host_query *q);

/* Begin what a line of the Repl screen asks for; moved out of *m. */
void host_query_run_magic(struct host_query *q, struct magic *m, int cols);

/* End what runs; it is answered all the same. */
void host_query_cancel(struct host_query *q);
void host_query_cancel_magic(struct host_query *q);

#endif
