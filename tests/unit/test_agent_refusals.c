/* SPDX-License-Identifier: Apache-2.0 */
/* Refusals become few rows, however many there are, and none is forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/server/refusals.h"
#include "base/clock.h"

static void check_first_has_a_row(void **state) {
    (void)state;
    struct refusals r = {.waiting = false}, row;
    assert_false(refusals_take(&r, &row));
    assert_true(refusals_note(&r, 1, 1000, 77, "wrong token"));
    assert_true(refusals_take(&r, &row));
    assert_string_equal(row.text, "wrong token");
    assert_int_equal(row.uid, 1000);
    assert_int_equal(row.pid, 77);
    assert_false(refusals_take(&r, &row));
}

/* Twenty a second for a day: some 150 rows, and what they count is all there was. */
static void check_a_flood_is_few_rows(void **state) {
    (void)state;
    struct refusals r = {.waiting = false}, row;
    uint64_t rows = 0, told = 0, n = 0;
    for (uint64_t s = 0; s < 86400; s++)
        for (uint64_t i = 0; i < 20; i++, n++) {
            (void)refusals_note(&r, s * CLOCK_NS_PER_S + i * 50 * CLOCK_NS_PER_MS, -1, -1, "no token");
            if (refusals_take(&r, &row)) {
                unsigned long long more = 0;
                const char *and = strstr(row.text, "(and ");
                if (and)
                    assert_int_equal(sscanf(and, "(and %llu more", &more), 1);
                told += 1 + more;
                rows++;
            }
        }
    assert_in_range(rows, 100, 200);
    assert_int_equal(told + r.more, n);
}

/* Nobody takes it: what waits is not replaced, what comes is counted. After a long quiet it begins anew. */
static void check_waits_and_begins_anew(void **state) {
    (void)state;
    struct refusals r = {.waiting = false}, row;
    assert_true(refusals_note(&r, 0, -1, -1, "a"));
    assert_false(refusals_note(&r, 3 * CLOCK_NS_PER_S, -1, -1, "b"));
    assert_true(refusals_take(&r, &row));
    assert_string_equal(row.text, "a");
    assert_true(refusals_note(&r, 4 * CLOCK_NS_PER_S, -1, -1, "c"));
    assert_true(refusals_take(&r, &row));
    assert_string_equal(row.text, "c (and 1 more since the last row)");
    assert_false(refusals_note(&r, 5 * CLOCK_NS_PER_S, -1, -1, "d")); /* two seconds, now */
    assert_true(refusals_note(&r, 5000 * CLOCK_NS_PER_S, -1, -1, "e"));
    assert_int_equal(r.due_ns, 5001 * CLOCK_NS_PER_S);
}

static void check_long_texts_are_cut(void **state) {
    (void)state;
    struct refusals r = {.waiting = false}, row;
    char text[1000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_true(refusals_note(&r, 0, -1, -1, text));
    assert_true(refusals_take(&r, &row));
    assert_int_equal(strlen(row.text), REFUSALS_TEXT - 1);
    (void)refusals_note(&r, 1, -1, -1, text);
    assert_true(refusals_note(&r, 2 * CLOCK_NS_PER_S, -1, -1, text));
    assert_non_null(strstr(r.text, "(and 1 more since the last row)"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_first_has_a_row),
        cmocka_unit_test(check_a_flood_is_few_rows),
        cmocka_unit_test(check_waits_and_begins_anew),
        cmocka_unit_test(check_long_texts_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
