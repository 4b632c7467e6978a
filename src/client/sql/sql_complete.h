/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql_complete: completions of a query at the cursor.
 *
 * Reads the tokens around the cursor: after FROM come tables, after a table and a dot its
 * columns, elsewhere columns of the tables in the statement, functions and keywords. Statements
 * may be incomplete or wrong. Pure; memory is bounded.
 */
#ifndef CLIENT_SQL_SQL_COMPLETE_H
#define CLIENT_SQL_SQL_COMPLETE_H

#include <stddef.h>

#include "base/arena.h"
#include "client/sql/catalog.h"

#define SQL_COMPLETE_MAX 400

enum sql_complete_kind {
    SQL_COMPLETE_COLUMN = 0,
    SQL_COMPLETE_TABLE,
    SQL_COMPLETE_FUNCTION,
    SQL_COMPLETE_KEYWORD
};

struct sql_complete_item {
    const char *text; /* the inserted text */
    const char *help; /* "" none */
    enum sql_complete_kind kind;
    int rank;     /* smaller ones first */
    size_t place; /* in the order of the catalog */
};

struct sql_completion {
    struct arena arena;
    struct sql_complete_item *items;
    size_t n;
    size_t from, to; /* bytes of the text that an item replaces */
};

/* Completions at byte `cursor` of `text`. Points into `c`, which must outlive it. 0, or -1: out
 * of memory. */
int sql_complete(struct sql_completion *out, const struct catalog *c, const char *text, size_t cursor);
void sql_complete_fini(struct sql_completion *out);

/* Length in bytes of the common prefix of all items, ignoring case. */
size_t sql_complete_common(const struct sql_completion *c);

#endif
