/* SPDX-License-Identifier: Apache-2.0 */
/* ring_reader: see ring_reader.h; the file and its rules: ring_format.h. */
#include "store/ring/ring_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "store/ring/ring_format.h"

/* a chunk of this many bytes is read with one call, whatever is wanted of it */
#define RING_READ_WHOLE ((uint32_t)16 * 1024)
/* reads of an entry that is being written; each takes longer than writing it */
#define RING_ENTRY_TRIES 64

struct ring_reader {
    int fd;
    char *path;
    struct ring_file_head h;
    char *head; /* h.head_bytes */
    struct ring_info info;
    uint8_t *directory; /* n_chunks entries of entry_stride */
    struct ring_chunk *chunks;
    size_t n;
    uint64_t lost;
};

/* Up to `len` bytes; returns their number, or -1 with errno. */
static ssize_t ring_read_at(int fd, void *data, size_t len, uint64_t at) {
    size_t have = 0;
    while (have < len) {
        ssize_t n = pread(fd, (char *)data + have, len - have, (off_t)(at + have));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        have += (size_t)n;
    }
    return (ssize_t)have;
}

/* ---- opening ---- */

static const char *ring_head_text(const struct ring_reader *r, uint32_t at) { return at ? r->head + at : ""; }

static void ring_split_labels(struct ring_column_info *c, const char *joined) {
    for (const char *p = joined; *p && c->n_labels < RING_MAX_LABELS;) {
        size_t n = strcspn(p, "\n");
        c->labels[c->n_labels] = p;
        c->label_len[c->n_labels++] = n;
        p += n + (p[n] == '\n');
    }
}

static void ring_fill_info(struct ring_reader *r) {
    const struct ring_file_head *h = &r->h;
    struct ring_info *i = &r->info;
    i->name = ring_head_text(r, h->name_at);
    i->alias = ring_head_text(r, h->alias_at);
    i->help = ring_head_text(r, h->help_at);
    i->host = ring_head_text(r, h->host_at);
    i->cost = h->cost <= RING_COST_PROBE ? (enum ring_cost)h->cost : RING_COST_PROBE;
    i->minor = h->minor;
    i->retention_s = h->retention_s;
    i->started_at = h->started_at;
    i->created_at = h->created_at;
    i->pid = h->pid;
    i->rank = h->rank;
    i->start_ticks = h->start_ticks;
    i->time_column = h->time_column == RING_NO_COLUMN ? -1 : (int)h->time_column;
    i->n_columns = h->n_columns;
    i->n_chunks = h->n_chunks;
    i->chunk_rows = h->chunk_rows;
    i->chunk_bytes = h->chunk_bytes;
    i->file_bytes = h->chunk_at + (uint64_t)h->n_chunks * h->chunk_bytes;
    for (size_t k = 0; k < i->n_columns; k++) {
        struct ring_file_column c;
        memcpy(&c, r->head + h->column_at + k * h->column_stride, sizeof c);
        i->columns[k] = (struct ring_column_info){
            .name = ring_head_text(r, c.name_at),
            .unit = ring_head_text(r, c.unit_at),
            .help = ring_head_text(r, c.help_at),
            .type = ring_column_type(c.type),
            .bits = c.bits,
            .data_at = c.data_at,
        };
        if (i->columns[k].type == RING_ENUM)
            ring_split_labels(&i->columns[k], ring_head_text(r, c.labels_at));
    }
}

static int ring_reader_init(struct ring_reader *r, const char *path, struct err *e) {
    char *head = calloc(1, RING_MAX_HEAD);
    r->path = strdup(path);
    if (!head || !r->path) {
        free(head);
        return err_set(e, ERR_FAILED, "%s: out of memory", path);
    }
    ssize_t have = ring_read_at(r->fd, head, RING_MAX_HEAD, 0);
    if (have < 0 || ring_layout_check(head, (size_t)have, path, e) != 0) {
        if (have < 0)
            err_set_errno(e, ERR_FAILED, errno, "%s: cannot be read", path);
        free(head);
        return -1;
    }
    memcpy(&r->h, head, sizeof r->h);
    char *shorter = realloc(head, r->h.head_bytes);
    r->head = shorter ? shorter : head;
    r->directory = malloc((size_t)r->h.n_chunks * r->h.entry_stride);
    r->chunks = calloc(r->h.n_chunks, sizeof *r->chunks);
    if (!r->directory || !r->chunks)
        return err_set(e, ERR_FAILED, "%s: out of memory", path);
    ring_fill_info(r);
    return ring_reader_refresh(r, e);
}

