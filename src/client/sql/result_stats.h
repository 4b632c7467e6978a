/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result_stats: statistics of a column of a result, as another result: its figures, and the
 * frequency of each value. Pure.
 */
#ifndef CLIENT_SQL_RESULT_STATS_H
#define CLIENT_SQL_RESULT_STATS_H

#include "client/sql/result.h"

#define RESULT_MAX_VALUES 100000 /* of a frequency table */

/* Rows (statistic, value): rows, nulls, distinct, min, max; for numbers mean, standard deviation
 * and quantiles too. NULL: out of memory. */
struct result *result_describe(const struct result *r, size_t column);

/* Rows (value, count, percent), the most frequent first. NULL: out of memory. */
struct result *result_frequency(const struct result *r, size_t column);

#endif
