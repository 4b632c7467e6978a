/* SPDX-License-Identifier: Apache-2.0 */
/* sql_source: the source of the rows of one table of one target: a ring file as of this query,
 * or a provider's answer to it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "store/sql/sql_internal.h"

#define SQL_ROWS_HASHED 256 /* fewer are searched one by one */

int64_t sql_scoped_id(const struct sql_target_state *t, int64_t id) { return (int64_t)t->index << 32 | id; }

/* The columns of a file or definition that feed columns of the table. */
uint64_t sql_source_columns(const struct sql_source *src, uint64_t of_table) {
    uint64_t out = 0;
    for (int i = 0; i < RING_MAX_COLUMNS; i++)
        if ((of_table >> i & 1) && src->map[i] >= 0)
            out |= 1ULL << src->map[i];
    return out;
}

/* Note the present chunks, once per query. */
int sql_source_refresh(struct sql *s, struct sql_source *src) {
    struct err e;
    if (!src->reader || src->query == s->query)
        return 0;
    src->query = s->query;
    if (ring_reader_refresh(src->reader, &e) == 0)
        return 0;
    snprintf(s->failure, sizeof s->failure, "%s", e.text);
    return -1;
}

/* ---- a provider's rows ---- */

struct sql_sink {
    const struct sql *s;
    struct sql_rows *rows;
    const struct ring_table_def *table;
    const char *key;
    const struct ring_column_def *columns;
    bool full;
};

bool sql_sink_cancelled(const struct sql_sink *sink) { return sql_cancelled(sink->s); }

const struct ring_table_def *sql_sink_table(const struct sql_sink *sink) { return sink->table; }

const struct sql_wanted *sql_sink_wanted(const struct sql_sink *sink) { return &sink->rows->wanted; }

const char *sql_sink_key_name(const struct sql_sink *sink) { return sink->key; }

static bool sql_sink_grow(struct sql_sink *k) {
    struct sql_rows *r = k->rows;
    if (r->n < r->cap)
        return true;
    size_t cap = r->cap ? r->cap * 2 : 64;
    if (cap * r->n_columns * sizeof *r->values > SQL_SINK_BYTES)
        return false;
    union ring_value *values = realloc(r->values, cap * r->n_columns * sizeof *values);
    if (!values)
        return false;
    r->values = values;
    r->cap = cap;
    return true;
}

int sql_sink_put(struct sql_sink *sink, const union ring_value *row) {
    struct sql_rows *r = sink->rows;
    if (sink->full || !sql_sink_grow(sink)) {
        sink->full = true;
        return -1;
    }
    union ring_value *to = r->values + r->n * r->n_columns;
    memcpy(to, row, r->n_columns * sizeof *row);
    for (size_t i = 0; i < r->n_columns; i++)
        if (sink->columns[i].type == RING_TEXT && row[i].s) {
            to[i].s = arena_strdup(&r->text, row[i].s);
            sink->full = sink->full || !to[i].s;
        }
    if (sink->full)
        return -1;
    r->n++;
    return 0;
}

void sql_rows_unref(struct sql_rows *r) {
    if (!r || --r->refs)
        return;
    arena_fini(&r->text);
    free(r->values);
    free(r->slots);
    free(r->next);
    free(r);
}

static int64_t sql_rows_value(const struct sql_rows *r, size_t row, int column) {
    return r->values[row * r->n_columns + (size_t)column].i;
}

/* Sort the rows by their value in a column. Without memory they are searched one by one. */
static void sql_rows_hash(struct sql_rows *r, int column) {
    uint64_t slots = 64;
    while (slots < (uint64_t)r->n * 2)
        slots *= 2;
    free(r->slots);
    free(r->next);
    r->hashed = -1;
    r->mask = slots - 1;
    r->slots = malloc(slots * sizeof *r->slots);
    r->next = malloc(r->n * sizeof *r->next + 1);
    if (!r->slots || !r->next)
        return;
    r->hashed = column;
    memset(r->slots, 0xff, slots * sizeof *r->slots);
    /* backwards, so that each chain is in the order of the rows */
    for (size_t i = r->n; i-- > 0;) {
        uint32_t *slot = &r->slots[hash_mix((uint64_t)sql_rows_value(r, i, column)) & r->mask];
        r->next[i] = *slot;
        *slot = (uint32_t)i;
    }
}

