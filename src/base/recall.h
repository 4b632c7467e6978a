/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recall: a mem for someone who reads about the same places again and again: all that was read the last time is read with one
 * call of the kernel at the beginning of the next.
 *
 * What it tells is of about one moment: a place is read once between two beginnings. Like the mem below it never faults; it
 * neither locks nor allocates, and never reads through a descriptor. One thread at a time.
 */
#ifndef BASE_RECALL_H
#define BASE_RECALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/mem.h"

#define RECALL_PIECES 96   /* places */
#define RECALL_BYTES 24576 /* of all of them */
#define RECALL_PIECE 256   /* bytes that are read where less is asked for, if they lie in one page */

struct recall_piece {
    uint64_t addr;
    uint32_t len, at; /* bytes, and where in `bytes` */
    bool used;        /* since it began */
};

struct recall {
    struct mem below;
    size_t n, n_bytes, last;
    struct iovec remote[RECALL_PIECES];
    struct recall_piece pieces[RECALL_PIECES];
    uint8_t bytes[RECALL_BYTES];
};

/* `m` becomes a mem that reads what `below` reads, by way of `r`, which must outlive it. */
void recall_init(struct recall *r, struct mem *m, const struct mem *below);

/* From now on things are as they are now. */
void recall_begin(struct recall *r);

#endif
