/* SPDX-License-Identifier: Apache-2.0 */
/* Messages about tables survive the wire: status with its tables. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "wire/wire.h"

static struct wire_message *parse(struct strbuf *b) {
    struct err e = {0};
    struct wire_message *m = wire_parse(b->data, b->len, &e);
    strbuf_fini(b);
    if (!m)
        fail_msg("%s", e.text);
    return m;
}

static void status_has_tables(void **state) {
    struct model_table tables[] = {{.name = "a", .rows = 1, .bytes = UINT64_MAX, .oldest = 1, .newest = 2.5},
                                   {.name = "b", .lost = 3, .oldest = NAN, .newest = NAN}};
    struct model_status out, in = {.tables = tables,
                                   .n_tables = 2,
                                   .always_hz = 10,
                                   .data_dir = "/d",
                                   .collect_pct = 0.5,
                                   .collect_us_per_s = NAN,
                                   .collect_missed = 9};
    struct strbuf b;
    struct err e;
    (void)state;
    for (size_t n = 2; n <= 2; n -= 2) { /* with tables, and without */
        in.n_tables = n;
        strbuf_init(&b, 0);
        assert_int_equal(wire_put_status(&b, 1, &in), 0);
        struct wire_message *m = parse(&b);
        assert_int_equal(wire_get_status(m, &out, &e), 0);
        assert_int_equal(out.n_tables, n);
        if (n) {
            assert_string_equal(out.tables[0].name, "a");
            assert_true(out.tables[0].rows == 1 && out.tables[0].bytes == UINT64_MAX);
            assert_true(out.tables[0].newest == 2.5);
            assert_true(out.tables[1].lost == 3 && isnan(out.tables[1].oldest));
        }
        assert_true(out.always_hz == 10 && out.collect_pct == 0.5 && isnan(out.collect_us_per_s));
        assert_true(out.collect_missed == 9 && !out.collect_note);
        assert_string_equal(out.data_dir, "/d");
        model_status_fini(&out);
        wire_message_free(m);
    }
}

static void settings_travel(void **state) {
    struct model_setting settings[] = {
        {.key = "probing.a", .value = "1", .default_value = "2", .unit = "%", .help = "what", .given = true},
        {.key = "probing.b", .value = ""}};
    struct model_status out, in = {.settings = settings, .n_settings = 2};
    const struct wire_config wish = {.key = "probing.a", .value = "64MB"};
    struct wire_config got;
    struct strbuf b;
    struct err e;
    (void)state;
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_status(&b, 1, &in), 0);
    struct wire_message *m = parse(&b);
    assert_int_equal(wire_get_status(m, &out, &e), 0);
    assert_int_equal(out.n_settings, 2);
    assert_string_equal(out.settings[0].key, "probing.a");
    assert_string_equal(out.settings[0].default_value, "2");
    assert_true(out.settings[0].given && !out.settings[1].given && !out.settings[1].help);
    assert_string_equal(out.settings[1].value, "");
    assert_int_equal(wire_get_config(m, &got, &e), -1); /* it is another message */
    model_status_fini(&out);
    wire_message_free(m);
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_config(&b, 2, &wish), 0);
    m = parse(&b);
    assert_int_equal(wire_get_config(m, &got, &e), 0);
    assert_string_equal(got.key, wish.key);
    assert_string_equal(got.value, wish.value);
    wire_message_free(m);
    /* Without a key, with a text that does not fit, with a NUL in it. */
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_request(&b, 3, WIRE_CONFIG), 0);
    m = parse(&b);
    assert_int_equal(wire_get_config(m, &got, &e), -1);
    wire_message_free(m);
    static const char nul[] = "\x94\x00\x01\xa6"
                              "config\x82\xa3key\xa2"
                              "a\0\xa5value\xa1x";
    m = wire_parse(nul, sizeof nul - 1, &e);
    assert_non_null(m);
    assert_int_equal(wire_get_config(m, &got, &e), -1);
    wire_message_free(m);
}

