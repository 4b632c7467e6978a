/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval_run: one piece of code to run in the job, or one call of ours, from the request to the
 * result.
 *
 * Shared by the client's side that waits for it (evals.h), the thread that runs it (the python
 * worker, or the job's main thread when its interpreter gets to a pending call), and a thread
 * that interrupts it. The last one to release it frees it. Whether it runs at all is decided
 * once, by an atomic step: a withdrawn run never starts, however late its turn comes.
 *
 * An interrupt is a KeyboardInterrupt that is set for the thread, with the GIL, and only while
 * the code runs; one that was not delivered when the code has ended is cancelled. So it is never
 * raised in code of the job. Code that catches it survives, and is interrupted again. A child
 * that the code has forked, and that returns on the worker's thread, ends there: it must not
 * continue as the worker.
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
    EVAL_WITHDRAWN, /* it never runs */
    EVAL_BEGUN,
    EVAL_DONE,
};

struct eval_run;

/* The request is copied. `keeper`: the client whose last value is kept; 0: none. `found`: a
 * snapshot with the locals of the thread whose frame is wanted; NULL otherwise. NULL with the
 * error: there is no such frame, or no memory. One reference, for eval_run_unref. */
struct eval_run *eval_run_new(const struct wire_eval *want, const struct model_snapshot *found,
                              uint32_t owner, struct err *e);
/* A call of a function of ours, instead of code. All functions but the last with the GIL. */
struct eval_call {
    const char *unit; /* the unit of Python with its functions */
    /* On the worker's thread: prepare everything for later. 0, or -1: this Python cannot do
     * that. */
    int (*prepare)(struct eval_call *c, struct worker *w);
    /* 0, or -1 with the exception set. */
    int (*run)(struct eval_call *c, const struct pyapi *api);
    void (*let_go)(struct eval_call *c, const struct pyapi *api); /* release every reference */
    void (*fini)(struct eval_call *c);                            /* free it; any thread */
};

/* The same for a call, which the run owns from here; it is freed, too, if there is no memory. */
struct eval_run *eval_run_new_call(struct eval_call *call, double timeout_s, struct err *e);
void eval_run_unref(struct eval_run *run);

/* At any time. */
enum eval_state eval_run_state(const struct eval_run *run);

/* Prevent it from running. False if it has already started (or ended). */
bool eval_run_withdraw(struct eval_run *run);

/* The result of a run that has ended; points into it. */
void eval_run_get(const struct eval_run *run, struct wire_evaluated *out);

/* A job of the python worker that runs it, or makes the main thread run it. It has a reference
 * of its own. NULL without memory. */
struct worker_job *eval_run_new_job(struct eval_run *run, uint64_t deadline_ns);

/* Interrupt it until it ends, from a separate thread, which exists until eval_run_is_left. 0, or
 * -1: there is no thread. */
int eval_run_interrupt(struct eval_run *run);

/* True if no thread of ours uses it any longer: it has ended, or will not start, and nobody
 * interrupts it. */
bool eval_run_is_left(const struct eval_run *run);

/* The number of interrupts so far. */
unsigned eval_run_interrupts(const struct eval_run *run);

#endif
