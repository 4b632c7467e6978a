/* SPDX-License-Identifier: Apache-2.0 */
/* app_arm: see app_arm.h. */
#include "tui/core/app_arm.h"

#include <stdio.h>
#include <string.h>

#include "tui/core/app.h"
#include "tui/core/app_screen.h"

#define ARM_STATUS_S 0.5   /* between two status requests while something is armed from here */
#define ARM_SETTLED_S 5.0  /* the same on a screen that shows what others have armed */
#define ARM_CONFIRM_S 60.0 /* for so long the cost can be confirmed */

static void app_arm_request(struct app *a, enum arm_kind kind, bool disarm, bool dry) {
    struct wire_arm want = {.steps = arm_defs[kind].steps, .dry = dry};
    struct err e;
    snprintf(want.what, sizeof want.what, "%s", arm_defs[kind].what);
    if ((disarm ? a->host.disarm : a->host.arm)(a->host.arg, &want, &e) == 0)
        return;
    app_arm_refused(a, &e);
    app_message(a, true, "%s", e.text);
}

static void app_arm_begin(struct app *a, enum arm_kind kind, bool dry) {
    struct arm *arm = &a->data.arms.kinds[kind];
    arm->mine = true;
    arm->seen = false;
    arm->trying = dry;
    arm->asked_s = a->now_s;
    arm->said[0] = '\0';
    if (dry)
        app_message(a, false, "counting what a step does, to tell what %s would cost ...",
                    arm_defs[kind].what);
    else
        app_message(a, false, "%s", arm_defs[kind].begins);
    app_arm_request(a, kind, false, dry);
}

bool app_arm_act(struct app *a, enum action action) {
    enum arm_kind kind = arms_find(action);
    const struct data *d = &a->data;
    if (kind == ARM_KINDS)
        return false;
    struct arm *arm = &a->data.arms.kinds[kind];
    bool has_agent = d->state == SESSION_CONNECTED && d->has_target && d->target.mode == MODEL_MODE_AGENT;
    bool told = arm->trying && !arm->mine && a->now_s - arm->asked_s <= ARM_CONFIRM_S && arm->said[0];
    if (!has_agent)
        app_refuse(a, "only an agent in the job can arm something in it, and there is none");
    else if (arm->mine) {
        app_message(a, false, "%s: no more, after the step that goes on", arm_defs[kind].what);
        app_arm_request(a, kind, true, false);
    } else
        app_arm_begin(a, kind, arm_defs[kind].asks && !told);
    return true;
}

/* It has ended: the agent's words, or how many steps it has seen. */
static void app_arm_end(struct app *a, enum arm_kind kind) {
    struct arm *arm = &a->data.arms.kinds[kind];
    const struct arm_def *def = &arm_defs[kind];
    arm->mine = false;
    if (arm->note[0])
        snprintf(arm->said, sizeof arm->said, "%s%s%s", arm->note, arm->file[0] ? ": " : "", arm->file);
    else if (arm->looks > 0)
        snprintf(arm->said, sizeof arm->said, "%lld step%s seen", (long long)arm->looks,
                 arm->looks == 1 ? "" : "s");
    else /* or some since our last request */
        snprintf(arm->said, sizeof arm->said, "over");
    if (!arm->trying)
        app_message(a, false, "%s: %s", def->what, arm->said);
    else {
        arm->asked_s = a->now_s;
        app_message(a, false, "%s; the same key again does it", arm->said);
    }
    app_update_screens(a);
}

void app_arm_take(struct app *a, const struct model_status *s) {
    bool over[ARM_KINDS];
    arms_take(&a->data.arms, s, a->now_s, over);
    for (size_t i = 0; i < ARM_KINDS; i++)
        if (over[i])
            app_arm_end(a, (enum arm_kind)i);
}

void app_arm_refused(struct app *a, const struct err *why) {
    for (size_t i = 0; i < ARM_KINDS; i++) {
        struct arm *arm = &a->data.arms.kinds[i];
        if (!arm->mine || arm->seen)
            continue;
        arm->mine = arm->trying = false;
        snprintf(arm->said, sizeof arm->said, "%s", why->text);
    }
}

bool app_arm_wants_status(const struct app *a) {
    const struct data *d = &a->data;
    double age_s = a->now_s - d->pulse.status_at_s;
    bool tells = false;
    for (int i = 0; i < a->n_screens; i++)
        tells = tells || a->screens[i].def->tells_arms;
    if (data_is_recorded(d) || data_is_over(d))
        return false;
    return arms_have_mine(&d->arms) ? age_s >= ARM_STATUS_S : tells && age_s >= ARM_SETTLED_S;
}

void app_arm_put(const struct app *a, enum arm_kind kind, char *buf, size_t cap) {
    const struct arm *arm = &a->data.arms.kinds[kind];
    arms_put(&a->data.arms, kind, buf, cap);
    if (!buf[0] && !arm->mine)
        snprintf(buf, cap, "%s", arm->said);
}

void app_arm_put_all(const struct app *a, char *buf, size_t cap) {
    buf[0] = '\0';
    for (size_t i = 0; i < ARM_KINDS; i++) {
        char text[2 * ARMS_TEXT];
        size_t used = strlen(buf);
        app_arm_put(a, (enum arm_kind)i, text, sizeof text);
        if (text[0])
            snprintf(buf + used, cap - used, "%s%s: %s", used ? "   " : "", arm_defs[i].what, text);
    }
}
