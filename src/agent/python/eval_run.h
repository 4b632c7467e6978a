/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval_run: one piece of code that is to be run in the job, or one call of ours, from the request to what became of it.
 *
 * Shared by those who have to do with it: whoever waits for it (evals.h), the thread that runs it (the python worker, or the
 * job's main thread when its interpreter gets to a pending call), and a thread that interrupts it. The last to let go frees it. Whether
 * it is run at all is decided once, by an atomic step: a run that was withdrawn never begins, however late its turn comes.
 *
 * An interrupt is a KeyboardInterrupt that is set for the thread, with the GIL held and only while the code runs; one that has not come up when
 * the code has ended is taken back. So it never comes up in anything of the job's. What the code catches it survives; it is
 * interrupted again. A child that the code has forked, and that comes back from it on the worker's thread, ends there: it must not go on
 * as the worker.
 */
#ifndef AGENT_PYTHON_EVAL_RUN_H
#define AGENT_PYTHON_EVAL_RUN_H

#include <stdbool.h>

#include "agent/python/worker.h"
#include "base/err.h"
#include "base/model.h"
#include "wire/wire.h"

enum eval_state {
    EVAL_WAITING = 0,
    EVAL_WITHDRAWN, /* it is never run */
    EVAL_BEGUN,
    EVAL_DONE,
};

struct eval_run;

/* What is wanted is copied. `keeper`: the client whose last value is kept; 0: none is. `found`: a snapshot with the locals of the thread whose frame is wanted; NULL otherwise. NULL with the error:
 * there is no such frame, or no memory. One reference, for eval_run_unref. */
struct eval_run *eval_run_new(const struct wire_eval *want, const struct model_snapshot *found,
                              uint32_t owner, struct err *e);
/* A call of something of ours that is made instead of running code. All but the last with the GIL. */
struct eval_call {
    const char *unit; /* of Python whose functions it needs */
    /* On the worker's thread: everything that it needs later. 0, or -1: this Python cannot do that. */
    int (*prepare)(struct eval_call *c, struct worker *w);
    /* 0, or -1 with the exception set. */
    int (*run)(struct eval_call *c, const struct pyapi *api);
    void (*let_go)(struct eval_call *c, const struct pyapi *api); /* give back every reference */
    void (*fini)(struct eval_call *c);                            /* free it; any thread */
};

/* The same of a call, which the run owns from here; it is freed, too, when there is no memory. */
struct eval_run *eval_run_new_call(struct eval_call *call, double timeout_s, struct err *e);
void eval_run_unref(struct eval_run *run);

/* At any time. */
enum eval_state eval_run_state(const struct eval_run *run);

/* It is not to be run. False: it has begun (or ended) already. */
bool eval_run_withdraw(struct eval_run *run);

/* What became of one that has ended; points into it. */
void eval_run_get(const struct eval_run *run, struct wire_evaluated *out);

/* A job of the python worker that runs it, or has the main thread run it. It has a reference of its own. NULL without memory. */
struct worker_job *eval_run_new_job(struct eval_run *run, uint64_t deadline_ns);

/* Interrupt it until it ends, by a thread of its own, which is there until eval_run_is_left. 0, or -1: there is no thread. */
int eval_run_interrupt(struct eval_run *run);

/* Nothing of ours has to do with it any more: it has ended, or will not begin, and nobody interrupts it. */
bool eval_run_is_left(const struct eval_run *run);

/* How often it has been interrupted. */
unsigned eval_run_interrupts(const struct eval_run *run);

#endif
