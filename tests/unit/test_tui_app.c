/* SPDX-License-Identifier: Apache-2.0 */
/* The app without a terminal: what keys do, what stays where it was when data come in, how it ends. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tui/keys/action.h"
#include "tui/core/app.h"
#include "tui/core/action_table.h"
#include "tui/core/app_life.h"
#include "tui/core/app_draw.h"
#include "tui/core/app_input.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_take.h"
#include "tui/core/screen.h"
#include "tui/view/stack.h"
#include "tui/screens/threads/threads_rows.h"
#include "tui/keys/input.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"
#include "unit/tui_job.h"

static void next_snapshot(struct app *a, enum fixture_kind kind, int step) {
    struct model_snapshot s;
    fixture_snapshot(&s, kind, step);
    app_take_snapshot(a, &s);
}

static void assert_shows(struct app *a, const char *what) { fixture_shows(a, 24, 80, what); }

static void assert_hides(struct app *a, const char *what) { fixture_hides(a, 24, 80, what); }

static void test_main_thread_is_selected_first(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    assert_shows(a, "Stack of MainThread (4242)");
    assert_shows(a, "train_step           /home/ada/jobs/train.py:203");
    app_free(a);
}

/* Whatever the order does, the selected thread stays selected, and so does the frame in its stack. */
static void test_selection_follows_the_thread(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    fixture_press(a, "j j");
    assert_shows(a, "Stack of QueueFeederThread (4251)");
    static const char *const orders[] = {">", ">", "<", "I", "P", "F6", "F6", "F6", "F6", "F6", "F6"};
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        fixture_press(a, orders[i]);
        next_snapshot(a, FIXTURE_NORMAL, (int)i + 2);
        assert_shows(a, "Stack of QueueFeederThread (4251)");
    }
    fixture_press(a, ")");
    assert_hides(a, "Stack of QueueFeederThread");
    fixture_press(a, "(");
    assert_shows(a, "Stack of QueueFeederThread");
    app_free(a);
}

static void test_frame_stays_selected(void **state) {
    struct stack_pane p = {0};
    struct model_frame frames[10] = {{0}};
    struct model_thread t = {.tid = 1, .frames = frames, .n_frames = 6};
    (void)state;
    p.list.page = 4;
    stack_follow(&p, &t);
    list_select(&p.list, 4);
    t.n_frames = 9; /* three inner calls more */
    stack_follow(&p, &t);
    assert_int_equal(p.list.selected, 7);
    t.n_frames = 3;
    stack_follow(&p, &t);
    assert_int_equal(p.list.selected, 1);
    t.tid = 2;
    stack_follow(&p, &t);
    assert_int_equal(p.list.selected, 0);
    t.n_frames = 8; /* who looks at the innermost goes on doing so */
    stack_follow(&p, &t);
    assert_int_equal(p.list.selected, 0);
    stack_follow(&p, NULL);
}

static void test_selected_thread_that_ends(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    fixture_press(a, "End");
    next_snapshot(a, FIXTURE_UNKNOWN, 2);
    assert_shows(a, "Stack of ? (102)");
    struct model_snapshot none;
    fixture_snapshot(&none, FIXTURE_NORMAL, 3);
    none.n_threads = 0;
    app_take_snapshot(a, &none);
    assert_shows(a, "no threads to show");
    fixture_press(a, "j k Enter j G ) ( / \"x Enter n");
    app_free(a);
}

static void test_pause_freezes_the_view_only(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 2, false);
    (void)state;
    assert_shows(a, "98.5");
    assert_false(app_needs_tick(a));
    fixture_press(a, "Z");
    assert_false(app_needs_tick(a)); /* nothing on the screen grows older by itself */
    next_snapshot(a, FIXTURE_UNKNOWN, 40);
    next_snapshot(a, FIXTURE_UNKNOWN, 41);
    assert_shows(a, " FROZEN  at 22:13:10, ");
    assert_shows(a, "Stack of MainThread"); /* frozen */
    assert_shows(a, "CPU      ?");          /* the header goes on */
    assert_int_equal(a->data.received, 4);
    fixture_press(a, "Enter j \\ \"pin Enter Esc"); /* one can look round */
    assert_shows(a, "Thread-1 (_pin");
    fixture_press(a, "Z");
    assert_hides(a, "FROZEN");
    assert_hides(a, "MainThread");
    app_free(a);
}

