/* SPDX-License-Identifier: Apache-2.0 */
/* The settings file: what is right is taken, what is wrong is a line, what is written is read again, and nothing else is touched. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "base/text.h"
#include "tui/core/action_keys.h"
#include "tui/core/action_table.h"
#include "tui/core/app_life.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_settings.h"
#include "tui/keys/action.h"
#include "tui/core/config_file.h"
#include "tui/core/settings.h"
#include "tui/keys/input.h"
#include "unit/tui_fixture.h"

static int reset_keys(void **state) {
    (void)state;
    action_reset_keys();
    return 0;
}

static struct settings parse(const char *text, struct strbuf *warnings) {
    struct settings s;
    settings_init(&s);
    action_reset_keys();
    strbuf_init(warnings, 65536);
    config_file_parse(&s, text, strlen(text), "config", warnings);
    return s;
}

/* Read `text`, hold the warnings against `want`. */
static struct settings parse_with(const char *text, const char *want) {
    struct strbuf w;
    struct settings s = parse(text, &w);
    assert_string_equal(strbuf_str(&w), want);
    strbuf_fini(&w);
    return s;
}

static void test_rows_are_complete(void **state) {
    struct settings s;
    (void)state;
    settings_init(&s);
    for (int i = 0; i < SETTINGS_COUNT; i++) {
        const struct option_def *d = &settings_table[i];
        struct err e = {0};
        assert_true(d->name && d->help && d->takes && d->default_value);
        assert_in_range(text_width(d->help), 1, 57);
        assert_true((d->kind == OPTION_CHOICE) == (d->choice != NULL));
        assert_int_equal(settings_find(d->name, NULL), i);
        /* The default is in the form that is kept. */
        if (settings_put(&s, (enum settings_key)i, d->name, d->default_value, SETTINGS_BY_FILE, &e) != 0)
            fail_msg("%s: %s", d->name, e.text);
        assert_string_equal(s.values[i], d->default_value);
    }
}

static void test_values(void **state) {
    (void)state;
    struct settings s = parse_with("# mine\n\n delay =  5 \ntheme = nord\r\nascii=on\nfilter = a|b = "
                                   "c\n[settings]\nmouse = off\nrate = 0.02 kHz\n",
                                   "");
    assert_string_equal(s.values[SETTINGS_DELAY], "500ms");
    assert_true(settings_number(&s, SETTINGS_DELAY) == 0.5);
    assert_string_equal(s.values[SETTINGS_RATE], "20");
    assert_true(settings_number(&s, SETTINGS_RATE) == 20);
    assert_string_equal(s.values[SETTINGS_THEME], "nord");
    assert_string_equal(s.values[SETTINGS_ASCII], "on");
    assert_string_equal(s.values[SETTINGS_FILTER], "a|b = c");
    assert_false(settings_is_on(&s, SETTINGS_MOUSE));
    assert_int_equal(s.origins[SETTINGS_DELAY], SETTINGS_BY_FILE);
    assert_int_equal(s.origins[SETTINGS_COLOR], SETTINGS_BY_DEFAULT);
}

