/* SPDX-License-Identifier: Apache-2.0 */
/* Overview and Log: known numbers in give known numbers out, unknown ones "?"; what happens is an event, once. */
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

#include "tui/core/app.h"
#include "tui/core/app_feed.h"
#include "base/text.h"
#include "tui/core/app_history.h"
#include "tui/core/app_input.h"
#include "tui/core/app_life.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_take.h"
#include "tui/model/events.h"
#include "unit/tui_fixture.h"
#include "unit/tui_host.h"
#include "unit/tui_tables.h"

static void assert_shows(struct app *a, int rows, int cols, const char *what) {
    const char *text = fixture_draw(a, rows, cols);
    if (!strstr(text, what))
        fail_msg("'%s' is not on the screen:\n%s", what, text);
}

static void assert_hides(struct app *a, const char *what) {
    const char *text = fixture_draw(a, 50, 200);
    if (strstr(text, what))
        fail_msg("'%s' is on the screen:\n%s", what, text);
}

/* Entries of the log with that in them. */
static int logged(const struct app *a, const char *what) {
    int n = 0;
    for (size_t i = 0; i < log_count(a->log); i++)
        n += strstr(log_at(a->log, i)->text, what) ? (int)log_at(a->log, i)->times : 0;
    return n;
}

/* ---- numbers ---- */

static void cpu_of_each_class(void **state) {
    struct app *a =
        fixture_app(FIXTURE_NORMAL, 3, false); /* main 97.5 + 2, two with Python 0.4 + 0, native 88.1, ?, 0 */
    const struct data *d = &a->data;
    size_t n;
    (void)state;
    assert_true(fabs(events_class_cpu(d, &d->live.snapshot, EVENTS_CPU_MAIN, &n) - 99.5) < 1e-9 && n == 1);
    assert_true(fabs(events_class_cpu(d, &d->live.snapshot, EVENTS_CPU_PYTHON, &n) - 0.4) < 1e-9 && n == 2);
    assert_true(fabs(events_class_cpu(d, &d->live.snapshot, EVENTS_CPU_NATIVE, &n) - 88.1) < 1e-9 && n == 3);
    assert_true(fabs(meter_mean(&d->pulse.meters[EVENTS_CPU_MAIN], 3) - 98.5) < 1e-9); /* 97.5, 98.5, 99.5 */
    fixture_press(a, "1");
    assert_shows(a, 50, 200, "main thread      99.5 %");
    assert_shows(a, 50, 200, "linear functional.py:12");
    assert_shows(a, 50, 200, "Python threads    0.4 %");
    assert_shows(a, 50, 200, "native threads   88.1 %");
    assert_shows(a, 50, 200, "3: pt_autograd 88 %, OMP worker x2 0 %");
    assert_shows(a, 50, 200, "2 run, 1 waits for the GIL, 1 in a device, 1 sleeps, 1 stopped");
    app_free(a);
}

static void memory_and_its_limit(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    struct proc_stats v = {.state = 'R', .rss_bytes = 1, .group_bytes = 3LL << 30, .limit_bytes = 16LL << 30};
    (void)state;
    fixture_press(a, "1");
    assert_shows(a, 50, 200, "RAM; cgroup ?");
    app_take_proc_stats(a, &v);
    assert_shows(a, 50, 200, "1.20 GiB");
    assert_shows(a, 50, 200, "cgroup 3.00 GiB of 16.0 GiB (19 %)");
    v.limit_bytes = MODEL_UNKNOWN;
    app_take_proc_stats(a, &v);
    assert_shows(a, 50, 200, "cgroup 3.00 GiB, no limit seen");
    app_free(a);
}

