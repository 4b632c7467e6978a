/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparing on the screens: what is compared is said in words, shares and differences are those worked out by hand, what is
 * no more is not hidden; and Top and Flame at a moment of the past.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tui/core/app_diff.h"
#include "tui/view/diff_cell.h"
#include "tui/core/app.h"
#include "tui/core/app_life.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_take.h"
#include "unit/tui_diff.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"

static void assert_shows(struct app *a, const char *what) { fixture_shows(a, 40, 120, what); }

static void assert_hides(struct app *a, const char *what) { fixture_hides(a, 40, 120, what); }

static void test_cells(void **state) {
    char text[32];
    (void)state;
    static const struct {
        double delta;
        const char *text;
        char sign;
        enum theme_role role;
    } cases[] = {
        {0, "0.0", '=', ROLE_DIFF_SAME},         {-0.04, "0.0", '=', ROLE_DIFF_SAME},
        {0.49, "+0.5", '=', ROLE_DIFF_SAME},     {0.5, "+0.5", '+', ROLE_DIFF_MORE_1},
        {-1.96, "-2.0", '-', ROLE_DIFF_LESS_1},  {2, "+2.0", '+', ROLE_DIFF_MORE_2},
        {-9.9, "-9.9", '-', ROLE_DIFF_LESS_2},   {10, "+10.0", '+', ROLE_DIFF_MORE_3},
        {-100, "-100.0", '-', ROLE_DIFF_LESS_3}, {NAN, "?", '?', ROLE_DIFF_SAME},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        diff_text(cases[i].delta, text, sizeof text);
        assert_string_equal(text, cases[i].text);
        assert_int_equal(diff_sign(cases[i].delta), cases[i].sign);
        assert_int_equal(diff_role(cases[i].delta), cases[i].role);
    }
}

/* Ten seconds of the one work, ten of the other. */
static struct app *diff_app(const char *keys) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 0, false);
    assert_non_null(a);
    fixture_press(a, keys);
    diff_fixture_feed(a, 12, DIFF_FIXTURE_BEFORE);
    diff_fixture_feed(a, 10, DIFF_FIXTURE_NOW);
    return a;
}

static void test_top(void **state) {
    struct app *a = diff_app("4");
    (void)state;
    assert_hides(a, "DIFF");
    fixture_press(a, "d");
    assert_shows(a, "DIFF  last 10 s against the 10 s before");
    assert_shows(a, "comparing the last 10 s with the 10 s before");
    fixture_press(a, "Left");
    assert_shows(a, "sorted by DELTA");
    /*                DELTA   %OWN  BEFORE  DTOTAL  %TOTAL  BEFORE */
    assert_shows(a, "  +30.0   30.0     0.0   +30.0    30.0     0.0 sync");
    assert_shows(a, "  -20.0   20.0    40.0   -20.0    20.0    40.0 load");
    assert_shows(a, "  -20.0    0.0    20.0   -20.0     0.0    20.0 evaluate"); /* it is no more, and there */
    assert_shows(a, "  +10.0   50.0    40.0   +10.0    50.0    40.0 forward");
    assert_shows(a, "    0.0    0.0     0.0   +10.0    50.0    40.0 train");
    assert_shows(a, "    0.0    0.0     0.0     0.0   100.0   100.0 main");
    const char *screen = fixture_draw(a, 40, 120);
    assert_true(strstr(screen, "sync") < strstr(screen, " forward") &&
                strstr(screen, " forward") < strstr(screen, " main"));
    fixture_press(a, "+ + + + + +"); /* from 10 %: what had it before stays */
    assert_shows(a, "evaluate");
    fixture_press(a, "d");
    assert_hides(a, "DIFF");
    assert_hides(a, "evaluate"); /* in the last 10 s it has nothing */
    assert_shows(a, "sorted by %OWN");
    app_free(a);
}

