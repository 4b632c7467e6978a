/* SPDX-License-Identifier: Apache-2.0 */
/* codec: see codec.h. */
#include "wire/codec.h"

#include <math.h>
#include <string.h>

#include <msgpack/pack.h>

/* ---- writing ---- */

static int codec_append(void *data, const char *bytes, size_t len) { return strbuf_add(data, bytes, len); }

static msgpack_packer codec_packer(struct strbuf *out) {
    return (msgpack_packer){.data = out, .callback = codec_append};
}

/* Numbers are most of the data and are written here: a head and a big-endian number of `width`
 * bytes. */
static void codec_put(struct strbuf *out, uint8_t head, uint64_t v, size_t width) {
    uint8_t bytes[1 + sizeof v] = {head};
    for (size_t i = 0; i < width; i++)
        bytes[1 + i] = (uint8_t)(v >> 8 * (width - 1 - i));
    strbuf_add(out, bytes, 1 + width);
}

void codec_write_nil(struct strbuf *out) { codec_put(out, 0xc0, 0, 0); }

void codec_write_bool(struct strbuf *out, bool v) { codec_put(out, v ? 0xc3 : 0xc2, 0, 0); }

void codec_write_int(struct strbuf *out, int64_t v) {
    if (v >= 0)
        codec_write_uint(out, (uint64_t)v);
    else if (v >= -32)
        codec_put(out, (uint8_t)v, 0, 0);
    else if (v >= INT8_MIN)
        codec_put(out, 0xd0, (uint64_t)v, 1);
    else if (v >= INT16_MIN)
        codec_put(out, 0xd1, (uint64_t)v, 2);
    else
        codec_put(out, v >= INT32_MIN ? 0xd2 : 0xd3, (uint64_t)v, v >= INT32_MIN ? 4 : 8);
}

void codec_write_uint(struct strbuf *out, uint64_t v) {
    if (v < 0x80)
        codec_put(out, (uint8_t)v, 0, 0);
    else if (v <= UINT8_MAX)
        codec_put(out, 0xcc, v, 1);
    else if (v <= UINT16_MAX)
        codec_put(out, 0xcd, v, 2);
    else
        codec_put(out, v <= UINT32_MAX ? 0xce : 0xcf, v, v <= UINT32_MAX ? 4 : 8);
}

void codec_write_double(struct strbuf *out, double v) {
    uint64_t raw;
    memcpy(&raw, &v, sizeof raw);
    if (isnan(v))
        codec_write_nil(out);
    else
        codec_put(out, 0xcb, raw, sizeof raw);
}

/* A length that MessagePack cannot express fails the message. */
static bool codec_fits(struct strbuf *out, size_t n) {
    if (n > UINT32_MAX)
        out->failed = true;
    return n <= UINT32_MAX;
}

void codec_write_strn(struct strbuf *out, const char *s, size_t len) {
    msgpack_packer pk = codec_packer(out);
    if (codec_fits(out, len))
        msgpack_pack_str_with_body(&pk, s, len);
}

void codec_write_str(struct strbuf *out, const char *s) {
    if (s)
        codec_write_strn(out, s, strlen(s));
    else
        codec_write_nil(out);
}

void codec_write_bin(struct strbuf *out, const void *data, size_t len) {
    msgpack_packer pk = codec_packer(out);
    if (codec_fits(out, len))
        msgpack_pack_bin_with_body(&pk, data, len);
}

void codec_write_bin_head(struct strbuf *out, size_t len) {
    msgpack_packer pk = codec_packer(out);
    if (codec_fits(out, len))
        msgpack_pack_bin(&pk, len);
}

void codec_write_array(struct strbuf *out, size_t n) {
    msgpack_packer pk = codec_packer(out);
    if (codec_fits(out, n))
        msgpack_pack_array(&pk, n);
}

void codec_write_map(struct strbuf *out, size_t n) {
    msgpack_packer pk = codec_packer(out);
    if (codec_fits(out, n))
        msgpack_pack_map(&pk, n);
}

/* ---- reading ---- */

/* A big-endian number of 1, 2, 4 or 8 bytes. */
static int codec_take(struct codec_cursor *c, size_t width, uint64_t *out) {
    if ((size_t)(c->end - c->at) < width)
        return -1;
    uint64_t v = 0;
    for (size_t i = 0; i < width; i++)
        v = v << 8 | c->at[i];
    c->at += width;
    *out = v;
    return 0;
}

