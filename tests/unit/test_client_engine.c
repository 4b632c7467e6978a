/* SPDX-License-Identifier: Apache-2.0 */
/* What is said to a ClickHouse server: its address, rows in its format, its schema, its errors. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hash.h"
#include "client/engine/engine_address.h"
#include "client/engine/engine_http.h"
#include "client/engine/engine_schema.h"
#include "client/engine/row_binary.h"

/* ---- addresses ---- */

static void expect_address(const char *text, bool tls, const char *user, const char *host, int port,
                           const char *database, const char *job) {
    struct engine_address a;
    struct err e = {0};
    if (engine_address_parse(&a, text, &e) != 0)
        fail_msg("%s: %s", text, e.text);
    assert_int_equal(a.tls, tls);
    assert_string_equal(a.user, user);
    assert_string_equal(a.host, host);
    assert_int_equal(a.port, port);
    assert_string_equal(a.database, database);
    assert_string_equal(a.job, job);
    assert_string_equal(a.password, "");
}

static void expect_refused(const char *text, const char *part) {
    struct engine_address a;
    struct err e = {0};
    assert_int_equal(engine_address_parse(&a, text, &e), -1);
    assert_int_equal(e.code, ERR_USAGE);
    if (!strstr(e.text, part))
        fail_msg("%s: %s", text, e.text);
}

static void test_addresses(void **state) {
    (void)state;
    expect_address("clickhouse://h", false, "default", "h", 8123, "probing", "");
    expect_address("clickhouse://h/", false, "default", "h", 8123, "probing", "");
    expect_address("clickhouses://w@db-1.example:443/p?job=a%20b", true, "w", "db-1.example", 443, "p",
                   "a b");
    expect_address("clickhouse://[::1]:9/x/", false, "default", "::1", 9, "x", "");
    expect_address("clickhouses://[fe80::1]", true, "default", "fe80::1", 8443, "probing", "");
    expect_address("clickhouse://h?job=%27%3B%20DROP%20TABLE", false, "default", "h", 8123, "probing",
                   "'; DROP TABLE");
    expect_refused("clickhouse://u:secret@h/p", "leave it out");
    expect_refused("http://h", "is not the address");
    expect_refused("clickhouse://", "the host");
    expect_refused("clickhouse://h:0/p", "the port");
    expect_refused("clickhouse://h:65536/p", "the port");
    expect_refused("clickhouse://h:80x/p", "the port");
    expect_refused("clickhouse://h o/p", "the host");
    expect_refused("clickhouse://-o/p", "the host");
    expect_refused("clickhouse://[::1/p", "the host");
    expect_refused("clickhouse://@h/p", "the user");
    expect_refused("clickhouse://a%0d%0ab@h/p", "the user");
    expect_refused("clickhouse://h/a%zz", "the database");
    expect_refused("clickhouse://h/a%4", "the database");
    expect_refused("clickhouse://h/%ff", "the database");
    expect_refused("clickhouse://h/p?job=", "the job");
    expect_refused("clickhouse://h/p?user=x", "?job=NAME");
    expect_refused("clickhouse://h/p?job=x&job=y", "&at=TIME");
    expect_refused("clickhouse://h/p?at=1h&at=2h", "&at=TIME");
    expect_refused("clickhouse://h/p?job=x&at=soon", "'soon' is not a time");
    struct err e = {0};
    struct engine_address a;
    engine_address_parse(&a, "clickhouse://u:secret@h/p", &e);
    assert_null(strstr(e.text, "secret"));
}

static void test_addresses_are_written(void **state) {
    static const char *const texts[] = {"clickhouse://h/probing", "clickhouses://w@h:9/p",
                                        "clickhouse://[::1]/x"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct engine_address a;
        struct strbuf out;
        strbuf_init(&out, 0);
        assert_int_equal(engine_address_parse(&a, texts[i], NULL), 0);
        engine_address_put(&a, &out);
        assert_string_equal(strbuf_str(&out), texts[i]);
        strbuf_fini(&out);
    }
}

