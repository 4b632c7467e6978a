/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the SQL: each against numbers worked out another way; the rewriting of intervals; random queries against the same rows
 * in a table of SQLite's own.
 */
#include <math.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hash.h"
#include "store/sql/sql_rewrite.h"
#include "unit/store_job.h"

#define T0 1700000000.0
#define VALUES 501
#define RANDOM_ROWS 5000
#define RANDOM_QUERIES 400

static struct job job;
static struct sql *session;
static double xs[VALUES], ys[VALUES];

static double random_double(uint64_t n) { return (double)(hash_mix(n) >> 11) / 9007199254740992.0; }

/* 501 rows of job_profiling_data whose duration is y and whose step is x, with a large offset that a naive sum of squares loses. */
static int make_values(void **state) {
    (void)state;
    job_make(&job, 5, 0);
    struct ring *r = job_table(&job, &job_profiling_data, 256 * 1024);
    for (int i = 0; i < VALUES; i++) {
        xs[i] = (double)(int64_t)(random_double((uint64_t)i) * 1000);
        ys[i] = 1e7 + 2.5 * xs[i] + random_double((uint64_t)i + 5000);
        union ring_value v[] = {
            {.f = T0 + i}, {.s = i % 2 ? "odd" : "even"}, {.f = ys[i]}, {.i = (int64_t)xs[i]}};
        assert_int_equal(ring_append(r, v), 0);
    }
    union ring_value null[] = {{.f = T0 + VALUES}, {.s = NULL}, {.f = NAN}, {.i = RING_INT_NULL}};
    assert_int_equal(ring_append(r, null), 0);
    ring_close(r);
    session = job_session(&job, 1, T0 + VALUES);
    return 0;
}

static int remove_values(void **state) {
    (void)state;
    sql_close(session);
    job_remove(&job);
    return 0;
}

static double number(const char *text) {
    char *rows = job_rows(session, text);
    double v = rows[0] == '\n' ? NAN : strtod(rows, NULL);
    free(rows);
    return v;
}

