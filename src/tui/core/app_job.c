/* SPDX-License-Identifier: Apache-2.0 */
/* app_job: see app_job.h. */
#include "tui/core/app_job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "client/fleet/fleet_open.h"
#include "tui/core/app_feed.h"
#include "tui/core/app_screen.h"
#include "tui/core/job_state.h"

void app_job_read(struct app *a, double at_s) {
    struct strbuf target;
    struct err e;
    strbuf_init(&target, 0);
    int rc = fleet_open_put_at(a->job.target, at_s, &target, &e);
    if (rc == 0 && (target.failed || target.len >= sizeof a->job.target))
        rc = err_set(&e, ERR_USAGE, "the address of the job is too long");
    if (rc == 0) {
        a->job.moment = isnan(at_s) ? at_s : fleet_open_at(strbuf_str(&target));
        a->host.watch_job(a->host.arg, strbuf_str(&target));
    } else
        app_message(a, true, "%s", e.text);
    strbuf_fini(&target);
}

void app_job_set_tables(struct app *a, double at_s) {
    struct app_job *j = &a->job;
    struct strbuf target;
    struct err e;
    strbuf_init(&target, 0);
    if (j->has_past && fleet_open_put_at(j->target, at_s, &target, &e) == 0 && !target.failed &&
        target.len < sizeof j->tables && strcmp(strbuf_str(&target), j->tables) != 0) {
        memcpy(j->tables, strbuf_str(&target), target.len + 1);
        if (job_state_is_alone(a))
            app_feed_renew(a, FEED_STEPS);
        a->host.query_job(a->host.arg, j->tables);
    }
    strbuf_fini(&target);
}

void app_job_watch(struct app *a, const char *target) {
    struct app_job *j = &a->job;
    snprintf(j->target, sizeof j->target, "%s", target);
    j->has_past = fleet_open_is_database(target);
    double at_s = fleet_open_at(target);
    if (!isnan(at_s))
        data_set_paused(&a->data, true);
    /* "10m ago" is a fixed time from here on */
    app_job_read(a, at_s);
}

/* The one before goes to the past. */
static void app_job_replace(struct app *a, struct job_shot *f) {
    struct app_job *j = &a->job;
    struct job_shot *old = j->shot;
    j->shot = f;
    if (!old)
        return;
    if (a->data.paused && !j->frozen)
        j->frozen = old;
    if (job_history_add(&j->past, old, j->frozen, j->has_past ? 0 : JOB_HISTORY_BYTES) == 0)
        return;
    if (j->frozen == old)
        j->frozen = NULL;
    job_shot_free(old);
}

void app_job_take(struct app *a, struct job_shot *f) {
    struct app_job *j = &a->job;
    if (isnan(f->moment)) {
        app_job_replace(a, f);
        j->arrived_s = a->now_s;
        if (isnan(j->moment) && !a->data.paused)
            app_job_set_tables(a, NAN);
    } else if (f->moment == j->moment) {
        job_shot_free(j->read);
        j->read = f;
        j->frozen = f;
        app_job_set_tables(a, f->moment);
    } else {
        job_shot_free(f);
        return;
    }
    j->error = (struct err){.code = ERR_OK};
    app_screen_update_all(a);
}

void app_job_unfreeze(struct app *a) {
    struct app_job *j = &a->job;
    if (!isnan(j->moment))
        app_job_read(a, NAN);
    j->frozen = NULL;
    job_shot_free(j->read);
    j->read = NULL;
    app_job_set_tables(a, NAN);
}

void app_job_refused(struct app *a, const struct err *why) {
    struct app_job *j = &a->job;
    /* another moment stays on the screen */
    if (!isnan(j->moment) && j->read) {
        j->moment = j->read->moment;
        app_message(a, true, "%s", why->text);
        return;
    }
    if (a->job.error.code == ERR_OK)
        log_add(a->log, a->epoch_s, LOG_LEVEL_BAD, "%s", why->text);
    a->job.error = *why;
    a->dirty = true;
}

void app_job_take_offer(struct app *a, pid_t pid, const char *job, int32_t rank, int32_t world) {
    struct app_job_offer *o = &a->job.offer;
    *o = (struct app_job_offer){.pid = pid, .rank = rank, .world = world};
    text_sanitize(o->job, sizeof o->job, job);
    if (job_state_is_launcher(a) && !a->message[0]) /* what it does itself is nothing to look at */
        app_message(a, false, "this process starts the ranks of job %s: p shows them", o->job);
    a->dirty = true;
}

/* ---- opening a rank ---- */

