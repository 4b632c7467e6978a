/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal layer over pipes: keys come out as keys, frames are small, and a terminal that reads nothing stops nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tui/term/term.h"

struct rig {
    int out[2], in[2];
    struct theme theme;
    struct term *term;
    struct grid grid;
};

static void rig_open(struct rig *r, int rows, int cols) {
    struct err e;
    memset(r, 0, sizeof *r);
    theme_init_default(&r->theme);
    assert_int_equal(pipe2(r->out, O_CLOEXEC | O_NONBLOCK), 0);
    assert_int_equal(pipe2(r->in, O_CLOEXEC), 0);
    struct term_config c = {.type = "xterm-256color",
                            .in_fd = r->in[0],
                            .out_fd = r->out[1],
                            .rows = rows,
                            .cols = cols,
                            .mouse = true,
                            .theme = &r->theme};
    r->term = term_open(&c, &e);
    assert_non_null(r->term);
    assert_int_equal(grid_init(&r->grid, rows, cols), 0);
}

static void rig_close(struct rig *r) {
    term_close(r->term);
    grid_fini(&r->grid);
    for (int i = 0; i < 2; i++) {
        (void)close(r->out[i]);
        (void)close(r->in[i]);
    }
}

/* Everything that has been written since; NUL-terminated. */
static size_t rig_drain(struct rig *r, char *buf, size_t cap) {
    size_t used = 0;
    ssize_t n;
    while (used + 1 < cap && (n = read(r->out[0], buf + used, cap - used - 1)) > 0)
        used += (size_t)n;
    buf[used] = '\0';
    return used;
}

static void test_keys(void **state) {
    static const struct {
        const char *bytes, *key;
    } cases[] = {{"q", "q"},
                 {"\x1bOA", "Up"},
                 {"\x1b[5~", "PgUp"},
                 {"\x1bOP", "F1"},
                 {"\x1b[15~", "F5"},
                 {"\x1bOH", "Home"},
                 {"\x7f", "Backspace"},
                 {"\r", "Enter"},
                 {"\t", "Tab"},
                 {"\x0c", "ctrl-l"},
                 {"\x1b[Z", "S-Tab"},
                 {"\xc3\xa9", "\xc3\xa9"},
                 {"\xe8\xa8\x93", "\xe8\xa8\x93"},
                 {"\x1bx", "alt-x"},
                 {"\x1b", "Esc"},
                 {" ", "Space"},
                 {"\x1b[1;2R", "S-F3"},
                 {"\x1b[1;2A", "S-Up"}};
    struct rig r;
    (void)state;
    rig_open(&r, 24, 80);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct input_event e;
        char name[32];
        assert_int_equal(write(r.in[1], cases[i].bytes, strlen(cases[i].bytes)),
                         (ssize_t)strlen(cases[i].bytes));
        assert_true(term_read(r.term, &e));
        assert_int_equal(e.kind, INPUT_EVENT_KEY);
        input_key_name(e.key, name, sizeof name);
        assert_string_equal(name, cases[i].key);
        assert_false(term_read(r.term, &e));
    }
    rig_close(&r);
}

static void test_paste_and_mouse(void **state) {
    static const char paste[] = "\x1b[200~q\r\x1bOAQ\x1b[201~j",
                      click[] = "\x1b[<0;11;5M\x1b[<0;11;5m\x1b[<65;1;1M";
    struct rig r;
    struct input_event e;
    (void)state;
    rig_open(&r, 24, 80);
    assert_int_equal(write(r.in[1], paste, sizeof paste - 1), sizeof paste - 1);
    assert_true(term_read(r.term, &e));
    assert_int_equal(e.kind, INPUT_EVENT_PASTE);
    assert_string_equal(e.text, "q\nQ");
    assert_false(e.is_cut);
    assert_true(term_read(r.term, &e));
    assert_int_equal(e.key, 'j');
    assert_int_equal(write(r.in[1], click, sizeof click - 1), sizeof click - 1);
    assert_true(term_read(r.term, &e));
    assert_true(e.kind == INPUT_EVENT_MOUSE && e.button == INPUT_CLICK && e.row == 4 && e.col == 10);
    assert_true(term_read(r.term, &e));
    assert_true(e.kind == INPUT_EVENT_MOUSE && e.button == INPUT_WHEEL_DOWN);
    assert_false(term_read(r.term, &e));
    rig_close(&r);
}

