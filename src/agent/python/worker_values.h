/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_values: a job of the python worker: texts of values that memory alone does not show.
 *
 * For each variable: if its object is unchanged, in a frame that lives, a reference is taken,
 * the helper is asked, and the reference is released; there are never more than eight. Without a
 * GIL none of this is certain, and nothing is asked.
 */
#ifndef AGENT_PYTHON_WORKER_VALUES_H
#define AGENT_PYTHON_WORKER_VALUES_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/python/worker.h"
#include "base/model.h"

#define WORKER_VALUES_MAX 1024 /* variables of one job */
#define WORKER_VALUES_NO_GIL "this Python runs without a GIL, so nothing keeps an object from going away"

/* A job for the variables of a snapshot that the worker can describe further; NULL if there are
 * none, or without memory. `own`: objects whose type the job has defined are asked for their own
 * repr(). */
struct worker_job *worker_values_new(const struct model_snapshot *s, int64_t tid, bool own,
                                     uint64_t deadline_ns);

/* At any time: put the texts found so far into the same snapshot. A thread is marked torn if a
 * variable of it has changed since. */
void worker_values_apply(const struct worker_job *job, struct model_snapshot *s);

#endif
