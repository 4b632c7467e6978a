/* SPDX-License-Identifier: Apache-2.0 */
/* Grid, matcher, lists, layout, prompt and meter: what must hold for every input. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tui/keys/input.h"
#include "tui/view/grid.h"
#include "tui/view/layout.h"
#include "tui/view/list.h"
#include "tui/view/match.h"
#include "tui/model/meter.h"
#include "tui/view/meter_draw.h"
#include "tui/view/prompt.h"

/* Every row is full: widths add up, a wide character is followed by its right half, nothing dangerous is in a cell. */
static void assert_sound(const struct grid *g) {
    for (int y = 0; y < g->rows; y++)
        for (int x = 0; x < g->cols; x++) {
            const struct grid_cell *c = &g->cells[y * g->cols + x];
            assert_in_range(c->width, 0, 2);
            assert_true(c->width == 0 ? c->cp == 0
                                      : c->cp >= ' ' && c->cp != 0x7f && (c->cp < 0x80 || c->cp >= 0xa0));
            if (c->width == 2)
                assert_true(x + 1 < g->cols && c[1].width == 0);
            if (c->width == 0)
                assert_true(x > 0 && c[-1].width == 2);
        }
}

static void assert_row(const struct grid *g, int row, const char *want) {
    char text[512];
    grid_row_text(g, grid_rect(g), row, text, sizeof text, NULL);
    assert_string_equal(text, want);
}

static void test_grid_text(void **state) {
    struct grid g;
    (void)state;
    assert_int_equal(grid_init(&g, 3, 10), 0);
    struct rect all = grid_rect(&g);
    assert_int_equal(grid_text(&g, all, 0, 2, ROLE_TEXT, "hello"), 5);
    assert_row(&g, 0, "  hello");
    assert_int_equal(grid_text(&g, all, 0, 8, ROLE_TEXT, "\xe8\xa8\x93\xe7\xb7\xb4"),
                     2); /* one wide fits, the next does not */
    assert_int_equal(grid_text(&g, all, 1, 9, ROLE_TEXT, "\xe8\xa8\x93"), 0);
    assert_int_equal(grid_text(&g, all, 3, 0, ROLE_TEXT, "below"), 0);
    assert_int_equal(grid_text(&g, all, 0, 10, ROLE_TEXT, "right"), 0);
    assert_int_equal(grid_text(&g, all, -1, 0, ROLE_TEXT, "above"), 0);
    grid_text_fit(&g, all, 1, 0, 6, ROLE_TEXT, GRID_LEFT, "abcdefghij");
    assert_row(&g, 1, "abcde\xe2\x80\xa6");
    grid_text_fit(&g, all, 1, 0, 6, ROLE_TEXT, GRID_TAIL, "/a/b/c/name.py");
    assert_row(&g, 1,
               "\xe2\x80\xa6"
               "me.py");
    grid_text_fit(&g, all, 1, 0, 6, ROLE_TEXT, GRID_RIGHT, "42");
    assert_row(&g, 1, "    42");
    grid_text_fit(&g, all, 1, 0, 3, ROLE_TEXT, GRID_RIGHT, "12345");
    assert_row(&g, 1, "### 42");
    grid_text_skip(&g, all, 2, 0, 5, 3, ROLE_TEXT, "abcdefgh");
    assert_row(&g, 2, "defgh");
    grid_text_skip(&g, all, 2, 0, 5, 1, ROLE_TEXT, "\xe8\xa8\x93xy"); /* half of the wide one is skipped */
    assert_row(&g, 2, " xy");
    assert_sound(&g);
    grid_fini(&g);
}

