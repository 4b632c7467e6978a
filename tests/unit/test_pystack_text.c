/* SPDX-License-Identifier: Apache-2.0 */
/* Short texts of values: as repr() has them, bounded, whole characters only. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pystack/values_internal.h"

static char buf[200];

static struct values_text begin(void) {
    struct values_text t;
    values_text_init(&t, buf, sizeof buf);
    return t;
}

/* Expected texts are what repr() of CPython 3.11 prints. */
static void test_floats(void **state) {
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0.0, "0.0"},
        {-0.0, "-0.0"},
        {1.0, "1.0"},
        {100.0, "100.0"},
        {0.1, "0.1"},
        {1.0 / 3, "0.3333333333333333"},
        {1e15, "1000000000000000.0"},
        {9999999999999998.0, "9999999999999998.0"},
        {1e16, "1e+16"},
        {1e100, "1e+100"},
        {0.0001, "0.0001"},
        {0.00001, "1e-05"},
        {1.5e-7, "1.5e-07"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {-123456.789, "-123456.789"},
        {INFINITY, "inf"},
        {-INFINITY, "-inf"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct values_text t = begin();
        values_text_float(&t, cases[i].value);
        assert_string_equal(buf, cases[i].text);
    }
    struct values_text t = begin();
    values_text_float(&t, NAN);
    assert_string_equal(buf, "nan");
    t = begin();
    values_text_float32(&t, 0.1F);
    assert_string_equal(buf, "0.1");
}

static void test_ints(void **state) {
    (void)state;
    const uint32_t most = (1U << 30) - 1;
    uint32_t digits[VALUES_TEXT_DIGITS] = {0};
    struct values_text t = begin();
    values_text_int(&t, digits, 0, 30, false);
    assert_string_equal(buf, "0");
    digits[0] = 7;
    t = begin();
    values_text_int(&t, digits, 1, 30, true);
    assert_string_equal(buf, "-7");
    digits[0] = 0;
    digits[2] = 16; /* 2 to the 64 */
    t = begin();
    values_text_int(&t, digits, 3, 30, false);
    assert_string_equal(buf, "18446744073709551616");
    for (size_t i = 0; i < VALUES_TEXT_DIGITS; i++)
        digits[i] = most;
    t = begin();
    values_text_int(&t, digits, VALUES_TEXT_DIGITS, 30, false); /* 2 to the 600, less one */
    assert_string_equal(buf,
                        "41495155688809929585124078636911611510124462322424368999956573296906528114129081"
                        "46399707048947103794288197886611300789182395151075411775307886874834113963687061"
                        "181803401509523685375");
}

static void test_strings(void **state) {
    (void)state;
    const uint32_t plain[] = {'i', 't', '\'', 's'}, both[] = {'a', '"', '\'', '\\'},
                   odd[] = {'\n', 0, 0x7f, 0x85, 0x202e, 0xd800, 0xe0001, 0xe9, 0x1f600};
    struct values_text t = begin();
    values_text_str(&t, plain, 4, 4);
    assert_string_equal(buf, "\"it's\"");
    t = begin();
    values_text_str(&t, both, 4, 4);
    assert_string_equal(buf, "'a\"\\'\\\\'");
    t = begin();
    values_text_str(&t, odd, 9, 9);
    assert_string_equal(buf, "'\\n\\x00\\x7f\\x85\\u202e\\ud800\\U000e0001\xc3\xa9\xf0\x9f\x98\x80'");
    t = begin();
    values_text_str(&t, plain, 2, 1000);
    assert_string_equal(buf, "'it'... (1000 characters)");
    t = begin();
    values_text_bytes(&t, (const uint8_t *)"a\xff'", 3, 9);
    assert_string_equal(buf, "b\"a\\xff'\"... (9 bytes)");
}

/* Whatever is written, the text ends within its buffer, at a whole character, and says that it was cut. */
static void test_texts_are_cut_at_a_character(void **state) {
    (void)state;
    uint32_t wide[100];
    for (size_t i = 0; i < 100; i++)
        wide[i] = i % 2 ? 0x1f600 : 0x6f22;
    for (size_t cap = 8; cap <= sizeof buf; cap++) {
        struct values_text t;
        memset(buf, 'X', sizeof buf);
        values_text_init(&t, buf, cap);
        for (int i = 0; i < 3; i++)
            values_text_str(&t, wide, 100, 100);
        size_t n = strlen(buf);
        assert_true(t.cut && n == t.len && n < cap && n + 8 >= cap);
        assert_string_equal(buf + n - 3, "...");
        assert_true(n == 3 || ((unsigned char)buf[n - 4] & 0xc0) == 0x80 || buf[n - 4] == '\'');
        values_text_add(&t, "more");
        assert_int_equal(strlen(buf), n);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_ints),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_texts_are_cut_at_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
