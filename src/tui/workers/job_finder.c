/* SPDX-License-Identifier: Apache-2.0 */
/* job_finder: see job_finder.h. */
#include "tui/workers/job_finder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/work.h"
#include "client/jobs/jobs_here.h"

#define JOB_FINDER_STOP_S 1

struct job_finder {
    struct work work;
    struct job_finding finding; /* the worker's while it is running */
};

static void job_finder_run(void *arg) {
    struct job_finding *out = &((struct job_finder *)arg)->finding;
    struct jobs_here here;
    struct err e;
    if (jobs_here_read(&here, 0, &e) == 0) {
        const struct job *job = NULL;
        const struct job_member *m = jobs_member(&here.jobs, out->pid, &job);
        bool is_part = m && (m->role == JOB_RANK || m->role == JOB_LAUNCHER);
        if (is_part && (job->world > 1 || job->n_ranks > 1)) {
            out->is_found = true;
            out->rank = m->rank;
            out->world = job->world;
            snprintf(out->job, sizeof out->job, "%s", job->name);
        }
    }
    jobs_here_fini(&here);
}

struct job_finder *job_finder_new(struct err *e) {
    struct job_finder *f = calloc(1, sizeof *f);
    int rc = f ? work_init(&f->work) : ENOMEM;
    if (rc == 0)
        return f;
    err_set_errno(e, ERR_FAILED, rc, "cannot look for the job of a process");
    free(f);
    return NULL;
}

void job_finder_free(struct job_finder *f) {
    if (f && work_stop(&f->work, JOB_FINDER_STOP_S))
        free(f);
}

int job_finder_fd(const struct job_finder *f) { return f->work.fd; }

bool job_finder_start(struct job_finder *f, pid_t pid) {
    if (f->work.is_running)
        return false;
    f->finding = (struct job_finding){.pid = pid, .rank = -1};
    return work_start(&f->work, job_finder_run, f) == 0;
}

bool job_finder_take(struct job_finder *f, struct job_finding *out) {
    if (!work_finish(&f->work))
        return false;
    *out = f->finding;
    return true;
}
