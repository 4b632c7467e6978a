/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples added up by function and line: numbers worked out by hand for recursion, windows, threads, time on the CPU,
 * callers and callees; what is held, zeroed, too much.
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

#include "client/samples/sample_store.h"
#include "client/samples/sample_store_table.h"

/* Frames: main:1, work:2 (two lines of it), fact:5, leaf:7, other work in another file. */
static struct model_frame_def frames[] = {
    {1, {MODEL_FRAME_PYTHON, "main", "/job/a.py", 1}}, {2, {MODEL_FRAME_PYTHON, "work", "/job/a.py", 2}},
    {3, {MODEL_FRAME_PYTHON, "work", "/job/a.py", 3}}, {4, {MODEL_FRAME_PYTHON, "fact", "/job/a.py", 5}},
    {5, {MODEL_FRAME_PYTHON, "leaf", "/job/a.py", 7}}, {6, {MODEL_FRAME_PYTHON, "work", "/job/b.py", 2}},
    {7, {MODEL_FRAME_PYTHON, "fact", "/job/a.py", 6}},
};

/* 1 main; 2 main>work:2; 3 main>work:3; 4 main>fact:5; 5 main>fact>fact; 6 main>fact>fact>fact:6; 7 ...>leaf;
 * 8 main>work@b. */
static struct model_stack_def stacks[] = {{1, 0, 1}, {2, 1, 2}, {3, 1, 3}, {4, 1, 4},
                                          {5, 4, 4}, {6, 5, 7}, {7, 6, 5}, {8, 1, 6}};

/* `n` samples of a thread in a stack, 10 ms each, of which `on_cpu` ran. */
static void add(struct sample_store *t, double now_s, int64_t tid, uint32_t stack, int n, int on_cpu) {
    struct model_sample samples[64];
    struct model_thread_def thread = {tid, "MainThread", NULL};
    assert_true(n <= 64);
    for (int i = 0; i < n; i++)
        samples[i] = (struct model_sample){.tid = tid, .stack_id = stack, .on_cpu = i < on_cpu};
    struct model_sample_batch b = {.epoch = 1, .period_us = 10000, .frames = frames, .stacks = stacks};
    b.n_frames = sizeof frames / sizeof frames[0];
    b.n_stacks = sizeof stacks / sizeof stacks[0];
    b.threads = &thread;
    b.n_threads = 1;
    b.samples = samples;
    b.n_samples = (size_t)n;
    assert_true(sample_store_add(t, &b, now_s));
}

/* Samples come when the time that they stand for is over: what was counted began before the first batch came. */
static void the_first_batch_covers_time(void **state) {
    (void)state;
    struct sample_store *t = sample_store_new();
    struct model_sample samples[10];
    struct sample_store_health h;
    for (int i = 0; i < 10; i++)
        samples[i] = (struct model_sample){.tid = 7, .stack_id = 2, .timestamp = 100 + 0.1 * i};
    struct model_thread_def thread = {7, "MainThread", NULL};
    struct model_sample_batch b = {.epoch = 1, .period_us = 100000, .frames = frames, .stacks = stacks};
    b.n_frames = sizeof frames / sizeof frames[0];
    b.n_stacks = sizeof stacks / sizeof stacks[0];
    b.threads = &thread;
    b.n_threads = 1;
    b.samples = samples;
    b.n_samples = 10;
    assert_true(sample_store_add(t, &b, 50));
    sample_store_get_health(t, &h);
    assert_true(fabs(h.newest_s - h.since_s - 1) < 1e-6);
    sample_store_free(t);
}

static const struct sample_store_row *find(const struct sample_store_table *t, const char *func,
                                           const char *file, int line) {
    for (size_t i = 0; i < t->n; i++) {
        const struct model_frame *f = t->rows[i].frame;
        if (strcmp(f->func, func) == 0 && (!file || strcmp(f->file, file) == 0) && (!line || f->line == line))
            return &t->rows[i];
    }
    return NULL;
}

