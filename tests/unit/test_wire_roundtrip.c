/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every message there and back: what one end writes the other reads, unknown stays unknown, extremes survive.
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

#include "wire/wire.h"

static struct wire_message *parse(struct strbuf *b) {
    struct err e = {0};
    assert_false(b->failed);
    struct wire_message *m = wire_parse(b->data, b->len, &e);
    if (!m)
        fail_msg("%s", e.text);
    strbuf_fini(b);
    return m;
}

static void check_requests(void **state) {
    (void)state;
    struct strbuf b;
    struct err e = {0};
    int version = 0;
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_hello(&b, 7, "1.0"), 0);
    struct wire_message *m = parse(&b);
    assert_int_equal(wire_message_type(m), WIRE_REQUEST);
    assert_int_equal(wire_message_id(m), 7);
    assert_int_equal(wire_message_method(m), WIRE_HELLO);
    assert_int_equal(wire_get_hello(m, &version, &e), 0);
    assert_int_equal(version, WIRE_VERSION);
    wire_message_free(m);

    for (unsigned i = 0; i < WIRE_METHOD_COUNT; i++) {
        assert_int_equal(wire_put_request(&b, UINT32_MAX, (enum wire_method)i), 0);
        m = parse(&b);
        assert_int_equal(wire_message_method(m), i);
        assert_int_equal(wire_message_id(m), UINT32_MAX);
        wire_message_free(m);
    }
}

static void check_streams(void **state) {
    (void)state;
    struct strbuf b;
    struct err e = {0};
    strbuf_init(&b, 0);
    for (unsigned i = 0; i < WIRE_STREAM_COUNT; i++) {
        struct wire_subscribe in = {.stream = (enum wire_stream)i,
                                    .rate_hz = 0.5 + i,
                                    .mode = (enum model_sampling)i,
                                    .budget_pct = 0.25 * i,
                                    .batch_s = 1.5 * i},
                              out;
        assert_int_equal(wire_put_subscribe(&b, 3, &in), 0);
        struct wire_message *m = parse(&b);
        assert_int_equal(wire_get_subscribe(m, &out, &e), 0);
        assert_int_equal(out.stream, i);
        assert_true(out.rate_hz == in.rate_hz);
        assert_int_equal(out.mode, in.mode);
        assert_true(out.budget_pct == in.budget_pct); /* 0: no wish */
        assert_true(out.batch_s == in.batch_s);
        wire_message_free(m);

        enum wire_stream s;
        assert_int_equal(wire_put_unsubscribe(&b, 4, (enum wire_stream)i), 0);
        m = parse(&b);
        assert_int_equal(wire_get_unsubscribe(m, &s, &e), 0);
        assert_int_equal(s, i);
        assert_int_equal(wire_get_subscribe(m, &out, &e), -1);
        wire_message_free(m);
    }
    static const double bad[] = {0, -1, NAN, INFINITY, 1, 1};
    static const char *const fields[] = {"rate_hz", "rate_hz", "rate_hz", "rate_hz", "budget_pct", "batch_s"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct wire_subscribe in = {.rate_hz = bad[i], .budget_pct = i == 4 ? INFINITY : 0}, out;
        in.batch_s = i == 5 ? INFINITY : 0;
        assert_int_equal(wire_put_subscribe(&b, 3, &in), 0);
        struct wire_message *m = parse(&b);
        assert_int_equal(wire_get_subscribe(m, &out, &e), -1);
        assert_non_null(strstr(e.text, fields[i]));
        wire_message_free(m);
    }
    struct wire_subscribe nowhere = {.stream = WIRE_STREAM_UNKNOWN, .rate_hz = 1}, out;
    assert_int_equal(wire_put_subscribe(&b, 3, &nowhere), 0);
    struct wire_message *m = parse(&b);
    assert_int_equal(wire_get_subscribe(m, &out, &e), -1);
    assert_non_null(strstr(e.text, "no such stream"));
    wire_message_free(m);
}

