/* SPDX-License-Identifier: Apache-2.0 */
/* The action table: no key twice in a context, nothing without help, and everything in it is really done by a screen. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <ctype.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/text.h"
#include "tui/core/action_keys.h"
#include "tui/core/action_table.h"
#include "tui/core/app_life.h"
#include "tui/core/app_screen.h"
#include "tui/core/screen.h"
#include "tui/keys/action.h"
#include "tui/keys/input.h"
#include "unit/tui_fixture.h"
#include "unit/tui_job.h"
#include "unit/tui_repl.h"

static void test_keys_parse_and_print(void **state) {
    (void)state;
    for (const struct action_def *d = action_table(); d->action; d++)
        for (size_t i = 0; i < ACTION_MAX_KEYS && d->keys[i]; i++) {
            char name[32];
            uint32_t key = input_key_parse(d->keys[i]);
            assert_true(key != INPUT_NONE);
            input_key_name(key, name, sizeof name);
            assert_string_equal(name, d->keys[i]);
        }
}

static void test_no_key_twice_in_a_context(void **state) {
    (void)state;
    int bad = 0;
    for (int c = 0; c < CONTEXT_COUNT; c++)
        for (const struct action_def *a = action_table(); a->action; a++)
            for (const struct action_def *b = a; b->action; b++)
                for (int i = 0; i < ACTION_MAX_KEYS && a->keys[i]; i++)
                    for (int k = a == b ? i + 1 : 0; k < ACTION_MAX_KEYS && b->keys[k]; k++)
                        if ((a->contexts & b->contexts & ACTION_IN(c)) &&
                            strcmp(a->keys[i], b->keys[k]) == 0) {
                            print_error("%s: %s is both %s and %s\n",
                                        action_context_name((enum action_context)c), a->keys[i], a->name,
                                        b->name);
                            bad++;
                        }
    assert_int_equal(bad, 0);
}

/* Does the row close the screen that another row opens with that key? */
static bool closes_what_it_opened(const struct action_def *row, const struct action_def *opens) {
    const struct screen_def *def = screen_of_action(opens->action);
    return def && row->action == ACTION_QUIT && (row->contexts & ~screen_contexts(def)) == 0;
}

static bool is_one_thing(const struct action_def *a, const struct action_def *b) {
    return a->action == b->action || (a->label && b->label && strcmp(a->label, b->label) == 0) ||
           closes_what_it_opened(a, b) || closes_what_it_opened(b, a);
}

/* A letter or a digit does one thing on all screens: one action, or actions that the footer calls by one word. */
static void test_a_letter_means_one_thing(void **state) {
    (void)state;
    int bad = 0;
    for (const struct action_def *a = action_table(); a->action; a++)
        for (const struct action_def *b = a + 1; b->action; b++)
            for (int i = 0; i < ACTION_MAX_KEYS && a->keys[i]; i++)
                for (int k = 0; k < ACTION_MAX_KEYS && b->keys[k]; k++)
                    if (strcmp(a->keys[i], b->keys[k]) == 0 && strlen(a->keys[i]) == 1 &&
                        isalnum((unsigned char)a->keys[i][0]) && !is_one_thing(a, b)) {
                        print_error("%s is both %s and %s\n", a->keys[i], a->name, b->name);
                        bad++;
                    }
    assert_int_equal(bad, 0);
}

/* Who knows htop finds its keys. */
static void test_keys_of_htop(void **state) {
    static const struct {
        const char *key;
        enum action action;
    } keys[] = {{"F1", ACTION_SHOW_HELP},  {"h", ACTION_SHOW_HELP},     {"?", ACTION_SHOW_HELP},
                {"F2", ACTION_SHOW_SETUP}, {"F3", ACTION_SEARCH},       {"/", ACTION_SEARCH},
                {"F4", ACTION_FILTER},     {"\\", ACTION_FILTER},       {"F6", ACTION_SORT_NEXT},
                {">", ACTION_SORT_NEXT},   {"<", ACTION_SORT_PREV},     {"I", ACTION_SORT_INVERT},
                {"P", ACTION_SORT_CPU},    {"F10", ACTION_QUIT},        {"q", ACTION_QUIT},
                {"Space", ACTION_TAG},     {"U", ACTION_UNTAG},         {"Z", ACTION_PAUSE},
                {"H", ACTION_HIDE_NATIVE}, {"Tab", ACTION_SCREEN_NEXT}, {"S-Tab", ACTION_SCREEN_PREV},
                {"#", ACTION_METERS},      {"ctrl-l", ACTION_REDRAW}};
    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        assert_int_equal(action_find(CONTEXT_THREADS, input_key_parse(keys[i].key)), keys[i].action);
    assert_int_equal(action_find(CONTEXT_MODULES, input_key_parse("F5")), ACTION_TREE);
    assert_int_equal(action_find(CONTEXT_TENSORS, input_key_parse("t")), ACTION_TREE);
}

/* Tab goes round the screens, and back. */
static void test_next_and_previous_screen(void **state) {
    (void)state;
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    fixture_press(a, "Tab Tab");
    assert_ptr_equal(app_screen_top(a)->def, &screen_top);
    fixture_press(a, "S-Tab S-Tab S-Tab S-Tab");
    assert_ptr_equal(app_screen_top(a)->def, &screen_memory);
    fixture_press(a, "Tab");
    assert_ptr_equal(app_screen_top(a)->def, &screen_overview);
    app_free(a);
}

