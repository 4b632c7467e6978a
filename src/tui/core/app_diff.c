/* SPDX-License-Identifier: Apache-2.0 */
/* app_diff: see app_diff.h. */
#include "tui/core/app_diff.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tui/core/app.h"
#include "tui/core/app_history.h"
#include "tui/core/app_screen.h"
#include "tui/core/window.h"
#include "tui/view/time_text.h"

#define DIFF_REFRESH_S 1.0   /* between two updates of the earlier time */
#define DIFF_LONGEST_S 300.0 /* of the time before a mark: more is not kept */

void app_diff_fini(struct app_diff *d) {
    sample_store_free(d->other);
    memset(d, 0, sizeof *d);
}

/* ---- what is compared ---- */

static bool app_diff_has_before(const struct app *a, enum sample_store_window chosen) {
    return a->diff.has_other || a->diff.has_span || chosen != SAMPLE_STORE_ALL;
}

void app_diff_toggle(struct app *a) {
    struct app_diff *d = &a->diff;
    d->on = !d->on;
    d->made_to_s = 0;
    a->window.version++; /* screens show something else now */
    if (!d->on) {
        if (a->data.tally && !d->has_other)
            sample_store_clear_span(a->data.tally, SAMPLE_STORE_OTHER);
        app_screen_update_all(a);
        return;
    }
    if (!app_diff_has_before(a, window_which(a))) {
        a->window.which = SAMPLE_STORE_10S;
        app_message(a, false, "comparing the last 10 s with the 10 s before (W changes the window)");
    }
    app_screen_update_all(a);
}

static void app_diff_mark(struct app *a) {
    if (!a->data.tally) {
        app_message(a, false, "there are no samples yet: nothing to mark");
        return;
    }
    if (a->data.paused) {
        app_message(a, false, "frozen: a mark is set while the view moves");
        return;
    }
    if (sample_store_mark(a->data.tally, a->now_s) != 0) {
        app_message(a, true, "out of memory for a mark");
        return;
    }
    app_screen_update_all(a);
    app_message(a, false, "mark set: W shows the time since, d compares it with the time before");
}

bool app_diff_act(struct app *a, enum action action) {
    if (action == ACTION_MARK)
        app_diff_mark(a);
    else if (action == ACTION_DIFF)
        app_diff_toggle(a);
    else if (action == ACTION_DIFF_BEFORE)
        app_diff_choose_before(a);
    return action == ACTION_MARK || action == ACTION_DIFF || action == ACTION_DIFF_BEFORE;
}

/* Compare with something else than until now. */
static void app_diff_begin_anew(struct app *a) {
    a->diff.on = false;
    app_diff_toggle(a);
}

void app_diff_say(struct app *a) {
    char text[160];
    struct app_diff_side side;
    if (!a->diff.on) {
        app_message(a, false, "comparison off");
        return;
    }
    app_diff_find(a, window_which(a), 0, &side); /* say which part of it is known */
    app_diff_text(a, window_which(a), text, sizeof text);
    app_message(a, false, "Flame and Top: %s", text);
}

bool app_diff_choose_span(struct app *a, double from_s, double to_s) {
    if (!a->data.tally) {
        app_refuse(a, "there are no samples yet: Flame and Timeline start sampling");
        return false;
    }
    if (!(from_s < to_s)) {
        app_refuse(a, "a span begins before it ends");
        return false;
    }
    app_diff_fini(&a->diff);
    a->diff.has_span = true;
    a->diff.span_from_s = from_s;
    a->diff.span_to_s = to_s;
    app_diff_begin_anew(a);
    app_diff_say(a);
    return true;
}

void app_diff_choose_before(struct app *a) {
    app_diff_fini(&a->diff);
    app_diff_begin_anew(a);
    app_diff_say(a);
}

/* Windows, as ":window" takes them; false: the text is not one, and nothing was done. */
static bool app_diff_windows(struct app *a, const char *argument) {
    char first[64];
    struct err e;
    double from_s, to_s;
    size_t len = strcspn(argument, " ");
    const char *second = argument + len + strspn(argument + len, " ");
    if (len >= sizeof first)
        return false;
    memcpy(first, argument, len);
    first[len] = '\0';
    const char *other = *second ? second : first;
    if (!window_is_text(first) || !window_is_text(other))
        return false;
    if (window_parse_range(a, other, &from_s, &to_s, &e) != 0 || (*second && window_parse(a, first, &e) != 0))
        app_refuse(a, "%s", e.text);
    else
        app_diff_choose_span(a, from_s, to_s);
    return true;
}