static void test_a_job_at_a_moment_is_written(void **state) {
    static const char *const texts[][2] = {
        {"clickhouse://h/probing?job=a%26b&at=@1700000000.250",
         "clickhouse://h/probing?job=a%26b&at=@1700000000.250"},
        {"clickhouses://w@h/p?at=@5&job=x", "clickhouses://w@h/p?job=x&at=@5.000"},
        {"clickhouse://h/p?at=@5", "clickhouse://h/p?at=@5.000"},
        {"clickhouse://h/p?job=x", "clickhouse://h/p?job=x"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct engine_address a;
        struct strbuf out;
        strbuf_init(&out, 0);
        assert_int_equal(engine_address_parse(&a, texts[i][0], NULL), 0);
        engine_address_put_job(&a, a.job, a.at, &out);
        assert_string_equal(strbuf_str(&out), texts[i][1]);
        strbuf_fini(&out);
    }
}

static int read_password(struct engine_address *a, struct err *e) {
    *e = (struct err){0};
    assert_int_equal(engine_address_parse(a, "clickhouse://h", e), 0);
    return engine_address_read_password(a, e);
}

static void test_passwords(void **state) {
    char folder[] = "/tmp/test-engine-XXXXXX", inner[64], path[128];
    struct engine_address a;
    struct err e;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(inner, sizeof inner, "%s/probing-top", folder);
    snprintf(path, sizeof path, "%s/clickhouse-password", inner);
    assert_int_equal(mkdir(inner, 0700), 0);
    setenv("XDG_CONFIG_HOME", folder, 1);
    unsetenv("PROBING_CLICKHOUSE_PASSWORD");
    assert_int_equal(read_password(&a, &e), 0);
    assert_string_equal(a.password, "");
    FILE *file = fopen(path, "w");
    fputs("of the file\n", file);
    fclose(file);
    chmod(path, 0644);
    assert_int_equal(read_password(&a, &e), -1);
    assert_non_null(strstr(e.text, "chmod 600"));
    assert_null(strstr(e.text, "of the file"));
    chmod(path, 0600);
    assert_int_equal(read_password(&a, &e), 0);
    assert_string_equal(a.password, "of the file");
    setenv("PROBING_CLICKHOUSE_PASSWORD", "of the environment", 1);
    assert_int_equal(read_password(&a, &e), 0);
    assert_string_equal(a.password, "of the environment");
    setenv("PROBING_CLICKHOUSE_PASSWORD", "two\nX-Header: lines", 1);
    assert_int_equal(read_password(&a, &e), -1);
    assert_null(strstr(e.text, "X-Header"));
    unsetenv("PROBING_CLICKHOUSE_PASSWORD");
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(read_password(&a, &e), -1);
    rmdir(path);
    rmdir(inner);
    rmdir(folder);
}

/* ---- rows ---- */

#define COLUMNS 11
static const struct row_column columns[COLUMNS] = {
    {"a", ROW_INT8, false},    {"b", ROW_UINT16, true},  {"c", ROW_INT32, true},  {"d", ROW_INT64, true},
    {"e", ROW_UINT64, false},  {"f", ROW_FLOAT64, true}, {"g", ROW_STRING, true}, {"h", ROW_STRING, false},
    {"i", ROW_STRINGS, false}, {"j", ROW_INTS, false},   {"k", ROW_DATE, false},
};

static void test_rows_are_read_as_written(void **state) {
    const struct row_value texts[] = {row_text("x"), row_text("")}, numbers[] = {row_int(-1), row_int(7)};
    const struct row_value row[COLUMNS] = {row_int(-5),
                                           row_int(65535),
                                           row_int(INT32_MIN),
                                           row_int(INT64_MAX),
                                           row_bits(UINT64_MAX),
                                           row_real(-0.5),
                                           row_text("a\0b"),
                                           row_text("it's"),
                                           {.kind = ROW_LIST, .items = texts, .n = 2},
                                           {.kind = ROW_LIST, .items = numbers, .n = 2},
                                           row_int(20000)};
    struct row_value got[COLUMNS], item;
    struct strbuf out;
    (void)state;
    strbuf_init(&out, 0);
    assert_int_equal(row_binary_put_row(&out, columns, COLUMNS, row), 0);
    assert_int_equal(row_binary_put_row(&out, columns, COLUMNS, row), 0);
    struct row_reader r = {.data = out.data, .len = out.len};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(row_binary_get_row(&r, columns, COLUMNS, got), 1);
        assert_int_equal(got[0].i, -5);
        assert_int_equal(got[1].i, 65535);
        assert_int_equal(got[2].i, INT32_MIN);
        assert_true(got[3].i == INT64_MAX);
        assert_true((uint64_t)got[4].i == UINT64_MAX);
        assert_true(got[5].f == -0.5);
        assert_int_equal(got[6].len, 1);
        assert_memory_equal(got[7].s, "it's", 4);
        assert_int_equal(got[8].n, 2);
        assert_int_equal(row_binary_next(&got[8], &columns[8], &item), 1);
        assert_memory_equal(item.s, "x", 1);
        assert_int_equal(row_binary_next(&got[8], &columns[8], &item), 1);
        assert_int_equal(item.len, 0);
        assert_int_equal(row_binary_next(&got[8], &columns[8], &item), 0);
        assert_int_equal(row_binary_next(&got[9], &columns[9], &item), 1);
        assert_int_equal(item.i, -1);
        assert_int_equal(got[10].i, 20000);
    }
    assert_int_equal(row_binary_get_row(&r, columns, COLUMNS, got), 0);
    assert_int_equal(r.at, r.len);
    /* each beginning of it is not all */
    for (size_t len = 0; len < out.len / 2; len++) {
        struct row_reader part = {.data = out.data, .len = len};
        assert_int_equal(row_binary_get_row(&part, columns, COLUMNS, got), 0);
        assert_int_equal(part.at, 0);
    }
    strbuf_fini(&out);
}

