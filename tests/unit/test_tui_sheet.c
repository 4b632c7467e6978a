/* SPDX-License-Identifier: Apache-2.0 */
/* The sheet of a result, and the pager for one value. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "tui/view/pager.h"
#include "tui/view/sheet.h"
#include "unit/tui_sql.h"

static void assert_row(const struct grid *g, int row, const char *want) {
    char text[512];
    grid_row_text(g, grid_rect(g), row, text, sizeof text, NULL);
    assert_string_equal(text, want);
}

static void assert_has(const struct grid *g, int row, const char *want) {
    char text[512];
    grid_row_text(g, grid_rect(g), row, text, sizeof text, NULL);
    if (!strstr(text, want))
        fail_msg("'%s' is not in '%s'", want, text);
}

static void draw(struct sheet *s, struct grid *g) {
    grid_clear(g);
    sheet_draw(s, g, grid_rect(g), true);
}

static void press(struct sheet *s, enum action action, int times) {
    while (times-- > 0)
        assert_true(sheet_act(s, action));
}

static void test_table(void **state) {
    struct sheet s;
    struct grid g;
    (void)state;
    assert_int_equal(sheet_init(&s, sql_fixture_rows(12)), 0);
    assert_int_equal(grid_init(&g, 6, 70), 0);
    draw(&s, &g);
    assert_row(&g, 0, "timestamp                tid thread         share stack              \xe2\x80\xba");
    assert_row(&g, 1, "2023-11-14 22:13:20.000 4242 MainThread         0 <module> (train.py:\xe2\x80\xa6");
    assert_has(&g, 2, "\xe8\xa8\x93\xe7\xb7\xb4-0");
    assert_has(&g, 3, "evil\xef\xbf\xbd[2Jname"); /* nothing of it reaches the terminal as it is */
    assert_has(&g, 4, "NULL");
    assert_true(sheet_is_too_wide(&s, 70));
    press(&s, ACTION_DOWN, 11);
    press(&s, ACTION_DOWN, 1); /* the last one */
    assert_int_equal(s.list.selected, 11);
    draw(&s, &g);
    assert_has(&g, 5, "2023-11-14 22:13:17.250");
    assert_has(&g, 0, "timestamp"); /* the head stays */
    press(&s, ACTION_FIRST, 1);
    assert_int_equal(s.list.selected, 0);
    press(&s, ACTION_SHEET_LAST_COLUMN, 1);
    draw(&s, &g);
    assert_has(&g, 0, "stack");
    assert_true(s.left > 0);
    assert_has(&g, 0, "\xe2\x80\xb9"); /* columns stand to the left */
    press(&s, ACTION_SHEET_FIRST_COLUMN, 1);
    draw(&s, &g);
    assert_int_equal(s.left, 0);
    sheet_fini(&s);
    grid_fini(&g);
}

static void test_columns(void **state) {
    struct sheet s;
    struct grid g;
    (void)state;
    assert_int_equal(sheet_init(&s, sql_fixture_rows(12)), 0);
    assert_int_equal(grid_init(&g, 6, 60), 0);
    press(&s, ACTION_SHEET_HIDE, 1);
    assert_int_equal(sheet_hidden(&s), 1);
    draw(&s, &g);
    assert_has(&g, 0, "tid");
    assert_row(&g, 1, "4242 MainThread         0 <module> (train.py:282);main (tra\xe2\x80\xa6");
    press(&s, ACTION_SHEET_WIDEN, 1);
    draw(&s, &g);
    assert_has(&g, 1, "    4242 MainThread");
    press(&s, ACTION_SHEET_NARROW, 5);
    draw(&s, &g);
    assert_has(&g, 1, "## MainThread"); /* a number that does not fit is not half a number */
    press(&s, ACTION_SHEET_FIT, 1);
    draw(&s, &g);
    assert_has(&g, 1, "4242 MainThread");
    press(&s, ACTION_SHEET_HIDE, 10);
    assert_int_equal(sheet_hidden(&s), 4); /* one stays */
    press(&s, ACTION_SHOW_ALL, 1);
    assert_int_equal(sheet_hidden(&s), 0);
    s.column = 3;
    press(&s, ACTION_SHEET_BAR, 1);
    s.left = 0;
    assert_int_equal(grid_resize(&g, 6, 90), 0);
    draw(&s, &g);
    assert_has(&g, 2, "\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88");
    g.ascii = true;
    draw(&s, &g);
    assert_has(&g, 2, "###");
    s.column = 2;
    press(&s, ACTION_SHEET_BAR, 1); /* texts have none */
    assert_false(s.columns[2].bar);
    sheet_fini(&s);
    grid_fini(&g);
}

