/* SPDX-License-Identifier: Apache-2.0 */
/* ring: see ring.h. The writer of a ring table. */
#include "store/ring/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "store/ring/ring_format.h"

#define RING_RECENT_NONE 0
#define RING_SLOTS_MAX 32768U
#define RING_US 1e6
/* Bytes between two that are new: to write them again costs less than another system call. In the
 * longest chunk of python.samples the columns of 2 bits are 2,096 apart. */
#define RING_GAP 2304U
/* Microseconds that a double represents exactly, and that leave room for differences: years 1684
 * to 2255. */
#define RING_MAX_US 9007199254740992LL

struct ring_column {
    uint8_t *data; /* of the chunk in memory */
    enum ring_type type;
    uint8_t bits;
    uint16_t recent; /* RING_TEXT: number of the last string written; RING_RECENT_NONE */
};

struct ring {
    int fd;
    struct ring_file_head h;
    void *head; /* h.head_bytes at the beginning of the file */
    struct ring_column columns[RING_MAX_COLUMNS];
    struct ring_entry *entries; /* the directory as in the file */
    uint8_t *chunk;             /* the chunk being filled: chunk_bytes */
    size_t memory;              /* mapped for entries, slots and chunk */
    void *map;
    uint16_t *slots; /* numbers of strings by their hash; 0 free */
    uint32_t n_slots, n_texts;
    uint32_t text_max;
    uint32_t slot;    /* which chunk of the file is being filled */
    uint32_t oldest;  /* the oldest that still has rows */
    uint32_t rows;    /* in memory */
    uint32_t written; /* of those, how many are in the file */
    uint32_t heap_used, heap_written;
    bool marked; /* the file says that this chunk is being replaced, or has rows of it */
    int64_t base_us, min_us, max_us;
    uint64_t seq; /* of row 0 of this chunk */
    struct ring_counts counts;
    /* Of the rows that the directory has; unknown since a chunk was marked, emptied or finished.
     * The directory is many cache lines, and it is asked for after every few samples. */
    bool surveyed;
    uint64_t oldest_seq;
    int64_t dir_min_us, dir_max_us;
};

/* ---- the file ---- */

/* Write all of it. 0 or -1 with errno. */
static int ring_write_at(struct ring *r, const void *data, size_t len, uint64_t at) {
    const uint8_t *p = data;
    while (len > 0) {
        ssize_t n = pwrite(r->fd, p, len, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n == 0 ? EIO : errno;
            return -1;
        }
        p += n;
        at += (uint64_t)n;
        len -= (size_t)n;
    }
    return 0;
}

static uint64_t ring_file_bytes(const struct ring *r) {
    return r->h.chunk_at + (uint64_t)r->h.n_chunks * r->h.chunk_bytes;
}

/* Reserve the space now, so that a file system that fills up later takes nothing from us. If
 * that is impossible, the file gets its final length: a write without room then fails, and
 * nothing else happens. */
static int ring_reserve(struct ring *r) {
    uint64_t bytes = ring_file_bytes(r);
    int rc;
    do
        rc = fallocate(r->fd, 0, 0, (off_t)bytes);
    while (rc != 0 && errno == EINTR);
    if (rc != 0 && (errno == EOPNOTSUPP || errno == ENOSYS))
        rc = ftruncate(r->fd, (off_t)bytes);
    r->counts.file_bytes = rc == 0 ? bytes : 0;
    return rc;
}

/* Entry `i` of the directory, in memory and in the file. */
static int ring_put_entry(struct ring *r, uint32_t i, const struct ring_entry *entry) {
    struct ring_entry out = *entry;
    out.checksum = ring_entry_checksum(&out);
    if (ring_write_at(r, &out, sizeof out, r->h.entry_at + (uint64_t)i * r->h.entry_stride) != 0)
        return -1;
    r->entries[i] = out;
    r->surveyed = r->surveyed && out.rows > 0;
    return 0;
}

