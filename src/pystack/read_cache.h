/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_cache: a mem for a reader that reads about the same places again and again. At the start
 * of each epoch, everything that the last epoch read is prefetched with one system call.
 *
 * A place is read once an epoch, so all reads belong to about one time. Like the mem below it
 * never faults; it neither locks nor allocates. One thread at a time.
 */
#ifndef PYSTACK_READ_CACHE_H
#define PYSTACK_READ_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/mem.h"

#define READ_CACHE_PIECES 96   /* places */
#define READ_CACHE_BYTES 24576 /* of all of them */
#define READ_CACHE_PIECE 256   /* read where less is asked for, if it lies in one page */

struct read_cache_piece {
    uint64_t addr;
    uint32_t len, at; /* bytes, and their offset in `bytes` */
    bool used;        /* in this epoch */
};

struct read_cache {
    struct mem *below;
    size_t n, n_bytes, last;
    struct iovec remote[READ_CACHE_PIECES];
    struct read_cache_piece pieces[READ_CACHE_PIECES];
    uint8_t bytes[READ_CACHE_BYTES];
};

/* `m` becomes a mem that reads what `below` reads, through `r`. Both must outlive it. */
void read_cache_init(struct read_cache *r, struct mem *m, struct mem *below);

/* Start a new epoch: cached reads are fetched again. */
void read_cache_begin(struct read_cache *r);

#endif
