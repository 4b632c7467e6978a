/* SPDX-License-Identifier: Apache-2.0 */
/* app_history: see app_history.h. */
#include "tui/core/app_history.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/text.h"
#include "client/samples/thread_runs.h"
#include "tui/core/app.h"
#include "tui/core/app_job.h"
#include "tui/core/app_screen.h"
#include "tui/core/job_state.h"
#include "tui/model/snapshot_history.h"
#include "tui/view/time_text.h"

#define HISTORY_UNKNOWN_S 0.5 /* so much may be missing before the text says so */

/* Of a recording that begins before its first kept snapshot: for how long snapshots are kept. */
static bool app_history_is_filtered(const struct app *a, char *length, size_t cap) {
    const struct data *d = &a->data;
    double oldest_s = d->past ? snapshot_history_oldest(d->past) : NAN;
    if (!data_is_recorded(d) || !d->target.seen_is_cut || !d->live.valid || isnan(oldest_s))
        return false;
    time_text_length(d->live.snapshot.timestamp - oldest_s, length, cap);
    return true;
}

/* This is the first snapshot that is known. */
static void app_history_say_first(struct app *a) {
    char length[32];
    if (app_history_is_filtered(a, length, sizeof length))
        app_message(a, false, "the oldest of the %s shown here; SQL (S) has all", length);
    else
        app_message(a, false, "this is the first that is known");
}

/* Say why there is none further. */
static void app_history_say_end(struct app *a, int step) {
    const struct data *d = &a->data;
    if (!data_shown(d))
        app_message(a, false, "there is no snapshot yet");
    else if (data_is_recorded(d) && step > 0)
        app_message(a, false, "this is the last that is known: , steps back");
    else if (data_is_recorded(d))
        app_history_say_first(a);
    else if (step > 0)
        app_message(a, false,
                    d->paused ? "this is the latest snapshot; Z resumes" : "this is now: , steps back");
    else
        app_message(a, false, "this is the oldest snapshot that is kept");
}

static void app_history_step(struct app *a, int step) {
    enum data_step done = data_step(&a->data, step);
    if (done == DATA_STEP_DONE)
        app_screen_update_all(a);
    else if (done == DATA_STEP_FAILED)
        app_message(a, true, "out of memory for the history");
    else
        app_history_say_end(a, step);
}

void app_history_leave(struct app *a) {
    struct app_history *p = &a->history;
    if (p->has_span && a->data.tally) {
        if (!p->was_set || sample_store_set_span(a->data.tally, SAMPLE_STORE_SPAN, p->from_s, p->to_s) != 0)
            sample_store_clear_span(a->data.tally, SAMPLE_STORE_SPAN);
    }
    p->has_span = p->into_span = false;
}

void app_set_paused(struct app *a, bool paused) {
    data_set_paused(&a->data, paused);
    const struct job_shot *f = job_state_shown(a);
    if (!paused) {
        app_history_leave(a);
        app_job_unfreeze(a);
    } else if (f && !f->is_final && isnan(f->moment))
        app_job_set_tables(a, f->at_s);
    app_screen_update_all(a);
}

/* End: back to the newest; if that is shown, what End means on the screen. */
static void app_history_end(struct app *a) {
    struct app_screen *s = app_screen_top(a);
    if (data_is_stepped(&a->data))
        app_set_paused(a, false);
    else
        app_screen_act(s, a, ACTION_LAST);
}

bool app_history_act(struct app *a, enum action action) {
    switch ((int)action) {
    case ACTION_HISTORY_OLDER:
    case ACTION_HISTORY_NEWER:
        app_history_step(a, action == ACTION_HISTORY_OLDER ? -1 : 1);
        return true;
    case ACTION_END:
        app_history_end(a);
        return true;
    default:
        return false;
    }
}

void app_history_enter_span(struct app *a, double from_s, double to_s) {
    enum data_step done = data_step_into(&a->data, from_s, to_s);
    if (done == DATA_STEP_FAILED)
        app_message(a, true, "out of memory for the history");
    if (done != DATA_STEP_DONE)
        return;
    a->history.into_span = true;
    app_screen_update_all(a);
}

void app_history_leave_span(struct app *a) {
    if (a->history.into_span && data_is_stepped(&a->data))
        app_set_paused(a, false);
    a->history.into_span = false;
}

/* ---- samples of that time ---- */

/* A time of the caller's clock on the clock of samples and snapshots. */
static double app_history_epoch(const struct app *a, double s) { return a->epoch_s - a->now_s + s; }

/* When counting began; for a recording, when its first sample was taken. */
static double app_history_since(const struct app *a) {
    const struct thread_runs *tracks = sample_store_runs(a->data.tally);
    struct sample_store_health health;
    sample_store_get_health(a->data.tally, &health);
    if (!data_is_recorded(&a->data))
        return app_history_epoch(a, health.since_s);
    return thread_runs_end_tick(tracks) > thread_runs_first_tick(tracks)
               ? thread_runs_tick_time(tracks, thread_runs_first_tick(tracks))
               : NAN;
}

