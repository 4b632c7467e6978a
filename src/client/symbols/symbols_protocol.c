/* SPDX-License-Identifier: Apache-2.0 */
/* symbols_protocol: see symbols_protocol.h. The client's side parses packets and trusts nothing. */
#include "client/symbols/symbols_protocol.h"

#include <string.h>

bool symbols_strip_version(const char *symbol, char *out, size_t cap) {
    size_t len = strcspn(symbol, "@");
    if (len == 0 || len >= cap)
        len = strnlen(symbol, cap - 1);
    memcpy(out, symbol, len);
    out[len] = '\0';
    return strncmp(out, "_Z", 2) == 0 || strncmp(out, "_R", 2) == 0;
}

/* A text of `size` bytes at *at, with its NUL, and no other NUL. 0 or -1. */
static int answer_text(const char **at, const char *end, size_t size, size_t max, struct arena *text,
                       const char **out) {
    *out = NULL;
    if (size == 0)
        return 0;
    if (size > max || size > (size_t)(end - *at) || memchr(*at, '\0', size) != *at + size - 1)
        return -1;
    *out = arena_strndup(text, *at, size - 1);
    *at += size;
    return *out ? 0 : -1;
}

int symbols_answer_read(const void *packet, size_t len, struct arena *text, struct symbol *list,
                        enum native_role *role) {
    struct symbols_answer a;
    if (len < sizeof a || len > SYMBOLS_ANSWER_MAX)
        return -1;
    memcpy(&a, packet, sizeof a);
    const char *at = (const char *)packet + sizeof a, *end = (const char *)packet + len;
    if (a.what != SYMBOLS_ANSWER || a.n > SYMBOLS_MAX_INLINED || a.role > NATIVE_ROLE_EDGE)
        return -1;
    for (uint32_t i = 0; i < a.n; i++) {
        list[i] = (struct symbol){.line = a.list[i].line};
        if (a.list[i].line < 0 ||
            answer_text(&at, end, a.list[i].func, SYMBOLS_PLAIN_MAX, text, &list[i].func) != 0 ||
            answer_text(&at, end, a.list[i].file, SYMBOLS_PATH_MAX, text, &list[i].file) != 0)
            return -1;
    }
    *role = (enum native_role)a.role;
    return at == end ? (int)a.n : -1;
}

int symbols_want_read(const void *packet, size_t len, struct symbols_want *out) {
    if (len != sizeof *out)
        return -1;
    memcpy(out, packet, sizeof *out);
    if ((out->what != SYMBOLS_WANT_DEBUG && out->what != SYMBOLS_WANT_ALT) ||
        out->number >= SYMBOLS_MAX_FILES_ASKED || out->id_len > sizeof out->id ||
        !memchr(out->name, '\0', sizeof out->name))
        return -1;
    return 0;
}
