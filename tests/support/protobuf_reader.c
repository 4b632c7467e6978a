/* SPDX-License-Identifier: Apache-2.0 */
/* protobuf_reader: see protobuf_reader.h. */
#include "support/protobuf_reader.h"

struct protobuf_reader protobuf_read(const void *data, size_t len) {
    const unsigned char *at = data;
    return (struct protobuf_reader){at, at + len, false};
}

struct protobuf_reader protobuf_within(const struct protobuf_field *f) {
    return protobuf_read(f->data, (size_t)f->value);
}

bool protobuf_next_number(struct protobuf_reader *r, uint64_t *out) {
    *out = 0;
    if (r->at == r->end || r->is_broken)
        return false;
    for (unsigned shift = 0; r->at < r->end && shift < 64; shift += 7) {
        unsigned char byte = *r->at++;
        *out |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return true;
    }
    r->is_broken = true;
    return false;
}

bool protobuf_next(struct protobuf_reader *r, struct protobuf_field *out) {
    uint64_t key;
    *out = (struct protobuf_field){0};
    if (!protobuf_next_number(r, &key))
        return false;
    out->number = (unsigned)(key >> 3);
    out->type = (unsigned)(key & 7);
    bool good = (out->type == 0 || out->type == 2) && protobuf_next_number(r, &out->value);
    if (good && out->type == 2) {
        out->data = r->at;
        good = out->value <= (uint64_t)(r->end - r->at);
        r->at += good ? out->value : 0;
    }
    r->is_broken = !good;
    return good;
}

uint64_t protobuf_find(struct protobuf_reader message, unsigned number, uint64_t default_value) {
    struct protobuf_field f;
    while (protobuf_next(&message, &f))
        if (f.number == number)
            return f.value;
    return default_value;
}
