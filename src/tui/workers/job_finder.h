/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_finder: finds out on a thread of its own which job a process is a rank or the launcher of:
 * processes are examined for that, and the kernel may block who does that for any time.
 */
#ifndef TUI_WORKERS_JOB_FINDER_H
#define TUI_WORKERS_JOB_FINDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "client/jobs/job_find.h"

struct job_finder;

struct job_finding {
    pid_t pid;
    bool is_found; /* a job with several ranks */
    char job[JOB_NAME_MAX];
    int32_t rank; /* -1: it is the launcher */
    int32_t world;
};

/* NULL with the error. */
struct job_finder *job_finder_new(struct err *e);
void job_finder_free(struct job_finder *f);

/* Readable when it is done. */
int job_finder_fd(const struct job_finder *f);

/* Begin. False: it is still busy. */
bool job_finder_start(struct job_finder *f, pid_t pid);

/* Take the answer. False: there is none. */
bool job_finder_take(struct job_finder *f, struct job_finding *out);

#endif
