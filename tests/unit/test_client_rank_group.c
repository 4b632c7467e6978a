/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of python.process_groups as agents of any age give them, and as they may not be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/fleet/rank_group.h"

#define TEXT(text)                                                                                           \
    { .kind = WIRE_VALUE_TEXT, .len = strlen(text), .s = (text) }
#define INT(n)                                                                                               \
    { .kind = WIRE_VALUE_INT, .i = (n) }

static struct strbuf columns, rows;
static size_t n_columns, n_rows;
static struct rank_group found[4];

static void begin(const char *const *names) {
    strbuf_init(&columns, 0);
    strbuf_init(&rows, 0);
    n_rows = n_columns = 0;
    struct wire_value values[80];
    while (names[n_columns]) {
        values[n_columns] = (struct wire_value)TEXT(names[n_columns]);
        n_columns++;
    }
    assert_int_equal(wire_add_row(&columns, values, n_columns), 0);
}

static void add(const struct wire_value *values) {
    assert_int_equal(wire_add_row(&rows, values, n_columns), 0);
    n_rows++;
}

/* What is read of it: the number of rows, or -1. */
static ssize_t end(const char *note, struct err *e) {
    struct strbuf message;
    struct wire_rows answer = {.columns = columns.data,
                               .columns_len = columns.len,
                               .rows = rows.data,
                               .rows_len = rows.len,
                               .n_columns = n_columns,
                               .n_rows = n_rows};
    (void)snprintf(answer.note, sizeof answer.note, "%s", note);
    strbuf_init(&message, 0);
    assert_int_equal(wire_put_rows(&message, 1, &answer), 0);
    struct wire_message *m = wire_parse(message.data, message.len, e);
    assert_non_null(m);
    ssize_t n = rank_groups_read(m, found, 4, e);
    wire_message_free(m);
    strbuf_fini(&message);
    strbuf_fini(&columns);
    strbuf_fini(&rows);
    return n;
}

static void test_columns(void **state) {
    struct err e = {0};
    (void)state;
    begin((const char *const[]){"later", "op", "last_completed", "pg", "last_enqueued", "ranks", "bytes",
                                "p2p", NULL});
    add((struct wire_value[]){INT(1),
                              TEXT("gloo:all_reduce"),
                              INT(66),
                              TEXT("0"),
                              INT(67),
                              TEXT("0-7"),
                              INT(4),
                              {.kind = WIRE_VALUE_BOOL, .i = 1}});
    assert_int_equal(end("", &e), 1);
    assert_string_equal(found[0].pg, "0");
    assert_string_equal(found[0].op, "gloo:all_reduce");
    assert_true(found[0].enqueued == 67 && found[0].completed == 66 && found[0].bytes == 4 && found[0].p2p);
    assert_true(found[0].size == -1 && isnan(found[0].since_s) && found[0].desc[0] == '\0');
    assert_int_equal(e.code, ERR_OK);
}

static void test_hostile(void **state) {
    static char lengthy[4096];
    struct err e = {0};
    (void)state;
    memset(lengthy, 'x', sizeof lengthy - 1);
    lengthy[0] = '\x1b';
    begin((const char *const[]){"pg", "size", "last_enqueued", "op", "my_rank", NULL});
    add((struct wire_value[]){TEXT(lengthy), INT(INT64_MAX), TEXT("many"), INT(3), INT(-7)});
    add((struct wire_value[]){
        {.kind = WIRE_VALUE_NULL}, {.kind = WIRE_VALUE_DOUBLE, .f = NAN}, INT(-5), TEXT(""), INT(2)});
    for (int i = 0; i < 6; i++) /* more than there is room for */
        add((struct wire_value[]){TEXT("0"), INT(8), INT(1), TEXT("a"), INT(0)});
    assert_int_equal(end("a note", &e), 4);
    assert_true(strlen(found[0].pg) < sizeof found[0].pg && !strchr(found[0].pg, '\x1b'));
    assert_true(found[0].size == -1 && found[0].enqueued == -1 && found[0].op[0] == '\0' &&
                found[0].my_rank == -1);
    assert_true(found[1].pg[0] == '\0' && found[1].enqueued == -5 && found[1].my_rank == 2);
    assert_string_equal(e.text, "a note");
    /* nothing but a note */
    begin((const char *const[]){"pg", NULL});
    assert_int_equal(end("could not acquire the GIL", &e), 0);
    assert_string_equal(e.text, "could not acquire the GIL");
}

/* Members are never cut: half a list is another group. */
static void test_members(void **state) {
    static char data[1024], other[1024];
    struct err e = {0};
    size_t n = 0, m = 0;
    (void)state;
    for (int rank = 4; rank < 512; rank += 8)
        n += (size_t)snprintf(data + n, sizeof data - n, "%s%d", n ? "," : "", rank);
    for (int rank = 1; rank < 300; rank += 2 + rank * rank / 7 % 3)
        m += (size_t)snprintf(other + m, sizeof other - m, "%s%d", m ? "," : "", rank);
    begin((const char *const[]){"pg", "ranks", NULL});
    add((struct wire_value[]){TEXT("1"), TEXT(data)});
    add((struct wire_value[]){TEXT("2"), TEXT(other)});
    other[m - 1] ^= 1;
    add((struct wire_value[]){TEXT("3"), TEXT(other)});
    other[m - 1] ^= 1;
    add((struct wire_value[]){TEXT("4"), TEXT(other)});
    assert_int_equal(end("", &e), 4);
    assert_string_equal(found[0].ranks, "4-508/8");
    /* too many to be told, but who has the same is known */
    assert_true(found[1].ranks[0] == '?' && strcmp(found[1].ranks, found[2].ranks) != 0);
    assert_string_equal(found[1].ranks, found[3].ranks);
}

static void test_what(void **state) {
    struct rank_group a = {.op = "gloo:all_reduce", .dtype = "Float", .bytes = 4}, b = a;
    (void)state;
    (void)snprintf(b.op, sizeof b.op, "all_reduce");
    assert_true(rank_group_what(&a) && rank_group_what(&a) == rank_group_what(&b));
    b.bytes = 8;
    assert_true(rank_group_what(&a) != rank_group_what(&b));
    /* ranks may have different sizes of these */
    (void)snprintf(a.op, sizeof a.op, "gather");
    (void)snprintf(b.op, sizeof b.op, "gather");
    assert_true(rank_group_what(&a) == rank_group_what(&b));
    a.op[0] = '\0';
    assert_true(rank_group_what(&a) == 0);
}

static void test_find(void **state) {
    const struct rank_group all[] = {
        {.pg = "0", .ranks = "0-3"}, {.pg = "1", .ranks = "0-1"}, {.pg = "1", .ranks = "2-3"}};
    struct rank_group like = {.pg = "1", .ranks = "2-3", .enqueued = 7};
    (void)state;
    assert_ptr_equal(rank_group_find(all, 3, &like), &all[2]);
    assert_null(rank_group_find(all, 2, &like));
    (void)snprintf(like.backend, sizeof like.backend, "gloo"); /* for tensors of the CPU */
    assert_null(rank_group_find(all, 3, &like));
    like.backend[0] = '\0';
    (void)snprintf(like.pg, sizeof like.pg, "0");
    assert_null(rank_group_find(all, 3, &like));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns), cmocka_unit_test(test_hostile), cmocka_unit_test(test_members),
        cmocka_unit_test(test_what),    cmocka_unit_test(test_find),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
