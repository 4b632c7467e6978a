/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql_vtab: the virtual table: SQLite's requests, answered from the table's sources.
 *
 * Pushed down: ranges of the time column (whole chunks are skipped by their first and last
 * time), rank, host and pid (whole targets), any integer column that must equal a value (through
 * an index if that is frequent). Only the columns of the query are read. A provider gets what it uses of
 * that, sets of ranks, equal texts and limits. SQLite checks every condition again except those on the time of
 * ring files, so the others only have to leave out rows that cannot match.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "store/ring/ring_tables.h"
#include "store/sql/sql_internal.h"

#define SQL_US 1e6
#define SQL_BEYOND 9.1e9 /* seconds: no timestamp of a ring is greater (2^53 microseconds) */
#define SQL_NO_ROW UINT32_MAX

struct sql_vtab {
    sqlite3_vtab base;
    struct sql *s;
    struct sql_table *t;
    int time_column; /* of the table; -1 none */
};

struct sql_cursor {
    sqlite3_vtab_cursor base;
    uint64_t columns; /* of the table, those in use */
    uint32_t source;
    /* within a ring */
    struct ring_block block;
    size_t chunk, n_chunks;
    const struct ring_chunk *chunks;
    /* the current row, of `at` or of the provider's rows */
    const struct ring_block *at;
    uint32_t row;
    struct sql_rows *rows; /* of the provider, */
    int row_column;        /* those with this value in a column of its definition; -1: all */
    int64_t row_equal;
    struct sql_index *index; /* NULL: rows are read in their order */
    uint32_t number;         /* in the index */
    bool eof;
    bool any_time; /* all rows of this chunk are in the wanted time */
    /* conditions */
    bool by_pid, by_rank, by_host, never;
    bool is_exact; /* they are all of the query's */
    int64_t pid, limit;
    char *host;
    struct sql_wanted wanted; /* its column is the table's; owns its ranks and text */
};

/* ---- what a table looks like ---- */

static const char *sql_declared_type(enum ring_type t) {
    switch (t) {
    case RING_TIMESTAMP:
        return "TIMESTAMP";
    case RING_DOUBLE:
        return "DOUBLE";
    case RING_TEXT:
    case RING_ENUM:
        return "TEXT";
    case RING_BOOL:
        return "BOOLEAN";
    case RING_INT64:
    case RING_INT32:
    case RING_UINT32:
    case RING_ID:
        break;
    }
    return "INTEGER";
}

static int sql_connect(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                       char **error) {
    struct sql *s = aux;
    size_t i = argc >= 4 ? (size_t)strtoul(argv[3], NULL, 10) : SIZE_MAX;
    if (i >= s->n_tables) {
        *error = sqlite3_mprintf("no such table");
        return SQLITE_ERROR;
    }
    struct sql_table *t = s->tables[i];
    struct sql_vtab *v = sqlite3_malloc(sizeof *v);
    sqlite3_str *text = sqlite3_str_new(db);
    sqlite3_str_appendall(text, "CREATE TABLE x(\"rank\" INTEGER, \"host\" TEXT, \"pid\" INTEGER");
    int time_column = -1;
    for (size_t k = 0; k < t->n_columns; k++) {
        sqlite3_str_appendf(text, ", \"%w\" %s", t->columns[k].name, sql_declared_type(t->columns[k].type));
        if (t->columns[k].type == RING_TIMESTAMP)
            time_column = (int)k;
    }
    sqlite3_str_appendall(text, ")");
    char *declaration = sqlite3_str_finish(text);
    /* the description is parsed like a statement; SQLite may need it again at any time */
    bool guarded = s->guarded;
    s->guarded = false;
    int rc = v && declaration ? sqlite3_declare_vtab(db, declaration) : SQLITE_NOMEM;
    s->guarded = guarded;
    sqlite3_free(declaration);
    if (rc != SQLITE_OK) {
        sqlite3_free(v);
        return rc;
    }
    *v = (struct sql_vtab){.s = s, .t = t, .time_column = time_column};
    *out = &v->base;
    return SQLITE_OK;
}

/* Different from sql_connect, because otherwise the module's name would be a table. */
static int sql_create(sqlite3 *db, void *aux, int argc, const char *const *argv, sqlite3_vtab **out,
                      char **error) {
    return sql_connect(db, aux, argc, argv, out, error);
}

