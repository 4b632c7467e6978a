/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_tables: the tables of a job that a ClickHouse database keeps, for SQL here, under the names that they have
 * with rings: python.steps and the like.
 *
 * A scan is one SELECT with the columns, times, ranks, the equal value and the limit that the query needs; joins and
 * aggregates are made here. One that would move more than 64 MB is refused. One thread.
 */
#ifndef CLIENT_FLEET_ENGINE_TABLES_H
#define CLIENT_FLEET_ENGINE_TABLES_H

#include "base/err.h"
#include "base/strbuf.h"
#include "client/sql/database.h"

struct engine_tables;

/* Those of the job that the target names, or of the only one. `limit_s`: for one scan; 0: ten minutes. `stop` (NULL:
 * none) ends this within a second when it returns true. NULL with the error. */
struct engine_tables *engine_tables_new(const char *target, double limit_s, bool (*stop)(void *arg),
                                        void *arg, struct err *e);
void engine_tables_free(struct engine_tables *t); /* NULL is allowed; after the database of its tables */

/* Add them to a database, whose now() is the moment that the target names, or the end of a job that has ended; of a
 * moment that is named, later rows are not there. 0, or -1 with the error. */
int engine_tables_add(struct engine_tables *t, struct database *d, struct err *e);

/* Run a statement as it is on the server, which does not let it change anything, and append its answer; the format
 * is a FORMAT of ClickHouse. At most 64 MB. 0, or -1 with the error. */
int engine_tables_pass(const char *target, const char *statement, const char *format, double limit_s,
                       struct strbuf *out, struct err *e);

#endif
