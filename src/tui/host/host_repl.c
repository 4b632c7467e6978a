/* SPDX-License-Identifier: Apache-2.0 */
/* host_repl: see host_repl.h. */
#include "tui/host/host_repl.h"

#include <stdio.h>

/* What was run before, from the first time that there is something to run. */
static void host_repl_open_history(struct app *app) {
    struct app_repl *r = &app->repl;
    char path[512];
    struct err e;
    if (r->has_history)
        return;
    r->has_history = true;
    history_path("repl", path, sizeof path);
    history_fini(&r->history);
    if (history_open(&r->history, path, &e) != 0)
        app_message(app, true, "%s", e.text);
}

void host_repl_apply(struct app *app, struct session *s) {
    struct app_repl *r = &app->repl;
    struct err e;
    if (r->opened)
        host_repl_open_history(app);
    if (r->wish && r->wish != APP_REPL_QUERY) {
        struct wire_eval want = app_repl_question(app);
        r->wish = APP_REPL_NOTHING;
        (void)err_set(&e, ERR_FAILED, "not connected");
        if (!s || session_eval(s, &want, &e) != 0)
            app_repl_refused(app, &e);
    }
    if (r->interrupt && s && r->asked != APP_REPL_QUERY)
        (void)session_interrupt(s, NULL);
    r->interrupt = r->interrupt && r->asked == APP_REPL_QUERY;
}

void host_repl_leave(struct app *app, struct session *s) {
    if (s && app_repl_runs(app) && app->repl.asked != APP_REPL_QUERY)
        (void)session_interrupt(s, NULL);
    app_repl_forget(app);
}
