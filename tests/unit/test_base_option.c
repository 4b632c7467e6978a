/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command-line options: every spelling, every mistake, and the help made from the same table.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/option.h"

struct settings {
    bool json, quiet;
    const char *output;
    long count;
    double delay, rate;
};

static const struct option_def table[] = {
    {"json", 0, OPTION_FLAG, offsetof(struct settings, json), .help = "print JSON"},
    {"quiet", 'q', OPTION_FLAG, offsetof(struct settings, quiet), .help = "say less"},
    {"output", 'o', OPTION_STRING, offsetof(struct settings, output), .arg = "FILE", .help = "write there"},
    {"count", 'n', OPTION_INT, offsetof(struct settings, count), .arg = "N", .help = "how often", .min = 1,
     .max = 100},
    {"delay", 'd', OPTION_SECONDS, offsetof(struct settings, delay), .arg = "TIME", .help = "how long",
     .min = 0.05, .max = 3600},
    {"rate", 0, OPTION_RATE, offsetof(struct settings, rate), .arg = "HZ", .help = "how often a second",
     .min = 0.1, .max = 1000, .unit = "Hz"},
    {0},
};

static int parse(struct settings *s, struct err *e, const char **operands, bool stop,
                 const char *const *args) {
    char *argv[16] = {(char *)"prog"};
    int argc = 1;
    for (; args[argc - 1]; argc++)
        argv[argc] = (char *)args[argc - 1];
    *s = (struct settings){0};
    *e = (struct err){0};
    return option_parse(table, s, argc, argv, operands, stop, e);
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_spellings(void **state) {
    (void)state;
    struct settings s;
    struct err e;
    const char *op[16];
    assert_int_equal(parse(&s, &e, op, false,
                           ARGS("--json", "one", "--output=f", "-n", "7", "-qd250ms", "two", "--", "-x")),
                     3);
    assert_true(s.json && s.quiet);
    assert_string_equal(s.output, "f");
    assert_int_equal(s.count, 7);
    assert_true(s.delay == 0.25);
    assert_string_equal(op[0], "one");
    assert_string_equal(op[1], "two");
    assert_string_equal(op[2], "-x");
    assert_int_equal(parse(&s, &e, op, false, ARGS("-- a comment\nSELECT 1")), 1);
    assert_string_equal(op[0], "-- a comment\nSELECT 1");
    assert_int_equal(parse(&s, &e, op, false, ARGS("-of", "--count=3", "--delay", "1m", "-")), 1);
    assert_string_equal(s.output, "f");
    assert_true(s.delay == 60);
    assert_int_equal(parse(&s, &e, op, false, ARGS("--rate", "0.1kHz")), 0);
    assert_true(s.rate == 100);
    assert_string_equal(op[0], "-");
}

static void test_stop_at_operand(void **state) {
    (void)state;
    struct settings s;
    struct err e;
    const char *op[16];
    assert_int_equal(parse(&s, &e, op, true, ARGS("-q", "verb", "--json", "--nonsense")), 3);
    assert_true(s.quiet && !s.json);
    assert_string_equal(op[2], "--nonsense");
}

static void test_mistakes_say_what_to_do(void **state) {
    (void)state;
    static const struct {
        const char *args[3];
        const char *text;
    } cases[] = {
        {{"--jsn"}, "unknown option --jsn: did you mean --json?"},
        {{"--zebra"}, "unknown option --zebra: --help lists the options"},
        {{"-z"}, "unknown option -z: --help lists the options"},
        {{"--json=1"}, "--json takes no value"},
        {{"--output"}, "--output needs a value: --output FILE"},
        {{"-n", "x"}, "--count x: not a number"},
        {{"-n", "101"}, "--count 101: out of range, give 1 to 100"},
        {{"-d", "soon"}, "--delay soon: not a duration, give for example 2s or 250ms"},
        {{"-d", "nan"}, "--delay nan: out of range, give 0.05 to 3600"},
        {{"--rate"}, "--rate needs a value: --rate HZ"},
        {{"--rate", "fast"}, "--rate takes a number from 0.1 to 1000 (Hz), not 'fast'"},
        {{"--rate=1001"}, "--rate takes a number from 0.1 to 1000 (Hz), not '1001'"},
        {{"--rate=0"}, "--rate takes a number from 0.1 to 1000 (Hz), not '0'"},
        {{"--rate=20s"}, "--rate takes a number from 0.1 to 1000 (Hz), not '20s'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct settings s;
        struct err e;
        const char *op[16];
        assert_int_equal(parse(&s, &e, op, false, cases[i].args), -1);
        assert_int_equal(e.code, ERR_USAGE);
        assert_string_equal(e.text, cases[i].text);
    }
}

static void test_suggest(void **state) {
    (void)state;
    static const char *const verbs[] = {"list", "inject", "eject", "backtrace", NULL};
    assert_string_equal(option_suggest("injct", verbs), "inject");
    assert_string_equal(option_suggest("backtrase", verbs), "backtrace");
    assert_null(option_suggest("zz", verbs));
    assert_null(option_suggest("", verbs));
}

static void test_help_has_every_row(void **state) {
    (void)state;
    struct strbuf out;
    strbuf_init(&out, 0);
    option_format_help(table, &out);
    assert_string_equal(out.data, "      --json         print JSON\n"
                                  "  -q, --quiet        say less\n"
                                  "  -o, --output FILE  write there\n"
                                  "  -n, --count N      how often\n"
                                  "  -d, --delay TIME   how long\n"
                                  "      --rate HZ      how often a second\n");
    strbuf_fini(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_stop_at_operand),
        cmocka_unit_test(test_mistakes_say_what_to_do),
        cmocka_unit_test(test_suggest),
        cmocka_unit_test(test_help_has_every_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
