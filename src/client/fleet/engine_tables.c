/* SPDX-License-Identifier: Apache-2.0 */
/* engine_tables: see engine_tables.h. */
#include "client/fleet/engine_tables.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/table.h"
#include "client/engine/engine_schema.h"
#include "client/fleet/engine_jobs.h"

#define ENGINE_TABLES_MAX 64
#define ENGINE_TABLES_BYTES ((size_t)64 << 20) /* of a scan */
#define ENGINE_TABLES_LIMIT_S 600.0
#define ENGINE_TABLES_FRONT 3   /* columns rank, host, pid of a definition */
#define ENGINE_TABLES_RANKS 256 /* that a statement names one by one */
#define ENGINE_TABLES_TEXT 65536
/* Of a number with a meaning in its process alone: above them is the process's. */
#define ENGINE_TABLES_ID_BITS 40
#define ENGINE_TABLES_PROCESSES ((size_t)1 << 22)
#define ENGINE_TABLES_APART_US 1000000U /* the rings of an agent are made within that, one after the other */

/* A process with an agent: one that is loaded again numbers its stacks from the beginning. */
struct engine_process {
    int64_t rank, pid;
    uint64_t host;           /* hash of its name */
    uint64_t from_us, to_us; /* when its rings were made, as far as they were seen */
};

struct engine_source {
    struct engine_tables *owner;
    const struct engine_table *table;
    struct ring_table_def def;
    struct ring_column_def columns[ENGINE_TABLES_FRONT + RING_MAX_COLUMNS + 1];
    const struct row_column
        *stored[ENGINE_TABLES_FRONT + RING_MAX_COLUMNS]; /* of each column of the definition */
    bool is_id[ENGINE_TABLES_FRONT + RING_MAX_COLUMNS];  /* a number with a meaning in its process alone */
};

struct engine_tables {
    struct engine_http *http;
    char job[ENGINE_ADDRESS_JOB];
    double limit_s;
    double moment; /* of the past: that of the target, or the end of the job; NAN: none */
    bool is_cut;   /* rows of later are not there */
    struct engine_source *sources[ENGINE_TABLES_MAX];
    struct sql_provider providers[ENGINE_TABLES_MAX];
    size_t n;
    struct engine_process *processes;
    size_t n_processes, cap_processes;
    struct table by_process;
};

/* ---- a scan ---- */

struct engine_scan {
    const struct engine_source *source;
    struct sql_sink *sink;
    struct row_column columns[ENGINE_TABLES_FRONT + RING_MAX_COLUMNS + 1];
    size_t column_of[ENGINE_TABLES_FRONT + RING_MAX_COLUMNS]; /* -> column of the definition */
    size_t n;
    bool has_ids; /* behind the columns is when the ring of the row was made */
    union ring_value unknown[ENGINE_TABLES_FRONT + RING_MAX_COLUMNS];
    struct strbuf pending;
    size_t bytes;
    char *text; /* of the values of a row */
    bool is_full, is_bad, is_ended;
};

static bool engine_is_real(enum ring_type type) { return type == RING_TIMESTAMP || type == RING_DOUBLE; }

/* A value of a row. Texts are copied behind each other; what does not fit is cut. */
static union ring_value engine_value(enum ring_type type, const struct row_value *v, char **text,
                                     size_t *left) {
    union ring_value out;
    if (engine_is_real(type)) {
        out.f = v->kind == ROW_REAL ? v->f : v->kind == ROW_INT ? (double)v->i : NAN;
    } else if (type == RING_TEXT) {
        out.s = NULL;
        if (v->kind == ROW_TEXT && *left) {
            size_t n = v->len < *left ? v->len : *left - 1;
            memcpy(*text, v->s, n);
            (*text)[n] = '\0';
            out.s = *text;
            *text += n + 1;
            *left -= n + 1;
        }
    } else
        out.i = v->kind == ROW_INT ? v->i : RING_INT_NULL;
    return out;
}

