/* SPDX-License-Identifier: Apache-2.0 */
/* The Repl screen: what is asked of the job, what is shown of the answers, and what keys do meanwhile. */
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
#include "tui/core/app_input.h"
#include "tui/core/app_life.h"
#include "tui/core/app_repl.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_take.h"
#include "tui/view/editor.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"
#include "unit/tui_repl.h"

#define CAUGHT "Traceback (most recent call last):\nKeyboardInterrupt\n"

static struct app *repl_app(void) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    fixture_press(a, "R");
    assert_ptr_equal(app_screen_top(a)->def, &screen_repl);
    return a;
}

static void test_a_statement(void **state) {
    struct app *a = repl_app();
    (void)state;
    repl_fixture_type(a, "q*2 if J else ?:"); /* letters are letters */
    fixture_shows(a, 24, 80, ">>> q*2 if J else ?:");
    fixture_press(a, "ctrl-c");
    fixture_hides(a, 24, 80, "q*2");
    repl_fixture_run(a, "count * 6", "said\n", "42", NULL);
    fixture_shows(a, 24, 80, ">>> count * 6");
    fixture_shows(a, 24, 80, "said");
    fixture_shows(a, 24, 80, "42");
    repl_fixture_run(a, "1 / 0", NULL, NULL,
                     "Traceback (most recent call last):\nZeroDivisionError: division by zero\n");
    fixture_shows(a, 24, 80, "ZeroDivisionError: division by zero");
    assert_int_equal(a->repl.engine.history.n, 2);
    fixture_press(a, "Up Up");
    fixture_shows(a, 24, 80, "code 1 of 2 that was run");
    fixture_press(a, "Down Down ctrl-r \"coun Enter Enter");
    repl_fixture_asked(a, REPL_WHOLE, "count * 6");
    app_free(a);
}

/* What the job says of the text decides whether it is run; an empty line ends a block; lines are as deep as the one before. */
static void test_blocks(void **state) {
    struct app *a = repl_app();
    (void)state;
    repl_fixture_type(a, "def f(x):");
    fixture_press(a, "Enter");
    repl_fixture_asked(a, REPL_WHOLE, "def f(x):");
    repl_fixture_answer(a, NULL, WIRE_CODE_MORE, NULL);
    repl_fixture_type(a, "return x");
    fixture_press(a, "Enter");
    repl_fixture_asked(a, REPL_WHOLE, "def f(x):\n    return x");
    repl_fixture_answer(a, NULL, WIRE_CODE_BLOCK, NULL);
    fixture_shows(a, 24, 80, "...     return x");
    fixture_press(a, "Enter");
    repl_fixture_asked(a, REPL_WHOLE, "def f(x):\n    return x\n    ");
    repl_fixture_answer(a, NULL, WIRE_CODE_BLOCK, NULL);
    repl_fixture_asked(a, REPL_RUN, "def f(x):\n    return x");
    repl_fixture_answer(a, NULL, NULL, NULL);
    repl_fixture_paste(a, "if 1:\n    a = 1\nq\n"); /* pasted lines are not run by themselves */
    assert_int_equal(a->repl.engine.asked, REPL_NOTHING);
    assert_false(fake_host.asked.quit);
    fixture_press(a, "F5");
    repl_fixture_asked(a, REPL_RUN, "if 1:\n    a = 1\nq");
    repl_fixture_answer(a, NULL, NULL, NULL);
    repl_fixture_type(a, "   ");
    fixture_press(a, "Enter F5");
    assert_int_equal(a->repl.engine.asked, REPL_NOTHING);
    fixture_shows(a, 24, 80, "nothing to run");
    app_free(a);
}

