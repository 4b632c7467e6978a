/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that are well made, with any parameters: every method, every key that one of them knows, every kind of value. So what
 * lies behind the parser is reached by nearly every input.
 *
 * Input: what the client may (support/fuzz_peer.h); then requests, each a method, a number of keys, and those: key, kind, value.
 */
#include <stdint.h>
#include <string.h>

#include "support/fuzz_peer.h"
#include "wire/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    const uint8_t *at, *end;
};

static uint8_t take(struct input *in) { return in->at < in->end ? *in->at++ : 0; }

static uint64_t take_number(struct input *in) {
    uint64_t n = 0;
    for (int i = 0; i < 8; i++)
        n = n << 8 | take(in);
    return n;
}

/* A piece of the input as a text. */
static const char *take_text(struct input *in, size_t *len) {
    const char *text = (const char *)in->at;
    *len = take(in);
    text += in->at > (const uint8_t *)text;
    if (*len > (size_t)(in->end - in->at))
        *len = (size_t)(in->end - in->at);
    in->at += *len;
    return text;
}

/* Values that mean something somewhere. */
static const char *const words[] = {"",
                                    "off",
                                    "on",
                                    "threads",
                                    "samples",
                                    "trace",
                                    "nan",
                                    "profiler",
                                    "exact",
                                    "gentle",
                                    "1GB",
                                    "probing.eval",
                                    "probing.budget",
                                    "python.modules",
                                    "0.5",
                                    "python.tensors",
                                    "[::1]",
                                    ":0",
                                    "*:1",
                                    "127.0.0.1:3344",
                                    "localhost:65536",
                                    "probing.max_memory",
                                    "1e999",
                                    "-1",
                                    "steps",
                                    "window",
                                    "eval",
                                    "python.samples",
                                    "probing.torch_profiling",
                                    "loss@f"};

static void put_word(struct strbuf *out, struct input *in) {
    codec_write_str(out, words[take(in) % (sizeof words / sizeof *words)]);
}

static void put_value(struct strbuf *out, struct input *in, int depth);

static void put_pairs(struct strbuf *out, struct input *in, int depth) {
    size_t n = take(in) % 8;
    codec_write_map(out, n);
    for (size_t i = 0; i < n; i++) {
        put_value(out, in, depth + 1);
        put_value(out, in, depth + 1);
    }
}

static void put_array(struct strbuf *out, struct input *in, int depth) {
    size_t n = take(in) % 8;
    codec_write_array(out, n);
    for (size_t i = 0; i < n; i++)
        put_value(out, in, depth + 1);
}

static void put_value(struct strbuf *out, struct input *in, int depth) {
    size_t len = 0;
    const char *text;
    uint8_t kind = take(in) % 11;
    uint64_t bits;
    double number;
    if (depth > CODEC_MAX_DEPTH && kind >= 9)
        kind = 0;
    if (kind == 0)
        codec_write_nil(out);
    else if (kind <= 2)
        codec_write_bool(out, kind == 1);
    else if (kind == 3)
        codec_write_int(out, (int8_t)take(in));
    else if (kind == 4)
        codec_write_int(out, (int64_t)take_number(in));
    else if (kind == 5) {
        bits = take_number(in);
        memcpy(&number, &bits, sizeof number);
        codec_write_double(out, number);
    } else if (kind == 6) {
        text = take_text(in, &len);
        codec_write_strn(out, text, len);
    } else if (kind == 7) {
        text = take_text(in, &len);
        codec_write_bin(out, text, len);
    } else if (kind == 8)
        put_word(out, in);
    else if (kind == 9)
        put_array(out, in, depth);
    else
        put_pairs(out, in, depth);
}

/* Keys of every request (src/wire). */
static const char *const keys[] = {
    "version",   "client",       "locals",  "repr",    "tasks",  "native",   "tid",     "mode",      "stream",
    "rate_hz",   "budget_pct",   "batch_s", "key",     "value",  "table",    "making",  "first_seq", "rows",
    "heap_used", "args",         "what",    "limit_s", "steps",  "compiled", "dry",     "code",      "name",
    "timeout_s", "output_bytes", "main",    "depth",   "keep",   "whole",    "address", "looking",   "action",
    "leased",    "host",         "port",    "path",    "places", "exposed",  "?"};

static void put_request(struct strbuf *out, struct input *in) {
    codec_write_array(out, 4);
    codec_write_uint(out, WIRE_REQUEST);
    codec_write_uint(out, take(in));
    codec_write_str(out, wire_method_name((enum wire_method)(take(in) % WIRE_METHOD_COUNT)));
    size_t n = take(in) % 16;
    codec_write_map(out, n);
    for (size_t i = 0; i < n; i++) {
        codec_write_str(out, keys[take(in) % (sizeof keys / sizeof *keys)]);
        put_value(out, in, 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct fuzz_peer f;
    struct input in = {data, data + size};
    int rc = 0;
    fuzz_peer_open(&f, take(&in));
    for (int i = 0; rc == 0 && i < 16 && in.at < in.end; i++) {
        struct strbuf b;
        strbuf_init(&b, WIRE_MAX_MESSAGE);
        put_request(&b, &in);
        rc = b.failed ? -1 : fuzz_peer_say(&f, b.data, b.len);
        strbuf_fini(&b);
    }
    fuzz_peer_close(&f);
    return 0;
}
