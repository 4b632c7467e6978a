/* SPDX-License-Identifier: Apache-2.0 */
/* The Top screen without a terminal: what keys do, what stays where it was when samples come in, when samples come at all. */
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

#include "tui/core/app.h"
#include "tui/core/app_draw.h"
#include "tui/core/app_input.h"
#include "tui/core/app_life.h"
#include "tui/core/app_take.h"
#include "tui/keys/input.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"

static void assert_shows(struct app *a, const char *what) { fixture_shows(a, 40, 100, what); }

static void assert_hides(struct app *a, const char *what) { fixture_hides(a, 40, 100, what); }

/* All time: what a key more shows than at first. */
static struct app *top_app(int batches) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    assert_non_null(a);
    fixture_press(a, "4 a");
    fixture_samples(a, batches);
    return a;
}

static void next_snapshot(struct app *a, int step) {
    struct model_snapshot s;
    fixture_snapshot(&s, FIXTURE_NORMAL, step);
    app_take_snapshot(a, &s);
}

static void wait_s(struct app *a, double s) { app_set_time(a, a->now_s + s, a->epoch_s + s); }

/* Samples cost something: they come while the screen is open, and a little longer. */
static void test_samples_only_when_needed(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    assert_false(app_wants_samples(a));
    fixture_press(a, "4");
    assert_true(app_wants_samples(a));
    fixture_press(a, "?");
    assert_true(app_wants_samples(a));
    fixture_press(a, "q");
    wait_s(a, 1000);
    assert_true(app_wants_samples(a));
    fixture_press(a, "2");
    assert_shows(a, "Stack of MainThread");
    wait_s(a, APP_SAMPLE_STAY_S - 1);
    assert_true(app_wants_samples(a));
    wait_s(a, 2);
    assert_false(app_wants_samples(a));
    app_free(a);
}

static void test_it_is_as_it_was_left(void **state) {
    struct app *a = top_app(8);
    (void)state;
    fixture_press(a, "l > )");
    assert_shows(a, "by line");
    fixture_press(a, "2");
    assert_hides(a, "by line");
    fixture_samples(a, 2);
    fixture_press(a, "4");
    assert_shows(a, "thread MainThread (4242)  by line");
    assert_shows(a, "sorted by %TOTAL");
    assert_shows(a, "samples 239"); /* ten batches of 24, and one was torn */
    fixture_press(a, "4");
    assert_shows(a, "by line");
    app_free(a);
}

static void test_first_samples(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    struct model_frame_def frame = {1, {MODEL_FRAME_PYTHON, "work", "/job/a.py", 1}};
    struct model_stack_def stack = {1, 0, 1};
    struct model_sample samples[7] = {{0}};
    struct model_sample_batch b = {.epoch = 1, .period_us = 20000, .frames = &frame, .n_frames = 1};
    (void)state;
    b.stacks = &stack;
    b.n_stacks = 1;
    b.samples = samples;
    b.n_samples = 7;
    for (int i = 0; i < 7; i++)
        samples[i] = (struct model_sample){.tid = 4242, .stack_id = 1, .on_cpu = 1};
    fixture_press(a, "4");
    app_take_samples(a, &b);
    assert_shows(a, "7 of the first 10 samples");
    assert_hides(a, "a.py");
    app_take_samples(a, &b); /* at once, and still early: not put off until the next look */
    assert_shows(a, "100.0   100.0");
    assert_shows(a, "samples 14");
    assert_shows(a, "50 of 100 Hz  cost");
    app_set_state(a, SESSION_RECONNECTING, NULL, 1);
    assert_shows(a, "NOT SAMPLING");
    app_free(a);
}

