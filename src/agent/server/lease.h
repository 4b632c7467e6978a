/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease: what is armed in the job for somebody, and until when.
 *
 * A lease of a kind has one or several owners (clients, or the configuration) and ends when the last of them is gone or has
 * had enough, when its time is over, or with the agent. Pure: no clock, no job. Belongs to the sampler's thread.
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
#define LEASE_LONGEST_S (24 * 3600.0) /* for which a client may have one */
#define LEASE_FOREVER UINT64_MAX

/* X(kind, name, steps it looks into if none are said, and at most (0: no limit), seconds it lasts if none are said (0: no limit), what it
 * does). One that comes later goes before. */
#define LEASE_KINDS(X)                                                                                       \
    X(LEASE_TRACE, "trace", 0, 0, 0, "forward and backward time of each module, in some training steps")     \
    X(LEASE_NAN, "nan", 2, 20, 600, "the first number that is not finite, in the next training steps")       \
    X(LEASE_PROFILER, "profiler", 3, 20, 900, "torch.profiler, for some training steps: a file, and rows")

enum lease_kind {
#define LEASE_ENUM(kind, name, steps, most, limit_s, help) kind,
    LEASE_KINDS(LEASE_ENUM)
#undef LEASE_ENUM
        LEASE_KIND_COUNT,
};

struct lease {
    uint32_t owners[LEASE_OWNERS];
    uint64_t until_ns[LEASE_OWNERS]; /* LEASE_FOREVER */
    size_t n;                        /* owners; 0: nobody wants it */
    uint64_t since_ns;
    bool compiled;      /* the first owner has said: even under torch.compile */
    int64_t steps_left; /* that are looked into; -1: no limit */
};

const char *lease_name(enum lease_kind kind);

/* The kind of that name; or -1 with ERR_USAGE, which names those there are. */
int lease_find(const char *name, struct err *e);

/* Put in what a wish for that kind leaves open. 0, or -1 with the error: it is for too much. */
int lease_fit(enum lease_kind kind, struct wire_arm *want, struct err *e);

/* `owner` wants it from now on as `want` says: 0, also when it has it already; or -1 with the error. */
int lease_arm(struct lease *l, uint32_t owner, const struct wire_arm *want, uint64_t now_ns, struct err *e);

/* `owner` does not want it any more. True when it was one. */
bool lease_disarm(struct lease *l, uint32_t owner);

/* Drop owners whose time is over, and, but for the configuration, those that are not among `peers`. */
void lease_expire(struct lease *l, uint64_t now_ns, const uint32_t *peers, size_t n_peers);

/* When that is next due; LEASE_FOREVER. */
uint64_t lease_next_ns(const struct lease *l);

/* It has done its work, or cannot. */
void lease_end(struct lease *l);

#endif