static void expect_bytes(const struct row_column *c, struct row_value v, const char *bytes, size_t len) {
    struct strbuf out;
    strbuf_init(&out, 0);
    assert_int_equal(row_binary_put(&out, c, &v), 0);
    assert_int_equal(out.len, len);
    assert_memory_equal(out.data, bytes, len);
    strbuf_fini(&out);
}

static void test_what_does_not_fit_is_null(void **state) {
    (void)state;
    expect_bytes(&columns[1], row_int(65536), "\1", 1);
    expect_bytes(&columns[1], row_int(-1), "\1", 1);
    expect_bytes(&columns[2], row_int(INT64_MIN), "\1", 1);
    expect_bytes(&columns[2], row_text("7"), "\1", 1);
    expect_bytes(&columns[3], row_real(INFINITY), "\1", 1);
    expect_bytes(&columns[3], row_real(2.0), "\0\2\0\0\0\0\0\0\0", 9);
    expect_bytes(&columns[5], row_real(NAN), "\1", 1);
    expect_bytes(&columns[6], row_text(NULL), "\1", 1);
    expect_bytes(&columns[7], row_text(NULL), "\0", 1);
    expect_bytes(&columns[0], row_int(1000), "\0", 1);
    expect_bytes(&columns[8], row_int(3), "\0", 1);
}

