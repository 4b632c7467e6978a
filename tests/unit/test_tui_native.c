/* SPDX-License-Identifier: Apache-2.0 */
/* Native frames in the Threads screen: asked for while they are shown, drawn in the order of the calls, marked when they do not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <locale.h>

#include "tui/core/app.h"
#include "tui/core/app_draw.h"
#include "tui/core/app_life.h"
#include "tui/core/app_take.h"
#include "tui/view/grid.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"

static const char *draw(struct app *a) {
    static char text[120 * 40 * 4];
    struct grid g;
    size_t used = 0;
    assert_int_equal(grid_init(&g, 40, 110), 0);
    app_draw(a, &g);
    for (int y = 0; y < 40; y++) {
        grid_row_text(&g, grid_rect(&g), y, text + used, sizeof text - used - 1, NULL);
        used += strlen(text + used);
        text[used++] = '\n';
    }
    text[used] = '\0';
    grid_fini(&g);
    return text;
}

static void assert_shows(struct app *a, const char *what) {
    const char *screen = draw(a);
    if (!strstr(screen, what))
        fail_msg("'%s' is not on the screen:\n%s", what, screen);
}

static void assert_hides(struct app *a, const char *what) {
    const char *screen = draw(a);
    if (strstr(screen, what))
        fail_msg("'%s' is on the screen:\n%s", what, screen);
}

static void answer(struct app *a, enum model_native how) {
    struct model_snapshot s;
    fixture_native(&s, how);
    app_take_locals(a, &s);
}

static void look_again(struct app *a, double now_s, int step) {
    struct model_snapshot s;
    app_set_time(a, now_s, FIXTURE_EPOCH_S + now_s - FIXTURE_NOW_S);
    fixture_snapshot(&s, FIXTURE_NORMAL, step);
    app_take_snapshot(a, &s);
}

static void test_they_are_asked_for_while_they_are_shown(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 4, false);
    (void)state;
    assert_int_equal(fake_host_take().details.tid, 0);
    fixture_press(a, "c");
    struct wire_threads w = fake_host_take().details;
    assert_int_equal(w.tid, 4242);
    assert_true(w.native);
    assert_false(w.locals || w.tasks || w.repr);
    answer(a, MODEL_NATIVE_MERGED);
    assert_shows(a, "at::native::addmm_impl_cpu_");
    look_again(a, FIXTURE_NOW_S + 0.5, 5);
    assert_int_equal(fake_host_take().details.tid, 0);
    look_again(a, FIXTURE_NOW_S + 1.1, 6);
    assert_int_equal(fake_host_take().details.tid, 4242);
    fixture_press(a, "v"); /* with variables: at once, in one answer */
    w = fake_host_take().details;
    assert_int_equal(w.tid, 4242);
    assert_true(w.native && w.locals);
    fixture_press(a, "t"); /* tasks in place of the variables: the same */
    w = fake_host_take().details;
    assert_int_equal(w.tid, 4242);
    assert_true(w.native && w.tasks && !w.locals);
    fixture_press(a, "t c");
    (void)fake_host_take();
    assert_hides(a, "at::native::addmm_impl_cpu_");
    look_again(a, FIXTURE_NOW_S + 20, 9);
    assert_int_equal(fake_host_take().details.tid, 0);
    app_free(a);
}

static void test_they_stand_in_the_order_of_the_calls(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 4, false);
    (void)state;
    fixture_press(a, "Enter c");
    answer(a, MODEL_NATIVE_MERGED);
    const char *screen = draw(a);
    const char *kernel = strstr(screen, "mkl_blas_avx512_sgemm_kernel"),
               *gap = strstr(screen, "native frames here are not known"),
               *impl = strstr(screen, "at::native::addmm_impl_cpu_"),
               *call = strstr(screen, "cfunction_call"), *python = strstr(screen, "train_step");
    assert_true(kernel && gap && impl && call && python);
    assert_true(kernel < gap && gap < impl && impl < call && call < python);
    assert_shows(a, "libtorch_cpu.so+0x1234ab");
    assert_shows(a, "0x7f0012345678");
    assert_shows(a, "methodobject.c:542");
    assert_null(memchr(screen, '\033', strlen(screen)));
    assert_hides(a, "native frames not known ");
    app_free(a);
}

static void test_what_does_not_fit_is_said(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 4, false);
    (void)state;
    fixture_press(a, "c");
    answer(a, MODEL_NATIVE_APART);
    assert_shows(a, "native frames first: they do not fit together");
    answer(a, MODEL_NATIVE_UNKNOWN);
    assert_shows(a, "native frames not known");
    assert_shows(a, "train_step");
    app_free(a);
}

/* An answer for another thread, or one without native frames, is not shown as one. */
static void test_an_answer_to_something_else_is_not_shown(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 4, false);
    struct model_snapshot s;
    (void)state;
    fixture_press(a, "c");
    fixture_locals(&s);
    app_take_locals(a, &s);
    assert_hides(a, "native frames");
    answer(a, MODEL_NATIVE_MERGED);
    fixture_press(a, ")");
    assert_hides(a, "at::native::addmm_impl_cpu_");
    fixture_press(a, "(");
    assert_shows(a, "at::native::addmm_impl_cpu_");
    app_free(a);
}

/* Where native frames are not to be had, the key is off again after one message. */
static void test_a_refusal_turns_it_off(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 4, false);
    (void)state;
    fixture_press(a, "c");
    assert_true(fake_host_take().details.native);
    a->data.native_refused = true;
    look_again(a, FIXTURE_NOW_S + 2, 5);
    look_again(a, FIXTURE_NOW_S + 4, 6);
    assert_int_equal(fake_host_take().details.tid, 0);
    fixture_press(a, "c");
    assert_true(fake_host_take().details.native);
    app_free(a);
}

static void test_they_can_be_searched(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 4, false);
    (void)state;
    fixture_press(a, "Enter c");
    answer(a, MODEL_NATIVE_MERGED);
    fixture_press(a, "/ \"cfunction Enter v");
    assert_shows(a, "Locals of cfunction_call");
    app_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_they_are_asked_for_while_they_are_shown),
        cmocka_unit_test(test_they_stand_in_the_order_of_the_calls),
        cmocka_unit_test(test_what_does_not_fit_is_said),
        cmocka_unit_test(test_an_answer_to_something_else_is_not_shown),
        cmocka_unit_test(test_a_refusal_turns_it_off),
        cmocka_unit_test(test_they_can_be_searched),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
