/* SPDX-License-Identifier: Apache-2.0 */
/* querier_export: see querier_export.h. */
#include "tui/host/querier_export.h"

#include <string.h>

#include "base/strbuf.h"
#include "client/output.h"
#include "client/sql/result.h"

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

int querier_export_write(const struct querier_export *x, const atomic_bool *ending, struct err *e) {
    struct strbuf text;
    const struct result_format *format = result_find_format(x->format, e);
    if (!format)
        return -1;
    struct result *rows =
        result_select(x->rows, x->order, x->order ? x->n_order : x->rows->n_rows, x->hidden);
    strbuf_init(&text, QUERIER_EXPORT_BYTES);
    if (rows)
        result_write(rows, format, false, &text);
    int rc = 0;
    if (!rows || text.failed)
        rc = err_set(e, ERR_FAILED, "out of memory for the export");
    else if (atomic_load(ending))
        rc = err_set(e, ERR_FAILED, "the export was ended, nothing is written");
    else
        rc = output_write(x->path, &text, e);
    strbuf_fini(&text);
    result_unref(rows);
    return rc;
}
