/* SPDX-License-Identifier: Apache-2.0 */
/* engine_jobs: see engine_jobs.h. */
#include "client/fleet/engine_jobs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client/engine/row_binary.h"
#include "client/fleet/engine_rows.h"

#define ENGINE_JOBS_LIMIT_S 20.0
#define ENGINE_JOBS_NAMED 5     /* in an error */
#define ENGINE_JOBS_RUNS_S 60.0 /* after its last row a job has ended */

static void engine_put_hosts(const struct engine_http *h, struct strbuf *sql) {
    strbuf_adds(sql, " FROM ");
    engine_http_put_name(sql, engine_http_address(h)->database);
    strbuf_adds(sql, ".hosts");
}

static void engine_copy(char *to, size_t cap, const struct row_value *v) {
    char raw[256];
    size_t len = v->kind == ROW_TEXT ? v->len : 0;
    len = len < sizeof raw - 1 ? len : sizeof raw - 1;
    memcpy(raw, len ? v->s : "", len);
    raw[len] = '\0';
    text_sanitize(to, cap, raw);
}

static double engine_real(const struct row_value *v) { return v->kind == ROW_REAL ? v->f : NAN; }

int engine_jobs_read(struct engine_jobs *j, struct engine_http *h, struct err *e) {
    static const struct row_column columns[] = {{"job", ROW_STRING, false},    {"user", ROW_STRING, true},
                                                {"world", ROW_INT64, true},    {"hosts", ROW_UINT64, false},
                                                {"first", ROW_FLOAT64, false}, {"last", ROW_FLOAT64, false},
                                                {"now", ROW_FLOAT64, false}};
    struct row_value v[sizeof columns / sizeof *columns];
    struct strbuf sql, answer;
    int got = 0;
    *j = (struct engine_jobs){.items = calloc(ENGINE_JOBS_MAX, sizeof *j->items)};
    if (!j->items)
        return err_set(e, ERR_FAILED, "out of memory for the jobs of a database");
    strbuf_init(&sql, 0);
    strbuf_init(&answer, 0);
    strbuf_adds(&sql, "SELECT job, any(user), max(world), uniqExact(host), min(ts), max(ts) AS newest, "
                      "toFloat64(now())");
    engine_put_hosts(h, &sql);
    strbuf_addf(&sql,
                " WHERE day >= today() - 30 GROUP BY job ORDER BY newest DESC, job LIMIT %d FORMAT RowBinary",
                ENGINE_JOBS_MAX);
    int rc = engine_http_query(h, strbuf_str(&sql), ENGINE_JOBS_LIMIT_S, &answer, e);
    struct row_reader rows = {.data = answer.data, .len = answer.len};
    while (rc == 0 && j->n < ENGINE_JOBS_MAX &&
           (got = row_binary_get_row(&rows, columns, sizeof columns / sizeof *columns, v)) == 1) {
        struct engine_jobs_item *to = &j->items[j->n++];
        engine_copy(to->name, sizeof to->name, &v[0]);
        engine_copy(to->user, sizeof to->user, &v[1]);
        to->ranks = v[2].kind == ROW_INT && v[2].i > 0 ? v[2].i : -1;
        to->hosts = v[3].kind == ROW_INT ? v[3].i : 0;
        to->first = engine_real(&v[4]);
        to->last = engine_real(&v[5]);
        to->is_running = engine_real(&v[6]) - to->last < ENGINE_JOBS_RUNS_S;
    }
    if (rc == 0 && (got < 0 || (j->n < ENGINE_JOBS_MAX && rows.at != rows.len)))
        rc = err_set(e, ERR_FAILED, "the answer of the server about its jobs is not valid");
    strbuf_fini(&sql);
    strbuf_fini(&answer);
    return rc;
}

void engine_jobs_fini(struct engine_jobs *j) {
    free(j->items);
    *j = (struct engine_jobs){.n = 0};
}

/* The time of its last row; 0: there is none. */
static int engine_jobs_last(struct engine_http *h, const char *name, const char *days, double *last,
                            struct err *e) {
    struct strbuf sql;
    strbuf_init(&sql, 0);
    strbuf_adds(&sql, "SELECT toNullable(max(ts))");
    engine_put_hosts(h, &sql);
    strbuf_adds(&sql, " WHERE job = ");
    engine_http_put_text(&sql, name);
    strbuf_addf(&sql, "%s FORMAT RowBinary", days);
    int rc = engine_rows_read_number(h, strbuf_str(&sql), last, e);
    strbuf_fini(&sql);
    if (rc == 0 && !isfinite(*last))
        *last = 0;
    return rc;
}

