/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_format: the file of a ring table, and the rules by which a reader believes it.
 *
 * [ring_file_head, columns, text] [directory: one ring_entry a chunk] [chunks]. A chunk is one
 * array per column, each with room for chunk_rows, and then its strings. All numbers have the
 * machine's byte order; another one is refused.
 *
 * Rows of a chunk are written before its entry says that there are that many, and never change
 * while the chunk lives: what is written over them are the same bytes. Before a chunk is used
 * again its entry gets an odd generation. So a reader takes the entry, copies rows, takes the
 * entry again: the same even generation means that the copied rows are complete. An entry has a
 * checksum, because it may be read during a write.
 *
 * Version rule: another major is refused. A newer minor may make head, column and entry longer
 * (their lengths are in the head: read what you know, step by the length) and may add column
 * types (a column gives its width: skip it). Private to src/store/ring/.
 */
#ifndef STORE_RING_RING_FORMAT_H
#define STORE_RING_RING_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/ring/ring_reader.h"

#define RING_MAGIC "PRBRING\n"
#define RING_BYTE_ORDER 0x01020304U
#define RING_MAJOR 1
#define RING_MINOR 1 /* 1: columns of RING_FILE_FEW and RING_FILE_FLAG */

#define RING_MAX_HEAD ((uint32_t)64 * 1024)
#define RING_MAX_CHUNKS 4096U
#define RING_MAX_CHUNK_BYTES ((uint32_t)1024 * 1024)
#define RING_MAX_CHUNK_ROWS ((uint32_t)1 << 20)
/* a string's number is half of its offset, in 16 bits */
#define RING_MAX_CHUNK_TEXT ((uint32_t)128 * 1024)
#define RING_NO_COLUMN UINT32_MAX

/* Unknown in narrow columns; 64-bit ones have RING_INT_NULL and NAN. */
#define RING_NULL_INT32 INT32_MIN
#define RING_NULL_UINT32 UINT32_MAX
#define RING_NULL_TEXT 0
/* Of an enum or a bool: all its bits set. */

/* Column types of a file that are half as wide as RING_ENUM and RING_BOOL, 2 bits: types of
 * their own, which a reader that does not know them skips. Readers return them as enums and
 * bools. */
#define RING_FILE_FEW 10  /* an enum of at most RING_FEW labels */
#define RING_FILE_FLAG 11 /* a bool */
#define RING_FEW 3

struct ring_file_head {
    char magic[8];
    uint32_t byte_order;
    uint16_t major, minor;
    uint32_t head_bytes; /* with columns and text */
    uint32_t checksum;   /* of those without this member */
    uint32_t column_at, column_stride, n_columns;
    uint32_t entry_stride, n_chunks;
    uint32_t chunk_rows, chunk_bytes;
    uint32_t heap_at, heap_bytes; /* strings, within a chunk */
    uint32_t time_column;         /* RING_NO_COLUMN none */
    uint64_t entry_at, chunk_at;
    int64_t pid;
    uint64_t start_ticks;
    int64_t rank;
    double started_at, created_at;
    double retention_s;
    /* NUL-terminated, offset from the beginning; 0 none */
    uint32_t name_at, alias_at, help_at, host_at;
    uint32_t cost;
    uint32_t reserved;
};

struct ring_file_column {
    uint32_t name_at, unit_at, help_at;
    uint32_t labels_at; /* of an enum, joined by newlines */
    uint32_t data_at;   /* within a chunk */
    uint8_t type, bits;
    uint16_t reserved;
};

struct ring_entry {
    uint64_t generation; /* odd: being replaced; 0: never used */
    uint64_t first_seq;
    int64_t base_us;        /* zero point of timestamps */
    int64_t min_us, max_us; /* of the rows; 0 without a time column */
    uint32_t rows;
    uint32_t heap_used;
    uint32_t reserved[3];
    uint32_t checksum; /* of everything before it */
};

_Static_assert(sizeof(struct ring_file_head) == 152, "the layout of the file's head is fixed");
_Static_assert(sizeof(struct ring_file_column) == 24, "the layout of a column is fixed");
_Static_assert(sizeof(struct ring_entry) == 64, "the layout of an entry is fixed");

/* Some rows of a chunk to be sent: the bytes of each column for these rows, then strings
 * (ring_sync.h). */
struct ring_piece {
    uint64_t first_seq; /* of the chunk */
    int64_t base_us, min_us, max_us;
    uint32_t row_from, row_to;
    uint32_t heap_from, heap_to;
};

_Static_assert(sizeof(struct ring_piece) == 48, "the layout of a piece is fixed");

/* The whole bytes of a column that contain rows `from` to `to`: their start in it and their
 * number. Rows of columns narrower than a byte share one. */
void ring_piece_span(const struct ring_column_info *c, uint32_t from, uint32_t to, size_t *at, size_t *bytes);

/* The file's type for a column of this definition. */
unsigned ring_file_type(const struct ring_column_def *c);

/* Bits of a value of a file's type; 0 for an unknown type. */
unsigned ring_file_bits(unsigned file_type);

/* The enum ring_type of a file's type; an unknown type itself. */
unsigned ring_column_type(unsigned file_type);

/* FNV-1a over 32-bit words, of `len` bytes (a multiple of 4). */
uint32_t ring_checksum(const void *data, size_t len);
uint32_t ring_entry_checksum(const struct ring_entry *entry);

/* Of the `len` bytes of a head without its member `checksum`. */
uint32_t ring_head_checksum(const void *head, uint32_t len);

/* Lay out a file of at most `bytes` for a definition. `head` (RING_MAX_HEAD bytes) receives the
 * beginning of the file, whose length is its head_bytes. 0, or -1 with the error (an impossible
 * definition, too little room). */
int ring_layout_make(void *head, const struct ring_table_def *def, const struct ring_owner *owner,
                     size_t bytes, struct err *e);

/* Check that the beginning of the file (`have` bytes of it, RING_MAX_HEAD at most) is a head to
 * trust: every offset within bounds, every string terminated. 0, or -1 with the error. */
int ring_layout_check(const void *head, size_t have, const char *path, struct err *e);

#endif