/* The number of a row's process. -1 without memory, or there are too many. */
static int64_t engine_number_process(struct engine_tables *t, const union ring_value *row, uint64_t made_us) {
    const struct engine_process seen = {.rank = row[0].i,
                                        .host = hash_fnv_text(HASH_FNV_START, row[1].s ? row[1].s : ""),
                                        .pid = row[2].i,
                                        .from_us = made_us,
                                        .to_us = made_us};
    uint64_t hash = hash_mix(seen.host ^ hash_mix((uint64_t)seen.rank << 32 ^ (uint64_t)seen.pid));
    size_t at = TABLE_BEGIN;
    for (uint32_t i; (i = table_next(&t->by_process, hash, &at)) != TABLE_NONE;) {
        struct engine_process *p = &t->processes[i];
        if (p->rank != seen.rank || p->pid != seen.pid || p->host != seen.host ||
            made_us + ENGINE_TABLES_APART_US < p->from_us || made_us > p->to_us + ENGINE_TABLES_APART_US)
            continue;
        p->from_us = made_us < p->from_us ? made_us : p->from_us;
        p->to_us = made_us > p->to_us ? made_us : p->to_us;
        return i;
    }
    if (t->n_processes == ENGINE_TABLES_PROCESSES ||
        grow_array(&t->processes, sizeof *t->processes, t->n_processes + 1, &t->cap_processes) != 0 ||
        table_add(&t->by_process, hash, (uint32_t)t->n_processes) != 0)
        return -1;
    t->processes[t->n_processes] = seen;
    return (int64_t)t->n_processes++;
}

/* Make numbers of stacks and the like those of the job. */
static void engine_scope_ids(struct engine_scan *s, union ring_value *row, const struct row_value *made) {
    int64_t number =
        engine_number_process(s->source->owner, row, made->kind == ROW_INT ? (uint64_t)made->i : 0);
    for (size_t i = 0; i < s->n; i++) {
        union ring_value *v = &row[s->column_of[i]];
        if (!s->source->is_id[s->column_of[i]] || v->i == RING_INT_NULL)
            continue;
        bool is_known = number >= 0 && v->i >= 0 && v->i < (int64_t)1 << ENGINE_TABLES_ID_BITS;
        v->i = is_known ? number << ENGINE_TABLES_ID_BITS | v->i : RING_INT_NULL;
    }
}

static int engine_put_row(struct engine_scan *s, const struct row_value *values) {
    union ring_value row[ENGINE_TABLES_FRONT + RING_MAX_COLUMNS];
    char *text = s->text;
    size_t left = ENGINE_TABLES_TEXT * 4;
    memcpy(row, s->unknown, sizeof row);
    for (size_t i = 0; i < s->n; i++)
        row[s->column_of[i]] =
            engine_value(s->source->columns[s->column_of[i]].type, &values[i], &text, &left);
    if (s->has_ids)
        engine_scope_ids(s, row, &values[s->n]);
    return sql_sink_put(s->sink, row);
}

static int engine_take(void *arg, const void *data, size_t len) {
    struct engine_scan *s = arg;
    struct row_value values[ENGINE_TABLES_FRONT + RING_MAX_COLUMNS + 1];
    s->bytes += len;
    s->is_full = s->bytes > ENGINE_TABLES_BYTES;
    s->is_ended = sql_sink_cancelled(s->sink);
    if (s->is_full || s->is_ended)
        return -1;
    s->is_bad = strbuf_add(&s->pending, data, len) != 0;
    struct row_reader rows = {.data = s->pending.data, .len = s->pending.len};
    int rc = 0;
    while (!s->is_bad && (rc = row_binary_get_row(&rows, s->columns, s->n + s->has_ids, values)) == 1)
        if (engine_put_row(s, values) != 0) {
            s->is_ended = true;
            return -1;
        }
    s->is_bad |= rc < 0;
    if (s->is_bad)
        return -1;
    memmove(s->pending.data, s->pending.data + rows.at, rows.len - rows.at);
    s->pending.len -= rows.at;
    return 0;
}

static const struct row_column *engine_stored(const struct engine_table *t, const char *name) {
    if (t->alias && strcmp(t->alias, name) == 0)
        name = "ts";
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->columns[i].name, name) == 0)
            return &t->columns[i];
    return NULL;
}

/* ---- its statement ---- */