static int codec_take_bytes(struct codec_cursor *c, struct codec_token *t, enum codec_type type,
                            uint64_t len) {
    if ((size_t)(c->end - c->at) < len)
        return -1;
    *t = (struct codec_token){.type = type, .count = (uint32_t)len, .bytes = (const char *)c->at};
    c->at += len;
    return 0;
}

static void codec_set_signed(struct codec_token *t, int64_t v) {
    if (v < 0)
        *t = (struct codec_token){.type = CODEC_INT, .i = v};
    else
        *t = (struct codec_token){.type = CODEC_UINT, .u = (uint64_t)v};
}

static int codec_read_float(struct codec_cursor *c, struct codec_token *t, size_t width) {
    uint64_t raw;
    if (codec_take(c, width, &raw) != 0)
        return -1;
    *t = (struct codec_token){.type = CODEC_DOUBLE};
    if (width == sizeof(float)) {
        uint32_t raw32 = (uint32_t)raw;
        float f;
        memcpy(&f, &raw32, sizeof f);
        t->f = (double)f;
    } else {
        memcpy(&t->f, &raw, sizeof t->f);
    }
    return 0;
}

/* Length of `width` bytes, then (for an ext) its type, then the body. */
static int codec_read_sized(struct codec_cursor *c, struct codec_token *t, enum codec_type type,
                            size_t width) {
    uint64_t len, kind;
    if (codec_take(c, width, &len) != 0 || (type == CODEC_EXT && codec_take(c, 1, &kind) != 0))
        return -1;
    return codec_take_bytes(c, t, type, len);
}

static int codec_read_counted(struct codec_cursor *c, struct codec_token *t, enum codec_type type,
                              size_t width) {
    uint64_t n;
    if (codec_take(c, width, &n) != 0)
        return -1;
    *t = (struct codec_token){.type = type, .count = (uint32_t)n};
    return 0;
}

/* Formats 0xc0 to 0xdf. */
static int codec_read_long(struct codec_cursor *c, struct codec_token *t, uint8_t head) {
    uint64_t raw;
    switch (head) {
    case 0xc0:
        *t = (struct codec_token){.type = CODEC_NIL};
        return 0;
    case 0xc2:
    case 0xc3:
        *t = (struct codec_token){.type = CODEC_BOOL, .b = head == 0xc3};
        return 0;
    case 0xc4:
    case 0xc5:
    case 0xc6:
        return codec_read_sized(c, t, CODEC_BIN, (size_t)1 << (head - 0xc4));
    case 0xc7:
    case 0xc8:
    case 0xc9:
        return codec_read_sized(c, t, CODEC_EXT, (size_t)1 << (head - 0xc7));
    case 0xca:
    case 0xcb:
        return codec_read_float(c, t, head == 0xca ? 4 : 8);
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
        if (codec_take(c, (size_t)1 << (head - 0xcc), &raw) != 0)
            return -1;
        *t = (struct codec_token){.type = CODEC_UINT, .u = raw};
        return 0;
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3: {
        unsigned unused_bits = 64U - (8U << (head - 0xd0));
        if (codec_take(c, (size_t)1 << (head - 0xd0), &raw) != 0)
            return -1;
        codec_set_signed(t, (int64_t)(raw << unused_bits) >> unused_bits);
        return 0;
    }
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
        return codec_take(c, 1, &raw) == 0 ? codec_take_bytes(c, t, CODEC_EXT, 1ULL << (head - 0xd4)) : -1;
    case 0xd9:
    case 0xda:
    case 0xdb:
        return codec_read_sized(c, t, CODEC_STR, (size_t)1 << (head - 0xd9));
    case 0xdc:
    case 0xdd:
        return codec_read_counted(c, t, CODEC_ARRAY, head == 0xdc ? 2 : 4);
    case 0xde:
    case 0xdf:
        return codec_read_counted(c, t, CODEC_MAP, head == 0xde ? 2 : 4);
    default: /* 0xc1 is never used */
        return -1;
    }
}

int codec_read(struct codec_cursor *c, struct codec_token *t) {
    if (c->at >= c->end)
        return -1;
    uint8_t head = *c->at++;
    if (head < 0x80)
        *t = (struct codec_token){.type = CODEC_UINT, .u = head};
    else if (head < 0x90)
        *t = (struct codec_token){.type = CODEC_MAP, .count = head & 0x0fU};
    else if (head < 0xa0)
        *t = (struct codec_token){.type = CODEC_ARRAY, .count = head & 0x0fU};
    else if (head < 0xc0)
        return codec_take_bytes(c, t, CODEC_STR, head & 0x1fU);
    else if (head >= 0xe0)
        *t = (struct codec_token){.type = CODEC_INT, .i = (int)head - 0x100};
    else
        return codec_read_long(c, t, head);
    return 0;
}

