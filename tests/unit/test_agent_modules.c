/* SPDX-License-Identifier: Apache-2.0 */
/* Times of modules out of made-up calls whose times are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/torch/module_calls.h"

enum { ROOT = 1, FIRST, SECOND, THIRD };

static struct module_calls calls;
static struct module_sum sums[8];

static void assert_sum(size_t i, uint64_t module, uint32_t n, uint64_t forward, uint64_t backward,
                       int64_t bytes) {
    assert_int_equal(sums[i].module, module);
    assert_int_equal(sums[i].calls, n);
    assert_int_equal(sums[i].forward_ns, forward);
    assert_int_equal(sums[i].backward_ns, backward);
    assert_int_equal(sums[i].bytes, bytes);
}

static int clear(void **state) {
    (void)state;
    module_calls_clear(&calls);
    return 0;
}

static int32_t one(uint64_t module, uint64_t from, uint64_t to, int64_t bytes) {
    int32_t call = module_calls_begin(&calls, module, 9, from);
    assert_int_equal(module_calls_end(&calls, module, to), call);
    calls.calls[call].bytes = bytes;
    return call;
}

/* A chain of three within a root: each backward ends where the next begins, the first's with the pass. */
static void test_chain(void **state) {
    (void)state;
    int32_t root = module_calls_begin(&calls, ROOT, 9, 100);
    int32_t first = one(FIRST, 110, 150, 4), second = one(SECOND, 160, 200, 8),
            third = one(THIRD, 210, 260, 2);
    assert_int_equal(module_calls_end(&calls, ROOT, 300), root);
    calls.calls[root].bytes = 2;
    module_calls_back_begin(&calls, root, 400);
    module_calls_back_begin(&calls, third, 400);
    module_calls_back_begin(&calls, second, 450);
    module_calls_back_end(&calls, third, 450);
    module_calls_back_begin(&calls, first, 500);
    module_calls_back_end(&calls, second, 500);
    module_calls_pass(&calls, 600);
    assert_true(module_calls_finish(&calls));
    assert_int_equal(module_calls_sum(&calls, sums, 8), 4);
    assert_sum(0, ROOT, 1, 200, 200, 2);
    assert_sum(1, FIRST, 1, 40, 100, 4);
    assert_sum(2, SECOND, 1, 40, 50, 8);
    assert_sum(3, THIRD, 1, 50, 50, 2);
}

/* Siblings that share an input: its gradient is there when all of them are through, but each had its own time. */
static void test_shared_input(void **state) {
    (void)state;
    int32_t first = one(FIRST, 10, 20, 1), second = one(SECOND, 20, 30, 1), third = one(THIRD, 30, 40, 1);
    module_calls_back_begin(&calls, third, 100);
    module_calls_back_begin(&calls, second, 110);
    module_calls_back_begin(&calls, first, 130);
    module_calls_back_end(&calls, third, 160);
    module_calls_back_end(&calls, second, 160);
    module_calls_back_end(&calls, first, 160);
    assert_true(module_calls_finish(&calls));
    assert_int_equal(module_calls_sum(&calls, sums, 8), 3);
    assert_sum(0, FIRST, 1, 10, 30, 1);
    assert_sum(1, SECOND, 1, 10, 20, 1);
    assert_sum(2, THIRD, 1, 10, 10, 1);
}

/* Two passes, as of gradients that are accumulated: what ends with the first does not reach into the second. */
static void test_two_passes(void **state) {
    (void)state;
    for (uint64_t at = 0; at < 2000; at += 1000) {
        int32_t call = one(FIRST, at + 10, at + 30, 1);
        module_calls_back_begin(&calls, call, at + 100);
        module_calls_pass(&calls, at + 150);
    }
    assert_true(module_calls_finish(&calls));
    assert_int_equal(module_calls_sum(&calls, sums, 8), 1);
    assert_sum(0, FIRST, 2, 40, 100, 2);
}

/* What telling took is nobody's; a module that is called twice has both times. */
static void test_own_time_and_two_calls(void **state) {
    (void)state;
    int32_t root = module_calls_begin(&calls, ROOT, 9, 0);
    (void)root;
    module_calls_own(&calls, 3);
    (void)one(FIRST, 10, 20, 5);
    module_calls_own(&calls, 4);
    (void)one(FIRST, 30, 50, 5);
    assert_int_equal(module_calls_end(&calls, ROOT, 100), 0);
    assert_int_equal(module_calls_sum(&calls, sums, 8), 2);
    assert_sum(0, ROOT, 1, 93, 0, -1);
    assert_sum(1, FIRST, 2, 30, 0, 10);
    assert_int_equal(sums[1].backwards, 0);
}

/* Left by an exception: nothing is said of those that did not return. Ends of nothing are nothing. */
static void test_exceptions(void **state) {
    (void)state;
    (void)module_calls_begin(&calls, ROOT, 9, 0);
    (void)module_calls_begin(&calls, FIRST, 9, 10);
    (void)module_calls_begin(&calls, SECOND, 9, 20);
    assert_int_equal(module_calls_end(&calls, THIRD, 30), -1);
    assert_int_equal(module_calls_end(&calls, ROOT, 50), 0);
    assert_int_equal(calls.depth, 0);
    assert_int_equal(module_calls_end(&calls, FIRST, 60), -1);
    module_calls_back_begin(&calls, -1, 70);
    module_calls_back_end(&calls, 99, 70);
    module_calls_pass(&calls, 80);
    assert_true(module_calls_finish(&calls));
    assert_int_equal(module_calls_sum(&calls, sums, 8), 3);
    assert_sum(0, ROOT, 1, 50, 0, -1);
    assert_sum(1, FIRST, 0, 0, 0, -1);
}

/* More than there is room for, in number and in depth. */
static void test_many(void **state) {
    (void)state;
    for (uint64_t i = 0; i < MODULE_CALLS_DEPTH + 10; i++)
        assert_true((module_calls_begin(&calls, 100 + i, 9, i) >= 0) == (i < MODULE_CALLS_DEPTH));
    assert_int_equal(calls.lost, 10);
    module_calls_clear(&calls);
    for (uint64_t i = 0; i < MODULE_CALLS_MAX + 5; i++) {
        (void)module_calls_begin(&calls, 1 + i % 4, 9, 10 * i);
        (void)module_calls_end(&calls, 1 + i % 4, 10 * i + 5);
    }
    assert_int_equal(calls.lost, 5);
    assert_int_equal(module_calls_sum(&calls, sums, 2), 2);
    assert_sum(0, 1, MODULE_CALLS_MAX / 4, 5 * MODULE_CALLS_MAX / 4, 0, -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_chain, clear),
        cmocka_unit_test_setup(test_shared_input, clear),
        cmocka_unit_test_setup(test_two_passes, clear),
        cmocka_unit_test_setup(test_own_time_and_two_calls, clear),
        cmocka_unit_test_setup(test_exceptions, clear),
        cmocka_unit_test_setup(test_many, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
