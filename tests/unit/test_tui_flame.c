/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Flame screen without a terminal: what keys and the mouse do, what stays where it was when samples come in, what is
 * said where there is nothing to see.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/screens/flame/flame_state.h"
#include "tui/core/app.h"
#include "tui/core/app_input.h"
#include "tui/core/app_life.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_take.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"

static void assert_shows(struct app *a, const char *what) { fixture_shows(a, 40, 120, what); }

static void assert_hides(struct app *a, const char *what) { fixture_hides(a, 40, 120, what); }

/* Where in the body a text begins: row and column of the screen. */
static void find_on_screen(struct app *a, const char *what, int *row, int *col) {
    const char *screen = fixture_draw(a, 40, 120), *at = strstr(screen, what), *line = screen;
    assert_non_null(at);
    *row = 0;
    for (const char *p = screen; p < at; p++)
        if (*p == '\n') {
            (*row)++;
            line = p + 1;
        }
    char before[1000];
    (void)snprintf(before, sizeof before, "%.*s", (int)(at - line), line);
    struct grid g;
    assert_int_equal(grid_init(&g, 1, 120), 0);
    *col = grid_text_width(&g, before);
    grid_fini(&g);
}

/* All time of all threads, drawn once, so that it knows its room. */
static struct app *flame_app(int batches) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    assert_non_null(a);
    fixture_press(a, "3 a");
    fixture_samples(a, batches);
    (void)fixture_draw(a, 40, 120);
    return a;
}

static void wait_s(struct app *a, double s) { app_set_time(a, a->now_s + s, a->epoch_s + s); }

static void test_first_look(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    assert_false(app_wants_samples(a));
    fixture_press(a, "3");
    assert_true(app_wants_samples(a));
    assert_shows(a, "sampling ...");
    fixture_samples(a, 40);
    assert_shows(a, "time ON CPU");
    assert_shows(a, "all threads  100.0%");
    assert_shows(a, "train_step  92.");
    assert_hides(a, "Queue._feed  3");
    fixture_press(a, "a"); /* with those that wait */
    assert_shows(a, "time WALL");
    assert_shows(a, "Queue._feed  3");
    assert_shows(a, "(no Python frame)  3");
    fixture_press(a, "a");
    assert_shows(a, "time GIL HELD");
    assert_shows(a, "train_step  100.0%");
    assert_hides(a, "Queue._feed");
    fixture_press(a, "2");
    assert_shows(a, "Stack of MainThread");
    fixture_press(a, "3"); /* as it was left */
    assert_shows(a, "time GIL HELD");
    fixture_press(a, "4");
    assert_shows(a, "sorted by %OWN");
    fixture_press(a, "3 S");
    assert_int_equal(screen_context(app_screen_top(a)->def, app_screen_top(a)->state), CONTEXT_SQL);
    app_free(a);
}

/* Shares add up as the Top screen has them: both read the same samples. */
static void test_shares_are_those_of_top(void **state) {
    struct app *a = flame_app(40);
    (void)state;
    fixture_press(a, "/ \"AdamW Enter");
    assert_shows(a, "AdamW.step  ");
    const char *screen = fixture_draw(a, 40, 120), *at = strstr(screen, "total ");
    char share[16];
    assert_non_null(at);
    assert_int_equal(sscanf(at, "total %15[0-9.]", share), 1);
    fixture_press(a, "4 a / \"AdamW Enter");
    char want[64];
    (void)snprintf(want, sizeof want, "%s     %s", share, share);
    assert_shows(a, want);
    app_free(a);
}

/* Selection and zoom are a frame's: they stay, whatever comes in and whatever is added up. */
static void test_it_stays_on_the_frame(void **state) {
    static const char *const others[] = {"W", "W", "W", "a", "a", "a", "l", "l",
                                         "l", "+", "+", "-", "-", "F", "F"};
    struct app *a = flame_app(8);
    (void)state;
    fixture_press(a, "/ \"linear Enter Esc k Enter j");
    assert_shows(a, "ZOOM Module._call_impl");
    assert_shows(a, " linear  /usr/lib/python3/dist-packages/torch/nn/functional.py");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        fixture_press(a, others[i]);
        fixture_samples(a, 3);
        assert_shows(a, "/usr/lib/python3/dist-packages/torch/nn/functional.py");
        assert_shows(a, "ZOOM ");
    }
    assert_shows(a, "ZOOM Module._call_impl");
    fixture_press(a, "u");
    assert_hides(a, "ZOOM Module");
    fixture_press(a, "Esc");
    assert_hides(a, "ZOOM ");
    assert_shows(a, " linear  /usr/lib/python3/dist-packages/torch/nn/functional.py");
    app_free(a);
}