/* Who else is connected stands in the header of every screen, and what they have armed; the log says when that changed. */
static void who_else_is_there(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    struct model_lease lease = {.what = "nan", .owners = 1, .left_s = NAN, .cost_pct = NAN};
    struct model_status s = {
        .budget_pct = 1.0, .strategy = "borrowed thread", .clients = 4, .client_processes = 1};
    (void)state;
    app_take_status(a, &s); /* all of these are ours */
    assert_hides(a, "others");
    s.client_processes = 3;
    s.leases = &lease;
    s.n_leases = 1;
    app_take_status(a, &s);
    assert_shows(a, 24, 80, "running NaN search (by others)");
    assert_shows(a, 24, 80, "others 2");
    assert_int_equal(logged(a, "other clients of the agent: 2 processes"), 1);
    app_take_status(a, &s);
    assert_int_equal(logged(a, "other clients of the agent"), 1);
    s.client_processes = 2;
    lease.owners = 0;
    lease.by_config = true;
    app_take_status(a, &s);
    assert_shows(a, 24, 80, "running NaN search (by its settings)");
    assert_int_equal(logged(a, "other clients still connected to the agent: 1"), 1);
    s.client_processes = 1;
    app_take_status(a, &s);
    assert_int_equal(logged(a, "no other client is connected"), 1);
    assert_hides(a, "others");
    s.client_processes = 0; /* an agent that does not tell */
    app_take_status(a, &s);
    assert_hides(a, "others");
    /* It is asked for again and again, on any screen, but not while the view stands still. */
    a->data.pulse.status_at_s = a->now_s;
    assert_false(app_wants_status(a));
    a->data.pulse.status_at_s = a->now_s - EVENTS_STATUS_S;
    assert_true(app_wants_status(a));
    app_set_paused(a, true);
    assert_false(app_wants_status(a));
    app_free(a);
}

static void what_the_agent_costs(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    struct model_status s = {.budget_pct = 1.0, .strategy = "borrowed thread"};
    (void)state;
    fixture_press(a, "1");
    assert_true(app_wants_proc_stats(a) && app_wants_status(a));
    assert_shows(a, 50, 200, "of a core, budget ? %");
    app_take_status(a, &s);
    assert_int_equal(logged(a, "the agent was loaded by borrowed thread"), 1);
    assert_shows(a, 50, 200, "of a core, budget 1 %; 1.90 MiB; by borrowed thread");
    s.uptime_s = 3;
    app_take_status(a, &s);
    assert_shows(a, 50, 200, "of a core, loading included, budget 1 %; 1.90 MiB");
    s.uptime_s = 11;
    app_take_status(a, &s);
    assert_shows(a, 50, 200, "of a core, budget 1 %; 1.90 MiB; by borrowed thread");
    assert_hides(a, "GIL by agent");
    s.gil_holds = 12;
    s.us_longest_gil_hold = NAN;
    app_take_status(a, &s);
    assert_shows(a, 50, 200, "GIL by agent           ?");
    s.us_longest_gil_hold = 1420;
    app_take_status(a, &s);
    assert_shows(a, 50, 200, "GIL by agent     1.42 ms");
    assert_shows(a, 24, 80, "at most at a time, 12 times");
    fixture_samples(a, 40);
    assert_shows(a, 50, 200, "96 Hz");
    assert_shows(a, 50, 200, "of 100 Hz a thread; 4 dropped");
    struct model_snapshot next;
    fixture_snapshot(&next, FIXTURE_NORMAL, 4);
    app_take_snapshot(a, &next);
    fixture_press(a, "2");
    assert_false(app_wants_proc_stats(a)); /* nobody looks */
    app_free(a);
}

static void what_is_unknown(void **state) {
    struct app *a = fixture_app(FIXTURE_UNKNOWN, 1, false);
    (void)state;
    fixture_press(a, "1");
    assert_shows(a, 50, 200, "CPU                    ?");
    assert_shows(a, 50, 200, "GIL held               ?");
    assert_shows(a, 50, 200, "memory                 ?");
    assert_shows(a, 50, 200, "samples                ?");
    assert_shows(a, 50, 200, "read from outside");
    assert_hides(a, "nan");
    app_free(a);
}