/* Whoever may write the file may also have shortened it: write again what only we know. */
static void ring_repair(struct ring *r) {
    struct stat st;
    if (fstat(r->fd, &st) != 0 || (uint64_t)st.st_size >= ring_file_bytes(r))
        return;
    r->counts.repaired++;
    if (ring_reserve(r) != 0)
        return;
    ring_write_at(r, r->head, r->h.head_bytes, 0);
    /* The chunks' content is gone, except the one in memory. */
    for (uint32_t i = 0; i < r->h.n_chunks; i++) {
        struct ring_entry empty = {.generation = (r->entries[i].generation | 1) + 1};
        ring_put_entry(r, i, &empty);
    }
    r->oldest = r->slot;
    r->written = r->heap_written = 0;
    r->marked = false;
}

/* ---- a chunk ---- */

static void ring_begin_chunk(struct ring *r) {
    memset(r->slots, 0, r->n_slots * sizeof *r->slots);
    for (uint32_t i = 0; i < r->h.n_columns; i++)
        r->columns[i].recent = RING_RECENT_NONE;
    r->n_texts = 0;
    r->rows = r->written = 0;
    r->heap_used = r->heap_written = r->h.heap_bytes ? 2 : 0; /* number 0 is not a string */
    r->marked = false;
    r->base_us = r->min_us = r->max_us = 0;
}

/* Mark in the file that the chunk's old rows are going. */
static int ring_mark(struct ring *r) {
    struct ring_entry replaced = {.generation = r->entries[r->slot].generation | 1};
    if (r->marked)
        return 0;
    if (ring_put_entry(r, r->slot, &replaced) != 0)
        return -1;
    r->marked = true;
    if (r->oldest == r->slot && r->seq > 0)
        r->oldest = (r->slot + 1) % r->h.n_chunks;
    return 0;
}

/* Bytes of the chunk. */
struct ring_span {
    size_t from, to;
};

static int ring_write_span(struct ring *r, const struct ring_span *s) {
    return ring_write_at(r, r->chunk + s->from, s->to - s->from,
                         r->h.chunk_at + (uint64_t)r->slot * r->h.chunk_bytes + s->from);
}

/* Bytes to write, behind those of `s`, with which they are written if they are near: what lies
 * between is rows that the file has already, or nobody's. */
static int ring_extend_span(struct ring *r, struct ring_span *s, size_t from, size_t to) {
    bool near = s->to > s->from && from - s->to <= RING_GAP;
    if (!near && ring_write_span(r, s) != 0)
        return -1;
    *s = (struct ring_span){.from = near ? s->from : from, .to = to};
    return 0;
}

/* Write the new rows, then their strings, which lie behind all columns. */
static int ring_write_rows(struct ring *r) {
    struct ring_span s = {.from = 0};
    for (uint32_t i = 0; i < r->h.n_columns; i++) {
        const struct ring_column *c = &r->columns[i];
        size_t at = (size_t)(c->data - r->chunk);
        /* A byte that rows share is written again: the earlier rows in it are unchanged. */
        size_t from = at + (size_t)r->written * c->bits / 8;
        size_t to = at + ((size_t)r->rows * c->bits + 7) / 8;
        if (ring_extend_span(r, &s, from, to) != 0)
            return -1;
    }
    if (r->heap_used > r->heap_written &&
        ring_extend_span(r, &s, r->h.heap_at + r->heap_written, r->h.heap_at + r->heap_used) != 0)
        return -1;
    return ring_write_span(r, &s);
}

int ring_flush(struct ring *r) {
    if (r->rows == r->written)
        return 0;
    ring_repair(r);
    if (ring_mark(r) != 0 || ring_write_rows(r) != 0)
        return -1;
    uint64_t generation = r->entries[r->slot].generation;
    struct ring_entry entry = {
        .generation = generation + generation % 2,
        .first_seq = r->seq,
        .base_us = r->base_us,
        .min_us = r->min_us,
        .max_us = r->max_us,
        .rows = r->rows,
        .heap_used = r->heap_used,
    };
    if (ring_put_entry(r, r->slot, &entry) != 0)
        return -1;
    r->written = r->rows;
    r->heap_written = r->heap_used;
    return 0;
}

/* Continue in the next chunk, which has the oldest rows. */
static void ring_roll(struct ring *r) {
    if (ring_flush(r) != 0)
        r->counts.lost += r->rows - r->written;
    r->seq += r->rows;
    r->surveyed = false;
    if (r->written > 0)
        r->slot = (r->slot + 1) % r->h.n_chunks;
    ring_begin_chunk(r);
}