static void test_warnings(void **state) {
    (void)state;
    struct settings s = parse_with(
        "nonsense\ndelai = 5\ndelay = soon\nmouse = perhaps\ncolor = pink\n[keyes]\nx = y\n[keys]\nbudget = "
        "5\n"
        "thread.freeze = x\nthreads.frieze = x\nthreads.freeze = nokey\nthreads.freeze =\nthreads.freeze = a "
        "b c "
        "d e\n"
        "query.run = r\nthreads.freeze = ctrl-m\n",
        "config:1: no '=': lines are 'setting = value'\n"
        "config:2: there is no setting 'delai': did you mean delay?\n"
        "config:3: delay takes tenths of a second, or a time such as 250ms or 2s, from 33ms to 60s, not "
        "'soon'\n"
        "config:4: mouse takes on or off, not 'perhaps'\n"
        "config:5: color takes auto, always, never, 16 or 256, not 'pink'\n"
        "config:6: there is no section [keyes]: [settings] and [keys] are\n"
        "config:9: 'budget' is not an action: write CONTEXT.ACTION, such as threads.freeze\n"
        "config:10: there is no context 'thread': did you mean threads?\n"
        "config:11: threads has no action 'frieze': did you mean threads.freeze?\n"
        "config:12: there is no key 'nokey': keys are named as in --list-keys (q, Space, ctrl-l, F3)\n"
        "config:13: no key given: write 'none' for no key\n"
        "config:14: an action can have at most 4 keys\n"
        "config:15: in query letters are typed: give a key with ctrl- or alt-, or a function key\n"
        "config:16: terminals send Enter for ctrl-m: use that name\n");
    assert_string_equal(s.values[SETTINGS_DELAY], "250ms");
    assert_true(settings_is_on(&s, SETTINGS_MOUSE));
    assert_int_equal(action_find(CONTEXT_THREADS, 'Z'), ACTION_PAUSE);
}

/* Whatever a line holds is drawn as nothing but text, and a warning stays one line. */
static void test_hostile_text(void **state) {
    struct strbuf w;
    (void)state;
    (void)parse("delay = \x1b[31m\xff\n[keys]\n\x1b]0;x\x07.y = q\n", &w);
    assert_null(strchr(strbuf_str(&w), '\x1b'));
    assert_null(strchr(strbuf_str(&w), '\x07'));
    strbuf_fini(&w);
}

/* ---- keys ---- */

static void test_a_key_is_given_to_another(void **state) {
    char text[64];
    (void)state;
    (void)parse_with(
        "[keys]\nflame.zoom-in = X Enter\nthreads.freeze = CTRL-p\n",
        "config:3: there is no key 'CTRL-p': keys are named as in --list-keys (q, Space, ctrl-l, F3)\n");
    assert_int_equal(action_find(CONTEXT_FLAME, 'X'), ACTION_FLAME_ZOOM);
    assert_int_equal(action_find(CONTEXT_FLAME, INPUT_ENTER), ACTION_FLAME_ZOOM);
    action_keys_text(action_row(ACTION_FLAME_ZOOM, CONTEXT_FLAME), CONTEXT_FLAME, text, sizeof text);
    assert_string_equal(text, "X Enter");
    /* All who tell keys tell these. */
    struct strbuf out;
    strbuf_init(&out, 1 << 20);
    action_list_keys(&out);
    assert_non_null(strstr(strbuf_str(&out), "flame    X          zoom-in "));
    strbuf_fini(&out);
}

/* One of several keys of another action is taken without a word; its only one with a line. */
static void test_a_key_is_taken(void **state) {
    (void)state;
    (void)parse_with("[keys]\nthreads.refresh = t\n", "");
    assert_int_equal(action_find(CONTEXT_THREADS, 't'), ACTION_REFRESH);
    assert_int_equal(action_find(CONTEXT_THREADS, input_key_parse("F5")), ACTION_TASKS);
    assert_int_equal(action_find(CONTEXT_STACK, 't'), ACTION_TASKS); /* another context */
    (void)parse_with("[keys]\nthreads.refresh = v\n", "config:2: in threads 'v' was the only key of locals: "
                                                      "give it another, threads.locals = KEY (or none)\n");
    assert_int_equal(action_find(CONTEXT_THREADS, 'v'), ACTION_REFRESH);
    (void)parse_with("[keys]\nthreads.refresh = v\nthreads.locals = none\n", "");
    assert_int_equal(action_find(CONTEXT_THREADS, 'v'), ACTION_REFRESH);
}