/* What has left the window is still selected, and says that it has nothing. */
static void test_a_frame_that_is_gone(void **state) {
    struct app *a = flame_app(8);
    struct model_sample samples[20];
    struct model_sample_batch b = {.epoch = 1, .period_us = 10000, .samples = samples, .n_samples = 20};
    (void)state;
    fixture_press(a, "W / \"AdamW Enter");
    assert_shows(a, "last 10 s");
    for (int i = 0; i < 20; i++)
        samples[i] = (struct model_sample){.tid = 4251, .stack_id = 12};
    wait_s(a, 30);
    app_take_samples(a, &b);
    assert_shows(a, "AdamW.step  /usr/lib");
    assert_shows(a, "total 0.0% 0.00s");
    assert_shows(a, "Condition.wait  100.0%");
    fixture_press(a, "k j");
    assert_shows(a, "AdamW.step  /usr/lib");
    fixture_press(a, "Enter"); /* of nothing there is no share */
    assert_shows(a, "ZOOM AdamW.step 0.0%");
    assert_shows(a, "of zoom ?");
    fixture_press(a, "z");
    assert_hides(a, "nan");
    app_free(a);
}

static void test_moving(void **state) {
    struct app *a = flame_app(8);
    (void)state;
    fixture_press(a, "j");
    assert_shows(a, " (no Python frame)\n"); /* one of the two with the most */
    fixture_press(a, "g j Right Right");
    fixture_press(a, "g / \"<module> Enter Esc");
    assert_shows(a, " <module>  /home/ada");
    fixture_press(a, "j");
    assert_shows(a, " main  /home/ada");
    fixture_press(a, "j G");
    assert_shows(a, " linear  /usr/lib");
    fixture_press(a, "k k k k g");
    assert_shows(a, "\n all threads\n");
    fixture_press(a, "j j"); /* the way that one came */
    assert_shows(a, " main  /home/ada");
    fixture_press(a, "PgDn");
    assert_shows(a, " linear  /usr/lib");
    fixture_press(a, "Left"); /* to another caller's callee in the row, or nowhere */
    fixture_press(a, "PgUp");
    assert_shows(a, "\n all threads\n");
    fixture_press(a, "F G");
    assert_shows(a, " linear  /usr/lib");
    fixture_press(a, "j"); /* the caller is below now */
    assert_shows(a, " Module._call_impl  /usr/lib");
    app_free(a);
}

static void test_zoom(void **state) {
    struct app *a = flame_app(8);
    (void)state;
    fixture_press(a, "/ \"Block Enter Esc Enter");
    assert_shows(a, "ZOOM Block.forward");
    assert_shows(a, "of zoom 100.0%");
    fixture_press(a, "j Enter Backspace"); /* the same chain: out to where there is more */
    assert_hides(a, "ZOOM Module._call_impl");
    fixture_press(a, "Backspace Backspace Backspace Backspace Backspace Backspace");
    assert_hides(a, "ZOOM ");
    fixture_press(a, "Backspace");
    assert_string_equal(a->message, "all of it is shown");
    app_free(a);
}

/* A thread of many, one after the other, and round again. */
static void test_threads(void **state) {
    struct app *a = flame_app(8);
    (void)state;
    assert_shows(a, "threads all (4)");
    fixture_press(a, ")");
    assert_shows(a, "thread MainThread (4242)");
    assert_hides(a, "Queue._feed");
    fixture_press(a, ")");
    assert_shows(a, "thread QueueFeederThread (4251)");
    assert_shows(a, "Condition.wait  100.0%");
    assert_shows(a, "\u258fthread QueueFeederThread");
    fixture_press(a, "( (");
    assert_shows(a, "threads all (4)");
    fixture_press(a, "( a");
    assert_shows(a, "time GIL HELD");
    assert_shows(a, "no samples of this thread");
    fixture_press(a, "A");
    assert_shows(a, "threads all (4)");
    assert_shows(a, "time WALL");
    app_free(a);
}

