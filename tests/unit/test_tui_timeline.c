/* SPDX-License-Identifier: Apache-2.0 */
/* The Timeline screen by its keys: following and standing still, time and threads, spans, search, filter, calls of a thread. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tui/core/app.h"
#include "tui/core/app_input.h"
#include "tui/core/app_life.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_take.h"
#include "tui/core/window.h"
#include "tui/keys/input.h"
#include "unit/tui_fixture.h"

#define ROWS 24
#define COLS 80

static struct model_frame_def frames[] = {{1, {.func = "main", .file = "/job/a.py", .line = 1}},
                                          {2, {.func = "compute", .file = "/job/a.py", .line = 2}},
                                          {3, {.func = "load", .file = "/job/b.py", .line = 3}},
                                          {4, {.func = "wait", .file = "/job/b.py", .line = 4}}};
static struct model_stack_def stacks[] = {{1, 0, 1}, {2, 1, 2}, {3, 1, 3}, {4, 0, 4}};
static struct model_thread_def threads[] = {
    {100, "MainThread", NULL}, {200, "Waiter", NULL}, {300, "Late", NULL}};

/* Seconds [from, to) of looks, 100 a second, in batches of a quarter: the main thread computes in even seconds and loads
 * in odd ones; one waits; one is there from second 6 on. The clock ends with them. */
static void feed(struct app *a, int from, int to) {
    for (int q = from * 4; q < to * 4; q++) {
        struct model_sample samples[75];
        size_t n = 0;
        for (int i = 0; i < 25; i++) {
            double at = FIXTURE_EPOCH_S + q * 0.25 + i * 0.01;
            bool computes = q / 4 % 2 == 0;
            samples[n++] = (struct model_sample){.timestamp = at,
                                                 .tid = 100,
                                                 .stack_id = computes ? 2 : 3,
                                                 .on_cpu = 1,
                                                 .gil = computes ? MODEL_GIL_HOLDING : MODEL_GIL_NONE};
            samples[n++] =
                (struct model_sample){.timestamp = at, .tid = 200, .stack_id = 4, .gil = MODEL_GIL_NONE};
            if (q >= 24)
                samples[n++] = (struct model_sample){
                    .timestamp = at, .tid = 300, .stack_id = 0, .on_cpu = 1, .gil = MODEL_GIL_NONE};
        }
        struct model_sample_batch b = {.epoch = 1, .period_us = 10000, .cost_pct = 0.4, .budget_pct = 1};
        b.frames = frames;
        b.n_frames = 4;
        b.stacks = stacks;
        b.n_stacks = 4;
        b.threads = threads;
        b.n_threads = 3;
        b.samples = samples;
        b.n_samples = n;
        app_set_time(a, FIXTURE_NOW_S + (q + 1) * 0.25, FIXTURE_EPOCH_S + (q + 1) * 0.25);
        app_take_samples(a, &b);
    }
}

static struct app *made(int seconds) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    fixture_press(a, "5");
    assert_string_equal(app_screen_top(a)->def->name, "timeline");
    feed(a, 0, seconds);
    (void)fixture_draw(a, ROWS, COLS);
    return a;
}

/* The line that begins with a name; "" none does. */
static const char *line_of(struct app *a, const char *name) {
    static char line[1024];
    const char *text = fixture_draw(a, ROWS, COLS);
    line[0] = '\0';
    while (text && *text) {
        const char *end = strchr(text, '\n');
        size_t len = end ? (size_t)(end - text) : strlen(text);
        if (strncmp(text, name, strlen(name)) == 0) {
            (void)snprintf(line, sizeof line, "%.*s", (int)len, text);
            return line;
        }
        text = end ? end + 1 : NULL;
    }
    return line;
}

static void assert_line(struct app *a, const char *name, const char *has) {
    const char *line = line_of(a, name);
    if (!strstr(line, has))
        fail_msg("no '%s' in '%s' of\n%s", has, line, fixture_draw(a, ROWS, COLS));
}

static void assert_shown(struct app *a, const char *text, bool is_there) {
    const char *got = fixture_draw(a, ROWS, COLS);
    if ((strstr(got, text) != NULL) != is_there)
        fail_msg("%s '%s' in\n%s", is_there ? "no" : "there is", text, got);
}