static void test_pause_before_the_first_snapshot_is_nothing(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 0, false);
    (void)state;
    fixture_press(a, "Z");
    assert_false(a->data.paused);
    app_free(a);
}

static void test_filter(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    fixture_press(a, "\\ \"feed");
    assert_shows(a, "QueueFeederThread"); /* by name; the other by a frame, Queue._feed */
    assert_shows(a, "_pin");
    assert_hides(a, "4242 MainThread");
    fixture_press(a, "Enter");
    assert_shows(a, "Threads 2 of 6   FILTER feed");
    assert_shows(a, "\\ FILTER");
    fixture_press(a, "\\ ctrl-u \"!omp|QUEUE Enter"); /* a capital makes it exact */
    assert_shows(a, "Threads 6   FILTER !omp|QUEUE");
    fixture_press(a, "\\ ctrl-u \"!omp|queue Enter");
    assert_shows(a, "Threads 2 of 6   FILTER !omp|queue");
    assert_shows(a, "MainThread");
    fixture_press(a, "\\ ctrl-u \"nothing-like-it Enter");
    assert_true(a->message_is_bad);
    fixture_press(a, "Esc");
    assert_shows(a, "Threads 6");
    fixture_press(a, "\\ \"OMP Esc"); /* left by Esc: no filter */
    assert_shows(a, "Threads 6");
    app_free(a);
}

static void test_hiding(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    fixture_press(a, "H");
    assert_shows(a, "Threads 3 of 6   native hidden");
    fixture_press(a, "i");
    assert_shows(a, "Threads 2 of 6   idle hidden   native hidden");
    fixture_press(a, "A");
    assert_shows(a, "Threads 6");
    app_free(a);
}

static void test_search(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    fixture_press(a, "/ \"_recv");
    assert_shows(a, "Stack of Thread-1 (_pin_memory_loop)"); /* while it is typed */
    fixture_press(a, "Esc");
    assert_shows(a, "Stack of MainThread"); /* and back */
    fixture_press(a, "/ \"omp Enter");
    assert_shows(a, "Stack of OMP worker (4262)");
    assert_shows(a, "/omp: 2 threads");
    fixture_press(a, "n");
    assert_shows(a, "Stack of OMP worker (4261)");
    fixture_press(a, "n");
    assert_shows(a, "Stack of OMP worker (4262)");
    fixture_press(a, "N");
    assert_shows(a, "Stack of OMP worker (4261)");
    fixture_press(a, "Esc");
    assert_hides(a, "/omp");
    fixture_press(a, "g Enter / \"train_step Enter"); /* in the stack it looks for frames */
    assert_shows(a, "Stack of MainThread");
    fixture_press(a, "/ \"zzz Enter");
    assert_true(a->message_is_bad);
    app_free(a);
}

/* Letters in a prompt type, whatever they are bound to; pasted text is never keys. */
static void test_typing_is_not_keys(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    fixture_press(a, "/ \"qQ?hjkl");
    assert_string_equal(a->prompt.text, "qQ?hjkl");
    assert_false(fake_host.asked.quit);
    struct input_event paste = {.kind = INPUT_EVENT_PASTE, .text = "q\nQ\x1b[A"};
    app_input(a, &paste);
    assert_false(fake_host_take().quit);
    fixture_press(a, "Esc");
    app_input(a, &paste);
    assert_false(fake_host_take().quit);
    assert_shows(a, "Threads 6");
    app_free(a);
}

/* What is typed goes on where it was when the window is large enough again: it is no commands meanwhile. */
static void test_too_small_to_type(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    struct grid g;
    (void)state;
    assert_int_equal(grid_init(&g, 10, 30), 0);
    fixture_press(a, "/ \"st");
    app_draw(a, &g);
    fixture_press(a, "\"ZqQx2 Enter");
    app_input(a, &(struct input_event){.kind = INPUT_EVENT_PASTE, .text = "pasted"});
    assert_false(fake_host.asked.quit);
    assert_false(a->data.paused);
    assert_string_equal(a->prompt.text, "st");
    fixture_press(a, "ctrl-l");
    assert_true(fake_host.asked.repaint);
    fixture_shows(a, 24, 80, "Search: st");
    fixture_press(a, "Esc B");
    app_draw(a, &g);
    fixture_press(a, "y");
    assert_int_equal(a->ask.action, ACTION_DEBUG);
    fixture_shows(a, 24, 80, "Start debugpy in the job?");
    fixture_press(a, "n");
    app_draw(a, &g);
    fixture_press(a, "2 Z"); /* nor are keys that nobody sees the effect of */
    assert_false(a->data.paused);
    (void)fake_host_take();
    fixture_press(a, "q");
    assert_true(fake_host.asked.quit);
    grid_fini(&g);
    app_free(a);
}

