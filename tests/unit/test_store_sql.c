/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQL over ring files: names, types, conditions that are pushed down, joins, many targets, tables that are made when they are
 * read, what people already type; what is refused; what ends a query.
 */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "store/ring/ring_tables.h"
#include "store/sql/sql.h"
#include "unit/store_job.h"

#define T0 1700000000.0 /* 22:13:20 UTC */
#define ROWS 30000

static struct job job, other;

static int make_jobs(void **state) {
    (void)state;
    job_make(&job, 4711, 0);
    job_make(&other, 4712, 1);
    job_samples(&job, T0, ROWS);
    job_samples(&other, T0 + 1000, 200);
    return 0;
}

static int remove_jobs(void **state) {
    (void)state;
    job_remove(&job);
    job_remove(&other);
    return 0;
}

static void tables_are_there_without_a_target(void **state) {
    (void)state;
    struct sql *s = job_session(NULL, 0, NAN);
    job_expect(s, "SELECT count(*) FROM python.samples", "0\n");
    job_expect(s, "SELECT count(*) FROM memory_usage", "0\n");
    job_expect(s, "SELECT count(*) FROM system.process_history, probing.status", "0\n");
    job_refused(s, "SELECT * FROM python.absent", "no such table");
    sql_close(s);
}

static void rows_have_names_types_and_an_origin(void **state) {
    (void)state;
    static const char *const names[] = {"rank",     "host",   "pid", "timestamp", "tid", "thread",
                                        "stack_id", "on_cpu", "gil", "gc",        "torn"};
    static const char *const types[] = {"integer", "text",    "integer", "timestamp", "integer", "text",
                                        "integer", "boolean", "text",    "boolean",   "boolean"};
    struct sql *s = job_session(&job, 1, NAN);
    struct sql_query q = {.max_rows = 0};
    struct err e;
    struct sql_result *r = sql_begin(s, "SELECT * FROM python.samples LIMIT 5", &q, NULL, NULL, &e);
    assert_non_null(r);
    assert_int_equal(sql_result_columns(r), 11);
    for (size_t i = 0; i < 11; i++) {
        assert_string_equal(sql_result_name(r, i), names[i]);
        assert_string_equal(sql_result_type(r, i), types[i]);
    }
    for (int n = 0; n < 2; n++)
        assert_int_equal(sql_next(r, &e), 1);
    assert_true(sql_result_kind(r, 0) == SQL_INTEGER && sql_result_int(r, 0) == 0);
    assert_string_equal(sql_result_text(r, 1, NULL), "here");
    assert_int_equal(sql_result_int(r, 2), 4711);
    assert_true(sql_result_kind(r, 3) == SQL_REAL && fabs(sql_result_real(r, 3) - (T0 + 0.01)) < 1e-6);
    assert_int_equal(sql_result_int(r, 4), 101);
    assert_string_equal(sql_result_text(r, 5, NULL), "worker-1");
    assert_string_equal(sql_result_text(r, 8, NULL), "waiting");
    assert_true(sql_result_kind(r, 9) == SQL_NULL && sql_result_text(r, 9, NULL) == NULL);
    sql_end(r);
    job_expect(s, "SELECT thread IS NULL, count(*) FROM samples GROUP BY 1", "0|22500\n1|7500\n");
    sql_close(s);
}

static void conditions_leave_out_what_they_should(void **state) {
    (void)state;
    struct sql *s = job_session(&job, 1, T0 + (ROWS - 1) * 0.01);
    job_expect(s, "SELECT count(*) FROM python.samples WHERE timestamp > now() - 1", "100\n");
    job_expect(s,
               "SELECT count(*) FROM python.samples WHERE timestamp >= now() - interval '1 min' AND "
               "timestamp < now()",
               "6000\n");
    job_expect(s, "SELECT count(*) FROM python.samples WHERE timestamp BETWEEN 1700000010 AND 1700000020",
               "1001\n");
    job_expect(s, "SELECT tid FROM python.samples WHERE timestamp = 1700000000.05", "101\n");
    job_expect(s, "SELECT count(*) FROM python.samples WHERE timestamp > 1e300 OR timestamp < -1e300", "0\n");
    job_expect(s, "SELECT count(*) FROM python.samples WHERE timestamp > NULL", "0\n");
    job_expect(s, "SELECT count(*) FROM python.samples WHERE tid = 102 AND timestamp < 1700000001", "25\n");
    job_expect(s, "SELECT count(*) FROM python.samples WHERE tid = 102.5", "0\n");
    job_expect(s, "SELECT count(*) FROM python.samples WHERE tid IN (100, 103)", "15000\n");
    job_expect(s, "SELECT count(*) FROM python.samples WHERE tid IS NULL", "0\n");
    job_expect(s, "SELECT count(*) FROM python.samples WHERE pid = 4711", "30000\n");
    job_expect(s, "SELECT count(*) FROM python.samples WHERE pid = 1", "0\n");
    job_expect(s, "SELECT count(*) FROM python.samples WHERE rank = 0 AND host = 'here'", "30000\n");
    job_expect(s, "SELECT count(*) FROM python.samples WHERE host = 'there' OR rank = 9", "0\n");
    job_expect(s, "SELECT gil, on_cpu, count(*) FROM python.samples GROUP BY 1, 2 ORDER BY 1",
               "held|1|10000\nnone|0|10000\nwaiting|1|10000\n");
    sql_close(s);
}

