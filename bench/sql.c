/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql: how long queries over a ring take, beside the same rows in an ordinary SQLite table, in the same run, in turns.
 *
 * A million samples: a window of a minute, totals, groups, a join with the stacks. Times are CPU milliseconds of the thread from the text to
 * the last row, the median of several rounds. And a window as a person's query goes: through the client's database, which looks whether tables
 * have come or grown, to rows of text; in milliseconds of the clock on the wall. Prints JSON; with --check the exit status tells whether the budgets were kept.
 *
 * usage: sql [--check]
 */
#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "client/sql/database.h"
#include "client/sql/result.h"
#include "store/ring/ring_dir.h"
#include "store/ring/ring_tables.h"
#include "store/sql/sql.h"

#define SQL_ROUNDS 7
#define SQL_ROWS 1000000
#define SQL_STACKS 4096
#define SQL_T0 1700000000.0
#define SQL_STEP_S 0.002 /* five threads at 100 Hz */
#define SQL_BUDGET_WINDOW_MS 1.0
#define SQL_BUDGET_ROUND_MS 2.0
#define SQL_ROUND_TRIPS 51

static const char *const sql_threads[] = {"MainThread", "pin_memory", "worker-1", "worker-2", "worker-3"};

static const struct sql_case {
    const char *name, *text;
    bool window;
} sql_cases[] = {
    {"window_1_min_count", "SELECT count(*) FROM samples WHERE timestamp > now() - 60", true},
    {"window_10_s_group",
     "SELECT tid, count(*), sum(on_cpu) FROM samples WHERE timestamp > now() - 10 GROUP BY tid", true},
    {"total", "SELECT count(*), avg(on_cpu), max(timestamp), sum(tid) FROM samples", false},
    {"group_by_number", "SELECT tid, count(*), avg(on_cpu) FROM samples GROUP BY tid", false},
    {"group_by_text", "SELECT thread, gil, count(*) FROM samples GROUP BY thread, gil", false},
    {"by_minute", "SELECT CAST(timestamp / 60 AS INTEGER) m, count(*) FROM samples GROUP BY m", false},
    {"join_stacks", "SELECT s.depth, count(*) FROM samples JOIN stacks s USING (stack_id) GROUP BY s.depth",
     false},
};
#define SQL_CASES (sizeof sql_cases / sizeof sql_cases[0])

static const char *const sql_gil[] = {"none", "waiting", "held"};

static struct ring *sql_make_ring(int dir, enum ring_table t, size_t bytes) {
    struct err e;
    struct ring_owner owner = {.pid = 4711, .rank = 0, .host = "here", .started_at = NAN};
    int fd = ring_dir_begin_file(dir, RING_TABLES[t].name);
    return fd < 0 || ring_dir_finish_file(dir, RING_TABLES[t].name) != 0
               ? NULL
               : ring_create(fd, &RING_TABLES[t], &owner, bytes, &e);
}

static int sql_fill_ring(int dir) {
    struct ring *samples = sql_make_ring(dir, RING_SAMPLES, (size_t)24 * 1024 * 1024);
    struct ring *stacks = sql_make_ring(dir, RING_STACKS, (size_t)1024 * 1024);
    if (!samples || !stacks)
        return -1;
    for (int64_t i = 1; i <= SQL_STACKS; i++) {
        union ring_value v[RING_STACKS_COUNT] = {
            {.i = i}, {.i = i / 2 ? i / 2 : RING_INT_NULL}, {.i = i}, {.i = i % 37}};
        (void)ring_append(stacks, v);
    }
    for (int64_t i = 0; i < SQL_ROWS; i++) {
        union ring_value v[RING_SAMPLES_COUNT] = {{.f = SQL_T0 + (double)i * SQL_STEP_S},
                                                  {.i = 4000 + i % 5},
                                                  {.s = sql_threads[i % 5]},
                                                  {.i = 1 + i * 7 % SQL_STACKS},
                                                  {.i = i & 1},
                                                  {.i = i % 3},
                                                  {.i = 0},
                                                  {.i = 0}};
        (void)ring_append(samples, v);
    }
    ring_close(samples);
    ring_close(stacks);
    return 0;
}

static void sql_now(sqlite3_context *c, int n, sqlite3_value **v) {
    (void)n;
    (void)v;
    sqlite3_result_double(c, SQL_T0 + SQL_ROWS * SQL_STEP_S);
}

