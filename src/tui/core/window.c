/* SPDX-License-Identifier: Apache-2.0 */
/* window: see window.h. */
#include "tui/core/window.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time_parse.h"
#include "base/text.h"
#include "tui/core/app.h"
#include "tui/core/app_history.h"
#include "tui/core/app_screen.h"
#include "tui/view/time_text.h"

#define WINDOW_SLACK_S 0.25 /* a gap that is shorter than this is not reported */
#define WINDOW_DAY_S 86400.0

/* Is there something to show in a window? */
static bool window_has(const struct app *a, enum sample_store_window which) {
    double from, to;
    if (which < SAMPLE_STORE_MARK)
        return true;
    if (!a->data.tally || which == SAMPLE_STORE_OTHER)
        return false;
    if (which == SAMPLE_STORE_MARK)
        return !isnan(sample_store_marked_s(a->data.tally));
    return sample_store_get_span(a->data.tally, which, &from, &to);
}

enum sample_store_window window_which(const struct app *a) {
    return window_has(a, a->window.which) ? a->window.which : SAMPLE_STORE_ALL;
}

void window_show(struct app *a, enum sample_store_window which) {
    if (which != SAMPLE_STORE_SPAN)
        a->window.before = which;
    a->window.which = which;
    a->window.version++;
    app_screen_update_all(a);
}

void window_step(struct app *a) {
    int which = (int)window_which(a);
    do
        which = (which + 1) % (int)SAMPLE_STORE_WINDOWS;
    while (!window_has(a, (enum sample_store_window)which));
    window_show(a, (enum sample_store_window)which);
}

bool window_select(struct app *a, double from_s, double to_s) {
    struct sample_store_span_health h;
    if (!a->data.tally) {
        app_message(a, false, "there are no samples yet");
        return false;
    }
    if (sample_store_set_span(a->data.tally, SAMPLE_STORE_SPAN, from_s, to_s) != 0) {
        app_message(a, true, "a window begins before it ends");
        return false;
    }
    sample_store_get_span_health(a->data.tally, SAMPLE_STORE_SPAN, &h);
    if (isnan(h.known_from_s))
        app_message(a, false, "no data for that time: the samples in memory begin later or have not arrived");
    window_show(a, SAMPLE_STORE_SPAN);
    app_history_enter_span(a, from_s, to_s);
    return true;
}

void window_let_go(struct app *a) {
    if (a->data.tally)
        sample_store_clear_span(a->data.tally, SAMPLE_STORE_SPAN);
    window_show(a, a->window.before);
    app_history_leave_span(a);
}

/* ---- texts typed ---- */

/* The current time of the samples. */
static double window_now(const struct app *a) {
    double newest_s = a->data.tally ? sample_store_newest_tick_s(a->data.tally) : NAN;
    return isnan(newest_s) ? a->epoch_s : newest_s;
}

static const struct {
    const char *name;
    enum sample_store_window which;
} window_names[] = {{"all", SAMPLE_STORE_ALL},
                    {"10s", SAMPLE_STORE_10S},
                    {"60s", SAMPLE_STORE_60S},
                    {"mark", SAMPLE_STORE_MARK}};
#define WINDOW_NAMES ((int)(sizeof window_names / sizeof window_names[0]))

/* The number of a name; -1: none. */
static int window_find_name(const char *text) {
    for (int i = 0; i < WINDOW_NAMES; i++)
        if (strcmp(text, window_names[i].name) == 0)
            return i;
    return -1;
}

/* "FROM-TO" */
static bool window_parse_span(const char *text, double now_s, double *from_s, double *to_s) {
    const char *dash = strchr(text, '-');
    if (!dash || !time_parse(text, (size_t)(dash - text), now_s, from_s) ||
        !time_parse(dash + 1, strlen(dash + 1), now_s, to_s))
        return false;
    *from_s = nextafter(*from_s, INFINITY); /* a sample has the time at which its interval ends */
    *to_s = nextafter(*to_s, INFINITY);
    return true;
}

static int window_refuse(const char *text, struct err *e) {
    return err_set(
        e, ERR_USAGE,
        "unknown window '%.40s' (use 10s, 60s, all, mark, or FROM-TO as in 22:13:20-22:13:25 or 30s-10s)",
        text);
}

bool window_is_text(const char *text) {
    double from_s, to_s;
    return window_find_name(text) >= 0 || window_parse_span(text, WINDOW_DAY_S, &from_s, &to_s);
}