static void test_search_says_how_much(void **state) {
    struct app *a = flame_app(40);
    (void)state;
    fixture_press(a, "/ \"zzz");
    assert_true(a->prompt_failed);
    fixture_press(a, "Esc ) / \"_call|Block Enter");
    assert_shows(a, "/_call|Block: 3, 58.");
    assert_shows(a, "% of the time");
    assert_shows(a, " Module._call_impl  /usr"); /* the outermost of them */
    fixture_press(a, "n");
    assert_shows(a, " Block.forward  /home");
    fixture_press(a, "n n");
    assert_shows(a, " Module._call_impl  /usr");
    fixture_press(a, "N N");
    assert_shows(a, " Block.forward  /home");
    fixture_press(a, "Enter"); /* within what is zoomed */
    assert_shows(a, "/_call|Block: 2, 100.0% of the zoom");
    fixture_press(a, "Esc Esc n");
    assert_string_equal(a->message, "no search yet: / searches");
    app_free(a);
}

static void test_filter(void **state) {
    struct app *a = flame_app(8);
    (void)state;
    fixture_press(a, ") \\ \"AdamW Enter");
    assert_shows(a, "FILTER AdamW");
    assert_shows(a, "AdamW.step  100.0%");
    assert_hides(a, "linear  ");
    fixture_samples(a, 3);
    assert_hides(a, "linear  ");
    fixture_press(a, "\\ ctrl-u \"!AdamW Enter");
    assert_shows(a, "linear  ");
    assert_hides(a, "AdamW.step");
    fixture_press(a, "\\ ctrl-u \"zzz Enter");
    assert_shows(a, "nothing matches: A shows all");
    fixture_press(a, "Esc");
    assert_shows(a, "AdamW.step");
    app_free(a);
}

/* The view stands; samples that come meanwhile are there when it goes on. */
static void test_pause(void **state) {
    struct app *a = flame_app(8);
    (void)state;
    fixture_press(a, "Z");
    char before[40 * 1000];
    (void)snprintf(before, sizeof before, "%s", strstr(fixture_draw(a, 40, 120), "\u258fall threads"));
    fixture_samples(a, 5);
    assert_string_equal(strstr(fixture_draw(a, 40, 120), "\u258fall threads"), before);
    assert_shows(a, "samples 583");
    fixture_press(a, "l W"); /* the same samples, looked at in another way */
    assert_shows(a, "samples 583");
    fixture_press(a, "Z W W l l");
    assert_hides(a, "samples 583");
    fixture_press(a, "z");
    assert_shows(a, "sampling ...");
    fixture_samples(a, 1);
    assert_shows(a, "samples 73");
    app_free(a);
}

static void test_granularity(void **state) {
    struct app *a = flame_app(8);
    (void)state;
    fixture_press(a, "l");
    assert_shows(a, "by line");
    assert_shows(a, "train_step:203");
    assert_shows(a, "train_step:207");
    fixture_press(a, "/ \"AdamW Enter Esc k l"); /* a line's module */
    assert_shows(a, "by module");
    assert_shows(a, " train.py  /home/ada/jobs/train.py");
    fixture_press(a, ")");
    assert_shows(a, "\u258ftorch.optim.adamw");
    assert_hides(a, "\u258ftrain_step");
    app_free(a);
}

/* What is too small stands together at the end, and each of it can be gone to. */
static void test_small_ones(void **state) {
    struct app *a = flame_app(8);
    (void)state;
    assert_shows(a, "(no Python frame)  3");
    assert_hides(a, "\u258f+");
    fixture_press(a, "+ + + + + +");
    assert_shows(a, "from 10%");
    fixture_press(a, "+ +");
    assert_shows(a, "from 50%");
    assert_shows(a, "\u258f+4\n"); /* all of them */
    fixture_press(a, "/ \"evil Enter");
    assert_shows(a, "/evil: 1, 1.4%");
    fixture_press(a, "Enter");
    assert_shows(a, "ZOOM evil");
    app_free(a);
}

static void click(struct app *a, const char *what) {
    struct input_event e = {.kind = INPUT_EVENT_MOUSE, .button = INPUT_CLICK};
    find_on_screen(a, what, &e.row, &e.col);
    app_input(a, &e);
}