static void functions_lead_to_flame(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    fixture_press(a, "1");
    fixture_samples(a, 40);
    assert_shows(a, 50, 200, "Top functions: own time on the CPU, over 10.0s, 921 samples");
    fixture_press(a, "W");
    assert_shows(a, 50, 200, "own time on the CPU, last 10 s, ");
    fixture_press(a, "W W");
    assert_shows(a, 50, 200, "own time on the CPU, over 10.0s, ");
    for (int i = 0; i < 30 && !strstr(fixture_draw(a, 50, 200), "line 16 of"); i++)
        fixture_press(a, "j");
    fixture_press(a, "Enter");
    assert_string_equal(app_screen_top(a)->def->name, "flame");
    assert_shows(a, 50, 200, "/AdamW.step:");
    fixture_press(a, "1"); /* as it was left */
    assert_shows(a, 50, 200, "line 16 of");
    fixture_press(a, "g j Enter");
    assert_string_equal(app_screen_top(a)->def->name, "threads");
    app_free(a);
}

/* Lines of the screen with that in them. */
static int lines_with(struct app *a, int rows, const char *what) {
    int n = 0;
    for (const char *at = fixture_draw(a, rows, 160); (at = strstr(at, what)); at++)
        n++;
    return n;
}

/* The row and column where a text is on the last drawn screen. */
static struct input_event click_at(struct app *a, int rows, int cols, const char *what) {
    const char *text = fixture_draw(a, rows, cols), *at = strstr(text, what), *line = text;
    struct input_event e = {.kind = INPUT_EVENT_MOUSE, .button = INPUT_CLICK};
    if (!at)
        fail_msg("'%s' is not on the screen:\n%s", what, text);
    for (const char *p = text; p < at; p++)
        if (*p == '\n') {
            e.row++;
            line = p + 1;
        }
    char left[1024];
    (void)snprintf(left, sizeof left, "%.*s", (int)(at - line), line);
    e.col = text_width(left);
    return e;
}

/* In two columns the flame graph is below events, which give way to it; a click on a cell leads to Flame. */
static void a_small_flame_graph(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    fixture_press(a, "1");
    assert_shows(a, 45, 160, "Flame: no samples yet");
    assert_shows(a, 45, 160, "sampling ...");
    fixture_samples(a, 40);
    for (int i = 0; i < 8; i++)
        log_add_of(a->log, 100 + i, FIXTURE_EPOCH_S + 40 + i, LOG_LEVEL_INFO, "event %d", i);
    assert_shows(a, 45, 160, "Flame: time on the CPU, over 10.0s");
    assert_shows(a, 45, 160, "train_step  92.0%");
    assert_shows(a, 45, 160, "Module._call_impl  35.7%");
    assert_int_equal(lines_with(a, 45, " event "), 8);
    assert_int_equal(lines_with(a, 30, " event "), 7);
    assert_shows(a, 30, 160, "Module._call_impl  35.7%");
    assert_int_equal(lines_with(a, 22, " event "), 3);
    assert_shows(a, 22, 160, "train_step  92.0%");
    assert_int_equal(lines_with(a, 20, " event "), 7); /* no room for it */
    fixture_hides(a, 20, 160, "Flame: time");
    fixture_hides(a, 24, 80, "Flame: time");
    struct input_event e = click_at(a, 45, 160, "Block.forward");
    app_input(a, &e);
    assert_string_equal(app_screen_top(a)->def->name, "flame");
    assert_shows(a, 45, 160, " Block.forward  ");
    assert_shows(a, 45, 160, "total 55.8%");
    fixture_press(a, "1 G Enter"); /* its heading is the last line */
    assert_string_equal(app_screen_top(a)->def->name, "flame");
    app_free(a);
}