/* A wish for a door, what became of it, and the doors of a status. */
static void test_doors(void **state) {
    struct model_endpoint doors[] = {
        {.address = "[::1]:3344", .looking = true, .clients = 1, .refused = 3, .note = "n"}};
    struct model_debugger holds[] = {{.what = "catch", .state = "armed", .uid = 0, .pid = -1, .left_s = NAN}};
    const struct model_status in = {.doors = doors, .n_doors = 1, .holds = holds, .n_holds = 1};
    const struct wire_listen wish = {.address = "127.0.0.1:0", .looking = true};
    const struct wire_listening made = {
        .address = "127.0.0.1:5", .token = "t", .looking_token = "l", .file = "/f"};
    struct wire_listen want;
    struct wire_listening got;
    struct model_status out;
    struct strbuf b;
    struct err e;
    (void)state;
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_status(&b, 1, &in), 0);
    struct wire_message *m = parse(&b);
    assert_int_equal(wire_get_status(m, &out, &e), 0);
    assert_true(out.n_doors == 1 && out.doors[0].looking && out.doors[0].refused == 3);
    assert_string_equal(out.doors[0].address, "[::1]:3344");
    assert_true(out.n_holds == 1 && out.holds[0].pid == -1 && isnan(out.holds[0].left_s) &&
                !out.holds[0].used);
    assert_string_equal(out.holds[0].state, "armed");
    assert_null(out.holds[0].address);
    assert_int_equal(wire_get_listen(m, &want, &e), -1);
    model_status_fini(&out);
    wire_message_free(m);
    strbuf_clear(&b);
    assert_int_equal(wire_put_listen(&b, 2, &wish), 0);
    m = parse(&b);
    assert_int_equal(wire_message_method(m), WIRE_LISTEN);
    assert_int_equal(wire_get_listen(m, &want, &e), 0);
    assert_true(want.looking && strcmp(want.address, wish.address) == 0);
    wire_message_free(m);
    strbuf_clear(&b);
    assert_int_equal(wire_put_listening(&b, 2, &made), 0);
    m = parse(&b);
    assert_int_equal(wire_get_listening(m, &got, &e), 0);
    assert_string_equal(got.address, made.address);
    assert_string_equal(got.token, made.token);
    assert_string_equal(got.looking_token, made.looking_token);
    assert_string_equal(got.file, made.file);
    wire_message_free(m);
    strbuf_fini(&b);
}

static void test_arming(void **state) {
    struct model_lease leases[] = {
        {.what = "trace",
         .owners = 2,
         .held_s = 3.5,
         .left_s = NAN,
         .looks = 9,
         .cost_pct = 0.25,
         .armed = true},
        {.what = "other", .by_config = true, .held_s = 1, .left_s = 2, .cost_pct = NAN, .note = "why"}};
    const struct model_status in = {.leases = leases, .n_leases = 2};
    const struct wire_arm wish = {.what = "trace", .limit_s = 2.5, .steps = 7, .compiled = true},
                          least = {.what = "a"};
    struct model_status out;
    struct wire_arm got;
    struct strbuf b;
    struct err e;
    (void)state;
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_status(&b, 1, &in), 0);
    struct wire_message *m = parse(&b);
    assert_int_equal(wire_get_status(m, &out, &e), 0);
    assert_true(out.n_leases == 2 && out.leases[0].owners == 2 && out.leases[0].armed &&
                isnan(out.leases[0].left_s));
    assert_string_equal(out.leases[0].what, "trace");
    assert_string_equal(out.leases[1].note, "why");
    assert_true(out.leases[1].by_config && isnan(out.leases[1].cost_pct) && !out.leases[0].note);
    assert_int_equal(wire_get_arm(m, &got, &e), -1); /* it is another message */
    model_status_fini(&out);
    wire_message_free(m);
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_arm(&b, 2, &wish), 0);
    m = parse(&b);
    assert_int_equal(wire_get_arm(m, &got, &e), 0);
    assert_true(strcmp(got.what, "trace") == 0 && got.limit_s == 2.5 && got.steps == 7 && got.compiled);
    wire_message_free(m);
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_disarm(&b, 2, &least), 0);
    m = parse(&b);
    assert_int_equal(wire_get_arm(m, &got, &e), 0);
    assert_true(strcmp(got.what, "a") == 0 && got.limit_s == 0 && got.steps == 0 && !got.compiled);
    wire_message_free(m);
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_request(&b, 3, WIRE_ARM), 0); /* without what */
    m = parse(&b);
    assert_int_equal(wire_get_arm(m, &got, &e), -1);
    wire_message_free(m);
}

/* A message of text that a program of another kind may have written. */
static struct wire_message *parse_text(const char *bytes, size_t len) {
    struct err e = {.text = ""};
    struct wire_message *m = wire_parse(bytes, len, &e);
    if (!m)
        fail_msg("%s", e.text);
    return m;
}

