/* SPDX-License-Identifier: Apache-2.0 */
/* Messages about tables survive the wire: status with its tables. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

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
        {.key = "probing.a", .value = "1", .otherwise = "2", .unit = "%", .help = "what", .given = true},
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
    assert_string_equal(out.settings[0].otherwise, "2");
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_has_tables),
        cmocka_unit_test(settings_travel),
        cmocka_unit_test(tables_travel),
        cmocka_unit_test(rows_travel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
