/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql_index: the rows of a table by the value of an integer column, for joins.
 *
 * SQLite makes no index of its own over a virtual table, so a join of samples with stacks would
 * read all stacks for every sample. Made when a column is looked up by value for the second time
 * in a query; lives until its end. Keeps its chunks with all columns, so memory is bounded by
 * the ring's size.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "store/sql/sql_internal.h"

#define SQL_NO_ROW UINT32_MAX
#define SQL_INDEX_BYTES ((uint64_t)1024 * 1024 * 1024)
#define SQL_INDEX_ROWS ((uint64_t)100 * 1000 * 1000)

struct sql_index_block {
    struct ring_block block;
    uint32_t source;
    uint32_t first; /* number of its first row */
};

struct sql_index {
    struct sql_index_block *blocks;
    size_t n_blocks;
    uint32_t n_rows;
    int column;      /* of the table */
    uint32_t *slots; /* first row of a value, by its hash */
    uint32_t *next;  /* the next row of the same hash, by row */
    int64_t *values;
    uint64_t mask;
};

void sql_index_free(struct sql_index *x) {
    if (!x)
        return;
    for (size_t i = 0; i < x->n_blocks; i++)
        ring_block_fini(&x->blocks[i].block);
    free(x->blocks);
    free(x->slots);
    free(x->next);
    free(x->values);
    free(x);
}

/* Chunks of all sources; 0 if there are more than a client should hold: a file may claim
 * anything. */
static size_t sql_index_chunks(const struct sql_table *t) {
    size_t total = 0;
    uint64_t bytes = 0, rows = 0;
    for (size_t i = 0; i < t->n_sources; i++) {
        size_t n = 0;
        const struct ring_chunk *chunks = NULL;
        if (t->sources[i].reader)
            chunks = ring_reader_chunks(t->sources[i].reader, &n);
        for (size_t k = 0; k < n; k++) {
            bytes += ring_reader_info(t->sources[i].reader)->chunk_bytes;
            rows += chunks[k].rows;
        }
        total += n;
    }
    return bytes > SQL_INDEX_BYTES || rows > SQL_INDEX_ROWS ? 0 : total + 1;
}

/* Copy the chunks of all sources. */
static int sql_index_load(struct sql *s, struct sql_index *x, struct sql_table *t) {
    for (size_t i = 0; i < t->n_sources; i++)
        if (sql_source_refresh(s, &t->sources[i]) != 0)
            return -1;
    size_t chunks_of_all = sql_index_chunks(t);
    x->blocks = chunks_of_all ? calloc(chunks_of_all, sizeof *x->blocks) : NULL;
    if (!x->blocks)
        return -1;
    for (size_t i = 0; i < t->n_sources; i++) {
        struct sql_source *src = &t->sources[i];
        size_t n = 0;
        const struct ring_chunk *chunks = src->reader ? ring_reader_chunks(src->reader, &n) : NULL;
        for (size_t k = 0; k < n; k++) {
            struct sql_index_block *b = &x->blocks[x->n_blocks];
            int rc = ring_reader_load(src->reader, &chunks[k], UINT64_MAX, &b->block);
            if (rc < 0)
                return -1;
            s->lost += rc == 0;
            b->source = (uint32_t)i;
            b->first = x->n_rows;
            x->n_rows += b->block.rows;
            x->n_blocks += rc > 0;
            if (rc == 0)
                ring_block_fini(&b->block);
        }
    }
    return 0;
}

static void sql_index_fill(struct sql_index *x, const struct sql_table *t, int column) {
    for (size_t i = 0; i < x->n_blocks; i++) {
        const struct sql_index_block *b = &x->blocks[i];
        const struct sql_source *src = &t->sources[b->source];
        bool scoped = t->columns[column].type == RING_ID;
        for (uint32_t k = 0; src->map[column] >= 0 && k < b->block.rows; k++) {
            struct ring_cell c;
            uint32_t number = b->first + k;
            ring_block_get(&b->block, (size_t)src->map[column], k, &c);
            if (c.kind != RING_CELL_INT)
                continue;
            x->values[number] = scoped ? sql_scoped_id(src->target, c.i) : c.i;
            uint32_t *slot = &x->slots[hash_mix((uint64_t)x->values[number]) & x->mask];
            x->next[number] = *slot;
            *slot = number;
        }
    }
}

static struct sql_index *sql_index_make(struct sql *s, struct sql_table *t, int column) {
    struct sql_index *x = calloc(1, sizeof *x);
    if (!x || sql_index_load(s, x, t) != 0) {
        sql_index_free(x);
        return NULL;
    }
    x->column = column;
    uint64_t slots = 64;
    while (slots < (uint64_t)x->n_rows * 2)
        slots *= 2;
    x->mask = slots - 1;
    x->slots = malloc(slots * sizeof *x->slots);
    x->next = malloc((size_t)x->n_rows * sizeof *x->next + 1);
    x->values = malloc((size_t)x->n_rows * sizeof *x->values + 1);
    if (!x->slots || !x->next || !x->values) {
        sql_index_free(x);
        return NULL;
    }
    memset(x->slots, 0xff, slots * sizeof *x->slots);
    sql_index_fill(x, t, column);
    return x;
}

void sql_table_begin(struct sql *s, struct sql_table *t) {
    if (t->query == s->query)
        return;
    t->query = s->query;
    for (size_t i = 0; i < SQL_INDEXES; i++) {
        sql_index_free(t->indexes[i]);
        t->indexes[i] = NULL;
    }
    memset(t->lookups, 0, sizeof t->lookups);
}

struct sql_index *sql_index_get(struct sql *s, struct sql_table *t, int column) {
    sql_table_begin(s, t);
    for (size_t i = 0; i < SQL_INDEXES; i++) {
        if (!t->indexes[i])
            t->indexes[i] = sql_index_make(s, t, column);
        if (!t->indexes[i] || t->indexes[i]->column == column)
            return t->indexes[i];
    }
    return NULL;
}

/* The first of a chain with that value. */
static uint32_t sql_index_match(const struct sql_index *x, uint32_t number, int64_t value) {
    while (number != SQL_NO_ROW && x->values[number] != value)
        number = x->next[number];
    return number;
}

uint32_t sql_index_first(const struct sql_index *x, int64_t value) {
    return sql_index_match(x, x->slots[hash_mix((uint64_t)value) & x->mask], value);
}

uint32_t sql_index_after(const struct sql_index *x, uint32_t number) {
    return sql_index_match(x, x->next[number], x->values[number]);
}

const struct ring_block *sql_index_row(const struct sql_index *x, uint32_t number, uint32_t *row,
                                       uint32_t *source) {
    size_t lo = 0, hi = x->n_blocks;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (x->blocks[mid].first <= number)
            lo = mid;
        else
            hi = mid;
    }
    *row = number - x->blocks[lo].first;
    *source = x->blocks[lo].source;
    return &x->blocks[lo].block;
}