static int sql_disconnect(sqlite3_vtab *v) {
    sqlite3_free(v);
    return SQLITE_OK;
}

/* ---- planning ---- */

/* The code of a comparison out of `codes`: equal, greater, greater or equal, less, less or equal. */
static char sql_comparison(unsigned char op, const char codes[5]) {
    switch (op) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
        return codes[0];
    case SQLITE_INDEX_CONSTRAINT_GT:
        return codes[1];
    case SQLITE_INDEX_CONSTRAINT_GE:
        return codes[2];
    case SQLITE_INDEX_CONSTRAINT_LT:
        return codes[3];
    case SQLITE_INDEX_CONSTRAINT_LE:
        return codes[4];
    default:
        return 0;
    }
}

/* True if a provider of the table uses any of `uses`. */
static bool sql_uses(const struct sql_table *t, unsigned uses) {
    for (size_t i = 0; i < t->n_sources; i++)
        if (t->sources[i].provider && (t->sources[i].provider->uses & uses))
            return true;
    return false;
}

/* The code of a condition for sql_filter: one character per argument, after the used columns. */
static char sql_condition(const struct sql_vtab *v, sqlite3_index_info *info, int i) {
    const struct sqlite3_index_constraint *c = &info->aConstraint[i];
    bool equal = c->op == SQLITE_INDEX_CONSTRAINT_EQ;
#if SQLITE_VERSION_NUMBER >= 3038000
    /* these are of no column */
    if (c->op == SQLITE_INDEX_CONSTRAINT_LIMIT || c->op == SQLITE_INDEX_CONSTRAINT_OFFSET)
        return !sql_uses(v->t, SQL_USES_LIMIT) ? 0 : c->op == SQLITE_INDEX_CONSTRAINT_LIMIT ? 'n' : 'o';
    /* a set of values comes as one, if it is asked for */
    if (c->iColumn == SQL_RANK && equal && sqlite3_vtab_in(info, i, -1))
        return 'i';
#endif
    int column = c->iColumn - SQL_COMMON;
    if (c->iColumn == SQL_PID && equal)
        return 'p';
    if (c->iColumn == SQL_RANK)
        return sql_comparison(c->op, "rRGLS");
    /* texts are compared byte by byte here; by any other collation more may be equal */
    if (c->iColumn == SQL_HOST && equal)
        return strcmp(sqlite3_vtab_collation(info, i), "BINARY") == 0 ? 'h' : 0;
    if (column < 0)
        return 0;
    if (column == v->time_column)
        return sql_comparison(c->op, "=>g<l");
    enum ring_type type = v->t->columns[column].type;
    bool integer = type == RING_INT32 || type == RING_INT64 || type == RING_UINT32 || type == RING_ID;
    if (equal && (type == RING_TEXT || type == RING_ENUM) && sql_uses(v->t, SQL_USES_EQUAL) &&
        strcmp(sqlite3_vtab_collation(info, i), "BINARY") == 0)
        return 'e';
    return equal && integer ? 'e' : 0;
}

static bool sql_only_rings(const struct sql_table *t) {
    for (size_t i = 0; i < t->n_sources; i++)
        if (!t->sources[i].reader)
            return false;
    return true;
}

/* Rough number of rows of the table. */
static double sql_estimate_rows(const struct sql_vtab *v) {
    double rows = 0;
    for (size_t i = 0; i < v->t->n_sources; i++) {
        uint64_t oldest = 0, next = 0;
        if (v->t->sources[i].reader)
            ring_reader_range(v->t->sources[i].reader, &oldest, &next);
        rows += v->t->sources[i].reader ? (double)(next - oldest) : 100;
    }
    return rows + 1;
}

/* True if a column of the table is the key of the source's provider. */
static bool sql_is_key(const struct sql_source *src, int column) {
    const struct sql_provider *p = src->provider;
    int from = src->map[column];
    return p && !src->reader && p->key && from >= 0 && strcmp(p->def->columns[from].name, p->key) == 0;
}

/* True if a source of the table has a key. */
static bool sql_has_key(const struct sql_table *t) {
    for (size_t i = 0; i < t->n_sources; i++)
        if (t->sources[i].provider && t->sources[i].provider->key)
            return true;
    return false;
}