/* ---- strings ---- */

/* Length of the longest prefix of `s` that may be kept, with no character cut in half. */
static size_t ring_text_length(const struct ring *r, const char *s) {
    size_t n = strnlen(s, (size_t)r->text_max + 1);
    if (n <= r->text_max)
        return n;
    n = r->text_max;
    while (n > 0 && ((uint8_t)s[n] & 0xc0) == 0x80)
        n--;
    return n;
}

static bool ring_text_is(const struct ring *r, uint16_t id, const char *s, size_t n) {
    const uint8_t *at = r->chunk + r->h.heap_at + (size_t)id * 2;
    uint16_t len;
    memcpy(&len, at, sizeof len);
    return len == n && memcmp(at + sizeof len, s, n) == 0;
}

/* Number of a string in this chunk, 0 if there is no room left. */
static uint16_t ring_intern(struct ring *r, struct ring_column *c, const char *s) {
    size_t n = ring_text_length(r, s);
    if (c->recent != RING_RECENT_NONE && ring_text_is(r, c->recent, s, n))
        return c->recent;
    uint32_t mask = r->n_slots - 1, i = (uint32_t)hash_bytes(s, n) & mask;
    for (; r->slots[i]; i = (i + 1) & mask)
        if (ring_text_is(r, r->slots[i], s, n))
            return c->recent = r->slots[i];
    size_t need = (sizeof(uint16_t) + n + 1) / 2 * 2;
    if (need > r->h.heap_bytes - r->heap_used || r->n_texts >= r->n_slots / 8 * 7)
        return 0;
    uint16_t id = (uint16_t)(r->heap_used / 2), len = (uint16_t)n;
    uint8_t *at = r->chunk + r->h.heap_at + r->heap_used;
    memcpy(at, &len, sizeof len);
    memcpy(at + sizeof len, s, n);
    r->heap_used += (uint32_t)need;
    r->slots[i] = id;
    r->n_texts++;
    r->counts.cut += s[n] != '\0';
    return c->recent = id;
}

/* ---- a row ---- */

/* `max` is less than all bits set, which is unknown. Above the row's bits the byte has remains
 * of an older chunk, which are cleared. */
static void ring_put_bits(struct ring_column *c, uint32_t row, int64_t v, unsigned max) {
    unsigned bit = row * c->bits, shift = bit % 8, unknown = (1U << c->bits) - 1;
    uint8_t *at = c->data + bit / 8, below = (uint8_t)(*at & ((1U << shift) - 1));
    *at = (uint8_t)(below | (v < 0 || v > max ? unknown : (unsigned)v) << shift);
}

static void ring_put_value(struct ring_column *c, uint32_t row, const union ring_value *v, int64_t us) {
    int32_t i32;
    uint32_t u32;
    switch (c->type) {
    case RING_TIMESTAMP:
        i32 = (int32_t)us;
        memcpy(c->data + (size_t)row * 4, &i32, 4);
        break;
    case RING_DOUBLE:
    case RING_INT64:
        memcpy(c->data + (size_t)row * 8, v, 8);
        break;
    case RING_INT32:
        i32 = v->i <= INT32_MIN || v->i > INT32_MAX ? RING_NULL_INT32 : (int32_t)v->i;
        memcpy(c->data + (size_t)row * 4, &i32, 4);
        break;
    case RING_UINT32:
    case RING_ID:
        u32 = v->i < 0 || v->i >= UINT32_MAX ? RING_NULL_UINT32 : (uint32_t)v->i;
        memcpy(c->data + (size_t)row * 4, &u32, 4);
        break;
    case RING_ENUM:
        ring_put_bits(c, row, v->i, (1U << c->bits) - 2);
        break;
    case RING_BOOL:
        ring_put_bits(c, row, v->i, 1);
        break;
    case RING_TEXT: /* the caller has the number */
        break;
    }
}

/* Intern the row's strings into `ids`. Returns whether they all fit into this chunk. */
static bool ring_intern_row(struct ring *r, const union ring_value *row, uint16_t *ids) {
    for (uint32_t i = 0; i < r->h.n_columns; i++) {
        if (r->columns[i].type != RING_TEXT)
            continue;
        ids[i] = row[i].s ? ring_intern(r, &r->columns[i], row[i].s) : RING_NULL_TEXT;
        if (row[i].s && ids[i] == 0)
            return false;
    }
    return true;
}

