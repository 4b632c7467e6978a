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
#include "client/fleet/watch_there.h"

#define JOB_JUDGE_STOP_S 3
#define JOB_JUDGE_END_S 2.0 /* ranks stand still for less: it goes on */
#define JOB_JUDGE_NEXT_NS CLOCK_NS_PER_S
#define JOB_JUDGE_FIND_NS (3 * CLOCK_NS_PER_S) /* between two searches for ranks that have no process */

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

/* What is watched: ranks of other hosts, or of this one. */
struct job_judge_watched {
    struct watch_there there;
    struct fleet_watch *here; /* NULL: of other hosts */
    uint64_t found_ns;
};

static struct fleet_watch *job_judge_watch_of(const struct job_judge_watched *w) {
    return w->here ? w->here : w->there.watch;
}

/* Hosts that come late, ranks that are started later or again. Whether there are any, or it is not known. */
static bool job_judge_renew(const struct job_judge *j, struct job_judge_watched *w, struct err *e) {
    uint64_t now = clock_mono_ns();
    if (!w->here)
        return watch_there_renew(&w->there, e) != 0;
    if (now - w->found_ns < JOB_JUDGE_FIND_NS)
        return false;
    w->found_ns = now;
    return fleet_watch_renew(&w->here, j->target, e) != 0;
}

/* Read and judge until it is no longer wanted. Where that fails there is no verdict. */
static void job_judge_follow(struct job_judge *j, struct job_judge_watched *w) {
    struct fleet_verdicts v = {.n = 0};
    struct err e;
    bool goes_on = true;
    w->found_ns = clock_mono_ns();
    while (goes_on) {
        uint64_t next_ns = clock_mono_ns() + JOB_JUDGE_NEXT_NS;
        bool read = fleet_watch_read(job_judge_watch_of(w), true, &e) == 0;
        bool renewed = read && job_judge_renew(j, w, &e);
        bool judged = read && !renewed && fleet_watch_judge(job_judge_watch_of(w), &v, &e) == 0;
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

static void job_judge_watch(struct job_judge *j) {
    struct job_judge_watched w = {.here = NULL};
    struct err e;
    bool is_far = fleet_open_is_far(j->target, j->reach);
    int rc = is_far ? watch_there_open(&w.there, j->target, j->reach, &e) : 0;
    w.here = is_far ? NULL : fleet_watch_open(j->target, &e);
    if (rc == 0 && (is_far || w.here))
        job_judge_follow(j, &w);
    fleet_watch_free(w.here);
    watch_there_close(&w.there);
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
