/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker: a thread of the agent that takes the GIL, for what memory alone does not tell. There is one for what the agent itself asks
 * of Python, and one for what clients want run (eval_run.h); but for them nobody does.
 *
 * Started by the first job, ended by worker_leave. Nobody else waits for it: a job has a deadline, at which the requester
 * stops waiting. A wait for the GIL cannot be given up, so it is only begun when the GIL is free or its
 * holder is seen to get on (pystack/gate.h); while he does not, the worker looks and sleeps. Work is done in steps; the GIL
 * is given back after half a millisecond and asked for again. Meanwhile no garbage is collected (from 3.10 on): that would run
 * finalizers of the job's on this thread, and might take long. Once the interpreter is being finalised nothing is called any
 * more; a wait that began before may end the thread (up to 3.13) or stop it for ever (from 3.14 on): both are survived.
 * All functions may be called by any thread of the agent, but by the worker itself only those under "in a step".
 */
#ifndef AGENT_PYTHON_WORKER_H
#define AGENT_PYTHON_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/python/pyapi.h"
#include "base/err.h"
#include "pystack/pystack.h"

#define WORKER_MAX_JOBS 8 /* that wait or are being done */
#define WORKER_WHY_MAX 256

struct worker;

enum worker_end {
    WORKER_PENDING = 0,
    WORKER_DONE,
    WORKER_FAILED, /* the GIL was not had, or the job gave up: job->why says it */
};

/* A job. Memory is the asker's until worker_submit took it, then it is freed by `fini` when both have let go of it. */
struct worker_job {
    /* With the GIL: a piece of the work, some 100 us. True when there is more. One that gives up writes job->why. */
    bool (*step)(struct worker_job *job, struct worker *w);
    /* With the GIL, when nobody waits any more after it has begun: a piece of giving back what is too much for `drop` to give back at
     * once. True when there is more. NULL: there is no such thing. */
    bool (*drain)(struct worker_job *job, struct worker *w);
    /* With the GIL, after the last step or when nobody waits any more: give back every reference. */
    void (*drop)(struct worker_job *job, struct worker *w);
    /* Without the GIL, on the worker's thread, as long as a step has set `apart` and somebody waits: a piece of work that needs
     * nothing of Python. False when that is done. */
    bool (*off_gil)(struct worker_job *job);
    bool apart;
    void (*fini)(struct worker_job *job); /* without the GIL, on any thread: free the job */
    bool
        calls_job; /* a step may run code of the job's own, which is interrupted when nobody waits any more */
    bool is_interrupted; /* somebody else interrupts it */
    bool yields;         /* set by a step: there is more, but not in this hold of the GIL */
    uint64_t
        since_ns; /* the worker's CPU clock when it got the GIL for what is ours; 0: it was counted (gil_usage.h) */
    uint64_t hold_ns,
        pause_ns; /* how long it has the GIL at once, at most 1 ms, and leaves it alone then; 0: as most do */
    const char *unit; /* of Python whose functions the steps call (helper.h): it is there before the first */
    uint64_t deadline_ns;
    char why[WORKER_WHY_MAX]; /* read once it has failed */
    uint64_t held_ns;         /* for so long the GIL was had for it, by the clock; read once it has ended */
    /* the worker's own, under its lock */
    struct worker_job *next;
    enum worker_end end;
    bool begun, unwanted, released;
};

/* Counters, for status. */
struct worker_status {
    bool running;     /* the thread is there */
    uint64_t holds;   /* how often the GIL was had for us, by any thread (gil_usage.h) */
    double mean_us;   /* CPU time that was used with it; NAN never */
    double max_us;    /* and at most */
    uint64_t refused; /* jobs that did not get it in time */
};

/* No thread yet. `in_job`: it has the job's own descriptors (thread_spawner.h), for code that a client wants run; else our own, so that a bug of ours
 * cannot close the job's descriptors. `wake` is called on the worker's thread, without a lock, when a job has ended. NULL with the error. */
struct worker *worker_new(void (*wake)(void *arg), void *arg, bool in_job, struct err *e);

/* Have a job done. 0: the worker owns it, the asker looks at it until worker_release. -1 with the error: it is the caller's. */
int worker_submit(struct worker *w, struct worker_job *job, struct err *e);

enum worker_end worker_get_end(struct worker *w, struct worker_job *job);

/* The asker has what he wants, or waits no longer; not to be touched by him after this. NULL is nothing to do. */
void worker_release(struct worker *w, struct worker_job *job);

/* The interpreter that was there is gone: it is not called any more. */
void worker_lose(struct worker *w);

/* End the thread, and take no more jobs. 0; -1 with the error when it cannot end now, because it waits for the GIL or runs
 * code of the job: then all is as it was before. Waits for a second at most. */
int worker_leave(struct worker *w, struct err *e);

/* The same, and free it. What still waits for the GIL then is left to itself, and ends when it has it. */
void worker_free(struct worker *w);

void worker_get_status(struct worker *w, struct worker_status *out);

/* Why the GIL was not had, by a look at it, into WORKER_WHY_MAX bytes; `up`: the interpreter is initialised. */
struct pystack_gate;
void worker_explain(const struct pystack_gate *gate, bool up, char *why);

/* ---- in a step ---- */

const struct pyapi *worker_api(const struct worker *w);

/* The worker's own reader. */
struct pystack *worker_pystack(struct worker *w);

/* A function of the job's unit or of one that it needs; borrowed. NULL: this Python could not compile it. */
struct pyapi_object *worker_helper(struct worker *w, const char *name);

/* There is no GIL: other threads run while the worker does. */
bool worker_runs_beside(const struct worker *w);

#endif
