/* SPDX-License-Identifier: Apache-2.0 */
/* Lines that begin with %: what each wants, what is said of those that are wrong, what they set, and how they go on at a Tab. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "client/repl/magic.h"

static void wants(const char *line, enum magic_kind kind, bool timed, const char *text) {
    struct wire_eval want = {.timeout_s = 1};
    struct magic m;
    struct err e = {.text = ""};
    if (magic_read(&m, line, &want, &e) != 0)
        fail_msg("%s: %s", line, e.text);
    assert_int_equal(m.kind, kind);
    assert_int_equal(m.timed, timed);
    if (!strstr(strbuf_str(&m.text), text))
        fail_msg("%s wants %s", line, strbuf_str(&m.text));
    magic_fini(&m);
}

static void is_wrong(const char *line, const char *why) {
    struct wire_eval want = {.timeout_s = 1, .tid = 7, .depth = 2};
    struct magic m;
    struct err e = {.text = ""};
    assert_int_equal(magic_read(&m, line, &want, &e), -1);
    if (!strstr(e.text, why))
        fail_msg("%s: %s, not %s", line, e.text, why);
    assert_true(want.timeout_s == 1 && want.tid == 7 && want.depth == 2);
    magic_fini(&m);
}

static void test_what_each_wants(void **state) {
    (void)state;
    assert_true(magic_is("%bt"));
    assert_true(magic_is("  %bt"));
    assert_false(magic_is("7 % 2"));
    assert_false(magic_is(""));
    wants("%bt", MAGIC_STACKS, false, "");
    wants(" %bt  4242 ", MAGIC_QUERY, false, "WHERE tid = 4242 ");
    wants("%q SELECT 1\n, 2;\n", MAGIC_QUERY, false, "SELECT 1\n, 2;");
    wants("%threads\n", MAGIC_QUERY, false, "python.threads");
    wants("%status", MAGIC_STATUS, false, "");
    wants("%who", MAGIC_RUN, false, "globals()");
    wants("%time x = 1", MAGIC_RUN, true, "x = 1");
    /* The help has a line for each. */
    for (const struct magic_def *m = magics; m->name; m++)
        wants("%help", MAGIC_SAY, false, m->name);
}

static void test_what_is_wrong(void **state) {
    (void)state;
    is_wrong("%", "there is no '%'");
    is_wrong("%tensor", "did you mean '%tensors'?");
    is_wrong("%nothing", "%help lists");
    is_wrong("%help me", "%help takes nothing");
    is_wrong("%q", "%q takes SQL");
    is_wrong("%q \n", "%q takes SQL");
    is_wrong("%bt MainThread", "'MainThread' is not a thread");
    is_wrong("%bt 99999999999999999999", "is not a thread");
    is_wrong("%bt -1", "is not a thread");
    is_wrong("%timeout never", "'never' is not a time");
    is_wrong("%timeout nan", "'nan' is not a time");
    is_wrong("%timeout 0", "is not a time");
    is_wrong("%timeout 5 s", "is not a time");
    is_wrong("%frame 4242", "is not a frame");
    is_wrong("%frame 4242:x", "is not a frame");
    is_wrong("%frame 4242:-1", "is not a frame");
    is_wrong("%frame 99999999999:0", "is not a frame");
    is_wrong("%frame", "%frame takes TID:DEPTH|off");
    char long_one[4096];
    memset(long_one, 'x', sizeof long_one);
    long_one[0] = '%';
    long_one[sizeof long_one - 1] = '\0';
    is_wrong(long_one, "%help lists");
}

static void test_settings(void **state) {
    struct wire_eval want = {.timeout_s = 1};
    struct magic m;
    struct err e;
    (void)state;
    assert_int_equal(magic_read(&m, "%timeout 2.5s", &want, &e), 0);
    assert_int_equal(m.kind, MAGIC_SAY);
    assert_string_equal(strbuf_str(&m.text), "");
    magic_fini(&m);
    assert_true(want.timeout_s == 2.5);
    assert_int_equal(magic_read(&m, "%frame 4242:3", &want, &e), 0);
    magic_fini(&m);
    assert_int_equal(want.tid, 4242);
    assert_int_equal(want.depth, 3);
    assert_int_equal(magic_read(&m, "%frame off", &want, &e), 0);
    magic_fini(&m);
    assert_int_equal(want.tid, 0);
    assert_int_equal(want.depth, 0);
}

static void goes_on(const char *before, enum magic_completion how, size_t from, const char *with) {
    struct catalog *c = catalog_of_definitions();
    struct strbuf words;
    size_t at = 0;
    strbuf_init(&words, 0);
    assert_non_null(c);
    assert_int_equal(magic_complete(before, c, &words, &at), how);
    assert_int_equal(at, from);
    if (with && !strstr(strbuf_str(&words), with))
        fail_msg("%s: %s", before, strbuf_str(&words));
    strbuf_fini(&words);
    catalog_free(c);
}

static void test_completion(void **state) {
    struct strbuf words;
    size_t at;
    (void)state;
    goes_on("%", MAGIC_COMPLETES_WORDS, 0, "%help\t");
    goes_on(" %ti", MAGIC_COMPLETES_WORDS, 1, "%time\tCODE: ");
    goes_on("%x", MAGIC_COMPLETES_NOT, 0, NULL);
    goes_on("%x y", MAGIC_COMPLETES_NOT, 3, NULL);
    goes_on("%bt 4", MAGIC_COMPLETES_NOT, 4, NULL);
    goes_on("%time mod", MAGIC_COMPLETES_CODE, 6, NULL);
    goes_on("%time ", MAGIC_COMPLETES_NOT, 6, NULL);
    goes_on("%q ", MAGIC_COMPLETES_WORDS, 3, "SELECT\t");
    goes_on("%q select * from Python.st", MAGIC_COMPLETES_WORDS, 24, "steps\t");
    goes_on("%q SELECT dur FROM python.steps WHERE lo", MAGIC_COMPLETES_WORDS, 38, "loss\t");
    goes_on("%q SELECT 'lo", MAGIC_COMPLETES_NOT, 11, NULL);
    strbuf_init(&words, 0);
    assert_int_equal(magic_complete("%q SELECT * FROM pyt", NULL, &words, &at), MAGIC_COMPLETES_NOT);
    strbuf_fini(&words);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_each_wants),
        cmocka_unit_test(test_what_is_wrong),
        cmocka_unit_test(test_settings),
        cmocka_unit_test(test_completion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
