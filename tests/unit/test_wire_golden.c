/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of every message, as they are kept in tests/wire/golden: what is sent today can be read by a program of tomorrow only if
 * the bytes of yesterday are still read. WIRE_GOLDEN_UPDATE=1 writes the files anew; look at the difference before committing it.
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

static struct model_frame golden_frames[] = {
    {.func = "Trainer.step", .file = "/job/train.py", .line = 41},
    {.func = "<module>", .file = "/job/train.py", .line = 80},
    {.kind = MODEL_FRAME_NATIVE, .func = "select"},
};

static struct model_thread golden_threads[] = {
    {.tid = 4001,
     .ident = 140009443289984,
     .name = "MainThread",
     .native_name = "python",
     .state = 'R',
     .on_cpu = 1,
     .gil = MODEL_GIL_HOLDING,
     .gil_for_us = 1500.0,
     .gc = 1,
     .cpu_pct = 98.5,
     .has_python = true,
     .torn = true,
     .frames = golden_frames,
     .n_frames = 2},
    {.tid = 4002,
     .native_name = "pt_autograd_0",
     .state = 'S',
     .on_cpu = MODEL_UNKNOWN,
     .cpu_pct = NAN,
     .gil_for_us = NAN,
     .truncated = true,
     .frames = golden_frames + 2,
     .n_frames = 1},
};

static const struct model_snapshot golden_snapshot = {
    .timestamp = 1700000000.25,
    .seq = 7,
    .gil_tid = 4001,
    .gil_enabled = 1,
    .gc_running = 1,
    .cost_us = 250.5,
    .threads = golden_threads,
    .n_threads = 2,
    .dropped = 3,
    .process = {.cpu_pct = NAN,
                .uptime_s = 61.5,
                .rss_bytes = 123456789,
                .n_threads = 9,
                .agent_cpu_pct = 0.5,
                .agent_rss_bytes = 262144},
};

static int put_hello(struct strbuf *b) { return wire_put_hello(b, 1, "0.1.0"); }

static int put_threads(struct strbuf *b) { return wire_put_request(b, 2, WIRE_THREADS); }

static int put_subscribe(struct strbuf *b) {
    return wire_put_subscribe(
        b, 3, &(struct wire_subscribe){.stream = WIRE_STREAM_SAMPLES, .rate_hz = 100, .budget_pct = 0.5});
}

static int put_unsubscribe(struct strbuf *b) { return wire_put_unsubscribe(b, 4, WIRE_STREAM_THREADS); }

static int put_error(struct strbuf *b) {
    return wire_put_error(b, 5, WIRE_E_BAD_PARAMS, "the first request must be hello");
}

static int put_ok(struct strbuf *b) { return wire_put_ok(b, 6); }

static int put_bye(struct strbuf *b) { return wire_put_bye(b, "ejected"); }

static int put_target(struct strbuf *b) {
    const struct model_target t = {.pid = 4001,
                                   .uid = 1000,
                                   .host = "node-7",
                                   .cmdline = "python train.py",
                                   .exe = "/usr/bin/python3.11",
                                   .python = "3.11.7",
                                   .rank = MODEL_UNKNOWN,
                                   .started_at = 1699999000,
                                   .agent_version = "0.1.0",
                                   .discovery = "symbol"};
    return wire_put_target(b, 1, &t);
}

static int put_config(struct strbuf *b) {
    return wire_put_config(b, 9, &(struct wire_config){.key = "probing.budget", .value = "0.5%"});
}

static int put_arm(struct strbuf *b) {
    return wire_put_arm(b, 11, &(struct wire_arm){.what = "trace", .limit_s = 60, .steps = 5});
}

static int put_disarm(struct strbuf *b) {
    return wire_put_disarm(b, 12, &(struct wire_arm){.what = "trace"});
}

static int put_tables(struct strbuf *b) {
    const struct wire_table tables[] = {{.name = "python.samples", .head = "the head", .head_len = 8},
                                        {.name = "python.gc", .head = "", .head_len = 0}};
    return wire_put_tables(b, 10, tables, 2);
}

static int put_pull(struct strbuf *b) {
    return wire_put_pull(b, 11,
                         &(struct wire_pull){.table = "python.samples",
                                             .making = 4000000000,
                                             .first_seq = 5000000000,
                                             .rows = 7,
                                             .heap_used = 300});
}

static int put_pulled(struct strbuf *b) {
    return wire_put_pulled(b, 11, &(struct wire_pulled){.pieces = "rows", .len = 4, .more = true});
}

