/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two times side by side, as a table and as a tree of calls: shares and differences worked out by hand, of one tally and of
 * two whose numbers are others; what only one of them has; nothing at all.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "flame/flame_diff.h"
#include "client/samples/sample_flame.h"
#include "client/samples/sample_store_table.h"

/* main calls load, train (which calls forward), sync, eval. */
enum { MAIN = 1, LOAD, TRAIN, FORWARD, SYNC, EVAL, N_STACKS };

static struct model_frame_def frames[] = {
    {1, {MODEL_FRAME_PYTHON, "main", "/job/a.py", 1}},  {2, {MODEL_FRAME_PYTHON, "load", "/job/a.py", 2}},
    {3, {MODEL_FRAME_PYTHON, "train", "/job/a.py", 3}}, {4, {MODEL_FRAME_PYTHON, "forward", "/job/b.py", 4}},
    {5, {MODEL_FRAME_PYTHON, "sync", "/job/a.py", 5}},  {6, {MODEL_FRAME_PYTHON, "eval", "/job/a.py", 6}},
};
static struct model_stack_def stacks[] = {{MAIN, 0, 1},        {LOAD, MAIN, 2}, {TRAIN, MAIN, 3},
                                          {FORWARD, TRAIN, 4}, {SYNC, MAIN, 5}, {EVAL, MAIN, 6}};

/* The same in another order, as another process would number them. */
static struct model_frame_def other_frames[] = {
    {1, {MODEL_FRAME_PYTHON, "eval", "/job/a.py", 6}},    {2, {MODEL_FRAME_PYTHON, "main", "/job/a.py", 1}},
    {3, {MODEL_FRAME_PYTHON, "forward", "/job/b.py", 4}}, {4, {MODEL_FRAME_PYTHON, "train", "/job/a.py", 3}},
    {5, {MODEL_FRAME_PYTHON, "load", "/job/a.py", 2}},
};
static struct model_stack_def other_stacks[] = {
    {MAIN, 0, 2}, {EVAL, MAIN, 1}, {TRAIN, MAIN, 4}, {FORWARD, TRAIN, 3}, {LOAD, MAIN, 5}};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* `n` samples in a stack, 10 ms each, from `*time_s` on, which moves on. */
static void add(struct sample_store *t, double *time_s, uint32_t stack, int n, bool other) {
    for (int i = 0; i < n; i++) {
        struct model_sample sample = {.timestamp = *time_s, .tid = 7, .stack_id = stack, .on_cpu = 1};
        struct model_sample_batch b = {.epoch = 1, .period_us = 10000, .samples = &sample, .n_samples = 1};
        b.frames = other ? other_frames : frames;
        b.n_frames = other ? COUNT(other_frames) : COUNT(frames);
        b.stacks = other ? other_stacks : stacks;
        b.n_stacks = other ? COUNT(other_stacks) : COUNT(stacks);
        assert_true(sample_store_add(t, &b, *time_s));
        *time_s += 0.01;
    }
}

/* 125 samples: load 50, forward 40, train itself 10, eval 25. */
static void add_before(struct sample_store *t, double *time_s, bool other) {
    add(t, time_s, LOAD, 50, other);
    add(t, time_s, FORWARD, 40, other);
    add(t, time_s, TRAIN, 10, other);
    add(t, time_s, EVAL, 25, other);
}

/* 40 samples: load 10, forward 20, sync 10. */
static void add_now(struct sample_store *t, double *time_s) {
    add(t, time_s, LOAD, 10, false);
    add(t, time_s, FORWARD, 20, false);
    add(t, time_s, SYNC, 10, false);
}

/* By function: its share then, its share before, alone and with what it calls. */
static const struct {
    const char *func;
    double own, own_before, total, total_before;
} answers[] = {
    {"main", 0, 0, 100, 100},    {"load", 25, 40, 25, 40}, {"train", 0, 8, 50, 40},
    {"forward", 50, 32, 50, 32}, {"sync", 25, 0, 25, 0},   {"eval", 0, 20, 0, 20},
};

static bool is_near(double a, double b) { return fabs(a - b) < 1e-9; }

