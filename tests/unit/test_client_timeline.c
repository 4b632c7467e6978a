/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices of time: what dominated each is compared with a plain count over all samples; what is kept of an earlier view with
 * what is made anew; and what is not known is never given a function.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/samples/timeline.h"
#include "client/samples/thread_runs.h"

#define T0 1700000000.0
#define STACKS 6
#define THREADS 5

static struct model_frame_def frames[] = {{1, {.func = "main", .file = "/job/a.py", .line = 1}},
                                          {2, {.func = "work", .file = "/job/a.py", .line = 2}},
                                          {3, {.func = "work", .file = "/job/a.py", .line = 3}},
                                          {4, {.func = "load", .file = "/job/b.py", .line = 4}}};
static struct model_stack_def stacks[STACKS] = {{1, 0, 1}, {2, 1, 2}, {3, 1, 3},
                                                {4, 1, 4}, {5, 4, 2}, {6, 2, 1}};
static const char *const functions[STACKS + 1] = {NULL, "main", "work", "work", "load", "work", "main"};

static void give(struct sample_store *t, struct model_sample *samples, size_t n, double now_s) {
    struct model_sample_batch b = {.epoch = 1, .period_us = 10000, .frames = frames, .stacks = stacks};
    b.n_frames = sizeof frames / sizeof frames[0];
    b.n_stacks = STACKS;
    b.samples = samples;
    b.n_samples = n;
    assert_true(sample_store_add(t, &b, now_s));
}

static void give_one(struct sample_store *t, struct model_sample s, double look) {
    s.timestamp = T0 + look / 100;
    give(t, &s, 1, 100 + look / 100);
}

static const char *function_of(const struct sample_store *t, const struct timeline_cell *c) {
    return c->function == TIMELINE_NO_FRAME ? NULL
                                            : stack_counts_frame(sample_store_counts(t), c->function)->func;
}

static struct timeline_view view_of(double column_s, double from_s, int cols, enum timeline_time time) {
    return (struct timeline_view){column_s, timeline_column(column_s, from_s), cols, time};
}

/* Work for 6 of 10 looks of a slice, and load; on the CPU while it loads. */
static void test_what_dominates(void **state) {
    struct sample_store *t = sample_store_new();
    struct timeline *l = timeline_new();
    struct timeline_view v = view_of(0.1, T0, 4, TIMELINE_ALL_TIME);
    (void)state;
    for (int i = 0; i < 20; i++) {
        bool works = i % 10 < 6;
        give_one(t,
                 (struct model_sample){.tid = 7,
                                       .stack_id = works ? 2 + (uint32_t)i % 2 : 4,
                                       .on_cpu = !works,
                                       .gil = works ? MODEL_GIL_WAITING : MODEL_GIL_HOLDING,
                                       .gc = i < 2},
                 i);
        if (i >= 10)
            give_one(t, (struct model_sample){.tid = 3, .torn = true, .stack_id = 1}, i);
    }
    assert_int_equal(timeline_update(l, t, &v), 0);
    assert_int_equal(timeline_count_lanes(l), 2);
    assert_true(timeline_lane(l, 0)->tid == 3 && timeline_lane(l, 1)->tid == 7);
    const struct timeline_cell *c = timeline_cell(l, 1, 0);
    assert_int_equal(c->state, TIMELINE_ACTIVE);
    assert_string_equal(function_of(t, c), "work"); /* two lines of it together */
    assert_true(c->looks == 10 && c->cpu == 40 && c->gil == 40 && c->waiting == 60 && c->gc == 20);
    assert_true(timeline_share(l, 0).gil == 40 && timeline_share(l, 0).gc == 20 &&
                timeline_share(l, 1).gc == 0);
    assert_int_equal(timeline_cell(l, 0, 0)->state, TIMELINE_ABSENT);
    assert_int_equal(timeline_cell(l, 0, 1)->state, TIMELINE_TORN);
    assert_int_equal(timeline_cell(l, 0, 1)->looks, 10);
    assert_int_equal(timeline_cell(l, 1, 2)->state, TIMELINE_UNSAMPLED);
    assert_int_equal(timeline_share(l, 2).gil, TIMELINE_UNKNOWN);
    v.time = TIMELINE_ON_CPU; /* it was off the CPU most of the time: what it did then */
    assert_int_equal(timeline_update(l, t, &v), 0);
    assert_int_equal(timeline_cell(l, 1, 0)->state, TIMELINE_IDLE);
    assert_string_equal(function_of(t, timeline_cell(l, 1, 0)), "work");
    v.column_s = 0.05; /* five looks work, then one does and four load */
    v.first *= 2;
    assert_int_equal(timeline_update(l, t, &v), 0);
    assert_int_equal(timeline_cell(l, 1, 0)->state, TIMELINE_IDLE);
    assert_int_equal(timeline_cell(l, 1, 1)->state, TIMELINE_ACTIVE);
    assert_string_equal(function_of(t, timeline_cell(l, 1, 1)), "load");
    v.time = TIMELINE_GIL_HOLDING;
    assert_int_equal(timeline_update(l, t, &v), 0);
    assert_int_equal(timeline_cell(l, 1, 1)->state, TIMELINE_ACTIVE);
    assert_true(timeline_lane(l, 1)->ran && timeline_lane(l, 1)->seen && !timeline_lane(l, 0)->ran);
    timeline_free(l);
    sample_store_free(t);
}