static void check_error_and_ok(void **state) {
    (void)state;
    struct strbuf b;
    strbuf_init(&b, 0);
    enum wire_error code = 0;
    assert_int_equal(wire_put_error(&b, 9, WIRE_E_UNKNOWN_METHOD, "no method 'dance'"), 0);
    struct wire_message *m = parse(&b);
    assert_int_equal(wire_message_type(m), WIRE_RESPONSE);
    assert_string_equal(wire_message_error(m, &code), "no method 'dance'");
    assert_int_equal(code, WIRE_E_UNKNOWN_METHOD);
    struct model_status status;
    struct err e = {0};
    assert_int_equal(wire_get_status(m, &status, &e), -1);
    model_status_fini(&status);
    wire_message_free(m);

    assert_int_equal(wire_put_ok(&b, 9), 0);
    m = parse(&b);
    assert_null(wire_message_error(m, &code));
    assert_int_equal(wire_message_id(m), 9);
    wire_message_free(m);
}

static void check_target(void **state) {
    (void)state;
    struct strbuf b;
    struct err e = {0};
    strbuf_init(&b, 0);
    struct model_target in = {.pid = 42,
                              .uid = 1000,
                              .host = "node-1",
                              .cmdline = "python train.py --naïve",
                              .exe = "/usr/bin/python3",
                              .python = "3.11.7",
                              .torch = NULL,
                              .rank = MODEL_UNKNOWN,
                              .started_at = NAN,
                              .mode = MODEL_MODE_AGENT,
                              .agent_version = "0.1.0",
                              .discovery = "symbol",
                              .python_untested = true};
    struct model_target out;
    assert_int_equal(wire_put_target(&b, 1, &in), 0);
    struct wire_message *m = parse(&b);
    assert_int_equal(wire_get_target(m, &out, &e), 0);
    assert_int_equal(out.pid, 42);
    assert_int_equal(out.uid, 1000);
    assert_string_equal(out.cmdline, in.cmdline);
    assert_string_equal(out.host, in.host);
    assert_string_equal(out.exe, in.exe);
    assert_string_equal(out.python, in.python);
    assert_null(out.torch);
    assert_int_equal(out.rank, MODEL_UNKNOWN);
    assert_true(isnan(out.started_at));
    assert_string_equal(out.agent_version, in.agent_version);
    assert_string_equal(out.discovery, in.discovery);
    assert_true(out.python_untested);
    model_target_fini(&out);
    wire_message_free(m);
}

static void check_status(void **state) {
    (void)state;
    struct strbuf b;
    struct err e = {0};
    strbuf_init(&b, 0);
    struct model_status in = {.agent_version = "0.1.0",
                              .uptime_s = 12.5,
                              .cpu_s = 0.25,
                              .rss_bytes = INT64_MAX,
                              .clients = 3,
                              .client_processes = 2,
                              .rate_hz = 100,
                              .kept_hz = 62.5,
                              .samples = UINT64_MAX,
                              .torn = 1,
                              .dropped = 2,
                              .us_per_sample = NAN,
                              .sampling = "gentle",
                              .signals_sent = 11,
                              .calls_interrupted = 12,
                              .us_per_signal = 3.5,
                              .overhead_pct = 0.7,
                              .budget_pct = 1,
                              .stretched = true,
                              .snapshots = 5,
                              .read_errors = 6,
                              .arena_limit_hits = 7,
                              .discovery = "symbol",
                              .strategy = "preloaded",
                              .endpoint = "/tmp/x.sock",
                              .note = NULL};
    struct model_status out;
    assert_int_equal(wire_put_status(&b, 1, &in), 0);
    struct wire_message *m = parse(&b);
    assert_int_equal(wire_get_status(m, &out, &e), 0);
    assert_true(out.samples == UINT64_MAX && out.kept_hz == 62.5 && out.client_processes == 2);
    assert_true(out.rss_bytes == INT64_MAX);
    assert_true(isnan(out.us_per_sample));
    assert_string_equal(out.sampling, "gentle");
    assert_true(out.signals_sent == 11 && out.calls_interrupted == 12 && out.us_per_signal == 3.5);
    assert_true(out.overhead_pct == in.overhead_pct && out.budget_pct == 1 && out.stretched);
    assert_int_equal(out.arena_limit_hits, 7);
    assert_string_equal(out.endpoint, in.endpoint);
    assert_string_equal(out.strategy, in.strategy);
    assert_null(out.note);
    model_status_fini(&out);
    wire_message_free(m);
}