static void joins_are_right(void **state) {
    (void)state;
    struct sql *s = job_session(&job, 1, NAN);
    job_expect(s,
               "SELECT f.func, f.lineno, count(*) FROM python.samples s JOIN python.stacks k USING (stack_id)"
               " JOIN python.frames f USING (frame_id) GROUP BY 1 ORDER BY 1",
               "f1|10|6000\nf2|20|6000\nf3|30|6000\nf4|40|6000\nf5|50|6000\n");
    job_expect(s,
               "SELECT b.func FROM python.stacks k JOIN python.stacks p ON p.stack_id = k.parent_id JOIN "
               "python.frames b ON"
               " b.frame_id = p.frame_id ORDER BY 1",
               "f1\nf2\nf3\nf4\n");
    job_expect(
        s,
        "WITH RECURSIVE up(id, depth) AS (SELECT 5, 0 UNION ALL SELECT parent_id, up.depth + 1 FROM up "
        "JOIN python.stacks"
        " ON stack_id = up.id WHERE parent_id IS NOT NULL) SELECT group_concat(id) FROM up",
        "5,4,3,2,1\n");
    job_expect(s,
               "SELECT fold(stack_id), count(*) FROM samples WHERE stack_id IN (1, 3) GROUP BY 1 ORDER BY 1",
               "f1 (a.py:10)|6000\nf1 (a.py:10);f2 (a.py:20);f3 (a.py:30)|6000\n");
    job_expect(s, "SELECT fold(99), fold(NULL) IS NULL", "?|1\n");
    job_refused(s, "SELECT fold('x')", "stack_id");
    sql_close(s);
}

static void many_targets_are_a_union_whose_ids_do_not_meet(void **state) {
    (void)state;
    struct job jobs[] = {job, other};
    struct sql *s = job_session(jobs, 2, NAN);
    job_expect(s, "SELECT pid, rank, count(*) FROM python.samples GROUP BY pid",
               "4711|0|30000\n4712|1|200\n");
    job_expect(s, "SELECT count(*) FROM python.samples WHERE rank = 1", "200\n");
    job_expect(s, "SELECT count(*), count(DISTINCT stack_id) FROM python.stacks", "10|10\n");
    /* Joined by the id alone, rows of different targets do not mix. */
    job_expect(s, "SELECT s.pid, k.pid, count(*) FROM samples s JOIN stacks k USING (stack_id) GROUP BY 1, 2",
               "4711|4711|30000\n4712|4712|200\n");
    job_expect(s,
               "SELECT DISTINCT pid, fold(stack_id) FROM samples WHERE fold(stack_id) LIKE '%f2 (a.py:20)' "
               "ORDER BY pid",
               "4711|f1 (a.py:10);f2 (a.py:20)\n4712|f1 (a.py:10);f2 (a.py:20)\n");
    job_expect(s,
               "SELECT a.tid, b.n FROM (SELECT DISTINCT tid FROM samples WHERE pid = 4711) a JOIN (SELECT "
               "tid, count(*) n"
               " FROM samples WHERE pid = 4712 GROUP BY tid) b USING (tid) ORDER BY 1",
               "100|50\n101|50\n102|50\n103|50\n");
    sql_close(s);
}

static void files_that_come_later_and_unknown_tables_are_shown(void **state) {
    (void)state;
    struct job late;
    struct err e;
    job_make(&late, 9, 0);
    struct sql *s = job_session(&late, 1, NAN);
    job_refused(s, "SELECT * FROM of_a_later_release", "no such table");
    struct ring *r = job_table(&late, &job_of_later, 64 * 1024);
    union ring_value v[] = {{.f = T0}, {.s = "load"}, {.i = 4096}};
    assert_int_equal(ring_append(r, v), 0);
    assert_int_equal(ring_flush(r), 0);
    assert_int_equal(sql_refresh(s, &e), 0);
    job_expect(s, "SELECT function_name, allocated_bytes FROM of_a_later_release", "load|4096\n");
    v[1].s = NULL;
    (void)ring_append(r, v);
    (void)ring_flush(r);
    job_expect(s, "SELECT count(*), count(function_name) FROM of_a_later_release", "2|1\n");
    ring_close(r);
    sql_close(s);
    job_remove(&late);
}

/* ---- names that are not the file's to give ---- */

static const struct ring_column_def five_columns[] = {
    {"a", RING_INT64, NULL, NULL, NULL},  {"b", RING_INT64, NULL, NULL, NULL},
    {"c", RING_INT64, NULL, NULL, NULL},  {"d", RING_INT64, NULL, NULL, NULL},
    {"id", RING_INT64, NULL, NULL, NULL}, {.name = NULL}};

/* A file of one row, 1 to 5, whose head has these names. */
static void put_named(const struct job *j, const char *name, const char *alias) {
    const struct ring_table_def def = {.name = name,
                                       .alias = alias,
                                       .help = "for tests",
                                       .cost = RING_COST_STEPS,
                                       .weight = 1,
                                       .columns = five_columns};
    struct ring *r = job_table(j, &def, 64 * 1024);
    assert_int_equal(ring_append(r, (union ring_value[]){{.i = 1}, {.i = 2}, {.i = 3}, {.i = 4}, {.i = 5}}),
                     0);
    ring_close(r);
}

/* One holder of each tensor. */
static int scan_holders(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    (void)arg;
    (void)columns;
    (void)e;
    union ring_value v[RING_TENSOR_HOLDERS_COUNT] = {
        [RING_TENSOR_HOLDERS_ID].i = sql_sink_wanted(sink)->equal, [RING_TENSOR_HOLDERS_HOLDER].s = "x"};
    (void)sql_sink_put(sink, v);
    return 0;
}

