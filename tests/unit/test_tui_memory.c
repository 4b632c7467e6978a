/* SPDX-License-Identifier: Apache-2.0 */
/* The Memory screen: its three views, the mark, the key that traces, and what it says where nothing is traced. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tui/core/app_feed.h"
#include "tui/core/app_life.h"
#include "tui/core/app_take.h"
#include "tui/screens/memory/memory_flame.h"
#include "tui/screens/memory/memory_rows.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"
#include "unit/tui_tables.h"

static struct app *opened(enum tables_kind kind) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    assert_non_null(a);
    fixture_press(a, "M");
    tables_answer_all(a, kind);
    return a;
}

/* The agent tells of the lease, held for `held_s`; NAN: there is none. */
static void tell(struct app *a, double held_s) {
    struct model_lease l = {
        .what = "alloc", .owners = 1, .looks = 1200, .left_s = NAN, .held_s = held_s, .cost_pct = 0.64};
    const struct model_status s = {.budget_pct = NAN, .leases = &l, .n_leases = !isnan(held_s)};
    app_set_time(a, a->now_s + 3, a->epoch_s + 3);
    app_take_status(a, &s);
}

static void test_lines_and_meters(void **state) {
    struct app *a = opened(TABLES_NORMAL);
    (void)state;
    fixture_shows(a, 45, 160,
                  "1.44 GiB   +240 MiB a minute   38 % of its limit   traced: 269 MiB live of 10.7 GiB");
    fixture_shows(a, 45, 160, "limit 4.00 GiB");
    fixture_shows(a, 45, 160, "objects");
    fixture_shows(a, 45, 160, "/home/ada/train.py:88");
    fixture_shows(a, 24, 80, "train_step");
    fixture_hides(a, 45, 160, "on GPUs"); /* nothing is known of them */
    app_free(a);
}

static void test_growth_since_the_mark(void **state) {
    struct app *a = opened(TABLES_NORMAL);
    (void)state;
    fixture_press(a, "'");
    assert_non_null(strstr(a->message, "mark set"));
    fixture_press(a, "r");
    tables_answer_all(a, TABLES_LATER);
    fixture_shows(a, 45, 160, "+30.0 MiB"); /* was there */
    fixture_shows(a, 45, 160, "+1.00 MiB"); /* is new */
    app_free(a);
}

static void test_views(void **state) {
    struct app *a = opened(TABLES_NORMAL);
    (void)state;
    fixture_press(a, "b");
    tables_answer_all(a, TABLES_NORMAL);
    fixture_shows(a, 45, 160, "all that lives   268 MiB, 100.0 %");
    fixture_press(a, "j j j");
    fixture_shows(a, 45, 160, "train_step (train.py)   260 MiB, 97.0 %");
    fixture_press(a, "k k Right");
    fixture_shows(a, 45, 160, "worker (text.py)   8.00 MiB, 3.0 %");
    fixture_press(a, "b");
    tables_answer_all(a, TABLES_NORMAL);
    fixture_shows(a, 45, 160, "4 holders, of 54321 objects");
    fixture_shows(a, 45, 160, "losses@train");
    fixture_shows(a, 45, 160, "no bound");
    fixture_press(a, "b");
    fixture_shows(a, 45, 160, "/home/ada/train.py:88");
    app_free(a);
}

static void test_tracing_by_a_key(void **state) {
    struct app *a = opened(TABLES_NONE);
    (void)state;
    fixture_shows(a, 24, 80, "allocations are not traced: X starts it (1 % of a core, or more)");
    fixture_press(a, "X y");
    struct fake_asked w = fake_host_take();
    assert_string_equal(w.arm.what, "alloc");
    assert_false(w.disarm || w.arm.dry);
    assert_non_null(strstr(a->message, "tracing allocations"));
    tell(a, 10);
    fixture_press(a, "r");
    /* Only rows since tracing began are asked for. */
    assert_non_null(strstr(app_feed_get(a, FEED_MEMORY_SITES)->text, "timestamp >= "));
    char begun[64];
    (void)snprintf(begun, sizeof begun, "timestamp >= %.0f ", a->epoch_s - 10);
    assert_non_null(strstr(app_feed_get(a, FEED_MEMORY_SITES)->text, begun));
    tables_answer_all(a, TABLES_NONE);
    fixture_shows(a, 45, 160, "tracing: from here, until stopped; 1200 samples seen, costs 0.64 %");
    fixture_shows(a, 45, 160, "none is live yet");
    fixture_press(a, "X");
    w = fake_host_take();
    assert_true(w.disarm && strcmp(w.arm.what, "alloc") == 0);
    tell(a, NAN);
    fixture_shows(a, 45, 160, "allocations are not traced");
    fixture_press(a, "r"); /* those of the last tracing can be read still; not by another target */
    assert_null(strstr(app_feed_get(a, FEED_MEMORY_SITES)->text, "timestamp >= 0 "));
    app_set_pid(a, 4300);
    fixture_press(a, "M r");
    assert_non_null(strstr(app_feed_get(a, FEED_MEMORY_SITES)->text, "timestamp >= 0 "));
    app_free(a);
}

static void test_a_job_that_has_ended(void **state) {
    struct app *a = opened(TABLES_NONE);
    struct err why = {ERR_LOST, "process 4242 has ended"};
    (void)state;
    app_set_state(a, SESSION_LOST, &why, 0);
    fixture_shows(a, 24, 80, "its allocations were not traced");
    app_free(a);
}

/* A tree of stacks that lie: empty frames, one frame, none, numbers without end. */
static void test_flame_of_odd_stacks(void **state) {
    struct memory_flame f = {.tree = NULL};
    struct result *rows = tables_alloc_stacks(TABLES_NAMES), *normal = tables_alloc_stacks(TABLES_NORMAL);
    (void)state;
    memory_flame_build(&f, NULL);
    assert_false(memory_flame_is_there(&f));
    memory_flame_build(&f, rows);
    assert_true(memory_flame_is_there(&f));
    memory_flame_build(&f, normal);
    assert_null(memory_flame_selected(&f));
    assert_true(memory_flame_move(&f, 0, 1) && memory_flame_move(&f, 0, 1));
    assert_string_equal(memory_flame_selected(&f), "main (train.py)");
    memory_flame_build(&f, normal); /* what is selected stays so */
    assert_string_equal(memory_flame_selected(&f), "main (train.py)");
    memory_flame_build(&f, rows);
    assert_null(memory_flame_selected(&f));
    result_unref(rows);
    result_unref(normal);
    memory_flame_fini(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_and_meters),
        cmocka_unit_test(test_growth_since_the_mark),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_tracing_by_a_key),
        cmocka_unit_test(test_a_job_that_has_ended),
        cmocka_unit_test(test_flame_of_odd_stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
