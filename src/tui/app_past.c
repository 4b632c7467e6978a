/* SPDX-License-Identifier: Apache-2.0 */
/* app_past: see app_past.h. */
#include "tui/app_past.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/text.h"
#include "client/tracks.h"
#include "tui/data_past.h"
#include "tui/window.h"

#define PAST_UNKNOWN_S 0.5 /* so much may be missing before it is said */

/* Of a recording that goes further back than its moments do: for how long there are some. */
static bool app_past_is_cut(const struct app *a, char *length, size_t cap) {
    const struct data *d = &a->data;
    double oldest_s = d->past ? data_past_oldest(d->past) : NAN;
    if (!data_is_past(d) || !d->target.seen_is_cut || !d->live.valid || isnan(oldest_s))
        return false;
    window_put_length(d->live.snapshot.timestamp - oldest_s, length, cap);
    return true;
}

/* The first moment that is known. */
static void app_past_say_first(struct app *a) {
    char length[32];
    if (app_past_is_cut(a, length, sizeof length))
        app_message(a, false, "what is shown here begins with this: the last %s; SQL (7) has all", length);
    else
        app_message(a, false, "this is the first that is known");
}

/* Why there is nothing further. */
static void app_past_say_end(struct app *a, int step) {
    const struct data *d = &a->data;
    if (!data_shown(d))
        app_message(a, false, "there is no snapshot yet");
    else if (data_is_past(d) && step > 0)
        app_message(a, false, "this is the last that is known: , steps back");
    else if (data_is_past(d))
        app_past_say_first(a);
    else if (step > 0)
        app_message(a, false,
                    d->paused ? "this is the newest that was taken; Space goes on"
                              : "this is now: , steps back");
    else
        app_message(a, false, "this is the oldest that is kept");
}

static void app_past_step(struct app *a, int step) {
    enum data_step done = data_step(&a->data, step);
    if (done == DATA_STEP_DONE)
        app_update_screens(a);
    else if (done == DATA_STEP_FAILED)
        app_message(a, true, "out of memory for what was before");
    else
        app_past_say_end(a, step);
}

/* End: out of the past; where one is not in it, what it means on the screen. */
static void app_past_end(struct app *a) {
    struct app_screen *s = app_top(a);
    if (data_is_stepped(&a->data))
        app_set_paused(a, false);
    else if (s->def->act)
        (void)s->def->act(s->state, a, ACTION_LAST);
}

bool app_act_past(struct app *a, enum action action) {
    switch ((int)action) {
    case ACTION_PAST_OLDER:
    case ACTION_PAST_NEWER:
        app_past_step(a, action == ACTION_PAST_OLDER ? -1 : 1);
        return true;
    case ACTION_END:
        app_past_end(a);
        return true;
    default:
        return false;
    }
}

void app_past_enter_span(struct app *a, double from_s, double to_s) {
    enum data_step done = data_step_into(&a->data, from_s, to_s);
    if (done == DATA_STEP_FAILED)
        app_message(a, true, "out of memory for what was before");
    if (done != DATA_STEP_DONE)
        return;
    a->past.into_span = true;
    app_update_screens(a);
}

void app_past_leave_span(struct app *a) {
    if (a->past.into_span && data_is_stepped(&a->data))
        app_set_paused(a, false);
    a->past.into_span = false;
}

/* ---- samples of then ---- */

/* A time of the caller's clock on that of samples and snapshots. */
static double app_past_epoch(const struct app *a, double s) { return a->epoch_s - a->now_s + s; }

/* When counting began; of a recording, when the first of its samples was taken. */
static double app_past_since(const struct app *a) {
    const struct tracks *tracks = tally_tracks(a->data.tally);
    struct tally_health health;
    tally_get_health(a->data.tally, &health);
    if (!data_is_past(&a->data))
        return app_past_epoch(a, health.since_s);
    return tracks_end_look(tracks) > tracks_first_look(tracks)
               ? tracks_look_time(tracks, tracks_first_look(tracks))
               : NAN;
}

bool app_past_times(const struct app *a, enum tally_window chosen, double *from_s, double *to_s) {
    const struct tally *t = a->data.tally;
    const struct data_shot *shot = data_is_stepped(&a->data) ? data_shown(&a->data) : NULL;
    if (!t)
        return false;
    if (chosen == TALLY_SPAN || chosen == TALLY_OTHER)
        return tally_get_span(t, chosen, from_s, to_s);
    *to_s = shot ? shot->snapshot.timestamp : tally_newest_look_s(t);
    *from_s = chosen == TALLY_10S                                 ? *to_s - 10
              : chosen == TALLY_60S                               ? *to_s - TALLY_SECONDS
              : chosen == TALLY_MARK && !isnan(tally_marked_s(t)) ? app_past_epoch(a, tally_marked_s(t))
                                                                  : app_past_since(a);
    return !isnan(*to_s) && !isnan(*from_s);
}

