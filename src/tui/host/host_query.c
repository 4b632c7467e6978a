/* SPDX-License-Identifier: Apache-2.0 */
/* host_query: see host_query.h. */
#include "tui/host/host_query.h"

#include <math.h>
#include <stdio.h>

#include "client/sql/saved.h"
#include "client/target/target.h"
#include "tui/host/querier.h"

static void host_query_on_answer(void *arg) {
    struct host_query *r = arg;
    struct querier_answer answer;
    if (!querier_take(r->querier, &answer))
        return;
    app_take_answer(r->app, &answer);
    host_query_apply(r); /* what waited for the end of a look */
    r->answered(r->arg);
}

void host_query_set_target(struct host_query *r, const struct target_address *addr) {
    loop_unwatch(r->watch);
    querier_free(r->querier);
    r->watch = NULL;
    r->querier = NULL;
    r->ended = false;
    if (r->app->query.running && r->app->query.wish == APP_QUERY_NONE) { /* nobody answers it now */
        struct querier_answer answer = {.kind = QUERIER_RUN, .error_at = -1};
        (void)err_set(&answer.error, ERR_FAILED, "the target is another one now: run the query again");
        app_take_answer(r->app, &answer);
    }
    r->has_address = addr != NULL;
    if (addr)
        r->address = *addr;
    host_feed_set_target(&r->feed, addr);
    host_magic_set_target(&r->magic, addr);
}

void host_query_end_target(struct host_query *r) { r->ended = r->has_address && !r->address.recorded[0]; }

/* Its tables may lie there still; then now() is their last moment. */
static void host_query_go_to_recording(struct host_query *r) {
    struct target_address past;
    char pid[24];
    struct err e;
    if (!r->ended || (r->querier && querier_is_busy(r->querier)))
        return;
    r->ended = false;
    (void)snprintf(pid, sizeof pid, "%ld", (long)r->address.pid);
    if (target_resolve(pid, &past, &e) == 0 && past.recorded[0])
        host_query_set_target(r, &past);
}

static int host_query_open(struct host_query *r, struct err *e) {
    if (r->querier)
        return 0;
    r->querier = querier_new(r->has_address ? &r->address : NULL, e);
    if (r->querier)
        r->watch = loop_watch_fd(r->loop, querier_fd(r->querier), host_query_on_answer, r, e);
    if (r->watch)
        return 0;
    querier_free(r->querier);
    r->querier = NULL;
    return -1;
}

/* What was run before, from the first time that the screen is looked at. */
static void host_query_open_history(struct host_query *r) {
    char path[512];
    struct err e;
    if (r->has_history)
        return;
    r->has_history = true;
    history_path("history", path, sizeof path);
    saved_default_dir(r->app->query.saved_dir, sizeof r->app->query.saved_dir);
    history_fini(&r->app->query.history);
    if (history_open(&r->app->query.history, path, &e) != 0)
        app_message(r->app, true, "%s", e.text);
}

static int host_query_begin(struct host_query *r, enum app_query_request wish, struct err *e) {
    struct app_query *q = &r->app->query;
    if (host_query_open(r, e) != 0)
        return -1;
    if (wish == APP_QUERY_EXPORT) {
        struct querier_export moved = q->exported;
        q->exported.rows = NULL;
        q->exported.order = NULL;
        q->exported.hidden = NULL; /* its name stays, for the message */
        return querier_write(r->querier, &moved, e);
    }
    double from_s = NAN, to_s = NAN;
    (void)window_get_range(r->app, &from_s, &to_s);
    querier_set_window(r->querier, from_s, to_s);
    return wish == APP_QUERY_RUN ? querier_run(r->querier, q->text, e) : querier_list_tables(r->querier, e);
}

static void host_query_apply_magic(struct host_query *r) {
    r->magic.app = r->app;
    r->magic.loop = r->loop;
    r->magic.answered = r->looked;
    r->magic.arg = r->arg;
    if (r->app->repl.wish == APP_REPL_QUERY)
        host_query_go_to_recording(r);
    host_magic_apply(&r->magic);
}

void host_query_apply(struct host_query *r) {
    r->diff.app = r->app;
    r->diff.loop = r->loop;
    r->diff.changed = r->answered;
    r->diff.arg = r->arg;
    host_diff_apply(&r->diff);
    r->feed.app = r->app;
    r->feed.loop = r->loop;
    r->feed.answered = r->answered;
    r->feed.followed = r->followed;
    r->feed.arg = r->arg;
    host_feed_apply(&r->feed);
    host_query_apply_magic(r);
    struct app_query *q = &r->app->query;
    enum app_query_request wish = q->wish;
    struct err e;
    if (r->querier && querier_is_busy(r->querier))
        wish = APP_QUERY_NONE; /* it waits */
    if (wish != APP_QUERY_NONE) {
        host_query_open_history(r);
        host_query_go_to_recording(r);
        q->wish = APP_QUERY_NONE;
    }
    if (wish != APP_QUERY_NONE && host_query_begin(r, wish, &e) != 0) {
        struct querier_answer answer = {.error = e, .error_at = -1};
        answer.kind = wish == APP_QUERY_RUN      ? QUERIER_RUN
                      : wish == APP_QUERY_EXPORT ? QUERIER_EXPORT
                                                 : QUERIER_LIST_TABLES;
        app_take_answer(r->app, &answer);
    }
    if (q->cancel && r->querier)
        querier_cancel(r->querier);
    q->cancel = false;
}

void host_query_stop(struct host_query *r) {
    host_query_set_target(r, NULL);
    host_diff_close(&r->diff);
}
