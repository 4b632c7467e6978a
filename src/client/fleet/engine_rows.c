/* SPDX-License-Identifier: Apache-2.0 */
/* engine_rows: see engine_rows.h. */
#include "client/fleet/engine_rows.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client/engine/engine_schema.h"
#include "client/fleet/stack_classes.h"

#define ENGINE_ROWS_LIMIT_S 20.0
#define ENGINE_ROWS_HOST 256
#define ENGINE_ROWS_PENDING ((size_t)8 << 20) /* bytes of a row that is not whole yet */
#define ENGINE_ROWS_FRAMES ((size_t)STACK_CLASSES_DEPTH * 2)
#define ENGINE_ROWS_FRONT 2 /* columns before those of the report: host, ts */

#define ENGINE_JOB_FIELD(kind, name) {#name, REPORT_##kind, offsetof(struct engine_job, name)},

static const struct report_field engine_job_fields[] = {
    REPORT_JOB_FIELDS(ENGINE_JOB_FIELD) ENGINE_JOB_FIELD(TEXT, via) ENGINE_JOB_FIELD(REAL, cost_pct)
        ENGINE_JOB_FIELD(REAL, lag_s) ENGINE_JOB_FIELD(REAL, clock_s) ENGINE_JOB_FIELD(INT, written)
            ENGINE_JOB_FIELD(INT, lost)};

const struct report_table ENGINE_ROWS_JOB = {
    .name = "hosts", .fields = engine_job_fields, .n = sizeof engine_job_fields / sizeof *engine_job_fields};

const struct engine_rows ENGINE_ROWS_JOBS = {
    .table = "hosts", .report = &ENGINE_ROWS_JOB, .size = sizeof(struct engine_job), .one_by = "host"};
const struct engine_rows ENGINE_ROWS_RANKS = {.table = "ranks",
                                              .report = &REPORT_TABLE_RANK,
                                              .size = sizeof(struct report_rank),
                                              .one_by = "rank, host",
                                              .aliases = {{"taken_at", NULL}, {"round", NULL}}};
const struct engine_rows ENGINE_ROWS_STATES = {.table = "states",
                                               .report = &REPORT_TABLE_STATE,
                                               .size = sizeof(struct report_state),
                                               .one_by = "rank, host"};
const struct engine_rows ENGINE_ROWS_GROUPS = {.table = "groups",
                                               .report = &REPORT_TABLE_GROUP,
                                               .size = sizeof(struct report_group),
                                               .one_by = "rank, host, pg"};
const struct engine_rows ENGINE_ROWS_STEPS = {
    .table = "python_steps",
    .report = &REPORT_TABLE_TIME,
    .size = sizeof(struct report_time),
    .aliases = {{"seq", "row"}, {"op", NULL}, {"at", NULL}, {"ms", "duration_ms"}}};
/* ---- the statement ---- */

static const char *engine_column_of(const struct engine_rows *what, const char *field) {
    for (size_t i = 0; i < sizeof what->aliases / sizeof *what->aliases && what->aliases[i].field; i++)
        if (strcmp(what->aliases[i].field, field) == 0)
            return what->aliases[i].column;
    return field;
}

static const struct row_column *engine_find_column(const struct engine_table *t, const char *name) {
    for (size_t i = 0; name && i < t->n; i++)
        if (strcmp(t->columns[i].name, name) == 0)
            return &t->columns[i];
    return NULL;
}

static void engine_put_from(const struct engine_http *h, const char *table, struct strbuf *sql) {
    strbuf_adds(sql, " FROM ");
    engine_http_put_name(sql, engine_http_address(h)->database);
    strbuf_addc(sql, '.');
    engine_http_put_name(sql, table);
}

void engine_rows_put_where(struct strbuf *out, const char *job, double from, double to) {
    strbuf_adds(out, "job = ");
    engine_http_put_text(out, job);
    strbuf_addf(out,
                " AND day BETWEEN toDate(%" PRId64 ") AND toDate(%" PRId64 ") AND intDiv(toUInt32(ts), 60) "
                "BETWEEN %" PRId64 " AND %" PRId64 " AND ts > %.6f AND ts <= %.6f",
                engine_day(from), engine_day(to), (int64_t)fmax(0, from) / 60, (int64_t)fmax(0, to) / 60,
                from, to);
}

/* ---- rows ---- */

struct engine_reading {
    const struct engine_rows *what;
    struct row_column columns[ENGINE_ROWS_FRONT + REPORT_MAX_FIELDS];
    size_t field_of[ENGINE_ROWS_FRONT + REPORT_MAX_FIELDS]; /* column -> field of the report */
    size_t n;
    struct strbuf pending; /* the begin of a row that is not whole */
    struct arena *texts;
    engine_rows_fn take;
    void *arg;
    void *row;
    bool is_bad, is_ended;
};

