/* SPDX-License-Identifier: Apache-2.0 */
/* sql_result: one statement, from its text to its last row; see sql.h. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/option.h"
#include "base/clock.h"
#include "store/ring/ring_tables.h"
#include "store/sql/sql_internal.h"
#include "store/sql/sql_rewrite.h"

/* Statements that are kept: those of all rules of the verdict are about a hundred. */
#define SQL_KEPT ((size_t)160)

struct sql_result {
    struct sql *s;
    /* the statements in the text before this one; only at its start */
    const char *before;
    size_t n_before;
    sqlite3_stmt *stmt;
    char *key;     /* the caller's text, if the statement is to be kept; NULL not */
    char *text;    /* SQLite's form of it; NULL: the statement was kept */
    size_t offset; /* of the statement in the caller's text */
    size_t n;
    char (*types)[16];
    uint64_t max_rows, rows;
    uint64_t began_ns, ended_ns;
    double timeout_s;
    bool done, truncated, has_row;
};

static void sql_walk(const char *text, size_t n, size_t *line, size_t *column) {
    for (size_t i = 0; i < n && text[i]; i++) {
        ++*column;
        if (text[i] == '\n') {
            ++*line;
            *column = 1;
        }
    }
}

/* Line and column, from 1, of a byte. */
static void sql_place(const struct sql_result *r, size_t at, size_t *line, size_t *column) {
    *line = *column = 1;
    sql_walk(r->before, r->n_before, line, column);
    sql_walk(r->text, at, line, column);
}

/* Position of SQLite's last error; -1 if unknown. */
static long sql_error_at(struct sql *s) {
#if SQLITE_VERSION_NUMBER >= 3038000
    return sqlite3_error_offset(s->db);
#else
    (void)s;
    return -1;
#endif
}

#define SQL_NO_TABLE "no such table: "

/* For a table that is not there, the one whose name is nearest, as text behind the error. */
static void sql_put_near(const struct sql *s, const char *message, char *buf, size_t cap) {
    const char *near = NULL;
    buf[0] = '\0';
    if (strncmp(message, SQL_NO_TABLE, strlen(SQL_NO_TABLE)) != 0)
        return;
    const char *missing = message + strlen(SQL_NO_TABLE);
    for (size_t i = RING_TABLE_KEPT; i < RING_TABLE_COUNT; i++)
        if (strcmp(missing, RING_TABLES[i].name) == 0) {
            snprintf(buf, cap, ": it is made in a running job; '\\dt' lists what is here");
            return;
        }
    const char **names = calloc(2 * s->n_tables + 1, sizeof *names);
    for (size_t i = 0, n = 0; names && i < s->n_tables; i++) {
        names[n++] = s->tables[i]->full;
        if (s->tables[i]->alias[0])
            names[n++] = s->tables[i]->alias;
    }
    if (names)
        near = option_suggest(message + strlen(SQL_NO_TABLE), names);
    if (near)
        snprintf(buf, cap, ": did you mean %s?", near);
    free(names);
}

static int sql_explain(const struct sql_result *r, int rc, long at, struct err *e) {
    struct sql *s = r->s;
    size_t line, column;
    char near[2 * RING_MAX_NAME + 32];
    if (s->denied[0])
        return err_set(e, ERR_FAILED, "%s", s->denied);
    if (rc == SQLITE_INTERRUPT && !atomic_load(&s->interrupted))
        return err_set(e, ERR_FAILED,
                       "the query timed out after %g s; give it more time or a narrower condition",
                       r->timeout_s);
    if (rc == SQLITE_INTERRUPT)
        return err_set(e, ERR_FAILED, "the query was interrupted");
    if (s->failure[0])
        return err_set(e, ERR_FAILED, "%s", s->failure);
    if (rc == SQLITE_NOMEM)
        return err_set(e, ERR_FAILED,
                       "the query needs more than %lld MB of memory; narrow it by a condition or LIMIT",
                       (long long)(SQL_MAX_MEMORY / (1024 * 1024)));
    sql_put_near(s, sqlite3_errmsg(s->db), near, sizeof near);
    if (at < 0)
        return err_set(e, ERR_FAILED, "%s%s", sqlite3_errmsg(s->db), near);
    sql_place(r, (size_t)at, &line, &column);
    return err_set(e, ERR_FAILED, "%s (line %zu, column %zu)%s", sqlite3_errmsg(s->db), line, column, near);
}

/* "timestamp", "integer": the declared type of the column; "" for an expression. */
static void sql_read_types(struct sql_result *r) {
    for (size_t i = 0; i < r->n; i++) {
        const char *type = sqlite3_column_decltype(r->stmt, (int)i);
        size_t k = 0;
        for (; type && type[k] && k + 1 < sizeof r->types[i]; k++)
            r->types[i][k] = (char)tolower((unsigned char)type[k]);
        r->types[i][k] = '\0';
    }
}

