/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outside: a thread of ours that reads a target without an agent, and hands what it finds to the loop.
 *
 * What reads is given as a table (a process: outside_python.h; a test's own). All of its functions are called by the reader's
 * thread. Requests are few and bounded; results wait in a bounded queue: a snapshot of the stream that nobody took is replaced by
 * the next, samples that find no room are counted as dropped. The loop's side never waits.
 */
#ifndef CLIENT_SESSION_OUTSIDE_H
#define CLIENT_SESSION_OUTSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/model.h"
#include "wire/wire.h"

/* Reading from outside costs the machine more than the agent does, but it is not the job that pays. */
#define OUTSIDE_BUDGET_PCT 5.0 /* of one core, unless told */
#define OUTSIDE_MAX_BATCHES 64 /* waiting for the loop */
#define OUTSIDE_MAX_ASKED 16   /* requests waiting for the reader */

/* Something that reads a target. 0 or true: well; -1: with the error, ERR_LOST when the target is gone. */
struct outside_reader {
    int (*open)(void *arg, struct model_target *out, struct err *e);
    /* Has it become another target (after execve) since the last call? Then `out` says which. */
    bool (*changed)(void *arg, struct model_target *out);
    int (*snapshot)(void *arg, struct model_snapshot *out, struct err *e);
    /* The same with what `want` says, of its one thread or of all. */
    int (*details)(void *arg, const struct wire_threads *want, struct model_snapshot *out, struct err *e);
    /* Look at every thread; `wanted_ns` is the mean time between looks. Calls `flush` when it can hold no more. */
    int (*tick)(void *arg, uint64_t wanted_ns, void (*flush)(void *flush_arg), void *flush_arg,
                struct err *e);
    /* Number of samples collected; move them to `out` with the definitions they need; or forget them. */
    size_t (*pending)(void *arg);
    int (*take)(void *arg, struct model_sample_batch *out);
    void (*drop)(void *arg);
    void (*pause)(void *arg); /* nobody samples any more */
    bool (*tend)(void *arg);  /* does something have to be seen to within milliseconds? Called again then. */
    void (*close)(void *arg); /* also after a failed open */
};

enum outside_kind {
    OUTSIDE_ATTACHED = 0, /* target; the first of all */
    OUTSIDE_CHANGED,      /* target */
    OUTSIDE_SNAPSHOT,     /* of the stream, or asked for */
    OUTSIDE_DETAILS,      /* snapshot, asked for */
    OUTSIDE_SAMPLES,
    OUTSIDE_REPLY, /* to `method`; failed: error */
    OUTSIDE_GONE,  /* error says why; the last of all */
};

/* One result. What it holds belongs to whoever took it: outside_event_free, after moving out what is wanted. */
struct outside_event {
    struct outside_event *next;
    enum outside_kind kind;
    enum wire_method method;
    bool asked; /* a snapshot that was asked for: never replaced */
    bool failed;
    struct err error;
    struct model_target target;
    struct model_snapshot snapshot;
    struct model_sample_batch batch;
};

struct outside;

/* Start the thread, which opens the target. `arg` is the reader's and stays valid until its close. NULL with the error; then
 * close was not called. */
struct outside *outside_start(const struct outside_reader *reader, void *arg, struct err *e);

/* End the thread and free everything. One that is stuck (the kernel may hold up who reads /proc of a hung process) is left to
 * itself after two seconds. */
void outside_stop(struct outside *o);

/* Readable while there are results. */
int outside_fd(const struct outside *o);

/* What it may cost at most, in percent of a core, from now on; 0: OUTSIDE_BUDGET_PCT. */
void outside_set_budget(struct outside *o, double budget_pct);

/* The results so far, oldest first; NULL none. */
struct outside_event *outside_take(struct outside *o);
void outside_event_free(struct outside_event *ev);

/* Ask for a snapshot (answered by OUTSIDE_SNAPSHOT, or OUTSIDE_REPLY with an error), for a stream at `rate_hz`, or, with 0, for
 * no more of it (answered by OUTSIDE_REPLY). 0, or -1 with the error: too much is waiting. */
int outside_ask_snapshot(struct outside *o, struct err *e);
/* Answered by OUTSIDE_DETAILS. */
int outside_ask_details(struct outside *o, const struct wire_threads *want, struct err *e);
int outside_ask_stream(struct outside *o, enum wire_stream stream, double rate_hz, struct err *e);

#endif
