/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows: the answer to a query, kept in memory, and the forms in which it is written.
 *
 * One row of rows_formats is one form: for people, for programs. Values are those of SQL; unknown is NULL. Made by the thread that runs the
 * query, then plain data.
 */
#ifndef CLIENT_SQL_ROWS_H
#define CLIENT_SQL_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "store/sql/sql.h"

struct rows_column {
    const char *name; /* no two are the same */
    const char *type; /* "timestamp", "integer", ..; of an expression what its values are; "" unknown */
};

struct rows_cell {
    enum sql_kind kind;
    uint32_t len; /* of a text or blob */
    union {
        int64_t i;
        double f;
        const char *s; /* ends with a NUL, too */
    };
};

/* All zero is a valid, empty one. */
struct rows {
    struct rows_column *columns;
    size_t n_columns;
    struct rows_cell *cells; /* row after row */
    size_t n, cap;
    bool truncated; /* there were more */
    uint64_t lost;  /* pieces of tables that were overwritten while they were read */
    double elapsed_s;
    struct arena arena;
};

/* What the rows may take, in bytes: unless somebody has asked for all there are, and then. */
#define ROWS_BYTES ((size_t)80 * 1024 * 1024)
#define ROWS_BYTES_ALL ((size_t)1024 * 1024 * 1024)

/* Take all rows of a result. `out` is initialised here and given back by rows_fini, on failure too. 0, or -1 with the error: there are more than
 * so many bytes of them. */
int rows_take(struct rows *out, struct sql_result *r, size_t most_bytes, struct err *e);
void rows_fini(struct rows *rows);

const struct rows_cell *rows_at(const struct rows *rows, size_t row, size_t column);

/* The value as text, without units, for people and CSV: "" for NULL, hexadecimal digits for a blob. */
void rows_put_text(const struct rows_cell *c, struct strbuf *out);

struct rows_format {
    const char *name;
    const char *help;
    /* `terminal`: it is drawn: no control characters. */
    void (*put)(const struct rows *rows, bool terminal, struct strbuf *out);
};

/* All; the last row has no name. The first is for people. */
extern const struct rows_format rows_formats[];

/* As the first of them. Where a line would be wider than `cols`, texts are cut, the widest first; where that is not enough, each value has a
 * line of its own. 0: as wide as it is. */
void rows_put_fitted(const struct rows *rows, int cols, struct strbuf *out);

/* The row, or NULL with ERR_USAGE and a suggestion. */
const struct rows_format *rows_find_format(const char *name, struct err *e);

#endif
