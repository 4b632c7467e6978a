/* SPDX-License-Identifier: Apache-2.0 */
/* querier_export: see querier_export.h. */
#include "tui/host/querier_export.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "client/output.h"
#include "client/sql/rows.h"

#define QUERIER_EXPORT_BYTES ((size_t)1024 * 1024 * 1024)

const char *querier_export_format(const char *path, struct err *e) {
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    const char *end = dot && (!slash || dot > slash) ? dot + 1 : "";
    if (strcmp(end, "csv") != 0 && strcmp(end, "json") != 0 && strcmp(end, "ndjson") != 0) {
        (void)err_set(e, ERR_USAGE, "the name says the format: FILE.csv, FILE.json or FILE.ndjson");
        return NULL;
    }
    return end;
}

static void querier_export_cell(const struct result *r, size_t row, size_t column, struct rows_cell *out) {
    const union result_value *v = &r->columns[column].values[row];
    *out = (struct rows_cell){.kind = result_kind(r, row, column)};
    if (out->kind == SQL_INTEGER)
        out->i = v->i;
    else if (out->kind == SQL_REAL)
        out->f = v->f;
    else if (out->kind != SQL_NULL) {
        out->s = v->s;
        out->len = (uint32_t)result_length(r, row, column);
    }
}

/* What is shown, as the formats take it. 0, or -1: out of memory. */
static int querier_export_rows(const struct querier_export *x, struct rows *out) {
    const struct result *r = x->rows;
    size_t n = r->n_columns ? r->n_columns : 1;
    out->columns = calloc(n, sizeof *out->columns);
    size_t n_rows = x->order ? x->n_order : r->n_rows;
    out->cells = calloc(n_rows ? n_rows * n : 1, sizeof *out->cells);
    if (!out->columns || !out->cells)
        return -1;
    for (size_t i = 0; i < r->n_columns; i++)
        if (!x->hidden || !x->hidden[i])
            out->columns[out->n_columns++] =
                (struct rows_column){.name = r->columns[i].name, .type = r->columns[i].type};
    struct rows_cell *cell = out->cells;
    for (size_t at = 0; at < n_rows; at++)
        for (size_t i = 0; i < r->n_columns; i++)
            if (!x->hidden || !x->hidden[i])
                querier_export_cell(r, x->order ? x->order[at] : at, i, cell++);
    out->n = n_rows;
    out->truncated = r->full;
    return 0;
}

int querier_export_write(const struct querier_export *x, const atomic_bool *ending, struct err *e) {
    struct rows rows = {0};
    struct strbuf text;
    const struct rows_format *format = rows_find_format(x->format, e);
    if (!format)
        return -1;
    strbuf_init(&text, QUERIER_EXPORT_BYTES);
    int rc = querier_export_rows(x, &rows);
    if (rc == 0)
        format->put(&rows, false, &text);
    if (rc != 0 || text.failed)
        rc = err_set(e, ERR_FAILED, "out of memory for the export");
    else if (atomic_load(ending))
        rc = err_set(e, ERR_FAILED, "the export was ended, nothing is written");
    else
        rc = output_write(x->path, &text, e);
    strbuf_fini(&text);
    free(rows.columns);
    free(rows.cells);
    return rc;
}
