/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers in memory and the forms in which they are written: values of every kind, names that are the same twice, what may not be drawn,
 * limits that are said.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/sql/result.h"

static struct result *take(struct sql *s, const char *text, uint64_t limit) {
    struct err e = {.text = ""};
    struct sql_query q = {.max_rows = limit};
    struct sql_result *r = sql_begin(s, text, &q, NULL, NULL, &e);
    struct result *rows = r ? result_take(r, RESULT_BYTES, &e) : NULL;
    if (!rows)
        fail_msg("%s: %s", text, e.text);
    sql_end(r);
    return rows;
}

/* What a form makes of a query, up to where the time that it took begins. */
static void expect(const char *format, bool terminal, const char *text, uint64_t limit, const char *written) {
    struct err e;
    struct strbuf out;
    struct sql *s = sql_open(&e);
    assert_non_null(s);
    struct result *rows = take(s, text, limit);
    strbuf_init(&out, 0);
    result_write(rows, result_find_format(format, &e), terminal, &out);
    assert_false(out.failed);
    size_t n = strlen(written);
    if (strncmp(strbuf_str(&out), written, n) != 0)
        fail_msg("%s as %s:\n%s\nnot:\n%s", text, format, strbuf_str(&out), written);
    strbuf_fini(&out);
    result_unref(rows);
    sql_close(s);
}

#define KINDS "SELECT 1 AS i, 0.1 AS f, 2.0 AS g, 'x,\"y\"' AS t, NULL AS n, x'00ff' AS b"

static void values_of_every_kind(void **state) {
    (void)state;
    expect("csv", false, KINDS, 0, "i,f,g,t,n,b\n1,0.1,2.0,\"x,\"\"y\"\"\",,00ff\n");
    expect("csv", false, "SELECT '' AS a, NULL AS b", 0, "a,b\n\"\",\n");
    expect("ndjson", false, KINDS, 0,
           "{\"i\":1,\"f\":0.1,\"g\":2.0,\"t\":\"x,\\\"y\\\"\",\"n\":null,\"b\":\"00ff\"}\n");
    expect("json", false, KINDS, 0,
           "{\"schema_version\":1,\"columns\":[{\"name\":\"i\",\"type\":\"integer\"},{\"name\":\"f\","
           "\"type\":\"double\"},"
           "{\"name\":\"g\",\"type\":\"double\"},{\"name\":\"t\",\"type\":\"text\"},{\"name\":\"n\",\"type\":"
           "null},"
           "{\"name\":\"b\",\"type\":\"blob\"}],\"rows\":[{\"i\":1,\"f\":0.1,\"g\":2.0,\"t\":\"x,\\\"y\\\"\","
           "\"n\":null,"
           "\"b\":\"00ff\"}],\"truncated\":false,\"lost_chunks\":0,\"elapsed_ms\":");
    expect("table", true, KINDS, 0,
           "i |   f |   g | t     |    n | b\n"
           "--+-----+-----+-------+------+-----\n"
           "1 | 0.1 | 2.0 | x,\"y\" | NULL | 00ff\n"
           "(1 row, ");
}

static void numbers_are_read_back_as_they_were(void **state) {
    (void)state;
    expect("csv", false, "SELECT 1700000000.123456, 0.1 + 0.2, -9223372036854775808, 1e300 * 1e300", 0,
           "1700000000.123456,0.1 + 0.2,-9223372036854775808,1e300 * 1e300\n"
           "1700000000.123456,0.30000000000000004,-9223372036854775808,inf\n");
    expect("ndjson", false, "SELECT 1e300 * 1e300 AS x", 0, "{\"x\":null}\n");
}

static void names_are_told_apart(void **state) {
    (void)state;
    expect("csv", false, "SELECT 1 AS a, 2 AS a, 3 AS a", 0, "a,a:2,a:3\n1,2,3\n");
}

static void a_limit_is_said(void **state) {
    (void)state;
    expect("table", false, "SELECT 1 AS a UNION ALL SELECT 2", 1, "a\n-\n1\n(1 row, and more, ");
    expect("json", false, "SELECT 1 AS a UNION ALL SELECT 2", 1,
           "{\"schema_version\":1,\"columns\":[{\"name\":\"a\",\"type\":\"integer\"}],\"rows\":[{\"a\":1}],"
           "\"truncated\":true,");
    expect("table", false, "SELECT 1 AS a UNION ALL SELECT 2", 2, "a\n-\n1\n2\n(2 rows, ");
    expect("table", false, "SELECT 1 AS a WHERE 0", 2, "a\n-\n(0 rows, ");
}

static void expect_fitted(int cols, const char *text, const char *written) {
    struct err e;
    struct strbuf out;
    struct sql *s = sql_open(&e);
    assert_non_null(s);
    struct result *rows = take(s, text, 0);
    strbuf_init(&out, 0);
    result_put_fitted(rows, cols, &out);
    size_t n = strlen(written);
    if (strncmp(strbuf_str(&out), written, n) != 0)
        fail_msg("%s in %d columns:\n%s\nnot:\n%s", text, cols, strbuf_str(&out), written);
    strbuf_fini(&out);
    result_unref(rows);
    sql_close(s);
}

#define WIDE "SELECT 1234567890123 AS n, 'what is said of it' AS said, 'lib/python/queues.py' AS file"

