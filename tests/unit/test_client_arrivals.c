/* SPDX-License-Identifier: Apache-2.0 */
/* Who came last to collectives of made-up jobs, in which it is known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/sql/arrivals.h"

#define MOST 40000

static struct arrival rows[MOST];
static int64_t truth[MOST]; /* the rank that came last; -1: cannot be known */
static size_t n;

static double between(double least, double most) { return least + (most - least) * rand() / RAND_MAX; }

static void add(uint32_t rank, uint32_t op, double begin, double end, int64_t last) {
    assert_true(n < MOST);
    rows[n] = (struct arrival){.rank = rank, .op = op, .begin = begin, .end = end, .last = 7};
    truth[n++] = last;
}

static void shuffle(void) {
    for (size_t i = n; i > 1; i--) {
        size_t k = (size_t)rand() % i;
        struct arrival row = rows[i - 1];
        int64_t last = truth[i - 1];
        rows[i - 1] = rows[k];
        truth[i - 1] = truth[k];
        rows[k] = row;
        truth[k] = last;
    }
}

static void check(uint32_t ranks) {
    shuffle();
    assert_int_equal(arrivals_match(rows, n, ranks), 0);
    for (size_t i = 0; i < n; i++) {
        assert_true((rows[i].last >= 0) == (truth[i] >= 0));
        if (truth[i] >= 0)
            assert_int_equal(rows[rows[i].last].rank, truth[i]);
    }
}

/* Ranks compute for a while, each as long as it happens to; `together` collectives run at a time. They are let go within `jitter` of each
 * other. */
static void simulate(uint32_t ranks, int steps, int together, double jitter) {
    double at[64] = {0};
    n = 0;
    for (int step = 0; step < steps; step++) {
        for (int k = 0; k < together; k++) {
            double begins[64], last = 0;
            uint32_t who = 0;
            for (uint32_t r = 0; r < ranks; r++) {
                begins[r] = k == 0 ? at[r] + between(3 * jitter, rand() % 7 ? 0.01 : 0.3)
                                   : at[r] + between(1e-6, 2e-6);
                at[r] = begins[r];
                if (begins[r] > last) {
                    last = begins[r];
                    who = r;
                }
            }
            /* later ones of those that run together end later */
            double over = last + between(1e-5, 1e-4) + k * 4 * jitter;
            for (uint32_t r = 0; r < ranks; r++)
                add(r, (uint32_t)(step % 3), begins[r], over + between(0, jitter), who);
        }
        double latest = 0;
        for (uint32_t r = 0; r < ranks; r++)
            latest = fmax(latest, at[r]);
        for (uint32_t r = 0; r < ranks; r++)
            at[r] = latest + 1e-4 + (together + 1) * 4 * jitter;
    }
}

static void the_last_is_found(void **state) {
    static const uint32_t worlds[] = {2, 3, 8, 64};
    (void)state;
    for (unsigned seed = 0; seed < 40; seed++) {
        srand(seed);
        simulate(worlds[seed % 4], 80, 1 + (int)seed / 4 % 3, seed % 2 ? 0.002 : 0.0001);
        check(worlds[seed % 4]);
    }
}

static void collectives_that_a_rank_lacks_are_unknown(void **state) {
    (void)state;
    srand(3);
    simulate(4, 60, 1, 0.0005);
    /* rank 2 was attached to later */
    double since = 0;
    for (size_t i = 0; i < n; i++)
        since = i == n / 2 ? rows[i].end : since;
    for (size_t i = 0; i < n; i++)
        if (rows[i].end < since - 0.1)
            truth[i] = -1;
        else if (rows[i].end < since + 0.2)
            truth[i] = -2;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (truth[i] != -2 && !(truth[i] == -1 && rows[i].rank == 2)) {
            rows[kept] = rows[i];
            truth[kept++] = truth[i];
        }
    n = kept;
    check(4);
}

/* The root of a broadcast does not wait: it may be over before the others begin. */
static void operations_that_do_not_wait_are_unknown(void **state) {
    (void)state;
    n = 0;
    for (int i = 0; i < 50; i++) {
        add(0, 1, i, i + 0.01, -1);
        add(1, 1, i + 0.2, i + 0.21, -1);
    }
    check(2);
    n = 0;
    for (int i = 0; i < 50; i++) {
        add(0, 1, i, i + 0.3, 1);
        add(1, 1, i + 0.2, i + 0.3, 1);
        add(0, 2, i, i + 0.3, -1); /* another operation */
    }
    check(2);
}

static void odd_times(void **state) {
    static const double odd[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300, 0, 1, 1.5, 2};
    (void)state;
    for (unsigned seed = 0; seed < 50; seed++) {
        srand(seed);
        n = 0;
        for (int i = 0; i < 2000; i++)
            add((uint32_t)rand() % 5, (uint32_t)rand() % 3, odd[rand() % 9], odd[rand() % 9], -1);
        assert_int_equal(arrivals_match(rows, n, 4), 0);
        for (size_t i = 0; i < n; i++) {
            assert_true(rows[i].last >= -1 && rows[i].last < (int64_t)n);
            if (rows[i].last >= 0) {
                const struct arrival *last = &rows[rows[i].last];
                assert_true(last->begin >= rows[i].begin && last->op == rows[i].op &&
                            last->begin <= rows[i].end);
            }
        }
    }
    assert_int_equal(arrivals_match(rows, n, 1), 0);
    assert_int_equal(arrivals_match(rows, 0, 4), 0);
    assert_int_equal(rows[0].last, -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_is_found),
        cmocka_unit_test(collectives_that_a_rank_lacks_are_unknown),
        cmocka_unit_test(operations_that_do_not_wait_are_unknown),
        cmocka_unit_test(odd_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
