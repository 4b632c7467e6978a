/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ras_ask: asks NCCL's RAS service of a job on this host, while whoever judges goes on.
 *
 * A child (guard.h) finds where a rank of the job has it, asks twice, two seconds apart, and sends what
 * follows (ras.h). Nothing is asked of the rank itself but that, on the loopback of our own network
 * namespace alone. Each answer has RAS_ASK_S from the connection to its end.
 */
#ifndef CLIENT_FLEET_RAS_ASK_H
#define CLIENT_FLEET_RAS_ASK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/fleet/ras.h"
#include "client/guard.h"

#define RAS_ASK_S 6
#define RAS_ASK_EVERY_S 10 /* between two questions */

/* Where it listens: addresses of the loopback that are tried one after the other. */
struct ras_where {
    struct sockaddr_storage at[2];
    size_t n;
    char text[64]; /* "127.0.0.1:28028" */
};

/* What NCCL_RAS_ADDR (NULL: it is not there) names. False: it is not an address of the loopback. */
bool ras_where_parse(struct ras_where *w, const char *text);

struct ras_asker {
    struct guard guard;
    bool running;
    uint64_t asked_ns;                                 /* 0 never */
    struct ras_fact facts[RAS_FACTS], next[RAS_FACTS]; /* the newest; those that arrive */
    size_t n, n_next;
    uint64_t facts_ns;
};

/* A rank of this host. */
struct ras_rank {
    int32_t rank;
    pid_t pid; /* as it is seen from here */
};

/* Ask, unless that was done a moment ago; `world`: ranks of the job, 0 unknown. */
void ras_asker_ask(struct ras_asker *a, const struct ras_rank *ranks, size_t n, int32_t world);

/* Take what has arrived. Facts that were not found again for half a minute are dropped. */
void ras_asker_take(struct ras_asker *a);

void ras_asker_stop(struct ras_asker *a);

#endif