static void test_what_is_not_valid(void **state) {
    static const struct row_column text = {"t", ROW_STRING, false}, list = {"l", ROW_STRINGS, false},
                                   maybe = {"m", ROW_UINT8, true};
    struct row_value v;
    (void)state;
    struct row_reader longest = {.data = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", .len = 10};
    assert_int_equal(row_binary_get_row(&longest, &text, 1, &v), -1);
    struct row_reader long_text = {.data = "\x81\x80\x40", .len = 3};
    assert_int_equal(row_binary_get_row(&long_text, &text, 1, &v), -1);
    struct row_reader long_list = {.data = "\x81\x80\x04", .len = 3};
    assert_int_equal(row_binary_get_row(&long_list, &list, 1, &v), -1);
    struct row_reader not_null = {.data = "\2\0", .len = 2};
    assert_int_equal(row_binary_get_row(&not_null, &maybe, 1, &v), -1);
}

/* ---- the schema ---- */

#define SCHEMA_HASH 0x5508a3ade65120c0ULL

static int add_statement(void *arg, const char *sql) { return strbuf_addf(arg, "%s;\n", sql); }

static void test_schema(void **state) {
    struct strbuf old, now;
    (void)state;
    strbuf_init(&old, 0);
    strbuf_init(&now, 0);
    engine_schema_each("p", ENGINE_HTTP_VERSION(18, 16), 7, add_statement, &old);
    engine_schema_each("p", ENGINE_HTTP_VERSION(25, 8), 7, add_statement, &now);
    assert_non_null(strstr(strbuf_str(&old), "`p`.`python_steps`"));
    assert_non_null(strstr(strbuf_str(&old), "Buffer("));
    assert_null(strstr(strbuf_str(&old), "TTL"));
    assert_null(strstr(strbuf_str(&now), "Buffer("));
    assert_non_null(strstr(strbuf_str(&now), "TTL day + toIntervalDay(7)"));
    /* each kept table is there, and the rest */
    for (size_t i = 0; i < RING_TABLE_KEPT; i++) {
        const struct engine_table *t = engine_table_find(RING_TABLES[i].name);
        assert_non_null(t);
        assert_ptr_equal(t->ring, &RING_TABLES[i]);
        assert_null(strchr(t->name, '.'));
    }
    for (const struct engine_table *const *t = engine_tables(); *t; t++)
        for (size_t i = 0; i < (*t)->n; i++)
            for (size_t k = 0; k < i; k++)
                assert_string_not_equal((*t)->columns[i].name, (*t)->columns[k].name);
    strbuf_fini(&old);
    strbuf_fini(&now);
}

/* Whoever adds a table or a column changes this number, and has to raise ENGINE_SCHEMA_VERSION with it, once a release
 * has the version before. */
static void test_schema_has_a_version(void **state) {
    struct strbuf names;
    (void)state;
    strbuf_init(&names, 0);
    for (const struct engine_table *const *t = engine_tables(); *t; t++)
        for (size_t i = 0; i < (*t)->n; i++)
            strbuf_addf(&names, "%s.%s %s\n", (*t)->name, (*t)->columns[i].name,
                        row_binary_type(&(*t)->columns[i]));
    assert_int_equal(ENGINE_SCHEMA_VERSION, 1);
    if (hash_fnv_text(HASH_FNV_START, strbuf_str(&names)) != SCHEMA_HASH)
        fail_msg("the schema has changed: raise ENGINE_SCHEMA_VERSION, and put 0x%llxULL here\n%s",
                 (unsigned long long)hash_fnv_text(HASH_FNV_START, strbuf_str(&names)), strbuf_str(&names));
    strbuf_fini(&names);
}

static void test_names_are_quoted(void **state) {
    struct strbuf out;
    (void)state;
    strbuf_init(&out, 0);
    engine_http_put_text(&out, "'; DROP TABLE x; -- \\\n");
    engine_http_put_name(&out, "a`b");
    assert_string_equal(strbuf_str(&out), "'\\'; DROP TABLE x; -- \\\\\\n'`a\\`b`");
    strbuf_clear(&out);
    engine_put_insert(&out, engine_table_find("ranks"), "a`b", ENGINE_HTTP_VERSION(18, 16));
    assert_int_equal(strncmp(strbuf_str(&out), "INSERT INTO `a\\`b`.`ranks_buffer` (`day`, `job`, ", 49), 0);
    strbuf_clear(&out);
    engine_put_insert(&out, engine_table_find("ranks"), "p", ENGINE_HTTP_VERSION(21, 11));
    assert_int_equal(strncmp(strbuf_str(&out), "INSERT INTO `p`.`ranks` (`day`", 30), 0);
    strbuf_fini(&out);
}

/* ---- errors of a server ---- */

/* A server that cannot be reached is another error than one that refuses. */
static void expect_line(long status, const char *text, int code, const char *part) {
    struct engine_address a;
    struct err e = {0};
    engine_address_parse(&a, "clickhouse://w@h/p", NULL);
    snprintf(a.password, sizeof a.password, "hidden");
    assert_int_equal(engine_http_explain(&a, status, text, strlen(text), &e), code);
    if (!strstr(e.text, part) || strchr(e.text, '\n') || strchr(e.text, '\033') || strstr(e.text, "hidden"))
        fail_msg("%s", e.text);
    assert_int_equal(engine_http_is_lasting(code), code == 193 || code == 60);
    if (code == 0)
        assert_int_equal(e.code, status >= 502 && status <= 504 ? ERR_ATTACH : ERR_FAILED);
}

static void test_errors(void **state) {
    (void)state;
    expect_line(
        500,
        "Code: 193, e.displayText() = DB::Exception: Wrong password for user w, e.what() = DB::Exception\n",
        193, "PROBING_CLICKHOUSE_PASSWORD");
    expect_line(404,
                "Code: 60. DB::Exception: Table p.ranks does not exist. (UNKNOWN_TABLE) (version 25.8.1)", 60,
                "probing cluster init clickhouse://w@h/p");
    expect_line(500, "Code: 241, e.displayText() = DB::Exception: Memory limit exceeded", 241,
                "not enough memory");
    expect_line(500, "Code: 243. DB::Exception: no space", 243, "the disk of the server at h:8123 is full");
    expect_line(500, "Code: 62, e.displayText() = DB::Exception: Syntax error\033[2J, e.what() = x", 62,
                "error 62: Syntax error");
    expect_line(502, "<html>\n", 0, "HTTP status 502: <html>");
    expect_line(502, "", 0, "HTTP status 502");
    expect_line(500, "Code: 99999999999. DB::Exception", 0, "HTTP status 500");
    struct engine_address a;
    struct err e = {0};
    engine_address_parse(&a, "clickhouse://h/p", NULL);
    const char tail[] = "\1\2\3Code: 241, e.displayText() = DB::Exception: Memory limit";
    assert_true(engine_http_find_error(&a, tail, sizeof tail - 1, &e));
    assert_non_null(strstr(e.text, "memory"));
    assert_false(engine_http_find_error(&a, "Code: x", 7, &e));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_addresses_are_written),
        cmocka_unit_test(test_a_job_at_a_moment_is_written),
        cmocka_unit_test(test_passwords),
        cmocka_unit_test(test_rows_are_read_as_written),
        cmocka_unit_test(test_what_does_not_fit_is_null),
        cmocka_unit_test(test_what_is_not_valid),
        cmocka_unit_test(test_schema),
        cmocka_unit_test(test_schema_has_a_version),
        cmocka_unit_test(test_names_are_quoted),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