/* A sign stands at each edge beyond which a text goes on, and nowhere else. */
static void test_grid_scroll(void **state) {
    struct grid g;
    (void)state;
    assert_int_equal(grid_init(&g, 1, 8), 0);
    struct rect all = grid_rect(&g);
    grid_text_scroll(&g, all, 0, 1, 6, 0, ROLE_TEXT, GRID_LEFT, "abcdef");
    assert_row(&g, 0, " abcdef");
    grid_text_scroll(&g, all, 0, 1, 6, 0, ROLE_TEXT, GRID_LEFT, "abcdefghij");
    assert_row(&g, 0, " abcde\xe2\x80\xba");
    grid_text_scroll(&g, all, 0, 1, 6, 2, ROLE_TEXT, GRID_LEFT, "abcdefghij");
    assert_row(&g, 0,
               " \xe2\x80\xb9"
               "defg\xe2\x80\xba");
    grid_text_scroll(&g, all, 0, 1, 6, 4, ROLE_TEXT, GRID_TAIL, "abcdefghij");
    assert_row(&g, 0,
               " \xe2\x80\xb9"
               "fghij");
    grid_text_scroll(&g, all, 0, 1, 6, 40, ROLE_TEXT, GRID_LEFT,
                     "abcdefghij"); /* all of it is scrolled away */
    assert_row(&g, 0, " \xe2\x80\xb9");
    grid_text_scroll(&g, all, 0, 1, 6, 4, ROLE_TEXT, GRID_LEFT, "");
    assert_row(&g, 0, "");
    grid_text_scroll(&g, all, 0, 1, 6, 1, ROLE_TEXT, GRID_LEFT,
                     "a\xe8\xa8\x93\xe7\xb7\xb4\xe8\xa8\x93\xe7\xb7\xb4"); /* over halves of wide ones */
    assert_row(&g, 0, " \xe2\x80\xb9 \xe7\xb7\xb4 \xe2\x80\xba");
    assert_sound(&g);
    grid_text_scroll(&g, all, 0, 1, 6, -1, ROLE_TEXT, GRID_LEFT, "abcdefghij"); /* does not scroll */
    assert_row(&g, 0, " abcde\xe2\x80\xa6");
    grid_text_scroll(&g, all, 0, 1, 6, 0, ROLE_TEXT, GRID_TAIL, "abcdefghij");
    assert_row(&g, 0,
               " \xe2\x80\xa6"
               "fghij");
    g.ascii = true;
    grid_text_scroll(&g, all, 0, 1, 6, 2, ROLE_TEXT, GRID_LEFT, "abcdefghij");
    assert_row(&g, 0, " <defg>");
    grid_fini(&g);
}

static void test_grid_hostile(void **state) {
    static const char *const bad[] = {"\033[2J\033]0;x\007",
                                      "a\r\nb\tc",
                                      "\xff\xfe\xc3(",
                                      "\xe2\x80\xae"
                                      "abc",
                                      "e\xcc\x81\xcc\x82\xcc\x83\xcc\x84",
                                      "\xc2\x9b"
                                      "31m",
                                      "\x7f\x01\x02"};
    struct grid g;
    (void)state;
    assert_int_equal(grid_init(&g, 2, 20), 0);
    for (int ascii = 0; ascii < 2; ascii++)
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            g.ascii = ascii;
            grid_text(&g, grid_rect(&g), 0, 0, ROLE_TEXT, bad[i]);
            grid_text_fit(&g, grid_rect(&g), 1, 3, 4, ROLE_TEXT, GRID_TAIL, bad[i]);
            assert_sound(&g);
            for (int k = 0; ascii && k < g.rows * g.cols; k++)
                assert_in_range(g.cells[k].cp, ' ', 0x7e);
        }
    grid_fini(&g);
}

/* Random text at random places, in random ways: the grid stays sound. */
static void test_grid_random(void **state) {
    static const char *const pieces[] = {
        "abc", "\xe8\xa8\x93\xe7\xb7\xb4", "\xf0\x9f\x94\xa5", "e\xcc\x81", "", "\033[1m", "xyz x"};
    struct grid g;
    (void)state;
    srand(7);
    assert_int_equal(grid_init(&g, 4, 17), 0);
    for (int i = 0; i < 20000; i++) {
        struct rect r = {rand() % 6 - 1, rand() % 20 - 2, rand() % 5, rand() % 20};
        const char *text = pieces[(size_t)rand() % (sizeof pieces / sizeof pieces[0])];
        int row = rand() % 5 - 1, col = rand() % 18 - 1, width = rand() % 12;
        g.ascii = rand() % 8 == 0;
        switch (rand() % 4) {
        case 0:
            grid_text(&g, r, row, col, ROLE_TEXT, text);
            break;
        case 1:
            grid_text_fit(&g, r, row, col, width, ROLE_FUNC, (enum grid_align)(rand() % 3), text);
            break;
        case 2:
            grid_text_scroll(&g, r, row, col, width, rand() % 6, ROLE_FILE, GRID_LEFT, text);
            break;
        default:
            grid_fill(&g, r, ROLE_BANNER);
        }
        assert_sound(&g);
    }
    grid_fini(&g);
}

static void test_match(void **state) {
    struct match m;
    size_t at, len;
    (void)state;
    match_set(&m, "forward", false);
    assert_true(match_text(&m, "Linear.Forward"));
    assert_false(match_text(&m, "backward"));
    assert_false(match_text(&m, NULL));
    match_set(&m, "Forward", false);
    assert_false(match_text(&m, "forward"));
    match_set(&m, "x|ward|", false);
    assert_true(match_find(&m, "forward", &at, &len));
    assert_int_equal(at, 3);
    assert_int_equal(len, 4);
    match_set(&m, "!idle", true);
    assert_true(m.negated && m.active && match_text(&m, "idle"));
    match_set(&m, "!idle", false);
    assert_true(!m.negated && match_text(&m, "so !idle"));
    match_set(&m, "", true);
    assert_false(m.active);
    match_set(&m, "!", true);
    assert_false(m.active);
    match_set(&m, "|||", true);
    assert_false(m.active);
    match_set(&m, "\xc3\xa9t\xc3\xa9", false); /* été finds ÉTÉ */
    assert_true(match_text(&m, "\xc3\x89T\xc3\x89"));
}