/* Lines with %: looks go to the querier, code to the session, settings are kept; all is in the log and in the history. */
static void test_lines_with_percent(void **state) {
    struct app *a = repl_app();
    (void)state;
    fixture_shows(a, 24, 80, "%help lists commands");
    repl_fixture_type(a, "%help");
    fixture_press(a, "Enter");
    assert_int_equal(a->repl.engine.asked, REPL_NOTHING);
    for (const struct magic_def *m = magics; m->name; m++)
        fixture_shows(a, 40, 80, m->help);
    repl_fixture_look(a, "%bt", MAGIC_STACKS, "Thread MainThread (4242) R\n    work (job.py:4)\n", NULL);
    fixture_shows(a, 24, 80, ">>> %bt");
    fixture_shows(a, 24, 80, "    work (job.py:4)");
    fixture_press(a, "Esc y o"); /* what came last is what is copied */
    assert_string_equal(fake_host.text, "Thread MainThread (4242) R\n    work (job.py:4)\n");
    repl_fixture_look(a, "%q SELECT 6 * 7 AS answer", MAGIC_QUERY, "answer\n42\n", NULL);
    assert_int_equal(fake_host.magic_cols, 78);
    fixture_shows(a, 24, 80, ">>> %q SELECT 6 * 7 AS answer");
    repl_fixture_look(a, "%q SELEC", MAGIC_QUERY, NULL, "near \"SELEC\": syntax error");
    fixture_shows(a, 24, 80, "near \"SELEC\": syntax error");
    repl_fixture_type(a, "%tensor");
    fixture_press(a, "Enter");
    fixture_shows(a, 24, 80, "did you mean '%tensors'?");
    assert_int_equal(a->repl.engine.history.n, 5);
    fixture_press(a, "Up");
    fixture_shows(a, 24, 80, ">>> %tensor");
    repl_fixture_type(a, "s");
    fixture_press(a, "Home Right F5"); /* wherever the cursor stands, and by the other key, too */
    assert_int_equal(a->repl.engine.asked, REPL_QUERY);
    app_repl_forget(a); /* another target: its answer is nobody's */
    struct querier_answer late = {.kind = QUERIER_MAGIC, .error_at = -1};
    strbuf_init(&late.text, 0);
    (void)strbuf_adds(&late.text, "of the one before\n");
    app_repl_take_query(a, &late);
    fixture_hides(a, 24, 80, "of the one before\n");
    app_free(a);
}

static void test_percent_runs_code(void **state) {
    struct app *a = repl_app();
    (void)state;
    repl_fixture_type(a, "%who");
    fixture_press(a, "Enter");
    assert_int_equal(a->repl.engine.asked, REPL_RUN);
    assert_non_null(strstr(strbuf_str(&a->repl.engine.code), "globals()"));
    repl_fixture_answer(a, "count    int\n", NULL, NULL);
    fixture_shows(a, 24, 80, ">>> %who");
    fixture_hides(a, 24, 80, "globals()");
    fixture_hides(a, 24, 80, "ms in the job");
    repl_fixture_type(a, "%time count");
    fixture_press(a, "Enter");
    repl_fixture_asked(a, REPL_RUN, "count");
    repl_fixture_answer(a, NULL, "7", NULL);
    fixture_shows(a, 24, 80, "0 ms in the job");
    repl_fixture_type(a, "%timeout 2.5");
    fixture_press(a, "Enter");
    repl_fixture_type(a, "%frame 4242:3");
    fixture_press(a, "Enter");
    fixture_shows(a, 24, 80, "with the names of frame 4242:3");
    repl_fixture_type(a, "x");
    fixture_press(a, "F5");
    struct wire_eval asked = repl_engine_question(&a->repl.engine);
    assert_true(asked.timeout_s == 2.5 && asked.tid == 4242 && asked.depth == 3 && asked.keep);
    struct wire_evaluated slow = {.timed_out = true};
    app_repl_take(a, &slow);
    fixture_shows(a, 24, 80, "timed out after 2.5 s and was interrupted; %timeout S raises the limit");
    app_set_pid(a, 4711); /* that frame is not one of this target */
    app_set_pid(a, 4242);
    app_set_state(a, SESSION_CONNECTED, NULL, 0);
    asked = repl_engine_question(&a->repl.engine);
    assert_true(asked.tid == 0 && asked.timeout_s == 2.5);
    app_free(a);
}

