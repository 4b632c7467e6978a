/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind the SQL screen: results in memory, their figures, the history of queries, completion. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/sql/catalog.h"
#include "client/history.h"
#include "client/sql/result.h"
#include "client/sql/result_stats.h"
#include "client/sql/sql_complete.h"
#include "store/ring/ring_tables.h"

/* ---- results ---- */

/* Column "x": numbers, one NULL, one text. */
static struct result *some_rows(void) {
    static const double numbers[] = {3, 1, 2, 2};
    struct result *r = result_new(2, 100, 1 << 20);
    assert_non_null(r);
    assert_int_equal(result_name_column(r, 0, "x", ""), 0);
    assert_int_equal(result_name_column(r, 1, "name", "text"), 0);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(result_add_row(r), 0);
        result_put_real(r, 0, numbers[i]);
        assert_int_equal(result_put_text(r, 1, SQL_TEXT, "row\0x", 5), 0);
    }
    assert_int_equal(result_add_row(r), 0);
    assert_int_equal(result_add_row(r), 0);
    assert_int_equal(result_put_text(r, 0, SQL_TEXT, "ten", 3), 0);
    return r;
}

static void test_result_values(void **state) {
    struct result *r = some_rows();
    char text[64];
    struct strbuf whole;
    (void)state;
    assert_int_equal(r->n_rows, 6);
    assert_int_equal(result_kind(r, 4, 0), SQL_NULL);
    result_text(r, 4, 0, text, sizeof text);
    assert_string_equal(text, "NULL");
    assert_int_equal(result_length(r, 0, 1), 5);
    result_text(r, 5, 0, text, 3);
    assert_string_equal(text, "te");
    result_put_real(r, 1, 0.1);
    strbuf_init(&whole, 1000);
    result_put_whole(r, 5, 1, &whole);
    assert_string_equal(strbuf_str(&whole), "0.1");
    strbuf_fini(&whole);
    result_put_real(r, 1, NAN);
    assert_int_equal(result_kind(r, 5, 1), SQL_NULL);
    assert_false(result_is_numeric(r, 0));
    result_unref(r);
}

static void test_result_times(void **state) {
    struct result *r = result_new(1, 10, 1 << 20);
    char text[64];
    (void)state;
    assert_int_equal(result_name_column(r, 0, "t", "timestamp"), 0);
    assert_int_equal(result_add_row(r), 0);
    result_put_real(r, 0, 1700000000.25);
    result_text(r, 0, 0, text, sizeof text);
    assert_string_equal(text, "2023-11-14 22:13:20.250");
    result_put_real(r, 0, 1e300);
    result_text(r, 0, 0, text, sizeof text);
    assert_string_equal(text, "1e+300");
    result_unref(r);
}

static void test_result_sort(void **state) {
    struct result *r = some_rows();
    uint32_t order[6];
    static const uint32_t up[] = {1, 2, 3, 0, 5, 4}, down[] = {5, 0, 2, 3, 1, 4};
    (void)state;
    assert_int_equal(result_sort(r, 0, false, order), 0);
    assert_memory_equal(order, up, sizeof up);
    assert_int_equal(result_sort(r, 0, true, order), 0);
    assert_memory_equal(order, down, sizeof down); /* NULL is last here too; equal ones as they came */
    result_unref(r);
}

static void test_result_limits(void **state) {
    struct result *r = result_new(1, 3, 1 << 20);
    char *big = calloc(1, 300000);
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(result_add_row(r), 0);
    assert_false(r->full);
    assert_int_equal(result_add_row(r), -1);
    assert_true(r->full && r->n_rows == 3);
    result_unref(r);
    r = result_new(1, 1000, 200000);
    memset(big, 'x', 299999);
    assert_int_equal(result_add_row(r), 0);
    assert_int_equal(result_put_text(r, 0, SQL_TEXT, big, 299999), -1);
    assert_true(r->full && r->n_rows == 0 && r->bytes <= 200000);
    result_unref(r);
    free(big);
}

/* A million rows are put in order, and looked through, while one waits for a key. */
static void test_result_large(void **state) {
    size_t n = 1000000;
    struct result *r = result_new(1, n, 64 << 20);
    uint32_t *order = calloc(n, sizeof *order);
    uint64_t x = 1;
    (void)state;
    for (size_t i = 0; i < n; i++) {
        x = x * 6364136223846793005ULL + 1442695040888963407ULL;
        assert_int_equal(result_add_row(r), 0);
        result_put_int(r, 0, (int64_t)(x >> 40));
    }
    assert_int_equal(result_sort(r, 0, true, order), 0);
    for (size_t i = 1; i < n; i++)
        assert_true(r->columns[0].values[order[i - 1]].i >= r->columns[0].values[order[i]].i);
    free(order);
    result_unref(r);
}

