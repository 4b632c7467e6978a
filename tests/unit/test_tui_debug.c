/* SPDX-License-Identifier: Apache-2.0 */
/* A debugger asked for from probing-top: the key and the commands, what is asked of the job, what is shown, what is copied. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <math.h>
#include <string.h>

#include "tui/core/command.h"
#include "tui/core/app.h"
#include "tui/core/app_life.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_take.h"
#include "tui/core/app_input.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"
#include "unit/tui_repl.h"

static const struct wire_debugger listening = {
    .on = true, .host = "127.0.0.1", .port = 5678, .cwd = "/work", .version = "1.8", .module = "/d"};
static const struct wire_debugger ended = {.was = true};
static struct wire_paused_thread threads[] = {
    {.tid = 7, .held = true, .name = "MainThread", .where = "held at /train.py:7 step"}};
static const struct wire_debugger paused = {.on = true,
                                            .address = "127.0.0.1:3344",
                                            .token = "abcdef",
                                            .left_s = 299.9,
                                            .threads = threads,
                                            .n_threads = 1};

/* What is asked. `port` -1: it is no beginning. */
static void debug_command_asked(struct app *a, enum wire_method method, enum wire_debug_action action,
                                int port) {
    const struct wire_debug *want = &a->debug.want;
    assert_int_equal(a->repl.engine.asked, REPL_DEBUG);
    assert_int_equal(a->debug.def->method, method);
    assert_int_equal(want->action, action);
    if (action == WIRE_DEBUG_BEGIN) {
        assert_string_equal(want->host, "127.0.0.1");
        assert_int_equal(want->port, port);
        assert_null(want->path);
    }
}

static void asks_to_debug(struct app *a, int port) {
    debug_command_asked(a, WIRE_DEBUG, WIRE_DEBUG_BEGIN, port);
}

static void test_the_key(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    fixture_press(a, "2 B y");
    assert_ptr_equal(app_screen_top(a)->def, &screen_repl);
    assert_true(a->debug.want.leased); /* it ends with us */
    asks_to_debug(a, 0);
    repl_fixture_answer_debug(a, &listening);
    fixture_shows(a, 24, 80, "debugpy listens on 127.0.0.1:5678, no client is attached");
    fixture_shows(a, 24, 80, "\"name\": \"probing: attach to");
    fixture_shows(a, 24, 80, "\"port\": 5678");
    fixture_press(a, "g");
    fixture_shows(a, 24, 80, " :debug");
    fixture_press(a, "y"); /* what goes into launch.json, and nothing else */
    assert_true(fake_host.asked.copy);
    assert_memory_equal(fake_host.text, "{\n  \"name\": \"probing: attach to", 30);
    assert_non_null(strstr(fake_host.text, "\"remoteRoot\": \"/work\""));
    fixture_press(a, "2 B");
    debug_command_asked(a, WIRE_DEBUG, WIRE_DEBUG_END, 0);
    repl_fixture_answer_debug(a, &ended);
    fixture_shows(a, 24, 80, "debugpy has ended");
    fixture_press(a, "B");
    asks_to_debug(a, 0);
    app_free(a);
}

static void test_the_commands(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    app_input_command(a, "debug 127.0.0.1:4711 --keep");
    assert_false(a->debug.want.leased);
    asks_to_debug(a, 4711);
    repl_fixture_answer_debug(a, &listening);
    app_input_command(a, "pause-job :3344 --limit 2m");
    assert_true(a->debug.want.limit_s == 120);
    debug_command_asked(a, WIRE_PAUSE, WIRE_DEBUG_BEGIN, 3344);
    repl_fixture_answer_debug(a, &paused);
    fixture_shows(a, 24, 80, "paused: 1 of 1 threads are held");
    fixture_shows(a, 24, 80, "held at /train.py:7 step");
    fixture_press(a, "y");
    assert_string_equal(fake_host.text, "(echo abcdef; cat) | nc 127.0.0.1 3344\n");
    app_input_command(a, "pause-job --off");
    debug_command_asked(a, WIRE_PAUSE, WIRE_DEBUG_END, 0);
    repl_fixture_answer_debug(a, &ended);
    fixture_shows(a, 24, 80, "the job continues");
    fixture_press(a, "y");
    assert_string_equal(fake_host.text, "the job continues\n");
    app_input_command(a, "catch");
    assert_true(a->debug.want.limit_s == 300);
    debug_command_asked(a, WIRE_CATCH, WIRE_DEBUG_BEGIN, 0);
    repl_fixture_answer_debug(a, &(struct wire_debugger){.on = true, .limit_s = 300, .all_threads = true});
    fixture_shows(a, 24, 80, "an uncaught exception on any thread");
    app_input_command(a, "catch --status");
    debug_command_asked(a, WIRE_CATCH, WIRE_DEBUG_STATUS, 0);
    app_free(a);
}