static void files_do_not_replace_what_the_client_makes(void **state) {
    (void)state;
    struct err e = {.text = ""};
    struct job j;
    struct sql_provider p = {.def = &RING_TABLES[RING_TENSOR_HOLDERS], .key = "id", .scan = scan_holders};
    job_make(&j, 5, 0);
    struct sql *s = sql_open(&e);
    struct sql_target t = {
        .pid = 5, .rank = 0, .ring_dir = j.dir, .owner = geteuid(), .providers = &p, .n_providers = 1};
    put_named(&j, "python.tensor_growth", NULL);
    assert_int_equal(sql_add_target(s, &t, &e), 0);
    assert_non_null(strstr(sql_note(s), "python.tensor_growth"));
    job_refused(s, "SELECT * FROM python.tensor_growth", "no such table");
    put_named(&j, "python.tensor_holders", NULL);
    put_named(&j, "cluster.nodes", NULL);
    put_named(&j, "Gpu_Metrics", NULL);
    assert_int_equal(sql_refresh(s, &e), 0);
    job_expect(s, "SELECT id, holder FROM python.tensor_holders WHERE id = 7", "7|x\n");
    job_refused(s, "SELECT a FROM python.tensor_holders WHERE id = 7", "no such column");
    job_refused(s, "SELECT * FROM cluster.nodes", "no such table");
    job_refused(s, "SELECT * FROM gpu_metrics", "no such table");
    sql_close(s);
    job_remove(&j);
}

static void files_do_not_take_the_names_of_others(void **state) {
    (void)state;
    struct err e = {.text = ""};
    struct job jobs[2];
    job_make(&jobs[0], 5, 0);
    job_make(&jobs[1], 6, 1);
    job_samples(&jobs[0], T0, 20);
    put_named(&jobs[0], "mine", "of_mine");
    struct sql *s = job_session(jobs, 2, NAN);
    put_named(&jobs[1], "samples", NULL);
    put_named(&jobs[1], "Of_Mine", NULL);
    put_named(&jobs[1], "others", "STACKS");
    put_named(&jobs[1], "python.another", "memory_usage");
    put_named(&jobs[1], "more", "SQLite_more");
    put_named(&jobs[1], "even_more", "MINE");
    put_named(&jobs[1], "Probing_Table", NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sql_refresh(s, &e), 0);
        job_expect(s, "SELECT count(*), count(DISTINCT tid) FROM samples", "20|4\n");
        job_expect(s, "SELECT count(*) FROM stacks", "5\n");
        job_expect(s, "SELECT count(*) FROM memory_usage", "0\n");
        job_expect(s, "SELECT pid FROM mine UNION ALL SELECT pid FROM of_mine", "5\n5\n");
        job_expect(s, "SELECT pid, id FROM others", "6|5\n");
        job_expect(s, "SELECT pid, id FROM python.another", "6|5\n");
        job_expect(s, "SELECT pid, id FROM more", "6|5\n");
        job_expect(s, "SELECT pid, id FROM even_more", "6|5\n");
    }
    assert_non_null(strstr(sql_note(s), "was left out"));
    /* other case, and still the same table: of another process */
    put_named(&jobs[1], "python.SAMPLES", NULL);
    assert_int_equal(sql_refresh(s, &e), 0);
    job_expect(s, "SELECT pid, count(*) FROM python.samples GROUP BY pid", "5|20\n6|1\n");
    sql_close(s);
    job_remove(&jobs[0]);
    job_remove(&jobs[1]);
}

static void hosts_are_compared_as_asked(void **state) {
    (void)state;
    struct sql *s = job_session(&job, 1, NAN);
    job_expect(s, "SELECT count(*) FROM python.samples WHERE host = 'HERE'", "0\n");
    job_expect(s, "SELECT count(*) FROM python.samples WHERE host = 'HERE' COLLATE NOCASE", "30000\n");
    job_expect(s, "SELECT count(*) FROM python.samples WHERE host = 'here  ' COLLATE RTRIM", "30000\n");
    sql_close(s);
}

/* ---- what people already type ---- */

static void put_row(struct ring *r, const union ring_value *v) {
    assert_int_equal(ring_append(r, v), 0);
    ring_close(r);
}

static int scan_backtrace(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    int *calls = arg;
    (void)e;
    (void)columns;
    ++*calls;
    for (int64_t i = 0; i < 12; i++) {
        char func[16];
        (void)snprintf(func, sizeof func, "frame%d", (int)i);
        union ring_value v[] = {
            {.i = 7}, {.s = "MainThread"}, {.i = 11 - i}, {.s = func}, {.s = "/job/train.py"}, {.i = 10 + i},
            {.i = 0}, {.s = NULL}};
        if (sql_sink_put(sink, v) != 0)
            return 0;
    }
    return 0;
}

static void put_one_row_each(const struct job *j) {
    put_row(job_table(j, &job_profiling_data, 65536),
            (union ring_value[]){{.f = T0}, {.s = "forward"}, {.f = 4}, {.i = 1}});
    put_row(job_table(j, &job_torch_trace, 65536),
            (union ring_value[]){{.f = T0}, {.i = 1}, {.s = "backward"}, {.s = "net"}, {.f = 8}});
    put_row(job_table(j, &job_training_logs, 65536),
            (union ring_value[]){{.f = T0}, {.i = 1}, {.i = 2}, {.f = 0.5}});
    put_row(job_table(j, &job_comm_metrics, 65536),
            (union ring_value[]){{.f = T0}, {.i = 0}, {.i = 1}, {.f = 0.25}});
    put_row(job_table(j, &job_gpu_metrics, 65536), (union ring_value[]){{.f = T0}, {.f = 97}});
    put_row(job_table(j, &job_memory_allocations, 65536),
            (union ring_value[]){{.f = T0}, {.s = "load"}, {.i = 4096}});
    put_row(
        job_table(j, &RING_TABLES[RING_MEMORY], 65536),
        (union ring_value[]){{.f = T0}, {.f = 100}, {.f = 90}, {.f = NAN}, {.f = NAN}, {.i = RING_INT_NULL}});
}