static void type_bytes(struct rig *r, const char *bytes) {
    assert_int_equal(write(r->in[1], bytes, strlen(bytes)), (ssize_t)strlen(bytes));
}

static void next_key_is(struct rig *r, const char *key) {
    struct input_event e;
    char name[32];
    assert_true(term_read(r->term, &e));
    assert_int_equal(e.kind, INPUT_EVENT_KEY);
    input_key_name(e.key, name, sizeof name);
    assert_string_equal(name, key);
}

static void next_answer_is(struct rig *r, const char *color) {
    struct input_event e;
    assert_true(term_read(r->term, &e));
    assert_int_equal(e.kind, INPUT_EVENT_BACKGROUND);
    assert_string_equal(e.text, color);
}

/* The terminal's answer comes among what is typed, in pieces, and is no keys; what only looks like one costs itself. */
static void test_background(void **state) {
    char buf[4096];
    struct rig r;
    struct input_event e;
    (void)state;
    rig_open(&r, 24, 80);
    (void)rig_drain(&r, buf, sizeof buf);
    (void)unsetenv("STY");
    term_ask_background(r.term);
    (void)rig_drain(&r, buf, sizeof buf);
    assert_non_null(strstr(buf, "\033]11;?\033\\"));
    type_bytes(&r, "j\x1b]11;rgb:ffff/ffff/ffff\x1b\\k");
    next_key_is(&r, "j");
    next_answer_is(&r, "rgb:ffff/ffff/ffff");
    next_key_is(&r, "k");
    type_bytes(&r, "\x1b]11;rgb:00/2b");
    assert_false(term_read(r.term, &e));
    type_bytes(&r, "/36\x07q");
    next_answer_is(&r, "rgb:00/2b/36");
    next_key_is(&r, "q");
    type_bytes(&r, "\x1b]11;rgb:zx"); /* it ends at what does not belong to it */
    next_key_is(&r, "z");
    next_key_is(&r, "x");
    type_bytes(&r, "\x1b]11;rgb:00001111222233334444555566667777abq"); /* or is too long */
    while (term_read(r.term, &e))
        assert_int_equal(e.kind, INPUT_EVENT_KEY);
    type_bytes(&r, "\x1b\\");
    next_key_is(&r, "alt-\\");
    (void)setenv("STY", "1.x", 1);
    term_ask_background(r.term);
    assert_int_equal(rig_drain(&r, buf, sizeof buf), 0);
    (void)unsetenv("STY");
    rig_close(&r);
}

/* A terminal that might print the question is not asked. */
static void test_who_is_asked(void **state) {
    static const struct {
        const char *type;
        bool is_asked, draws;
    } cases[] = {
        {"linux", false, false}, {"vt100", false, true}, {"xterm", true, true}, {"screen", true, true}};
    char buf[8192];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rig r;
        struct err e;
        rig_open(&r, 24, 80);
        term_close(r.term);
        struct term_config c = {.type = cases[i].type,
                                .in_fd = r.in[0],
                                .out_fd = r.out[1],
                                .rows = 24,
                                .cols = 80,
                                .theme = &r.theme};
        r.term = term_open(&c, &e);
        assert_non_null(r.term);
        (void)rig_drain(&r, buf, sizeof buf);
        term_ask_background(r.term);
        (void)rig_drain(&r, buf, sizeof buf);
        assert_int_equal(strstr(buf, "\033]11;?") != NULL, cases[i].is_asked);
        assert_int_equal(term_draws_unicode(cases[i].type), cases[i].draws);
        rig_close(&r);
    }
}

/* A paste without an end, or longer than any buffer, is bounded. */
static void test_endless_paste(void **state) {
    struct rig r;
    struct input_event e;
    char block[4096];
    (void)state;
    rig_open(&r, 24, 80);
    memset(block, 'q', sizeof block);
    assert_int_equal(write(r.in[1], "\x1b[200~", 6), 6);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(write(r.in[1], block, sizeof block), sizeof block);
        assert_false(term_read(r.term, &e));
    }
    assert_int_equal(write(r.in[1], "\x1b[201~", 6), 6);
    assert_true(term_read(r.term, &e));
    assert_int_equal(e.kind, INPUT_EVENT_PASTE);
    assert_in_range(strlen(e.text), 60000, 65536);
    assert_true(e.is_cut);
    rig_close(&r);
}