/* It goes on: what was now is before. */
static void test_it_moves_along(void **state) {
    struct app *a = diff_app("4 d");
    (void)state;
    diff_fixture_feed(a, 12, DIFF_FIXTURE_NOW);
    assert_shows(a, "    0.0   50.0    50.0     0.0    50.0    50.0 forward");
    diff_fixture_feed(a, 10, DIFF_FIXTURE_BEFORE);
    assert_shows(a, "  -30.0    0.0    30.0   -30.0     0.0    30.0 sync");
    diff_fixture_feed(a, 2, DIFF_FIXTURE_BEFORE);
    fixture_press(a, "Z");
    const char *still = "  -24.0    0.0    24.0   -24.0     0.0    24.0 sync";
    assert_shows(a, still);
    diff_fixture_feed(a, 10, DIFF_FIXTURE_NOW);
    assert_shows(a, still);
    fixture_press(a, "Z");
    assert_shows(a, "  +30.0   30.0     0.0   +30.0    30.0     0.0 sync");
    app_free(a);
}

static void test_flame(void **state) {
    struct app *a = diff_app("3 d");
    (void)state;
    fixture_press(a, "Left");
    assert_shows(a, "DIFF  last 10 s against the 10 s before");
    assert_shows(a, "+forward  +10.0");
    assert_shows(a, "+sync  +30.0");
    assert_shows(a, "-load  -20.0");
    assert_hides(a, "evaluate");
    fixture_press(a, "/ \"main Enter");
    assert_shows(a, "now 100.0%  before 100.0%  delta 0.0  no longer called: evaluate 20.0%");
    fixture_press(a, "Esc / \"sync Enter");
    assert_shows(a, "now 30.0%  before 0.0%  delta +30.0");
    fixture_press(a, "Esc d");
    assert_hides(a, "DIFF");
    assert_shows(a, "sync  30.0%");
    app_free(a);
}

/* The time before is not known, or only a part of it: that is said, and no share is made up. */
static void test_what_is_not_known(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 0, false);
    (void)state;
    fixture_press(a, "4");
    diff_fixture_feed(a, 5, DIFF_FIXTURE_NOW);
    fixture_press(a, "d Left");
    assert_shows(a, "last 10 s against the 10 s before: no data");
    assert_shows(a, "      ?   50.0       ?       ?    50.0       ? forward");
    diff_fixture_feed(a, 10, DIFF_FIXTURE_NOW);
    fixture_press(a, "d d Left");
    assert_shows(a, "last 10 s against the 10 s before, data for 5.0s of it");
    app_free(a);
}

/* A recording is of other numbers, and compared with all there is. */
static void test_recording(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 0, false);
    (void)state;
    app_diff_expect(a, "run.db");
    fixture_press(a, "4");
    diff_fixture_feed(a, 10, DIFF_FIXTURE_NOW);
    assert_shows(a, "DIFF  all 10.0s against recording run.db: reading it ...");
    assert_shows(a, "      ?   50.0       ?       ?    50.0       ? forward");
    diff_fixture_record(a, 10, DIFF_FIXTURE_BEFORE);
    app_screen_update_all(a);
    diff_fixture_feed(a, 1, DIFF_FIXTURE_NOW);
    assert_shows(a, "against recording run.db  ");
    assert_shows(a, "  +30.0   30.0     0.0   +30.0    30.0     0.0 sync");
    assert_shows(a, "  -20.0    0.0    20.0   -20.0     0.0    20.0 evaluate");
    fixture_press(a, ") Left"); /* its main thread has another number, and the same name */
    assert_shows(a, "thread MainThread (4242)");
    assert_shows(a, "  -20.0    0.0    20.0   -20.0     0.0    20.0 evaluate");
    fixture_press(a, "( / \"evaluate Enter Enter l l");
    fixture_press(a, "3");
    assert_shows(a, "+sync  +30.0");
    app_diff_fail(a, "it is no recording");
    assert_shows(a, "it is no recording");
    fixture_press(a, "Left");
    assert_shows(a, "run.db: it cannot be read");
    app_free(a);
}

