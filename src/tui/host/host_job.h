/* SPDX-License-Identifier: Apache-2.0 */
/* host_job: watches the ranks of a job for the app, and finds the job of a rank; on the host's loop. */
#ifndef TUI_HOST_HOST_JOB_H
#define TUI_HOST_HOST_JOB_H

#include "client/loop.h"
#include "tui/core/app.h"
#include "tui/workers/job_finder.h"
#include "tui/workers/job_watcher.h"

struct host_job {
    struct app *app;
    struct loop *loop;
    const struct fleet_reach *reach;
    void (*changed)(void *arg); /* the app has got something */
    void *arg;

    struct job_watcher *watcher; /* NULL: no job is watched */
    struct job_finder *finder;   /* NULL until one is looked for */
    struct loop_watch *watcher_watch, *finder_watch;
    pid_t wanted; /* to be found once the finder is free; 0: none */
};

/* Watch a job; the one before is left. */
void host_job_watch(struct host_job *h, const char *target);

/* Find the job of a process. */
void host_job_find(struct host_job *h, pid_t pid);

void host_job_close(struct host_job *h);

#endif