/* What is the matter comes first, with its evidence; Enter goes where more of it is. */
static void verdicts_come_first(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    fixture_press(a, "1");
    assert_shows(a, 50, 200, "verdict        reading ...");
    tables_answer_verdicts(a, tables_verdicts(TABLES_NORMAL));
    assert_shows(a, 50, 200, "STUCK          no step for 3m12s, the longest of the 200 before took 1.2 s;");
    assert_shows(a, 24, 80, "STUCK          no step for 3m12s, the longest of the 200 before took 1.2 s;");
    assert_shows(a, 24, 80,
                 "                the main thread stands in all_reduce (distributed_c10d.py:2203)");
    assert_shows(a, 50, 200, "GIL CONTENTION the training thread");
    fixture_press(a, "g Enter");
    assert_string_equal(app_screen_top(a)->def->name, "threads");
    fixture_press(a, "1");
    for (int i = 0; i < 10; i++)
        fixture_press(a, "j");
    char line[64];
    const char *at = strstr(fixture_draw(a, 50, 200), "Overview   line ");
    (void)snprintf(line, sizeof line, "%.18s ", at);
    app_set_time(a, a->now_s + 2, a->epoch_s + 2);
    app_screen_update_all(a); /* it is asked again; fewer lines above do not move what is selected */
    tables_answer_verdicts(a, tables_verdicts(TABLES_NONE));
    assert_shows(a, 50, 200, "verdict        no verdict on its training yet");
    assert_hides(a, "STUCK");
    assert_hides(a, line);
    app_set_time(a, a->now_s + 2, a->epoch_s + 2);
    app_screen_update_all(a);
    tables_fail(a, FEED_VERDICTS, "process 4242 has ended");
    assert_shows(a, 50, 200, "verdict        process 4242 has ended");
    app_free(a);
}

static struct app *with_verdicts(const char *const *lines) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 12, false);
    app_screen_update_all(a);
    tables_answer_verdicts(a, tables_read_verdicts(lines));
    return a;
}

/* Steps a second, loss and GPU memory come from the job's tables; they go when they are not known any more. */
static void the_header_is_about_the_job(void **state) {
    static const char *const row[] = {"12.34|0.02134|3072.0", NULL};
    struct app *a = fixture_app(FIXTURE_NORMAL, 12, false);
    (void)state;
    assert_shows(a, 24, 80, "steps ?  memory 1.20 GiB ");
    tables_answer(a, FEED_JOB, tables_rows("rate|loss|gpu_mb", row));
    assert_shows(a, 24, 80, "steps 12/s  loss 0.02134  memory 1.20 GiB ");
    assert_shows(a, 24, 80, "  GPU 3.00 GiB");
    app_set_time(a, a->now_s + 100, a->epoch_s + 100);
    assert_hides(a, "loss 0.02134");
    app_free(a);
    a = fixture_app(FIXTURE_NORMAL, 12, false); /* a job without torch has none of that */
    a->data.target.torch = NULL;
    assert_hides(a, "steps");
    assert_shows(a, 24, 80, " memory 1.20 GiB ");
    app_free(a);
}

/* The worst in few words, on whatever screen; a state with its cause. */
static void the_header_says_what_is_the_matter(void **state) {
    static const char *const slow[] = {"SLOW|2|x|steps|x|SLOW|1",
                                       "INPUT-BOUND|2|x|loader|x|INPUT-BOUND, worker 2|0", NULL};
    static const char *const fine[] = {"MOVING|0|x|steps|x|MOVING|1",
                                       "COMPUTE-BOUND|0|x|steps|x|COMPUTE-BOUND|0", NULL};
    static const char *const worse[] = {
        "NAN|3|x|modules|x|NAN in model.layers.11.attention.output.dense of all|0", "SLOW|2|x|steps|x|SLOW|1",
        NULL};
    static const char *const screens[] = {"1", "2", "3", "4", "5", "6", "7", "8", "9", "L", "M", "p"};
    (void)state;
    struct app *a = with_verdicts(slow);
    for (size_t i = 0; i < sizeof screens / sizeof screens[0]; i++) {
        fixture_press(a, screens[i]);
        assert_shows(a, 24, 80, "SLOW: INPUT-BOUND, worker 2");
        assert_shows(a, 24, 80, "agent 0.3%"); /* what must be seen is */
        assert_shows(a, 50, 200, "SLOW: INPUT-BOUND, worker 2");
        assert_shows(a, 50, 200, "threads 6");
    }
    app_free(a);
    a = with_verdicts(fine);
    assert_hides(a, "MOVING");
    assert_shows(a, 24, 80, "Python 3.11.7");
    app_free(a);
    a = with_verdicts(worse);
    a->data.missed = 7;
    fixture_press(a, "3");
    assert_shows(a, 24, 80, "dropped 7"); /* has its place before what is cut */
    assert_shows(a, 24, 80, "agent 0.3%");
    assert_shows(a, 24, 80, "NAN in model.la");
    assert_shows(a, 12, 80, "NAN in model.la");
    assert_hides(a, "SLOW");
    app_set_time(a, a->now_s + 100, a->epoch_s + 100); /* it is not known any more */
    assert_hides(a, "NAN");
    app_free(a);
}

