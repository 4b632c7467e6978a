/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stepping through the past: moments are what the snapshots were, what is held of them is bounded over days, and keys and
 * status line say where one is.
 */
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

#include "tui/model/snapshot_history.h"
#include "tui/core/app.h"
#include "tui/core/app_life.h"
#include "tui/core/app_take.h"
#include "tui/core/window.h"
#include "unit/tui_children.h"
#include "unit/tui_fixture.h"
#include "unit/tui_samples.h"

#define MIB ((size_t)1024 * 1024)

static void assert_shows(struct app *a, const char *what) { fixture_shows(a, 40, 120, what); }

static void assert_hides(struct app *a, const char *what) { fixture_hides(a, 40, 120, what); }

/* ---- the ring ---- */

static bool same_text(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }
static bool same_number(double a, double b) { return isnan(a) ? isnan(b) : fabs(a - b) <= fabs(a) * 1e-6; }

/* How long and until when is not kept. */
static void assert_same_wait(const struct model_wait *a, const struct model_wait *b) {
    assert_true(a->kind == b->kind && a->flags == b->flags && a->tid == b->tid && a->pid == b->pid);
    assert_true(same_text(a->what, b->what) && same_text(a->detail, b->detail));
    assert_true(b->for_us == 0 && b->left_us == 0);
}

static void assert_same_thread(const struct model_thread *a, const struct model_thread *b) {
    assert_int_equal(a->tid, b->tid);
    assert_true(a->ident == b->ident && a->state == b->state && a->on_cpu == b->on_cpu && a->gil == b->gil);
    assert_true(a->gc == b->gc && a->has_python == b->has_python && a->torn == b->torn &&
                a->truncated == b->truncated);
    assert_true(same_text(a->name, b->name) && same_text(a->native_name, b->native_name));
    assert_true(same_number(a->cpu_pct, b->cpu_pct) && same_number(a->gil_for_us, b->gil_for_us));
    assert_same_wait(&a->wait, &b->wait);
    assert_int_equal(a->n_frames, b->n_frames);
    for (size_t i = 0; i < a->n_frames; i++) {
        const struct model_frame *f = &a->frames[i], *g = &b->frames[i];
        assert_true(same_text(f->func, g->func) && same_text(f->file, g->file) && f->line == g->line &&
                    f->kind == g->kind);
    }
}

/* The live shot of an app's data is compared with what the ring makes of it. */
static void assert_kept(const struct data *d) {
    struct data_shot back;
    const struct data_shot *live = &d->live;
    assert_int_equal(snapshot_history_get(d->past, live->number, &back), 0);
    assert_true(back.snapshot.timestamp == live->snapshot.timestamp &&
                back.snapshot.gil_tid == live->snapshot.gil_tid &&
                back.snapshot.gc_running == live->snapshot.gc_running &&
                back.snapshot.process.rss_bytes == live->snapshot.process.rss_bytes);
    assert_int_equal(back.snapshot.n_threads, live->snapshot.n_threads);
    for (size_t i = 0; i < back.snapshot.n_threads; i++) {
        double held, waiting, held_live, waiting_live;
        assert_same_thread(&live->snapshot.threads[i], &back.snapshot.threads[i]);
        assert_true(same_number(data_stack_age(live, i), data_stack_age(&back, i)));
        data_gil_share(live, i, &held_live, &waiting_live);
        data_gil_share(&back, i, &held, &waiting);
        assert_true(same_number(held_live, held) && same_number(waiting_live, waiting));
    }
    data_shot_fini(&back);
}

static void test_moments_are_what_was(void **state) {
    static const enum fixture_kind kinds[] = {FIXTURE_NORMAL, FIXTURE_NAMES, FIXTURE_HUGE, FIXTURE_UNKNOWN};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        struct app *a = fixture_app(kinds[k], 1, false);
        for (int i = 2; i < 60; i++) {
            struct model_snapshot s;
            fixture_snapshot(&s, kinds[k], i);
            app_take_snapshot(a, &s);
            assert_kept(&a->data);
        }
        assert_int_equal(snapshot_history_count(a->data.past), 59);
        app_free(a);
    }
}

