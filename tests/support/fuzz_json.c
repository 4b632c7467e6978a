/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_json: see fuzz_json.h. */
#include "support/fuzz_json.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

#define FUZZ_JSON_DEPTH 64

/* What is left to be read. */
struct fuzz_json {
    const char *at, *end;
};

static bool json_value(struct fuzz_json *j, int depth);

static void json_blanks(struct fuzz_json *j) {
    while (j->at < j->end && strchr(" \t\r\n", *j->at) && *j->at)
        j->at++;
}

static bool json_take(struct fuzz_json *j, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(j->end - j->at) < n || memcmp(j->at, word, n) != 0)
        return false;
    j->at += n;
    return true;
}

static bool json_escape(struct fuzz_json *j) {
    if (j->at == j->end)
        return false;
    char c = *j->at++;
    if (c != 'u')
        return c && strchr("\"\\/bfnrt", c);
    for (int i = 0; i < 4; i++, j->at++)
        if (j->at == j->end || !isxdigit((unsigned char)*j->at))
            return false;
    return true;
}

static bool json_text(struct fuzz_json *j) {
    if (!json_take(j, "\""))
        return false;
    while (j->at < j->end && *j->at != '"') {
        uint32_t cp;
        size_t n = text_utf8_next(j->at, (size_t)(j->end - j->at), &cp);
        if (cp < 0x20 || (cp == TEXT_REPLACEMENT && memcmp(j->at, "\xef\xbf\xbd", n) != 0))
            return false;
        j->at += n;
        if (cp == '\\' && !json_escape(j))
            return false;
    }
    return json_take(j, "\"");
}

static bool json_digits(struct fuzz_json *j) {
    const char *from = j->at;
    while (j->at < j->end && isdigit((unsigned char)*j->at))
        j->at++;
    return j->at > from;
}

static bool json_number_is(struct fuzz_json *j) {
    (void)json_take(j, "-");
    if (!json_take(j, "0") && !json_digits(j))
        return false;
    if (json_take(j, ".") && !json_digits(j))
        return false;
    if (!json_take(j, "e") && !json_take(j, "E"))
        return true;
    if (!json_take(j, "+"))
        (void)json_take(j, "-");
    return json_digits(j);
}

/* What is between two brackets. */
static bool json_items(struct fuzz_json *j, int depth, bool keys, const char *closer) {
    json_blanks(j);
    if (json_take(j, closer))
        return true;
    do {
        json_blanks(j);
        if (keys) {
            if (!json_text(j))
                return false;
            json_blanks(j);
            if (!json_take(j, ":"))
                return false;
        }
        if (!json_value(j, depth + 1))
            return false;
        json_blanks(j);
    } while (json_take(j, ","));
    return json_take(j, closer);
}

static bool json_value(struct fuzz_json *j, int depth) {
    json_blanks(j);
    if (j->at == j->end || depth > FUZZ_JSON_DEPTH)
        return false;
    if (*j->at == '"')
        return json_text(j);
    if (json_take(j, "{"))
        return json_items(j, depth, true, "}");
    if (json_take(j, "["))
        return json_items(j, depth, false, "]");
    return json_take(j, "null") || json_take(j, "true") || json_take(j, "false") || json_number_is(j);
}

bool fuzz_json_is(const char *text, size_t len) {
    struct fuzz_json j = {text, text + len};
    if (!json_value(&j, 0))
        return false;
    json_blanks(&j);
    return j.at == j.end;
}

bool fuzz_text_is_plain(const char *text, size_t len) {
    for (size_t at = 0; at < len;) {
        uint32_t cp;
        size_t n = text_utf8_next(text + at, len - at, &cp);
        if ((cp < 0x20 && cp != '\n' && cp != '\t') || (cp >= 0x7f && cp < 0xa0) || cp == 0x061c ||
            (cp >= 0x200e && cp <= 0x200f) || (cp >= 0x202a && cp <= 0x202e) ||
            (cp >= 0x2066 && cp <= 0x2069) ||
            (cp == TEXT_REPLACEMENT && memcmp(text + at, "\xef\xbf\xbd", n) != 0))
            return false;
        at += n;
    }
    return true;
}
