/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rowset_stats: what a column of a result holds, as another result: its figures, and how often each value is there. Pure.
 */
#ifndef CLIENT_SQL_ROWSET_STATS_H
#define CLIENT_SQL_ROWSET_STATS_H

#include "client/sql/rowset.h"

#define ROWSET_MAX_VALUES 100000 /* of a frequency table */

/* Rows (statistic, value): rows, nulls, distinct, min, max; for numbers mean, standard deviation and quantiles too. NULL: out of
 * memory. */
struct rowset *rowset_describe(const struct rowset *r, size_t column);

/* Rows (value, count, percent), the most frequent first. NULL: out of memory. */
struct rowset *rowset_frequency(const struct rowset *r, size_t column);

#endif
