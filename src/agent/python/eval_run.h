/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval_run: one piece of code that is to be run in the job, or a debugger there (agent/debug/debugger.h), from the request to what became of
 * it.
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
/* The same of a debugger that is asked for; `*want` is moved. `owner`: the client that what it begins ends with; 0: none. */
struct eval_run *eval_run_new_debug(enum wire_method method, struct wire_debug *want, uint32_t owner,
                                    struct err *e);
void eval_run_unref(struct eval_run *run);

/* At any time. */
enum eval_state eval_run_state(const struct eval_run *run);

/* It is not to be run. False: it has begun (or ended) already. */
bool eval_run_withdraw(struct eval_run *run);

/* What became of one that has ended; points into it. Of a debugger: how it stands, without an arena. */
void eval_run_get(const struct eval_run *run, struct wire_evaluated *out);
void eval_run_get_debugger(const struct eval_run *run, struct wire_debugger *out);

/* A job of the python worker that runs it, or has the main thread run it. It has a reference of its own. NULL without memory. */
struct worker_job *eval_run_new_job(struct eval_run *run, uint64_t deadline_ns);

/* Interrupt it until it ends, by a thread of its own, which is there until eval_run_is_left. 0, or -1: there is no thread. */
int eval_run_interrupt(struct eval_run *run);

/* Nothing of ours has to do with it any more: it has ended, or will not begin, and nobody interrupts it. */
bool eval_run_is_left(const struct eval_run *run);

/* How often it has been interrupted. */
unsigned eval_run_interrupts(const struct eval_run *run);

#endif