static const char *statistic(const struct result *r, const char *name) {
    static char text[64];
    for (size_t i = 0; i < r->n_rows; i++)
        if (strcmp(r->columns[0].values[i].s, name) == 0) {
            result_text(r, i, 1, text, sizeof text);
            return text;
        }
    return "none";
}

static void test_describe(void **state) {
    struct result *r = some_rows(), *d = result_describe(r, 0);
    (void)state;
    assert_non_null(d);
    assert_string_equal(statistic(d, "rows"), "6");
    assert_string_equal(statistic(d, "nulls"), "1");
    assert_string_equal(statistic(d, "distinct"), "4");
    assert_string_equal(statistic(d, "min"), "1");
    assert_string_equal(statistic(d, "max"), "ten");
    assert_string_equal(statistic(d, "mean"), "2");
    assert_string_equal(statistic(d, "median"), "2");
    assert_string_equal(statistic(d, "75 %"), "2.25");
    assert_string_equal(statistic(d, "stddev"), "0.816497");
    result_unref(d);
    struct result *f = result_frequency(r, 0);
    assert_non_null(f);
    assert_int_equal(f->n_rows, 5);
    assert_int_equal(f->columns[1].values[0].i, 2);
    assert_true(f->columns[0].values[0].f == 2);
    result_unref(f);
    result_unref(r);
    r = result_new(1, 1, 1 << 16); /* nothing in it */
    d = result_describe(r, 0);
    f = result_frequency(r, 0);
    assert_string_equal(statistic(d, "rows"), "0");
    assert_string_equal(statistic(d, "mean"), "none");
    assert_int_equal(f->n_rows, 0);
    result_unref(d);
    result_unref(f);
    result_unref(r);
}

/* ---- history ---- */

struct place {
    char dir[64], path[128];
};

static int make_place(void **state) {
    static struct place p;
    (void)snprintf(p.dir, sizeof p.dir, "/tmp/test_history.XXXXXX");
    if (!mkdtemp(p.dir))
        return -1;
    (void)snprintf(p.path, sizeof p.path, "%s/history", p.dir);
    *state = &p;
    return 0;
}

static int drop_place(void **state) {
    struct place *p = *state;
    (void)unlink(p->path);
    (void)rmdir(p->dir);
    return 0;
}

