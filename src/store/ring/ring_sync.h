/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_sync: sends a ring's rows to where its file cannot be opened, and rebuilds them there as
 * a file of the same form.
 *
 * The receiver sends its position in its newest chunk (struct ring_mark); the sender answers
 * with pieces: the rows after that, as they are in the file. Rows overwritten in between are a
 * gap in the numbers of the rows, and are counted. A replica is read like any ring. Sending runs
 * inside the job; receiving takes bytes from a peer and trusts none of them.
 */
#ifndef STORE_RING_RING_SYNC_H
#define STORE_RING_RING_SYNC_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "store/ring/ring_reader.h"

/* minimum size of an answer: the strings of a chunk and some rows */
#define RING_SYNC_MIN ((size_t)512 * 1024)

/* Position of a replica. All zero: it is empty. */
struct ring_mark {
    uint64_t first_seq; /* of its newest chunk */
    uint32_t rows, heap_used;
};

/* The generation of a table in its description: a table that was made again has another number. */
uint32_t ring_sync_making(const void *head, size_t len);

/* ---- sending ---- */

/* Append the next piece after `have`, which is advanced, from the chunks of the reader's last
 * refresh; at most about `max_bytes` (RING_SYNC_MIN or more). `have` may come from a peer and is
 * checked. 1 a piece, 0 nothing left, -1 without memory. */
int ring_sync_next(struct ring_reader *r, struct ring_mark *have, size_t max_bytes, struct strbuf *out);

/* ---- receiving ---- */

struct ring_replica;

/* An empty copy, in memory, of the ring with this description (ring_reader_head). NULL with the
 * error. */
struct ring_replica *ring_replica_create(const void *head, size_t len, struct err *e);
void ring_replica_close(struct ring_replica *r);

/* Apply pieces. 0, or -1 with the error; then nothing of the invalid piece is visible. */
int ring_replica_apply(struct ring_replica *r, const void *data, size_t len, struct err *e);

/* Its position, for the next request. */
void ring_replica_mark(const struct ring_replica *r, struct ring_mark *out);

/* Rows that were overwritten before they could be sent. */
uint64_t ring_replica_missing(const struct ring_replica *r);

/* A new descriptor of its file, for ring_reader_open_fd; or -1 with errno. */
int ring_replica_open(const struct ring_replica *r);

#endif
