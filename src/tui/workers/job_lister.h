/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_lister: the jobs of a database, read on a thread of its own, for the choice of one.
 *
 * One list at a time; a thread that waits for the server when the lister is freed is abandoned.
 */
#ifndef TUI_WORKERS_JOB_LISTER_H
#define TUI_WORKERS_JOB_LISTER_H

#include "base/err.h"
#include "client/fleet/engine_jobs.h"

struct job_lister;

/* `address`: clickhouse://HOST/DATABASE; copied. NULL with the error. */
struct job_lister *job_lister_new(const char *address, struct err *e);
void job_lister_free(struct job_lister *l);

/* Readable when a list is done; until job_lister_take. */
int job_lister_fd(const struct job_lister *l);

/* Start; does nothing while a list is being read. 0, or -1 with the error. */
int job_lister_start(struct job_lister *l, struct err *e);

/* 1: the jobs, which are the caller's (engine_jobs_fini); 0: nothing is done yet; -1 with the error. */
int job_lister_take(struct job_lister *l, struct engine_jobs *out, struct err *e);

#endif
