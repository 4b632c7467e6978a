/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_file: moves the trace that torch.profiler has written in a job to where the user wants
 * it.
 *
 * The agent gives its name, and an agent may lie. So only a name of the form that agents make is
 * accepted, and only in the folders in which that process keeps its tables: those of its user
 * alone. The file is read if it is a regular file of that user, and removed with that user's
 * rights, not with ours.
 */
#ifndef CLIENT_EXPORT_TRACE_FILE_H
#define CLIENT_EXPORT_TRACE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* The name within its folder of the file that the agent of process `pid` (as that sees itself)
 * claims to have written: profile-PID-MS.json. It points into `told`. NULL: an agent does not
 * write such a file. */
const char *trace_file_name(const char *told, int64_t pid);

/* Move the file that the agent of process `pid` claims to have written (`told`) to `output`.
 * `stop` (NULL: none) is called often and ends it. 0, or -1 with the error: then the trace stays
 * where it is, and nothing is at `output`. */
int trace_file_move(pid_t pid, const char *told, const char *output, bool (*stop)(void), struct err *e);

#endif
