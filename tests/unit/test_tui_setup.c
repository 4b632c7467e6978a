/* SPDX-License-Identifier: Apache-2.0 */
/* The setup screen and the choice of a theme: what keys change, what is shown while one chooses, and what is left afterwards. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "tui/core/app_input.h"
#include "tui/core/app_life.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_settings.h"
#include "tui/core/app_take.h"
#include "tui/core/command.h"
#include "tui/core/settings.h"
#include "tui/keys/input.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"

static char names[][THEME_MAX_NAME] = {"auto", "light", "mono", "nord"};

static void assert_shows(struct app *a, const char *what) { fixture_shows(a, 24, 80, what); }

/* The theme that was asked for last; "" none. */
static const char *theme_asked(void) {
    static char name[SETTINGS_TEXT];
    struct fake_asked w = fake_host_take();
    memcpy(name, w.theme, sizeof name);
    return name;
}

static struct app *choosing(void) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 2, false);
    fixture_press(a, "alt-t");
    assert_true(fake_host_take().list_themes);
    app_take_themes(a, names, sizeof names / sizeof names[0]);
    return a;
}

static void test_moving_shows(void **state) {
    struct app *a = choosing();
    (void)state;
    assert_shows(a, " auto (in use)");
    assert_shows(a, "MainThread"); /* the screen below */
    assert_string_equal(theme_asked(), "");
    fixture_press(a, "j");
    assert_string_equal(theme_asked(), "light");
    fixture_press(a, "End");
    assert_string_equal(theme_asked(), "nord");
    fixture_press(a, "/ \"mono Enter");
    assert_string_equal(theme_asked(), "mono");
    assert_string_equal(a->settings.values[SETTINGS_THEME], "auto");
    app_free(a);
}

/* Enter keeps it: it is the setting, and nothing is written yet. */
static void test_enter_keeps(void **state) {
    struct app *a = choosing();
    (void)state;
    fixture_press(a, "j j Enter");
    assert_string_equal(theme_asked(), "mono");
    assert_string_equal(a->settings.values[SETTINGS_THEME], "mono");
    assert_int_equal(a->settings.origins[SETTINGS_THEME], SETTINGS_BY_KEY);
    assert_string_equal(app_screen_top(a)->def->name, "threads");
    assert_false(fake_host_take().save_settings);
    app_free(a);
}

/* However else it is left, the look is that from before. */
static void test_leaving_goes_back(void **state) {
    static const char *const ways[] = {"Esc", "q"};
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct app *a = choosing();
        struct err e;
        assert_int_equal(app_settings_set(a, "theme", "light", &e), 0);
        fixture_press(a, "End");
        assert_string_equal(theme_asked(), "nord");
        fixture_press(a, ways[i]);
        assert_string_equal(theme_asked(), "light");
        assert_string_equal(app_screen_top(a)->def->name, "threads");
        app_free(a);
    }
}

/* A theme that is a file is in no folder: it is left alone until another one is chosen. */
static void test_a_file_that_is_in_no_folder(void **state) {
    struct app *a = choosing();
    struct err e;
    (void)state;
    assert_int_equal(app_settings_set(a, "theme", "/x/my.theme", &e), 0);
    (void)fake_host_take();
    fixture_press(a, "Esc alt-t");
    app_take_themes(a, names, sizeof names / sizeof names[0]);
    fixture_press(a, "j");
    assert_string_equal(theme_asked(), "light");
    fixture_press(a, "Esc");
    assert_string_equal(theme_asked(), "/x/my.theme");
    app_free(a);
}

/* ---- setup ---- */

static void test_setup_changes_at_once(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 2, false);
    (void)state;
    fixture_press(a, "F2 / \"mouse Enter Enter");
    assert_false(a->mouse);
    assert_shows(a, "changed, not saved");
    assert_shows(a, "1 changed and not saved");
    fixture_press(a, "Left");
    assert_true(a->mouse);
    fixture_press(a, "Esc / \"header Enter Right");
    assert_true(a->folded);
    fixture_press(a, "Esc g Right");
    assert_true(a->config.delay_s > 0.25);
    fixture_press(a, "/ \"color Enter Right");
    assert_string_equal(a->settings.values[SETTINGS_COLOR], "always");
    assert_string_equal(theme_asked(), "auto");
    app_free(a);
}