bool app_job_open(struct app *a, int32_t rank, bool shows) {
    const struct job_shot *f = a->job.shot;
    const struct job_shot_rank *r = job_shot_find(f, rank);
    if (!isnan(a->job.moment)) {
        app_refuse(a, "rank %d cannot be opened as it was: Z shows the ranks as they are now", (int)rank);
        return false;
    }
    if (!r || r->pid <= 0) {
        app_refuse(a, "rank %d has no process", (int)rank);
        return false;
    }
    if (a->config.job_is_closed && !job_shot_is_here(f, r)) {
        app_refuse(a, "rank %d is on %.100s: to open ranks, start probing-top with --via ssh, or another way",
                   (int)rank, job_shot_host_name(f, r) ? job_shot_host_name(f, r) : "another host");
        return false;
    }
    if (a->attaching && a->job.opening >= 0) {
        app_refuse(a, "rank %d is still being opened", (int)a->job.opening);
        return false;
    }
    if (a->attaching) { /* by :attach */
        app_refuse(a, "an attach to %ld is under way", (long)a->attaching);
        return false;
    }
    bool here = job_shot_is_here(f, r);
    int32_t world;
    bool is_open = here ? r->pid == a->pid : job_state_rank(a, &world) == rank;
    if (is_open && !data_is_over(&a->data)) {
        if (shows)
            app_screen_open(a, ACTION_SHOW_THREADS);
        return true;
    }
    a->job.shows = shows;
    a->job.opening = a->job.rank = rank;
    app_attach_there(a, r->pid, here ? NULL : job_shot_host_name(f, r));
    app_message(a, false, "opening rank %d, process %ld%s%s", (int)rank, (long)r->pid, here ? "" : " of ",
                here ? "" : job_shot_host_name(f, r));
    return true;
}

void app_job_attached(struct app *a, const struct err *why) {
    if (why)
        app_message(a, true, "rank %d: %s", (int)a->job.opening, why->text);
    else {
        a->message[0] = '\0';
        a->job.opened = a->job.opening;
        if (a->job.shows)
            app_screen_open(a, ACTION_SHOW_THREADS);
    }
    a->job.opening = -1;
    app_screen_update_all(a);
}

/* The next rank is selected, and none is opened. */
static void app_job_select(struct app *a, int step) {
    const struct job_shot *f = job_state_shown(a);
    const struct job_shot_rank *last = job_state_selected(a);
    size_t n = f ? f->n_ranks : 0, before = last ? (size_t)(last - f->ranks) : step > 0 ? n - 1 : 0;
    if (!n) {
        app_message(a, false, "the ranks are not known yet");
        return;
    }
    size_t at = (before + n + (size_t)(step > 0 ? 1 : n - 1)) % n;
    a->job.rank = f->ranks[at].rank;
    app_screen_update_all(a);
}

/* The next rank that has a process, round and round. */
static void app_job_step(struct app *a, int step) {
    if (job_state_is_alone(a) && a->job.has_past && !job_state_can_open(a)) {
        app_job_select(a, step);
        return;
    }
    const struct job_shot *f = a->job.shot;
    const struct job_shot_rank *last = job_shot_find(f, a->job.rank);
    last = last ? last : job_shot_find_pid(f, a->pid);
    if (!f || !f->n_ranks) {
        app_message(a, false, "the ranks are not known yet");
        return;
    }
    size_t n = f->n_ranks, at = last ? (size_t)(last - f->ranks) : step > 0 ? n - 1 : 0;
    for (size_t i = 0; i < n; i++) {
        at = (at + n + (size_t)(step > 0 ? 1 : n - 1)) % n;
        if (f->ranks[at].pid > 0) {
            app_job_open(a, f->ranks[at].rank, false);
            return;
        }
    }
    app_refuse(a, "no rank has a process");
}

bool app_job_act(struct app *a, enum action action) {
    char target[sizeof a->job.target];
    bool steps = action == ACTION_RANK_PREV || action == ACTION_RANK_NEXT;
    if (!steps && action != ACTION_SHOW_RANKS && action != ACTION_SHOW_STACKS)
        return false;
    /* a launcher is known by its ranks, and they may have come since */
    if (!job_state_is_offered(a) && a->data.children.n)
        a->host.find_job(a->host.arg, a->pid);
    if (!job_state_is_watched(a) && job_state_is_offered(a)) {
        snprintf(target, sizeof target, "job:%ld", (long)a->pid);
        app_job_watch(a, target);
    }
    if (job_state_is_watched(a)) {
        if (steps)
            app_job_step(a, action == ACTION_RANK_NEXT ? 1 : -1);
        return steps;
    }
    if (action == ACTION_SHOW_RANKS)
        return app_screen_open(a, ACTION_SHOW_TARGETS);
    app_refuse(a, "no job is watched: probing-top job:NAME watches the ranks of one");
    return true;
}
