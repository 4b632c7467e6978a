/* SPDX-License-Identifier: Apache-2.0 */
/* The Steps screen: figures of known steps, what explains slow ones, where time is on the strips, zoom, freezing, filter, what is asked. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tui/core/app_feed.h"
#include "tui/core/app_life.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_take.h"
#include "client/sql/steps_model.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"
#include "unit/tui_job.h"
#include "unit/tui_tables.h"

#define COLUMNS                                                                                              \
    "timestamp|step|duration_ms|data_ms|forward_ms|backward_ms|optimizer_ms|comm_ms|gc_ms|other_ms|loss|lr|" \
    "grad_norm|nonfinite"

static bool near(double a, double b) { return fabs(a - b) < 1e-9 * (1 + fabs(b)); }

/* Steps of 100 ms, data 10 of them, gc 0; `line` is the newest. */
static struct steps_model model_with(const char *line, int others) {
    const char *lines[64] = {line};
    static char text[64][96];
    for (int i = 1; i <= others; i++) {
        (void)snprintf(text[i], sizeof text[i], "%.3f|%d|100|10||||| 0||||", 1000 - 0.1 * i, 100 - i);
        (void)snprintf(text[i], sizeof text[i], "%.3f|%d|100|10|||||0|||||", 1000 - 0.1 * i, 100 - i);
        lines[i] = text[i];
    }
    struct result *r = tables_rows(COLUMNS, lines);
    struct steps_model m = {.rows = NULL};
    steps_model_build(&m, r, NULL, NULL);
    result_unref(r);
    return m;
}

static void causes_are(const struct steps_model *m, const char *text) {
    struct strbuf out;
    strbuf_init(&out, 1000);
    steps_put_causes(m, &out);
    assert_string_equal(strbuf_str(&out), text);
    strbuf_fini(&out);
}

static void figures(void **state) {
    static const char *const lines[] = {"1000.0|5|400|||||||||||", "999.6|4|300|||||||||||",
                                        "999.3|3|200|||||||||||",  "999.1|2|100|||||||||||",
                                        "999.0|1||||||||||||",     NULL};
    struct result *r = tables_rows(COLUMNS, lines);
    struct steps_model m = {.rows = NULL};
    (void)state;
    steps_model_build(&m, r, NULL, NULL);
    assert_int_equal(m.n, 5);
    assert_true(near(m.rate, 4) && near(m.p50, 250) && near(m.p90, 370) && near(m.p99, 397));
    assert_true(isnan(m.trend)); /* five are too few */
    assert_true(isnan(m.rows[4].ms) && m.rows[4].cause == -1 && !m.has_loss && !m.has_data);
    steps_model_fini(&m);
    result_unref(r);
    steps_model_build(&m, NULL, NULL, NULL);
    assert_true(m.n == 0 && isnan(m.rate) && isnan(m.p50));
    causes_are(&m, "");
    steps_model_fini(&m);
}

/* Whatever a loss or a learning rate is, it is read in its column. */
static void numbers_fit(void **state) {
    static const struct {
        double v;
        const char *text;
    } cases[] = {{0.31534, "0.3153"},     {3e-3, "0.003"},          {0.00052413, "0.000524"},
                 {5.2413e-5, "5.24e-05"}, {-5.2413e-5, "-5.2e-05"}, {-1.2345e-300, "-1e-300"},
                 {123456, "1.23e+05"},    {1e-5, "1e-05"},          {NAN, "\xe2\x80\x94"}};
    char text[32];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        steps_put_number(text, sizeof text, cases[i].v);
        assert_string_equal(text, cases[i].text);
    }
}

/* What is more than usual goes to what has it: garbage first, for it lies within other parts, and nothing twice. */
static void what_explains_slow_steps(void **state) {
    struct steps_model m;
    (void)state;
    m = model_with("1000|100|200|110|||||0|||||", 20); /* all of it waits for data */
    assert_int_equal(m.slow, 1);
    assert_true(near(m.excess_ms, 100) && near(m.causes[STEPS_DATA], 1) && near(m.causes[STEPS_REST], 0));
    assert_int_equal(m.rows[0].cause, STEPS_DATA);
    causes_are(&m, "1 of 21 slow (over 1.2 x median), 100 ms in all: data 100 %");
    steps_model_fini(&m);
    m = model_with("1000|100|200|40|||||50|||||", 20); /* 30 data, 50 garbage, 20 nobody knows */
    assert_true(near(m.causes[STEPS_GC], 0.5) && near(m.causes[STEPS_DATA], 0.3) &&
                near(m.causes[STEPS_REST], 0.2));
    causes_are(&m, "1 of 21 slow (over 1.2 x median), 100 ms in all: gc 50 %, data 30 %, not known 20 %");
    steps_model_fini(&m);
    m = model_with("1000|100|200|110|||||100|||||", 20); /* it was collected while data was made */
    assert_true(near(m.causes[STEPS_GC], 1) && near(m.causes[STEPS_DATA], 0));
    assert_int_equal(m.rows[0].cause, STEPS_GC);
    steps_model_fini(&m);
    m = model_with("1000|100|200|||||||||||", 20); /* nothing is known of it */
    assert_true(near(m.causes[STEPS_REST], 1));
    causes_are(&m, "1 of 21 slow (over 1.2 x median), 100 ms in all: not known 100 %");
    steps_model_fini(&m);
    m = model_with("1000|100|119|29|||||0|||||", 20); /* not slow */
    assert_int_equal(m.slow, 0);
    causes_are(&m, "");
    steps_model_fini(&m);
}