static void tables_travel(void **state) {
    const struct wire_table in[] = {{.name = "a", .head = "one\0two", .head_len = 7},
                                    {.name = "b", .head = ""}};
    struct wire_table out[2];
    struct strbuf b;
    struct err e;
    size_t n;
    (void)state;
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_tables(&b, 1, in, 2), 0);
    struct wire_message *m = parse(&b);
    assert_int_equal(wire_get_tables(m, out, 2, &n, &e), 0);
    assert_int_equal(n, 2);
    assert_string_equal(out[0].name, "a");
    assert_int_equal(out[0].head_len, 7);
    assert_memory_equal(out[0].head, "one\0two", 7);
    assert_string_equal(out[1].name, "b");
    assert_int_equal(out[1].head_len, 0);
    assert_int_equal(wire_get_tables(m, out, 1, &n, &e), 0); /* no more than there is room for */
    assert_int_equal(n, 1);
    wire_message_free(m);
    static const char no_list[] = "\x94\x01\x01\xc0\x81\xa6"
                                  "tables\x07";
    static const char no_head[] = "\x94\x01\x01\xc0\x81\xa6"
                                  "tables\x91\x81\xa4name\xa1x";
    static const char text_head[] = "\x94\x01\x01\xc0\x81\xa6"
                                    "tables\x91\x82\xa4name\xa1x\xa4head\xa1y";
    static const char no_map[] = "\x94\x01\x01\xc0\x81\xa6"
                                 "tables\x91\x07";
    static const struct {
        const char *bytes;
        size_t len;
    } bad[] = {{no_list, sizeof no_list - 1},
               {no_head, sizeof no_head - 1},
               {text_head, sizeof text_head - 1},
               {no_map, sizeof no_map - 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        m = parse_text(bad[i].bytes, bad[i].len);
        assert_int_equal(wire_get_tables(m, out, 2, &n, &e), -1);
        wire_message_free(m);
    }
}

static void rows_travel(void **state) {
    const struct wire_pull wish = {.table = "python.samples",
                                   .making = UINT32_MAX,
                                   .first_seq = UINT64_MAX,
                                   .rows = UINT32_MAX,
                                   .heap_used = 5};
    const struct wire_pulled answers[] = {{.pieces = "p\0q", .len = 3, .more = true},
                                          {.pieces = "", .anew = true}};
    struct wire_pull got;
    struct wire_pulled out;
    struct strbuf b;
    struct err e;
    (void)state;
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_pull(&b, 1, &wish), 0);
    struct wire_message *m = parse(&b);
    assert_int_equal(wire_get_pull(m, &got, &e), 0);
    assert_string_equal(got.table, wish.table);
    assert_true(got.making == wish.making && got.first_seq == wish.first_seq && got.rows == wish.rows &&
                got.heap_used == wish.heap_used);
    assert_int_equal(wire_get_pulled(m, &out, &e), -1); /* it is another message */
    wire_message_free(m);
    for (size_t i = 0; i < 2; i++) {
        strbuf_init(&b, 0);
        assert_int_equal(wire_put_pulled(&b, 1, &answers[i]), 0);
        m = parse(&b);
        assert_int_equal(wire_get_pulled(m, &out, &e), 0);
        assert_int_equal(out.len, answers[i].len);
        assert_memory_equal(out.pieces, answers[i].pieces, out.len);
        assert_true(out.more == answers[i].more && out.anew == answers[i].anew);
        assert_int_equal(wire_get_pull(m, &got, &e), -1);
        wire_message_free(m);
    }
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_request(&b, 3, WIRE_PULL), 0); /* without anything */
    m = parse(&b);
    assert_int_equal(wire_get_pull(m, &got, &e), -1);
    wire_message_free(m);
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_ok(&b, 3), 0);
    m = parse(&b);
    assert_int_equal(wire_get_pulled(m, &out, &e), -1);
    wire_message_free(m);
}