static void test_leaving(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    fixture_press(a, "Esc Esc Esc Enter Esc Esc ? Esc Esc Backspace");
    assert_false(fake_host.asked.quit); /* Esc never quits */
    fixture_press(a, "? q");
    assert_false(fake_host.asked.quit);
    assert_int_equal(a->n_screens, 1);
    fixture_press(a, "q");
    assert_true(fake_host_take().quit);
    assert_int_equal(app_exit_status(a), 0);
    fixture_press(a, "? Q");
    assert_true(fake_host_take().quit);
    fixture_press(a, "q");
    struct err why = {ERR_LOST, "process 4242 has ended"};
    app_set_state(a, SESSION_LOST, &why, 0);
    assert_shows(a, "TARGET GONE: process 4242 has ended. Last snapshot: 22:13:10. q quits.");
    assert_shows(a, "train_step"); /* browsable */
    assert_false(app_needs_tick(a));
    fixture_press(a, "j / \"pin Enter");
    assert_shows(a, "Stack of Thread-1");
    fixture_press(a, "q");
    assert_true(fake_host_take().quit);
    assert_int_equal(app_exit_status(a), 4);
    app_free(a);
}

static void test_unknown_key_says_so(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    fixture_press(a, "F11");
    assert_shows(a, "F11 does nothing here: press ? for the keys");
    fixture_press(a, "j");
    assert_hides(a, "does nothing");
    app_free(a);
}

static void test_rate(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    fixture_press(a, "F7");
    assert_true(a->config.delay_s == 0.5);
    fixture_press(a, "F8 F8");
    assert_true(a->config.delay_s == 0.1);
    fixture_press(a, "F8 F8 F8 F8");
    assert_true(a->config.delay_s == SETTINGS_MIN_DELAY_S);
    for (int i = 0; i < 20; i++)
        fixture_press(a, "F7");
    assert_true(a->config.delay_s == SETTINGS_MAX_DELAY_S);
    a->config.delay_s = 0.3; /* given by -d: the next step is the next in the row */
    fixture_press(a, "F7");
    assert_true(a->config.delay_s == 0.5);
    a->config.delay_s = 0.3;
    fixture_press(a, "F8");
    assert_true(a->config.delay_s == 0.25);
    app_free(a);
}

static void test_wishes(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    fixture_press(a, "ctrl-l ctrl-z ctrl-t r");
    struct fake_asked w = fake_host_take();
    assert_true(w.repaint && w.suspend && w.set_mouse && w.snapshot && !w.quit);
    w = fake_host_take();
    assert_false(w.repaint || w.suspend || w.set_mouse || w.snapshot);
    app_free(a);
}

static void test_mouse(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    (void)fixture_draw(a, 24, 80);
    struct input_event click = {.kind = INPUT_EVENT_MOUSE, .button = INPUT_CLICK, .row = 8, .col = 10};
    app_input(a, &click);
    assert_shows(a, "Stack of QueueFeederThread");
    click.row = 5; /* the head: sort by name */
    app_input(a, &click);
    assert_shows(a, "sorted by NAME");
    app_input(a, &click);
    assert_shows(a, "NAME\xe2\x96\xbe");
    click.row = 15;
    app_input(a, &click);
    assert_int_equal(screen_context(app_screen_top(a)->def, app_screen_top(a)->state), CONTEXT_STACK);
    click.row = 23;
    click.col = 1; /* F1 Help */
    app_input(a, &click);
    assert_int_equal(a->n_screens, 2);
    struct input_event wheel = {.kind = INPUT_EVENT_MOUSE, .button = INPUT_WHEEL_DOWN, .row = 10, .col = 10};
    app_input(a, &wheel);
    assert_shows(a, "Keys of ");
    app_free(a);
}