int window_parse(struct app *a, const char *text, struct err *e) {
    double from_s, to_s;
    int name = window_find_name(text);
    if (name >= 0) {
        if (!window_has(a, window_names[name].which))
            return err_set(e, ERR_USAGE, "there is no mark yet: ' sets it");
        window_show(a, window_names[name].which);
        return 0;
    }
    if (!window_parse_span(text, window_now(a), &from_s, &to_s) || !(from_s < to_s))
        return window_refuse(text, e);
    if (!a->data.tally)
        return err_set(e, ERR_USAGE, "there are no samples yet: Flame and Timeline start sampling");
    window_select(a, from_s, to_s);
    return 0;
}

int window_parse_range(const struct app *a, const char *text, double *from_s, double *to_s, struct err *e) {
    int name = window_find_name(text);
    if (!a->data.tally)
        return err_set(e, ERR_USAGE, "there are no samples yet: Flame and Timeline start sampling");
    if (name >= 0 && !window_has(a, window_names[name].which))
        return err_set(e, ERR_USAGE, "there is no mark yet: ' sets it");
    if (name >= 0 && !app_history_times(a, window_names[name].which, from_s, to_s))
        return err_set(e, ERR_USAGE, "no data for that time yet");
    if (name < 0 && (!window_parse_span(text, window_now(a), from_s, to_s) || !(*from_s < *to_s)))
        return window_refuse(text, e);
    return 0;
}

/* ---- what it is ---- */

bool window_get_range(const struct app *a, double *from_s, double *to_s) {
    const struct sample_store *t = a->data.tally;
    enum sample_store_window which = window_which(a);
    struct sample_store_health h;
    if (!t)
        return false;
    if (data_is_stepped(&a->data)) /* it ends at that moment */
        return app_history_times(a, which, from_s, to_s);
    if (which == SAMPLE_STORE_SPAN)
        return sample_store_get_span(t, which, from_s, to_s);
    sample_store_get_health(t, &h);
    double now_s = sample_store_newest_tick_s(t);
    double since_s = which == SAMPLE_STORE_MARK ? sample_store_marked_s(t) : h.since_s;
    double length = which == SAMPLE_STORE_10S ? 10 : which == SAMPLE_STORE_60S ? 60 : h.newest_s - since_s;
    *from_s = now_s - length;
    *to_s = nextafter(now_s, INFINITY);
    return !isnan(*from_s);
}

void window_put_text(const struct app *a, char *buf, size_t cap) {
    const struct sample_store *t = a->data.tally;
    enum sample_store_window which = window_which(a);
    struct sample_store_health h = {.since_s = NAN};
    char clock[32], length[32];
    double from_s, to_s;
    if (t)
        sample_store_get_health(t, &h);
    buf[0] = '\0';
    if (isnan(h.since_s))
        return;
    if (which == SAMPLE_STORE_10S || which == SAMPLE_STORE_60S)
        snprintf(buf, cap, "last %d s", which == SAMPLE_STORE_10S ? 10 : 60);
    else if (which == SAMPLE_STORE_SPAN && sample_store_get_span(t, which, &from_s, &to_s)) {
        time_text_clock(from_s, clock, sizeof clock);
        time_text_length(to_s - from_s, length, sizeof length);
        snprintf(buf, cap, "%s +%s", clock, length);
    } else {
        double since_s = which == SAMPLE_STORE_MARK ? sample_store_marked_s(t) : h.since_s;
        time_text_length(fmax(h.newest_s - since_s, 0), length, sizeof length);
        snprintf(buf, cap, "%s %s", which == SAMPLE_STORE_MARK ? "since mark" : "over", length);
    }
}

void window_put_missing(const struct app *a, char *buf, size_t cap) {
    struct sample_store_span_health h;
    char length[32];
    buf[0] = '\0';
    if (window_which(a) != SAMPLE_STORE_SPAN ||
        !sample_store_get_span_health(a->data.tally, SAMPLE_STORE_SPAN, &h))
        return;
    if (isnan(h.known_from_s))
        snprintf(buf, cap, "no data for it");
    else if (h.known_from_s - h.from_s > WINDOW_SLACK_S) {
        time_text_length(h.known_from_s - h.from_s, length, sizeof length);
        snprintf(buf, cap, "no data for the first %s", length);
    } else if (h.to_s - h.known_until_s > WINDOW_SLACK_S) {
        time_text_length(h.to_s - h.known_until_s, length, sizeof length);
        snprintf(buf, cap, "no data for the last %s", length);
    }
}
