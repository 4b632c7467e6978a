/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call: a request that a python worker answers: eval and complete, debug, pause, catch, rows.
 *
 * It goes from the server's thread to a worker and back. Two things are read by the sampler's
 * thread alone, which reads the interpreter with the help of running threads: the variables of
 * frames, before the worker gets the request, and the holder of the GIL, if the worker did not
 * get it. Belongs to the server's thread.
 */
#ifndef AGENT_SERVER_CALL_H
#define AGENT_SERVER_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/python/worker.h"
#include "agent/server/mailbox.h"
#include "base/err.h"
#include "wire/wire.h"

/* The arguments, by method. Owned. */
union call_want {
    struct wire_eval *code;     /* WIRE_EVAL, for complete too; the text follows the struct */
    struct wire_debug *debug;   /* WIRE_DEBUG, WIRE_PAUSE, WIRE_CATCH */
    struct wire_rows_ask *rows; /* WIRE_ROWS */
};

struct call {
    uint32_t peer, id; /* the client that waits; peer 0: this place is free */
    int64_t uid, pid;  /* of the client; -1 if unknown */
    enum wire_method method;
    union call_want want;
    struct mailbox *mailbox;
    struct mailbox_reading *reading; /* what the sampler reads for it; NULL if nothing */
    bool begun;                      /* a worker has it, or had it */
    bool stopped;                    /* its client has asked to stop it */
    /* where a worker had it and did not get the GIL: the time that it had, and whether the main
     * thread has been asked to run it */
    double limit_s;
    bool asked_main;
};

/* A request without arguments in a free place. */
void call_init(struct call *c, struct mailbox *m, uint32_t peer, uint32_t id, enum wire_method method);

/* The place is free again; nobody gets an answer. */
void call_fini(struct call *c);

/* Make the sampler read something for it. 0, or -1 without memory. */
int call_read(struct call *c, enum mailbox_reading_kind kind, int64_t tid);

/* Answer it, and free the place. */
void call_answer_error(struct call *c, const struct err *e);
void call_answer_why(struct call *c, const char *why); /* the same with a text */
void call_answer_evaluated(struct call *c, const struct wire_evaluated *v);
void call_answer_debugger(struct call *c, const struct wire_debugger *d);
void call_answer_rows(struct call *c, const struct wire_rows *r);

#endif