/* The same rows in ordinary tables, with an index on the time as one would make. */
static sqlite3 *sql_fill_plain(void) {
    static const char create[] =
        "CREATE TABLE samples(rank INTEGER, host TEXT, pid INTEGER, timestamp REAL, tid INTEGER, thread TEXT,"
        " stack_id INTEGER, on_cpu INTEGER, gil TEXT, gc INTEGER, torn INTEGER);"
        "CREATE TABLE stacks(stack_id INTEGER PRIMARY KEY, parent_id INTEGER, frame_id INTEGER, depth "
        "INTEGER);"
        "CREATE INDEX samples_time ON samples(timestamp); BEGIN";
    sqlite3 *db;
    sqlite3_stmt *st;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK || sqlite3_exec(db, create, NULL, NULL, NULL) != SQLITE_OK)
        return NULL;
    (void)sqlite3_create_function(db, "now", 0, SQLITE_UTF8, NULL, sql_now, NULL, NULL);
    (void)sqlite3_prepare_v2(db, "INSERT INTO samples VALUES (0, 'here', 4711, ?, ?, ?, ?, ?, ?, 0, 0)", -1,
                             &st, NULL);
    for (int64_t i = 0; i < SQL_ROWS; i++) {
        (void)sqlite3_bind_double(st, 1, SQL_T0 + (double)i * SQL_STEP_S);
        (void)sqlite3_bind_int64(st, 2, 4000 + i % 5);
        (void)sqlite3_bind_text(st, 3, sql_threads[i % 5], -1, SQLITE_STATIC);
        (void)sqlite3_bind_int64(st, 4, 1 + i * 7 % SQL_STACKS);
        (void)sqlite3_bind_int64(st, 5, i & 1);
        (void)sqlite3_bind_text(st, 6, sql_gil[i % 3], -1, SQLITE_STATIC);
        (void)sqlite3_step(st);
        (void)sqlite3_reset(st);
    }
    (void)sqlite3_finalize(st);
    (void)sqlite3_prepare_v2(db, "INSERT INTO stacks VALUES (?1, nullif(?1 / 2, 0), ?1, ?1 % 37)", -1, &st,
                             NULL);
    for (int64_t i = 1; i <= SQL_STACKS; i++) {
        (void)sqlite3_bind_int64(st, 1, i);
        (void)sqlite3_step(st);
        (void)sqlite3_reset(st);
    }
    (void)sqlite3_finalize(st);
    (void)sqlite3_exec(db, "COMMIT; ANALYZE", NULL, NULL, NULL);
    return db;
}

/* Milliseconds of CPU; a sum over the answer in `*sum`, so that both sides can be compared. NAN: failed. */
static double sql_run_ring(struct sql *s, const char *text, double *sum) {
    static const struct sql_query q;
    struct err e;
    uint64_t began = clock_self_cpu_ns();
    struct sql_result *r = sql_begin(s, text, &q, NULL, NULL, &e);
    if (!r)
        return NAN;
    *sum = 0;
    while (sql_next(r, &e) == 1)
        for (size_t i = 0; i < sql_result_columns(r); i++)
            *sum += sql_result_real(r, i);
    sql_end(r);
    return (double)(clock_self_cpu_ns() - began) / 1e6;
}

static double sql_run_plain(sqlite3 *db, const char *text, double *sum) {
    sqlite3_stmt *st;
    uint64_t began = clock_self_cpu_ns();
    if (sqlite3_prepare_v2(db, text, -1, &st, NULL) != SQLITE_OK)
        return NAN;
    *sum = 0;
    while (sqlite3_step(st) == SQLITE_ROW)
        for (int i = 0; i < sqlite3_column_count(st); i++)
            *sum += sqlite3_column_double(st, i);
    (void)sqlite3_finalize(st);
    return (double)(clock_self_cpu_ns() - began) / 1e6;
}

static int sql_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Whether the budget of this query was kept. */
static bool sql_measure(struct json *j, const struct sql_case *c, struct sql *s, sqlite3 *db) {
    double ring[SQL_ROUNDS], plain[SQL_ROUNDS], a = 0, b = 0;
    for (int i = 0; i < SQL_ROUNDS; i++) {
        ring[i] = sql_run_ring(s, c->text, &a);
        plain[i] = sql_run_plain(db, c->text, &b);
    }
    qsort(ring, SQL_ROUNDS, sizeof *ring, sql_compare);
    qsort(plain, SQL_ROUNDS, sizeof *plain, sql_compare);
    double r = ring[SQL_ROUNDS / 2], p = plain[SQL_ROUNDS / 2];
    bool same = fabs(a - b) <= fabs(b) * 1e-9,
         kept = same && (c->window ? r <= SQL_BUDGET_WINDOW_MS : r <= p);
    json_key(j, c->name);
    json_object_begin(j);
    json_kv_string(j, "query", c->text);
    json_kv_number(j, "ring_ms", r, 3);
    json_kv_number(j, "plain_table_ms", p, 3);
    json_kv_number(j, "ratio", r / p, 3);
    json_kv_bool(j, "same_answer", same);
    json_kv_bool(j, "within_budget", kept);
    json_object_end(j);
    return kept;
}

