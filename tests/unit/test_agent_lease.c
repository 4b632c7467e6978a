/* SPDX-License-Identifier: Apache-2.0 */
/* Leases end with their owners, with their time, and not before. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/server/lease.h"

#define S 1000000000ULL

static struct lease lease;
static struct err e;

static int clear(void **state) {
    (void)state;
    lease = (struct lease){.n = 0};
    return 0;
}

static void test_names(void **state) {
    (void)state;
    assert_int_equal(lease_find("trace", &e), LEASE_TRACE);
    assert_int_equal(lease_find("trce", &e), -1);
    assert_non_null(strstr(e.text, "did you mean trace?"));
    assert_int_equal(lease_find("", &e), -1);
    assert_string_equal(lease_name(LEASE_TRACE), "trace");
}

static void test_ends_with_its_owner(void **state) {
    const struct wire_arm want = {.compiled = true};
    const uint32_t both[] = {7, 9}, one[] = {9};
    (void)state;
    assert_int_equal(lease_arm(&lease, 7, &want, S, &e), 0);
    assert_int_equal(lease_arm(&lease, 9, &want, 2 * S, &e), 0);
    assert_int_equal(lease_arm(&lease, 7, &want, 3 * S, &e), 0);
    assert_true(lease.n == 2 && lease.since_ns == S && lease.compiled && lease.steps_left == -1);
    assert_true(lease_next_ns(&lease) == LEASE_FOREVER);
    lease_expire(&lease, 1000 * S, both, 2);
    assert_int_equal(lease.n, 2);
    lease_expire(&lease, 1000 * S, one, 1);
    assert_true(lease.n == 1 && lease.owners[0] == 9);
    assert_false(lease_disarm(&lease, 7));
    assert_true(lease_disarm(&lease, 9));
    assert_int_equal(lease.n, 0);
}

static void test_ends_with_its_time(void **state) {
    const struct wire_arm brief = {.limit_s = 2, .steps = 3}, longer = {.limit_s = 5};
    const uint32_t peers[] = {7, 8};
    (void)state;
    assert_int_equal(lease_arm(&lease, 7, &brief, S, &e), 0);
    assert_int_equal(lease_arm(&lease, 8, &longer, S, &e), 0);
    assert_true(lease_next_ns(&lease) == 3 * S && lease.steps_left == 3);
    lease_expire(&lease, 3 * S - 1, peers, 2);
    assert_int_equal(lease.n, 2);
    lease_expire(&lease, 3 * S, peers, 2);
    assert_true(lease.n == 1 && lease_next_ns(&lease) == 6 * S);
    assert_int_equal(lease_arm(&lease, 8, &longer, 4 * S, &e), 0); /* once more */
    assert_true(lease_next_ns(&lease) == 9 * S);
    lease_end(&lease);
    assert_true(lease.n == 0 && lease_next_ns(&lease) == LEASE_FOREVER);
}

/* That of the configuration has no client that could go. */
static void test_by_config(void **state) {
    const struct wire_arm want = {.limit_s = 0};
    (void)state;
    assert_int_equal(lease_arm(&lease, LEASE_BY_CONFIG, &want, S, &e), 0);
    lease_expire(&lease, 1000 * S, NULL, 0);
    assert_int_equal(lease.n, 1);
}

/* What is not said is as the kind has it. */
static void test_fits(void **state) {
    struct wire_arm trace = {.limit_s = 0}, nan = {.limit_s = 0}, said = {.limit_s = 3, .steps = 20},
                    much = {.steps = 21};
    (void)state;
    assert_int_equal(lease_find("nan", &e), LEASE_NAN);
    assert_int_equal(lease_fit(LEASE_TRACE, &trace, &e), 0);
    assert_true(trace.steps == 0 && trace.limit_s == 0);
    assert_int_equal(lease_fit(LEASE_NAN, &nan, &e), 0);
    assert_true(nan.steps == 2 && nan.limit_s == 600);
    assert_int_equal(lease_fit(LEASE_NAN, &said, &e), 0);
    assert_true(said.steps == 20 && said.limit_s == 3);
    assert_int_equal(lease_fit(LEASE_NAN, &much, &e), -1);
    assert_non_null(strstr(e.text, "up to 20 steps, not 21"));
    assert_int_equal(lease_fit(LEASE_TRACE, &much, &e), 0);
}

static void test_refusals(void **state) {
    struct wire_arm want = {.limit_s = -1};
    (void)state;
    assert_int_equal(lease_arm(&lease, 1, &want, S, &e), -1);
    want.limit_s = NAN;
    assert_int_equal(lease_arm(&lease, 1, &want, S, &e), -1);
    want = (struct wire_arm){.steps = -4};
    assert_int_equal(lease_arm(&lease, 1, &want, S, &e), -1);
    want.steps = 0;
    for (uint32_t i = 1; i <= LEASE_OWNERS; i++)
        assert_int_equal(lease_arm(&lease, i, &want, S, &e), 0);
    assert_int_equal(lease_arm(&lease, LEASE_OWNERS + 1, &want, S, &e), -1);
    assert_int_equal(lease_arm(&lease, 1, &want, S, &e), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test_setup(test_ends_with_its_owner, clear),
        cmocka_unit_test_setup(test_ends_with_its_time, clear),
        cmocka_unit_test_setup(test_by_config, clear),
        cmocka_unit_test_setup(test_fits, clear),
        cmocka_unit_test_setup(test_refusals, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
