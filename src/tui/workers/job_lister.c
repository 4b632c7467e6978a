/* SPDX-License-Identifier: Apache-2.0 */
/* job_lister: see job_lister.h. */
#include "tui/workers/job_lister.h"

#include <errno.h>
#include <stdlib.h>

#include "base/work.h"

#define JOB_LISTER_STOP_S 2 /* a request ends within one */

struct job_lister {
    struct work work;
    struct engine_address address;
    /* The worker's while it is running. */
    struct engine_jobs jobs;
    int rc;
    struct err error;
};

/* Nobody waits for the list any more. */
static bool job_lister_is_stopped(void *arg) {
    struct work *w = arg;
    pthread_mutex_lock(&w->lock);
    bool stop = w->stop;
    pthread_mutex_unlock(&w->lock);
    return stop;
}

static void job_lister_run(void *arg) {
    struct job_lister *l = arg;
    l->rc = engine_address_read_password(&l->address, &l->error);
    struct engine_http *h = l->rc == 0 ? engine_http_open(&l->address, &l->error) : NULL;
    if (h)
        engine_http_set_stop(h, job_lister_is_stopped, &l->work);
    l->rc = h ? engine_jobs_read(&l->jobs, h, &l->error) : -1;
    engine_http_close(h);
}

struct job_lister *job_lister_new(const char *address, struct err *e) {
    struct job_lister *l = calloc(1, sizeof *l);
    if (l && engine_address_parse(&l->address, address, e) != 0) {
        free(l);
        return NULL;
    }
    int rc = l ? work_init(&l->work) : ENOMEM;
    if (rc == 0)
        return l;
    err_set_errno(e, ERR_FAILED, rc, "cannot read the jobs of a database");
    free(l);
    return NULL;
}

int job_lister_fd(const struct job_lister *l) { return l->work.fd; }

int job_lister_start(struct job_lister *l, struct err *e) {
    if (l->work.is_running)
        return 0;
    engine_jobs_fini(&l->jobs);
    int rc = work_start(&l->work, job_lister_run, l);
    return rc == 0 ? 0 : err_set_errno(e, ERR_FAILED, rc, "cannot read the jobs of a database");
}

int job_lister_take(struct job_lister *l, struct engine_jobs *out, struct err *e) {
    *out = (struct engine_jobs){.n = 0};
    if (!work_finish(&l->work))
        return 0;
    if (l->rc != 0) {
        *e = l->error;
        return -1;
    }
    *out = l->jobs;
    l->jobs = (struct engine_jobs){.n = 0};
    return 1;
}

void job_lister_free(struct job_lister *l) {
    if (!l || !work_stop(&l->work, JOB_LISTER_STOP_S))
        return;
    engine_jobs_fini(&l->jobs);
    free(l);
}