static void test_sorting(void **state) {
    struct sheet s;
    (void)state;
    assert_int_equal(sheet_init(&s, sql_fixture_rows(12)), 0);
    s.column = 3;
    press(&s, ACTION_SHEET_SORT, 1); /* numbers: the largest first */
    assert_true(s.sort_descends);
    for (int i = 1; i < 10; i++)
        assert_true(result_number(s.rows, sheet_row(&s, i - 1), 3) >=
                    result_number(s.rows, sheet_row(&s, i), 3));
    assert_int_equal(result_kind(s.rows, sheet_row(&s, 11), 3), SQL_NULL);
    list_select(&s.list, 4);
    size_t row = sheet_row(&s, 4);
    press(&s, ACTION_SHEET_SORT, 1);
    assert_false(s.sort_descends);
    assert_int_equal(result_kind(s.rows, sheet_row(&s, 11), 3), SQL_NULL);
    assert_int_equal(sheet_row(&s, s.list.selected), row); /* one stays with the row */
    press(&s, ACTION_SORT_INVERT, 1);
    assert_true(s.sort_descends);
    s.column = 2;
    press(&s, ACTION_SHEET_ASCEND, 1);
    assert_int_equal(s.sort_column, 2);
    sheet_fini(&s);
}

static void test_vertical(void **state) {
    struct sheet s;
    struct grid g;
    (void)state;
    assert_int_equal(sheet_init(&s, sql_fixture_rows(4)), 0);
    assert_int_equal(grid_init(&g, 7, 60), 0);
    press(&s, ACTION_SHEET_VERTICAL, 1);
    draw(&s, &g);
    assert_has(&g, 0, "row 1");
    assert_row(&g, 1, "timestamp \xe2\x94\x82 2023-11-14 22:13:20.000");
    assert_has(&g, 5, "stack");
    assert_has(&g, 6, "row 2");
    press(&s, ACTION_DOWN, 5);
    assert_true(s.list.selected == 1 && s.column == 0);
    draw(&s, &g);
    assert_has(&g, 6, "timestamp");
    press(&s, ACTION_LAST, 1);
    draw(&s, &g);
    press(&s, ACTION_UP, 1);
    assert_true(s.list.selected == 2 && s.column == 4);
    press(&s, ACTION_SHEET_HIDE, 1);
    draw(&s, &g);
    press(&s, ACTION_SHEET_VERTICAL, 1);
    draw(&s, &g);
    assert_has(&g, 0, "tid");
    sheet_fini(&s);
    grid_fini(&g);
}

static void test_search(void **state) {
    struct sheet s;
    (void)state;
    assert_int_equal(sheet_init(&s, sql_fixture_rows(12)), 0);
    match_set(&s.search, "evil", false);
    assert_true(sheet_find(&s, 0));
    assert_true(s.list.selected == 2 && s.column == 2);
    assert_true(sheet_find(&s, 1));
    assert_int_equal(s.list.selected, 6);
    assert_true(sheet_find(&s, -1));
    assert_int_equal(s.list.selected, 2);
    assert_true(sheet_find(&s, -1)); /* round the end */
    assert_int_equal(s.list.selected, 10);
    match_set(&s.search, "nowhere", false);
    assert_false(sheet_find(&s, 1));
    assert_int_equal(s.list.selected, 10);
    sheet_fini(&s);
}

