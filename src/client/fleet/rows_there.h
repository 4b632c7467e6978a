/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_there: rows of a table of the ranks of a host, as its relay sends them. Whatever comes is checked: values of
 * another kind are unknown, rows of ranks that are not the host's are left out. No state but the struct.
 */
#ifndef CLIENT_FLEET_ROWS_THERE_H
#define CLIENT_FLEET_ROWS_THERE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "client/jobs/rank_set.h"
#include "store/ring/ring.h"
#include "wire/wire.h"

/* The first columns of each table; its own follow. */
enum { ROWS_THERE_RANK, ROWS_THERE_HOST, ROWS_THERE_PID, ROWS_THERE_COMMON };

#define ROWS_THERE_ID_BITS 48 /* of a number with a meaning on its host alone: above them is the host's */

struct rows_there {
    const struct ring_column_def *columns; /* of the rows that are made; ends with a NULL name */
    const enum ring_type *types;           /* of the same columns there: RING_ID is RING_INT64 here */
    const int *places;                     /* of the columns that were asked for, behind rank and pid */
    size_t n;
    /* the host: its number and name, its ranks, how far its clock is ahead */
    size_t number;
    const char *host;
    const struct rank_set *ranks;
    double ahead_s;
    int (*put)(void *arg, const union ring_value *row); /* takes a row; -1: there is no room for more */
    void *arg;
    struct strbuf text; /* of the values of a row; the caller frees it */
    /* of the last answer */
    bool more, is_full;
    bool has_foreign; /* it has rows of other ranks */
    size_t bytes;
};

/* Put the rows of an answer. 0, also if there was no room for all; or -1 with the error: it is not valid. */
int rows_there_take(struct rows_there *r, const struct wire_rows *answer, struct err *e);

#endif