/* Two keys may change places, in either order of the lines. */
static void test_keys_change_places(void **state) {
    (void)state;
    (void)parse_with("[keys]\nthreads.locals = E\nthreads.repr = v\n", "");
    assert_int_equal(action_find(CONTEXT_THREADS, 'E'), ACTION_LOCALS);
    assert_int_equal(action_find(CONTEXT_THREADS, 'v'), ACTION_REPR);
}

/* What two lines want goes to the first of them. */
static void test_two_lines_want_a_key(void **state) {
    (void)state;
    (void)parse_with("[keys]\nthreads.repr = X\nthreads.locals = X v\n",
                     "config:3: in threads 'X' is repr already, by line 2: give locals another\n");
    assert_int_equal(action_find(CONTEXT_THREADS, 'X'), ACTION_REPR);
    assert_int_equal(action_find(CONTEXT_THREADS, 'v'), ACTION_LOCALS);
}

static void test_in_all_contexts(void **state) {
    (void)state;
    (void)parse_with("[keys]\nall.quit-now = ~\nall.help = alt-h\n", "");
    assert_int_equal(action_find(CONTEXT_THREADS, '~'), ACTION_QUIT_NOW);
    assert_int_equal(action_find(CONTEXT_FLAME, '~'), ACTION_QUIT_NOW);
    assert_int_equal(action_find(CONTEXT_THREADS, 'Q'), ACTION_NONE);
    assert_int_equal(action_find(CONTEXT_SQL, '~'), ACTION_NONE); /* it is typed there */
    assert_int_equal(action_find(CONTEXT_SQL, INPUT_ALT | 'h'), ACTION_SHOW_HELP);
}

/* After any lines no key means two things in a context. */
static void test_never_two_meanings(void **state) {
    struct strbuf w;
    (void)state;
    (void)parse(
        "[keys]\nall.up = j q\nall.down = j k q\nall.quit = j x\nthreads.left = x j\nthreads.right = x\n",
        &w);
    for (int c = 0; c < CONTEXT_COUNT; c++)
        for (const struct action_def *a = action_table(); a->action; a++)
            for (const struct action_def *b = a + 1; a->contexts & ACTION_IN(c) && b->action; b++) {
                uint32_t x, y;
                for (size_t i = 0; (x = action_key(a, (enum action_context)c, i)); i++)
                    for (size_t k = 0;
                         b->contexts & ACTION_IN(c) && (y = action_key(b, (enum action_context)c, k)); k++)
                        assert_int_not_equal(x, y);
            }
    strbuf_fini(&w);
}

/* ---- writing ---- */

static void edit(struct settings *s, const char *text, const char *want) {
    struct strbuf out;
    strbuf_init(&out, 65536);
    config_file_edit(s, text, strlen(text), &out);
    assert_string_equal(strbuf_str(&out), want);
    strbuf_fini(&out);
}

static void test_edit(void **state) {
    struct settings s;
    (void)state;
    settings_init(&s);
    edit(&s, "", "# Settings of probing-top; --print-config shows all there are, and the keys.\n");
    edit(&s, "delay = 5\n", "delay = 5\n");
    assert_int_equal(settings_put(&s, SETTINGS_THEME, "theme", "nord", SETTINGS_BY_KEY, NULL), 0);
    assert_int_equal(settings_put(&s, SETTINGS_DELAY, "delay", "2s", SETTINGS_BY_COMMAND_LINE, NULL), 0);
    edit(&s, "# why\ntheme = light\n# it is so\ndelay = 5\nno such = thing\n[keys]\ntheme = x\n",
         "# why\ntheme = nord\n# it is so\ndelay = 5\nno such = thing\n[keys]\ntheme = x\n");
    edit(&s, "delay = 5", "delay = 5\ntheme = nord\n");
    edit(&s, "[keys]\nthreads.freeze = x\n", "theme = nord\n[keys]\nthreads.freeze = x\n");
    edit(&s, "[settings]\ndelay = 5\n\n[keys]\na = b\n[more]\n",
         "[settings]\ndelay = 5\n\ntheme = nord\n[keys]\na = b\n[more]\n");
}

