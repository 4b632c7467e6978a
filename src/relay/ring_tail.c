/* SPDX-License-Identifier: Apache-2.0 */
/* ring_tail: see ring_tail.h. */
#include "relay/ring_tail.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "store/ring/ring_tables.h"

#define RING_TAIL_SELDOM 5    /* of rows that come once a second, one in so many */
#define RING_TAIL_SHORT_MS 1. /* collectives that take less are kept */
#define RING_TAIL_SHORT 100   /* one in so many */
/* Rows of other times are left out: a clock was wrong, and each day of a batch is a part of its own for a server, which
 * refuses more than 100 */
#define RING_TAIL_AGE_S (40 * 86400.)

/* ---- which rows are kept ---- */

/* A row of a ring. */
struct ring_tail_row {
    const struct ring_tail *tail;
    const struct ring_block *block;
    uint32_t row;
};

static struct ring_cell ring_tail_get(const struct ring_tail_row *r, const char *column) {
    struct ring_cell cell = {.kind = RING_CELL_NULL};
    const struct engine_table *t = r->tail->table;
    for (size_t i = ENGINE_COMMON_COUNT; i < t->n; i++)
        if (r->tail->columns[i] >= 0 && strcmp(t->columns[i].name, column) == 0)
            ring_block_get(r->block, (size_t)r->tail->columns[i], r->row, &cell);
    return cell;
}

static bool ring_tail_keeps(const struct ring_tail_row *r, uint64_t number) {
    const struct ring_table_def *def = r->tail->table->ring;
    if (def == &RING_TABLES[RING_MEMORY] || def == &RING_TABLES[RING_PROCESS_HISTORY])
        return number % RING_TAIL_SELDOM == 0;
    if (def != &RING_TABLES[RING_COLLECTIVES])
        return true;
    struct ring_cell ms = ring_tail_get(r, "duration_ms");
    return number % RING_TAIL_SHORT == 0 || ms.kind != RING_CELL_REAL || ms.f > RING_TAIL_SHORT_MS;
}

/* ---- the file ---- */

/* Rows that are read already: `next` of a file that is opened counts from its beginning. */
static void ring_tail_use(struct ring_tail *t, struct ring_reader *ring, uint64_t created_us) {
    const struct ring_info *info = ring_reader_info(ring);
    ring_reader_close(t->ring);
    t->ring = ring;
    if (t->created_us != created_us) {
        t->next = 0;
        t->is_continued = false;
    }
    t->created_us = created_us;
    for (size_t i = 0; i < t->table->n; i++) {
        t->columns[i] = -1;
        for (size_t k = 0; i >= ENGINE_COMMON_COUNT && k < info->n_columns; k++)
            if (strcmp(info->columns[k].name, t->table->columns[i].name) == 0)
                t->columns[i] = (int)k;
    }
}

static bool ring_tail_is_read(struct ring_tail *t) {
    uint64_t oldest, end;
    if (ring_reader_refresh(t->ring, NULL) != 0)
        return true;
    ring_reader_range(t->ring, &oldest, &end);
    return t->next >= end;
}

static uint64_t ring_tail_created_us(const struct ring_reader *ring) {
    double at = ring_reader_info(ring)->created_at;
    return at > 0 && at < 1e12 ? (uint64_t)llround(at * 1e6) : 0;
}

bool ring_tail_open(struct ring_tail *t, const struct rings_place *place) {
    uint64_t end;
    char path[RING_DIR_PATH + RING_MAX_NAME + sizeof RING_DIR_SUFFIX];
    snprintf(path, sizeof path, "%s/%s%s", place->path, t->table->ring->name, RING_DIR_SUFFIX);
    struct ring_reader *now = ring_reader_open(path, place->owner, NULL);
    if (!now)
        return false;
    uint64_t created_us = ring_tail_created_us(now);
    if (t->ring && (created_us == t->created_us || !ring_tail_is_read(t)))
        ring_reader_close(now);
    else
        ring_tail_use(t, now, created_us);
    if (t->is_continued || ring_reader_refresh(t->ring, NULL) != 0)
        return false;
    ring_reader_range(t->ring, &t->next, &end);
    t->is_continued = true;
    return true;
}

void ring_tail_continue(struct ring_tail *t, uint64_t created_us, uint64_t next) {
    t->created_us = created_us;
    t->next = next;
    t->is_continued = true;
}

void ring_tail_close(struct ring_tail *t) {
    ring_reader_close(t->ring);
    t->ring = NULL;
}

/* ---- rows ---- */

static struct row_value ring_tail_value(const struct ring_cell *c) {
    switch (c->kind) {
    case RING_CELL_INT:
        return row_int(c->i);
    case RING_CELL_REAL:
        return row_real(c->f);
    case RING_CELL_TEXT:
        return (struct row_value){.kind = ROW_TEXT, .s = c->s, .len = c->len};
    case RING_CELL_NULL:
        break;
    }
    return (struct row_value){.kind = ROW_NULL};
}

