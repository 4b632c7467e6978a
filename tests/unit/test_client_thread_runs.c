/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each thread did when, and counts between two times: runs by hand, samples that come late, what is forgotten, clocks
 * that are set back; and random streams, of which every span must have what a plain walk over all samples counts.
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

#include "client/samples/sample_flame.h"
#include "client/samples/sample_store.h"
#include "client/samples/thread_runs.h"

#define T0 1700000000.0
#define PERIOD_US 10000.0

static int put(struct thread_runs *t, double look, int64_t tid, uint32_t entry, uint8_t flags) {
    struct thread_runs_sample s = {T0 + look / 100, PERIOD_US, tid, entry, flags};
    return thread_runs_add(t, &s);
}

/* Runs of a thread as text: "first+n:entry/flags ...", looks from 0. */
static const char *runs_text(const struct thread_runs *t, int64_t tid) {
    static char text[4096];
    size_t n, used = 0;
    long lane = thread_runs_find_lane(t, tid);
    assert_true(lane >= 0 && thread_runs_lane_tid(t, (size_t)lane) == tid);
    const struct thread_runs_run *runs = thread_runs_runs(t, (size_t)lane, &n);
    text[0] = '\0';
    for (size_t i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%u+%u:%d/%u", i ? " " : "",
                                 runs[i].first - thread_runs_first_tick(t), runs[i].n, (int)runs[i].entry,
                                 runs[i].flags);
    return text;
}

static void test_runs(void **state) {
    struct thread_runs *t = thread_runs_new();
    (void)state;
    assert_non_null(t);
    assert_true(isnan(thread_runs_forgotten_s(t)));
    assert_int_equal(thread_runs_find_lane(t, 7), -1);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(put(t, i, 7, i < 4 ? 1 : 2, 0), 1);
        if (i != 5) /* it is not seen in one look: what it did then is not known */
            assert_int_equal(put(t, i, 8, 3, i == 8 ? THREAD_RUNS_GC : 0), 1);
    }
    assert_int_equal(put(t, 9, 8, 4, 0), 0); /* it was seen in this look */
    assert_int_equal(thread_runs_left_out(t), 1);
    assert_string_equal(runs_text(t, 7), "0+4:1/0 4+6:2/0");
    assert_string_equal(runs_text(t, 8), "0+5:3/0 6+2:3/0 8+1:3/32 9+1:3/0");
    assert_int_equal(thread_runs_count_lanes(t), 2);
    assert_int_equal(thread_runs_end_tick(t) - thread_runs_first_tick(t), 10);
    assert_int_equal(thread_runs_find_tick(t, T0 + 0.035), 4);
    assert_int_equal(thread_runs_find_tick(t, T0 + 0.04), 4);
    assert_int_equal(thread_runs_find_tick(t, T0 + 1), 10);
    assert_true(thread_runs_tick_us(t, 2, 5) == 3 * PERIOD_US &&
                thread_runs_tick_us(t, 0, 10) == 10 * PERIOD_US);
    assert_true(thread_runs_tick_us(t, 3, 3) == 0);
    assert_int_equal(thread_runs_find_run(t, 0, 3), 0);
    assert_int_equal(thread_runs_find_run(t, 0, 4), 1);
    assert_int_equal(thread_runs_find_run(t, 1, 5), 1);
    assert_int_equal(thread_runs_find_run(t, 1, 10), 4);
    thread_runs_free(t);
}

