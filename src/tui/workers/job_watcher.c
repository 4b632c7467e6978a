/* SPDX-License-Identifier: Apache-2.0 */
/* job_watcher: see job_watcher.h. */
#include "tui/workers/job_watcher.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/work.h"
#include "client/fleet/fleet_open.h"
#include "tui/workers/job_judge.h"

#define JOB_WATCHER_TARGET 512
#define JOB_WATCHER_STOP_S 4    /* its judge may take 3 */
#define JOB_WATCHER_WAIT_MS 100 /* until it sees that it is to end */
#define JOB_WATCHER_READ_S 30.0 /* for a moment of the past to be read */

struct job_watcher {
    struct work work;
    const struct fleet_reach *reach;
    /* With the lock. */
    char target[JOB_WATCHER_TARGET];
    unsigned changes;      /* of the target */
    struct job_shot *shot; /* the newest that was not taken */
    struct err error;      /* ERR_OK: none, or it was taken */
};

/* What is watched, as long as the target stays. */
struct job_watching {
    struct job_watcher *watcher;
    char target[JOB_WATCHER_TARGET];
    unsigned changes;
    double moment; /* of the past; NAN: none */
};

/* It ends, or has another target. */
static bool job_watching_ends(void *arg) {
    struct job_watching *one = arg;
    struct job_watcher *w = one->watcher;
    work_lock(&w->work);
    bool ends = w->work.stop || w->changes != one->changes;
    work_unlock(&w->work);
    return ends;
}

/* The shot is taken over; NULL with an error. */
static void job_watching_put(struct job_watching *one, struct job_shot *shot, const struct err *error) {
    struct job_watcher *w = one->watcher;
    if (shot)
        shot->moment = one->moment;
    work_lock(&w->work);
    bool is_old = w->changes != one->changes;
    if (!is_old) {
        job_shot_free(w->shot);
        w->shot = shot;
        w->error = *error;
    }
    work_unlock(&w->work);
    if (is_old)
        job_shot_free(shot);
    else
        work_notify(&w->work);
}

/* What was wrong at a moment that does not change, after its ranks were shown. */
static void job_watching_judge(struct job_watching *one, struct fleet_source *source, bool is_final) {
    struct err e = {.code = ERR_OK};
    struct job_shot *shot = job_shot_new(fleet_source_get(source));
    if (shot)
        shot->is_final = is_final;
    if (shot && job_judge_at(one->target, one->watcher->reach, shot, job_watching_ends, one) == 0)
        job_watching_put(one, shot, &e);
    else
        job_shot_free(shot);
}

/* The ranks as they are now, again and again. */
static void job_watching_follow(struct job_watching *one, struct fleet_source *source) {
    const struct fleet_reach *reach = one->watcher->reach;
    enum err_code before = ERR_OK;
    struct err e;
    struct job_judge *judge = job_judge_new(one->target, reach, &e); /* without one there are no verdicts */
    while (!job_watching_ends(one)) {
        struct pollfd p = {.fd = fleet_source_fd(source), .events = POLLIN};
        if (poll(&p, 1, JOB_WATCHER_WAIT_MS) <= 0)
            continue;
        bool changed = fleet_source_advance(source);
        const struct err *error = fleet_source_error(source);
        struct job_shot *shot =
            changed && error->code == ERR_OK ? job_shot_new(fleet_source_get(source)) : NULL;
        if (shot)
            shot->is_final = source->is_final;
        bool is_judged = shot && shot->is_final && job_judge_wants(shot);
        if (shot && judge && !shot->is_final)
            job_judge_put(judge, shot);
        if (shot || (error->code != ERR_OK && before == ERR_OK))
            job_watching_put(one, shot, error);
        if (is_judged)
            job_watching_judge(one, source, true);
        before = error->code;
    }
    job_judge_free(judge);
}

/* The ranks at a moment: at once, and again with what was wrong then. */
static void job_watching_show(struct job_watching *one, struct fleet_source *source) {
    struct err e = {.code = ERR_OK};
    int rc = fleet_source_fill(source, 1, JOB_WATCHER_READ_S, job_watching_ends, one, &e);
    struct job_shot *shot = rc == 0 ? job_shot_new(fleet_source_get(source)) : NULL;
    bool is_judged = shot && job_judge_wants(shot);
    if (rc == 0 && !shot)
        err_set(&e, ERR_FAILED, "out of memory for the ranks of the job");
    job_watching_put(one, shot, &e);
    if (is_judged)
        job_watching_judge(one, source, false);
}

static void job_watcher_run(void *arg) {
    struct job_watcher *w = arg;
    struct job_watching one = {.watcher = w};
    for (;;) {
        struct err e = {.code = ERR_OK};
        work_lock(&w->work);
        bool stop = w->work.stop;
        one.changes = w->changes;
        memcpy(one.target, w->target, sizeof one.target);
        work_unlock(&w->work);
        if (stop)
            return;
        one.moment = fleet_open_at(one.target);
        struct fleet_source *source = fleet_open(one.target, w->reach, &e);
        if (!source)
            job_watching_put(&one, NULL, &e);
        else if (isnan(one.moment))
            job_watching_follow(&one, source);
        else
            job_watching_show(&one, source);
        fleet_source_close(source);
        work_lock(&w->work);
        while (!w->work.stop && w->changes == one.changes)
            work_wait(&w->work, WORK_FOREVER);
        work_unlock(&w->work);
    }
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

void job_watcher_watch(struct job_watcher *w, const char *target) {
    work_lock(&w->work);
    snprintf(w->target, sizeof w->target, "%s", target);
    w->changes++;
    job_shot_free(w->shot);
    w->shot = NULL;
    w->error = (struct err){.code = ERR_OK};
    work_wake(&w->work);
    work_unlock(&w->work);
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