/* Whatever the order and the data do, the chosen function stays selected, by function and by line. */
static void test_selection_follows_the_function(void **state) {
    static const char *const orders[] = {">", ">", "<", "I", "F6", "F6", "F6", "F6", "W", "W", "W", "l", "l"};
    struct app *a = top_app(8);
    (void)state;
    assert_shows(a, "Functions 12");
    fixture_press(a, "/ \"AdamW Enter Enter");
    assert_shows(a, "Calls of AdamW.step");
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        fixture_press(a, orders[i]);
        assert_shows(a, "Calls of AdamW.step");
        fixture_samples(a, 3);
        assert_shows(a, "Calls of AdamW.step");
    }
    app_free(a);
}

static void test_calls(void **state) {
    struct app *a = top_app(8);
    (void)state;
    fixture_press(a, "/ \"Block Enter Enter");
    assert_shows(a, "Calls of Block.forward  shares of its 19.0%");
    assert_shows(a, "called by  100.0");
    assert_shows(a, "calls       64.0");
    assert_shows(a, "calls       36.0");
    fixture_press(a, "j Enter");
    assert_hides(a, "Calls of Block.forward");
    assert_shows(a, "Calls of Module._call_impl");
    assert_shows(a, "called by   64.0"); /* by Block.forward; train_step is above all of them */
    assert_shows(a, "called by  100.0");
    fixture_press(a, "g Enter");
    assert_shows(a, "Calls of train_step");
    fixture_press(a, "o j");
    assert_hides(a, "Calls of train_step");
    fixture_press(a, "Esc Esc Esc");
    assert_hides(a, "Calls of");
    app_free(a);
}

static void test_pause(void **state) {
    struct app *a = top_app(8);
    char before[20000], *table;
    (void)state;
    fixture_press(a, "Z");
    (void)snprintf(before, sizeof before, "%s", fixture_draw(a, 40, 100));
    table = strstr(before, " %OWN");
    assert_non_null(table);
    fixture_samples(a, 20);
    assert_non_null(strstr(fixture_draw(a, 40, 100), table));
    fixture_press(a, ") ("); /* going round while it is frozen changes nothing */
    assert_non_null(strstr(fixture_draw(a, 40, 100), table));
    assert_shows(a, "samples 583");
    fixture_press(a, "Z");
    assert_shows(a, "samples 2041");
    app_free(a);
}

/* Frozen on one screen is frozen on both, from the same moment; let go on one, let go on both. */
static void test_pause_of_both_screens(void **state) {
    struct app *a = top_app(8);
    (void)state;
    fixture_press(a, "2");
    fixture_samples(a, 8);
    fixture_press(a, "Z");
    fixture_samples(a, 8);
    next_snapshot(a, 20);
    next_snapshot(a, 21);
    fixture_press(a, "4");
    assert_shows(a, "samples 1166"); /* sixteen batches */
    fixture_press(a, "Z 2");
    assert_hides(a, "FROZEN");
    assert_shows(a, "functional.py:126");
    app_free(a);
}

static void test_threads(void **state) {
    struct app *a = top_app(8);
    (void)state;
    assert_shows(a, "threads all (4)");
    fixture_press(a, ") )");
    assert_shows(a, "thread QueueFeederThread (4251)");
    assert_shows(a, "Functions 2");
    fixture_press(a, ")");
    assert_shows(a, "thread ? (4252)");
    assert_shows(a, "(no Python frame)");
    fixture_press(a, ") )");
    assert_shows(a, "threads all (4)");
    fixture_press(a, "(");
    assert_hides(a, "threads all");
    app_free(a);
}

static void test_less_is_shown(void **state) {
    struct app *a = top_app(8);
    (void)state;
    fixture_press(a, "+ + + + +");
    assert_shows(a, "from 5%");
    assert_hides(a, "evil");
    fixture_press(a, "-");
    assert_shows(a, "from 2%");
    fixture_press(a, "\\ \"!train.py Enter");
    assert_hides(a, "train_step");
    assert_shows(a, "FILTER !train.py");
    fixture_press(a, "a");
    assert_shows(a, "time ON CPU");
    assert_hides(a, "(no Python frame)");
    fixture_press(a, "A");
    assert_shows(a, "Functions 12 ");
    assert_shows(a, "time WALL");
    fixture_press(a, "\\ \"nonsense Enter");
    assert_shows(a, "nothing matches: A shows all");
    app_free(a);
}

