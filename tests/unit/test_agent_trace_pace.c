/* SPDX-License-Identifier: Apache-2.0 */
/*
 * look_pace: looks take no more than their share of the time, whatever a step and a look take, and no optimizer is left out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/torch/trace_pace.h"

/* `n` steps of `step_ns` each, with looks of `look_ns`: how many were taken, of each of two optimizers that take turns. */
static void run(struct trace_pace *p, uint64_t *now_ns, unsigned n, uint64_t step_ns, uint64_t look_ns,
                unsigned taken[2]) {
    taken[0] = taken[1] = 0;
    for (unsigned i = 0; i < n; i++) {
        *now_ns += step_ns;
        if (!trace_pace_is_due(p, *now_ns))
            continue;
        taken[i % 2]++;
        trace_pace_took(p, trace_pace_is_measured(p) ? look_ns : 0);
    }
}

static void no_more_than_their_share(void **state) {
    struct trace_pace p;
    uint64_t now = 1;
    unsigned taken[2];
    (void)state;
    trace_pace_begin(&p, 0.0007);
    run(&p, &now, 2000, 42000000, 60000, taken); /* 29.4 us a step: not quite each second */
    unsigned n = taken[0] + taken[1];
    assert_in_range(n, 900, 1000 + TRACE_PACE_FIRST);
    assert_in_range(taken[0], n / 3, n - n / 3); /* neither of the two is left out */
    run(&p, &now, 100000, 2000000, 60000, taken);
    n = taken[0] + taken[1];
    assert_in_range(n, 2100, 2340); /* 1.4 us a step: one of 43 */
    assert_in_range(taken[0], n / 3, n - n / 3);
    run(&p, &now, 1000, 200000000, 60000, taken); /* 140 us a step: each */
    assert_int_equal(taken[0] + taken[1], 1000);
}

/* A look that becomes dearer is taken less often; one that something else has held up does not end them. */
static void what_one_costs_is_followed(void **state) {
    struct trace_pace p;
    uint64_t now = 1;
    unsigned taken[2];
    (void)state;
    trace_pace_begin(&p, 0.001);
    run(&p, &now, 1000, 10000000, 5000, taken);
    assert_in_range(taken[0] + taken[1], 990, 1000); /* but for what the first were given on credit */
    run(&p, &now, 20000, 10000000, 100000, taken);
    assert_in_range(taken[0] + taken[1], 1900, 2100);
    trace_pace_took(&p, 10000000000ULL); /* 10 s */
    run(&p, &now, 20000, 10000000, 100000, taken);
    assert_in_range(taken[0] + taken[1], 1500, 2100);
}

static void the_first_and_all(void **state) {
    struct trace_pace p;
    uint64_t now = 1;
    unsigned taken[2];
    (void)state;
    trace_pace_begin(&p, 0);
    run(&p, &now, 1000, 1000000, 100000, taken);
    assert_int_equal(taken[0] + taken[1], TRACE_PACE_FIRST); /* then there is no time for any */
    trace_pace_begin(&p, 1);
    run(&p, &now, 1000, 1000, 100000, taken);
    assert_int_equal(taken[0] + taken[1], 1000);
    p.share = 0.001;
    run(&p, &now, 2000, 1000000, 100000, taken); /* what was spent before is forgiven */
    assert_in_range(taken[0] + taken[1], 8, 30);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_more_than_their_share),
        cmocka_unit_test(what_one_costs_is_followed),
        cmocka_unit_test(the_first_and_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
