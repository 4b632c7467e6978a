/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_probe: a child that reads one rank again and again, and asks its agent for the counters of
 * its process groups.
 *
 * A rank that blocks whoever touches it takes only its own child. Answers come as they are there:
 * the state first, the counters when the agent has acquired the GIL. One reading at a time.
 */
#ifndef CLIENT_FLEET_RANK_PROBE_H
#define CLIENT_FLEET_RANK_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "client/fleet/rank_group.h"
#include "client/fleet/rank_state.h"
#include "client/guard.h"

enum rank_answer {
    RANK_NOT_ASKED = 0, /* or there is no agent */
    RANK_SILENT,        /* it has an agent that did not answer in time */
    RANK_REFUSED,       /* it answered that it has no counters: `why` */
    RANK_ANSWERED,
};

/* What was read of a rank at one time. */
struct rank_reading {
    struct rank_state state;
    bool blocked; /* its reader does not come back */
    enum rank_answer answer;
    char why[160];
    double asked_s; /* when its counters were read, on the monotonic clock */
    struct rank_group *groups;
    size_t n_groups;
    bool has_gpu; /* what its GPUs do is known */
    double gpu_util_pct, gpu_power_w;
};

void rank_reading_fini(struct rank_reading *r);

struct rank_probe {
    pid_t pid;
    struct guard guard; /* its fd is to be polled */
    bool running;       /* there is a child */
    bool pending;       /* a reading is under way */
    bool has_state;     /* and the state has arrived */
    struct rank_reading reading;
};

/* Start the child of process `pid`, for at most `limit_s`. 0, or -1: none could be made. */
int rank_probe_start(struct rank_probe *p, pid_t pid, unsigned limit_s);

/* Begin a reading; `counters`: the agent is asked, too. */
void rank_probe_ask(struct rank_probe *p, bool counters);

/* Take what has arrived. True if the reading is complete. */
bool rank_probe_take(struct rank_probe *p);

/* The time is over: what has not arrived is unknown, and a child that has sent nothing is
 * abandoned. Moves the reading to `out`, which the caller frees. */
void rank_probe_end(struct rank_probe *p, struct rank_reading *out);

void rank_probe_stop(struct rank_probe *p);

#endif
