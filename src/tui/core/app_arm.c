/* SPDX-License-Identifier: Apache-2.0 */
/* app_arm: see app_arm.h. */
#include "tui/core/app_arm.h"

#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/watch.h"
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
        app_message(a, false, "counting a step's operations to estimate the cost of %s ...",
                    arm_defs[kind].name);
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
        app_refuse(a, "this needs an agent in the job, and there is none");
    else if (arm->mine) {
        app_message(a, false, "%s: %s", arm_defs[kind].name, arm_defs[kind].leaves);
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
        snprintf(arm->said, sizeof arm->said, "%lld %s%s seen", (long long)arm->looks, def->counts,
                 arm->looks == 1 ? "" : "s");
    else /* or some since our last request */
        snprintf(arm->said, sizeof arm->said, "over");
    if (!arm->trying)
        app_message(a, false, "%s: %s", def->name, arm->said);
    else {
        arm->asked_s = a->now_s;
        app_message(a, false, "%s; press the key again to do it", arm->said);
    }
    app_screen_update_all(a);
}

void app_arm_take(struct app *a, const struct model_status *s) {
    bool over[ARM_KINDS];
    arms_take(&a->data.arms, s, a->now_s, over);
    for (size_t i = 0; i < ARM_KINDS; i++)
        if (over[i])
            app_arm_end(a, (enum arm_kind)i);
}

bool app_arm_refused(struct app *a, const struct err *why) {
    bool was_asked = false;
    for (size_t i = 0; i < ARM_KINDS; i++) {
        struct arm *arm = &a->data.arms.kinds[i];
        if (!arm->mine || arm->seen)
            continue;
        arm->mine = arm->trying = false;
        snprintf(arm->said, sizeof arm->said, "%s", why->text);
        was_asked = true;
    }
    return was_asked;
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
            snprintf(buf + used, cap - used, "%s%s: %s", used ? "   " : "", arm_defs[i].name, text);
    }
}

/* ---- a variable that is watched ---- */

#define ARM_WATCH_SETTING "probing.torch_profiling"

static void app_arm_put_watch(struct strbuf *out, const struct watch_expr *x) {
    strbuf_addf(out, "%s%s%s", x->name, x->func[0] ? "@" : "", x->func);
}

int app_arm_turn_watch(const char *before, const char *expr, char *value, size_t cap, bool *on,
                       struct err *e) {
    struct watch w, wanted;
    struct strbuf text, one;
    char all[512];
    if (watch_parse(&w, ARM_WATCH_SETTING, before, e) != 0)
        return -1;
    strbuf_init(&text, 4096);
    strbuf_init(&one, 1024);
    *on = true;
    const char *first = w.on ? "on,exprs=" : "exprs=";
    size_t n = 0;
    for (size_t i = 0; i < w.n; i++) {
        strbuf_clear(&one);
        app_arm_put_watch(&one, &w.exprs[i]);
        if (strcmp(strbuf_str(&one), expr) == 0)
            *on = false;
        else
            strbuf_addf(&text, "%s%s", n++ ? "," : first, strbuf_str(&one));
    }
    if (*on)
        strbuf_addf(&text, "%s%s", n++ ? "," : first, expr);
    if (n == 0)
        strbuf_adds(&text, w.on ? "on" : "off");
    bool fits = !text.failed && text.len < cap && text.len < sizeof all;
    snprintf(all, sizeof all, "%s", strbuf_str(&text));
    strbuf_fini(&text);
    strbuf_fini(&one);
    if (!fits)
        return err_set(e, ERR_USAGE, "the watch list is full: it takes at most %zu bytes", cap - 1);
    if (watch_parse(&wanted, ARM_WATCH_SETTING, all, e) != 0)
        return -1;
    snprintf(value, cap, "%.*s", (int)cap - 1, all);
    return 0;
}

void app_arm_watch(struct app *a, const char *name, const char *func) {
    const char *dot = strrchr(func, '.');
    bool has_agent = a->data.state == SESSION_CONNECTED && a->data.target.mode == MODEL_MODE_AGENT;
    if (!has_agent) {
        app_refuse(a, "watching values needs an agent in the job, and there is none");
        return;
    }
    snprintf(a->watch.expr, sizeof a->watch.expr, "%.120s@%.120s", name, dot && dot[1] ? dot + 1 : func);
    a->host.request(a->host.arg, WIRE_STATUS);
}

/* Are values recorded at returns of functions, too? Needs sys.monitoring, which Python has from
 * 3.12 on. */
static bool app_arm_watches_returns(const struct app *a) {
    int minor = 0;
    return a->data.target.python && sscanf(a->data.target.python, "3.%d", &minor) == 1 && minor >= 12;
}

void app_arm_take_watch(struct app *a, const struct model_status *s) {
    struct app_watch *w = &a->watch;
    struct wire_config wanted = {.key = ARM_WATCH_SETTING};
    const char *before = NULL;
    struct err e;
    bool on;
    if (!w->expr[0])
        return;
    for (size_t i = 0; i < s->n_settings; i++)
        if (strcmp(s->settings[i].key, ARM_WATCH_SETTING) == 0)
            before = s->settings[i].value ? s->settings[i].value : "";
    if (!before)
        app_message(a, true, "this agent cannot watch values: it has no " ARM_WATCH_SETTING);
    else if (app_arm_turn_watch(before, w->expr, wanted.value, sizeof wanted.value, &on, &e) != 0)
        app_message(a, true, "%s", e.text);
    else {
        if (on)
            app_message(a, false, "recording %s at %s: training_logs in SQL (S)", w->expr,
                        app_arm_watches_returns(a) ? "steps and returns" : "optimizer steps within it");
        else
            app_message(a, false, "%s is no longer recorded", w->expr);
        if (a->host.configure(a->host.arg, &wanted, &e) != 0)
            app_message(a, true, "%s", e.text);
    }
    w->expr[0] = '\0';
}

void app_arm_forget_watch(struct app *a) { a->watch.expr[0] = '\0'; }
