/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_sql: SQL over the tables of the ranks of a job on this host, for the client: one statement at a time, whose
 * rows it takes in pieces.
 *
 * The tables are those of client/sql/database.h, each rank a target: files are read as they are, an agent is asked
 * only by tables that are made when they are read. Memory and time of a statement are bounded, and it ends when the
 * client does. One thread.
 */
#ifndef RELAY_RANK_SQL_H
#define RELAY_RANK_SQL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "client/jobs/jobs_here.h"
#include "client/fleet/report.h"

struct rank_sql;

/* Open the tables of the ranks. `attach`: their agents are loaded before. `host`: the host of their rows. `in`: the
 * client's end, which ends a statement when it is closed. Ranks that cannot be read are left out: rank_sql_note.
 * NULL with the error. */
struct rank_sql *rank_sql_open(const struct job *job, bool attach, const char *host, int in, struct err *e);
void rank_sql_close(struct rank_sql *q); /* NULL is allowed */

/* How much is kept of a table of that name; all unknown if there is no such table. */
void rank_sql_measure(struct rank_sql *q, const char *table, struct report_size *out);

/* Begin a statement, which ends the one before; at most `limit_ms` for all of its rows. 0, or -1 with the error. */
int rank_sql_begin(struct rank_sql *q, const char *text, size_t len, int64_t limit_ms, struct err *e);

/* Append the names of its columns, and its next rows until `rows` is longer than `most_bytes`. `*more`: there may be
 * others. Their number, or -1 with the error. */
ssize_t rank_sql_take(struct rank_sql *q, size_t most_bytes, struct strbuf *columns, struct strbuf *rows,
                      bool *more, struct err *e);

/* What its rows lack, and why; "" nothing. */
const char *rank_sql_note(struct rank_sql *q);

#endif