static void test_rows_are_complete(void **state) {
    (void)state;
    bool seen[ACTION_COUNT] = {false};
    for (const struct action_def *d = action_table(); d->action; d++) {
        seen[d->action] = true;
        assert_true(d->name && *d->name && d->help && *d->help && d->keys[0] && d->contexts);
        /* Shown whole by the help on 80 columns. */
        assert_in_range(text_width(d->help), 1, 57);
    }
    for (int a = ACTION_NONE + 1; a < ACTION_COUNT; a++)
        /* with these the program begins */
        assert_true(seen[a] || a == ACTION_SHOW_PICKER || a == ACTION_SHOW_JOB_PICKER);
}

/* A line of the settings file names one row: an action's name is there once in a context. */
static void test_no_name_twice_in_a_context(void **state) {
    (void)state;
    for (const struct action_def *a = action_table(); a->action; a++)
        for (const struct action_def *b = a + 1; b->action; b++)
            if ((a->contexts & b->contexts & ACTION_EVERYWHERE) && strcmp(a->name, b->name) == 0)
                fail_msg("two rows of one context are named %s", a->name);
}

static void test_find(void **state) {
    (void)state;
    assert_int_equal(action_find(CONTEXT_THREADS, 'q'), ACTION_QUIT);
    assert_int_equal(action_find(CONTEXT_STACK, INPUT_ESC), ACTION_BACK);
    assert_int_equal(action_find(CONTEXT_PICKER, INPUT_ENTER), ACTION_ATTACH);
    assert_int_equal(action_find(CONTEXT_HELP, INPUT_ENTER), ACTION_RUN_ENTRY);
    assert_int_equal(action_find(CONTEXT_OVERVIEW, ' '), ACTION_NONE);
    assert_int_equal(action_find(CONTEXT_THREADS, 0x1f525), ACTION_NONE);
    assert_null(action_row(ACTION_ATTACH, CONTEXT_THREADS));
}

static void test_key_names(void **state) {
    static const struct {
        const char *name;
        uint32_t key;
    } names[] = {{"a", 'a'},
                 {"ctrl-l", INPUT_CTRL + 'l'},
                 {"alt-x", INPUT_ALT | 'x'},
                 {"F12", INPUT_F0 + 12},
                 {"S-F3", INPUT_F0 + 15},
                 {"Space", ' '},
                 {"Esc", INPUT_ESC},
                 {"\xc3\xa9", 0xe9},
                 {"alt-Left", INPUT_ALT | INPUT_LEFT}};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char text[32];
        assert_int_equal(input_key_parse(names[i].name), names[i].key);
        input_key_name(names[i].key, text, sizeof text);
        assert_string_equal(text, names[i].name);
    }
    assert_int_equal(input_key_parse("F13"), INPUT_NONE);
    assert_int_equal(input_key_parse("F"), 'F');
    assert_int_equal(input_key_parse("nonsense"), INPUT_NONE);
    assert_int_equal(input_key_parse(""), INPUT_NONE);
}

static void test_list_keys(void **state) {
    struct strbuf out;
    (void)state;
    strbuf_init(&out, 1 << 20);
    action_list_keys(&out);
    assert_non_null(strstr(strbuf_str(&out), "threads  Z          freeze "));
    assert_non_null(strstr(strbuf_str(&out), "picker   Enter      attach "));
    strbuf_fini(&out);
}

/* Keys that lead from Threads to a context. */
static const char *keys_to(int context) {
    switch (context) {
    case CONTEXT_THREADS:
    case CONTEXT_PICKER:
    case CONTEXT_JOB_PICKER:
        return "";
    case CONTEXT_STACK:
        return "Enter";
    case CONTEXT_SQL_COMPLETE:
        return "S Tab";
    case CONTEXT_SQL_SHEET:
        return "S F4";
    case CONTEXT_REPL_COMPLETE:
        return "R";
    case CONTEXT_REPL_OUTPUT:
        return "R Esc";
    case CONTEXT_RANKS:
        return "p";
    case CONTEXT_STACKS:
        return "O";
    default:
        for (const struct screen_def *const *s = screen_list; *s; s++)
            if (screen_contexts(*s) & ACTION_IN(context))
                return (*s)->opens[0].keys[0];
        return "";
    }
}

/* Pressing any key of the table anywhere never ends in "does nothing here". */
static void test_every_key_is_dispatched(void **state) {
    (void)state;
    for (int c = 0; c < CONTEXT_COUNT; c++)
        for (const struct action_def *d = action_table(); d->action; d++)
            for (size_t i = 0; (d->contexts & ACTION_IN(c)) && i < ACTION_MAX_KEYS && d->keys[i]; i++) {
                struct app *a = c == CONTEXT_PICKER       ? fixture_picker(false)
                                : c == CONTEXT_JOB_PICKER ? job_fixture_picker(false)
                                                          : fixture_app(FIXTURE_NORMAL, 3, false);
                if (c == CONTEXT_RANKS || c == CONTEXT_STACKS)
                    job_fixture_give(a, JOB_FIXTURE_HUNG);
                fixture_press(a, keys_to(c));
                if (c == CONTEXT_REPL_COMPLETE)
                    repl_fixture_complete(a, "co", "count\ncontinue");
                assert_int_equal(screen_context(app_screen_top(a)->def, app_screen_top(a)->state), c);
                fixture_press(a, d->keys[i]);
                assert_null(strstr(a->message, "does nothing"));
                app_free(a);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_parse_and_print),
        cmocka_unit_test(test_no_key_twice_in_a_context),
        cmocka_unit_test(test_a_letter_means_one_thing),
        cmocka_unit_test(test_keys_of_htop),
        cmocka_unit_test(test_next_and_previous_screen),
        cmocka_unit_test(test_rows_are_complete),
        cmocka_unit_test(test_no_name_twice_in_a_context),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_key_names),
        cmocka_unit_test(test_list_keys),
        cmocka_unit_test(test_every_key_is_dispatched),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