/* Threads that rest are told of late: in looks that others were seen in, and in looks of their own. */
static void test_late(void **state) {
    struct thread_runs *t = thread_runs_new();
    (void)state;
    for (int i = 0; i < 10; i += 2)
        assert_int_equal(put(t, i, 7, 1, 0), 1);
    assert_string_equal(runs_text(t, 7), "0+5:1/0");
    assert_int_equal(put(t, 2, 8, 2, 0), 1);
    assert_int_equal(put(t, 4, 8, 2, 0), 1);
    assert_int_equal(put(t, 3, 8, 2, 0), 1); /* nobody was seen then */
    assert_int_equal(thread_runs_end_tick(t), 6);
    assert_true(thread_runs_tick_time(t, 2) == T0 + 0.03 && thread_runs_tick_time(t, 3) == T0 + 0.04);
    assert_true(thread_runs_tick_us(t, 1, 3) == 2 * PERIOD_US &&
                thread_runs_tick_us(t, 0, 6) == 6 * PERIOD_US);
    assert_string_equal(runs_text(t, 7), "0+2:1/0 3+3:1/0");
    assert_string_equal(runs_text(t, 8), "1+2:2/0 3+1:2/0");
    assert_int_equal(put(t, -1, 8, 2, 0), 1); /* before all */
    assert_true(thread_runs_tick_us(t, 0, 1) == PERIOD_US && thread_runs_tick_us(t, 0, 7) == 7 * PERIOD_US);
    assert_string_equal(runs_text(t, 7), "1+2:1/0 4+3:1/0");
    assert_int_equal(put(t, 6, 8, 2, 0), 1);
    assert_int_equal(put(t, 6, 8, 2, 0), 0);
    assert_int_equal(put(t, 3, 8, 2, 0), 0);
    thread_runs_free(t);
}

/* One that stays in one stack for ever, one that always changes: all of the newest time is known of both. */
/* A part of it, under other numbers: runs are cut where it begins and ends, what is left out is there as nothing. */
static void test_cut(void **state) {
    static const uint32_t map[] = {[1] = 11, [2] = THREAD_RUNS_NO_ENTRY, [3] = 0, [4] = THREAD_RUNS_NO_ENTRY};
    struct thread_runs *t = thread_runs_new();
    (void)state;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(put(t, i, 7, i < 4 ? 1 : 2, 0), 1);
        assert_int_equal(put(t, i, 8, i < 9 ? 3 : 1, i == 8 ? THREAD_RUNS_GC : 0), 1);
        assert_int_equal(put(t, i, 9, i < 9 ? 4 : 1, 0), 1); /* nothing of it is wanted but the last look */
        assert_int_equal(put(t, i, 10, 77, 0), 1);           /* an entry that came later */
    }
    struct thread_runs *c = thread_runs_trim(t, T0 + 0.02, T0 + 0.09, map, 5);
    assert_non_null(c);
    assert_int_equal(thread_runs_count_lanes(c), 2);
    assert_int_equal(thread_runs_end_tick(c) - thread_runs_first_tick(c), 7);
    assert_true(thread_runs_tick_time(c, 0) == T0 + 0.02 && thread_runs_tick_time(c, 6) == T0 + 0.08);
    assert_true(thread_runs_tick_us(c, 0, 7) == 7 * PERIOD_US && thread_runs_tick_us(c, 3, 4) == PERIOD_US);
    assert_string_equal(runs_text(c, 7), "0+2:11/0 2+5:-1/0");
    assert_string_equal(runs_text(c, 8), "0+6:0/0 6+1:0/32");
    assert_int_equal(thread_runs_find_lane(c, 9), -1);
    assert_true(isnan(thread_runs_forgotten_s(c)));
    thread_runs_free(c);
    c = thread_runs_trim(t, T0 + 0.2, T0 + 0.9, map, 5); /* nothing */
    assert_int_equal(thread_runs_count_lanes(c), 0);
    assert_int_equal(thread_runs_end_tick(c), thread_runs_first_tick(c));
    thread_runs_free(c);
    thread_runs_free(t);
}

