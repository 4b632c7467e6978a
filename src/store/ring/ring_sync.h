/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_sync: a ring's rows, sent to where its file cannot be opened, and put together there as a file of the same form.
 *
 * The receiver says what it has of its newest chunk (struct ring_mark), the sender answers with pieces: the rows after that, as they
 * lie in the file. What was overwritten in between is a gap in the numbers of the rows, and is counted. A replica is read like
 * any ring. Sending runs inside the job; receiving takes bytes from a peer and believes none of them.
 */
#ifndef STORE_RING_RING_SYNC_H
#define STORE_RING_RING_SYNC_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "store/ring/ring_reader.h"

#define RING_SYNC_MIN ((size_t)512 * 1024) /* least room for an answer: strings of a chunk and some rows */

/* How far a replica is. All zero: it has nothing. */
struct ring_mark {
    uint64_t first_seq; /* of its newest chunk */
    uint32_t rows, heap_used;
};

/* Which making of a table a description is of: a table that was made anew has another number. */
uint32_t ring_sync_making(const void *head, size_t len);

/* ---- sending ---- */

/* Append the next piece after `have` (believed only as far as it can be: it may come from a peer), which is moved on, of the chunks that the reader's last refresh found; at most about
 * `max_bytes` (RING_SYNC_MIN or more). 1 a piece, 0 there is nothing more, -1 without memory. */
int ring_sync_next(struct ring_reader *r, struct ring_mark *have, size_t max_bytes, struct strbuf *out);

/* ---- receiving ---- */

struct ring_replica;

/* An empty copy, in memory, of the ring whose description (ring_reader_head) this is. NULL with the error. */
struct ring_replica *ring_replica_create(const void *head, size_t len, struct err *e);
void ring_replica_close(struct ring_replica *r);

/* Take in pieces: 0, or -1 with the error; then nothing of the piece that was wrong is visible. */
int ring_replica_apply(struct ring_replica *r, const void *data, size_t len, struct err *e);

/* How far it is, for the next request. */
void ring_replica_mark(const struct ring_replica *r, struct ring_mark *out);

/* Rows that were overwritten before they could be sent. */
uint64_t ring_replica_missing(const struct ring_replica *r);

/* A new descriptor of its file, for ring_reader_open_fd; or -1 with errno. */
int ring_replica_open(const struct ring_replica *r);

#endif