static void test_frames(void **state) {
    static char buf[1 << 20];
    struct rig r;
    (void)state;
    rig_open(&r, 50, 200);
    (void)fcntl(r.out[1], F_SETPIPE_SZ, 1 << 20);
    for (int y = 0; y < 50; y++)
        grid_printf(&r.grid, grid_rect(&r.grid), y, 0, (enum theme_role)(y % ROLE_COUNT),
                    "row %d of the screen, and more of it", y);
    assert_true(term_paint(r.term, &r.grid, -1, 0));
    assert_true(rig_drain(&r, buf, sizeof buf) > 1000);
    assert_non_null(strstr(buf, "\033[?2004h")); /* bracketed paste */
    char *begin = strstr(buf, "\033[?2026h"), *end = strstr(buf, "\033[?2026l");
    assert_true(begin && end && begin < end && end[8] == '\0'); /* a frame is one synchronized update */
    assert_true(term_paint(r.term, &r.grid, -1, 0));
    assert_int_equal(rig_drain(&r, buf, sizeof buf), 0); /* the same again costs nothing */
    grid_text(&r.grid, grid_rect(&r.grid), 7, 3, ROLE_TEXT, "X");
    assert_true(term_paint(r.term, &r.grid, -1, 0));
    assert_in_range(rig_drain(&r, buf, sizeof buf), 1, 100);
    term_repaint(r.term);
    assert_true(term_paint(r.term, &r.grid, -1, 0));
    assert_true(rig_drain(&r, buf, sizeof buf) > 1000);
    term_close(r.term);
    r.term = NULL;
    (void)rig_drain(&r, buf, sizeof buf);
    assert_non_null(strstr(buf, "\033[?1049l")); /* off the alternate screen */
    assert_non_null(strstr(buf, "\033[?2004l"));
    assert_non_null(strstr(buf, "1000l"));
    rig_close(&r);
}

/* Nobody reads: painting says so at once, nothing grows, and it goes on when somebody reads again. */
static void test_stalled_terminal(void **state) {
    static char buf[1 << 20];
    struct rig r;
    (void)state;
    rig_open(&r, 50, 200);
    (void)fcntl(r.out[1], F_SETPIPE_SZ, 4096);
    bool stalled = false;
    for (int frame = 0; frame < 200; frame++) {
        for (int y = 0; y < 50; y++)
            grid_printf(&r.grid, grid_rect(&r.grid), y, 0, (enum theme_role)((y + frame) % ROLE_COUNT),
                        "%d %d %0150d", frame, y, frame * y);
        stalled |= !term_paint(r.term, &r.grid, -1, 0);
    }
    assert_true(stalled);
    assert_false(term_flush(r.term));
    bool done = false;
    for (int i = 0; i < 1000 && !done; i++) {
        (void)rig_drain(&r, buf, sizeof buf);
        done = term_flush(r.term);
    }
    assert_true(done);
    assert_true(term_paint(r.term, &r.grid, -1, 0));
    rig_close(&r);
}

static void test_bad_types(void **state) {
    static const char *const types[] = {"no-such-terminal", "dumb", ""};
    struct rig r;
    struct err e;
    (void)state;
    rig_open(&r, 24, 80);
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct term_config c = {.type = types[i],
                                .in_fd = r.in[0],
                                .out_fd = r.out[1],
                                .rows = 24,
                                .cols = 80,
                                .theme = &r.theme};
        term_close(r.term);
        r.term = NULL;
        assert_null(term_open(&c, &e));
        assert_int_equal(e.code, ERR_FAILED);
        assert_non_null(strstr(e.text, "TERM=xterm-256color"));
    }
    rig_close(&r);
}

static void test_gone(void **state) {
    struct rig r;
    (void)state;
    rig_open(&r, 24, 80);
    assert_false(term_is_gone(r.term));
    assert_int_equal(write(r.in[1], "x", 1), 1);
    assert_false(term_is_gone(r.term));
    struct input_event e;
    assert_true(term_read(r.term, &e));
    (void)close(r.in[1]);
    assert_true(term_is_gone(r.term));
    r.in[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    rig_close(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_paste_and_mouse),
        cmocka_unit_test(test_background),
        cmocka_unit_test(test_who_is_asked),
        cmocka_unit_test(test_endless_paste),
        cmocka_unit_test(test_frames),
        cmocka_unit_test(test_stalled_terminal),
        cmocka_unit_test(test_bad_types),
        cmocka_unit_test(test_gone),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