static void engine_put_ranks(const struct sql_wanted *w, struct strbuf *sql) {
    if (w->ranks && w->n_ranks <= ENGINE_TABLES_RANKS) {
        strbuf_adds(sql, " AND rank IN (-2");
        for (size_t i = 0; i < w->n_ranks; i++)
            strbuf_addf(sql, ",%" PRId64, w->ranks[i]);
        strbuf_addc(sql, ')');
    }
    if (w->min_rank != INT64_MIN)
        strbuf_addf(sql, " AND rank >= %" PRId64, w->min_rank);
    if (w->max_rank != INT64_MAX)
        strbuf_addf(sql, " AND rank <= %" PRId64, w->max_rank);
}

/* Bounds of ts, by day, minute and itself: a day is a part of the table, a minute a part of its order. */
static void engine_put_bound(struct strbuf *sql, const char *sign, double ts, int64_t day) {
    strbuf_addf(sql, " AND day %s toDate(%" PRId64 ")", sign, day);
    if (ts >= 0 && ts < UINT32_MAX)
        strbuf_addf(sql, " AND intDiv(toUInt32(ts), 60) %s %" PRId64, sign, (int64_t)ts / 60);
    strbuf_addf(sql, " AND ts %s %.7f", sign, ts);
}

static void engine_put_wanted(const struct engine_source *s, const struct sql_wanted *w, struct strbuf *sql) {
    /* a time of SQL is kept to the microsecond */
    if (w->min_us != INT64_MIN) {
        double ts = (double)w->min_us / 1e6 - 1e-6;
        engine_put_bound(sql, ">=", ts, engine_day(ts));
    }
    if (w->max_us != INT64_MAX) {
        double ts = (double)w->max_us / 1e6 + 1e-6;
        engine_put_bound(sql, "<=", ts, engine_day(ts));
    }
    if (s->owner->is_cut)
        engine_put_bound(sql, "<=", s->owner->moment, engine_day(s->owner->moment));
    engine_put_ranks(w, sql);
    const struct row_column *c = w->equal_column >= 0 ? s->stored[w->equal_column] : NULL;
    if (!c)
        return;
    bool is_text = c->type == ROW_STRING;
    if (is_text != (w->equal_text != NULL))
        return;
    strbuf_adds(sql, " AND ");
    engine_http_put_name(sql, c->name);
    strbuf_adds(sql, " = ");
    if (is_text)
        engine_http_put_text(sql, w->equal_text);
    else
        strbuf_addf(sql, "%" PRId64,
                    s->is_id[w->equal_column] ? w->equal & (((int64_t)1 << ENGINE_TABLES_ID_BITS) - 1)
                                              : w->equal);
}

/* True if the limit is for rows that SQL takes all of. */
static bool engine_is_exact(const struct engine_source *s, const struct sql_wanted *w) {
    bool equal =
        w->equal_column < 0 || (s->stored[w->equal_column] && !s->is_id[w->equal_column] &&
                                (s->stored[w->equal_column]->type == ROW_STRING) == (w->equal_text != NULL));
    return equal && w->min_us == INT64_MIN && w->max_us == INT64_MAX &&
           (!w->ranks || w->n_ranks <= ENGINE_TABLES_RANKS);
}

static void engine_put_statement(const struct engine_source *s, struct engine_scan *scan, uint64_t columns,
                                 struct strbuf *sql) {
    const struct sql_wanted *w = sql_sink_wanted(scan->sink);
    for (size_t i = 0; s->columns[i].name; i++) {
        /* rank, host and pid are of each row, and not in the mask */
        bool is_wanted = i < ENGINE_TABLES_FRONT || ((columns >> (i < 63 ? i : 63)) & 1);
        if (!s->stored[i] || !is_wanted)
            continue;
        strbuf_adds(sql, scan->n ? ", " : "SELECT ");
        engine_http_put_name(sql, s->stored[i]->name);
        scan->columns[scan->n] = *s->stored[i];
        scan->has_ids |= s->is_id[i];
        scan->column_of[scan->n++] = i;
    }
    if (scan->has_ids) {
        scan->columns[scan->n] = *engine_stored(s->table, "created_us");
        strbuf_adds(sql, ", created_us");
    }
    strbuf_adds(sql, " FROM ");
    engine_http_put_name(sql, engine_http_address(s->owner->http)->database);
    strbuf_addc(sql, '.');
    engine_http_put_name(sql, s->table->name);
    strbuf_adds(sql, " FINAL WHERE job = ");
    engine_http_put_text(sql, s->owner->job);
    engine_put_wanted(s, w, sql);
    if (w->limit && engine_is_exact(s, w))
        strbuf_addf(sql, " LIMIT %" PRIu64, w->limit);
    else
        strbuf_adds(sql, " ORDER BY rank, host, pid, created_us, row");
    strbuf_adds(sql, " FORMAT RowBinary");
}

