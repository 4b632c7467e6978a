/* SPDX-License-Identifier: Apache-2.0 */
/* protobuf: see protobuf.h. */
#include "client/export/protobuf.h"

#include <string.h>

#define PROTOBUF_VARINT 0U /* wire types */
#define PROTOBUF_LENGTH 2U
#define PROTOBUF_VARINT_MAX 10 /* bytes of 64 bits, seven a byte */

static size_t protobuf_varint(unsigned char out[PROTOBUF_VARINT_MAX], uint64_t v) {
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        out[n++] = (unsigned char)(v | 0x80);
    out[n++] = (unsigned char)v;
    return n;
}

void protobuf_put_packed(struct strbuf *out, uint64_t v) {
    unsigned char bytes[PROTOBUF_VARINT_MAX];
    strbuf_add(out, bytes, protobuf_varint(bytes, v));
}

static void protobuf_put_key(struct strbuf *out, unsigned field, unsigned type) {
    protobuf_put_packed(out, (uint64_t)field << 3 | type);
}

void protobuf_put_uint(struct strbuf *out, unsigned field, uint64_t v) {
    protobuf_put_key(out, field, PROTOBUF_VARINT);
    protobuf_put_packed(out, v);
}

void protobuf_put_int(struct strbuf *out, unsigned field, int64_t v) {
    protobuf_put_uint(out, field, (uint64_t)v);
}

void protobuf_put_bytes(struct strbuf *out, unsigned field, const void *data, size_t len) {
    protobuf_put_key(out, field, PROTOBUF_LENGTH);
    protobuf_put_packed(out, len);
    strbuf_add(out, data, len);
}

void protobuf_put_string(struct strbuf *out, unsigned field, const char *s) {
    protobuf_put_bytes(out, field, s, strlen(s));
}

size_t protobuf_begin(struct strbuf *out, unsigned field) {
    protobuf_put_key(out, field, PROTOBUF_LENGTH);
    return out->len;
}

/* The length stands before its field and is known only now: the bytes already written move back
 * by its size. */
void protobuf_end(struct strbuf *out, size_t begun) {
    unsigned char bytes[PROTOBUF_VARINT_MAX];
    if (out->failed)
        return;
    size_t len = out->len - begun, n = protobuf_varint(bytes, len);
    if (strbuf_add(out, bytes, n) != 0)
        return;
    memmove(out->data + begun + n, out->data + begun, len);
    memcpy(out->data + begun, bytes, n);
}
