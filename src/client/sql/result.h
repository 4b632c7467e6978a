/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result: the answer to a query, kept in memory, never more than it may.
 *
 * Columns of values; text lies in blocks of its own. Filled by one thread, then nobody changes it: from there on any thread may
 * read it, and it is freed with its last reference. A row that does not fit is left out whole, and the set says so.
 */
#ifndef CLIENT_SQL_RESULT_H
#define CLIENT_SQL_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "store/sql/sql.h"

#define RESULT_CELL 1024 /* of a value as text, for a cell */

union result_value {
    int64_t i;     /* SQL_INTEGER */
    double f;      /* SQL_REAL */
    const char *s; /* SQL_TEXT, SQL_BLOB: ends with a NUL; result_length gives the bytes */
};

struct result_column {
    char *name;
    char *type;     /* "timestamp", "integer"; "" an expression */
    uint8_t *kinds; /* enum sql_kind */
    union result_value *values;
};

struct result {
    struct result_column *columns;
    size_t n_columns, n_rows;
    bool full; /* rows were left out: the limits below */
    size_t max_rows, max_bytes;
    size_t bytes; /* in use */
    size_t cap;   /* rows there is room for */
    struct result_block *blocks;
    unsigned references; /* atomic */
};

/* An empty set with `n_columns` columns without names and one reference. NULL: out of memory. */
struct result *result_new(size_t n_columns, size_t max_rows, size_t max_bytes);
struct result *result_ref(struct result *r);
void result_unref(struct result *r); /* NULL: nothing */

/* 0, or -1: out of memory. */
int result_name_column(struct result *r, size_t column, const char *name, const char *type);

/* Begin a row of NULLs. 0; -1 when there is no room: then the set is full. */
int result_add_row(struct result *r);

/* A value of the last row. */
void result_put_int(struct result *r, size_t column, int64_t v);
void result_put_real(struct result *r, size_t column, double v); /* NAN is NULL */

/* 0; -1 when there is no room: then the row is gone and the set is full. */
int result_put_text(struct result *r, size_t column, enum sql_kind kind, const char *s, size_t len);

/* Add the row that a query stands on. 0, or -1 as above. */
int result_add_sql_row(struct result *r, const struct sql_result *q);

enum sql_kind result_kind(const struct result *r, size_t row, size_t column);

/* A number, of either kind; NAN for anything else. */
double result_number(const struct result *r, size_t row, size_t column);

/* Bytes of a text or blob. */
size_t result_length(const struct result *r, size_t row, size_t column);

/* As shown: numbers short, times as dates in UTC, NULL as "NULL". Never more than `cap` bytes; not sanitised. */
void result_text(const struct result *r, size_t row, size_t column, char *buf, size_t cap);

/* All of a value, numbers with every digit; appended. */
void result_put_whole(const struct result *r, size_t row, size_t column, struct strbuf *out);

/* Is every value that is there a number (and one is)? */
bool result_is_numeric(const struct result *r, size_t column);

/* -1, 0, 1: numbers before text before blobs; NULL after everything. */
int result_compare(const struct result *r, size_t column, size_t a, size_t b);

/* Numbers of all rows in the order of a column, equal ones as they came; NULLs last, in both directions. `order` has room for
 * n_rows. 0, or -1: out of memory. */
int result_sort(const struct result *r, size_t column, bool descends, uint32_t *order);

#endif
