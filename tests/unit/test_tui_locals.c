/* SPDX-License-Identifier: Apache-2.0 */
/* The pane with the variables of a frame: when they are asked for, whose they are, what is said when there are none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "unit/tui_fixture.h"
#include "unit/tui_host.h"
#include "tui/core/app.h"
#include "tui/core/app_draw.h"
#include "tui/core/app_life.h"
#include "tui/core/app_take.h"

static const char *draw(struct app *a, int rows) {
    static char text[100000];
    struct grid g;
    size_t used = 0;
    assert_int_equal(grid_init(&g, rows, 80), 0);
    app_draw(a, &g);
    for (int y = 0; y < rows; y++) {
        grid_row_text(&g, grid_rect(&g), y, text + used, sizeof text - used - 1, NULL);
        used += strlen(text + used);
        text[used++] = '\n';
    }
    text[used] = '\0';
    grid_fini(&g);
    return text;
}

static void assert_shows(struct app *a, const char *what) {
    const char *screen = draw(a, 30);
    if (!strstr(screen, what))
        fail_msg("'%s' is not on the screen:\n%s", what, screen);
}

static void assert_hides(struct app *a, const char *what) {
    const char *screen = draw(a, 30);
    if (strstr(screen, what))
        fail_msg("'%s' is on the screen:\n%s", what, screen);
}

static void look_again(struct app *a, double now_s, int step) {
    struct model_snapshot s;
    app_set_time(a, now_s, FIXTURE_EPOCH_S + now_s - FIXTURE_NOW_S);
    fixture_snapshot(&s, FIXTURE_NORMAL, step);
    app_take_snapshot(a, &s);
}

static void answer(struct app *a) {
    struct model_snapshot s;
    fixture_locals(&s);
    app_take_locals(a, &s);
}

/* Nothing is asked for before the key is pressed; then once, and again once a second while the pane is open. */
static void test_values_are_asked_for_while_they_are_shown(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 4, false);
    (void)state;
    assert_int_equal(fake_host_take().details.tid, 0);
    fixture_press(a, "v");
    assert_int_equal(fake_host_take().details.tid, 4242);
    assert_shows(a, "reading ...");
    answer(a);
    look_again(a, FIXTURE_NOW_S + 0.5, 5);
    assert_int_equal(fake_host_take().details.tid, 0);
    look_again(a, FIXTURE_NOW_S + 1.1, 6);
    assert_int_equal(fake_host_take().details.tid, 4242);
    look_again(a, FIXTURE_NOW_S + 2.2, 7); /* the answer is still under way */
    assert_int_equal(fake_host_take().details.tid, 0);
    look_again(a, FIXTURE_NOW_S + 6, 8); /* it is lost */
    assert_int_equal(fake_host_take().details.tid, 4242);
    fixture_press(a, "v");
    look_again(a, FIXTURE_NOW_S + 20, 9);
    assert_int_equal(fake_host_take().details.tid, 0);
    assert_hides(a, "Locals");
    app_free(a);
}

static void test_another_thread_is_asked_for_at_once(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 4, false);
    (void)state;
    fixture_press(a, "v");
    (void)fake_host_take();
    answer(a);
    fixture_press(a, ")");
    int64_t wanted = fake_host_take().details.tid;
    assert_true(wanted != 4242);
    assert_hides(a, "Transformer object");
    fixture_press(a, ")");
    if (wanted == 0) /* a native thread has none */
        assert_true(fake_host_take().details.tid != 4242);
    app_free(a);
}

static void test_nothing_is_read_while_paused(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 4, false);
    (void)state;
    fixture_press(a, "Z v");
    assert_int_equal(fake_host_take().details.tid, 0);
    assert_shows(a, "frozen: values are read while the view moves");
    look_again(a, FIXTURE_NOW_S + 5, 6);
    assert_int_equal(fake_host_take().details.tid, 0);
    fixture_press(a, "Z");
    assert_int_equal(fake_host_take().details.tid, 4242);
    app_free(a);
}

/* Values stand beside the frame they are of, and nothing stands beside one that the answer does not have. */
static void test_values_are_those_of_the_selected_frame(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 4, false);
    (void)state;
    fixture_press(a, "Enter v");
    answer(a);
    assert_shows(a, "Locals of linear");
    assert_shows(a, "its values could not be read");
    fixture_press(a, "j j j j j");
    assert_shows(a, "Locals of train_step, line 203");
    assert_shows(a, "Tensor[64, 512] int64 cuda:0");
    assert_shows(a, "some left out");
    fixture_press(a, "j");
    assert_shows(a, "no variable has a value");
    struct model_snapshot s;
    fixture_locals(&s);
    s.threads[0].frames += 4; /* the outermost frames stay what they are */
    s.threads[0].n_frames -= 4;
    s.threads[0].locals += 4;
    app_take_locals(a, &s);
    fixture_press(a, "k");
    assert_shows(a, "Locals of train_step, line 203");
    fixture_press(a, "g");
    assert_shows(a, "this frame had ended");
    app_free(a);
}