static void check_bye(void **state) {
    (void)state;
    struct strbuf b;
    strbuf_init(&b, 0);
    char reason[64], small[5];
    assert_int_equal(wire_put_bye(&b, "ejected"), 0);
    struct wire_message *m = parse(&b);
    assert_int_equal(wire_message_notification(m), WIRE_N_BYE);
    assert_int_equal(wire_get_bye(m, reason, sizeof reason), 0);
    assert_string_equal(reason, "ejected");
    assert_int_equal(wire_get_bye(m, small, sizeof small), 0);
    assert_string_equal(small, "ejec");
    wire_message_free(m);
}

static struct model_frame some_frames[] = {
    {.func = "Träumer.schläft", .file = "/x/主.py", .line = 12},
    {.func = "Träumer.schläft", .file = "/x/主.py", .line = 13},
    {.func = NULL, .file = NULL, .line = 0, .kind = MODEL_FRAME_NATIVE},
    {.func = "<module>", .file = "", .line = INT32_MAX},
};
static struct model_thread some_threads[] = {
    {.tid = 100,
     .ident = UINT64_MAX,
     .name = "MainThread",
     .native_name = "python",
     .state = 'S',
     .on_cpu = 0,
     .gil = MODEL_GIL_HOLDING,
     .gil_for_us = 12.5e6,
     .gc = 1,
     .cpu_pct = 12.5,
     .has_python = true,
     .torn = true,
     .frames = some_frames,
     .n_frames = 4},
    {.tid = 101,
     .native_name = "pt_autograd_0",
     .state = '?',
     .on_cpu = MODEL_UNKNOWN,
     .gil = MODEL_GIL_UNKNOWN,
     .gil_for_us = NAN,
     .gc = MODEL_UNKNOWN,
     .cpu_pct = NAN,
     .truncated = true},
};
static const struct model_snapshot some_snapshot = {.timestamp = 1.7e9,
                                                    .seq = 8,
                                                    .gil_tid = 100,
                                                    .gil_enabled = 1,
                                                    .gc_running = MODEL_UNKNOWN,
                                                    .sampling = MODEL_SAMPLING_GENTLE,
                                                    .cost_us = NAN,
                                                    .threads = some_threads,
                                                    .n_threads = 2,
                                                    .dropped = 4,
                                                    .incomplete = true,
                                                    .process = {.cpu_pct = NAN,
                                                                .uptime_s = 3,
                                                                .rss_bytes = MODEL_UNKNOWN,
                                                                .n_threads = 9,
                                                                .agent_cpu_pct = 0.5,
                                                                .agent_rss_bytes = 12345}};

static void expect_same(const struct model_snapshot *out) {
    assert_true(out->timestamp == some_snapshot.timestamp && isnan(out->cost_us) && out->seq == 8 &&
                out->gil_tid == 100 && out->gil_enabled == 1 && out->gc_running == MODEL_UNKNOWN &&
                out->sampling == MODEL_SAMPLING_GENTLE);
    assert_true(out->dropped == 4 && out->incomplete);
    assert_true(isnan(out->process.cpu_pct) && out->process.rss_bytes == MODEL_UNKNOWN &&
                out->process.n_threads == 9);
    assert_true(out->process.agent_cpu_pct == 0.5 && out->process.agent_rss_bytes == 12345);
    assert_int_equal(out->n_threads, 2);
    const struct model_thread *t = out->threads;
    assert_true(t->ident == UINT64_MAX && t->on_cpu == 0 && t->gil == MODEL_GIL_HOLDING &&
                t->cpu_pct == 12.5);
    assert_true(t->has_python && t->torn && !t->truncated && t->state == 'S');
    assert_true(t->gil_for_us == 12.5e6 && t->gc == 1 && isnan(t[1].gil_for_us) && t[1].gc == MODEL_UNKNOWN);
    assert_string_equal(t->name, "MainThread");
    assert_int_equal(t->n_frames, 4);
    assert_string_equal(t->frames[0].func, "Träumer.schläft");
    assert_string_equal(t->frames[1].file, "/x/主.py");
    assert_int_equal(t->frames[1].line, 13);
    assert_null(t->frames[2].func);
    assert_null(t->frames[2].file);
    assert_int_equal(t->frames[2].kind, MODEL_FRAME_NATIVE);
    assert_string_equal(t->frames[3].file, "");
    assert_int_equal(t->frames[3].line, INT32_MAX);
    assert_true(t[1].state == '?' && t[1].on_cpu == MODEL_UNKNOWN && isnan(t[1].cpu_pct) && t[1].truncated);
    assert_null(t[1].name);
    assert_int_equal(t[1].n_frames, 0);
}

