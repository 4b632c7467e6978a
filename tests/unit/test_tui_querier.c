/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that runs queries: results, errors with their place, cancelling, limits, exports, lines with %. On tables that a job has left. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "client/sql/saved.h"
#include "tui/workers/querier.h"
#include "unit/store_job.h"

#define T0 1700000000.0
#define LONGEST_MS 120000

struct place {
    struct job job;
    struct target_address address;
    struct querier *querier;
};

static void close_table(const struct job *j, enum ring_table table) {
    struct ring *r = job_table(j, &RING_TABLES[table], 1 << 18);
    ring_close(r);
}

static int set_up(void **state) {
    static struct place p;
    struct err e;
    memset(&p, 0, sizeof p);
    job_make(&p.job, 4711, 3);
    job_samples(&p.job, T0, 3000);
    close_table(&p.job, RING_GC);
    (void)snprintf(p.address.recorded, sizeof p.address.recorded, "%s", p.job.dir);
    p.querier = querier_new(&p.address, &e);
    *state = &p;
    return p.querier ? 0 : -1;
}

static int tear_down(void **state) {
    struct place *p = *state;
    querier_free(p->querier);
    job_remove(&p->job);
    return 0;
}

static struct querier_answer wait_for(struct querier *q) {
    struct querier_answer answer;
    struct pollfd p = {.fd = querier_fd(q), .events = POLLIN};
    memset(&answer, 0, sizeof answer);
    assert_int_equal(poll(&p, 1, LONGEST_MS), 1);
    assert_true(querier_take(q, &answer));
    assert_false(querier_is_busy(q));
    return answer;
}

static struct querier_answer run(struct querier *q, const char *text) {
    struct err e;
    assert_int_equal(querier_run(q, text, &e), 0);
    return wait_for(q);
}

static void test_rows(void **state) {
    struct place *p = *state;
    struct querier_answer a =
        run(p->querier, "SELECT 1; SELECT count(*) AS n, 5, 5 FROM python.samples; -- done");
    char text[64];
    assert_int_equal(a.error.code, ERR_OK);
    assert_int_equal(a.statements, 2);
    assert_non_null(a.rows);
    result_text(a.rows, 0, 0, text, sizeof text);
    assert_string_equal(text, "3000");
    assert_string_equal(a.rows->columns[1].name, "5");
    assert_string_equal(a.rows->columns[2].name, "5:2");
    assert_true(a.is_past && !a.truncated && !a.cancelled);
    assert_non_null(a.catalog);
    const struct catalog_table *t = catalog_find(a.catalog, "python.samples", 14);
    assert_int_equal(t->rows, 3000);
    querier_answer_fini(&a);
    a = run(p->querier, "CREATE TEMP TABLE t AS SELECT 1 AS x;");
    assert_true(a.error.code == ERR_OK && !a.rows);
    querier_answer_fini(&a);
    a = run(p->querier, "SELECT x FROM t;"); /* it is there still */
    assert_true(a.rows && a.rows->n_rows == 1);
    querier_answer_fini(&a);
}

static void test_errors(void **state) {
    struct place *p = *state;
    struct querier_answer a = run(p->querier, "SELECT 1;\nSELECT nosuch FROM python.samples;");
    assert_string_equal(a.error.text, "no such column: nosuch (line 2, column 8)");
    assert_int_equal(a.error_at, 17);
    assert_null(a.rows);
    querier_answer_fini(&a);
    a = run(p->querier, "DELETE FROM python.samples;");
    assert_true(a.error.code != ERR_OK);
    querier_answer_fini(&a);
    a = run(p->querier, " -- nothing\n");
    assert_non_null(strstr(a.error.text, "no statement"));
    querier_answer_fini(&a);
    a = run(p->querier, "SELECT interval 'x';");
    assert_int_equal(a.error_at, 7);
    querier_answer_fini(&a);
}

static const char endless[] =
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n;";

static void test_cancel(void **state) {
    struct place *p = *state;
    struct err e;
    for (int i = 0; i < 20; i++) { /* at once, too: before it has begun */
        assert_int_equal(querier_run(p->querier, endless, &e), 0);
        assert_true(querier_is_busy(p->querier));
        assert_int_equal(querier_run(p->querier, "SELECT 1;", &e), -1);
        assert_non_null(strstr(e.text, "a query runs"));
        if (i % 2) {
            struct pollfd pause = {.fd = querier_fd(p->querier), .events = POLLIN};
            assert_int_equal(poll(&pause, 1, i), 0);
        }
        querier_cancel(p->querier);
        struct querier_answer a = wait_for(p->querier);
        assert_true(a.cancelled && !a.rows);
        querier_answer_fini(&a);
        a = run(p->querier, "SELECT 1;");
        assert_true(a.error.code == ERR_OK && a.rows && !a.cancelled);
        querier_answer_fini(&a);
    }
}

