/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_each: the same work with each rank of a job, several at a time.
 *
 * Each is worked on in a child (guard.h), so that a rank that blocks whoever touches it takes only
 * its own time.
 */
#ifndef CLIENT_JOBS_JOB_EACH_H
#define CLIENT_JOBS_JOB_EACH_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "client/target/target.h"

#define JOB_EACH_TOGETHER 8

struct job_task {
    pid_t pid;
    int32_t rank;
    int rc; /* of the work: below 0 with the error */
    struct err error;
    struct inject_result result;
};

/* Call `work` with each task. SIGINT, SIGTERM and SIGHUP are left to the caller, which has blocked
 * them: when one is pending, what has begun ends as it does for one process, and nothing else
 * begins. */
void job_each(struct job_task *tasks, size_t n, void (*work)(struct job_task *task));

/* Such work: find the agent of the process, or load it; remove it (rc 1: done, 0: there was none). */
void job_attach(struct job_task *task);
void job_detach(struct job_task *task);

/* What became of it, in a word: "loaded", "ejected", "failed". */
const char *job_attached(const struct job_task *task);
const char *job_detached(const struct job_task *task);

#endif
