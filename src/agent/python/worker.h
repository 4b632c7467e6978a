/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker: a thread of the agent that takes the GIL, for data that memory alone does not show.
 * One worker is for the agent's own requests to Python, and one for code of clients
 * (eval_run.h); no other thread of ours takes the GIL.
 *
 * Started by the first job, ended by worker_leave. Nobody else waits for it: a job has a
 * deadline, at which the requester stops waiting. A wait for the GIL cannot be cancelled, so it
 * is started only if the GIL is free or its holder is seen to make progress (pystack/gate.h);
 * otherwise the worker checks and sleeps. Work is done in steps; the GIL is released after half
 * a millisecond and asked for again. Meanwhile garbage collection is off (from 3.10 on), because
 * it would run finalizers of the job on this thread, and might take long. Once the interpreter
 * is being finalised nothing is called any more; a wait that began before may end the thread (up
 * to 3.13) or stop it permanently (from 3.14 on): both are survived. All functions may be called
 * by any thread of the agent, but by the worker itself only those under "in a step".
 */
#ifndef AGENT_PYTHON_WORKER_H
#define AGENT_PYTHON_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/python/pyapi.h"
#include "base/err.h"
#include "pystack/pystack.h"

#define WORKER_MAX_JOBS 8 /* that wait or run */
#define WORKER_WHY_MAX 256

struct worker;

enum worker_end {
    WORKER_PENDING = 0,
    WORKER_DONE,
    WORKER_FAILED, /* the GIL was not available, or the job gave up: see job->why */
};

/* A job. Its memory is the requester's until worker_submit has accepted it; then `fini` frees it
 * after both have released it. */
struct worker_job {
    /* With the GIL: a piece of the work, about 100 us. True if there is more. A job that gives
     * up writes job->why. */
    bool (*step)(struct worker_job *job, struct worker *w);
    /* With the GIL, if nobody waits any longer after it has started: a piece of releasing
     * objects that are too many for `drop` in one call. True if there is more. NULL if not
     * needed. */
    bool (*drain)(struct worker_job *job, struct worker *w);
    /* With the GIL, after the last step or if nobody waits any longer: release every reference. */
    void (*drop)(struct worker_job *job, struct worker *w);
    /* Without the GIL, on the worker's thread, as long as a step has set `apart` and somebody
     * waits: a piece of work that does not use Python. False if that is done. */
    bool (*off_gil)(struct worker_job *job);
    bool apart;
    void (*fini)(struct worker_job *job); /* without the GIL, on any thread: free the job */
    /* Called in place of the worker's `wake` when it has ended; NULL: that one is called. */
    void (*on_end)(void *arg);
    void *on_end_arg;
    /* a step may run code of the job, which is interrupted if nobody waits any longer */
    bool calls_job;
    bool is_interrupted; /* it is interrupted in another way */
    bool yields;         /* set by a step: there is more, but not in this hold of the GIL */
    /* the worker's CPU clock when it got the GIL for work of ours; 0: it was counted
     * (gil_usage.h) */
    uint64_t since_ns;
    uint64_t hold_ns,
        /* how long it has the GIL per hold, at most 1 ms, and leaves it alone afterwards; 0: the
         * default */
        pause_ns;
    /* the unit of Python whose functions the steps call (helper.h): it is loaded before the
     * first step */
    const char *unit;
    uint64_t deadline_ns;
    char why[WORKER_WHY_MAX]; /* read after it has failed */
    /* how long the GIL was had for it, by the clock; read after it has ended */
    uint64_t held_ns;
    /* owned by the worker, under its lock */
    struct worker_job *next;
    enum worker_end end;
    bool begun, unwanted, released;
};

/* Counters, for status. */
struct worker_status {
    bool running;     /* the thread exists */
    uint64_t holds;   /* how often any thread had the GIL for us (gil_usage.h) */
    double mean_us;   /* CPU time used per hold; NAN if there was none */
    double max_us;    /* and the maximum */
    uint64_t refused; /* jobs that did not get it in time */
};

/* No thread yet. `in_job`: it has the job's own descriptors (thread_spawner.h), for code of
 * clients; otherwise our own, so that a bug of ours cannot close the job's descriptors. `wake`
 * is called on the worker's thread, with its lock, when a job has ended. NULL with the error. */
struct worker *worker_new(void (*wake)(void *arg), void *arg, bool in_job, struct err *e);

/* Submit a job. 0: the worker owns it, and the requester may read it until worker_release. -1
 * with the error: it remains the caller's. */
int worker_submit(struct worker *w, struct worker_job *job, struct err *e);

enum worker_end worker_get_end(struct worker *w, struct worker_job *job);

/* The requester has its result, or waits no longer; it must not touch the job after this. NULL
 * is a no-op. */
void worker_release(struct worker *w, struct worker_job *job);

/* The interpreter is gone: it is not called any more. */
void worker_lose(struct worker *w);

/* End the thread, release what it has in Python, and refuse later jobs. 0; -1 with the error if
 * that is not possible now, because it waits for the GIL or runs code of the job: then it goes on.
 * Waits for a second at most. */
int worker_leave(struct worker *w, struct err *e);

/* The agent does not leave after all: jobs are accepted again. */
void worker_stay(struct worker *w);

/* How often what it had in Python was released, hooks of units included. */
uint64_t worker_closed(struct worker *w);

/* The same, and free it. A thread that still waits for the GIL then is left alone, and ends when
 * it gets the GIL. */
void worker_free(struct worker *w);

void worker_get_status(struct worker *w, struct worker_status *out);

/* Explain why the GIL was not available, from its state, in WORKER_WHY_MAX bytes; `up`: the
 * interpreter is initialised. */
struct pystack_gate;
void worker_explain(const struct pystack_gate *gate, bool up, char *why);

/* ---- in a step ---- */

const struct pyapi *worker_api(const struct worker *w);

/* The worker's own reader. */
struct pystack *worker_pystack(struct worker *w);

/* A function of the job's unit or of one that it needs; borrowed. NULL if this Python could not
 * compile it. */
struct pyapi_object *worker_helper(struct worker *w, const char *name);

/* True if there is no GIL: other threads run at the same time as the worker. */
bool worker_runs_beside(const struct worker *w);

#endif
