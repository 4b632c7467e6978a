/* SPDX-License-Identifier: Apache-2.0 */
/* job_time: see job_time.h. */
#include "tui/core/job_time.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/text.h"
#include "tui/core/app_history.h"
#include "tui/core/app_job.h"
#include "tui/core/app_screen.h"
#include "tui/core/job_state.h"

#define JOB_TIME_DAY_S 43200.0 /* then the day is named */

bool job_time_is_shown(const struct app *a) {
    const struct app_screen *s = a->n_screens > 0 ? &a->screens[a->n_screens - 1] : NULL;
    return s && s->def->is_tab && s->def != &screen_sql && job_state_is_shown_by(a, s->def);
}

static void job_time_show(struct app *a, const struct job_shot *f) {
    if (!a->data.paused)
        data_set_paused(&a->data, true);
    a->job.frozen = f;
    app_screen_update_all(a);
}

void job_time_go_to(struct app *a, double at_s) {
    const struct app_job *j = &a->job;
    const struct job_shot *f = j->has_past ? j->shot : job_history_find(&j->past, at_s);
    if (j->has_past ? at_s > a->epoch_s : j->shot && j->shot->at_s <= at_s) {
        app_set_paused(a, false);
        app_message(a, false, "this is now: , steps back");
    } else if (j->has_past) {
        job_time_show(a, j->frozen ? j->frozen : f);
        app_job_read(a, at_s);
    } else if (f)
        job_time_show(a, f);
    else
        app_message(a, true, "nothing is kept of that time: the past begins when ranks are watched");
}

static void job_time_step(struct app *a, int step) {
    const struct app_job *j = &a->job;
    const struct job_shot *f = job_state_shown(a);
    size_t i = job_history_index(&j->past, f);
    if (!f)
        app_message(a, false, "the ranks are not known yet");
    else if (j->has_past)
        job_time_go_to(a, (isnan(j->moment) ? f->at_s : j->moment) + step);
    else if (step > 0 && i + 1 < j->past.n)
        job_time_show(a, j->past.items[i + 1]);
    else if (step < 0 && i > 0)
        job_time_show(a, j->past.items[i - 1]);
    else if (step < 0)
        app_message(a, false, "this is the oldest moment that is kept");
    else if (i < j->past.n)
        job_time_show(a, j->shot);
    else
        app_message(a, false, a->data.paused ? "this is the latest; Z resumes" : "this is now: , steps back");
}

void job_time_put_clock(const struct app *a, double at_s, char *buf, size_t cap) {
    time_t t = (time_t)at_s;
    struct tm tm;
    bool is_far = a->epoch_s - at_s > JOB_TIME_DAY_S;
    if (!localtime_r(&t, &tm) || !strftime(buf, cap, is_far ? "%d %b %H:%M:%S" : "%H:%M:%S", &tm))
        snprintf(buf, cap, "?");
}

void job_time_put_text(const struct app *a, char *buf, size_t cap) {
    const struct app_job *j = &a->job;
    const struct job_shot *f = job_state_shown(a);
    double at_s = !isnan(j->moment) ? j->moment : f ? f->at_s : NAN;
    bool is_read = !isnan(j->moment) && (!j->read || j->read->moment != j->moment);
    char when[32], age[32];
    buf[0] = '\0';
    if (isnan(at_s))
        return;
    double now_s = j->shot && !j->has_past ? j->shot->at_s : a->epoch_s;
    job_time_put_clock(a, at_s, when, sizeof when);
    text_human_duration(age, sizeof age, fmax(0, now_s - at_s));
    snprintf(buf, cap, "at %s, %s behind%s", when, age, is_read ? ", being read" : "");
}

bool job_time_act(struct app *a, enum action action) {
    const struct screen_def *top = app_screen_top(a)->def;
    bool steps = action == ACTION_HISTORY_OLDER || action == ACTION_HISTORY_NEWER;
    bool is_shown = job_time_is_shown(a);
    if (!is_shown && steps && (top == &screen_steps || top == &screen_overview)) {
        app_message(a, false, "this screen keeps no earlier moments; jobs in a database have them");
        return true;
    }
    if (!is_shown)
        return false;
    if (steps)
        job_time_step(a, action == ACTION_HISTORY_OLDER ? -1 : 1);
    else if (action == ACTION_END && a->job.frozen)
        app_set_paused(a, false);
    else if (action == ACTION_END)
        app_screen_act(app_screen_top(a), a, ACTION_LAST);
    else
        return false;
    return true;
}