static void every_seed_query_runs(void **state) {
    (void)state;
    struct job j;
    struct err e;
    int calls = 0;
    job_make(&j, 31, 0);
    put_one_row_each(&j);
    struct sql *s = sql_open(&e);
    struct sql_provider p = {.def = &RING_TABLES[RING_BACKTRACE], .scan = scan_backtrace, .arg = &calls};
    struct sql_target t = {.pid = RING_INT_NULL,
                           .rank = RING_INT_NULL,
                           .ring_dir = j.dir,
                           .owner = geteuid(),
                           .is_recorded = true,
                           .providers = &p,
                           .n_providers = 1};
    assert_int_equal(sql_add_target(s, &t, &e), 0);
    sql_set_now(s, T0 + 30);
    struct strbuf text, all;
    strbuf_init(&text, 0);
    strbuf_init(&all, 0);
    assert_int_equal(strbuf_read_file(&text, PROBING_SOURCE_DIR "/tests/unit/seed_queries.sql"), 0);
    const char *tail = strbuf_str(&text);
    struct sql_query q = {.max_rows = 0};
    int statements = 0;
    for (struct sql_result *r; (r = sql_begin(s, tail, &q, &tail, NULL, &e)); statements++) {
        int rc;
        while ((rc = sql_next(r, &e)) == 1)
            (void)strbuf_adds(&all, sql_result_text(r, 0, NULL) ? sql_result_text(r, 0, NULL) : "");
        if (rc != 0 || sql_result_rows(r) == 0)
            fail_msg("statement %d: %s, %d rows", statements, rc ? e.text : "", (int)sql_result_rows(r));
        sql_end(r);
    }
    if (e.code != ERR_OK)
        fail_msg("%s", e.text);
    assert_int_equal(statements, 12);
    assert_int_equal(calls, 3);
    job_expect(s, "SELECT hour(timestamp), avg(memory_mb) FROM memory_usage GROUP BY hour(timestamp)",
               "22|100.0\n");
    job_expect(s, "SELECT func, file, lineno FROM python.backtrace LIMIT 2",
               "frame0|/job/train.py|10\nframe1|/job/train.py|11\n");
    job_expect(s, "SELECT pid, depth FROM python.backtrace ORDER BY depth LIMIT 1", "31|0\n");
    job_expect(
        s,
        "SELECT function_name, sum(allocated_bytes) AS total_alloc FROM memory_allocations"
        " WHERE timestamp > now() - interval '1 hour' GROUP BY function_name ORDER BY total_alloc DESC",
        "load|4096\n");
    strbuf_fini(&text);
    strbuf_fini(&all);
    sql_close(s);
    job_remove(&j);
}

/* ---- tables that are made when they are read ---- */

struct fake {
    int calls;
    uint64_t columns;
    const char *failure;
    size_t rows;
};

static int scan_fake(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    struct fake *f = arg;
    f->calls++;
    f->columns = columns;
    if (f->failure)
        return err_set(e, ERR_FAILED, "%s", f->failure);
    for (size_t i = 0; i < f->rows; i++) {
        union ring_value v[] = {
            {.i = (int64_t)i}, {.s = "native"}, {.i = (int64_t)i % 3}, {.f = 0.5}, {.s = NULL}};
        if (sql_sink_cancelled(sink) || sql_sink_put(sink, v) != 0)
            break;
    }
    return 0;
}

static void a_provider_is_asked_once_a_query(void **state) {
    (void)state;
    struct err e;
    struct fake f = {.rows = 5};
    struct sql_provider p = {.def = &RING_TABLES[RING_SYSTEM_THREADS], .scan = scan_fake, .arg = &f};
    struct sql_target t = {
        .pid = 77, .rank = RING_INT_NULL, .host = "h", .owner = geteuid(), .providers = &p, .n_providers = 1};
    struct sql *s = sql_open(&e);
    assert_int_equal(sql_add_target(s, &t, &e), 0);
    job_expect(s, "SELECT rank, host, pid, tid, state, wchan FROM system.threads WHERE tid < 2",
               "|h|77|0|R|\n|h|77|1|S|\n");
    assert_int_equal(f.calls, 1);
    assert_int_equal(f.columns, 1 << 0 | 1 << 2 | 1 << 4);
    job_expect(s, "SELECT count(*) FROM system.threads a JOIN system.threads b ON a.tid = b.tid", "5\n");
    assert_int_equal(f.calls, 2);
    job_expect(s, "SELECT count(*) FROM system.threads WHERE pid = 1", "0\n");
    assert_int_equal(f.calls, 2); /* not this target's: nobody was asked */
    f.failure = "the target does not answer";
    job_refused(s, "SELECT * FROM system.threads", "the target does not answer");
    f.failure = NULL;
    f.rows = 60 * 1000; /* by value, or this takes hours */
    job_expect(s, "SELECT count(*), sum(b.tid) FROM system.threads a JOIN system.threads b ON a.tid = b.tid",
               "60000|1799970000\n");
    job_expect(s, "SELECT count(*) FROM system.threads a JOIN system.threads b ON b.tid = a.tid + 1",
               "59999\n");
    f.rows = 100 * 1000 * 1000;
    job_refused(s, "SELECT count(*) FROM system.threads", "more rows than fit");
    sql_close(s);
}

/* What a provider was given, and it gives all of its rows whatever that is. */
struct asked {
    int calls;
    uint64_t columns;
    struct sql_wanted wanted;
    int64_t ranks[8];
    char text[16];
};

#define ASKED_ROWS 20

static int scan_asked(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    struct asked *a = arg;
    const struct sql_wanted *w = sql_sink_wanted(sink);
    (void)e;
    a->calls++;
    a->columns = columns;
    a->wanted = *w;
    for (size_t i = 0; i < w->n_ranks && i < 8; i++)
        a->ranks[i] = w->ranks[i];
    snprintf(a->text, sizeof a->text, "%s", w->equal_text ? w->equal_text : "-");
    for (int64_t i = 0; i < ASKED_ROWS; i++) {
        char op[8];
        snprintf(op, sizeof op, "op%d", (int)(i % 3));
        const union ring_value row[] = {{.i = i % 4},          {.s = "gpu1"}, {.i = 100 + i % 4},
                                        {.f = T0 + (double)i}, {.i = i / 4},  {.s = op}};
        assert_int_equal(sql_sink_put(sink, row), 0);
    }
    return 0;
}

