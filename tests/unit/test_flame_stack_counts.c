/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Aggregation and the folded format: epochs, foreign ids, merging, names that would break a line.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/export/export.h"
#include "client/export/export_formats.h"
#include "flame/stack_counts.h"

static struct model_frame_def frame_def(uint32_t id, const char *func, const char *file, int line) {
    return (struct model_frame_def){id, {MODEL_FRAME_PYTHON, func, file, line}};
}

static struct model_sample sample(int64_t tid, uint32_t stack, bool torn) {
    return (struct model_sample){.tid = tid, .stack_id = stack, .on_cpu = 1, .torn = torn};
}

/* main -> train -> {step, load} in epoch 1. */
static void add_first(struct stack_counts *f) {
    struct model_frame_def frames[] = {
        frame_def(1, "main", "/job/train.py", 9), frame_def(2, "train", "/job/train.py", 5),
        frame_def(3, "step", "/venv/lib/python3.11/site-packages/torch/optim/adamw.py", 77),
        frame_def(4, "load", "/job/data/__init__.py", 3)};
    struct model_stack_def stacks[] = {{1, 0, 1}, {2, 1, 2}, {3, 2, 3}, {4, 2, 4}};
    struct model_thread_def threads[] = {{7, "MainThread", "python"}, {8, NULL, "pt_autograd"}};
    struct model_sample samples[] = {sample(7, 3, false), sample(7, 3, false), sample(7, 4, false),
                                     sample(7, 3, true),  sample(8, 0, false), sample(7, 99, false)};
    struct model_sample_batch b = {
        .epoch = 1, .period_us = 10000, .dropped = 5, .frames = frames, .n_frames = 4};
    b.stacks = stacks;
    b.n_stacks = 4;
    b.threads = threads;
    b.n_threads = 2;
    b.samples = samples;
    b.n_samples = 6;
    assert_int_equal(stack_counts_add_batch(f, &b), 0);
}

/* The same stack under other ids, in epoch 2. */
static void add_second(struct stack_counts *f) {
    struct model_frame_def frames[] = {
        frame_def(1, "step", "/venv/lib/python3.11/site-packages/torch/optim/adamw.py", 77),
        frame_def(2, "train", "/job/train.py", 5), frame_def(3, "main", "/job/train.py", 9)};
    struct model_stack_def stacks[] = {{1, 0, 3}, {2, 1, 2}, {3, 2, 1}, {5, 4, 1}};
    struct model_sample samples[] = {sample(7, 3, false), sample(7, 4, false), sample(7, 5, false)};
    struct model_sample_batch b = {
        .epoch = 2, .period_us = 20000, .dropped = 6, .frames = frames, .n_frames = 3};
    b.stacks = stacks;
    b.n_stacks = 4;
    b.samples = samples;
    b.n_samples = 3;
    assert_int_equal(stack_counts_add_batch(f, &b), 0);
}

static void check_fold(void **state) {
    (void)state;
    struct stack_counts *f = stack_counts_new();
    add_first(f);
    add_second(f);
    const struct stack_counts_totals *t = stack_counts_get_totals(f);
    assert_int_equal(t->samples, 5);
    assert_int_equal(t->torn, 1);
    assert_int_equal(t->undefined, 3); /* 99; 4 of the older epoch; 5 below an undefined parent */
    assert_int_equal(t->dropped, 6);
    assert_int_equal(stack_counts_count(f), 3);
    const struct stack_counts_entry *e = stack_counts_get(f, 0);
    assert_int_equal(e->tid, 7);
    assert_int_equal(e->sums.samples, 3);
    assert_int_equal(e->sums.on_cpu, 3);
    assert_true(e->sums.us == 40000);
    const struct model_frame *frames[8];
    assert_int_equal(stack_counts_path(f, e->stack, frames, 8), 3);
    assert_string_equal(frames[0]->func, "main");
    assert_string_equal(frames[2]->func, "step");
    assert_int_equal(stack_counts_path(f, e->stack, frames, 1), 3); /* room for the root only */
    assert_string_equal(frames[0]->func, "main");
    assert_string_equal(stack_counts_thread_name(f, 7), "MainThread");
    assert_string_equal(stack_counts_thread_name(f, 8), "pt_autograd");
    assert_null(stack_counts_thread_name(f, 9));
    stack_counts_free(f);
}

static void check_foreign_ids(void **state) {
    (void)state;
    struct stack_counts *f = stack_counts_new();
    struct model_frame_def frames[] = {frame_def(UINT32_MAX, "f", "f.py", 1)};
    struct model_sample_batch b = {.epoch = 1, .frames = frames, .n_frames = 1};
    assert_int_equal(stack_counts_add_batch(f, &b),
                     -1); /* an id that no honest agent reaches asks for no gigabytes */
    stack_counts_free(f);
}