/* Each thread of the snapshot waits for something in turn; every fourth moment for nothing. */
static void put_waits(struct model_snapshot *s, int i) {
    char text[64];
    for (size_t t = 0; t < s->n_threads && i % 4; t++) {
        (void)snprintf(text, sizeof text, "Lock cache.lock_%d", i / 3);
        s->threads[t].wait =
            (struct model_wait){.kind = t % 2 ? MODEL_WAIT_LOCK : MODEL_WAIT_SOCKET,
                                .flags = t % 2 ? MODEL_WAIT_LIKELY : 0,
                                .tid = t % 2 ? (uint64_t)s->threads[0].tid : 0,
                                .pid = t % 2 ? 0 : 77,
                                .for_us = (uint64_t)i * 1000,
                                .left_us = 5,
                                .what = arena_strdup(&s->arena, text),
                                .detail = t % 3 ? arena_strdup(&s->arena, "10.0.0.7:443") : NULL};
    }
}

static void test_waits_are_what_was(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 1, false);
    (void)state;
    for (int i = 2; i < 60; i++) {
        struct model_snapshot s;
        fixture_snapshot(&s, FIXTURE_NORMAL, i);
        put_waits(&s, i);
        app_take_snapshot(a, &s);
        assert_kept(&a->data);
    }
    /* The screen shows the moment's own, and nothing where nothing was known. */
    fixture_press(a, "2");
    fixture_shows(a, 50, 200, "Lock cache.lock_19");
    fixture_press(a, ",");
    fixture_press(a, ",");
    fixture_press(a, ",");
    fixture_hides(a, 50, 200, "lock_19");
    fixture_press(a, ",");
    fixture_shows(a, 50, 200, "Lock cache.lock_18");
    app_free(a);
}

#define MANY_THREADS 200
#define MANY_FRAMES 60

/* 200 threads in 60 frames each, of which `busy` are elsewhere every time, and `lines` of their frames with them. */
static void many(struct data_shot *shot, long i, int busy, int lines) {
    char text[64];
    memset(shot, 0, sizeof *shot);
    struct model_snapshot *s = &shot->snapshot;
    arena_init(&s->arena, 64 * MIB);
    s->timestamp = 1e9 + (double)i / 4;
    s->n_threads = MANY_THREADS;
    s->threads = arena_calloc(&s->arena, MANY_THREADS, sizeof *s->threads);
    shot->stack_hash = calloc(MANY_THREADS, sizeof *shot->stack_hash);
    shot->stack_since = calloc(MANY_THREADS, sizeof *shot->stack_since);
    shot->gil = calloc(MANY_THREADS, sizeof *shot->gil);
    shot->number = (uint64_t)i + 1;
    shot->valid = true;
    for (int t = 0; t < MANY_THREADS; t++) {
        bool is_busy = (t * 7) % MANY_THREADS < busy;
        struct model_thread *th = &s->threads[t];
        (void)snprintf(text, sizeof text, "worker-%d", t);
        *th = (struct model_thread){.tid = 1000 + t, .state = is_busy ? 'R' : 'S', .has_python = true};
        th->name = arena_strdup(&s->arena, text);
        th->cpu_pct = is_busy ? (double)((i * 13 + t) % 1000) / 10 : 0;
        th->gil_for_us = NAN;
        th->frames = arena_calloc(&s->arena, MANY_FRAMES, sizeof *th->frames);
        th->n_frames = MANY_FRAMES;
        shot->stack_hash[t] = 1;
        shot->stack_since[t] = is_busy ? s->timestamp : 1e9;
        for (int f = 0; f < MANY_FRAMES; f++) {
            long moved = is_busy && f < lines ? (i * 31 + t) % 50 : 0;
            (void)snprintf(text, sizeof text, "function_%d_of_%d", f, t % 20);
            th->frames[f] = (struct model_frame){.kind = MODEL_FRAME_PYTHON, .line = (int)moved + 1};
            th->frames[f].func = arena_strdup(&s->arena, text);
            th->frames[f].file = "/job/train.py";
        }
    }
}

/* Threads wait for something else each time: what is kept of it is bounded, and what is kept is right; for the rest nothing is
 * said. */
