/* SPDX-License-Identifier: Apache-2.0 */
/* app_take: see app_take.h. */
#include "tui/core/app_take.h"

#include <stdio.h>
#include <string.h>

#include "tui/core/app.h"
#include "tui/core/app_arm.h"
#include "tui/core/app_ask.h"
#include "tui/core/app_debug.h"
#include "tui/core/app_feed.h"
#include "tui/core/app_history.h"
#include "tui/core/app_query.h"
#include "tui/core/app_repl.h"
#include "tui/core/app_screen.h"
#include "tui/core/job_state.h"
#include "tui/core/screen.h"
#include "tui/model/events.h"

static struct events_place app_place(const struct app *a) {
    pid_t pid = a->targets.n > 1 ? a->pid : 0;
    return (struct events_place){.log = a->log, .pid = pid, .now_s = a->now_s, .epoch_s = a->epoch_s};
}

void app_set_time(struct app *a, double now_s, double epoch_s) {
    a->now_s = now_s;
    a->epoch_s = epoch_s;
}

void app_take_target(struct app *a, struct model_target *t) {
    struct events_place place = app_place(a);
    bool is_first = !a->data.has_target;
    data_take_target(&a->data, t);
    events_see_target(&a->data, is_first, &place);
    if (is_first && a->data.target.rank != MODEL_UNKNOWN && a->pid > 0 && !job_state_is_watched(a))
        a->host.find_job(a->host.arg, a->pid); /* to offer it */
    app_screen_update_all(a);
}

void app_take_snapshot(struct app *a, struct model_snapshot *s) {
    struct events_place place = app_place(a);
    data_take_snapshot(&a->data, s, a->now_s);
    events_see_snapshot(&a->data, &place);
    app_screen_update_all(a);
}

bool app_take_samples(struct app *a, const struct model_sample_batch *b) {
    struct events_place place = app_place(a);
    bool is_complete = data_take_samples(&a->data, b, a->now_s);
    events_see_samples(&a->data, b, a->config.sample_hz, &place);
    for (int i = 0; i < a->n_screens; i++)
        if (a->screens[i].def->needs_samples && a->screens[i].def->update) {
            a->screens[i].def->update(a->screens[i].state, a);
            a->dirty = true;
        }
    return is_complete;
}

void app_set_state(struct app *a, enum session_state state, const struct err *why, double retry_in_s) {
    struct events_place place = app_place(a);
    enum session_state before = a->data.state;
    data_set_state(&a->data, state, why, a->now_s + retry_in_s);
    events_see_state(&a->data, before, &place);
    if (before == SESSION_CONNECTED && state != SESSION_CONNECTED) {
        app_debug_forget(a);
        app_repl_broke(a);
    }
    app_screen_update_all(a);
}

void app_take_status(struct app *a, const struct model_status *s) {
    struct events_place place = app_place(a);
    events_see_status(&a->data, s, &place);
    app_arm_take_watch(a, s);
    app_arm_take(a, s);
    a->dirty = true;
}

void app_take_proc_stats(struct app *a, const struct proc_stats *v) {
    struct events_place place = app_place(a);
    events_see_proc_stats(&a->data, v, &place);
    a->dirty = true;
}

/* With more children than before it may be a launcher: they are its ranks. */
static void app_find_launched(struct app *a) {
    struct app_job_search *s = &a->job.search;
    size_t n = a->data.children.n;
    if (s->pid != a->pid)
        *s = (struct app_job_search){.pid = a->pid};
    if (a->pid <= 0 || n <= s->children)
        return;
    s->children = n;
    if (!job_state_is_offered(a))
        a->host.find_job(a->host.arg, a->pid);
}

void app_take_children(struct app *a, struct children_list *l) {
    data_take_children(&a->data, l, a->now_s);
    app_find_launched(a);
    app_screen_update_all(a);
}

void app_take_jobs(struct app *a, struct engine_jobs *jobs, const struct err *why) {
    struct app_jobs *j = &a->jobs;
    j->error = why ? *why : (struct err){.code = ERR_OK};
    if (jobs) {
        engine_jobs_fini(&j->list);
        j->list = *jobs;
        *jobs = (struct engine_jobs){.n = 0};
        j->is_known = true;
    }
    app_screen_update_all(a);
}

void app_take_processes(struct app *a, struct target_process *list, size_t n, const char *hidden) {
    target_list_free(a->processes, a->n_processes);
    a->processes = list;
    a->n_processes = n;
    a->has_processes = true;
    snprintf(a->hidden, sizeof a->hidden, "%s", hidden);
    app_screen_update_all(a);
}

void app_take_themes(struct app *a, char (*names)[THEME_MAX_NAME], size_t n) {
    a->n_themes = n > APP_MAX_THEMES ? APP_MAX_THEMES : n;
    memcpy(a->themes, names, a->n_themes * sizeof *names);
    app_screen_update_all(a);
}

/* Turn an empty result of a Python table whose note says why into an error of this answer, for
 * example when the GIL could not be acquired. */
static void app_judge_feed(struct querier_answer *answer) {
    const char *why = strstr(answer->note, ": ");
    bool is_empty = answer->rows && answer->rows->n_rows == 0;
    if (answer->error.code == ERR_OK && is_empty && why && strncmp(answer->note, "python.", 7) == 0)
        err_set(&answer->error, ERR_FAILED, "%s", why + 2);
}

