/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: what its commands do, what it completes, what it recalls, and that it says what is wrong. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tui/core/action_table.h"
#include "tui/core/command.h"
#include "tui/core/app.h"
#include "tui/core/app_input.h"
#include "tui/core/app_life.h"
#include "tui/core/app_screen.h"
#include "tui/keys/input.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"

static void assert_shows(struct app *a, const char *what) { fixture_shows(a, 24, 80, what); }

static void assert_hides(struct app *a, const char *what) { fixture_hides(a, 24, 80, what); }

static void type_line(struct app *a, const char *line) {
    fixture_press(a, ":");
    for (const char *p = line; *p; p++)
        app_input_key(a, (uint32_t)(unsigned char)*p);
    fixture_press(a, "Enter");
}

static void test_rows_are_complete(void **state) {
    (void)state;
    for (const struct command_def *d = command_rows(); d->name; d++) {
        assert_true(*d->name && d->arguments && d->run && d->contexts);
        assert_in_range(text_width(d->help), 1, 57); /* shown whole by the help on 80 columns */
        assert_in_range(strlen(d->name) + strlen(d->arguments), 1, 20);
        for (const struct command_def *o = d + 1; o->name; o++)
            if (strcmp(o->name, d->name) == 0)
                assert_int_not_equal(o->contexts & d->contexts, o->contexts); /* or it could never be run */
    }
}

/* Every action that has a key where one is can be run by its name there. */
static void test_every_action_by_its_name(void **state) {
    (void)state;
    for (const struct action_def *d = action_table(); d->action; d++) {
        if (!(d->contexts & ACTION_IN(CONTEXT_THREADS)) || d->action == ACTION_COMMAND_LINE)
            continue;
        struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
        type_line(a, d->name);
        if (strstr(a->message, "there is no command") || strstr(a->message, "takes no argument"))
            fail_msg(":%s says '%s'", d->name, a->message);
        app_free(a);
    }
}

static void test_actions_do_what_their_keys_do(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    type_line(a, "hide-native");
    assert_shows(a, "Threads 3 of 6   native hidden");
    type_line(a, "  freeze  ");
    assert_true(a->data.paused);
    type_line(a, "freeze now");
    assert_shows(a, ":freeze takes no argument");
    type_line(a, "flame");
    assert_ptr_equal(app_screen_top(a)->def, &screen_flame);
    type_line(a, "hide-native"); /* there is none such here */
    assert_shows(a, "there is no command 'hide-native' here");
    type_line(a, "q");
    assert_true(fake_host_take().quit);
    app_free(a);
}

static void test_search_and_filter(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    type_line(a, "filter queue");
    assert_shows(a, "FILTER queue");
    type_line(a, "filter nothing like it");
    assert_shows(a, "nothing matches 'nothing like it'");
    type_line(a, "filter");
    assert_shows(a, "Threads 6");
    type_line(a, "search omp");
    assert_shows(a, "/omp: 2 threads");
    assert_shows(a, "Stack of OMP worker");
    fixture_press(a, "?");
    type_line(a, "filter x");
    assert_shows(a, "there is nothing to filter here");
    app_free(a);
}

static void test_thread(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    type_line(a, "thread 4251");
    assert_shows(a, "Stack of QueueFeederThread (4251)");
    type_line(a, "thread pin_memory");
    assert_shows(a, "Stack of Thread-1 (_pin_memory_loop)");
    type_line(a, "thread OMP");
    assert_shows(a, "2 threads have 'OMP' in their names");
    type_line(a, "thread 99");
    assert_shows(a, "there is no thread '99'");
    type_line(a, "thread");
    assert_shows(a, "which one?");
    type_line(a, "thread all");
    assert_shows(a, "all threads are shown here");
    fixture_press(a, "\\ \"Main Enter");
    assert_hides(a, "QueueFeeder");
    type_line(a, "thread 4251"); /* though it was filtered out */
    assert_shows(a, "Stack of QueueFeederThread (4251)");
    fixture_samples(a, 40);
    type_line(a, "top");
    type_line(a, "thread MainThread");
    assert_shows(a, "MainThread");
    assert_ptr_equal(app_screen_top(a)->def, &screen_top);
    type_line(a, "sql SELECT 1");
    type_line(a, "thread MainThread"); /* a screen without threads: to the one that has them */
    assert_ptr_equal(app_screen_top(a)->def, &screen_threads);
    app_free(a);
}

static void test_sql(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    type_line(a, "sql SELECT 1 AS one");
    assert_ptr_equal(app_screen_top(a)->def, &screen_sql);
    assert_string_equal(a->query.text, "SELECT 1 AS one");
    assert_int_equal(a->query.pending, APP_QUERY_RUN);
    type_line(a, "watch 0.1");
    assert_shows(a, ":watch takes seconds");
    type_line(a, "top");
    type_line(a, "watch 5");
    assert_shows(a, "there is no command 'watch' here");
    type_line(a, "sql");
    assert_shows(a, "what query?");
    app_free(a);
}