static double ring_tail_ts(const struct ring_tail_row *r) {
    return ring_reader_info(r->tail->ring)->time_column >= 0
               ? (double)ring_block_time_us(r->block, r->row) / 1e6
               : (double)r->tail->created_us / 1e6;
}

static bool ring_tail_is_of_now(const struct ring_tail_row *r) {
    return fabs(clock_epoch_s() - ring_tail_ts(r)) < RING_TAIL_AGE_S;
}

static void ring_tail_put(const struct ring_tail_row *r, const struct ring_tail_owner *o, uint64_t number,
                          struct strbuf *out) {
    const struct ring_tail *t = r->tail;
    struct row_value row[ENGINE_MAX_COLUMNS];
    engine_put_common(row, o->job, o->rank, o->host, o->pid, t->created_us, number, ring_tail_ts(r));
    for (size_t i = ENGINE_COMMON_COUNT; i < t->table->n; i++) {
        struct ring_cell cell = {.kind = RING_CELL_NULL};
        if (t->columns[i] >= 0)
            ring_block_get(r->block, (size_t)t->columns[i], r->row, &cell);
        row[i] = ring_tail_value(&cell);
    }
    row_binary_put_row(out, t->table->columns, t->table->n, row);
}

/* Take the rows of a chunk from `taken_to` on. False: `out` is full. */
static bool ring_tail_take_chunk(struct ring_tail *t, const struct ring_chunk *c,
                                 const struct ring_tail_owner *o, struct strbuf *out, size_t max,
                                 uint64_t *rows) {
    size_t n_columns = ring_reader_info(t->ring)->n_columns;
    uint64_t columns = n_columns >= 64 ? UINT64_MAX : (1ULL << n_columns) - 1, end = c->first_seq + c->rows;
    struct ring_block block = {.data = NULL};
    if (c->first_seq > t->taken_to) {
        t->taken_lost += c->first_seq - t->taken_to;
        t->taken_to = c->first_seq;
    }
    int rc = ring_reader_load(t->ring, c, columns, &block);
    if (rc == 1)
        end = block.first_seq + block.rows;
    else if (rc == 0)
        t->taken_lost += end - t->taken_to;
    bool is_full = rc < 0;
    while (rc == 1 && t->taken_to < end && !is_full) {
        struct ring_tail_row r = {
            .tail = t, .block = &block, .row = (uint32_t)(t->taken_to - block.first_seq)};
        if (!ring_tail_is_of_now(&r))
            t->taken_lost++;
        else if (ring_tail_keeps(&r, t->taken_to)) {
            ring_tail_put(&r, o, t->taken_to, out);
            ++*rows;
        }
        t->taken_to++;
        is_full = out->failed || out->len >= max;
    }
    if (!is_full && end > t->taken_to)
        t->taken_to = end;
    ring_block_fini(&block);
    return !is_full;
}

/* How much of the room of the ring the rows that are not acknowledged take. */
static double ring_tail_fill(const struct ring_tail *t, const struct ring_chunk *chunks, size_t n) {
    const struct ring_info *info = ring_reader_info(t->ring);
    if (n == 0 || info->n_chunks == 0)
        return 0;
    const struct ring_chunk *last = &chunks[n - 1];
    uint64_t end = last->first_seq + last->rows;
    /* a chunk is full by its rows or by their texts */
    double rows =
        n > 1 ? (double)(last->first_seq - chunks[0].first_seq) / (double)(n - 1) : info->chunk_rows;
    return end > t->next && rows > 0 ? (double)(end - t->next) / (rows * info->n_chunks) : 0;
}

bool ring_tail_take(struct ring_tail *t, const struct ring_tail_owner *o, struct strbuf *out, size_t max,
                    uint64_t *rows) {
    size_t n;
    t->taken_to = t->next;
    t->taken_lost = 0;
    if (out->len >= max)
        return true;
    if (!t->ring || ring_reader_refresh(t->ring, NULL) != 0)
        return false;
    const struct ring_chunk *chunks = ring_reader_chunks(t->ring, &n);
    t->fill = fmax(t->fill, ring_tail_fill(t, chunks, n));
    for (size_t i = 0; i < n; i++)
        if (chunks[i].first_seq + chunks[i].rows > t->taken_to &&
            !ring_tail_take_chunk(t, &chunks[i], o, out, max, rows))
            return true;
    return false;
}

bool ring_tail_pass(struct ring_tail *t) {
    bool any = t->ring && t->next != t->taken_to;
    if (!t->ring)
        return false;
    t->next = t->taken_to;
    t->lost += t->taken_lost;
    t->taken_lost = 0;
    return any;
}
