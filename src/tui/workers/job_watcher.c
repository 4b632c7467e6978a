/* SPDX-License-Identifier: Apache-2.0 */
/* job_watcher: see job_watcher.h. */
#include "tui/workers/job_watcher.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/work.h"
#include "client/fleet/fleet_open.h"
#include "tui/workers/job_judge.h"

#define JOB_WATCHER_STOP_S 4    /* its judge may take 3 */
#define JOB_WATCHER_WAIT_MS 100 /* until it sees that it is to end */

struct job_watcher {
    struct work work;
    char target[512];
    const struct fleet_reach *reach;
    /* With the lock. */
    struct job_shot *shot; /* the newest that was not taken */
    struct err error;      /* ERR_OK: none, or it was taken */
};

static void job_watcher_put(struct job_watcher *w, struct job_shot *shot, const struct err *error) {
    work_lock(&w->work);
    job_shot_free(w->shot);
    w->shot = shot;
    w->error = *error;
    work_unlock(&w->work);
    work_notify(&w->work);
}

static bool job_watcher_ends(struct job_watcher *w) {
    work_lock(&w->work);
    bool stop = w->work.stop;
    work_unlock(&w->work);
    return stop;
}

static void job_watcher_run(void *arg) {
    struct job_watcher *w = arg;
    struct err e = {.code = ERR_OK};
    enum err_code before = ERR_OK;
    struct fleet_source *source = fleet_open(w->target, w->reach, &e);
    if (!source) {
        job_watcher_put(w, NULL, &e);
        return;
    }
    struct job_judge *judge = job_judge_new(w->target, w->reach, &e); /* without one there are no verdicts */
    while (!job_watcher_ends(w)) {
        struct pollfd p = {.fd = fleet_source_fd(source), .events = POLLIN};
        if (poll(&p, 1, JOB_WATCHER_WAIT_MS) <= 0)
            continue;
        bool changed = fleet_source_advance(source);
        const struct err *error = fleet_source_error(source);
        struct job_shot *shot =
            changed && error->code == ERR_OK ? job_shot_new(fleet_source_get(source)) : NULL;
        if (shot && judge)
            job_judge_put(judge, shot);
        if (shot || (error->code != ERR_OK && before == ERR_OK))
            job_watcher_put(w, shot, error);
        before = error->code;
    }
    job_judge_free(judge);
    fleet_source_close(source);
}

struct job_watcher *job_watcher_new(const char *target, const struct fleet_reach *reach, struct err *e) {
    struct job_watcher *w = calloc(1, sizeof *w);
    int rc = w ? work_init(&w->work) : ENOMEM;
    if (rc == 0) {
        snprintf(w->target, sizeof w->target, "%s", target);
        w->reach = reach;
        rc = work_start(&w->work, job_watcher_run, w);
        if (rc == 0)
            return w;
        work_stop(&w->work, 0);
    }
    err_set_errno(e, ERR_FAILED, rc, "cannot watch the ranks of the job");
    free(w);
    return NULL;
}

void job_watcher_free(struct job_watcher *w) {
    if (!w || !work_stop(&w->work, JOB_WATCHER_STOP_S))
        return;
    job_shot_free(w->shot);
    free(w);
}

int job_watcher_fd(const struct job_watcher *w) { return w->work.fd; }

int job_watcher_take(struct job_watcher *w, struct job_shot **out, struct err *e) {
    *out = NULL;
    if (!work_clear(&w->work))
        return 0;
    work_lock(&w->work);
    *out = w->shot;
    w->shot = NULL;
    *e = w->error;
    w->error = (struct err){.code = ERR_OK};
    work_unlock(&w->work);
    if (*out)
        return 1;
    return e->code != ERR_OK ? -1 : 0;
}