static void test_history_is_kept(void **state) {
    const struct place *p = *state;
    struct history h;
    struct err e;
    struct stat st;
    assert_int_equal(history_open(&h, p->path, &e), 0);
    assert_int_equal(history_add(&h, "SELECT 1;", &e), 0);
    assert_int_equal(history_add(&h, "SELECT 'a\\n'\nFROM t;", &e), 0);
    assert_int_equal(history_add(&h, "SELECT 'a\\n'\nFROM t;", &e), 0); /* once is enough */
    assert_int_equal(history_add(&h, " \n", &e), 0);
    history_fini(&h);
    assert_int_equal(stat(p->path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(history_open(&h, p->path, &e), 0);
    assert_int_equal(h.n, 2);
    assert_string_equal(h.entries[0], "SELECT 1;");
    assert_string_equal(h.entries[1], "SELECT 'a\\n'\nFROM t;");
    assert_int_equal(history_find(&h, "select 1", h.n), 0);
    assert_int_equal(history_find(&h, "SELECT", h.n), 1);
    assert_int_equal(history_find(&h, "SELECT", 1), 0);
    assert_int_equal(history_find(&h, "nothing", h.n), -1);
    history_fini(&h);
}

/* Two programs at once: each keeps what the other wrote, and sees it when it writes. */
static void test_history_of_two(void **state) {
    const struct place *p = *state;
    struct history a, b;
    struct err e;
    char text[64];
    assert_int_equal(history_open(&a, p->path, &e), 0);
    assert_int_equal(history_open(&b, p->path, &e), 0);
    for (int i = 0; i < 20; i++) {
        (void)snprintf(text, sizeof text, "SELECT %d;", i);
        assert_int_equal(history_add(i % 2 ? &a : &b, text, &e), 0);
    }
    assert_int_equal(a.n, 20);
    assert_int_equal(b.n, 19);
    history_fini(&b);
    assert_int_equal(history_open(&b, p->path, &e), 0);
    assert_int_equal(b.n, 20);
    for (int i = 0; i < 20; i++)
        assert_string_equal(a.entries[i], b.entries[i]);
    history_fini(&a);
    history_fini(&b);
}

static void test_history_is_bounded(void **state) {
    const struct place *p = *state;
    struct history h;
    struct err e;
    struct stat st;
    char *text = calloc(1, 40001);
    memset(text, 'x', 40000);
    assert_int_equal(history_open(&h, p->path, &e), 0);
    for (int i = 0; i < 80; i++) {
        text[0] = (char)('A' + i % 26);
        assert_int_equal(history_add(&h, text, &e), 0);
        assert_true(h.bytes <= HISTORY_MAX_BYTES);
    }
    assert_int_equal(stat(p->path, &st), 0);
    assert_true(st.st_size <= (off_t)(3 * HISTORY_MAX_BYTES));
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(h.entries[h.n - 1][0], text[0]);
    history_fini(&h);
    free(text);
}

static void write_bytes(const char *path, const char *bytes, size_t n) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* A line that was cut by a full disk, bytes that are no text, no file at all: what can be used is used. */
static void test_history_bad_files(void **state) {
    static const char bytes[] = "SELECT 1;\n\n\377\376\n\0\\\nSELECT 2";
    const struct place *p = *state;
    struct history h;
    struct err e;
    write_bytes(p->path, bytes, sizeof bytes - 1);
    assert_int_equal(history_open(&h, p->path, &e), 0);
    assert_string_equal(h.entries[h.n - 1], "SELECT 2");
    assert_int_equal(history_add(&h, "SELECT 3;", &e), 0);
    assert_string_equal(h.entries[h.n - 2], "SELECT 2");
    history_fini(&h);
    assert_int_equal(history_open(&h, p->path, &e), 0);
    assert_string_equal(h.entries[h.n - 1], "SELECT 3;");
    history_fini(&h);
    assert_int_equal(unlink(p->path), 0);
    assert_int_equal(symlink("/etc/passwd", p->path), 0);
    assert_int_equal(history_open(&h, p->path, &e), -1);
    assert_non_null(strstr(e.text, "not saved"));
    assert_int_equal(history_add(&h, "SELECT 4;", &e), 0); /* in memory */
    assert_int_equal(h.n, 1);
    history_fini(&h);
}

/* ---- completion ---- */

/* What is offered at the | of a text: all of it, with blanks between. */
static void offered(const char *text, char *out, size_t cap, size_t most) {
    char sql[512];
    struct catalog *c = catalog_of_definitions();
    struct sql_completion done;
    assert_non_null(c);
    size_t cursor = strcspn(text, "|");
    (void)snprintf(sql, sizeof sql, "%.*s%s", (int)cursor, text, text[cursor] ? text + cursor + 1 : "");
    assert_int_equal(sql_complete(&done, c, sql, cursor), 0);
    out[0] = '\0';
    for (size_t i = 0; i < done.n && i < most; i++) {
        size_t used = strlen(out);
        (void)snprintf(out + used, cap - used, "%s%s", used ? " " : "", done.items[i].text);
    }
    sql_complete_fini(&done);
    catalog_free(c);
}

static void assert_offered(const char *text, const char *want) {
    char got[4096];
    size_t most = 1;
    for (const char *p = want; *p; p++)
        most += *p == ' ';
    offered(text, got, sizeof got, strstr(want, " ...") ? most - 1 : 1000);
    char cut[4096];
    (void)snprintf(cut, sizeof cut, "%s", want);
    if (strstr(cut, " ..."))
        *strstr(cut, " ...") = '\0';
    assert_string_equal(got, cut);
}

static void test_complete_tables(void **state) {
    (void)state;
    assert_offered("SELECT * FROM python.sa|", "samples");
    assert_offered("SELECT * FROM sam|", "python.samples");
    assert_offered("select * from mem|",
                   "memory_allocations memory_usage python.gpu_memory python.memory python.memory_growth");
    assert_offered("SELECT * FROM system.|", "process process_history threads threads_history");
    assert_offered("SELECT * FROM python.samples s JOIN python.st|", "stacks steps tensor_statistics");
    assert_offered("SELECT * FROM python.samples, python.ga|", "");
    assert_offered("SELECT * FROM python.samples, python.g|",
                   "gc gpu_blocks gpu_memory memory_growth process_groups tensor_growth");
    assert_offered("SELECT 1; SELECT * FROM probing.st|", "status");
    assert_offered("SELECT * FROM (SELECT tid FROM python.backt|", "backtrace");
}

static void test_complete_columns(void **state) {
    (void)state;
    assert_offered("SELECT sta| FROM python.samples", "stack_id timestamp");
    assert_offered("SELECT s.ti| FROM python.samples s", "timestamp tid");
    assert_offered("SELECT s.ti| FROM python.samples AS s", "timestamp tid");
    assert_offered("SELECT samples.ti| FROM python.samples", "timestamp tid");
    assert_offered("SELECT * FROM python.gc WHERE dur|", "duration_ms");
    assert_offered(
        "SELECT * FROM python.gc WHERE | ",
        "timestamp generation duration_ms collected step collections uncollectable rank host pid ...");
    assert_offered("SELECT * FROM python.stacks s JOIN python.frames f ON s.frame_id = f.fr|", "frame_id");
    assert_offered("SELECT python.samples.to| FROM python.samples", "torn");
    assert_offered("SELECT coll|", "collected collections collate uncollectable");
}

static void test_complete_words(void **state) {
    (void)state;
    assert_offered("|", "EXPLAIN QUERY PLAN SELECT VALUES WITH");
    assert_offered("sel|", "select");
    assert_offered("SELECT 1;\nwi|", "with");
    assert_offered("SELECT medi|", "median(");
    assert_offered("SELECT no|", "nonfinite now() not ...");
    assert_offered("SELECT count(*) FROM python.gc GR|", "GROUP");
    assert_offered("SELECT 'sta| FROM python.samples", "");
    assert_offered("SELECT 1 -- sta|", "");
    assert_offered("SELECT 1 /* sta| */", "");
    assert_offered("SELECT \"sta|", "");
}

/* Whatever is there, and wherever one is: no item is twice, and what is replaced lies within the text. */
static void test_complete_anything(void **state) {
    static const char *const pieces[] = {"SELECT ", "FROM ", "python.", "samples",  " s",    ",",  "(",  ")",
                                         ";",       "'",     "\"",      "--",       "/*",    "*/", "\n", ".",
                                         "x",       "1",     "[",       "\xc3\xa9", "JOIN ", "ON "};
    struct catalog *c = catalog_of_definitions();
    char text[256];
    (void)state;
    srand(5);
    for (int round = 0; round < 3000; round++) {
        struct sql_completion done;
        text[0] = '\0';
        for (int i = rand() % 12; i > 0; i--)
            (void)strncat(text, pieces[(size_t)rand() % (sizeof pieces / sizeof pieces[0])], 8);
        size_t cursor = (size_t)rand() % (strlen(text) + 2);
        assert_int_equal(sql_complete(&done, c, text, cursor), 0);
        assert_true(done.from <= done.to && done.to <= strlen(text));
        for (size_t i = 0; i < done.n; i++)
            for (size_t k = 0; k < i; k++)
                assert_string_not_equal(done.items[i].text, done.items[k].text);
        sql_complete_fini(&done);
    }
    catalog_free(c);
}

static void test_catalog(void **state) {
    struct catalog *c = catalog_of_definitions();
    (void)state;
    assert_int_equal(c->n_tables, RING_TABLE_COUNT + 2); /* and training_logs, comm_metrics */
    assert_non_null(catalog_find(c, "training_logs", 13));
    const struct catalog_table *t = catalog_find(c, "MEMORY_USAGE", 12);
    assert_non_null(t);
    assert_string_equal(t->name, "python.memory");
    struct result *columns = catalog_list_columns(t), *tables = catalog_list_tables(c);
    assert_int_equal(columns->n_rows, RING_MEMORY_COUNT + 3);
    assert_int_equal(tables->n_rows, RING_TABLE_COUNT + 2);
    assert_string_equal(columns->columns[0].values[0].s, "rank");
    result_unref(columns);
    result_unref(tables);
    struct sql *s = sql_open(NULL);
    struct catalog *live = catalog_of_session(s);
    assert_non_null(catalog_find(live, "python.samples", 14));
    catalog_free(live);
    sql_close(s);
    catalog_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_result_values),
        cmocka_unit_test(test_result_times),
        cmocka_unit_test(test_result_sort),
        cmocka_unit_test(test_result_limits),
        cmocka_unit_test(test_result_large),
        cmocka_unit_test(test_describe),
        cmocka_unit_test_setup_teardown(test_history_is_kept, make_place, drop_place),
        cmocka_unit_test_setup_teardown(test_history_of_two, make_place, drop_place),
        cmocka_unit_test_setup_teardown(test_history_is_bounded, make_place, drop_place),
        cmocka_unit_test_setup_teardown(test_history_bad_files, make_place, drop_place),
        cmocka_unit_test(test_complete_tables),
        cmocka_unit_test(test_complete_columns),
        cmocka_unit_test(test_complete_words),
        cmocka_unit_test(test_complete_anything),
        cmocka_unit_test(test_catalog),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