static struct sql *asked_session(struct asked *a, struct sql_provider *p) {
    static const struct ring_column_def columns[] = {
        {"rank", RING_INT32, NULL, "", NULL, 0},    {"host", RING_TEXT, NULL, "", NULL, 0},
        {"pid", RING_INT32, NULL, "", NULL, 0},     {"timestamp", RING_TIMESTAMP, "s", "", NULL, 0},
        {"step", RING_INT64, NULL, "", NULL, 0},    {"op", RING_TEXT, NULL, "", NULL, 0},
        {NULL, RING_TIMESTAMP, NULL, NULL, NULL, 0}};
    static const struct ring_table_def def = {
        .name = "asked", .help = "a row", .cost = RING_COST_NOW, .columns = columns};
    struct err e;
    *a = (struct asked){.calls = 0};
    *p = (struct sql_provider){.def = &def, .uses = p->uses, .scan = scan_asked, .arg = a};
    const struct sql_target t = {
        .pid = RING_INT_NULL, .rank = RING_INT_NULL, .owner = geteuid(), .providers = p, .n_providers = 1};
    struct sql *s = sql_open(&e);
    assert_int_equal(sql_add_target(s, &t, &e), 0);
    return s;
}

#define US(s) ((int64_t)((T0 + (s)) * 1e6))

static void a_provider_is_given_the_conditions(void **state) {
    (void)state;
    struct asked a;
    struct sql_provider p = {.uses = SQL_USES_TIME | SQL_USES_RANK | SQL_USES_EQUAL | SQL_USES_LIMIT};
    struct sql *s = asked_session(&a, &p);
    const struct sql_wanted *w = &a.wanted;

    job_expect(s, "SELECT count(*) FROM asked", "20\n");
    assert_true(w->min_us == INT64_MIN && w->max_us == INT64_MAX && w->min_rank == INT64_MIN &&
                w->max_rank == INT64_MAX && !w->ranks && w->equal_column == -1 && w->limit == 0);

    job_expect(s, "SELECT step FROM asked WHERE timestamp >= 1700000003 AND timestamp < 1700000005",
               "0\n1\n");
    assert_true(w->min_us == US(3) && w->max_us == US(5) - 1 && w->equal_column == -1);
    assert_int_equal(a.columns, 1 << 3 | 1 << 4);

    job_expect(s, "SELECT count(*) FROM asked WHERE rank = 2", "5\n");
    assert_true(w->min_rank == 2 && w->max_rank == 2);
    job_expect(s, "SELECT count(*) FROM asked WHERE rank > 0 AND rank <= 2", "10\n");
    assert_true(w->min_rank == 1 && w->max_rank == 2);
    job_expect(s, "SELECT count(*) FROM asked WHERE rank BETWEEN 3 AND 70000000000", "5\n");
    assert_true(w->min_rank == 3 && w->max_rank == 70000000000);
    job_expect(s, "SELECT count(*) FROM asked WHERE rank < 1.5", "10\n");
    assert_true(w->min_rank == INT64_MIN && w->max_rank == INT64_MAX);

    job_expect(s, "SELECT count(*) FROM asked WHERE step = 4", "4\n");
    assert_true(w->equal_column == 4 && w->equal == 4 && !w->equal_text);
    job_expect(s, "SELECT count(*) FROM asked WHERE op = 'op1' AND step = 0", "1\n");
    assert_true(w->equal_column == 5 || w->equal_column == 4);
    job_expect(s, "SELECT count(*) FROM asked WHERE op = 'op1'", "7\n");
    assert_int_equal(w->equal_column, 5);
    assert_string_equal(a.text, "op1");
    job_expect(s, "SELECT count(*) FROM asked WHERE op = 'OP1' COLLATE NOCASE", "7\n");
    assert_int_equal(w->equal_column, -1);
    job_expect(s, "SELECT count(*) FROM asked WHERE step = '4'", "4\n");
    job_expect(s, "SELECT count(*) FROM asked WHERE op = 1", "0\n");
    job_expect(s, "SELECT count(*) FROM asked WHERE host = 'gpu1'", "20\n");
    assert_int_equal(w->equal_column, 1);
    assert_string_equal(a.text, "gpu1");
    job_expect(s, "SELECT count(*) FROM asked WHERE pid = 103", "5\n");
    assert_true(w->equal_column == 2 && w->equal == 103);

    int calls = a.calls;
    job_expect(s, "SELECT count(*) FROM asked WHERE step = NULL OR timestamp > NULL", "0\n");
    job_expect(s, "SELECT count(*) FROM asked WHERE step = 1.5", "0\n");
    assert_int_equal(a.calls, calls); /* no row can be meant */
    sql_close(s);
}