/* The line of tabs: which screen is shown, what lies over it, and a click on another. */
static void test_tabs(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    struct input_event click = {.kind = INPUT_EVENT_MOUSE, .button = INPUT_CLICK, .row = 4};
    (void)state;
    assert_non_null(strstr(fixture_draw(a, 24, 80), "1 Overview  [2 Threads]  3 Flame"));
    assert_non_null(strstr(fixture_draw(a, 24, 80), "4 Top  5 Timeline"));
    while (app_draw_tab_at(a, 4, click.col) != ACTION_SHOW_TOP && click.col < 79)
        click.col++;
    app_input(a, &click);
    assert_string_equal(app_screen_top(a)->def->name, "top");
    assert_shows(a, "[4 Top]");
    fixture_press(a, "?");
    assert_shows(a, "[4 Top]");
    assert_shows(a, "> Help");
    fixture_press(a, "q 2");
    assert_shows(a, "[2 Threads]");
    assert_int_equal(a->n_screens, 1);
    assert_non_null(strstr(fixture_draw(a, 20, 80), "[2 Threads] 3 4 5 6 7"));
    assert_int_equal(app_draw_tab_at(a, 18, 0), ACTION_NONE);
    fixture_press(a, "#"); /* the folded header takes its line */
    assert_non_null(strstr(fixture_draw(a, 24, 80), "[2 Threads] 3 4 5 6 7"));
    app_free(a);
}

static void test_help_runs_entries(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    fixture_press(a, "? / \"freeze Enter Enter");
    assert_int_equal(a->n_screens, 1);
    assert_true(a->data.paused);
    fixture_press(a, "? / \"attach Enter Enter"); /* of another screen: nothing happens */
    assert_int_equal(a->n_screens, 2);
    app_free(a);
}

/* The keys of the screen below on one page, in groups; again: all of them. */
static void test_help_is_a_page_first(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    fixture_press(a, "?");
    assert_shows(a, "Keys of Threads   ? shows all keys");
    assert_shows(a, " Move");
    assert_shows(a, " Show");
    assert_shows(a, " Act");
    assert_shows(a, " Screens");
    assert_shows(a, "Z        freeze");
    assert_shows(a, "/ F3     search");
    assert_hides(a, "zoom in"); /* of Flame */
    fixture_press(a, "?");
    assert_shows(a, "Help   line ");
    fixture_press(a, "?");
    assert_shows(a, "Keys of Threads");
    fixture_press(a, "q 3 ?");
    assert_shows(a, "Keys of Flame");
    assert_shows(a, "zoom in");
    fixture_press(a, "Esc");
    assert_hides(a, "Keys of");
    app_free(a);
}

static void draw_nothing(void *state, struct app *app, struct grid *g, struct rect area) {
    (void)state;
    (void)app;
    (void)g;
    (void)area;
}

/* The page of every screen and pane fits, with whole words, into the smallest usual terminal. */
static void test_help_fits(void **state) {
    (void)state;
    for (int c = 0; c < CONTEXT_COUNT; c++) {
        struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
        const struct screen_def below = {
            .name = "any", .title = "any", .keys = (enum action_context)c, .draw = draw_nothing};
        app_screen_push(a, &below);
        app_screen_push(a, &screen_help);
        const char *page = strchr(fixture_draw(a, 24, 80), '\n');
        for (int row = 0; row < 4; row++) /* below the header and the tabs */
            page = strchr(page + 1, '\n');
        if (strstr(page, "\xe2\x80\xa6") || strstr(page, "and more"))
            fail_msg("the help of %s does not fit:\n%s", action_context_name((enum action_context)c), page);
        app_screen_pop(a);
        app_screen_pop(a);
        app_free(a);
    }
}

/* A filter that is typed before the processes are there holds for them. */
static void test_picker_filters_what_comes_later(void **state) {
    struct app_config config = {.delay_s = 0.25, .mouse = true, .pick = true, .host = fake_host_begin()};
    struct app *a = app_new(&config);
    size_t n = 0;
    (void)state;
    assert_non_null(a);
    fixture_press(a, "\\ \"notebook Enter");
    assert_shows(a, "FILTER notebook");
    assert_hides(a, "nothing matches");
    struct target_process *list = fixture_processes(&n);
    app_take_processes(a, list, n, "");
    assert_shows(a, "python -m notebook");
    assert_hides(a, "train.py");
    app_free(a);
}