/* Twenty seconds with a snapshot each second, and back into them. */
static void test_a_moment_of_the_past(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 0, false);
    (void)state;
    fixture_press(a, "4");
    for (int i = 0; i < 20; i++) {
        struct model_snapshot s;
        diff_fixture_feed(a, 1, i < 10 ? DIFF_FIXTURE_BEFORE : DIFF_FIXTURE_NOW);
        fixture_snapshot(&s, FIXTURE_NORMAL, i);
        s.timestamp = a->epoch_s;
        app_take_snapshot(a, &s);
    }
    fixture_press(a, "W");
    assert_shows(a, "last 10 s");
    assert_shows(a, " 30.0    30.0");
    for (int i = 0; i < 10; i++)
        fixture_press(a, ",");
    assert_shows(a, "FROZEN  at 22:13:30, 10.0s behind");
    assert_shows(a, "10.0s until 22:13:30");
    assert_hides(a, "sync");
    assert_shows(a, " 20.0    20.0");
    fixture_press(a, "3 a a a");
    assert_shows(a, "10.0s behind");
    fixture_press(a, "4 .");
    assert_shows(a, "10.0s until 22:13:31");
    assert_shows(a, "sync");
    assert_shows(a, "evaluate");
    fixture_press(a, "d Left");
    assert_shows(a, "DIFF  10.0s until 22:13:31 against the 10 s before, data for 1.0s of it");
    fixture_press(a, "d End");
    assert_hides(a, "FROZEN");
    assert_hides(a, "evaluate");
    double from_s, to_s;
    assert_false(sample_store_get_span(a->data.tally, SAMPLE_STORE_SPAN, &from_s, &to_s));
    app_free(a);
}

/* A span that the user has set is there again when one is back. */
static void test_a_span_is_kept(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    double from_s = 0, to_s = 0;
    (void)state;
    fixture_press(a, "4");
    diff_fixture_feed(a, 10, DIFF_FIXTURE_NOW);
    assert_int_equal(sample_store_set_span(a->data.tally, SAMPLE_STORE_SPAN, 100, 200), 0);
    fixture_press(a, ",");
    assert_true(sample_store_get_span(a->data.tally, SAMPLE_STORE_SPAN, &from_s, &to_s) ? from_s != 100
                                                                                        : true);
    fixture_press(a, "End");
    assert_true(sample_store_get_span(a->data.tally, SAMPLE_STORE_SPAN, &from_s, &to_s));
    assert_true(from_s == 100 && to_s == 200);
    app_free(a);
}

static void test_mark(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 0, false);
    (void)state;
    fixture_press(a, "4 '");
    assert_shows(a, "nothing to mark");
    diff_fixture_feed(a, 10, DIFF_FIXTURE_BEFORE);
    fixture_press(a, "'");
    assert_shows(a, "mark set: ");
    diff_fixture_feed(a, 4, DIFF_FIXTURE_NOW);
    fixture_press(a, "W W W");
    assert_shows(a, "since mark 4.0s");
    assert_hides(a, "evaluate");
    fixture_press(a, "d Left");
    assert_shows(a, "DIFF  4.0s since mark against the 10.0s before");
    assert_shows(a, "  +30.0   30.0     0.0   +30.0    30.0     0.0 sync");
    assert_shows(a, "  -20.0    0.0    20.0   -20.0     0.0    20.0 evaluate");
    app_free(a);
}