static void check_many_stacks(void **state) {
    (void)state;
    struct stack_counts *f = stack_counts_new();
    enum { N = 5000 };
    struct model_frame_def *frames = calloc(N, sizeof *frames);
    struct model_stack_def *stacks = calloc(N, sizeof *stacks);
    struct model_sample *samples = calloc(N, sizeof *samples);
    for (uint32_t i = 0; i < N; i++) {
        frames[i] = frame_def(i + 1, "f", "f.py", (int)i + 1);
        stacks[i] = (struct model_stack_def){i + 1, i, i + 1}; /* one chain of 5000 frames */
        samples[i] = sample(1, i + 1, false);
    }
    struct model_sample_batch b = {
        .epoch = 1, .frames = frames, .n_frames = N, .stacks = stacks, .n_stacks = N};
    b.samples = samples;
    b.n_samples = N;
    assert_int_equal(stack_counts_add_batch(f, &b), 0);
    assert_int_equal(stack_counts_count(f), N);
    const struct model_frame *top[2];
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(stack_counts_get(f, i)->sums.samples, 1);
        assert_int_equal(stack_counts_path(f, stack_counts_get(f, i)->stack, top, 2), i + 1);
        assert_int_equal(top[0]->line, 1);
    }
    free(frames);
    free(stacks);
    free(samples);
    stack_counts_free(f);
}

static char *render(const struct stack_counts *f, const struct export_request *r) {
    struct model_target target = {.pid = 123};
    struct export_data data = {.request = r, .target = &target, .counts = f, .elapsed_s = 1};
    struct strbuf out;
    struct err e = {0};
    strbuf_init(&out, 0);
    assert_int_equal(export_render_folded(&data, &out, &e), 0);
    char *text = strdup(strbuf_str(&out));
    strbuf_fini(&out);
    return text;
}

static void check_folded(void **state) {
    (void)state;
    struct stack_counts *f = stack_counts_new();
    add_first(f);
    struct export_request r = {.format = "folded"};
    char *text = render(f, &r);
    assert_string_equal(text, "main (train.py:9);train (train.py:5);load (data/__init__.py:3) 1\n"
                              "main (train.py:9);train (train.py:5);step (torch/optim/adamw.py:77) 2\n");
    free(text);
    r = (struct export_request){.threads = true, .process = true, .by_function = true, .unit = EXPORT_US};
    text = render(f, &r);
    assert_string_equal(
        text,
        "process 123;thread MainThread (7);main (train.py);train (train.py);load (data/__init__.py) 10000\n"
        "process 123;thread MainThread (7);main (train.py);train (train.py);step (torch/optim/adamw.py) "
        "20000\n"
        "process 123;thread pt_autograd (8) 10000\n");
    free(text);
    stack_counts_free(f);
}

/* Names come from the job: separators, controls and newlines must not make a line of their own. */
static void check_folded_names(void **state) {
    (void)state;
    struct stack_counts *f = stack_counts_new();
    struct model_frame frames[] = {{MODEL_FRAME_PYTHON, "a;b\nc\x1b[31m", "/x/<string>", 0},
                                   {MODEL_FRAME_PYTHON, NULL, NULL, 4}};
    struct model_thread threads[] = {
        {.tid = 1, .name = "x;y", .frames = frames, .n_frames = 2},
        {.tid = 2, .name = "torn", .torn = true, .frames = frames, .n_frames = 2}};
    struct model_snapshot s = {.threads = threads, .n_threads = 2};
    assert_int_equal(stack_counts_add_snapshot(f, &s), 0);
    assert_int_equal(stack_counts_get_totals(f)->torn, 1);
    struct export_request r = {.threads = true};
    char *text = render(f, &r);
    assert_string_equal(text, "thread x:y (1);? (?:4);a:b c\xEF\xBF\xBD[31m (<string>) 1\n");
    free(text);
    stack_counts_free(f);
}

static void check_formats(void **state) {
    (void)state;
    struct err e = {0};
    assert_string_equal(export_format_names(),
                        "json|ndjson|csv|sqlite|folded|svg|pprof|speedscope|perfetto|txt");
    assert_string_equal(export_find("folded", &e)->name, "folded");
    assert_null(export_find("jsom", &e));
    assert_int_equal(e.code, ERR_USAGE);
    assert_string_equal(e.text, "unknown export format 'jsom': did you mean 'json'?");
    assert_null(export_find("gif", &e));
    assert_non_null(strstr(e.text, "json|ndjson|csv|sqlite|folded|svg|pprof|speedscope|perfetto|txt"));
    enum export_unit unit;
    assert_int_equal(export_parse_unit("us", &unit, &e), 0);
    assert_int_equal(unit, EXPORT_US);
    assert_int_equal(export_parse_unit("ms", &unit, &e), -1);
}

