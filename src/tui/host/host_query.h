/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_query: tables of the target on the host's loop: queries of the SQL screen, tables that other
 * screens show (app_feed.h), and queries of the Repl screen (app_repl.h).
 *
 * Two queriers, each with a database, opened when they are first needed. The SQL screen has one for
 * itself: its queries have no time limit, and nobody else sees its temporary tables. All others
 * share the second one: a query of the Repl screen ends the feed that runs, feeds wait until that
 * query has ended, and they see the temporary tables that it makes. One thread.
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
    void (*answered)(void *arg); /* the app has taken an answer */
    /* The same for a table that a screen reads repeatedly: painting may wait. */
    void (*followed)(void *arg);
    void *arg;
    struct host_querier sql, shared;
    enum app_feed_id feed_id; /* that is read, or was last */
    struct magic magic;       /* a query of the Repl screen that waits for the shared querier; owned */
    int magic_cols;
    bool magic_waits;
    bool magic_runs;         /* in the shared querier; false: what runs there is a feed */
    bool magic_is_cancelled; /* the one that waits */
    struct target_address address;
    bool has_address;
    char job[512];  /* a job that a database has: its tables are read while there is no address; "": none */
    bool has_ended; /* the target has ended, and what it left was not looked for yet */
};

/* The target is another one from here on; NULL: none. Ends the queries of the last one. */
void host_query_set_target(struct host_query *q, const struct target_address *addr);

/* The tables of a job are read, at the moment that the target names; "": of none. Ends its queries of the last one. */
void host_query_set_job(struct host_query *q, const char *target);

/* The target has ended: the next query of the SQL or Repl screen turns to the recording that it
 * left. */
void host_query_end_target(struct host_query *q);

/* Begin what is pending in the app for the SQL screen, unless its querier is busy: then it follows
 * that answer. */
void host_query_begin(struct host_query *q);

/* Begin the next feed, unless another feed or a query of the Repl screen runs: then it follows that
 * answer. */
void host_query_read_feeds(struct host_query *q);

/* Begin a query of the Repl screen, as soon as the feed that runs has been ended; moved out of
 * *m. */
void host_query_run_magic(struct host_query *q, struct magic *m, int cols);

/* End the query of the SQL screen, or of the Repl screen; it is answered all the same. */
void host_query_cancel(struct host_query *q);
void host_query_cancel_magic(struct host_query *q);

#endif
