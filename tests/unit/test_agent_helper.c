/* SPDX-License-Identifier: Apache-2.0 */
/* The units of Python that the python worker runs: a row each, what each needs before it, pieces that fit. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "agent/python/helper.h"

static void every_unit_needs_one_before_it(void **state) {
    (void)state;
    for (size_t i = 0; i < HELPER_COUNT; i++) {
        assert_int_equal(helper_find(helper_units[i].name), i);
        if (helper_units[i].needs[0])
            assert_true(helper_find(helper_units[i].needs) < i);
    }
    assert_int_equal(helper_find("value"), HELPER_COUNT);
    assert_int_equal(helper_find(""), HELPER_COUNT);
}

/* A piece that is too long is not compiled, and a definition of another unit's name would take that one's place. */
static void pieces_fit_and_their_names_begin_with_the_units(void **state) {
    (void)state;
    for (size_t i = 0; i < HELPER_COUNT; i++) {
        const char *name = helper_units[i].name;
        for (const char *at = helper_units[i].source; at;) {
            const char *end = strstr(at, HELPER_BETWEEN);
            size_t n = end ? (size_t)(end - at) : strlen(at);
            assert_in_range(n, 1, HELPER_PIECE_MAX - 1);
            if (strncmp(at, "def ", 4) == 0) {
                assert_memory_equal(at + 4, name, strlen(name));
                assert_int_equal(at[4 + strlen(name)], '_');
            }
            at = end ? end + strlen(HELPER_BETWEEN) : NULL;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_needs_one_before_it),
        cmocka_unit_test(pieces_fit_and_their_names_begin_with_the_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
