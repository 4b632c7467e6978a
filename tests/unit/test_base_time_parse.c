/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time as people type them, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/time_parse.h"

#define NOW 1764281600.0 /* 2025-11-27 22:13:20 UTC */
#define DAY 86400.0

static void expect(const char *text, double want) {
    double got = -1;
    if (!time_parse(text, strlen(text), NOW, &got))
        fail_msg("'%s' is refused", text);
    if (got != want)
        fail_msg("'%s' is %.3f, not %.3f", text, got, want);
}

static void refuse(const char *text) {
    double got;
    if (time_parse(text, strlen(text), NOW, &got))
        fail_msg("'%s' is taken for %.3f", text, got);
}

static void test_clock(void **state) {
    (void)state;
    expect("22:13:20", NOW);
    expect("22:13", NOW - 20);
    expect("22:13:20.5", NOW + 0.5);
    expect("0:00", NOW - 80000);
    expect("22:14", NOW + 40);
    /* more than half a day ahead: yesterday's */
    expect("10:13:20", NOW - 43200);
    refuse("24:00");
    refuse("22:60");
    refuse("22:13:61");
    refuse("22:13:nan");
    refuse("22:13x");
    refuse("22:");
    refuse("-1:10");
}

static void test_date(void **state) {
    (void)state;
    expect("2025-11-27T22:13:20", NOW);
    expect("2025-11-27 22:13:20", NOW);
    expect("2025-11-26T22:13", NOW - 20 - DAY);
    expect("2024-02-29T22:13:20", NOW - 637 * DAY);
    refuse("2025-02-29T10:00");
    refuse("2025-13-01T10:00");
    refuse("2025-11-27");
    refuse("2025-11-27T");
    refuse("2025-11-27T25:00");
    refuse("2025-11-27x22:13");
}

static void test_ago(void **state) {
    (void)state;
    expect("90s", NOW - 90);
    expect("1.5h", NOW - 5400);
    expect("10m", NOW - 600);
    expect("2d", NOW - 2 * DAY);
    expect("0s", NOW);
    refuse("90");
    refuse("-90s");
    refuse("s");
    refuse("infs");
    refuse("nand");
    refuse("10mm");
}

static void test_epoch(void **state) {
    (void)state;
    expect("@1764281600", NOW);
    expect("@1764281600.5", NOW + 0.5);
    refuse("@");
    refuse("@-1");
    refuse("@1e300");
    refuse("@12x");
    refuse("1764281600");
}

static void test_length(void **state) {
    (void)state;
    double got;
    assert_true(time_parse("10s-5s", 3, NOW, &got));
    assert_true(got == NOW - 10);
    assert_false(time_parse("", 0, NOW, &got));
    assert_false(time_parse("10s\0", 4, NOW, &got));
    refuse("                                                          10s");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock), cmocka_unit_test(test_date),   cmocka_unit_test(test_ago),
        cmocka_unit_test(test_epoch), cmocka_unit_test(test_length),
    };
    setenv("TZ", "UTC", 1);
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