/* What the user had set is not lost by looking back. */
static void app_past_keep_span(struct app *a) {
    struct app_past *p = &a->past;
    if (p->has_span)
        return;
    p->has_span = true;
    p->was_set = tally_get_span(a->data.tally, TALLY_SPAN, &p->from_s, &p->to_s);
}

enum tally_window app_past_window(struct app *a, enum tally_window chosen) {
    struct tally *t = a->data.tally;
    double from_s, to_s, is_from_s, is_to_s;
    if (!data_is_stepped(&a->data) || chosen == TALLY_SPAN || !app_past_times(a, chosen, &from_s, &to_s))
        return chosen;
    app_past_keep_span(a);
    from_s = nextafter(from_s, INFINITY); /* a look stands at the end of the time that it is of */
    to_s = nextafter(to_s, INFINITY);
    bool is_set = tally_get_span(t, TALLY_SPAN, &is_from_s, &is_to_s);
    if (is_set && is_from_s == from_s && is_to_s == to_s)
        return TALLY_SPAN;
    if (!(from_s < to_s) || tally_set_span(t, TALLY_SPAN, from_s, to_s) != 0)
        tally_clear_span(t, TALLY_SPAN); /* nothing is in it: it had not begun, or there is no memory */
    return TALLY_SPAN;
}

void app_past_leave(struct app *a) {
    struct app_past *p = &a->past;
    if (p->has_span && a->data.tally) {
        if (!p->was_set || tally_set_span(a->data.tally, TALLY_SPAN, p->from_s, p->to_s) != 0)
            tally_clear_span(a->data.tally, TALLY_SPAN);
    }
    p->has_span = p->into_span = false;
}

static void app_past_clock(double epoch_s, char *buf, size_t cap) {
    time_t t = (time_t)epoch_s;
    struct tm tm;
    if (!localtime_r(&t, &tm) || !strftime(buf, cap, "%H:%M:%S", &tm))
        (void)snprintf(buf, cap, "?");
}

void app_past_known_text(const struct app *a, enum tally_window which, char *buf, size_t cap) {
    struct tally_span_health h;
    char known[32];
    buf[0] = '\0';
    if (!a->data.tally || !tally_get_span_health(a->data.tally, which, &h) ||
        !(h.known_until_s - h.known_from_s > 0)) {
        (void)snprintf(buf, cap, ": nothing is known of it");
        return;
    }
    if (h.to_s - h.from_s - (h.known_until_s - h.known_from_s) <= PAST_UNKNOWN_S)
        return;
    window_put_length(h.known_until_s - h.known_from_s, known, sizeof known);
    (void)snprintf(buf, cap, ", %s of it known", known);
}

bool app_past_window_text(const struct app *a, enum tally_window chosen, char *buf, size_t cap) {
    double from_s, to_s;
    char length[32], when[32], known[64];
    if (!data_is_stepped(&a->data) || chosen == TALLY_SPAN || !app_past_times(a, chosen, &from_s, &to_s))
        return false;
    app_past_clock(to_s, when, sizeof when);
    window_put_length(to_s > from_s ? to_s - from_s : 0, length, sizeof length);
    app_past_known_text(a, TALLY_SPAN, known, sizeof known);
    (void)snprintf(buf, cap, "%s until %s%s", length, when, known);
    return true;
}

/* ---- words ---- */

void app_past_text(const struct app *a, char *buf, size_t cap) {
    const struct data_shot *shot = data_shown(&a->data);
    char when[32], age[32], length[32];
    buf[0] = '\0';
    if (!a->data.paused || !shot)
        return;
    app_past_clock(shot->snapshot.timestamp, when, sizeof when);
    double behind = data_shown_age(&a->data);
    if (fabs(behind) < 100)
        (void)snprintf(age, sizeof age, "%.1fs", behind);
    else
        text_human_duration(age, sizeof age, behind);
    bool is_cut = app_past_is_cut(a, length, sizeof length);
    (void)snprintf(buf, cap, "at %s, %s behind%s%s", when, age, is_cut ? ", of the last " : "",
                   is_cut ? length : "");
}
