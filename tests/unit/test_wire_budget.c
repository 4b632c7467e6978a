/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all texts of an answer would take when they are shown is bounded: the largest honest answers have room, whole; one that names a
 * long text many times is refused, whatever it names it as, and costs no memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/model_json.h"
#include "wire/field.h"
#include "wire/wire.h"

#define THREADS 4000
#define DEPTH 100
#define LOCALS 10000
#define TASKS 10000
#define SAMPLES 65536
#define LONG ((size_t)1024 * 1024)

static const char *name_of(struct arena *a, const char *what, size_t i) {
    char text[160];
    int n = snprintf(text, sizeof text, "%s_%zu", what, i);
    return arena_strndup(a, text, (size_t)n);
}

static void read_snapshot(const struct model_snapshot *in, struct model_snapshot *out, int wanted) {
    struct strbuf b;
    struct err e = {.text = ""};
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_snapshot(&b, 1, in), 0);
    struct wire_message *m = wire_parse(b.data, b.len, &e);
    assert_non_null(m);
    int rc = wire_get_snapshot(m, out, &e);
    if (rc != wanted)
        fail_msg("%s", e.text);
    if (rc != 0)
        assert_non_null(strstr(e.text, "message is not valid: "));
    wire_message_free(m);
    strbuf_fini(&b);
}

/* Stacks of a large job: a hundred functions of a thousand at each thread, with names as libraries have them; and variables. */
static void make_large(struct model_snapshot *s) {
    const char *funcs[1000], *files[1000];
    *s = (struct model_snapshot){.timestamp = 1};
    arena_init(&s->arena, SIZE_MAX / 2);
    for (size_t i = 0; i < 1000; i++) {
        funcs[i] = name_of(&s->arena, "ParallelWorker.forward_step", i);
        files[i] = name_of(&s->arena, "/opt/venv/lib/python3.11/site-packages/torch/nn/module", i);
    }
    s->threads = arena_calloc(&s->arena, s->n_threads = THREADS, sizeof *s->threads);
    for (size_t i = 0; i < THREADS; i++) {
        struct model_thread *t = &s->threads[i];
        *t = (struct model_thread){
            .tid = 1000 + (int64_t)i, .state = 'S', .has_python = true, .n_frames = DEPTH};
        t->name = name_of(&s->arena, "ThreadPoolExecutor-0", i);
        t->native_name = "python3";
        t->frames = arena_calloc(&s->arena, DEPTH, sizeof *t->frames);
        for (size_t k = 0; k < DEPTH; k++)
            t->frames[k] = (struct model_frame){
                .func = funcs[(i + 7 * k) % 1000], .file = files[(i + 7 * k) % 1000], .line = (int)(1 + k)};
    }
    struct model_locals *locals = arena_calloc(&s->arena, 1, sizeof *locals);
    locals->items = arena_calloc(&s->arena, locals->n = LOCALS, sizeof *locals->items);
    for (size_t i = 0; i < LOCALS; i++)
        locals->items[i] = (struct model_local){
            .name = name_of(&s->arena, "variable", i),
            .type = "Tensor",
            .text = name_of(&s->arena, "tensor(..., shape=(8, 2048, 4096), bfloat16)", i)};
    s->threads[0].locals = arena_calloc(&s->arena, DEPTH, sizeof *s->threads[0].locals);
    s->threads[0].locals[0] = locals;
}

/* A server's: a task a request. */
static void make_tasks(struct model_snapshot *s) {
    s->n_threads = 100;
    s->tasks = arena_calloc(&s->arena, s->n_tasks = TASKS, sizeof *s->tasks);
    for (size_t i = 0; i < TASKS; i++) {
        struct model_task *t = &s->tasks[i];
        *t = (struct model_task){
            .id = i + 1, .tid = 1000, .name = name_of(&s->arena, "Task", i), .coro = "serve", .n_frames = 2};
        t->frames = s->threads[i % s->n_threads].frames;
        t->awaited_by = arena_calloc(&s->arena, 1, sizeof *t->awaited_by);
        t->awaited_by[0] = 1;
        t->n_awaited_by = 1;
    }
}

