/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of ranks: beside a plain array of marks they say the same, whatever is added, removed and read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "client/jobs/rank_set.h"

#define RANKS 300

static void expect(const struct rank_set *s, const char *text) {
    struct strbuf out;
    strbuf_init(&out, 0);
    rank_set_put(s, 0, &out);
    assert_string_equal(strbuf_str(&out), text);
    strbuf_fini(&out);
}

static void reads(const char *text, const char *as) {
    struct rank_set s = {.n = 0};
    struct err e;
    assert_int_equal(rank_set_parse(&s, text, &e), 0);
    expect(&s, as);
    rank_set_fini(&s);
}

/* Written with steps it is `text`, which is read as the same set. */
static void steps(const char *of, const char *text) {
    struct rank_set s = {.n = 0};
    struct strbuf out;
    struct err e;
    assert_int_equal(rank_set_parse(&s, of, &e), 0);
    strbuf_init(&out, 0);
    rank_set_put_steps(&s, &out);
    assert_string_equal(strbuf_str(&out), text);
    strbuf_clear(&out);
    rank_set_put(&s, 0, &out);
    reads(text, strbuf_str(&out));
    strbuf_fini(&out);
    rank_set_fini(&s);
}

static void refuses(const char *text, const char *part) {
    struct rank_set s = {.n = 0};
    struct err e;
    assert_int_equal(rank_set_parse(&s, text, &e), -1);
    assert_int_equal(e.code, ERR_USAGE);
    assert_non_null(strstr(e.text, part));
    assert_int_equal(s.n, 0);
    rank_set_fini(&s);
}

