/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flight: what torch's flight recorder has about process groups, out of its JSON document.
 *
 * Documents of every version (2.1 to 2.10 are known) are read: members in any order, numbers as
 * texts, unknown members of any kind. A document that is cut or is not JSON is an error: half of
 * the entries would be wrong counters. Everything is bounded. Pure: no Python.
 *
 * Counters: `pg_status` has the last collective that was enqueued and the last that has ended.
 * With gloo, whose threads run several at a time, the second may be an older one that ended
 * later, so where there are entries they count: all before the oldest open one have ended. An
 * entry of gloo is over when it is retired (its state stays "scheduled"), one of NCCL when its
 * state is "completed" (retired and not completed: it has timed out).
 *
 * Sends and receives: of NCCL they have entries and a count of their own, which the status mixes
 * up with that of collectives. Of gloo they have no entries and are counted as collectives, so its
 * numbers differ between ranks.
 */
#ifndef AGENT_PYTHON_FLIGHT_H
#define AGENT_PYTHON_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define FLIGHT_BYTES ((size_t)32 * 1024 * 1024) /* of a document; 70,000 entries */
#define FLIGHT_GROUPS 2048                      /* others are left out */
#define FLIGHT_NAME 192                         /* bytes of a name, with its NUL */
#define FLIGHT_UNKNOWN (-1)

/* A group. Numbers may be FLIGHT_UNKNOWN, texts "". */
struct flight_group {
    int64_t number; /* what this process has numbered it */
    char name[FLIGHT_NAME], desc[FLIGHT_NAME];
    char backend[16]; /* gloo, nccl */
    int64_t enqueued, completed;
    int64_t last; /* of its entries */
    int64_t timeout_ms;
    /* 1: it has sent or received between two ranks; 0: not in the entries; unknown without any */
    int8_t p2p;
    /* the oldest collective that has not ended; `open_seq` unknown: there is none, or no entries */
    int64_t open_seq, open_bytes; /* of its inputs */
    char open_op[48], open_dtype[24];
};

struct flight {
    struct flight_group *groups;
    size_t n, cap;
    size_t entries; /* that were read */
    bool more;      /* there are more groups */
};

/* Read a document. 0; -1 with the error: then there are no groups. flight_fini in either case. */
int flight_read(struct flight *f, const char *text, size_t len, struct err *e);
void flight_fini(struct flight *f);

#endif
