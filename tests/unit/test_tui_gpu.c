/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU screen: the processes that have memory there, which are asked for by a key; the devices are in the matrix of screens. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "tui/core/app_feed.h"
#include "tui/core/app_life.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"
#include "unit/tui_tables.h"

static struct app *opened(enum tables_kind kind) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    assert_non_null(a);
    /* the screen is there where there is a GPU: the feed of the header tells */
    for (enum app_feed_id id; (id = app_feed_next(a, FEED_COUNT - 1)) != FEED_COUNT;)
        tables_answer(a, id, id == FEED_GPU ? tables_gpus(TABLES_NORMAL) : tables_rows("", NULL));
    fixture_press(a, "0");
    tables_answer_all(a, kind);
    return a;
}

static void test_processes(void **state) {
    struct app *a = opened(TABLES_NORMAL);
    (void)state;
    assert_false(app_feed_get(a, FEED_GPU_PROCESSES)->is_answered); /* nobody has asked */
    fixture_shows(a, 45, 160, "SLOWED BY");
    fixture_press(a, "b");
    assert_true(app_feed_get(a, FEED_GPU_PROCESSES)->wanted);
    tables_answer_all(a, TABLES_NORMAL);
    fixture_shows(a, 45, 160, "4 processes have 62.6 GiB or more   in use now ");
    fixture_shows(a, 45, 160, "python, the target");
    fixture_shows(a, 24, 80, "  9999    2.0       -          ?        ? ?            ?");
    fixture_shows(a, 24, 80, "nobody knows");
    fixture_press(a, "F6"); /* the mark of the order has its place */
    fixture_shows(a, 24, 80, "%OF GPU\xe2\x96");
    fixture_press(a, "\\ \"Xorg Enter");
    fixture_shows(a, 45, 160, "Rows 1 of 4");
    fixture_hides(a, 45, 160, "python, the target");
    assert_false(app_feed_get(a, FEED_GPU_PROCESSES)->wanted); /* nor does anything but a key */
    fixture_press(a, "r");
    assert_true(app_feed_get(a, FEED_GPU_PROCESSES)->wanted);
    tables_answer_all(a, TABLES_NONE);
    fixture_shows(a, 45, 160, "no process has memory there");
    fixture_press(a, "b");
    fixture_shows(a, 45, 160, "SLOWED BY");
    app_free(a);
}

/* Whatever the driver names, the screen is drawn. */
static void test_odd_processes(void **state) {
    struct app *a = opened(TABLES_NORMAL);
    (void)state;
    fixture_press(a, "b");
    tables_answer_all(a, TABLES_NAMES);
    fixture_shows(a, 45, 160, "1 process has ");
    fixture_hides(a, 45, 160, "\033");
    fixture_press(a, "Enter");
    fixture_shows(a, 24, 80, "process_pid  -7");
    app_free(a);
}

/* As on the other screens. */
static void test_quit(void **state) {
    struct app *a = opened(TABLES_NORMAL);
    (void)state;
    (void)fake_host_take();
    fixture_press(a, "q");
    assert_true(fake_host_take().quit);
    app_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_odd_processes),
        cmocka_unit_test(test_quit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
