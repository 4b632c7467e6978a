/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tasks: tasks of asyncio and what they await, read from memory (from 3.14 on).
 *
 * The extension module _asyncio publishes the layout in a section of its own; each thread has a
 * list of the tasks that it runs. All of it changes during the read, unless the threads sleep:
 * links are checked both ways, and an inconsistent list is read again. Used by the pystack's
 * thread.
 */
#ifndef PYSTACK_TASKS_H
#define PYSTACK_TASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pystack/pystack_internal.h"

#define PYSTACK_TASKS_MAX 2000
#define PYSTACK_ASYNCIO_BYTES 104 /* size of the published struct */

/* What _asyncio publishes: struct Py_AsyncioModuleDebugOffsets (Modules/_asynciomodule.c). */
struct pystack_asyncio {
    int32_t task_size, task_name, task_awaited_by, task_is_task, task_awaited_by_is_set, task_coro, task_node;
    int32_t interp_tasks;
    int32_t tstate_running_task, tstate_tasks;
};

/* Parse the published bytes. 0, or -1 if they are not valid. */
int pystack_asyncio_parse(const uint8_t *bytes, size_t n, struct pystack_asyncio *out);

/* Find what _asyncio publishes, from the files mapped into the target. 0; 1 when it is not
 * loaded; -1 if that is unknown, or this version publishes nothing. */
int pystack_asyncio_find(struct pystack *ps, struct pystack_asyncio *out);

/* Put the tasks of these thread states into the present snapshot (pystack_codes_begin), laid out
 * as in `a`, sorted by thread. `out->tasks` stays NULL without memory. */
void pystack_tasks_read(struct pystack *ps, const struct pystack_asyncio *a,
                        const struct pystack_thread *threads, size_t n, struct model_snapshot *out);

#endif
