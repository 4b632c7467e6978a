/* SPDX-License-Identifier: Apache-2.0 */
/* job_rows: what is known of jobs as rows, for people and for programs (client/sql/result.h). */
#ifndef CLIENT_FLEET_JOB_ROWS_H
#define CLIENT_FLEET_JOB_ROWS_H

#include "client/fleet/fleet.h"
#include "client/jobs/job_each.h"
#include "client/jobs/jobs_here.h"
#include "client/sql/result.h"

/* A row for each job and host. NULL: out of memory. */
struct result *job_rows_nodes(const struct jobs_here *h, const struct job *only);

/* A row for each rank: processes, and ranks that are missing here. `only` NULL: of all jobs; then
 * `ranks` is NULL, too. `fleet`: what they do; NULL unknown. NULL: out of memory. */
struct result *job_rows_ranks(const struct jobs_here *h, const struct job *only, const struct rank_set *ranks,
                              const struct fleet *fleet);

/* A row for each rank that was worked on, and for each that is missing. `done` puts what became of
 * one in a word. NULL: out of memory. */
struct result *job_rows_tasks(const struct jobs_here *h, const struct job *job, const struct job_task *tasks,
                              size_t n, const char *(*done)(const struct job_task *task));

#endif
