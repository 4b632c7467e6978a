/* SPDX-License-Identifier: Apache-2.0 */
/* host_job: see host_job.h. */
#include "tui/host/host_job.h"

#include "tui/core/app_job.h"

static void host_job_on_news(void *arg) {
    struct host_job *h = arg;
    struct job_shot *shot;
    struct err e;
    int rc = job_watcher_take(h->watcher, &shot, &e);
    if (rc > 0)
        app_job_take(h->app, shot);
    else if (rc < 0)
        app_job_refused(h->app, &e);
    if (rc)
        h->changed(h->arg);
}

static void host_job_leave(struct host_job *h) {
    loop_unwatch(h->watcher_watch);
    job_watcher_free(h->watcher);
    h->watcher_watch = NULL;
    h->watcher = NULL;
}

void host_job_watch(struct host_job *h, const char *target) {
    struct err e;
    if (h->watcher) {
        job_watcher_watch(h->watcher, target);
        return;
    }
    h->watcher = job_watcher_new(target, h->reach, &e);
    if (h->watcher)
        h->watcher_watch = loop_watch_fd(h->loop, job_watcher_fd(h->watcher), host_job_on_news, h, &e);
    if (h->watcher_watch)
        return;
    host_job_leave(h);
    app_job_refused(h->app, &e);
}

/* ---- the job of a process ---- */

/* That a process belongs to a job is an extra: an error is not reported. */
static void host_job_start(struct host_job *h) {
    if (h->wanted > 0 && job_finder_start(h->finder, h->wanted))
        h->wanted = 0;
}

static void host_job_on_found(void *arg) {
    struct host_job *h = arg;
    struct job_finding found;
    if (!job_finder_take(h->finder, &found))
        return;
    if (found.is_found)
        app_job_take_offer(h->app, found.pid, found.job, found.rank, found.world);
    host_job_start(h);
    h->changed(h->arg);
}

void host_job_find(struct host_job *h, pid_t pid) {
    struct err e;
    if (!h->finder) {
        h->finder = job_finder_new(&e);
        if (h->finder)
            h->finder_watch = loop_watch_fd(h->loop, job_finder_fd(h->finder), host_job_on_found, h, &e);
    }
    if (!h->finder_watch)
        return;
    h->wanted = pid;
    host_job_start(h);
}

void host_job_close(struct host_job *h) {
    host_job_leave(h);
    loop_unwatch(h->finder_watch);
    job_finder_free(h->finder);
    h->finder_watch = NULL;
    h->finder = NULL;
}