static void test_refusals(void **state) {
    static const char *const bad[][2] = {
        {"debug nonsense", "'nonsense' is not an address"},
        {"debug 0.0.0.0:0", "add --exposed if that is intended"},
        {"debug --off 4711", "--off cannot be combined with other options"},
        {"debug 1 2", "one address, not '2' too"},
        {"debug --of", "--off"},
        {"pause-job --limit never", "--limit"},
        {"catch --path /tmp", "--path"},
    };
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        app_input_command(a, bad[i][0]);
        assert_int_equal(a->repl.engine.asked, REPL_NOTHING);
        assert_ptr_not_equal(app_screen_top(a)->def, &screen_repl);
        fixture_shows(a, 24, 200, bad[i][1]);
    }
    app_input_command(a, "debug");
    app_input_command(a, "pause-job"); /* one at a time */
    fixture_shows(a, 24, 80, "code runs: ctrl-c ends it");
    asks_to_debug(a, 0);
    fixture_press(a, "ctrl-c");
    assert_true(fake_host.asked.interrupt);
    assert_false(fake_host.asked.quit);
    repl_fixture_answer_debug(
        a,
        &(struct wire_debugger){.refused = "debugpy listens already, on 127.0.0.1:5: debug --off ends it"});
    fixture_shows(a, 24, 80, "debugpy listens already, on 127.0.0.1:5");
    a->row_actions.readonly = true;
    fixture_press(a, "2 B");
    fixture_shows(a, 24, 80, "--readonly: debug would run code in the job");
    app_input_command(a, "catch");
    fixture_shows(a, 24, 80, "--readonly: catch would run code in the job");
    assert_int_equal(a->repl.engine.asked, REPL_NOTHING);
    app_free(a);

    a = fixture_app(FIXTURE_NORMAL, 3, false);
    a->data.target.mode = MODEL_MODE_READONLY;
    fixture_press(a, "B");
    assert_int_equal(a->repl.engine.asked, REPL_NOTHING);
    fixture_shows(a, 24, 80, "code needs an agent in the job, and there is none");
    app_free(a);
}

/* A connection that breaks has ended what was begun from here. */
static void test_the_connection_breaks(void **state) {
    struct err why = {ERR_FAILED, "it closed"};
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    fixture_press(a, "B y");
    asks_to_debug(a, 0);
    repl_fixture_answer_debug(a, &listening);
    app_set_state(a, SESSION_RECONNECTING, &why, 1);
    app_set_state(a, SESSION_CONNECTED, NULL, 0);
    fixture_press(a, "B");
    asks_to_debug(a, 0);
    app_set_state(a, SESSION_RECONNECTING, &why, 1);
    fixture_shows(a, 24, 80, "the connection broke");
    assert_int_equal(a->repl.engine.asked, REPL_NOTHING);
    app_free(a);
}

/* Whoever holds the job, every screen says it, and until when; the Log keeps it. */
static void test_what_is_held(void **state) {
    struct model_debugger holds[] = {
        {.what = "debug", .state = "listening", .address = "127.0.0.1:5678", .pid = 7, .left_s = NAN},
        {.what = "pause",
         .state = "held",
         .address = "127.0.0.1:4711",
         .pid = 42,
         .left_s = 212,
         .used = true}};
    struct model_status s = {.holds = holds, .n_holds = 2, .budget_pct = 5};
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    app_take_status(a, &s);
    fixture_shows(a, 24, 80, "PAUSED by process 42: pdb at 127.0.0.1:4711, 212 s left, in use");
    fixture_shows(a, 24, 80, "debuggers debug at 127.0.0.1:5678");
    assert_true(app_needs_tick(a));
    app_set_time(a, a->now_s + 12, a->epoch_s + 12);
    fixture_press(a, "1");
    fixture_shows(a, 50, 200, "PAUSED by process 42: pdb at 127.0.0.1:4711, 200 s left, in use");
    fixture_press(a, "B"); /* theirs is shown, not ended */
    debug_command_asked(a, WIRE_DEBUG, WIRE_DEBUG_STATUS, 0);
    repl_fixture_answer_debug(a, &listening);
    holds[1] = (struct model_debugger){.what = "catch",
                                       .state = "kept",
                                       .address = "127.0.0.1:9",
                                       .pid = -1,
                                       .text = "ValueError: boom in MainThread",
                                       .left_s = 30};
    app_take_status(a, &s);
    fixture_shows(a, 24, 80, "KEPT: pdb at 127.0.0.1:9, 30 s left: ValueError: boom in MainThread");
    holds[1] = (struct model_debugger){.what = "catch", .state = "armed", .pid = -1, .left_s = NAN};
    app_take_status(a, &s);
    fixture_hides(a, 24, 80, "KEPT");
    fixture_shows(a, 24, 80, "debuggers debug at 127.0.0.1:5678, catch");
    fixture_press(a, "L");
    fixture_shows(a, 24, 80, "PAUSED by process 42");
    fixture_shows(a, 24, 80, "no thread of the job is held by a debugger now");
    s.n_holds = 0;
    app_take_status(a, &s);
    fixture_hides(a, 24, 80, "debuggers");
    app_free(a);
}

static void test_completion(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    struct command_choices c;
    (void)state;
    command_complete(a, "debug 4711 --", &c);
    assert_int_equal(c.n, 5);
    command_choices_fini(&c);
    command_complete(a, "pause-job --l", &c);
    assert_int_equal(c.n, 1);
    assert_string_equal(c.items[0].text, "--limit");
    command_choices_fini(&c);
    app_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_key),    cmocka_unit_test(test_the_commands),
        cmocka_unit_test(test_refusals),   cmocka_unit_test(test_the_connection_breaks),
        cmocka_unit_test(test_completion), cmocka_unit_test(test_what_is_held),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
