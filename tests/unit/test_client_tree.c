/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes below the ones that started them: whatever the order, whatever is missing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "client/target/target_tree.h"

#define MANY 64

/* Arrange processes given as pid, parent, pid, parent, … 0; the lines "PREFIXpid". */
static void check(bool ascii, const char *expected, const int *pairs) {
    static struct target_process list[MANY];
    const struct target_process *rows[MANY] = {NULL};
    struct target_tree_row out[MANY];
    char prefix[TARGET_TREE_PREFIX];
    struct strbuf text;
    size_t n = 0;
    for (; pairs[2 * n]; n++) {
        list[n] = (struct target_process){.pid = pairs[2 * n], .parent = pairs[2 * n + 1]};
        rows[n] = &list[n];
    }
    target_tree_arrange(rows, n, out);
    strbuf_init(&text, 0);
    for (size_t i = 0; i < n; i++) {
        target_tree_prefix(&out[i], ascii, prefix);
        (void)strbuf_addf(&text, "%s%d\n", prefix, (int)out[i].process->pid);
    }
    assert_string_equal(strbuf_str(&text), expected);
    strbuf_fini(&text);
}

static void test_shapes(void **state) {
    (void)state;
    check(true, "", (int[]){0});
    check(true, "1\n2\n", (int[]){1, 0, 2, 0, 0});
    check(true, "2\n1\n|- 4\n|  `- 5\n`- 3\n6\n", (int[]){2, 0, 1, 0, 4, 1, 3, 1, 5, 4, 6, 0, 0});
    check(false,
          "1\n\xe2\x94\x9c\xe2\x94\x80 2\n\xe2\x94\x82  \xe2\x94\x94\xe2\x94\x80 4\n\xe2\x94\x94\xe2\x94\x80 "
          "3\n",
          (int[]){1, 0, 2, 1, 4, 2, 3, 1, 0});
    check(true, "9\n`- 7\n", (int[]){7, 9, 9, 0, 0}); /* the child came first */
}

static void test_what_is_missing(void **state) {
    (void)state;
    check(true, "5\n6\n", (int[]){5, 77, 6, 78, 0});        /* their parents are not shown */
    check(true, "3\n1\n2\n", (int[]){1, 2, 2, 1, 3, 0, 0}); /* each other's parent */
    check(true, "1\n", (int[]){1, 1, 0});
}

static void test_depth(void **state) {
    const struct target_process *rows[MANY];
    struct target_process list[MANY];
    struct target_tree_row out[MANY];
    char prefix[TARGET_TREE_PREFIX];
    (void)state;
    for (int i = 0; i < MANY; i++) {
        list[i] = (struct target_process){.pid = i + 1, .parent = i};
        rows[i] = &list[i];
    }
    target_tree_arrange(rows, MANY, out);
    for (int i = 0; i < MANY; i++) {
        assert_ptr_equal(out[i].process, rows[i]);
        assert_in_range(out[i].depth, 0, TARGET_TREE_MAX_DEPTH - 1);
        target_tree_prefix(&out[i], false, prefix);
        assert_true(strlen(prefix) < TARGET_TREE_PREFIX);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_what_is_missing),
        cmocka_unit_test(test_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
