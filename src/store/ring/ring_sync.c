/* SPDX-License-Identifier: Apache-2.0 */
/* ring_sync: see ring_sync.h. The sender; the receiver is ring_replica.c. */
#include "store/ring/ring_sync.h"

#include <string.h>

#include "store/ring/ring_format.h"

uint32_t ring_sync_making(const void *head, size_t len) {
    struct ring_file_head h;
    if (len < sizeof h)
        return 0;
    memcpy(&h, head, sizeof h);
    return h.checksum;
}

void ring_piece_span(const struct ring_column_info *c, uint32_t from, uint32_t to, size_t *at,
                     size_t *bytes) {
    *at = (size_t)from * c->bits / 8;
    *bytes = ((size_t)to * c->bits + 7) / 8 - *at;
}

/* The first chunk that has rows after `have`. */
static const struct ring_chunk *ring_sync_chunk(const struct ring_reader *r, const struct ring_mark *have) {
    size_t n;
    const struct ring_chunk *chunks = ring_reader_chunks(r, &n);
    for (size_t i = 0; i < n; i++)
        if (have->rows == 0 || chunks[i].first_seq > have->first_seq ||
            (chunks[i].first_seq == have->first_seq && chunks[i].rows > have->rows))
            return &chunks[i];
    return NULL;
}

/* Number of rows that fit; all strings of the chunk go with the first. */
static uint32_t ring_sync_rows(const struct ring_info *info, const struct ring_piece *p, uint32_t rows,
                               size_t max_bytes) {
    /* Two bytes of a narrow column may be shared with rows that are not sent. */
    size_t bits = 0, fixed = sizeof *p + (p->heap_to - p->heap_from) + 2 * info->n_columns;
    for (size_t i = 0; i < info->n_columns; i++)
        bits += info->columns[i].bits;
    size_t fit = max_bytes > fixed ? (max_bytes - fixed) * 8 / (bits ? bits : 1) : 0;
    fit = fit > 0 ? fit : 1;
    return rows - p->row_from > fit ? p->row_from + (uint32_t)fit : rows;
}

int ring_sync_next(struct ring_reader *r, struct ring_mark *have, size_t max_bytes, struct strbuf *out) {
    const struct ring_info *info = ring_reader_info(r);
    struct ring_block b = {.data = NULL};
    const struct ring_chunk *c;
    int rc = 0;
    while (rc == 0 && (c = ring_sync_chunk(r, have))) {
        rc = ring_reader_load(r, c, UINT64_MAX, &b);
        if (rc == 0) /* overwritten while it was read: the next one */
            *have = (struct ring_mark){.first_seq = c->first_seq, .rows = UINT32_MAX};
    }
    if (rc <= 0) {
        ring_block_fini(&b);
        return rc;
    }
    bool more = have->rows > 0 && c->first_seq == have->first_seq;
    struct ring_piece p = {.first_seq = c->first_seq,
                           .base_us = c->base_us,
                           .min_us = c->min_us,
                           .max_us = c->max_us,
                           .row_from = more ? have->rows : 0,
                           .heap_from = !more                            ? 0
                                        : have->heap_used < c->heap_used ? have->heap_used
                                                                         : c->heap_used,
                           .heap_to = c->heap_used};
    p.row_to = ring_sync_rows(info, &p, c->rows, max_bytes);
    strbuf_add(out, &p, sizeof p);
    for (size_t i = 0; i < info->n_columns; i++) {
        size_t at, bytes;
        ring_piece_span(&info->columns[i], p.row_from, p.row_to, &at, &bytes);
        strbuf_add(out, b.data + info->columns[i].data_at + at, bytes);
    }
    strbuf_add(out, b.data + b.heap_at + p.heap_from, p.heap_to - p.heap_from);
    *have = (struct ring_mark){.first_seq = p.first_seq, .rows = p.row_to, .heap_used = p.heap_to};
    ring_block_fini(&b);
    return out->failed ? -1 : 1;
}