static void test_lanes(void **state) {
    struct app *a = made(7);
    (void)state;
    assert_line(a, "MainThread", "compute");
    assert_line(a, "MainThread", "load");
    assert_line(a, "Waiter", "wait");
    assert_line(a, "Late", "(no");
    assert_shown(a, "LIVE", true);
    assert_shown(a, "slices of 100ms", true);
    assert_line(a, "GIL held", "\xe2\x96\x88");
    assert_line(a, "from ", "22:13:2");
    assert_shown(a, "22:13:26.9  90ms ago", true); /* of the newest slice */
    fixture_press(a, "i");                         /* who did not run is hidden */
    assert_string_equal(line_of(a, "Waiter"), "");
    assert_line(a, "Late", "(no");
    fixture_press(a, "A");
    assert_line(a, "Waiter", "wait");
    app_free(a);
}

/* At the newest slice it follows; elsewhere what is seen stands while samples come in, and End goes back. */
static void test_following(void **state) {
    struct app *a = made(7);
    char before[1024];
    (void)state;
    fixture_press(a, "Left Left");
    assert_shown(a, "22:13:26.7", true);
    assert_shown(a, "LIVE", false);
    (void)snprintf(before, sizeof before, "%s", line_of(a, "MainThread"));
    feed(a, 7, 9);
    assert_string_equal(line_of(a, "MainThread"), before);
    assert_shown(a, "ends 2.0s before now", true);
    assert_shown(a, "22:13:26.7  2.3s ago", true);
    fixture_press(a, "End");
    assert_shown(a, "LIVE", true);
    assert_shown(a, "22:13:28.9", true);
    feed(a, 9, 10);
    assert_shown(a, "22:13:29.9", true);
    fixture_press(a, "Z"); /* paused: nothing moves, but one can look around */
    (void)snprintf(before, sizeof before, "%s", line_of(a, "MainThread"));
    feed(a, 10, 12);
    assert_string_equal(line_of(a, "MainThread"), before);
    fixture_press(a, "Home");
    assert_shown(a, "22:13:20.0", true);
    fixture_press(a, "End");
    assert_shown(a, "22:13:29.9", true);
    fixture_press(a, "Z");
    assert_shown(a, "22:13:31.9", true);
    app_free(a);
}

static void test_zoom(void **state) {
    struct app *a = made(12);
    (void)state;
    fixture_press(a, "-");
    assert_shown(a, "slices of 200ms", true);
    assert_shown(a, "22:13:31.8", true);
    fixture_press(a, "+ + +");
    assert_shown(a, "slices of 20ms", true);
    fixture_press(a, "Left Left Left"); /* a time stays where it is */
    assert_shown(a, "22:13:31.9  70ms ago", true);
    fixture_press(a, "-");
    assert_shown(a, "slices of 50ms", true);
    assert_shown(a, "22:13:31.9", true);
    for (int i = 0; i < 12; i++)
        fixture_press(a, "-");
    assert_shown(a, "slices of 10.0s", true);
    fixture_press(a, "S-Left S-Left S-Left S-Right End");
    for (int i = 0; i < 20; i++)
        fixture_press(a, "+");
    assert_shown(a, "slices of 10ms", true);
    assert_shown(a, "LIVE", true);
    app_free(a);
}