struct ring_reader *ring_reader_open_fd(int fd, const char *path, struct err *e) {
    struct ring_reader *r = calloc(1, sizeof *r);
    if (!r) {
        close(fd);
        err_set(e, ERR_FAILED, "%s: out of memory", path);
        return NULL;
    }
    r->fd = fd;
    if (ring_reader_init(r, path, e) != 0) {
        ring_reader_close(r);
        return NULL;
    }
    return r;
}

struct ring_reader *ring_reader_open(const char *path, uid_t owner, struct err *e) {
    struct stat st;
    /* Checked before it is opened: a FIFO would block, and opening a device may have effects. */
    int fd = open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
    bool seen = fd >= 0 && fstat(fd, &st) == 0;
    int why = errno;
    if (seen && S_ISREG(st.st_mode) && (owner == RING_ANY_UID || st.st_uid == owner)) {
        fd = file_open_taken(fd, O_RDONLY, FILE_ANY_OWNER);
        if (fd >= 0)
            return ring_reader_open_fd(fd, path, e);
        err_set_errno(e, ERR_FAILED, errno, "%s", path);
        return NULL;
    }
    if (!seen)
        err_set_errno(e, ERR_FAILED, why, "%s", path);
    else if (S_ISLNK(st.st_mode))
        err_set(e, ERR_FAILED, "%s: is a symbolic link; only the table's own file is read", path);
    else if (!S_ISREG(st.st_mode))
        err_set(e, ERR_FAILED, "%s: is not a file", path);
    else
        err_set(e, ERR_FAILED, "%s: belongs to user %u, not to %u: not trusted", path, (unsigned)st.st_uid,
                (unsigned)owner);
    if (fd >= 0)
        close(fd);
    return NULL;
}

void ring_reader_close(struct ring_reader *r) {
    if (!r)
        return;
    close(r->fd);
    free(r->path);
    free(r->head);
    free(r->directory);
    free(r->chunks);
    free(r);
}

const struct ring_info *ring_reader_info(const struct ring_reader *r) { return &r->info; }

const void *ring_reader_head(const struct ring_reader *r, size_t *len) {
    *len = r->h.head_bytes;
    return r->head;
}

/* ---- the directory ---- */

static bool ring_entry_whole(const struct ring_entry *entry) {
    static const struct ring_entry never;
    return entry->checksum == ring_entry_checksum(entry) || memcmp(entry, &never, sizeof never) == 0;
}

/* Read one entry until it is complete. Returns whether it was. */
static bool ring_read_entry(const struct ring_reader *r, uint32_t slot, struct ring_entry *entry) {
    uint64_t at = r->h.entry_at + (uint64_t)slot * r->h.entry_stride;
    for (int i = 0; i < RING_ENTRY_TRIES; i++) {
        if (ring_read_at(r->fd, entry, sizeof *entry, at) != (ssize_t)sizeof *entry)
            return false;
        if (ring_entry_whole(entry))
            return true;
    }
    return false;
}

static int ring_compare_chunks(const void *a, const void *b) {
    const struct ring_chunk *x = a, *y = b;
    return x->first_seq < y->first_seq ? -1 : x->first_seq > y->first_seq;
}

