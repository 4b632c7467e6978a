/* SPDX-License-Identifier: Apache-2.0 */
/* Arming by a key: what is wished for, what the screens say of it, and what came of it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "unit/tui_fixture.h"
#include "unit/tui_host.h"
#include "tui/core/action_table.h"
#include "tui/core/app_arm.h"
#include "tui/core/app_ask.h"
#include "tui/core/app_life.h"
#include "tui/core/app_take.h"

/* The agent tells of one lease, or of none. */
static void tell(struct app *a, const struct model_lease *l) {
    struct model_lease copy = l ? *l : (struct model_lease){.what = NULL};
    const struct model_status s = {.budget_pct = NAN, .leases = &copy, .n_leases = l != NULL};
    app_set_time(a, a->now_s + 1, a->epoch_s + 1);
    app_take_status(a, &s);
}

static struct model_lease lease(const char *what) {
    return (struct model_lease){.what = what, .left_s = NAN, .held_s = 2, .cost_pct = NAN};
}

static void test_trace_is_armed_and_disarmed(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    struct model_lease l = lease("trace");
    (void)state;
    fixture_press(a, "8 X y");
    struct fake_asked w = fake_host_take();
    assert_string_equal(w.arm.what, "trace");
    assert_false(w.disarm || w.arm.dry);
    assert_int_equal(w.arm.steps, 0);
    l.owners = 2;
    l.looks = 1;
    l.cost_pct = 0.25;
    tell(a, &l);
    assert_true(app_arm_wants_status(a));
    fixture_shows(a, 40, 160,
                  "module trace: from here and by 1 other client, until stopped; 1 step seen, costs 0.25 %");
    fixture_shows(a, 40, 160, "running module trace");
    fixture_press(a, "1");
    fixture_shows(a, 40, 200, "from here and by 1 other client");
    fixture_press(a, "8 X");
    w = fake_host_take();
    assert_string_equal(w.arm.what, "trace");
    assert_true(w.disarm);
    l.owners = 0;
    l.looks = 7;
    l.armed = true; /* the step goes on */
    tell(a, &l);
    fixture_press(a, "Home");
    fixture_shows(a, 40, 160, "module trace: ending; 7 steps seen");
    tell(a, NULL);
    assert_string_equal(a->message, "module trace: 7 steps seen");
    fixture_hides(a, 40, 160, "running module trace");
    fixture_press(a, "Home");
    fixture_shows(a, 40, 160, "module trace: 7 steps seen");
    app_free(a);
}

/* Of others, and of the settings: said too, and nothing of ours. */
static void test_armed_by_others(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    struct model_lease l = lease("nan");
    (void)state;
    l.owners = 1;
    l.by_config = true;
    l.left_s = 42;
    l.note = "torch tells of no\033 steps";
    tell(a, &l);
    fixture_press(a, "8");
    fixture_shows(
        a, 40, 160,
        "NaN search: by 1 client and by its settings, for 42s more; 0 steps seen; torch tells of no");
    fixture_hides(a, 40, 160, "\033");
    assert_false(arms_have_mine(&a->data.arms));
    tell(a, NULL);
    fixture_hides(a, 40, 160, "nan:");
    app_free(a);
}

/* The profiler: what it costs is asked for, said, and the same key does it; not when that was long ago. */
static void test_profiler_asks_first(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    struct model_lease l = lease("profiler");
    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        fixture_press(a, "8 K");
        struct fake_asked w = fake_host_take();
        assert_string_equal(w.arm.what, "profiler");
        assert_true(w.arm.dry && w.arm.steps == 3);
        l.owners = 1;
        l.note = NULL;
        tell(a, &l);
        l.owners = 0;
        l.note = "it would take 2 s";
        tell(a, &l);
        assert_string_equal(a->message, "it would take 2 s; press the key again to do it");
        app_set_time(a, a->now_s + 100, a->epoch_s + 100);
    }
    fixture_press(a, "K");
    assert_true(fake_host_take().arm.dry);
    l.owners = 1;
    tell(a, &l);
    l.owners = 0;
    tell(a, &l);
    fixture_press(a, "K");
    struct fake_asked w = fake_host_take();
    assert_string_equal(w.arm.what, "profiler");
    assert_true(!w.arm.dry && !w.disarm && w.arm.steps == 3);
    app_free(a);
}

static void test_refused(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    struct model_target t;
    struct err why;
    (void)state;
    fixture_press(a, "8 V y");
    assert_string_equal(fake_host_take().arm.what, "nan");
    (void)err_set(&why, ERR_FAILED, "no");
    app_arm_refused(a, &why);
    assert_false(arms_have_mine(&a->data.arms));
    fixture_press(a, "Home");
    fixture_shows(a, 40, 160, "NaN search: no");
    a->row_actions.readonly = true;
    fixture_press(a, "V");
    assert_string_equal(fake_host_take().arm.what, "");
    assert_non_null(strstr(a->message, "--readonly: nan-hunt"));
    a->row_actions.readonly = false;
    fixture_target(&t, FIXTURE_NORMAL);
    t.mode = MODEL_MODE_READONLY;
    app_take_target(a, &t);
    fixture_press(a, "X");
    assert_string_equal(fake_host_take().arm.what, "");
    assert_non_null(strstr(a->message, "there is none"));
    app_free(a);
}

/* What acts on the job asks first, once for each kind in a session; only y does it. */
static void test_asks_first(void **state) {
    static const char *const no[] = {"n", "Esc", "q", "X", "Enter", "ctrl-c"};
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    struct model_lease l = lease("trace");
    (void)state;
    fixture_press(a, "8");
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
        fixture_press(a, "X");
        fixture_shows(a, 24, 80, "Time the modules of some training steps?");
        fixture_shows(a, 24, 80, "y Yes  n No");
        fixture_press(a, no[i]);
        assert_string_equal(fake_host_take().arm.what, "");
        fixture_shows(a, 24, 80, "nothing was done");
        assert_false(fake_host.asked.quit);
    }
    fixture_press(a, "X y");
    assert_string_equal(fake_host_take().arm.what, "trace");
    tell(a, &l);
    fixture_press(a, "X"); /* ending it needs no answer */
    assert_true(fake_host_take().disarm);
    l.armed = false;
    l.owners = 0;
    tell(a, &l);
    fixture_press(a, "X"); /* nor does the same again */
    assert_string_equal(fake_host_take().arm.what, "trace");
    fixture_press(a, "V"); /* another kind does */
    fixture_shows(a, 24, 80, "Search the next steps for NaN?");
    assert_string_equal(fake_host_take().arm.what, "");
    app_free(a);
}

/* Every key that changes the job has a question, or asks in its own way, or is about what was typed. */
static void test_every_key_that_changes_the_job_asks(void **state) {
    (void)state;
    for (const struct action_def *d = action_table(); d->action; d++)
        if ((d->contexts & ACTION_CHANGES) && d->action != ACTION_PROFILER && d->action != ACTION_SHOW_REPL &&
            d->action != ACTION_SQL_RUN && d->action != ACTION_SQL_ENTER && d->action != ACTION_WATCH_LOCAL &&
            !app_ask_question(d->action))
            fail_msg("%s acts on the job without a question", d->name);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trace_is_armed_and_disarmed),
        cmocka_unit_test(test_armed_by_others),
        cmocka_unit_test(test_profiler_asks_first),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_asks_first),
        cmocka_unit_test(test_every_key_that_changes_the_job_asks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
