/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evals: runs code for clients in the job, and debuggers, one at a time, and answers the client
 * that waits.
 *
 * The server never waits: it starts a run (eval_run.h) and checks it again when the worker wakes
 * it, or now and then. When its time is over or its client has gone, a run that has not started
 * is withdrawn, and one that has started is interrupted until it ends; no other run starts before
 * that. Belongs to the server's thread.
 */
#ifndef AGENT_SERVER_EVALS_H
#define AGENT_SERVER_EVALS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/debug/debugger.h"
#include "agent/python/eval_run.h"
#include "agent/python/worker.h"
#include "agent/server/call.h"
#include "agent/server/evals_kept.h"
#include "agent/server/mailbox.h"
#include "base/model.h"
#include "pystack/gate.h"
#include "wire/wire.h"

struct evals {
    struct worker *worker;
    struct mailbox *mailbox;
    struct eval_run *run;      /* NULL if there is none */
    struct worker_job *job;    /* NULL if the worker has finished with it */
    struct call *call;         /* the request; NULL if nobody waits for its answer any longer */
    struct debugger *debugger; /* owned by the run; NULL if the run is code */
    bool main, late, interrupted;
    bool stopped; /* its client asked to stop it: its time is over */
    struct evals_kept kept;
    double timeout_s;
    uint64_t deadline_ns, interrupted_ns, look_ns;
};

/* Run code or start a debugger, or refuse; the answer is sent immediately or later. `found`: a
 * snapshot with the locals of the thread whose frame is wanted; NULL otherwise. */
void evals_begin(struct evals *v, struct call *call, const struct model_snapshot *found);

/* Answer a request that has not got the GIL in time; `gate` NULL: its state is unknown. */
void evals_explain(struct call *call, const struct pystack_gate *gate);

/* Nobody waits for this request any longer. */
void evals_forget(struct evals *v, const struct call *call);

/* Answer what is ready or late. */
void evals_poll(struct evals *v);

/* The latest time of the next poll; UINT64_MAX if nothing runs. */
uint64_t evals_next_ns(const struct evals *v);

/* From now on nobody gets an answer. */
void evals_fini(struct evals *v);

#endif
