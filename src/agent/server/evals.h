/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evals: code that a client has run in the job, one piece at a time, and who waits for what becomes of it.
 *
 * The sampler never waits: it has a run (eval_run.h) begun, and looks again when the worker has woken it, or now and then. At
 * the end of its time, or when its client has gone, a run that has not begun is withdrawn, and one that has is interrupted until it
 * ends; until then there is no other. Belongs to the sampler's thread.
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

/* Who asks, and for what. */
struct evals_ask {
    uint32_t peer, id;
    int64_t uid, pid; /* of the client; -1 not known */
    struct mailbox_eval *want;
};

struct evals {
    struct worker *worker;
    struct mailbox *mailbox;
    struct record *record;
    /* The answer, or NULL and the error; and that of a debugger, to this method. */
    void (*answer)(void *mailbox, uint32_t peer, uint32_t id, const struct wire_evaluated *v,
                   const struct err *e);
    void (*answer_debugger)(void *mailbox, uint32_t peer, uint32_t id, enum wire_method method,
                            const struct wire_debugger *d);
    struct eval_run *run;   /* NULL: there is none */
    struct worker_job *job; /* NULL: the worker has nothing to do with it any more */
    uint32_t peer, id;      /* who waits; 0: nobody any more */
    enum wire_method method;
    struct debugger *debugger; /* that the run owns; NULL: it is code */
    bool main, late, interrupted;
    bool stopped; /* its client has had enough of it: its time is over */
    struct evals_kept kept;
    double timeout_s;
    uint64_t deadline_ns, interrupted_ns, look_ns;
};

/* Have code run, or a debugger begin, or refuse it; answered at once or later; a debugger's request is moved. `found`: a snapshot with the locals of the thread whose frame is wanted; NULL
 * otherwise. */
void evals_begin(struct evals *v, const struct evals_ask *ask, const struct model_snapshot *found);

/* Answer what is ready or late. `ps`: to tell who holds the GIL; may be NULL. */
void evals_poll(struct evals *v, struct pystack *ps);

/* When to look again at the latest; UINT64_MAX: there is nothing. */
uint64_t evals_next_ns(const struct evals *v);

/* Nobody gets an answer any more. */
void evals_fini(struct evals *v);

#endif
