/* SPDX-License-Identifier: Apache-2.0 */
/*
 * life: the agent's life cycle: started, running, ejected, parked, started again.
 *
 * All of it is behind one mutex. The state PARKED is the last thing a run writes: nothing of it touches anything after.
 */
#ifndef AGENT_LIFE_H
#define AGENT_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/agent_abi.h"
#include "base/err.h"

/* What one run of the agent consists of. All are static. */
struct life_run {
    /* On the agent's first thread: everything, from life_announce to life_set_ending and the freeing of all. 0, or -1 with the error:
     * it never began. */
    int (*main)(struct err *e);
    /* With the lock, on the thread that brought us in: it will be joined, which the run is to see to (life_reap). */
    void (*on_guest)(void);
    /* What the child of a fork does (fork.h); registered by the first start, for ever. */
    void (*in_child)(void);
};

/* What probing_start does; see base/agent_abi.h. `args` has been checked. `invited`: a client is about to connect and say what it
 * wants. */
int life_start(struct agent_start *args, bool invited, const struct life_run *run);

/* Was it, in this run? */
bool life_is_invited(void);

/* enum agent_way: how the agent that runs came in. */
uint32_t life_came_by(void);

/* In the child of a fork: begin anew. Had the parent an agent? */
bool life_in_child(void);

/* ---- for the run ---- */

/* Tell the starter that the socket listens. False when nobody waits any more. */
bool life_announce(const char *endpoint);

/* The run is ending: whoever starts an agent now waits until it has. */
void life_set_ending(void);

/* If the thread that brought us in has ended, join it and unmap what it ran on. False when it still runs. */
bool life_reap(void);

#endif
