/* SPDX-License-Identifier: Apache-2.0 */
/* host_magic: see host_magic.h. */
#include "tui/host/host_magic.h"

#include <string.h>

#include "tui/core/app_magic.h"
#include "tui/host/querier.h"

static void host_magic_on_answer(void *arg) {
    struct host_magic *r = arg;
    struct querier_answer answer;
    if (!querier_take(r->querier, &answer))
        return;
    app_magic_take(r->app, &answer);
    r->answered(r->arg);
}

/* There is no answer but this. */
static void host_magic_refuse(struct host_magic *r, const struct err *why) {
    struct querier_answer answer = {.kind = QUERIER_MAGIC, .error_at = -1, .error = *why};
    app_magic_take(r->app, &answer);
}

void host_magic_set_target(struct host_magic *r, const struct target_address *addr) {
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
    host_magic_refuse(r, &why);
}

static int host_magic_open(struct host_magic *r, struct err *e) {
    if (r->querier)
        return 0;
    r->querier = querier_new(r->has_address ? &r->address : NULL, e);
    if (r->querier)
        r->watch = loop_watch_fd(r->loop, querier_fd(r->querier), host_magic_on_answer, r, e);
    if (r->watch)
        return 0;
    querier_free(r->querier);
    r->querier = NULL;
    return -1;
}

void host_magic_apply(struct host_magic *r) {
    struct app_repl *repl = &r->app->repl;
    struct err e;
    if (repl->wish == APP_REPL_QUERY && !(r->querier && querier_is_busy(r->querier))) {
        repl->wish = APP_REPL_NOTHING;
        if (host_magic_open(r, &e) != 0 || querier_do(r->querier, &repl->magic, repl->cols, &e) != 0)
            host_magic_refuse(r, &e);
    }
    if (repl->interrupt && repl->asked == APP_REPL_QUERY) {
        repl->interrupt = false;
        if (r->querier)
            querier_cancel(r->querier);
    }
}
