/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every screen in every state, at three sizes, in three depths of colour, in UTF-8 and in ASCII: tests/screens/matrix has a file for each
 * screen and state, `make golden-update` writes them anew, and the difference is to be read like code. A screen that the list of screens has not fails.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <ftw.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tui/core/app.h"
#include "tui/core/app_draw.h"
#include "tui/core/app_life.h"
#include "tui/core/app_take.h"
#include "tui/core/screen.h"
#include "unit/tui_fixture.h"
#include "unit/tui_matrix.h"
#include "unit/tui_picture.h"

struct matrix_scene {
    const struct matrix_row *row;
    enum matrix_state state;
};

static struct app *scene_make(const void *arg, bool ascii) {
    const struct matrix_scene *scene = arg;
    return matrix_make(scene->row, scene->state, ascii);
}

static void test_screen(void **state) {
    const struct matrix_row *row = *state;
    int bad = 0;
    for (int s = 0; s < MATRIX_STATES; s++) {
        struct matrix_scene scene = {row, (enum matrix_state)s};
        struct strbuf got;
        char name[128];
        if (!matrix_has(row, scene.state))
            continue;
        (void)snprintf(name, sizeof name, "matrix/%s-%s", row->symbol, matrix_state_name(scene.state));
        strbuf_init(&got, 4 << 20);
        if (!picture_draw(scene_make, &scene, &got)) {
            print_error("%s: see above\n", name);
            bad++;
        }
        bad += picture_compare(name, &got);
        strbuf_fini(&got);
    }
    assert_int_equal(bad, 0);
}

/* How the roles look that the pictures above have drawn. */
static void test_styles(void **state) {
    struct strbuf got;
    (void)state;
    strbuf_init(&got, 1 << 20);
    picture_put_styles(&got);
    int bad = picture_compare("matrix/styles", &got);
    strbuf_fini(&got);
    assert_int_equal(bad, 0);
}

static bool has_row(const char *symbol, size_t len) {
    for (const struct matrix_row *r = matrix_rows(); r->symbol; r++)
        if (strlen(r->symbol) == len && strncmp(r->symbol, symbol, len) == 0)
            return true;
    return false;
}

static int missing, seen; /* descriptors that are not listed, and files, of all folders */

/* Descriptors that a file defines and the list of screens has not. */
static int missing_in(const char *path) {
    static const char define[] = "const struct screen_def screen_";
    struct strbuf text;
    int n = 0;
    strbuf_init(&text, 4 << 20);
    assert_int_equal(strbuf_read_file(&text, path), 0);
    for (const char *at = strbuf_str(&text); (at = strstr(at, define)); at += sizeof define - 1) {
        const char *symbol = at + sizeof define - 1;
        size_t len = strspn(symbol, "abcdefghijklmnopqrstuvwxyz0123456789_");
        bool is_defined = (at == strbuf_str(&text) || at[-1] == '\n') && strncmp(symbol + len, " =", 2) == 0;
        if (is_defined && !has_row(symbol, len)) {
            print_error("%s: screen_%.*s has no row in src/tui/keys/screen_list.h\n", path, (int)len, symbol);
            n++;
        }
    }
    strbuf_fini(&text);
    return n;
}

static int missing_in_file(const char *path, const struct stat *st, int type, struct FTW *at) {
    size_t len = strlen(path);
    (void)st;
    (void)at;
    if (type == FTW_F && len > 2 && strcmp(path + len - 2, ".c") == 0) {
        missing += missing_in(path);
        seen++;
    }
    return 0;
}

static void test_all_screens_are_listed(void **state) {
    (void)state;
    assert_int_equal(nftw(PROBING_SOURCE_DIR "/src/tui/screens", missing_in_file, 8, FTW_PHYS), 0);
    assert_true(seen > 15);
    assert_int_equal(missing, 0);
}

/* Below the least size it says so, and what would do. */
/* Whoever holds the job's threads: whatever is looked at, it says so. The choice of a process, or of a job, looks at none. */
static void test_held_is_said_everywhere(void **state) {
    struct model_debugger hold = {
        .what = "pause", .state = "held", .address = "127.0.0.1:3344", .pid = 88, .left_s = 212};
    struct model_status s = {.holds = &hold, .n_holds = 1, .budget_pct = 5};
    (void)state;
    for (const struct matrix_row *r = matrix_rows(); r->symbol; r++) {
        struct app *a = matrix_make(r, MATRIX_NORMAL, false);
        app_take_status(a, &s);
        print_message("%s\n", r->symbol);
        if (r->screen == &screen_picker || r->screen == &screen_job_picker)
            fixture_hides(a, 24, 80, "PAUSED by");
        else {
            fixture_shows(a, 24, 80, "PAUSED by process 88: pdb at 127.0.0.1:3344, 212 s left");
            fixture_shows(a, 50, 200, "PAUSED by process 88: pdb at 127.0.0.1:3344, 212 s left");
            fixture_shows(a, 12, 40, "PAUSED by process 88");
        }
        app_free(a);
    }
}

static void test_too_small(void **state) {
    struct strbuf out;
    (void)state;
    strbuf_init(&out, 1 << 16);
    static const struct { int rows, cols; } sizes[] = {{11, 80}, {12, 39}, {5, 20}, {1, 12}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (const struct matrix_row *r = matrix_rows(); r->symbol; r++) {
            struct app *a = matrix_make(r, MATRIX_NORMAL, false);
            struct grid g;
            char line[400];
            assert_int_equal(grid_init(&g, sizes[i].rows, sizes[i].cols), 0);
            app_draw(a, &g);
            grid_row_text(&g, grid_rect(&g), 0, line, sizeof line, NULL);
            assert_non_null(strstr(line, "too small"));
            grid_fini(&g);
            app_free(a);
        }
    strbuf_fini(&out);
}

#define MAX_TESTS 64

int main(void) {
    static struct CMUnitTest tests[MAX_TESTS];
    size_t n = 0;
    (void)setlocale(LC_ALL, "C.UTF-8");
    (void)setenv("TZ", "UTC", 1);
    (void)unsetenv("NO_COLOR");
    tzset();
    for (const struct matrix_row *r = matrix_rows(); r->symbol && n < MAX_TESTS - 4; r++)
        tests[n++] = (struct CMUnitTest){
            .name = r->symbol, .test_func = test_screen, .initial_state = (void *)(uintptr_t)r};
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_styles);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_all_screens_are_listed);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_held_is_said_everywhere);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(test_too_small);
    return _cmocka_run_group_tests("tui_matrix", tests, n, NULL, NULL);
}
