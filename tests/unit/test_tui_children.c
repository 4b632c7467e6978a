/* SPDX-License-Identifier: Apache-2.0 */
/* Children in the Threads screen: chosen, followed, frozen with the rest, opened and left again. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tui/core/app.h"
#include "tui/core/app_life.h"
#include "tui/core/app_draw.h"
#include "tui/core/app_take.h"
#include "unit/tui_children.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"

static void assert_shows(struct app *a, const char *what) {
    static char text[24 * 80 * 16];
    struct grid g;
    size_t used = 0;
    assert_int_equal(grid_init(&g, 25, 80), 0);
    app_draw(a, &g);
    for (int y = 0; y < g.rows; y++) {
        grid_row_text(&g, grid_rect(&g), y, text + used, sizeof text - used - 1, NULL);
        used += strlen(text + used);
        text[used++] = '\n';
    }
    text[used] = '\0';
    grid_fini(&g);
    if (!strstr(text, what))
        fail_msg("'%s' is not on the screen:\n%s", what, text);
}

/* Into a worker and back. */
static void test_children(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    struct children_list l;
    struct model_target t;
    struct model_snapshot s;
    (void)state;
    a->pid = 4242;         /* of what it has received */
    fixture_press(a, "C"); /* the target's own thread */
    assert_int_equal(fake_host_take().attach, 0);
    assert_shows(a, "this thread is the target's own");
    fixture_children(&l, 0);
    app_take_children(a, &l);
    assert_null(l.items);
    assert_shows(a, "__getitem__");
    fixture_press(a, "End k k k k");
    assert_shows(a, "process 4301: python train.py");
    assert_shows(a, "Stack of MainThread");
    fixture_press(a, "v");
    assert_int_equal(fake_host_take().details.tid, 0); /* nobody there would answer */
    assert_shows(a, "the variables of a child process: C opens it");
    fixture_press(a, "t");
    assert_int_equal(fake_host_take().details.tid, 0);
    assert_shows(a, "the tasks of a child process: C opens it");
    fixture_press(a, "t j");
    fixture_children(&l, 1); /* the selection stays with its thread */
    app_take_children(a, &l);
    assert_shows(a, "Stack of QueueFeederThread");
    fixture_press(a, "Z"); /* paused: nothing moves */
    fixture_children(&l, 7);
    app_take_children(a, &l);
    assert_shows(a, "train.py:45");
    fixture_press(a, "Z");
    assert_shows(a, "train.py:51");
    fixture_press(a, "k C");
    assert_int_equal(fake_host_take().attach, 4301);
    struct err why = {ERR_ATTACH, "process 4301: no"};
    app_attach_done(a, &why);
    assert_shows(a, "process 4301: no");
    assert_shows(a, "Connection._recv"); /* all is as it was */
    fixture_press(a, "C");
    assert_int_equal(fake_host_take().attach, 4301);
    app_set_pid(a, 4301);
    app_attach_done(a, NULL);
    assert_false(a->data.has_target);
    assert_int_equal(data_shown_children(&a->data)->n, 0);
    fixture_target(&t, FIXTURE_NORMAL);
    app_take_target(a, &t);
    fixture_snapshot(&s, FIXTURE_NORMAL, 0);
    app_take_snapshot(a, &s);
    fixture_press(a, "C");
    assert_int_equal(fake_host_take().attach, 4242);
    app_set_pid(a, 4242);
    app_attach_done(a, NULL);
    fixture_press(a, "C");
    assert_int_equal(fake_host_take().attach, 0);
    app_free(a);
}

/* The same child in the newest looks: how long it shows the same stack. */
static void test_children_ages(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    struct children_list l;
    (void)state;
    for (int i = 0; i < 3; i++) {
        fixture_children(&l, i);
        for (size_t k = 0; k < l.n; k++)
            l.items[k].snapshot.timestamp = 100 + i;
        app_take_children(a, &l);
    }
    const struct data_children *c = data_shown_children(&a->data);
    assert_int_equal(c->n, 4);
    assert_true(data_stack_age(&c->items[0].shot, 0) == 0);
    assert_true(data_stack_age(&c->items[0].shot, 1) == 2.0);
    app_free(a);
}

/* They are read often where they are shown: in Threads, also under what lies over it, and on no other screen. */
static void test_where_they_are_shown(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    assert_true(app_shows_children(a));
    fixture_press(a, "?");
    assert_true(app_shows_children(a));
    fixture_press(a, "Esc 3");
    assert_false(app_shows_children(a));
    fixture_press(a, "?");
    assert_false(app_shows_children(a));
    fixture_press(a, "Esc 6");
    assert_false(app_shows_children(a));
    fixture_press(a, "2");
    assert_true(app_shows_children(a));
    app_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_children),
        cmocka_unit_test(test_children_ages),
        cmocka_unit_test(test_where_they_are_shown),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
