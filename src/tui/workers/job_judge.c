/* SPDX-License-Identifier: Apache-2.0 */
/* job_judge: see job_judge.h. */
#include "tui/workers/job_judge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/work.h"
#include "client/fleet/fleet_open.h"
#include "client/fleet/fleet_watch.h"
#include "client/jobs/jobs_here.h"
#include "client/fleet/watch_there.h"

#define JOB_JUDGE_STOP_S 3
#define JOB_JUDGE_END_S 2.0 /* ranks stand still for less: it goes on */
#define JOB_JUDGE_NEXT_NS CLOCK_NS_PER_S

struct job_judge {
    struct work work;
    char target[512];
    const struct fleet_reach *reach;
    /* With the lock. */
    bool is_wanted;
    struct fleet_verdicts verdicts; /* the newest; none while it is not wanted */
};

/* ---- the thread ---- */

/* With the lock: replace the verdicts. */
static void job_judge_set(struct job_judge *j, struct fleet_verdicts *v) {
    fleet_verdicts_fini(&j->verdicts);
    j->verdicts = *v;
    *v = (struct fleet_verdicts){.n = 0};
}

/* Read and judge until it is no longer wanted. Where that fails there is no verdict. */
static void job_judge_follow(struct job_judge *j, struct fleet_watch *watch, struct watch_there *there) {
    struct fleet_verdicts v = {.n = 0};
    struct err e;
    bool goes_on = true;
    while (goes_on) {
        uint64_t next_ns = clock_mono_ns() + JOB_JUDGE_NEXT_NS;
        bool read = fleet_watch_read(watch, true, &e) == 0;
        /* hosts that come late, ranks that are started again */
        bool renewed = read && there && watch_there_renew(there, &e) != 0;
        watch = there ? there->watch : watch;
        bool judged = read && !renewed && fleet_watch_judge(watch, &v, &e) == 0;
        work_lock(&j->work);
        if (judged && j->is_wanted)
            job_judge_set(j, &v);
        while (j->is_wanted && !j->work.stop && work_wait(&j->work, next_ns))
            ;
        goes_on = j->is_wanted && !j->work.stop;
        work_unlock(&j->work);
        fleet_verdicts_fini(&v);
        v = (struct fleet_verdicts){.n = 0};
    }
}

/* The ranks of other hosts. */
static void job_judge_watch_there(struct job_judge *j) {
    struct watch_there there;
    struct err e;
    if (watch_there_open(&there, j->target, j->reach, &e) == 0)
        job_judge_follow(j, there.watch, &there);
    watch_there_close(&there);
}

static void job_judge_watch(struct job_judge *j) {
    struct jobs_here here;
    struct rank_set ranks = {.n = 0};
    struct err e;
    const struct job *job =
        jobs_here_read(&here, 0, &e) == 0 ? jobs_here_choose(&here, j->target, &ranks, &e) : NULL;
    struct fleet_watch *watch = job ? fleet_watch_new(&here, job, &ranks, &e) : NULL;
    if (watch)
        job_judge_follow(j, watch, NULL);
    fleet_watch_free(watch);
    rank_set_fini(&ranks);
    jobs_here_fini(&here);
}

static void job_judge_run(void *arg) {
    struct job_judge *j = arg;
    work_lock(&j->work);
    while (!j->work.stop) {
        if (!j->is_wanted) {
            work_wait(&j->work, WORK_FOREVER);
            continue;
        }
        work_unlock(&j->work);
        if (fleet_open_is_far(j->target, j->reach))
            job_judge_watch_there(j);
        else
            job_judge_watch(j);
        work_lock(&j->work);
        /* it could not be watched: not again at once */
        if (j->is_wanted && !j->work.stop)
            work_wait(&j->work, clock_mono_ns() + JOB_JUDGE_NEXT_NS);
    }
    work_unlock(&j->work);
}

/* ---- whoever watches the job ---- */

struct job_judge *job_judge_new(const char *target, const struct fleet_reach *reach, struct err *e) {
    struct job_judge *j = calloc(1, sizeof *j);
    int rc = j ? work_init(&j->work) : ENOMEM;
    if (rc == 0) {
        snprintf(j->target, sizeof j->target, "%s", target);
        j->reach = reach;
        rc = work_start(&j->work, job_judge_run, j);
        if (rc == 0)
            return j;
        work_stop(&j->work, 0);
    }
    err_set_errno(e, ERR_FAILED, rc, "cannot judge the ranks of the job");
    free(j);
    return NULL;
}

void job_judge_free(struct job_judge *j) {
    if (!j || !work_stop(&j->work, JOB_JUDGE_STOP_S))
        return;
    fleet_verdicts_fini(&j->verdicts);
    free(j);
}

bool job_judge_wants(const struct job_shot *s) { return s->still_s >= JOB_SHOT_JUDGED_S; }

int job_judge_at(const char *target, const struct fleet_reach *reach, struct job_shot *s,
                 bool (*stop)(void *arg), void *arg) {
    struct watch_there there;
    struct fleet_verdicts v = {.n = 0};
    struct err e;
    int rc = watch_there_open(&there, target, reach, &e);
    if (rc == 0)
        rc = watch_there_ask(&there, FLEET_WATCH_WAIT_S, stop, arg, &v, &e);
    if (rc == 0 && stop(arg))
        rc = -1;
    if (rc == 0)
        job_shot_put_verdicts(s, &v);
    fleet_verdicts_fini(&v);
    watch_there_close(&there);
    return rc;
}

void job_judge_put(struct job_judge *j, struct job_shot *s) {
    struct fleet_verdicts none = {.n = 0};
    work_lock(&j->work);
    bool wanted = j->is_wanted ? s->still_s >= JOB_JUDGE_END_S : job_judge_wants(s);
    if (wanted != j->is_wanted) {
        j->is_wanted = wanted;
        job_judge_set(j, &none);
        work_wake(&j->work);
    }
    job_shot_put_verdicts(s, &j->verdicts);
    work_unlock(&j->work);
}