/* It is asked for after some snapshots, then seldom, by what an answer takes, and not while nobody looks at what is new. */
static void the_header_asks_seldom(void **state) {
    static const char *const none[] = {NULL};
    struct app *a = fixture_app(FIXTURE_NORMAL, 2, false);
    const struct app_feed *f = app_feed_get(a, FEED_VERDICTS);
    (void)state;
    app_screen_update_all(a);
    assert_false(f->wanted);
    app_free(a);
    a = with_verdicts(none);
    f = app_feed_get(a, FEED_VERDICTS);
    app_set_time(a, a->now_s + 4, a->epoch_s + 4);
    app_screen_update_all(a);
    assert_false(f->wanted);
    app_set_paused(a, true);
    app_set_time(a, a->now_s + 40, a->epoch_s + 40);
    app_screen_update_all(a);
    assert_false(f->wanted);
    app_set_paused(a, false);
    assert_true(f->wanted);
    struct querier_answer slow = {
        .kind = QUERIER_JUDGE, .verdicts = tables_verdicts(TABLES_NONE), .elapsed_s = 0.05};
    app_take_feed(a, FEED_VERDICTS, &slow);
    app_set_time(a, a->now_s + 19, a->epoch_s + 19);
    app_screen_update_all(a);
    assert_false(f->wanted);
    app_set_time(a, a->now_s + 2, a->epoch_s + 2);
    app_screen_update_all(a);
    assert_true(f->wanted);
    app_free(a);
}

static void scrolls_where_it_is_low(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, true);
    (void)state;
    fixture_press(a, "1");
    fixture_samples(a, 8);
    (void)fixture_draw(a, 12, 60);
    fixture_press(a, "End");
    assert_shows(a, 12, 60, "Python 3.11.7"); /* the oldest event */
    fixture_press(a, "Home");
    assert_shows(a, 12, 60, "CPU ");
    app_free(a);
}

/* ---- events ---- */

static struct model_sample sample(double at, int64_t tid, int gc) {
    return (struct model_sample){.timestamp = at, .tid = tid, .stack_id = 0, .on_cpu = 1, .gc = (int8_t)gc};
}

/* Looks 10 ms apart; garbage is collected in those from `first` to `last`. */
static void feed_gc(struct app *a, double at, int n, int first, int last) {
    struct model_sample samples[64];
    struct model_thread_def threads[] = {{4242, "MainThread", "python"}};
    for (int i = 0; i < n; i++)
        samples[i] = sample(at + i * 0.01, 4242, i >= first && i <= last);
    struct model_sample_batch b = {.epoch = 1, .period_us = 10000, .cost_pct = NAN, .budget_pct = NAN};
    b.threads = threads;
    b.n_threads = 1;
    b.samples = samples;
    b.n_samples = (size_t)n;
    app_take_samples(a, &b);
}

static void long_collections_are_events(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    feed_gc(a, FIXTURE_EPOCH_S, 20, 5, 7); /* 30 ms: none */
    assert_int_equal(logged(a, "garbage"), 0);
    feed_gc(a, FIXTURE_EPOCH_S + 1, 20, 3, 11);
    assert_int_equal(logged(a, "garbage collection: about 90 ms in MainThread"), 1);
    feed_gc(a, FIXTURE_EPOCH_S + 2, 20, 15, 19); /* over two batches it is one */
    feed_gc(a, FIXTURE_EPOCH_S + 2.2, 20, 0, 4);
    assert_int_equal(logged(a, "about 100 ms"), 1);
    fixture_press(a, "1");
    assert_shows(a, 50, 200, "last long one 100 ms");
    app_free(a);
}

static void collections_are_seen_in_snapshots_too(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 0, false);
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct model_snapshot s;
        fixture_snapshot(&s, FIXTURE_NORMAL, i);
        s.threads[0].gc = i >= 1 && i <= 3;
        app_take_snapshot(a, &s);
    }
    assert_int_equal(logged(a, "garbage collection in every snapshot for 500 ms in MainThread"), 1);
    app_free(a);
}