static int put_rows_ask(struct strbuf *b) {
    const struct wire_rows_ask a = {
        .table = "python.modules",
        .n_args = 2,
        .args = {{.key = "root", .is_text = true, .text = "model"}, {.key = "limit", .number = -5000000000}}};
    return wire_put_rows_ask(b, 12, &a);
}

static int put_rows(struct strbuf *b) {
    const struct wire_value names[] = {{.kind = WIRE_VALUE_TEXT, .s = "path", .len = 4},
                                       {.kind = WIRE_VALUE_TEXT, .s = "bytes", .len = 5}};
    const struct wire_value rows[2][2] = {
        {{.kind = WIRE_VALUE_TEXT, .s = "model.0", .len = 7}, {.kind = WIRE_VALUE_INT, .i = 5000000000}},
        {{.kind = WIRE_VALUE_NULL}, {.kind = WIRE_VALUE_DOUBLE, .f = 0.5}}};
    struct strbuf columns, made;
    strbuf_init(&columns, 0);
    strbuf_init(&made, 0);
    (void)wire_add_row(&columns, names, 2);
    (void)wire_add_row(&made, rows[0], 2);
    (void)wire_add_row(&made, rows[1], 2);
    const struct wire_rows r = {.columns = columns.data,
                                .columns_len = columns.len,
                                .rows = made.data,
                                .rows_len = made.len,
                                .n_columns = 2,
                                .n_rows = 2,
                                .more = true,
                                .note = "there are more"};
    int rc = wire_put_rows(b, 12, &r);
    strbuf_fini(&columns);
    strbuf_fini(&made);
    return rc;
}

/* A debugger that somebody has begun. */
static struct model_debugger golden_holds[] = {{.what = "pause",
                                                .state = "held",
                                                .address = "127.0.0.1:4711",
                                                .uid = 1000,
                                                .pid = 4242,
                                                .held_s = 88.5,
                                                .left_s = 211.5,
                                                .used = true}};

static int put_status(struct strbuf *b) {
    struct model_lease leases[] = {{.what = "trace",
                                    .owners = 1,
                                    .held_s = 12.5,
                                    .left_s = 47.5,
                                    .looks = 4,
                                    .cost_pct = 0.25,
                                    .armed = true}};
    struct model_table tables[] = {
        {.name = "python.samples", .rows = 40, .bytes = 65536, .oldest = 1700000000, .newest = 1700000002.5},
        {.name = "python.frames", .rows = 7, .bytes = 32768, .lost = 1, .oldest = NAN, .newest = NAN}};
    struct model_endpoint doors[] = {{.address = "127.0.0.1:3344",
                                      .looking = true,
                                      .clients = 1,
                                      .waiting = 2,
                                      .entered = 7,
                                      .refused = 3}};
    const struct model_status s = {.agent_version = "0.1.0",
                                   .holds = golden_holds,
                                   .n_holds = 1,
                                   .doors = doors,
                                   .n_doors = 1,
                                   .uptime_s = 12.5,
                                   .cpu_s = 0.25,
                                   .rss_bytes = 400000,
                                   .clients = 2,
                                   .client_processes = 1,
                                   .rate_hz = 100,
                                   .kept_hz = 62.5,
                                   .samples = 12345,
                                   .torn = 2,
                                   .dropped = 1,
                                   .us_per_sample = 4.5,
                                   .sampling = "exact",
                                   .exact = 9000,
                                   .signals_sent = 9100,
                                   .us_per_signal = 3.5,
                                   .overhead_pct = NAN,
                                   .budget_pct = 1,
                                   .stretched = true,
                                   .snapshots = 40,
                                   .discovery = "symbol",
                                   .strategy = "a thread asleep in a system call",
                                   .endpoint = "/tmp/probing-1000/4001.sock",
                                   .always_hz = 10,
                                   .data_dir = "/dev/shm/probing-1000/4001-99",
                                   .collect_pct = 0.125,
                                   .collect_us_per_s = 1250,
                                   .collect_threads_s = NAN,
                                   .steps = 1200,
                                   .hooks = "at::addGlobalCallback of torch 2.13.0",
                                   .spans = 7200,
                                   .us_per_span = 1.25,
                                   .tables = tables,
                                   .n_tables = 2,
                                   .leases = leases,
                                   .n_leases = 1};
    return wire_put_status(b, 8, &s);
}

static int put_snapshot(struct strbuf *b) { return wire_put_snapshot(b, 9, &golden_snapshot); }