static void expect_number(const char *text, double wanted, double tolerance) {
    double got = number(text);
    if (!(fabs(got - wanted) <= tolerance))
        fail_msg("%s gives %.17g, not %.17g", text, got, wanted);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void quantiles_are_those_of_the_sorted_values(void **state) {
    (void)state;
    static const double ps[] = {0, 0.001, 0.1, 0.25, 0.5, 0.9, 0.99, 0.9999, 1};
    double sorted[VALUES];
    memcpy(sorted, ys, sizeof ys);
    qsort(sorted, VALUES, sizeof *sorted, compare);
    for (size_t i = 0; i < sizeof ps / sizeof ps[0]; i++) {
        char text[80];
        double at = ps[i] * (VALUES - 1);
        size_t k = (size_t)at, next = k + 1 < VALUES ? k + 1 : k;
        (void)snprintf(text, sizeof text, "SELECT quantile(duration_ms, %.17g) FROM profiling_data", ps[i]);
        expect_number(text, sorted[k] + (at - (double)k) * (sorted[next] - sorted[k]), 1e-6);
    }
    expect_number("SELECT median(duration_ms) FROM profiling_data", sorted[VALUES / 2], 1e-6);
    job_expect(session, "SELECT median(step) IS NULL FROM profiling_data WHERE step < 0", "1\n");
    job_expect(
        session,
        "SELECT quantile(x, 0.5) FROM (SELECT 1 x UNION ALL SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 7)",
        "1.0\n");
    job_expect(session, "SELECT median(x) FROM (SELECT 4 x UNION ALL SELECT 1)", "2.5\n");
    job_refused(session, "SELECT quantile(step, 1.5) FROM profiling_data", "0 to 1");
    job_refused(session, "SELECT quantile(step, 'a') FROM profiling_data", "0 to 1");
}

static void deviations_and_slopes_are_right(void **state) {
    (void)state;
    long double mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
    for (int i = 0; i < VALUES; i++) {
        mx += xs[i] / (long double)VALUES;
        my += ys[i] / (long double)VALUES;
    }
    for (int i = 0; i < VALUES; i++) {
        xx += (xs[i] - mx) * (xs[i] - mx);
        yy += (ys[i] - my) * (ys[i] - my);
        xy += (xs[i] - mx) * (ys[i] - my);
    }
    double variance = (double)(yy / (VALUES - 1));
    expect_number("SELECT variance(duration_ms) FROM profiling_data", variance, variance * 1e-9);
    expect_number("SELECT stddev(duration_ms) FROM profiling_data", sqrt(variance), 1e-6);
    expect_number("SELECT stddev_pop(duration_ms) FROM profiling_data", (double)sqrtl(yy / VALUES), 1e-6);
    expect_number("SELECT regr_slope(duration_ms, step) FROM profiling_data", (double)(xy / xx), 1e-9);
    expect_number("SELECT regr_intercept(duration_ms, step) FROM profiling_data", (double)(my - xy / xx * mx),
                  1e-4);
    expect_number("SELECT corr(duration_ms, step) FROM profiling_data", (double)(xy / sqrtl(xx * yy)), 1e-9);
    job_expect(session, "SELECT stddev(x) IS NULL, stddev_pop(x), variance(x) IS NULL FROM (SELECT 3 x)",
               "1|0.0|1\n");
    job_expect(session, "SELECT regr_slope(y, x) IS NULL FROM (SELECT 3 y, 1 x UNION ALL SELECT 4, 1)",
               "1\n");
    job_expect(session, "SELECT stddev(x) IS NULL FROM (SELECT 1 x WHERE 0)", "1\n");
}

static void times_are_those_of_the_calendar(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 300; i++) {
        double t = floor(random_double(i + 77) * 4e9 - 1e9) + 0.25;
        time_t whole = (time_t)floor(t);
        struct tm tm, first;
        char text[256], wanted[256];
        assert_non_null(gmtime_r(&whole, &tm));
        (void)snprintf(text, sizeof text, "SELECT hour(%.2f), minute(%.2f), second(%.2f)", t, t, t);
        (void)snprintf(wanted, sizeof wanted, "%d|%d|%d\n", tm.tm_hour, tm.tm_min, tm.tm_sec);
        job_expect(session, text, wanted);
        static const char *const units[] = {"second", "minute", "hour", "day", "week", "month", "year"};
        for (size_t u = 0; u < 7; u++) {
            first = tm;
            first.tm_sec = u >= 1 ? 0 : tm.tm_sec;
            first.tm_min = u >= 2 ? 0 : tm.tm_min;
            first.tm_hour = u >= 3 ? 0 : tm.tm_hour;
            first.tm_mday = u >= 5 ? 1 : u == 4 ? tm.tm_mday - (tm.tm_wday + 6) % 7 : tm.tm_mday;
            first.tm_mon = u == 6 ? 0 : tm.tm_mon;
            (void)snprintf(text, sizeof text, "SELECT date_trunc('%s', %.2f)", units[u], t);
            expect_number(text, (double)timegm(&first), 0);
        }
    }
    job_expect(session, "SELECT hour(NULL) IS NULL, date_trunc('day', NULL) IS NULL, hour(1e300) IS NULL",
               "1|1|1\n");
    job_refused(session, "SELECT hour('noon')", "takes a number");
    job_refused(session, "SELECT date_trunc('fortnight', 0)", "knows second");
    job_expect(session, "SELECT now() = now(), now()", "1|1700000501.0\n");
    sql_set_now(session, NAN);
    time_t before = time(NULL);
    double now = number("SELECT now()");
    /* The clock of the kernel may be set while this one runs on. */
    assert_true(now > (double)before - 0.5 && now < (double)time(NULL) + 1.5);
    sql_set_now(session, T0 + VALUES);
}

