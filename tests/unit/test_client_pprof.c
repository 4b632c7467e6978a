/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protocol Buffers as they are written, and a profile for pprof: read back by a reader of its own, every number it has is one
 * that is there, and its weights are those of the samples.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "client/export/export_formats.h"
#include "flame/stack_counts.h"
#include "client/gzip.h"
#include "client/export/protobuf.h"
#include "support/protobuf_reader.h"

#define MAX_STRINGS 256

/* The bytes are those of the examples in the description of the encoding. */
static void check_bytes(void **state) {
    (void)state;
    struct strbuf out;
    strbuf_init(&out, 0);
    protobuf_put_uint(&out, 1, 150);
    protobuf_put_string(&out, 2, "testing");
    size_t at = protobuf_begin(&out, 3);
    protobuf_put_uint(&out, 1, 150);
    protobuf_end(&out, at);
    at = protobuf_begin(&out, 6);
    protobuf_put_packed(&out, 3);
    protobuf_put_packed(&out, 270);
    protobuf_put_packed(&out, 86942);
    protobuf_end(&out, at);
    static const unsigned char want[] = {0x08, 0x96, 0x01, 0x12, 0x07, 't',  'e',  's',  't',
                                         'i',  'n',  'g',  0x1a, 0x03, 0x08, 0x96, 0x01, 0x32,
                                         0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05};
    assert_int_equal(out.len, sizeof want);
    assert_memory_equal(out.data, want, sizeof want);
    strbuf_fini(&out);
}

static void check_numbers(void **state) {
    (void)state;
    static const uint64_t numbers[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, INT64_MAX, UINT64_MAX};
    struct strbuf out;
    strbuf_init(&out, 0);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        protobuf_put_uint(&out, (unsigned)i + 15, numbers[i]); /* fields from 16 on take two bytes */
    protobuf_put_int(&out, 60, -2);
    struct protobuf_reader r = protobuf_read(out.data, out.len);
    struct protobuf_field f;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        assert_true(protobuf_next(&r, &f));
        assert_int_equal(f.number, i + 15);
        assert_true(f.value == numbers[i]);
    }
    assert_true(protobuf_next(&r, &f));
    assert_true((int64_t)f.value == -2);
    assert_false(protobuf_next(&r, &f) || r.is_broken);
    strbuf_fini(&out);
}

/* Messages whose lengths take one byte, two and three, within each other. */
static void check_nested(void **state) {
    (void)state;
    struct strbuf out;
    char text[20000];
    memset(text, 'x', sizeof text);
    strbuf_init(&out, 0);
    for (size_t len = 0; len < sizeof text; len = len * 2 + 1) {
        strbuf_clear(&out);
        size_t a = protobuf_begin(&out, 1), b = protobuf_begin(&out, 2);
        protobuf_put_bytes(&out, 3, text, len);
        protobuf_end(&out, b);
        protobuf_put_uint(&out, 4, len);
        protobuf_end(&out, a);
        struct protobuf_reader r = protobuf_read(out.data, out.len), inner;
        struct protobuf_field f;
        assert_true(protobuf_next(&r, &f) && f.number == 1 && r.at == r.end);
        inner = protobuf_within(&f);
        assert_true(protobuf_find(inner, 4, 0) == len);
        assert_true(protobuf_next(&inner, &f) && f.number == 2);
        inner = protobuf_within(&f);
        assert_true(protobuf_next(&inner, &f) && f.number == 3 && f.value == len);
        assert_memory_equal(f.data, text, len);
    }
    strbuf_fini(&out);
}

/* Nothing is written beyond the limit, and nothing breaks. */
static void check_limit(void **state) {
    (void)state;
    for (size_t limit = 1; limit < 40; limit++) {
        struct strbuf out;
        strbuf_init(&out, limit);
        size_t a = protobuf_begin(&out, 1), b = protobuf_begin(&out, 2);
        protobuf_put_string(&out, 3, "thirty characters, or about so");
        protobuf_end(&out, b);
        protobuf_end(&out, a);
        assert_int_equal(out.failed, limit < 36);
        assert_true(out.len <= limit);
        strbuf_fini(&out);
    }
}

static char *unpack(const struct strbuf *in, size_t *len) {
    z_stream z = {.next_in = (unsigned char *)in->data, .avail_in = (unsigned)in->len};
    size_t cap = 8 << 20;
    char *out = malloc(cap);
    z.next_out = (unsigned char *)out;
    z.avail_out = (unsigned)cap;
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK); /* gzip's frame alone */
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.avail_in, 0);
    *len = z.total_out;
    assert_int_equal(inflateEnd(&z), Z_OK);
    return out;
}