static void test_mouse(void **state) {
    struct app *a = flame_app(8);
    struct input_event wheel = {.kind = INPUT_EVENT_MOUSE, .button = INPUT_WHEEL_UP, .row = 10, .col = 3};
    (void)state;
    fixture_press(a, ")");
    click(a, "Block.forward");
    assert_shows(a, " Block.forward  /home/ada");
    assert_hides(a, "ZOOM ");
    click(a, "\u258fBlock.forward");
    assert_shows(a, "ZOOM Block.forward");
    app_input(a, &wheel);
    assert_shows(a, " Module._call_impl  /usr");
    fixture_press(a, "F Esc");
    click(a, "AdamW.step");
    assert_shows(a, " AdamW.step  /usr");
    app_free(a);
}

/* Another process is the target: nothing of the one before is read any more, in this screen and in Top. */
static void test_another_target(void **state) {
    struct app *a = flame_app(8);
    struct model_target t;
    (void)state;
    a->pid = 4242; /* of what it has received */
    fixture_press(a, "j j 4 2");
    app_set_pid(a, 4300);
    fixture_target(&t, FIXTURE_NORMAL);
    app_take_target(a, &t);
    app_set_state(a, SESSION_CONNECTED, NULL, 0);
    fixture_press(a, "4");
    assert_shows(a, "sampling ...");
    fixture_press(a, "3");
    assert_shows(a, "sampling ...");
    fixture_press(a, "j Right Enter u l W ) / \"x Enter n");
    fixture_press(a, "A Esc");
    fixture_samples(a, 3);
    assert_shows(a, "all threads  100.0%");
    fixture_press(a, "4");
    assert_shows(a, "Queue._feed");
    app_free(a);
}

/* Every key at every size: nothing is drawn outside, nothing reads what is not there. */
static void test_random_keys(void **state) {
    static const char *const keys[] = {"j", "k", "Left", "Right",  "Enter",       "u",           "Esc", "l",
                                       "a", "W", "]",    "[",      "F",           "+",           "-",   "n",
                                       "N", "G", "g",    "A",      "z",           "Z",           "2",   "3",
                                       "4", "3", "PgDn", "ctrl-u", "/ \"o Enter", "\\ \"a Enter"};
    struct app *a = flame_app(3);
    uint64_t random = 7;
    (void)state;
    for (int i = 0; i < 3000; i++) {
        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        uint32_t at = (uint32_t)(random >> 33);
        fixture_press(a, keys[at % (sizeof keys / sizeof keys[0])]);
        if (at % 5 == 0)
            fixture_samples(a, 1);
        if (at % 3 == 0)
            (void)fixture_draw(a, 12 + (int)(at >> 8) % 40, 60 + (int)(at >> 16) % 150);
    }
    app_free(a);
}

/* What is wanted is asked for once; what was read is shown around the line with the most of the time. */
static void give_source(struct app *a, const char *why) {
    struct source_text *t = calloc(1, sizeof *t);
    assert_non_null(t);
    (void)snprintf(t->path, sizeof t->path, "%s", a->source_asked.path);
    t->from = a->source_asked.from;
    for (int i = 0; !why && i < SOURCE_MAX_LINES; i++)
        (void)snprintf(t->lines[t->n++], SOURCE_LINE, "source of line %d\033[2J", t->from + i);
    if (why)
        (void)err_set(&t->why, ERR_FAILED, "%s", why);
    app_take_source(a, t);
    fake_host.asked.read_source = false;
}

static void test_details(void **state) {
    struct app *a = flame_app(40);
    (void)state;
    fixture_press(a, "a a o"); /* on the CPU */
    assert_shows(a, "Called by");
    assert_shows(a, "no frame");
    assert_false(fake_host.asked.read_source);
    fixture_press(a, "/ \"train_step Enter");
    assert_true(fake_host.asked.read_source);
    assert_string_equal(a->source_asked.path, "/home/ada/jobs/train.py");
    assert_shows(a, "100.0% main");
    assert_shows(a, "Module._call_impl  ");
    assert_shows(a, "AdamW.step  ");
    assert_shows(a, "reading ...");
    give_source(a, NULL);
    assert_shows(a, "203 "); /* in two lines of it: the shares are of the function's time */
    assert_shows(a, "source of line 207");
    assert_shows(a, "source of line 203");
    assert_hides(a, "\033[2J");
    fixture_samples(a, 4);
    assert_false(fake_host.asked.read_source); /* it is there */
    fixture_press(a, "k");                     /* to main, of the same file */
    assert_true(fake_host.asked.read_source);
    give_source(a, "cannot read /home/ada/jobs/train.py: Permission denied");
    assert_shows(a, "Permission denied");
    fixture_press(a, "l l"); /* by module */
    assert_shows(a, "lines are of functions");
    const char *narrow = fixture_draw(a, 12, 40); /* the pane alone */
    assert_non_null(strstr(narrow, "Called by"));
    assert_null(strstr(narrow, "all threads  100"));
    fixture_press(a, "o");
    assert_hides(a, "Called by");
    app_free(a);
}

