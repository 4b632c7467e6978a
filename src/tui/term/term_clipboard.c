/* SPDX-License-Identifier: Apache-2.0 */
/* term_clipboard: see term_clipboard.h. */
#include "tui/term/term_clipboard.h"

#include <stdint.h>
#include <string.h>

const char *term_clipboard_why_not(const char *type, const char *screen) {
    if (screen && *screen)
        return "GNU screen passes no clipboard on";
    if (type && strcmp(type, "linux") == 0)
        return "the Linux console has no clipboard";
    if (type && (strncmp(type, "vt1", 3) == 0 || strncmp(type, "vt2", 3) == 0 || strcmp(type, "dumb") == 0))
        return "this kind of terminal has no clipboard";
    return NULL;
}

/* Base64 of RFC 4648, with padding. */
static void term_clipboard_base64(struct strbuf *out, const unsigned char *p, size_t len) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < len; i += 3) {
        size_t have = len - i < 3 ? len - i : 3;
        uint32_t v = (uint32_t)p[i] << 16 | (have > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
                     (have > 2 ? (uint32_t)p[i + 2] : 0);
        char four[4] = {digits[v >> 18], digits[v >> 12 & 63], have > 1 ? digits[v >> 6 & 63] : '=',
                        have > 2 ? digits[v & 63] : '='};
        (void)strbuf_add(out, four, sizeof four);
    }
}

int term_clipboard_put(struct strbuf *out, const char *text, size_t len) {
    (void)strbuf_adds(out, "\033]52;c;");
    term_clipboard_base64(out, (const unsigned char *)text, len);
    return strbuf_adds(out, "\007");
}
