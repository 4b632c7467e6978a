/* SPDX-License-Identifier: Apache-2.0 */
/* app_watch: see app_watch.h. */
#include "tui/core/app_watch.h"

#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/watch.h"
#include "tui/core/app.h"

#define WATCH_SETTING "probing.torch_profiling"

static void app_watch_put(struct strbuf *out, const struct watch_expr *x) {
    strbuf_addf(out, "%s%s%s", x->name, x->func[0] ? "@" : "", x->func);
}

int app_watch_turn(const char *before, const char *expr, char *value, size_t cap, bool *on, struct err *e) {
    struct watch w, wanted;
    struct strbuf text, one;
    char all[512];
    if (watch_parse(&w, WATCH_SETTING, before, e) != 0)
        return -1;
    strbuf_init(&text, 4096);
    strbuf_init(&one, 1024);
    *on = true;
    const char *first = w.on ? "on,exprs=" : "exprs=";
    size_t n = 0;
    for (size_t i = 0; i < w.n; i++) {
        strbuf_clear(&one);
        app_watch_put(&one, &w.exprs[i]);
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
        return err_set(e, ERR_USAGE, "no more can be watched: what is watched takes %zu bytes at most",
                       cap - 1);
    if (watch_parse(&wanted, WATCH_SETTING, all, e) != 0)
        return -1;
    snprintf(value, cap, "%.*s", (int)cap - 1, all);
    return 0;
}

void app_watch_local(struct app *a, const char *name, const char *func) {
    const char *dot = strrchr(func, '.');
    bool has_agent = a->data.state == SESSION_CONNECTED && a->data.target.mode == MODEL_MODE_AGENT;
    if (!has_agent) {
        app_refuse(a, "values can only be watched by an agent in the job, and there is none");
        return;
    }
    snprintf(a->watch.expr, sizeof a->watch.expr, "%.120s@%.120s", name, dot && dot[1] ? dot + 1 : func);
    a->host.request(a->host.arg, WIRE_STATUS);
}

/* Are values recorded at returns of functions, too? Needs sys.monitoring, which Python has from
 * 3.12 on. */
static bool watch_has_returns(const struct app *a) {
    int minor = 0;
    return a->data.target.python && sscanf(a->data.target.python, "3.%d", &minor) == 1 && minor >= 12;
}

void app_watch_take(struct app *a, const struct model_status *s) {
    struct app_watch *w = &a->watch;
    struct wire_config wanted = {.key = WATCH_SETTING};
    const char *before = NULL;
    struct err e;
    bool on;
    if (!w->expr[0])
        return;
    for (size_t i = 0; i < s->n_settings; i++)
        if (strcmp(s->settings[i].key, WATCH_SETTING) == 0)
            before = s->settings[i].value ? s->settings[i].value : "";
    if (!before)
        app_message(a, true, "this agent cannot watch values: it has no " WATCH_SETTING);
    else if (app_watch_turn(before, w->expr, wanted.value, sizeof wanted.value, &on, &e) != 0)
        app_message(a, true, "%s", e.text);
    else {
        if (on)
            app_message(a, false, "watching %s at %s: training_logs in SQL (7)", w->expr,
                        watch_has_returns(a) ? "steps and returns" : "optimizer steps within it");
        else
            app_message(a, false, "%s is not watched any more", w->expr);
        if (a->host.configure(a->host.arg, &wanted, &e) != 0)
            app_message(a, true, "%s", e.text);
    }
    w->expr[0] = '\0';
}
