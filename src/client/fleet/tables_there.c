/* SPDX-License-Identifier: Apache-2.0 */
/* tables_there: see tables_there.h. */
#include "client/fleet/tables_there.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "client/fleet/relay_calls.h"
#include "client/fleet/report.h"
#include "client/fleet/rows_there.h"
#include "client/progress.h"
#include "client/sql/live_tables.h"
#include "store/ring/ring_tables.h"

#define THERE_MOST_BYTES ((uint64_t)64 * 1024 * 1024) /* that a query may move of a table */
#define THERE_LIVE_RANKS 256                          /* that are asked together for what they do now */
#define THERE_RANKS 64      /* of a set that is sent; of a larger one its bounds are */
#define THERE_TEXT_BYTES 24 /* of a text, as long as it is not known */
#define THERE_MAP_COLUMNS 256
#define THERE_PIECE ((size_t)64 * 1024) /* bytes of rows that are put into a table together */
#define THERE_LIMIT_S 600.0
#define THERE_SHARE                                                                                          \
    0.9 /* of the time that is left of a query: the rest is for what the other hosts have given */

struct there_table {
    struct tables_there *owner;
    bool is_kept;
    struct ring_table_def def;
    struct ring_column_def columns[RING_MAX_COLUMNS + 1];
    enum ring_type types[RING_MAX_COLUMNS]; /* there */
};

struct tables_there {
    struct relay_calls *calls;
    bool attach;
    double limit_s;
    uint64_t until_ns; /* then the query is over */
    struct there_table tables[RING_TABLE_COUNT];
    struct sql_provider providers[RING_TABLE_COUNT];
    bool is_connected;  /* since tables_there_begin */
    struct err failure; /* of the last scan that failed */
    char note[640];
};

static void there_note(struct tables_there *t, const char *host, const char *note) {
    char clean[400];
    size_t n = strlen(t->note);
    text_sanitize(clean, sizeof clean, note);
    if (clean[0] && !strstr(t->note, clean))
        snprintf(t->note + n, sizeof t->note - n, "%s%s: %s", n ? "; " : "", host, clean);
}

/* How long hosts are waited for. */
static double there_left_s(const struct tables_there *t) {
    double left_s = ((double)t->until_ns - (double)clock_mono_ns()) / (double)CLOCK_NS_PER_S;
    return THERE_SHARE * fmax(left_s, (1 - THERE_SHARE) * t->limit_s);
}

/* Once a query. 0, or -1 with the error. */
static int there_connect(struct tables_there *t, const struct relay_calls_limit *limit, struct err *e) {
    struct relay_calls_limit half = *limit;
    half.limit_s /= 2;
    if (!t->is_connected && relay_calls_connect(t->calls, &half, e) != 0)
        return -1;
    t->is_connected = true;
    return 0;
}

/* Ask host `i` for rows of a request about its tables. */
static int there_ask(const struct tables_there *t, size_t i, const char *request, const char *table,
                     const struct strbuf *text) {
    struct wire_rows_ask ask = {
        .args = {{.key = "host", .is_text = true},
                 {.key = "attach", .number = t->attach},
                 {.key = "limit_ms", .number = (int64_t)(THERE_SHARE * there_left_s(t) * 1e3)},
                 {.key = "name", .is_text = true}},
        .n_args = table ? 4 : 3,
        .text = text ? text->data : NULL,
        .text_len = text ? text->len : 0};
    snprintf(ask.table, sizeof ask.table, "%s", request);
    snprintf(ask.args[0].text, sizeof ask.args[0].text, "%s", relay_calls_host(t->calls, i)->name);
    snprintf(ask.args[3].text, sizeof ask.args[3].text, "%s", table ? table : "");
    return relay_calls_ask(t->calls, i, &ask);
}

/* ---- rows in pieces ---- */

/* A host whose last piece has not come is there with a part of its rows, among those of the others: sums would have
 * a part of it. `has_part`: for each host. 0, or -1 with the error. */
static int there_check_whole(const struct tables_there *t, const bool *has_part, struct err *e) {
    for (size_t i = 0; i < relay_calls_count(t->calls); i++) {
        const struct relay_host *h = relay_calls_host(t->calls, i);
        if (has_part[i])
            return err_set(e, ERR_FAILED,
                           "%.96s gave a part of its rows, and not the rest: %.200s (ask again: if it stays "
                           "silent, the rows are those of the others)",
                           h->name, h->note);
    }
    return 0;
}

