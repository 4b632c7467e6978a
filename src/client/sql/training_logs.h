/* SPDX-License-Identifier: Apache-2.0 */
/*
 * training_logs: the table of that name: steps with their loss and epoch, and a column for each
 * watched expression.
 *
 * It is a view on python.steps and python.variables, made again before each query that names it,
 * because its columns depend on the watched expressions. A value that was read several times within a
 * step, as at returns of a function, is the last of them; all are in python.variables. Of expressions
 * that differ only in case, which are one name in SQL, the second has a number behind its name.
 */
#ifndef CLIENT_SQL_TRAINING_LOGS_H
#define CLIENT_SQL_TRAINING_LOGS_H

#include "store/sql/sql.h"

#define TRAINING_LOGS_OF "python.steps" /* it exists where this table does */
#define TRAINING_LOGS_MAX 32            /* columns of expressions; more are left out */

/* Its description as a table (store/sql/sql.h), with its columns before anything is watched.
 * Static. */
void training_logs_info(struct sql_table_info *out);

/* Make the view, if `text` may ask for it. On failure it is unchanged. */
void training_logs_make(struct sql *s, const char *text);

#endif
