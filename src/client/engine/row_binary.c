/* SPDX-License-Identifier: Apache-2.0 */
/* row_binary: see row_binary.h. */
#include "client/engine/row_binary.h"

#include <math.h>
#include <string.h>

#define ROW_VARINT_MAX 10 /* bytes of a length */

/* A type of fixed width: bytes, and the numbers that fit. */
struct row_width {
    size_t bytes;
    int64_t min, max;
};

static const struct row_width row_widths[] = {
    [ROW_INT8] = {1, INT8_MIN, INT8_MAX},
    [ROW_INT16] = {2, INT16_MIN, INT16_MAX},
    [ROW_INT32] = {4, INT32_MIN, INT32_MAX},
    [ROW_INT64] = {8, INT64_MIN, INT64_MAX},
    [ROW_UINT8] = {1, 0, UINT8_MAX},
    [ROW_UINT16] = {2, 0, UINT16_MAX},
    [ROW_UINT32] = {4, 0, UINT32_MAX},
    [ROW_UINT64] = {8, INT64_MIN, INT64_MAX},
    [ROW_FLOAT64] = {8, INT64_MIN, INT64_MAX},
    [ROW_STRING] = {0, 0, 0},
    [ROW_DATE] = {2, 0, UINT16_MAX},
    [ROW_STRINGS] = {0, 0, 0},
    [ROW_INTS] = {0, 0, 0},
};

const char *row_binary_type(const struct row_column *c) {
    static const char *const names[][2] = {
        [ROW_INT8] = {"Int8", "Nullable(Int8)"},          [ROW_INT16] = {"Int16", "Nullable(Int16)"},
        [ROW_INT32] = {"Int32", "Nullable(Int32)"},       [ROW_INT64] = {"Int64", "Nullable(Int64)"},
        [ROW_UINT8] = {"UInt8", "Nullable(UInt8)"},       [ROW_UINT16] = {"UInt16", "Nullable(UInt16)"},
        [ROW_UINT32] = {"UInt32", "Nullable(UInt32)"},    [ROW_UINT64] = {"UInt64", "Nullable(UInt64)"},
        [ROW_FLOAT64] = {"Float64", "Nullable(Float64)"}, [ROW_STRING] = {"String", "Nullable(String)"},
        [ROW_DATE] = {"Date", "Nullable(Date)"},          [ROW_STRINGS] = {"Array(String)", "Array(String)"},
        [ROW_INTS] = {"Array(Int32)", "Array(Int32)"},
    };
    return names[c->type][c->is_nullable];
}

/* ---- values ---- */

struct row_value row_int(int64_t i) {
    return (struct row_value){.kind = i == INT64_MIN ? ROW_NULL : ROW_INT, .i = i};
}

struct row_value row_bits(uint64_t bits) {
    struct row_value v = {.kind = ROW_INT};
    memcpy(&v.i, &bits, sizeof v.i);
    return v;
}

struct row_value row_real(double f) {
    return (struct row_value){.kind = isnan(f) ? ROW_NULL : ROW_REAL, .f = f};
}

struct row_value row_text(const char *s) {
    return (struct row_value){.kind = s ? ROW_TEXT : ROW_NULL, .s = s, .len = s ? strlen(s) : 0};
}

/* ---- writing ---- */

static int row_put_length(struct strbuf *out, uint64_t n) {
    for (; n >= 0x80; n >>= 7)
        strbuf_addc(out, (char)(0x80 | (n & 0x7f)));
    return strbuf_addc(out, (char)n);
}

static int row_put_bytes(struct strbuf *out, uint64_t bits, size_t n) {
    char bytes[8];
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(bits >> (8 * i));
    return strbuf_add(out, bytes, n);
}

static int row_put_text(struct strbuf *out, const struct row_value *v) {
    size_t len = v->kind != ROW_TEXT ? 0 : v->len < ROW_TEXT_MAX ? v->len : (size_t)ROW_TEXT_MAX;
    row_put_length(out, len);
    return len ? strbuf_add(out, v->s, len) : out->failed ? -1 : 0;
}

static int row_put_list(struct strbuf *out, const struct row_column *c, const struct row_value *v) {
    static const struct row_column item_columns[] = {{"", ROW_STRING, false}, {"", ROW_INT32, false}};
    const struct row_column *item = &item_columns[c->type == ROW_INTS];
    size_t n = v->kind != ROW_LIST ? 0 : v->n < ROW_LIST_MAX ? v->n : (size_t)ROW_LIST_MAX;
    row_put_length(out, n);
    for (size_t i = 0; i < n; i++)
        row_binary_put(out, item, &v->items[i]);
    return out->failed ? -1 : 0;
}

