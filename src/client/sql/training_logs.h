/* SPDX-License-Identifier: Apache-2.0 */
/*
 * training_logs: the table of that name: steps with their loss and epoch, and a column for each expression that is watched.
 *
 * It is a view on python.steps and python.variables, made anew before each query that names it, because its columns are what
 * was watched so far. Values at returns of functions, which belong to no step, are in python.variables alone.
 */
#ifndef CLIENT_SQL_TRAINING_LOGS_H
#define CLIENT_SQL_TRAINING_LOGS_H

#include "store/sql/sql.h"

#define TRAINING_LOGS_OF "python.steps" /* it is there where this is */
#define TRAINING_LOGS_MAX 32            /* columns of expressions; more are left out */

/* It as a table among others (store/sql/sql.h): columns that it has before anything is watched. Static. */
void training_logs_info(struct sql_table_info *out);

/* Make the view, if `text` may ask for it. It stays as it was when that cannot be done. */
void training_logs_make(struct sql *s, const char *text);

#endif
