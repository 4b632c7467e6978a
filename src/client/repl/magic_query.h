/* SPDX-License-Identifier: Apache-2.0 */
/*
 * magic_query: runs the queries of magic.h: SQL, stacks, the agent's status; as text.
 *
 * Waits for the job: for a program that may wait, or a thread of its own. The caller owns what
 * it has opened.
 */
#ifndef CLIENT_REPL_MAGIC_QUERY_H
#define CLIENT_REPL_MAGIC_QUERY_H

#include "client/sql/database.h"
#include "client/repl/magic.h"

#define MAGIC_ROWS 1000

/* The means for a query. */
struct magic_way {
    const struct target_address *addr; /* reached (target_reach) */
    /* over it, refreshed; only MAGIC_QUERY needs one. database_cancel ends that query */
    struct database *database;
    bool (*stop)(void *arg); /* ends the others when it returns true; NULL: nothing does */
    void *stop_arg;
    int cols; /* columns of rows are cut to fit into so many; 0: full width */
};

/* True if the result is a query. */
bool magic_is_query(const struct magic *m);

/* Run it and append to `out`. 0, or -1 with the error. */
int magic_ask(const struct magic *m, const struct magic_way *way, struct strbuf *out, struct err *e);

#endif
