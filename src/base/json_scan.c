/* SPDX-License-Identifier: Apache-2.0 */
/* json_scan: see json_scan.h. */
#include "base/json_scan.h"

#include <string.h>

#include "base/text.h"

#define JSON_SCAN_MANY ((int64_t)1 << 62)

/* ---- values ---- */

static void json_scan_blanks(struct json_scan *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
        c->at++;
}

int json_scan_peek(struct json_scan *c) {
    json_scan_blanks(c);
    return c->at < c->end ? (unsigned char)*c->at : -1;
}

bool json_scan_mark(struct json_scan *c, char mark) {
    bool there = json_scan_peek(c) == (unsigned char)mark;
    c->at += there;
    return there;
}

static int json_scan_hex(int ch) {
    return ch >= '0' && ch <= '9'   ? ch - '0'
           : ch >= 'a' && ch <= 'f' ? ch - 'a' + 10
           : ch >= 'A' && ch <= 'F' ? ch - 'A' + 10
                                    : -1;
}

/* Read the rest of a string whose first quote was read, as much as fits, made safe to show. */
static bool json_scan_rest_of_text(struct json_scan *c, char *out, size_t cap) {
    char raw[JSON_SCAN_TEXT];
    size_t n = 0, most = cap < sizeof raw ? cap : sizeof raw;
    while (c->at < c->end && *c->at != '"') {
        char ch = *c->at++;
        if (ch == '\\') {
            if (c->at == c->end)
                return false;
            ch = *c->at++;
            if (ch == 'u') {
                int code = 0;
                for (int i = 0; i < 4; i++) {
                    int digit = c->at < c->end ? json_scan_hex((unsigned char)*c->at++) : -1;
                    if (digit < 0)
                        return false;
                    code = code << 4 | digit;
                }
                /* names are ASCII: others are only to be told apart from nothing */
                ch = code > 0 && code < 128 ? (char)code : '?';
            } else if (ch == 'n' || ch == 't' || ch == 'r' || ch == 'b' || ch == 'f') {
                ch = ' ';
            }
        }
        if (cap && n + 1 < most)
            raw[n++] = ch ? ch : '?';
    }
    if (c->at == c->end)
        return false;
    c->at++;
    if (cap) {
        raw[n] = '\0';
        text_sanitize(out, cap, raw);
    }
    return true;
}

bool json_scan_skip(struct json_scan *c) {
    char closes[JSON_SCAN_DEPTH];
    size_t depth = 0;
    do {
        int ch = json_scan_peek(c);
        if (ch < 0)
            return false;
        c->at++;
        if (ch == '"') {
            if (!json_scan_rest_of_text(c, NULL, 0))
                return false;
        } else if (ch == '{' || ch == '[') {
            if (depth == JSON_SCAN_DEPTH)
                return false;
            closes[depth++] = ch == '{' ? '}' : ']';
        } else if (ch == '}' || ch == ']') {
            if (!depth || closes[--depth] != ch)
                return false;
        } else if (ch == ',' || ch == ':') {
            if (!depth)
                return false;
        } else {
            while (c->at < c->end && !strchr(",:]}[{\" \t\r\n", *c->at))
                c->at++;
        }
    } while (depth);
    return true;
}

bool json_scan_text(struct json_scan *c, char *out, size_t cap) {
    out[0] = '\0';
    if (!json_scan_mark(c, '"'))
        return json_scan_skip(c);
    return json_scan_rest_of_text(c, out, cap);
}

bool json_scan_number(struct json_scan *c, int64_t *out) {
    bool quoted = json_scan_peek(c) == '"';
    const char *from = c->at + (quoted ? 1 : 0), *p = from;
    int64_t v = 0;
    *out = JSON_SCAN_UNKNOWN;
    if (!json_scan_skip(c))
        return false;
    const char *end = c->at - (quoted ? 1 : 0);
    for (; p < end && *p >= '0' && *p <= '9'; p++)
        v = v < JSON_SCAN_MANY / 10 ? v * 10 + (*p - '0') : JSON_SCAN_MANY;
    if (p == end && p > from && v < JSON_SCAN_MANY)
        *out = v;
    return true;
}

bool json_scan_flag(struct json_scan *c, bool *out) {
    json_scan_blanks(c);
    *out = c->end - c->at >= 4 && memcmp(c->at, "true", 4) == 0;
    return json_scan_skip(c);
}

/* ---- objects and lists ---- */

int json_scan_next(struct json_scan *c, bool *first, char close) {
    if (json_scan_mark(c, close))
        return 0;
    if (!*first && !json_scan_mark(c, ','))
        return -1;
    *first = false;
    return 1;
}

int json_scan_next_key(struct json_scan *c, bool *first, char *key, size_t cap) {
    int rc = json_scan_next(c, first, '}');
    if (rc == 1 &&
        (!json_scan_mark(c, '"') || !json_scan_rest_of_text(c, key, cap) || !json_scan_mark(c, ':')))
        return -1;
    return rc;
}
