/* SPDX-License-Identifier: Apache-2.0 */
/* ring_replica: see ring_sync.h. Writes a sender's pieces into a file in memory, by the rules of
 * ring_format.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "store/ring/ring_format.h"
#include "store/ring/ring_sync.h"

struct ring_replica {
    int fd;
    struct ring_reader *reader; /* of the same file: has its description */
    struct ring_file_head h;
    uint32_t slot; /* of the newest chunk */
    struct ring_entry entry;
    uint64_t missing;
};

static int ring_replica_write(struct ring_replica *r, const void *data, size_t len, uint64_t at) {
    const char *p = data;
    while (len > 0) {
        ssize_t n = pwrite(r->fd, p, len, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        p += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return 0;
}

struct ring_replica *ring_replica_create(const void *head, size_t len, struct err *e) {
    if (len > RING_MAX_HEAD || ring_layout_check(head, len, "the target's table", e) != 0)
        return NULL;
    struct ring_replica *r = calloc(1, sizeof *r);
    if (!r) {
        err_set(e, ERR_FAILED, "out of memory");
        return NULL;
    }
    memcpy(&r->h, head, sizeof r->h);
    r->fd = (int)syscall(SYS_memfd_create, "probing-replica", MFD_CLOEXEC);
    /* Not reserved: a replica takes only what its rows need. */
    uint64_t bytes = r->h.chunk_at + (uint64_t)r->h.n_chunks * r->h.chunk_bytes;
    if (r->fd < 0 || ftruncate(r->fd, (off_t)bytes) != 0 ||
        ring_replica_write(r, head, r->h.head_bytes, 0) != 0)
        err_set_errno(e, ERR_FAILED, errno, "no memory for a copy of a table");
    else
        r->reader = ring_reader_open_fd(ring_replica_open(r), "a copy", e);
    if (!r->reader) {
        ring_replica_close(r);
        return NULL;
    }
    return r;
}

void ring_replica_close(struct ring_replica *r) {
    if (!r)
        return;
    ring_reader_close(r->reader);
    if (r->fd >= 0)
        close(r->fd);
    free(r);
}

void ring_replica_mark(const struct ring_replica *r, struct ring_mark *out) {
    *out = (struct ring_mark){
        .first_seq = r->entry.first_seq, .rows = r->entry.rows, .heap_used = r->entry.heap_used};
}

uint64_t ring_replica_missing(const struct ring_replica *r) { return r->missing; }

int ring_replica_open(const struct ring_replica *r) { return fcntl(r->fd, F_DUPFD_CLOEXEC, 0); }

static int ring_replica_put_entry(struct ring_replica *r) {
    r->entry.checksum = ring_entry_checksum(&r->entry);
    return ring_replica_write(r, &r->entry, sizeof r->entry,
                              r->h.entry_at + (uint64_t)r->slot * r->h.entry_stride);
}

/* True if the piece continues the newest chunk, or starts one after it. */
static bool ring_piece_fits(const struct ring_replica *r, const struct ring_piece *p) {
    if (p->row_from >= p->row_to || p->row_to > r->h.chunk_rows || p->heap_from > p->heap_to ||
        p->heap_to > r->h.heap_bytes || p->first_seq > UINT64_MAX - p->row_to)
        return false;
    if (p->row_from > 0)
        return p->first_seq == r->entry.first_seq && p->row_from == r->entry.rows &&
               p->heap_from == r->entry.heap_used && p->base_us == r->entry.base_us;
    return p->heap_from == 0 && p->first_seq >= r->entry.first_seq + r->entry.rows;
}

/* Advance to the next slot, whose old rows go. */
static int ring_replica_turn(struct ring_replica *r, const struct ring_piece *p) {
    uint64_t next = r->entry.first_seq + r->entry.rows, turn = r->entry.generation;
    if (turn > 0) {
        r->missing += p->first_seq - next;
        r->slot = (r->slot + 1) % r->h.n_chunks;
        turn += r->slot == 0 ? 2 : 0;
    }
    turn = turn > 0 ? turn : 2;
    r->entry = (struct ring_entry){.generation = turn | 1, .first_seq = p->first_seq, .base_us = p->base_us};
    int rc = ring_replica_put_entry(r);
    r->entry.generation = turn;
    return rc;
}

/* Number of bytes that follow the piece. */
static size_t ring_piece_bytes(const struct ring_info *info, const struct ring_piece *p) {
    size_t total = p->heap_to - p->heap_from;
    for (size_t i = 0; i < info->n_columns; i++) {
        size_t at, bytes;
        ring_piece_span(&info->columns[i], p->row_from, p->row_to, &at, &bytes);
        total += bytes;
    }
    return total;
}

static int ring_replica_take(struct ring_replica *r, const struct ring_piece *p, const uint8_t *data) {
    const struct ring_info *info = ring_reader_info(r->reader);
    if (p->row_from == 0 && ring_replica_turn(r, p) != 0)
        return -1;
    uint64_t chunk = r->h.chunk_at + (uint64_t)r->slot * r->h.chunk_bytes;
    for (size_t i = 0; i < info->n_columns; i++) {
        size_t at, bytes;
        ring_piece_span(&info->columns[i], p->row_from, p->row_to, &at, &bytes);
        if (ring_replica_write(r, data, bytes, chunk + info->columns[i].data_at + at) != 0)
            return -1;
        data += bytes;
    }
    if (ring_replica_write(r, data, p->heap_to - p->heap_from, chunk + r->h.heap_at + p->heap_from) != 0)
        return -1;
    r->entry.min_us = p->min_us;
    r->entry.max_us = p->max_us;
    r->entry.rows = p->row_to;
    r->entry.heap_used = p->heap_to;
    return ring_replica_put_entry(r);
}

int ring_replica_apply(struct ring_replica *r, const void *data, size_t len, struct err *e) {
    const uint8_t *at = data;
    while (len > 0) {
        struct ring_piece p;
        if (len < sizeof p)
            return err_set(e, ERR_FAILED, "a piece of a table is cut short");
        memcpy(&p, at, sizeof p);
        size_t bytes = ring_piece_fits(r, &p) ? ring_piece_bytes(ring_reader_info(r->reader), &p) : SIZE_MAX;
        if (bytes == SIZE_MAX)
            return err_set(e, ERR_FAILED, "a piece of a table does not fit to what came before");
        if (bytes > len - sizeof p)
            return err_set(e, ERR_FAILED, "a piece of a table is cut short");
        if (ring_replica_take(r, &p, at + sizeof p) != 0)
            return err_set_errno(e, ERR_FAILED, errno, "no memory for a copy of a table");
        at += sizeof p + bytes;
        len -= sizeof p + bytes;
    }
    return 0;
}
