/* SPDX-License-Identifier: Apache-2.0 */
/*
 * database: SQL over one or many targets, living or dead: the files of their tables, and their
 * answers to requests.
 *
 * Owned by one thread, which runs the queries and may wait for targets: a worker, never the
 * thread that draws. Other threads and signal handlers may call only database_arm,
 * database_cancel and database_hurry. Results, tables and their columns are those of store/sql/sql.h, by
 * database_sql.
 */
#ifndef CLIENT_SQL_DATABASE_H
#define CLIENT_SQL_DATABASE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "client/session/session.h"
#include "client/sql/result.h"
#include "store/sql/sql.h"

#define DATABASE_MAX_ROWS 10000 /* default; enough for a person or a screen */
#define DATABASE_TIMEOUT_S 30.0 /* default */

struct database;

/* Without targets: the permanent tables exist and are empty. NULL with the error. */
struct database *database_open(struct err *e);
void database_close(struct database *d);

/* Add a target that was reached (target_reach): `addr` is copied. If it has no files of tables,
 * those are empty, and database_note explains why. 0, or -1 with the error. */
int database_add(struct database *d, const struct target_address *addr, struct err *e);

/* The same for a rank of a job: its rows have this host and rank (RING_INT_NULL unknown). */
int database_add_rank(struct database *d, const struct target_address *addr, const char *host, int64_t rank,
                      struct err *e);

/* Add tables that belong to no target: each of their rows has its own rank, host and pid. The list outlives
 * the database. 0, or -1 with the error. */
int database_add_tables(struct database *d, const struct sql_provider *list, size_t n, struct err *e);

/* The times of all rows are those of one clock, though their hosts differ. */
void database_set_one_clock(struct database *d);

/* now() is that time from here on, in seconds since the epoch; NAN: the clock again. */
void database_set_time(struct database *d, double at_s);

/* Find tables that are new or were replaced. Cheap: call it before each query. Tables that have to be copied are
 * copied; a target that did not answer the last time is left out for some seconds. 0, or -1 with the error. */
int database_refresh(struct database *d, struct err *e);

/* Where the agent of target `number` (as sql_target_pid counts) answers; NULL: it has none, or is a
 * recording. Constant while the database is open. */
const struct target_address *database_agent(const struct database *d, size_t number);

/* For sql_next, sql_table_info and the like; not for sql_begin. Constant while the database is
 * open. */
struct sql *database_sql(struct database *d);

/* What data are missing and why; "" if none are. */
const char *database_note(struct database *d);

/* All targets have ended, or are recordings: now() is the time of their newest row. */
bool database_is_recorded(const struct database *d);

/* Prepare for a query: earlier cancels no longer count. */
void database_arm(struct database *d);

/* End the running query, and those that begin before the next database_arm. */
void database_cancel(struct database *d);
bool database_cancelled(const struct database *d);

/* From here on, and now, a target that does not answer is not waited for. */
void database_hurry(struct database *d);

/* As sql_begin. Continue with sql_next, sql_end. */
struct sql_result *database_begin(struct database *d, const char *text, const struct sql_query *q,
                                  const char **tail, struct sql_error *where, struct err *e);

/* All rows of the statement that `text` begins with, in at most `max_bytes`; the caller unrefs them.
 * NULL with the error, explained; its code is ERR_OK if there is no statement. */
struct result *database_take(struct database *d, const char *text, const struct sql_query *q,
                             size_t max_bytes, struct err *e);

/* If a target has caused the error of a query, set its code: ERR_LOST it has ended, ERR_ATTACH
 * it cannot be reached. Of several targets, or of a job, name its rank. */
void database_explain(const struct database *d, struct err *e);

#endif
