/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_words: what people are told of tables: when their rows are made and what that costs, of what type a column is, and the
 * columns that every table of a query has. The same words wherever tables are listed. Pure data, any thread.
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

/* As SQL calls it. */
const char *ring_type_name(enum ring_type type);

/* Rank, host, pid: before a table's own columns. */
#define RING_COMMON_COLUMNS 3
extern const struct ring_column_def ring_common_columns[RING_COMMON_COLUMNS];

#endif
