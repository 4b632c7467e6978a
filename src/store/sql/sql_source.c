/* SPDX-License-Identifier: Apache-2.0 */
/* sql_source: the source of the rows of one table of one target: a ring file as of this query,
 * or a provider's answer to it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/sql/sql_internal.h"

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
    struct sql *s;
    struct sql_rows *rows;
    const struct ring_table_def *table;
    const char *key;
    const struct ring_column_def *columns;
    bool full;
};

bool sql_sink_cancelled(const struct sql_sink *sink) { return sql_cancelled(sink->s); }

const struct ring_table_def *sql_sink_table(const struct sql_sink *sink) { return sink->table; }

bool sql_sink_key(const struct sql_sink *sink, int64_t *value) {
    *value = sink->rows->key;
    return sink->rows->keyed;
}

const char *sql_sink_key_name(const struct sql_sink *sink) { return sink->key; }

static bool sql_sink_grow(struct sql_sink *k) {
    struct sql_rows *r = k->rows;
    if (r->n < r->cap)
        return true;
    size_t cap = r->cap ? r->cap * 2 : 64;
    if (cap * r->n_columns * sizeof *r->room > SQL_SINK_BYTES)
        return false;
    union ring_value *room = realloc(r->room, cap * r->n_columns * sizeof *room);
    if (!room)
        return false;
    r->room = room;
    r->values = room;
    r->cap = cap;
    return true;
}

int sql_sink_put(struct sql_sink *sink, const union ring_value *row) {
    struct sql_rows *r = sink->rows;
    if (sink->full || !sql_sink_grow(sink)) {
        sink->full = true;
        return -1;
    }
    union ring_value *to = r->room + r->n * r->n_columns;
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

static void sql_rows_clear(struct sql_rows *r) {
    arena_fini(&r->text);
    free(r->room);
    *r = (struct sql_rows){.n = 0};
}

/* Ask the provider, unless it has answered this query with all these columns (of the table). 0,
 * or -1 with s->failure. */
int sql_source_scan(struct sql *s, struct sql_source *src, uint64_t columns, const int64_t *key) {
    uint64_t wanted = sql_source_columns(src, columns);
    struct sql_rows *r = &src->rows;
    bool keyed = key && src->provider->key;
    bool same = r->query == s->query && r->keyed == keyed && (!keyed || r->key == *key);
    if (same && (wanted & ~r->columns) == 0)
        return 0;
    if (same)
        wanted |= r->columns;
    sql_rows_clear(r);
    r->keyed = keyed;
    r->key = keyed ? *key : 0;
    arena_init(&r->text, SQL_SINK_BYTES);
    for (const struct ring_column_def *c = src->provider->def->columns; c->name; c++)
        r->n_columns++;
    struct sql_sink sink = {.s = s,
                            .rows = r,
                            .table = src->provider->def,
                            .key = src->provider->key,
                            .columns = src->provider->def->columns};
    struct err e = {.code = ERR_OK, .text = ""};
    int rc = src->provider->scan(src->provider->arg, wanted, &sink, &e);
    r->columns = wanted;
    r->query = s->query;
    if (sink.full)
        snprintf(s->failure, sizeof s->failure, "%s: more rows than fit into memory",
                 src->provider->def->name);
    else if (rc != 0)
        snprintf(s->failure, sizeof s->failure, "%s", e.text);
    if (rc == 0 && !sink.full)
        return 0;
    sql_rows_clear(r);
    return -1;
}

void sql_source_fini(struct sql_source *src) {
    ring_reader_close(src->reader);
    sql_rows_clear(&src->rows);
    *src = (struct sql_source){.target = NULL};
}