static void sets_of_ranks_and_limits_are_given(void **state) {
    (void)state;
    struct asked a;
    struct sql_provider p = {.uses = SQL_USES_TIME | SQL_USES_RANK | SQL_USES_EQUAL | SQL_USES_LIMIT};
    struct sql *s = asked_session(&a, &p);
    const struct sql_wanted *w = &a.wanted;
    bool is_new = sqlite3_libversion_number() >= 3038000;

    job_expect(s, "SELECT rank, count(*) FROM asked WHERE rank IN (3, 1, NULL, 77) GROUP BY 1", "1|5\n3|5\n");
    if (is_new) {
        assert_int_equal(a.calls, 1);
        assert_true(w->n_ranks == 3 && a.ranks[0] == 1 && a.ranks[1] == 3 && a.ranks[2] == 77);
        assert_true(w->min_rank == 1 && w->max_rank == 77);
    }
    job_expect(s, "SELECT count(*) FROM asked WHERE rank IN (SELECT step FROM asked WHERE step < 2)", "10\n");
    job_expect(s, "SELECT count(*) FROM asked WHERE rank IN (1, 'x')", "5\n");
    job_expect(s, "SELECT count(*) FROM asked WHERE rank IN (1, 2) AND rank > 1", "5\n");

    job_expect(s, "SELECT rank FROM asked LIMIT 2", "0\n1\n");
    assert_int_equal(w->limit, is_new ? 2 : 0);
    job_expect(s, "SELECT rank FROM asked WHERE timestamp > 1 AND step = 4 AND rank < 9 LIMIT 2 OFFSET 1",
               "1\n2\n");
    assert_int_equal(w->limit, is_new ? 3 : 0);
    job_expect(s, "SELECT rank FROM asked LIMIT -1 OFFSET 19", "3\n");
    assert_int_equal(w->limit, 0);
    /* with any condition that is not given, rows may be left out behind the limit */
    static const char *const never[] = {
        "SELECT op FROM asked WHERE op LIKE 'op%' LIMIT 1",
        "SELECT op FROM asked WHERE step = 0 AND pid = 100 LIMIT 1",
        "SELECT op FROM asked WHERE op = 'op0' AND step = 0 LIMIT 1",
        "SELECT op FROM asked WHERE rank < 1.5 LIMIT 1",
        "SELECT op FROM asked WHERE pid = 100.0 LIMIT 1",
        "SELECT op FROM asked ORDER BY op LIMIT 1",
        "SELECT op FROM asked WHERE step = 0 OR rank = 2 ORDER BY 1 LIMIT 1",
        "SELECT min(op) FROM asked GROUP BY op ORDER BY 1 LIMIT 1",
        "SELECT DISTINCT op FROM asked LIMIT 1",
    };
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        job_expect(s, never[i], "op0\n");
        if (w->limit != 0)
            fail_msg("%s: a limit of %d was given", never[i], (int)w->limit);
    }
    sql_close(s);
}

/* A query that comes with other conditions gets the rows that they need, and those that it has are read to the
 * end. */
static void a_provider_is_asked_again_for_more(void **state) {
    (void)state;
    static const char *const joins[] = {
        "SELECT count(*) FROM asked a JOIN asked b ON b.step = a.step",
        "SELECT count(*) FROM asked a JOIN asked b ON b.rank = a.rank AND b.step = a.step + 1",
        "SELECT count(*) FROM asked a JOIN asked b ON b.timestamp BETWEEN a.timestamp - 2 AND a.timestamp",
        "SELECT count(*) FROM asked a, asked b WHERE a.rank = 1 AND b.rank = 2 AND a.op = b.op",
        ("SELECT (SELECT count(*) FROM asked WHERE timestamp > 1700000010), count(*) FROM asked"
         " WHERE timestamp > 1700000005"),
        "SELECT (SELECT op FROM asked LIMIT 1), count(*) FROM asked",
    };
    struct asked a, plain;
    struct sql_provider p = {.uses = SQL_USES_TIME | SQL_USES_RANK | SQL_USES_EQUAL | SQL_USES_LIMIT};
    struct sql_provider q = {.uses = 0};
    struct sql *s = asked_session(&a, &p), *t = asked_session(&plain, &q);
    static const char *const answers[] = {"80\n", "16\n", "57\n", "8\n", "9|14\n", "op0|20\n"};
    for (size_t i = 0; i < sizeof joins / sizeof joins[0]; i++) {
        a.calls = 0;
        job_expect(s, joins[i], answers[i]);
        if (a.calls < 1 || a.calls > 4)
            fail_msg("%s: asked %d times", joins[i], a.calls);
        plain.calls = 0;
        job_expect(t, joins[i], answers[i]);
        assert_true(plain.calls <= 2); /* it uses no conditions: only columns may be missing */
        assert_true(plain.wanted.min_us == INT64_MIN && plain.wanted.max_rank == INT64_MAX &&
                    plain.wanted.equal_column == -1 && plain.wanted.limit == 0);
    }
    sql_close(s);
    sql_close(t);
}

/* ---- what is refused ---- */

static void queries_only_read(void **state) {
    (void)state;
    struct sql *s = job_session(&job, 1, NAN);
    job_refused(s, "ATTACH '/tmp/x.db' AS x", "ATTACH is not allowed");
    job_refused(s, "DETACH python", "DETACH is not allowed");
    job_refused(s, "PRAGMA writable_schema = 1", "PRAGMA is not allowed");
    job_refused(s, "SELECT * FROM pragma_database_list", "not allowed");
    job_refused(s, "SELECT load_extension('/tmp/x.so')", "not allowed");
    job_refused(s, "CREATE TABLE x(a)",
                "to CREATE, ALTER or DROP anything but temporary tables is not allowed");
    job_refused(s, "CREATE TABLE python.x(a)", "not allowed");
    job_refused(s, "CREATE VIRTUAL TABLE temp.x USING probing_table(0)", "not allowed");
    job_refused(s, "DROP TABLE python.samples", "not allowed");
    job_refused(s, "INSERT INTO python.samples(tid) VALUES (1)", "");
    job_refused(s, "DELETE FROM python.samples", "");
    job_refused(s, "UPDATE python.samples SET tid = 1", "");
    job_refused(s, "INSERT INTO sqlite_master VALUES (1, 2, 3, 4, 5)", "");
    job_refused(s, "VACUUM INTO '/tmp/x.db'", "");
    job_refused(s, "BEGIN", "not allowed");
    job_refused(s, "ANALYZE", "not allowed");
    job_refused(s, "ALTER TABLE python.samples RENAME TO x", "");
    job_refused(s, "SELECT writefile('/tmp/x', 'y')", "no such function");
    job_refused(s, "SELECT * FROM probing_table", "");
    job_refused(s, "SELECT \"typo\" FROM python.samples", "no such column");
    job_expect(s,
               "CREATE TEMP TABLE mine AS SELECT tid, count(*) n FROM samples GROUP BY tid; INSERT INTO mine "
               "VALUES (1, 2);"
               "UPDATE mine SET n = 3 WHERE tid = 1; DELETE FROM mine WHERE tid > 1; CREATE INDEX temp.i ON "
               "mine(tid);"
               "SELECT * FROM mine; DROP TABLE mine",
               "1|3\n");
    job_expect(s, "SELECT count(*) FROM python.samples", "30000\n");
    sql_close(s);
}