static void test_forgetting(void **state) {
    struct thread_runs *t = thread_runs_new();
    enum { SAMPLES_NEEDED = 3 * THREAD_RUNS_TICKS };
    (void)state;
    for (int i = 0; i < (int)SAMPLES_NEEDED; i++) {
        assert_int_equal(put(t, i, 7, 1, 0), 1);
        assert_int_equal(put(t, i, 8, (uint32_t)i % 5, 0), 1);
        if (i == 100)
            assert_int_equal(put(t, i, 9, 1, 0), 1); /* and one that ends */
    }
    uint32_t first = thread_runs_first_tick(t), end = thread_runs_end_tick(t);
    assert_int_equal(end, SAMPLES_NEEDED);
    assert_true(end - first > THREAD_RUNS_TICKS / 2 && end - first <= THREAD_RUNS_TICKS);
    assert_true(thread_runs_forgotten_s(t) == T0 + (first - 1) / 100.0);
    assert_true(fabs(thread_runs_tick_us(t, first, end) - (end - first) * PERIOD_US) < 1e-3);
    assert_int_equal(thread_runs_count_lanes(t), 2);
    for (size_t lane = 0; lane < 2; lane++) {
        size_t n, seen = 0;
        const struct thread_runs_run *runs = thread_runs_runs(t, lane, &n);
        for (size_t i = thread_runs_find_run(t, lane, first); i < n; i++) {
            uint32_t from = runs[i].first > first ? runs[i].first : first;
            seen += runs[i].first + runs[i].n - from;
        }
        assert_int_equal(seen, end - first);
    }
    assert_int_equal(put(t, 5, 7, 1, 0), 0); /* long gone */
    thread_runs_free(t);
}

/* More threads and changes than there is room for: less time is known, and of it all. */
static void test_many_runs(void **state) {
    struct thread_runs *t = thread_runs_new();
    enum { THREADS = 1000, SAMPLES_NEEDED = 1000 };
    size_t runs = 0;
    (void)state;
    for (int i = 0; i < SAMPLES_NEEDED; i++)
        for (int k = 0; k < THREADS; k++)
            assert_int_equal(put(t, i, 100 + k, (uint32_t)(i + k) % 2, 0), 1);
    uint32_t first = thread_runs_first_tick(t), end = thread_runs_end_tick(t);
    assert_true(first > 0 && end == SAMPLES_NEEDED);
    for (size_t lane = 0; lane < thread_runs_count_lanes(t); lane++) {
        size_t n;
        (void)thread_runs_runs(t, lane, &n);
        assert_int_equal(n - thread_runs_find_run(t, lane, first), end - first);
        runs += n;
    }
    assert_true(runs <= THREAD_RUNS_RUNS && runs > THREAD_RUNS_RUNS / 2);
    for (int k = 0; k < (int)THREAD_RUNS_LANES + 10; k++)
        (void)put(t, SAMPLES_NEEDED, 5000 + k, 1, 0);
    assert_int_equal(thread_runs_count_lanes(t), THREAD_RUNS_LANES);
    assert_int_equal(thread_runs_left_out(t), THREADS + 10);
    thread_runs_free(t);
}

