/* SPDX-License-Identifier: Apache-2.0 */
/* profile_text: see profile_text.h. */
#include "client/export/profile_text.h"

#include <math.h>

#include "base/text.h"

#define PROFILE_TEXT_WIDTH 56

static double profile_text_number(const struct rows *rows, size_t row, enum profile_text_column column) {
    const struct rows_cell *c = rows_at(rows, row, column);
    return c->kind == SQL_INTEGER ? (double)c->i : c->kind == SQL_REAL ? c->f : NAN;
}

void profile_text_put(struct strbuf *out, const char *note, const char *file, const struct rows *rows) {
    char text[1024], where[1024];
    (void)text_sanitize(text, sizeof text, note);
    (void)text_sanitize(where, sizeof where, file);
    (void)strbuf_addf(out, "%s\n%s: ui.perfetto.dev and chrome://tracing open it\n\n%-*s %12s %9s\n", text,
                      where, PROFILE_TEXT_WIDTH, "OPERATION", "TOTAL MS", "CALLS");
    for (size_t i = 0; i < rows->n; i++) {
        const struct rows_cell *c = rows_at(rows, i, PROFILE_TEXT_OPERATION);
        char name[256];
        (void)text_sanitize(name, sizeof name, c->kind == SQL_TEXT ? c->s : "?");
        (void)strbuf_addf(out, "%-*s %12.3f %9.0f\n", PROFILE_TEXT_WIDTH, name,
                          profile_text_number(rows, i, PROFILE_TEXT_TOTAL),
                          profile_text_number(rows, i, PROFILE_TEXT_CALLS));
    }
}