/* Slices shorter than the time between two looks show the one before, but not across a hole. */
static void test_short_slices(void **state) {
    struct sample_store *t = sample_store_new();
    struct timeline *l = timeline_new();
    (void)state;
    for (int i = 0; i < 50; i++)
        if (i < 10 || i >= 30)
            give_one(t, (struct model_sample){.tid = 7, .stack_id = 4}, i + 0.3);
    struct timeline_view v = view_of(0.005, T0, 100, TIMELINE_ALL_TIME);
    assert_int_equal(timeline_update(l, t, &v), 0);
    assert_int_equal(timeline_cell(l, 0, 0)->state, TIMELINE_ACTIVE);
    for (int col = 0; col < 99; col++) /* the last one before the hole stands for two of its own times */
        assert_int_equal(timeline_cell(l, 0, col)->state,
                         col <= 21 || col >= 60 ? TIMELINE_ACTIVE : TIMELINE_UNSAMPLED);
    assert_int_equal(timeline_cell(l, 0, 99)->state, TIMELINE_UNSAMPLED); /* after the newest look */
    timeline_free(l);
    sample_store_free(t);
}

/* ---- random ---- */

struct seen {
    double time_s;
    int64_t tid;
    uint32_t stack; /* STACKS + 1: torn */
    bool on_cpu, gil;
};

static struct seen all_seen[40000];
static size_t n_seen;

static uint32_t roll(uint64_t *random, uint32_t n) {
    *random = *random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(*random >> 33) % n;
}

/* A batch of looks; thread 0 comes with the next one. */
static int feed(struct sample_store *t, uint64_t *random, int at, struct model_sample *later,
                size_t *n_later) {
    static uint32_t does[THREADS];
    struct model_sample samples[THREADS * 40 + 400];
    size_t n = *n_later;
    memcpy(samples, later, n * sizeof *samples);
    *n_later = 0;
    for (int i = (int)roll(random, 30) + 1; i > 0; i--, at++)
        for (int k = 0; k < THREADS; k++) {
            if (roll(random, 6) == 0)
                does[k] = roll(random, STACKS + 1);
            if (k == 4 && (at / 150) % 2)
                continue; /* comes and goes */
            double hole = at >= 900 ? 2.0 : 0;
            struct model_sample s = {.timestamp = T0 + at / 100.0 + hole, .tid = 10 + k, .stack_id = does[k]};
            s.torn = roll(random, 15) == 0;
            s.on_cpu = roll(random, 2) == 0;
            s.gil = roll(random, 3) == 0 ? MODEL_GIL_HOLDING : MODEL_GIL_NONE;
            all_seen[n_seen++] = (struct seen){s.timestamp, s.tid, s.torn ? STACKS + 1 : s.stack_id,
                                               s.on_cpu == 1, s.gil == MODEL_GIL_HOLDING};
            if (k == 0)
                later[(*n_later)++] = s;
            else
                samples[n++] = s;
        }
    give(t, samples, n, 100 + at / 100.0);
    return at;
}

