/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What PROBING asks for, against command lines; and LD_PRELOAD without the agent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/autostart.h"
#include "agent/autostart_match.h"

#define WORDS_MAX 512

/* Arguments separated by '|', as /proc/PID/cmdline has them. Their length. */
static size_t words_of(const char *text, char *words) {
    size_t n = strlen(text) + 1;
    assert_true(n <= WORDS_MAX);
    memcpy(words, text, n);
    for (size_t i = 0; i < n; i++)
        words[i] = words[i] == '|' ? '\0' : words[i];
    return n;
}

static int judge(const char *value, const char *text) {
    char words[WORDS_MAX];
    struct err e = {0};
    size_t n = words_of(text, words);
    return autostart_match_judge(value, words, n, &e);
}

static void check_numbers(void **state) {
    (void)state;
    assert_int_equal(judge(NULL, "python|train.py"), AUTOSTART_MATCH_NONE);
    assert_int_equal(judge("", "python|train.py"), AUTOSTART_MATCH_NONE);
    assert_int_equal(judge("0", "python|train.py"), AUTOSTART_MATCH_NONE);
    assert_int_equal(judge("1", "python|train.py"), AUTOSTART_MATCH_ONCE);
    assert_int_equal(judge("2", "python|train.py"), AUTOSTART_MATCH_NESTED);
    assert_int_equal(autostart_match_judge("2", NULL, 0, NULL), AUTOSTART_MATCH_NESTED);
    assert_int_equal(autostart_match_judge("train.py", NULL, 0, NULL), AUTOSTART_MATCH_NONE);
}

static void check_names(void **state) {
    static const struct {
        const char *value, *words;
        enum autostart_match expected;
    } rows[] = {
        {"train.py", "python|train.py", AUTOSTART_MATCH_MATCH},
        {"train.py", "/usr/bin/python3|-u|/job/train.py|--lr|1", AUTOSTART_MATCH_MATCH},
        {"/job/train.py", "python|/job/train.py", AUTOSTART_MATCH_MATCH},
        {"train.py", "python|my_train.py", AUTOSTART_MATCH_NONE},
        {"train.py", "python|other.py|train.py", AUTOSTART_MATCH_NONE},
        {"train.py", "python|-c|import train|train.py", AUTOSTART_MATCH_NONE},
        {"train.py", "python|-W|ignore|-X|dev|train.py", AUTOSTART_MATCH_MATCH},
        {"train.py", "python|-Wignore|-uB|-Xdev|train.py", AUTOSTART_MATCH_MATCH},
        {"ignore", "python|-W|ignore|train.py", AUTOSTART_MATCH_NONE},
        {"train.py", "python|-m|pkg.train", AUTOSTART_MATCH_MATCH},
        {"pkg.train", "python|-um|pkg.train|x", AUTOSTART_MATCH_MATCH},
        {"train.py", "python|-mtrain", AUTOSTART_MATCH_MATCH},
        {"train.py", "python|--|train.py", AUTOSTART_MATCH_MATCH},
        {"train.py", "python|--check-hash-based-pycs|always|train.py", AUTOSTART_MATCH_MATCH},
        {"always", "python|--check-hash-based-pycs|always|train.py", AUTOSTART_MATCH_NONE},
        {"torchrun", "/venv/bin/python|/venv/bin/torchrun|train.py", AUTOSTART_MATCH_MATCH},
        {"blender", "/opt/blender|scene", AUTOSTART_MATCH_MATCH},
        {"train.py", "python|-", AUTOSTART_MATCH_NONE},
        {"train.py", "python", AUTOSTART_MATCH_NONE},
        {"train.py", "python|-m", AUTOSTART_MATCH_NONE},
        {"train.py", "python|-W", AUTOSTART_MATCH_NONE},
        {"train.py", "", AUTOSTART_MATCH_NONE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (judge(rows[i].value, rows[i].words) != (int)rows[i].expected)
            fail_msg("%s: %s", rows[i].value, rows[i].words);
}

static void check_patterns(void **state) {
    struct err e = {0};
    (void)state;
    assert_int_equal(judge("regex:train.*--lr 1$", "python|train.py|--lr|1"), AUTOSTART_MATCH_MATCH);
    assert_int_equal(judge("regex:^python (a|b)\\.py", "python|b.py"), AUTOSTART_MATCH_MATCH);
    assert_int_equal(judge("regex:^train", "python|train.py"), AUTOSTART_MATCH_NONE);
    assert_int_equal(autostart_match_judge("regex:(", "python", 7, &e), -1);
    assert_int_equal(e.code, ERR_FAILED);
    assert_string_equal(e.text,
                        "PROBING=regex:( is not a valid POSIX extended regular expression: correct it");
}

static void check_scripts(void **state) {
    char words[WORDS_MAX], script[16];
    (void)state;
    size_t n = words_of("python|-E|-c|pass", words);
    autostart_match_find_script(words, n, script, sizeof script);
    assert_string_equal(script, "-c");
    n = words_of("python|a-name-that-is-longer.py", words);
    autostart_match_find_script(words, n, script, sizeof script);
    assert_string_equal(script, "a-name-that-is-");
    autostart_match_find_script("python", 6, script, sizeof script); /* cut off: no NUL at its end */
    assert_string_equal(script, "");
}

static void check_take_out(void **state) {
    char rest[64];
    (void)state;
    assert_true(autostart_take_out("libprobing.so", "libprobing.so", rest, sizeof rest));
    assert_string_equal(rest, "");
    assert_true(autostart_take_out("/a/b.so:/x/libprobing.so /c.so", "libprobing.so", rest, sizeof rest));
    assert_string_equal(rest, "/a/b.so:/c.so");
    assert_false(
        autostart_take_out("/x/mylibprobing.so::/x/libprobing.so.1", "libprobing.so", rest, sizeof rest));
    assert_string_equal(rest, "/x/mylibprobing.so:/x/libprobing.so.1");
    assert_false(autostart_take_out("", "libprobing.so", rest, sizeof rest));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_numbers), cmocka_unit_test(check_names),    cmocka_unit_test(check_patterns),
        cmocka_unit_test(check_scripts), cmocka_unit_test(check_take_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