static void test_waits_are_bounded(void **state) {
    struct snapshot_history *p = snapshot_history_new(0, 0);
    size_t known = 0, unknown = 0;
    (void)state;
    for (long i = 0; i < 300; i++) {
        struct data_shot shot, back;
        char text[96];
        many(&shot, i, 0, 0);
        for (int t = 0; t < MANY_THREADS; t++) {
            (void)snprintf(text, sizeof text, "batch %ld of its DataLoader, from worker %d", i, t);
            shot.snapshot.threads[t].wait = (struct model_wait){
                .kind = MODEL_WAIT_LOADER, .what = arena_strdup(&shot.snapshot.arena, text)};
        }
        snapshot_history_add(p, &shot);
        assert_int_equal(snapshot_history_get(p, (uint64_t)i + 1, &back), 0);
        for (int t = 0; t < MANY_THREADS; t++) {
            const struct model_wait *wait = &back.snapshot.threads[t].wait;
            known += wait->kind == MODEL_WAIT_LOADER;
            unknown += wait->kind == MODEL_WAIT_UNKNOWN;
            if (wait->kind != MODEL_WAIT_UNKNOWN)
                assert_string_equal(wait->what, shot.snapshot.threads[t].wait.what);
        }
        data_shot_fini(&back);
        data_shot_fini(&shot);
        assert_true(snapshot_history_bytes(p) <
                    SNAPSHOT_HISTORY_ROW_BYTES + 2 * SNAPSHOT_HISTORY_STACK_BYTES + MIB);
    }
    assert_true(known > 0 && unknown > 0 && known + unknown == (size_t)300 * MANY_THREADS);
    snapshot_history_free(p);
}

static void assert_ordered(const struct snapshot_history *p) {
    uint64_t number = 0, next;
    size_t n = 0;
    while ((next = snapshot_history_step(p, number, 1))) {
        assert_true(next > number);
        number = next;
        n++;
    }
    assert_int_equal(n, snapshot_history_count(p));
    while (number) {
        number = snapshot_history_step(p, number, -1);
        n--;
    }
    assert_int_equal(n + 1, 1);
}

/* However busy the threads are, and however long it goes on. */
static void test_memory_is_bounded(void **state) {
    static const struct {
        int busy, lines;
        long n;
        size_t least;
    } cases[] = {{0, 0, 1000, 1000}, {10, 2, 1000, 400}, {200, 1, 500, 100}, {200, MANY_FRAMES, 100, 1}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct snapshot_history *p = snapshot_history_new(0, 0);
        struct data_shot shot, back;
        size_t most = 0;
        clock_t cpu = 0;
        assert_non_null(p);
        for (long i = 0; i < cases[c].n; i++) {
            many(&shot, i, cases[c].busy, cases[c].lines);
            clock_t begin = clock();
            snapshot_history_add(p, &shot);
            cpu += clock() - begin;
            data_shot_fini(&shot);
            most = snapshot_history_bytes(p) > most ? snapshot_history_bytes(p) : most;
        }
        if (getenv("PROBING_TEST_VERBOSE"))
            print_message("%d busy, %d lines: %zu moments, %.2f MiB at most, %.0f us a snapshot\n",
                          cases[c].busy, cases[c].lines, snapshot_history_count(p),
                          (double)most / (double)MIB,
                          (double)cpu * 1e6 / CLOCKS_PER_SEC / (double)cases[c].n);
        assert_true(most <= SNAPSHOT_HISTORY_ROW_BYTES + SNAPSHOT_HISTORY_STACK_BYTES + MIB / 4);
        assert_true(snapshot_history_count(p) >= cases[c].least);
        assert_ordered(p);
        many(&shot, cases[c].n - 1, cases[c].busy, cases[c].lines);
        assert_int_equal(snapshot_history_get(p, (uint64_t)cases[c].n, &back), 0);
        for (size_t i = 0; i < MANY_THREADS; i++)
            assert_same_thread(&shot.snapshot.threads[i], &back.snapshot.threads[i]);
        data_shot_fini(&shot);
        data_shot_fini(&back);
        snapshot_history_free(p);
    }
}