static void test_attach(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    static const char *const bad[] = {"attach",    "attach x",   "attach 0",
                                      "attach -3", "attach 12x", "attach 99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        type_line(a, bad[i]);
        assert_shows(a, ":attach takes the pid of a process");
        assert_int_equal(fake_host_take().attach, 0);
    }
    type_line(a, "attach 77");
    assert_int_equal(fake_host_take().attach, 77);
    type_line(a, "attach 78");
    assert_shows(a, "an attach to 77 is under way");
    assert_int_equal(fake_host_take().attach, 0);
    app_free(a);
}

static void test_suggestions(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    type_line(a, "treads");
    assert_shows(a, "there is no command 'treads' here: did you mean 'threads'?");
    type_line(a, "xyzzy 1 2 3");
    assert_shows(a, "there is no command 'xyzzy' here: Tab lists those there are");
    type_line(
        a, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    assert_true(a->message_is_bad);
    type_line(a, "");
    assert_string_equal(a->message, "");
    app_free(a);
}

static void test_completion(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    fixture_press(a, ": \"att Tab");
    assert_string_equal(a->prompt.text, "attach "); /* the only one */
    fixture_press(a, "ctrl-u \"hide Tab");
    assert_string_equal(a->prompt.text, "hide-"); /* what they have in common */
    assert_shows(a, " hide-idle ");
    assert_shows(a, " hide-native ");
    fixture_press(a, "Tab Enter"); /* takes the second, and runs nothing */
    assert_string_equal(a->prompt.text, "hide-native ");
    assert_int_equal(a->prompt_for, ACTION_COMMAND_LINE);
    assert_hides(a, " hide-idle ");
    fixture_press(a, "Enter");
    assert_int_equal(a->prompt_for, ACTION_NONE);
    assert_shows(a, "native hidden");
    fixture_press(a, ": \"thread Space Tab");
    assert_shows(a, " MainThread ");
    fixture_press(a, "\"Q Enter"); /* typing narrows it */
    assert_string_equal(a->prompt.text, "thread QueueFeederThread ");
    fixture_press(a, "ctrl-u \"thread Space \"42 Tab");
    assert_shows(a, " 4251 ");
    fixture_press(a, "Esc"); /* the list, then the line */
    assert_hides(a, " 4261 ");
    assert_int_equal(a->prompt_for, ACTION_COMMAND_LINE);
    fixture_press(a, "ctrl-u \"zzz Tab");
    assert_true(a->prompt_failed);
    fixture_press(a, "Esc");
    assert_int_equal(a->prompt_for, ACTION_NONE);
    fixture_press(a, ": Tab End PgDn PgDn PgUp Up S-Tab Down"); /* all there is, up and down */
    (void)fixture_draw(a, 12, 60);
    (void)fixture_draw(a, 3, 20);
    app_free(a);
}

static void test_history(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    type_line(a, "thread 4251");
    type_line(a, "filter queue");
    type_line(a, "thread 4242");
    assert_true(strcmp(fake_host_take().history, "commands") == 0);
    fixture_press(a, ": Up");
    assert_string_equal(a->prompt.text, "thread 4242");
    fixture_press(a, "Up Up");
    assert_string_equal(a->prompt.text, "thread 4251");
    fixture_press(a, "Up"); /* there is no older one */
    assert_string_equal(a->prompt.text, "thread 4251");
    fixture_press(a, "Down Down Down");
    assert_string_equal(a->prompt.text, "");
    fixture_press(a, "\"thr Up Up"); /* those that begin so */
    assert_string_equal(a->prompt.text, "thread 4251");
    fixture_press(a, "Down Down Esc");
    assert_string_equal(a->prompt.text, "thr");
    app_free(a);
}

/* Pasted text is typed into the line, whatever is in it; nothing of it is run. */
static void test_paste(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    struct input_event paste = {.kind = INPUT_EVENT_PASTE, .text = "q\nQ\x1b[A"};
    (void)state;
    fixture_press(a, ":");
    app_input(a, &paste);
    assert_false(fake_host_take().quit);
    assert_int_equal(a->prompt_for, ACTION_COMMAND_LINE);
    assert_int_equal(strncmp(a->prompt.text, "q Q", 3), 0);
    fixture_press(a, "Enter");
    assert_true(a->message_is_bad); /* "q Q..." is no command without argument */
    assert_false(fake_host_take().quit);
    app_free(a);
}

static void test_help_lists_commands(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    fixture_press(a, "? / \"attach Space \"to Space \"another Enter");
    assert_shows(a, ":attach PID");
    fixture_press(a, "Enter");
    assert_int_equal(a->prompt_for, ACTION_COMMAND_LINE);
    assert_string_equal(a->prompt.text, "attach ");
    app_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_complete),
        cmocka_unit_test(test_every_action_by_its_name),
        cmocka_unit_test(test_actions_do_what_their_keys_do),
        cmocka_unit_test(test_search_and_filter),
        cmocka_unit_test(test_thread),
        cmocka_unit_test(test_sql),
        cmocka_unit_test(test_attach),
        cmocka_unit_test(test_suggestions),
        cmocka_unit_test(test_completion),
        cmocka_unit_test(test_history),
        cmocka_unit_test(test_paste),
        cmocka_unit_test(test_help_lists_commands),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    (void)setenv("TZ", "UTC", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