/* What is wrong is said before anything is attached to. */
static void check_requests(void **state) {
    (void)state;
    struct err e = {0};
    struct export_request r = {.target = NULL, .format = "json"};
    assert_int_equal(export_run(&r, &e), -1);
    assert_int_equal(e.code, ERR_USAGE);
    r = (struct export_request){.target = "1", .format = "json", .once = true, .duration_s = 2};
    assert_int_equal(export_run(&r, &e), -1);
    assert_int_equal(e.code, ERR_USAGE);
    r = (struct export_request){.target = "1", .format = "folded", .once = true, .unit = EXPORT_US};
    assert_int_equal(export_run(&r, &e), -1);
    assert_int_equal(e.code, ERR_USAGE);
    r = (struct export_request){.target = "1", .format = "json", .duration_s = NAN};
    assert_int_equal(export_run(&r, &e), -1);
    assert_int_equal(e.code, ERR_USAGE);
    r = (struct export_request){.target = "1", .format = "txt"};
    assert_int_equal(export_run(&r, &e), -1);
    assert_int_equal(e.code, ERR_USAGE);
    r = (struct export_request){.target = "1", .format = "json", .output = "/no/such/folder/x.json"};
    assert_int_equal(export_run(&r, &e), -1);
    assert_int_equal(e.code, ERR_FAILED);
    assert_string_equal(e.text, "cannot write /no/such/folder/x.json: No such file or directory");
    r.output = "/tmp";
    assert_int_equal(export_run(&r, &e), -1);
    assert_int_equal(e.code, ERR_FAILED);
}

/* An option that says nothing to a format is refused by its name, with those that it is for. */
static void check_options(void **state) {
    (void)state;
    struct err e = {0};
    struct strbuf text;
    struct export_request r = {.target = "1", .format = "json", .threads = true};
    assert_int_equal(export_run(&r, &e), -1);
    assert_int_equal(e.code, ERR_USAGE);
    assert_non_null(strstr(e.text, "--threads is for --export "));
    assert_non_null(strstr(e.text, "folded"));
    assert_non_null(strstr(e.text, ", not for json"));
    r = (struct export_request){.target = "1", .format = "csv", .sql = "SELECT 1", .duration_s = 2};
    assert_int_equal(export_run(&r, &e), -1);
    assert_non_null(strstr(e.text, "--duration is for --export json, sqlite"));
    r = (struct export_request){.target = "1", .format = "json", .sql = "SELECT 1", .locals = true};
    assert_int_equal(export_run(&r, &e), -1);
    assert_string_equal(e.text, "--locals changes nothing about the rows of --sql: leave one out");
    r = (struct export_request){.target = "1", .format = "folded", .once = true, .rate_hz = 20};
    assert_int_equal(export_run(&r, &e), -1);
    assert_string_equal(e.text, "--rate is for samples, and this takes none: give a --duration");
    assert_int_equal(export_check_option(export_find("txt", &e), EXPORT_TAKES_SCREEN, "--filter", &e), 0);
    assert_int_equal(export_check_option(export_find("csv", &e), EXPORT_TAKES_SCREEN, "--filter", &e), -1);
    assert_string_equal(e.text, "--filter is for --export txt, not for csv");
    strbuf_init(&text, 0);
    export_put_options(export_find("json", &e), &text);
    assert_string_equal(strbuf_str(&text), "--sql --duration --rate --locals --native");
    strbuf_fini(&text);
}

/* Screens keep what they are given while more comes. */
static void check_places_stay(void **state) {
    enum { MANY = 3000 };
    static struct model_frame_def frames[MANY];
    static struct model_stack_def stacks[MANY];
    struct stack_counts *f = stack_counts_new();
    (void)state;
    add_first(f);
    const struct model_frame *frame = stack_counts_frame(f, 0);
    const struct stack_counts_entry *entry = stack_counts_get(f, 0);
    const char *func = frame->func;
    for (int i = 0; i < MANY; i++) {
        frames[i] = frame_def((uint32_t)i + 10, "another", "/job/more.py", i);
        stacks[i] = (struct model_stack_def){(uint32_t)i + 10, 0, (uint32_t)i + 10};
    }
    struct model_sample_batch b = {
        .epoch = 1, .frames = frames, .n_frames = MANY, .stacks = stacks, .n_stacks = MANY};
    assert_int_equal(stack_counts_add_batch(f, &b), 0);
    assert_int_equal(stack_counts_frames(f), MANY + 4);
    assert_ptr_equal(stack_counts_frame(f, 0), frame);
    assert_ptr_equal(stack_counts_get(f, 0), entry);
    assert_ptr_equal(frame->func, func);
    assert_int_equal(stack_counts_frame(f, MANY + 3)->line, MANY - 1);
    stack_counts_free(f);
}

