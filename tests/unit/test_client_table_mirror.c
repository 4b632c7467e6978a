/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of an agent's tables: they follow it, what was overwritten is counted and said, a table that is made anew is begun anew, and an agent
 * that lies or falls silent does no more harm than that nothing newer comes.
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
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "client/sql/table_mirror.h"
#include "client/sql/database.h"
#include "store/ring/ring_sync.h"
#include "support/fake_net_agent.h"
#include "unit/store_job.h"
#include "unit/store_rows.h"

#define RING_BYTES ((size_t)128 * 1024)

/* A table that the agent of a test has; its thread answers under the lock. */
struct table {
    pthread_mutex_t lock;
    struct ring *ring;
    int fd;
    uint64_t n;      /* rows so far */
    bool lie;        /* send rows that do not fit */
    bool old;        /* know nothing of tables */
    unsigned pieces; /* in an answer; 0: as many as there are */
};

/* As `make`, by a name that queries may use. */
static void table_make(struct table *t, size_t bytes) {
    struct ring_table_def def = all_types;
    struct err e = {.text = ""};
    int fd = memory_file();
    def.name = "probing.all_types";
    t->fd = dup(fd);
    t->n = 0;
    t->ring = ring_create(fd, &def, &owner, bytes, &e);
    if (!t->ring)
        fail_msg("%s", e.text);
}

static void table_open(struct table *t) {
    *t = (struct table){.n = 0};
    assert_int_equal(pthread_mutex_init(&t->lock, NULL), 0);
    table_make(t, RING_BYTES);
}

static void table_close(struct table *t) {
    ring_close(t->ring);
    close(t->fd);
    (void)pthread_mutex_destroy(&t->lock);
}

static void table_add(struct table *t, uint64_t rows) {
    (void)pthread_mutex_lock(&t->lock);
    for (uint64_t end = t->n + rows; t->n < end; t->n++)
        (void)append(t->ring, t->n);
    (void)ring_flush(t->ring);
    (void)pthread_mutex_unlock(&t->lock);
}

static void table_fill(struct table *t, struct ring_reader *in, const struct wire_message *m,
                       struct strbuf *out) {
    struct wire_pulled answer = {.pieces = ""};
    struct wire_pull want;
    struct strbuf pieces;
    size_t len;
    const void *head = ring_reader_head(in, &len);
    strbuf_init(&pieces, 0);
    if (wire_message_method(m) == WIRE_TABLES) {
        struct wire_table table = {.name = "t", .head = head, .head_len = len};
        (void)wire_put_tables(out, wire_message_id(m), &table, 1);
    } else if (wire_get_pull(m, &want, NULL) == 0) {
        struct ring_mark have = {.first_seq = want.first_seq, .rows = want.rows, .heap_used = want.heap_used};
        answer.anew = ring_sync_making(head, len) != want.making;
        unsigned left = t->pieces ? t->pieces : 1000000;
        int rc = 1;
        while (!answer.anew && left-- > 0 && (rc = ring_sync_next(in, &have, RING_SYNC_MIN, &pieces)) > 0)
            ;
        answer.more = rc > 0;
        answer.pieces = pieces.len ? pieces.data : "";
        answer.len = pieces.len;
        if (t->lie && pieces.len)
            memset(pieces.data + 32, 0xff, 8); /* rows and strings of the first piece */
        (void)wire_put_pulled(out, wire_message_id(m), &answer);
    }
    strbuf_fini(&pieces);
}

static bool table_answer(void *arg, const struct wire_message *m, struct strbuf *out) {
    struct table *t = arg;
    if (wire_message_method(m) != WIRE_TABLES && wire_message_method(m) != WIRE_PULL)
        return false;
    (void)pthread_mutex_lock(&t->lock);
    struct ring_reader *in = t->old ? NULL : read_back(t->fd);
    if (!in || ring_reader_refresh(in, NULL) != 0)
        (void)wire_put_error(out, wire_message_id(m), WIRE_E_UNKNOWN_METHOD,
                             "this agent knows no such method");
    else
        table_fill(t, in, m, out);
    ring_reader_close(in);
    (void)pthread_mutex_unlock(&t->lock);
    return true;
}

