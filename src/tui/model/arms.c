/* SPDX-License-Identifier: Apache-2.0 */
/* arms: see arms.h. */
#include "tui/model/arms.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define ARMS_SETTLE_S 3.0 /* for the agent to report what it has accepted */

#define ARMS_AFTER_STEP "stops after the current step"

const struct arm_def arm_defs[ARM_KINDS] = {
    [ARM_TRACE] = {"trace", "module trace", ACTION_TRACE, 0, false, "step",
                   "timing modules in some steps: see FORWARD; the same key stops it", ARMS_AFTER_STEP, NULL},
    [ARM_NAN] = {"nan", "NaN search", ACTION_NAN_SEARCH, 0, false, "step",
                 "searching for the first NaN or infinity; the same key stops it", ARMS_AFTER_STEP, NULL},
    [ARM_PROFILER] = {"profiler", "torch.profiler", ACTION_PROFILER, 3, true, "step",
                      "torch.profiler runs for 3 steps", ARMS_AFTER_STEP, NULL},
    [ARM_ALLOC] = {"alloc", "memory trace", ACTION_TRACE_MEMORY, 0, false, "sample",
                   "tracing allocations; the same key stops it, as does quitting",
                   "tracing stops and its hooks are removed", NULL},
};

enum arm_kind arms_find(enum action action) {
    size_t i = 0;
    while (i < ARM_KINDS && arm_defs[i].action != action)
        i++;
    return (enum arm_kind)i;
}

static void arms_take_lease(struct arm *a, const struct model_lease *l) {
    a->listed = true;
    a->owners = l->owners;
    a->by_config = l->by_config;
    a->armed = l->armed;
    a->looks = l->looks;
    a->held_s = l->held_s;
    a->left_s = l->left_s;
    a->cost_pct = l->cost_pct;
    text_sanitize(a->note, sizeof a->note, l->note ? l->note : "");
    text_sanitize(a->file, sizeof a->file, l->file ? l->file : "");
}

void arms_take(struct arms *a, const struct model_status *s, double now_s, bool *over) {
    for (size_t i = 0; i < ARM_KINDS; i++) {
        struct arm *arm = &a->kinds[i];
        arm->listed = false;
        for (size_t k = 0; k < s->n_leases; k++)
            if (s->leases[k].what && strcmp(s->leases[k].what, arm_defs[i].what) == 0)
                arms_take_lease(arm, &s->leases[k]);
        if (!arm->listed) {
            arm->owners = 0;
            arm->by_config = arm->armed = false;
        }
        arm->seen |= arm->mine && arm->owners > 0;
        bool settled = arm->seen || now_s - arm->asked_s >= ARMS_SETTLE_S;
        over[i] = arm->mine && arm->owners == 0 && !arm->armed && settled;
    }
}

bool arms_have_mine(const struct arms *a) {
    for (size_t i = 0; i < ARM_KINDS; i++)
        if (a->kinds[i].mine)
            return true;
    return false;
}

bool arms_is_on(const struct arms *a, enum arm_kind kind) {
    const struct arm *arm = &a->kinds[kind];
    return arm->owners > 0 || arm->by_config || arm->armed;
}

__attribute__((format(printf, 3, 4))) static void arms_say(char *buf, size_t cap, const char *fmt, ...) {
    size_t used = strlen(buf);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(buf + used, cap - used, fmt, ap);
    va_end(ap);
}

void arms_put(const struct arms *a, enum arm_kind kind, char *buf, size_t cap) {
    const struct arm *arm = &a->kinds[kind];
    char left[32];
    int64_t others = arm->owners - (arm->mine ? 1 : 0);
    buf[0] = '\0';
    if (!arms_is_on(a, kind))
        return;
    arms_say(buf, cap, "%s", arm->mine && arm->owners > 0 ? "from here" : "");
    if (others > 0)
        arms_say(buf, cap, "%sby %lld %sclient%s", buf[0] ? " and " : "", (long long)others,
                 arm->mine ? "other " : "", others == 1 ? "" : "s");
    if (arm->by_config)
        arms_say(buf, cap, "%sby its settings", buf[0] ? " and " : "");
    if (!buf[0])
        arms_say(buf, cap, "ending");
    if (arm->left_s >= 0) { /* NAN: no limit */
        text_human_duration(left, sizeof left, arm->left_s);
        arms_say(buf, cap, ", for %s more", left);
    } else if (arm->owners > 0 && !arm->by_config)
        arms_say(buf, cap, ", until %s", arm->mine ? "stopped" : "they disconnect");
    arms_say(buf, cap, "; %lld %s%s seen", (long long)arm->looks, arm_defs[kind].counts,
             arm->looks == 1 ? "" : "s");
    if (!isnan(arm->cost_pct))
        arms_say(buf, cap, ", costs %.2f %%", arm->cost_pct);
    if (arm->note[0])
        arms_say(buf, cap, "; %s", arm->note);
}

void arms_put_names(const struct arms *a, char *buf, size_t cap) {
    buf[0] = '\0';
    for (size_t i = 0; i < ARM_KINDS; i++)
        if (arms_is_on(a, (enum arm_kind)i)) {
            const struct arm *arm = &a->kinds[i];
            bool by_others = arm->owners > (arm->mine ? 1 : 0);
            arms_say(buf, cap, "%s%s%s", buf[0] ? ", " : "", arm_defs[i].name,
                     by_others                      ? " (by others)"
                     : arm->by_config && !arm->mine ? " (by its settings)"
                                                    : "");
        }
}