static void numbers_for_people(void **state) {
    (void)state;
    job_expect(session,
               "SELECT human_bytes(0), human_bytes(1536), human_bytes(-1536), human_bytes(NULL) IS NULL",
               "0 B|1.50 KiB|-1.50 KiB|1\n");
    job_expect(session,
               "SELECT human_time(0), human_time(0.0015), human_time(2.5e-6), human_time(1.5), "
               "human_time(3700), human_time(-61)",
               "0.00 s|1.50 ms|2.50 us|1.50 s|1h01m|-1m01s\n");
    job_refused(session, "SELECT human_bytes('many')", "takes a number");
}

/* ---- intervals ---- */

static void expect_interval(const char *text, double wanted) {
    double got = -1;
    int rc = sql_interval_parse(text, strlen(text), &got);
    if (isnan(wanted) ? rc == 0 : rc != 0 || fabs(got - wanted) > 1e-9)
        fail_msg("interval '%s' is %g (%d), not %g", text, got, rc, wanted);
}

static void intervals_are_seconds(void **state) {
    (void)state;
    expect_interval("5 min", 300);
    expect_interval("5 minutes", 300);
    expect_interval("1 hour 30 min", 5400);
    expect_interval("1 hour", 3600);
    expect_interval("2d", 172800);
    expect_interval("250ms", 0.25);
    expect_interval(" 10 ", 10);
    expect_interval("-1.5 SECONDS", -1.5);
    expect_interval("1 week", 604800);
    expect_interval("1 month", 2592000);
    expect_interval("01:30", 5400);
    expect_interval("00:00:05.5", 5.5);
    expect_interval("-01:00:00", -3600);
    expect_interval("", NAN);
    expect_interval("5 parsecs", NAN);
    expect_interval("minutes", NAN);
    expect_interval("5 minutes ago", NAN);
    expect_interval("1:2:3:4", NAN);
    expect_interval("1e999 s", NAN);
}

/* Are they the same but for the length of runs of spaces? */
static bool same_words(const char *a, const char *b) {
    while (*a && *a == *b) {
        bool space = *a == ' ';
        a++;
        b++;
        while (space && *a == ' ')
            a++;
        while (space && *b == ' ')
            b++;
    }
    return *a == *b;
}

/* The text becomes `wanted` (spaces aside; NULL: an error) and keeps its length. */
static void expect_rewritten(const char *text, const char *wanted) {
    char buf[256];
    size_t at;
    struct err e = {.text = ""};
    (void)snprintf(buf, sizeof buf, "%s", text);
    int rc = sql_rewrite(buf, strlen(buf), &at, &e);
    if (!wanted ? rc == 0 : rc != 0 || !same_words(buf, wanted) || strlen(buf) != strlen(text))
        fail_msg("%s becomes %s (%s), not %s", text, buf, e.text, wanted ? wanted : "an error");
}

static void only_intervals_are_rewritten(void **state) {
    (void)state;
    expect_rewritten("SELECT now() - interval '5 min'", "SELECT now() - 300 ");
    expect_rewritten("SELECT now() - INTERVAL  '1' HOUR, 2", "SELECT now() - 3600 , 2");
    expect_rewritten("SELECT now() - interval 90 seconds", "SELECT now() - 90 ");
    expect_rewritten("SELECT interval '-5 s'", "SELECT (-5) ");
    expect_rewritten("SELECT interval /* of\n time */ '5 s'", "SELECT 5 \n ");
    /* Not within strings, names, comments, nor where it is a name. */
    expect_rewritten("SELECT 'interval ''5 min'''", "SELECT 'interval ''5 min'''");
    expect_rewritten("SELECT \"interval '5 min'\"", "SELECT \"interval '5 min'\"");
    expect_rewritten("SELECT 1 -- interval '5 x'\n, 2", "SELECT 1 -- interval '5 x'\n, 2");
    expect_rewritten("SELECT 1 /* interval '5 x' */", "SELECT 1 /* interval '5 x' */");
    expect_rewritten("SELECT interval('5 min')", "SELECT interval('5 min')");
    expect_rewritten("SELECT t.interval FROM t", "SELECT t.interval FROM t");
    expect_rewritten("SELECT interval FROM t", "SELECT interval FROM t");
    expect_rewritten("SELECT intervals '5 min'", "SELECT intervals '5 min'");
    expect_rewritten("SELECT interval '5 parsecs'", NULL);
    expect_rewritten("SELECT interval 5", NULL);
    expect_rewritten("SELECT interval '5 min", "SELECT interval '5 min"); /* SQLite says what is wrong */
    job_expect(session, "SELECT interval '5 min', now() - interval '1' minute, interval('2 h')",
               "300|1700000441.0|7200.0\n");
}

