/* SPDX-License-Identifier: Apache-2.0 */
/* querier: see querier.h. Between a request and its answer, everything but `open` belongs to the
 * thread. */
#include "tui/workers/querier.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/work.h"
#include "client/fleet/job_database.h"
#include "client/output.h"
#include "client/sql/database.h"
#include "client/repl/magic_query.h"

#define QUERIER_STOP_S 1
#define QUERIER_EXPORT_BYTES ((size_t)1024 * 1024 * 1024)

struct querier {
    struct work work;
    bool busy;             /* of the caller: requested and not answered yet */
    bool wanted;           /* under the lock */
    atomic_bool ending;    /* cancelled */
    struct database *open; /* under the lock, for querier_cancel */
    /* of the current request */
    enum querier_kind kind;
    char *text;
    double from_s, to_s;
    struct querier_export exported;
    struct magic magic;
    int cols;
    struct querier_answer answer;
    /* owned by the thread */
    bool has_address;
    struct target_address address;
    char *job_target; /* NULL: it is not for a job */
    struct job_database *job;
    struct database *db;
    struct verdict_judge *judge; /* over it; NULL: not made yet */
};

void querier_answer_fini(struct querier_answer *a) {
    result_unref(a->rows);
    catalog_free(a->catalog);
    strbuf_fini(&a->text);
    verdicts_fini(&a->verdicts);
    memset(a, 0, sizeof *a);
}

void querier_export_fini(struct querier_export *x) {
    result_unref(x->rows);
    free(x->order);
    free(x->hidden);
    memset(x, 0, sizeof *x);
}

const char *querier_export_format(const char *path, struct err *e) {
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    const char *end = dot && (!slash || dot > slash) ? dot + 1 : "";
    if (strcmp(end, "csv") != 0 && strcmp(end, "json") != 0 && strcmp(end, "ndjson") != 0) {
        err_set(e, ERR_USAGE, "the name says the format: FILE.csv, FILE.json or FILE.ndjson");
        return NULL;
    }
    return end;
}

/* ---- the thread ---- */

/* Write it: the file is replaced in one step, or not at all. Stops early if `*ending` is set. 0, or
 * -1 with the error. */
static int querier_export_write(const struct querier_export *x, const atomic_bool *ending, struct err *e) {
    struct strbuf text;
    const struct result_format *format = result_find_format(x->format, e);
    if (!format)
        return -1;
    struct result *rows =
        result_select(x->rows, x->order, x->order ? x->n_order : x->rows->n_rows, x->hidden);
    strbuf_init(&text, QUERIER_EXPORT_BYTES);
    if (rows)
        result_write(rows, format, false, &text);
    int rc = 0;
    if (!rows || text.failed)
        rc = err_set(e, ERR_FAILED, "out of memory for the export");
    else if (atomic_load(ending))
        rc = err_set(e, ERR_FAILED, "the export was cancelled, nothing was written");
    else
        rc = output_write(x->path, &text, e);
    strbuf_fini(&text);
    result_unref(rows);
    return rc;
}

static void querier_publish(struct querier *q, struct database *db) {
    work_lock(&q->work);
    q->open = db;
    work_unlock(&q->work);
}

static bool querier_is_ending(void *arg) { return atomic_load(&((struct querier *)arg)->ending); }

/* Open the database if necessary. 0, or -1 with the error. */
static int querier_open(struct querier *q, struct err *e) {
    if (q->db)
        return 0;
    if (q->job_target) {
        q->job = job_database_open(q->job_target, 0, querier_is_ending, q, e);
        if (!q->job)
            return -1;
        q->db = job_database_get(q->job);
        querier_publish(q, q->db);
        return 0;
    }
    q->db = database_open(e);
    if (!q->db)
        return -1;
    if (q->has_address && database_add(q->db, &q->address, e) != 0) {
        database_close(q->db);
        q->db = NULL;
        return -1;
    }
    querier_publish(q, q->db);
    return 0;
}

/* Take the rows of one statement. */
static int querier_read(struct querier *q, struct sql_result *r, struct err *e) {
    struct querier_answer *a = &q->answer;
    struct result *rows = result_new_for(r, QUERIER_MAX_ROWS, QUERIER_MAX_BYTES, e);
    int rc = rows ? result_fill(rows, r, e) : -1;
    a->lost += sql_result_lost(r);
    if (rc != 0 || rows->n_columns == 0) {
        result_unref(rows);
        return rc;
    }
    result_unref(a->rows);
    a->rows = rows;
    a->truncated = rows->full; /* not of a statement without rows after it */
    return 0;
}