/* A table with a key can be looked up by no other column. */
static bool sql_may_equal(const struct sql_table *t, int column) {
    for (size_t i = 0; i < t->n_sources; i++)
        if (t->sources[i].provider && t->sources[i].provider->key && !sql_is_key(&t->sources[i], column))
            return false;
    return true;
}

static int sql_best_index(sqlite3_vtab *base, sqlite3_index_info *info) {
    struct sql_vtab *v = (struct sql_vtab *)base;
    char plan[48];
    size_t used = 0;
    int arguments = 0, equal = -1;
    double rows = sql_estimate_rows(v), cost = rows;
    bool exact = sql_only_rings(v->t), all = info->nConstraint + 2 < (int)sizeof plan;
    for (int i = 0; i < info->nConstraint && used + 3 < sizeof plan; i++) {
        const struct sqlite3_index_constraint *c = &info->aConstraint[i];
        char how = c->usable ? sql_condition(v, info, i) : 0;
        plan[used] = '\0';
        if (!how || (strchr("ephi", how) && strchr(plan, how)) ||
            (how == 'e' && !sql_may_equal(v->t, c->iColumn - SQL_COMMON))) {
            all = false;
            continue;
        }
        if (strchr("no", how)) {
            cost *= 0.9; /* but not less than any condition */
        } else if (how == 'e') {
            equal = c->iColumn - SQL_COMMON;
            cost = 10 + rows / 1000;
            rows = 1 + rows / 1000;
        } else {
            cost = cost / 4 + 1;
            rows = rows / 4 + 1;
        }
        plan[used++] = how;
        info->aConstraintUsage[i].argvIndex = ++arguments;
#if SQLITE_VERSION_NUMBER >= 3038000
        if (how == 'i')
            sqlite3_vtab_in(info, i, 1);
#endif
        info->aConstraintUsage[i].omit = exact && strchr("<l>g=", how);
    }
    if (equal < 0 && sql_has_key(v->t)) /* any other order of the tables is better */
        cost = 1e15;
    /* A provider's limit counts what meets all conditions, in any order. */
    if (all && info->nOrderBy == 0)
        plan[used++] = 'x';
    plan[used] = '\0';
    info->estimatedCost = cost;
    info->estimatedRows = (sqlite3_int64)rows;
    info->idxNum = equal;
    /* Bits from 63 on share one. */
    uint64_t columns = info->colUsed >> SQL_COMMON;
    if (info->colUsed >> 63)
        columns |= UINT64_MAX << (63 - SQL_COMMON);
    info->idxStr = sqlite3_mprintf("%llx:%s", (sqlite3_uint64)columns, plan);
    info->needToFreeIdxStr = 1;
    return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

/* ---- reading ---- */

static int sql_open_cursor(sqlite3_vtab *v, sqlite3_vtab_cursor **out) {
    (void)v;
    struct sql_cursor *c = sqlite3_malloc(sizeof *c);
    if (!c)
        return SQLITE_NOMEM;
    *c = (struct sql_cursor){.eof = true};
    *out = &c->base;
    return SQLITE_OK;
}

/* The query needs all rows. */
static void sql_drop_conditions(struct sql_cursor *c) {
    sqlite3_free((void *)c->wanted.ranks);
    sqlite3_free((void *)c->wanted.equal_text);
    sqlite3_free(c->host);
    c->host = NULL;
    c->by_pid = c->by_rank = c->by_host = c->never = false;
    c->wanted = (struct sql_wanted){.min_us = INT64_MIN,
                                    .max_us = INT64_MAX,
                                    .min_rank = INT64_MIN,
                                    .max_rank = INT64_MAX,
                                    .equal_column = -1};
}

static int sql_close_cursor(sqlite3_vtab_cursor *base) {
    struct sql_cursor *c = (struct sql_cursor *)base;
    sql_drop_conditions(c);
    ring_block_fini(&c->block);
    sql_rows_unref(c->rows);
    sqlite3_free(c);
    return SQLITE_OK;
}

static int sql_fail(struct sql_vtab *v) {
    sqlite3_free(v->base.zErrMsg);
    v->base.zErrMsg = sqlite3_mprintf("%s", v->s->failure[0] ? v->s->failure : "out of memory");
    return SQLITE_ERROR;
}

static bool sql_wanted_rank(const struct sql_wanted *w, int64_t rank) {
    bool in = rank != RING_INT_NULL && rank >= w->min_rank && rank <= w->max_rank;
    bool found = !w->n_ranks;
    for (size_t i = 0; in && !found && i < w->n_ranks; i++)
        found = w->ranks[i] == rank;
    return in && found;
}

/* True if rows of the source may be of the wanted target; where each row has its own, SQLite checks it. */
static bool sql_wanted_target(const struct sql_cursor *c, const struct sql_source *src) {
    const struct sql_target_state *t = src->target;
    return !c->never && (!c->by_pid || src->common[SQL_PID] >= 0 || c->pid == t->pid) &&
           (!c->by_rank || src->common[SQL_RANK] >= 0 || sql_wanted_rank(&c->wanted, t->rank)) &&
           (!c->by_host || src->common[SQL_HOST] >= 0 || (t->host && strcmp(c->host, t->host) == 0));
}

/* True if the file has the table's time. One of another version may not: its times are unknown
 * and meet no condition. */
static bool sql_timed(const struct sql_vtab *v, const struct sql_source *src) {
    return v->time_column >= 0 && src->map[v->time_column] >= 0 &&
           src->map[v->time_column] == ring_reader_info(src->reader)->time_column;
}

static bool sql_any_time(const struct sql_cursor *c) {
    return c->wanted.min_us == INT64_MIN && c->wanted.max_us == INT64_MAX;
}

/* True if the current row of the ring meets the conditions on time and equality. */
static bool sql_wanted_row(const struct sql_vtab *v, const struct sql_cursor *c,
                           const struct sql_source *src) {
    if (!c->any_time) {
        int64_t us = sql_timed(v, src) ? ring_block_time_us(c->at, c->row) : INT64_MIN;
        if (us < c->wanted.min_us || us > c->wanted.max_us || us == INT64_MIN)
            return false;
    }
    if (c->wanted.equal_column < 0 || c->wanted.equal_text || c->index)
        return true;
    struct ring_cell cell;
    int column = src->map[c->wanted.equal_column];
    if (column < 0)
        return false;
    ring_block_get(c->at, (size_t)column, c->row, &cell);
    if (cell.kind != RING_CELL_INT)
        return false;
    return c->wanted.equal == (v->t->columns[c->wanted.equal_column].type == RING_ID
                                   ? sql_scoped_id(src->target, cell.i)
                                   : cell.i);
}

/* The part of this table that the query reads; NULL: all of it. */
static const struct sql_part *sql_part_of(const struct sql_vtab *v) {
    return v->s->part_of == v->t ? v->s->part : NULL;
}

/* The number of the first row of the source that the query reads. */
static uint64_t sql_first_number(const struct sql_vtab *v, uint32_t source) {
    const struct sql_part *p = sql_part_of(v);
    return p && source < p->n ? p->next[source] : 0;
}

/* Load the source's next chunk that may have matching rows. 1; 0 at the end; -1 without memory. */
static int sql_next_chunk(struct sql_vtab *v, struct sql_cursor *c, struct sql_source *src) {
    uint64_t needed = c->columns | (v->time_column >= 0 ? 1ULL << v->time_column : 0) |
                      (c->wanted.equal_column >= 0 ? 1ULL << c->wanted.equal_column : 0);
    bool timed = sql_timed(v, src);
    uint64_t first = sql_first_number(v, c->source);
    while (c->chunk < c->n_chunks) {
        const struct ring_chunk *chunk = &c->chunks[c->chunk++];
        if (timed && (chunk->max_us < c->wanted.min_us || chunk->min_us > c->wanted.max_us))
            continue;
        uint64_t skipped = first > chunk->first_seq ? first - chunk->first_seq : 0;
        if (skipped >= chunk->rows && skipped > 0)
            continue;
        int rc = ring_reader_load(src->reader, chunk, sql_source_columns(src, needed), &c->block);
        if (rc < 0)
            return -1;
        if (rc == 0) {
            v->s->lost++;
            continue;
        }
        c->at = &c->block;
        c->row = (uint32_t)skipped;
        c->any_time = sql_any_time(c) ||
                      (timed && chunk->min_us >= c->wanted.min_us && chunk->max_us <= c->wanted.max_us);
        return 1;
    }
    return 0;
}

/* The provider's rows, by the conditions in terms of its definition. */
static struct sql_rows *sql_scan(struct sql_vtab *v, struct sql_cursor *c, struct sql_source *src) {
    struct sql_wanted w = c->wanted;
    bool exact = c->is_exact;
    w.equal_column = w.equal_column < 0 ? -1 : src->map[w.equal_column];
    /* as the provider has it: its numbers may mean something beyond a process */
    if (w.equal_column >= 0 && src->provider->def->columns[w.equal_column].type == RING_ID)
        w.equal -= sql_scoped_id(src->target, 0);
    exact = exact && (w.equal_column >= 0) == (c->wanted.equal_column >= 0);
    if (src->common[SQL_PID] >= 0 && c->by_pid) {
        exact = exact && w.equal_column < 0;
        if (w.equal_column < 0) {
            w.equal_column = src->common[SQL_PID];
            w.equal = c->pid;
        }
    }
    if (src->common[SQL_HOST] >= 0 && c->by_host) {
        exact = exact && w.equal_column < 0;
        if (w.equal_column < 0) {
            w.equal_column = src->common[SQL_HOST];
            w.equal_text = c->host;
        }
    }
    w.limit = exact && c->limit > 0 ? (uint64_t)c->limit : 0;
    c->row_column = w.equal_text ? -1 : w.equal_column;
    c->row_equal = w.equal;
    return sql_source_scan(v->s, src, c->columns, &w);
}

/* Open the first source from c->source on that has matching rows. 1; 0 none; -1 failed. */
static int sql_next_source(struct sql_vtab *v, struct sql_cursor *c) {
    const struct sql_part *part = sql_part_of(v);
    for (; c->source < v->t->n_sources; c->source++) {
        struct sql_source *src = &v->t->sources[c->source];
        if (!sql_wanted_target(c, src) || (part && part->source >= 0 && part->source != (long)c->source))
            continue;
        if (src->reader) {
            if (sql_source_refresh(v->s, src) != 0)
                return -1;
            c->chunks = ring_reader_chunks(src->reader, &c->n_chunks);
            c->chunk = 0;
            int rc = sql_next_chunk(v, c, src);
            if (rc != 0)
                return rc;
        } else {
            sql_rows_unref(c->rows);
            c->rows = sql_scan(v, c, src);
            if (!c->rows)
                return -1;
            c->at = NULL;
            c->row = c->row_column < 0 ? 0 : sql_rows_first(c->rows, c->row_column, c->row_equal);
            if (c->row < c->rows->n)
                return 1;
        }
    }
    return 0;
}

/* Advance from the current row to a matching one. */
static int sql_settle(struct sql_vtab *v, struct sql_cursor *c) {
    while (c->source < v->t->n_sources) {
        struct sql_source *src = &v->t->sources[c->source];
        if (!c->at) {
            if (c->row < c->rows->n)
                return SQLITE_OK;
        } else {
            for (; c->row < c->at->rows; c->row++)
                if (sql_wanted_row(v, c, src))
                    return SQLITE_OK;
            /* A long search for a row is one step to SQLite, which would not check by itself. */
            if (sql_cancelled(v->s))
                return SQLITE_INTERRUPT;
            int rc = sql_next_chunk(v, c, src);
            if (rc < 0)
                return SQLITE_NOMEM;
            if (rc > 0)
                continue;
        }
        c->source++;
        int rc = sql_next_source(v, c);
        if (rc < 0)
            return sql_fail(v);
        if (rc == 0)
            break;
    }
    c->eof = true;
    return SQLITE_OK;
}

/* Take the row of the index at c->number, or the next matching one of its value. */
static void sql_settle_index(struct sql_vtab *v, struct sql_cursor *c) {
    for (; c->number != SQL_NO_ROW; c->number = sql_index_after(c->index, c->number)) {
        c->at = sql_index_row(c->index, c->number, &c->row, &c->source);
        const struct sql_source *src = &v->t->sources[c->source];
        if (sql_wanted_target(c, src) && sql_wanted_row(v, c, src))
            return;
    }
    c->eof = true;
}

/* True if the time `us`, as a query sees it, is less than the bound (or equal to it). */
static bool sql_before(int64_t us, double bound, bool or_equal) {
    double t = (double)us / SQL_US;
    return or_equal ? t <= bound : t < bound;
}

/* The first microsecond whose time is not before the bound: exactly the result of comparing
 * seconds. */
static int64_t sql_first_us(double bound, bool or_equal) {
    if (!(fabs(bound) < SQL_BEYOND))
        return bound > 0 ? INT64_MAX : INT64_MIN;
    int64_t us = (int64_t)floor(bound * SQL_US) - 4;
    while (sql_before(us, bound, or_equal))
        us++;
    return us;
}

/* Apply a condition on the time exactly as SQLite would: it is not checked again. */
static void sql_bound_time(struct sql_cursor *c, char how, sqlite3_value *value) {
    struct sql_wanted *w = &c->wanted;
    int type = sqlite3_value_numeric_type(value);
    if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) {
        /* Nothing compares with NULL; a text is greater than any number. */
        c->never = c->never || type == SQLITE_NULL || (how != '<' && how != 'l');
        return;
    }
    double bound = sqlite3_value_double(value);
    int64_t from = INT64_MIN, to = INT64_MAX;
    if (how == '>' || how == 'g' || how == '=')
        from = sql_first_us(bound, how == '>');
    if (how == '<' || how == 'l' || how == '=')
        to = sql_first_us(bound, how != '<');
    /* `to` is the first time that is too late. */
    c->never = c->never || to == INT64_MIN || from == INT64_MAX;
    to -= to == INT64_MAX || to == INT64_MIN ? 0 : 1;
    w->min_us = from > w->min_us ? from : w->min_us;
    w->max_us = to < w->max_us ? to : w->max_us;
}