/* Two times that were typed: they stand still, and the numbers are those of the 10 s before. */
static void test_two_windows(void **state) {
    struct app *a = diff_app("4");
    (void)state;
    fixture_press(a, ": \"diff Space \"10s-0s Space \"20s-10s Enter");
    assert_shows(a, "DIFF  span of 10.0s against 22:1");
    assert_shows(a, " +10.0s");
    fixture_press(a, "Left");
    assert_shows(a, "  +30.0   30.0     0.0   +30.0    30.0     0.0 sync");
    assert_shows(a, "  -20.0   20.0    40.0   -20.0    20.0    40.0 load");
    diff_fixture_feed(a, 5, DIFF_FIXTURE_BEFORE);
    assert_shows(a, "  +30.0   30.0     0.0   +30.0    30.0     0.0 sync");
    fixture_press(a, "3");
    assert_shows(a, "DIFF  span of 10.0s against 22:1");
    fixture_press(a, "Z"); /* frozen, it is the same */
    assert_shows(a, "DIFF  span of 10.0s against 22:1");
    fixture_press(a, "Z D");
    assert_shows(a, "DIFF  span of 10.0s against the 10.0s before");
    fixture_press(a, "d");
    assert_hides(a, "DIFF");
    fixture_press(a, ": \"diff Space \"5s-9s Enter");
    assert_shows(a, "unknown window '5s-9s'");
    fixture_press(a, ": \"diff Space \"mark Enter");
    assert_shows(a, "there is no mark yet");
    fixture_press(a, ": \"diff Space \"/no/such.db Enter");
    assert_string_equal(fake_host.asked.diff, "/no/such.db");
    app_free(a);
    a = fixture_app(FIXTURE_NORMAL, 3, false);
    fixture_press(a, ": \"diff Space \"20s-10s Enter");
    assert_shows(a, "there are no samples yet");
    app_free(a);
}

/* Back from a recording to the time before; what still comes of the recording is not for us. */
static void test_back_from_a_recording(void **state) {
    struct app *a = diff_app("4");
    struct model_sample_batch none = {.n_samples = 0};
    (void)state;
    app_diff_expect(a, "old.db");
    app_screen_update_all(a);
    assert_shows(a, "against recording old.db");
    fixture_press(a, "W D");
    assert_shows(a, "DIFF  last 10 s against the 10 s before");
    app_diff_take_samples(a, &none);
    app_diff_fail(a, "late");
    assert_null(a->diff.other);
    assert_false(a->diff.has_failed);
    fixture_press(a, ": \"diff Space \"off Enter");
    assert_hides(a, "DIFF");
    app_free(a);
}

/* A span of the Timeline is the window, another one what it is compared with. */
static void test_spans_of_the_timeline(void **state) {
    struct app *a = diff_app("5");
    (void)state;
    (void)fixture_draw(a, 40, 120);
    for (int i = 0; i < 2; i++) { /* the last 5 s; the 5 s that end 10 s ago */
        fixture_press(a, "End");
        for (int k = 0; i && k < 102; k++)
            fixture_press(a, "Left");
        fixture_press(a, "s");
        for (int k = 0; k < 49; k++)
            fixture_press(a, "Left");
        assert_shows(a, "SELECT 5.0s");
        fixture_press(a, i ? "d" : "Enter");
    }
    assert_shows(a, "span of 5.0s against 22:1");
    assert_hides(a, "SELECT");
    fixture_press(a, "4 Left");
    assert_shows(a, "DIFF  span of 5.0s against 22:1");
    assert_shows(a, "    0.0 sync");
    assert_shows(a, "   40.0 load");
    fixture_press(a, "5 d");
    assert_shows(a, "comparison off");
    fixture_press(a, "d");
    assert_shows(a, "span of 5.0s against 22:1");
    app_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cells),
        cmocka_unit_test(test_top),
        cmocka_unit_test(test_it_moves_along),
        cmocka_unit_test(test_flame),
        cmocka_unit_test(test_what_is_not_known),
        cmocka_unit_test(test_recording),
        cmocka_unit_test(test_a_moment_of_the_past),
        cmocka_unit_test(test_a_span_is_kept),
        cmocka_unit_test(test_mark),
        cmocka_unit_test(test_two_windows),
        cmocka_unit_test(test_back_from_a_recording),
        cmocka_unit_test(test_spans_of_the_timeline),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    (void)setenv("TZ", "UTC", 1);
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