/* `drop_after`: see struct fake_options. */
static struct fake_agent *serve_for(struct table *t, unsigned drop_after) {
    struct fake_agent *a =
        fake_agent_start(&(struct fake_options){.answer = table_answer, .arg = t, .drop_after = drop_after});
    assert_non_null(a);
    return a;
}

static struct fake_agent *serve(struct table *t) { return serve_for(t, 0); }

static struct table_mirror *mirror_of(const struct fake_agent *a, struct err *e) {
    struct target_address addr = {.pid = getpid()};
    (void)snprintf(addr.path, sizeof addr.path, "%s", fake_agent_path(a));
    return table_mirror_new(&addr, e);
}

static void update(struct table_mirror *c) {
    struct err e = {.text = ""};
    do
        if (table_mirror_update(c, 30, NULL, NULL, &e) != 0)
            fail_msg("%s", e.text);
    while (table_mirror_behind(c));
}

/* What the copy of the table holds: `fd` as table_mirror_take gave it. */
static struct look look_at_fd(int fd) {
    struct err e;
    struct ring_reader *in = ring_reader_open_fd(dup(fd), "a copy", &e);
    if (!in)
        fail_msg("%s", e.text);
    struct look l = look_at(in);
    ring_reader_close(in);
    return l;
}

static void table_mirror_follow(void **state) {
    (void)state;
    struct table t;
    struct err e;
    int fd, none;
    table_open(&t);
    struct fake_agent *a = serve(&t);
    struct table_mirror *c = mirror_of(a, &e);
    assert_non_null(c);
    assert_int_equal(table_mirror_pid(c), 0);
    table_add(&t, 50);
    t.pieces = 1;
    update(c);
    assert_int_equal(table_mirror_pid(c), 41);
    assert_int_equal(table_mirror_take(c, &fd, 1), 1);
    for (int round = 0; round < 20; round++) {
        table_add(&t, 40);
        update(c);
    }
    assert_int_equal(table_mirror_take(c, &none, 1), 0); /* it is still the same */
    struct look l = look_at_fd(fd);
    assert_int_equal(l.bad + l.unordered, 0);
    assert_int_equal(l.next, 850);
    assert_int_equal(table_mirror_missing(c), 0);
    assert_int_equal(fake_agent_connections(a), 1);
    /* More than there is room for, at once. */
    table_add(&t, 20000);
    update(c);
    struct look after = look_at_fd(fd);
    assert_int_equal(after.next, 20850);
    assert_true(table_mirror_missing(c) > 0);
    close(fd);
    table_mirror_free(c);
    fake_agent_stop(a);
    table_close(&t);
}

static void a_table_that_is_made_anew(void **state) {
    (void)state;
    struct table t;
    struct err e;
    int fd[2];
    table_open(&t);
    struct fake_agent *a = serve(&t);
    struct table_mirror *c = mirror_of(a, &e);
    assert_non_null(c);
    table_add(&t, 100);
    update(c);
    assert_int_equal(table_mirror_take(c, fd, 2), 1);
    (void)pthread_mutex_lock(&t.lock);
    ring_close(t.ring);
    close(t.fd);
    table_make(&t, 2 * RING_BYTES);
    (void)pthread_mutex_unlock(&t.lock);
    table_add(&t, 7);
    update(c); /* learns of it */
    update(c);
    assert_int_equal(table_mirror_take(c, fd + 1, 1), 1);
    assert_int_equal(look_at_fd(fd[0]).next, 100);
    assert_int_equal(look_at_fd(fd[1]).next, 7);
    close(fd[0]);
    close(fd[1]);
    table_mirror_free(c);
    fake_agent_stop(a);
    table_close(&t);
}

