/* SPDX-License-Identifier: Apache-2.0 */
/* Several targets: each keeps what is known of it, the one that is shown is the one that was asked for, and one that ends says so. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/core/app.h"
#include "tui/core/app_arm.h"
#include "tui/core/app_life.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_take.h"
#include "tui/core/targets.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"

static const char *draw(struct app *a) { return fixture_draw(a, 50, 200); }

static void assert_shows(struct app *a, const char *what) {
    if (!strstr(draw(a), what))
        fail_msg("'%s' is not on the screen:\n%s", what, draw(a));
}

static void assert_hides(struct app *a, const char *what) {
    if (strstr(draw(a), what))
        fail_msg("'%s' is on the screen:\n%s", what, draw(a));
}

/* A snapshot of another job: one thread, in one function. */
static void other_snapshot(struct app *a, int i, const char *func, int step) {
    struct model_snapshot s;
    fixture_snapshot(&s, FIXTURE_NORMAL, step);
    s.n_threads = 1;
    s.threads[0].tid = 7000 + i;
    s.threads[0].frames[0].func = arena_strdup(&s.arena, func);
    s.gil_tid = 7000 + i;
    s.process.cpu_pct = 12.5;
    targets_take_snapshot(a, i, &s);
    assert_null(s.threads);
}

/* The fixture's job is the first one, 7001 and 7002 are others. */
static struct app *several(void) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    assert_int_equal(targets_add(a, 4242, "4242"), 0);
    assert_int_equal(targets_add(a, 7001, "serve.py"), 1);
    assert_int_equal(targets_add(a, 7002, "unix:/run/x"), 2);
    for (int i = 1; i <= 2; i++) {
        struct model_target t;
        fixture_target(&t, FIXTURE_NORMAL);
        t.pid = 7000 + i;
        t.cmdline = i == 1 ? "python serve.py" : "python eval.py";
        targets_take_state(a, i, SESSION_CONNECTED, NULL, 0);
        targets_take_target(a, i, &t);
        other_snapshot(a, i, i == 1 ? "serve_one" : "eval_one", 0);
    }
    return a;
}

static void each_has_its_own(void **state) {
    struct app *a = several();
    (void)state;
    assert_int_equal(a->pid, 4242);
    assert_shows(a, "1/3  pid 4242");
    assert_shows(a, "Stack of MainThread (4242)");
    fixture_press(a, "p j Enter");
    assert_int_equal(fake_host_take().show_target, 2);
    targets_show(a, 1); /* as the host does */
    assert_int_equal(a->pid, 7001);
    assert_shows(a, "2/3  pid 7001");
    assert_shows(a, "python serve.py");
    assert_shows(a, "Stack of MainThread (7001)");
    assert_shows(a, "serve_one");
    struct model_snapshot s;
    fixture_snapshot(&s, FIXTURE_NORMAL, 9); /* the first one goes on aside */
    targets_take_snapshot(a, 0, &s);
    assert_int_equal(targets_data(a, 0)->received, 4);
    assert_int_equal(a->data.received, 1);
    targets_show(a, 0);
    assert_shows(a, "1/3  pid 4242");
    assert_int_equal(a->data.received, 4);
    app_free(a);
}

/* Threads of all of them, each process's under its own branch; C goes there. */
static void threads_are_a_tree(void **state) {
    struct app *a = several();
    (void)state;
    assert_shows(a, "\xe2\x94\x9c\xe2\x94\x80 MainThread");
    assert_shows(a, "\xe2\x94\x94\xe2\x94\x80 MainThread");
    assert_shows(a, "serve_one");
    assert_shows(a, "eval_one");
    fixture_press(a, "End");
    assert_shows(a, "Stack of MainThread (7002)");
    assert_shows(a, "process 7002 [agent]: python eval.py");
    other_snapshot(a, 2, "eval_two", 1); /* the selection stays where it is */
    assert_shows(a, "Stack of MainThread (7002)");
    assert_shows(a, "eval_two");
    fixture_press(a, ": \"target Space \"2 Enter");
    assert_int_equal(fake_host_take().show_target, 2);
    assert_int_equal(targets_named(a, "7002"), 2);
    assert_int_equal(targets_named(a, "4"), -1);
    assert_int_equal(targets_named(a, "1x"), -1);
    fixture_press(a, "C");
    struct fake_asked w = fake_host_take();
    assert_int_equal(w.show_target, 3);
    assert_int_equal(w.attach, 0);
    app_free(a);
}

static void one_ends_the_others_go_on(void **state) {
    struct app *a = several();
    struct err why = {ERR_LOST, "process 7001 was killed by signal 9"};
    (void)state;
    targets_take_state(a, 1, SESSION_LOST, &why, 0);
    assert_int_equal(app_exit_status(a), 0);
    assert_hides(a, "TARGET GONE");
    fixture_press(a, "p j");
    assert_shows(a, "GONE");
    assert_shows(a, "process 7001 was killed by signal 9");
    fixture_press(a, "q L");
    assert_shows(a, "7001: the target is gone: process 7001 was killed by signal 9");
    targets_show(a, 1);
    fixture_press(a, "2");
    assert_int_equal(app_exit_status(a), ERR_LOST);
    assert_shows(a, "TARGET GONE: process 7001 was killed");
    assert_shows(a, "serve_one"); /* what it did last */
    targets_show(a, 2);
    assert_int_equal(app_exit_status(a), 0);
    assert_shows(a, "Stack of MainThread (7002)");
    app_free(a);
}