static void test_setup_types_a_value(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 2, false);
    (void)state;
    fixture_press(a, "F2 / \"budget Enter Esc Enter");
    fixture_press(a, "\"lots Enter");
    assert_shows(a, "budget takes percent of a core");
    assert_string_equal(a->settings.values[SETTINGS_BUDGET], "");
    fixture_press(a, "Enter \"0.5 Enter");
    assert_string_equal(a->settings.values[SETTINGS_BUDGET], "0.5");
    assert_shows(a, "0.5");
    fixture_press(a, "/ \"rate Enter Esc Enter");
    fixture_press(a, "Backspace Backspace Backspace \"2kHz Enter");
    assert_shows(a, "rate takes a number from 0.1 to 1000 (Hz), not '2kHz'");
    fixture_press(a, "Enter Backspace Backspace Backspace \"20Hz Enter");
    assert_string_equal(a->settings.values[SETTINGS_RATE], "20");
    app_free(a);
}

static void test_by_command(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 2, false);
    (void)state;
    app_take_themes(a, names, sizeof names / sizeof names[0]);
    app_input_command(a, "theme light");
    assert_string_equal(theme_asked(), "light");
    assert_string_equal(a->settings.values[SETTINGS_THEME], "light");
    app_input_command(a, "theme");
    assert_string_equal(app_screen_top(a)->def->name, "themes");
    fixture_press(a, "Esc");
    app_input_command(a, "save-settings");
    assert_true(fake_host_take().save_settings);
    struct command_choices c;
    command_complete(a, "theme mo", &c);
    assert_int_equal(c.n, 1);
    assert_string_equal(c.items[0].text, "mono");
    command_choices_fini(&c);
    app_free(a);
}

static void test_setup_opens_the_themes(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 2, false);
    (void)state;
    fixture_press(a, "F2 / \"theme Enter Esc Enter");
    assert_string_equal(app_screen_top(a)->def->name, "themes");
    app_take_themes(a, names, sizeof names / sizeof names[0]);
    assert_shows(a, "Stack of MainThread"); /* not the setup */
    fixture_press(a, "j Enter");
    assert_string_equal(app_screen_top(a)->def->name, "setup");
    assert_shows(a, "light");
    app_free(a);
}

/* Saving is asked for, from anywhere; where to is said. */
static void test_saving_is_a_wish(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 2, false);
    (void)state;
    a->config.config_path = "/home/ada/.config/probing-top/config";
    fixture_press(a, "ctrl-t F12");
    assert_true(fake_host_take().save_settings);
    assert_int_equal(a->settings.origins[SETTINGS_MOUSE], SETTINGS_BY_KEY);
    fixture_press(a, "F2");
    assert_shows(a, "/home/ada/.config/probing-top/config");
    assert_false(fake_host_take().save_settings);
    fixture_press(a, "F12");
    assert_true(fake_host_take().save_settings);
    app_free(a);
}

static struct input_event event(enum input_button button, int row, int col) {
    return (struct input_event){.kind = INPUT_EVENT_MOUSE, .button = button, .row = row, .col = col};
}

/* A click selects, and changes what is selected; the wheel scrolls; sizes of all kinds are drawn. */
static void test_mouse_and_sizes(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 2, false);
    (void)state;
    fixture_press(a, "F2");
    const char *screen = fixture_draw(a, 24, 80), *line = strstr(screen, " mouse ");
    int row = 0;
    for (const char *p = screen; p < line; p++)
        row += *p == '\n';
    struct input_event click = event(INPUT_CLICK, row, 4), wheel = event(INPUT_WHEEL_DOWN, row, 4);
    app_input(a, &click);
    assert_true(a->mouse);
    app_input(a, &click);
    assert_false(a->mouse);
    app_input(a, &wheel);
    for (int rows = 1; rows < 40; rows += 3)
        for (int cols = 1; cols < 120; cols += 13)
            (void)fixture_draw(a, rows, cols);
    fixture_press(a, "alt-t");
    app_take_themes(a, names, sizeof names / sizeof names[0]);
    app_input(a, &wheel);
    for (int rows = 1; rows < 40; rows += 3)
        for (int cols = 1; cols < 120; cols += 13)
            (void)fixture_draw(a, rows, cols);
    app_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moving_shows),
        cmocka_unit_test(test_enter_keeps),
        cmocka_unit_test(test_leaving_goes_back),
        cmocka_unit_test(test_a_file_that_is_in_no_folder),
        cmocka_unit_test(test_setup_changes_at_once),
        cmocka_unit_test(test_setup_types_a_value),
        cmocka_unit_test(test_by_command),
        cmocka_unit_test(test_setup_opens_the_themes),
        cmocka_unit_test(test_saving_is_a_wish),
        cmocka_unit_test(test_mouse_and_sizes),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