static bool *there_new_parts(const struct tables_there *t, struct err *e) {
    bool *parts = calloc(relay_calls_count(t->calls) + 1, sizeof *parts);
    if (!parts)
        err_set(e, ERR_FAILED, "out of memory for %zu hosts", relay_calls_count(t->calls));
    return parts;
}

/* ---- a scan ---- */

/* What a query wants of a table. */
struct there_scan {
    struct tables_there *t;
    const struct there_table *table;
    const struct sql_wanted *wanted;
    struct sql_sink *sink;
    struct rows_there rows;
    int places[RING_MAX_COLUMNS]; /* in the definition: of the columns that are asked for, */
    size_t n;                     /* which come after rank and pid */
    double bytes;                 /* that it would move, as far as is known */
    uint64_t moved;
    bool *has_part;   /* by host: rows of it were put, and more are to come */
    bool is_over;     /* with the error, or because there is no room */
    struct err error; /* ERR_OK: none */
    /* why a host has refused it, and whether another one has not */
    struct err refusal;
    bool is_answered;
};

static bool there_scan_stop(void *arg) {
    const struct there_scan *s = arg;
    return s->is_over || sql_sink_cancelled(s->sink);
}

static void there_refuse(struct there_scan *s, double bytes, const char *more) {
    char size[32];
    text_human_bytes(size, sizeof size, bytes);
    err_set(
        &s->error, ERR_USAGE,
        "%s: would move %s %s from the hosts, of at most 64 MB: narrow it by time (timestamp > now() - 60) "
        "or rank, or let the hosts add it up: probing cluster query --map",
        s->table->def.name, more, size);
    s->is_over = true;
}

/* The ranks of a host that may be wanted. */
static int32_t there_count_ranks(const struct there_scan *s, const struct relay_host *h) {
    const struct sql_wanted *w = s->wanted;
    int64_t n = 0;
    for (size_t i = 0; i < w->n_ranks; i++)
        n += w->ranks[i] >= w->min_rank && w->ranks[i] <= w->max_rank && w->ranks[i] >= 0 &&
             w->ranks[i] < RANK_SET_LIMIT && rank_set_has(&h->ranks, (int32_t)w->ranks[i]);
    for (size_t i = 0; !w->n_ranks && i < h->ranks.n; i++) {
        int64_t first = h->ranks.ranges[i].first, last = h->ranks.ranges[i].last;
        first = first > w->min_rank ? first : w->min_rank;
        last = last < w->max_rank ? last : w->max_rank;
        n += last >= first ? last - first + 1 : 0;
    }
    return (int32_t)n;
}

static bool there_is_id(const struct there_scan *s, int column) {
    return column >= 0 && s->table->types[column] == RING_ID;
}

/* True if rows of host `i` may be wanted. */
static bool there_is_wanted(const struct there_scan *s, size_t i) {
    const struct relay_host *h = relay_calls_host(s->t->calls, i);
    const struct sql_wanted *w = s->wanted;
    if (w->equal_column == ROWS_THERE_HOST && strcmp(w->equal_text, h->name) != 0)
        return false;
    if (there_is_id(s, w->equal_column) && (w->equal < 0 || (size_t)(w->equal >> ROWS_THERE_ID_BITS) != i))
        return false;
    return there_count_ranks(s, h) > 0;
}

/* ---- how much it is ---- */

static double there_row_bytes(const struct there_scan *s) {
    double bytes = 8; /* rank, pid, and the row itself */
    for (size_t i = 0; i < s->n; i++)
        switch (s->table->types[s->places[i]]) {
        case RING_TEXT:
            bytes += THERE_TEXT_BYTES;
            break;
        case RING_TIMESTAMP:
        case RING_DOUBLE:
            bytes += 9;
            break;
        case RING_ENUM:
        case RING_ID:
            bytes += 7;
            break;
        default:
            bytes += 4;
        }
    return bytes;
}