void app_diff_command(struct app *a, const char *argument) {
    struct app_diff *d = &a->diff;
    if (strcmp(argument, "before") == 0)
        app_diff_choose_before(a);
    else if (strcmp(argument, "off") == 0) {
        if (d->on)
            app_diff_toggle(a);
        app_diff_say(a);
    } else if (!app_diff_windows(a, argument)) {
        app_message(a, false, "reading %s ...", argument);
        a->host.open_diff(a->host.arg, argument);
    }
}

/* Where the time before the one from `from_s` to `to_s` begins; it ends at `from_s`. */
static double app_diff_begin(const struct app *a, enum sample_store_window chosen, double from_s,
                             double to_s) {
    double since_s = NAN, end_s;
    if (chosen != SAMPLE_STORE_MARK)
        return from_s - (to_s - from_s);
    app_history_times(a, SAMPLE_STORE_ALL, &since_s, &end_s);
    return since_s > from_s - DIFF_LONGEST_S ? since_s : from_s - DIFF_LONGEST_S;
}

/* Set SAMPLE_STORE_OTHER to the span that was chosen. */
static bool app_diff_make_span(struct app *a) {
    struct app_diff *d = &a->diff;
    uint64_t ids = sample_store_get_mark(a->data.tally).ids;
    double from_s, to_s;
    bool is_made = sample_store_get_span(a->data.tally, SAMPLE_STORE_OTHER, &from_s, &to_s) &&
                   from_s == d->span_from_s && to_s == d->span_to_s;
    if (is_made && d->ids == ids && d->pauses == a->data.pauses)
        return true;
    d->ids = ids;
    d->pauses = a->data.pauses;
    if (sample_store_set_span(a->data.tally, SAMPLE_STORE_OTHER, d->span_from_s, d->span_to_s) != 0)
        sample_store_clear_span(a->data.tally, SAMPLE_STORE_OTHER);
    return true;
}

/* Update SAMPLE_STORE_OTHER; false: there is no such time. */
static bool app_diff_make(struct app *a, enum sample_store_window chosen) {
    struct app_diff *d = &a->diff;
    struct sample_store *t = a->data.tally;
    double from_s, to_s;
    if (d->has_span)
        return app_diff_make_span(a);
    if (!app_diff_has_before(a, chosen) || !app_history_times(a, chosen, &from_s, &to_s))
        return false;
    uint64_t ids = sample_store_get_mark(t).ids;
    bool is_other =
        d->made_to_s == 0 || d->ids != ids || d->made_for != chosen || d->pauses != a->data.pauses;
    bool is_moving = chosen == SAMPLE_STORE_10S || chosen == SAMPLE_STORE_60S;
    bool is_due = is_moving ? fabs(to_s - d->made_to_s) >= DIFF_REFRESH_S : from_s != d->made_from_s;
    if (!is_other && !is_due)
        return true;
    d->made_from_s = from_s;
    d->made_to_s = to_s;
    d->ids = ids;
    d->made_for = chosen;
    d->pauses = a->data.pauses;
    double begin_s = app_diff_begin(a, chosen, from_s, to_s);
    /* A sample has the time at which its interval ends. */
    if (begin_s < from_s && sample_store_set_span(t, SAMPLE_STORE_OTHER, nextafter(begin_s, INFINITY),
                                                  nextafter(from_s, INFINITY)) == 0)
        return true;
    sample_store_clear_span(t, SAMPLE_STORE_OTHER);
    return true;
}

/* The thread of a recording with the same name; -1: none. */
static int64_t app_diff_thread(const struct app *a, int64_t tid) {
    const struct stack_counts *mine = sample_store_counts(a->data.tally),
                              *other = sample_store_counts(a->diff.other);
    const char *name = stack_counts_thread_name(mine, tid);
    for (size_t i = 0; name && i < stack_counts_count(other); i++) {
        int64_t there = stack_counts_get(other, i)->tid;
        const char *its = stack_counts_thread_name(other, there);
        if (its && strcmp(its, name) == 0)
            return there;
    }
    return -1;
}

