/* SPDX-License-Identifier: Apache-2.0 */
/*
 * life: the agent's life cycle: started, running, ejected, parked, started again.
 *
 * One mutex protects all of it. A run writes the state PARKED last, and touches nothing after
 * that.
 */
#ifndef AGENT_LIFE_H
#define AGENT_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/agent_abi.h"
#include "base/err.h"

/* The functions of one run of the agent. All are static. */
struct life_run {
    /* On the agent's first thread: the whole run, from life_announce to life_set_ending and the
     * release of everything. 0, or -1 with the error: it never started. */
    int (*main)(struct err *e);
    /* With the lock, on the thread that started the agent: the run must see to it that the
     * thread is joined (life_reap). */
    void (*on_guest)(void);
    /* Called in the child of a fork (fork.h); the first start registers it permanently. */
    void (*in_child)(void);
};

/* The body of probing_start; see base/agent_abi.h. `args` has been checked. `invited`: a client
 * is about to connect and to send its settings. */
int life_start(struct agent_start *args, bool invited, const struct life_run *run);

/* True if this run was started as invited. */
bool life_is_invited(void);

/* enum agent_way: how the running agent was started. */
uint32_t life_came_by(void);

/* Have `in_child` called in the child of each fork from now on; life_start does it, too. 0, or -1
 * if the C library refuses. */
int life_watch_forks(void (*in_child)(void));

/* In the child of a fork: reset. True if the parent had an agent. */
bool life_in_child(void);

/* ---- for the run ---- */

/* Report to the starter that the socket listens. False if nobody waits any longer. */
bool life_announce(const char *endpoint);

/* The run is ending: starting an agent now waits until it has ended. */
void life_set_ending(void);

/* If the thread that started the agent has ended, join it and unmap its memory. False if it
 * still runs. */
bool life_reap(void);

#endif
