/* SPDX-License-Identifier: Apache-2.0 */
/* The editor of queries: keys, undo, killing, wide characters, colours and marks. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tui/keys/input.h"
#include "tui/view/editor.h"

static void type(struct editor *e, const char *text) {
    for (size_t len = strlen(text); len > 0;) {
        uint32_t cp;
        size_t n = text_utf8_next(text, len, &cp);
        if (cp == '\n')
            assert_true(editor_act(e, ACTION_EDIT_NEWLINE));
        else
            assert_true(editor_key(e, cp));
        text += n;
        len -= n;
    }
}

static void act(struct editor *e, enum action action, int times) {
    while (times-- > 0)
        (void)editor_act(e, action);
}

/* The text, with | where the cursor is. */
static void assert_text(const struct editor *e, const char *want) {
    char got[1024];
    (void)snprintf(got, sizeof got, "%.*s|%s", (int)e->cursor, e->text, e->text + e->cursor);
    assert_string_equal(got, want);
    assert_int_equal(strlen(e->text), e->len);
}

static void test_motion(void **state) {
    struct editor e;
    (void)state;
    assert_int_equal(editor_init(&e), 0);
    type(&e, "SELECT tid\nFROM t");
    assert_text(&e, "SELECT tid\nFROM t|");
    act(&e, ACTION_EDIT_WORD_LEFT, 3);
    assert_text(&e, "SELECT |tid\nFROM t");
    act(&e, ACTION_EDIT_LEFT, 2);
    assert_text(&e, "SELEC|T tid\nFROM t");
    act(&e, ACTION_EDIT_WORD_RIGHT, 2);
    assert_text(&e, "SELECT tid|\nFROM t");
    assert_true(editor_act(&e, ACTION_EDIT_DOWN)); /* to the end of a shorter line, and back to the column */
    assert_text(&e, "SELECT tid\nFROM t|");
    assert_true(editor_act(&e, ACTION_EDIT_UP));
    assert_text(&e, "SELECT tid|\nFROM t");
    assert_false(editor_act(&e, ACTION_EDIT_UP));
    act(&e, ACTION_EDIT_LINE_BEGIN, 1);
    act(&e, ACTION_EDIT_LEFT, 1);
    assert_text(&e, "|SELECT tid\nFROM t");
    act(&e, ACTION_EDIT_TEXT_END, 1);
    act(&e, ACTION_EDIT_RIGHT, 1);
    assert_text(&e, "SELECT tid\nFROM t|");
    assert_false(editor_act(&e, ACTION_EDIT_DOWN));
    assert_false(editor_act(&e, ACTION_UP)); /* not the editor's */
    assert_int_equal(editor_lines(&e), 2);
    editor_fini(&e);
}

/* One step is what a person sees as one: wide characters, and marks with what they are on. */
static void test_wide(void **state) {
    struct editor e;
    (void)state;
    assert_int_equal(editor_init(&e), 0);
    type(&e, "x\xe8\xa8\x93"
             "e\xcc\x81y");
    act(&e, ACTION_EDIT_LEFT, 2);
    assert_text(&e, "x\xe8\xa8\x93|"
                    "e\xcc\x81y");
    act(&e, ACTION_EDIT_DELETE, 1);
    assert_text(&e, "x\xe8\xa8\x93|y");
    act(&e, ACTION_EDIT_ERASE, 1);
    assert_text(&e, "x|y");
    editor_fini(&e);
}

static void test_kill_and_yank(void **state) {
    struct editor e;
    (void)state;
    assert_int_equal(editor_init(&e), 0);
    type(&e, "SELECT a.b FROM t");
    act(&e, ACTION_EDIT_KILL_WORD_LEFT, 1);
    act(&e, ACTION_EDIT_KILL_BLANK, 1);
    assert_text(&e, "SELECT a.b |");
    act(&e, ACTION_EDIT_YANK, 1); /* both, as they stood */
    assert_text(&e, "SELECT a.b FROM t|");
    act(&e, ACTION_EDIT_LINE_BEGIN, 1);
    act(&e, ACTION_EDIT_KILL_WORD_RIGHT, 1);
    assert_text(&e, "| a.b FROM t");
    act(&e, ACTION_EDIT_KILL_LINE, 2);
    assert_text(&e, "|");
    act(&e, ACTION_EDIT_YANK, 1);
    assert_text(&e, "SELECT a.b FROM t|");
    act(&e, ACTION_EDIT_KILL_TO_BEGIN, 1);
    assert_text(&e, "|");
    act(&e, ACTION_EDIT_KILL_LINE, 1);
    act(&e, ACTION_EDIT_KILL_BLANK, 1);
    act(&e, ACTION_EDIT_ERASE, 1);
    act(&e, ACTION_EDIT_YANK, 1);
    assert_text(&e, "SELECT a.b FROM t|");
    editor_fini(&e);
}