bool app_diff_find(struct app *a, enum sample_store_window chosen, int64_t tid, struct app_diff_side *out) {
    struct app_diff *d = &a->diff;
    if (!d->on || !a->data.tally)
        return false;
    if (d->has_other) {
        if (!d->other)
            return false;
        *out = (struct app_diff_side){d->other, SAMPLE_STORE_ALL, true, tid ? app_diff_thread(a, tid) : 0};
        return true;
    }
    *out = (struct app_diff_side){a->data.tally, SAMPLE_STORE_OTHER, false, tid};
    return app_diff_make(a, chosen);
}

/* ---- words ---- */

static void app_diff_now_text(const struct app *a, enum sample_store_window chosen, char *buf, size_t cap) {
    double from_s = 0, to_s = 0;
    char length[32] = "?";
    if (app_history_window_text(a, chosen, buf, cap))
        return;
    if (app_history_times(a, chosen, &from_s, &to_s))
        time_text_length(to_s - from_s, length, sizeof length);
    if (chosen == SAMPLE_STORE_10S || chosen == SAMPLE_STORE_60S)
        snprintf(buf, cap, "last %d s", chosen == SAMPLE_STORE_10S ? 10 : SAMPLE_STORE_SECONDS);
    else if (chosen == SAMPLE_STORE_MARK)
        snprintf(buf, cap, "%s since mark", length);
    else if (chosen == SAMPLE_STORE_SPAN)
        snprintf(buf, cap, "span of %s", length);
    else
        snprintf(buf, cap, "all %s", length);
}

void app_diff_text(const struct app *a, enum sample_store_window chosen, char *buf, size_t cap) {
    const struct app_diff *d = &a->diff;
    char now[96], before[64], known[64], length[32] = "?";
    double from_s, to_s;
    app_diff_now_text(a, chosen, now, sizeof now);
    if (d->has_other) {
        char name[sizeof d->name];
        text_sanitize(name, sizeof name, d->name);
        snprintf(buf, cap, "%s against recording %s%s", now, name,
                 d->has_failed ? ": it cannot be read"
                 : d->other    ? ""
                               : ": reading it ...");
        return;
    }
    if (d->has_span) {
        time_text_clock(d->span_from_s, before, sizeof before);
        time_text_length(d->span_to_s - d->span_from_s, length, sizeof length);
        app_history_known_text(a, SAMPLE_STORE_OTHER, known, sizeof known);
        snprintf(buf, cap, "%s against %s +%s%s", now, before, length, known);
        return;
    }
    if (a->data.tally && sample_store_get_span(a->data.tally, SAMPLE_STORE_OTHER, &from_s, &to_s))
        time_text_length(to_s - from_s, length, sizeof length);
    if (chosen == SAMPLE_STORE_10S || chosen == SAMPLE_STORE_60S)
        snprintf(before, sizeof before, "the %d s before",
                 chosen == SAMPLE_STORE_10S ? 10 : SAMPLE_STORE_SECONDS);
    else
        snprintf(before, sizeof before, "the %s before", length);
    app_history_known_text(a, SAMPLE_STORE_OTHER, known, sizeof known);
    snprintf(buf, cap, "%s against %s%s", now, before, known);
}

/* ---- a recording ---- */

void app_diff_expect(struct app *a, const char *name) {
    app_diff_fini(&a->diff);
    a->diff.has_other = a->diff.on = true;
    a->window.version++;
    snprintf(a->diff.name, sizeof a->diff.name, "%s", name);
}

void app_diff_take_samples(struct app *a, const struct model_sample_batch *b) {
    struct app_diff *d = &a->diff;
    if (!d->has_other) /* off */
        return;
    if (!d->other)
        d->other = sample_store_new();
    if (!d->other || b->n_samples == 0)
        return;
    sample_store_add(d->other, b, b->samples[b->n_samples - 1].timestamp);
    a->window.version++;
    a->dirty = true;
}

void app_diff_fail(struct app *a, const char *why) {
    if (!a->diff.has_other)
        return;
    a->diff.has_failed = true;
    app_message(a, true, "the recording to compare with: %s", why);
}
