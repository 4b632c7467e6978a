/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text from a target may hold anything: what is drawn must be valid UTF-8, without controls, of the width measured.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <locale.h>

#include "base/strbuf.h"
#include "base/text.h"

static void test_utf8_rejects_what_rfc3629_forbids(void **state) {
    (void)state;
    static const char *const bad[] = {"\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                      "\xff", "\xe4\xb8", "\xc3"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint32_t cp = 0;
        assert_int_equal(text_utf8_next(bad[i], strlen(bad[i]), &cp), 1);
        assert_int_equal(cp, TEXT_REPLACEMENT);
    }
}

static void test_utf8_round_trip(void **state) {
    (void)state;
    static const uint32_t points[] = {1, 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff};
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        char enc[4];
        uint32_t cp;
        size_t n = text_utf8_put(points[i], enc);
        assert_int_equal(text_utf8_next(enc, n, &cp), n);
        assert_int_equal(cp, points[i]);
    }
}

static void test_sanitize_leaves_no_control(void **state) {
    (void)state;
    char out[256];
    text_sanitize(out, sizeof out,
                  "a\x1b[31mred\x07\r\n\tb\xc2\x9b"
                  "c\xe2\x80\xae"
                  "d\xff");
    for (const char *p = out; *p;) {
        uint32_t cp;
        p += text_utf8_next(p, strlen(p), &cp);
        assert_true(cp >= 0x20 && !(cp >= 0x7f && cp < 0xa0) && cp != 0x202e);
    }
    assert_non_null(strstr(out, "[31mred"));
    text_sanitize(out, sizeof out, "\xe4\xb8\xbb\xe7\xba\xbf caf\xc3\xa9");
    assert_string_equal(out, "\xe4\xb8\xbb\xe7\xba\xbf caf\xc3\xa9");
}

static void test_sanitize_never_cuts_a_character(void **state) {
    (void)state;
    const char *src = "\xe4\xb8\xbb\xe7\xba\xbf";
    for (size_t cap = 1; cap <= strlen(src) + 1; cap++) {
        char out[16];
        size_t n = text_sanitize(out, cap, src);
        assert_true(n < cap && n % 3 == 0);
        assert_memory_equal(out, src, n);
    }
}

static void test_width_and_fit(void **state) {
    (void)state;
    const char *s = "ab\xe4\xb8\xbb"
                    "e\xcc\x81z"; /* wide character, combining accent */
    assert_int_equal(text_width(s), 2 + 2 + 1 + 1);
    for (int cols = 0; cols <= 7; cols++) {
        char head[32];
        size_t n = text_fit(s, cols);
        memcpy(head, s, n);
        head[n] = '\0';
        assert_true(text_width(head) <= cols);
    }
    assert_int_equal(text_fit(s, 3), 2); /* half of the wide character does not fit */
    assert_int_equal(text_fit(s, 6), strlen(s));
}

static void test_human_numbers(void **state) {
    (void)state;
    static const struct {
        double bytes;
        const char *text;
    } sizes[] = {{-1, "?"},
                 {0, "0 B"},
                 {1023, "1023 B"},
                 {1024, "1.00 KiB"},
                 {15 * 1024, "15.0 KiB"},
                 {300 * 1024, "300 KiB"},
                 {5LL << 30, "5.00 GiB"},
                 {8e18, "7105 PiB"},
                 {(double)INT64_MAX, "?"},
                 {1e300, "?"},
                 {INFINITY, "?"},
                 {NAN, "?"}};
    char out[32];
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        text_human_bytes(out, sizeof out, sizes[i].bytes);
        assert_string_equal(out, sizes[i].text);
    }
    static const struct {
        double s;
        const char *text;
    } times[] = {{-1, "?"},        {NAN, "?"},        {INFINITY, "?"},
                 {0, "0s"},        {59.9, "59s"},     {249, "4m09s"},
                 {11220, "3h07m"}, {183600, "2d03h"}, {1e12, "11574074d01h"},
                 {1.67e155, "?"}};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        text_human_duration(out, sizeof out, times[i].s);
        assert_string_equal(out, times[i].text);
    }
}

#define LINES "a\tb\n\xe4\xb8\xad\x1b[2J\r\x7f\xc2\x9b\xff\xe4\xb8"
#define BAD "\xef\xbf\xbd"

static void test_add_clean_leaves_lines_alone(void **state) {
    struct strbuf b;
    (void)state;
    strbuf_init(&b, 0);
    assert_int_equal(strbuf_add_clean(&b, LINES "\0!", sizeof LINES + 1), 0);
    assert_string_equal(strbuf_str(&b), "a\tb\n\xe4\xb8\xad" BAD "[2J" BAD BAD BAD BAD BAD BAD BAD "!");
    strbuf_fini(&b);
    strbuf_init(&b, 4);
    assert_int_equal(strbuf_add_clean(&b, "12345", 5), -1);
    strbuf_fini(&b);
}

int main(void) {
    setlocale(LC_ALL, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utf8_rejects_what_rfc3629_forbids),
        cmocka_unit_test(test_utf8_round_trip),
        cmocka_unit_test(test_sanitize_leaves_no_control),
        cmocka_unit_test(test_sanitize_never_cuts_a_character),
        cmocka_unit_test(test_width_and_fit),
        cmocka_unit_test(test_add_clean_leaves_lines_alone),
        cmocka_unit_test(test_human_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
