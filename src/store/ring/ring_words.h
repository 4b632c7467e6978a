/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_words: texts about tables for users: when their rows are made and at what cost, the type
 * of a column, and the columns that every table of a query has. The same words wherever tables
 * are listed. Pure data, any thread.
 */
#ifndef STORE_RING_RING_WORDS_H
#define STORE_RING_RING_WORDS_H

#include "store/ring/ring.h"

struct ring_cost_words {
    const char *name;  /* in documents */
    const char *brief; /* in a column */
    const char *text;  /* a sentence */
};

const struct ring_cost_words *ring_cost_words(enum ring_cost cost);

/* The SQL name of the type. */
const char *ring_type_name(enum ring_type type);

/* Rank, host, pid: before a table's own columns. */
#define RING_COMMON_COLUMNS 3
extern const struct ring_column_def ring_common_columns[RING_COMMON_COLUMNS];

#endif