/* Looks belong to the step that went on then. */
static void looks_of_steps(void **state) {
    static const char *const lines[] = {"10.0|3|1000|||||||||||", "9.0|2|1000|||||||||||",
                                        "8.0|1|1000|||||||||||", NULL};
    static const char *const looks[] = {"10.5|1|0", "9.9|1|0", "9.1|0|1", "9.0|1|0",
                                        "8.5|1|0",  "7.5||1",  "6.9|1|1", NULL};
    struct result *r = tables_rows(COLUMNS, lines), *l = tables_rows("timestamp|waits|gc", looks);
    struct steps_model m = {.rows = NULL};
    struct steps_column c;
    (void)state;
    steps_model_build(&m, r, l, NULL);
    assert_true(m.rows[0].looks == 2 && m.rows[0].waits == 1 && m.rows[0].gcs == 1);
    assert_true(m.rows[1].looks == 2 && m.rows[1].waits == 2 && m.rows[2].looks == 0);
    steps_model_column(&m, 0, 2, &c);
    assert_true(c.n == 2 && near(c.gil, 0.75) && near(c.gc, 0.25) && isnan(c.data));
    steps_model_column(&m, 2, 2, &c);
    assert_true(c.n == 1 && isnan(c.gil));
    steps_model_column(&m, 3, 2, &c);
    assert_int_equal(c.n, 0);
    steps_model_fini(&m);
    result_unref(r);
    result_unref(l);
}

/* ---- the screen ---- */

static void assert_shows(struct app *a, int rows, int cols, const char *what) {
    const char *text = fixture_draw(a, rows, cols);
    if (!strstr(text, what))
        fail_msg("'%s' is not on the screen:\n%s", what, text);
}

static struct app *opened(enum tables_kind kind) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    fixture_press(a, "6");
    tables_answer_all(a, kind);
    return a;
}

static void why_there_are_none(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    struct model_status s = {.strategy = "borrowed thread", .budget_pct = 1};
    (void)state;
    fixture_press(a, "6");
    assert_shows(a, 24, 80, "reading ...");
    tables_answer(a, FEED_STEPS, tables_steps(TABLES_NONE));
    assert_shows(a, 24, 100, "no optimizer step seen yet: none has ended since the agent was loaded");
    a->data.pulse.status_at_s = 1;
    s.steps_note = "torch 9.9 is not known: its callbacks are left alone";
    app_take_status(a, &s);
    assert_shows(a, 24, 100,
                 "no optimizer step seen yet: torch 9.9 is not known: its callbacks are left alone");
    s.steps_note = NULL;
    app_take_status(a, &s);
    assert_shows(a, 24, 100, "no optimizer step seen yet: torch does not report steps yet");
    app_free(a);
}

static void zoom_and_selection(void **state) {
    struct app *a = opened(TABLES_NORMAL);
    (void)state;
    assert_shows(a, 24, 80, "5.03 steps/s   median 184 ms  90 % 243 ms  99 % 324 ms");
    assert_shows(a, 24, 80, "22 of 150 slow (over 1.2 x median), 2430 ms in all: data 79 %, gc 21 %");
    fixture_press(a, "+");
    assert_shows(a, 24, 80, "a step a column is the finest");
    fixture_press(a, "- -");
    assert_shows(a, 24, 80, "4 steps a column: the longest of them");
    assert_shows(a, 24, 80, "4562"); /* all of them fit now */
    for (int i = 0; i < 130; i++)
        fixture_press(a, "Left");
    assert_shows(a, 24, 80, " 4581 ");
    fixture_press(a, "+ +");
    assert_shows(a, 24, 80, "4581"); /* the strips go where it is */
    fixture_press(a, "Esc");
    assert_shows(a, 24, 80, " 4711^"); /* the mark takes no digit away */
    fixture_press(a, "q");
    assert_true(fake_host.asked.quit);
    app_free(a);
}

