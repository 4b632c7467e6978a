/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evals_kept: keeps each client's last value (`_`, python/units/eval.py) alive, and drops it
 * when the client disconnects.
 *
 * A value may be large. It is dropped by a job of the python worker, which is submitted again as
 * long as the GIL cannot be acquired. Belongs to the server's thread. Zeroed to begin.
 */
#ifndef AGENT_SERVER_EVALS_KEPT_H
#define AGENT_SERVER_EVALS_KEPT_H

#include <stdint.h>

#include "agent/server/mailbox.h"
#include "agent/python/worker.h"

struct evals_kept {
    /* 0: free; clients that have disconnected stay until their values are dropped */
    uint32_t peers[MAILBOX_SLOTS * 2];
    struct worker_job *job; /* drops the values of `leaving`; NULL if none does */
    uint32_t leaving;
    uint64_t look_ns; /* time of the next check; 0: when a client disconnects */
};

/* Keep the last value of this client from now on. False if there is no room. */
bool evals_kept_add(struct evals_kept *k, uint32_t peer);

/* Drop the values of clients that have disconnected. */
void evals_kept_poll(struct evals_kept *k, struct worker *worker, struct mailbox *mailbox, uint64_t now);

/* Stop waiting for the job. */
void evals_kept_fini(struct evals_kept *k, struct worker *worker);

#endif
