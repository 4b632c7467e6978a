/* SPDX-License-Identifier: Apache-2.0 */
/* What a look costs is what it was made to cost; what is not known is not told, and dear looks are spread. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/torch/trace_cost.h"

#define MS 1e6

static struct trace_cost cost;

static int clear(void **state) {
    (void)state;
    cost = (struct trace_cost){.n = 0};
    return 0;
}

static struct trace_cost_step a_look(double more_ms) {
    return (struct trace_cost_step){.step_ns = (40 + more_ms) * MS,
                                    .usual_ns = 40 * MS,
                                    .own_ns = 0.2 * MS,
                                    .hold_ns = 0.4 * MS,
                                    .within = 100,
                                    .outside = 0};
}

static void add(size_t n, double more_ms) {
    const struct trace_cost_step l = a_look(more_ms);
    for (size_t i = 0; i < n; i++)
        trace_cost_add(&cost, &l);
}

static void test_median(void **state) {
    double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2};
    (void)state;
    assert_true(trace_cost_median(odd, 3) == 2 && trace_cost_median(even, 4) == 2.5);
    assert_true(isnan(trace_cost_median(odd, 0)));
}

static void test_is_not_known_at_once(void **state) {
    (void)state;
    assert_true(isnan(trace_cost_ns(&cost)) && isnan(trace_cost_pct(&cost, 1000 * MS)));
    assert_true(trace_cost_every_ns(&cost, 40 * MS, 5) == 800 * MS);
    add(2, 0.6);
    assert_true(isnan(trace_cost_ns(&cost)) && isnan(trace_cost_pct(&cost, 1000 * MS)));
    add(1, 0.6); /* what was measured directly: 0.2 in hooks, 0.08 for their 100 calls, 0.4 of the GIL */
    assert_true(fabs(trace_cost_ns(&cost) - 0.68 * MS) < 1);
    assert_true(fabs(trace_cost_pct(&cost, 1000 * MS) - 0.204) < 1e-6);
    add(5, 0.6);
    assert_true(fabs(trace_cost_ns(&cost) - MS) < 1);
}

/* Steps of which one in four takes twice as long, with a look or without. */
static void test_odd_steps_do_not_count(void **state) {
    (void)state;
    for (size_t i = 0; i < 1000; i++)
        add(1, i % 8 == 0 ? 40.6 : i % 8 == 4 ? -39.4 : 0.6);
    assert_true(fabs(trace_cost_ns(&cost) - MS) < 1);
    assert_true(fabs(trace_cost_pct(&cost, 1000 * 800 * MS) - 0.125) < 1e-6);
}

/* A difference that noise has made is never less than what hooks are known to have taken. */
static void test_is_at_least_what_hooks_took(void **state) {
    (void)state;
    add(10, -3);
    assert_true(fabs(trace_cost_ns(&cost) - 0.68 * MS) < 1);
}

/* Of steps that vary a little the difference is believed; of those that vary by far more it is not. */
static void test_noise_is_no_cost(void **state) {
    (void)state;
    for (size_t i = 0; i < 40; i++)
        add(1, i % 2 ? 0.7 : 0.5);
    assert_true(fabs(trace_cost_ns(&cost) - MS) < 1);
    clear(NULL);
    for (size_t i = 0; i < 9; i++)
        add(1, i % 2 ? 30 : 1 - 10 * (double)i);
    assert_true(fabs(trace_cost_ns(&cost) - 0.68 * MS) < 1);
}

/* A step longer by 0.6 ms, 0.2 of which in hooks, of 100 calls: 4 us for a call beside them; 50 such calls before and after. */
static void test_hooks_that_wait_cost_too(void **state) {
    struct trace_cost_step l = a_look(0.6);
    (void)state;
    l.outside = 50;
    for (size_t i = 0; i < 10; i++)
        trace_cost_add(&cost, &l);
    assert_true(fabs(trace_cost_ns(&cost) - 1.2 * MS) < 1);
    clear(NULL);
    l = a_look(-1);
    l.outside = 100;
    for (size_t i = 0; i < 10; i++)
        trace_cost_add(&cost, &l);
    assert_true(fabs(trace_cost_ns(&cost) - 0.76 * MS) < 1);
}

static void test_what_came_to_nothing_costs_too(void **state) {
    (void)state;
    add(8, 0.6);
    trace_cost_add_gil(&cost, 2 * MS);
    assert_true(fabs(trace_cost_pct(&cost, 1000 * MS) - 1) < 1e-6);
}

static void test_dear_looks_are_spread(void **state) {
    (void)state;
    add(8, 0.6); /* 1 ms each: every 200 ms at most */
    assert_true(trace_cost_every_ns(&cost, 40 * MS, 5) == 800 * MS);
    assert_true(fabs(trace_cost_every_ns(&cost, 2 * MS, 5) - 200 * MS) < 1);
    assert_true(fabs(trace_cost_every_ns(&cost, 40 * MS, 100) - 200 * MS) < 1);
    clear(NULL);
    add(3, NAN); /* nothing to compare with: what was measured, and as much again */
    assert_true(isnan(trace_cost_ns(&cost)));
    assert_true(fabs(trace_cost_every_ns(&cost, 2 * MS, 5) - 240 * MS) < 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_median, clear),
        cmocka_unit_test_setup(test_is_not_known_at_once, clear),
        cmocka_unit_test_setup(test_odd_steps_do_not_count, clear),
        cmocka_unit_test_setup(test_is_at_least_what_hooks_took, clear),
        cmocka_unit_test_setup(test_noise_is_no_cost, clear),
        cmocka_unit_test_setup(test_hooks_that_wait_cost_too, clear),
        cmocka_unit_test_setup(test_what_came_to_nothing_costs_too, clear),
        cmocka_unit_test_setup(test_dear_looks_are_spread, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