/* Who waits does not lead the list before that is asked for. */
static void test_waits_come_on_request(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    fixture_press(a, "4");
    fixture_samples(a, 40);
    assert_shows(a, "time ON CPU");
    assert_shows(a, "GC 4.0%"); /* of 25 samples of a batch that were on the CPU, one */
    assert_hides(a, "(no Python frame)");
    fixture_press(a, "a");
    assert_shows(a, "time WALL");
    assert_shows(a, "GC 1.4%");
    assert_shows(a, "(no Python frame)");
    app_free(a);
}

/* What sampling costs and may cost, and that running threads are read as they run. */
static void test_what_sampling_costs(void **state) {
    struct app *a = top_app(16);
    struct model_sample_batch b = {.epoch = 1, .mode = MODEL_SAMPLING_GENTLE, .budget_pct = 0.5};
    (void)state;
    assert_shows(a, "cost 0.42 of 1%");
    assert_shows(a, "torn stacks 2 (0.17%)");
    b.cost_pct = 0.25;
    app_take_samples(a, &b);
    assert_shows(a, "cost 0.25 of 0.5%");
    assert_shows(a, "torn stacks 2 (0.17%)");
    assert_non_null(strstr(fixture_draw(a, 24, 80), "torn stacks 2"));
    app_free(a);
}

/* The role of the first cell of a text on the screen, behind ASCII in its row. */
static enum theme_role role_of(struct app *a, const char *what) {
    char text[1024];
    struct grid g;
    enum theme_role role = ROLE_COUNT;
    assert_int_equal(grid_init(&g, 24, 80), 0);
    app_draw(a, &g);
    for (int y = 0; y < 24 && role == ROLE_COUNT; y++) {
        grid_row_text(&g, grid_rect(&g), y, text, sizeof text, NULL);
        const char *at = strstr(text, what);
        if (at)
            role = (enum theme_role)g.cells[y * 80 + (at - text)].role;
    }
    grid_fini(&g);
    return role;
}

