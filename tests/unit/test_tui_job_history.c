/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of a job's past: bounded, spaced by its age, and never without what is shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tui/model/job_history.h"
#include "unit/tui_job.h"

static struct job_shot *shot_at(double at_s) {
    struct job_shot *s = job_fixture(JOB_FIXTURE_HUNG);
    s->at_s = at_s;
    return s;
}

static void test_all_while_there_is_room(void **state) {
    (void)state;
    struct job_history p = {.n = 0};
    for (int i = 0; i < 100; i++)
        assert_int_equal(job_history_add(&p, shot_at(i), NULL, JOB_HISTORY_BYTES), 0);
    assert_int_equal(p.n, 100);
    assert_null(job_history_find(&p, -0.5));
    assert_true(job_history_find(&p, 0)->at_s == 0);
    assert_true(job_history_find(&p, 41.9)->at_s == 41);
    assert_true(job_history_find(&p, 1000)->at_s == 99);
    assert_int_equal(job_history_index(&p, p.items[7]), 7);
    assert_int_equal(job_history_index(&p, NULL), 100);
    job_history_fini(&p);
}

static void test_the_older_the_fewer(void **state) {
    (void)state;
    struct job_history p = {.n = 0};
    struct job_shot *shown = NULL;
    size_t limit = 0;
    for (int i = 0; i < 2000; i++) {
        struct job_shot *s = shot_at(i);
        limit = limit ? limit : 60 * job_shot_bytes(s);
        shown = i == 700 ? s : shown;
        assert_int_equal(job_history_add(&p, s, shown, limit), 0);
        assert_true(p.bytes <= limit);
    }
    assert_in_range(p.n, 50, 60);
    /* the first and the newest are there, and in order */
    assert_true(p.items[0]->at_s == 0 && p.items[p.n - 1]->at_s == 1999);
    assert_int_not_equal(job_history_index(&p, shown), p.n);
    double gap_before = 0, gap_after = 0;
    for (size_t i = 1; i < p.n; i++) {
        double gap = p.items[i]->at_s - p.items[i - 1]->at_s;
        assert_true(gap > 0);
        if (i < p.n / 2)
            gap_before = gap > gap_before ? gap : gap_before;
        else
            gap_after = gap > gap_after ? gap : gap_after;
    }
    assert_true(gap_after < gap_before);
    assert_true(p.items[p.n - 1]->at_s - p.items[p.n - 2]->at_s <= 2);
    job_history_fini(&p);
}

static void test_no_room(void **state) {
    (void)state;
    struct job_history p = {.n = 0};
    struct job_shot *shown = shot_at(1);
    assert_int_equal(job_history_add(&p, shot_at(0), NULL, 0), 0);
    assert_int_equal(p.n, 0);
    assert_int_equal(job_history_add(&p, shown, shown, 0), 0);
    for (int i = 2; i < 9; i++)
        assert_int_equal(job_history_add(&p, shot_at(i), shown, 0), 0);
    assert_int_equal(p.n, 1);
    assert_ptr_equal(p.items[0], shown);
    job_history_fini(&p);
    assert_int_equal(p.bytes, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_while_there_is_room),
        cmocka_unit_test(test_the_older_the_fewer),
        cmocka_unit_test(test_no_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