/* A look that takes its time: keys wait for it, ctrl-c ends it, a connection that breaks does not; and none needs an agent. */
static void test_looks_take_time(void **state) {
    struct querier_answer ended = {.kind = QUERIER_MAGIC, .error_at = -1, .cancelled = true};
    struct err why = {ERR_LOST, "gone"};
    struct app *a = repl_app();
    (void)state;
    repl_fixture_type(a, "%steps");
    fixture_press(a, "Enter");
    app_set_time(a, a->now_s + 3, a->epoch_s + 3);
    fixture_shows(a, 24, 80, "looking 3 s: ctrl-c ends it");
    fixture_press(a, "m Tab"); /* nothing else can be asked now */
    fixture_shows(a, 24, 80, "a request is running: ctrl-c ends it");
    fixture_press(a, "ctrl-u");
    app_set_state(a, SESSION_RECONNECTING, &why, 1);
    assert_int_equal(a->repl.engine.asked, REPL_QUERY);
    fixture_shows(a, 24, 80, "the connection broke");
    repl_fixture_type(a, "%threads");
    fixture_press(a, "Enter");
    repl_fixture_type(a, "x");
    fixture_shows(a, 24, 80, "keys wait");
    fixture_press(a, "ctrl-c");
    assert_true(fake_host.asked.cancel_magic);
    app_repl_take_query(a, &ended);
    fixture_shows(a, 24, 80, "interrupted");
    assert_int_equal(a->repl.engine.asked, REPL_NOTHING);
    fixture_press(a, "ctrl-c");
    repl_fixture_look(a, "%threads", MAGIC_QUERY, "  tid | name\n", NULL);
    fixture_shows(a, 24, 80, "  tid | name");
    repl_fixture_type(a, "%who");
    fixture_press(a, "Enter"); /* but code does */
    assert_int_equal(a->repl.engine.asked, REPL_NOTHING);
    fixture_shows(a, 24, 80, "not connected to the job");
    app_free(a);
}

/* Long answers are cut at the end of a line, and that is said. */
static void test_a_look_finds_much(void **state) {
    struct app *a = repl_app();
    char *text = malloc(APP_REPL_QUERY_TEXT + 1001);
    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < APP_REPL_QUERY_TEXT + 1000; i++)
        text[i] = i % 100 == 99 ? '\n' : 'x';
    text[APP_REPL_QUERY_TEXT + 1000] = '\0';
    repl_fixture_look(a, "%q SELECT 1", MAGIC_QUERY, text, NULL);
    fixture_shows(a, 24, 120, "there is more than is kept here");
    assert_in_range(a->repl.last.len, APP_REPL_QUERY_TEXT - 100, APP_REPL_QUERY_TEXT);
    assert_int_equal(a->repl.last.len % 100, 0);
    free(text);
    app_free(a);
}

static void test_completing_percent(void **state) {
    struct app *a = repl_app();
    (void)state;
    repl_fixture_type(a, "%t");
    assert_int_equal(a->query.pending, APP_QUERY_TABLES); /* which tables there are is known soon */
    fixture_press(a, "Tab");
    fixture_shows(a, 24, 80, "1 of 4");
    fixture_shows(a, 24, 80, "CODE: run code and show how long it took");
    repl_fixture_type(a, "h");
    fixture_press(a, "Enter");
    fixture_shows(a, 24, 80, ">>> %threads");
    fixture_press(a, "ctrl-u % q Space \"sel Tab");
    fixture_shows(a, 24, 80, ">>> %q select");
    repl_fixture_type(a, " * from Python.step");
    fixture_press(a, "Tab");
    fixture_shows(a, 24, 80, ">>> %q select * from Python.steps");
    fixture_press(a, "ctrl-u");
    repl_fixture_type(a, "%q SELECT 'x");
    fixture_press(a, "Tab");
    fixture_shows(a, 24, 80, "no completion");
    fixture_press(a, "ctrl-u");
    repl_fixture_type(a, "%time model.la");
    fixture_press(a, "Tab");
    repl_fixture_asked(a, REPL_NAMES, "model.la"); /* the job is asked of the code alone */
    repl_fixture_answer(a, NULL, "layers\nlayout", NULL);
    fixture_shows(a, 24, 80, ">>> %time model.lay");
    fixture_press(a, "Enter");
    fixture_shows(a, 24, 80, ">>> %time model.layers");
    app_free(a);
}

