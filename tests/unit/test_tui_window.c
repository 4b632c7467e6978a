/* SPDX-License-Identifier: Apache-2.0 */
/* The one window of time: what it is called, what can be typed for it, and that all screens follow it. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tui/core/app_history.h"
#include "tui/core/app_life.h"
#include "tui/core/app_input.h"
#include "tui/core/window.h"
#include "unit/tui_fixture.h"
#include "unit/tui_samples.h"

#define BATCHES 120 /* a quarter of a second each */

/* An app with samples of half a minute, which end at its epoch_s. */
static struct app *made(void) {
    struct app *a = fixture_app(FIXTURE_HUGE, 1, false);
    fixture_press(a, "3");
    samples_feed(a, FIXTURE_HUGE, BATCHES);
    return a;
}

static const char *text_of(const struct app *a) {
    static char text[WINDOW_TEXT];
    window_put_text(a, text, sizeof text);
    return text;
}

static const char *missing_of(const struct app *a) {
    static char text[WINDOW_TEXT];
    window_put_missing(a, text, sizeof text);
    return text;
}

static void assert_drawn(struct app *a, const char *text) {
    const char *got = fixture_draw(a, 30, 140);
    if (!strstr(got, text))
        fail_msg("no '%s' in\n%s", text, got);
}

static void test_going_round(void **state) {
    struct app *a = made();
    (void)state;
    assert_int_equal(window_which(a), SAMPLE_STORE_ALL);
    assert_drawn(a, "over 30.0s");
    fixture_press(a, "W");
    assert_int_equal(window_which(a), SAMPLE_STORE_10S);
    assert_drawn(a, "last 10 s");
    fixture_press(a, "4"); /* the Top screen has the same */
    assert_drawn(a, "last 10 s");
    fixture_press(a, "W");
    assert_drawn(a, "last 60 s");
    fixture_press(a, "3");
    assert_drawn(a, "last 60 s");
    fixture_press(a, "W"); /* there is no mark, and no span */
    assert_int_equal(window_which(a), SAMPLE_STORE_ALL);
    double at = sample_store_newest_tick_s(a->data.tally);
    assert_true(window_select(a, at - 5, at - 3));
    assert_int_equal(window_which(a), SAMPLE_STORE_SPAN);
    assert_int_equal(sample_store_mark(a->data.tally, a->now_s), 0);
    fixture_press(a, "W");
    assert_int_equal(window_which(a), SAMPLE_STORE_ALL);
    fixture_press(a, "W W W");
    assert_int_equal(window_which(a), SAMPLE_STORE_MARK);
    assert_drawn(a, "since mark 0ms");
    fixture_press(a, "W");
    assert_int_equal(window_which(a), SAMPLE_STORE_SPAN);
    sample_store_clear_span(a->data.tally, SAMPLE_STORE_SPAN); /* gone: what there always is, is shown */
    assert_int_equal(window_which(a), SAMPLE_STORE_ALL);
    app_free(a);
}

/* Flame and Top show what a span holds: 8 looks at 200 threads. */
static void test_span_is_shown(void **state) {
    struct app *a = made();
    double from, to, at = sample_store_newest_tick_s(a->data.tally);
    (void)state;
    assert_true(window_select(a, at - 4, at - 2));
    assert_true(window_get_range(a, &from, &to) && from == at - 4 && to == at - 2);
    fixture_press(a, "a"); /* waits too */
    assert_drawn(a, "samples 1600");
    assert_drawn(a, "22:13:46.0 +2.0s");
    fixture_press(a, "4 a");
    assert_drawn(a, "samples 1600");
    assert_true(window_select(a, at - 1, at - 0.3)); /* another one: all follow */
    assert_drawn(a, "samples 600");
    fixture_press(a, "3");
    assert_drawn(a, "samples 600");
    app_set_paused(a, true);
    assert_true(window_select(a, at - 4, at - 2)); /* what is frozen can be looked at in parts */
    assert_drawn(a, "samples 1600");
    app_free(a);
}

static void test_missing(void **state) {
    struct app *a = made();
    double at = sample_store_newest_tick_s(a->data.tally);
    (void)state;
    assert_true(window_select(a, at - 4, at - 2));
    assert_string_equal(missing_of(a), "");
    assert_true(window_select(a, at - 60, at - 2));
    assert_string_equal(missing_of(a), "no data for the first 30.2s");
    assert_drawn(a, "no data for the first 30.2s");
    assert_true(window_select(a, at - 4, at + 2.5));
    assert_string_equal(missing_of(a), "no data for the last 2.5s");
    assert_true(window_select(a, at - 600, at - 590));
    assert_string_equal(missing_of(a), "no data for it");
    assert_non_null(strstr(a->message, "no data for that time"));
    window_show(a, SAMPLE_STORE_10S);
    assert_string_equal(missing_of(a), "");
    assert_false(window_select(a, at, at));
    app_free(a);
}