bool app_history_times(const struct app *a, enum sample_store_window chosen, double *from_s, double *to_s) {
    const struct sample_store *t = a->data.tally;
    const struct data_shot *shot = data_is_stepped(&a->data) ? data_shown(&a->data) : NULL;
    if (!t)
        return false;
    if (chosen == SAMPLE_STORE_SPAN || chosen == SAMPLE_STORE_OTHER)
        return sample_store_get_span(t, chosen, from_s, to_s);
    *to_s = shot ? shot->snapshot.timestamp : sample_store_newest_tick_s(t);
    *from_s = chosen == SAMPLE_STORE_10S   ? *to_s - 10
              : chosen == SAMPLE_STORE_60S ? *to_s - SAMPLE_STORE_SECONDS
              : chosen == SAMPLE_STORE_MARK && !isnan(sample_store_marked_s(t))
                  ? app_history_epoch(a, sample_store_marked_s(t))
                  : app_history_since(a);
    return !isnan(*to_s) && !isnan(*from_s);
}

/* Keep the user's span while an earlier moment is shown. */
static void app_history_keep_span(struct app *a) {
    struct app_history *p = &a->history;
    if (p->has_span)
        return;
    p->has_span = true;
    p->was_set = sample_store_get_span(a->data.tally, SAMPLE_STORE_SPAN, &p->from_s, &p->to_s);
}

enum sample_store_window app_history_window(struct app *a, enum sample_store_window chosen) {
    struct sample_store *t = a->data.tally;
    double from_s, to_s, is_from_s, is_to_s;
    if (!data_is_stepped(&a->data) || chosen == SAMPLE_STORE_SPAN ||
        !app_history_times(a, chosen, &from_s, &to_s))
        return chosen;
    app_history_keep_span(a);
    from_s = nextafter(from_s, INFINITY); /* a sample has the time at which its interval ends */
    to_s = nextafter(to_s, INFINITY);
    bool is_set = sample_store_get_span(t, SAMPLE_STORE_SPAN, &is_from_s, &is_to_s);
    if (is_set && is_from_s == from_s && is_to_s == to_s)
        return SAMPLE_STORE_SPAN;
    /* It is empty: counting began later, or out of memory. */
    if (!(from_s < to_s) || sample_store_set_span(t, SAMPLE_STORE_SPAN, from_s, to_s) != 0)
        sample_store_clear_span(t, SAMPLE_STORE_SPAN);
    return SAMPLE_STORE_SPAN;
}

static void app_history_clock(double epoch_s, char *buf, size_t cap) {
    time_t t = (time_t)epoch_s;
    struct tm tm;
    if (!localtime_r(&t, &tm) || !strftime(buf, cap, "%H:%M:%S", &tm))
        snprintf(buf, cap, "?");
}

void app_history_known_text(const struct app *a, enum sample_store_window which, char *buf, size_t cap) {
    struct sample_store_span_health h;
    char known[32];
    buf[0] = '\0';
    if (!a->data.tally || !sample_store_get_span_health(a->data.tally, which, &h) ||
        !(h.known_until_s - h.known_from_s > 0)) {
        snprintf(buf, cap, ": no data");
        return;
    }
    if (h.to_s - h.from_s - (h.known_until_s - h.known_from_s) <= HISTORY_UNKNOWN_S)
        return;
    time_text_length(h.known_until_s - h.known_from_s, known, sizeof known);
    snprintf(buf, cap, ", data for %s of it", known);
}

bool app_history_window_text(const struct app *a, enum sample_store_window chosen, char *buf, size_t cap) {
    double from_s, to_s;
    char length[32], when[32], known[64];
    if (!data_is_stepped(&a->data) || chosen == SAMPLE_STORE_SPAN ||
        !app_history_times(a, chosen, &from_s, &to_s))
        return false;
    app_history_clock(to_s, when, sizeof when);
    time_text_length(to_s > from_s ? to_s - from_s : 0, length, sizeof length);
    app_history_known_text(a, SAMPLE_STORE_SPAN, known, sizeof known);
    snprintf(buf, cap, "%s until %s%s", length, when, known);
    return true;
}

/* ---- words ---- */

void app_history_text(const struct app *a, char *buf, size_t cap) {
    const struct data_shot *shot = data_shown(&a->data);
    char when[32], age[32], length[32];
    buf[0] = '\0';
    if (!a->data.paused || !shot)
        return;
    app_history_clock(shot->snapshot.timestamp, when, sizeof when);
    double behind = data_shown_age(&a->data);
    if (fabs(behind) < 100)
        snprintf(age, sizeof age, "%.1fs", behind);
    else
        text_human_duration(age, sizeof age, behind);
    bool is_cut = app_history_is_filtered(a, length, sizeof length);
    snprintf(buf, cap, "at %s, %s behind%s%s", when, age, is_cut ? ", of the last " : "",
             is_cut ? length : "");
}
