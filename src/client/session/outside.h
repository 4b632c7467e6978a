/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outside: a thread of ours that reads a target without an agent, and passes its results to the
 * loop.
 *
 * The reader is a table of functions (for a process: outside_python.h; tests have their own).
 * All of them run on the reader's thread. Requests are few and bounded. Results wait in a
 * bounded queue: the next snapshot of the stream replaces one that was not taken, samples
 * without room are counted as dropped. The loop's side never waits.
 */
#ifndef CLIENT_SESSION_OUTSIDE_H
#define CLIENT_SESSION_OUTSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/model.h"
#include "wire/wire.h"

/* Reading from outside costs the machine more than an agent does, but the job does not pay for
 * it. */
#define OUTSIDE_BUDGET_PCT 5.0 /* of one core; default */
#define OUTSIDE_MAX_BATCHES 64 /* that wait for the loop */
#define OUTSIDE_MAX_ASKED 16   /* requests that wait for the reader */

/* Something that reads a target. 0 or true: success; -1: with the error, ERR_LOST if the target
 * is gone. */
struct outside_reader {
    int (*open)(void *arg, struct model_target *out, struct err *e);
    /* True if it has become another target (after execve) since the last call. Then `out`
     * describes it. */
    bool (*changed)(void *arg, struct model_target *out);
    int (*snapshot)(void *arg, struct model_snapshot *out, struct err *e);
    /* The same with the details in `want`, of its one thread or of all. */
    int (*details)(void *arg, const struct wire_threads *want, struct model_snapshot *out, struct err *e);
    /* Sample every thread; `wanted_ns` is the mean interval. Calls `flush` when its memory is
     * full. */
    int (*tick)(void *arg, uint64_t wanted_ns, void (*flush)(void *flush_arg), void *flush_arg,
                struct err *e);
    /* Number of samples collected; move them to `out` with the definitions they need; or drop
     * them. */
    size_t (*pending)(void *arg);
    int (*take)(void *arg, struct model_sample_batch *out);
    void (*drop)(void *arg);
    void (*pause)(void *arg); /* sampling has stopped */
    /* handle work that is due within milliseconds; true: call again that soon */
    bool (*tend)(void *arg);
    void (*close)(void *arg); /* also after a failed open */
};

enum outside_kind {
    OUTSIDE_ATTACHED = 0, /* target; always the first */
    OUTSIDE_CHANGED,      /* target */
    OUTSIDE_SNAPSHOT,     /* of the stream, or requested */
    OUTSIDE_DETAILS,      /* snapshot, requested */
    OUTSIDE_SAMPLES,
    OUTSIDE_REPLY, /* to `method`; failed: error */
    OUTSIDE_GONE,  /* error has the reason; always the last */
};

/* One result. It owns its contents: free it by outside_event_free, after moving out the wanted
 * parts. */
struct outside_event {
    struct outside_event *next;
    enum outside_kind kind;
    enum wire_method method;
    bool asked; /* a requested snapshot: never replaced */
    bool failed;
    struct err error;
    struct model_target target;
    struct model_snapshot snapshot;
    struct model_sample_batch batch;
};

struct outside;

/* Start the thread, which opens the target. `arg` belongs to the reader and is valid until its
 * close. NULL with the error; then close was not called. */
struct outside *outside_start(const struct outside_reader *reader, void *arg, struct err *e);

/* End the thread and free everything. A blocked thread (the kernel may block readers of a hung
 * process's /proc) is abandoned after two seconds. */
void outside_stop(struct outside *o);

/* Readable while there are results. */
int outside_fd(const struct outside *o);

/* Upper limit of its overhead, in percent of a core, from now on; 0: OUTSIDE_BUDGET_PCT. */
void outside_set_budget(struct outside *o, double budget_pct);

/* The results so far, oldest first; NULL if there are none. */
struct outside_event *outside_take(struct outside *o);
void outside_event_free(struct outside_event *ev);

/* Ask for a snapshot (answered by OUTSIDE_SNAPSHOT, or OUTSIDE_REPLY with an error); for a
 * stream at `rate_hz`, or, with 0, for its end (answered by OUTSIDE_REPLY). 0, or -1 with the
 * error if too many requests wait. */
int outside_ask_snapshot(struct outside *o, struct err *e);
/* Answered by OUTSIDE_DETAILS. */
int outside_ask_details(struct outside *o, const struct wire_threads *want, struct err *e);
int outside_ask_stream(struct outside *o, enum wire_stream stream, double rate_hz, struct err *e);

#endif
