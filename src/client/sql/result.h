/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result: the answer to a query, kept in memory of bounded size.
 *
 * Columns of values; texts are in separate blocks. Filled by one thread, and constant after
 * that: then any thread may read it, and it is freed with its last reference. A row that does
 * not fit is left out as a whole, and `full` is set.
 *
 * A row of result_formats is an output format, for people or for programs. Formats with
 * `put_row` need no result: they write each row as it arrives.
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

/* Maximum size of an answer: by default, and if all rows were asked for. */
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
    const char *s; /* SQL_TEXT, SQL_BLOB: NUL-terminated; result_length returns the length */
};

struct result_column {
    char *name;
    /* "timestamp", "integer"; for an expression "", or the type of its values: see result_take */
    char *type;
    uint8_t *kinds; /* enum sql_kind */
    union result_value *values;
};

struct result {
    struct result_column *columns;
    size_t n_columns, n_rows;
    bool full;      /* rows were left out: the limits below */
    bool truncated; /* there were more rows: it is full, or the query had a limit */
    uint64_t lost;  /* pieces of tables that were overwritten while they were read */
    double elapsed_s;
    size_t max_rows, max_bytes;
    size_t bytes; /* in use */
    size_t cap;   /* capacity in rows */
    struct result_block *blocks;
    unsigned references; /* atomic */
};

/* An empty result with `n_columns` columns without names and one reference. NULL: out of memory. */
struct result *result_new(size_t n_columns, size_t max_rows, size_t max_bytes);
struct result *result_ref(struct result *r);
void result_unref(struct result *r); /* NULL does nothing */

/* 0, or -1: out of memory. */
int result_name_column(struct result *r, size_t column, const char *name, const char *type);

/* Begin a row of NULLs. 0; -1 if there is no room: then the result is full. */
int result_add_row(struct result *r);

/* Set a value of the last row. */
void result_put_int(struct result *r, size_t column, int64_t v);
void result_put_real(struct result *r, size_t column, double v); /* NAN is NULL */

/* 0; -1 if there is no room: then the row is removed and the result is full. */
int result_put_text(struct result *r, size_t column, enum sql_kind kind, const char *s, size_t len);

/* An empty result with the columns of a query; of columns with the same name the second is
 * called NAME:2. NULL with the error. */
struct result *result_new_for(const struct sql_result *q, size_t max_rows, size_t max_bytes, struct err *e);

/* Add the remaining rows of the query, as many as there is room for. 0, or -1 with the error of
 * the query. */
int result_fill(struct result *r, struct sql_result *q, struct err *e);

/* All rows of a query, with the types of expressions. NULL with the error: of the query, or the
 * rows need more than so many bytes. */
struct result *result_take(struct sql_result *q, size_t max_bytes, struct err *e);

/* Read the current row of a query; `cells` has room for its columns, texts are valid until its
 * next row. */
void result_read_row(const struct sql_result *q, struct result_cell *cells);

/* The rows `order` (`n` numbers; NULL: the first `n`) without the columns that are marked in
 * `hidden` (NULL: none). Texts remain those of `r`, which outlives it. NULL: out of memory. */
struct result *result_select(const struct result *r, const uint32_t *order, size_t n, const uint8_t *hidden);

/* Number of the column with that name; -1: none. `r` may be NULL. */
int result_find_column(const struct result *r, const char *name);

struct result_cell result_at(const struct result *r, size_t row, size_t column);
enum sql_kind result_kind(const struct result *r, size_t row, size_t column);

/* A number of either type; NAN for anything else. */
double result_number(const struct result *r, size_t row, size_t column);

/* A text; NULL for anything else. */
const char *result_string(const struct result *r, size_t row, size_t column);

/* Bytes of a text or blob. */
size_t result_length(const struct result *r, size_t row, size_t column);

/* The value as shown: numbers short, times as dates in UTC, NULL as "NULL". Never more than
 * `cap` bytes; not sanitised. */
void result_text(const struct result *r, size_t row, size_t column, char *buf, size_t cap);

/* Append the whole value, numbers with every digit. */
void result_put_whole(const struct result *r, size_t row, size_t column, struct strbuf *out);

/* Append the fewest digits that read back as the same number; append hexadecimal digits. */
void result_put_digits(double v, struct strbuf *out);
void result_put_hex(const char *bytes, size_t n, struct strbuf *out);

/* True if every value except NULL is a number, and there is one. */
bool result_is_numeric(const struct result *r, size_t column);

/* -1, 0, 1: numbers before text before blobs; NULL after everything. */
int result_compare(const struct result *r, size_t column, size_t a, size_t b);

/* Numbers of all rows sorted by a column, equal ones in their old order; NULLs last, in both
 * directions. `order` has room for n_rows. 0, or -1: out of memory. */
int result_sort(const struct result *r, size_t column, bool descends, uint32_t *order);

/* ---- formats ---- */

struct result_format {
    const char *name;
    const char *help;
    /* Append the whole answer. `terminal`: sanitised for drawing. NULL: the format is only head
     * and rows. */
    void (*put)(const struct result *r, bool terminal, struct strbuf *out);
    /* Append the text before the rows, which needs only the columns; and a row of that many
     * cells. NULL: the format needs the whole answer. */
    void (*put_head)(const struct result *columns, bool terminal, struct strbuf *out);
    void (*put_row)(const struct result *columns, const struct result_cell *cells, bool terminal,
                    struct strbuf *out);
};

/* All formats; the last row has no name. The first is for people. */
extern const struct result_format result_formats[];

/* The format, or NULL with ERR_USAGE and a suggestion. */
const struct result_format *result_find_format(const char *name, struct err *e);

void result_write(const struct result *r, const struct result_format *f, bool terminal, struct strbuf *out);

/* Like the first format, for a terminal: rank, host and pid that are equal in all rows stand below them. If
 * a line would be wider than `cols`, texts are cut, the widest first;
 * if that is not enough, each value has a line of its own. 0: full width. */
void result_put_fitted(const struct result *r, int cols, struct strbuf *out);

#endif