static void test_texts(void **state) {
    (void)state;
    reads("0-16,18-411", "0-16,18-411");
    reads("7", "7");
    reads("[0-3,7]", "0-3,7");
    reads("5,4,3,9-10,4-6,0", "0,3-6,9-10");
    reads("0,1,2,3", "0-3");
    reads("0-1048575", "0-1048575");
    reads("007", "7");
    static const char *const wrong[][2] = {
        {"", "''"},     {",", "''"},       {"1,", "''"},     {"1,,2", "''"},
        {"-1", "'-1'"}, {"1-", "'1-'"},    {"3-1", "'3-1'"}, {"1048576", "'10"},
        {"1 ", "'1 '"}, {"[1", "'1'"},     {"1]", "'1'"},    {"[1]x", "'1'"},
        {"a", "'a'"},   {"1-2-3", "'1-2"}, {"0x1", "'0x1'"}, {"9999999999999999", "'9999999999999999'"},
        {"[", "''"},    {"[]", "''"},      {"1;2", "'1;2'"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        refuses(wrong[i][0], wrong[i][1]);
}

static void test_steps(void **state) {
    (void)state;
    reads("4-20/8", "4,12,20");
    reads("0-7/1", "0-7");
    reads("0-7/3", "0,3,6");
    reads("[0-6/2,1-7/2]", "0-7");
    reads("0-1048575/1048575", "0,1048575");
    steps("4,12,20,28", "4-28/8");
    steps("0,8", "0,8");
    steps("0-3,8,16,24,40-41,43", "0-3,8-24/8,40-41,43");
    steps("1,3,5,6,9,12", "1,3,5-6,9,12");
    steps("0,2,4,8,12,16,17", "0-4/2,8,12,16-17");
    refuses("0-7/0", "'0-7/0'");
    refuses("0-7/", "'0-7/'");
    refuses("7/2", "'7/2'");
    refuses("0-7/2/2", "'0-7/2/2'");
    /* however often it is written, it does not take more memory */
    refuses("0-1048575/2,0-1048575/2,0-1048575/2", "'0-1048575/2'");
}

static void test_bounds(void **state) {
    (void)state;
    struct rank_set s = {.n = 0};
    struct err e;
    size_t n = RANK_SET_TEXT_MAX;
    char *text = malloc(n + 2);
    assert_non_null(text);
    memset(text, '1', n + 1);
    text[n + 1] = '\0';
    refuses(text, "at most 65536 bytes");
    /* the most ranges that fit, from the last to the first, are read in one go */
    char *at = text;
    for (int rank = 90000; rank > 70000 && at < text + n - 8; rank -= 2)
        at += sprintf(at, "%s%d", at > text ? "," : "", rank);
    assert_int_equal(rank_set_parse(&s, text, &e), 0);
    assert_true(s.n > 9000 && rank_set_count(&s) == (int32_t)s.n);
    assert_true(rank_set_has(&s, 90000) && !rank_set_has(&s, 89999));
    free(text);
    rank_set_fini(&s);
    assert_int_equal(rank_set_add(&s, -5, 3), 0);
    assert_int_equal(rank_set_add(&s, RANK_SET_LIMIT - 2, INT32_MAX), 0);
    assert_int_equal(rank_set_add(&s, 9, 8), 0);
    assert_int_equal(rank_set_add(&s, INT32_MIN, -1), 0);
    expect(&s, "0-3,1048574-1048575");
    struct strbuf out;
    strbuf_init(&out, 0);
    rank_set_put(&s, 1, &out);
    assert_string_equal(strbuf_str(&out), "0-3,...");
    strbuf_fini(&out);
    rank_set_fini(&s);
}

/* Like the set, without ranges. */
struct marks {
    bool has[RANKS];
};

static void expect_marks(const struct rank_set *s, const struct marks *m) {
    int32_t count = 0;
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(rank_set_has(s, i), m->has[i]);
        count += m->has[i];
    }
    assert_int_equal(rank_set_count(s), count);
    for (size_t i = 0; i < s->n; i++) {
        assert_true(s->ranges[i].first <= s->ranges[i].last);
        assert_true(i == 0 || s->ranges[i].first > s->ranges[i - 1].last + 1);
    }
}

static void fill(struct rank_set *s, struct marks *m, int times) {
    *s = (struct rank_set){.n = 0};
    *m = (struct marks){{false}};
    for (int i = 0; i < times; i++) {
        int first = rand() % RANKS, last = first + rand() % (i % 3 ? 3 : 40);
        last = last < RANKS ? last : RANKS - 1;
        assert_int_equal(rank_set_add(s, first, last), 0);
        for (int k = first; k <= last; k++)
            m->has[k] = true;
        expect_marks(s, m);
    }
}

static void test_against_marks(void **state) {
    (void)state;
    srand(7);
    for (int round = 0; round < 300; round++) {
        struct rank_set a, b, again = {.n = 0};
        struct marks x, y;
        struct strbuf text;
        struct err e;
        fill(&a, &x, rand() % 40);
        fill(&b, &y, rand() % 40);
        strbuf_init(&text, 0);
        rank_set_put(&a, 0, &text);
        assert_int_equal(rank_set_parse(&again, text.len ? strbuf_str(&text) : "0", &e), 0);
        if (text.len)
            expect_marks(&again, &x);
        bool join = round % 2;
        assert_int_equal(join ? rank_set_join(&a, &b) : rank_set_remove(&a, &b), 0);
        for (int i = 0; i < RANKS; i++)
            x.has[i] = join ? x.has[i] || y.has[i] : x.has[i] && !y.has[i];
        expect_marks(&a, &x);
        expect_marks(&b, &y);
        strbuf_fini(&text);
        rank_set_fini(&again);
        rank_set_fini(&a);
        rank_set_fini(&b);
    }
}

/* Two sets of half a million ranges each are joined in the time in which they are read. */
static void test_many_ranges(void **state) {
    (void)state;
    struct rank_set even = {.n = 0}, odd = {.n = 0};
    struct err e;
    assert_int_equal(rank_set_parse(&even, "0-1048575/2", &e), 0);
    assert_int_equal(rank_set_parse(&odd, "1-1048575/2", &e), 0);
    uint64_t began = clock_process_cpu_ns();
    assert_int_equal(rank_set_join(&even, &odd), 0);
    assert_true(clock_process_cpu_ns() - began < 5 * CLOCK_NS_PER_S);
    expect(&even, "0-1048575");
    assert_int_equal(odd.n, 524288);
    rank_set_fini(&even);
    rank_set_fini(&odd);
}

/* What another host has sent has no ranks if it is not valid, or has more ranges than any host has. */
static void test_texts_of_others(void **state) {
    (void)state;
    struct rank_set s = {.n = 0};
    static const char *const refused[] = {NULL, "", "1-", "0-1048575/2", "0-32769/2"};
    assert_int_equal(rank_set_join_text(&s, "4-6,9"), 0);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        assert_int_equal(rank_set_join_text(&s, refused[i]), 0);
    expect(&s, "4-6,9");
    assert_int_equal(rank_set_join_text(&s, "0-32767/2"), 0);
    assert_int_equal(rank_set_count(&s), 16384 + 2);
    rank_set_fini(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),       cmocka_unit_test(test_steps),
        cmocka_unit_test(test_bounds),      cmocka_unit_test(test_against_marks),
        cmocka_unit_test(test_many_ranges), cmocka_unit_test(test_texts_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