static bool is_active(const struct seen *s, enum timeline_time time) {
    return time == TIMELINE_ALL_TIME || (time == TIMELINE_ON_CPU ? s->on_cpu : s->gil);
}

/* A cell against all samples in its slice: its state, and that no other function has more than its own. */
static void assert_cell(const struct sample_store *t, const struct timeline_cell *c, int64_t tid, double from,
                        double to, enum timeline_time time) {
    unsigned all = 0, mine = 0, readable = 0, active = 0, per[2][STACKS + 1] = {{0}};
    for (size_t i = 0; i < n_seen; i++) {
        const struct seen *s = &all_seen[i];
        if (s->time_s < from || s->time_s >= to)
            continue;
        all++;
        if (s->tid != tid)
            continue;
        mine++;
        if (s->stack > STACKS)
            continue;
        readable++;
        active += is_active(s, time);
        per[is_active(s, time)][s->stack]++;
    }
    if (c->looks != mine)
        print_error("thread %d, %.3f to %.3f: %u looks, not %u\n", (int)tid, from - T0, to - T0, c->looks,
                    mine);
    assert_int_equal(c->looks, mine);
    bool lit = readable && 2 * active >= readable;
    int state = !all        ? TIMELINE_UNSAMPLED
                : !mine     ? TIMELINE_ABSENT
                : !readable ? TIMELINE_TORN
                : lit       ? TIMELINE_ACTIVE
                            : TIMELINE_IDLE;
    assert_int_equal(c->state, state);
    if (state < TIMELINE_IDLE)
        return;
    const char *got = function_of(t, c);
    unsigned has = 0, most = 0;
    for (uint32_t a = 0; a <= STACKS; a++) {
        unsigned sum = 0;
        for (uint32_t b = 0; b <= STACKS; b++)
            if (functions[a] == functions[b] ||
                (functions[a] && functions[b] && !strcmp(functions[a], functions[b])))
                sum += per[lit][b];
        most = sum > most ? sum : most;
        if (got == functions[a] || (got && functions[a] && strcmp(got, functions[a]) == 0))
            has = sum;
    }
    assert_true(has == most && most > 0);
}

static void assert_same(const struct timeline *a, const struct timeline *b, int cols) {
    assert_int_equal(timeline_count_lanes(a), timeline_count_lanes(b));
    for (size_t i = 0; i < timeline_count_lanes(a); i++) {
        assert_true(timeline_lane(a, i)->tid == timeline_lane(b, i)->tid);
        for (int col = 0; col < cols; col++)
            assert_memory_equal(timeline_cell(a, i, col), timeline_cell(b, i, col),
                                sizeof(struct timeline_cell));
    }
    for (int col = 0; col < cols; col++)
        assert_true(timeline_share(a, col).gil == timeline_share(b, col).gil);
}

