/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_binary: rows in ClickHouse's format RowBinary: the values of a row one after the other, without names and
 * lengths of rows. Numbers are little-endian, a text has its length before it as a number of 7 bits a byte, a
 * value of a nullable column has a byte before it that is 1 for NULL.
 *
 * What is read comes from elsewhere: every length is checked, nothing is allocated. Pure functions.
 */
#ifndef CLIENT_ENGINE_ROW_BINARY_H
#define CLIENT_ENGINE_ROW_BINARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

#define ROW_TEXT_MAX ((uint64_t)1 << 20) /* bytes of a text */
#define ROW_LIST_MAX ((uint64_t)1 << 16) /* items of an array */

enum row_type {
    ROW_INT8,
    ROW_INT16,
    ROW_INT32,
    ROW_INT64,
    ROW_UINT8,
    ROW_UINT16,
    ROW_UINT32,
    ROW_UINT64, /* row_value.i has its bits */
    ROW_FLOAT64,
    ROW_STRING,
    ROW_DATE,    /* days since the epoch, 16 bits */
    ROW_STRINGS, /* Array(String) */
    ROW_INTS,    /* Array(Int32) */
};

struct row_column {
    const char *name;
    enum row_type type;
    bool is_nullable;
};

enum row_kind { ROW_NULL = 0, ROW_INT, ROW_REAL, ROW_TEXT, ROW_LIST };

struct row_value {
    enum row_kind kind;
    int64_t i;
    double f;
    const char *s; /* a text, not NUL-terminated; of a list that was read: its items, for row_binary_next */
    size_t len;    /* bytes of that */
    const struct row_value *items; /* of a list that is written */
    size_t n;                      /* items of a list */
};

/* Values to be written. A NULL text, NAN, or INT64_MIN is NULL. */
struct row_value row_int(int64_t i);
struct row_value row_bits(uint64_t bits); /* of a ROW_UINT64: all are valid */
struct row_value row_real(double f);
struct row_value row_text(const char *s);

/* The type as SQL names it: "Nullable(Int64)". */
const char *row_binary_type(const struct row_column *c);

/* Append a value. A number that its column cannot hold is NULL; NULL in a column that is not nullable is 0, ""
 * or NAN; a text is cut at ROW_TEXT_MAX. 0, or -1 without memory. */
int row_binary_put(struct strbuf *out, const struct row_column *c, const struct row_value *v);

/* Append a row. */
int row_binary_put_row(struct strbuf *out, const struct row_column *c, size_t n, const struct row_value *row);

/* Bytes that are read; they have to stay as long as the values that are taken from them. */
struct row_reader {
    const char *data;
    size_t len, at;
};

/* Read a row. 1; 0: there are not all bytes of another one (`at` has not moved; at == len: none is begun); -1: what
 * comes is not valid. */
int row_binary_get_row(struct row_reader *r, const struct row_column *c, size_t n, struct row_value *row);

/* The next item of a list that was read from a column, which takes it from the list. 1, or 0 at the end. */
int row_binary_next(struct row_value *list, const struct row_column *c, struct row_value *item);

#endif