/* A query that runs does not keep the program from ending. */
/* A line with %, at work. */
static struct querier_answer look(struct querier *q, const char *line, int cols, bool cancel) {
    struct wire_eval want = {.timeout_s = 1};
    struct magic m;
    struct err e;
    assert_int_equal(magic_read(&m, line, &want, &e), 0);
    assert_int_equal(querier_do(q, &m, cols, &e), 0);
    if (cancel)
        querier_cancel(q);
    return wait_for(q);
}

static void test_lines_with_percent(void **state) {
    struct place *p = *state;
    struct querier_answer a = look(p->querier, "%q SELECT count(*) AS n FROM python.samples", 0, false);
    struct magic m;
    struct err e;
    char line[sizeof endless + 8];
    assert_int_equal(a.error.code, ERR_OK);
    assert_int_equal(a.kind, QUERIER_MAGIC);
    assert_non_null(strstr(strbuf_str(&a.text), "   n\n----\n3000\n(1 row, "));
    querier_answer_fini(&a);
    a = look(p->querier, "%q SELECT 'one two three four' AS said, 'five six seven' AS then_", 24, false);
    assert_non_null(strstr(strbuf_str(&a.text), "one two t\xe2\x80\xa6 | five six \xe2\x80\xa6\n"));
    querier_answer_fini(&a);
    a = look(p->querier, "%q SELECT nosuch", 0, false);
    assert_non_null(strstr(a.error.text, "no such column: nosuch"));
    querier_answer_fini(&a);
    a = look(p->querier, "%q -- nothing", 0, false);
    assert_non_null(strstr(a.error.text, "no statement"));
    querier_answer_fini(&a);
    (void)snprintf(line, sizeof line, "%%q %s", endless);
    a = look(p->querier, line, 0, true);
    assert_true(a.cancelled);
    querier_answer_fini(&a);
    a = look(p->querier, "%bt", 0, true);
    assert_true(a.cancelled);
    querier_answer_fini(&a);
    /* One thing at a time; a line that is not taken is given back all the same. */
    struct wire_eval want = {.timeout_s = 1};
    assert_int_equal(querier_run(p->querier, endless, &e), 0);
    assert_int_equal(magic_read(&m, "%q SELECT 1", &want, &e), 0);
    assert_int_equal(querier_do(p->querier, &m, 0, &e), -1);
    assert_non_null(strstr(e.text, "ctrl-c ends it"));
    querier_cancel(p->querier);
    a = wait_for(p->querier);
    querier_answer_fini(&a);
}

static void test_end_while_it_runs(void **state) {
    struct place *p = *state;
    struct err e;
    assert_int_equal(querier_run(p->querier, endless, &e), 0);
    querier_free(p->querier);
    p->querier = NULL;
}

static void test_limits(void **state) {
    struct place *p = *state;
    struct querier_answer a =
        run(p->querier, "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n;");
    assert_int_equal(a.error.code, ERR_OK);
    assert_true(a.truncated && a.rows->n_rows == QUERIER_MAX_ROWS);
    querier_answer_fini(&a);
    a = run(p->querier, "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n;"
                        "CREATE TEMP TABLE t AS SELECT 1;"); /* the rows are still those of the first one */
    assert_true(a.truncated && a.rows->n_rows == QUERIER_MAX_ROWS && a.statements == 2);
    querier_answer_fini(&a);
    a = run(p->querier, "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
                        "SELECT x, hex(zeroblob(5000)) FROM n;");
    assert_true(a.truncated && a.rows->n_rows > 1000 && a.rows->n_rows < QUERIER_MAX_ROWS);
    assert_true(a.rows->bytes <= QUERIER_MAX_BYTES);
    querier_answer_fini(&a);
}

/* Names for the window that the screens show. */
static void test_window(void **state) {
    struct place *p = *state;
    struct querier_answer a = run(p->querier, "SELECT :from, :to, :other;");
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(a.rows->columns[i].kinds[0], SQL_NULL);
    querier_answer_fini(&a);
    querier_set_window(p->querier, 1700000000.25, 1700000001);
    a = run(p->querier, "SELECT :to - :from, ':from', :other; SELECT :from < :to;");
    assert_int_equal(a.statements, 2);
    assert_true(a.rows->columns[0].values[0].i == 1);
    querier_answer_fini(&a);
    a = run(p->querier, "SELECT :to - :from, ':from', :other;");
    assert_true(a.rows->columns[0].values[0].f == 0.75);
    assert_string_equal(a.rows->columns[1].values[0].s, ":from");
    assert_int_equal(a.rows->columns[2].kinds[0], SQL_NULL);
    querier_answer_fini(&a);
}