static void test_highlight(void **state) {
    struct grid g;
    struct match m;
    (void)state;
    assert_int_equal(grid_init(&g, 1, 20), 0);
    grid_text(&g, grid_rect(&g), 0, 0, ROLE_TEXT, "\xe8\xa8\x93 ab xab");
    match_set(&m, "ab", false);
    match_highlight(&m, &g, grid_rect(&g), 0);
    for (int x = 0; x < 20; x++)
        assert_int_equal(g.cells[x].role, x == 3 || x == 4 || x == 7 || x == 8 ? ROLE_MATCH : ROLE_TEXT);
    grid_fini(&g);
}

static void test_list(void **state) {
    struct list l = {0};
    (void)state;
    list_fit(&l, 100, 10);
    assert_true(list_move(&l, ACTION_PAGE_DOWN));
    assert_int_equal(l.selected, 10);
    assert_true(list_move(&l, ACTION_LAST));
    assert_true(l.selected == 99 && l.top == 90);
    list_fit(&l, 5, 10);
    assert_true(l.selected == 4 && l.top == 0);
    list_fit(&l, 0, 10);
    assert_true(l.selected == 0 && l.top == 0);
    assert_false(list_move(&l, ACTION_QUIT));
    srand(3);
    for (int i = 0; i < 20000; i++) {
        switch (rand() % 4) {
        case 0:
            list_fit(&l, rand() % 50, rand() % 20);
            break;
        case 1:
            list_select(&l, rand() % 60 - 5);
            break;
        case 2:
            list_wheel(&l, rand() % 9 - 4);
            break;
        default:
            (void)list_move(&l, (enum action)(ACTION_UP + rand() % (ACTION_LAST - ACTION_UP + 1)));
        }
        assert_true(l.selected >= 0 && (l.count == 0 ? l.selected == 0 : l.selected < l.count));
        assert_true(l.top >= 0 && l.top <= l.selected && (l.selected < l.top + l.page || l.count == 0));
    }
}

/* Columns and gaps tile the width exactly, for every width. */
static void test_layout_columns(void **state) {
    static const struct layout_column want[] = {{7, 0, 0},  {14, 2, 0}, {2, 0, 0}, {6, 0, 3},
                                                {16, 4, 0}, {14, 4, 2}, {5, 1, 1}};
    enum { N = sizeof want / sizeof want[0] };
    (void)state;
    for (int cols = 42; cols < 400; cols++) {
        int widths[N], sum = 0, visible = 0;
        layout_columns(want, N, cols, 1, widths);
        for (int i = 0; i < N; i++) {
            assert_true(widths[i] == 0 || widths[i] >= want[i].min);
            assert_true(widths[i] > 0 || want[i].rank > 0);
            sum += widths[i];
            visible += widths[i] > 0;
        }
        assert_int_equal(sum + visible - 1, cols);
    }
}

static void test_layout_panes(void **state) {
    (void)state;
    for (int cols = LAYOUT_PANES_COLS; cols < 300; cols += 7)
        for (int rows = 8; rows < 80; rows += 3)
            for (int want = 1; want < 100; want += 9) {
                struct rect body = {5, 0, rows, cols}, a, b, line;
                assert_true(layout_has_panes(body));
                layout_panes(body, want, &a, &b, &line);
                assert_int_equal(a.rows * a.cols + b.rows * b.cols + line.rows * line.cols, rows * cols);
                assert_true(a.rows > 1 && b.rows > 1 && a.cols > 40 && b.cols > 40);
                assert_true(b.row >= a.row + a.rows || b.col >= a.col + a.cols);
                assert_true(b.row + b.rows == body.row + body.rows && b.col + b.cols == body.cols);
            }
}

static void press(struct prompt *p, const char *name) { (void)prompt_key(p, input_key_parse(name)); }