/* The integer that `value` equals; false: none, and `*never` if no integer does. */
static bool sql_whole(sqlite3_value *value, int64_t *out, bool *never) {
    int type = sqlite3_value_type(value);
    double f = type == SQLITE_FLOAT ? sqlite3_value_double(value) : 0;
    bool is_whole = type == SQLITE_INTEGER || (type == SQLITE_FLOAT && fabs(f) < 9e15 && floor(f) == f);
    *out = is_whole ? sqlite3_value_int64(value) : 0;
    *never = !is_whole && (type == SQLITE_FLOAT || type == SQLITE_NULL);
    return is_whole;
}

/* The value that a column must equal. A number and a text are compared by the column's affinity: SQLite
 * does it. */
static void sql_bound_equal(struct sql_cursor *c, const struct sql_vtab *v, int column,
                            sqlite3_value *value) {
    enum ring_type type = v->t->columns[column].type;
    bool never = false;
    if (type == RING_TEXT || type == RING_ENUM) {
        if (sqlite3_value_type(value) == SQLITE_TEXT)
            c->wanted.equal_text = sqlite3_mprintf("%s", (const char *)sqlite3_value_text(value));
        never = sqlite3_value_type(value) == SQLITE_NULL;
        c->wanted.equal_column = c->wanted.equal_text ? column : -1;
    } else if (sql_whole(value, &c->wanted.equal, &never)) {
        c->wanted.equal_column = column;
    }
    c->never = c->never || never;
    c->is_exact = c->is_exact && c->wanted.equal_column >= 0;
}