/* ---- the same rows in a table of SQLite's own ---- */

static const struct ring_column_def random_columns[] = {
    {"timestamp", RING_TIMESTAMP, NULL, NULL, NULL},
    {"a", RING_INT64, NULL, NULL, NULL},
    {"b", RING_INT32, NULL, NULL, NULL},
    {"c", RING_UINT32, NULL, NULL, NULL},
    {"d", RING_DOUBLE, NULL, NULL, NULL},
    {"e", RING_TEXT, NULL, NULL, NULL},
    {"f", RING_BOOL, NULL, NULL, NULL},
    {.name = NULL},
};
static const struct ring_table_def random_table = {
    .name = "random_rows", .help = "r", .weight = 1, .text_percent = 20, .columns = random_columns};

static void insert_random(sqlite3_stmt *insert, const union ring_value *v) {
    (void)sqlite3_reset(insert);
    (void)sqlite3_clear_bindings(insert);
    (void)sqlite3_bind_double(insert, 1, v[0].f);
    for (int i = 1; i <= 6; i++) {
        if (i == 4 && !isnan(v[i].f))
            (void)sqlite3_bind_double(insert, i + 1, v[i].f);
        else if (i == 5 && v[i].s)
            (void)sqlite3_bind_text(insert, i + 1, v[i].s, -1, SQLITE_TRANSIENT);
        else if (i != 4 && i != 5 && v[i].i != RING_INT_NULL)
            (void)sqlite3_bind_int64(insert, i + 1, v[i].i);
    }
    assert_int_equal(sqlite3_step(insert), SQLITE_DONE);
}

static sqlite3 *make_both(const struct job *j) {
    static const char create[] = "CREATE TABLE random_rows(timestamp REAL, a INTEGER, b INTEGER, c INTEGER, "
                                 "d REAL, e TEXT, f INTEGER)";
    sqlite3 *db;
    sqlite3_stmt *insert;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, create, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db, "INSERT INTO random_rows VALUES (?,?,?,?,?,?,?)", -1, &insert, NULL),
        SQLITE_OK);
    struct ring *r = job_table(j, &random_table, 1024 * 1024);
    for (uint64_t i = 0; i < RANDOM_ROWS; i++) {
        char text[24];
        uint64_t h = hash_mix(i + 1);
        (void)snprintf(text, sizeof text, "t%d", (int)(h % 17));
        /* Times that a double and microseconds hold alike. */
        union ring_value v[] = {{.f = T0 + (double)i / 8},     {.i = (int64_t)(h % 50)},
                                {.i = (int64_t)(h % 23) - 11}, {.i = (int64_t)(h >> 20) % 9},
                                {.f = random_double(h)},       {.s = text},
                                {.i = (int64_t)(h >> 5) % 2}};
        if (h % 13 == 0)
            v[1].i = v[2].i = RING_INT_NULL;
        if (h % 11 == 0)
            v[4].f = NAN;
        if (h % 7 == 0)
            v[5].s = NULL;
        assert_int_equal(ring_append(r, v), 0);
        insert_random(insert, v);
    }
    ring_close(r);
    (void)sqlite3_finalize(insert);
    return db;
}