int ring_reader_refresh(struct ring_reader *r, struct err *e) {
    size_t bytes = (size_t)r->h.n_chunks * r->h.entry_stride;
    ssize_t have = ring_read_at(r->fd, r->directory, bytes, r->h.entry_at);
    r->n = 0;
    if (have < 0)
        return err_set_errno(e, ERR_FAILED, errno, "%s: cannot be read", r->path);
    if ((size_t)have < bytes)
        return err_set(e, ERR_FAILED, "%s: was cut short; nothing of it can be read", r->path);
    for (uint32_t i = 0; i < r->h.n_chunks; i++) {
        struct ring_entry entry;
        memcpy(&entry, r->directory + (size_t)i * r->h.entry_stride, sizeof entry);
        if (!ring_entry_whole(&entry) && !ring_read_entry(r, i, &entry)) {
            r->lost++;
            continue;
        }
        if (entry.generation % 2 || entry.rows == 0)
            continue;
        if (entry.rows > r->h.chunk_rows || entry.heap_used > r->h.heap_bytes ||
            entry.first_seq > UINT64_MAX - entry.rows) {
            r->lost++;
            continue;
        }
        r->chunks[r->n++] = (struct ring_chunk){.generation = entry.generation,
                                                .first_seq = entry.first_seq,
                                                .base_us = entry.base_us,
                                                .min_us = entry.min_us,
                                                .max_us = entry.max_us,
                                                .rows = entry.rows,
                                                .heap_used = entry.heap_used,
                                                .slot = i};
    }
    qsort(r->chunks, r->n, sizeof *r->chunks, ring_compare_chunks);
    return 0;
}

const struct ring_chunk *ring_reader_chunks(const struct ring_reader *r, size_t *n) {
    *n = r->n;
    return r->chunks;
}

void ring_reader_range(const struct ring_reader *r, uint64_t *oldest, uint64_t *next) {
    *oldest = *next = 0;
    if (r->n > 0) {
        *oldest = r->chunks[0].first_seq;
        *next = r->chunks[r->n - 1].first_seq + r->chunks[r->n - 1].rows;
    }
}

uint64_t ring_reader_lost(const struct ring_reader *r) { return r->lost; }

/* ---- rows ---- */

static bool ring_read_columns(const struct ring_reader *r, const struct ring_chunk *c, uint64_t columns,
                              uint8_t *into) {
    uint64_t at = r->h.chunk_at + (uint64_t)c->slot * r->h.chunk_bytes;
    bool text = false;
    if (r->h.chunk_bytes <= RING_READ_WHOLE &&
        ring_read_at(r->fd, into, r->h.chunk_bytes, at) == (ssize_t)r->h.chunk_bytes)
        return true;
    for (size_t i = 0; i < r->info.n_columns; i++) {
        const struct ring_column_info *col = &r->info.columns[i];
        size_t bytes = ((size_t)c->rows * col->bits + 7) / 8;
        if (!(columns >> i & 1))
            continue;
        text = text || col->type == RING_TEXT;
        if (ring_read_at(r->fd, into + col->data_at, bytes, at + col->data_at) != (ssize_t)bytes)
            return false;
    }
    return !text ||
           ring_read_at(r->fd, into + r->h.heap_at, c->heap_used, at + r->h.heap_at) == (ssize_t)c->heap_used;
}

int ring_reader_load(struct ring_reader *r, const struct ring_chunk *c, uint64_t columns,
                     struct ring_block *b) {
    struct ring_entry now;
    if (b->bytes < r->h.chunk_bytes) {
        uint8_t *data = realloc(b->data, r->h.chunk_bytes);
        if (!data)
            return -1;
        b->data = data;
        b->bytes = r->h.chunk_bytes;
    }
    b->rows = 0;
    bool read = ring_read_columns(r, c, columns, b->data);
    /* The copy comes before the second reading of the entry, also on machines that reorder. */
    atomic_thread_fence(memory_order_seq_cst);
    if (!read || !ring_read_entry(r, c->slot, &now) || now.generation != c->generation) {
        r->lost++;
        return 0;
    }
    b->info = &r->info;
    b->columns = columns;
    b->first_seq = c->first_seq;
    b->base_us = c->base_us;
    b->rows = c->rows;
    b->heap_at = r->h.heap_at;
    b->heap_used = c->heap_used;
    return 1;
}

