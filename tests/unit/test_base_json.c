/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON writer: separators, escapes, unknown numbers, and refusal of unbalanced documents; and the buffers it stands on.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/strbuf.h"

static void test_document(void **state) {
    (void)state;
    struct strbuf out;
    struct json j;
    strbuf_init(&out, 0);
    json_init(&j, &out, 0);
    json_object_begin(&j);
    json_kv_int(&j, "a", -1);
    json_key(&j, "list");
    json_array_begin(&j);
    json_number(&j, 1.5, 2);
    json_number(&j, NAN, 2);
    json_number(&j, INFINITY, 2);
    json_object_begin(&j);
    json_object_end(&j);
    json_array_end(&j);
    json_kv_string(&j, "s",
                   "q\" b\\ n\n t\t c\x01 \x7f\xc2\x9b\xe2\x80\xae\xe2\x80\x8f\xe2\x80\xa8 \xc3\xa9 \xff");
    json_kv_string(&j, "none", NULL);
    json_kv_bool(&j, "b", true);
    json_kv_uint(&j, "u", UINT64_MAX);
    json_object_end(&j);
    assert_int_equal(json_finish(&j), 0);
    assert_string_equal(out.data, "{\"a\":-1,\"list\":[1.50,null,null,{}],\"s\":\"q\\\" b\\\\ n\\n t\\t "
                                  "c\\u0001 \\u007f\\u009b\\u202e\\u200f\\u2028 \xc3\xa9 \xef\xbf\xbd\","
                                  "\"none\":null,\"b\":true,\"u\":18446744073709551615}");
    strbuf_fini(&out);
}

static void test_indented(void **state) {
    (void)state;
    struct strbuf out;
    struct json j;
    strbuf_init(&out, 0);
    json_init(&j, &out, 2);
    json_object_begin(&j);
    json_key(&j, "x");
    json_array_begin(&j);
    json_int(&j, 1);
    json_int(&j, 2);
    json_array_end(&j);
    json_object_end(&j);
    assert_int_equal(json_finish(&j), 0);
    assert_string_equal(out.data, "{\n  \"x\": [\n    1,\n    2\n  ]\n}");
    strbuf_fini(&out);
}

static void test_imbalance_is_refused(void **state) {
    (void)state;
    struct strbuf out;
    struct json j;
    strbuf_init(&out, 0);
    json_init(&j, &out, 0);
    json_object_begin(&j);
    assert_int_equal(json_finish(&j), -1);
    json_array_end(&j);
    assert_int_equal(json_finish(&j), -1);
    json_init(&j, &out, 0);
    for (int i = 0; i <= JSON_MAX_DEPTH; i++)
        json_array_begin(&j);
    assert_int_equal(json_finish(&j), -1);
    strbuf_fini(&out);
}

static void test_strbuf_limit(void **state) {
    (void)state;
    struct strbuf b;
    strbuf_init(&b, 4);
    assert_string_equal(strbuf_str(&b), "");
    assert_int_equal(strbuf_adds(&b, "abcd"), 0);
    assert_int_equal(strbuf_addc(&b, 'e'), -1);
    assert_true(b.failed);
    assert_string_equal(strbuf_str(&b), "abcd");
    strbuf_clear(&b);
    assert_int_equal(strbuf_addf(&b, "%d", 42), 0);
    assert_string_equal(strbuf_str(&b), "42");
    strbuf_fini(&b);
}

static void test_arena_limit_and_alignment(void **state) {
    (void)state;
    struct arena a;
    arena_init(&a, (size_t)64 * 1024);
    for (size_t i = 1; i < 100; i++) {
        unsigned char *p = arena_alloc(&a, i);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
        for (size_t k = 0; k < i; k++)
            assert_int_equal(p[k], 0);
        memset(p, 0xee, i);
    }
    assert_false(a.failed);
    assert_null(arena_alloc(&a, (size_t)1024 * 1024));
    assert_true(a.failed);
    assert_null(arena_calloc(&a, SIZE_MAX / 2, 4));
    assert_null(arena_alloc(&a, SIZE_MAX));
    assert_string_equal(arena_strndup(&a, "hello", 4), "hell");
    arena_fini(&a);
    assert_int_equal(a.used, 0);
    assert_non_null(arena_alloc(&a, 10));
    arena_fini(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_document),
        cmocka_unit_test(test_indented),
        cmocka_unit_test(test_imbalance_is_refused),
        cmocka_unit_test(test_strbuf_limit),
        cmocka_unit_test(test_arena_limit_and_alignment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
