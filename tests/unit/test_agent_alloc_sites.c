/* SPDX-License-Identifier: Apache-2.0 */
/* Sampled allocations are added up to what was allocated, by site, and come down again. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/alloc/alloc_sites.h"
#include "base/cost.h"

#define MEAN 65536

static struct alloc_sites sites;

static int begin(void **state) {
    (void)state;
    return alloc_sites_init(&sites, 1024);
}

static int end(void **state) {
    (void)state;
    alloc_sites_fini(&sites);
    return 0;
}

static void add(uint32_t stack, uint64_t size, uint32_t entry, uint64_t serial) {
    alloc_sites_add(&sites, stack, 0, (struct alloc_sites_size){.size = size, .mean = MEAN}, entry, serial);
}

static void test_weights(void **state) {
    static const uint64_t sizes[] = {1, 16, 4096, MEAN, 10 * MEAN, (uint64_t)1 << 40};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        double chance = -expm1(-(double)sizes[i] / MEAN);
        double weight = alloc_sites_weight((struct alloc_sites_size){.size = sizes[i], .mean = MEAN});
        assert_true(fabs(weight * chance - 1) < 1e-6);
    }
    assert_true(alloc_sites_weight((struct alloc_sites_size){.size = 0, .mean = MEAN}) == 0);
}

/* As threads draw them: the sums are what was allocated, for small blocks and for large ones. */
static void test_without_bias(void **state) {
    static const uint64_t sizes[] = {48, 5000, 200000, 3 * MEAN};
    struct cost_pace pace;
    (void)state;
    cost_pace_init(&pace, 7);
    for (uint32_t k = 0; k < 4; k++) {
        uint64_t all = 0, calls = 0;
        int64_t left = (int64_t)cost_pace_next_ns(&pace, MEAN);
        while (all < (uint64_t)4000 * MEAN) {
            all += sizes[k];
            calls++;
            left -= (int64_t)sizes[k];
            if (left >= 0)
                continue;
            add(k + 1, sizes[k], UINT32_MAX, 1);
            left = (int64_t)cost_pace_next_ns(&pace, MEAN);
        }
        const struct alloc_site *site = &sites.sites[k];
        /* 4000 samples or less: a standard deviation of 1.6 % */
        assert_true(fabs(site->allocated / (double)all - 1) < 0.08);
        assert_true(fabs(site->calls / (double)calls - 1) < 0.08);
        assert_true(site->unfollowed == site->allocated);
    }
}

static void test_frees(void **state) {
    (void)state;
    add(1, 10 * MEAN, 5, 100);
    add(1, 10 * MEAN, 6, 101);
    assert_false(alloc_sites_free(&sites, 5, 99)); /* another one, that is still on its way */
    assert_true(alloc_sites_free(&sites, 5, 100));
    assert_false(alloc_sites_free(&sites, 5, 100));
    assert_false(alloc_sites_free(&sites, 4096, 100));
    const struct alloc_site *site = &sites.sites[0];
    assert_true(fabs(site->allocated - 2 * site->freed) < 1 && fabs(site->live - site->freed) < 1);
    alloc_sites_settle(&sites, 0);
    assert_true(fabs(site->allocated) <= 0.5 && fabs(site->freed) <= 0.5 && site->live > 0 && !site->changed);
    assert_true(alloc_sites_free(&sites, 6, 101));
    assert_true(fabs(site->live) < 1 && site->changed);
}

/* Rounded rows add up: what was freed is as much as what was allocated. */
static void test_rows_of_whole_numbers_add_up(void **state) {
    long long allocated = 0, freed = 0;
    (void)state;
    for (uint32_t i = 0; i < 999; i++) {
        add(1, 1000 + 977 * i % 60000, i % 3, 100 + i);
        for (uint32_t k = 0; i % 3 == 2 && k < 3; k++)
            assert_true(alloc_sites_free(&sites, k, 98 + i + k));
        allocated += llround(sites.sites[0].allocated);
        freed += llround(sites.sites[0].freed);
        alloc_sites_settle(&sites, 0);
    }
    assert_in_range(allocated - freed + 1, 0, 2);
}

static void test_largest_first(void **state) {
    uint32_t list[3];
    (void)state;
    for (uint32_t i = 1; i <= 10; i++)
        add(i, (uint64_t)100 * MEAN * (i % 7 + 1), UINT32_MAX, i);
    assert_int_equal(alloc_sites_changed(&sites, list, 3), 3);
    assert_int_equal(sites.sites[list[0]].stack, 6);
    assert_int_equal(sites.sites[list[1]].stack, 5);
    assert_int_equal(sites.sites[list[2]].stack, 4);
    for (size_t i = 0; i < 3; i++)
        alloc_sites_settle(&sites, list[i]);
    assert_int_equal(alloc_sites_changed(&sites, list, 3), 3);
    assert_true(sites.sites[list[0]].stack == 3 || sites.sites[list[0]].stack == 10);
}

/* What has no room has a site all the same: that of unknown stacks. */
static void test_too_many(void **state) {
    double all = 0;
    (void)state;
    for (uint32_t i = 1; i <= ALLOC_SITES_MAX + 1000; i++)
        add(i, 100 * MEAN, i % 1024, i);
    assert_true(sites.n <= ALLOC_SITES_MAX && sites.homeless > 0);
    for (size_t i = 0; i < sites.n; i++)
        all += sites.sites[i].allocated;
    assert_true(fabs(all / ((ALLOC_SITES_MAX + 1000) * 100.0 * MEAN) - 1) < 1e-9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_weights, begin, end),
        cmocka_unit_test_setup_teardown(test_without_bias, begin, end),
        cmocka_unit_test_setup_teardown(test_frees, begin, end),
        cmocka_unit_test_setup_teardown(test_rows_of_whole_numbers_add_up, begin, end),
        cmocka_unit_test_setup_teardown(test_largest_first, begin, end),
        cmocka_unit_test_setup_teardown(test_too_many, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
