/* SPDX-License-Identifier: Apache-2.0 */
/* runner_magic: see runner_magic.h. */
#include "tui/runner_magic.h"

#include <string.h>

#include "tui/app_magic.h"
#include "tui/querier.h"

static void runner_magic_on_answer(void *arg) {
    struct runner_magic *r = arg;
    struct querier_answer answer;
    if (!querier_take(r->querier, &answer))
        return;
    app_magic_take(r->app, &answer);
    r->answered(r->arg);
}

/* There is no answer but this. */
static void runner_magic_refuse(struct runner_magic *r, const struct err *why) {
    struct querier_answer answer = {.kind = QUERIER_MAGIC, .error_at = -1, .error = *why};
    app_magic_take(r->app, &answer);
}

void runner_magic_set_target(struct runner_magic *r, const struct session_address *addr) {
    struct err why;
    bool was_busy = r->querier && querier_is_busy(r->querier);
    loop_unwatch(r->watch);
    querier_free(r->querier);
    r->watch = NULL;
    r->querier = NULL;
    r->has_address = addr != NULL;
    if (addr)
        r->address = *addr;
    if (!was_busy)
        return;
    (void)err_set(&why, ERR_FAILED, "the target is another one now: ask again");
    runner_magic_refuse(r, &why);
}

static int runner_magic_open(struct runner_magic *r, struct err *e) {
    if (r->querier)
        return 0;
    r->querier = querier_new(r->has_address ? &r->address : NULL, e);
    if (r->querier)
        r->watch = loop_watch_fd(r->loop, querier_fd(r->querier), runner_magic_on_answer, r, e);
    if (r->watch)
        return 0;
    querier_free(r->querier);
    r->querier = NULL;
    return -1;
}

void runner_magic_apply(struct runner_magic *r) {
    struct app_repl *repl = &r->app->repl;
    struct err e;
    if (repl->wish == APP_REPL_QUERY && !(r->querier && querier_is_busy(r->querier))) {
        repl->wish = APP_REPL_NOTHING;
        if (runner_magic_open(r, &e) != 0 || querier_do(r->querier, &repl->magic, repl->cols, &e) != 0)
            runner_magic_refuse(r, &e);
    }
    if (repl->interrupt && repl->asked == APP_REPL_QUERY) {
        repl->interrupt = false;
        if (r->querier)
            querier_cancel(r->querier);
    }
}
