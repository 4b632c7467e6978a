/* SPDX-License-Identifier: Apache-2.0 */
/* rank_sql: see rank_sql.h. */
#include "relay/rank_sql.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/jobs/job_each.h"
#include "client/sql/database.h"
#include "wire/wire.h"

#define RANK_SQL_TEXT ((size_t)256 * 1024) /* bytes of a statement */
#define RANK_SQL_MEMORY ((int64_t)256 * 1024 * 1024)
#define RANK_SQL_LIMIT_MS (600 * 1000) /* the longest limit */
#define RANK_SQL_COLUMNS 256

struct rank_sql {
    struct database *database;
    struct sql_result *result; /* NULL: no statement runs */
    char note[480];
    /* looks after the client while a statement runs */
    pthread_t watcher;
    int in;
    bool is_watched;
    int end[2]; /* a pipe that ends the watcher */
};

/* In a thread of its own: a statement may take long between two rows. */
static void *rank_sql_watch(void *arg) {
    struct rank_sql *q = arg;
    struct pollfd fds[] = {{.fd = q->in, .events = POLLRDHUP}, {.fd = q->end[0], .events = POLLIN}};
    while (!fds[1].revents) {
        if (poll(fds, 2, -1) <= 0)
            continue;
        if (fds[0].revents & (POLLHUP | POLLERR | POLLNVAL | POLLRDHUP)) {
            database_cancel(q->database);
            fds[0].fd = -1;
        }
    }
    return NULL;
}

/* No signal is handled there. Without the thread a statement ends by its limit. */
static void rank_sql_start_watcher(struct rank_sql *q) {
    sigset_t all, kept;
    if (pipe2(q->end, O_CLOEXEC) != 0)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &kept);
    q->is_watched = pthread_create(&q->watcher, NULL, rank_sql_watch, q) == 0;
    pthread_sigmask(SIG_SETMASK, &kept, NULL);
}

static void rank_sql_add_note(struct rank_sql *q, int32_t rank, const char *why) {
    size_t n = strlen(q->note);
    snprintf(q->note + n, sizeof q->note - n, "%srank %d: %.200s", n ? "; " : "", (int)rank, why);
}

static void rank_sql_add(struct rank_sql *q, const struct job_member *m, const char *host) {
    /* an agent was loaded before, or is not wanted */
    static const struct target_options how = {.readonly = true};
    struct target_address addr = {.pid = m->pid};
    struct err e = {0};
    if (target_reach(&addr, &how, &e) != 0 || database_add_rank(q->database, &addr, host, m->rank, &e) != 0)
        rank_sql_add_note(q, m->rank, err_text(&e));
}

static void rank_sql_attach(struct rank_sql *q, const struct job *job) {
    struct job_task *tasks = calloc(job->n_ranks + 1, sizeof *tasks);
    for (size_t i = 0; tasks && i < job->n_ranks; i++)
        tasks[i] = (struct job_task){.pid = job->members[i].pid, .rank = job->members[i].rank};
    if (tasks)
        job_each(tasks, job->n_ranks, job_attach);
    for (size_t i = 0; tasks && i < job->n_ranks; i++)
        if (tasks[i].rc < 0)
            rank_sql_add_note(q, tasks[i].rank, err_text(&tasks[i].error));
    free(tasks);
}

struct rank_sql *rank_sql_open(const struct job *job, bool attach, const char *host, int in, struct err *e) {
    struct rank_sql *q = calloc(1, sizeof *q);
    if (!q) {
        err_set(e, ERR_FAILED, "out of memory for tables");
        return NULL;
    }
    q->in = in;
    q->end[0] = q->end[1] = -1;
    q->database = database_open(e);
    if (!q->database) {
        rank_sql_close(q);
        return NULL;
    }
    sql_limit_memory(RANK_SQL_MEMORY);
    if (attach)
        rank_sql_attach(q, job);
    for (size_t i = 0; i < job->n_ranks; i++)
        rank_sql_add(q, &job->members[i], host);
    rank_sql_start_watcher(q);
    return q;
}

static void rank_sql_stop(struct rank_sql *q) {
    sql_end(q->result);
    q->result = NULL;
}