static void test_saved_queries(void **state) {
    struct place *p = *state;
    for (const struct saved_query *q = saved_queries; q->name; q++) {
        struct querier_answer a = run(p->querier, q->sql);
        if (strstr(q->sql, "FROM python.backtrace") || strstr(q->sql, "FROM python.threads") ||
            strstr(q->sql, "FROM system.threads ") ||
            strstr(q->sql, "FROM gpu_processes")) { /* nobody is there to ask: tested on a living job */
            querier_answer_fini(&a);
            continue;
        }
        if (a.error.code != ERR_OK)
            print_error("%s: %s\n", q->name, a.error.text);
        assert_int_equal(a.error.code, ERR_OK);
        assert_int_equal(a.statements, 1);
        assert_non_null(a.rows);
        if (strcmp(q->name, "hot functions") == 0) {
            assert_true(a.rows->n_rows > 0);
            assert_string_equal(a.rows->columns[0].values[0].s, "f1"); /* it is in every stack */
        }
        querier_answer_fini(&a);
    }
    struct result *list = saved_list("");
    assert_true(list && list->n_rows >= 12);
    result_unref(list);
}

static void read_file(const char *path, struct strbuf *out) {
    strbuf_init(out, 1 << 20);
    assert_int_equal(strbuf_read_file(out, path), 0);
}

static void test_export(void **state) {
    struct place *p = *state;
    struct err e;
    struct strbuf text;
    struct querier_answer a = run(p->querier, "VALUES (1, 'a,b', NULL), (2, 'c', 0.5);");
    for (int i = 0; i < 3; i++) {
        static const char *const formats[] = {"csv", "ndjson", "json"};
        struct querier_export x = {
            .rows = result_ref(a.rows), .order = calloc(2, sizeof(uint32_t)), .n_order = 2};
        x.hidden = calloc(3, 1);
        x.order[0] = 1;
        x.hidden[2] = i == 0;
        (void)snprintf(x.format, sizeof x.format, "%s", formats[i]);
        (void)snprintf(x.path, sizeof x.path, "%s/out", p->job.dir);
        char path[sizeof x.path];
        (void)snprintf(path, sizeof path, "%s", x.path);
        assert_int_equal(querier_write(p->querier, &x, &e), 0);
        struct querier_answer done = wait_for(p->querier);
        assert_int_equal(done.error.code, ERR_OK);
        assert_int_equal(done.exported, 2);
        querier_answer_fini(&done);
        read_file(path, &text);
        if (i == 0)
            assert_string_equal(strbuf_str(&text), "column1,column2\n2,c\n1,\"a,b\"\n");
        else if (i == 1)
            assert_string_equal(strbuf_str(&text), "{\"column1\":2,\"column2\":\"c\",\"column3\":0.5}\n"
                                                   "{\"column1\":1,\"column2\":\"a,b\",\"column3\":null}\n");
        else
            assert_non_null(strstr(strbuf_str(&text), "\"schema_version\""));
        strbuf_fini(&text);
        assert_int_equal(unlink(path), 0);
    }
    struct querier_export bad = {.rows = result_ref(a.rows), .format = "csv", .path = "/nowhere/at/all.csv"};
    assert_int_equal(querier_write(p->querier, &bad, &e), 0);
    struct querier_answer done = wait_for(p->querier);
    assert_true(done.error.code != ERR_OK);
    assert_non_null(strstr(done.error.text, "/nowhere/at/all.csv"));
    querier_answer_fini(&done);
    querier_answer_fini(&a);
}

static void test_without_a_target(void **state) {
    struct err e;
    struct querier *q = querier_new(NULL, &e);
    (void)state;
    assert_int_equal(querier_list_tables(q, &e), 0);
    struct querier_answer a = wait_for(q);
    assert_true(a.error.code == ERR_OK && a.catalog && !a.rows);
    querier_answer_fini(&a);
    a = run(q, "SELECT count(*) FROM python.samples;");
    assert_int_equal(a.rows->columns[0].values[0].i, 0);
    querier_answer_fini(&a);
    querier_free(q);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_errors, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cancel, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_lines_with_percent, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_end_while_it_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_limits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_window, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_saved_queries, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_export, set_up, tear_down),
        cmocka_unit_test(test_without_a_target),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
