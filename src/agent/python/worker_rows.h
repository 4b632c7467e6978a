/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_rows: a job of the python worker: rows that a generator of a unit makes.
 *
 * The unit's function is called with one dict of arguments and returns a generator. It yields:
 * - first a tuple of texts: the names of the columns; then each tuple is a row of None, bool,
 *   int, float and str;
 * - None: a piece of work is done, about 100 us, and others may have the GIL;
 * - a float: the same, but it is too early to continue: others have the GIL for some ms;
 * - a str: a note with the reason for missing data;
 * - an int: a request for that one of the variables of running frames. It is put into the dict
 *   as 'root', if its frame still exists, and must be removed and released before the next None.
 *   The dict's 'roots' is a list with a tuple for each: (name, function, file, line, tid,
 *   thread, depth, name of its type).
 * - a list of ints (address, kind as a character's number, width, then the shape, then the
 *   strides): a request for statistics of the numbers at that address, which are made without
 *   the GIL. 'answer' is then (count, nan, inf, zeros, min, max, mean, std, the counts of 20
 *   bins as a text), or None. For a list of such lists 'answer' is a list with (sum of squares
 *   of its finite numbers, number of others) or None for each; None if there are too many.
 * - bytes: a document of torch's flight recorder, which is read without the GIL (flight.h). 'answer'
 *   is then a list with a tuple for each group (number, name, description, backend, enqueued,
 *   completed, p2p, timeout in ms, and of the oldest open collective number, operation, bytes,
 *   dtype; -1 or None: unknown), or a str: why it could not be read. If the dict has 'apart_ns',
 *   the unit used that much CPU time while it did not have the GIL.
 *
 * If 'stop' appears in the dict, nobody waits for more: the generator releases large objects in
 * pieces, and then returns.
 */
#ifndef AGENT_PYTHON_WORKER_ROWS_H
#define AGENT_PYTHON_WORKER_ROWS_H

#include "agent/python/worker.h"
#include "base/model.h"
#include "wire/wire.h"

#define WORKER_ROWS_BYTES ((size_t)8 * 1024 * 1024) /* of all rows of one answer */
#define WORKER_ROWS_ROOTS 4096                      /* variables of frames */

/* The request. */
struct worker_rows_request {
    const char *unit, *function;     /* must outlive the job */
    const struct wire_rows_ask *ask; /* its arguments; copied */
    /* the source of the variables; copied. NULL: there are none */
    const struct model_snapshot *roots;
};

/* NULL without memory. */
struct worker_job *worker_rows_new(const struct worker_rows_request *request, uint64_t deadline_ns);

/* A count of its progress; at any time. It does not change while the job waits for the GIL. */
uint64_t worker_rows_progress(const struct worker_job *job);

/* Stop early: the rows collected so far are returned, and `more` is set, unless the unit has read all (args['whole']).
 * At any time. */
void worker_rows_stop(struct worker_job *job);

/* The result after it has ended; points into the job. */
void worker_rows_get(const struct worker_job *job, struct wire_rows *out);

#endif