static void errors_say_where(void **state) {
    (void)state;
    static const struct sql_query q;
    struct sql *s = job_session(NULL, 0, NAN);
    struct sql_error where;
    struct err e;
    assert_null(sql_begin(s, "SELECT 1,\n  interval 'x'", &q, NULL, &where, &e));
    assert_int_equal(where.at, 12);
    assert_non_null(strstr(e.text, "(line 2, column 3)"));
    assert_null(sql_begin(s, "SELECT interval '5 minutes',\n  nope FROM samples", &q, NULL, &where, &e));
    if (where.at >= 0) { /* SQLite 3.38 and later tell */
        assert_int_equal(where.at, 31);
        assert_non_null(strstr(e.text, "(line 2, column 3)"));
    }
    assert_non_null(strstr(e.text, "no such column: nope"));
    assert_null(sql_begin(s, "SELEC 1", &q, NULL, &where, &e));
    assert_non_null(strstr(e.text, "syntax error"));
    assert_null(sql_begin(s, "SELECT 'abc", &q, NULL, &where, &e));
    assert_int_equal(e.code, ERR_FAILED);
    assert_null(sql_begin(s, "  -- nothing\n ; /* at all */", &q, NULL, &where, &e));
    assert_int_equal(e.code, ERR_OK);
    sql_close(s);
}

/* ---- what ends a query ---- */

#define ENDLESS "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

static void time_and_rows_are_limited(void **state) {
    (void)state;
    struct sql *s = job_session(&job, 1, NAN);
    struct sql_query q = {.timeout_s = 0.05};
    struct err e;
    static const char *const slow[] = {
        ENDLESS,
        "SELECT count(*) FROM samples a, samples b, samples c WHERE a.timestamp + b.timestamp < c.tid"};
    for (size_t i = 0; i < 2; i++) {
        struct sql_result *r = sql_begin(s, slow[i], &q, NULL, NULL, &e);
        assert_non_null(r);
        assert_int_equal(sql_next(r, &e), -1);
        assert_non_null(strstr(e.text, "timed out after 0.05 s"));
        sql_end(r);
    }
    q = (struct sql_query){.max_rows = 3};
    struct sql_result *r = sql_begin(s, "SELECT tid FROM samples", &q, NULL, NULL, &e);
    for (int i = 0; i < 3; i++)
        assert_int_equal(sql_next(r, &e), 1);
    assert_false(sql_result_truncated(r));
    assert_int_equal(sql_next(r, &e), 0);
    assert_true(sql_result_truncated(r));
    assert_int_equal(sql_result_rows(r), 3);
    assert_int_equal(sql_next(r, &e), 0);
    assert_null(sql_begin(s, "SELECT 1", &q, NULL, NULL, &e));
    assert_non_null(strstr(e.text, "a query is running"));
    sql_end(r);
    r = sql_begin(s, "SELECT tid FROM samples LIMIT 3", &q, NULL, NULL, &e);
    while (sql_next(r, &e) == 1)
        ;
    assert_false(sql_result_truncated(r));
    sql_end(r);
    sql_close(s);
}

/* The first value of a statement that comes again, as a number. */
static double again(struct sql *s, const char *text, double x) {
    const struct sql_named named[] = {{":x", x}};
    struct sql_query q = {.named = named, .n_named = isnan(x) ? 0 : 1, .again = true};
    struct err e;
    struct sql_result *r = sql_begin(s, text, &q, NULL, NULL, &e);
    double value = NAN;
    if (r && sql_next(r, &e) == 1 && sql_result_kind(r, 0) != SQL_NULL)
        value = sql_result_real(r, 0);
    sql_end(r);
    return value;
}

static void a_statement_that_stays_prepared_is_like_a_new_one(void **state) {
    (void)state;
    static const char rows[] = "SELECT count(*) FROM temp.t WHERE x < :x";
    struct sql *s = job_session(&job, 1, NAN);
    struct err e;
    char text[64];
    assert_true(isnan(again(s, rows, 9))); /* no such table */
    for (int round = 0; round < 3; round++) {
        assert_int_equal(sql_execute(s, "CREATE TEMP TABLE t(x)"), 0);
        for (int i = 1; i <= 3; i++) {
            assert_true(isnan(again(s, "INSERT INTO temp.t VALUES(:x)", i)));
            assert_true(again(s, rows, 9) == i);
        }
        assert_true(again(s, rows, 2) == 1);
        assert_true(again(s, rows, NAN) == 0); /* what was bound before is gone */
        assert_true(isnan(again(s, "SELECT :x", NAN)));
        assert_true(again(s, "SELECT :x", 7) == 7);
        /* another table of that name, with other columns */
        assert_int_equal(sql_execute(s, "DROP TABLE temp.t"), 0);
        assert_true(isnan(again(s, rows, 9)));
        assert_int_equal(sql_execute(s, "CREATE TEMP TABLE t(y, x)"), 0);
        assert_true(again(s, rows, 9) == 0);
        assert_int_equal(sql_execute(s, "DROP TABLE temp.t"), 0);
    }
    /* other moments, and tables of the target */
    sql_set_now(s, 5);
    assert_true(again(s, "SELECT now()", NAN) == 5);
    sql_set_now(s, 6);
    assert_true(again(s, "SELECT now()", NAN) == 6);
    for (int i = 0; i < 2; i++)
        assert_true(again(s, "SELECT count(*) FROM samples", NAN) == ROWS);
    /* one that has failed, or was left before its end */
    struct sql_query q = {.again = true};
    for (int i = 0; i < 2; i++) {
        q.timeout_s = 0.02;
        struct sql_result *r = sql_begin(s, ENDLESS, &q, NULL, NULL, &e);
        assert_int_equal(sql_next(r, &e), -1);
        sql_end(r);
        q.timeout_s = 0;
        r = sql_begin(s, "SELECT tid FROM samples", &q, NULL, NULL, &e);
        assert_int_equal(sql_next(r, &e), 1);
        sql_end(r);
    }
    /* what is not allowed stays so; the rest of a text is not lost */
    assert_null(sql_begin(s, "PRAGMA user_version", &q, NULL, NULL, &e));
    for (int i = 0; i < 2; i++) {
        const char *tail = NULL;
        struct sql_result *r = sql_begin(s, "SELECT 1; SELECT 2", &q, &tail, NULL, &e);
        sql_end(r);
        assert_string_equal(tail, " SELECT 2");
    }
    /* far more than are kept */
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 400; i++) {
            snprintf(text, sizeof text, "SELECT %d + :x", i);
            assert_true(again(s, text, 1) == i + 1);
        }
    sql_close(s);
}

