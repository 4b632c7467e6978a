/* SPDX-License-Identifier: Apache-2.0 */
/* protobuf_reader: fields of a message of Protocol Buffers, one after the other; shares nothing with the writer. */
#ifndef SUPPORT_PROTOBUF_READER_H
#define SUPPORT_PROTOBUF_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct protobuf_reader {
    const unsigned char *at, *end;
    bool is_broken; /* it is no message */
};

struct protobuf_field {
    unsigned number;
    unsigned type;  /* 0 a varint, 2 what has a length */
    uint64_t value; /* the varint, or the length */
    const unsigned char *data;
};

struct protobuf_reader protobuf_read(const void *data, size_t len);

/* What a field with a length holds. */
struct protobuf_reader protobuf_within(const struct protobuf_field *f);

/* The next field; false at the end, and where it is broken. */
bool protobuf_next(struct protobuf_reader *r, struct protobuf_field *out);

/* A number of a packed list; as above. */
bool protobuf_next_number(struct protobuf_reader *r, uint64_t *out);

/* Value of the first field with a number, or `otherwise`. */
uint64_t protobuf_find(struct protobuf_reader message, unsigned number, uint64_t default_value);

#endif