/* Replace what has run by blanks, so that positions in error messages refer to the whole text. */
static void querier_blank(char *from, const char *to) {
    for (; from < to; from++)
        if (*from != '\n')
            *from = ' ';
}

static int querier_run_statements(struct querier *q, struct err *e) {
    const struct sql_named named[] = {{":from", q->from_s}, {":to", q->to_s}};
    struct sql_query limits = {.named = named, .n_named = sizeof named / sizeof named[0]};
    struct querier_answer *a = &q->answer;
    for (const char *tail = q->text; *tail; querier_blank(q->text, tail)) {
        struct sql_error where = {.at = -1};
        e->code = ERR_OK;
        struct sql_result *r = database_begin(q->db, q->text, &limits, &tail, &where, e);
        if (!r && e->code == ERR_OK)
            break; /* blanks and comments */
        int rc = r ? querier_read(q, r, e) : -1;
        if (r)
            sql_end(r);
        if (rc != 0) {
            a->error_at = where.at;
            return -1;
        }
        a->statements++;
    }
    if (a->statements == 0)
        return err_set(e, ERR_USAGE, "there is no statement to run");
    return 0;
}

static int querier_run_all(struct querier *q, struct err *e) {
    if (q->job && job_database_begin(q->job, q->text, e) != 0)
        return -1;
    int rc = querier_run_statements(q, e);
    if (rc != 0 && q->job && job_database_source(q->job) &&
        fleet_source_error(job_database_source(q->job))->code != ERR_OK)
        *e = *fleet_source_error(job_database_source(q->job));
    if (q->job)
        job_database_end(q->job);
    return rc;
}

static int querier_judge_all(struct querier *q, struct err *e) {
    if (!q->judge)
        q->judge = verdict_judge_new(q->db);
    if (!q->judge)
        return err_set(e, ERR_FAILED, "out of memory for verdicts");
    return verdict_judge_ask(q->judge, &q->answer.verdicts, e);
}

static int querier_open_tables(struct querier *q, struct err *e) {
    struct magic_way way = {.addr = &q->address, .stop = querier_is_ending, .stop_arg = q, .cols = q->cols};
    bool is_query = q->magic.kind == MAGIC_QUERY;
    if (!q->has_address)
        return err_set(e, ERR_FAILED, "there is no job to query");
    if (is_query && (querier_open(q, e) != 0 || database_refresh(q->db, e) != 0))
        return -1;
    way.database = q->db;
    if (magic_ask(&q->magic, &way, &q->answer.text, e) != 0)
        return -1;
    if (is_query)
        snprintf(q->answer.note, sizeof q->answer.note, "%s", database_note(q->db));
    return 0;
}

static void querier_work(struct querier *q) {
    struct querier_answer *a = &q->answer;
    uint64_t began = clock_mono_ns();
    memset(a, 0, sizeof *a);
    a->kind = q->kind;
    a->error_at = -1;
    strbuf_init(&a->text, QUERIER_MAX_BYTES);
    if (q->kind == QUERIER_MAGIC) {
        if (querier_open_tables(q, &a->error) == 0)
            a->error.code = ERR_OK;
    } else if (q->kind == QUERIER_EXPORT) {
        a->exported = q->exported.order ? q->exported.n_order : q->exported.rows->n_rows;
        if (querier_export_write(&q->exported, &q->ending, &a->error) == 0)
            a->error.code = ERR_OK;
    } else if (querier_open(q, &a->error) == 0 && database_refresh(q->db, &a->error) == 0) {
        a->error.code = ERR_OK;
        bool goes_on = !atomic_load(&q->ending);
        began = clock_mono_ns(); /* report the time for opening once */
        if (q->kind == QUERIER_RUN && goes_on && querier_run_all(q, &a->error) == 0)
            a->error.code = ERR_OK;
        if (q->kind == QUERIER_JUDGE && goes_on && querier_judge_all(q, &a->error) == 0)
            a->error.code = ERR_OK;
        database_explain(q->db, &a->error);
        a->catalog = catalog_of_session(database_sql(q->db));
        a->is_past = database_is_recorded(q->db);
        snprintf(a->note, sizeof a->note, "%s", database_note(q->db));
    }
    a->cancelled = atomic_load(&q->ending);
    if (a->error.code != ERR_OK || a->cancelled) { /* discard partial results */
        result_unref(a->rows);
        a->rows = NULL;
        verdicts_fini(&a->verdicts);
    }
    a->elapsed_s = (double)(clock_mono_ns() - began) / 1e9;
}