/* Microseconds of the row's time, or INT64_MIN if it is missing or invalid. */
static int64_t ring_time_us(const struct ring *r, const union ring_value *row) {
    double us = row[r->h.time_column].f * RING_US;
    return us > -(double)RING_MAX_US && us < (double)RING_MAX_US ? (int64_t)llrint(us) : INT64_MIN;
}

int ring_append(struct ring *r, const union ring_value *row) {
    uint16_t ids[RING_MAX_COLUMNS];
    int64_t us = 0;
    if (r->h.time_column != RING_NO_COLUMN) {
        us = ring_time_us(r, row);
        if (us == INT64_MIN) {
            r->counts.refused++;
            return -1;
        }
    }
    bool far = r->rows > 0 && (us - r->base_us > INT32_MAX || us - r->base_us < -INT32_MAX);
    if (r->rows == r->h.chunk_rows || far)
        ring_roll(r);
    if (r->h.heap_bytes && !ring_intern_row(r, row, ids)) {
        ring_roll(r);
        ring_intern_row(r, row, ids); /* an empty chunk has room for one row: see text_max */
    }
    uint32_t n = r->rows;
    if (n == 0)
        r->base_us = r->min_us = r->max_us = us;
    for (uint32_t i = 0; i < r->h.n_columns; i++) {
        struct ring_column *c = &r->columns[i];
        if (c->type == RING_TEXT)
            memcpy(c->data + (size_t)n * 2, &ids[i], 2);
        else
            ring_put_value(c, n, &row[i], us - r->base_us);
    }
    r->min_us = us < r->min_us ? us : r->min_us;
    r->max_us = us > r->max_us ? us : r->max_us;
    r->rows = n + 1;
    return 0;
}

/* ---- the table ---- */

void ring_expire(struct ring *r, double before) {
    double us = before * RING_US;
    if (r->h.time_column == RING_NO_COLUMN || !(us > -(double)RING_MAX_US))
        return;
    /* The chunk being filled may still have the oldest rows in the file, until it is written. */
    const struct ring_entry *last = &r->entries[r->slot];
    if (!r->marked && last->rows > 0 && ((double)last->max_us >= us || ring_mark(r) != 0))
        return;
    /* From the oldest on; the chunk being filled stays. */
    while (r->oldest != r->slot) {
        const struct ring_entry *old = &r->entries[r->oldest];
        struct ring_entry empty = {.generation = (old->generation | 1) + 1};
        if (old->rows > 0 && ((double)old->max_us >= us || ring_put_entry(r, r->oldest, &empty) != 0))
            return;
        r->oldest = (r->oldest + 1) % r->h.n_chunks;
    }
}

static void ring_survey(struct ring *r) {
    r->oldest_seq = r->seq;
    r->dir_min_us = INT64_MAX;
    r->dir_max_us = INT64_MIN;
    for (uint32_t i = 0; i < r->h.n_chunks; i++) {
        const struct ring_entry *entry = &r->entries[i];
        if (entry->rows == 0)
            continue;
        if (entry->first_seq < r->oldest_seq)
            r->oldest_seq = entry->first_seq;
        r->dir_min_us = entry->min_us < r->dir_min_us ? entry->min_us : r->dir_min_us;
        r->dir_max_us = entry->max_us > r->dir_max_us ? entry->max_us : r->dir_max_us;
    }
    r->surveyed = true;
}

void ring_get_counts(struct ring *r, struct ring_counts *out) {
    if (!r->surveyed)
        ring_survey(r);
    *out = r->counts;
    out->rows = r->seq + r->rows;
    out->oldest_seq = r->oldest_seq;
    int64_t min_us = r->rows && r->min_us < r->dir_min_us ? r->min_us : r->dir_min_us;
    int64_t max_us = r->rows && r->max_us > r->dir_max_us ? r->max_us : r->dir_max_us;
    bool timed = r->h.time_column != RING_NO_COLUMN && min_us <= max_us;
    out->oldest_at = timed ? (double)min_us / RING_US : NAN;
    out->newest_at = timed ? (double)max_us / RING_US : NAN;
    out->memory_bytes = sizeof *r + r->memory + r->h.head_bytes;
}