void app_take_feed(struct app *a, enum app_feed_id id, struct querier_answer *answer) {
    struct app_feed *f = &a->feeds.feeds[id];
    app_judge_feed(answer);
    f->wanted = f->running = false;
    f->version++;
    f->error = answer->error;
    f->elapsed_s = answer->elapsed_s;
    if (answer->error.code == ERR_OK) {
        result_unref(f->rows);
        f->rows = answer->rows;
        answer->rows = NULL;
        verdicts_fini(&f->verdicts);
        f->verdicts = answer->verdicts;
        answer->verdicts = (struct verdicts){.items = NULL};
        f->is_answered = true;
        memcpy(f->answered, f->text, sizeof f->answered);
        f->truncated = answer->truncated;
        snprintf(f->note, sizeof f->note, "%.*s", (int)sizeof f->note - 1, answer->note);
        f->answered_s = a->now_s;
        f->failed_s = 0;
        if (id == FEED_GPU)
            gpus_build(&a->feeds.gpus, f->rows);
    } else if (f->failed_s <= 0)
        f->failed_s = a->now_s;
    querier_answer_fini(answer);
    app_screen_update_all(a);
}

void app_set_pid(struct app *a, pid_t pid) {
    pid_t before = a->pid, started = a->came_from;
    /* two targets of unknown pid, a recording and one behind a port, are not the same */
    bool is_same = before == pid && pid > 0, is_first = !before && !a->data.has_target && !a->data.received;
    a->pid = pid;
    a->data.pulse.began_s = a->began_s;
    if (!before) /* those of a job */
        app_feeds_forget(&a->feeds);
    if (is_same || is_first)
        return;
    app_ask_forget(a);
    app_arm_forget_watch(a);
    a->came_from = started == pid || a->job.opening >= 0 ? 0 : before;
    data_fini(&a->data);
    data_init(&a->data);
    a->data.pulse.began_s = a->began_s;
    app_history_leave(a);
    app_query_forget(&a->query);
    app_repl_forget(a);
    app_debug_forget(a);
    app_feeds_forget(&a->feeds);
    app_forget_source(a);
    tags_clear(&a->threads);
    tags_clear(&a->functions);
    if (!a->targets.n) /* otherwise it is one of them */
        tags_clear(&a->targets.tags);
    a->native = false;
    app_screen_update_all(a);
}

void app_tick(struct app *a) {
    struct events_place place = app_place(a);
    events_see_time(&a->data, app_delay_s(a), &place);
    for (int i = 0; i < a->n_screens; i++)
        if (a->screens[i].def->tick)
            a->screens[i].def->tick(a->screens[i].state, a);
}

/* ---- what is wanted ---- */

double app_delay_s(const struct app *a) {
    bool slow = a->data.paused && a->config.delay_s < APP_PAUSED_S;
    return slow ? APP_PAUSED_S : a->config.delay_s;
}

bool app_is_late(const struct app *a) {
    return !data_is_over(&a->data) && !data_is_recorded(&a->data) && a->data.live.valid &&
           a->now_s - a->data.live.arrived_s > 2 * app_delay_s(a);
}

bool app_wants_samples(const struct app *a) {
    /* They cost nothing, and every screen can go to any of their times. */
    if (data_is_recorded(&a->data))
        return true;
    for (int i = 0; i < a->n_screens; i++)
        if (a->screens[i].def->needs_samples)
            return true;
    return a->now_s < a->samples_until_s;
}

bool app_wants_proc_stats(const struct app *a) {
    bool wanted = app_is_late(a);
    for (int i = 0; i < a->n_screens; i++)
        wanted = wanted || a->screens[i].def->needs_vitals;
    return wanted && !data_is_recorded(&a->data) && !data_is_over(&a->data);
}

bool app_wants_status(const struct app *a) {
    const struct data *d = &a->data;
    bool has_agent = d->state == SESSION_CONNECTED && d->has_target && d->target.mode == MODEL_MODE_AGENT;
    bool was_asked = d->pulse.status_at_s > 0;
    bool is_due =
        !d->paused && !data_is_recorded(d) && !data_is_over(d) &&
        a->now_s - d->pulse.status_at_s >= (debuggers_stop(&d->holds) ? DEBUGGERS_STATUS_S : EVENTS_STATUS_S);
    return has_agent && (!was_asked || is_due || app_arm_wants_status(a));
}

/* The screen that is shown, even if another one lies over it; NULL: none yet. */
static const struct screen_def *app_shown(const struct app *a) {
    int i = a->n_screens - 1;
    while (i > 0 && !a->screens[i].def->is_tab)
        i--;
    return i >= 0 ? a->screens[i].def : NULL;
}

bool app_shows_children(const struct app *a) {
    const struct screen_def *shown = app_shown(a);
    return shown && shown->shows_children;
}

bool app_wants_phases(const struct app *a) {
    const struct data *d = &a->data;
    const struct screen_def *shown = app_shown(a);
    return shown && shown->needs_phases && !a->row_actions.readonly && d->state == SESSION_CONNECTED &&
           d->has_target && d->target.mode == MODEL_MODE_AGENT && !data_is_recorded(d) && !data_is_over(d);
}

bool app_needs_tick(const struct app *a) {
    if (app_query_needs_tick(a) || app_repl_needs_tick(a))
        return true;
    if (a->n_screens && app_screen_is_choice(a))
        return false;
    if (data_is_over(&a->data) || data_is_recorded(&a->data))
        return false; /* the status line has the time of the last snapshot, not its age */
    if (a->data.paused && a->data.state == SESSION_CONNECTED)
        return false; /* the display is frozen */
    return a->data.state != SESSION_CONNECTED || app_is_late(a) || debuggers_stop(&a->data.holds);
}