static void test_undo(void **state) {
    struct editor e;
    (void)state;
    assert_int_equal(editor_init(&e), 0);
    act(&e, ACTION_EDIT_UNDO, 1);
    act(&e, ACTION_EDIT_REDO, 1);
    assert_text(&e, "|");
    type(&e, "one two");
    act(&e, ACTION_EDIT_KILL_BLANK, 1);
    assert_text(&e, "one |");
    act(&e, ACTION_EDIT_UNDO, 1);
    assert_text(&e, "one two|");
    act(&e, ACTION_EDIT_UNDO, 1);
    assert_text(&e, "one |");
    act(&e, ACTION_EDIT_UNDO, 5);
    assert_text(&e, "|");
    act(&e, ACTION_EDIT_REDO, 2);
    assert_text(&e, "one two|");
    act(&e, ACTION_EDIT_REDO, 5);
    assert_text(&e, "one |");
    act(&e, ACTION_EDIT_UNDO, 1);
    type(&e, "!"); /* what was undone is gone */
    act(&e, ACTION_EDIT_REDO, 1);
    assert_text(&e, "one two!|");
    editor_set(&e, "other");
    act(&e, ACTION_EDIT_UNDO, 1);
    assert_text(&e, "one two!|");
    editor_fini(&e);
}

/* More steps than are kept. */
static void test_undo_is_bounded(void **state) {
    struct editor e;
    (void)state;
    assert_int_equal(editor_init(&e), 0);
    for (int i = 0; i < 500; i++)
        editor_replace(&e, e.len, e.len, "x");
    act(&e, ACTION_EDIT_UNDO, 500);
    assert_true(e.len > 400 && e.len < 500);
    act(&e, ACTION_EDIT_REDO, 500);
    assert_int_equal(e.len, 500);
    editor_fini(&e);
}

static void test_paste(void **state) {
    struct editor e;
    (void)state;
    assert_int_equal(editor_init(&e), 0);
    assert_true(editor_paste(&e, "SELECT 1;\r\n\tq\033[2J\177\xff"));
    assert_text(&e, "SELECT 1;\n\tq [2J \xef\xbf\xbd|");
    char *big = malloc(EDITOR_MAX + 2);
    memset(big, 'x', EDITOR_MAX + 1);
    big[EDITOR_MAX + 1] = '\0';
    assert_false(editor_paste(&e, big)); /* too much is left out */
    assert_text(&e, "SELECT 1;\n\tq [2J \xef\xbf\xbd|");
    free(big);
    assert_false(editor_key(&e, INPUT_UP));
    assert_false(editor_key(&e, INPUT_CTRL + 'x'));
    editor_fini(&e);
}

static enum theme_role role_at(const struct grid *g, int row, int col) {
    return (enum theme_role)g->cells[row * g->cols + col].role;
}

static void assert_row(const struct grid *g, int row, const char *want) {
    char text[512];
    grid_row_text(g, grid_rect(g), row, text, sizeof text, NULL);
    assert_string_equal(text, want);
}