/* A thread at a snapshot a second for a day: all of the last minutes, less and less of what was before, and the first. */
static void test_a_day(void **state) {
    struct snapshot_history *p = snapshot_history_new(0, 0);
    struct model_frame frame = {.kind = MODEL_FRAME_PYTHON, .func = "work", .file = "/job/train.py"};
    struct model_thread thread = {
        .tid = 1, .name = "MainThread", .state = 'R', .frames = &frame, .n_frames = 1};
    const long n = 86400;
    (void)state;
    for (long i = 0; i < n; i++) {
        struct data_shot shot = {.number = (uint64_t)i + 1, .valid = true};
        frame.line = (int)(i % 97) + 1;
        thread.cpu_pct = (double)(i % 1001) / 10;
        shot.snapshot.timestamp = 1e9 + (double)i;
        shot.snapshot.threads = &thread;
        shot.snapshot.n_threads = 1;
        snapshot_history_add(p, &shot);
    }
    assert_true(snapshot_history_bytes(p) <=
                SNAPSHOT_HISTORY_ROW_BYTES + SNAPSHOT_HISTORY_STACK_BYTES + MIB / 4);
    assert_int_equal(snapshot_history_count(p), SNAPSHOT_HISTORY_MAX);
    assert_true(snapshot_history_oldest(p) == 1e9);
    assert_ordered(p);
    uint64_t number = (uint64_t)n, before;
    while ((before = snapshot_history_step(p, number, -1)) != 0) {
        double age_s = (double)((uint64_t)n - number), gap_s = (double)(number - before);
        if (age_s < 200)
            assert_true(gap_s == 1);
        assert_true(gap_s <= 1 + age_s / 20); /* nowhere is a hole */
        number = before;
    }
    snapshot_history_free(p);
}

/* Threads that come and go with new names for ever. */
static void test_threads_that_come_and_go(void **state) {
    struct snapshot_history *p = snapshot_history_new(0, 0);
    struct model_thread threads[50];
    char names[50][32];
    (void)state;
    for (long i = 0; i < 2000; i++) {
        struct data_shot shot = {.number = (uint64_t)i + 1, .valid = true}, back;
        for (int t = 0; t < 50; t++) {
            (void)snprintf(names[t], sizeof names[t], "job %ld of pool", i * 50 + t);
            threads[t] = (struct model_thread){.tid = i * 50 + t + 1, .name = names[t], .state = 'S'};
        }
        shot.snapshot.timestamp = 1e9 + (double)i;
        shot.snapshot.threads = threads;
        shot.snapshot.n_threads = 50;
        snapshot_history_add(p, &shot);
        assert_int_equal(snapshot_history_get(p, shot.number, &back), 0);
        assert_string_equal(back.snapshot.threads[49].name, names[49]);
        data_shot_fini(&back);
    }
    assert_true(snapshot_history_bytes(p) <=
                SNAPSHOT_HISTORY_ROW_BYTES + SNAPSHOT_HISTORY_STACK_BYTES + MIB / 4);
    assert_true(snapshot_history_count(p) > 1);
    assert_ordered(p);
    snapshot_history_free(p);
}

static void test_too_large_is_left_out(void **state) {
    struct snapshot_history *p = snapshot_history_new(64 * 1024, 64 * 1024);
    struct data_shot shot;
    (void)state;
    assert_int_equal(snapshot_history_step(p, 7, -1), 0);
    assert_int_equal(snapshot_history_step(p, 7, 1), 0);
    assert_int_equal(snapshot_history_get(p, 7, &shot), -1);
    many(&shot, 3, 200, MANY_FRAMES); /* more stacks than there is room for */
    snapshot_history_add(p, &shot);
    data_shot_fini(&shot);
    assert_int_equal(snapshot_history_count(p), 0);
    assert_true(isnan(snapshot_history_oldest(p)));
    snapshot_history_free(p);
}

/* ---- the screens ---- */

static void next_snapshot(struct app *a, int step) {
    struct model_snapshot s;
    fixture_snapshot(&s, FIXTURE_NORMAL, step);
    app_set_time(a, a->now_s + 0.25, a->epoch_s + 0.25);
    app_take_snapshot(a, &s);
}

/* Nine snapshots, steps 0 to 8: the innermost frame of the main thread is at line 125 + step % 4. */
static struct app *history_app(void) { return fixture_app(FIXTURE_NORMAL, 9, false); }

