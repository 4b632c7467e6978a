/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exporter: writes an export to a file, on a thread of its own, for the screens.
 *
 * A job owns everything it is made of, so the screens go on meanwhile. The loop never waits: it
 * starts a job, a descriptor becomes readable, it takes the result. One job at a time.
 */
#ifndef TUI_WORKERS_EXPORTER_H
#define TUI_WORKERS_EXPORTER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/model.h"
#include "base/strbuf.h"
#include "client/export/export.h"
#include "client/samples/sample_filter.h"

#define EXPORTER_MAX ((size_t)512 * 1024 * 1024) /* bytes of a file */

#define EXPORTER_CHOICE 400
#define EXPORTER_WINDOW 64

struct export_job {
    const struct export_format *format;
    char path[PATH_MAX];
    struct strbuf text;           /* the file; filled by the job itself if there are samples */
    struct sample_filter cut;     /* the samples; none: the text is complete already */
    bool by_function;             /* functions instead of lines */
    char choice[EXPORTER_CHOICE]; /* which samples these are, in words: see struct export_data */
    bool is_part;                 /* not the whole window */
    char window[EXPORTER_WINDOW]; /* the time of the samples */
    struct model_target target;   /* the target; its strings are in its own arena */
    double elapsed_s, until_s;    /* see struct export_data */
    struct err error;             /* when it is done; ERR_OK: it was written */
};

/* An empty one; NULL: out of memory. */
struct export_job *export_job_new(const struct export_format *format, const char *path,
                                  const struct model_target *target);
void export_job_free(struct export_job *j); /* NULL: nothing */

/* Render and write it, on the caller's thread; j->error is the result. */
void export_job_do(struct export_job *j);

struct exporter;

struct exporter *exporter_new(struct err *e);
/* A running job gets a second to end, then it is abandoned. */
void exporter_free(struct exporter *x);

/* Readable when a job is done; until exporter_take. */
int exporter_fd(const struct exporter *x);

/* Start; takes ownership of `j`. 0, or -1 with the error: one is running, or there is no thread;
 * then it is freed. */
int exporter_start(struct exporter *x, struct export_job *j, struct err *e);

/* The job that is done, now the caller's; NULL: none. */
struct export_job *exporter_take(struct exporter *x);

#endif
