/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables_there: the tables of the ranks on the hosts of a job, for SQL here.
 *
 * What a query needs of a table is one request to each host, for columns, times, ranks, one equal value and a limit,
 * and its rows come in pieces; joins and aggregates are made here, so every statement is right. One that would move
 * more than 64 MB is refused with the amount. A statement may also run on each host (tables_there_map). Times are
 * those of this host's clock, as far as the difference is more than the error of measuring it; rows of a rank are
 * taken from its own host alone. A host that ends in the middle of its rows ends the query. One thread.
 */
#ifndef CLIENT_FLEET_TABLES_THERE_H
#define CLIENT_FLEET_TABLES_THERE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "client/hosts/fleet_reach.h"
#include "client/sql/database.h"

struct tables_there;

/* The tables of the job that `target` names on its hosts, which are reached by the first query. `attach`: their
 * agents are loaded before they are read. `limit_s`: how long a query may take; hosts that do not answer are given up somewhat earlier. NULL with the
 * error. */
struct tables_there *tables_there_new(const char *target, const struct fleet_reach *reach, bool attach,
                                      double limit_s, struct err *e);
void tables_there_free(struct tables_there *t); /* NULL is allowed; after the database of its tables */

/* Add them to a database. 0, or -1 with the error. */
int tables_there_add(struct tables_there *t, struct database *d, struct err *e);

/* Run a statement on each host, over the tables of its ranks, and put all rows into the temporary table `mapped` of
 * the database. 0, or -1 with the error. */
int tables_there_map(struct tables_there *t, struct database *d, const char *statement, struct err *e);

/* If hosts have caused the error of a query, set its code: ERR_ATTACH none can be reached, ERR_USAGE it asks for too
 * much. */
void tables_there_explain(const struct tables_there *t, struct err *e);

/* Whether hosts have caused the error of a query, which has their reason. */
bool tables_there_has_failed(const struct tables_there *t);

/* Append which hosts gave no rows to the last query, and why; nothing: all did. */
void tables_there_put_silent(const struct tables_there *t, struct strbuf *out);

/* What else the rows lack, and why; "" nothing. */
const char *tables_there_note(const struct tables_there *t);

/* Begin a query: hosts that were silent are tried again, and notes of the one before are gone. */
void tables_there_begin(struct tables_there *t);

/* From here on hosts have the time of a query again: several statements are one query. */
void tables_there_start_clock(struct tables_there *t);

#endif
