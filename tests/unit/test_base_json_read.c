/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of small JSON objects: what is taken, to the bit; and what is refused, with what words.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_read.h"

enum { TEXT, NUMBER, INTEGER, FLAG, FIELDS };

static struct json_field got[FIELDS];
static struct err why;

static void forget(void) { strbuf_fini(&got[TEXT].text); }

static int take_of(const char *text, size_t len) {
    static const struct json_field fields[FIELDS] = {
        [TEXT] = {.name = "text", .most = 8},
        [NUMBER] = {.name = "number", .type = JSON_FIELD_NUMBER, .least = -1e300, .most = 1e300},
        [INTEGER] = {.name = "integer", .type = JSON_FIELD_INTEGER, .least = 0, .most = 9e15},
        [FLAG] = {.name = "flag", .type = JSON_FIELD_FLAG},
    };
    forget();
    memcpy(got, fields, sizeof got);
    return json_read_object(text, len, got, FIELDS, &why);
}

static int take(const char *text) { return take_of(text, strlen(text)); }

static double number(const char *text) {
    char all[64];
    (void)snprintf(all, sizeof all, "{\"number\":%s}", text);
    assert_int_equal(take(all), 0);
    return got[NUMBER].number;
}

static void refuses(const char *text, const char *words) {
    assert_int_equal(take(text), -1);
    assert_int_equal(why.code, ERR_USAGE);
    assert_null(strchr(why.text, '\n'));
    if (!strstr(why.text, words))
        fail_msg("%s: %s", text, why.text);
}

static void test_what_is_taken(void **state) {
    (void)state;
    assert_int_equal(take(" {\r\n\t} "), 0);
    for (int i = 0; i < FIELDS; i++)
        assert_false(got[i].given);
    assert_int_equal(take("{ \"flag\" : true , \"text\":\"a\\n\\\"\\u00e9\" ,\"integer\":0}"), 0);
    assert_true(got[FLAG].given && got[FLAG].number == 1 && got[INTEGER].given && !got[NUMBER].given);
    assert_string_equal(strbuf_str(&got[TEXT].text), "a\n\"\xc3\xa9");
    assert_int_equal(take("{\"\\u0066lag\":false}"), 0);
    assert_true(got[FLAG].given && got[FLAG].number == 0);
    assert_int_equal(take("{\"text\":\"\\ud83d\\ude00\\u0000/\\/\"}"), 0);
    assert_int_equal(got[TEXT].text.len, 7);
    assert_memory_equal(got[TEXT].text.data, "\xf0\x9f\x98\x80\0//", 7);
    assert_int_equal(take("{\"text\":\"\xef\xbf\xbd\"}"), 0); /* the replacement itself is a character */
    assert_int_equal(take("{\"text\":\"12345678\"}"), 0);
    assert_int_equal(take("{\"text\":\"\"}"), 0);
    assert_true(got[TEXT].given && got[TEXT].text.len == 0);
}

static void test_numbers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double value;
    } cases[] = {{"0", 0},
                 {"-0", 0},
                 {"10", 10},
                 {"-1.5", -1.5},
                 {"0.25", 0.25},
                 {"1e3", 1000},
                 {"1E+3", 1000},
                 {"25e-2", 0.25},
                 {"0e99999999", 0},
                 {"1e-99999999", 0},
                 {"0.5e1", 5},
                 {"1e20", 1e20},
                 {"9007199254740991", 9007199254740991.0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double error = number(cases[i].text) - cases[i].value,
               size = cases[i].value < 0 ? -cases[i].value : cases[i].value;
        assert_true(error <= size * 1e-13 && -error <= size * 1e-13);
    }
    static const char *const wrong[] = {"01", "+1",  ".5",   "1.",  "1e", "1e+",
                                        "-",  "--1", "0x10", "1_0", "1,5"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char all[64];
        (void)snprintf(all, sizeof all, "{\"number\":%s}", wrong[i]);
        assert_int_equal(take(all), -1);
    }
    refuses("{\"number\":1e301}", "number must be a number from -1e+300 to 1e+300");
    refuses("{\"number\":1e99999999999999999999}", "number must be");
    refuses("{\"number\":NaN}", "number must be");
    refuses("{\"number\":\"1\"}", "number must be");
    refuses("{\"number\":null}", "number must be");
    refuses("{\"integer\":1.5}", "integer must be a whole number from 0 to 9e+15");
    refuses("{\"integer\":-1}", "integer must be");
    refuses("{\"integer\":true}", "integer must be");
    refuses("{\"integer\":[1]}", "integer must be");
}

static void test_what_is_refused(void **state) {
    (void)state;
    static const char *const none[] = {"",
                                       "1",
                                       "[]",
                                       "null",
                                       "\"{}\"",
                                       "{",
                                       "}",
                                       "{}}",
                                       "{} {}",
                                       "{,}",
                                       "{\"flag\"}",

                                       "{'a':1}",
                                       "{flag:1}",
                                       "{\"text",
                                       "{\"text\":\"",
                                       "{\"text\":\"a\\",
                                       "{\"flag\":true,}",
                                       "{\"text\":\"\\u12\"}",
                                       "{\"text\":\"\\ud800\"}",
                                       "{\"text\":\"\\udc00\"}",
                                       "{\"text\":\"\\ud800\\u0041\"}",
                                       "{\"text\":\"\\x41\"}",
                                       "{\"text\":\"\n\"}",
                                       "{\"text\":\"\xff\"}",
                                       "{\"text\":\"\xc0\x80\"}",
                                       "{\"flag\":true \"text\":\"\"}",
                                       "\xef\xbb\xbf{}",
                                       "{\"flag\":true}x"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        refuses(none[i], "not a JSON object: error at byte ");
    refuses("{\"x\":1}", "there is no such key: there are text, number, integer, flag");
    refuses("{\"tex\":1}", "no such key");
    refuses("{\"\":1}", "no such key");
    refuses("{\"text\\u0000\":1}", "no such key");
    refuses("{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\":1}",
            "no such key");
    refuses("{\"flag\":true,\"flag\":true}", "flag is given twice");
    refuses("{\"flag\":1}", "flag must be true or false");
    refuses("{\"flag\":}", "flag must be true or false");
    refuses("{\"text\":1}", "text must be a text");
    refuses("{\"text\":{\"text\":\"\"}}", "text must be a text");
    refuses("{\"text\":\"123456789\"}", "text may have 8 bytes at most");
    refuses("{\"text\":\"\\u00e9\\u00e9\\u00e9\\u00e9\\u00e9\"}", "text may have 8 bytes at most");
    assert_int_equal(take_of("{\"flag\":true}\0", 14), -1);
    assert_int_equal(take_of("{\"text\":\"a\0b\"}", 14), -1);
}

/* Every beginning of a good one is none, and ends where it ends. */
static void test_beginnings(void **state) {
    (void)state;
    static const char all[] = "{\"text\":\"\\ud83d\\ude00\\n\",\"number\":-1.5e3,\"flag\":false}";
    assert_int_equal(take(all), 0);
    for (size_t n = 0; n + 1 < sizeof all - 1; n++)
        assert_int_equal(take_of(all, n), -1);
}

static int end(void **state) {
    (void)state;
    forget();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_what_is_taken, end),
        cmocka_unit_test_teardown(test_numbers, end),
        cmocka_unit_test_teardown(test_what_is_refused, end),
        cmocka_unit_test_teardown(test_beginnings, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
