/* SPDX-License-Identifier: Apache-2.0 */
/* app_wants: see app_wants.h. */
#include "tui/core/app_wants.h"

#include "tui/core/app_arm.h"
#include "tui/core/app_query.h"
#include "tui/core/app_repl.h"
#include "tui/core/screen.h"
#include "tui/model/events.h"

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

bool app_shows_children(const struct app *a) {
    int i = a->n_screens - 1;
    while (i > 0 && !a->screens[i].def->is_tab)
        i--;
    return i >= 0 && a->screens[i].def->shows_children;
}

bool app_needs_tick(const struct app *a) {
    if (app_query_needs_tick(a) || app_repl_needs_tick(a))
        return true;
    if (a->n_screens && a->screens[0].def == &screen_picker)
        return false;
    if (data_is_over(&a->data) || data_is_recorded(&a->data))
        return false; /* the status line has the time of the last snapshot, not its age */
    if (a->data.paused && a->data.state == SESSION_CONNECTED)
        return false; /* the display is frozen */
    return a->data.state != SESSION_CONNECTED || app_is_late(a) || debuggers_stop(&a->data.holds);
}
