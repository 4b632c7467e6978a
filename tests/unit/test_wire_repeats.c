/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns of samples that are much like earlier ones: what is read is what was written, whatever repeats, and it takes few bytes.
 * What an honest end does not write is refused.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/codec.h"
#include "wire/field.h"
#include "wire/wire.h"

#define SAMPLES 6000

static uint32_t random_state = 1;

static uint32_t pick(uint32_t n) {
    random_state = random_state * 1664525U + 1013904223U;
    return (random_state >> 8) % n;
}

/* Ticks of `threads` threads of which one in `moving` has another stack each time; 0: none has. Sometimes one is missing. */
static void make(struct model_sample *s, size_t n, size_t threads, uint32_t moving, bool gaps) {
    size_t thread = 0;
    double tick = 1e9;
    for (size_t i = 0; i < n; i++) {
        if (thread == threads) {
            thread = 0;
            tick += 0.01 + pick(1000) / 1e6;
        }
        bool moves = moving && pick(moving) == 0;
        s[i] = (struct model_sample){.timestamp = tick,
                                     .tid = 1000 + (int64_t)thread,
                                     .stack_id = moves ? 100 + pick(50) : 1 + (uint32_t)thread % 7,
                                     .native_id = moves ? pick(3) : 0,
                                     .on_cpu = moves ? (int8_t)(pick(3) - 1) : 0,
                                     .torn = moves && pick(9) == 0,
                                     .gil = (enum model_gil)(moves ? pick(4) : MODEL_GIL_NONE),
                                     .gc = moves ? MODEL_UNKNOWN : 0};
        thread += 1 + (gaps && pick(20) == 0 && thread + 2 <= threads);
    }
}

/* There and back. Number of bytes. */
static size_t check(struct model_sample *samples, size_t n) {
    struct model_sample_batch in = {.epoch = 1, .period_us = 1e4, .samples = samples, .n_samples = n}, out;
    struct strbuf b;
    struct err e = {.text = ""};
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_samples_notify(&b, &in), 0);
    struct wire_message *m = wire_parse(b.data, b.len, &e);
    assert_non_null(m);
    if (wire_get_samples(m, &out, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(out.n_samples, n);
    for (size_t i = 0; i < n; i++) {
        const struct model_sample *a = &samples[i], *z = &out.samples[i];
        if (a->timestamp != z->timestamp || a->tid != z->tid || a->stack_id != z->stack_id ||
            a->native_id != z->native_id || a->on_cpu != z->on_cpu || a->torn != z->torn ||
            a->gil != z->gil || a->gc != z->gc)
            fail_msg("sample %zu of %zu is another", i, n);
    }
    size_t len = b.len;
    model_sample_batch_fini(&out);
    wire_message_free(m);
    strbuf_fini(&b);
    return len;
}

static void test_there_and_back(void **state) {
    struct model_sample *s = calloc(SAMPLES, sizeof *s);
    static const size_t sizes[] = {0, 1, 2, 3, 4, 5, 8, 9, 100, 101, 4095, 4096, 4097, SAMPLES};
    (void)state;
    assert_non_null(s);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t threads = 1; threads <= 5000; threads = threads * 3 + 1)
            for (uint32_t moving = 0; moving <= 9; moving += 3) {
                make(s, sizes[i], threads, moving, moving == 6);
                (void)check(s, sizes[i]);
            }
    free(s);
}

/* Two hundred threads that sleep are hardly more than twenty. */
static void test_what_repeats_is_short(void **state) {
    struct model_sample *s = calloc(SAMPLES, sizeof *s);
    (void)state;
    assert_non_null(s);
    make(s, SAMPLES, 200, 0, false);
    size_t idle = check(s, SAMPLES);
    assert_true(idle < SAMPLES / 2);
    make(s, 600, 20, 0, false);
    assert_true(idle < 3 * check(s, 600));
    make(s, 300, 10, 10, false); /* one of ten moves */
    assert_true(check(s, 300) < (size_t)300 * 8);
    free(s);
}

/* The column "tid" of two samples in this form: read, or refused? */
static int read_form(uint64_t lag, const uint64_t *runs, size_t n_runs, size_t n_values, size_t *n) {
    struct strbuf b;
    struct arena arena;
    struct err e;
    void *rows;
    strbuf_init(&b, 0);
    arena_init(&arena, (size_t)16 << 20);
    codec_write_map(&b, 1);
    codec_write_str(&b, "timestamp");
    codec_write_map(&b, 3);
    codec_write_str(&b, "values");
    codec_write_array(&b, n_values);
    for (size_t i = 0; i < n_values; i++)
        codec_write_double(&b, 1.5);
    codec_write_str(&b, "lag");
    codec_write_uint(&b, lag);
    codec_write_str(&b, "runs");
    codec_write_array(&b, n_runs);
    for (size_t i = 0; i < n_runs; i++)
        codec_write_uint(&b, runs[i]);
    struct codec_cursor at = {.at = (const uint8_t *)b.data, .end = (const uint8_t *)b.data + b.len};
    struct field_strings none = {.n = 0};
    int rc = field_read_columns(at, &FIELD_SAMPLES, &none, &arena, &rows, n, &e);
    arena_fini(&arena);
    strbuf_fini(&b);
    return rc;
}

static void test_lies_are_refused(void **state) {
    size_t n;
    (void)state;
    assert_int_equal(read_form(1, (const uint64_t[]){1, 9}, 2, 1, &n), 0);
    assert_int_equal(n, 10);
    assert_int_equal(read_form(1, (const uint64_t[]){1, 9, 0, 0, 2}, 5, 3, &n), 0);
    assert_int_equal(n, 12);
    assert_int_equal(read_form(1, NULL, 0, 0, &n), 0);
    assert_int_equal(n, 0);
    assert_int_equal(read_form(0, (const uint64_t[]){1, 9}, 2, 1, &n), -1); /* like itself */
    assert_int_equal(read_form(2, (const uint64_t[]){1, 9}, 2, 1, &n), -1); /* like one before the first */
    assert_int_equal(read_form(1, (const uint64_t[]){0, 9}, 2, 1, &n), -1);
    assert_int_equal(read_form(1, (const uint64_t[]){1, 9}, 2, 2, &n), -1); /* values of no row */
    assert_int_equal(read_form(1, (const uint64_t[]){3, 9}, 2, 1, &n), -1); /* values that are not there */
    assert_int_equal(read_form(1, (const uint64_t[]){1, 1 << 16}, 2, 1, &n), -1); /* a few bytes, many rows */
    assert_int_equal(read_form(1, (const uint64_t[]){1, UINT64_MAX}, 2, 1, &n), -1);
    assert_int_equal(read_form(UINT64_MAX, (const uint64_t[]){1, 1}, 2, 1, &n), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_what_repeats_is_short),
        cmocka_unit_test(test_lies_are_refused),
    };
    return cmocka_run_group_tests_name("wire_repeats", tests, NULL, NULL);
}