/* Bounds of the rank; for any other value SQLite decides. */
static void sql_bound_rank(struct sql_cursor *c, char how, sqlite3_value *value) {
    struct sql_wanted *w = &c->wanted;
    if (sqlite3_value_type(value) != SQLITE_INTEGER) {
        c->is_exact = false;
        return;
    }
    int64_t n = sqlite3_value_int64(value);
    int64_t from = how == 'R' && n < INT64_MAX ? n + 1 : n, to = how == 'L' && n > INT64_MIN ? n - 1 : n;
    c->by_rank = true;
    if (how != 'L' && how != 'S')
        w->min_rank = from > w->min_rank ? from : w->min_rank;
    if (how != 'R' && how != 'G')
        w->max_rank = to < w->max_rank ? to : w->max_rank;
}

#if SQLITE_VERSION_NUMBER >= 3038000
static int sql_compare_ranks(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* One of several ranks; with values of another type, or too many, SQLite decides. */
static void sql_bound_ranks(struct sql_cursor *c, sqlite3_value *set) {
    int64_t *ranks = sqlite3_malloc64(SQL_RANKS * sizeof *ranks);
    size_t n = 0;
    sqlite3_value *value = NULL;
    int rc = ranks ? sqlite3_vtab_in_first(set, &value) : SQLITE_NOMEM;
    for (; rc == SQLITE_OK; rc = sqlite3_vtab_in_next(set, &value)) {
        bool never, is_null = sqlite3_value_type(value) == SQLITE_NULL;
        if (!is_null && (n == SQL_RANKS || !sql_whole(value, &ranks[n], &never)))
            break;
        n += !is_null;
    }
    if (rc != SQLITE_DONE) {
        sqlite3_free(ranks);
        c->is_exact = false;
        return;
    }
    c->by_rank = true;
    c->never = c->never || n == 0;
    if (n == 0) {
        sqlite3_free(ranks);
        return;
    }
    qsort(ranks, n, sizeof *ranks, sql_compare_ranks);
    c->wanted.ranks = ranks;
    c->wanted.n_ranks = n;
    c->wanted.min_rank = ranks[0] > c->wanted.min_rank ? ranks[0] : c->wanted.min_rank;
    c->wanted.max_rank = ranks[n - 1] < c->wanted.max_rank ? ranks[n - 1] : c->wanted.max_rank;
}
#endif

static void sql_read_plan(struct sql_cursor *c, const struct sql_vtab *v, int equal, const char *plan,
                          sqlite3_value **argv) {
    int64_t offset = 0;
    sql_drop_conditions(c);
    c->columns = strtoull(plan, NULL, 16);
    c->limit = -1;
    const char *how = strchr(plan, ':') + 1;
    c->is_exact = strchr(how, 'x') != NULL;
    for (int i = 0; how[i] && how[i] != 'x'; i++) {
        switch (how[i]) {
        case 'p':
            c->by_pid = sqlite3_value_type(argv[i]) == SQLITE_INTEGER;
            c->pid = sqlite3_value_int64(argv[i]);
            c->is_exact = c->is_exact && c->by_pid;
            break;
        case 'r':
        case 'R':
        case 'G':
        case 'L':
        case 'S':
            sql_bound_rank(c, how[i], argv[i]);
            break;
#if SQLITE_VERSION_NUMBER >= 3038000
        case 'i':
            sql_bound_ranks(c, argv[i]);
            break;
#endif
        case 'h':
            sqlite3_free(c->host);
            c->host = sqlite3_mprintf("%s", (const char *)sqlite3_value_text(argv[i]));
            c->by_host = sqlite3_value_type(argv[i]) == SQLITE_TEXT && c->host;
            c->is_exact = c->is_exact && c->by_host;
            break;
        case 'e':
            sql_bound_equal(c, v, equal, argv[i]);
            break;
        case 'n':
            c->limit = sqlite3_value_int64(argv[i]);
            break;
        case 'o':
            offset = sqlite3_value_int64(argv[i]);
            break;
        default:
            sql_bound_time(c, how[i], argv[i]);
        }
    }
    offset = offset < 0 ? 0 : offset;
    c->limit = c->limit < 0 || c->limit > INT64_MAX - offset ? -1 : c->limit + offset;
}

static int sql_filter(sqlite3_vtab_cursor *base, int equal, const char *plan, int argc,
                      sqlite3_value **argv) {
    struct sql_cursor *c = (struct sql_cursor *)base;
    struct sql_vtab *v = (struct sql_vtab *)base->pVtab;
    (void)argc;
    sql_table_begin(v->s, v->t);
    sql_read_plan(c, v, equal, plan, argv);
    c->eof = false;
    c->index = NULL;
    c->source = 0;
    if (c->never) {
        c->eof = true;
        return SQLITE_OK;
    }
    if (c->wanted.equal_column >= 0) {
        uint8_t *lookups = &v->t->lookups[c->wanted.equal_column];
        *lookups = (uint8_t)(*lookups < 2 ? *lookups + 1 : 2);
        if (*lookups == 2 && sql_only_rings(v->t))
            c->index = sql_index_get(v->s, v->t, c->wanted.equal_column);
        if (c->index) {
            c->any_time = sql_any_time(c);
            c->number = sql_index_first(c->index, c->wanted.equal);
            sql_settle_index(v, c);
            return SQLITE_OK;
        }
    }
    int rc = sql_next_source(v, c);
    if (rc < 0)
        return sql_fail(v);
    c->eof = rc == 0;
    return rc == 0 ? SQLITE_OK : sql_settle(v, c);
}

static int sql_next_row(sqlite3_vtab_cursor *base) {
    struct sql_cursor *c = (struct sql_cursor *)base;
    struct sql_vtab *v = (struct sql_vtab *)base->pVtab;
    if (c->index) {
        c->number = sql_index_after(c->index, c->number);
        sql_settle_index(v, c);
        return SQLITE_OK;
    }
    if (!c->at && c->row_column >= 0)
        c->row = sql_rows_after(c->rows, c->row, c->row_column, c->row_equal);
    else
        c->row++;
    return sql_settle(v, c);
}

static int sql_eof(sqlite3_vtab_cursor *base) { return ((struct sql_cursor *)base)->eof; }

/* ---- values ---- */

static int sql_column(sqlite3_vtab_cursor *base, sqlite3_context *x, int column) {
    const struct sql_cursor *c = (const struct sql_cursor *)base;
    const struct sql_vtab *v = (const struct sql_vtab *)base->pVtab;
    const struct sql_source *src = &v->t->sources[c->source];
    int from = column < SQL_COMMON ? src->common[column] : src->map[column - SQL_COMMON];
    if (column < SQL_COMMON && from < 0) {
        sql_put_common(x, src->target, column);
        return SQLITE_OK;
    }
    column -= SQL_COMMON;
    /* this target does not have it */
    if (from < 0)
        return SQLITE_OK;
    if (c->at) {
        struct ring_cell cell;
        ring_block_get(c->at, (size_t)from, c->row, &cell);
        if (v->t->symbols && column == RING_FRAMES_FUNC)
            sql_put_symbol(v->s, x, &cell);
        else
            sql_put_cell(x, src->target, v->t->columns[column].type == RING_ID, &cell);
    } else {
        sql_put_value(x, src->target, &src->provider->def->columns[from],
                      &c->rows->values[(size_t)c->row * c->rows->n_columns + (size_t)from]);
    }
    return SQLITE_OK;
}

static int sql_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out) {
    const struct sql_cursor *c = (const struct sql_cursor *)base;
    uint64_t row = c->at ? c->at->first_seq + c->row : c->row;
    *out = (sqlite3_int64)((uint64_t)c->source << SQL_ROW_BITS | (row & ((1ULL << SQL_ROW_BITS) - 1)));
    return SQLITE_OK;
}

