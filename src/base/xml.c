/* SPDX-License-Identifier: Apache-2.0 */
/* xml: see xml.h. */
#include "base/xml.h"

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

void xml_put_text(struct strbuf *out, const char *text, int cols) {
    char clean[XML_TEXT_MAX];
    size_t len = text_sanitize(clean, sizeof clean, text ? text : "?");
    size_t fit = cols ? text_fit(clean, cols) : len;
    for (size_t i = 0, n; i < fit; i += n) {
        uint32_t cp;
        n = text_utf8_next(clean + i, fit - i, &cp);
        const char *entity = cp == '&'    ? "&amp;"
                             : cp == '<'  ? "&lt;"
                             : cp == '>'  ? "&gt;"
                             : cp == '"'  ? "&quot;"
                             : cp == '\'' ? "&#39;"
                                          : NULL;
        if (entity)
            strbuf_adds(out, entity);
        else if ((cp & 0xFFFE) == 0xFFFE)
            strbuf_adds(out, "\xEF\xBF\xBD");
        else
            strbuf_add(out, clean + i, n);
    }
    if (fit < len)
        strbuf_adds(out, "..");
}
