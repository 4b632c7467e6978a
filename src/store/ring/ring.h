/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring: a table under constant writing, never longer than its file, readable by others during
 * and after that.
 *
 * Rows are appended to a chunk in private memory and copied to the file by ring_flush, data
 * first, then the chunk's entry in the directory; a full chunk replaces the oldest. The file is
 * never mapped, so nobody can make the writer fault, and readers see complete rows whenever the
 * writer dies (see ring_format.h). Runs inside the job: bounded, nothing aborts. One thread at a
 * time; the file descriptor belongs to the descriptor table in which it was opened.
 */
#ifndef STORE_RING_RING_H
#define STORE_RING_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "wire/access.h"

#define RING_MAX_COLUMNS 64
#define RING_MAX_LABELS 15 /* values of an enum */
#define RING_MAX_TEXT 2047 /* bytes of one string; longer ones are cut */
#define RING_MAX_NAME 64   /* of a table or column, with its NUL */
#define RING_MIN_BYTES ((size_t)32 * 1024)
#define RING_INT_NULL INT64_MIN /* unknown, in union ring_value */

/* Type of a column, and its width in the file. The numbers are the file's. Unknown is
 * RING_INT_NULL, NAN or NULL; an integer that does not fit its column is unknown too. */
enum ring_type {
    /* .f seconds since the epoch, kept to the microsecond in 32 bits; at most one, never unknown */
    RING_TIMESTAMP = 1,
    RING_DOUBLE = 2, /* .f, 64 bits */
    RING_INT64 = 3,  /* .i, 64 bits */
    RING_INT32 = 4,  /* .i, 32 bits */
    RING_UINT32 = 5, /* .i, 32 bits */
    /* .i, 32 bits: a number with a meaning within its process only (stack_id) */
    RING_ID = 6,
    RING_TEXT = 7, /* .s, 16 bits and its bytes once per chunk */
    RING_ENUM = 8, /* .i index of a label, 4 bits; 2 with three labels or fewer */
    RING_BOOL = 9, /* .i, 2 bits */
    /* 10 and 11 are the file's: ring_format.h */
};

struct ring_column_def {
    const char *name;
    enum ring_type type;
    const char *unit;          /* "s", "bytes", "%"; NULL none */
    const char *help;          /* one line */
    const char *const *labels; /* RING_ENUM: ends with NULL, at most RING_MAX_LABELS */
    enum wire_access access;   /* a remote client needs it to see the column */
};

/* When the rows are made, and their cost to the job. */
enum ring_cost {
    RING_COST_BACKGROUND = 1, /* collected all the time, at most 0.1 % of a core */
    RING_COST_STEPS = 2,      /* a step or a collective; at most 0.5 % */
    RING_COST_PROBE = 3,      /* only while a client asks for it */
    RING_COST_NOW = 0,        /* made when it is read; nothing is stored */
};

/* One table. One row of ring_tables.c (or of a test). */
struct ring_table_def {
    const char *name;  /* "python.samples" or, without a schema, "profiling_data" */
    const char *alias; /* another name; NULL none */
    const char *help;  /* what one row is */
    enum ring_cost cost;
    /* share of the memory of all tables; 0: RING_COST_NOW */
    unsigned weight;
    /* older rows are removed; 0: only space limits */
    double retention_s;
    unsigned text_percent;                 /* of a chunk, for strings; 0: at most a tenth */
    const struct ring_column_def *columns; /* ends with a NULL name */
};

/* True if this can be the name of a column, or of a table (with one dot at most), without quotes
 * in a query. */
bool ring_name_ok(const char *s, bool table);

union ring_value {
    int64_t i;
    double f;
    const char *s; /* borrowed for the call */
};

/* The process that the rows belong to; written into the file. */
struct ring_owner {
    int64_t pid;
    uint64_t start_ticks; /* of the process, since boot: distinguishes two processes of one pid */
    int64_t rank;         /* RING_INT_NULL unknown */
    const char *host;     /* NULL unknown */
    double started_at;    /* seconds since the epoch; NAN unknown */
    double made_at;       /* the tables, all of them: the same for those that belong together; 0: now */
};

struct ring;

/* Make a table of at most `bytes` (at least RING_MIN_BYTES) in the open, empty file `fd`, which
 * then belongs to the ring, on failure too. Reserves the space. NULL with the error. */
struct ring *ring_create(int fd, const struct ring_table_def *def, const struct ring_owner *owner,
                         size_t bytes, struct err *e);

/* A size with which a table keeps texts of RING_MAX_TEXT whole, or as much of them as any; 0: it has none. */
size_t ring_whole_text_bytes(const struct ring_table_def *def);

/* Append a row: a value for each column of the definition. 0, or -1 if the row was refused (no
 * timestamp). May write a full chunk to the file. */
int ring_append(struct ring *r, const union ring_value *row);

/* Make everything appended so far visible. 0, or -1 if the file cannot be written now (errno);
 * the next call tries again. */
int ring_flush(struct ring *r);

/* Remove whole chunks whose newest row is older than `before` (seconds since the epoch). */
void ring_expire(struct ring *r, double before);

struct ring_counts {
    /* appended since ring_create; the sequence number of the next one */
    uint64_t rows;
    uint64_t oldest_seq; /* of the first row in the file */
    /* least and greatest time of the present rows; NAN if there are none, or no time column */
    double oldest_at, newest_at;
    uint64_t lost;    /* appended, but the file could not be written */
    uint64_t refused; /* not appended: without a timestamp */
    /* strings longer than RING_MAX_TEXT or their share of a chunk; counted once per chunk each */
    uint64_t cut;
    uint64_t repaired;     /* times that the file was found shortened, and made whole again */
    uint64_t file_bytes;   /* reserved */
    uint64_t memory_bytes; /* private memory of the writer */
};

void ring_get_counts(struct ring *r, struct ring_counts *out);

/* The descriptor of its file, owned by the ring. */
int ring_file(const struct ring *r);

/* Flush, close, free. NULL is allowed. */
void ring_close(struct ring *r);

/* In the child of a fork: free the memory, leave file and descriptor alone. */
void ring_abandon(struct ring *r);

#endif