static void slow_ones_alone(void **state) {
    struct app *a = opened(TABLES_NORMAL);
    (void)state;
    fixture_press(a, "\\ \"gc Enter");
    assert_shows(a, 24, 80, "Steps 8 of 150   FILTER gc");
    fixture_press(a, "Esc > I");
    assert_shows(a, 24, 80, "sorted by TIME");
    app_free(a);
}

/* Beside this rank all that end their steps with it; the newest step is not known in the others yet. */
static void all_ranks(void **state) {
    struct app *a = opened(TABLES_NORMAL);
    (void)state;
    fixture_press(a, "&");
    assert_shows(a, 24, 80, "this process is not a rank of a job that is watched");
    job_fixture_give(a, JOB_FIXTURE_HEALTHY);
    struct job_shot *f = a->job.shot;
    f->ranks[3].pid = a->pid = 4242;
    f->ranks[3].role = 1;
    f->ranks[3].shift = -4000;
    f->n_fan = 150;
    f->fan = arena_calloc(&f->arena, f->n_fan, sizeof *f->fan);
    assert_non_null(f->fan);
    for (size_t i = 0; i < f->n_fan; i++)
        f->fan[i] = (struct fleet_fan){.role = i < 50 ? 0 : 1,
                                       .n = 8,
                                       .step = 4710 - 4000 - 149 + (int64_t)i,
                                       .least = 150,
                                       .median = 184,
                                       .most = i == 148 ? 987 : 411};
    fixture_press(a, "&");
    assert_shows(a, 30, 100, "step 4710: ");
    assert_shows(a, 30, 100, " in rank 3; in 8 ranks 150 ms to 411 ms, median 184 ms");
    assert_shows(a, 45, 100, "all: most");
    assert_shows(a, 45, 100, "all: median");
    fixture_press(a, "Left Left");
    assert_shows(a, 30, 100, "in 8 ranks 150 ms to 987 ms, median 184 ms");
    for (int i = 0; i < 120; i++)
        fixture_press(a, "Left");
    assert_shows(a, 30, 100, "all ranks: the step is not known in the others of rank 3");
    fixture_press(a, "&");
    assert_shows(a, 30, 100, "of 150 slow (over 1.2 x median)");
    app_free(a);
}

static void assert_hides(struct app *a, int rows, int cols, const char *what) {
    fixture_hides(a, rows, cols, what);
}

/* No rank of the job is open: the rows are those of the one that is selected, as the database has them. */
static void of_a_database(void **state) {
    struct app *a = job_fixture_app(JOB_FIXTURE_HEALTHY, "p", false);
    const struct app_feed *f = &a->feeds.feeds[FEED_STEPS];
    (void)state;
    a->job.has_past = a->config.job_is_closed = true;
    for (size_t i = 0; i < a->job.shot->n_hosts; i++)
        a->job.shot->hosts[i].is_here = false;
    fixture_press(a, "6");
    assert_shows(a, 24, 80, "8/8 ranks");
    assert_shows(a, 24, 80, "reading ...");
    assert_non_null(strstr(f->text, " AND rank = 0 ORDER BY"));
    tables_answer(a, FEED_STEPS, tables_steps(TABLES_NORMAL));
    assert_shows(a, 24, 80, "rank 0: Steps 150");
    assert_shows(a, 24, 80, "  4711 ");
    /* those of another rank are not shown as its own, nor is the answer that was under way */
    a->feeds.feeds[FEED_STEPS].wanted = false;
    a->feeds.feeds[FEED_STEPS].running = true;
    fixture_press(a, "]");
    assert_shows(a, 24, 80, "reading ...");
    a->feeds.feeds[FEED_STEPS].wanted = true;
    tables_answer(a, FEED_STEPS, tables_steps(TABLES_LATER));
    assert_shows(a, 24, 80, "reading ...");
    app_screen_update_all(a);
    assert_non_null(strstr(f->text, " AND rank = 1 ORDER BY"));
    tables_answer(a, FEED_STEPS, tables_steps(TABLES_LATER));
    assert_shows(a, 24, 80, "rank 1: Steps 150");
    assert_shows(a, 24, 80, "  4712 ");
    fixture_press(a, "[ [");
    tables_answer(a, FEED_STEPS, tables_steps(TABLES_LATER));
    app_screen_update_all(a);
    assert_non_null(strstr(f->text, " AND rank = 7 ORDER BY"));
    tables_answer(a, FEED_STEPS, tables_steps(TABLES_NONE));
    assert_shows(a, 24, 80, "the database has no step of rank 7");
    /* an error is not the rows of the rank before, and is tried again, though the view is frozen */
    fixture_press(a, "]");
    tables_answer(a, FEED_STEPS, tables_steps(TABLES_NONE)); /* over a longer time, of rank 7 */
    app_screen_update_all(a);
    tables_answer(a, FEED_STEPS, tables_steps(TABLES_NORMAL));
    assert_shows(a, 24, 80, "rank 0: Steps 150");
    fixture_press(a, "]");
    tables_fail(a, FEED_STEPS, "the server does not answer");
    assert_shows(a, 24, 80, "the server does not answer");
    assert_hides(a, 24, 80, "4711");
    fixture_press(a, "[ ]");
    assert_hides(a, 24, 80, "4711");
    data_set_paused(&a->data, true);
    tables_answer(a, FEED_STEPS, tables_steps(TABLES_NORMAL));
    app_set_time(a, a->now_s + 60, a->epoch_s + 60);
    app_tick(a);
    if (a->feeds.feeds[FEED_STEPS].wanted)
        tables_answer(a, FEED_STEPS, tables_steps(TABLES_LATER));
    assert_shows(a, 24, 80, "rank 1: Steps 150");
    app_free(a);
}