static char folder[64];

static int make_folder(void **state) {
    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/probing-config-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
    char command[96];
    (void)state;
    (void)chmod(folder, 0700);
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void write_text(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void assert_holds(const char *path, const char *want) {
    struct strbuf text;
    strbuf_init(&text, 65536);
    assert_int_equal(strbuf_read_file(&text, path), 0);
    assert_string_equal(strbuf_str(&text), want);
    strbuf_fini(&text);
}

static void test_save_and_read(void **state) {
    char path[128];
    struct settings s, again;
    struct stat st;
    struct err e;
    (void)state;
    (void)snprintf(path, sizeof path, "%s/new/probing-top/config", folder);
    settings_init(&s);
    assert_int_equal(settings_put(&s, SETTINGS_THEME, "theme", "gruvbox", SETTINGS_BY_KEY, &e), 0);
    assert_int_equal(settings_put(&s, SETTINGS_DELAY, "delay", "1.5s", SETTINGS_BY_KEY, &e), 0);
    if (config_file_save(&s, path, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(s.origins[SETTINGS_THEME], SETTINGS_BY_FILE);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    settings_init(&again);
    config_file_read(&again, path, NULL);
    assert_memory_equal(again.origins, s.origins, sizeof s.origins);
    for (int i = 0; i < SETTINGS_COUNT; i++)
        assert_string_equal(again.values[i], s.values[i]);
    /* Nothing is left beside it. */
    (void)snprintf(path, sizeof path, "ls -A %s/new/probing-top | grep -cv '^config$' >/dev/null", folder);
    assert_int_not_equal(system(path), 0);
}

/* What is printed is read again without a word, and gives the same. */
static void test_print_and_read(void **state) {
    struct settings s =
        parse_with("delay = 7\nfilter = x\n[keys]\nthreads.freeze = X\nthreads.meters = =\n", "");
    struct strbuf first, second, w;
    (void)state;
    strbuf_init(&first, 1 << 20);
    strbuf_init(&second, 1 << 20);
    config_file_print(&s, "config", &first);
    struct settings again = parse(strbuf_str(&first), &w);
    assert_string_equal(strbuf_str(&w), "");
    strbuf_fini(&w);
    for (int i = 0; i < SETTINGS_COUNT; i++)
        assert_string_equal(again.values[i], s.values[i]);
    assert_int_equal(action_find(CONTEXT_THREADS, 'X'), ACTION_PAUSE);
    assert_int_equal(action_find(CONTEXT_THREADS, '='), ACTION_METERS);
    assert_int_equal(action_find(CONTEXT_STACK, '#'), ACTION_METERS);
    assert_non_null(strstr(strbuf_str(&first), "from: file\ndelay = 700ms\n"));
    assert_non_null(strstr(strbuf_str(&first), "from: default\ntheme = auto\n"));
    assert_non_null(strstr(strbuf_str(&first), "# config:4\nthreads.freeze = X\n"));
    strbuf_fini(&first);
    strbuf_fini(&second);
}

static void test_never_through_a_link(void **state) {
    char path[128], other[128];
    struct settings s;
    struct err e;
    (void)state;
    (void)snprintf(path, sizeof path, "%s/config", folder);
    (void)snprintf(other, sizeof other, "%s/elsewhere", folder);
    write_text(other, "delay = 5\n");
    assert_int_equal(symlink(other, path), 0);
    settings_init(&s);
    assert_int_equal(settings_put(&s, SETTINGS_THEME, "theme", "nord", SETTINGS_BY_KEY, &e), 0);
    assert_int_equal(config_file_save(&s, path, &e), -1);
    assert_non_null(strstr(e.text, "is a link"));
    assert_holds(other, "delay = 5\n");
    assert_int_equal(s.origins[SETTINGS_THEME], SETTINGS_BY_KEY);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(config_file_save(&s, path, &e), -1);
    assert_non_null(strstr(e.text, "is not a regular file"));
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(config_file_save(&s, "", &e), -1);
    assert_non_null(strstr(e.text, "HOME"));
}

static void test_never_over_a_file_of_another(void **state) {
    char path[128];
    struct settings s;
    struct err e;
    (void)state;
    (void)snprintf(path, sizeof path, "%s/theirs", folder);
    settings_init(&s);
    assert_int_equal(settings_put(&s, SETTINGS_THEME, "theme", "nord", SETTINGS_BY_KEY, &e), 0);
    if (geteuid() == 0) {
        write_text(path, "delay = 5\n");
        assert_int_equal(chown(path, 12345, 12345), 0);
        assert_int_equal(config_file_save(&s, path, &e), -1);
        assert_non_null(strstr(e.text, "belongs to another user"));
        assert_holds(path, "delay = 5\n");
    } else { /* some file of root's */
        assert_int_equal(config_file_save(&s, "/etc/passwd", &e), -1);
        assert_non_null(strstr(e.text, "belongs to another user"));
    }
}

/* A folder that takes no file: one line, and the file is as it was. */
static void test_folder_that_cannot_be_written(void **state) {
    char path[128];
    struct settings s;
    struct err e;
    (void)state;
    settings_init(&s);
    assert_int_equal(settings_put(&s, SETTINGS_THEME, "theme", "nord", SETTINGS_BY_KEY, &e), 0);
    /* Nobody, root included, makes a file there. */
    assert_int_equal(config_file_save(&s, "/proc/self/probing-top/config", &e), -1);
    assert_non_null(strstr(e.text, "settings are not saved to /proc/self/probing-top/config: "));
    assert_null(strchr(e.text, '\n'));
    if (geteuid() == 0)
        return;
    (void)snprintf(path, sizeof path, "%s/readonly", folder);
    write_text(path, "delay = 5\n");
    assert_int_equal(chmod(folder, 0500), 0);
    assert_int_equal(config_file_save(&s, path, &e), -1);
    assert_non_null(strstr(e.text, "Permission denied"));
    assert_holds(path, "delay = 5\n");
    assert_int_equal(chmod(folder, 0700), 0);
}

static void test_files_that_are_none(void **state) {
    char path[128];
    struct settings s;
    struct strbuf w;
    (void)state;
    strbuf_init(&w, 65536);
    settings_init(&s);
    (void)snprintf(path, sizeof path, "%s/no/such/file", folder);
    config_file_read(&s, path, &w);
    assert_string_equal(strbuf_str(&w), "");
    config_file_read(&s, folder, &w);
    assert_non_null(strstr(strbuf_str(&w), "cannot be read: Is a directory"));
    strbuf_clear(&w);
    (void)snprintf(path, sizeof path, "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    config_file_read(&s, path, &w); /* which does not wait */
    assert_non_null(strstr(strbuf_str(&w), "cannot be read"));
    strbuf_clear(&w);
    (void)snprintf(path, sizeof path, "%s/large", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 70000; i++)
        (void)fputc('#', f);
    assert_int_equal(fclose(f), 0);
    config_file_read(&s, path, &w);
    assert_non_null(strstr(strbuf_str(&w), "cannot be read: File too large"));
    strbuf_fini(&w);
}

static void test_paths(void **state) {
    char path[CONFIG_FILE_PATH];
    (void)state;
    assert_int_equal(setenv("HOME", "/h", 1), 0);
    assert_int_equal(unsetenv("PROBING_TOP_CONFIG"), 0);
    assert_int_equal(setenv("XDG_CONFIG_HOME", "", 1), 0);
    assert_true(config_file_path(path, sizeof path));
    assert_string_equal(path, "/h/.config/probing-top/config");
    assert_int_equal(setenv("XDG_CONFIG_HOME", "/x", 1), 0);
    assert_true(config_file_path(path, sizeof path));
    assert_string_equal(path, "/x/probing-top/config");
    assert_int_equal(setenv("PROBING_TOP_CONFIG", "here", 1), 0);
    assert_true(config_file_path(path, sizeof path));
    assert_string_equal(path, "here");
    assert_int_equal(unsetenv("PROBING_TOP_CONFIG"), 0);
    assert_int_equal(unsetenv("XDG_CONFIG_HOME"), 0);
    assert_int_equal(unsetenv("HOME"), 0);
    assert_false(config_file_path(path, sizeof path));
    assert_string_equal(path, "");
}

/* ---- in the app ---- */

static void test_set_in_an_app(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 2, false);
    struct err e;
    (void)state;
    assert_int_equal(app_settings_set(a, "delay", "2s", &e), 0);
    assert_true(a->config.delay_s == 2);
    assert_int_equal(app_settings_set(a, "mouse", "off", &e), 0);
    assert_false(a->mouse);
    assert_int_equal(app_settings_set(a, "header", "line", &e), 0);
    assert_true(a->folded);
    assert_int_equal(app_settings_set(a, "ascii", "on", &e), 0);
    assert_true(a->config.ascii);
    assert_int_equal(app_settings_set(a, "ascii", "auto", &e), 0);
    assert_true(a->config.ascii); /* the fixture's locale is none */
    assert_int_equal(app_settings_set(a, "moose", "on", &e), -1);
    assert_string_equal(e.text, "there is no setting 'moose': did you mean mouse?");
    assert_int_equal(app_settings_set(a, "mouse", "maybe", &e), -1);
    assert_false(a->mouse);
    /* What keys change is known too. */
    fixture_press(a, "# ctrl-t }");
    app_settings_sync(a);
    assert_string_equal(a->settings.values[SETTINGS_HEADER], "full");
    assert_true(settings_is_on(&a->settings, SETTINGS_MOUSE));
    assert_string_equal(a->settings.values[SETTINGS_DELAY], "1s");
    assert_int_equal(a->settings.origins[SETTINGS_DELAY], SETTINGS_BY_KEY);
    app_free(a);
}

static void test_an_app_begins_with_them(void **state) {
    struct settings s =
        parse_with("delay = 2s\nscreen = flame\nhide-idle = on\nheader = line\nfilter = train\n", "");
    struct app_config config = {.is_utf8 = true, .settings = &s};
    struct app *a = app_new(&config);
    (void)state;
    assert_non_null(a);
    assert_true(a->config.delay_s == 2);
    assert_false(a->config.ascii);
    assert_true(a->folded && a->mouse && a->config.hide_idle);
    assert_string_equal(app_screen_top(a)->def->name, "flame");
    assert_string_equal(a->config.filter, "train");
    app_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_complete),
        cmocka_unit_test(test_values),
        cmocka_unit_test_teardown(test_warnings, reset_keys),
        cmocka_unit_test_teardown(test_hostile_text, reset_keys),
        cmocka_unit_test_teardown(test_a_key_is_given_to_another, reset_keys),
        cmocka_unit_test_teardown(test_a_key_is_taken, reset_keys),
        cmocka_unit_test_teardown(test_keys_change_places, reset_keys),
        cmocka_unit_test_teardown(test_two_lines_want_a_key, reset_keys),
        cmocka_unit_test_teardown(test_in_all_contexts, reset_keys),
        cmocka_unit_test_teardown(test_never_two_meanings, reset_keys),
        cmocka_unit_test(test_edit),
        cmocka_unit_test(test_save_and_read),
        cmocka_unit_test_teardown(test_print_and_read, reset_keys),
        cmocka_unit_test(test_never_through_a_link),
        cmocka_unit_test(test_never_over_a_file_of_another),
        cmocka_unit_test(test_folder_that_cannot_be_written),
        cmocka_unit_test(test_files_that_are_none),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_set_in_an_app),
        cmocka_unit_test(test_an_app_begins_with_them),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