static struct model_local some_locals[] = {
    {"batch", "Tensor", "Tensor[32, 64] float32 cpu", MODEL_LOCAL_ARGUMENT, NULL},
    {"größe", "str", "'主'", MODEL_LOCAL_FREE, NULL},
    {"unknown", NULL, NULL, MODEL_LOCAL_CELL, NULL},
};
static const struct model_locals locals_of_three = {some_locals, 3, true, 0, 0, 0, 0},
                                 locals_of_none = {some_locals, 0, false, 0, 0, 0, 0};
static const struct model_locals *some_thread_locals[] = {&locals_of_none, &locals_of_three, NULL, NULL};

static void expect_locals(const struct model_thread *t) {
    assert_non_null(t->locals);
    assert_true(t->locals[0]->n == 0 && !t->locals[0]->truncated);
    assert_true(t->locals[1]->n == 3 && t->locals[1]->truncated);
    assert_null(t->locals[2]);
    assert_null(t->locals[3]);
    for (size_t i = 0; i < 3; i++) {
        const struct model_local *in = &some_locals[i], *out = &t->locals[1]->items[i];
        assert_string_equal(out->name, in->name);
        assert_int_equal(out->kind, in->kind);
        assert_true(!in->type == !out->type && !in->text == !out->text);
        assert_true(!in->text || (strcmp(in->type, out->type) == 0 && strcmp(in->text, out->text) == 0));
    }
}

/* With a snapshot that has locals: who asked gets them, a stream and who did not ask never do. */
static void check_locals(void **state) {
    (void)state;
    struct strbuf b;
    struct err e = {0};
    struct model_thread threads[2] = {some_threads[0], some_threads[1]};
    struct model_snapshot in = some_snapshot;
    threads[0].locals = some_thread_locals;
    in.threads = threads;
    strbuf_init(&b, 0);
    for (int how = 0; how < 5; how++) {
        const struct wire_threads wants[] = {
            {.locals = true}, {.locals = true, .tid = 100}, {.tid = 100}, {.locals = true, .tid = 7}};
        static const size_t expected[] = {2, 1, 1, 0, 2};
        struct model_snapshot out;
        int rc = how == 4 ? wire_put_threads_notify_open(&b, &in)
                          : wire_put_snapshot_wanted_open(&b, 1, &in, &wants[how]);
        assert_int_equal(rc, 0);
        assert_int_equal(wire_put_dropped(&b, 4), 0);
        struct wire_message *m = parse(&b);
        assert_int_equal(wire_get_snapshot(m, &out, &e), 0);
        assert_int_equal(out.n_threads, expected[how]);
        if (how < 2)
            expect_locals(&out.threads[0]);
        else if (out.n_threads)
            assert_null(out.threads[0].locals);
        model_snapshot_fini(&out);
        wire_message_free(m);
    }
}