/* `row` or the next one in its order that has the value. */
static uint32_t sql_rows_match(const struct sql_rows *r, uint32_t row, int column, int64_t value) {
    while (row < r->n && sql_rows_value(r, row, column) != value)
        row = r->hashed == column ? r->next[row] : row + 1;
    return row < r->n ? row : UINT32_MAX;
}

uint32_t sql_rows_first(struct sql_rows *r, int column, int64_t value) {
    if (r->hashed != column && r->n >= SQL_ROWS_HASHED)
        sql_rows_hash(r, column);
    uint32_t first = r->hashed == column ? r->slots[hash_mix((uint64_t)value) & r->mask] : 0;
    return sql_rows_match(r, first, column, value);
}

uint32_t sql_rows_after(const struct sql_rows *r, uint32_t row, int column, int64_t value) {
    return sql_rows_match(r, r->hashed == column ? r->next[row] : row + 1, column, value);
}

static const struct sql_wanted sql_wanted_all = {.min_us = INT64_MIN,
                                                 .max_us = INT64_MAX,
                                                 .min_rank = INT64_MIN,
                                                 .max_rank = INT64_MAX,
                                                 .equal_column = -1};

static bool sql_same_time(const struct sql_wanted *a, const struct sql_wanted *b) {
    return a->min_us == b->min_us && a->max_us == b->max_us;
}

static bool sql_same_ranks(const struct sql_wanted *a, const struct sql_wanted *b) {
    return a->min_rank == b->min_rank && a->max_rank == b->max_rank && a->n_ranks == b->n_ranks &&
           (!a->n_ranks || memcmp(a->ranks, b->ranks, a->n_ranks * sizeof *a->ranks) == 0);
}

static bool sql_same_equal(const struct sql_wanted *a, const struct sql_wanted *b) {
    if (a->equal_column != b->equal_column || a->equal != b->equal || !a->equal_text != !b->equal_text)
        return false;
    return !a->equal_text || strcmp(a->equal_text, b->equal_text) == 0;
}

/* What the provider uses of `w`. A limit counts rows to which all of it was applied. */
static struct sql_wanted sql_usable(const struct sql_provider *p, const struct sql_wanted *w) {
    struct sql_wanted out = *w;
    bool is_key =
        p->key && w->equal_column >= 0 && strcmp(p->def->columns[w->equal_column].name, p->key) == 0;
    if (!(p->uses & SQL_USES_TIME)) {
        out.min_us = INT64_MIN;
        out.max_us = INT64_MAX;
    }
    if (!(p->uses & SQL_USES_RANK)) {
        out.min_rank = INT64_MIN;
        out.max_rank = INT64_MAX;
        out.ranks = NULL;
        out.n_ranks = 0;
    }
    if (p->key ? !is_key : !(p->uses & SQL_USES_EQUAL)) {
        out.equal_column = -1;
        out.equal = 0;
        out.equal_text = NULL;
    }
    if (!(p->uses & SQL_USES_LIMIT) || !sql_same_time(&out, w) || !sql_same_ranks(&out, w) ||
        !sql_same_equal(&out, w))
        out.limit = 0;
    return out;
}

/* True if the rows of `have` are among others all of `w`. */
static bool sql_covers(const struct sql_wanted *have, const struct sql_wanted *w) {
    if (have->limit && !(have->limit == w->limit && sql_same_time(have, w) && sql_same_ranks(have, w) &&
                         sql_same_equal(have, w)))
        return false;
    bool times = have->min_us <= w->min_us && have->max_us >= w->max_us;
    bool ranks = have->n_ranks ? sql_same_ranks(have, w)
                               : have->min_rank <= w->min_rank && have->max_rank >= w->max_rank;
    return times && ranks && (have->equal_column < 0 || sql_same_equal(have, w));
}

