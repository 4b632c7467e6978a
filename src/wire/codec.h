/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec: MessagePack values, written to a strbuf and read through a cursor (spec:
 * msgpack/spec.md).
 *
 * Writing goes through msgpack-c's packer. Reading is a cursor over the bytes: no tree, no
 * allocation, no recursion, so a peer's message costs no more than its own length. Private to
 * src/wire. Any thread.
 */
#ifndef WIRE_CODEC_H
#define WIRE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

#define CODEC_MAX_DEPTH 12 /* accepted nesting of arrays and maps */

/* ---- writing: a failure is kept in out->failed ---- */

void codec_write_nil(struct strbuf *out);
void codec_write_bool(struct strbuf *out, bool v);
void codec_write_int(struct strbuf *out, int64_t v);
void codec_write_uint(struct strbuf *out, uint64_t v);
void codec_write_double(struct strbuf *out, double v);   /* NAN is written as nil */
void codec_write_str(struct strbuf *out, const char *s); /* NULL is written as nil */
void codec_write_strn(struct strbuf *out, const char *s, size_t len);
void codec_write_bin(struct strbuf *out, const void *data, size_t len);
void codec_write_bin_head(struct strbuf *out, size_t len); /* its bytes follow */
void codec_write_array(struct strbuf *out, size_t n);      /* n values follow */
void codec_write_map(struct strbuf *out, size_t n);        /* n keys and values follow */

/* ---- reading ---- */

enum codec_type {
    CODEC_NIL = 0,
    CODEC_BOOL,
    CODEC_INT,  /* a negative number, in .i */
    CODEC_UINT, /* any other whole number, in .u */
    CODEC_DOUBLE,
    CODEC_STR,
    CODEC_BIN,
    CODEC_EXT,
    CODEC_ARRAY,
    CODEC_MAP,
};

/* The head of a value; strings, bins and exts with their bytes. */
struct codec_token {
    enum codec_type type;
    uint32_t count; /* number of values of an array, pairs of a map, bytes of a str, bin or ext */
    union {
        bool b;
        int64_t i;
        uint64_t u;
        double f;
        const char *bytes; /* not NUL-terminated */
    };
};

/* The read position. Copied by value to look ahead. */
struct codec_cursor {
    const uint8_t *at, *end;
};

/* Read the next head. 0, or -1 at the end or if it is not MessagePack. */
int codec_read(struct codec_cursor *c, struct codec_token *t);

/* Skip one whole value. 0 or -1. */
int codec_skip(struct codec_cursor *c);

/* Check that the bytes are exactly one value, nested at most CODEC_MAX_DEPTH deep, with no count
 * larger than the bytes that follow. 0 or -1. Later code may then trust counts as sizes. */
int codec_check(const void *data, size_t len);

/* Read the head of an array or map and store its count. 0, or -1 if the next value is something
 * else. */
int codec_read_array(struct codec_cursor *c, size_t *n);
int codec_read_map(struct codec_cursor *c, size_t *n);

/* Find the values of `n` keys in the map at `map` in one pass. A missing key leaves .at NULL.
 * The first of two equal keys wins; keys that are not strings are skipped. 0, or -1 if there is
 * no map. */
int codec_find(struct codec_cursor map, const char *const *keys, size_t n, struct codec_cursor *values);

/* True if the string token equals the text. */
bool codec_token_is(const struct codec_token *t, const char *text);

/* Whole numbers, range-checked. 0 or -1. */
int codec_token_int(const struct codec_token *t, int64_t min, int64_t max, int64_t *out);
int codec_token_uint(const struct codec_token *t, uint64_t max, uint64_t *out);

#endif