static void check_threads_wanted(void **state) {
    (void)state;
    struct strbuf b;
    struct err e = {0};
    const struct wire_threads wants[] = {
        {.locals = false},
        {.locals = true, .mode = MODEL_SAMPLING_GENTLE},
        {.locals = true, .tid = 4242},
        {.tid = INT64_MAX, .mode = MODEL_SAMPLING_GENTLE},
        {.locals = true, .repr = true},
        {.tasks = true, .tid = 7},
    };
    strbuf_init(&b, 0);
    for (size_t i = 0; i < sizeof wants / sizeof wants[0]; i++) {
        struct wire_threads out;
        assert_int_equal(wire_put_threads(&b, 1, &wants[i]), 0);
        struct wire_message *m = parse(&b);
        assert_int_equal(wire_get_threads(m, &out, &e), 0);
        assert_true(out.locals == wants[i].locals && out.tid == wants[i].tid && out.mode == wants[i].mode);
        assert_true(out.repr == wants[i].repr && out.tasks == wants[i].tasks);
        wire_message_free(m);
    }
}

static void check_snapshot(void **state) {
    (void)state;
    struct strbuf b;
    struct err e = {0};
    strbuf_init(&b, 0);
    for (int notify = 0; notify < 2; notify++) {
        struct model_snapshot out;
        assert_int_equal(notify ? wire_put_threads_notify(&b, &some_snapshot)
                                : wire_put_snapshot(&b, 1, &some_snapshot),
                         0);
        struct wire_message *m = parse(&b);
        assert_int_equal(wire_get_snapshot(m, &out, &e), 0);
        expect_same(&out);
        model_snapshot_fini(&out);
        wire_message_free(m);
    }
}

static void check_samples(void **state) {
    (void)state;
    struct strbuf b;
    struct err e = {0};
    strbuf_init(&b, 0);
    struct model_frame_def frames[] = {{1, {.func = "main", .file = "a.py", .line = 3}},
                                       {2, {.func = "step", .file = "a.py", .line = 9}}};
    struct model_stack_def stacks[] = {{1, 0, 1}, {2, 1, 2}};
    struct model_thread_def threads[] = {{.tid = 7, .name = "MainThread", .native_name = NULL}};
    struct model_sample samples[] = {{.timestamp = 5.25,
                                      .tid = 7,
                                      .stack_id = 2,
                                      .on_cpu = 1,
                                      .torn = true,
                                      .gil = MODEL_GIL_NONE,
                                      .gc = 1},
                                     {.timestamp = 5.5, .tid = 7, .stack_id = 0, .on_cpu = MODEL_UNKNOWN}};
    struct model_sample_batch in = {.epoch = 2,
                                    .period_us = 10000,
                                    .mode = MODEL_SAMPLING_GENTLE,
                                    .cost_pct = NAN,
                                    .budget_pct = 0.5,
                                    .dropped = 11,
                                    .frames = frames,
                                    .n_frames = 2,
                                    .stacks = stacks,
                                    .n_stacks = 2,
                                    .threads = threads,
                                    .n_threads = 1,
                                    .samples = samples,
                                    .n_samples = 2};
    struct model_sample_batch out;
    assert_int_equal(wire_put_samples_notify(&b, &in), 0);
    struct wire_message *m = parse(&b);
    assert_int_equal(wire_message_notification(m), WIRE_N_SAMPLES);
    assert_int_equal(wire_get_samples(m, &out, &e), 0);
    assert_true(out.epoch == 2 && out.period_us == 10000 && out.dropped == 11);
    assert_true(out.mode == MODEL_SAMPLING_GENTLE && isnan(out.cost_pct) && out.budget_pct == 0.5);
    assert_int_equal(out.n_frames, 2);
    assert_string_equal(out.frames[1].frame.func, "step");
    assert_int_equal(out.frames[1].frame_id, 2);
    assert_int_equal(out.n_stacks, 2);
    assert_true(out.stacks[1].parent_id == 1 && out.stacks[1].frame_id == 2);
    assert_int_equal(out.threads[0].tid, 7);
    assert_null(out.threads[0].native_name);
    assert_int_equal(out.n_samples, 2);
    assert_true(out.samples[0].timestamp == 5.25 && out.samples[0].torn &&
                out.samples[0].gil == MODEL_GIL_NONE && out.samples[0].gc == 1);
    assert_true(out.samples[1].on_cpu == MODEL_UNKNOWN && out.samples[1].stack_id == 0);
    model_sample_batch_fini(&out);
    wire_message_free(m);

    stacks[1].parent_id = 2; /* a node that is its own caller */
    assert_int_equal(wire_put_samples_notify(&b, &in), 0);
    m = parse(&b);
    assert_int_equal(wire_get_samples(m, &out, &e), -1);
    model_sample_batch_fini(&out);
    wire_message_free(m);
}

