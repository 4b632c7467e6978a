/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rowset: the answer to a query, kept in memory, never more than it may.
 *
 * Columns of values; text lies in blocks of its own. Filled by one thread, then nobody changes it: from there on any thread may
 * read it, and it is freed with its last reference. A row that does not fit is left out whole, and the set says so.
 */
#ifndef CLIENT_SQL_ROWSET_H
#define CLIENT_SQL_ROWSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "store/sql/sql.h"

#define ROWSET_CELL 1024 /* of a value as text, for a cell */

union rowset_value {
    int64_t i;     /* SQL_INTEGER */
    double f;      /* SQL_REAL */
    const char *s; /* SQL_TEXT, SQL_BLOB: ends with a NUL; rowset_length gives the bytes */
};

struct rowset_column {
    char *name;
    char *type;     /* "timestamp", "integer"; "" an expression */
    uint8_t *kinds; /* enum sql_kind */
    union rowset_value *values;
};

struct rowset {
    struct rowset_column *columns;
    size_t n_columns, n_rows;
    bool full; /* rows were left out: the limits below */
    size_t max_rows, max_bytes;
    size_t bytes; /* in use */
    size_t cap;   /* rows there is room for */
    struct rowset_block *blocks;
    unsigned references; /* atomic */
};

/* An empty set with `n_columns` columns without names and one reference. NULL: out of memory. */
struct rowset *rowset_new(size_t n_columns, size_t max_rows, size_t max_bytes);
struct rowset *rowset_ref(struct rowset *r);
void rowset_unref(struct rowset *r); /* NULL: nothing */

/* 0, or -1: out of memory. */
int rowset_name_column(struct rowset *r, size_t column, const char *name, const char *type);

/* Begin a row of NULLs. 0; -1 when there is no room: then the set is full. */
int rowset_add_row(struct rowset *r);

/* A value of the last row. */
void rowset_put_int(struct rowset *r, size_t column, int64_t v);
void rowset_put_real(struct rowset *r, size_t column, double v); /* NAN is NULL */

/* 0; -1 when there is no room: then the row is gone and the set is full. */
int rowset_put_text(struct rowset *r, size_t column, enum sql_kind kind, const char *s, size_t len);

/* Add the row that a query stands on. 0, or -1 as above. */
int rowset_add_result(struct rowset *r, const struct sql_result *q);

enum sql_kind rowset_kind(const struct rowset *r, size_t row, size_t column);

/* A number, of either kind; NAN for anything else. */
double rowset_number(const struct rowset *r, size_t row, size_t column);

/* Bytes of a text or blob. */
size_t rowset_length(const struct rowset *r, size_t row, size_t column);

/* As shown: numbers short, times as dates in UTC, NULL as "NULL". Never more than `cap` bytes; not sanitised. */
void rowset_text(const struct rowset *r, size_t row, size_t column, char *buf, size_t cap);

/* All of a value, numbers with every digit; appended. */
void rowset_put_whole(const struct rowset *r, size_t row, size_t column, struct strbuf *out);

/* Is every value that is there a number (and one is)? */
bool rowset_is_numeric(const struct rowset *r, size_t column);

/* -1, 0, 1: numbers before text before blobs; NULL after everything. */
int rowset_compare(const struct rowset *r, size_t column, size_t a, size_t b);

/* Numbers of all rows in the order of a column, equal ones as they came; NULLs last, in both directions. `order` has room for
 * n_rows. 0, or -1: out of memory. */
int rowset_sort(const struct rowset *r, size_t column, bool descends, uint32_t *order);

#endif