/* A lower rate has its reason beside it where that is known, and is a warning below half of what was asked for. */
static void test_a_rate_that_is_lower(void **state) {
    static const struct {
        double wanted_hz, hz, cost_pct, budget_pct;
        const char *shown;
        bool is_warning;
    } cases[] = {
        {100, 96, 0.99, 1, "sampling 96 of 100 Hz  cost", false},
        {100, 80, 0.99, 1, "sampling slowed to 80 Hz to stay under 1 %  torn stacks 0  dropped 0", false},
        {100, 50, 0.99, 1, "sampling slowed to 50 Hz to stay under 1 %  torn", false},
        {100, 40, 0.2, 0.25, "sampling slowed to 40 Hz to stay under 0.25 %  torn stacks 0  dropped 0", true},
        {100, 40, 0.4, 1, "sampling 40 of 100 Hz  cost 0.40 of 1%  torn stacks 0  dropped 0", true},
        {100, 40, NAN, NAN, "sampling 40 of 100 Hz  torn", true},
        {20, 20, 0.2, 1, "sampling 20 of 20 Hz  cost", false},
        {20, 27, 0.2, 1, "sampling 20 of 20 Hz  cost", false},
        {0.5, 0.5, 0.2, 1, "sampling 0.5 of 0.5 Hz  cost", false},
        {1000, 499, 0.97, 1, "sampling slowed to 499 Hz to stay under 1 %  torn stacks 0  dropped 0", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
        struct model_sample s = {.tid = 4242, .on_cpu = 1};
        struct model_sample_batch b = {.epoch = 1,
                                       .period_us = 1e6 / cases[i].hz,
                                       .cost_pct = cases[i].cost_pct,
                                       .budget_pct = cases[i].budget_pct,
                                       .samples = &s,
                                       .n_samples = 1};
        a->config.sample_hz = cases[i].wanted_hz;
        fixture_press(a, "4");
        app_take_samples(a, &b);
        fixture_shows(a, 24, 80, cases[i].shown);
        assert_int_equal(role_of(a, cases[i].shown + strlen("sampling ")),
                         cases[i].is_warning ? ROLE_CONN_WAIT : ROLE_VALUE);
        app_free(a);
    }
}

static void test_zero_and_windows(void **state) {
    struct app *a = top_app(80); /* 20 s; every eighth batch has a torn sample */
    (void)state;
    assert_shows(a, "samples 5830");
    fixture_press(a, "W");
    assert_shows(a, "last 10 s");
    assert_hides(a, "samples 5830");
    fixture_press(a, "W");
    assert_shows(a, "last 60 s  samples 5830");
    fixture_press(a, "W z");
    assert_shows(a, "samples 0");
    fixture_samples(a, 1);
    assert_shows(a, "samples 73");
    app_free(a);
}

static void test_leaving(void **state) {
    struct app *a = top_app(8);
    (void)state;
    fixture_press(a, "/ \"main Enter Enter alt-o Esc Esc Esc Esc");
    assert_shows(a, "%OWN");
    assert_hides(a, "Calls of");
    fixture_press(a, "Esc");
    assert_shows(a, "Stack of MainThread");
    fixture_press(a, "4 q");
    assert_true(fake_host_take().quit);
    app_free(a);
}

static void test_mouse(void **state) {
    struct app *a = top_app(8);
    struct input_event e = {.kind = INPUT_EVENT_MOUSE, .button = INPUT_CLICK};
    (void)state;
    (void)fixture_draw(a, 40, 100);
    e.row = 7; /* the head */
    e.col = 10;
    app_input(a, &e);
    assert_shows(a, "sorted by %TOTAL");
    e.row = 9; /* the second row */
    app_input(a, &e);
    fixture_press(a, "Enter");
    assert_shows(a, "Calls of (no Python frame)");
    app_free(a);
}

/* Any keys, clicks, sizes and data, in any order. */
static void test_anything(void **state) {
    static const int sizes[][2] = {{24, 80}, {50, 200}, {12, 60}, {13, 141}};
    (void)state;
    srand(5);
    struct app *a = top_app(1);
    for (int i = 0; i < 6000; i++) {
        static const char keys[] = "4422LLaaWW0+-[]IowA<>jkgG /\\xt\r\r\r";
        struct input_event e = {.kind = INPUT_EVENT_KEY};
        e.key = (uint32_t)keys[(size_t)rand() % (sizeof keys - 1)];
        if (e.key == '\r')
            e.key = INPUT_ENTER;
        if (rand() % 12 == 0)
            e.key = rand() % 2 ? INPUT_ESC : '?';
        if (rand() % 10 == 0)
            e = (struct input_event){.kind = INPUT_EVENT_MOUSE,
                                     .button = (enum input_button)(1 + rand() % 3),
                                     .row = rand() % 50,
                                     .col = rand() % 200};
        app_input(a, &e);
        if (rand() % 5 == 0)
            fixture_samples(a, 1 + rand() % 3);
        if (rand() % 5 == 0)
            next_snapshot(a, i);
        const int *size = sizes[(size_t)rand() % (sizeof sizes / sizeof sizes[0])];
        assert_true(strlen(fixture_draw(a, size[0], size[1])) > 0);
    }
    app_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_only_when_needed),
        cmocka_unit_test(test_it_is_as_it_was_left),
        cmocka_unit_test(test_first_samples),
        cmocka_unit_test(test_selection_follows_the_function),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_pause_of_both_screens),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_less_is_shown),
        cmocka_unit_test(test_waits_come_on_request),
        cmocka_unit_test(test_what_sampling_costs),
        cmocka_unit_test(test_a_rate_that_is_lower),
        cmocka_unit_test(test_zero_and_windows),
        cmocka_unit_test(test_leaving),
        cmocka_unit_test(test_mouse),
        cmocka_unit_test(test_anything),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
