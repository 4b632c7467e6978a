/* SPDX-License-Identifier: Apache-2.0 */
/* profile_text: see profile_text.h. */
#include "client/export/profile_text.h"

#include "base/text.h"

#define PROFILE_TEXT_WIDTH 56

void profile_text_put(struct strbuf *out, const char *note, const char *file, const struct result *rows) {
    char text[1024], where[1024];
    text_sanitize(text, sizeof text, note);
    text_sanitize(where, sizeof where, file);
    strbuf_addf(out, "%s\nwrote %s; ui.perfetto.dev and chrome://tracing open it\n\n%-*s %12s %9s\n", text,
                where, PROFILE_TEXT_WIDTH, "OPERATION", "TOTAL MS", "CALLS");
    for (size_t i = 0; i < rows->n_rows; i++) {
        const char *operation = result_string(rows, i, PROFILE_TEXT_OPERATION);
        char name[256];
        text_sanitize(name, sizeof name, operation ? operation : "?");
        strbuf_addf(out, "%-*s %12.3f %9.0f\n", PROFILE_TEXT_WIDTH, name,
                    result_number(rows, i, PROFILE_TEXT_TOTAL), result_number(rows, i, PROFILE_TEXT_CALLS));
    }
}