/* Stacks that are others each time, with long names: it takes so much and no more. */
static void check_what_it_may_take(void **state) {
    enum { FRAMES = 1000, LENGTH = 4000 };
    struct model_frame_def frames[FRAMES];
    struct model_sample_batch b = {.epoch = 1, .period_us = 1e4, .frames = frames, .n_frames = FRAMES};
    struct stack_counts *f = stack_counts_new();
    char name[LENGTH + 1];
    int rc = 0, turns = 0;
    (void)state;
    assert_non_null(f);
    memset(name, 'n', LENGTH);
    name[LENGTH] = '\0';
    for (; rc == 0 && turns < 1000; turns++, b.epoch++) {
        for (uint32_t i = 0; i < FRAMES; i++)
            frames[i] = (struct model_frame_def){
                i + 1, {.func = name, .file = name, .line = turns * FRAMES + (int)i + 1}};
        rc = stack_counts_add_batch(f, &b);
    }
    assert_int_equal(rc, -1);
    assert_in_range(stack_counts_bytes(f), (size_t)16 << 20, STACK_COUNTS_MAX_BYTES + ((size_t)8 << 20));
    stack_counts_free(f);
}

/* Inside a job: what finds no room is left out and counted, what is there goes on being counted. */
static void check_limits(void **state) {
    (void)state;
    struct stack_counts *f = stack_counts_new_limited(
        &(struct stack_counts_limits){.items = 3, .bytes = 1 << 20, .tid = 7, .by_function = true});
    struct model_frame_def frames[] = {{1, {MODEL_FRAME_PYTHON, "main", "/job/a.py", 1}},
                                       {2, {MODEL_FRAME_PYTHON, "main", "/job/a.py", 2}},
                                       {3, {MODEL_FRAME_PYTHON, "step", "/job/a.py", 3}},
                                       {4, {MODEL_FRAME_PYTHON, "load", "/job/a.py", 4}},
                                       {5, {MODEL_FRAME_PYTHON, "save", "/job/a.py", 5}}};
    struct model_stack_def stacks[] = {{1, 0, 1}, {2, 0, 2}, {3, 1, 3}, {4, 1, 4}, {5, 1, 5}};
    static const uint32_t of[] = {1, 2, 3, 4, 5, 0, 3, 1};
    struct model_sample samples[sizeof of / sizeof of[0]] = {{0}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        samples[i] = (struct model_sample){.timestamp = 1, .tid = i == 7 ? 8 : 7, .stack_id = of[i]};
    samples[6].torn = true;
    struct model_sample_batch b = {.epoch = 1,
                                   .period_us = 10000,
                                   .frames = frames,
                                   .n_frames = 5,
                                   .stacks = stacks,
                                   .n_stacks = 5,
                                   .samples = samples,
                                   .n_samples = sizeof of / sizeof of[0]};
    for (int round = 1; round <= 3; round++) {
        assert_int_equal(stack_counts_add_batch(f, &b), 0);
        b.n_frames = b.n_stacks = 0;
        const struct stack_counts_totals *t = stack_counts_get_totals(f);
        assert_int_equal(stack_counts_frames(f), 3); /* main, step, load */
        assert_int_equal(stack_counts_stacks(f), 3);
        assert_int_equal(stack_counts_count(f), 3);
        assert_int_equal(t->samples, 4 * round);  /* stacks 1 and 2 are the same, 3, 4 */
        assert_int_equal(t->left_out, 2 * round); /* no frame for 5, no entry for 0 */
        assert_int_equal(t->torn, round);
        assert_int_equal(t->undefined, 0);
        assert_int_equal(stack_counts_get(f, 0)->sums.samples, 2 * round);
    }
    assert_true(stack_counts_bytes(f) < 1 << 20);
    stack_counts_free(f);
    f = stack_counts_new_limited(&(struct stack_counts_limits){.items = 100, .bytes = 1});
    b.n_frames = b.n_stacks = 5;
    assert_int_equal(stack_counts_add_batch(f, &b), 0);
    assert_int_equal(stack_counts_get_totals(f)->left_out, 7);
    stack_counts_free(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_fold),         cmocka_unit_test(check_foreign_ids),
        cmocka_unit_test(check_many_stacks),  cmocka_unit_test(check_folded),
        cmocka_unit_test(check_folded_names), cmocka_unit_test(check_formats),
        cmocka_unit_test(check_requests),     cmocka_unit_test(check_options),
        cmocka_unit_test(check_places_stay),  cmocka_unit_test(check_what_it_may_take),
        cmocka_unit_test(check_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
