/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result: the answer to a query, kept in memory, never more than it may.
 *
 * Columns of values; text lies in blocks of its own. Filled by one thread, then nobody changes it: from there on any thread may
 * read it, and it is freed with its last reference. A row that does not fit is left out whole, and the result says so.
 *
 * A row of result_formats is a form in which it is written, for people or for programs. Forms that have `put_row` need no result:
 * they write a row when it comes.
 */
#ifndef CLIENT_SQL_RESULT_H
#define CLIENT_SQL_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "store/sql/sql.h"

#define RESULT_CELL 1024 /* of a value as text, for a cell */

/* Bytes of an answer, unless all rows were asked for, and then. */
#define RESULT_BYTES ((size_t)80 * 1024 * 1024)
#define RESULT_BYTES_ALL ((size_t)1024 * 1024 * 1024)

/* A value by itself. */
struct result_cell {
    enum sql_kind kind;
    size_t len; /* of a text or blob */
    union {
        int64_t i;
        double f;
        const char *s;
    };
};

union result_value {
    int64_t i;     /* SQL_INTEGER */
    double f;      /* SQL_REAL */
    const char *s; /* SQL_TEXT, SQL_BLOB: ends with a NUL; result_length gives the bytes */
};

struct result_column {
    char *name;
    char *type;     /* "timestamp", "integer"; of an expression "", or what its values are: see result_take */
    uint8_t *kinds; /* enum sql_kind */
    union result_value *values;
};

struct result {
    struct result_column *columns;
    size_t n_columns, n_rows;
    bool full;      /* rows were left out: the limits below */
    bool truncated; /* there were more rows: it is full, or only so many were asked for */
    uint64_t lost;  /* pieces of tables that were overwritten while they were read */
    double elapsed_s;
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

/* An empty result with the columns of a query; of columns with the same name the second is called NAME:2. NULL with the error. */
struct result *result_new_for(const struct sql_result *q, size_t max_rows, size_t max_bytes, struct err *e);

/* Add the rows that the query still has, as many as there is room for. 0, or -1 with the error of the query. */
int result_fill(struct result *r, struct sql_result *q, struct err *e);

/* All rows of a query, and the types of expressions with them. NULL with the error: of the query, or they take more than so many bytes. */
struct result *result_take(struct sql_result *q, size_t max_bytes, struct err *e);

/* The row that a query stands on; `cells` has room for its columns, texts are valid until its next row. */
void result_read_row(const struct sql_result *q, struct result_cell *cells);

/* The rows `order` (`n` numbers; NULL: the first `n`) without the columns that are marked in `hidden` (NULL: none). Texts remain those
 * of `r`, which outlives it. NULL: out of memory. */
struct result *result_select(const struct result *r, const uint32_t *order, size_t n, const uint8_t *hidden);

struct result_cell result_at(const struct result *r, size_t row, size_t column);
enum sql_kind result_kind(const struct result *r, size_t row, size_t column);

/* A number, of either kind; NAN for anything else. */
double result_number(const struct result *r, size_t row, size_t column);

/* A text; NULL for anything else. */
const char *result_string(const struct result *r, size_t row, size_t column);

/* Bytes of a text or blob. */
size_t result_length(const struct result *r, size_t row, size_t column);

/* As shown: numbers short, times as dates in UTC, NULL as "NULL". Never more than `cap` bytes; not sanitised. */
void result_text(const struct result *r, size_t row, size_t column, char *buf, size_t cap);

/* All of a value, numbers with every digit; appended. */
void result_put_whole(const struct result *r, size_t row, size_t column, struct strbuf *out);

/* The fewest digits that read back as the same number; hexadecimal digits. Appended. */
void result_put_digits(double v, struct strbuf *out);
void result_put_hex(const char *bytes, size_t n, struct strbuf *out);

/* Is every value that is there a number (and one is)? */
bool result_is_numeric(const struct result *r, size_t column);

/* -1, 0, 1: numbers before text before blobs; NULL after everything. */
int result_compare(const struct result *r, size_t column, size_t a, size_t b);

/* Numbers of all rows in the order of a column, equal ones as they came; NULLs last, in both directions. `order` has room for
 * n_rows. 0, or -1: out of memory. */
int result_sort(const struct result *r, size_t column, bool descends, uint32_t *order);

/* ---- forms ---- */

struct result_format {
    const char *name;
    const char *help;
    /* The whole answer. `terminal`: it is drawn, without control characters. NULL: head and rows are all there is. */
    void (*put)(const struct result *r, bool terminal, struct strbuf *out);
    /* What stands before the rows, of columns only; and a row of so many cells. NULL: nothing; the form needs the whole answer. */
    void (*put_head)(const struct result *columns, bool terminal, struct strbuf *out);
    void (*put_row)(const struct result *columns, const struct result_cell *cells, bool terminal,
                    struct strbuf *out);
};

/* All; the last row has no name. The first is for people. */
extern const struct result_format result_formats[];

/* The format, or NULL with ERR_USAGE and a suggestion. */
const struct result_format *result_find_format(const char *name, struct err *e);

void result_write(const struct result *r, const struct result_format *f, bool terminal, struct strbuf *out);

/* As the first format. Where a line would be wider than `cols`, texts are cut, the widest first; where that is not enough, each value
 * has a line of its own. 0: as wide as it is. */
void result_put_fitted(const struct result *r, int cols, struct strbuf *out);

#endif
