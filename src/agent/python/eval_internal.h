/* SPDX-License-Identifier: Apache-2.0 */
/* eval_internal: what eval_run.c, eval_do.c and eval_stop.c share: the run, and its parts. See eval_run.h. */
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

/* X(function of python/units/eval.py): those that are called when it is run. */
#define EVAL_FUNCTIONS(X) X(begin) X(stream) X(compile) X(show) X(explain) X(drain) X(close) X(names) X(whole)

enum eval_function {
#define EVAL_ENUM(name) EVAL_##name,
    EVAL_FUNCTIONS(EVAL_ENUM)
#undef EVAL_ENUM
        EVAL_FUNCTION_COUNT
};

/* The frame whose names it sees. */
struct eval_place {
    uint64_t ident;
    struct model_locals locals; /* which frame that is; without its items */
};

struct eval_stream {
    struct pyapi_object *ours, *before; /* owned; NULL: it was left alone */
};

struct eval_run {
    int refs, state; /* atomic */
    int interrupter; /* atomic: 1 there is a thread, 2 it is about to end */
    unsigned interrupts;
    pid_t pid;
    struct arena arena;
    struct wire_eval want;  /* in the arena */
    struct eval_call *call; /* owned; NULL: code is run */
    uint32_t owner;         /* the client that has the last value kept; 0: none is */
    struct eval_place place;
    struct pyapi api;
    pthread_mutex_t lock; /* of the next two; held for moments, with the GIL */
    bool running;         /* an interrupt would come up in the code */
    unsigned long ident;  /* of the thread that runs it, and its number */
    int64_t tid;
    pthread_t thread;                                                   /* that interrupts it */
    struct pyapi_object *functions[EVAL_FUNCTION_COUNT], *names, *self; /* owned, until it has been run */
    struct eval_stream streams[EVAL_STREAMS];
    struct strbuf result, output, type, message, traceback;
    bool has_result, truncated;
    double duration_ms;
    uint64_t
        since_ns; /* CPU clock of the thread that has the GIL for what is ours; 0: it runs the client's code, or none */
};

/* One more reference. */
void eval_run_ref(struct eval_run *run);

/* The step that decides: from waiting to `state`. False: something else was decided before. */
bool eval_decide(struct eval_run *run, enum eval_state state);

/* ---- with the GIL ---- */

/* Give up a reference, and forget it. */
void eval_drop(struct eval_run *run, struct pyapi_object **o);

/* Let go of everything of Python's. */
void eval_let_go(struct eval_run *run);

/* From here on the thread does what is ours, or something else: see gil_usage.h. */
void eval_own_begin(struct eval_run *run);
void eval_own_end(struct eval_run *run);

/* Run it, which has begun, on this thread; then it has ended. */
void eval_perform(struct eval_run *run);

#endif
