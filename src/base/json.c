/* SPDX-License-Identifier: Apache-2.0 */
/* json: see json.h. RFC 8259. */
#include "base/json.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

void json_init(struct json *j, struct strbuf *out, int indent) {
    *j = (struct json){.out = out, .indent = indent};
}

static void json_newline(struct json *j) {
    if (j->indent <= 0)
        return;
    strbuf_addc(j->out, '\n');
    for (int i = 0; i < j->depth * j->indent; i++)
        strbuf_addc(j->out, ' ');
}

/* Write the separator before a value or a key: nothing after a key, otherwise a comma and a new
 * line as needed. */
static void json_separate(struct json *j) {
    if (j->after_key) {
        j->after_key = false;
        return;
    }
    if (j->depth == 0)
        return;
    if (j->has_items[j->depth - 1])
        strbuf_addc(j->out, ',');
    j->has_items[j->depth - 1] = true;
    json_newline(j);
}

static void json_open(struct json *j, char open, char close) {
    json_separate(j);
    if (j->depth >= JSON_MAX_DEPTH) {
        j->failed = true;
        return;
    }
    strbuf_addc(j->out, open);
    j->closer[j->depth] = close;
    j->has_items[j->depth] = false;
    j->depth++;
}

static void json_close(struct json *j, char close) {
    if (j->depth == 0 || j->closer[j->depth - 1] != close) {
        j->failed = true;
        return;
    }
    j->depth--;
    if (j->has_items[j->depth])
        json_newline(j);
    strbuf_addc(j->out, close);
}

void json_object_begin(struct json *j) { json_open(j, '{', '}'); }

void json_object_end(struct json *j) { json_close(j, '}'); }

void json_array_begin(struct json *j) { json_open(j, '[', ']'); }

void json_array_end(struct json *j) { json_close(j, ']'); }

/* How many of the next bytes need no escape. */
static size_t json_plain(const char *s, size_t len) {
    size_t n = 0;
    while (n < len && s[n] >= 0x20 && s[n] < 0x7f && s[n] != '"' && s[n] != '\\')
        n++;
    return n;
}

static void json_quote(struct json *j, const char *s, size_t len) {
    const char *end = s + len;
    strbuf_addc(j->out, '"');
    while (s < end) {
        uint32_t cp;
        size_t plain = json_plain(s, (size_t)(end - s));
        strbuf_add(j->out, s, plain);
        s += plain;
        if (s == end)
            break;
        size_t n = text_utf8_next(s, (size_t)(end - s), &cp);
        if (cp == '"' || cp == '\\')
            strbuf_addf(j->out, "\\%c", (int)cp);
        else if (cp == '\n')
            strbuf_adds(j->out, "\\n");
        else if (cp == '\t')
            strbuf_adds(j->out, "\\t");
        else if (text_is_control(cp)) /* a terminal might obey it, or it might mislead a reader */
            strbuf_addf(j->out, "\\u%04x", (unsigned)cp);
        else if (cp == TEXT_REPLACEMENT)
            strbuf_adds(j->out, "\xef\xbf\xbd");
        else
            strbuf_add(j->out, s, n);
        s += n;
    }
    strbuf_addc(j->out, '"');
}

void json_key(struct json *j, const char *key) {
    json_separate(j);
    json_quote(j, key, strlen(key));
    strbuf_adds(j->out, j->indent > 0 ? ": " : ":");
    j->after_key = true;
}

void json_string(struct json *j, const char *s) {
    if (!s) {
        json_null(j);
        return;
    }
    json_string_of(j, s, strlen(s));
}

void json_string_of(struct json *j, const char *s, size_t len) {
    json_separate(j);
    json_quote(j, s, len);
}

void json_int(struct json *j, int64_t v) {
    json_separate(j);
    strbuf_addf(j->out, "%lld", (long long)v);
}

void json_uint(struct json *j, uint64_t v) {
    json_separate(j);
    strbuf_addf(j->out, "%llu", (unsigned long long)v);
}

void json_number(struct json *j, double v, int decimals) {
    if (!isfinite(v)) {
        json_null(j);
        return;
    }
    json_separate(j);
    strbuf_addf(j->out, "%.*f", decimals, v);
}

void json_literal(struct json *j, const char *text) {
    json_separate(j);
    strbuf_adds(j->out, text);
}

void json_bool(struct json *j, bool v) {
    json_separate(j);
    strbuf_adds(j->out, v ? "true" : "false");
}

void json_null(struct json *j) {
    json_separate(j);
    strbuf_adds(j->out, "null");
}

void json_kv_string(struct json *j, const char *key, const char *s) {
    json_key(j, key);
    json_string(j, s);
}

void json_kv_int(struct json *j, const char *key, int64_t v) {
    json_key(j, key);
    json_int(j, v);
}

void json_kv_uint(struct json *j, const char *key, uint64_t v) {
    json_key(j, key);
    json_uint(j, v);
}

void json_kv_number(struct json *j, const char *key, double v, int decimals) {
    json_key(j, key);
    json_number(j, v, decimals);
}

void json_kv_bool(struct json *j, const char *key, bool v) {
    json_key(j, key);
    json_bool(j, v);
}

void json_kv_null(struct json *j, const char *key) {
    json_key(j, key);
    json_null(j);
}

int json_finish(const struct json *j) {
    return j->failed || j->depth != 0 || j->after_key || j->out->failed ? -1 : 0;
}