static void assert_table(const struct sample_store_diff *d) {
    assert_int_equal(d->n, COUNT(answers));
    for (size_t i = 0; i < COUNT(answers); i++) {
        const struct sample_store_diff_row *row = NULL;
        for (size_t k = 0; k < d->n; k++)
            row = strcmp(d->rows[k].row.frame->func, answers[i].func) == 0 ? &d->rows[k] : row;
        assert_non_null(row);
        if (!is_near(row->own_pct, answers[i].own) || !is_near(row->own_before, answers[i].own_before) ||
            !is_near(row->total_pct, answers[i].total) ||
            !is_near(row->total_before, answers[i].total_before))
            fail_msg("%s: own %g before %g, total %g before %g", answers[i].func, row->own_pct,
                     row->own_before, row->total_pct, row->total_before);
    }
}

/* Node of a function, wherever it is. */
static uint32_t find(const struct flame *f, const char *func) {
    for (uint32_t i = 2; i < flame_count(f); i++)
        if (strcmp(flame_frame(f, i)->func, func) == 0)
            return i;
    return FLAME_NO_NODE;
}

static void assert_tree(const struct flame_diff *d) {
    assert_true(is_near(flame_diff_now(d, FLAME_ROOT), 100) &&
                is_near(flame_diff_before(d, FLAME_ROOT), 100));
    for (size_t i = 0; i < COUNT(answers); i++) {
        uint32_t node = find(d->now, answers[i].func);
        if (node == FLAME_NO_NODE) { /* the tree of the newer time need not have it */
            assert_true(answers[i].total == 0);
            continue;
        }
        if (!is_near(flame_diff_now(d, node), answers[i].total) ||
            !is_near(flame_diff_before(d, node), answers[i].total_before) ||
            !is_near(flame_diff_self_before(d, node), answers[i].own_before))
            fail_msg("%s: %g, before %g, itself %g", answers[i].func, flame_diff_now(d, node),
                     flame_diff_before(d, node), flame_diff_self_before(d, node));
    }
    struct flame_gone gone[2];
    assert_int_equal(flame_diff_gone(d, find(d->now, "main"), gone, 2), 1);
    assert_string_equal(flame_frame(d->before, gone[0].node)->func, "eval");
    assert_true(is_near(gone[0].before_pct, 20));
    assert_int_equal(flame_diff_gone(d, find(d->now, "train"), gone, 2), 0);
}

static void compare_tables(struct sample_store_diff *d, const struct sample_store *now,
                           enum sample_store_window w, const struct sample_store *before,
                           enum sample_store_window w_before, bool by_line) {
    struct sample_store_table a = {0}, b = {0};
    struct sample_store_query q = {.window = w, .by_line = by_line};
    assert_int_equal(sample_store_table_build(&a, now, &q), 0);
    q.window = w_before;
    assert_int_equal(sample_store_table_build(&b, before, &q), 0);
    assert_int_equal(sample_store_diff_build(d, &a, &b, now != before), 0);
    sample_store_table_fini(&a);
    sample_store_table_fini(&b);
}

static void test_two_times_of_one_tally(void **state) {
    struct sample_store *t = sample_store_new();
    struct sample_store_diff d = {0};
    double time_s = 1000, middle_s;
    (void)state;
    add_before(t, &time_s, false);
    middle_s = time_s - 0.005;
    add_now(t, &time_s);
    assert_int_equal(sample_store_set_span(t, SAMPLE_STORE_OTHER, 1000, middle_s), 0);
    assert_int_equal(sample_store_set_span(t, SAMPLE_STORE_SPAN, middle_s, time_s), 0);
    for (int by_line = 0; by_line < 2; by_line++) {
        compare_tables(&d, t, SAMPLE_STORE_SPAN, t, SAMPLE_STORE_OTHER, by_line);
        assert_table(&d);
        for (size_t i = 0; i < d.n; i++)
            assert_false(d.rows[i].row.id & SAMPLE_STORE_DIFF_FOREIGN);
    }
    sample_store_diff_fini(&d);
    struct sample_flame *now = sample_flame_new(), *before = sample_flame_new();
    struct flame_diff trees = {0};
    for (int by = 0; by < FLAME_BY_MODULE; by++) {
        struct flame_query q = {.window = SAMPLE_STORE_SPAN, .by = (enum flame_by)by, .time = FLAME_ON_CPU};
        assert_int_equal(sample_flame_update(now, t, &q), 0);
        q.window = SAMPLE_STORE_OTHER;
        assert_int_equal(sample_flame_update(before, t, &q), 0);
        assert_int_equal(flame_diff_update(&trees, sample_flame_tree(now), sample_flame_tree(before)), 0);
        assert_tree(&trees);
    }
    flame_diff_fini(&trees);
    sample_flame_free(now);
    sample_flame_free(before);
    sample_store_free(t);
}