/* What is frozen stays, though newer steps come; then they are there. */
static void freezing(void **state) {
    struct app *a = opened(TABLES_NORMAL);
    (void)state;
    fixture_press(a, "Z");
    app_set_time(a, a->now_s + 3, a->epoch_s + 3);
    app_screen_update_all(a);
    assert_false(a->feeds.feeds[FEED_STEPS].wanted);
    app_feed_ask(a, FEED_STEPS, "x");
    tables_answer(a, FEED_STEPS, tables_steps(TABLES_LATER));
    assert_shows(a, 24, 80, "  4711 ");
    assert_shows(a, 24, 80, "Steps have stopped: 150");
    fixture_press(a, "Z");
    assert_shows(a, 24, 80, "  4712 ");
    app_free(a);
}

/* As many as are drawn, over a time in which there are that many. */
static void what_is_asked(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    const struct app_feed *f = app_feed_get(a, FEED_STEPS);
    (void)state;
    fixture_press(a, "6");
    assert_non_null(strstr(f->text, "now() - 64 ORDER BY timestamp DESC LIMIT 256"));
    tables_answer_all(a, TABLES_NORMAL);
    app_screen_update_all(a);
    assert_non_null(strstr(f->text, "now() - 262144 ORDER BY timestamp DESC LIMIT 256"));
    (void)fixture_draw(a, 24, 80);
    fixture_press(a, "- - - -");
    app_screen_update_all(a);
    assert_non_null(strstr(f->text, "LIMIT 1024"));
    app_free(a);
}

/* No more steps are read than are shown, about, and looks of their time alone. */
static void how_much_is_read(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    const struct app_feed *f = app_feed_get(a, FEED_STEPS), *looks = app_feed_get(a, FEED_STEP_SAMPLES);
    static char text[300][64];
    const char *lines[301] = {NULL};
    (void)state;
    for (int i = 0; i < 256; i++) { /* 5 ms each: 1.3 s */
        (void)snprintf(text[i], sizeof text[i], "%.3f|%d|5|||||||||||", FIXTURE_EPOCH_S - 0.005 * i,
                       1000 - i);
        lines[i] = text[i];
    }
    fixture_press(a, "6");
    assert_non_null(strstr(looks->text, "> now() - 6")); /* 60 s or 64: no older than steps */
    for (int tries = 0; tries < 9 && f->wanted; tries++) {
        tables_answer(a, FEED_STEPS, tables_rows(COLUMNS, lines));
        app_screen_update_all(a);
    }
    assert_non_null(strstr(f->text, "> now() - 2 ORDER BY timestamp DESC LIMIT 256"));
    tables_answer(a, FEED_STEP_SAMPLES, tables_step_looks(TABLES_NORMAL));
    app_set_time(a, a->now_s + 5, a->epoch_s + 5);
    app_screen_update_all(a);
    assert_non_null(strstr(looks->text, "> now() - 2 AND "));
    app_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures),
        cmocka_unit_test(numbers_fit),
        cmocka_unit_test(what_explains_slow_steps),
        cmocka_unit_test(looks_of_steps),
        cmocka_unit_test(why_there_are_none),
        cmocka_unit_test(zoom_and_selection),
        cmocka_unit_test(slow_ones_alone),
        cmocka_unit_test(all_ranks),
        cmocka_unit_test(of_a_database),
        cmocka_unit_test(freezing),
        cmocka_unit_test(what_is_asked),
        cmocka_unit_test(how_much_is_read),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    (void)setenv("TZ", "UTC", 1);
    tzset();
    return cmocka_run_group_tests_name("tui_steps", tests, NULL, NULL);
}
