/* SPDX-License-Identifier: Apache-2.0 */
/*
 * native_worker: a thread that finds the names of native frames, so that the loop does not wait.
 *
 * Results come out in the order in which work went in. Both queues are bounded. The loop's side
 * never waits.
 */
#ifndef CLIENT_SYMBOLS_NATIVE_WORKER_H
#define CLIENT_SYMBOLS_NATIVE_WORKER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/model.h"
#include "wire/wire.h"

#define NATIVE_WORKER_MAX 64 /* snapshots and batches under way; others are dropped, */
#define NATIVE_WORKER_BYTES ((size_t)64 * 1024 * 1024) /* also when those take so much */

enum native_work_kind {
    NATIVE_WORK_SNAPSHOT = 0,
    NATIVE_WORK_BATCH,
    NATIVE_WORK_REPLY, /* comes out after what went in before, without work */
};

struct native_work {
    struct native_work *next;
    size_t bytes; /* its size, as far as it is counted */
    enum native_work_kind kind;
    bool failed; /* out of memory: its content is useless */
    enum wire_method method;
    struct model_snapshot snapshot;
    struct model_sample_batch batch;
};

struct native_worker;

/* For process `pid` (native_names_new). NULL with the error. */
struct native_worker *native_worker_start(pid_t pid, struct err *e);

/* End the thread. If it is stuck in a file, it is abandoned after two seconds. */
void native_worker_stop(struct native_worker *w);

/* Readable while there are results. */
int native_worker_fd(const struct native_worker *w);

/* Hand over; the argument is moved out in any case. 0, or -1 if there is no room. */
int native_worker_put_snapshot(struct native_worker *w, struct model_snapshot *s);
int native_worker_put_batch(struct native_worker *w, struct model_sample_batch *b);
int native_worker_put_reply(struct native_worker *w, enum wire_method method);

/* A new stream starts: numbers of earlier ones are invalid. */
void native_worker_forget(struct native_worker *w);

/* Results so far, oldest first; NULL none. Move out what is wanted, then call native_work_free. */
struct native_work *native_worker_take(struct native_worker *w);
void native_work_free(struct native_work *work);

#endif
