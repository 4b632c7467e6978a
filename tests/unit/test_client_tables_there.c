/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of the ranks on other hosts, whose relays are this program: rows come in pieces, and some hosts end in the middle of them. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "client/fleet/report.h"
#include "client/fleet/tables_there.h"
#include "unit/store_job.h"
#include "version.h"
#include "wire/pipe.h"
#include "wire/wire.h"

#define LIMIT_S 60.0
#define PIECE 3 /* rows */

/* What a relay does with its second piece; it is a child, which knows it by its host's name, as in "good-0". */
static enum {
    GOOD,    /* gives it, and it is the last */
    ENDS,    /* ends instead */
    GARBAGE, /* its last row is none */
    EMPTY,   /* has no rows, and ends after that */
    SILENT,  /* refuses to be a relay */
    GROWS,   /* as GOOD, and has another rank, ten more, once it was asked for its ranks */
    MOVES,   /* as GOOD, and its rank is ten more from then on */
} mode;
static int64_t rank_of_it;
static bool was_asked; /* for its ranks */

/* In the child no test may fail: it would go on with the next one. */
static void need(bool holds) {
    if (!holds)
        _exit(2);
}

static void say(int out, const struct strbuf *message) {
    struct strbuf bytes;
    strbuf_init(&bytes, 0);
    need(pipe_put(&bytes, message->data, message->len) == 0);
    need(write(out, bytes.data, bytes.len) == (ssize_t)bytes.len);
    strbuf_fini(&bytes);
}

static void say_rows(int out, uint32_t id, struct strbuf *columns, struct strbuf *rows, size_t n, bool more) {
    struct strbuf message;
    struct wire_rows answer = {.columns = columns->data,
                               .columns_len = columns->len,
                               .rows = rows->data,
                               .rows_len = rows->len,
                               .n_rows = n,
                               .more = more};
    strbuf_init(&message, 0);
    need(wire_put_rows(&message, id, &answer) == 0);
    say(out, &message);
    strbuf_fini(&message);
    strbuf_fini(columns);
    strbuf_fini(rows);
}

static void say_report(int out, uint32_t id, const struct report_table *t, const void *row) {
    struct strbuf columns, rows;
    strbuf_init(&columns, 0);
    strbuf_init(&rows, 0);
    report_put_columns(t, &columns);
    report_put(t, row, &rows);
    say_rows(out, id, &columns, &rows, 1, false);
}

/* A piece of the rows of its rank: the columns rank and pid. */
static void say_piece(int out, uint32_t id, bool is_last) {
    static const struct wire_value names[] = {{.kind = WIRE_VALUE_TEXT, .s = "rank", .len = 4},
                                              {.kind = WIRE_VALUE_TEXT, .s = "pid", .len = 3}};
    struct strbuf columns, rows;
    strbuf_init(&columns, 0);
    strbuf_init(&rows, 0);
    wire_add_row(&columns, names, 2);
    size_t n = mode == EMPTY ? 0 : PIECE;
    for (size_t i = 0; i < n; i++) {
        int64_t rank = mode == MOVES || (mode == GROWS && is_last) ? rank_of_it + 10 : rank_of_it;
        const struct wire_value values[] = {{.kind = WIRE_VALUE_INT, .i = rank},
                                            {.kind = WIRE_VALUE_INT, .i = 100 + rank}};
        if (mode == GARBAGE && is_last && i == n - 1)
            strbuf_addc(&rows, 5); /* a number in place of a row */
        else
            wire_add_row(&rows, values, 2);
    }
    say_rows(out, id, &columns, &rows, n, !is_last);
}

static void answer(int out, const struct wire_message *m) {
    struct wire_rows_ask ask;
    struct strbuf message;
    struct err e;
    char rank[16];
    uint32_t id = wire_message_id(m);
    if (wire_message_method(m) == WIRE_HELLO) {
        struct model_target t = {
            .host = "host", .rank = -1, .started_at = NAN, .agent_version = PROBING_VERSION};
        strbuf_init(&message, 0);
        wire_put_target(&message, id, &t);
        say(out, &message);
        strbuf_fini(&message);
        return;
    }
    need(wire_get_rows_ask(m, &ask, &e) == 0);
    if (strcmp(ask.table, REPORT_CLOCK) == 0) {
        const struct report_clock clock = {.at = clock_epoch_s()};
        say_report(out, id, &REPORT_TABLE_CLOCK, &clock);
    } else if (strcmp(ask.table, REPORT_JOB) == 0) {
        struct report_job job;
        report_clear(&REPORT_TABLE_JOB, &job);
        if (!was_asked || (mode != GROWS && mode != MOVES))
            snprintf(rank, sizeof rank, "%d", (int)rank_of_it);
        else if (mode == GROWS)
            snprintf(rank, sizeof rank, "%d,%d", (int)rank_of_it, (int)rank_of_it + 10);
        else
            snprintf(rank, sizeof rank, "%d", (int)rank_of_it + 10);
        was_asked = true;
        job.name = "train.py-c4f2";
        job.ranks = rank;
        say_report(out, id, &REPORT_TABLE_JOB, &job);
    } else if (strcmp(ask.table, REPORT_TABLES) == 0) {
        const struct report_size size = {.rows = 2 * PIECE, .oldest = 1, .newest = 2};
        say_report(out, id, &REPORT_TABLE_SIZE, &size);
    } else if (strcmp(ask.table, REPORT_SQL) == 0)
        say_piece(out, id, false);
    else if (mode == ENDS || mode == EMPTY)
        _exit(0);
    else
        say_piece(out, id, true);
}