static int engine_take_field(const struct report_field *f, const struct row_value *v, void *row,
                             struct arena *texts) {
    struct wire_value value = {.kind = WIRE_VALUE_NULL};
    if (v->kind == ROW_INT)
        value = (struct wire_value){.kind = WIRE_VALUE_INT, .i = v->i};
    else if (v->kind == ROW_REAL)
        value = (struct wire_value){.kind = WIRE_VALUE_DOUBLE, .f = v->f};
    else if (v->kind == ROW_TEXT)
        value = (struct wire_value){.kind = WIRE_VALUE_TEXT, .s = v->s, .len = v->len};
    return report_take(f, &value, row, texts);
}

/* A row that was read. 0; other than 0: the rest is not wanted. */
static int engine_put_row(struct engine_reading *r, const struct row_value *values) {
    char raw[ENGINE_ROWS_HOST], host[ENGINE_ROWS_HOST];
    size_t len = values[0].len < sizeof raw - 1 ? values[0].len : sizeof raw - 1;
    memcpy(raw, values[0].kind == ROW_TEXT ? values[0].s : "", values[0].kind == ROW_TEXT ? len : 0);
    raw[values[0].kind == ROW_TEXT ? len : 0] = '\0';
    text_sanitize(host, sizeof host, raw);
    report_clear(r->what->report, r->row);
    for (size_t i = ENGINE_ROWS_FRONT; i < r->n; i++)
        if (engine_take_field(&r->what->report->fields[r->field_of[i]], &values[i], r->row, r->texts) != 0)
            return -1;
    double ts = values[1].kind == ROW_REAL && isfinite(values[1].f) ? values[1].f : 0;
    return r->take(r->arg, host, ts, r->row);
}

static int engine_take_bytes(void *arg, const void *data, size_t len) {
    struct engine_reading *r = arg;
    struct row_value values[ENGINE_ROWS_FRONT + REPORT_MAX_FIELDS];
    if (strbuf_add(&r->pending, data, len) != 0 || r->pending.len > ENGINE_ROWS_PENDING) {
        r->is_bad = true;
        return -1;
    }
    struct row_reader rows = {.data = r->pending.data, .len = r->pending.len};
    int rc;
    while ((rc = row_binary_get_row(&rows, r->columns, r->n, values)) == 1)
        if (engine_put_row(r, values) != 0) {
            r->is_ended = true;
            return -1;
        }
    if (rc < 0) {
        r->is_bad = true;
        return -1;
    }
    memmove(r->pending.data, r->pending.data + rows.at, r->pending.len - rows.at);
    r->pending.len -= rows.at;
    return 0;
}

int engine_rows_read(struct engine_http *h, const struct engine_rows *what, const char *where,
                     struct arena *texts, engine_rows_fn take, void *arg, struct err *e) {
    const struct engine_table *t = engine_table_find(what->table);
    struct engine_reading *r = calloc(1, sizeof *r);
    struct strbuf sql;
    if (!t || !r || !(r->row = calloc(1, what->size))) {
        free(r);
        return err_set(e, ERR_FAILED, "out of memory for rows of %s", what->table);
    }
    *r = (struct engine_reading){.what = what,
                                 .columns = {{"host", ROW_STRING, false}, {"ts", ROW_FLOAT64, false}},
                                 .n = ENGINE_ROWS_FRONT,
                                 .texts = texts,
                                 .take = take,
                                 .arg = arg,
                                 .row = r->row};
    strbuf_init(&r->pending, 0);
    strbuf_init(&sql, 0);
    strbuf_adds(&sql, "SELECT host, ts");
    for (size_t i = 0; i < what->report->n; i++) {
        const struct row_column *c =
            engine_find_column(t, engine_column_of(what, what->report->fields[i].name));
        if (!c)
            continue;
        strbuf_adds(&sql, ", ");
        engine_http_put_name(&sql, c->name);
        r->columns[r->n] = *c;
        r->field_of[r->n++] = i;
    }
    engine_put_from(h, t->name, &sql);
    strbuf_addf(&sql, " WHERE %s", where);
    if (what->one_by)
        strbuf_addf(&sql, " ORDER BY ts DESC LIMIT 1 BY %s", what->one_by);
    else
        strbuf_adds(&sql, " ORDER BY host, rank, pid, created_us, row");
    strbuf_adds(&sql, " FORMAT RowBinary");
    int rc = sql.failed
                 ? err_set(e, ERR_FAILED, "out of memory for a statement")
                 : engine_http_stream(h, strbuf_str(&sql), ENGINE_ROWS_LIMIT_S, engine_take_bytes, r, e);
    if (r->is_ended)
        rc = err_set(e, ERR_FAILED, "the rows of %s are too many", what->table);
    else if ((r->is_bad || (rc == 0 && r->pending.len)) &&
             !engine_http_find_error(engine_http_address(h), r->pending.data, r->pending.len, e))
        rc = err_set(e, ERR_FAILED, "the answer of the server about %s is not valid", what->table);
    else if (r->is_bad || r->pending.len)
        rc = rc == 0 || e->code != ERR_OK ? -1 : rc;
    strbuf_fini(&sql);
    strbuf_fini(&r->pending);
    free(r->row);
    free(r);
    return rc;
}