/* A new query starts at a new moment. */
static void sql_start(struct sql *s, const struct sql_query *q) {
    s->query++;
    s->now = isnan(s->fixed_now) ? clock_epoch_s() : s->fixed_now;
    s->denied[0] = s->failure[0] = '\0';
    s->lost = 0;
    s->part = q->part;
    s->part_of = q->part ? sql_table_find(s, q->part->table) : NULL;
    atomic_store(&s->interrupted, false);
    s->deadline_ns = q->timeout_s > 0 ? clock_mono_ns() + (uint64_t)(q->timeout_s * 1e9) : 0;
}

/* Prepare the first statement of r->text. 1; 0 if there is none; -1 with the error. */
static int sql_prepare(struct sql_result *r, size_t *used, struct sql_error *where, struct err *e) {
    struct sql *s = r->s;
    const char *tail = r->text;
    size_t at = 0, len = strlen(r->text);
    if (sql_rewrite(r->text, len, &at, e) != 0) {
        size_t line, column;
        char text[sizeof e->text];
        where->at = (long)(r->n_before + at);
        sql_place(r, at, &line, &column);
        if (e) {
            snprintf(text, sizeof text, "%s", e->text);
            err_set(e, ERR_FAILED, "%.400s (line %zu, column %zu)", text, line, column);
        }
        return -1;
    }
    /* Comments and lone semicolons are not statements. */
    do {
        const char *from = tail;
        int rc = sqlite3_prepare_v2(s->db, from, -1, &r->stmt, &tail);
        if (rc != SQLITE_OK) {
            long place = sql_error_at(s);
            place = place < 0 ? -1 : place + (from - r->text);
            where->at = place < 0 ? -1 : place + (long)r->n_before;
            return sql_explain(r, rc, place, e);
        }
    } while (!r->stmt && *tail);
    *used = (size_t)(tail - r->text);
    return r->stmt != NULL;
}

/* Parameters that the text does not have are skipped. */
static void sql_bind_named(struct sql_result *r, const struct sql_query *q) {
    for (size_t i = 0; i < q->n_named; i++) {
        int at = sqlite3_bind_parameter_index(r->stmt, q->named[i].name);
        if (at > 0)
            sqlite3_bind_double(r->stmt, at, q->named[i].value);
    }
}

/* ---- statements for queries that come again ---- */

static void sql_kept_free(struct sql_kept *k) {
    sqlite3_finalize(k->stmt);
    free(k->key);
}

void sql_drop_kept(struct sql *s) {
    for (size_t i = 0; i < s->n_kept; i++)
        sql_kept_free(&s->kept[i]);
    free(s->kept);
    s->kept = NULL;
    s->n_kept = 0;
}

static void sql_remove_kept(struct sql *s, size_t i) {
    memmove(&s->kept[i], &s->kept[i + 1], (--s->n_kept - i) * sizeof s->kept[0]);
}

/* The kept statement of the text becomes that of the result, if there is one. */
static bool sql_take_kept(struct sql_result *r, const char *text) {
    struct sql *s = r->s;
    for (size_t i = s->n_kept; i-- > 0;)
        if (strcmp(s->kept[i].key, text) == 0) {
            r->key = s->kept[i].key;
            r->stmt = s->kept[i].stmt;
            sql_remove_kept(s, i);
            return true;
        }
    return false;
}

/* Keep the statement of a result; the one that was used least lately gives way. */
static void sql_keep(struct sql_result *r) {
    struct sql *s = r->s;
    if (!r->key || sqlite3_reset(r->stmt) != SQLITE_OK)
        return;
    if (!s->kept)
        s->kept = malloc(SQL_KEPT * sizeof *s->kept);
    if (!s->kept)
        return;
    if (s->n_kept == SQL_KEPT) {
        sql_kept_free(&s->kept[0]);
        sql_remove_kept(s, 0);
    }
    sqlite3_clear_bindings(r->stmt);
    s->kept[s->n_kept++] = (struct sql_kept){.key = r->key, .stmt = r->stmt};
    r->key = NULL;
    r->stmt = NULL;
}

static void sql_free_result(struct sql_result *r) {
    sql_keep(r);
    sqlite3_finalize(r->stmt);
    free(r->key);
    free(r->text);
    free(r->types);
    free(r);
}