static void losses_are_added_up(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    for (int i = 1; i <= 20; i++) {
        struct model_snapshot s;
        fixture_snapshot(&s, FIXTURE_NORMAL, i);
        s.dropped = (uint64_t)i;
        app_set_time(a, FIXTURE_NOW_S + i, FIXTURE_EPOCH_S + i);
        app_take_snapshot(a, &s);
    }
    assert_int_equal(logged(a, "notifications dropped: 1;"), 1); /* at once, then not for a while */
    assert_int_equal(logged(a, "notifications dropped: 10;"), 1);
    app_free(a);
}

static void pauses_of_the_job(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    struct proc_stats v = {.state = 'T', .rss_bytes = 1, .group_bytes = -1, .limit_bytes = -1};
    (void)state;
    app_take_proc_stats(a, &v);
    app_take_proc_stats(a, &v);
    assert_int_equal(logged(a, "the job is stopped: SIGCONT"), 1);
    app_set_time(a, FIXTURE_NOW_S + 12, FIXTURE_EPOCH_S + 12);
    assert_true(app_is_late(a) && app_wants_proc_stats(a)); /* on any screen */
    app_tick(a);
    app_tick(a);
    assert_int_equal(logged(a, "no data for 5 s"), 1);
    v.state = 'S';
    app_take_proc_stats(a, &v);
    assert_int_equal(logged(a, "it was stopped for 12.0 s"), 1);
    struct model_snapshot s;
    fixture_snapshot(&s, FIXTURE_NORMAL, 2);
    app_take_snapshot(a, &s);
    assert_int_equal(logged(a, "data again"), 1);
    app_free(a);
}

static void slower_samples_are_told_once(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    for (int i = 0; i < 40; i++) {
        struct model_sample s = sample(FIXTURE_EPOCH_S + i, 4242, 0);
        struct model_sample_batch b = {.epoch = 1, .period_us = i < 25 ? 25000 : 10000};
        b.cost_pct = 0.99;
        b.budget_pct = 1;
        b.samples = &s;
        b.n_samples = 1;
        app_take_samples(a, &b);
    }
    assert_int_equal(logged(a, "sampling slowed to 40 of 100 Hz to stay under 1 % of a core"), 1);
    assert_int_equal(logged(a, "sampling 100 of 100 Hz again"), 1);
    app_free(a);
}

static void the_connection(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    struct err why = {ERR_FAILED, "the connection broke"}, end = {ERR_LOST, "process 4242 has ended"};
    (void)state;
    assert_int_equal(logged(a, "connected to agent"), 1);
    app_set_state(a, SESSION_RECONNECTING, &why, 1);
    app_set_state(a, SESSION_RECONNECTING, &why, 2);
    assert_int_equal(logged(a, "reconnecting: the connection broke"), 1);
    app_set_state(a, SESSION_CONNECTED, NULL, 0);
    assert_int_equal(logged(a, "connected again"), 1);
    app_set_state(a, SESSION_LOST, &end, 0);
    assert_int_equal(logged(a, "the target is gone: process 4242 has ended"), 1);
    app_free(a);
}

/* ---- the Log screen ---- */

static void the_log_follows_its_end(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    for (int i = 0; i < 60; i++)
        log_add(a->log, FIXTURE_EPOCH_S + i, LOG_LEVEL_INFO, "event number %d.", i);
    fixture_press(a, "L");
    assert_shows(a, 24, 80, "event number 59.");
    assert_shows(a, 24, 80, "follows what comes");
    log_add(a->log, FIXTURE_EPOCH_S + 60, LOG_LEVEL_BAD, "event number 60.");
    assert_shows(a, 24, 80, "22:14:20 E event number 60.");
    fixture_press(a, "Home");
    assert_shows(a, 24, 80, "connected to agent");
    for (int i = 61; i < LOG_ENTRIES + 20; i++)
        log_add(a->log, FIXTURE_EPOCH_S + i, LOG_LEVEL_INFO, "event number %d.", i);
    assert_shows(a, 24, 80, "older ones are gone");
    fixture_press(a, "End");
    log_add(a->log, FIXTURE_EPOCH_S, LOG_LEVEL_INFO, "the last one");
    assert_shows(a, 24, 80, "the last one");
    app_free(a);
}