static int put_threads_notify(struct strbuf *b) { return wire_put_threads_notify(b, &golden_snapshot); }

static int put_samples(struct strbuf *b) {
    struct model_frame_def frames[] = {{1, golden_frames[1]}, {2, golden_frames[0]}};
    struct model_stack_def stacks[] = {{1, 0, 1}, {2, 1, 2}};
    struct model_thread_def threads[] = {{.tid = 4001, .name = "MainThread", .native_name = "python"}};
    struct model_sample samples[] = {
        {.timestamp = 1700000000.5,
         .tid = 4001,
         .stack_id = 2,
         .on_cpu = 1,
         .gil = MODEL_GIL_HOLDING,
         .gc = 1},
        {.timestamp = 1700000000.75, .tid = 4001, .stack_id = 1, .on_cpu = MODEL_UNKNOWN, .torn = true}};
    const struct model_sample_batch batch = {.epoch = 1,
                                             .period_us = 10000,
                                             .dropped = 4,
                                             .frames = frames,
                                             .n_frames = 2,
                                             .stacks = stacks,
                                             .n_stacks = 2,
                                             .threads = threads,
                                             .n_threads = 1,
                                             .samples = samples,
                                             .n_samples = 2};
    return wire_put_samples_notify(b, &batch);
}

static int put_eval(struct strbuf *b) {
    const struct wire_eval w = {.code = "1 + 1\n",
                                .code_len = 6,
                                .name = "<eval>",
                                .timeout_s = 2.5,
                                .output_bytes = 65536,
                                .main = true,
                                .tid = 4001,
                                .depth = 3};
    return wire_put_eval(b, 13, &w);
}

static int put_complete(struct strbuf *b) {
    const struct wire_eval w = {.code = "if x:\n",
                                .code_len = 6,
                                .name = "<repl>",
                                .timeout_s = 2.5,
                                .output_bytes = 65536,
                                .keep = true,
                                .complete = true,
                                .whole = true};
    return wire_put_eval(b, 14, &w);
}

static int put_debug(struct strbuf *b) {
    const struct wire_debug d = {.action = WIRE_DEBUG_BEGIN,
                                 .timeout_s = 30,
                                 .leased = true,
                                 .host = "127.0.0.1",
                                 .port = 5678,
                                 .path = "/srv/debugpy",
                                 .places = {"/usr/lib/python3.12/site-packages", "/tmp/\xff"},
                                 .n_places = 2,
                                 .exposed = true};
    return wire_put_debug(b, 16, WIRE_DEBUG, &d);
}

static int put_debugpy(struct strbuf *b) {
    const struct wire_debugger d = {.on = true,
                                    .client = true,
                                    .host = "127.0.0.1",
                                    .port = 5678,
                                    .module = "/srv/debugpy/__init__.py",
                                    .version = "1.8.0",
                                    .user = "user 1000",
                                    .cwd = "/work",
                                    .compiles = true};
    return wire_put_debugger(b, 16, WIRE_DEBUG, &d);
}

static int put_pause(struct strbuf *b) {
    const struct wire_debug d = {
        .action = WIRE_DEBUG_BEGIN, .timeout_s = 10, .host = "::1", .port = 3344, .limit_s = 120};
    return wire_put_debug(b, 17, WIRE_PAUSE, &d);
}

static int put_paused(struct strbuf *b) {
    struct wire_paused_thread threads[] = {
        {.tid = 4001, .held = true, .name = "MainThread", .where = "held at /train.py:7 step"},
        {.tid = 0, .name = "loader", .where = "in C, called at /train.py:9 load"}};
    const struct wire_debugger d = {.on = true,
                                    .address = "[::1]:3344",
                                    .token = "0a1b",
                                    .left_s = 119.5,
                                    .threads = threads,
                                    .n_threads = 2};
    return wire_put_debugger(b, 17, WIRE_PAUSE, &d);
}

static int put_catch(struct strbuf *b) {
    const struct wire_debug d = {.action = WIRE_DEBUG_STATUS, .timeout_s = 10, .limit_s = NAN};
    return wire_put_debug(b, 18, WIRE_CATCH, &d);
}

static int put_caught(struct strbuf *b) {
    const struct wire_debugger d = {.on = true,
                                    .address = "127.0.0.1:3344",
                                    .token = "0a1b",
                                    .left_s = 30,
                                    .exception = "ValueError: boom",
                                    .thread = "MainThread",
                                    .traceback = "Traceback\nValueError: boom",
                                    .signals = "SIGSEGV",
                                    .left_alone = "",
                                    .limit_s = 300,
                                    .all_threads = true};
    return wire_put_debugger(b, 18, WIRE_CATCH, &d);
}