static void test_colours(void **state) {
    struct editor e;
    struct grid g;
    int row, col;
    (void)state;
    assert_int_equal(editor_init(&e), 0);
    assert_int_equal(grid_init(&g, 4, 30), 0);
    editor_paste(&e, "select max(x), 'it''s', 12\n-- why\nFROM t");
    editor_draw(&e, &g, grid_rect(&g), &row, &col);
    assert_row(&g, 0, "select max(x), 'it''s', 12");
    assert_row(&g, 1, "-- why");
    assert_int_equal(role_at(&g, 0, 0), ROLE_SQL_KEYWORD);
    assert_int_equal(role_at(&g, 0, 7), ROLE_SQL_FUNCTION);
    assert_int_equal(role_at(&g, 0, 11), ROLE_TEXT);
    assert_int_equal(role_at(&g, 0, 18), ROLE_SQL_STRING);
    assert_int_equal(role_at(&g, 0, 25), ROLE_SQL_NUMBER);
    assert_int_equal(role_at(&g, 1, 3), ROLE_SQL_COMMENT);
    assert_int_equal(role_at(&g, 2, 0), ROLE_SQL_KEYWORD);
    assert_true(row == 2 && col == 6);
    editor_mark_error(&e, 15);
    editor_draw(&e, &g, grid_rect(&g), &row, &col);
    assert_int_equal(role_at(&g, 0, 15), ROLE_SQL_ERROR);
    assert_int_equal(role_at(&g, 0, 21), ROLE_SQL_ERROR);
    assert_int_equal(role_at(&g, 0, 22), ROLE_TEXT);
    editor_mark_error(&e, 100000); /* behind the end */
    editor_draw(&e, &g, grid_rect(&g), &row, &col);
    assert_int_equal(role_at(&g, 2, 6), ROLE_SQL_ERROR);
    editor_fini(&e);
    grid_fini(&g);
}

static void test_scrolling(void **state) {
    struct editor e;
    struct grid g;
    int row, col;
    (void)state;
    assert_int_equal(editor_init(&e), 0);
    assert_int_equal(grid_init(&g, 2, 10), 0);
    type(&e, "a\nb\nc 0123456789 \xe8\xa8\x93\xe7\xb7\xb4");
    editor_draw(&e, &g, grid_rect(&g), &row, &col);
    assert_true(row == 1 && col == 9);
    assert_row(&g, 1, "6789 \xe8\xa8\x93\xe7\xb7\xb4");
    act(&e, ACTION_EDIT_TEXT_BEGIN, 1);
    editor_draw(&e, &g, grid_rect(&g), &row, &col);
    assert_row(&g, 0, "a");
    assert_true(row == 0 && col == 0);
    editor_click(&e, &g, 1, 5);
    assert_text(&e, "a\nb|\nc 0123456789 \xe8\xa8\x93\xe7\xb7\xb4");
    editor_fini(&e);
    grid_fini(&g);
}

/* Any keys on any text: the text stays whole, the cursor within it, what is drawn within the grid. */
static void test_random(void **state) {
    static const char *const pieces[] = {"SELECT ",      "'",         "\"", "--", "\n", "x",
                                         "\xe8\xa8\x93", "e\xcc\x81", "/*", ";"};
    struct editor e;
    struct grid g;
    (void)state;
    srand(11);
    assert_int_equal(editor_init(&e), 0);
    assert_int_equal(grid_init(&g, 5, 20), 0);
    for (int i = 0; i < 20000; i++) {
        int row, col;
        if (rand() % 2)
            type(&e, pieces[(size_t)rand() % (sizeof pieces / sizeof pieces[0])]);
        else
            (void)editor_act(
                &e, (enum action)(ACTION_EDIT_LEFT + rand() % (ACTION_EDIT_REDO - ACTION_EDIT_LEFT + 1)));
        if (rand() % 50 == 0)
            editor_mark_error(&e, rand() % 40);
        assert_true(e.cursor <= e.len && e.len == strlen(e.text));
        assert_true(e.cursor == e.len || ((unsigned char)e.text[e.cursor] & 0xc0) != 0x80);
        g.ascii = rand() % 4 == 0;
        editor_draw(&e, &g, grid_rect(&g), &row, &col);
        assert_true(row >= 0 && row < 5 && col >= 0 && col < 20);
        if (e.len > 300)
            editor_set(&e, "");
    }
    editor_fini(&e);
    grid_fini(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_motion),          cmocka_unit_test(test_wide),
        cmocka_unit_test(test_kill_and_yank),   cmocka_unit_test(test_undo),
        cmocka_unit_test(test_undo_is_bounded), cmocka_unit_test(test_paste),
        cmocka_unit_test(test_colours),         cmocka_unit_test(test_scrolling),
        cmocka_unit_test(test_random),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