static void test_job_picker(void **state) {
    struct app *a = job_fixture_picker(false);
    struct err why = {ERR_ATTACH, "no server answers at db.example:8123"};
    (void)state;
    assert_shows(a, "Which job of clickhouse://db.example/probing?");
    assert_shows(a, "Jobs 4");
    assert_true(fake_host_take().list_jobs);
    /* the newest first; those that are known stay while there are no others */
    assert_shows(a, "llama-70b-c4f2");
    app_take_jobs(a, NULL, &why);
    assert_shows(a, "no server answers");
    assert_shows(a, "llama-70b-c4f2");
    struct engine_jobs jobs = job_fixture_jobs();
    app_take_jobs(a, &jobs, NULL);
    assert_hides(a, "no server answers");
    fixture_press(a, "\\ \"ended Enter");
    assert_hides(a, "llama");
    assert_shows(a, "Jobs 2 of 4");
    fixture_press(a, "A g y");
    assert_string_equal(fake_host.text, "train.py-77aa");
    fixture_press(a, "r");
    assert_true(fake_host_take().list_jobs);
    fixture_press(a, "Enter");
    assert_string_equal(fake_host_take().job, "clickhouse://db.example/probing?job=train.py-77aa");
    assert_ptr_equal(app_screen_top(a)->def, &screen_ranks);
    assert_shows(a, "train.py-77aa");
    assert_int_equal(app_exit_status(a), 0);
    app_free(a);
}

/* Nothing is there yet, or at all. */
static void test_job_picker_without_jobs(void **state) {
    struct app_config config = {.job_server = "clickhouse://db.example/probing", .host = fake_host_begin()};
    struct engine_jobs none = {.n = 0};
    struct app *a = app_new(&config);
    (void)state;
    app_set_time(a, FIXTURE_NOW_S, FIXTURE_EPOCH_S);
    assert_shows(a, "looking ...");
    fixture_press(a, "Enter j /");
    app_take_jobs(a, &none, NULL);
    fixture_press(a, "Esc");
    assert_shows(a, "no job has rows of the last 30 days");
    app_free(a);
}

static void test_picker(void **state) {
    struct app *a = fixture_picker(false);
    (void)state;
    assert_shows(a, "[agent] python train");
    app_take_processes(a, NULL, 0, "processes of other users are not visible");
    assert_shows(a, "processes of other users are not visible");
    assert_shows(a, "no Python process is running");
    size_t again = 0;
    struct target_process *first = fixture_processes(&again);
    app_take_processes(a, first, again, "");
    assert_hides(a, "not visible");
    assert_true(fake_host_take().list_processes);
    fixture_press(a, "j");
    size_t n = 0;
    struct target_process *list =
        fixture_processes(&n); /* the list comes anew; the selection stays on its process */
    list[1].cpu_pct = 0;
    app_take_processes(a, list, n, "");
    fixture_press(a, "Enter");
    assert_int_equal(fake_host_take().attach, 5001);
    assert_int_equal(a->attaching, 5001);
    fixture_press(a, "Enter"); /* one at a time */
    assert_int_equal(fake_host_take().attach, 0);
    struct err why = {ERR_ATTACH, "process 5001: no"};
    app_attach_done(a, &why);
    assert_shows(a, "process 5001: no");
    assert_int_equal(a->attaching, 0);
    fixture_press(a, "\\ \"root Enter Enter");
    assert_shows(a, "812: it belongs to root: run as root");
    assert_int_equal(fake_host_take().attach, 0);
    fixture_press(a, "A g Enter");
    assert_true(fake_host_take().attach > 0);
    app_attach_done(a, NULL);
    assert_shows(a, "connecting to the agent");
    assert_int_equal(app_exit_status(a), 0);
    app_free(a);
}

static void test_ages(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 9, false);
    (void)state;
    const struct data_shot *shot = data_shown(&a->data);
    assert_true(data_stack_age(shot, 1) == 2.0); /* the feeder has not moved in nine looks */
    assert_true(data_stack_age(shot, 0) == 0.0); /* the main thread's line changes */
    assert_true(data_stack_age(shot, 3) != data_stack_age(shot, 3)); /* no frames: unknown */
    app_free(a);
}