/* Number of values inside a value. */
static uint64_t codec_children(const struct codec_token *t) {
    if (t->type == CODEC_ARRAY)
        return t->count;
    return t->type == CODEC_MAP ? 2ULL * t->count : 0;
}

/* Skip a number, a boolean or nil, which are most of the data. False at anything else, or at the
 * end. */
static bool codec_skip_scalar(struct codec_cursor *c) {
    /* behind the heads from 0xca on */
    static const uint8_t longer[] = {4, 8, 1, 2, 4, 8, 1, 2, 4, 8};
    if (c->at >= c->end)
        return false;
    uint8_t head = *c->at;
    bool is_long = head >= 0xca && head <= 0xd3;
    if (head >= 0x80 && head < 0xe0 && head != 0xc0 && head != 0xc2 && head != 0xc3 && !is_long)
        return false;
    size_t size = 1 + (is_long ? (size_t)longer[head - 0xca] : 0);
    if ((size_t)(c->end - c->at) < size)
        return false;
    c->at += size;
    return true;
}

int codec_skip(struct codec_cursor *c) {
    for (uint64_t left = 1; left > 0; left--) {
        struct codec_token t;
        if (codec_skip_scalar(c))
            continue;
        if (codec_read(c, &t) != 0)
            return -1;
        left += codec_children(&t);
    }
    return 0;
}

int codec_check(const void *data, size_t len) {
    struct codec_cursor c = {.at = data, .end = (const uint8_t *)data + len};
    uint64_t left[CODEC_MAX_DEPTH + 1] = {1};
    size_t depth = 0;
    for (;;) {
        while (left[depth] == 0) {
            if (depth == 0)
                return c.at == c.end ? 0 : -1;
            depth--;
        }
        left[depth]--;
        struct codec_token t;
        if (codec_skip_scalar(&c))
            continue;
        if (codec_read(&c, &t) != 0)
            return -1;
        uint64_t children = codec_children(&t);
        if (children > (uint64_t)(c.end - c.at)) /* a value takes at least a byte */
            return -1;
        if (children > 0) {
            if (depth == CODEC_MAX_DEPTH)
                return -1;
            left[++depth] = children;
        }
    }
}

static int codec_read_container(struct codec_cursor *c, enum codec_type type, size_t *n) {
    struct codec_token t;
    if (codec_read(c, &t) != 0 || t.type != type)
        return -1;
    *n = t.count;
    return 0;
}

int codec_read_array(struct codec_cursor *c, size_t *n) { return codec_read_container(c, CODEC_ARRAY, n); }

int codec_read_map(struct codec_cursor *c, size_t *n) { return codec_read_container(c, CODEC_MAP, n); }

int codec_find(struct codec_cursor map, const char *const *keys, size_t n, struct codec_cursor *values) {
    size_t pairs;
    memset(values, 0, n * sizeof *values);
    if (codec_read_map(&map, &pairs) != 0)
        return -1;
    for (size_t p = 0; p < pairs; p++) {
        struct codec_cursor key_at = map;
        struct codec_token key;
        if (codec_skip(&map) != 0 || codec_read(&key_at, &key) != 0)
            return -1;
        struct codec_cursor value = map;
        if (codec_skip(&map) != 0)
            return -1;
        for (size_t k = 0; k < n; k++)
            if (!values[k].at && codec_token_is(&key, keys[k]))
                values[k] = (struct codec_cursor){.at = value.at, .end = map.at};
    }
    return 0;
}

bool codec_token_is(const struct codec_token *t, const char *text) {
    return t->type == CODEC_STR && t->count == strlen(text) && memcmp(t->bytes, text, t->count) == 0;
}

int codec_token_int(const struct codec_token *t, int64_t min, int64_t max, int64_t *out) {
    if (t->type == CODEC_INT)
        *out = t->i;
    else if (t->type == CODEC_UINT && t->u <= INT64_MAX)
        *out = (int64_t)t->u;
    else
        return -1;
    return *out >= min && *out <= max ? 0 : -1;
}

int codec_token_uint(const struct codec_token *t, uint64_t max, uint64_t *out) {
    if (t->type != CODEC_UINT || t->u > max)
        return -1;
    *out = t->u;
    return 0;
}