/* Two seconds are selected: what the other screens show is what was done in them. */
static void test_span(void **state) {
    struct app *a = made(12);
    double from, to;
    (void)state;
    fixture_press(a, "- Left"); /* slices of 200 ms */
    for (int i = 0; i < 4; i++)
        fixture_press(a, "Left"); /* the last one of second 10 */
    assert_shown(a, "22:13:30.8", true);
    fixture_press(a, "s");
    for (int i = 0; i < 9; i++)
        fixture_press(a, "Left");
    assert_shown(a, "SELECT 2.0s", true);
    fixture_press(a, "Enter");
    assert_int_equal(window_which(a), SAMPLE_STORE_SPAN);
    assert_true(window_get_range(a, &from, &to));
    assert_true(fabs(from - (FIXTURE_EPOCH_S + 9)) < 1e-3 && fabs(to - (FIXTURE_EPOCH_S + 11)) < 1e-3);
    assert_shown(a, "the window of Flame", true);
    assert_shown(a, "22:13:29.0 +2.0s", true);
    assert_int_equal(a->message[0] != '\0', 1);
    fixture_press(a, "4 a l");
    assert_shown(a, "samples 600", true);
    fixture_press(a, "3");
    assert_shown(a, "22:13:29.0 +2.0s", true);
    fixture_press(a, "5 Esc");
    assert_int_equal(window_which(a), SAMPLE_STORE_ALL);
    assert_false(sample_store_get_span(a->data.tally, SAMPLE_STORE_SPAN, &from, &to));
    fixture_press(a, "s Left Left Esc"); /* given up */
    assert_shown(a, "SELECT", false);
    assert_int_equal(window_which(a), SAMPLE_STORE_ALL);
    app_free(a);
}

/* While a span is selected the end of it is not carried along by what comes. */
static void test_selecting_stands(void **state) {
    struct app *a = made(8);
    double from, to;
    (void)state;
    fixture_press(a, "s Left");
    feed(a, 8, 10);
    fixture_press(a, "Right"); /* back where it began */
    assert_shown(a, "SELECT 100ms", true);
    fixture_press(a, "Enter");
    assert_true(window_get_range(a, &from, &to));
    assert_true(fabs(from - (FIXTURE_EPOCH_S + 7.9)) < 1e-3 && fabs(to - (FIXTURE_EPOCH_S + 8)) < 1e-3);
    app_free(a);
}

static void test_depth(void **state) {
    struct app *a = made(7);
    (void)state;
    fixture_press(a, "Enter");
    assert_line(a, "MainThread", "main"); /* the outermost first */
    assert_shown(a, "load", true);
    assert_string_equal(line_of(a, "Waiter"), "");
    fixture_press(a, ")");
    assert_line(a, "Waiter", "wait");
    fixture_press(a, "Esc");
    assert_line(a, "MainThread", "compute");
    fixture_press(a, "k Enter Enter");
    assert_line(a, "Waiter", "wait");
    app_free(a);
}

static void test_search_and_filter(void **state) {
    struct app *a = made(7);
    (void)state;
    fixture_press(a, "Left / \"load Enter"); /* seconds 1, 3, 5 */
    assert_shown(a, "/load", true);
    fixture_press(a, "N");
    assert_shown(a, "22:13:25.9", true);
    assert_shown(a, "load", true);
    fixture_press(a, "n");
    assert_shown(a, "22:13:21.", true); /* round, to the oldest that is shown */
    fixture_press(a, "Esc \\ \"load Enter");
    assert_shown(a, "FILTER load", true);
    assert_string_equal(line_of(a, "Waiter"), "");
    assert_line(a, "MainThread", "load");
    fixture_press(a, "\\ ctrl-u \"!main Enter");
    assert_string_equal(line_of(a, "MainThread"), "");
    assert_line(a, "Waiter", "wait");
    fixture_press(a, "Esc");
    assert_line(a, "MainThread", "load");
    app_free(a);
}

static void test_mouse(void **state) {
    struct app *a = made(7);
    (void)state;
    const struct rect body = a->body;
    int row = -1;
    const char *text = fixture_draw(a, ROWS, COLS);
    for (int i = 0; i < ROWS && row < 0; i++) {
        if (strncmp(text, "Waiter", 6) == 0)
            row = i;
        text = strchr(text, '\n') + 1;
    }
    assert_true(row > body.row);
    struct input_event e = {.kind = INPUT_EVENT_MOUSE, .button = INPUT_CLICK, .row = row, .col = COLS - 11};
    app_input(a, &e);
    assert_shown(a, "22:13:25.9", true);
    assert_shown(a, "Waiter  wait", true);
    e.button = INPUT_WHEEL_UP;
    app_input(a, &e);
    assert_shown(a, "slices of 50ms", true);
    e.button = INPUT_WHEEL_DOWN;
    app_input(a, &e);
    assert_shown(a, "slices of 100ms", true);
    app_free(a);
}