static void test_prompt(void **state) {
    struct prompt p;
    (void)state;
    char label[] = "Search: ";
    prompt_start(&p, label, "");
    memset(label, 'x', sizeof label - 1); /* the caller's is its own again */
    assert_string_equal(p.label, "Search: ");
    assert_int_equal(prompt_key(&p, 'q'), PROMPT_CHANGED); /* letters type, whatever they do elsewhere */
    assert_int_equal(prompt_key(&p, ' '), PROMPT_CHANGED);
    assert_int_equal(prompt_key(&p, 0xe9), PROMPT_CHANGED);
    assert_string_equal(p.text, "q \xc3\xa9");
    press(&p, "Left");
    press(&p, "Left");
    press(&p, "x");
    assert_string_equal(p.text, "qx \xc3\xa9");
    press(&p, "Del");
    assert_string_equal(p.text, "qx\xc3\xa9");
    press(&p, "End");
    press(&p, "Backspace");
    assert_string_equal(p.text, "qx");
    prompt_paste(&p, " two\nlines\033[2J");
    assert_string_equal(p.text, "qx two lines\xef\xbf\xbd[2J");
    press(&p, "ctrl-w");
    assert_string_equal(p.text, "qx two ");
    press(&p, "ctrl-u");
    assert_string_equal(p.text, "");
    assert_int_equal(prompt_key(&p, INPUT_BACKSPACE), PROMPT_CANCELLED);
    assert_int_equal(prompt_key(&p, INPUT_ENTER), PROMPT_ACCEPTED);
    assert_int_equal(prompt_key(&p, INPUT_ESC), PROMPT_CANCELLED);
    for (int i = 0; i < 1000; i++)
        (void)prompt_key(&p, 0x8a13);
    assert_in_range(strlen(p.text), 100, PROMPT_MAX - 1);
    struct grid g;
    int cursor;
    assert_int_equal(grid_init(&g, 1, 30), 0);
    prompt_draw(&p, &g, grid_rect(&g), false, &cursor);
    assert_in_range(cursor, 0, 29);
    assert_sound(&g);
    grid_fini(&g);
}

/* What an agent says may be any number: beyond an end it is drawn as that end. */
static void test_meter_of_any_number(void **state) {
    static const double values[] = {1e300, -1e300, INFINITY, -INFINITY, NAN, 101, -0.5};
    static const int levels[] = {8, 0, 8, 0, 0, 8, 0};
    struct grid g;
    (void)state;
    assert_int_equal(grid_init(&g, 1, 4), 0);
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct meter m = {0};
        meter_add(&m, values[i]);
        grid_clear(&g);
        meter_draw(&m, &g, grid_rect(&g), 0, 0, 1, (struct meter_scale){0, 100}, ROLE_METER_CPU);
        assert_ptr_equal(glyph_level(&g, values[i] / 100), glyph(&g, (enum glyph)(GLYPH_METER + levels[i])));
        assert_int_equal(g.cells[0].cp, levels[i] ? 0x2588 : ' '); /* the full block */
    }
    grid_fini(&g);
}

static void test_meter(void **state) {
    struct meter m = {0};
    struct grid g;
    (void)state;
    assert_true(isnan(meter_mean(&m, 10)));
    for (int i = 0; i < 1000; i++)
        meter_add(&m, i % 2 ? 100 : 0);
    meter_add(&m, NAN);
    assert_true(fabs(meter_mean(&m, 101) - 50) < 1e-9);
    assert_true(meter_max(&m, 10, 1) == 100);
    assert_int_equal(grid_init(&g, 1, 4), 0);
    meter_draw(&m, &g, grid_rect(&g), 0, 0, 4, (struct meter_scale){0, 100}, ROLE_METER_CPU);
    assert_row(&g, 0, "\xe2\x96\x88 \xe2\x96\x88");
    grid_fini(&g);
}

/* A constant is a flat low line however large it is; a value that has grown rises. */
static void test_meter_trend(void **state) {
    struct meter m = {0};
    struct grid g;
    (void)state;
    assert_int_equal(grid_init(&g, 1, 4), 0);
    for (int i = 0; i < 4; i++)
        meter_add(&m, 3e9);
    meter_draw(&m, &g, grid_rect(&g), 0, 0, 4, meter_trend(&m, METER_MAX), ROLE_METER_CPU);
    assert_row(&g, 0, "\xe2\x96\x81\xe2\x96\x81\xe2\x96\x81\xe2\x96\x81");
    meter_add(&m, 6e9);
    grid_clear(&g);
    meter_draw(&m, &g, grid_rect(&g), 0, 0, 4, meter_trend(&m, METER_MAX), ROLE_METER_CPU);
    assert_row(&g, 0, "\xe2\x96\x81\xe2\x96\x81\xe2\x96\x81\xe2\x96\x88");
    struct meter none = {0};
    assert_true(meter_trend(&none, METER_MAX).full > meter_trend(&none, METER_MAX).empty);
    grid_fini(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grid_text),    cmocka_unit_test(test_grid_scroll),
        cmocka_unit_test(test_grid_hostile), cmocka_unit_test(test_grid_random),
        cmocka_unit_test(test_match),        cmocka_unit_test(test_highlight),
        cmocka_unit_test(test_list),         cmocka_unit_test(test_layout_columns),
        cmocka_unit_test(test_layout_panes), cmocka_unit_test(test_prompt),
        cmocka_unit_test(test_meter),        cmocka_unit_test(test_meter_of_any_number),
        cmocka_unit_test(test_meter_trend),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