static void test_completion(void **state) {
    struct app *a = repl_app();
    (void)state;
    repl_fixture_complete(a, "x = model.la", "layer_norm\nlayers\nlayout");
    fixture_shows(a, 24, 80, ">>> x = model.lay");
    fixture_shows(a, 24, 80, "layer_norm");
    fixture_shows(a, 24, 80, "1 of 3");
    repl_fixture_type(a, "e");
    fixture_hides(a, 24, 80, "layout");
    fixture_press(a, "Down Enter");
    fixture_shows(a, 24, 80, ">>> x = model.layers");
    assert_int_equal(a->repl.engine.asked, REPL_NOTHING);
    fixture_press(a, "ctrl-u");
    repl_fixture_complete(a, "os.pa", "path");
    fixture_shows(a, 24, 80, ">>> os.path");
    fixture_press(a, "ctrl-u");
    repl_fixture_complete(a, "zzz", "");
    fixture_shows(a, 24, 80, "the job has no name");
    fixture_press(a, "ctrl-u Tab"); /* where nothing stands it indents */
    assert_int_equal(a->repl.engine.asked, REPL_NOTHING);
    fixture_press(a, "ctrl-u c o Tab");
    repl_fixture_asked(a, REPL_NAMES, "co");
    repl_fixture_type(a, "x"); /* what was typed meanwhile means something else */
    repl_fixture_answer(a, NULL, "count", NULL);
    fixture_shows(a, 24, 80, ">>> cox");
    app_free(a);
}

/* Keys behind an Enter wait for what becomes of it, and are not lost; ctrl-c drops them. */
static void test_typing_ahead(void **state) {
    struct app *a = repl_app();
    (void)state;
    repl_fixture_type(a, "a");
    fixture_press(a, "Enter");
    repl_fixture_type(a, "b");
    fixture_press(a, "Enter c Left");
    fixture_shows(a, 24, 80, "4 keys wait");
    repl_fixture_asked(a, REPL_WHOLE, "a");
    repl_fixture_answer(a, NULL, WIRE_CODE_DONE, NULL);
    repl_fixture_asked(a, REPL_RUN, "a");
    fixture_press(a, "d");
    repl_fixture_answer(a, NULL, "1", NULL);
    repl_fixture_asked(a, REPL_WHOLE, "b");
    repl_fixture_answer(a, NULL, WIRE_CODE_DONE, NULL);
    fixture_shows(a, 24, 80, ">>> dc");
    repl_fixture_asked(a, REPL_RUN, "b");
    fixture_press(a, "Enter e ctrl-c");
    assert_true(fake_host.asked.interrupt);
    assert_false(fake_host.asked.quit);
    fixture_shows(a, 24, 80, "ending");
    repl_fixture_answer(a, NULL, NULL, CAUGHT);
    fixture_shows(a, 24, 80, ">>> dc");
    assert_int_equal(a->repl.engine.asked, REPL_NOTHING);
    app_free(a);
}