/* The part of the time of a table that is wanted. */
static double there_share(const struct sql_wanted *w, double oldest, double newest, double ahead_s) {
    double from = w->min_us == INT64_MIN ? -INFINITY : (double)w->min_us / 1e6 + ahead_s;
    double to = w->max_us == INT64_MAX ? INFINITY : (double)w->max_us / 1e6 + ahead_s;
    if (!(newest > oldest))
        return 1;
    double share = (fmin(to, newest) - fmax(from, oldest)) / (newest - oldest);
    return share < 0 ? 0 : share;
}

static int there_size_step(void *arg, size_t i, const struct wire_message *m, const char *why,
                           struct err *e) {
    struct there_scan *s = arg;
    const struct relay_host *h = relay_calls_host(s->t->calls, i);
    struct report_reader reader;
    struct report_size row;
    struct arena texts;
    if (!m)
        return there_is_wanted(s, i) ? there_ask(s->t, i, REPORT_TABLES, s->table->def.name, NULL) : 0;
    if (why)
        return err_set(e, ERR_FAILED, "%.400s", why);
    arena_init(&texts, THERE_PIECE);
    int rc = report_begin(&reader, &REPORT_TABLE_SIZE, m, e) == 0 && report_next(&reader, &row, &texts) == 1
                 ? 0
                 : err_set(e, ERR_FAILED, "its answer about a table is not valid");
    arena_fini(&texts);
    if (rc == 0 && row.rows > 0)
        s->bytes += (double)row.rows * there_share(s->wanted, row.oldest, row.newest, h->ahead_s) *
                    there_row_bytes(s) * there_count_ranks(s, h) / rank_set_count(&h->ranks);
    return rc;
}

/* ---- its rows ---- */

/* A text or name within quotes. */
static void there_put_quoted(struct strbuf *sql, const char *text, size_t len, char quote) {
    strbuf_addc(sql, quote);
    for (size_t i = 0; i < len && text[i]; i++) {
        if (text[i] == quote)
            strbuf_addc(sql, quote);
        strbuf_addc(sql, text[i]);
    }
    strbuf_addc(sql, quote);
}

static void there_put_ranks(const struct relay_host *h, const struct sql_wanted *w, struct strbuf *sql) {
    for (size_t i = 0; h->is_part && i < h->ranks.n; i++)
        strbuf_addf(sql, "%srank BETWEEN %d AND %d", i ? " OR " : " AND (", (int)h->ranks.ranges[i].first,
                    (int)h->ranks.ranges[i].last);
    if (h->is_part)
        strbuf_addc(sql, ')');
    if (w->n_ranks && w->n_ranks <= THERE_RANKS) {
        strbuf_adds(sql, " AND rank IN (");
        for (size_t i = 0; i < w->n_ranks; i++)
            strbuf_addf(sql, "%s%" PRId64, i ? "," : "", w->ranks[i]);
        strbuf_addc(sql, ')');
        return;
    }
    if (w->min_rank != INT64_MIN)
        strbuf_addf(sql, " AND rank >= %" PRId64, w->min_rank);
    if (w->max_rank != INT64_MAX)
        strbuf_addf(sql, " AND rank <= %" PRId64, w->max_rank);
}

/* The statement for a host. */
static void there_put_statement(const struct there_scan *s, size_t i, struct strbuf *sql) {
    const struct sql_wanted *w = s->wanted;
    double ahead_s = relay_calls_host(s->t->calls, i)->ahead_s;
    const char *equal = w->equal_column >= 0 ? s->table->columns[w->equal_column].name : NULL;
    strbuf_adds(sql, "SELECT rank, pid");
    for (size_t k = 0; k < s->n; k++)
        strbuf_addf(sql, ", \"%s\"", s->table->columns[s->places[k]].name);
    strbuf_addf(sql, " FROM %s WHERE 1", s->table->def.name);
    /* a microsecond more, for what is rounded on the way: it is checked again */
    if (w->min_us != INT64_MIN)
        strbuf_addf(sql, " AND timestamp >= %.6f", (double)(w->min_us - 1) / 1e6 + ahead_s);
    if (w->max_us != INT64_MAX)
        strbuf_addf(sql, " AND timestamp <= %.6f", (double)(w->max_us + 1) / 1e6 + ahead_s);
    there_put_ranks(relay_calls_host(s->t->calls, i), w, sql);
    if (equal && w->equal_column != ROWS_THERE_HOST) {
        strbuf_addf(sql, " AND \"%s\" = ", equal);
        if (w->equal_text)
            there_put_quoted(sql, w->equal_text, strlen(w->equal_text), '\'');
        else
            strbuf_addf(sql, "%" PRId64,
                        there_is_id(s, w->equal_column) ? w->equal & (((int64_t)1 << ROWS_THERE_ID_BITS) - 1)
                                                        : w->equal);
    }
    /* of a larger set only the bounds were sent, and times have a margin */
    if (w->limit && w->n_ranks <= THERE_RANKS && w->min_us == INT64_MIN && w->max_us == INT64_MAX)
        strbuf_addf(sql, " LIMIT %" PRIu64, w->limit);
}