static void lies_are_refused(void **state) {
    (void)state;
    struct table t;
    struct err e = {.text = ""};
    int fd;
    table_open(&t);
    struct fake_agent *a = serve(&t);
    struct table_mirror *c = mirror_of(a, &e);
    assert_non_null(c);
    table_add(&t, 50);
    update(c);
    assert_int_equal(table_mirror_take(c, &fd, 1), 1);
    (void)pthread_mutex_lock(&t.lock);
    t.lie = true;
    (void)pthread_mutex_unlock(&t.lock);
    table_add(&t, 50);
    assert_int_equal(table_mirror_update(c, 30, NULL, NULL, &e), -1);
    assert_non_null(strstr(e.text, "does not fit"));
    assert_int_equal(look_at_fd(fd).next, 50);
    (void)pthread_mutex_lock(&t.lock);
    t.lie = false;
    (void)pthread_mutex_unlock(&t.lock);
    update(c); /* by a new connection, from where it was */
    assert_int_equal(look_at_fd(fd).next, 100);
    assert_int_equal(table_mirror_missing(c), 0);
    close(fd);
    table_mirror_free(c);
    fake_agent_stop(a);
    table_close(&t);
}

/* A connection that is kept ends between two updates, or within one: another one continues from there. */
static void a_connection_that_ends(void **state) {
    (void)state;
    for (unsigned drop_after = 3; drop_after <= 8; drop_after++) {
        struct table t;
        struct err e;
        int fd;
        table_open(&t);
        struct fake_agent *a = serve_for(&t, drop_after);
        struct table_mirror *c = mirror_of(a, &e);
        assert_non_null(c);
        for (int round = 0; round < 7; round++) {
            /* at first all at once: a new connection that ends is an error */
            (void)pthread_mutex_lock(&t.lock);
            t.pieces = round > 0;
            (void)pthread_mutex_unlock(&t.lock);
            table_add(&t, 100);
            update(c);
        }
        assert_int_equal(table_mirror_take(c, &fd, 1), 1);
        struct look l = look_at_fd(fd);
        assert_int_equal(l.bad + l.unordered, 0);
        assert_int_equal(l.next, 700);
        assert_int_equal(table_mirror_missing(c), 0);
        /* the session that lost the first one may have tried again before it was closed */
        assert_in_range(fake_agent_connections(a), 2, 3);
        close(fd);
        table_mirror_free(c);
        fake_agent_stop(a);
        table_close(&t);
    }
}

static bool at_once(void *arg) {
    (void)arg;
    return true;
}

static void those_who_do_not_answer(void **state) {
    (void)state;
    static const enum fake_manner manners[] = {FAKE_CLOSES,      FAKE_GARBAGE,      FAKE_HTTP,
                                               FAKE_HUGE_LENGTH, FAKE_JUNK_MESSAGE, FAKE_TEXT_MESSAGE,
                                               FAKE_OLD};
    struct err e = {.text = ""};
    for (size_t i = 0; i < sizeof manners / sizeof manners[0]; i++) {
        struct fake_agent *a = fake_agent_start(&(struct fake_options){.manner = manners[i]});
        struct table_mirror *c = mirror_of(a, &e);
        assert_non_null(c);
        assert_int_equal(table_mirror_update(c, 30, NULL, NULL, &e), -1);
        assert_true(e.text[0] != '\0');
        table_mirror_free(c);
        fake_agent_stop(a);
    }
    /* Whoever waits for one that is mute may be stopped. */
    struct fake_agent *a = fake_agent_start(&(struct fake_options){.mute_after_hello = true});
    struct table_mirror *c = mirror_of(a, &e);
    assert_non_null(c);
    assert_int_equal(table_mirror_update(c, 30, at_once, NULL, &e), -1);
    assert_string_equal(e.text, "interrupted");
    table_mirror_free(c);
    fake_agent_stop(a);
}

static void a_database_reads_them(void **state) {
    (void)state;
    struct table t;
    struct err e = {.text = ""};
    static const char text[] = "SELECT count(*) FROM probing.all_types";
    struct target_address addr = {.pid = 0};
    table_open(&t);
    struct fake_agent *a = serve(&t);
    (void)snprintf(addr.path, sizeof addr.path, "%s", fake_agent_path(a));
    table_add(&t, 50);
    struct database *d = database_open(&e);
    if (!d || database_add(d, &addr, &e) != 0)
        fail_msg("%s", e.text);
    assert_string_equal(database_note(d), "");
    job_expect(database_sql(d), text, "50\n");
    table_add(&t, 10);
    assert_int_equal(database_refresh(d, &e), 0);
    job_expect(database_sql(d), text, "60\n");
    assert_string_equal(database_note(d), "");
    table_add(&t, 20000);
    assert_int_equal(database_refresh(d, &e), 0);
    assert_non_null(strstr(database_note(d), "rows were overwritten before they could be copied"));
    /* An agent that goes: what was copied can be read, and it is said that it is no more than that. */
    char *rows = job_rows(database_sql(d), text);
    fake_agent_stop(a);
    assert_int_equal(database_refresh(d, &e), 0);
    job_expect(database_sql(d), text, rows);
    assert_non_null(strstr(database_note(d), "newer rows could not be copied"));
    free(rows);
    database_close(d);
    table_close(&t);
}