static int serve(int in, int out) {
    struct pipe_reader reader;
    const void *data;
    size_t len;
    struct err e;
    char bytes[4096];
    if (mode == SILENT)
        return 0;
    need(write(out, PIPE_MAGIC, strlen(PIPE_MAGIC)) > 0);
    pipe_reader_init(&reader, true);
    for (ssize_t n; (n = read(in, bytes, sizeof bytes)) > 0;) {
        need(pipe_reader_add(&reader, bytes, (size_t)n) == 0);
        while (pipe_reader_next(&reader, &data, &len, &e) == 1) {
            struct wire_message *m = wire_parse(data, len, &e);
            need(m != NULL);
            answer(out, m);
            wire_message_free(m);
        }
    }
    pipe_reader_fini(&reader);
    return 0;
}

static int run_relay(const char *host) {
    static const char *const modes[] = {"good", "ends", "garbage", "empty", "silent", "grows", "moves"};
    size_t n = strcspn(host, "-");
    rank_of_it = host[n] ? atoi(host + n + 1) : 0;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strlen(modes[i]) == n && memcmp(modes[i], host, n) == 0)
            mode = (int)i;
    return serve(0, 1);
}

/* ---- the tests ---- */

static struct fleet_reach reach;
static struct database *database;

static struct tables_there *open_hosts(const char *hosts) {
    struct err e = {0};
    const struct fleet_reach_options o = {.hosts = hosts, .via = "/proc/self/exe relay {host}"};
    if (fleet_reach_init(&reach, &o, serve, &e) != 0)
        fail_msg("%s", e.text);
    struct tables_there *t = tables_there_new("train.py-c4f2", &reach, false, LIMIT_S, &e);
    database = database_open(&e);
    if (!t || !database || tables_there_add(t, database, &e) != 0)
        fail_msg("%s", e.text);
    tables_there_begin(t);
    return t;
}

static void close_hosts(struct tables_there *t) {
    database_close(database);
    tables_there_free(t);
    fleet_reach_fini(&reach);
}

static const char *silent(const struct tables_there *t) {
    static char text[1024];
    struct strbuf out;
    strbuf_init(&out, 0);
    tables_there_put_silent(t, &out);
    snprintf(text, sizeof text, "%s", strbuf_str(&out));
    strbuf_fini(&out);
    return text;
}

#define COUNT "SELECT count(*), count(DISTINCT rank) FROM python.steps"

static void rows_come_in_pieces(void **state) {
    struct err e = {0};
    (void)state;
    struct tables_there *t = open_hosts("good-0,good-1");
    job_expect(database_sql(database), COUNT, "12|2\n");
    assert_int_equal(tables_there_map(t, database, "SELECT rank, pid FROM python.steps", &e), 0);
    job_expect(database_sql(database), "SELECT count(*), count(DISTINCT rank) FROM mapped", "12|2\n");
    assert_string_equal(silent(t), "");
    close_hosts(t);
}

/* A host that has given nothing is named, and the rows are those of the others. */
static void a_host_without_rows_is_named(void **state) {
    struct err e = {0};
    (void)state;
    struct tables_there *t = open_hosts("good-0,silent-1,empty-2");
    job_expect(database_sql(database), COUNT, "6|1\n");
    assert_non_null(strstr(silent(t), "silent-1"));
    assert_non_null(strstr(silent(t), "empty-2 (its relay has ended)"));
    close_hosts(t);
    t = open_hosts("good-0,empty-2");
    assert_int_equal(tables_there_map(t, database, "SELECT rank, pid FROM python.steps", &e), 0);
    job_expect(database_sql(database), "SELECT count(*) FROM mapped", "6\n");
    assert_non_null(strstr(silent(t), "empty-2"));
    close_hosts(t);
}

/* One that ends in the middle, or whose rows are not valid from there on: the sum would be wrong. */
static void half_of_a_host_is_refused(void **state) {
    static const char *const hosts[][3] = {{"good-0,ends-1", "ends-1", "its relay has ended"},
                                           {"garbage-0,good-1", "garbage-0", "not valid"}};
    (void)state;
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        struct err e = {0};
        char why[128];
        snprintf(why, sizeof why, "%s gave a part of its rows, and not the rest: ", hosts[i][1]);
        struct tables_there *t = open_hosts(hosts[i][0]);
        assert_null(job_query(database_sql(database), COUNT, &e));
        if (!strstr(e.text, why) || !strstr(e.text, hosts[i][2]))
            fail_msg("%s", e.text);
        /* asked again it is silent for some seconds, as any that has failed */
        tables_there_begin(t);
        job_expect(database_sql(database), COUNT, "6|1\n");
        assert_non_null(strstr(silent(t), hosts[i][1]));
        close_hosts(t);
        t = open_hosts(hosts[i][0]);
        assert_int_equal(tables_there_map(t, database, "SELECT rank, pid FROM python.steps", &e), -1);
        if (!strstr(e.text, why) || !strstr(e.text, hosts[i][2]))
            fail_msg("%s", e.text);
        close_hosts(t);
    }
}

/* Ranks that have been started or moved since the last query are there in the next one. */
static void ranks_are_those_of_now(void **state) {
    (void)state;
    struct tables_there *t = open_hosts("grows-0,moves-1");
    job_expect(database_sql(database), COUNT, "3|1\n");
    assert_non_null(strstr(tables_there_note(t), "rows of ranks that are not its own"));
    tables_there_begin(t);
    job_expect(database_sql(database), COUNT, "12|3\n");
    assert_string_equal(tables_there_note(t), "");
    close_hosts(t);
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN);
    if (argc == 3 && strcmp(argv[1], "relay") == 0)
        return run_relay(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_in_pieces),
        cmocka_unit_test(a_host_without_rows_is_named),
        cmocka_unit_test(half_of_a_host_is_refused),
        cmocka_unit_test(ranks_are_those_of_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