/* ---- stacks ---- */

static const struct row_column engine_stack_columns[] = {{"stack", ROW_UINT64, false},
                                                         {"func", ROW_STRINGS, false},
                                                         {"file", ROW_STRINGS, false},
                                                         {"line", ROW_INTS, false}};

static const char *engine_copy_text(struct arena *texts, const struct row_value *v) {
    char raw[1024];
    size_t len = v->kind == ROW_TEXT ? v->len : 0;
    len = len < sizeof raw - 1 ? len : sizeof raw - 1;
    memcpy(raw, len ? v->s : "", len);
    raw[len] = '\0';
    char *clean = arena_alloc(texts, 3 * strlen(raw) + 1);
    if (clean)
        text_sanitize(clean, 3 * strlen(raw) + 1, raw);
    return clean;
}

static size_t engine_take_frames(struct row_value *values, struct model_frame *frames, struct arena *texts) {
    struct row_value func, file, line;
    size_t n = 0;
    while (n < ENGINE_ROWS_FRAMES && row_binary_next(&values[1], &engine_stack_columns[1], &func) == 1 &&
           row_binary_next(&values[2], &engine_stack_columns[2], &file) == 1 &&
           row_binary_next(&values[3], &engine_stack_columns[3], &line) == 1)
        frames[n++] = (struct model_frame){.func = engine_copy_text(texts, &func),
                                           .file = engine_copy_text(texts, &file),
                                           .line = line.i > 0 && line.i <= INT32_MAX ? (int)line.i : 0};
    return n;
}

int engine_rows_read_stacks(struct engine_http *h, const char *job, double at, const int64_t *ids, size_t n,
                            struct arena *texts, engine_stacks_fn take, void *arg, struct err *e) {
    struct strbuf sql, answer;
    struct row_value values[ENGINE_STACKS_COUNT];
    struct model_frame *frames = calloc(ENGINE_ROWS_FRAMES, sizeof *frames);
    if (!frames)
        return err_set(e, ERR_FAILED, "out of memory for stacks");
    strbuf_init(&sql, 0);
    strbuf_init(&answer, 0);
    strbuf_adds(&sql, "SELECT stack, any(func), any(file), any(line)");
    engine_put_from(h, "stacks", &sql);
    strbuf_adds(&sql, " WHERE job = ");
    engine_http_put_text(&sql, job);
    /* they are written again each day, which may have just begun */
    strbuf_addf(&sql, " AND day BETWEEN toDate(%" PRId64 ") AND toDate(%" PRId64 ") AND stack IN (",
                engine_day(at) - 1, engine_day(at) + 1);
    for (size_t i = 0; i < n; i++)
        strbuf_addf(&sql, "%s%" PRIu64, i ? "," : "", (uint64_t)ids[i]);
    strbuf_adds(&sql, ") GROUP BY stack FORMAT RowBinary");
    int rc = engine_http_query(h, strbuf_str(&sql), ENGINE_ROWS_LIMIT_S, &answer, e);
    struct row_reader rows = {.data = answer.data, .len = answer.len};
    int got = 0;
    while (rc == 0 && (got = row_binary_get_row(&rows, engine_stack_columns, 4, values)) == 1) {
        size_t depth = engine_take_frames(values, frames, texts);
        if (texts->failed)
            rc = err_set(e, ERR_FAILED, "the stacks of the job are too many");
        else if (depth)
            take(arg, values[0].i, frames, depth);
    }
    if (rc == 0 && (got < 0 || rows.at != rows.len))
        rc = err_set(e, ERR_FAILED, "the answer of the server about stacks is not valid");
    strbuf_fini(&sql);
    strbuf_fini(&answer);
    free(frames);
    return rc;
}

int engine_rows_read_number(struct engine_http *h, const char *sql, double *out, struct err *e) {
    static const struct row_column column = {"x", ROW_FLOAT64, true};
    struct strbuf answer;
    struct row_value v;
    strbuf_init(&answer, 4096);
    int rc = engine_http_query(h, sql, ENGINE_ROWS_LIMIT_S, &answer, e);
    struct row_reader rows = {.data = answer.data, .len = answer.len};
    if (rc == 0 && row_binary_get_row(&rows, &column, 1, &v) != 1)
        rc = err_set(e, ERR_FAILED, "the answer of the server is not valid");
    if (rc == 0)
        *out = v.kind == ROW_REAL ? v.f : NAN;
    strbuf_fini(&answer);
    return rc;
}
