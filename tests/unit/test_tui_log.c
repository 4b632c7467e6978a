/* SPDX-License-Identifier: Apache-2.0 */
/* The log: bounded, in order, and honest about what it no longer has. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tui/model/log.h"

static void keeps_the_order(void **state) {
    (void)state;
    struct log *l = log_new();
    log_add(l, 10, LOG_LEVEL_INFO, "attached to %d", 42);
    log_add_of(l, 42, 11, LOG_LEVEL_BAD, "it ended");
    assert_int_equal(log_count(l), 2);
    assert_string_equal(log_at(l, 0)->text, "attached to 42");
    assert_int_equal(log_at(l, 0)->pid, 0);
    assert_string_equal(log_at(l, 1)->text, "it ended");
    assert_int_equal(log_at(l, 1)->level, LOG_LEVEL_BAD);
    assert_int_equal(log_at(l, 1)->pid, 42);
    assert_null(log_at(l, 2));
    log_free(l);
}

static void counts_what_is_said_again(void **state) {
    (void)state;
    struct log *l = log_new();
    for (int i = 0; i < 5; i++)
        log_add(l, 10 + i, LOG_LEVEL_WARN, "3 samples lost");
    log_add_of(l, 7, 20, LOG_LEVEL_WARN, "3 samples lost"); /* another target's is another's */
    log_add_of(l, 7, 21, LOG_LEVEL_INFO, "3 samples lost");
    assert_int_equal(log_count(l), 3);
    assert_int_equal(log_at(l, 0)->times, 5);
    assert_true(log_at(l, 0)->epoch_s == 10 && log_at(l, 0)->last_s == 14);
    assert_int_equal(log_serial(l), 7);
    log_free(l);
}

static void forgets_the_oldest_and_says_so(void **state) {
    (void)state;
    struct log *l = log_new();
    for (int i = 0; i < LOG_ENTRIES + 10; i++)
        log_add(l, i, LOG_LEVEL_INFO, "event %d", i);
    assert_int_equal(log_count(l), LOG_ENTRIES);
    assert_int_equal(log_lost(l), 10);
    assert_string_equal(log_at(l, 0)->text, "event 10");
    assert_true(log_at(l, LOG_ENTRIES - 1)->epoch_s == LOG_ENTRIES + 9);
    log_free(l);
}

static void cuts_what_is_too_long(void **state) {
    (void)state;
    struct log *l = log_new();
    char text[3 * LOG_TEXT];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    log_add(l, 0, LOG_LEVEL_INFO, "%s", text);
    assert_int_equal(strlen(log_at(l, 0)->text), LOG_TEXT - 1);
    log_free(l);
}

static void nothing_is_logged_without_a_log(void **state) {
    (void)state;
    log_add(NULL, 0, LOG_LEVEL_INFO, "x");
    assert_int_equal(log_count(NULL), 0);
    assert_null(log_at(NULL, 0));
    log_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_order),
        cmocka_unit_test(counts_what_is_said_again),
        cmocka_unit_test(forgets_the_oldest_and_says_so),
        cmocka_unit_test(cuts_what_is_too_long),
        cmocka_unit_test(nothing_is_logged_without_a_log),
    };
    return cmocka_run_group_tests_name("tui_log", tests, NULL, NULL);
}
