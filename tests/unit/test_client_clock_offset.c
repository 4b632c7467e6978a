/* SPDX-License-Identifier: Apache-2.0 */
/* The offset of another clock, from answers that take a while, each way as long as it happens to. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "client/fleet/clock_offset.h"

static double uniform(void) { return rand() / (double)RAND_MAX; }

/* It is within its error of the truth, and near it, however late single answers are. */
static void the_offset_is_found(void **state) {
    (void)state;
    for (unsigned seed = 0; seed < 1000; seed++) {
        struct clock_offset c = {.n = 0};
        double ahead, error, truth = (uniform() - 0.5) * 7, now = 1e9;
        srand(seed);
        for (int i = 0; i < 1 + (int)seed % 20; i++) {
            double there = 0.0002 + 0.001 * uniform() + (rand() % 3 ? 0.2 * uniform() : 0);
            double back = 0.0002 + 0.001 * uniform() + (rand() % 3 ? 0 : 0.2 * uniform());
            assert_false(clock_offset_add(&c, now, now + there + truth, now + there + back, there + back));
            now += 10;
        }
        assert_true(clock_offset_get(&c, &ahead, &error));
        assert_true(fabs(ahead - truth * 1e3) <= error + 1e-3 && error > 0 && error < 202);
    }
}

static void what_cannot_be_is_passed_over(void **state) {
    (void)state;
    struct clock_offset c = {.n = 0};
    double ahead, error;
    assert_false(clock_offset_get(&c, &ahead, &error));
    assert_true(isnan(ahead) && isnan(error));
    clock_offset_add(&c, 1, NAN, 2, 1);
    clock_offset_add(&c, 1, INFINITY, 2, 1);
    clock_offset_add(&c, 1, 5, 2, -1);
    clock_offset_add(&c, 1, 5, 2, NAN);
    assert_false(clock_offset_get(&c, &ahead, &error));
    /* older answers count no longer, however fast they were */
    clock_offset_add(&c, 0, 3.04, 0, 0);
    for (int i = 0; i < CLOCK_OFFSET_KEPT; i++)
        clock_offset_add(&c, 0, 3.05, 0.1, 0.1);
    assert_true(clock_offset_get(&c, &ahead, &error));
    assert_true(fabs(ahead - 3000) < 1e-6 && fabs(error - 50) < 1e-6);
}

/* A clock that was set, forward or back, by little or much, shows at the next answer. */
static void a_clock_that_was_set_is_noticed(void **state) {
    (void)state;
    static const double steps[] = {0.02, -0.02, 0.7, -0.7, 3, -3, 86400};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct clock_offset c = {.n = 0};
        double ahead, error, now = 1.7e9;
        for (int k = 0; k < 20; k++, now += 10)
            assert_false(clock_offset_add(&c, now, now + 0.0004 + 1, now + 0.001, 0.001));
        assert_true(clock_offset_add(&c, now, now + 0.002 + 1 + steps[i], now + 0.008, 0.008));
        assert_true(clock_offset_get(&c, &ahead, &error));
        assert_true(fabs(ahead - (1 + steps[i]) * 1e3) <= error + 1e-3 && fabs(error - 4) < 1e-3);
    }
}

/* A clock that runs apart from ours, or that NTP turns, is followed, and was not set. */
static void a_clock_that_runs_apart_is_followed(void **state) {
    (void)state;
    static const double runs[] = {50e-6, 500e-6, -500e-6};
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        struct clock_offset c = {.n = 0};
        double ahead, error, now = 1.7e9, truth = 1;
        for (int k = 0; k < 200; k++, now += 10, truth += 10 * runs[i]) {
            assert_false(clock_offset_add(&c, now, now + 0.0001 + truth, now + 0.0002, 0.0002));
            assert_true(clock_offset_get(&c, &ahead, &error));
            assert_true(fabs(ahead - truth * 1e3) < 1);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_offset_is_found),
        cmocka_unit_test(what_cannot_be_is_passed_over),
        cmocka_unit_test(a_clock_that_was_set_is_noticed),
        cmocka_unit_test(a_clock_that_runs_apart_is_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
