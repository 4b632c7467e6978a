/* SPDX-License-Identifier: Apache-2.0 */
/* eval_internal: shared by eval_run.c, eval_do.c and eval_stop.c: the run and its parts. See
 * eval_run.h. */
#ifndef AGENT_PYTHON_EVAL_INTERNAL_H
#define AGENT_PYTHON_EVAL_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/python/eval_run.h"
#include "agent/python/pyapi.h"
#include "base/arena.h"
#include "base/model.h"
#include "base/strbuf.h"
#include "wire/wire.h"

#define EVAL_STREAMS 3

/* X(function of python/units/eval.py): the functions that a run calls. */
#define EVAL_FUNCTIONS(X) X(begin) X(stream) X(compile) X(show) X(explain) X(drain) X(close) X(names) X(whole)

enum eval_function {
#define EVAL_ENUM(name) EVAL_##name,
    EVAL_FUNCTIONS(EVAL_ENUM)
#undef EVAL_ENUM
        EVAL_FUNCTION_COUNT
};

/* The frame whose names the code sees. */
struct eval_place {
    uint64_t ident;
    struct model_locals locals; /* identifies the frame; without its items */
};

struct eval_stream {
    struct pyapi_object *ours, *before; /* owned; NULL if it was left alone */
};

struct eval_run {
    int refs, state; /* atomic */
    int interrupter; /* atomic: 1 there is a thread, 2 it is about to end */
    unsigned interrupts;
    pid_t pid;
    struct arena arena;
    struct wire_eval want;  /* in the arena */
    struct eval_call *call; /* owned; NULL: the run is code */
    uint32_t owner;         /* the client whose last value is kept; 0 if none is */
    struct eval_place place;
    struct pyapi api;
    pthread_mutex_t lock; /* protects the next two; locked for short times, with the GIL */
    bool running;         /* an interrupt would be delivered to the code */
    unsigned long ident;  /* id and number of the thread that runs it; the number is atomic */
    int64_t tid;
    /* the thread that interrupts it */
    pthread_t thread;
    /* owned, until it has run */
    struct pyapi_object *functions[EVAL_FUNCTION_COUNT], *names, *self;
    struct eval_stream streams[EVAL_STREAMS];
    struct strbuf result, output, type, message, traceback;
    bool has_result, truncated;
    double duration_ms;
    /* CPU clock of the thread that has the GIL for work of ours; 0 while it runs the client's
     * code, or has none */
    uint64_t since_ns;
};

/* Take one more reference. */
void eval_run_ref(struct eval_run *run);

/* The deciding step: from waiting to `state`. False if another step was first. */
bool eval_decide(struct eval_run *run, enum eval_state state);

/* ---- with the GIL ---- */

/* Release a reference and clear it. */
void eval_drop(struct eval_run *run, struct pyapi_object **o);

/* Release every Python object. */
void eval_let_go(struct eval_run *run);

/* From here on the thread works for us, or no longer: see gil_usage.h. */
void eval_own_begin(struct eval_run *run);
void eval_own_end(struct eval_run *run);

/* Perform a run that has started, on this thread; afterwards it has ended. */
void eval_perform(struct eval_run *run);

#endif
