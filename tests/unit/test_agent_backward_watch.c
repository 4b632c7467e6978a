/* SPDX-License-Identifier: Apache-2.0 */
/* Backward passes are watched while it is cheap, while somebody wants them, and otherwise for a twentieth of the time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/torch/backward_watch.h"

#define MS 1000000ULL
#define S (1000 * MS)

static struct backward_watch watch;
static struct backward_watch_now now;

/* A job of steps of `step_ms` with `nodes` each, for so many seconds; looked at four times a second. Returns the share of that
 * time in which its passes are watched. */
static double run(double seconds, double step_ms, double nodes, bool wanted) {
    double on = 0, of = 0, left = 0;
    now.wanted = wanted;
    for (; of < seconds; of += 0.25) {
        now.now_ns += S / 4;
        if (watch.on) {
            left += nodes * 250 / step_ms;
            now.nodes += (uint64_t)left;
            left -= (double)(uint64_t)left;
        }
        now.whole = watch.on && now.now_ns - watch.begin_ns >= (uint64_t)(2 * step_ms * MS);
        bool due = backward_watch_is_due(&watch, &now);
        if (due != watch.on)
            backward_watch_turn(&watch, due, &now);
        on += watch.on ? 0.25 : 0;
    }
    return on / of;
}

static int begin(void **state) {
    (void)state;
    memset(&watch, 0, sizeof watch);
    now = (struct backward_watch_now){.now_ns = S};
    return 0;
}

/* Nodes of a step of 100 ms that cost this share of it. */
static double nodes_of(double share) { return share * 100 * MS / BACKWARD_WATCH_NODE_NS; }

static void test_always_if_it_is_cheap(void **state) {
    (void)state;
    assert_true(run(600, 100, nodes_of(0.9 * BACKWARD_WATCH_BUDGET), false) > 0.999);
    double share = (double)watch.cost_ns / (double)watch.judged_ns;
    assert_true(share > 0.85 * BACKWARD_WATCH_BUDGET && share < 0.95 * BACKWARD_WATCH_BUDGET);
}

static void test_now_and_then_if_it_is_not(void **state) {
    (void)state;
    double share = run(3600, 100, nodes_of(1.2 * BACKWARD_WATCH_BUDGET), false);
    assert_true(share > 0.02 && share < 0.3);
    begin(NULL);
    share = run(3600, 10000, nodes_of(1.2 * BACKWARD_WATCH_BUDGET) * 100, false); /* steps of 10 s */
    assert_true(share > 0.02 && share < 0.1);
}

static void test_while_it_is_wanted(void **state) {
    (void)state;
    double nodes = nodes_of(20 * BACKWARD_WATCH_BUDGET);
    run(60, 100, nodes, false);
    assert_true(run(600, 100, nodes, true) > 0.999);
    run(3, 100, nodes, false);
    assert_false(watch.on);                         /* and not a moment longer than it takes to judge it */
    assert_true(run(600, 100, nodes, false) < 0.3); /* however long it was wanted, it is due again soon */
    assert_true(watch.due_ns <= now.now_ns + 100 * S);
}

/* A job becomes expensive, and cheap again. */
static void test_it_is_judged_again(void **state) {
    (void)state;
    run(60, 100, nodes_of(0.1 * BACKWARD_WATCH_BUDGET), false);
    assert_true(watch.on);
    run(3, 100, nodes_of(10 * BACKWARD_WATCH_BUDGET), false);
    assert_false(watch.on);
    run(120, 100, nodes_of(0.1 * BACKWARD_WATCH_BUDGET), false);
    assert_true(watch.on);
}

/* Nodes of Python wait for the GIL to be reported: that is a cost, too. */
static void test_waiting_costs(void **state) {
    (void)state;
    run(2, 100, 3, false);
    assert_true(watch.on);
    now.wait_ns += 5 * MS;
    run(2, 100, 3, false);
    assert_false(watch.on);
}

/* Nothing is divided by no time, and a clock that stands still judges nothing. */
static void test_no_time(void **state) {
    (void)state;
    assert_true(backward_watch_is_due(&watch, &now));
    backward_watch_turn(&watch, true, &now);
    now.whole = true;
    now.nodes = 1000;
    assert_true(backward_watch_is_due(&watch, &now));
    assert_int_equal(watch.judged_ns, 0);
    now.now_ns += 1;
    assert_false(backward_watch_is_due(&watch, &now));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_always_if_it_is_cheap, begin),
        cmocka_unit_test_setup(test_now_and_then_if_it_is_not, begin),
        cmocka_unit_test_setup(test_while_it_is_wanted, begin),
        cmocka_unit_test_setup(test_it_is_judged_again, begin),
        cmocka_unit_test_setup(test_waiting_costs, begin),
        cmocka_unit_test_setup(test_no_time, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
