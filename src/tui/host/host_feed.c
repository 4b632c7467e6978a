/* SPDX-License-Identifier: Apache-2.0 */
/* host_feed: see host_feed.h. */
#include "tui/host/host_feed.h"

#include <string.h>

#include "tui/host/querier.h"

static void host_feed_on_answer(void *arg) {
    struct host_feed *r = arg;
    struct querier_answer answer;
    if (!querier_take(r->querier, &answer))
        return;
    const struct app_feed *f = app_feed_get(r->app, r->id);
    bool was_well = f->is_answered && f->failed_s <= 0;
    app_feed_take(r->app, r->id, &answer);
    bool may_wait = f->again && was_well && f->failed_s <= 0;
    host_feed_apply(r);
    (may_wait ? r->followed : r->answered)(r->arg);
}

void host_feed_set_target(struct host_feed *r, const struct target_address *addr) {
    loop_unwatch(r->watch);
    querier_free(r->querier);
    r->watch = NULL;
    r->querier = NULL;
    if (r->app && r->id < FEED_COUNT)
        r->app->feeds.feeds[r->id].running = false; /* nobody answers it now */
    r->has_address = addr != NULL;
    if (addr)
        r->address = *addr;
}

static int host_feed_open(struct host_feed *r, struct err *e) {
    if (r->querier)
        return 0;
    r->querier = querier_new(r->has_address ? &r->address : NULL, e);
    if (r->querier)
        r->watch = loop_watch_fd(r->loop, querier_fd(r->querier), host_feed_on_answer, r, e);
    if (r->watch)
        return 0;
    querier_free(r->querier);
    r->querier = NULL;
    return -1;
}

void host_feed_apply(struct host_feed *r) {
    if (r->querier && querier_is_busy(r->querier))
        return;
    for (enum app_feed_id id; (id = app_feed_next(r->app, r->id)) != FEED_COUNT;) {
        struct querier_answer answer = {.kind = QUERIER_RUN, .error_at = -1};
        r->id = id;
        if (host_feed_open(r, &answer.error) == 0 &&
            app_feed_begin(r->app, id, r->querier, &answer.error) == 0)
            return;
        app_feed_take(r->app, id, &answer);
    }
}
