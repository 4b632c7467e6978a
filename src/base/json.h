/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json: a writer that cannot forget a comma.
 *
 * Appends to a strbuf and tracks the nesting, so it writes separators, quotes and closing
 * brackets itself. Strings become valid UTF-8 (a broken byte becomes U+FFFD). NAN and infinities
 * become null, because unknown is unknown.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

#define JSON_MAX_DEPTH 32

struct json {
    struct strbuf *out;
    int indent; /* spaces per level; 0 = all on one line */
    int depth;
    bool has_items[JSON_MAX_DEPTH];
    char closer[JSON_MAX_DEPTH];
    bool after_key;
    bool failed; /* nesting too deep or closed too often */
};

/* Start writing to `out`; `indent` spaces a level, 0 for one line. */
void json_init(struct json *j, struct strbuf *out, int indent);

void json_object_begin(struct json *j);
void json_object_end(struct json *j);
void json_array_begin(struct json *j);
void json_array_end(struct json *j);

/* Key of the next value in an object. */
void json_key(struct json *j, const char *key);

void json_string(struct json *j, const char *s);                /* NULL writes null */
void json_string_of(struct json *j, const char *s, size_t len); /* `s` may contain NULs */
void json_int(struct json *j, int64_t v);
void json_uint(struct json *j, uint64_t v);
void json_number(struct json *j, double v, int decimals); /* NAN, INFINITY write null */
/* must be valid JSON; written unchanged */
void json_literal(struct json *j, const char *text);
void json_bool(struct json *j, bool v);
void json_null(struct json *j);

/* Key and value together. */
void json_kv_string(struct json *j, const char *key, const char *s);
void json_kv_int(struct json *j, const char *key, int64_t v);
void json_kv_uint(struct json *j, const char *key, uint64_t v);
void json_kv_number(struct json *j, const char *key, double v, int decimals);
void json_kv_bool(struct json *j, const char *key, bool v);
void json_kv_null(struct json *j, const char *key);

/* 0 when everything was written and closed, -1 after a failure of memory, depth or balance. */
int json_finish(const struct json *j);

#endif
