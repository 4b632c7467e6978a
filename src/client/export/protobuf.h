/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protobuf: fields of messages in the wire format of Protocol Buffers, appended to a strbuf.
 *
 * Varints and length-delimited fields, which is all that our formats use
 * (protobuf.dev/programming-guides/encoding). A message within a message is written in place and
 * gets its length when it ends. Bounded by the strbuf's limit; what does not fit sets its
 * `failed`. One thread.
 */
#ifndef CLIENT_EXPORT_PROTOBUF_H
#define CLIENT_EXPORT_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/* A number: uint64, int64 (two's complement), bool and enum are all written this way. */
void protobuf_put_uint(struct strbuf *out, unsigned field, uint64_t v);
void protobuf_put_int(struct strbuf *out, unsigned field, int64_t v);

/* Bytes, or a string, which the caller has made valid UTF-8. */
void protobuf_put_bytes(struct strbuf *out, unsigned field, const void *data, size_t len);
void protobuf_put_string(struct strbuf *out, unsigned field, const char *s);

/* A message, or a packed list of numbers (protobuf_put_packed), between begin and end. End takes
 * the result of begin; they nest. */
size_t protobuf_begin(struct strbuf *out, unsigned field);
void protobuf_end(struct strbuf *out, size_t begun);

/* A number of a packed list. */
void protobuf_put_packed(struct strbuf *out, uint64_t v);

#endif
