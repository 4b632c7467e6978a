/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jobs_here: the jobs whose ranks are processes of this machine, and targets that name one.
 *
 * "job:NAME" is all ranks of a job, "job:NAME/0-3,7" some; NAME may also be the hash of the name, or
 * the pid of a rank or a launcher, or nothing if there is only one job.
 */
#ifndef CLIENT_JOBS_JOBS_HERE_H
#define CLIENT_JOBS_JOBS_HERE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "client/jobs/job_find.h"
#include "client/jobs/rank_set.h"
#include "client/target/target.h"

#define JOBS_TARGET "job:"

struct jobs_here {
    struct target_process *list; /* owned; members of jobs are indexes in it */
    size_t n;
    bool is_cut; /* the time was over before all were read */
    struct jobs jobs;
};

/* Find them. `limit_ms`: only what the kernel knows within that time (target_list_brief); 0: all.
 * 0, or -1 with the error. jobs_here_fini frees, on failure too. */
int jobs_here_read(struct jobs_here *h, unsigned limit_ms, struct err *e);
void jobs_here_fini(struct jobs_here *h);

/* The process of a member. */
const struct target_process *jobs_here_process(const struct jobs_here *h, const struct job_member *m);

/* The job that a text names, with or without "job:" before it, and its ranks here that are meant,
 * in `ranks`. NULL with the error: the job or a rank is not here. */
const struct job *jobs_here_choose(const struct jobs_here *h, const char *text, struct rank_set *ranks,
                                   struct err *e);

/* Is it a target that names a job? */
bool jobs_is_target(const char *text);

/* The pids of the ranks that such a target names, by rank, in `*pids`, which the caller frees. Their
 * number, or -1 with the error. */
ssize_t jobs_here_resolve(const char *text, pid_t **pids, struct err *e);

/* The same for a request that takes one process. 0, or -1 with the error: it names several. */
int jobs_here_resolve_one(const char *text, pid_t *pid, struct err *e);

#endif
