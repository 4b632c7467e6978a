/* SPDX-License-Identifier: Apache-2.0 */
/* The tour: its pages, what its keys do and what they leave to the screens, and that hints fit. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "tui/core/action_table.h"
#include "tui/core/app.h"
#include "tui/core/app_life.h"
#include "tui/core/app_screen.h"
#include "tui/core/screen.h"
#include "tui/core/tour.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"

static struct app *begun(void) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    tour_begin(a);
    return a;
}

static const struct screen_def *shown(struct app *a) { return app_screen_top(a)->def; }

/* Each page opens its screen, each {name} is a key there, and both lines fit into 80 columns. */
static void test_pages(void **state) {
    struct app *a = begun();
    char text[TOUR_HINT_MAX];
    int page = 0;
    (void)state;
    for (const struct tour_page *p = tour_pages; p->opens; p++, page++) {
        assert_int_equal(a->tour.page, page);
        assert_ptr_equal(shown(a), screen_of_action(p->opens));
        enum action_context context = screen_context(shown(a), app_screen_top(a)->state);
        for (const char *at = p->keys; (at = strchr(at, '{')); at++) {
            char name[32];
            (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 1, "}"), at + 1);
            if (!action_named(name, context))
                fail_msg("page %d names {%s}, which %s lacks", page + 1, name, shown(a)->name);
        }
        const char *const lines[] = {p->answers, p->keys};
        for (int i = 0; i < 2; i++) {
            tour_put_text(lines[i], context, text, sizeof text);
            if (text_width(text) > 78)
                fail_msg("page %d does not fit into 80 columns: %s", page + 1, text);
            fixture_shows(a, 24, 80, text);
        }
        fixture_press(a, "Enter");
    }
    assert_true(page >= 10);
    assert_true(fake_host_take().quit); /* Enter on the last page */
    app_free(a);
}

static void test_back_and_end(void **state) {
    struct app *a = begun();
    (void)state;
    fixture_shows(a, 24, 80, "Tour 1 of 10: Overview");
    fixture_press(a, "Left");
    assert_int_equal(a->tour.page, 0);
    assert_false(fake_host_take().quit);
    fixture_press(a, "Right Right Left");
    fixture_shows(a, 24, 80, "Tour 2 of 10: Threads");
    fixture_press(a, "Esc");
    assert_true(fake_host_take().quit);
    app_free(a);
    a = begun();
    fixture_press(a, "Enter q");
    assert_true(fake_host_take().quit);
    app_free(a);
}

/* Other keys do what they do without the tour; so do all of them in a prompt, a question, the help. */
static void test_keys_of_the_screens(void **state) {
    struct app *a = begun();
    (void)state;
    fixture_press(a, "Enter / \"q Enter");
    assert_false(fake_host_take().quit);
    assert_int_equal(a->tour.page, 1);
    fixture_press(a, "?");
    assert_ptr_equal(shown(a), &screen_help);
    fixture_shows(a, 24, 80, "Down selects the next thread");
    fixture_press(a, "q");
    assert_ptr_equal(shown(a), &screen_threads);
    fixture_press(a, "B");
    assert_int_equal(a->ask.action, ACTION_DEBUG);
    fixture_press(a, "Esc");
    assert_false(fake_host_take().quit);
    fixture_press(a, "4");
    assert_ptr_equal(shown(a), &screen_top);
    fixture_shows(a, 24, 80, "Another screen is open. Enter continues the tour.");
    fixture_press(a, "Right");
    assert_ptr_equal(shown(a), &screen_flame);
    app_free(a);
}

/* Where text is typed, keys edit it from the first letter on, until Esc. */
static void test_typing(void **state) {
    struct app *a = begun();
    (void)state;
    while (shown(a) != &screen_sql)
        fixture_press(a, "Enter");
    fixture_shows(a, 24, 80, "FROM python.threads;");
    int page = a->tour.page;
    fixture_press(a, "Left Right");
    fixture_shows(a, 24, 80, "FROM python.threads;"); /* it is not typed again */
    fixture_hides(a, 24, 80, "python.threads;SELECT");
    fixture_press(a, "\"xq Left Right");
    assert_int_equal(a->tour.page, page);
    fixture_shows(a, 24, 80, "Esc: stop typing");
    fixture_shows(a, 24, 80, "python.threads;xq");
    fixture_press(a, "Esc");
    assert_false(fake_host_take().quit);
    fixture_press(a, "Left");
    assert_int_equal(a->tour.page, page - 1);
    app_free(a);
}

/* Screens of torch are left out in a job without it. */
static void test_without_torch(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    a->data.target.torch = NULL;
    tour_begin(a);
    fixture_shows(a, 24, 80, "Tour 1 of 7: Overview");
    for (int i = 0; i < 6; i++) {
        fixture_press(a, "Enter");
        assert_false(shown(a)->needs_torch);
    }
    fixture_shows(a, 24, 80, "Tour 7 of 7: Overview");
    app_free(a);
}

static void test_sizes(void **state) {
    struct app *a = begun();
    (void)state;
    fixture_shows(a, 12, 40, "Tour 1 of 10: Overview");
    fixture_shows(a, 12, 40, "What is wrong, and where?");
    fixture_hides(a, 12, 40, "select a line");
    fixture_shows(a, 45, 160, "Down and Up select a line");
    fixture_hides(a, 11, 40, "Tour"); /* too small for anything */
    fixture_press(a, "q");
    assert_true(fake_host_take().quit);
    app_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_back_and_end),
        cmocka_unit_test(test_keys_of_the_screens),
        cmocka_unit_test(test_typing),
        cmocka_unit_test(test_without_torch),
        cmocka_unit_test(test_sizes),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    (void)setenv("TZ", "UTC", 1);
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