static int there_put_row(void *arg, const union ring_value *row) {
    const struct there_scan *s = arg;
    s->has_part[s->rows.number] = true;
    return sql_sink_put(s->sink, row);
}

/* Take the rows of an answer. 0, or -1 with the error. */
static int there_take_rows(struct there_scan *s, size_t i, const struct wire_message *m, bool *more,
                           struct err *e) {
    const struct relay_host *h = relay_calls_host(s->t->calls, i);
    struct wire_rows answer;
    struct rows_there *r = &s->rows;
    if (wire_get_rows(m, &answer, e) != 0)
        return -1;
    r->number = i;
    r->host = h->name;
    r->ranks = &h->ranks;
    r->ahead_s = h->ahead_s;
    there_note(s->t, h->name, answer.note);
    int rc = rows_there_take(r, &answer, e);
    if (r->has_foreign)
        there_note(s->t, h->name, "rows of ranks that are not its own were left out");
    s->moved += r->bytes;
    s->is_over |= r->is_full;
    *more = r->more;
    return rc;
}

static int there_rows_step(void *arg, size_t i, const struct wire_message *m, const char *why,
                           struct err *e) {
    struct there_scan *s = arg;
    bool more = false;
    if (!m) {
        struct strbuf sql;
        if (!there_is_wanted(s, i))
            return 0;
        strbuf_init(&sql, 0);
        there_put_statement(s, i, &sql);
        int rc = sql.failed ? err_set(e, ERR_FAILED, "out of memory for a statement")
                            : there_ask(s->t, i, REPORT_SQL, NULL, &sql);
        strbuf_fini(&sql);
        return rc;
    }
    /* what one alone refuses is its own, and the others' rows are right */
    if (why) {
        err_set(&s->refusal, ERR_FAILED, "%.96s: %.400s", relay_calls_host(s->t->calls, i)->name, why);
        return err_set(e, ERR_FAILED, "%.400s", why);
    }
    s->is_answered = true;
    if (there_take_rows(s, i, m, &more, e) != 0)
        return -1;
    s->has_part[i] &= more;
    if (s->moved > THERE_MOST_BYTES)
        there_refuse(s, fmax(s->bytes, (double)s->moved),
                     s->bytes > (double)s->moved ? "about" : "more than");
    progress_note("%.1f MB", (double)s->moved / 1e6);
    return more && !s->is_over ? there_ask(s->t, i, REPORT_NEXT, NULL, NULL) : 0;
}

/* What is made when it is asked for costs each rank something. */
static int there_check_live(struct there_scan *s) {
    int64_t n = 0;
    if (s->table->is_kept || s->wanted->n_ranks || s->wanted->min_rank != INT64_MIN ||
        s->wanted->max_rank != INT64_MAX)
        return 0;
    for (size_t i = 0; i < relay_calls_count(s->t->calls); i++)
        if (there_is_wanted(s, i))
            n += there_count_ranks(s, relay_calls_host(s->t->calls, i));
    if (n <= THERE_LIVE_RANKS)
        return 0;
    return err_set(&s->error, ERR_USAGE,
                   "%s asks each rank, %d at most, and these are %" PRId64
                   ": say which, as in WHERE rank < %d",
                   s->table->def.name, THERE_LIVE_RANKS, n, THERE_LIVE_RANKS);
}

