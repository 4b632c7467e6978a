/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standstill: when threads are looked at that stand still, and what is written of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/tables/standstill.h"
#include "base/clock.h"
#include "store/ring/ring_tables.h"

#define THREADS 3
#define S CLOCK_NS_PER_S

struct written {
    size_t n;
    int64_t tids[8];
    double waits_s[8];
    int64_t holder[8];
};

static void put(void *arg, const union ring_value *row) {
    struct written *w = arg;
    assert_true(w->n < 8);
    w->tids[w->n] = row[RING_WAITS_TID].i;
    w->waits_s[w->n] = row[RING_WAITS_WAITS_S].f;
    w->holder[w->n++] = row[RING_WAITS_HOLDER].i;
}

/* Threads 11 to 13 with these clocks. */
static void take(struct standstill *w, uint64_t a, uint64_t b, uint64_t c, uint64_t now_ns) {
    const struct collect_thread threads[THREADS] = {
        {.tid = 11, .cpu_ns = a}, {.tid = 12, .cpu_ns = b}, {.tid = 13, .cpu_ns = c}};
    standstill_take(w, threads, THREADS, now_ns);
}

static struct model_thread threads[THREADS] = {
    {.tid = 11, .wait = {.kind = MODEL_WAIT_LOCK, .what = "Lock a", .tid = 12, .flags = MODEL_WAIT_LIKELY}},
    {.tid = 12, .wait = {.kind = MODEL_WAIT_SLEEP, .what = "sleep"}},
    {.tid = 13},
};
static const struct model_snapshot snapshot = {.threads = threads, .n_threads = THREADS, .timestamp = 5};

static struct written write_rows(struct standstill *w, uint64_t now_ns, bool again) {
    struct written rows = {.n = 0};
    standstill_put_rows(w, &snapshot, now_ns, again, put, &rows);
    return rows;
}

static void test_only_what_stands_is_looked_at(void **state) {
    struct standstill w = {.looked_ns = 100 * S};
    (void)state;
    assert_false(standstill_is_due(&w, 100 * S));
    take(&w, 1, 2, 3, 100 * S);
    take(&w, 1, 20, 3, 101 * S);
    assert_false(standstill_is_due(&w, 101 * S)); /* not for two seconds */
    take(&w, 1, 21, 3, 102 * S);
    assert_true(standstill_is_due(&w, 102 * S));
    w.due_ns = 103 * S; /* it would cost too much */
    assert_false(standstill_is_due(&w, 102 * S));
    w.due_ns = 0;
    struct written rows = write_rows(&w, 102 * S, false);
    assert_int_equal(rows.n, 1); /* thread 12 runs; what 13 waits for is not known */
    assert_int_equal(rows.tids[0], 11);
    assert_true(rows.waits_s[0] == 2);
    assert_int_equal(rows.holder[0], 1);          /* likely */
    assert_false(standstill_is_due(&w, 102 * S)); /* all were looked at */
    take(&w, 1, 21, 3, 103 * S);
    take(&w, 1, 21, 3, 104 * S);
    assert_true(standstill_is_due(&w, 104 * S)); /* for thread 12 */
    rows = write_rows(&w, 104 * S, false);
    assert_int_equal(rows.n, 1); /* of thread 11 it says the same */
    assert_int_equal(rows.tids[0], 12);
    assert_int_equal(rows.holder[0], RING_INT_NULL);
    standstill_fini(&w);
}

static void test_what_has_changed_is_written_again(void **state) {
    struct standstill w = {.looked_ns = 100 * S};
    (void)state;
    take(&w, 1, 2, 3, 100 * S);
    take(&w, 1, 2, 3, 110 * S);
    assert_int_equal(write_rows(&w, 110 * S, false).n, 2);
    assert_int_equal(write_rows(&w, 110 * S, false).n, 0);
    threads[0].wait.tid = 13;
    struct written rows = write_rows(&w, 111 * S, false);
    assert_int_equal(rows.n, 1);
    assert_int_equal(rows.tids[0], 11);
    threads[0].wait.tid = 12;
    assert_false(standstill_is_due(&w, 159 * S));
    assert_true(standstill_is_due(&w, 160 * S)); /* a minute later */
    assert_int_equal(write_rows(&w, 160 * S, true).n, 2);
    take(&w, 9, 2, 3, 161 * S); /* thread 11 has run, and stands again */
    assert_int_equal(write_rows(&w, 162 * S, false).n, 0);
    take(&w, 9, 2, 3, 163 * S);
    assert_true(standstill_is_due(&w, 163 * S));
    rows = write_rows(&w, 163 * S, false);
    assert_int_equal(rows.n, 1);
    assert_true(rows.waits_s[0] == 2);
    standstill_fini(&w);
}

static void test_threads_come_and_go(void **state) {
    struct standstill w = {.looked_ns = 100 * S};
    (void)state;
    const struct collect_thread first[] = {{.tid = 5, .cpu_ns = 1}, {.tid = 12, .cpu_ns = 2}},
                                later[] = {{.tid = 11, .cpu_ns = 1}, {.tid = 12, .cpu_ns = 2}};
    standstill_take(&w, first, 2, 100 * S);
    standstill_take(&w, later, 2, 102 * S);
    struct written rows = write_rows(&w, 102 * S, false);
    assert_int_equal(rows.n, 1); /* 11 is new */
    assert_int_equal(rows.tids[0], 12);
    standstill_take(&w, NULL, 0, 103 * S);
    assert_false(standstill_is_due(&w, 200 * S));
    assert_int_equal(write_rows(&w, 200 * S, true).n, 0);
    standstill_fini(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_what_stands_is_looked_at),
        cmocka_unit_test(test_what_has_changed_is_written_again),
        cmocka_unit_test(test_threads_come_and_go),
    };
    return cmocka_run_group_tests_name("agent_standstill", tests, NULL, NULL);
}
