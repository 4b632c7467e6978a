/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote_exec: the agent is brought in by the interpreter itself (PEP 768, CPython 3.14 and later).
 *
 * For where no thread may be borrowed but memory may be written to: a script's path and a flag are written into the main
 * thread's state, and the interpreter runs the script when that thread comes to a safe point. No thread is stopped. If it does
 * not come in time, the flag is taken back and the files are removed.
 */
#ifndef INJECT_REMOTE_EXEC_H
#define INJECT_REMOTE_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/agent_abi.h"
#include "base/err.h"
#include "inject/inject.h"

struct remote_exec_result {
    bool reused;                    /* a parked agent was started again, nothing was loaded */
    struct agent_remote_exec agent; /* its answer: AGENT_STARTED or AGENT_ALREADY in `result` */
};

/* Bring the agent in, whose bytes these are, until `deadline_ns` (CLOCK_MONOTONIC), through `mem` (mem_open_image). 0, or -1 with the reason as a clause (ERR_LOST:
 * the target has ended). `stop_asked` is asked now and then whether to give up; `req->find_door` is not NULL. */
int remote_exec_enter(const struct inject_request *req, const struct mem *mem, const uint8_t *bytes,
                      size_t size, uint64_t deadline_ns, bool (*stop_asked)(void),
                      struct remote_exec_result *out, struct err *e);

#endif