int sql_vtab_register(struct sql *s, struct err *e) {
    static const sqlite3_module module = {
        .xCreate = sql_create,
        .xConnect = sql_connect,
        .xBestIndex = sql_best_index,
        .xDisconnect = sql_disconnect,
        .xDestroy = sql_disconnect,
        .xOpen = sql_open_cursor,
        .xClose = sql_close_cursor,
        .xFilter = sql_filter,
        .xNext = sql_next_row,
        .xEof = sql_eof,
        .xColumn = sql_column,
        .xRowid = sql_rowid,
    };
    if (sqlite3_create_module_v2(s->db, "probing_table", &module, s, NULL) != SQLITE_OK)
        return sql_db_error(s, e, "cannot add the tables");
    return 0;
}

int sql_vtab_declare(struct sql *s, struct sql_table *t, struct err *e) {
    size_t i = 0;
    while (s->tables[i] != t)
        i++;
    const char *names[2][2] = {{t->schema[0] ? t->schema : "main", t->name}, {"main", t->alias}};
    for (int k = 0; k < 2; k++) {
        if (!names[k][1][0])
            continue;
        char *text = sqlite3_mprintf(
            "DROP TABLE IF EXISTS \"%w\".\"%w\"; CREATE VIRTUAL TABLE \"%w\".\"%w\" USING probing_table(%d)",
            names[k][0], names[k][1], names[k][0], names[k][1], (int)i);
        int rc = text ? sqlite3_exec(s->db, text, NULL, NULL, NULL) : SQLITE_NOMEM;
        sqlite3_free(text);
        if (rc != SQLITE_OK)
            return sql_db_error(s, e, t->full);
    }
    t->changed = false;
    return 0;
}