/* Threads with `depth` frames each, of `distinct` functions. Everything belongs to the arena. */
static void make_threads(struct model_snapshot *s, size_t n_threads, size_t depth, size_t distinct) {
    *s = (struct model_snapshot){.timestamp = 1, .gil_tid = 0, .cost_us = 1};
    arena_init(&s->arena, (size_t)512 * 1024 * 1024);
    struct model_frame *pool = arena_calloc(&s->arena, distinct, sizeof *pool);
    for (size_t i = 0; i < distinct; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "function_%zu", i);
        pool[i] = (struct model_frame){
            .func = arena_strdup(&s->arena, name), .file = "/a/module.py", .line = (int)i};
    }
    s->threads = arena_calloc(&s->arena, n_threads, sizeof *s->threads);
    s->n_threads = n_threads;
    for (size_t t = 0; t < n_threads; t++) {
        s->threads[t] = (struct model_thread){.tid = (int64_t)t + 1, .state = 'R', .n_frames = depth};
        s->threads[t].frames = arena_calloc(&s->arena, depth, sizeof(struct model_frame));
        for (size_t d = 0; d < depth; d++)
            s->threads[t].frames[d] = pool[(t + d) % distinct];
    }
}

static void check_many_deep_stacks_stay_small(void **state) {
    (void)state;
    struct strbuf b;
    struct err e = {0};
    struct model_snapshot in, out;
    strbuf_init(&b, 0);
    make_threads(&in, 60, 900, 500);
    assert_int_equal(wire_put_threads_notify(&b, &in), 0);
    assert_true(b.len < 200 * 1024); /* three bytes a frame at most */
    struct wire_message *m = parse(&b);
    assert_int_equal(wire_get_snapshot(m, &out, &e), 0);
    assert_false(out.incomplete);
    for (size_t t = 0; t < 60; t++) {
        assert_int_equal(out.threads[t].n_frames, 900);
        for (size_t d = 0; d < 900; d++) {
            assert_string_equal(out.threads[t].frames[d].func, in.threads[t].frames[d].func);
            assert_int_equal(out.threads[t].frames[d].line, in.threads[t].frames[d].line);
        }
    }
    model_snapshot_fini(&out);
    model_snapshot_fini(&in);
    wire_message_free(m);
}

static void check_too_many_frames_are_cut(void **state) {
    (void)state;
    struct strbuf b;
    struct err e = {0};
    struct model_snapshot in, out;
    strbuf_init(&b, 0);
    make_threads(&in, 1000, 2048, 300);
    in.threads[5].n_frames = 3;
    assert_int_equal(wire_put_threads_notify(&b, &in), 0);
    assert_true(b.len <= WIRE_MAX_ASSEMBLED);
    struct wire_message *m = parse(&b);
    assert_int_equal(wire_get_snapshot(m, &out, &e), 0);
    assert_true(out.incomplete);
    assert_true(out.threads[0].truncated);
    assert_int_equal(out.threads[0].n_frames, 1024);
    assert_string_equal(out.threads[0].frames[0].func, in.threads[0].frames[0].func); /* the innermost stay */
    assert_false(out.threads[5].truncated);
    assert_int_equal(out.threads[5].n_frames, 3);
    model_snapshot_fini(&out);
    model_snapshot_fini(&in);
    wire_message_free(m);
}

static void check_limited_buffer_fails(void **state) {
    (void)state;
    struct strbuf b;
    struct model_snapshot in;
    strbuf_init(&b, 1000);
    make_threads(&in, 10, 100, 100);
    assert_int_equal(wire_put_threads_notify(&b, &in), -1);
    model_snapshot_fini(&in);
    strbuf_fini(&b);
}