int ring_file(const struct ring *r) { return r->fd; }

/* Everything that grows with the table, in one private mapping that children do not inherit. */
static int ring_map(struct ring *r) {
    uint32_t slots = 2 * RING_MAX_COLUMNS;
    while (slots < r->h.heap_bytes / 8 && slots < RING_SLOTS_MAX)
        slots *= 2;
    r->n_slots = slots;
    size_t entries = r->h.n_chunks * sizeof *r->entries, index = slots * sizeof *r->slots;
    r->memory = entries + index + r->h.chunk_bytes;
    r->map = mmap(NULL, r->memory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (r->map == MAP_FAILED) {
        r->map = NULL;
        return -1;
    }
    madvise(r->map, r->memory, MADV_DONTFORK);
    r->entries = r->map;
    r->chunk = (uint8_t *)r->map + entries;
    r->slots = (uint16_t *)(r->chunk + r->h.chunk_bytes);
    return 0;
}

static void ring_find_columns(struct ring *r) {
    uint32_t texts = 0;
    for (uint32_t i = 0; i < r->h.n_columns; i++) {
        struct ring_file_column c;
        memcpy(&c, (const char *)r->head + r->h.column_at + (size_t)i * r->h.column_stride, sizeof c);
        r->columns[i] = (struct ring_column){
            .data = r->chunk + c.data_at, .type = (enum ring_type)ring_column_type(c.type), .bits = c.bits};
        texts += c.type == RING_TEXT;
    }
    /* Longest string with which one row always fits into an empty chunk. */
    r->text_max = texts ? (r->h.heap_bytes - 2) / texts - 4 : 0;
    if (r->text_max > RING_MAX_TEXT)
        r->text_max = RING_MAX_TEXT;
}

static void ring_free(struct ring *r) {
    if (r->map)
        munmap(r->map, r->memory);
    free(r->head);
    free(r);
}

/* Lay out, reserve and write the empty file. */
static int ring_init(struct ring *r, const struct ring_table_def *def, const struct ring_owner *owner,
                     size_t bytes, struct err *e) {
    void *head = malloc(RING_MAX_HEAD);
    if (!head)
        return err_set(e, ERR_FAILED, "table %s: out of memory", def->name);
    if (ring_layout_make(head, def, owner, bytes, e) != 0) {
        free(head);
        return -1;
    }
    memcpy(&r->h, head, sizeof r->h);
    r->head = malloc(r->h.head_bytes);
    if (r->head)
        memcpy(r->head, head, r->h.head_bytes);
    free(head);
    if (!r->head || ring_map(r) != 0)
        return err_set(e, ERR_FAILED, "table %s: out of memory", def->name);
    ring_find_columns(r);
    ring_begin_chunk(r);
    if (ring_reserve(r) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "table %s: no room for %zu bytes", def->name, bytes);
    /* The head last: without it nobody takes this for a table. */
    for (uint32_t i = 0; i < r->h.n_chunks; i++) {
        static const struct ring_entry empty;
        if (ring_put_entry(r, i, &empty) != 0)
            return err_set_errno(e, ERR_FAILED, errno, "table %s: cannot write its file", def->name);
    }
    if (ring_write_at(r, r->head, r->h.head_bytes, 0) != 0)
        return err_set_errno(e, ERR_FAILED, errno, "table %s: cannot write its file", def->name);
    return 0;
}

struct ring *ring_create(int fd, const struct ring_table_def *def, const struct ring_owner *owner,
                         size_t bytes, struct err *e) {
    struct ring *r = calloc(1, sizeof *r);
    if (!r) {
        close(fd);
        err_set(e, ERR_FAILED, "table %s: out of memory", def->name);
        return NULL;
    }
    r->fd = fd;
    if (ring_init(r, def, owner, bytes, e) != 0) {
        close(fd);
        ring_free(r);
        return NULL;
    }
    return r;
}

void ring_close(struct ring *r) {
    if (!r)
        return;
    ring_flush(r);
    close(r->fd);
    ring_free(r);
}

void ring_abandon(struct ring *r) {
    if (!r)
        return;
    /* The mapping was not inherited (MADV_DONTFORK): its addresses may be in other use by now. */
    free(r->head);
    free(r);
}