/* Enter is for the text that was there: what is pasted after it does not run by it, nor by one typed ahead. */
static void test_enter_is_for_its_text(void **state) {
    struct app *a = repl_app();
    (void)state;
    repl_fixture_type(a, "a");
    fixture_press(a, "Enter");
    repl_fixture_paste(a, "\nimport os\n");
    fixture_shows(a, 24, 80, "nothing was pasted: the Enter before it still waits");
    repl_fixture_asked(a, REPL_WHOLE, "a");
    repl_fixture_answer(a, NULL, WIRE_CODE_DONE, NULL);
    repl_fixture_asked(a, REPL_RUN, "a");
    fixture_press(a, "b Enter");
    repl_fixture_paste(a, "os");
    repl_fixture_answer(a, NULL, "1", NULL);
    repl_fixture_asked(a, REPL_WHOLE, "b");
    fixture_press(a, "ctrl-r \"a Enter"); /* the editor has another text now */
    repl_fixture_answer(a, NULL, WIRE_CODE_DONE, NULL);
    assert_int_equal(a->repl.engine.asked, REPL_NOTHING);
    fixture_shows(a, 24, 80, "nothing was run: the code has changed since Enter");
    fixture_shows(a, 24, 80, ">>> a");
    app_free(a);
}

/* What is too long to be pasted is missing, which is told. */
static void test_long_pastes(void **state) {
    struct app *a = repl_app();
    struct input_event e = {.kind = INPUT_EVENT_PASTE, .text = "x = 1", .is_cut = true};
    char *big = malloc(EDITOR_MAX + 1);
    (void)state;
    app_input(a, &e);
    fixture_shows(a, 24, 80, "too long: its end is missing");
    fixture_shows(a, 24, 80, ">>> x = 1");
    assert_non_null(big);
    memset(big, 'y', EDITOR_MAX);
    big[EDITOR_MAX] = '\0';
    repl_fixture_paste(a, big);
    fixture_shows(a, 24, 80, "nothing was pasted: the text would be longer than 64 KiB");
    fixture_shows(a, 24, 80, ">>> x = 1");
    free(big);
    app_free(a);
}

static void test_output_scrolls(void **state) {
    struct app *a = repl_app();
    char text[4096];
    size_t used = 0;
    (void)state;
    for (int i = 0; i < 100; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "line %d of it\n", i);
    repl_fixture_run(a, "print(log)", text, NULL, NULL);
    fixture_shows(a, 24, 80, "line 99 of it");
    fixture_press(a, "PgUp");
    fixture_hides(a, 24, 80, "line 99 of it");
    fixture_shows(a, 24, 80, "more below");
    repl_fixture_run(a, "2", NULL, "2", NULL); /* what is run is seen */
    fixture_shows(a, 24, 80, "line 99 of it");
    fixture_press(a, "Esc g");
    fixture_shows(a, 24, 80, ">>> print(log)");
    fixture_press(a, "/ \"57 Enter");
    fixture_shows(a, 24, 80, "line 57 of it");
    fixture_press(a, "y");
    assert_true(fake_host.asked.copy);
    assert_string_equal(fake_host.text, "2");
    fixture_press(a, "Y");
    assert_non_null(strstr(fake_host.text, ">>> print(log)\nline 0 of it\n"));
    fixture_press(a, "G o x");
    fixture_shows(a, 24, 80, ">>> x");
    app_free(a);
}

/* It comes back as it was left; it works while the view stands still, and says what it is of. */
static void test_it_is_kept(void **state) {
    struct app *a = repl_app();
    (void)state;
    repl_fixture_run(a, "1 + 1", NULL, "2", NULL);
    repl_fixture_type(a, "half");
    fixture_press(a, "Esc 2 Z R o");
    fixture_shows(a, 24, 80, ">>> 1 + 1");
    fixture_shows(a, 24, 80, ">>> half");
    assert_true(a->data.paused);
    fixture_shows(a, 24, 80, "not at the time shown");
    fixture_press(a, "ctrl-u");
    repl_fixture_run(a, "6 * 7", NULL, "42", NULL);
    fixture_shows(a, 24, 80, "42");
    app_free(a);
}