static void the_log_is_searched_and_filtered(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    for (int i = 0; i < 30; i++)
        log_add(a->log, FIXTURE_EPOCH_S, i % 10 ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "event number %d.", i);
    fixture_press(a, "L / \"number|7. Enter");
    fixture_press(a, "\\ \"warning Enter");
    assert_shows(a, 24, 80, "Log 3 of 32");
    assert_shows(a, 24, 80, "! event number 20.");
    assert_hides(a, "event number 19.");
    fixture_press(a, "A / \"Number Enter");
    assert_shows(a, 24, 80, "nothing matches 'Number'");
    fixture_press(a, "/ \"5. Enter");
    assert_shows(a, 24, 80, "event number 25.");
    app_free(a);
}

static void long_entries_are_written_out(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    log_add(a->log, FIXTURE_EPOCH_S, LOG_LEVEL_BAD,
            "cannot attach: ptrace is refused by the kernel, because kernel.yama.ptrace_scope is 1 and this "
            "process is not its parent: run as root, or with CAP_SYS_PTRACE");
    fixture_press(a, "L");
    assert_shows(a, 24, 80, "The selected entry");
    assert_shows(a, 24, 80, "and this process is not its parent: run as root");
    app_free(a);
}

/* The text of the selected line. */
static const char *selected(struct app *a) {
    fixture_press(a, "Y");
    assert_non_null(fake_host.text);
    return fake_host.text;
}

/* Lines come and go above the selected one: it stays selected. */
static void selection_stays(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 3, false);
    (void)state;
    fixture_press(a, "1");
    log_add(a->log, a->epoch_s, LOG_LEVEL_INFO, "the first event");
    (void)fixture_draw(a, 50, 200);
    for (int i = 0; i < 60 && strncmp(selected(a), "agent", 5) != 0; i++)
        fixture_press(a, "j");
    assert_int_equal(strncmp(selected(a), "agent", 5), 0);
    app_feed_ask(a, FEED_GPU, GPUS_QUERY);
    tables_answer(a, FEED_GPU, tables_gpus(TABLES_NORMAL));
    assert_shows(a, 50, 200, "GPU 0");
    assert_int_equal(strncmp(selected(a), "agent", 5), 0);
    for (int i = 0; i < 60 && strcmp(selected(a), "the first event") != 0; i++)
        fixture_press(a, "j");
    assert_string_equal(selected(a), "the first event");
    log_add(a->log, a->epoch_s + 1, LOG_LEVEL_INFO, "the second event");
    assert_shows(a, 50, 200, "the second event");
    assert_string_equal(selected(a), "the first event");
    app_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(selection_stays),
        cmocka_unit_test(cpu_of_each_class),
        cmocka_unit_test(memory_and_its_limit),
        cmocka_unit_test(who_else_is_there),
        cmocka_unit_test(what_the_agent_costs),
        cmocka_unit_test(what_is_unknown),
        cmocka_unit_test(functions_lead_to_flame),
        cmocka_unit_test(a_small_flame_graph),
        cmocka_unit_test(verdicts_come_first),
        cmocka_unit_test(the_header_is_about_the_job),
        cmocka_unit_test(the_header_says_what_is_the_matter),
        cmocka_unit_test(the_header_asks_seldom),
        cmocka_unit_test(scrolls_where_it_is_low),
        cmocka_unit_test(long_collections_are_events),
        cmocka_unit_test(collections_are_seen_in_snapshots_too),
        cmocka_unit_test(losses_are_added_up),
        cmocka_unit_test(pauses_of_the_job),
        cmocka_unit_test(slower_samples_are_told_once),
        cmocka_unit_test(the_connection),
        cmocka_unit_test(the_log_follows_its_end),
        cmocka_unit_test(the_log_is_searched_and_filtered),
        cmocka_unit_test(long_entries_are_written_out),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    (void)setenv("TZ", "UTC", 1);
    tzset();
    return cmocka_run_group_tests_name("tui_overview", tests, NULL, NULL);
}
