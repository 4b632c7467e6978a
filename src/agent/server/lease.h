/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease: the features that are armed in the job, for which clients, and until when.
 *
 * A lease of a kind has one or several owners (clients, or the configuration). It ends when the
 * last owner has disconnected or released it, when its time is over, or with the agent. Pure: no
 * clock, no job. Belongs to the sampler's thread.
 */
#ifndef AGENT_SERVER_LEASE_H
#define AGENT_SERVER_LEASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/wire.h"

#define LEASE_OWNERS 20
#define LEASE_BY_CONFIG 0U            /* owner id used by the configuration */
#define LEASE_LONGEST_S (24 * 3600.0) /* maximum for a client */
#define LEASE_FOREVER UINT64_MAX

/* X(kind, name, default number of steps, maximum number of steps (0: no limit), default seconds
 * (0: no limit), description). In a conflict the later row has priority. */
#define LEASE_KINDS(X)                                                                                       \
    X(LEASE_TRACE, "trace", 0, 0, 0, "forward and backward time of each module, in some training steps")     \
    X(LEASE_NAN, "nan", 2, 20, 600, "the first non-finite number in the next training steps")                \
    X(LEASE_PROFILER, "profiler", 3, 20, 900, "torch.profiler, for some training steps: a file, and rows")   \
    X(LEASE_PHASES, "phases", 0, 0, 0, "forward and backward of every training step")                        \
    X(LEASE_ALLOC, "alloc", 0, 0, 0, "where memory is allocated and how much of it is live: sampled by bytes")

enum lease_kind {
#define LEASE_ENUM(kind, name, steps, most, limit_s, help) kind,
    LEASE_KINDS(LEASE_ENUM)
#undef LEASE_ENUM
        LEASE_KIND_COUNT,
};

struct lease {
    uint32_t owners[LEASE_OWNERS];
    uint64_t until_ns[LEASE_OWNERS]; /* LEASE_FOREVER */
    size_t n;                        /* owners; 0 if nobody wants it */
    uint64_t since_ns;
    bool compiled;      /* the first owner allows it under torch.compile */
    int64_t steps_left; /* steps still to be measured; -1: no limit */
};

const char *lease_name(enum lease_kind kind);

/* The kind with that name; or -1 with ERR_USAGE, which lists the kinds. */
int lease_find(const char *name, struct err *e);

/* Fill in the defaults of a request for that kind. 0, or -1 with the error if it asks for too
 * much. */
int lease_fit(enum lease_kind kind, struct wire_arm *want, struct err *e);

/* Give `owner` a lease as `want` describes. 0, also if it has one already; or -1 with the error. */
int lease_arm(struct lease *l, uint32_t owner, const struct wire_arm *want, uint64_t now_ns, struct err *e);

/* End the lease of `owner`. True if it was an owner. */
bool lease_disarm(struct lease *l, uint32_t owner);

/* Drop owners whose time is over and, except for the configuration, owners that are not among
 * `peers`. */
void lease_expire(struct lease *l, uint64_t now_ns, const uint32_t *peers, size_t n_peers);

/* The time of the next expiry; LEASE_FOREVER if there is none. */
uint64_t lease_next_ns(const struct lease *l);

/* The lease has done its work, or cannot do it. */
void lease_end(struct lease *l);

#endif
