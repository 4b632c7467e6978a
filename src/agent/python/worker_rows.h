/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_rows: a job of the python worker: rows that a generator of a unit makes.
 *
 * The unit's function is called with one dict of arguments and gives a generator. What that yields:
 *   - first a tuple of texts: the names of the columns; then each tuple is a row, of None, bool, int, float and str;
 *   - None: a piece of work is done, some 100 us, and others may have the GIL;
 *   - a float: the same, and it is too early to go on: others have the GIL for some ms;
 *   - a str: a note, why something is not known;
 *   - an int: it wants that one of the variables of running frames, which is put into the dict as 'root', if its frame is still there:
 *     to be taken out and let go of before the next None. The dict's 'roots' is a list with a tuple for each:
 *     (name, function, file, line, tid, thread, depth, name of its type).
 *   - a list of ints (address, kind as a character's number, width, then the shape, then the strides): statistics of the numbers that lie
 *     there are made, without the GIL; 'answer' is then (count, nan, inf, zeros, min, max, mean, std, the counts of 20 bins as a text),
 *     or None. A list of such lists: 'answer' is a list with (sum of squares of its finite numbers, how many are not finite) or None
 *     for each; None when there are too many.
 * When 'stop' appears in the dict nobody waits for more: what is large is to be given back in pieces, and then it returns.
 */
#ifndef AGENT_PYTHON_WORKER_ROWS_H
#define AGENT_PYTHON_WORKER_ROWS_H

#include "agent/python/worker.h"
#include "base/model.h"
#include "wire/wire.h"

#define WORKER_ROWS_BYTES ((size_t)8 * 1024 * 1024) /* of all rows of one answer */
#define WORKER_ROWS_ROOTS 4096                      /* variables of frames */

/* What is wanted. */
struct worker_rows_request {
    const char *unit, *function;        /* live as long as the job */
    const struct wire_rows_ask *ask;    /* its arguments; copied */
    const struct model_snapshot *roots; /* whose variables can be had; copied. NULL: none can */
};

/* NULL without memory. */
struct worker_job *worker_rows_new(const struct worker_rows_request *wish, uint64_t deadline_ns);

/* How often it has got on; at any time. Of one that waits for the GIL it does not change. */
uint64_t worker_rows_progress(const struct worker_job *job);

/* Stop early: the rows collected so far are returned, and `more` is set. At any time. */
void worker_rows_stop(struct worker_job *job);

/* After it has ended: what it made; points into the job. */
void worker_rows_get(const struct worker_job *job, struct wire_rows *out);

#endif