static void test_ranges(void **state) {
    struct app *a = made(), *none = fixture_app(FIXTURE_NORMAL, 1, false);
    double from, to, at = sample_store_newest_tick_s(a->data.tally);
    (void)state;
    assert_false(window_get_range(none, &from, &to));
    assert_string_equal(text_of(none), "");
    window_show(a, SAMPLE_STORE_10S);
    assert_true(window_get_range(a, &from, &to) && fabs(from - (at - 10)) < 1e-6 && to > at &&
                to < at + 1e-3);
    window_show(a, SAMPLE_STORE_ALL);
    assert_true(window_get_range(a, &from, &to) && fabs(from - (at - BATCHES * 0.25)) < 1e-6);
    (void)sample_store_mark(a->data.tally, a->now_s - 3);
    window_show(a, SAMPLE_STORE_MARK);
    assert_true(window_get_range(a, &from, &to) && fabs(from - (at - 3)) < 1e-6);
    app_free(a);
    app_free(none);
}

/* A text, and the window it makes: from and to as seconds before the newest sample, at 22:13:50; -1: it is refused. */
static const struct {
    const char *text;
    double from_ago, to_ago;
} typed[] = {
    {"22:13:45-22:13:48.5", 5, 1.5},
    {"22:13-22:13:48", 50, 2},
    {"30s-10s", 30, 10},
    {"0.5m-0s", 30, 0},
    {"10:20:00-09:00:00", -1, -1},
    {"10s-30s", -1, -1},
    {"", -1, -1},
    {"7s", -1, -1},
    {"now", -1, -1},
    {"22:13:45-", -1, -1},
    {"-22:13:45", -1, -1},
    {"22:61:45-22:62:00", -1, -1},
    {"22:13:45x-22:13:47", -1, -1},
    {"nans-0s", -1, -1},
    {"1e400s-0s", -1, -1},
    {"-5s-0s", -1, -1},
};

static void test_typed(void **state) {
    struct app *a = made();
    struct err e;
    double at = sample_store_newest_tick_s(a->data.tally), from, to;
    (void)state;
    for (size_t i = 0; i < sizeof typed / sizeof typed[0]; i++) {
        unsigned before = a->window.version;
        int rc = window_parse(a, typed[i].text, &e);
        if ((rc == 0) != (typed[i].from_ago >= 0))
            fail_msg("'%s': %d", typed[i].text, rc);
        if (rc != 0) {
            assert_int_equal(e.code, ERR_USAGE);
            assert_int_equal(a->window.version, before);
            continue;
        }
        assert_true(sample_store_get_span(a->data.tally, SAMPLE_STORE_SPAN, &from, &to));
        if (fabs(at - from - typed[i].from_ago) > 1e-3 || fabs(at - to - typed[i].to_ago) > 1e-3)
            fail_msg("'%s': %f to %f", typed[i].text, at - from, at - to);
    }
    assert_int_equal(window_parse(a, "mark", &e), -1);
    assert_int_equal(window_parse(a, "60s", &e), 0);
    assert_int_equal(window_which(a), SAMPLE_STORE_60S);
    assert_int_equal(window_parse(a, "all", &e), 0);
    assert_int_equal(window_which(a), SAMPLE_STORE_ALL);
    app_free(a);
    a = fixture_app(FIXTURE_NORMAL, 1, false);
    assert_int_equal(window_parse(a, "30s-10s", &e), -1);
    app_free(a);
}

static void test_command(void **state) {
    struct app *a = made();
    (void)state;
    fixture_press(a, ": \"window Space \"10s Enter");
    assert_int_equal(window_which(a), SAMPLE_STORE_10S);
    assert_drawn(a, "the window is last 10 s");
    app_input_command(a, "window 22:13:45-22:13:48.5");
    assert_int_equal(window_which(a), SAMPLE_STORE_SPAN);
    assert_drawn(a, "22:13:45.0 +3.5s");
    app_input_command(a, "window tomorrow");
    assert_int_equal(window_which(a), SAMPLE_STORE_SPAN);
    assert_non_null(strstr(a->message, "unknown window 'tomorrow'"));
    app_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_going_round), cmocka_unit_test(test_span_is_shown),
        cmocka_unit_test(test_missing),     cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_typed),       cmocka_unit_test(test_command),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    (void)setenv("TZ", "UTC", 1);
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
