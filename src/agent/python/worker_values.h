/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_values: a job of the python worker: texts of values that memory alone does not tell.
 *
 * For each variable: is it still what it was, in a frame that lives? Then a reference is taken, the helper asked, and the
 * reference given back; there are never more than eight. Where there is no GIL none of this is certain, and nothing is asked.
 */
#ifndef AGENT_PYTHON_WORKER_VALUES_H
#define AGENT_PYTHON_WORKER_VALUES_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/python/worker.h"
#include "base/model.h"

#define WORKER_VALUES_MAX 1024 /* variables of one job */
#define WORKER_VALUES_NO_GIL "this Python runs without a GIL, so nothing keeps an object from going away"

/* A job for the variables of a snapshot of which more can be told; NULL when there are none, or without memory. `own`: those
 * whose type the job has made are asked for their own repr(). */
struct worker_job *worker_values_new(const struct model_snapshot *s, int64_t tid, bool own,
                                     uint64_t deadline_ns);

/* At any time: put the texts found so far into the same snapshot. A thread of which a variable has gone on since is marked torn. */
void worker_values_apply(const struct worker_job *job, struct model_snapshot *s);

#endif
