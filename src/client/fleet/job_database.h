/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_database: SQL over a job that a ClickHouse database has: the tables of its ranks (engine_tables.h), and what is
 * known of all of them together (fleet_tables.h, verdict_tables.h). now() is the moment that the target names.
 *
 * Owned by one thread, which waits for the server.
 */
#ifndef CLIENT_FLEET_JOB_DATABASE_H
#define CLIENT_FLEET_JOB_DATABASE_H

#include "base/err.h"
#include "client/fleet/fleet_source.h"
#include "client/sql/database.h"

struct job_database;

/* The job of a target clickhouse://...?job=NAME. `limit_s` and `stop` as of engine_tables_new. NULL with the error. */
struct job_database *job_database_open(const char *target, double limit_s, bool (*stop)(void *arg), void *arg,
                                       struct err *e);
void job_database_close(struct job_database *j); /* NULL is allowed */

/* For statements, between job_database_begin and job_database_end. */
struct database *job_database_get(struct job_database *j);

/* Before statements are run: what they read of all ranks is read again. 0, or -1 with the error. */
int job_database_begin(struct job_database *j, const char *text, struct err *e);
void job_database_end(struct job_database *j);

/* What they read of all ranks; NULL: nothing. Until job_database_end. */
struct fleet_source *job_database_source(const struct job_database *j);

#endif