static void feed_ok(struct wire_assembler *a, struct strbuf *chunk, int expected) {
    struct err e = {0};
    struct wire_message *m = parse(chunk);
    int rc = wire_assembler_feed(a, m, &e);
    if (rc != expected)
        fail_msg("%d: %s", rc, e.text);
    wire_message_free(m);
}

static void check_chunks(void **state) {
    (void)state;
    struct strbuf big, b;
    struct wire_assembler a;
    strbuf_init(&big, 0);
    strbuf_init(&b, 0);
    for (size_t i = 0; i < 3 * WIRE_MAX_MESSAGE + 17; i++)
        assert_int_equal(strbuf_addc(&big, (char)(i * 31 >> 7)), 0);
    assert_int_equal(wire_chunk_count(WIRE_MAX_MESSAGE), 1);
    size_t n = wire_chunk_count(big.len);
    assert_int_equal(n, 4);
    wire_assembler_init(&a);
    for (int again = 0; again < 2; again++) {
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(wire_put_chunk(&b, 5, big.data, big.len, i), 0);
            assert_true(b.len <= WIRE_MAX_MESSAGE);
            feed_ok(&a, &b, i + 1 == n ? 1 : 0);
        }
        assert_int_equal(a.data.len, big.len);
        assert_memory_equal(a.data.data, big.data, big.len);
    }
    assert_int_equal(wire_put_chunk(&b, 5, big.data, big.len, n), -1);

    assert_int_equal(wire_put_chunk(&b, 6, big.data, big.len, 1), 0); /* does not begin at the beginning */
    feed_ok(&a, &b, -1);
    assert_int_equal(wire_put_chunk(&b, 7, big.data, big.len, 0), 0);
    feed_ok(&a, &b, 0);
    assert_int_equal(wire_put_chunk(&b, 8, big.data, big.len, 1), 0); /* of another message */
    feed_ok(&a, &b, -1);
    assert_int_equal(wire_put_ok(&b, 1), 0); /* no chunk at all */
    feed_ok(&a, &b, -1);
    wire_assembler_fini(&a);
    strbuf_fini(&big);
}

/* A message of few bytes that names a long name many times: no more is taken of it than can be shown. */
static void test_a_long_name_many_times(void **state) {
    enum { DEPTH = 100000, LENGTH = 60000 };
    struct model_frame *frames = calloc(DEPTH, sizeof *frames);
    char *name = calloc(1, LENGTH + 1);
    struct model_thread thread = {.tid = 1, .n_frames = DEPTH, .frames = frames};
    struct model_snapshot s = {.timestamp = 1, .threads = &thread, .n_threads = 1}, got;
    struct strbuf b;
    struct err e;
    (void)state;
    assert_non_null(frames);
    assert_non_null(name);
    memset(name, 'n', LENGTH);
    for (size_t i = 0; i < DEPTH; i++)
        frames[i].func = name;
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_snapshot(&b, 1, &s), 0);
    struct wire_message *m = wire_parse(b.data, b.len, &e);
    assert_non_null(m);
    assert_int_equal(wire_get_snapshot(m, &got, &e), 0);
    assert_in_range(got.threads[0].n_frames, 1, (144 << 20) / LENGTH);
    assert_true(got.threads[0].truncated && got.incomplete);
    model_snapshot_fini(&got);
    wire_message_free(m);
    strbuf_fini(&b);
    free(frames);
    free(name);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_requests),
        cmocka_unit_test(check_streams),
        cmocka_unit_test(check_error_and_ok),
        cmocka_unit_test(check_target),
        cmocka_unit_test(check_status),
        cmocka_unit_test(check_bye),
        cmocka_unit_test(check_snapshot),
        cmocka_unit_test(check_locals),
        cmocka_unit_test(check_threads_wanted),
        cmocka_unit_test(check_samples),
        cmocka_unit_test(check_many_deep_stacks_stay_small),
        cmocka_unit_test(check_too_many_frames_are_cut),
        cmocka_unit_test(check_limited_buffer_fails),
        cmocka_unit_test(test_a_long_name_many_times),
        cmocka_unit_test(check_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