/* The same pane shows tasks, by a question of its own; variables and tasks take turns. */
static void test_tasks_are_asked_for_while_they_are_shown(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 4, false);
    struct model_snapshot s;
    (void)state;
    fixture_press(a, "t");
    struct wire_threads want = fake_host_take().details;
    assert_true(want.tid == 4242 && want.tasks && !want.locals && !want.repr);
    assert_shows(a, "reading ...");
    fixture_tasks(&s);
    app_take_locals(a, &s);
    assert_shows(a, "Tasks: 3  some left out");
    assert_shows(a, "awaited by Task-1, ?");
    assert_hides(a, "another thread's");
    fixture_press(a, "v");
    want = fake_host_take().details;
    assert_true(want.tid == 4242 && want.locals && !want.tasks);
    assert_hides(a, "Tasks:");
    fixture_press(a, "t t");
    assert_hides(a, "Tasks");
    app_free(a);
}

static void test_what_could_not_be_had_is_said(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 4, false);
    struct model_snapshot s;
    (void)state;
    fixture_press(a, "t");
    fixture_snapshot(&s, FIXTURE_NORMAL, 3);
    s.n_threads = 1;
    s.note = "tasks are not known: thread 7 holds it";
    app_take_locals(a, &s);
    assert_shows(a, "tasks are not known: thread 7 holds it");
    fixture_tasks(&s);
    s.n_tasks = 0;
    app_take_locals(a, &s);
    assert_shows(a, "it runs no loop with tasks");
    fixture_press(a, "Enter v j j j j j alt-o");
    fixture_locals(&s);
    s.note = "values are only named: thread 7 holds it";
    app_take_locals(a, &s);
    assert_shows(a, "values are only named: thread 7 holds it");
    app_free(a);
}

/* The job's own repr() is called only after it was asked for. */
static void test_own_reprs_are_asked_for_by_a_key(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 4, false);
    (void)state;
    fixture_press(a, "v");
    assert_false(fake_host_take().details.repr);
    fixture_press(a, "E y");
    assert_true(fake_host_take().details.repr);
    fixture_press(a, "E");
    struct wire_threads want = fake_host_take().details;
    assert_true(want.tid == 4242 && want.locals && !want.repr);
    app_free(a);
}

static void test_the_keys_go_round_three_panes(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 4, false);
    (void)state;
    fixture_press(a, "Enter v j j j j j");
    answer(a);
    (void)draw(a, 24);
    fixture_press(a, "o G");
    assert_non_null(strstr(draw(a, 24), "a_name_that_is_much"));
    fixture_press(a, "Right Right Right Right Right Right Right Right Right Right Right Right Right Right");
    assert_null(strstr(draw(a, 24), "OrderedDict({"));
    fixture_press(a, "Esc g");
    assert_shows(a, "Locals of linear");
    fixture_press(a, "o o j");
    assert_hides(a, "Stack of MainThread");
    app_free(a);
}

static void test_a_small_screen_says_so(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 4, false);
    (void)state;
    (void)draw(a, 12);
    fixture_press(a, "v");
    assert_non_null(strstr(draw(a, 12), "no room for the variables"));
    app_free(a);
}

/* One pane takes the place of the other: where there was room for the one, there is for the other. */
static void test_the_panes_change_places(void **state) {
    int shown = 0;
    (void)state;
    for (int rows = 12; rows <= 30; rows++) {
        struct app *a = fixture_app(FIXTURE_NORMAL, 4, false);
        (void)draw(a, rows);
        fixture_press(a, "v");
        (void)draw(a, rows);
        fixture_press(a, "t");
        const char *text = draw(a, rows);
        bool there = strstr(text, " Tasks"), refused = strstr(text, "no room");
        assert_true(there != refused);
        shown += there;
        app_free(a);
    }
    assert_in_range(shown, 1, 18); /* of 19 sizes */
}

/* Where there is room beside the threads, the variables are open from the start, until a key closes them. */
static void test_wide_screens_have_them_open(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 4, false);
    struct model_snapshot s;
    (void)state;
    (void)fixture_draw(a, 45, 120);
    fixture_snapshot(&s, FIXTURE_NORMAL, 5);
    app_take_snapshot(a, &s);
    assert_false(fake_host_take().details.locals);
    (void)fixture_draw(a, 45, 160);
    fixture_snapshot(&s, FIXTURE_NORMAL, 6);
    app_take_snapshot(a, &s);
    assert_true(fake_host_take().details.locals);
    fixture_locals(&s);
    app_take_locals(a, &s);
    fixture_shows(a, 45, 160, " Locals of ");
    fixture_press(a, "v");
    fixture_hides(a, 45, 160, " Locals of ");
    fixture_snapshot(&s, FIXTURE_NORMAL, 7);
    app_take_snapshot(a, &s);
    fixture_hides(a, 45, 160, " Locals of ");
    app_free(a);
    a = fixture_app(FIXTURE_NORMAL, 4, false); /* only an agent reads them without stopping threads */
    a->data.target.mode = MODEL_MODE_READONLY;
    fixture_hides(a, 45, 160, " Locals of ");
    app_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wide_screens_have_them_open),
        cmocka_unit_test(test_values_are_asked_for_while_they_are_shown),
        cmocka_unit_test(test_another_thread_is_asked_for_at_once),
        cmocka_unit_test(test_nothing_is_read_while_paused),
        cmocka_unit_test(test_values_are_those_of_the_selected_frame),
        cmocka_unit_test(test_tasks_are_asked_for_while_they_are_shown),
        cmocka_unit_test(test_what_could_not_be_had_is_said),
        cmocka_unit_test(test_own_reprs_are_asked_for_by_a_key),
        cmocka_unit_test(test_the_keys_go_round_three_panes),
        cmocka_unit_test(test_a_small_screen_says_so),
        cmocka_unit_test(test_the_panes_change_places),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