static void *interrupt_soon(void *arg) {
    usleep(20000);
    sql_interrupt(arg);
    return NULL;
}

static void another_thread_can_interrupt(void **state) {
    (void)state;
    static const struct sql_query q;
    struct sql *s = job_session(&job, 1, NAN);
    struct err e;
    pthread_t thread;
    struct sql_result *r = sql_begin(s, ENDLESS, &q, NULL, NULL, &e);
    assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, s), 0);
    assert_int_equal(sql_next(r, &e), -1);
    assert_non_null(strstr(e.text, "interrupted"));
    sql_end(r);
    pthread_join(thread, NULL);
    job_expect(s, "SELECT 1", "1\n");
    sql_close(s);
}

static void files_that_cannot_be_read_are_named(void **state) {
    (void)state;
    struct job bad;
    char path[128];
    job_make(&bad, 1, 0);
    (void)snprintf(path, sizeof path, "%s/python.samples.ring", bad.dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("rubbish", f);
    fclose(f);
    put_row(job_table(&bad, &job_gpu_metrics, 65536), (union ring_value[]){{.f = T0}, {.f = 97}});
    struct sql *s = job_session(&bad, 1, NAN);
    assert_non_null(strstr(sql_note(s), "python.samples.ring: not a ring table"));
    job_expect(s, "SELECT gpu_util FROM gpu_metrics", "97.0\n");
    job_expect(s, "SELECT count(*) FROM samples", "0\n");
    sql_close(s);
    struct err e;
    struct sql_target gone = {.ring_dir = "/nonexistent", .owner = geteuid()};
    s = sql_open(&e);
    assert_int_equal(sql_add_target(s, &gone, &e), -1);
    assert_non_null(strstr(e.text, "/nonexistent"));
    sql_close(s);
    job_remove(&bad);
}

static void tables_describe_themselves(void **state) {
    (void)state;
    struct sql *s = job_session(&job, 1, NAN);
    bool seen = false;
    const char *last = "";
    for (size_t i = 0; i < sql_table_count(s); i++) {
        struct sql_table_info t;
        sql_table_info(s, i, &t);
        assert_true(strcmp(last, t.name) < 0);
        last = t.name;
        assert_true(t.help[0] != '\0' && t.n_columns > 0);
        for (size_t k = 0; k < t.n_columns; k++)
            assert_true(t.columns[k].help[0] != '\0');
        if (strcmp(t.name, "python.samples") == 0) {
            seen = true;
            assert_int_equal(t.rows, ROWS);
            assert_true(fabs(t.oldest - T0) < 1e-5 && fabs(t.newest - (T0 + (ROWS - 1) * 0.01)) < 1e-5);
            assert_true(t.cost == RING_COST_BACKGROUND && t.bytes > 0);
        }
    }
    assert_true(seen);
    assert_true(fabs(sql_newest(s) - (T0 + (ROWS - 1) * 0.01)) < 1e-5);
    sql_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_are_there_without_a_target),
        cmocka_unit_test(rows_have_names_types_and_an_origin),
        cmocka_unit_test(conditions_leave_out_what_they_should),
        cmocka_unit_test(joins_are_right),
        cmocka_unit_test(many_targets_are_a_union_whose_ids_do_not_meet),
        cmocka_unit_test(files_that_come_later_and_unknown_tables_are_shown),
        cmocka_unit_test(files_do_not_replace_what_the_client_makes),
        cmocka_unit_test(files_do_not_take_the_names_of_others),
        cmocka_unit_test(hosts_are_compared_as_asked),
        cmocka_unit_test(every_seed_query_runs),
        cmocka_unit_test(a_provider_is_asked_once_a_query),
        cmocka_unit_test(a_provider_is_given_the_conditions),
        cmocka_unit_test(sets_of_ranks_and_limits_are_given),
        cmocka_unit_test(a_provider_is_asked_again_for_more),
        cmocka_unit_test(queries_only_read),
        cmocka_unit_test(errors_say_where),
        cmocka_unit_test(time_and_rows_are_limited),
        cmocka_unit_test(a_statement_that_stays_prepared_is_like_a_new_one),
        cmocka_unit_test(another_thread_can_interrupt),
        cmocka_unit_test(files_that_cannot_be_read_are_named),
        cmocka_unit_test(tables_describe_themselves),
    };
    return cmocka_run_group_tests(tests, make_jobs, remove_jobs);
}