/* Times that no clock has, and a clock that is set back: what comes then is taken in again. */
static void test_clocks(void **state) {
    struct thread_runs *t = thread_runs_new();
    (void)state;
    struct thread_runs_sample bad[] = {
        {.time_s = NAN}, {.time_s = INFINITY}, {.time_s = -1}, {.time_s = 1e300}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(thread_runs_add(t, &bad[i]), 0);
    for (int i = 0; i < 2000; i++)
        assert_int_equal(put(t, i, 7, 1, 0), 1);
    uint64_t identity = thread_runs_identity(t);
    for (int i = 0; i < 1000; i++)
        (void)put(t, i - 360000, 7, 1, 0);
    assert_true(thread_runs_identity(t) != identity);
    assert_true(thread_runs_tick_time(t, thread_runs_end_tick(t) - 1) == T0 + (999 - 360000) / 100.0);
    uint32_t ticks = thread_runs_end_tick(t) - thread_runs_first_tick(t);
    assert_true(ticks > 500);
    /* of all samples, those that have a place now are not left out: a note says how many are */
    assert_int_equal(thread_runs_left_out(t), sizeof bad / sizeof bad[0] + 2000 + 1000 - ticks);
    thread_runs_free(t);
}

/* ---- spans of a tally ---- */

#define STACKS 6

static struct model_frame_def frames[] = {{1, {MODEL_FRAME_PYTHON, "main", "/job/a.py", 1}},
                                          {2, {MODEL_FRAME_PYTHON, "work", "/job/a.py", 2}},
                                          {3, {MODEL_FRAME_PYTHON, "load", "/job/a.py", 3}}};
static struct model_stack_def stacks[STACKS] = {{1, 0, 1}, {2, 1, 2}, {3, 1, 3},
                                                {4, 2, 3}, {5, 3, 2}, {6, 4, 1}};

static bool give(struct sample_store *t, struct model_sample *samples, size_t n, double now_s) {
    struct model_sample_batch b = {.epoch = 1, .period_us = PERIOD_US, .samples = samples, .n_samples = n};
    b.frames = frames;
    b.n_frames = sizeof frames / sizeof frames[0];
    b.stacks = stacks;
    b.n_stacks = STACKS;
    return sample_store_add(t, &b, now_s);
}

static struct stack_counts_sums counted(const struct sample_store *t, enum sample_store_window window,
                                        int64_t tid, uint32_t stack) {
    for (size_t i = 0; i < sample_store_count_entries(t); i++) {
        const struct stack_counts_entry *e = stack_counts_get(sample_store_counts(t), i);
        if (e->tid == tid && e->stack == stack)
            return sample_store_get_count(t, window, i);
    }
    return (struct stack_counts_sums){0};
}

static uint64_t all_in(const struct sample_store *t, enum sample_store_window window) {
    size_t n = sample_store_count_entries(t);
    struct stack_counts_sums *counts = calloc(n + 1, sizeof *counts);
    uint64_t sum = 0;
    sample_store_get_counts(t, window, counts);
    for (size_t i = 0; i < n; i++)
        sum += counts[i].samples;
    free(counts);
    return sum;
}

/* Thread 7 works for 50 looks, loads for 50. */
static struct sample_store *phases(void) {
    struct sample_store *t = sample_store_new();
    for (int i = 0; i < 100; i++) {
        struct model_sample s = {
            .timestamp = T0 + i / 100.0, .tid = 7, .stack_id = i < 50 ? 2 : 3, .on_cpu = i < 50};
        assert_true(give(t, &s, 1, 5 + i / 100.0));
    }
    return t;
}

static void test_span(void **state) {
    struct sample_store *t = phases();
    struct sample_store_span_health h;
    double from, to;
    (void)state;
    assert_false(sample_store_get_span(t, SAMPLE_STORE_SPAN, &from, &to));
    assert_int_equal(all_in(t, SAMPLE_STORE_SPAN), 0);
    struct sample_store_mark before = sample_store_get_mark(t);
    assert_int_equal(sample_store_set_span(t, SAMPLE_STORE_SPAN, T0 + 0.40, T0 + 0.60), 0);
    assert_true(sample_store_get_mark(t).counts != before.counts &&
                sample_store_get_mark(t).ids == before.ids);
    struct stack_counts_sums work = counted(t, SAMPLE_STORE_SPAN, 7, 2),
                             load = counted(t, SAMPLE_STORE_SPAN, 7, 3);
    assert_int_equal(work.samples, 10);
    assert_int_equal(work.on_cpu, 10);
    assert_int_equal(load.samples, 10);
    assert_int_equal(load.on_cpu, 0);
    assert_true(fabs(work.us - 10 * PERIOD_US) < 1e-3 && fabs(work.on_cpu_us - work.us) < 1e-3);
    assert_int_equal(sample_store_set_span(t, SAMPLE_STORE_OTHER, T0 + 0.2, T0 + 0.3), 0);
    assert_int_equal(all_in(t, SAMPLE_STORE_OTHER), 10);
    assert_int_equal(all_in(t, SAMPLE_STORE_SPAN), 20);
    assert_int_equal(all_in(t, SAMPLE_STORE_ALL), 100);
    assert_int_equal(sample_store_set_span(t, SAMPLE_STORE_SPAN, T0 + 1, T0 + 1), -1);
    assert_int_equal(sample_store_set_span(t, SAMPLE_STORE_SPAN, NAN, T0), -1);
    assert_true(sample_store_get_span(t, SAMPLE_STORE_SPAN, &from, &to) && from == T0 + 0.40 &&
                to == T0 + 0.60);
    assert_true(sample_store_get_span_health(t, SAMPLE_STORE_SPAN, &h));
    assert_true(h.known_from_s == T0 + 0.40 && h.known_until_s == T0 + 0.60);
    /* Begins before anything is known, ends when nobody knows yet. */
    assert_int_equal(sample_store_set_span(t, SAMPLE_STORE_SPAN, T0 - 5, T0 + 5), 0);
    assert_int_equal(all_in(t, SAMPLE_STORE_SPAN), 100);
    (void)sample_store_get_span_health(t, SAMPLE_STORE_SPAN, &h);
    assert_true(h.known_from_s == T0 && h.known_until_s == T0 + 0.99);
    struct model_sample more[] = {
        {.timestamp = T0 + 1, .tid = 7, .stack_id = 4, .gil = MODEL_GIL_HOLDING, .gc = 1},
        {.timestamp = T0 + 5, .tid = 7, .stack_id = 4}};
    assert_true(give(t, more, 2, 6));
    struct stack_counts_sums late = counted(t, SAMPLE_STORE_SPAN, 7, 4);
    assert_true(late.samples == 1 && late.gil == 1 && late.gc == 1 && fabs(late.gil_us - PERIOD_US) < 1e-3);
    sample_store_reset(t, 7);
    assert_int_equal(all_in(t, SAMPLE_STORE_ALL), 0);
    assert_int_equal(all_in(t, SAMPLE_STORE_SPAN), 101); /* what was then has been */
    sample_store_clear_span(t, SAMPLE_STORE_SPAN);
    assert_int_equal(all_in(t, SAMPLE_STORE_SPAN), 0);
    sample_store_free(t);
}

/* While it is held nothing read changes, but for what is asked for anew, and that of the same time. */
static void test_span_held(void **state) {
    struct sample_store *t = phases();
    (void)state;
    assert_int_equal(sample_store_set_span(t, SAMPLE_STORE_SPAN, T0 + 0.9, T0 + 2), 0);
    assert_int_equal(sample_store_freeze(t, true), 0);
    struct model_sample more = {.timestamp = T0 + 1.5, .tid = 7, .stack_id = 3};
    struct model_sample other = {.timestamp = T0 + 1.6, .tid = 9, .stack_id = 1};
    assert_true(give(t, &more, 1, 7) && give(t, &other, 1, 7));
    assert_int_equal(all_in(t, SAMPLE_STORE_SPAN), 10);
    assert_true(sample_store_newest_tick_s(t) == T0 + 0.99);
    assert_int_equal(sample_store_set_span(t, SAMPLE_STORE_SPAN, T0 + 0.8, T0 + 2), 0);
    assert_int_equal(all_in(t, SAMPLE_STORE_SPAN), 20);
    assert_int_equal(all_in(t, SAMPLE_STORE_OTHER), 0);
    assert_int_equal(sample_store_set_span(t, SAMPLE_STORE_OTHER, T0 + 1.4, T0 + 2), 0);
    assert_int_equal(all_in(t, SAMPLE_STORE_OTHER), 0);
    assert_int_equal(sample_store_freeze(t, false), 0);
    assert_int_equal(all_in(t, SAMPLE_STORE_SPAN), 22);
    assert_int_equal(all_in(t, SAMPLE_STORE_OTHER), 2);
    assert_true(sample_store_newest_tick_s(t) == T0 + 1.6);
    sample_store_free(t);
}

static void test_mark(void **state) {
    struct sample_store *t = phases();
    (void)state;
    assert_true(isnan(sample_store_marked_s(t)));
    assert_int_equal(all_in(t, SAMPLE_STORE_MARK), 100);
    assert_int_equal(sample_store_mark(t, 9), 0);
    assert_true(sample_store_marked_s(t) == 9);
    assert_int_equal(all_in(t, SAMPLE_STORE_MARK), 0);
    for (int i = 0; i < 600; i++) { /* new entries too */
        struct model_sample s = {.timestamp = T0 + 2 + i / 100.0, .tid = 10 + i, .stack_id = 2};
        assert_true(give(t, &s, 1, 10));
    }
    struct model_sample s = {.timestamp = T0 + 9, .tid = 7, .stack_id = 2};
    assert_true(give(t, &s, 1, 11));
    assert_int_equal(all_in(t, SAMPLE_STORE_MARK), 601);
    assert_int_equal(counted(t, SAMPLE_STORE_MARK, 7, 2).samples, 1);
    assert_int_equal(all_in(t, SAMPLE_STORE_ALL), 701);
    assert_int_equal(sample_store_freeze(t, true), 0);
    s.timestamp = T0 + 9.5;
    assert_true(give(t, &s, 1, 12));
    assert_int_equal(all_in(t, SAMPLE_STORE_MARK), 601);
    assert_int_equal(sample_store_mark(t, 13), 0);
    assert_int_equal(all_in(t, SAMPLE_STORE_MARK), 0);
    assert_int_equal(sample_store_freeze(t, false), 0);
    sample_store_reset(t, 14);
    assert_true(sample_store_marked_s(t) == 14);
    assert_true(give(t, &s, 1, 15));
    assert_int_equal(all_in(t, SAMPLE_STORE_MARK), 1);
    sample_store_free(t);
}

/* ---- random streams ---- */

struct seen {
    double time_s;
    int64_t tid;
    uint32_t stack;
    bool on_cpu, gc, gil;
};

static struct seen all_seen[60000];
static size_t n_seen;

static uint32_t roll(uint64_t *random, uint32_t n) {
    *random = *random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(*random >> 33) % n;
}

/* A look at 8 threads: most do what they did, some are missing, torn, in a stack never told; two are told later. */
static size_t look(uint64_t *random, double time_s, struct model_sample *now, struct model_sample *later,
                   size_t *n_later) {
    static uint32_t does[8];
    size_t n = 0;
    for (int i = 0; i < 8; i++) {
        if (roll(random, 10) == 0)
            does[i] = roll(random, STACKS + 2);
        if (roll(random, 40) == 0)
            continue;
        struct model_sample s = {
            .timestamp = time_s, .tid = 100 + i, .stack_id = does[i], .on_cpu = roll(random, 8) > 0};
        s.torn = roll(random, 30) == 0;
        s.gc = roll(random, 20) == 0;
        s.gil = roll(random, 4) == 0 ? MODEL_GIL_HOLDING : MODEL_GIL_NONE;
        if (i < 2 && *n_later < 400)
            later[(*n_later)++] = s;
        else
            now[n++] = s;
        if (!s.torn && s.stack_id <= STACKS)
            all_seen[n_seen++] =
                (struct seen){time_s, s.tid, s.stack_id, s.on_cpu, s.gc == 1, s.gil == MODEL_GIL_HOLDING};
    }
    return n;
}

static void assert_span(const struct sample_store *t, enum sample_store_window window, double from,
                        double to) {
    struct stack_counts_sums want[8][STACKS + 1] = {{{0}}};
    for (size_t i = 0; i < n_seen; i++) {
        const struct seen *s = &all_seen[i];
        struct stack_counts_sums *c = &want[s->tid - 100][s->stack];
        if (s->time_s < from || s->time_s >= to)
            continue;
        c->samples++;
        c->on_cpu += s->on_cpu;
        c->gc += s->gc;
        c->gil += s->gil;
        c->gc_on_cpu += s->gc && s->on_cpu;
    }
    for (int64_t tid = 100; tid < 108; tid++)
        for (uint32_t stack = 0; stack <= STACKS; stack++) {
            struct stack_counts_sums c = counted(t, window, tid, stack), *w = &want[tid - 100][stack];
            assert_int_equal(c.samples, w->samples);
            assert_int_equal(c.on_cpu, w->on_cpu);
            assert_int_equal(c.gc, w->gc);
            assert_int_equal(c.gil, w->gil);
            assert_int_equal(c.gc_on_cpu, w->gc_on_cpu);
            assert_true(fabs(c.us - (double)w->samples * PERIOD_US) < 1e-2);
            assert_true(fabs(c.on_cpu_us - (double)w->on_cpu * PERIOD_US) < 1e-2);
            assert_true(fabs(c.gil_us - (double)w->gil * PERIOD_US) < 1e-2);
        }
}

static void random_stream(uint64_t seed) {
    uint64_t random = seed;
    struct sample_store *t = sample_store_new();
    struct sample_flame *follower = sample_flame_new();
    struct flame *f = sample_flame_tree(follower);
    struct flame_query q = {.window = SAMPLE_STORE_SPAN, .time = FLAME_ALL_TIME};
    struct model_sample now[4096], later[512];
    size_t n_later = 0;
    double ahead = T0 + 12 + roll(&random, 10), other = T0 + roll(&random, 12);
    n_seen = 0;
    assert_int_equal(sample_store_set_span(t, SAMPLE_STORE_OTHER, other, ahead),
                     0); /* before anything came */
    for (int at = 0; at < 2000;) {
        size_t n = 0;
        for (int i = (int)roll(&random, 30) + 1; i > 0; i--, at++) /* now and then there is a gap */
            n += look(&random, T0 + at / 100.0 + (at > 1000 ? 1.5 : 0), now + n, later, &n_later);
        if (roll(&random, 3) == 0 || n_later > 300) {
            memcpy(now + n, later, n_later * sizeof *later);
            n += n_later;
            n_later = 0;
        }
        assert_true(give(t, now, n, 100 + at / 100.0));
        assert_int_equal(sample_flame_update(follower, t, &q), 0);
    }
    assert_true(give(t, later, n_later, 130));
    assert_int_equal(thread_runs_left_out(sample_store_runs(t)), 0);
    assert_span(t, SAMPLE_STORE_OTHER, other, ahead);
    assert_span(t, SAMPLE_STORE_ALL, T0 - 1, T0 + 100);
    for (int i = 0; i < 40; i++) {
        double from = T0 - 1 + roll(&random, 2400) / 100.0, to = from + 0.001 + roll(&random, 1500) / 97.0;
        assert_int_equal(sample_store_set_span(t, SAMPLE_STORE_SPAN, from, to), 0);
        assert_span(t, SAMPLE_STORE_SPAN, from, to);
        assert_int_equal(sample_flame_update(follower, t, &q), 0);
        assert_int_equal(flame_node(f, FLAME_ROOT)->total.samples, all_in(t, SAMPLE_STORE_SPAN));
        assert_int_equal(sample_store_freeze(t, i % 2 == 0), 0);
        assert_span(t, SAMPLE_STORE_SPAN, from, to);
    }
    sample_flame_free(follower);
    sample_store_free(t);
}

static void test_random(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++)
        random_stream(seed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_runs),      cmocka_unit_test(test_late),   cmocka_unit_test(test_forgetting),
        cmocka_unit_test(test_many_runs), cmocka_unit_test(test_clocks), cmocka_unit_test(test_span),
        cmocka_unit_test(test_span_held), cmocka_unit_test(test_mark),   cmocka_unit_test(test_cut),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