static void test_one_module(void **state) {
    struct app *a = flame_app(40);
    (void)state;
    fixture_press(a, "a a |");
    assert_shows(a, "select a frame");
    fixture_press(a, "/ \"_call_impl Enter |");
    assert_shows(a, "module torch.nn.modules.module  100.0%");
    assert_shows(a, "MODULE torch.nn.modules.module");
    assert_shows(a, "Block.forward");
    assert_hides(a, "AdamW.step");
    assert_hides(a, "<module>  ");
    fixture_samples(a, 8);
    assert_shows(a, "module torch.nn.modules.module  100.0%");
    fixture_press(a, "Esc Esc"); /* the search, then this */
    assert_hides(a, "MODULE");
    assert_shows(a, "AdamW.step");
    fixture_press(a, "/ \"_call_impl Enter | A");
    assert_hides(a, "MODULE");
    app_free(a);
}

/* A stack with native frames: they are shown when they are asked for, and their callers' time when not. */
static void test_native(void **state) {
    struct app *a = flame_app(4);
    struct model_frame_def defs[] = {
        {1, {.kind = MODEL_FRAME_PYTHON, .func = "work", .file = "/j/a.py", .line = 3}},
        {2, {.kind = MODEL_FRAME_NATIVE, .func = "at::addmm", .module = "/l/libtorch.so"}},
        {3, {.kind = MODEL_FRAME_PYTHON, .func = "hook", .file = "/j/a.py", .line = 9}}};
    struct model_stack_def stacks[] = {{1, 0, 1}, {2, 1, 2}, {3, 2, 3}, {4, 0, 2}};
    struct model_sample samples[] = {{.tid = 4242, .stack_id = 2, .on_cpu = 1},
                                     {.tid = 4242, .stack_id = 3, .on_cpu = 1},
                                     {.tid = 4242, .stack_id = 4, .on_cpu = 1}};
    struct model_sample_batch b = {
        .epoch = 2, .period_us = 1e6, .frames = defs, .n_frames = 3, .stacks = stacks, .n_stacks = 4};
    (void)state;
    b.samples = samples;
    b.n_samples = 3;
    wait_s(a, 0.25);
    app_take_samples(a, &b);
    wait_s(a, 0.25);
    fixture_press(a, "a a");
    assert_hides(a, "at::addmm");
    assert_shows(a, "work  ");
    assert_shows(a, "hook  ");
    assert_shows(a, "(no Python frame)  ");
    assert_false(a->native);
    fixture_press(a, "c");
    assert_true(a->native);
    assert_shows(a, "at::addmm  ");
    assert_hides(a, "(no Python frame)");
    fixture_press(a, "c");
    assert_false(a->native);
    assert_hides(a, "at::addmm");
    /* Top and Timeline have switches of their own. */
    wait_s(a, 10); /* of what is older, less */
    app_take_samples(a, &b);
    fixture_press(a, "4 A");
    assert_hides(a, "at::addmm");
    assert_shows(a, "(no Python frame)");
    fixture_press(a, "c");
    assert_true(a->native);
    assert_shows(a, "at::addmm");
    fixture_press(a, "Left");
    assert_shows(a, "native too");
    fixture_press(a, "3");
    assert_hides(a, "at::addmm");
    fixture_press(a, "4 c");
    assert_hides(a, "at::addmm");
    assert_false(a->native);
    app_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_look),
        cmocka_unit_test(test_shares_are_those_of_top),
        cmocka_unit_test(test_it_stays_on_the_frame),
        cmocka_unit_test(test_a_frame_that_is_gone),
        cmocka_unit_test(test_moving),
        cmocka_unit_test(test_zoom),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_search_says_how_much),
        cmocka_unit_test(test_filter),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_granularity),
        cmocka_unit_test(test_small_ones),
        cmocka_unit_test(test_mouse),
        cmocka_unit_test(test_another_target),
        cmocka_unit_test(test_details),
        cmocka_unit_test(test_one_module),
        cmocka_unit_test(test_native),
        cmocka_unit_test(test_random_keys),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