static void check_gzip(void **state) {
    (void)state;
    struct strbuf in, out, again;
    struct err e = {0};
    strbuf_init(&in, 0);
    strbuf_init(&out, 0);
    strbuf_init(&again, 0);
    uint64_t random = 1;
    for (size_t want = 0; want < 3000000; want = want * 5 + 1) {
        while (in.len < want) {
            random = random * 6364136223846793005ULL + 1442695040888963407ULL;
            (void)strbuf_addc(&in, (char)(random >> 40));
        }
        strbuf_clear(&out);
        strbuf_clear(&again);
        assert_int_equal(gzip_pack(&in, &out, &e), 0);
        assert_int_equal(gzip_pack(&in, &again, &e), 0);
        assert_int_equal(out.len, again.len);
        assert_memory_equal(out.data, again.data, out.len);
        size_t len;
        char *back = unpack(&out, &len);
        assert_int_equal(len, in.len);
        assert_true(len == 0 || memcmp(back, in.data, len) == 0);
        free(back);
    }
    struct strbuf small;
    strbuf_init(&small, 1000);
    assert_int_equal(gzip_pack(&in, &small, &e), -1);
    assert_int_equal(e.code, ERR_FAILED);
    strbuf_fini(&small);
    strbuf_fini(&again);
    strbuf_fini(&out);
    strbuf_fini(&in);
}

/* ---- a profile ---- */

/* main -> train -> step (two lines) or a native kernel; another thread without Python; one sample torn. */
static void fill(struct stack_counts *f) {
    struct model_frame_def frames[] = {
        {1, {MODEL_FRAME_PYTHON, "main", "/job/train.py", 9}},
        {2, {MODEL_FRAME_PYTHON, "train", "/job/train.py", 5}},
        {3, {MODEL_FRAME_PYTHON, "step", "/job/train.py", 77}},
        {4, {MODEL_FRAME_PYTHON, "step", "/job/train.py", 78}},
        {5, {.kind = MODEL_FRAME_NATIVE, .module = "/lib/libcuda.so", .address = 0x1234}},
        {6, {.kind = MODEL_FRAME_NATIVE, .module = "/lib/libcuda.so", .address = 0x5678}}};
    struct model_stack_def stacks[] = {{1, 0, 1}, {2, 1, 2}, {3, 2, 3}, {4, 2, 4}, {5, 2, 5}, {6, 2, 6}};
    struct model_thread_def threads[] = {{7, "MainThread", "python"}, {8, NULL, "pt_autograd"}};
    struct model_sample samples[] = {
        {.timestamp = 100.00, .tid = 7, .stack_id = 3, .on_cpu = 1, .gil = MODEL_GIL_HOLDING},
        {.timestamp = 100.01, .tid = 7, .stack_id = 3, .on_cpu = 1, .gil = MODEL_GIL_HOLDING},
        {.timestamp = 100.02, .tid = 7, .stack_id = 4, .on_cpu = 1, .gil = MODEL_GIL_HOLDING, .gc = 1},
        {.timestamp = 100.03, .tid = 7, .stack_id = 3, .on_cpu = 0, .gil = MODEL_GIL_WAITING},
        {.timestamp = 100.04,
         .tid = 7,
         .stack_id = 5,
         .on_cpu = 1,
         .gil = MODEL_GIL_NONE,
         .gc = MODEL_UNKNOWN},
        {.timestamp = 100.05, .tid = 7, .stack_id = 6, .on_cpu = 1},
        {.timestamp = 100.05, .tid = 7, .stack_id = 3, .torn = true},
        {.timestamp = 100.05, .tid = 8, .stack_id = 0, .on_cpu = 1},
        {.timestamp = 100.06, .tid = 8, .stack_id = 1, .on_cpu = 0},
    };
    struct model_sample_batch b = {.epoch = 1, .period_us = 10000, .frames = frames, .n_frames = 6};
    b.stacks = stacks;
    b.n_stacks = 6;
    b.threads = threads;
    b.n_threads = 2;
    b.samples = samples;
    b.n_samples = sizeof samples / sizeof samples[0];
    assert_int_equal(stack_counts_add_batch(f, &b), 0);
}

struct profile {
    char *bytes;
    size_t len;
    char strings[MAX_STRINGS][64];
    size_t n_strings;
};