static void test_steps(void **state) {
    struct app *a = history_app();
    (void)state;
    assert_shows(a, "functional.py:125");
    fixture_press(a, ".");
    assert_shows(a, "this is now");
    assert_false(a->data.paused);
    fixture_press(a, ",");
    assert_true(a->data.paused);
    assert_shows(a, "FROZEN  at 22:13:11, 0.2s behind");
    assert_shows(a, "functional.py:128");
    fixture_press(a, ", ,");
    assert_shows(a, "0.8s behind");
    assert_shows(a, "functional.py:126");
    next_snapshot(a, 10); /* what comes meanwhile is kept, and does not move the view */
    assert_shows(a, "1.2s behind");
    assert_shows(a, "functional.py:126");
    fixture_press(a, ". . . .");
    assert_shows(a, "0.0s behind");
    assert_shows(a, "functional.py:127");
    fixture_press(a, ".");
    assert_shows(a, "this is the latest snapshot");
    assert_true(a->data.paused);
    for (int i = 0; i < 9; i++)
        fixture_press(a, ",");
    assert_shows(a, "FROZEN  at 22:13:10, 2.5s behind");
    assert_shows(a, "functional.py:125");
    fixture_press(a, ",");
    assert_shows(a, "this is the oldest snapshot that is kept");
    fixture_press(a, "End");
    assert_false(a->data.paused);
    assert_hides(a, "FROZEN");
    assert_shows(a, "functional.py:127");
    app_free(a);
}

/* End is the last line, unless one is in the past; G always is. */
/* A span of the Timeline is the time of Threads too: the last moment in it. Where none is kept in it the view goes on. */
static void test_a_span_is_stepped_into(void **state) {
    struct app *a = history_app();
    (void)state;
    fixture_samples(a, 20);
    double newest = a->data.live.snapshot.timestamp;
    assert_true(window_select(a, newest - 1.1, newest - 0.4));
    assert_true(data_is_stepped(&a->data) && a->data.paused);
    assert_true(data_shown(&a->data)->snapshot.timestamp == newest - 0.5);
    assert_int_equal(window_which(a), SAMPLE_STORE_SPAN);
    window_let_go(a);
    assert_false(a->data.paused || data_is_stepped(&a->data));
    assert_int_equal(window_which(a), SAMPLE_STORE_ALL);

    assert_true(window_select(a, newest - 0.45, newest - 0.3)); /* between two moments */
    assert_false(a->data.paused || data_is_stepped(&a->data));
    assert_true(window_select(a, newest - 3000, newest - 2000));
    assert_false(a->data.paused);
    assert_true(window_select(a, newest - 1, newest + 5));
    assert_true(data_shown(&a->data)->snapshot.timestamp == newest);
    fixture_press(a, "Z");
    assert_false(a->data.paused);
    fixture_press(a, "Z");
    window_let_go(a); /* the user has frozen it himself since */
    assert_true(a->data.paused);
    app_free(a);
}

static void test_end(void **state) {
    struct app *a = history_app();
    (void)state;
    fixture_press(a, "End");
    assert_shows(a, "Stack of OMP worker (4261)");
    fixture_press(a, "g Z End"); /* frozen, and not stepped */
    assert_shows(a, "Stack of OMP worker (4261)");
    assert_shows(a, "FROZEN");
    fixture_press(a, "g , G");
    assert_shows(a, "Stack of OMP worker (4261)");
    assert_shows(a, "FROZEN");
    fixture_press(a, "g End");
    assert_hides(a, "FROZEN");
    assert_shows(a, "Stack of MainThread");
    fixture_press(a, ", Z");
    assert_hides(a, "FROZEN");
    app_free(a);
}

/* From what is frozen, to before and after it. */
static void test_steps_from_a_frozen_view(void **state) {
    struct app *a = history_app();
    (void)state;
    fixture_press(a, "Z");
    next_snapshot(a, 9);
    next_snapshot(a, 10);
    assert_shows(a, "functional.py:125");
    assert_shows(a, "0.5s behind");
    fixture_press(a, ".");
    assert_shows(a, "functional.py:126");
    fixture_press(a, ", ,");
    assert_shows(a, "functional.py:128");
    fixture_press(a, "Enter j j j Esc ( )"); /* the stack pane, the next thread */
    assert_shows(a, "functional.py:128");
    app_free(a);
}