/* Make `w` cover what was asked for before, too. A query that asks with one value after another (a join) gets
 * all rows the third time. A key stays: the provider has no rows without it. */
static void sql_widen(const struct sql_rows *before, bool keyed, struct sql_wanted *w) {
    const struct sql_wanted *have = &before->wanted;
    bool again = before->scans > 1;
    if (!sql_same_time(have, w)) {
        w->min_us = again ? INT64_MIN : have->min_us < w->min_us ? have->min_us : w->min_us;
        w->max_us = again ? INT64_MAX : have->max_us > w->max_us ? have->max_us : w->max_us;
    }
    if (!sql_same_ranks(have, w)) {
        w->ranks = NULL;
        w->n_ranks = 0;
        w->min_rank = INT64_MIN;
        w->max_rank = INT64_MAX;
    }
    if (!keyed && !sql_same_equal(have, w)) {
        w->equal_column = -1;
        w->equal = 0;
        w->equal_text = NULL;
    }
    w->limit = 0;
}

/* 0, or -1 without memory. */
static int sql_rows_want(struct sql_rows *r, const struct sql_wanted *w) {
    r->wanted = *w;
    if (w->n_ranks) {
        int64_t *ranks = arena_calloc(&r->text, w->n_ranks, sizeof *ranks);
        if (ranks)
            memcpy(ranks, w->ranks, w->n_ranks * sizeof *ranks);
        r->wanted.ranks = ranks;
    }
    if (w->equal_text)
        r->wanted.equal_text = arena_strdup(&r->text, w->equal_text);
    return r->text.failed ? -1 : 0;
}

struct sql_rows *sql_source_scan(struct sql *s, struct sql_source *src, uint64_t columns,
                                 const struct sql_wanted *w) {
    const struct sql_provider *p = src->provider;
    struct sql_wanted wanted = sql_usable(p, w ? w : &sql_wanted_all);
    uint64_t use = sql_source_columns(src, columns);
    struct sql_rows *before = src->rows && src->rows->query == s->query ? src->rows : NULL;
    if (before && sql_covers(&before->wanted, &wanted) && (use & ~before->columns) == 0) {
        before->refs++;
        return before;
    }
    if (before && !(p->key && !sql_same_equal(&before->wanted, &wanted))) {
        sql_widen(before, p->key != NULL, &wanted);
        use |= before->columns;
    }
    struct sql_rows *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    *r = (struct sql_rows){
        .refs = 1, .columns = use, .query = s->query, .scans = before ? before->scans + 1 : 1, .hashed = -1};
    arena_init(&r->text, SQL_SINK_BYTES);
    for (const struct ring_column_def *c = p->def->columns; c->name; c++)
        r->n_columns++;
    struct sql_sink sink = {.s = s, .rows = r, .table = p->def, .key = p->key, .columns = p->def->columns};
    struct err e = {.code = ERR_OK, .text = ""};
    sink.full = sql_rows_want(r, &wanted) != 0;
    int rc = sink.full ? -1 : p->scan(p->arg, use, &sink, &e);
    if (sink.full)
        snprintf(s->failure, sizeof s->failure,
                 "%s: more rows than fit into memory: narrow it by time (timestamp > now() - 60)",
                 p->def->name);
    else if (rc != 0)
        snprintf(s->failure, sizeof s->failure, "%s", e.text);
    if (rc != 0 || sink.full) {
        sql_rows_unref(r);
        return NULL;
    }
    sql_rows_unref(src->rows);
    src->rows = r;
    r->refs++;
    return r;
}

void sql_source_fini(struct sql_source *src) {
    ring_reader_close(src->reader);
    sql_rows_unref(src->rows);
    *src = (struct sql_source){.target = NULL};
}