static int there_scan_hosts(struct there_scan *s, struct err *e) {
    struct relay_calls_limit limit = {.limit_s = there_left_s(s->t), .stop = there_scan_stop, .arg = s};
    if (there_connect(s->t, &limit, e) != 0)
        return -1;
    int rc = there_check_live(s);
    bool measures = s->table->is_kept && s->wanted->equal_column < 0 && !s->wanted->limit;
    limit.limit_s = there_left_s(s->t);
    if (rc == 0 && measures)
        rc = relay_calls_run(s->t->calls, &limit, there_size_step, s);
    if (rc == 0 && s->bytes > (double)THERE_MOST_BYTES)
        there_refuse(s, s->bytes, "about");
    limit.limit_s = there_left_s(s->t);
    if (rc == 0 && !s->is_over)
        rc = relay_calls_run(s->t->calls, &limit, there_rows_step, s);
    if (rc == 0 && !s->is_over)
        rc = there_check_whole(s->t, s->has_part, &s->error);
    if (rc == 0 && !s->is_answered && s->error.code == ERR_OK)
        s->error = s->refusal;
    if (rc != 0)
        relay_calls_drop(s->t->calls);
    if (s->error.code == ERR_OK)
        return rc == 0 || s->is_over ? 0 : err_set(e, ERR_FAILED, "interrupted");
    *e = s->error;
    return -1;
}

static int there_scan(void *arg, uint64_t columns, struct sql_sink *sink, struct err *e) {
    const struct there_table *table = arg;
    struct there_scan s = {.t = table->owner,
                           .table = table,
                           .sink = sink,
                           .wanted = sql_sink_wanted(sink),
                           .error = {0},
                           .refusal = {0}};
    for (int i = ROWS_THERE_COMMON; table->columns[i].name; i++)
        if (columns >> i & 1)
            s.places[s.n++] = i;
    s.rows = (struct rows_there){.columns = table->columns,
                                 .types = table->types,
                                 .places = s.places,
                                 .n = s.n,
                                 .put = there_put_row,
                                 .arg = &s};
    strbuf_init(&s.rows.text, 0);
    s.has_part = there_new_parts(s.t, e);
    int rc = s.has_part ? there_scan_hosts(&s, e) : -1;
    if (rc != 0)
        s.t->failure = *e;
    free(s.has_part);
    strbuf_fini(&s.rows.text);
    return rc;
}

/* ---- a statement on each host ---- */

struct there_map {
    struct tables_there *t;
    struct database *d;
    struct strbuf statement, insert;
    size_t n_columns; /* 0: no host has answered */
    uint64_t moved;
    bool *has_part; /* by host: rows of it were put, and more are to come */
    bool is_over;
    struct err error;
};

static bool there_map_stop(void *arg) {
    const struct there_map *p = arg;
    return p->is_over || database_cancelled(p->d);
}

static void there_map_refuse(struct there_map *p, enum err_code code, const char *host, const char *why) {
    err_set(&p->error, code, "%.96s%s%.400s", host, host[0] ? ": " : "", why);
    p->is_over = true;
}

static void there_map_execute(struct there_map *p, struct strbuf *text) {
    if (text->failed || sql_execute(database_sql(p->d), strbuf_str(text)) != 0)
        there_map_refuse(
            p, ERR_FAILED, "",
            "the rows of the hosts do not fit into the table 'mapped': their columns need different "
            "names, and all rows together have to fit into memory");
    strbuf_clear(text);
}

/* Make the table for the first answer. */
static void there_map_create(struct there_map *p, struct wire_rows *rows) {
    struct wire_value name;
    struct strbuf text;
    strbuf_init(&text, 0);
    strbuf_adds(&text, "CREATE TEMP TABLE mapped(");
    for (size_t i = 0; wire_next_column(rows, &name) == 1; i++) {
        strbuf_adds(&text, i ? ", " : "");
        there_put_quoted(&text, name.s, name.len, '"');
    }
    strbuf_addc(&text, ')');
    p->n_columns = rows->n_columns;
    there_map_execute(p, &text);
    strbuf_fini(&text);
}

