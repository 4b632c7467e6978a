/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evals: runs code for clients in the job, one piece at a time, and answers the client that
 * waits.
 *
 * The sampler never waits: it starts a run (eval_run.h) and checks it again when the worker
 * wakes it, or now and then. When its time is over or its client has gone, a run that has not
 * started is withdrawn, and one that has started is interrupted until it ends; no other run
 * starts before that. Belongs to the sampler's thread.
 */
#ifndef AGENT_SERVER_EVALS_H
#define AGENT_SERVER_EVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/debug/debugger.h"
#include "agent/python/eval_run.h"
#include "agent/server/evals_kept.h"
#include "agent/server/mailbox.h"
#include "agent/tables/record.h"
#include "agent/python/worker.h"
#include "base/model.h"
#include "pystack/pystack.h"
#include "wire/wire.h"

/* The client that asks, and its request. */
struct evals_ask {
    uint32_t peer, id;
    int64_t uid, pid; /* of the client; -1 if unknown */
    struct mailbox_eval *want;
};

struct evals {
    struct worker *worker;
    struct mailbox *mailbox;
    struct record *record;
    /* Called with the answer, or with NULL and the error; for a debugger, with the answer to
     * this method. */
    void (*answer)(void *mailbox, uint32_t peer, uint32_t id, const struct wire_evaluated *v,
                   const struct err *e);
    void (*answer_debugger)(void *mailbox, uint32_t peer, uint32_t id, enum wire_method method,
                            const struct wire_debugger *d);
    struct eval_run *run;   /* NULL if there is none */
    struct worker_job *job; /* NULL if the worker has finished with it */
    uint32_t peer, id;      /* the client that waits; 0 if none does any longer */
    enum wire_method method;
    struct debugger *debugger; /* owned by the run; NULL if the run is code */
    bool main, late, interrupted;
    bool stopped; /* its client asked to stop it: its time is over */
    struct evals_kept kept;
    double timeout_s;
    uint64_t deadline_ns, interrupted_ns, look_ns;
};

/* Run code or start a debugger, or refuse; the answer is sent immediately or later. The request
 * of a debugger is moved. `found`: a snapshot with the locals of the thread whose frame is
 * wanted; NULL otherwise. */
void evals_begin(struct evals *v, const struct evals_ask *ask, const struct model_snapshot *found);

/* Answer what is ready or late. `ps`: for the name of the thread that has the GIL; may be NULL. */
void evals_poll(struct evals *v, struct pystack *ps);

/* The latest time of the next poll; UINT64_MAX if nothing runs. */
uint64_t evals_next_ns(const struct evals *v);

/* From now on nobody gets an answer. */
void evals_fini(struct evals *v);

#endif
