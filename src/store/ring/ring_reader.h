/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_reader: reads a ring table, during writing or after its writer's death.
 *
 * Reads with pread, never through a mapping: a shortened file has less in it, but causes no
 * fault. Every offset and length from the file is checked; an impossible value is unknown. Rows
 * are copied a chunk at a time and returned only if the chunk was not replaced during the copy.
 * One thread at a time.
 */
#ifndef STORE_RING_RING_READER_H
#define STORE_RING_RING_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "store/ring/ring.h"

#define RING_ANY_UID ((uid_t)-1)

struct ring_column_info {
    const char *name, *unit, *help; /* "" none */
    unsigned type;                  /* enum ring_type, or a newer one: its values read as unknown */
    unsigned bits;
    uint32_t data_at;
    const char *labels[RING_MAX_LABELS]; /* of an enum; each ends at the newline or NUL */
    size_t label_len[RING_MAX_LABELS];
    size_t n_labels;
};

/* The file's description of itself. Strings live as long as the reader. */
struct ring_info {
    const char *name, *alias, *help, *host; /* "" none */
    enum ring_cost cost;
    unsigned minor;
    double retention_s, started_at, created_at;
    int64_t pid, rank; /* RING_INT_NULL unknown */
    uint64_t start_ticks;
    int time_column; /* -1 none */
    size_t n_columns;
    struct ring_column_info columns[RING_MAX_COLUMNS];
    uint32_t n_chunks, chunk_rows, chunk_bytes;
    uint64_t file_bytes;
};

/* A chunk at the last refresh of the directory. */
struct ring_chunk {
    uint64_t generation, first_seq;
    int64_t base_us, min_us, max_us;
    uint32_t rows, heap_used;
    uint32_t slot;
};

struct ring_reader;

/* Open a table's file, which must be a regular one of user `owner` (RING_ANY_UID: of anyone),
 * not a link. NULL with the error. */
struct ring_reader *ring_reader_open(const char *path, uid_t owner, struct err *e);

/* The same with an open descriptor, which then belongs to the reader, on failure too. */
struct ring_reader *ring_reader_open_fd(int fd, const char *path, struct err *e);

void ring_reader_close(struct ring_reader *r);

const struct ring_info *ring_reader_info(const struct ring_reader *r);

/* The beginning of the file: its description, for a copy of it (ring_sync.h). Lives as long as
 * the reader. */
const void *ring_reader_head(const struct ring_reader *r, size_t *len);

/* Read the list of chunks again. 0, or -1 if the directory cannot be read. */
int ring_reader_refresh(struct ring_reader *r, struct err *e);

/* The chunks of the last refresh, oldest first. */
const struct ring_chunk *ring_reader_chunks(const struct ring_reader *r, size_t *n);

/* Sequence numbers: rows appended before the oldest present one, and up to the newest. Equal if
 * the ring is empty. */
void ring_reader_range(const struct ring_reader *r, uint64_t *oldest, uint64_t *next);

/* Chunks that were damaged, or replaced while they were read, since the reader was opened. */
uint64_t ring_reader_lost(const struct ring_reader *r);

/* Some columns of a chunk, copied. All zero is a valid, empty one. */
struct ring_block {
    const struct ring_info *info;
    uint8_t *data;
    size_t bytes;
    uint64_t columns; /* bit i: column i is loaded */
    uint64_t first_seq;
    int64_t base_us;
    uint32_t rows, heap_at, heap_used;
};

/* Copy `columns` of a chunk from the last refresh, with its rows of that time. 1; 0 if they are
 * gone (replaced or damaged); -1 without memory. */
int ring_reader_load(struct ring_reader *r, const struct ring_chunk *c, uint64_t columns,
                     struct ring_block *b);
void ring_block_fini(struct ring_block *b);

enum ring_cell_kind { RING_CELL_NULL = 0, RING_CELL_INT, RING_CELL_REAL, RING_CELL_TEXT };

struct ring_cell {
    enum ring_cell_kind kind;
    uint32_t len; /* of a text */
    int64_t i;
    double f;
    const char *s; /* not NUL-terminated; within the block, or the reader's (labels) */
};

/* A value of a block; unknown for a column that was not loaded. */
void ring_block_get(const struct ring_block *b, size_t column, uint32_t row, struct ring_cell *out);

/* Time of a row in microseconds since the epoch; the time column must have been loaded. */
int64_t ring_block_time_us(const struct ring_block *b, uint32_t row);

#endif