/* Samples are of the one that is shown; each has its own counts. */
static void samples_are_apart(void **state) {
    struct app *a = several();
    (void)state;
    fixture_press(a, "4");
    fixture_samples(a, 20);
    assert_shows(a, "AdamW.step");
    targets_show(a, 1);
    assert_hides(a, "AdamW.step");
    fixture_samples(a, 4);
    assert_shows(a, "AdamW.step");
    targets_show(a, 0);
    struct sample_store_health h;
    sample_store_get_health(a->data.tally, &h);
    assert_int_equal(h.samples, 20 * 73 - h.torn - h.undefined);
    app_free(a);
}

static void there_is_an_end(void **state) {
    struct app *a = several();
    (void)state;
    while (a->targets.n < TARGETS_MAX)
        assert_true(targets_add(a, 8000 + a->targets.n, "more") >= 0);
    assert_int_equal(targets_add(a, 9999, "too many"), -1);
    fixture_press(a, "p");
    assert_shows(a, "Targets 16");
    assert_shows(a, "connecting");
    app_free(a);
}

static void one_alone(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    assert_hides(a, "1/1");
    fixture_press(a, "p");
    assert_shows(a, "start with several");
    assert_shows(a, "1*");
    fixture_press(a, "Enter");
    assert_string_equal(app_screen_top(a)->def->name, "threads");
    app_free(a);
}

/* Any switching, data and ends, with any screen open. */
static void anything(void **state) {
    static const char *const keys[] = {"1", "2",   "3",     "4",     "L", "p", "q",
                                       "j", "End", "Enter", "Space", "a", "H", "?"};
    struct app *a = several();
    (void)state;
    srand(3);
    for (int i = 0; i < 3000; i++) {
        int at = rand() % 3;
        switch (rand() % 6) {
        case 0:
            targets_show(a, at);
            break;
        case 1:
            if (at != a->targets.shown)
                other_snapshot(a, at, "f", i);
            break;
        case 2:
            if (at != a->targets.shown)
                targets_take_state(a, at, (enum session_state)(rand() % 5), NULL, 1);
            break;
        case 3:
            fixture_samples(a, 1);
            break;
        default:
            fixture_press(a, keys[(size_t)rand() % (sizeof keys / sizeof keys[0])]);
        }
        (void)fake_host_take();
        (void)fixture_draw(a, 24, 80);
    }
    app_free(a);
}

/* A question about the last target is not one about the next, nor is a variable of it watched there. */
static void questions_end_with_the_target(void **state) {
    (void)state;
    for (int one = 0; one < 2; one++) {
        struct app *a = one ? fixture_app(FIXTURE_NORMAL, 3, false) : several();
        struct model_setting setting = {.key = "probing.torch_profiling", .value = "on"};
        struct model_status status = {.settings = &setting, .n_settings = 1};
        fixture_press(a, "B");
        assert_shows(a, "Start debugpy in the job?");
        app_arm_watch(a, "loss", "train_step");
        (void)fake_host_take();
        if (one)
            app_set_pid(a, 4300);
        else
            targets_show(a, 1);
        assert_hides(a, "Start debugpy in the job?");
        fixture_press(a, "y");
        assert_int_equal(a->ask.action, ACTION_NONE);
        assert_false(a->ask.agreed[ACTION_DEBUG]);
        assert_null(a->debug.def);
        app_take_status(a, &status);
        assert_string_equal(fake_host_take().config.key, "");
        app_free(a);
    }
}

/* A recording, a port: their pid is not known from here, and what comes after one is another. */
static void pid_is_unknown(void **state) {
    static const pid_t next[] = {4242, 0};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
        struct model_target t;
        fixture_samples(a, 2);
        app_set_pid(a, next[i]);
        assert_false(a->data.has_target);
        assert_int_equal(a->data.received, 0);
        assert_null(a->data.tally);
        assert_hides(a, "train_step");
        fixture_target(&t, FIXTURE_NORMAL);
        app_take_target(a, &t);
        app_set_pid(a, 4242); /* again: what is known stays, if it is known to be the same */
        assert_int_equal(a->data.has_target, next[i] > 0);
        app_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_has_its_own),
        cmocka_unit_test(threads_are_a_tree),
        cmocka_unit_test(one_ends_the_others_go_on),
        cmocka_unit_test(samples_are_apart),
        cmocka_unit_test(there_is_an_end),
        cmocka_unit_test(one_alone),
        cmocka_unit_test(questions_end_with_the_target),
        cmocka_unit_test(pid_is_unknown),
        cmocka_unit_test(anything),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    (void)setenv("TZ", "UTC", 1);
    return cmocka_run_group_tests_name("tui_targets", tests, NULL, NULL);
}