static void random_stream(uint64_t seed) {
    static const double scales[] = {0.1, 0.2, 0.5, 1};
    struct model_sample later[400];
    size_t n_later = 0;
    struct sample_store *t = sample_store_new();
    struct timeline *kept = timeline_new();
    uint64_t random = seed;
    struct timeline_view v = {.column_s = 0.1, .cols = 60};
    n_seen = 0;
    for (int at = 0; at < 1500;) {
        at = feed(t, &random, at, later, &n_later);
        double newest = sample_store_newest_tick_s(t);
        if (roll(&random, 8) == 0) {
            v.column_s = scales[roll(&random, 4)];
            v.time = (enum timeline_time)roll(&random, TIMELINE_TIMES);
            v.cols = 20 + (int)roll(&random, 60);
        }
        v.first = timeline_column(v.column_s, newest) - v.cols + 1 -
                  (roll(&random, 4) ? 0 : (int)roll(&random, 20));
        assert_int_equal(timeline_update(kept, t, &v), 0);
        struct timeline *anew = timeline_new();
        assert_int_equal(timeline_update(anew, t, &v), 0);
        assert_same(kept, anew, v.cols);
        timeline_free(anew);
    }
    give(t, later, n_later, 130);
    v.first = timeline_column(v.column_s, T0) - 3;
    assert_int_equal(timeline_update(kept, t, &v), 0);
    for (size_t i = 0; i < timeline_count_lanes(kept); i++)
        for (int col = 0; col < v.cols; col++) {
            double from = timeline_begin(v.column_s, v.first + col);
            assert_cell(t, timeline_cell(kept, i, col), timeline_lane(kept, i)->tid, from,
                        timeline_begin(v.column_s, v.first + col + 1), v.time);
        }
    timeline_free(kept);
    sample_store_free(t);
}

static void test_random(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++)
        random_stream(seed);
}

/* An update makes the columns that came and those that samples may still come for; what was made stays, though tracks forget. */
static void test_cost(void **state) {
    struct sample_store *t = sample_store_new();
    struct timeline *l = timeline_new();
    struct timeline_view v = {.column_s = 1, .cols = 200, .time = TIMELINE_ALL_TIME};
    (void)state;
    for (int i = 0; i < (int)THREAD_RUNS_TICKS + 20000; i++) {
        give_one(t, (struct model_sample){.tid = 7, .stack_id = 1 + (uint32_t)(i / 100) % 2}, i);
        if (i % 25)
            continue;
        v.first = timeline_column(1, sample_store_newest_tick_s(t)) - v.cols + 1;
        assert_int_equal(timeline_update(l, t, &v), 0);
        if (i > 30000)
            assert_in_range(timeline_computed(l), 1, 6);
    }
    v.first -= 5;
    assert_int_equal(timeline_update(l, t, &v), 0);
    v.cols = 500; /* a wider view reaches back beyond what is known */
    v.first -= 300;
    assert_int_equal(timeline_update(l, t, &v), 0);
    assert_int_equal(timeline_cell(l, 0, 0)->state, TIMELINE_UNSAMPLED);
    assert_int_equal(timeline_cell(l, 0, 499 - 10)->state, TIMELINE_ACTIVE);
    timeline_free(l);
    sample_store_free(t);
}

/* What is held stands still, whatever comes. */
static void test_held(void **state) {
    struct sample_store *t = sample_store_new();
    struct timeline *l = timeline_new(), *again = timeline_new();
    struct timeline_view v = view_of(0.1, T0, 30, TIMELINE_ALL_TIME);
    (void)state;
    for (int i = 0; i < 105; i++)
        give_one(t, (struct model_sample){.tid = 7, .stack_id = 2}, i);
    assert_int_equal(timeline_update(l, t, &v), 0);
    assert_int_equal(sample_store_freeze(t, true), 0);
    for (int i = 105; i < 200; i++)
        give_one(t, (struct model_sample){.tid = 7, .stack_id = 4}, i);
    assert_int_equal(timeline_update(again, t, &v), 0);
    assert_same(l, again, v.cols);
    assert_string_equal(function_of(t, timeline_cell(l, 0, 10)), "work");
    assert_int_equal(timeline_cell(l, 0, 12)->state, TIMELINE_UNSAMPLED);
    assert_int_equal(sample_store_freeze(t, false), 0);
    assert_int_equal(timeline_update(l, t, &v), 0);
    assert_string_equal(function_of(t, timeline_cell(l, 0, 12)), "load");
    timeline_free(l);
    timeline_free(again);
    sample_store_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_dominates), cmocka_unit_test(test_short_slices),
        cmocka_unit_test(test_random),         cmocka_unit_test(test_cost),
        cmocka_unit_test(test_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
