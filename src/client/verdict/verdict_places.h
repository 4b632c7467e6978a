/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict_places: what rules read of a target again and again, read once: its newest steps and
 * samples, and what a stack is about: it saves, it waits for requests, it is in a backward pass.
 *
 *   temp.verdict_recent   the rows of python.steps within the window
 *   temp.verdict_looks    the samples of the training thread of the last minute:
 *                                             (pid, tid, timestamp, on_cpu, gil, gc, stack_id)
 *   temp.verdict_seen     a view: those samples of which the stack is known, with
 *                         doing   SAVING, LOADING, EVALUATING, COMPILING, STARTING, LOGGING: by its outermost function
 *                                 of that kind; NULL none
 *                         phase   loader, forward, backward, optimizer, comm: part of a training step; NULL none
 *                         wait    request, process, ranks, pipe, thread: what its innermost functions wait for; NULL none
 *                         gpu     what of a GPU it waits for, in its innermost functions: item, synchronize; NULL none.
 *                                 But for torch.cuda's own functions that is known where native frames are kept
 *                         own_*   func, file, lineno of the innermost frame of the job's own code
 *                         at_*    of the job's own code where it does what `doing` says, else of own, else of leaf
 *                         leaf_*  of the innermost frame
 *
 *   temp.verdict_steps    of the newest steps: (pid, last, age, longest, usual, steps, n): times in
 *                                             seconds, the number of steps, and of those whose length is known
 *
 *   temp.verdict_native   looks at the training thread with native frames, of the last minute, if they were asked
 *                         for: (pid, tid, timestamp, op, own_func, own_file, own_line); op as `gpu` above
 *   temp.verdict_workers  DataLoader workers, if they were asked for in this judgement
 *   temp.verdict_threads  the threads and what they wait for, likewise; of a job that has ended those that
 *                         had stood still
 *
 * Functions that are known are rows of one table. A stack keeps its number while an agent lives, so
 * each is looked at once; of steps and samples only new ones are read. Belongs to the thread that
 * has the database.
 */
#ifndef CLIENT_VERDICT_VERDICT_PLACES_H
#define CLIENT_VERDICT_VERDICT_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/model.h"
#include "client/sql/database.h"

/* What the first known function of a class ("doing", "phase", "wait", "gpu") says of a frame, in the words above;
 * NULL: it is none of them. */
const char *verdict_places_find(const char *class, const struct model_frame *f);

/* Make the tables, unless they exist. 0, or -1 with the error. */
int verdict_places_open(struct database *d, struct err *e);

/* What is read of a target. */
struct verdict_scope {
    int64_t pid;
    double tid;      /* the training thread */
    double window_s; /* of its steps */
    /* 0 at first: the window of the last time (another one is read from its beginning), and the newest sample that
     * was read */
    double taken_s, seen_s;
};

/* Bring the tables up to date for a target. 0, or -1 with the error. */
int verdict_places_take(struct database *d, struct verdict_scope *s, struct err *e);

/* Look at the threads of a target, for temp.verdict_threads: by python.threads (`live`), which must be
 * there, or by what was recorded. 0, or -1 with the error, also if there is none. */
int verdict_places_take_threads(struct database *d, int64_t pid, bool live, struct err *e);

/* Look at the training thread with native frames, some times in a tenth of a second, for
 * temp.verdict_native, unless enough is known of the last minute. `number`: of the target in the
 * database. Of a recording there is nothing to look at. 0, or -1 with the error. */
int verdict_places_take_native(struct database *d, size_t number, const struct verdict_scope *s,
                               struct err *e);

/* Look at the DataLoader workers of a target, for temp.verdict_workers: that takes milliseconds for
 * each. The table python.loader_workers must be there. 0, or -1 with the error. */
int verdict_places_take_workers(struct database *d, int64_t pid, struct err *e);

#endif