/* For how long one waits, that garbage is collected, and that there may be no GIL at all. */
static void test_gil_facts(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    struct model_snapshot s;
    (void)state;
    assert_non_null(strstr(fixture_draw(a, 30, 100), "held by MainThread (4242)  1 wait 1.3s"));
    assert_non_null(
        strstr(fixture_draw(a, 30, 100), "Stack of MainThread (4242)  9 frames, collecting garbage"));
    assert_non_null(strstr(fixture_draw(a, 30, 100), "GC 33%"));
    fixture_press(a, ") )");
    assert_non_null(strstr(fixture_draw(a, 30, 100), "5 frames, waiting for the GIL for at least 1.3 s"));
    fixture_snapshot(&s, FIXTURE_NORMAL, 4);
    s.gil_enabled = 0;
    s.gil_tid = 0;
    for (size_t i = 0; i < s.n_threads; i++)
        s.threads[i].gil = MODEL_GIL_NONE;
    app_take_snapshot(a, &s);
    assert_non_null(strstr(fixture_draw(a, 30, 100), "held by nobody: this Python has none"));
    assert_non_null(
        strstr(fixture_draw(a, 30, 100), "4242 MainThread      R  none                      98.5"));
    app_free(a);
}

/* Gentle and from outside: the screen says that stacks may be torn, and how many were. */
static void test_torn_stacks_are_told(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    struct model_snapshot s;
    (void)state;
    assert_hides(a, "may be torn");
    fixture_snapshot(&s, FIXTURE_NORMAL, 3);
    s.sampling = MODEL_SAMPLING_GENTLE;
    app_take_snapshot(a, &s);
    /* In each of four snapshots two threads with Python ran: of one it is known because its stack is torn. */
    assert_non_null(strstr(fixture_draw(a, 24, 80), "torn stacks 4 of 8"));
    app_free(a);
}

/* Four looks: held, waiting, neither, unknown; of the three that tell something each is a third. */
static void test_gil_shares(void **state) {
    static const enum model_gil looks[] = {MODEL_GIL_HOLDING, MODEL_GIL_WAITING, MODEL_GIL_NONE,
                                           MODEL_GIL_UNKNOWN};
    struct app *a = fixture_app(FIXTURE_NORMAL, 0, false);
    double held, waiting;
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct model_snapshot s;
        fixture_snapshot(&s, FIXTURE_NORMAL, i);
        s.threads[0].gil = looks[i];
        app_take_snapshot(a, &s);
    }
    const struct data_shot *shot = data_shown(&a->data);
    data_gil_share(shot, 0, &held, &waiting);
    assert_true(held > 33.3 && held < 33.4 && waiting == held);
    data_gil_share(shot, 1, &held, &waiting);
    assert_true(held == 0 && waiting == 100);
    data_gil_share(shot, 3, &held, &waiting);
    assert_true(held != held && waiting != waiting); /* no Python: unknown */
    for (int i = 0; i < DATA_GIL_TICKS; i++)
        next_snapshot(a, FIXTURE_NORMAL, 4 + i);
    data_gil_share(data_shown(&a->data), 0, &held, &waiting);
    assert_true(held == 100 && waiting == 0); /* what is long past is forgotten */
    assert_hides(a, "WAIT%");
    assert_non_null(strstr(fixture_draw(a, 30, 100), "GIL%  WAIT%"));
    app_free(a);
}

static void test_late_data_are_told(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 2, false);
    (void)state;
    app_set_time(a, FIXTURE_NOW_S + 0.3, FIXTURE_EPOCH_S);
    assert_false(app_needs_tick(a));
    app_set_time(a, FIXTURE_NOW_S + 7.5, FIXTURE_EPOCH_S);
    assert_true(app_needs_tick(a));
    assert_shows(a, "DATA 7s OLD");
    app_free(a);
}

static void test_rows_sort_stably(void **state) {
    struct model_snapshot s;
    struct data_shot shot = {.valid = true};
    struct thread_filter filter = {0};
    (void)state;
    fixture_snapshot(&s, FIXTURE_HUGE, 0);
    for (size_t i = 0; i < s.n_threads; i++)
        s.threads[i].cpu_pct = (double)(i % 3);
    shot.snapshot = s;
    for (int column = 0; column < thread_n_columns; column++)
        for (int down = 0; down < 2; down++) {
            struct thread_rows rows = {0};
            thread_rows_build(&rows, &shot, &filter, (struct table_sort){column, down});
            assert_int_equal(rows.n, s.n_threads);
            for (size_t i = 1; i < rows.n; i++) {
                const struct thread_row *x = thread_rows_at(&rows, i - 1), *y = thread_rows_at(&rows, i);
                int order = thread_columns[column].compare(x, y) * (down ? -1 : 1);
                assert_true(order < 0 || (order == 0 && x->thread < y->thread));
            }
            thread_rows_fini(&rows);
        }
    model_snapshot_fini(&s);
}

