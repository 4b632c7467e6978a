/* SPDX-License-Identifier: Apache-2.0 */
/* rows: see rows.h. Taking them in. */
#include "client/sql/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_NAME_MAX 1024

static int rows_no_memory(struct err *e) {
    return err_set(e, ERR_FAILED, "the answer is too large to be kept in memory: ask for fewer rows");
}

static bool rows_has_column(const struct rows *rows, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(rows->columns[i].name, name) == 0)
            return true;
    return false;
}

/* A row is an object to those who read JSON: of columns with the same name, the second is called NAME:2. */
static const char *rows_name(struct rows *rows, size_t i, const char *name) {
    char text[ROWS_NAME_MAX];
    if (!rows_has_column(rows, i, name))
        return arena_strdup(&rows->arena, name);
    for (size_t k = 2;; k++) {
        (void)snprintf(text, sizeof text, "%.*s:%zu", ROWS_NAME_MAX - 24, name, k);
        if (!rows_has_column(rows, i, text))
            return arena_strdup(&rows->arena, text);
    }
}

static int rows_take_columns(struct rows *rows, const struct sql_result *r, struct err *e) {
    rows->n_columns = sql_result_columns(r);
    rows->columns = arena_calloc(&rows->arena, rows->n_columns + 1, sizeof *rows->columns);
    for (size_t i = 0; rows->columns && i < rows->n_columns; i++) {
        rows->columns[i].name = rows_name(rows, i, sql_result_name(r, i));
        rows->columns[i].type = arena_strdup(&rows->arena, sql_result_type(r, i));
        if (!rows->columns[i].name || !rows->columns[i].type)
            return rows_no_memory(e);
    }
    return rows->columns ? 0 : rows_no_memory(e);
}

static const char *rows_kind_name(enum sql_kind kind) {
    static const char *const names[] = {[SQL_NULL] = "",
                                        [SQL_INTEGER] = "integer",
                                        [SQL_REAL] = "double",
                                        [SQL_TEXT] = "text",
                                        [SQL_BLOB] = "blob"};
    return names[kind];
}

static bool rows_take_cell(struct rows *rows, struct rows_cell *c, const struct sql_result *r, size_t i) {
    size_t len;
    c->kind = sql_result_kind(r, i);
    if (c->kind != SQL_NULL && !rows->columns[i].type[0])
        rows->columns[i].type = rows_kind_name(c->kind);
    if (c->kind == SQL_INTEGER)
        c->i = sql_result_int(r, i);
    else if (c->kind == SQL_REAL)
        c->f = sql_result_real(r, i);
    if (c->kind != SQL_TEXT && c->kind != SQL_BLOB)
        return true;
    const char *text = sql_result_text(r, i, &len);
    c->s = arena_strndup(&rows->arena, text ? text : "", text ? len : 0);
    c->len = text ? (uint32_t)len : 0;
    return c->s != NULL;
}

/* Cells and texts together are bounded. */
static bool rows_grow(struct rows *rows) {
    if (rows->n < rows->cap)
        return true;
    size_t cap = rows->cap ? rows->cap * 2 : 64, row = (rows->n_columns + 1) * sizeof *rows->cells;
    size_t grown = cap * row - rows->cap * row;
    if (grown > rows->arena.limit || rows->arena.used > rows->arena.limit - grown)
        return false;
    struct rows_cell *more = realloc(rows->cells, cap * row);
    if (!more)
        return false;
    rows->arena.limit -= grown;
    rows->cells = more;
    rows->cap = cap;
    return true;
}

int rows_take(struct rows *out, struct sql_result *r, size_t most_bytes, struct err *e) {
    *out = (struct rows){.n = 0};
    arena_init(&out->arena, most_bytes);
    if (rows_take_columns(out, r, e) != 0)
        return -1;
    int rc;
    while ((rc = sql_next(r, e)) == 1) {
        if (!rows_grow(out))
            return rows_no_memory(e);
        for (size_t i = 0; i < out->n_columns; i++)
            if (!rows_take_cell(out, &out->cells[out->n * out->n_columns + i], r, i))
                return rows_no_memory(e);
        out->n++;
    }
    out->truncated = sql_result_truncated(r);
    out->lost = sql_result_lost(r);
    out->elapsed_s = sql_result_elapsed_s(r);
    return rc;
}

void rows_fini(struct rows *rows) {
    free(rows->cells);
    arena_fini(&rows->arena);
    *rows = (struct rows){.n = 0};
}

const struct rows_cell *rows_at(const struct rows *rows, size_t row, size_t column) {
    return &rows->cells[row * rows->n_columns + column];
}