static void assert_row(const struct sample_store_table *t, const char *func, const char *file, int line,
                       uint64_t own, uint64_t total) {
    const struct sample_store_row *row = find(t, func, file, line);
    assert_non_null(row);
    if (row->own != own || row->total != total)
        fail_msg("%s %s:%d: own %llu total %llu, not %llu %llu", func, file ? file : "", line,
                 (unsigned long long)row->own, (unsigned long long)row->total, (unsigned long long)own,
                 (unsigned long long)total);
    assert_true(row->own_us == (double)own * 10000);
    assert_true(row->total_us == (double)total * 10000);
}

/* Two threads: 10 samples in work:2, 5 in work:3, 4 in work of another file, 3 in the recursion's leaf, 2 in its middle,
 * 1 in main, 5 without a frame. */
static struct sample_store *made(double now_s) {
    struct sample_store *t = sample_store_new();
    assert_non_null(t);
    add(t, now_s, 7, 2, 10, 8);
    add(t, now_s, 7, 3, 5, 0);
    add(t, now_s, 7, 8, 4, 4);
    add(t, now_s, 8, 7, 3, 3);
    add(t, now_s, 8, 5, 2, 2);
    add(t, now_s, 7, 1, 1, 0);
    add(t, now_s, 9, 0, 5, 0);
    return t;
}

static void build(struct sample_store_table *table, const struct sample_store *t,
                  struct sample_store_query q) {
    assert_int_equal(sample_store_table_build(table, t, &q), 0);
}

static void test_functions(void **state) {
    struct sample_store *t = made(100);
    struct sample_store_table table = {0};
    (void)state;
    build(&table, t, (struct sample_store_query){0});
    assert_int_equal(table.samples, 30);
    assert_true(table.us == 300000);
    assert_int_equal(table.n, 6);
    assert_row(&table, "work", "/job/a.py", 0, 15, 15);
    assert_row(&table, "work", "/job/b.py", 0, 4, 4);
    assert_row(&table, "leaf", NULL, 0, 3, 3);
    assert_row(&table, "fact", NULL, 0, 2, 5); /* three deep, counted once a stack */
    assert_row(&table, "main", NULL, 0, 1, 25);
    assert_row(&table, "(no Python frame)", NULL, 0, 5, 5);
    assert_true(fabs(sample_store_table_share(&table, 150000, 15) - 50) < 1e-9);
    double own = 0;
    for (size_t i = 0; i < table.n; i++) {
        double total = sample_store_table_share(&table, table.rows[i].total_us, table.rows[i].total);
        own += sample_store_table_share(&table, table.rows[i].own_us, table.rows[i].own);
        assert_true(total <= 100);
    }
    assert_true(fabs(own - 100) < 1e-9);
    sample_store_table_fini(&table);
    sample_store_free(t);
}

static void test_lines(void **state) {
    struct sample_store *t = made(100);
    struct sample_store_table table = {0};
    (void)state;
    build(&table, t, (struct sample_store_query){.by_line = true});
    assert_row(&table, "work", "/job/a.py", 2, 10, 10);
    assert_row(&table, "work", "/job/a.py", 3, 5, 5);
    assert_row(&table, "fact", NULL, 5, 2, 5);
    assert_row(&table, "fact", NULL, 6, 0, 3);
    sample_store_table_fini(&table);
    sample_store_free(t);
}

static void test_threads_and_cpu(void **state) {
    struct sample_store *t = made(100);
    struct sample_store_table table = {0};
    (void)state;
    build(&table, t, (struct sample_store_query){.tid = 8});
    assert_int_equal(table.samples, 5);
    assert_int_equal(table.n_tids, 3); /* all that were sampled, whichever is asked for */
    assert_true(table.tids[0] == 7 && table.tids[1] == 8 && table.tids[2] == 9);
    assert_null(find(&table, "work", NULL, 0));
    assert_row(&table, "main", NULL, 0, 0, 5);
    build(&table, t, (struct sample_store_query){.on_cpu = true});
    assert_int_equal(table.samples, 17);
    assert_row(&table, "work", "/job/a.py", 0, 8, 8);
    assert_row(&table, "main", NULL, 0, 0, 17);
    assert_null(find(&table, "(no Python frame)", NULL, 0));
    build(&table, t, (struct sample_store_query){.tid = 9, .on_cpu = true});
    assert_int_equal(table.n, 0);
    assert_true(isnan(sample_store_table_share(&table, 0, 0)));
    sample_store_table_fini(&table);
    sample_store_free(t);
}