static void rows_are_made_to_fit(void **state) {
    (void)state;
    expect_fitted(0, WIDE,
                  "            n | said               | file\n"
                  "--------------+--------------------+---------------------\n"
                  "1234567890123 | what is said of it | lib/python/queues.py\n(1 row, ");
    expect_fitted(57, WIDE,
                  "            n | said               | file\n"
                  "--------------+--------------------+---------------------\n"
                  "1234567890123 | what is said of it | lib/python/queues.py\n(1 row, ");
    /* The widest texts first, all as wide; of a path the end stays; numbers are whole. */
    expect_fitted(50, WIDE,
                  "            n | said            | file\n"
                  "--------------+-----------------+----------------\n"
                  "1234567890123 | what is said o\xe2\x80\xa6 | \xe2\x80\xa6thon/queues.py\n(1 row, ");
    /* Where that is not enough each value has its line. */
    expect_fitted(
        30, WIDE,
        "-- 1 --\nn    | 1234567890123\nsaid | what is said of it\nfile | lib/python/queues.py\n(1 row, ");
    expect_fitted(5, "SELECT 1 AS n WHERE 0", "n\n-\n(0 rows, ");
}

static void nothing_that_moves_the_cursor_is_drawn(void **state) {
    (void)state;
    expect("table", true, "SELECT char(27) || '[2J' || char(10) || 'b' AS a", 0,
           "a\n------\n\xef\xbf\xbd[2J b\n(1 row, ");
    expect("csv", true, "SELECT char(27) || 'b' AS a", 0,
           "a\n\xef\xbf\xbd"
           "b\n");
    expect("csv", false, "SELECT char(27) || 'b' AS a", 0,
           "a\n\x1b"
           "b\n");
}

static void a_time_is_drawn_as_one(void **state) {
    (void)state;
    struct err e;
    struct strbuf out;
    struct result *rows = result_new(2, 2, RESULT_BYTES);
    assert_non_null(rows);
    assert_int_equal(result_name_column(rows, 0, "at", "timestamp"), 0);
    assert_int_equal(result_name_column(rows, 1, "n", "double"), 0);
    assert_int_equal(result_add_row(rows), 0);
    result_put_real(rows, 0, 1700000000.25);
    result_put_real(rows, 1, 1700000000.25);
    assert_int_equal(result_add_row(rows), 0);
    result_put_real(rows, 0, 1e18);
    strbuf_init(&out, 0);
    result_write(rows, result_find_format("table", &e), false, &out);
    assert_string_equal(strbuf_str(&out), "                         at |             n\n"
                                          "----------------------------+--------------\n"
                                          "2023-11-14 22:13:20.250000Z | 1700000000.25\n"
                                          "                      1e+18 |          NULL\n"
                                          "(2 rows, 0 ms)\n");
    strbuf_fini(&out);
    result_unref(rows);
}

static void a_number_is_drawn_with_the_digits_that_tell(void **state) {
    (void)state;
    struct err e;
    struct strbuf out;
    static const double values[] = {5.913894900447837, 0.1, 12.5, 1e-7 / 3, 1234567.8912, 2.0 / 3 * 1e18};
    struct result *rows = result_new(1, 6, RESULT_BYTES);
    assert_non_null(rows);
    assert_int_equal(result_name_column(rows, 0, "v", "double"), 0);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(result_add_row(rows), 0);
        result_put_real(rows, 0, values[i]);
    }
    strbuf_init(&out, 0);
    result_write(rows, result_find_format("table", &e), false, &out);
    assert_string_equal(strbuf_str(&out), "          v\n"
                                          "-----------\n"
                                          "    5.91389\n"
                                          "        0.1\n"
                                          "       12.5\n"
                                          "3.33333e-08\n"
                                          "1234567.891\n"
                                          "6.66667e+17\n"
                                          "(6 rows, 0 ms)\n");
    strbuf_clear(&out);
    result_write(rows, result_find_format("csv", &e), false, &out);
    assert_non_null(strstr(strbuf_str(&out), "5.913894900447837"));
    strbuf_fini(&out);
    result_unref(rows);
}

static void a_wide_value_is_whole(void **state) {
    (void)state;
    struct err e;
    struct strbuf out;
    struct sql *s = sql_open(&e);
    assert_non_null(s);
    struct result *rows = take(s, "SELECT printf('%.*c', 300000, 'x') AS a", 0);
    strbuf_init(&out, 0);
    result_write(rows, result_find_format("table", &e), true, &out);
    assert_false(out.failed);
    assert_true(out.len > 600000 && out.len < 600100);
    strbuf_fini(&out);
    result_unref(rows);
    sql_close(s);
}

static void an_unknown_form_is_refused(void **state) {
    struct err e;
    (void)state;
    assert_null(result_find_format("jsn", &e));
    assert_int_equal(e.code, ERR_USAGE);
    assert_string_equal(e.text, "unknown format 'jsn': did you mean 'json'?");
    assert_null(result_find_format("spreadsheet", &e));
    assert_string_equal(e.text, "unknown format 'spreadsheet': give one of table, json, ndjson, csv");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_every_kind),
        cmocka_unit_test(numbers_are_read_back_as_they_were),
        cmocka_unit_test(names_are_told_apart),
        cmocka_unit_test(a_limit_is_said),
        cmocka_unit_test(rows_are_made_to_fit),
        cmocka_unit_test(nothing_that_moves_the_cursor_is_drawn),
        cmocka_unit_test(a_time_is_drawn_as_one),
        cmocka_unit_test(a_number_is_drawn_with_the_digits_that_tell),
        cmocka_unit_test(a_wide_value_is_whole),
        cmocka_unit_test(an_unknown_form_is_refused),
    };
    return cmocka_run_group_tests_name("client_result", tests, NULL, NULL);
}