/* The error for a job that is not there, or not named. */
static int engine_jobs_refuse(const struct engine_jobs *j, struct engine_http *h, const char *name,
                              struct err *e) {
    struct strbuf there, address;
    strbuf_init(&there, 0);
    strbuf_init(&address, 0);
    engine_address_put(engine_http_address(h), &address);
    for (size_t i = 0; i < j->n && i < ENGINE_JOBS_NAMED; i++)
        strbuf_addf(&there, "%s%.64s", i ? ", " : "", j->items[i].name);
    if (j->n > ENGINE_JOBS_NAMED)
        strbuf_addf(&there, " and %zu more", j->n - ENGINE_JOBS_NAMED);
    if (!j->n)
        err_set(e, ERR_ATTACH, "%.160s has no rows of a job. Try: probing relay --to %.160s",
                strbuf_str(&address), strbuf_str(&address));
    else if (name[0])
        err_set(e, ERR_ATTACH, "%.160s has no job '%.100s'; there are: %.400s", strbuf_str(&address), name,
                strbuf_str(&there));
    else
        err_set(e, ERR_USAGE, "%.160s has %zu jobs: name one by ?job=NAME: %.400s", strbuf_str(&address),
                j->n, strbuf_str(&there));
    strbuf_fini(&there);
    strbuf_fini(&address);
    return -1;
}

int engine_jobs_choose(struct engine_http *h, const char *name, char *job, size_t cap, double *last,
                       struct err *e) {
    struct engine_jobs j = {.n = 0};
    int rc = 0;
    *last = 0;
    snprintf(job, cap, "%s", name);
    if (name[0]) {
        rc = engine_jobs_last(h, name, " AND day >= today() - 1", last, e);
        if (rc == 0 && *last <= 0)
            rc = engine_jobs_last(h, name, "", last, e);
        if (rc != 0 || *last > 0)
            return rc;
    }
    rc = engine_jobs_read(&j, h, e);
    if (rc == 0 && !name[0] && j.n == 1) {
        snprintf(job, cap, "%s", j.items[0].name);
        *last = j.items[0].last;
    } else if (rc == 0)
        rc = engine_jobs_refuse(&j, h, name, e);
    engine_jobs_fini(&j);
    return rc;
}

int engine_jobs_clock(struct engine_http *h, double *now, struct err *e) {
    return engine_rows_read_number(h, "SELECT toNullable(toFloat64(now())) FORMAT RowBinary", now, e);
}

/* The last row of a rank: hosts write theirs every ten seconds. Up to whole ms, as addresses and statements have it:
 * rounded down, the last rows would not be there. */
static int engine_jobs_end(struct engine_http *h, const char *job, double last, double *end, struct err *e) {
    struct strbuf sql;
    double newest = NAN;
    strbuf_init(&sql, 0);
    strbuf_adds(&sql, "SELECT toNullable(max(ts)) FROM ");
    engine_http_put_name(&sql, engine_http_address(h)->database);
    strbuf_adds(&sql, ".ranks WHERE ");
    engine_rows_put_where(&sql, job, last - 1, last + ENGINE_JOBS_RUNS_S);
    strbuf_adds(&sql, " FORMAT RowBinary");
    int rc = engine_rows_read_number(h, strbuf_str(&sql), &newest, e);
    strbuf_fini(&sql);
    *end = ceil((newest > last ? newest : last) * 1000) / 1000;
    return rc;
}

int engine_jobs_time_shown(struct engine_http *h, const char *job, double last, double at, double now,
                           double *moment, struct err *e) {
    *moment = NAN;
    if (last < now - ENGINE_JOBS_RUNS_S && engine_jobs_end(h, job, last, moment, e) != 0)
        return -1;
    /* one that has not come yet is now, and after its end a job is shown at its end */
    if (at <= now)
        *moment = fmin(at, isnan(*moment) ? INFINITY : *moment);
    return 0;
}
