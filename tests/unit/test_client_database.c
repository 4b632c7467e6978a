/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The database over targets: what a dead process has left, its time, tables that come later, what the kernel says of a living one, cancels
 * that come before, during and after a query.
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

#include "base/clock.h"
#include "base/procfs.h"
#include "client/sql/database.h"
#include "client/target/rings.h"
#include "unit/store_job.h"

#define T0 1700000000.0
#define ROWS 1000
#define ENDLESS "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

static struct database *open_past(const struct job *j) {
    struct err e = {.text = ""};
    struct target_address addr = {.pid = 0};
    (void)snprintf(addr.recorded, sizeof addr.recorded, "%s", j->dir);
    struct database *d = database_open(&e);
    if (!d || database_add(d, &addr, &e) != 0)
        fail_msg("%s", e.text);
    return d;
}

static void the_past_has_its_own_time(void **state) {
    (void)state;
    struct job j;
    job_make(&j, 4711, 3);
    job_samples(&j, T0, ROWS);
    struct database *d = open_past(&j);
    assert_true(database_is_recorded(d));
    assert_string_equal(database_note(d), "");
    struct sql *s = database_sql(d);
    job_expect(s, "SELECT count(*), min(pid), max(rank) FROM python.samples", "1000|4711|3\n");
    job_expect(s, "SELECT count(*) FROM python.samples WHERE timestamp > now() - 1", "100\n");
    job_expect(s, "SELECT round(max(timestamp) - now(), 3) FROM python.samples", "0.0\n");
    job_refused(s, "SELECT * FROM python.backtrace", "no such table");
    database_close(d);
    job_remove(&j);
}

static void a_folder_without_tables_is_refused(void **state) {
    (void)state;
    struct job j;
    struct err e = {.text = ""};
    struct target_address addr = {.pid = 0};
    job_make(&j, 1, 0);
    (void)snprintf(addr.recorded, sizeof addr.recorded, "%s", j.dir);
    struct database *d = database_open(&e);
    assert_non_null(d);
    assert_int_equal(database_add(d, &addr, &e), -1);
    assert_int_equal(e.code, ERR_ATTACH);
    assert_non_null(strstr(e.text, "no tables"));
    database_close(d);
    job_remove(&j);
}

static void tables_that_come_later_are_found(void **state) {
    (void)state;
    struct job j;
    struct err e = {.text = ""};
    job_make(&j, 4711, 0);
    ring_close(job_table(&j, &RING_TABLES[RING_GC], 64 * 1024));
    struct database *d = open_past(&j);
    job_expect(database_sql(d), "SELECT count(*) FROM python.samples", "0\n");
    job_samples(&j, T0, ROWS);
    assert_int_equal(database_refresh(d, &e), 0);
    job_expect(database_sql(d),
               "SELECT count(*), count(*) FILTER (WHERE timestamp <= now()) FROM python.samples",
               "1000|1000\n");
    database_close(d);
    job_remove(&j);
}

/* This process: it has no agent, but the kernel knows it. */
static void the_kernel_tells_of_a_living_one(void **state) {
    (void)state;
    char rows[64];
    struct err e = {.text = ""};
    struct target_address addr = {.pid = getpid()};
    struct database *d = database_open(&e);
    assert_non_null(d);
    assert_int_equal(database_add(d, &addr, &e), 0);
    assert_false(database_is_recorded(d));
    struct sql *s = database_sql(d);
    (void)snprintf(rows, sizeof rows, "%d|%d|1\n", (int)getpid(), (int)getppid());
    job_expect(s,
               "SELECT pid, ppid, threads FROM system.process WHERE rss_mb > 0 AND uptime_s > 0 AND fds > 2",
               rows);
    (void)snprintf(rows, sizeof rows, "%d|R\n", (int)getpid());
    job_expect(s, "SELECT tid, state FROM system.threads WHERE cpu_pct IS NOT NULL", rows);
    job_expect(s, "SELECT count(*) FROM system.threads_history", "0\n");
    job_expect(s, "SELECT abs(now() - unixepoch()) < 5", "1\n");
    assert_non_null(strstr(database_note(d), "no history"));
    database_close(d);
}