int row_binary_put(struct strbuf *out, const struct row_column *c, const struct row_value *v) {
    const struct row_width *w = &row_widths[c->type];
    bool is_number = v->kind == ROW_INT || v->kind == ROW_REAL;
    bool is_null = v->kind == ROW_NULL;
    int64_t i = v->kind == ROW_INT ? v->i : 0;
    double f = v->kind == ROW_REAL ? v->f : v->kind == ROW_INT ? (double)v->i : NAN;
    if (c->type == ROW_STRINGS || c->type == ROW_INTS)
        return row_put_list(out, c, v);
    if (c->type == ROW_STRING) {
        is_null = v->kind != ROW_TEXT;
    } else if (c->type == ROW_FLOAT64) {
        is_null = !is_number || isnan(f);
        memcpy(&i, &f, sizeof i);
    } else {
        bool is_whole = v->kind != ROW_REAL || (v->f >= -9e18 && v->f <= 9e18);
        if (v->kind == ROW_REAL && is_whole)
            i = (int64_t)v->f;
        is_null = !is_number || !is_whole || i < w->min || i > w->max;
        i = is_null ? 0 : i;
    }
    if (c->is_nullable && strbuf_addc(out, (char)is_null) != 0)
        return -1;
    if (c->is_nullable && is_null)
        return 0;
    return c->type == ROW_STRING ? row_put_text(out, v) : row_put_bytes(out, (uint64_t)i, w->bytes);
}

int row_binary_put_row(struct strbuf *out, const struct row_column *c, size_t n,
                       const struct row_value *row) {
    for (size_t i = 0; i < n; i++)
        row_binary_put(out, &c[i], &row[i]);
    return out->failed ? -1 : 0;
}

/* ---- reading ---- */

/* Each: 1; 0: there are not all bytes; -1: not valid. */

static int row_get_length(struct row_reader *r, uint64_t max, uint64_t *out) {
    uint64_t n = 0;
    for (unsigned i = 0; i < ROW_VARINT_MAX; i++) {
        if (r->at == r->len)
            return 0;
        unsigned char byte = (unsigned char)r->data[r->at++];
        if (i == ROW_VARINT_MAX - 1 && byte > 1)
            return -1;
        n |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (!(byte & 0x80)) {
            *out = n;
            return n <= max ? 1 : -1;
        }
    }
    return -1;
}

static int row_get_bytes(struct row_reader *r, size_t n, uint64_t *bits) {
    if (r->len - r->at < n)
        return 0;
    *bits = 0;
    for (size_t i = 0; i < n; i++)
        *bits |= (uint64_t)(unsigned char)r->data[r->at + i] << (8 * i);
    r->at += n;
    return 1;
}

static int row_get_text(struct row_reader *r, struct row_value *v) {
    uint64_t len;
    int rc = row_get_length(r, ROW_TEXT_MAX, &len);
    if (rc != 1)
        return rc;
    if (r->len - r->at < len)
        return 0;
    *v = (struct row_value){.kind = ROW_TEXT, .s = r->data + r->at, .len = (size_t)len};
    r->at += (size_t)len;
    return 1;
}

static int row_get_number(struct row_reader *r, enum row_type type, struct row_value *v) {
    const struct row_width *w = &row_widths[type];
    uint64_t bits;
    int rc = row_get_bytes(r, w->bytes, &bits);
    if (rc != 1)
        return rc;
    /* the sign goes up to the width of `i` */
    if (w->min < 0 && w->bytes < sizeof bits && bits >> (8 * w->bytes - 1))
        bits |= ~(uint64_t)0 << (8 * w->bytes);
    *v = (struct row_value){.kind = type == ROW_FLOAT64 ? ROW_REAL : ROW_INT};
    if (type == ROW_FLOAT64)
        memcpy(&v->f, &bits, sizeof v->f);
    else
        memcpy(&v->i, &bits, sizeof v->i);
    return 1;
}

static int row_get_item(struct row_reader *r, enum row_type list, struct row_value *v) {
    return list == ROW_STRINGS ? row_get_text(r, v) : row_get_number(r, ROW_INT32, v);
}

static int row_get_list(struct row_reader *r, enum row_type type, struct row_value *v) {
    struct row_value item;
    uint64_t n;
    int rc = row_get_length(r, ROW_LIST_MAX, &n);
    if (rc != 1)
        return rc;
    size_t begin = r->at;
    for (uint64_t i = 0; i < n && rc == 1; i++)
        rc = row_get_item(r, type, &item);
    *v = (struct row_value){.kind = ROW_LIST, .s = r->data + begin, .len = r->at - begin, .n = (size_t)n};
    return rc;
}

static int row_get(struct row_reader *r, const struct row_column *c, struct row_value *v) {
    if (c->type == ROW_STRINGS || c->type == ROW_INTS)
        return row_get_list(r, c->type, v);
    if (c->is_nullable) {
        if (r->at == r->len)
            return 0;
        unsigned char is_null = (unsigned char)r->data[r->at++];
        *v = (struct row_value){.kind = ROW_NULL};
        if (is_null)
            return is_null == 1 ? 1 : -1;
    }
    return c->type == ROW_STRING ? row_get_text(r, v) : row_get_number(r, c->type, v);
}

int row_binary_get_row(struct row_reader *r, const struct row_column *c, size_t n, struct row_value *row) {
    size_t begin = r->at;
    int rc = 1;
    if (n == 0 || r->at == r->len)
        return 0;
    for (size_t i = 0; i < n && rc == 1; i++)
        rc = row_get(r, &c[i], &row[i]);
    if (rc != 1)
        r->at = begin;
    return rc;
}

int row_binary_next(struct row_value *list, const struct row_column *c, struct row_value *item) {
    struct row_reader r = {.data = list->s, .len = list->len};
    if (list->kind != ROW_LIST || list->n == 0 || row_get_item(&r, c->type, item) != 1)
        return 0;
    list->s += r.at;
    list->len -= r.at;
    list->n--;
    return 1;
}
