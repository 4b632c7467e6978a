/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evals_kept: keeps each client's last value (`_`, python/units/eval.py) alive, and drops it when the client disconnects.
 *
 * A value may be large. It is dropped by a job of the python worker, which is submitted again as long as the GIL cannot be acquired.
 * Belongs to the sampler's thread. Zeroed to begin.
 */
#ifndef AGENT_SERVER_EVALS_KEPT_H
#define AGENT_SERVER_EVALS_KEPT_H

#include <stdint.h>

#include "agent/server/mailbox.h"
#include "agent/python/worker.h"

struct evals_kept {
    uint32_t peers[MAILBOX_SLOTS * 2]; /* 0: no one; those that have gone are there until nothing is kept */
    struct worker_job *job;            /* lets go of what `leaving` has; NULL: none does */
    uint32_t leaving;
    uint64_t look_ns; /* when to look again; 0: when a client goes */
};

/* This client has its last value kept from now on. False: there is no room. */
bool evals_kept_add(struct evals_kept *k, uint32_t peer);

/* Let go of what those have who have gone. */
void evals_kept_poll(struct evals_kept *k, struct worker *worker, struct mailbox *mailbox, uint64_t now);

/* Wait no longer for what was begun. */
void evals_kept_fini(struct evals_kept *k, struct worker *worker);

#endif