static uint64_t samples_in(const struct sample_store *t, enum sample_store_window window) {
    struct sample_store_table table = {0};
    build(&table, t, (struct sample_store_query){.window = window});
    uint64_t n = table.samples;
    sample_store_table_fini(&table);
    return n;
}

static void test_windows(void **state) {
    struct sample_store *t = sample_store_new();
    (void)state;
    for (int second = 0; second < 100; second++) { /* two batches of 2 and 1 samples a second */
        add(t, 1000 + second + 0.25, 7, 2, 2, 0);
        add(t, 1000 + second + 0.75, 7, 3, 1, 0);
    }
    assert_int_equal(samples_in(t, SAMPLE_STORE_ALL), 300);
    assert_int_equal(samples_in(t, SAMPLE_STORE_60S), 180);
    assert_int_equal(samples_in(t, SAMPLE_STORE_10S), 30);
    add(t, 1200, 7, 2, 4, 0); /* after a long silence */
    assert_int_equal(samples_in(t, SAMPLE_STORE_60S), 4);
    assert_int_equal(samples_in(t, SAMPLE_STORE_ALL), 304);
    sample_store_reset(t, 1200.5);
    assert_int_equal(samples_in(t, SAMPLE_STORE_ALL), 0);
    assert_int_equal(samples_in(t, SAMPLE_STORE_10S), 0);
    add(t, 1201, 7, 2, 3, 0);
    assert_int_equal(samples_in(t, SAMPLE_STORE_ALL), 3);
    assert_int_equal(samples_in(t, SAMPLE_STORE_10S), 3);
    struct sample_store_health h;
    sample_store_get_health(t, &h);
    assert_int_equal(h.samples, 3);
    assert_true(h.since_s == 1200.5 && h.newest_s == 1201 && fabs(h.got_hz - 100) < 1e-9);
    sample_store_free(t);
}

/* What is read stands still; what is counted does not. */
static void test_hold(void **state) {
    struct sample_store *t = made(100);
    struct sample_store_health h;
    (void)state;
    assert_int_equal(sample_store_freeze(t, true), 0);
    add(t, 101, 10, 4, 20, 0);
    add(t, 170, 11, 6, 20, 0);
    assert_int_equal(samples_in(t, SAMPLE_STORE_ALL), 30);
    assert_int_equal(samples_in(t, SAMPLE_STORE_10S), 30);
    sample_store_get_health(t, &h);
    assert_int_equal(h.samples, 70);
    assert_int_equal(sample_store_freeze(t, false), 0);
    assert_int_equal(samples_in(t, SAMPLE_STORE_ALL), 70);
    assert_int_equal(samples_in(t, SAMPLE_STORE_10S), 20);
    sample_store_free(t);
}

static void assert_call(const struct sample_store_call *calls, size_t n, enum sample_store_way way,
                        const char *func, uint64_t samples) {
    for (size_t i = 0; i < n; i++)
        if (calls[i].way == way && strcmp(calls[i].frame->func, func) == 0) {
            assert_int_equal(calls[i].samples, samples);
            return;
        }
    fail_msg("no %s", func);
}

