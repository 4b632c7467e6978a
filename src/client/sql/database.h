/* SPDX-License-Identifier: Apache-2.0 */
/*
 * database: SQL over one or many targets, living or dead: their tables' files, and what they answer when they are asked.
 *
 * Belongs to one thread, which runs the queries and may wait for targets: a worker, never the thread that draws. From another thread, or a
 * signal handler, only database_arm and database_cancel. Results, tables and their columns are those of store/sql/sql.h, by database_sql.
 */
#ifndef CLIENT_SQL_DATABASE_H
#define CLIENT_SQL_DATABASE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "client/session/session.h"
#include "store/sql/sql.h"

#define DATABASE_MAX_ROWS 10000 /* unless told: what a person or a screen can use */
#define DATABASE_TIMEOUT_S 30.0 /* the same */

struct database;

/* Without targets: the tables that are always collected are there, and empty. NULL with the error. */
struct database *database_open(struct err *e);
void database_close(struct database *d);

/* Add a target, which was reached (target_reach): `addr` is copied. It need not have tables' files: what they would hold is empty
 * then, and database_note says so. 0, or -1 with the error. */
int database_add(struct database *d, const struct target_address *addr, struct err *e);

/* Look for tables that have come or were made anew since. Cheap: to be called before each query. 0, or -1 with the error. */
int database_refresh(struct database *d, struct err *e);

/* For sql_next, sql_table_info and the like; not for sql_begin. The same as long as the database is open. */
struct sql *database_sql(struct database *d);

/* What cannot be seen and why; "" nothing. */
const char *database_note(struct database *d);

/* All targets have ended, or are recordings: now() is the time of their newest row. */
bool database_is_recorded(const struct database *d);

/* A query is about to be asked for: cancels that came before do not count. */
void database_arm(struct database *d);

/* End the query that runs, and those that begin before the next database_arm. */
void database_cancel(struct database *d);
bool database_cancelled(const struct database *d);

/* As sql_begin. Goes on with sql_next, sql_end. */
struct sql_result *database_begin(struct database *d, const char *text, const struct sql_query *q,
                                  const char **tail, struct sql_error *where, struct err *e);

/* An error of a query that a target was the cause of gets its code: ERR_LOST it has ended, ERR_ATTACH it cannot be reached. */
void database_explain(const struct database *d, struct err *e);

#endif