/* Milliseconds from the wish to all rows; NAN: failed. */
static double sql_run_database(struct database *d, const char *text, int64_t *n) {
    const struct sql_query q = {.max_rows = DATABASE_MAX_ROWS, .timeout_s = DATABASE_TIMEOUT_S};
    struct err e;
    uint64_t began = clock_mono_ns();
    database_arm(d);
    struct sql_result *r = database_refresh(d, &e) == 0 ? database_begin(d, text, &q, NULL, NULL, &e) : NULL;
    if (!r)
        return NAN;
    struct result *rows = result_take(r, RESULT_BYTES, &e);
    sql_end(r);
    double ms = (double)(clock_mono_ns() - began) / 1e6;
    *n = rows && rows->n_rows == 1 ? result_at(rows, 0, 0).i : -1;
    result_unref(rows);
    return *n >= 0 ? ms : NAN;
}

static bool sql_measure_database(struct json *j, const char *path) {
    static const char text[] = "SELECT count(*) FROM python.samples WHERE timestamp > now() - 60";
    struct target_address addr = {.mode = MODEL_MODE_RECORDED};
    struct err e = {.text = "out of memory"};
    double ms[SQL_ROUND_TRIPS];
    int64_t n = 0;
    struct database *d = database_open(&e);
    (void)snprintf(addr.recorded, sizeof addr.recorded, "%s", path);
    if (!d || database_add(d, &addr, &e) != 0) {
        fprintf(stderr, "sql: %s\n", e.text);
        database_close(d);
        return false;
    }
    for (int i = 0; i < SQL_ROUND_TRIPS; i++)
        ms[i] = sql_run_database(d, text, &n);
    database_close(d);
    qsort(ms, SQL_ROUND_TRIPS, sizeof *ms, sql_compare);
    double median = ms[SQL_ROUND_TRIPS / 2];
    bool right = n == (int64_t)(60 / SQL_STEP_S), kept = right && median <= SQL_BUDGET_ROUND_MS;
    json_key(j, "window_1_min_round_trip");
    json_object_begin(j);
    json_kv_string(j, "query", text);
    json_kv_number(j, "wall_ms_median", median, 3);
    json_kv_number(j, "wall_ms_worst", ms[SQL_ROUND_TRIPS - 1], 3);
    json_kv_int(j, "rows_in_window", n);
    json_kv_bool(j, "right_answer", right);
    json_kv_bool(j, "within_budget", kept);
    json_object_end(j);
    return kept;
}

static int sql_bench(const char *path, int dir, bool check) {
    struct err e = {.text = "out of memory"};
    struct sql *s = sql_open(&e);
    sqlite3 *db = sql_fill_plain();
    struct sql_target t = {.pid = RING_INT_NULL, .rank = RING_INT_NULL, .ring_dir = path, .owner = geteuid()};
    if (!s || !db || sql_fill_ring(dir) != 0 || sql_add_target(s, &t, &e) != 0) {
        fprintf(stderr, "sql: %s\n", e.text);
        return 1;
    }
    sql_set_now(s, SQL_T0 + SQL_ROWS * SQL_STEP_S);
    struct strbuf out;
    struct json j;
    bool kept = true;
    strbuf_init(&out, 0);
    json_init(&j, &out, 2);
    json_object_begin(&j);
    json_kv_int(&j, "rows", SQL_ROWS);
    for (size_t i = 0; i < SQL_CASES; i++)
        kept = sql_measure(&j, &sql_cases[i], s, db) && kept;
    kept = sql_measure_database(&j, path) && kept;
    json_object_end(&j);
    puts(strbuf_str(&out));
    strbuf_fini(&out);
    sql_close(s);
    (void)sqlite3_close(db);
    return check && !kept;
}

int main(int argc, char **argv) {
    char path[64];
    (void)snprintf(path, sizeof path, "%s/probing-bench-XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    int dir = mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (dir < 0) {
        perror(path);
        return 1;
    }
    int status = sql_bench(path, dir, argc > 1 && strcmp(argv[1], "--check") == 0);
    ring_dir_remove(dir, path);
    return status;
}
