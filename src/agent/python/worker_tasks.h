/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_tasks: a job of the python worker: the tasks of asyncio, from its own Python objects
 * (up to 3.13).
 */
#ifndef AGENT_PYTHON_WORKER_TASKS_H
#define AGENT_PYTHON_WORKER_TASKS_H

#include "agent/python/worker.h"
#include "base/model.h"

#define WORKER_TASKS_MAX 2000 /* tasks of one answer */

/* NULL without memory. */
struct worker_job *worker_tasks_new(uint64_t deadline_ns);

/* After it was done: put the tasks into a snapshot, at the threads that run their loops. */
void worker_tasks_apply(const struct worker_job *job, struct model_snapshot *s);

#endif