static void test_calls(void **state) {
    struct sample_store *t = made(100);
    struct sample_store_table table = {0};
    size_t n;
    (void)state;
    build(&table, t, (struct sample_store_query){0});
    struct sample_store_call *calls =
        sample_store_table_calls(&table, t, find(&table, "main", NULL, 0)->id, &n);
    assert_non_null(calls);
    assert_int_equal(n, 5);
    assert_call(calls, n, SAMPLE_STORE_CALLER, "(outermost)", 25);
    assert_call(calls, n, SAMPLE_STORE_ITSELF, "main", 1);
    assert_call(calls, n, SAMPLE_STORE_CALLEE, "fact", 5);
    assert_true(calls[2].way == SAMPLE_STORE_CALLEE && calls[2].samples == 15); /* the largest first */
    free(calls);
    calls = sample_store_table_calls(&table, t, find(&table, "fact", NULL, 0)->id, &n);
    assert_call(calls, n, SAMPLE_STORE_CALLER, "main", 5);
    assert_call(calls, n, SAMPLE_STORE_CALLER, "fact",
                5); /* calls itself twice in three stacks, which count once */
    assert_call(calls, n, SAMPLE_STORE_ITSELF, "fact", 2);
    assert_call(calls, n, SAMPLE_STORE_CALLEE, "fact", 5);
    assert_call(calls, n, SAMPLE_STORE_CALLEE, "leaf", 3);
    assert_int_equal(n, 5);
    free(calls);
    calls = sample_store_table_calls(&table, t, SAMPLE_STORE_NO_FRAME, &n);
    assert_int_equal(n, 1);
    free(calls);
    assert_null(sample_store_table_calls(&table, t, 77, &n));
    sample_store_table_fini(&table);
    sample_store_free(t);
}

/* A period that no agent sends counts as no time: then shares are by number. */
static void test_without_time(void **state) {
    struct sample_store *t = sample_store_new();
    struct sample_store_table table = {0};
    struct model_sample samples[] = {{.tid = 7, .stack_id = 2},
                                     {.tid = 7, .stack_id = 1},
                                     {.tid = 7, .stack_id = 2},
                                     {.tid = 7, .stack_id = 99},
                                     {.tid = 7, .stack_id = 2, .torn = true}};
    struct model_sample_batch b = {.epoch = 1, .period_us = -5, .dropped = 6, .frames = frames};
    struct sample_store_health h;
    (void)state;
    b.n_frames = 7;
    b.stacks = stacks;
    b.n_stacks = 8;
    b.samples = samples;
    b.n_samples = 5;
    assert_true(sample_store_add(t, &b, 5));
    build(&table, t, (struct sample_store_query){0});
    const struct sample_store_row *work = find(&table, "work", "/job/a.py", 0);
    assert_true(fabs(sample_store_table_share(&table, work->own_us, work->own) - 200.0 / 3) < 1e-9);
    sample_store_get_health(t, &h);
    assert_true(h.samples == 3 && h.torn == 1 && h.undefined == 1 && h.dropped == 6 && isnan(h.got_hz));
    sample_store_table_fini(&table);
    sample_store_free(t);
}

/* Foreign numbers without end: it begins anew rather than grow for ever; while held nothing that is read goes away. */
static void test_too_many_stacks(void **state) {
    enum { CHUNK = 4096 };
    struct sample_store *t = sample_store_new();
    struct model_stack_def *defs = calloc(CHUNK, sizeof *defs);
    struct model_frame_def *lines = calloc(CHUNK, sizeof *lines);
    struct sample_store_health h;
    bool ok = true;
    (void)state;
    assert_true(t && defs && lines);
    for (uint32_t from = 1; ok && from < 2 * SAMPLE_STORE_MAX_ENTRIES; from += CHUNK) {
        for (uint32_t i = 0; i < CHUNK; i++) {
            lines[i] = (struct model_frame_def){from + i, {MODEL_FRAME_PYTHON, "f", "g", (int)(from + i)}};
            defs[i] = (struct model_stack_def){from + i, 0, from + i};
        }
        struct model_sample_batch b = {.epoch = 1, .period_us = 1e4, .frames = lines, .n_frames = CHUNK};
        b.stacks = defs;
        b.n_stacks = CHUNK;
        ok = sample_store_add(t, &b, from / 1000.0);
        if (from < SAMPLE_STORE_MAX_ENTRIES / 2)
            assert_true(ok);
    }
    assert_false(ok);
    sample_store_get_health(t, &h);
    assert_int_equal(h.restarts, 1);
    assert_int_equal(stack_counts_frames(sample_store_counts(t)), 0);
    add(t, 9999, 7, 2, 3, 0);
    assert_int_equal(samples_in(t, SAMPLE_STORE_ALL), 3);
    free(defs);
    free(lines);
    sample_store_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_batch_covers_time),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_threads_and_cpu),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_hold),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_without_time),
        cmocka_unit_test(test_too_many_stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