static bool engine_is_stopped(void *arg) { return sql_sink_cancelled(arg); }

static int engine_scan_table(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    const struct engine_source *s = arg;
    struct engine_scan *scan = calloc(1, sizeof *scan);
    struct strbuf sql;
    if (!scan || !(scan->text = malloc(ENGINE_TABLES_TEXT * 4))) {
        free(scan);
        return err_set(e, ERR_FAILED, "out of memory for rows of %s", s->def.name);
    }
    scan->source = s;
    scan->sink = sink;
    for (size_t i = 0; s->columns[i].name; i++)
        if (engine_is_real(s->columns[i].type))
            scan->unknown[i].f = NAN;
        else if (s->columns[i].type == RING_TEXT)
            scan->unknown[i].s = NULL;
        else
            scan->unknown[i].i = RING_INT_NULL;
    strbuf_init(&sql, 0);
    strbuf_init(&scan->pending, 0);
    engine_put_statement(s, scan, columns, &sql);
    engine_http_set_stop(s->owner->http, engine_is_stopped, sink);
    int rc = engine_http_stream(s->owner->http, strbuf_str(&sql), s->owner->limit_s, engine_take, scan, e);
    engine_http_set_stop(s->owner->http, NULL, NULL);
    scan->is_ended |= sql_sink_cancelled(sink);
    if (scan->is_full)
        rc =
            err_set(e, ERR_USAGE,
                    "the rows of %s that this needs are more than %zu MB: narrow it by timestamp or rank, or "
                    "let the server add them up: query --engine SQL",
                    s->def.name, ENGINE_TABLES_BYTES >> 20);
    else if (scan->is_ended)
        rc = 0;
    else if ((scan->is_bad || (rc == 0 && scan->pending.len)) &&
             !engine_http_find_error(engine_http_address(s->owner->http), scan->pending.data,
                                     scan->pending.len, e))
        rc = err_set(e, ERR_FAILED, "the answer of the server about %s is not valid", s->def.name);
    else if (scan->is_bad || scan->pending.len)
        rc = -1;
    strbuf_fini(&sql);
    strbuf_fini(&scan->pending);
    free(scan->text);
    free(scan);
    return rc;
}

/* ---- which there are ---- */

static int engine_add_table(struct engine_tables *t, const struct engine_table *table) {
    static const struct ring_column_def front[ENGINE_TABLES_FRONT] = {
        {.name = "rank", .type = RING_INT64, .help = "rank of the process"},
        {.name = "host", .type = RING_TEXT, .help = "host that it runs on"},
        {.name = "pid", .type = RING_INT64, .help = "its process"}};
    struct engine_source *s = t->n < ENGINE_TABLES_MAX ? calloc(1, sizeof *s) : NULL;
    size_t n = ENGINE_TABLES_FRONT;
    if (!s)
        return -1;
    t->sources[t->n] = s;
    s->owner = t;
    s->table = table;
    memcpy(s->columns, front, sizeof front);
    for (const struct ring_column_def *c = table->ring->columns; c->name; c++) {
        bool is_front = false;
        for (size_t i = 0; i < ENGINE_TABLES_FRONT; i++)
            is_front |= strcmp(front[i].name, c->name) == 0;
        if (is_front || n == ENGINE_TABLES_FRONT + RING_MAX_COLUMNS)
            continue;
        s->columns[n] = *c;
        /* a label is kept as a text, and a number with a meaning in its process as a number */
        if (c->type == RING_ENUM)
            s->columns[n] = (struct ring_column_def){
                .name = c->name, .type = RING_TEXT, .help = c->help, .unit = c->unit};
        s->is_id[n] = c->type == RING_ID;
        if (s->is_id[n])
            s->columns[n].type = RING_INT64;
        n++;
    }
    for (size_t i = 0; i < n; i++)
        s->stored[i] = engine_stored(table, s->columns[i].name);
    s->def = *table->ring;
    s->def.columns = s->columns;
    s->def.cost = RING_COST_NOW;
    s->def.weight = 0;
    t->providers[t->n++] =
        (struct sql_provider){.def = &s->def,
                              .uses = SQL_USES_TIME | SQL_USES_RANK | SQL_USES_EQUAL | SQL_USES_LIMIT,
                              .scan = engine_scan_table,
                              .arg = s};
    return 0;
}