static void render(struct profile *p, struct stack_counts *f, bool by_function, int64_t rank) {
    struct model_target target = {.pid = 123, .rank = rank, .exe = "/usr/bin/python3"};
    struct export_request r = {.format = "pprof", .by_function = by_function};
    struct export_data data = {.request = &r, .target = &target, .counts = f, .elapsed_s = 0.07};
    struct strbuf out;
    struct err e = {0};
    struct protobuf_field field;
    strbuf_init(&out, 1 << 24);
    assert_int_equal(export_render_pprof(&data, &out, &e), 0);
    memset(p, 0, sizeof *p);
    p->bytes = unpack(&out, &p->len);
    strbuf_fini(&out);
    struct protobuf_reader all = protobuf_read(p->bytes, p->len);
    while (protobuf_next(&all, &field))
        if (field.number == 6) {
            assert_true(p->n_strings < MAX_STRINGS && field.value < 64);
            memcpy(p->strings[p->n_strings++], field.data, (size_t)field.value);
        }
    assert_false(all.is_broken);
    assert_string_equal(p->strings[0], "");
}

/* The `want`th message of a kind. */
static bool find(const struct profile *p, unsigned number, size_t want, struct protobuf_reader *out) {
    struct protobuf_reader all = protobuf_read(p->bytes, p->len);
    struct protobuf_field f;
    while (protobuf_next(&all, &f))
        if (f.number == number && want-- == 0) {
            *out = protobuf_within(&f);
            return true;
        }
    return false;
}

/* The message of a kind with an id. */
static struct protobuf_reader by_id(const struct profile *p, unsigned number, uint64_t id) {
    struct protobuf_reader m;
    for (size_t i = 0; find(p, number, i, &m); i++)
        if (protobuf_find(m, 1, 0) == id)
            return m;
    fail_msg("nothing has the id %d", (int)id);
    return m;
}

static const char *string_of(const struct profile *p, struct protobuf_reader m, unsigned number) {
    uint64_t at = protobuf_find(m, number, 0);
    assert_true(at < p->n_strings);
    return p->strings[at];
}

/* "step (/job/train.py:77) train ...; samples wall cpu gil; thread=MainThread ..." */
static void describe(const struct profile *p, struct protobuf_reader sample, char *out, size_t cap) {
    struct protobuf_field f, g;
    size_t n = 0;
    uint64_t v;
    while (protobuf_next(&sample, &f)) {
        struct protobuf_reader in = protobuf_within(&f);
        if (f.number == 3) {
            n += (size_t)snprintf(out + n, cap - n, " %s=", string_of(p, in, 1));
            if (protobuf_find(in, 2, 0))
                n += (size_t)snprintf(out + n, cap - n, "%s", string_of(p, in, 2));
            else
                n += (size_t)snprintf(out + n, cap - n, "%d", (int)protobuf_find(in, 3, 0));
            continue;
        }
        while (protobuf_next_number(&in, &v)) {
            if (f.number == 2) {
                n += (size_t)snprintf(out + n, cap - n, " %llu", (unsigned long long)v);
                continue;
            }
            struct protobuf_reader location = by_id(p, 4, v), line = location;
            while (protobuf_next(&line, &g) && g.number != 4)
                ;
            line = protobuf_within(&g);
            struct protobuf_reader function = by_id(p, 5, protobuf_find(line, 1, 0)),
                                   mapping = by_id(p, 3, protobuf_find(location, 2, 0));
            n += (size_t)snprintf(out + n, cap - n, "%s (%s%s:%d) ", string_of(p, function, 2),
                                  string_of(p, function, 4), string_of(p, mapping, 5),
                                  (int)protobuf_find(line, 2, 0));
        }
    }
    assert_false(sample.is_broken);
}

static void expect(const struct profile *p, const char *const *want) {
    struct protobuf_reader sample;
    char text[1024];
    size_t n = 0;
    for (; find(p, 2, n, &sample); n++) {
        assert_non_null(want[n]);
        describe(p, sample, text, sizeof text);
        assert_string_equal(text, want[n]);
    }
    assert_null(want[n]);
}

#define PY "/usr/bin/python3"
#define TRAIN "train (/job/train.py" PY ":5) main (/job/train.py" PY ":9)  "