static double refresh_time_s(struct database *d) {
    struct err e = {.text = ""};
    uint64_t began = clock_mono_ns();
    if (database_refresh(d, &e) != 0)
        fail_msg("%s", e.text);
    return (double)(clock_mono_ns() - began) / 1e9;
}

/* Those that do not answer cost the others one wait, and not one each time; whoever is in a hurry does not wait. */
static void some_that_are_silent(void **state) {
    (void)state;
    struct table t;
    struct err e = {.text = ""};
    const struct fake_options mute = {.mute_after_hello = true};
    static const char text[] = "SELECT count(*) FROM probing.all_types";
    struct fake_agent *a[3];
    table_open(&t);
    table_add(&t, 50);
    struct database *d = database_open(&e);
    assert_non_null(d);
    uint64_t began = clock_mono_ns();
    for (size_t i = 0; i < 3; i++) {
        struct target_address addr = {.pid = 0};
        a[i] = i < 2 ? fake_agent_start(&mute) : serve(&t);
        (void)snprintf(addr.path, sizeof addr.path, "%s", fake_agent_path(a[i]));
        if (database_add(d, &addr, &e) != 0)
            fail_msg("%s", e.text);
    }
    /* the second one is in doubt at once */
    assert_true((double)(clock_mono_ns() - began) / 1e9 < 9.5);
    table_add(&t, 10);
    assert_true(refresh_time_s(d) < 1);
    job_expect(database_sql(d), text, "60\n");
    assert_non_null(strstr(database_note(d), "answer"));
    /* nor is it asked for what is made when it is read */
    began = clock_mono_ns();
    struct sql_query q = {.max_rows = 10};
    assert_null(database_take(d, "SELECT count(*) FROM python.threads", &q, 1 << 20, &e));
    assert_non_null(strstr(e.text, "answer"));
    assert_true((double)(clock_mono_ns() - began) / 1e9 < 1);
    (void)nanosleep(&(struct timespec){.tv_sec = 5}, NULL);
    /* later they are, one at a time */
    unsigned before = fake_agent_connections(a[0]) + fake_agent_connections(a[1]);
    database_hurry(d);
    assert_true(refresh_time_s(d) < 2.5);
    assert_int_equal(fake_agent_connections(a[0]) + fake_agent_connections(a[1]), before + 1);
    job_expect(database_sql(d), text, "60\n");
    database_close(d);
    for (size_t i = 0; i < 3; i++)
        fake_agent_stop(a[i]);
    table_close(&t);
}

static void an_older_agent(void **state) {
    (void)state;
    struct table t;
    struct err e = {.text = ""};
    struct target_address addr = {.pid = 0};
    table_open(&t);
    t.old = true;
    struct fake_agent *a = serve(&t);
    (void)snprintf(addr.path, sizeof addr.path, "%s", fake_agent_path(a));
    struct database *d = database_open(&e);
    if (!d || database_add(d, &addr, &e) != 0)
        fail_msg("%s", e.text);
    job_expect(database_sql(d), "SELECT count(*) FROM python.samples", "0\n");
    assert_non_null(strstr(database_note(d), "knows no such method"));
    database_close(d);
    fake_agent_stop(a);
    table_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_mirror_follow),     cmocka_unit_test(a_table_that_is_made_anew),
        cmocka_unit_test(lies_are_refused),        cmocka_unit_test(a_connection_that_ends),
        cmocka_unit_test(those_who_do_not_answer), cmocka_unit_test(a_database_reads_them),
        cmocka_unit_test(some_that_are_silent),    cmocka_unit_test(an_older_agent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