static struct engine_http *engine_connect(const char *target, struct engine_address *a, struct err *e) {
    if (engine_address_parse(a, target, e) != 0 || engine_address_read_password(a, e) != 0)
        return NULL;
    return engine_http_open(a, e);
}

struct engine_tables *engine_tables_new(const char *target, double limit_s, bool (*stop)(void *arg),
                                        void *arg, struct err *e) {
    struct engine_tables *t = calloc(1, sizeof *t);
    struct engine_address a;
    double last, now;
    if (!t) {
        err_set(e, ERR_FAILED, "out of memory for the tables of a job");
        return NULL;
    }
    t->limit_s = limit_s > 0 ? limit_s : ENGINE_TABLES_LIMIT_S;
    t->http = engine_connect(target, &a, e);
    if (t->http)
        engine_http_set_stop(t->http, stop, arg);
    int rc = t->http ? engine_schema_check(t->http, e) : -1;
    if (rc == 0)
        rc = engine_jobs_choose(t->http, a.job, t->job, sizeof t->job, &last, e);
    if (rc == 0)
        rc = engine_jobs_clock(t->http, &now, e);
    if (rc == 0)
        rc = engine_jobs_time_shown(t->http, t->job, last, a.at, now, &t->moment, e);
    if (t->http)
        engine_http_set_stop(t->http, NULL, NULL);
    t->is_cut = t->moment == a.at;
    for (const struct engine_table *const *table = engine_tables(); rc == 0 && *table; table++)
        if ((*table)->ring && engine_add_table(t, *table) != 0)
            rc = err_set(e, ERR_FAILED, "out of memory for the tables of a job");
    if (rc == 0)
        return t;
    engine_tables_free(t);
    return NULL;
}

void engine_tables_free(struct engine_tables *t) {
    if (!t)
        return;
    engine_http_close(t->http);
    for (size_t i = 0; i < ENGINE_TABLES_MAX; i++)
        free(t->sources[i]);
    free(t->processes);
    table_fini(&t->by_process);
    free(t);
}

int engine_tables_add(struct engine_tables *t, struct database *d, struct err *e) {
    if (database_add_tables(d, t->providers, t->n, e) != 0)
        return -1;
    database_set_time(d, t->moment);
    return 0;
}

int engine_tables_pass(const char *target, const char *statement, const char *format, double limit_s,
                       struct strbuf *out, struct err *e) {
    struct engine_address a;
    struct engine_http *h = engine_connect(target, &a, e);
    struct strbuf sql, answer;
    if (!h)
        return -1;
    strbuf_init(&sql, 0);
    strbuf_init(&answer, ENGINE_TABLES_BYTES);
    size_t len = strlen(statement);
    while (len && strchr("; \t\n", statement[len - 1]))
        len--;
    strbuf_addf(&sql, "%.*s FORMAT %s", (int)len, statement, format);
    int rc =
        engine_http_query(h, strbuf_str(&sql), limit_s > 0 ? limit_s : ENGINE_TABLES_LIMIT_S, &answer, e);
    /* it is shown as it is, but for what a terminal would obey */
    for (size_t i = 0; rc == 0 && i < answer.len; i++) {
        unsigned char c = (unsigned char)answer.data[i];
        if ((c < ' ' && c != '\n' && c != '\t') || c == 0x7f)
            answer.data[i] = '?';
    }
    if (rc == 0 && strbuf_add(out, answer.data, answer.len) != 0)
        rc = err_set(e, ERR_FAILED, "out of memory for the answer of the server");
    strbuf_fini(&sql);
    strbuf_fini(&answer);
    engine_http_close(h);
    return rc;
}
