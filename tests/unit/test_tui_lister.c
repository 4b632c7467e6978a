/* SPDX-License-Identifier: Apache-2.0 */
/* The picker's list is made elsewhere: nothing waits for it, one look at a time, and it can be left at any moment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <string.h>

#include <cmocka.h>

#include "tui/workers/lister.h"

#define LONGEST_MS 60000

static void test_looks(void **state) {
    struct err e = {0};
    struct target_process *list;
    char hidden[TARGET_HIDDEN_MAX] = "?";
    struct lister *l = lister_new(&e);
    (void)state;
    assert_non_null(l);
    assert_int_equal(lister_take(l, &list, hidden, sizeof hidden, &e), -2); /* nothing was asked for */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(lister_start(l, &e), 0);
        assert_int_equal(lister_start(l, &e), 0); /* it is under way */
        struct pollfd p = {.fd = lister_fd(l), .events = POLLIN};
        assert_int_equal(poll(&p, 1, LONGEST_MS), 1);
        ssize_t n = lister_take(l, &list, hidden, sizeof hidden, &e);
        assert_true(n >= 0);
        assert_null(strchr(hidden, '?'));
        target_list_free(list, (size_t)n);
        assert_int_equal(lister_take(l, &list, hidden, sizeof hidden, &e), -2); /* once */
        assert_null(list);
    }
    lister_free(l);
}

static void test_left_in_the_middle(void **state) {
    struct err e = {0};
    (void)state;
    for (int i = 0; i < 5; i++) {
        struct lister *l = lister_new(&e);
        assert_non_null(l);
        assert_int_equal(lister_start(l, &e), 0);
        lister_free(l);
    }
    lister_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_looks),
        cmocka_unit_test(test_left_in_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