struct sql_result *sql_begin(struct sql *s, const char *text, const struct sql_query *q, const char **tail,
                             struct sql_error *where, struct err *e) {
    struct sql_error nowhere;
    struct err unseen;
    e = e ? e : &unseen;
    where = where ? where : &nowhere;
    where->at = -1;
    e->code = ERR_OK;
    struct sql_result *r = s->running ? NULL : calloc(1, sizeof *r);
    if (r)
        r->s = s;
    bool kept = r && q->again && sql_take_kept(r, text);
    if (r && !kept)
        r->text = strdup(text);
    if (!r || (!kept && !r->text)) {
        err_set(e, ERR_FAILED, s->running ? "a query is running" : "out of memory");
        free(r);
        return NULL;
    }
    sql_start(s, q);
    r->before = q->whole ? q->whole : text;
    r->n_before = (size_t)(text - r->before);
    r->max_rows = q->max_rows;
    r->timeout_s = q->timeout_s;
    r->began_ns = clock_mono_ns();
    size_t used = strlen(text);
    int rc = kept ? 1 : sql_prepare(r, &used, where, e);
    if (rc > 0 && !kept && q->again && used == strlen(text))
        r->key = strdup(text);
    if (tail)
        *tail = text + (rc < 0 ? strlen(text) : used);
    if (rc <= 0) {
        sql_free_result(r);
        return NULL;
    }
    sql_bind_named(r, q);
    r->n = (size_t)sqlite3_column_count(r->stmt);
    r->types = calloc(r->n + 1, sizeof *r->types);
    if (!r->types) {
        err_set(e, ERR_FAILED, "out of memory");
        sql_free_result(r);
        return NULL;
    }
    sql_read_types(r);
    s->running = r;
    return r;
}

int sql_next(struct sql_result *r, struct err *e) {
    if (r->done)
        return 0;
    int rc = sql_cancelled(r->s) ? SQLITE_INTERRUPT : sqlite3_step(r->stmt);
    r->ended_ns = clock_mono_ns();
    r->has_row = rc == SQLITE_ROW && (r->max_rows == 0 || r->rows < r->max_rows);
    if (r->has_row) {
        r->rows++;
        return 1;
    }
    r->done = true;
    r->truncated = rc == SQLITE_ROW;
    if (rc == SQLITE_ROW || rc == SQLITE_DONE)
        return 0;
    return sql_explain(r, rc, -1, e);
}

void sql_end(struct sql_result *r) {
    if (!r)
        return;
    r->s->running = NULL;
    sql_free_result(r);
}

int sql_execute(struct sql *s, const char *text) {
    static const struct sql_query unlimited;
    struct err e = {.text = ""};
    struct sql_result *r = sql_begin(s, text, &unlimited, NULL, NULL, &e);
    int rc = r ? sql_next(r, &e) : -1;
    sql_end(r);
    return rc < 0 ? -1 : 0;
}

void sql_extend(struct sql_result *r, uint64_t ns) {
    if (r->s->deadline_ns != 0)
        r->s->deadline_ns += ns;
}

void sql_interrupt(struct sql *s) { atomic_store(&s->interrupted, true); }

size_t sql_result_columns(const struct sql_result *r) { return r->n; }

const char *sql_result_name(const struct sql_result *r, size_t i) {
    const char *name = sqlite3_column_name(r->stmt, (int)i);
    return name ? name : "?";
}

const char *sql_result_type(const struct sql_result *r, size_t i) { return r->types[i]; }

enum sql_kind sql_result_kind(const struct sql_result *r, size_t i) {
    switch (r->has_row ? sqlite3_column_type(r->stmt, (int)i) : SQLITE_NULL) {
    case SQLITE_INTEGER:
        return SQL_INTEGER;
    case SQLITE_FLOAT:
        return SQL_REAL;
    case SQLITE_TEXT:
        return SQL_TEXT;
    case SQLITE_BLOB:
        return SQL_BLOB;
    default:
        return SQL_NULL;
    }
}

int64_t sql_result_int(const struct sql_result *r, size_t i) { return sqlite3_column_int64(r->stmt, (int)i); }

double sql_result_real(const struct sql_result *r, size_t i) {
    return sqlite3_column_double(r->stmt, (int)i);
}

const char *sql_result_text(const struct sql_result *r, size_t i, size_t *len) {
    const char *text = r->has_row ? (const char *)sqlite3_column_text(r->stmt, (int)i) : NULL;
    if (len)
        *len = text ? (size_t)sqlite3_column_bytes(r->stmt, (int)i) : 0;
    return text;
}

bool sql_result_truncated(const struct sql_result *r) { return r->truncated; }

uint64_t sql_result_rows(const struct sql_result *r) { return r->rows; }

uint64_t sql_result_lost(const struct sql_result *r) { return r->s->lost; }

double sql_result_elapsed_s(const struct sql_result *r) {
    return (double)((r->ended_ns ? r->ended_ns : clock_mono_ns()) - r->began_ns) / 1e9;
}