/* Nothing of now is shown as if it were of then. */
static void test_unknown_is_not_shown(void **state) {
    struct app *a = history_app();
    struct model_snapshot s;
    struct children_list l;
    (void)state;
    fixture_children(&l, 0);
    app_take_children(a, &l);
    fixture_press(a, "Enter j j j j j v");
    fixture_locals(&s);
    app_take_locals(a, &s);
    assert_shows(a, "Locals of train_step");
    fixture_press(a, ",");
    assert_shows(a, "values of that moment were not kept");
    assert_hides(a, "Locals of train_step");
    assert_shows(a, "children unknown");
    fixture_press(a, "t");
    assert_shows(a, "tasks of that moment were not kept");
    fixture_press(a, "End");
    assert_hides(a, "not kept");
    assert_hides(a, "children unknown");
    app_free(a);
}

/* The job is gone; what was before can be stepped through as ever. Another target's past is not this one's. */
static void test_after_the_end(void **state) {
    struct app *a = history_app();
    struct err why = {ERR_LOST, "process 4242 has ended"};
    (void)state;
    a->pid = 4242; /* of what it has received */
    app_set_state(a, SESSION_LOST, &why, 0);
    fixture_press(a, ", ,");
    assert_shows(a, "functional.py:127");
    assert_shows(a, "0.5s behind");
    app_set_pid(a, 4243);
    fixture_press(a, ",");
    assert_shows(a, "there is no snapshot yet");
    app_free(a);
}

/* What a recording has told of before its end is stepped through in the same way, in Threads, Top and Flame. */
static void test_a_recording(void **state) {
    struct app *a = fixture_app(FIXTURE_NORMAL, 4, false);
    (void)state;
    a->data.target.mode = MODEL_MODE_RECORDED;
    fixture_press(a, ".");
    assert_shows(a, "this is the last that is known");
    assert_false(a->data.paused);
    fixture_press(a, ", ,");
    assert_shows(a, "0.5s behind");
    fixture_press(a, "4");
    assert_shows(a, "0.5s behind");
    fixture_press(a, ", , ,");
    assert_shows(a, "this is the first that is known");
    fixture_press(a, "2");
    assert_shows(a, "0.8s behind");
    fixture_press(a, "End");
    assert_hides(a, "behind");
    app_free(a);
    a = fixture_app(FIXTURE_NORMAL, 1, false);
    a->data.target.mode = MODEL_MODE_RECORDED;
    fixture_press(a, ",");
    assert_shows(a, "this is the first that is known");
    assert_false(a->data.paused);
    app_free(a);
    a = fixture_app(FIXTURE_NORMAL, 240, false); /* the end of a longer one, and that is said */
    a->data.target.mode = MODEL_MODE_RECORDED;
    a->data.target.seen_is_cut = true;
    fixture_press(a, ",");
    assert_shows(a, "s behind, of the last 59.8s");
    for (int i = 0; i < 240; i++)
        fixture_press(a, ",");
    assert_shows(a, "the oldest of the 59.8s shown here; SQL");
    app_free(a);
}

/* Its samples come once and late: also to who has stepped back before they were there. */
static void test_samples_of_a_recording(void **state) {
    struct app *a = history_app();
    (void)state;
    assert_false(app_wants_samples(a));
    a->data.target.mode = MODEL_MODE_RECORDED;
    a->data.target.seen_until = a->data.live.snapshot.timestamp;
    assert_true(app_wants_samples(a));
    fixture_press(a, ",");
    assert_true(a->data.paused);
    app_set_time(a, a->now_s, a->data.live.snapshot.timestamp - 2);
    samples_feed(a, FIXTURE_NORMAL, 8);
    fixture_press(a, "3");
    assert_shows(a, "s behind");
    assert_shows(a, "train_step");
    assert_hides(a, "no samples of this time");
    app_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moments_are_what_was),
        cmocka_unit_test(test_waits_are_what_was),
        cmocka_unit_test(test_waits_are_bounded),
        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_a_day),
        cmocka_unit_test(test_threads_that_come_and_go),
        cmocka_unit_test(test_too_large_is_left_out),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_steps_from_a_frozen_view),
        cmocka_unit_test(test_a_span_is_stepped_into),
        cmocka_unit_test(test_unknown_is_not_shown),
        cmocka_unit_test(test_after_the_end),
        cmocka_unit_test(test_a_recording),
        cmocka_unit_test(test_samples_of_a_recording),
    };
    (void)setlocale(LC_ALL, "C.UTF-8");
    (void)setenv("TZ", "UTC", 1);
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