static void a_wish_for_rows_travels(void **state) {
    const struct wire_rows_ask ask = {
        .table = "python.tensors",
        .n_args = 2,
        .args = {{.key = "id", .number = INT64_MIN}, {.key = "what", .is_text = true, .text = "a b"}}};
    struct wire_rows_ask asked;
    struct wire_rows rows;
    struct strbuf b;
    struct err e;
    (void)state;
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_rows_ask(&b, 1, &ask), 0);
    struct wire_message *m = parse(&b);
    assert_int_equal(wire_get_rows_ask(m, &asked, &e), 0);
    assert_string_equal(asked.table, "python.tensors");
    assert_int_equal(asked.n_args, 2);
    assert_true(!asked.args[0].is_text && asked.args[0].number == INT64_MIN);
    assert_true(asked.args[1].is_text);
    assert_string_equal(asked.args[1].text, "a b");
    assert_null(asked.text);
    assert_int_equal(wire_get_rows(m, &rows, &e), -1); /* it is a question */
    wire_message_free(m);
    strbuf_init(&b, 0);
    const struct wire_rows_ask long_one = {.table = "sql", .text = "SELECT '\0'", .text_len = 10};
    assert_int_equal(wire_put_rows_ask(&b, 2, &long_one), 0);
    m = parse(&b);
    assert_int_equal(wire_get_rows_ask(m, &asked, &e), 0);
    assert_true(asked.text_len == 10 && memcmp(asked.text, "SELECT '\0'", 10) == 0 && asked.n_args == 0);
    wire_message_free(m);
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_request(&b, 3, WIRE_ROWS), 0); /* without a table */
    m = parse(&b);
    assert_int_equal(wire_get_rows_ask(m, &asked, &e), -1);
    wire_message_free(m);
}

static void code_travels(void **state) {
    const struct wire_eval want = {.code = "print('\0')",
                                   .code_len = 10,
                                   .name = "<stdin>",
                                   .timeout_s = 0.25,
                                   .output_bytes = 1,
                                   .main = true,
                                   .tid = INT32_MAX,
                                   .depth = 7};
    struct wire_eval got;
    struct wire_evaluated answer;
    struct strbuf b;
    struct err e;
    (void)state;
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_eval(&b, 1, &want), 0);
    struct wire_message *m = parse(&b);
    assert_int_equal(wire_get_eval(m, &got, &e), 0);
    assert_int_equal(got.code_len, 10);
    assert_memory_equal(got.code, want.code, 10);
    assert_string_equal(got.name, "<stdin>");
    assert_true(got.timeout_s == 0.25 && got.output_bytes == 1 && got.main && got.tid == INT32_MAX &&
                got.depth == 7);
    assert_false(got.keep || got.complete || got.whole);
    assert_int_equal(wire_get_evaluated(m, &answer, &e), -1); /* it is a question */
    wire_message_free(m);
    struct wire_eval typed = want;
    typed.keep = typed.complete = typed.whole = true;
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_eval(&b, 2, &typed), 0);
    m = parse(&b);
    assert_int_equal(wire_message_method(m), WIRE_COMPLETE);
    assert_int_equal(wire_get_eval(m, &got, &e), 0);
    assert_true(got.keep && got.complete && got.whole && got.main && got.depth == 7);
    wire_message_free(m);
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_request(&b, 3, WIRE_EVAL), 0); /* without code */
    m = parse(&b);
    assert_int_equal(wire_get_eval(m, &got, &e), -1);
    wire_message_free(m);
}

/* What is not said has a default; what cannot be is refused; an unknown action begins nothing. */
static void debuggers_travel(void **state) {
    static const enum wire_method methods[] = {WIRE_DEBUG, WIRE_PAUSE, WIRE_CATCH};
    const struct wire_debug good = {.action = WIRE_DEBUG_BEGIN,
                                    .timeout_s = 2.5,
                                    .leased = true,
                                    .host = "::1",
                                    .port = 3344,
                                    .limit_s = 120,
                                    .path = "/a\xff",
                                    .places = {"/b"},
                                    .n_places = 1,
                                    .exposed = true};
    struct wire_debug bad[9];
    struct wire_debugger answer;
    struct err e;
    char host[300];
    (void)state;
    memset(host, 'h', sizeof host - 1);
    host[sizeof host - 1] = '\0';
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        bad[i] = good;
    bad[0].action = WIRE_DEBUG_UNKNOWN;
    bad[1].timeout_s = WIRE_EVAL_TIMEOUT_MAX_S * 2;
    bad[2].timeout_s = -1;
    bad[3].timeout_s = INFINITY;
    bad[4].port = 65536;
    bad[5].port = -1;
    bad[6].host = host;
    bad[7].limit_s = 0; /* of those that have one */
    bad[8].limit_s = WIRE_DEBUG_LIMIT_MAX_S * 2;
    for (size_t k = 0; k < sizeof methods / sizeof methods[0]; k++) {
        bool debugs = methods[k] == WIRE_DEBUG;
        struct wire_debug got;
        struct strbuf b;
        strbuf_init(&b, 0);
        assert_int_equal(wire_put_debug(&b, 1, methods[k], &good), 0);
        struct wire_message *m = parse(&b);
        assert_int_equal(wire_message_method(m), methods[k]);
        assert_int_equal(wire_get_debug(m, &got, &e), 0);
        assert_true(got.action == WIRE_DEBUG_BEGIN && got.timeout_s == 2.5 && got.leased && got.port == 3344);
        assert_string_equal(got.host, "::1");
        if (debugs) {
            assert_true(got.exposed && got.n_places == 1);
            assert_string_equal(got.path, "/a\xff");
            assert_string_equal(got.places[0], "/b");
        } else {
            assert_true(got.limit_s == 120 && !got.path && got.n_places == 0 && !got.exposed);
        }
        assert_int_equal(wire_get_debugger(m, methods[k], &answer, &e), -1); /* it is a question */
        wire_debugger_fini(&answer);
        wire_debug_fini(&got);
        wire_message_free(m);
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            strbuf_init(&b, 0);
            assert_int_equal(wire_put_debug(&b, 1, methods[k], &bad[i]), 0);
            m = parse(&b);
            assert_int_equal(wire_get_debug(m, &got, &e), debugs && i >= 7 ? 0 : -1);
            wire_debug_fini(&got);
            wire_message_free(m);
        }
        strbuf_init(&b, 0);
        assert_int_equal(wire_put_request(&b, 3, methods[k]), 0); /* that says nothing */
        m = parse(&b);
        assert_int_equal(wire_get_debug(m, &got, &e), -1);
        wire_debug_fini(&got);
        wire_message_free(m);
    }
}