/* Nothing is drawn where nothing is known: before the first sample, and in a hole. */
static void test_unknown(void **state) {
    struct app *a = made(2);
    (void)state;
    assert_line(a, "MainThread", "\xe2\x96\x91\xe2\x96\x91\xe2\x96\x91");
    feed(a, 4, 6);
    assert_line(a, "MainThread", "\xe2\x96\x91\xe2\x96\x91\xe2\x96\x91\xe2\x96\x91\xe2\x96\x91");
    for (int i = 0; i < 25; i++)
        fixture_press(a, "Left");
    assert_shown(a, "22:13:23.4", true);
    assert_shown(a, "no data for this time", true);
    app_set_pid(a, 77); /* another target */
    app_set_pid(a, 78);
    assert_shown(a, "compute", false);
    app_free(a);
}

/* A snapshot a second, with the samples of the same time; another screen is shown. */
static struct app *made_of_moments(int seconds) {
    struct app *a = made(1);
    fixture_press(a, "2");
    for (int second = 1; second < seconds; second++) {
        feed(a, second, second + 1);
        struct model_snapshot s;
        fixture_snapshot(&s, FIXTURE_NORMAL, second);
        s.timestamp = FIXTURE_EPOCH_S + second + 0.95;
        app_take_snapshot(a, &s);
    }
    return a;
}

/* Where an older moment is shown, the Timeline shows that one; out of the past it follows again. */
static void test_moment(void **state) {
    struct app *a = made_of_moments(40);
    (void)state;
    fixture_press(a, ", , ,");
    assert_true(data_is_stepped(&a->data));
    fixture_press(a, "5");
    assert_shown(a, "22:13:56.9", true);
    assert_shown(a, "LIVE", false);
    fixture_press(a, "2 , 5"); /* and goes with it */
    assert_shown(a, "22:13:55.9", true);
    fixture_press(a, "2");
    for (int i = 0; i < 20; i++) /* further than there is room for */
        fixture_press(a, ",");
    fixture_press(a, "5");
    assert_shown(a, "22:13:35.9", true);
    assert_line(a, "MainThread", "load");
    fixture_press(a, "Left Left"); /* one can look around */
    assert_shown(a, "22:13:35.7", true);
    fixture_press(a, "2 . 5");
    assert_shown(a, "22:13:36.9", true);
    fixture_press(a, "Z");
    assert_false(data_is_stepped(&a->data));
    assert_shown(a, "LIVE", true);
    assert_shown(a, "22:13:59.9", true);
    app_free(a);
}

/* The first time that the Timeline is opened, too. */
static void test_moment_of_a_new_screen(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    feed(a, 0, 3);
    for (int second = 0; second < 3; second++) {
        struct model_snapshot s;
        fixture_snapshot(&s, FIXTURE_NORMAL, second);
        s.timestamp = FIXTURE_EPOCH_S + second + 0.95;
        app_take_snapshot(a, &s);
    }
    fixture_press(a, ", , 5");
    assert_true(data_is_stepped(&a->data));
    assert_shown(a, "22:13:20.9", true);
    assert_shown(a, "LIVE", false);
    fixture_press(a, "Z");
    assert_shown(a, "LIVE", true);
    app_free(a);
}

/* Where one had not followed, one is left where the moment was. */
static void test_moment_of_a_view_that_stands(void **state) {
    struct app *a = made_of_moments(8);
    (void)state;
    fixture_press(a, "5 Left Left");
    assert_shown(a, "22:13:27.7", true);
    fixture_press(a, "2 , , 5");
    assert_shown(a, "22:13:25.9", true);
    fixture_press(a, "Z");
    assert_shown(a, "22:13:25.9", true);
    assert_shown(a, "LIVE", false);
    app_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_following),
        cmocka_unit_test(test_zoom),
        cmocka_unit_test(test_span),
        cmocka_unit_test(test_selecting_stands),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_search_and_filter),
        cmocka_unit_test(test_mouse),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_moment),
        cmocka_unit_test(test_moment_of_a_new_screen),
        cmocka_unit_test(test_moment_of_a_view_that_stands),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    (void)setenv("TZ", "UTC", 1);
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