static void there_map_put_value(struct strbuf *out, const struct wire_value *v) {
    switch (v->kind) {
    case WIRE_VALUE_NULL:
        strbuf_adds(out, "NULL");
        break;
    case WIRE_VALUE_BOOL:
    case WIRE_VALUE_INT:
        /* the least one is not a literal */
        if (v->i == INT64_MIN)
            strbuf_adds(out, "(-9223372036854775807 - 1)");
        else
            strbuf_addf(out, "%" PRId64, v->i);
        break;
    case WIRE_VALUE_DOUBLE:
        if (isfinite(v->f))
            strbuf_addf(out, "%.17g%s", v->f, v->f == floor(v->f) && fabs(v->f) < 1e15 ? ".0" : "");
        else
            strbuf_adds(out, isnan(v->f) ? "NULL" : v->f > 0 ? "9e999" : "-9e999");
        break;
    case WIRE_VALUE_TEXT:
        there_put_quoted(out, v->s, v->len, '\'');
        break;
    }
}

static int there_map_take(struct there_map *p, size_t i, const struct wire_message *m, bool *more,
                          struct err *e) {
    struct wire_value values[THERE_MAP_COLUMNS];
    struct wire_rows rows;
    int rc;
    if (wire_get_rows(m, &rows, e) != 0)
        return -1;
    if (!rows.n_columns || rows.n_columns > THERE_MAP_COLUMNS ||
        (p->n_columns && rows.n_columns != p->n_columns))
        return err_set(e, ERR_FAILED, "its rows have other columns than those of the other hosts");
    *more = rows.more;
    p->moved += rows.rows_len;
    there_note(p->t, relay_calls_host(p->t->calls, i)->name, rows.note);
    if (!p->n_columns)
        there_map_create(p, &rows);
    while (!p->is_over && (rc = wire_next_row(&rows, values, rows.n_columns)) != 0) {
        if (rc < 0)
            return err_set(e, ERR_FAILED, "its rows are not valid");
        p->has_part[i] = true;
        strbuf_adds(&p->insert, p->insert.len ? ",(" : "INSERT INTO temp.mapped VALUES (");
        for (size_t k = 0; k < rows.n_columns; k++) {
            strbuf_adds(&p->insert, k ? "," : "");
            there_map_put_value(&p->insert, &values[k]);
        }
        strbuf_addc(&p->insert, ')');
        if (p->insert.len > THERE_PIECE)
            there_map_execute(p, &p->insert);
    }
    return 0;
}

static int there_map_step(void *arg, size_t i, const struct wire_message *m, const char *why, struct err *e) {
    struct there_map *p = arg;
    bool more = false;
    const char *host = relay_calls_host(p->t->calls, i)->name;
    if (!m)
        return there_ask(p->t, i, REPORT_SQL, NULL, &p->statement);
    if (why) {
        there_map_refuse(p, ERR_FAILED, host, why);
        return 0;
    }
    if (there_map_take(p, i, m, &more, e) != 0)
        return -1;
    p->has_part[i] &= more;
    if (p->moved > THERE_MOST_BYTES)
        there_map_refuse(
            p, ERR_USAGE, "",
            "--map: its rows are more than 64 MB: let it add up more on the hosts, as by GROUP BY "
            "rank, or narrow it by time");
    progress_note("%.1f MB", (double)p->moved / 1e6);
    return more && !p->is_over ? there_ask(p->t, i, REPORT_NEXT, NULL, NULL) : 0;
}

int tables_there_map(struct tables_there *t, struct database *d, const char *statement, struct err *e) {
    struct there_map p = {.t = t, .d = d, .error = {0}};
    struct relay_calls_limit limit = {.limit_s = there_left_s(t), .stop = there_map_stop, .arg = &p};
    p.has_part = there_new_parts(t, e);
    if (!p.has_part)
        return -1;
    strbuf_init(&p.statement, 0);
    strbuf_init(&p.insert, 0);
    strbuf_adds(&p.statement, statement);
    int rc = sql_execute(database_sql(d), "DROP TABLE IF EXISTS temp.mapped");
    if (rc == 0 && relay_calls_is_part(t->calls))
        rc = err_set(e, ERR_USAGE,
                     "--map is for all ranks of a job: leave out '/RANKS', and select them in its statement");
    else
        rc = rc == 0 ? there_connect(t, &limit, e)
                     : err_set(e, ERR_FAILED, "the table 'mapped' cannot be replaced");
    limit.limit_s = there_left_s(t);
    if (rc == 0 && relay_calls_run(t->calls, &limit, there_map_step, &p) != 0) {
        relay_calls_drop(t->calls);
        rc = p.is_over ? 0 : err_set(e, ERR_FAILED, "interrupted");
    }
    if (rc == 0 && !p.is_over)
        rc = there_check_whole(t, p.has_part, e);
    if (rc == 0 && !p.is_over && p.insert.len)
        there_map_execute(&p, &p.insert);
    if (rc == 0 && !p.is_over && !p.n_columns)
        there_map_refuse(&p, ERR_ATTACH, "", "no host has answered");
    if (rc == 0 && p.error.code != ERR_OK) {
        *e = p.error;
        rc = -1;
    }
    if (rc != 0)
        t->failure = *e;
    free(p.has_part);
    strbuf_fini(&p.statement);
    strbuf_fini(&p.insert);
    return rc;
}

