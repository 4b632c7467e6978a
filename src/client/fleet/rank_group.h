/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_group: what a rank knows of its process groups: how many collectives it has entered and how
 * many are over, and which is open. A row of the table python.process_groups, as its agent gives it.
 *
 * A plain struct without pointers, so that a child (guard.h) can send it.
 */
#ifndef CLIENT_FLEET_RANK_GROUP_H
#define CLIENT_FLEET_RANK_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "wire/wire.h"

#define RANK_GROUP_TABLE "python.process_groups"
#define RANK_GROUPS_MAX 512 /* of one rank; more are left out */

struct rank_group {
    char pg[48], desc[64], backend[24];
    /* Its members, as rank_set_put_steps writes them; "" unknown. Of a text that is too long or no set it is '?' and
     * a hash: who else has the same is known, and not which they are. */
    char ranks[160];
    int32_t size; /* -1 unknown */
    int32_t my_rank;
    int64_t enqueued, completed; /* -1 unknown */
    bool p2p;
    /* Of the oldest that is open, where the flight recorder has it. */
    char op[32], dtype[24];
    int64_t bytes;  /* -1 unknown */
    double since_s; /* it has been open for so long, at least; NAN unknown */
    /* since when the counters are equal, on the monotonic clock; 0 unknown. By who has watched it. */
    double equal_at_s;
};

/* Rows of the table, in `out` (room for `cap`). Their number, with what the agent notes about them in
 * `e`, whose code is then ERR_OK; or -1 with the error. Columns that this agent does not have are
 * unknown. */
ssize_t rank_groups_read(const struct wire_message *answer, struct rank_group *out, size_t cap,
                         struct err *e);

/* The group with the name, the members and the backend of `like` among `n`; NULL. A group of torch has one row for
 * each of its backends. */
const struct rank_group *rank_group_find(const struct rank_group *groups, size_t n,
                                         const struct rank_group *like);

/* What its open collective is, for hang.h: ranks that have entered the same have the same; 0 unknown.
 * The size counts only where it is the same in all ranks. */
uint64_t rank_group_what(const struct rank_group *g);

#endif