/* A recording has numbers of its own. What comes later to one of the two is found, too. */
static void test_two_tallies(void **state) {
    struct sample_store *t = sample_store_new(), *recording = sample_store_new();
    struct sample_store_diff d = {0};
    double time_s = 1000, then_s = 50;
    (void)state;
    add(t, &time_s, LOAD, 10, false);
    add_before(recording, &then_s, true);
    struct sample_flame *now = sample_flame_new(), *before = sample_flame_new();
    struct flame_diff trees = {0};
    struct flame_query q = {.window = SAMPLE_STORE_ALL, .time = FLAME_ON_CPU};
    assert_int_equal(sample_flame_update(now, t, &q), 0);
    assert_int_equal(sample_flame_update(before, recording, &q), 0);
    assert_int_equal(flame_diff_update(&trees, sample_flame_tree(now), sample_flame_tree(before)), 0);
    assert_true(is_near(flame_diff_now(&trees, find(sample_flame_tree(now), "load")), 100));
    assert_true(is_near(flame_diff_before(&trees, find(sample_flame_tree(now), "load")), 40));
    add(t, &time_s, FORWARD, 20, false);
    add(t, &time_s, SYNC, 10, false);
    assert_int_equal(sample_flame_update(now, t, &q), 0);
    assert_int_equal(flame_diff_update(&trees, sample_flame_tree(now), sample_flame_tree(before)), 0);
    assert_tree(&trees);
    compare_tables(&d, t, SAMPLE_STORE_ALL, recording, SAMPLE_STORE_ALL, false);
    assert_table(&d);
    size_t foreign = 0;
    for (size_t i = 0; i < d.n; i++)
        foreign += (d.rows[i].row.id & SAMPLE_STORE_DIFF_FOREIGN) != 0;
    assert_int_equal(foreign, 1); /* eval */
    sample_store_diff_fini(&d);
    flame_diff_fini(&trees);
    sample_flame_free(now);
    sample_flame_free(before);
    sample_store_free(t);
    sample_store_free(recording);
}

/* Where nothing was counted shares are unknown, not 0. */
static void test_nothing_to_compare_with(void **state) {
    struct sample_store *t = sample_store_new();
    struct sample_store_diff d = {0};
    double time_s = 1000;
    (void)state;
    add_now(t, &time_s);
    assert_int_equal(sample_store_set_span(t, SAMPLE_STORE_OTHER, 10, 20), 0);
    compare_tables(&d, t, SAMPLE_STORE_ALL, t, SAMPLE_STORE_OTHER, false);
    assert_int_equal(d.n, 5);
    for (size_t i = 0; i < d.n; i++)
        assert_true(isnan(d.rows[i].own_before) && isnan(d.rows[i].total_before) &&
                    !isnan(d.rows[i].own_pct));
    compare_tables(&d, t, SAMPLE_STORE_OTHER, t, SAMPLE_STORE_ALL, false);
    assert_int_equal(d.n, 5);
    for (size_t i = 0; i < d.n; i++)
        assert_true(isnan(d.rows[i].own_pct) && !isnan(d.rows[i].own_before));
    sample_store_diff_fini(&d);
    struct sample_flame *now = sample_flame_new(), *before = sample_flame_new();
    struct flame_diff trees = {0};
    assert_true(isnan(flame_diff_now(&trees, 0)) && isnan(flame_diff_before(&trees, 0)));
    struct flame_query q = {.window = SAMPLE_STORE_ALL, .time = FLAME_ON_CPU};
    assert_int_equal(sample_flame_update(now, t, &q), 0);
    q.window = SAMPLE_STORE_OTHER;
    assert_int_equal(sample_flame_update(before, t, &q), 0);
    assert_int_equal(flame_diff_update(&trees, sample_flame_tree(now), sample_flame_tree(before)), 0);
    assert_true(isnan(flame_diff_before(&trees, FLAME_ROOT)) &&
                is_near(flame_diff_now(&trees, FLAME_ROOT), 100));
    flame_diff_fini(&trees);
    sample_flame_free(now);
    sample_flame_free(before);
    sample_store_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_times_of_one_tally),
        cmocka_unit_test(test_two_tallies),
        cmocka_unit_test(test_nothing_to_compare_with),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