/* ---- the tables ---- */

/* A table of the ranks as one of all hosts: each row has its rank, host and pid. */
static void there_init_table(struct tables_there *t, size_t i) {
    static const struct ring_column_def common[ROWS_THERE_COMMON] = {{.name = "rank", .type = RING_INT32},
                                                                     {.name = "host", .type = RING_TEXT},
                                                                     {.name = "pid", .type = RING_INT64}};
    const struct ring_table_def *of = &RING_TABLES[i];
    struct there_table *table = &t->tables[i];
    size_t n = ROWS_THERE_COMMON;
    *table = (struct there_table){.owner = t, .is_kept = i < RING_TABLE_KEPT, .def = *of};
    memcpy(table->columns, common, sizeof common);
    for (const struct ring_column_def *c = of->columns; c->name && n < RING_MAX_COLUMNS; c++, n++)
        table->columns[n] = *c;
    for (size_t k = 0; k < n; k++) {
        table->types[k] = table->columns[k].type;
        if (table->types[k] == RING_ID)
            table->columns[k].type = RING_INT64; /* with the number of its host */
    }
    table->def.columns = table->columns;
    t->providers[i] = (struct sql_provider){.def = &table->def,
                                            .key = live_tables_key((enum ring_table)i),
                                            .uses = table->is_kept ? SQL_USES_TIME | SQL_USES_RANK |
                                                                         SQL_USES_EQUAL | SQL_USES_LIMIT
                                                                   : SQL_USES_RANK | SQL_USES_LIMIT,
                                            .scan = there_scan,
                                            .arg = table};
}

struct tables_there *tables_there_new(const char *target, const struct fleet_reach *reach, bool attach,
                                      double limit_s, struct err *e) {
    struct tables_there *t = calloc(1, sizeof *t);
    if (!t) {
        err_set(e, ERR_FAILED, "out of memory for the tables of the hosts");
        return NULL;
    }
    t->attach = attach;
    t->limit_s = limit_s > 0 && limit_s < THERE_LIMIT_S ? limit_s : THERE_LIMIT_S;
    for (size_t i = 0; i < RING_TABLE_COUNT; i++)
        there_init_table(t, i);
    tables_there_begin(t);
    t->calls = relay_calls_new(target, reach, e);
    if (t->calls)
        return t;
    free(t);
    return NULL;
}

void tables_there_free(struct tables_there *t) {
    if (!t)
        return;
    relay_calls_free(t->calls);
    free(t);
}

int tables_there_add(struct tables_there *t, struct database *d, struct err *e) {
    database_set_one_clock(d);
    return database_add_tables(d, t->providers, RING_TABLE_COUNT, e);
}

void tables_there_begin(struct tables_there *t) {
    t->is_connected = false;
    t->note[0] = '\0';
    t->failure.code = ERR_OK;
    tables_there_start_clock(t);
}

void tables_there_start_clock(struct tables_there *t) {
    t->until_ns = clock_mono_ns() + (uint64_t)(t->limit_s * (double)CLOCK_NS_PER_S);
}

void tables_there_explain(const struct tables_there *t, struct err *e) {
    if (t->failure.code != ERR_OK && strcmp(t->failure.text, e->text) == 0)
        e->code = t->failure.code;
}

bool tables_there_has_failed(const struct tables_there *t) { return t->failure.code != ERR_OK; }

void tables_there_put_silent(const struct tables_there *t, struct strbuf *out) {
    if (t->is_connected)
        relay_calls_put_silent(t->calls, out);
}

const char *tables_there_note(const struct tables_there *t) { return t->note; }