static void querier_main(void *arg) {
    struct querier *q = arg;
    work_lock(&q->work);
    for (;;) {
        while (!q->wanted && !q->work.stop)
            work_wait(&q->work, WORK_FOREVER);
        if (q->work.stop)
            break;
        q->wanted = false;
        work_unlock(&q->work);
        querier_work(q);
        work_notify(&q->work);
        work_lock(&q->work);
    }
    q->open = NULL;
    work_unlock(&q->work);
    verdict_judge_free(q->judge);
    if (q->job)
        job_database_close(q->job);
    else
        database_close(q->db);
    q->db = NULL;
}

/* ---- the caller ---- */

static struct querier *querier_start(const struct target_address *addr, const char *job, struct err *e) {
    struct querier *q = calloc(1, sizeof *q);
    if (!q || (job && !(q->job_target = strdup(job)))) {
        free(q);
        err_set(e, ERR_FAILED, "out of memory for queries");
        return NULL;
    }
    q->has_address = addr != NULL;
    q->from_s = q->to_s = NAN;
    if (addr)
        q->address = *addr;
    int rc = work_init(&q->work);
    if (rc == 0)
        rc = work_start(&q->work, querier_main, q);
    if (rc == 0)
        return q;
    err_set_errno(e, ERR_FAILED, rc, "cannot run queries");
    querier_free(q);
    return NULL;
}

struct querier *querier_new(const struct target_address *addr, struct err *e) {
    return querier_start(addr, NULL, e);
}

struct querier *querier_new_job(const char *target, struct err *e) {
    return querier_start(NULL, target, e);
}

int querier_fd(const struct querier *q) { return q->work.fd; }

bool querier_is_busy(const struct querier *q) { return q->busy; }

static int querier_ask(struct querier *q, enum querier_kind kind, const char *text, struct err *e) {
    if (q->busy)
        return err_set(e, ERR_FAILED, "a query runs: ctrl-c ends it");
    free(q->text);
    q->text = strdup(text);
    if (!q->text)
        return err_set(e, ERR_FAILED, "out of memory for the query");
    q->kind = kind;
    q->busy = true;
    atomic_store(&q->ending, false);
    work_lock(&q->work);
    if (q->open)
        database_arm(q->open);
    q->wanted = true;
    work_wake(&q->work);
    work_unlock(&q->work);
    return 0;
}

int querier_list_tables(struct querier *q, struct err *e) {
    return querier_ask(q, QUERIER_LIST_TABLES, "", e);
}

int querier_judge(struct querier *q, struct err *e) { return querier_ask(q, QUERIER_JUDGE, "", e); }

void querier_set_window(struct querier *q, double from_s, double to_s) {
    q->from_s = from_s;
    q->to_s = to_s;
}

int querier_run(struct querier *q, const char *text, struct err *e) {
    return querier_ask(q, QUERIER_RUN, text, e);
}

int querier_do(struct querier *q, struct magic *m, int cols, struct err *e) {
    if (q->busy) {
        magic_fini(m);
        return err_set(e, ERR_FAILED, "a request is running: ctrl-c ends it");
    }
    magic_fini(&q->magic);
    q->magic = *m;
    memset(m, 0, sizeof *m);
    q->cols = cols;
    return querier_ask(q, QUERIER_MAGIC, "", e);
}

int querier_write(struct querier *q, struct querier_export *x, struct err *e) {
    if (q->busy) {
        querier_export_fini(x);
        return err_set(e, ERR_FAILED, "a query runs: ctrl-c ends it");
    }
    querier_export_fini(&q->exported);
    q->exported = *x;
    memset(x, 0, sizeof *x);
    return querier_ask(q, QUERIER_EXPORT, "", e);
}

void querier_cancel(struct querier *q) {
    if (!q->busy)
        return;
    atomic_store(&q->ending, true);
    work_lock(&q->work);
    if (q->open)
        database_cancel(q->open);
    work_unlock(&q->work);
}

bool querier_take(struct querier *q, struct querier_answer *out) {
    if (!q->busy || !work_clear(&q->work))
        return false;
    q->busy = false;
    *out = q->answer;
    memset(&q->answer, 0, sizeof q->answer);
    querier_export_fini(&q->exported);
    return true;
}

void querier_free(struct querier *q) {
    if (!q)
        return;
    querier_cancel(q);
    if (!work_stop(&q->work, QUERIER_STOP_S))
        return;
    querier_answer_fini(&q->answer);
    querier_export_fini(&q->exported);
    magic_fini(&q->magic);
    free(q->job_target);
    free(q->text);
    free(q);
}