static void test_nothing(void **state) {
    struct sheet s;
    struct grid g;
    (void)state;
    assert_int_equal(grid_init(&g, 3, 40), 0);
    assert_int_equal(sheet_init(&s, sql_fixture_rows(0)), 0);
    for (enum action a = ACTION_UP; a < ACTION_COUNT; a++)
        (void)sheet_act(&s, a);
    draw(&s, &g);
    assert_false(sheet_has_cell(&s));
    match_set(&s.search, "x", false);
    assert_false(sheet_find(&s, 1));
    sheet_click(&s, 0, 0);
    sheet_click(&s, 2, 5);
    sheet_fini(&s);
    grid_fini(&g);
}

/* Any keys: what is selected exists, and the selected cell is on the screen. */
static void test_random(void **state) {
    struct sheet s;
    struct grid g;
    (void)state;
    srand(3);
    assert_int_equal(sheet_init(&s, sql_fixture_rows(50)), 0);
    assert_int_equal(grid_init(&g, 9, 50), 0);
    for (int i = 0; i < 5000; i++) {
        (void)sheet_act(&s, (enum action)(1 + rand() % (ACTION_COUNT - 1)));
        if (rand() % 10 == 0)
            sheet_click(&s, rand() % 9, rand() % 50);
        if (rand() % 10 == 0)
            sheet_wheel(&s, rand() % 7 - 3);
        draw(&s, &g);
        assert_in_range(s.list.selected, 0, 49);
        assert_in_range(s.column, 0, 4);
        assert_false(s.columns[s.column].hidden);
        bool seen = false;
        for (int k = 0; k < g.rows * g.cols; k++)
            seen |= g.cells[k].role == ROLE_SELECTION;
        assert_true(seen);
    }
    sheet_fini(&s);
    grid_fini(&g);
}

/* A million rows: what a key does takes no look at all of them, but sorting and the figures. */
static void test_large(void **state) {
    struct sheet s;
    struct grid g;
    (void)state;
    assert_int_equal(sheet_init(&s, sql_fixture_rows(1000000)), 0);
    assert_int_equal(grid_init(&g, 20, 80), 0);
    draw(&s, &g);
    press(&s, ACTION_LAST, 1);
    draw(&s, &g);
    assert_int_equal(s.list.selected, 999999);
    s.column = 1;
    press(&s, ACTION_SHEET_SORT, 1);
    press(&s, ACTION_FIRST, 1);
    for (int i = 0; i < 200; i++) {
        press(&s, i % 3 ? ACTION_PAGE_DOWN : ACTION_DOWN, 1);
        draw(&s, &g);
    }
    sheet_fini(&s);
    grid_fini(&g);
}

static void test_pager(void **state) {
    static const char text[] =
        "one two three four\nfive\033[2J\0six \xe8\xa8\x93\xe7\xb7\xb4\xe8\xa8\x93\xe7\xb7\xb4 seven\n\nlast";
    struct pager p;
    struct grid g;
    (void)state;
    assert_int_equal(grid_init(&g, 3, 12), 0);
    assert_int_equal(pager_init(&p, text, sizeof text - 1), 0);
    pager_draw(&p, &g, grid_rect(&g));
    assert_row(&g, 0, " one two th");
    assert_row(&g, 1, " ree four");
    list_scroll(&p.list, ACTION_LAST);
    grid_clear(&g);
    pager_draw(&p, &g, grid_rect(&g));
    assert_row(&g, 2, " last");
    match_set(&p.search, "five", false);
    assert_false(pager_find(&p, 12, 1));
    assert_true(pager_find(&p, 12, -1));
    assert_int_equal(p.list.top, 2);
    pager_fini(&p);
    char *big = calloc(1, PAGER_MAX + 10);
    memset(big, 'x', PAGER_MAX + 10);
    assert_int_equal(pager_init(&p, big, PAGER_MAX + 10), 0);
    list_scroll(&p.list, ACTION_LAST);
    pager_draw(&p, &g, grid_rect(&g));
    list_scroll(&p.list, ACTION_LAST);
    grid_clear(&g);
    pager_draw(&p, &g, grid_rect(&g));
    assert_has(&g, 2, "10 bytes");
    pager_fini(&p);
    free(big);
    grid_fini(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),    cmocka_unit_test(test_columns), cmocka_unit_test(test_sorting),
        cmocka_unit_test(test_vertical), cmocka_unit_test(test_search),  cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_random),   cmocka_unit_test(test_large),   cmocka_unit_test(test_pager),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