static char *plain_rows(sqlite3 *db, const char *text) {
    sqlite3_stmt *st;
    struct strbuf out;
    strbuf_init(&out, 0);
    if (sqlite3_prepare_v2(db, text, -1, &st, NULL) != SQLITE_OK)
        fail_msg("%s: %s", text, sqlite3_errmsg(db));
    while (sqlite3_step(st) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(st); i++) {
            const char *value = (const char *)sqlite3_column_text(st, i);
            (void)strbuf_addf(&out, "%s%s", i ? "|" : "", value ? value : "");
        }
        (void)strbuf_addc(&out, '\n');
    }
    (void)sqlite3_finalize(st);
    return out.data ? out.data : strdup("");
}

static const char *pick(uint64_t *seed, const char *const *list, size_t n) {
    *seed = hash_mix(*seed + 0x9e3779b97f4a7c15ULL);
    return list[*seed % n];
}

#define PICK(seed, list) pick(seed, list, sizeof(list) / sizeof(list)[0])

/* A query that has one answer, whatever the order in which rows are found. */
static void random_query(uint64_t seed, char *text, size_t cap) {
    static const char *const whats[] = {
        "count(*), sum(r.a), min(r.b), max(r.c)", "count(r.d), min(r.d), max(r.e), min(r.timestamp)",
        "sum(r.f), total(r.b), count(DISTINCT r.e)", "max(r.timestamp), count(r.a), sum(r.c)"};
    static const char *const columns[] = {"a", "b", "c", "timestamp - 1700000000", "timestamp", "f", "e"};
    static const char *const ops[] = {"=", "<", "<=", ">", ">=", "<>", "IS", "IS NOT"};
    static const char *const values[] = {
        "3", "-2", "7", "0", "1", "NULL", "'5'", "2.5", "1700000200", "1700000100.125", "x.b", "'t4'"};
    static const char *const joins[] = {"",
                                        "",
                                        "",
                                        " JOIN (SELECT 3 b) x",
                                        " JOIN (SELECT DISTINCT b FROM random_rows) x ON x.b = r.a",
                                        " LEFT JOIN random_rows x ON x.a = r.b AND x.timestamp < 1700000005",
                                        " JOIN random_rows x ON x.b = r.c AND x.a = 7"};
    static const char *const groups[] = {"", "GROUP BY r.e ORDER BY r.e",
                                         "GROUP BY r.b % 5, r.f ORDER BY r.b % 5, r.f"};
    const char *join = PICK(&seed, joins), *what = PICK(&seed, whats), *group = PICK(&seed, groups);
    char where[256] = "1";
    for (int i = 0; i < 2; i++) {
        const char *column = PICK(&seed, columns), *op = PICK(&seed, ops), *value = PICK(&seed, values);
        if (!join[0] && strcmp(value, "x.b") == 0)
            value = "r.b";
        size_t n = strlen(where);
        (void)snprintf(where + n, sizeof where - n, " %s r.%s %s %s", seed % 3 ? "AND" : "OR", column, op,
                       value);
    }
    (void)snprintf(text, cap, "SELECT %s FROM random_rows r%s WHERE %s %s", what, join, where, group);
}

static void random_queries_agree_with_a_plain_table(void **state) {
    (void)state;
    struct job j;
    job_make(&j, 6, 0);
    sqlite3 *db = make_both(&j);
    struct sql *s = job_session(&j, 1, NAN);
    for (uint64_t i = 0; i < RANDOM_QUERIES; i++) {
        char text[640];
        random_query(i + 1, text, sizeof text);
        char *wanted = plain_rows(db, text);
        job_expect(s, text, wanted);
        free(wanted);
    }
    sqlite3_close(db);
    sql_close(s);
    job_remove(&j);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_those_of_the_sorted_values),
        cmocka_unit_test(deviations_and_slopes_are_right),
        cmocka_unit_test(times_are_those_of_the_calendar),
        cmocka_unit_test(numbers_for_people),
        cmocka_unit_test(intervals_are_seconds),
        cmocka_unit_test(only_intervals_are_rewritten),
        cmocka_unit_test(random_queries_agree_with_a_plain_table),
    };
    return cmocka_run_group_tests(tests, make_values, remove_values);
}