static void test_the_largest_have_room(void **state) {
    struct model_snapshot large, out;
    struct model_target target = {.pid = 1};
    struct strbuf text;
    struct json j;
    (void)state;
    make_large(&large);
    read_snapshot(&large, &out, 0);
    assert_int_equal(out.n_threads, THREADS);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(out.threads[i].n_frames, DEPTH);
    assert_false(out.incomplete);
    assert_int_equal(out.threads[0].locals[0]->n, LOCALS);
    /* What was counted is what it takes, and not much more. */
    strbuf_init(&text, 0);
    json_init(&j, &text, 2);
    json_object_begin(&j);
    model_json_put_backtrace(&j, &target, &out, true, true);
    json_object_end(&j);
    assert_true(!text.failed && text.len > FIELD_MAX_SHOWN / 2 && text.len < FIELD_MAX_SHOWN);
    strbuf_fini(&text);
    model_snapshot_fini(&out);
    make_tasks(&large);
    read_snapshot(&large, &out, 0);
    assert_int_equal(out.n_tasks, TASKS);
    assert_int_equal(out.tasks[TASKS - 1].n_frames, 2);
    model_snapshot_fini(&out);
    arena_fini(&large.arena);
}

static void test_the_largest_batch_has_room(void **state) {
    struct model_sample_batch in = {.epoch = 1,
                                    .period_us = 1e4,
                                    .n_samples = SAMPLES,
                                    .n_frames = 20000,
                                    .n_stacks = SAMPLES,
                                    .n_threads = THREADS},
                              out;
    struct strbuf b;
    struct err e = {.text = ""};
    (void)state;
    arena_init(&in.arena, SIZE_MAX / 2);
    in.frames = arena_calloc(&in.arena, in.n_frames, sizeof *in.frames);
    in.stacks = arena_calloc(&in.arena, in.n_stacks, sizeof *in.stacks);
    in.threads = arena_calloc(&in.arena, in.n_threads, sizeof *in.threads);
    in.samples = arena_calloc(&in.arena, in.n_samples, sizeof *in.samples);
    for (uint32_t i = 0; i < in.n_frames; i++)
        in.frames[i] = (struct model_frame_def){i + 1,
                                                {.func = name_of(&in.arena, "ParallelWorker.forward_step", i),
                                                 .file = "/opt/venv/lib/module.py",
                                                 .line = 1}};
    for (uint32_t i = 0; i < in.n_stacks; i++)
        in.stacks[i] = (struct model_stack_def){i + 1, i / 3, 1 + i % 20000};
    for (uint32_t i = 0; i < in.n_threads; i++)
        in.threads[i] = (struct model_thread_def){1000 + i, name_of(&in.arena, "Thread", i), "python3"};
    for (uint32_t i = 0; i < in.n_samples; i++)
        in.samples[i] = (struct model_sample){
            .timestamp = 1e9 + i / THREADS, .tid = 1000 + i % THREADS, .stack_id = i + 1};
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_samples_notify(&b, &in), 0);
    struct wire_message *m = wire_parse(b.data, b.len, &e);
    assert_non_null(m);
    if (wire_get_samples(m, &out, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(out.n_samples, SAMPLES);
    model_sample_batch_fini(&out);
    wire_message_free(m);
    strbuf_fini(&b);
    arena_fini(&in.arena);
}

/* ---- and those that lie ---- */

static void make_thread(struct model_snapshot *s, size_t n) {
    *s = (struct model_snapshot){.timestamp = 1, .n_threads = n};
    arena_init(&s->arena, SIZE_MAX / 2);
    s->threads = arena_calloc(&s->arena, n, sizeof *s->threads);
    for (size_t i = 0; i < n; i++)
        s->threads[i] = (struct model_thread){.tid = 1 + (int64_t)i, .state = 'S'};
}

static char *long_text(struct arena *a) { return memset(arena_calloc(a, LONG + 1, 1), 'n', LONG); }

static void refuse(struct model_snapshot *s) {
    struct model_snapshot out;
    read_snapshot(s, &out, -1);
    model_snapshot_fini(&out);
    arena_fini(&s->arena);
}

static void test_names_of_threads(void **state) {
    struct model_snapshot s;
    (void)state;
    make_thread(&s, 1000);
    const char *text = long_text(&s.arena);
    for (size_t i = 0; i < s.n_threads; i++)
        s.threads[i].name = text;
    refuse(&s);
}

static void test_too_many_threads(void **state) {
    struct model_snapshot s;
    (void)state;
    make_thread(&s, 100000);
    refuse(&s);
}

static void test_variables(void **state) {
    (void)state;
    for (int which = 0; which < 3; which++) {
        struct model_snapshot s;
        make_thread(&s, 1);
        struct model_locals *locals = arena_calloc(&s.arena, 1, sizeof *locals);
        locals->items = arena_calloc(&s.arena, locals->n = 1000, sizeof *locals->items);
        const char *text = long_text(&s.arena);
        for (size_t i = 0; i < locals->n; i++)
            locals->items[i] = (struct model_local){.name = which == 0 ? text : "x",
                                                    .type = which == 1 ? text : "x",
                                                    .text = which == 2 ? text : "x"};
        s.threads[0].frames = arena_calloc(&s.arena, s.threads[0].n_frames = 1, sizeof *s.threads[0].frames);
        s.threads[0].locals = arena_calloc(&s.arena, 1, sizeof *s.threads[0].locals);
        s.threads[0].locals[0] = locals;
        refuse(&s);
    }
}

static void test_tasks(void **state) {
    (void)state;
    for (int which = 0; which < 3; which++) {
        struct model_snapshot s;
        make_thread(&s, which == 2 ? 2 : 1);
        s.tasks = arena_calloc(&s.arena, s.n_tasks = which == 1 ? 1 : 1000, sizeof *s.tasks);
        const char *text = long_text(&s.arena);
        for (size_t i = 0; i < s.n_tasks; i++)
            s.tasks[i] = (struct model_task){.id = i, .tid = 1, .name = which == 0 ? text : "x"};
        if (which == 1) /* it waits for itself a million times */
            s.tasks[0].awaited_by =
                arena_calloc(&s.arena, s.tasks[0].n_awaited_by = 1000000, sizeof *s.tasks[0].awaited_by);
        if (which == 2) /* each thread would show them all */
            s.threads[1].tid = s.threads[0].tid;
        refuse(&s);
    }
}

/* Stacks are cut, and the rest has room. */
static void test_a_stack_is_cut(void **state) {
    struct model_snapshot s, out;
    (void)state;
    make_thread(&s, 1);
    struct model_thread *t = &s.threads[0];
    const char *text = long_text(&s.arena);
    t->frames = arena_calloc(&s.arena, t->n_frames = 1000, sizeof *t->frames);
    for (size_t i = 0; i < t->n_frames; i++)
        t->frames[i].func = text;
    read_snapshot(&s, &out, 0);
    assert_in_range(out.threads[0].n_frames, 10, FIELD_MAX_SHOWN / LONG);
    assert_true(out.threads[0].truncated && out.incomplete);
    model_snapshot_fini(&out);
    arena_fini(&s.arena);
}

static void test_status(void **state) {
    struct model_status s = {.clients = 1}, out;
    struct model_debugger holds[2000];
    struct strbuf b;
    struct err e = {.text = ""};
    struct arena a;
    (void)state;
    arena_init(&a, SIZE_MAX / 2);
    char *text = long_text(&a);
    text[LONG / 2] = '\0';
    for (size_t i = 0; i < 2000; i++)
        holds[i] = (struct model_debugger){.what = "pause", .text = text};
    s.holds = holds;
    s.n_holds = 2000;
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_status(&b, 1, &s), 0);
    struct wire_message *m = wire_parse(b.data, b.len, &e);
    assert_non_null(m);
    assert_int_equal(wire_get_status(m, &out, &e), -1);
    assert_string_equal(e.text, "message is not valid: 'holds' would take more than 144 MB when it is shown");
    model_status_fini(&out);
    wire_message_free(m);
    strbuf_fini(&b);
    arena_fini(&a);
}

static void test_what_is_escaped_counts(void **state) {
    (void)state;
    assert_int_equal(field_shown(NULL), 0);
    assert_int_equal(field_shown("name"), 4);
    assert_int_equal(field_shown("\x01\x1b\x7f"), 18);
    assert_int_equal(field_shown("\"\\"), 4);
    assert_int_equal(field_shown("\xc3\xa9"), 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_largest_have_room),
        cmocka_unit_test(test_the_largest_batch_has_room),
        cmocka_unit_test(test_names_of_threads),
        cmocka_unit_test(test_too_many_threads),
        cmocka_unit_test(test_variables),
        cmocka_unit_test(test_tasks),
        cmocka_unit_test(test_a_stack_is_cut),
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_what_is_escaped_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