void rank_sql_close(struct rank_sql *q) {
    if (!q)
        return;
    if (q->end[1] >= 0)
        close(q->end[1]);
    if (q->is_watched)
        pthread_join(q->watcher, NULL);
    if (q->end[0] >= 0)
        close(q->end[0]);
    rank_sql_stop(q);
    database_close(q->database);
    free(q);
}

void rank_sql_measure(struct rank_sql *q, const char *table, struct report_size *out) {
    struct sql *s = database_sql(q->database);
    report_clear(&REPORT_TABLE_SIZE, out);
    rank_sql_stop(q);
    for (size_t i = 0; i < sql_table_count(s); i++) {
        struct sql_table_info info;
        if (strcmp(sql_table_name(s, i), table) != 0)
            continue;
        sql_table_info(s, i, &info);
        *out = (struct report_size){.rows = (int64_t)info.rows, .oldest = info.oldest, .newest = info.newest};
        return;
    }
}

int rank_sql_begin(struct rank_sql *q, const char *text, size_t len, int64_t limit_ms, struct err *e) {
    limit_ms = limit_ms > 0 && limit_ms < RANK_SQL_LIMIT_MS ? limit_ms : RANK_SQL_LIMIT_MS;
    const struct sql_query how = {.timeout_s = (double)limit_ms / 1e3};
    const char *rest = "";
    rank_sql_stop(q);
    if (len > RANK_SQL_TEXT)
        return err_set(e, ERR_USAGE, "a statement for other hosts may have %zu bytes", RANK_SQL_TEXT);
    char *copy = strndup(text, len);
    if (!copy)
        return err_set(e, ERR_FAILED, "out of memory for a statement");
    *e = (struct err){.code = ERR_OK};
    if (database_refresh(q->database, e) == 0) {
        q->result = database_begin(q->database, copy, &how, &rest, NULL, e);
        if (!q->result && e->code == ERR_OK)
            err_set(e, ERR_USAGE, "there is no statement");
    }
    free(copy);
    if (q->result && sql_result_columns(q->result) > RANK_SQL_COLUMNS) {
        rank_sql_stop(q);
        return err_set(e, ERR_USAGE, "the statement has more than %d columns", RANK_SQL_COLUMNS);
    }
    return q->result ? 0 : -1;
}

static void rank_sql_read_row(const struct sql_result *r, struct wire_value *values, size_t n) {
    for (size_t i = 0; i < n; i++) {
        values[i] = (struct wire_value){.kind = WIRE_VALUE_NULL};
        switch (sql_result_kind(r, i)) {
        case SQL_INTEGER:
            values[i] = (struct wire_value){.kind = WIRE_VALUE_INT, .i = sql_result_int(r, i)};
            break;
        case SQL_REAL:
            values[i] = (struct wire_value){.kind = WIRE_VALUE_DOUBLE, .f = sql_result_real(r, i)};
            break;
        case SQL_TEXT:
            values[i].kind = WIRE_VALUE_TEXT;
            values[i].s = sql_result_text(r, i, &values[i].len);
            break;
        case SQL_BLOB:
        case SQL_NULL:
            break;
        }
    }
}

ssize_t rank_sql_take(struct rank_sql *q, size_t most_bytes, struct strbuf *columns, struct strbuf *rows,
                      bool *more, struct err *e) {
    struct wire_value values[RANK_SQL_COLUMNS];
    ssize_t taken = 0;
    int rc = 1;
    *more = false;
    if (!q->result)
        return err_set(e, ERR_USAGE, "no statement runs");
    size_t n = sql_result_columns(q->result);
    for (size_t i = 0; i < n; i++) {
        const char *name = sql_result_name(q->result, i);
        values[i] = (struct wire_value){.kind = WIRE_VALUE_TEXT, .s = name, .len = strlen(name)};
    }
    wire_add_row(columns, values, n);
    while (rows->len <= most_bytes && !rows->failed && (rc = sql_next(q->result, e)) == 1) {
        rank_sql_read_row(q->result, values, n);
        wire_add_row(rows, values, n);
        taken++;
    }
    if (rc < 0)
        database_explain(q->database, e);
    if (rc != 1)
        rank_sql_stop(q);
    *more = rc == 1;
    return rc < 0 ? -1 : taken;
}

const char *rank_sql_note(struct rank_sql *q) { return q->note[0] ? q->note : database_note(q->database); }