static int put_listen(struct strbuf *b) {
    const struct wire_listen w = {.address = "127.0.0.1:3344", .looking = true};
    return wire_put_listen(b, 15, &w);
}

static int put_listening(struct strbuf *b) {
    const struct wire_listening l = {
        .address = "[::1]:3344", .looking_token = "0a1b", .file = "/tmp/probing-1000/4001.door"};
    return wire_put_listening(b, 15, &l);
}

static int put_evaluated(struct strbuf *b) {
    const struct wire_evaluated v = {.output = {.s = "a\n\0\xff", .len = 4},
                                     .type = {.s = "ValueError", .len = 10},
                                     .message = {.s = "", .len = 0},
                                     .traceback = {.s = "ValueError\n", .len = 11},
                                     .duration_ms = 0.5,
                                     .truncated = true,
                                     .timed_out = true};
    return wire_put_evaluated(b, 13, &v);
}

static int put_chunk(struct strbuf *b) { return wire_put_chunk(b, 1, "a short one", 11, 0); }

static const struct golden {
    const char *name;
    int (*put)(struct strbuf *b);
} goldens[] = {
    {"hello", put_hello},
    {"threads", put_threads},
    {"subscribe", put_subscribe},
    {"unsubscribe", put_unsubscribe},
    {"error", put_error},
    {"ok", put_ok},
    {"bye", put_bye},
    {"target", put_target},
    {"status", put_status},
    {"config", put_config},
    {"arm", put_arm},
    {"disarm", put_disarm},
    {"tables", put_tables},
    {"pull", put_pull},
    {"pulled", put_pulled},
    {"rows_ask", put_rows_ask},
    {"rows", put_rows},
    {"eval", put_eval},
    {"complete", put_complete},
    {"evaluated", put_evaluated},
    {"listen", put_listen},
    {"listening", put_listening},
    {"debug", put_debug},
    {"debugpy", put_debugpy},
    {"pause", put_pause},
    {"paused", put_paused},
    {"catch", put_catch},
    {"caught", put_caught},
    {"snapshot", put_snapshot},
    {"threads_notify", put_threads_notify},
    {"samples", put_samples},
    {"chunk", put_chunk},
};

static void golden_path(char *buf, size_t cap, const char *name) {
    (void)snprintf(buf, cap, "%s/tests/wire/golden/%s.msgpack", PROBING_SOURCE_DIR, name);
}

static void check_bytes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        char path[512];
        struct strbuf b, kept;
        struct err e = {0};
        golden_path(path, sizeof path, goldens[i].name);
        strbuf_init(&b, 0);
        strbuf_init(&kept, 0);
        assert_int_equal(goldens[i].put(&b), 0);
        if (getenv("WIRE_GOLDEN_UPDATE")) {
            FILE *f = fopen(path, "wb");
            assert_non_null(f);
            assert_int_equal(fwrite(b.data, 1, b.len, f), b.len);
            assert_int_equal(fclose(f), 0);
        }
        if (strbuf_read_file(&kept, path) != 0)
            fail_msg("%s cannot be read", path);
        if (kept.len != b.len || memcmp(kept.data, b.data, b.len) != 0)
            fail_msg("%s: %zu bytes are kept, %zu other ones are written now", path, kept.len, b.len);
        struct wire_message *m = wire_parse(kept.data, kept.len, &e);
        if (!m)
            fail_msg("%s: %s", path, e.text);
        wire_message_free(m);
        strbuf_fini(&b);
        strbuf_fini(&kept);
    }
}

/* Cut anywhere, a message is refused and nothing is read beyond. */
static void check_cut_messages_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        struct strbuf b;
        strbuf_init(&b, 0);
        assert_int_equal(goldens[i].put(&b), 0);
        for (size_t len = 0; len < b.len; len++) {
            struct err e = {0};
            char *exact = malloc(len + 1);
            assert_non_null(exact);
            memcpy(exact, b.data, len);
            assert_null(wire_parse(exact, len, &e));
            assert_non_null(strstr(e.text, "not valid"));
            free(exact);
        }
        assert_int_equal(strbuf_addc(&b, '\0'), 0); /* and one with something after it */
        assert_null(wire_parse(b.data, b.len, NULL));
        strbuf_fini(&b);
    }
}