static void how_debuggers_stand_travels(void **state) {
    struct wire_paused_thread threads[] = {{.tid = 7, .held = true, .name = "a", .where = "b"},
                                           {.tid = 0, .name = "a", .where = NULL}};
    struct wire_debugger paused = {.on = true,
                                   .address = "[::1]:1",
                                   .token = "0a",
                                   .left_s = 1.5,
                                   .client = true,
                                   .threads = threads,
                                   .n_threads = 2},
                         caught = {.was = true,
                                   .raised = "E",
                                   .timed_out = true,
                                   .unended = true,
                                   .left_s = NAN,
                                   .limit_s = 60,
                                   .traceback = "t\nE",
                                   .all_threads = true};
    struct wire_debugger got;
    struct strbuf b;
    struct err e;
    (void)state;
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_debugger(&b, 1, WIRE_PAUSE, &paused), 0);
    struct wire_message *m = parse(&b);
    assert_int_equal(wire_get_debugger(m, WIRE_PAUSE, &got, &e), 0);
    assert_true(got.on && got.client && got.left_s == 1.5 && !got.refused && got.n_threads == 2);
    assert_string_equal(got.address, "[::1]:1");
    assert_true(got.threads[0].tid == 7 && got.threads[0].held && !got.threads[1].held &&
                !got.threads[1].where);
    assert_string_equal(got.threads[1].name, "a");
    wire_debugger_fini(&got);
    wire_message_free(m);
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_debugger(&b, 1, WIRE_CATCH, &caught), 0);
    m = parse(&b);
    assert_int_equal(wire_get_debugger(m, WIRE_CATCH, &got, &e), 0);
    assert_true(!got.on && got.was && got.timed_out && got.unended && isnan(got.left_s) && got.limit_s == 60);
    assert_true(got.all_threads && !got.exception && got.n_threads == 0);
    assert_string_equal(got.raised, "E");
    assert_string_equal(got.traceback, "t\nE");
    wire_debugger_fini(&got);
    wire_message_free(m);
}

static void code_with_wild_numbers_is_refused(void **state) {
    const struct wire_eval good = {.code = "1", .code_len = 1, .timeout_s = 1, .output_bytes = 1};
    struct wire_eval bad[7], got;
    struct err e;
    (void)state;
    for (size_t i = 0; i < 7; i++)
        bad[i] = good;
    bad[0].timeout_s = -1;
    bad[1].timeout_s = WIRE_EVAL_TIMEOUT_MAX_S * 2;
    bad[2].output_bytes = WIRE_EVAL_OUTPUT_MAX + 1;
    bad[3].output_bytes = -1;
    bad[4].tid = (int64_t)INT32_MAX + 1;
    bad[5].depth = -1;
    bad[6].timeout_s = INFINITY;
    for (size_t i = 0; i < 7; i++) {
        struct strbuf b;
        strbuf_init(&b, 0);
        assert_int_equal(wire_put_eval(&b, 1, &bad[i]), 0);
        struct wire_message *m = parse(&b);
        assert_int_equal(wire_get_eval(m, &got, &e), -1);
        wire_message_free(m);
    }
}

