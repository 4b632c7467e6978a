/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_file: the trace that torch.profiler has written in a job, moved to where the user wants it.
 *
 * The agent tells its name, and an agent may lie. So only a name of the form that agents make is taken, and it is looked up in the
 * folders in which that process keeps its tables: those of its user alone. What is there is read if it is a plain file of that
 * user, and removed with his rights, not with ours.
 */
#ifndef CLIENT_EXPORT_TRACE_FILE_H
#define CLIENT_EXPORT_TRACE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* The name within its folder of what an agent says process `pid` (as that sees itself) has written: profile-PID-MS.json. It points into
 * `told`. NULL: an agent does not write such a file. */
const char *trace_file_name(const char *told, int64_t pid);

/* Move what the agent of process `pid` says it has written (`told`) to `output`. `stop` (NULL: nothing) is asked often and ends it. 0, or
 * -1 with the error: then the trace stays where it is, and nothing is at `output`. */
int trace_file_move(pid_t pid, const char *told, const char *output, bool (*stop)(void), struct err *e);

#endif