/* Whose request fails is told with the code that leads to the exit status. */
static void a_target_that_is_gone_is_told(void **state) {
    (void)state;
    static const struct sql_query q;
    struct err e = {.text = ""};
    struct target_address addr = {.pid = 0x3fffff00}; /* above any pid_max */
    struct database *d = database_open(&e);
    assert_non_null(d);
    assert_int_equal(database_add(d, &addr, &e), 0);
    struct sql_result *r = database_begin(d, "SELECT * FROM system.threads", &q, NULL, NULL, &e);
    assert_non_null(r);
    assert_int_equal(sql_next(r, &e), -1);
    sql_end(r);
    assert_int_equal(e.code, ERR_FAILED);
    database_explain(d, &e);
    assert_int_equal(e.code, ERR_LOST);
    assert_non_null(strstr(e.text, "has ended"));
    database_close(d);
}

static void expect_interrupted(struct database *d) {
    static const struct sql_query q;
    struct err e = {.text = ""};
    struct sql_result *r = database_begin(d, ENDLESS, &q, NULL, NULL, &e);
    assert_non_null(r);
    assert_int_equal(sql_next(r, &e), -1);
    assert_non_null(strstr(e.text, "interrupted"));
    sql_end(r);
}

static void *cancel_after_a_while(void *arg) {
    usleep(20 * 1000);
    database_cancel(arg);
    return NULL;
}

static void cancels_end_what_was_asked_for(void **state) {
    (void)state;
    struct err e = {.text = ""};
    pthread_t thread;
    struct database *d = database_open(&e);
    assert_non_null(d);
    database_arm(d);
    database_cancel(d);
    expect_interrupted(d);
    assert_true(database_cancelled(d));
    database_arm(d);
    assert_false(database_cancelled(d));
    assert_int_equal(pthread_create(&thread, NULL, cancel_after_a_while, d), 0);
    expect_interrupted(d);
    assert_int_equal(pthread_join(thread, NULL), 0);
    database_arm(d);
    job_expect(database_sql(d), "SELECT 1", "1\n");
    database_close(d);
}

static void folders_are_found_by_pid(void **state) {
    (void)state;
    char base[] = "/tmp/rings-test-XXXXXX", path[RING_DIR_PATH];
    struct rings_place place;
    struct err e = {.text = ""};
    struct procfs_stat stat;
    assert_non_null(mkdtemp(base));
    assert_int_equal(setenv("PROBING_DATA_DIR", base, 1), 0);
    assert_int_equal(rings_find_dead(0x3fffff01, &place, &e), 0);
    int dir = ring_dir_create(base, 0x3fffff01, 17, path, &e);
    assert_true(dir >= 0);
    assert_int_equal(rings_find_dead(0x3fffff01, &place, &e), 1);
    assert_string_equal(place.path, path);
    assert_true(place.alive);
    assert_int_equal(place.start_ticks, 17);
    assert_int_equal(rings_inspect(path, &place, &e), 0);
    int fd = ring_dir_begin_file(dir, "python.gc");
    assert_int_equal(ring_dir_finish_file(dir, "python.gc"), 0);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(rings_inspect(path, &place, &e), 1);
    assert_int_equal(place.pid, 0x3fffff01);
    assert_int_equal(place.owner, geteuid());
    ring_dir_remove(dir, path);
    close(dir);
    /* Of a living process: what it was started with, not what this test has set since. */
    assert_int_equal(procfs_read_stat(0, 0, &stat), 0);
    assert_true(fabs(rings_time_of_ticks(stat.start_ticks) - clock_epoch_s()) < 600);
    assert_int_equal(unsetenv("PROBING_DATA_DIR"), 0);
    assert_int_equal(rmdir(base), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_past_has_its_own_time),
        cmocka_unit_test(a_folder_without_tables_is_refused),
        cmocka_unit_test(tables_that_come_later_are_found),
        cmocka_unit_test(the_kernel_tells_of_a_living_one),
        cmocka_unit_test(a_target_that_is_gone_is_told),
        cmocka_unit_test(cancels_end_what_was_asked_for),
        cmocka_unit_test(folders_are_found_by_pid),
    };
    return cmocka_run_group_tests_name("client_database", tests, NULL, NULL);
}
