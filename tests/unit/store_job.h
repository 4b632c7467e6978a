/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_job: folders of ring files as jobs leave them, and a session over them. For the tests of src/store/sql/.
 *
 * Every value follows from the number of its row, so a test can work out what a query must give.
 */
#ifndef TESTS_STORE_JOB_H
#define TESTS_STORE_JOB_H

#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "store/ring/ring.h"
#include "store/ring/ring_tables.h"
#include "store/sql/sql.h"

struct job {
    char dir[64];
    int64_t pid, rank;
    double made_at; /* its next tables; 0: now */
};

/* Make an empty folder. */
void job_make(struct job *j, int64_t pid, int64_t rank);
void job_remove(struct job *j);

/* A table of the job, to be filled and closed. */
struct ring *job_table(const struct job *j, const struct ring_table_def *def, size_t bytes);

/* Stacks 1 to 5: 1 is main, n below n - 1. Frames likewise: func f1..f5 in file /job/a.py, line 10 * n. */
void job_stacks(const struct job *j);

/* An empty table for n samples. */
struct ring *job_sample_table(const struct job *j, size_t n);

/* Samples, and these stacks: row n at `t0` + n * 10 ms, thread 100 + n % 4, stack 1 + n % 5, on the CPU when n % 3 is not 0, GIL n % 3. */
void job_samples(const struct job *j, double t0, size_t n);

/* Definitions of tables that the project does not have yet but whose queries must run. */
extern const struct ring_table_def job_profiling_data, job_torch_trace, job_training_logs, job_comm_metrics,
    job_gpu_metrics, job_memory_allocations, job_of_later;

/* A session over some jobs; now() is `now`. */
struct sql *job_session(const struct job *jobs, size_t n, double now);

/* All rows of all statements as text: values separated by |, rows by newlines, NULL as "". NULL with the error. */
char *job_query(struct sql *s, const char *text, struct err *e);

/* The same; fails the test on an error. Freed by free(). */
char *job_rows(struct sql *s, const char *text);

/* Fails the test unless the query gives exactly this. */
void job_expect(struct sql *s, const char *text, const char *rows);

/* Fails the test unless the query fails with a line that has `why` in it. */
void job_refused(struct sql *s, const char *text, const char *why);

#endif