/* Any keys, clicks, sizes and data, in any order: nothing breaks, and the screen is always drawn. */
static void test_anything(void **state) {
    static const int sizes[][2] = {{24, 80}, {5, 20}, {50, 200}, {12, 60}, {1, 1}, {30, 139}, {13, 141}};
    (void)state;
    srand(11);
    for (int run = 0; run < 8; run++) {
        struct app *a =
            run % 4 == 3 ? fixture_picker(run > 4) : fixture_app((enum fixture_kind)(run % 4), 1, run > 4);
        struct grid g;
        assert_int_equal(grid_init(&g, 24, 80), 0);
        for (int i = 0; i < 1000; i++) {
            struct input_event e = {.kind = INPUT_EVENT_KEY};
            switch (rand() % 10) {
            case 0:
                e = (struct input_event){.kind = INPUT_EVENT_MOUSE,
                                         .button = (enum input_button)(1 + rand() % 3),
                                         .row = rand() % 60,
                                         .col = rand() % 210};
                break;
            case 1:
                e = (struct input_event){.kind = INPUT_EVENT_PASTE, .text = "\033x\xe8\xa8\x93"};
                break;
            case 2:
                e.key = INPUT_SPECIAL + (uint32_t)(rand() % 24);
                break;
            case 3:
                e.key = INPUT_CTRL + 'a' + (uint32_t)(rand() % 26);
                break;
            default:
                e.key = ' ' + (uint32_t)(rand() % 95);
            }
            app_input(a, &e);
            if (rand() % 20 == 0)
                next_snapshot(a, (enum fixture_kind)(rand() % 4), i);
            if (rand() % 30 == 0)
                app_set_state(a, (enum session_state)(rand() % 5), NULL, 1);
            struct fake_asked w = fake_host_take();
            if (w.attach)
                app_attach_done(a, NULL);
            const int *size = sizes[(size_t)rand() % (sizeof sizes / sizeof sizes[0])];
            if (rand() % 5 == 0)
                assert_int_equal(grid_resize(&g, size[0], size[1]), 0);
            app_draw(a, &g);
            assert_true(grid_row_length(&g, 0) > 0);
        }
        grid_fini(&g);
        app_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_main_thread_is_selected_first),
        cmocka_unit_test(test_selection_follows_the_thread),
        cmocka_unit_test(test_frame_stays_selected),
        cmocka_unit_test(test_selected_thread_that_ends),
        cmocka_unit_test(test_pause_freezes_the_view_only),
        cmocka_unit_test(test_pause_before_the_first_snapshot_is_nothing),
        cmocka_unit_test(test_filter),
        cmocka_unit_test(test_hiding),
        cmocka_unit_test(test_search),
        cmocka_unit_test(test_typing_is_not_keys),
        cmocka_unit_test(test_leaving),
        cmocka_unit_test(test_too_small_to_type),
        cmocka_unit_test(test_unknown_key_says_so),
        cmocka_unit_test(test_rate),
        cmocka_unit_test(test_wishes),
        cmocka_unit_test(test_mouse),
        cmocka_unit_test(test_tabs),
        cmocka_unit_test(test_help_runs_entries),
        cmocka_unit_test(test_help_is_a_page_first),
        cmocka_unit_test(test_help_fits),
        cmocka_unit_test(test_job_picker),
        cmocka_unit_test(test_job_picker_without_jobs),
        cmocka_unit_test(test_picker),
        cmocka_unit_test(test_picker_filters_what_comes_later),
        cmocka_unit_test(test_ages),
        cmocka_unit_test(test_gil_shares),
        cmocka_unit_test(test_gil_facts),
        cmocka_unit_test(test_torn_stacks_are_told),
        cmocka_unit_test(test_late_data_are_told),
        cmocka_unit_test(test_rows_sort_stably),
        cmocka_unit_test(test_anything),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    (void)setenv("TZ", "UTC", 1);
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