void ring_block_fini(struct ring_block *b) {
    free(b->data);
    *b = (struct ring_block){.data = NULL};
}

static void ring_get_text(const struct ring_block *b, uint32_t number, struct ring_cell *out) {
    uint16_t len;
    uint32_t at = number * 2;
    if (number == RING_NULL_TEXT || at + sizeof len > b->heap_used)
        return;
    memcpy(&len, b->data + b->heap_at + at, sizeof len);
    if (len > b->heap_used - at - sizeof len)
        return;
    out->kind = RING_CELL_TEXT;
    out->s = (const char *)b->data + b->heap_at + at + sizeof len;
    out->len = len;
}

/* An enum or a bool, 2 or 4 bits wide (ring_layout_check guarantees that). */
static void ring_get_bits(const struct ring_column_info *c, const uint8_t *data, uint32_t row,
                          struct ring_cell *out) {
    uint32_t bit = row * c->bits, unknown = (1U << c->bits) - 1;
    uint32_t v = (uint32_t)data[bit / 8] >> bit % 8 & unknown;
    if (c->type == RING_BOOL && v <= 1) {
        out->kind = RING_CELL_INT;
        out->i = v;
    } else if (c->type == RING_ENUM && v < c->n_labels && v != unknown) {
        out->kind = RING_CELL_TEXT;
        out->s = c->labels[v];
        out->len = (uint32_t)c->label_len[v];
    }
}

static void ring_get_double(const uint8_t *at, struct ring_cell *out) {
    memcpy(&out->f, at, sizeof out->f);
    out->kind = isnan(out->f) ? RING_CELL_NULL : RING_CELL_REAL;
}

static void ring_get_int(bool known, int64_t v, struct ring_cell *out) {
    out->i = v;
    out->kind = known ? RING_CELL_INT : RING_CELL_NULL;
}

int64_t ring_block_time_us(const struct ring_block *b, uint32_t row) {
    int32_t delta;
    memcpy(&delta, b->data + b->info->columns[b->info->time_column].data_at + (size_t)row * 4, sizeof delta);
    /* In a damaged file this may be anything: no overflow. */
    return (int64_t)((uint64_t)b->base_us + (uint64_t)(int64_t)delta);
}

void ring_block_get(const struct ring_block *b, size_t column, uint32_t row, struct ring_cell *out) {
    out->kind = RING_CELL_NULL;
    if (column >= b->info->n_columns || !(b->columns >> column & 1) || row >= b->rows)
        return;
    const struct ring_column_info *c = &b->info->columns[column];
    const uint8_t *data = b->data + c->data_at;
    int64_t i64;
    int32_t i32;
    uint32_t u32;
    uint16_t u16;
    switch (c->type) {
    case RING_TIMESTAMP:
        memcpy(&i32, data + (size_t)row * 4, 4);
        out->kind = RING_CELL_REAL;
        out->f = (double)(int64_t)((uint64_t)b->base_us + (uint64_t)(int64_t)i32) / 1e6;
        return;
    case RING_DOUBLE:
        ring_get_double(data + (size_t)row * 8, out);
        return;
    case RING_INT64:
        memcpy(&i64, data + (size_t)row * 8, 8);
        ring_get_int(i64 != RING_INT_NULL, i64, out);
        return;
    case RING_INT32:
        memcpy(&i32, data + (size_t)row * 4, 4);
        ring_get_int(i32 != RING_NULL_INT32, i32, out);
        return;
    case RING_UINT32:
    case RING_ID:
        memcpy(&u32, data + (size_t)row * 4, 4);
        ring_get_int(u32 != RING_NULL_UINT32, u32, out);
        return;
    case RING_TEXT:
        memcpy(&u16, data + (size_t)row * 2, 2);
        ring_get_text(b, u16, out);
        return;
    case RING_ENUM:
    case RING_BOOL:
        ring_get_bits(c, data, row, out);
        return;
    default: /* of a newer version */
        return;
    }
}