/* Who cannot run code is told so, once, and nothing is asked. */
static void test_refusals(void **state) {
    struct err why = {ERR_FAILED, "no code was run: this client is read-only"};
    struct app *a = repl_app();
    (void)state;
    repl_fixture_type(a, "1");
    fixture_press(a, "Enter");
    app_repl_refused(a, &why);
    fixture_shows(a, 24, 80, "no code was run: this client");
    fixture_shows(a, 24, 80, ">>> 1"); /* it was not run, and is there still */
    fixture_press(a, "F5");
    repl_fixture_asked(a, REPL_RUN, "1");
    app_set_state(a, SESSION_RECONNECTING, &why, 1);
    fixture_shows(a, 24, 80, "the connection broke: what ran is interrupted");
    fixture_press(a, "2 Enter");
    assert_int_equal(a->repl.engine.asked, REPL_NOTHING);
    fixture_shows(a, 24, 80, "not connected to the job");
    a->pid = 4242; /* of what it has received */
    app_set_state(a, SESSION_CONNECTED, NULL, 0);
    fixture_press(a, "F5");
    repl_fixture_asked(a, REPL_RUN, "2");
    app_set_pid(a, 4711);
    repl_fixture_answer(a, NULL, "'of the one before'", NULL);
    fixture_hides(a, 24, 80, "of the one before'");
    app_free(a);

    a = fixture_app(FIXTURE_NORMAL, 3, false);
    a->data.target.mode = MODEL_MODE_READONLY;
    fixture_press(a, "R 1 Enter");
    assert_int_equal(a->repl.engine.asked, REPL_NOTHING);
    fixture_shows(a, 24, 80, "code needs an agent in the job, and there is none");
    app_free(a);

    a = fixture_app(FIXTURE_NORMAL, 3, false);
    fixture_shows(a, 24, 200, "R Repl");
    a->row_actions.readonly = true;
    fixture_hides(a, 24, 200, "R Repl");
    fixture_press(a, "R");
    assert_ptr_not_equal(app_screen_top(a)->def, &screen_repl);
    fixture_shows(a, 24, 80, "--readonly: repl would run code in the job");
    app_free(a);
}

/* The end of the job is said as what it is. */
static void test_the_job_ends(void **state) {
    struct err why = {ERR_LOST, "process 4242 has ended"};
    struct app *a = repl_app();
    (void)state;
    repl_fixture_type(a, "exit");
    fixture_press(a, "F5");
    repl_fixture_asked(a, REPL_RUN, "exit");
    app_set_state(a, SESSION_LOST, &why, 0);
    fixture_shows(a, 24, 80, "the job has ended while this ran");
    fixture_hides(a, 24, 80, "is forgotten");
    fixture_press(a, "1 Enter");
    assert_int_equal(a->repl.engine.asked, REPL_NOTHING);
    fixture_shows(a, 24, 80, "the job has ended: no code can be run in it");
    app_free(a);
}

/* Whatever is said, memory has an end, and the newest stays. */
static void test_much_is_said(void **state) {
    struct app *a = repl_app();
    char *text = malloc(60001);
    (void)state;
    assert_non_null(text);
    memset(text, 'x', 60000);
    text[60000] = '\0';
    for (int i = 0; i < 40; i++)
        repl_fixture_run(a, "x", text, "42", NULL);
    assert_in_range(a->repl.log.len, 100000, APP_REPL_LOG + 70000);
    fixture_shows(a, 24, 80, "42");
    fixture_press(a, "Esc g");
    fixture_shows(a, 24, 80, "earlier output is no longer kept");
    free(text);
    app_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_statement),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_enter_is_for_its_text),
        cmocka_unit_test(test_long_pastes),
        cmocka_unit_test(test_completion),
        cmocka_unit_test(test_typing_ahead),
        cmocka_unit_test(test_output_scrolls),
        cmocka_unit_test(test_it_is_kept),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_much_is_said),
        cmocka_unit_test(test_the_job_ends),
        cmocka_unit_test(test_lines_with_percent),
        cmocka_unit_test(test_percent_runs_code),
        cmocka_unit_test(test_looks_take_time),
        cmocka_unit_test(test_a_look_finds_much),
        cmocka_unit_test(test_completing_percent),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
