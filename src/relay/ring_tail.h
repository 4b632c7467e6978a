/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_tail: the new rows of a table of a rank, out of its ring file, as rows for a ClickHouse server.
 *
 * The ring is what keeps them until the server has them: nothing is queued here. Rows of a batch are taken
 * (ring_tail_take) and, when the server has acknowledged them, passed (ring_tail_pass); if it has not, the same rows
 * come again. Of rows that come more often than they are worth, some are left out: which ones follows from their
 * numbers and values alone, so that a batch which is sent again is the same.
 * A file that is open is read to its end after its process has died, and when it has been removed.
 */
#ifndef RELAY_RING_TAIL_H
#define RELAY_RING_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "client/engine/engine_schema.h"
#include "client/target/rings.h"
#include "store/ring/ring_reader.h"

struct ring_tail {
    const struct engine_table *table; /* NULL: it is not used */
    struct ring_reader *ring;         /* NULL: there is none yet */
    int columns[ENGINE_MAX_COLUMNS];  /* of the ring, for each of the table; -1 none */
    uint64_t created_us;
    uint64_t next;     /* the first row that is not acknowledged */
    bool is_continued; /* the rows from there on are to be written, so those that are gone by now are lost */
    uint64_t lost;     /* rows that were overwritten before they were written */
    /* the largest share of the file that was new at a reading; the reader sets it to 0 */
    double fill;
    /* the batch */
    uint64_t taken_to, taken_lost;
};

/* Whose rows they are. */
struct ring_tail_owner {
    const char *job, *host;
    int64_t rank, pid;
};

/* Open the file of the table in a folder, if there is one and it is not open; a file that was made again is opened
 * when the one before it is read to its end. True: it is a new one, whose rows begin at `next`; those that were
 * overwritten before are not lost. */
bool ring_tail_open(struct ring_tail *t, const struct rings_place *place);

/* Continue at a row of the ring that was made then, once it is opened. */
void ring_tail_continue(struct ring_tail *t, uint64_t created_us, uint64_t next);

/* Append the next rows, until `out` has about `max` bytes. Adds their number to `*rows`. True: there are more. */
bool ring_tail_take(struct ring_tail *t, const struct ring_tail_owner *o, struct strbuf *out, size_t max,
                    uint64_t *rows);

/* The server has them. True if there were any. */
bool ring_tail_pass(struct ring_tail *t);

void ring_tail_close(struct ring_tail *t);

#endif
