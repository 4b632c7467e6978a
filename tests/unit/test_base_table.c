/* SPDX-License-Identifier: Apache-2.0 */
/* The hash table: what was put in is found, nothing else is; beside a plain list it says the same, whatever the hashes are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/table.h"

#define ITEMS 20000

static uint64_t keys[ITEMS];

static uint32_t find(const struct table *t, uint64_t hash, uint64_t key) {
    size_t at = TABLE_BEGIN;
    for (uint32_t i; (i = table_next(t, hash, &at)) != TABLE_NONE;)
        if (keys[i] == key)
            return i;
    return TABLE_NONE;
}

static uint64_t hash_well(uint64_t key) { return hash_mix(key); }
static uint64_t hash_badly(uint64_t key) { return key % 7; }
static uint64_t hash_high(uint64_t key) { return key << 40; }
static uint64_t hash_plainly(uint64_t key) { return key; }

static void check_with(uint64_t (*hash)(uint64_t key), size_t n) {
    struct table t = {.n = 0};
    for (size_t i = 0; i < n; i++) {
        keys[i] = i * 3;
        assert_int_equal(find(&t, hash(keys[i]), keys[i]), TABLE_NONE);
        size_t growth = table_growth(&t), before = table_bytes(&t);
        assert_int_equal(table_add(&t, hash(keys[i]), (uint32_t)i), 0);
        assert_int_equal(table_bytes(&t), growth ? growth : before);
        assert_true(t.n == i + 1 && t.n <= t.n_slots / 2);
    }
    for (size_t i = 0; i < 3 * n; i++)
        assert_int_equal(find(&t, hash(i), i), i % 3 ? TABLE_NONE : i / 3);
    table_clear(&t);
    size_t room = table_bytes(&t);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(find(&t, hash(keys[i]), keys[i]), TABLE_NONE);
    for (size_t i = n; i-- > 0;)
        assert_int_equal(table_add(&t, hash(keys[i]), (uint32_t)i), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(find(&t, hash(keys[i]), keys[i]), i);
    assert_int_equal(table_bytes(&t), room);
    table_fini(&t);
    assert_int_equal(table_bytes(&t), 0);
}

static void test_any_hash(void **state) {
    (void)state;
    check_with(hash_well, ITEMS);
    check_with(hash_plainly, ITEMS);
    check_with(hash_high, 2000);
    check_with(hash_badly, 500);
}

/* Items whose keys have one hash are all found, each once, and no search goes on for ever. */
static void test_same_hash(void **state) {
    struct table t = {.n = 0};
    size_t at = TABLE_BEGIN, n = 0;
    bool seen[100] = {false};
    (void)state;
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(table_add(&t, 42, i), 0);
    for (uint32_t i; (i = table_next(&t, 42, &at)) != TABLE_NONE; n++) {
        assert_true(i < 100 && !seen[i]);
        seen[i] = true;
    }
    assert_int_equal(n, 100);
    table_fini(&t);
}

/* Numbers with gaps: what has none of its own is not found. */
static void test_gaps(void **state) {
    struct table t = {.n = 0};
    (void)state;
    for (uint32_t i = 0; i < ITEMS; i += 7) {
        keys[i] = i;
        assert_int_equal(table_add(&t, hash_well(i), i), 0);
    }
    for (uint32_t i = 0; i < ITEMS; i++)
        assert_int_equal(find(&t, hash_well(i), i), i % 7 ? TABLE_NONE : i);
    table_fini(&t);
}

/* Against a plain list, with random keys, some of them again, and random clearings. */
static void test_against_a_list(void **state) {
    uint64_t seed = 7;
    struct table t = {.n = 0};
    size_t n = 0;
    (void)state;
    for (int round = 0; round < 30000; round++) {
        seed = hash_mix(seed + 1);
        uint64_t key = seed % 1500;
        uint32_t in_list = TABLE_NONE, in_table = find(&t, hash_badly(key) + (key << 20), key);
        for (size_t i = 0; i < n && in_list == TABLE_NONE; i++)
            in_list = keys[i] == key ? (uint32_t)i : TABLE_NONE;
        assert_int_equal(in_table, in_list);
        if (in_list == TABLE_NONE) {
            keys[n] = key;
            assert_int_equal(table_add(&t, hash_badly(key) + (key << 20), (uint32_t)n++), 0);
        }
        if (seed % 5000 == 1) {
            table_clear(&t);
            n = 0;
        }
        assert_int_equal(t.n, n);
    }
    table_fini(&t);
}

static void test_bounds(void **state) {
    struct table t = {.n = 0};
    size_t at = TABLE_BEGIN;
    (void)state;
    assert_int_equal(table_next(&t, 1, &at), TABLE_NONE);
    table_clear(&t);
    assert_int_equal(table_reserve(&t, TABLE_MAX + 1), -1);
    assert_int_equal(table_add(&t, 1, (uint32_t)TABLE_MAX), -1);
    assert_int_equal(table_bytes(&t), 0);
    assert_int_equal(table_reserve(&t, 1000), 0);
    assert_int_equal(table_growth(&t), 0);
    table_fini(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_hash),       cmocka_unit_test(test_same_hash), cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_against_a_list), cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