static void check_profile(void **state) {
    (void)state;
    struct stack_counts *f = stack_counts_new();
    struct profile p;
    stack_counts_split(f);
    fill(f);
    render(&p, f, false, 3);
    static const char *const want[] = {
        "step (/job/train.py" PY ":77) " TRAIN
        "2 20000000 20000000 20000000 thread=MainThread tid=7 gil=held gc=none rank=3",
        "step (/job/train.py" PY ":78) " TRAIN
        "1 10000000 10000000 10000000 thread=MainThread tid=7 gil=held gc=running rank=3",
        "step (/job/train.py" PY ":77) " TRAIN
        "1 10000000 0 0 thread=MainThread tid=7 gil=waiting gc=none rank=3",
        "libcuda.so+0x1234 (/lib/libcuda.so:0) " TRAIN
        "1 10000000 10000000 0 thread=MainThread tid=7 gil=none rank=3",
        "libcuda.so+0x5678 (/lib/libcuda.so:0) " TRAIN
        "1 10000000 10000000 0 thread=MainThread tid=7 gc=none rank=3",
        "main (/job/train.py" PY ":9)  1 10000000 0 0 thread=pt_autograd tid=8 gc=none rank=3",
        NULL};
    expect(&p, want);
    struct protobuf_reader all = protobuf_read(p.bytes, p.len), type;
    static const char *const types[] = {"samples", "count",       "wall", "nanoseconds",
                                        "cpu",     "nanoseconds", "gil",  "nanoseconds"};
    for (size_t i = 0; i < 4; i++) {
        assert_true(find(&p, 1, i, &type));
        assert_string_equal(string_of(&p, type, 1), types[2 * i]);
        assert_string_equal(string_of(&p, type, 2), types[2 * i + 1]);
    }
    assert_string_equal(p.strings[protobuf_find(all, 14, 0)], "wall");
    assert_true(protobuf_find(all, 9, 0) == 100000000000ULL);
    assert_true(protobuf_find(all, 10, 0) == 70000000ULL);
    assert_true(protobuf_find(all, 12, 0) == 10000000ULL);
    assert_true(protobuf_find(by_id(&p, 4, 5), 3, 0) == 0x1234);
    free(p.bytes);
    stack_counts_free(f);
}

/* Lines of a function are one place, and addresses of a module that have no name. */
static void check_functions(void **state) {
    (void)state;
    struct stack_counts *f = stack_counts_new();
    struct profile p;
    stack_counts_split(f);
    fill(f);
    render(&p, f, true, MODEL_UNKNOWN);
    char text[1024];
    struct protobuf_reader sample;
    size_t steps = 0, cuda = 0, n = 0;
    for (; find(&p, 2, n, &sample); n++) {
        describe(&p, sample, text, sizeof text);
        steps += strncmp(text, "step (/job/train.py" PY ":0) train (/job/train.py" PY ":0) main", 40) == 0;
        cuda += strncmp(text, "libcuda.so (/lib/libcuda.so:0) train", 36) == 0;
        assert_null(strstr(text, "rank"));
    }
    assert_int_equal(n, 6);
    assert_int_equal(steps, 3);
    assert_int_equal(cuda, 2);
    size_t n_locations = 0;
    while (find(&p, 4, n_locations, &sample))
        n_locations++;
    assert_int_equal(n_locations, 4); /* main, train, step, libcuda.so */
    free(p.bytes);
    stack_counts_free(f);
}

/* Nothing was seen: a profile all the same. */
static void check_empty(void **state) {
    (void)state;
    struct stack_counts *f = stack_counts_new();
    struct profile p;
    struct protobuf_reader sample;
    render(&p, f, false, MODEL_UNKNOWN);
    assert_false(find(&p, 2, 0, &sample));
    assert_true(protobuf_find(protobuf_read(p.bytes, p.len), 9, 1) == 1);
    free(p.bytes);
    stack_counts_free(f);
}

/* Untold apart, entries are as they were: one for a thread in a stack. */
static void check_apart(void **state) {
    (void)state;
    struct stack_counts *one = stack_counts_new(), *apart = stack_counts_new();
    stack_counts_split(apart);
    fill(one);
    fill(apart);
    assert_int_equal(stack_counts_count(one), 6);
    assert_int_equal(stack_counts_count(apart), 7);
    assert_int_equal(stack_counts_get(one, 0)->sums.samples, 3);
    assert_int_equal(stack_counts_get(one, 0)->gil_state, MODEL_GIL_UNKNOWN);
    assert_int_equal(stack_counts_get(one, 0)->gc_state, MODEL_UNKNOWN);
    assert_int_equal(stack_counts_get(apart, 0)->sums.samples, 2);
    assert_int_equal(stack_counts_get(apart, 0)->gil_state, MODEL_GIL_HOLDING);
    assert_true(stack_counts_get_totals(one)->first_s == 100 &&
                stack_counts_get_totals(one)->last_s == 100.06);
    assert_int_equal(stack_counts_get_totals(one)->samples, stack_counts_get_totals(apart)->samples);
    stack_counts_free(one);
    stack_counts_free(apart);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_bytes),     cmocka_unit_test(check_numbers), cmocka_unit_test(check_nested),
        cmocka_unit_test(check_limit),     cmocka_unit_test(check_gzip),    cmocka_unit_test(check_profile),
        cmocka_unit_test(check_functions), cmocka_unit_test(check_empty),   cmocka_unit_test(check_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
