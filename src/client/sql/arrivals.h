/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrivals: which rows of different ranks are one collective, and who came to it last.
 *
 * A collective in which all wait for all (all_reduce, barrier, ...) ends nowhere before everybody
 * has begun it. So rows of one operation, one of each rank, are the same collective if each begins
 * before the first of them ends. Where a rank has none, or an operation ends before the last has
 * begun (a broadcast at its root), the last is unknown. Times are of one clock. Collectives of two
 * groups of ranks that run at the same time cannot be told apart: without the name of its group a
 * collective counts only if all ranks have it. Pure.
 */
#ifndef CLIENT_SQL_ARRIVALS_H
#define CLIENT_SQL_ARRIVALS_H

#include <stddef.h>
#include <stdint.h>

#define ARRIVALS_RANKS 4096
#define ARRIVALS_ENDS_S 1.0 /* ends of one collective differ by less */

struct arrival {
    uint32_t rank; /* index of the process, below the number of them */
    uint32_t op;   /* number of the operation, and of its group if that is known */
    double begin, end;
    /* result: the index of the row that began last of this collective's; -1: unknown */
    int64_t last;
};

/* Fill `last` of all rows, which may be in any order. 0, or -1 without memory: then all are
 * unknown. */
int arrivals_match(struct arrival *rows, size_t n, uint32_t ranks);

#endif
