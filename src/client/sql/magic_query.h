/* SPDX-License-Identifier: Apache-2.0 */
/*
 * magic_query: does those of magic.h that look at the job: SQL, stacks, the agent's status; as text.
 *
 * Waits for the job: a program that may, or a thread of its own. What it has opened belongs to who calls.
 */
#ifndef CLIENT_SQL_MAGIC_QUERY_H
#define CLIENT_SQL_MAGIC_QUERY_H

#include "client/sql/database.h"
#include "client/sql/magic.h"

#define MAGIC_ROWS 1000

/* By what it looks. */
struct magic_way {
    const struct target_address *addr; /* which was reached (target_reach) */
    struct database *database; /* over it, refreshed; only MAGIC_QUERY needs one. database_cancel ends that */
    bool (*stop)(void *arg);   /* ends the others, when it says so; NULL nothing does */
    void *stop_arg;
    int cols; /* columns of rows are cut until they fit into so many; 0: they are as wide as they are */
};

/* Is it for here? */
bool magic_is_query(const struct magic *m);

/* Do it; appends to `out`. 0, or -1 with the error. */
int magic_ask(const struct magic *m, const struct magic_way *way, struct strbuf *out, struct err *e);

#endif
