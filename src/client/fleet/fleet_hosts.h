/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet_hosts: what the hosts of a job have reported last, and the fleet that is made of it, however the
 * reports came (fleet_source.h).
 *
 * A source fills in the items; texts and ranks stay its own, and outlive the fleet that was made of them.
 * Stacks, steps and collectives are kept here. A rank is the host's that showed its process first: another
 * that claims it, too, is noted. One thread.
 */
#ifndef CLIENT_FLEET_FLEET_HOSTS_H
#define CLIENT_FLEET_FLEET_HOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/fleet/fleet.h"
#include "client/fleet/report.h"

#define FLEET_HOSTS_MAX 16384

struct fleet_host {
    char host[256], via[64];
    uint32_t stacks;         /* a stack's number has its meaning together with this one */
    bool has_job, is_absent; /* the host has the job; it does not, as it says */
    struct report_job job;
    /* its ranks, as the fleet has them, and those of a round that is not complete */
    struct report_rank *ranks, *next;
    size_t n_ranks, n_next;
    /* its clock is ahead of this host's by so much, give or take the error; NAN unknown */
    double ahead_ms, error_ms;
    double rtt_ms;
    int64_t lost;    /* as in fleet_node */
    double seen_at;  /* its last answer, seconds since the epoch; NAN none yet */
    bool is_silent;  /* it does not answer, */
    double silent_s; /* for so long */
    char note[512];  /* "" none */
    char claims[160];
};

struct fleet_hosts {
    struct fleet fleet;
    struct fleet_host *items;
    size_t n, cap;
    uint64_t built_ns; /* when the fleet was made, on the monotonic clock */
    double latest;     /* no time of a rank can be later; NAN: now, by the clock of this host */
    uint16_t *owners;  /* of RANK_SET_LIMIT ranks: number of the host that has it, from 1; NULL: one host */
    struct fleet_stack **stacks;
    size_t n_stacks, cap_stacks;
    struct pace *pace;
};

/* Hosts of which nothing is known. 0, or -1 without memory; fleet_hosts_fini frees, on failure too. */
int fleet_hosts_init(struct fleet_hosts *hs, size_t n);
void fleet_hosts_fini(struct fleet_hosts *hs);

/* One more, whose number is `n - 1` then; items may move. NULL without memory, or there are too many. */
struct fleet_host *fleet_hosts_add(struct fleet_hosts *hs);

/* The stack with that number; NULL: its frames are not known. */
struct fleet_stack *fleet_hosts_find_stack(const struct fleet_hosts *hs, uint32_t stacks, int64_t id);

/* Keep a copy of its frames, innermost first, unless they are known. -1 without memory. */
int fleet_hosts_put_stack(struct fleet_hosts *hs, uint32_t stacks, int64_t id,
                          const struct model_frame *frames, size_t n);

/* Take a step or a collective of host `i`; see pace_add. */
bool fleet_hosts_add_time(struct fleet_hosts *hs, size_t i, const struct report_time *row);

/* Forget those of host `i`; see pace_forget. */
void fleet_hosts_forget_times(struct fleet_hosts *hs, size_t i);

/* Make the fleet of what is known now; `round`: all hosts have reported. What the last one was made of
 * is no longer in use. Without memory it is empty. */
void fleet_hosts_build(struct fleet_hosts *hs, bool round);

#endif