static void what_became_of_code_travels(void **state) {
    const struct wire_evaluated raised = {.output = {.s = "", .len = 0},
                                          .type = {.s = "E", .len = 1},
                                          .message = {.s = "a\0b", .len = 3},
                                          .traceback = {.s = "t\n", .len = 2},
                                          .duration_ms = 1.5,
                                          .timed_out = true,
                                          .unended = true};
    const struct wire_evaluated gave = {.result = {.s = "None", .len = 4}, .output = {.s = "x", .len = 1}};
    struct wire_evaluated got;
    struct strbuf b;
    struct err e;
    (void)state;
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_evaluated(&b, 1, &raised), 0);
    struct wire_message *m = parse(&b);
    assert_int_equal(wire_get_evaluated(m, &got, &e), 0);
    assert_true(!got.result.s && got.output.s && got.output.len == 0 && got.duration_ms == 1.5);
    assert_true(got.message.len == 3 && memcmp(got.message.s, "a\0b", 3) == 0);
    assert_true(got.timed_out && got.unended && !got.truncated);
    wire_message_free(m);
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_evaluated(&b, 1, &gave), 0);
    m = parse(&b);
    assert_int_equal(wire_get_evaluated(m, &got, &e), 0);
    assert_true(got.result.len == 4 && !got.type.s && !got.message.s && !got.traceback.s);
    wire_message_free(m);
}

static void made_rows_travel(void **state) {
    const struct wire_value row[] = {{.kind = WIRE_VALUE_BOOL, .i = 1},
                                     {.kind = WIRE_VALUE_INT, .i = INT64_MAX},
                                     {.kind = WIRE_VALUE_DOUBLE, .f = -0.25},
                                     {.kind = WIRE_VALUE_TEXT, .s = "", .len = 0},
                                     {.kind = WIRE_VALUE_NULL}};
    struct wire_value name = {.kind = WIRE_VALUE_TEXT, .s = "flag", .len = 4}, got[6];
    struct wire_rows rows;
    struct strbuf b, columns, made;
    struct err e;
    (void)state;
    strbuf_init(&columns, 0);
    strbuf_init(&made, 0);
    assert_int_equal(wire_add_row(&columns, &name, 1), 0);
    assert_int_equal(wire_add_row(&made, row, 5), 0);
    assert_int_equal(wire_add_row(&made, row, 1), 0);
    const struct wire_rows answer = {.columns = columns.data,
                                     .columns_len = columns.len,
                                     .rows = made.data,
                                     .rows_len = made.len,
                                     .n_rows = 2,
                                     .note = "a note"};
    strbuf_init(&b, 0);
    assert_int_equal(wire_put_rows(&b, 1, &answer), 0);
    struct wire_message *m = parse(&b);
    assert_int_equal(wire_get_rows(m, &rows, &e), 0);
    assert_true(rows.n_columns == 1 && rows.n_rows == 2 && !rows.more);
    assert_string_equal(rows.note, "a note");
    assert_int_equal(wire_next_column(&rows, &name), 1);
    assert_memory_equal(name.s, "flag", 4);
    assert_int_equal(wire_next_column(&rows, &name), 0);
    assert_int_equal(wire_next_row(&rows, got, 6), 1);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(got[i].kind, row[i].kind);
    assert_true(got[1].i == INT64_MAX && got[2].f == -0.25 && got[3].len == 0);
    assert_int_equal(got[5].kind, WIRE_VALUE_NULL);
    assert_int_equal(wire_next_row(&rows, got, 0), 1); /* one that is longer than is wanted */
    assert_int_equal(wire_next_row(&rows, got, 6), 0);
    wire_message_free(m);
    strbuf_fini(&columns);
    strbuf_fini(&made);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arming),
        cmocka_unit_test(test_doors),
        cmocka_unit_test(status_has_tables),
        cmocka_unit_test(settings_travel),
        cmocka_unit_test(tables_travel),
        cmocka_unit_test(rows_travel),
        cmocka_unit_test(a_wish_for_rows_travels),
        cmocka_unit_test(code_travels),
        cmocka_unit_test(debuggers_travel),
        cmocka_unit_test(how_debuggers_stand_travels),
        cmocka_unit_test(code_with_wild_numbers_is_refused),
        cmocka_unit_test(what_became_of_code_travels),
        cmocka_unit_test(made_rows_travel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