static void get_everything(const struct wire_message *m) {
    struct model_snapshot snapshot;
    struct model_sample_batch batch;
    struct model_target target;
    struct model_status status;
    struct err e;
    (void)wire_get_snapshot(m, &snapshot, &e);
    model_snapshot_fini(&snapshot);
    (void)wire_get_samples(m, &batch, &e);
    model_sample_batch_fini(&batch);
    (void)wire_get_target(m, &target, &e);
    model_target_fini(&target);
    (void)wire_get_status(m, &status, &e);
    model_status_fini(&status);
}

/* One byte changed at a time: read to something or refused, never worse (the sanitisers watch). */
static void check_changed_messages_do_no_harm(void **state) {
    (void)state;
    static const unsigned char values[] = {0x00, 0x7f, 0x80, 0x90, 0xa0, 0xc0, 0xc1, 0xc6,
                                           0xcb, 0xcf, 0xd3, 0xdb, 0xdd, 0xdf, 0xff};
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        struct strbuf b;
        strbuf_init(&b, 0);
        assert_int_equal(goldens[i].put(&b), 0);
        for (size_t at = 0; at < b.len; at++)
            for (size_t v = 0; v < sizeof values; v++) {
                char before = b.data[at];
                b.data[at] = (char)values[v];
                struct wire_message *m = wire_parse(b.data, b.len, NULL);
                if (m)
                    get_everything(m);
                wire_message_free(m);
                b.data[at] = before;
            }
        strbuf_fini(&b);
    }
}

static void check_refused(const char *bytes, size_t len) {
    struct err e = {0};
    struct wire_message *m = wire_parse(bytes, len, &e);
    assert_null(m);
    assert_int_equal(e.code, ERR_FAILED);
}

/* Counts that the bytes cannot hold, nesting, and what is no message of ours. */
static void check_bombs_are_refused(void **state) {
    (void)state;
    char deep[4096];
    memset(deep, 0x91, sizeof deep); /* an array in an array in an array ... */
    check_refused(deep, sizeof deep);
    check_refused("\xdd\xff\xff\xff\xff", 5);
    check_refused("\xdf\xff\xff\xff\xff", 5);
    check_refused("\x93\x02\xa3"
                  "bye"
                  "\xdf\x7f\xff\xff\xff\x00",
                  12);
    check_refused("\xdb\xff\xff\xff\xff"
                  "x",
                  6);
    check_refused("\xc1", 1);
    check_refused("\x90", 1);
    check_refused("\x94\x00\x01\xa5hello", 9);
    check_refused("\x94\x03\x01\xa5hello\x80", 10);
    check_refused("\x94\x00\xff\xa5hello\x80", 10);
    check_refused("\x93\x02\xa3"
                  "bye\x90",
                  7);
    check_refused("hello, world", 12);
}

/* Keys that are not known are passed over, those that are missing are unknown. */
static void check_other_releases(void **state) {
    (void)state;
    static const char bytes[] = "\x93\x02\xa7threads\x83\xa6"
                                "future\x93\x01\x81\x01\x02\xa1x"
                                "\x93\x01\x02\x03\xc3\xa7threads\x82\xa3tid\x92\x05\x06\xa5"
                                "color\x92\x01\x02";
    struct err e = {0};
    struct model_snapshot s;
    struct wire_message *m = wire_parse(bytes, sizeof bytes - 1, &e);
    if (!m)
        fail_msg("%s", e.text);
    if (wire_get_snapshot(m, &s, &e) != 0)
        fail_msg("%s", e.text);
    assert_int_equal(s.n_threads, 2);
    assert_int_equal(s.threads[1].tid, 6);
    assert_null(s.threads[1].name);
    assert_int_equal(s.threads[1].state, '?');
    assert_int_equal(s.threads[1].n_frames, 0);
    assert_true(isnan(s.timestamp) && isnan(s.threads[0].cpu_pct));
    assert_int_equal(s.gil_tid, MODEL_UNKNOWN);
    assert_true(s.gil_enabled == MODEL_UNKNOWN && s.gc_running == MODEL_UNKNOWN);
    assert_true(isnan(s.threads[0].gil_for_us) && s.threads[0].gc == MODEL_UNKNOWN);
    model_snapshot_fini(&s);
    wire_message_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_bytes),
        cmocka_unit_test(check_cut_messages_are_refused),
        cmocka_unit_test(check_changed_messages_do_no_harm),
        cmocka_unit_test(check_bombs_are_refused),
        cmocka_unit_test(check_other_releases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
