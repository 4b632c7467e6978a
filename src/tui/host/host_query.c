/* SPDX-License-Identifier: Apache-2.0 */
/* host_query: see host_query.h. */
#include "tui/host/host_query.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/target/target.h"
#include "tui/core/app_feed.h"
#include "tui/core/app_query.h"
#include "tui/core/app_repl.h"
#include "tui/core/app_take.h"
#include "tui/core/window.h"
#include "tui/workers/querier.h"

static void host_querier_close(struct host_querier *w) {
    loop_unwatch(w->watch);
    querier_free(w->querier);
    *w = (struct host_querier){.querier = NULL};
}

static int host_querier_open(struct host_query *q, struct host_querier *w, void (*on_answer)(void *arg),
                             struct err *e) {
    if (w->querier)
        return 0;
    w->querier = !q->has_address && q->job[0] ? querier_new_job(q->job, e)
                                              : querier_new(q->has_address ? &q->address : NULL, e);
    if (w->querier)
        w->watch = loop_watch_fd(q->loop, querier_fd(w->querier), on_answer, q, e);
    if (w->watch)
        return 0;
    host_querier_close(w);
    return -1;
}

static bool host_querier_is_busy(const struct host_querier *w) {
    return w->querier && querier_is_busy(w->querier);
}

/* A target that has ended may have left its tables; then now() is their last moment. True: they are
 * the target from here on. */
static bool host_query_go_to_recording(struct host_query *q) {
    struct target_address recording;
    char pid[24];
    struct err e;
    if (!q->has_ended || host_querier_is_busy(&q->sql))
        return false;
    q->has_ended = false;
    snprintf(pid, sizeof pid, "%ld", (long)q->address.pid);
    if (target_resolve(pid, &recording, &e) != 0 || !recording.recorded[0])
        return false;
    host_query_set_target(q, &recording);
    return true;
}

/* ---- the SQL screen ---- */

static void host_query_on_answer(void *arg) {
    struct host_query *q = arg;
    struct querier_answer answer;
    if (!querier_take(q->sql.querier, &answer))
        return;
    app_take_answer(q->app, &answer);
    host_query_begin(q); /* waited for the end of a list of tables */
    q->answered(q->arg);
}

static int host_query_start(struct host_query *q, enum app_query_request what, struct err *e) {
    struct app_query *asked = &q->app->query;
    if (host_querier_open(q, &q->sql, host_query_on_answer, e) != 0)
        return -1;
    if (what == APP_QUERY_EXPORT) {
        struct querier_export moved = asked->exported;
        asked->exported.rows = NULL;
        asked->exported.order = NULL;
        asked->exported.hidden = NULL; /* the path stays, for the message */
        return querier_write(q->sql.querier, &moved, e);
    }
    double from_s = NAN, to_s = NAN;
    window_get_range(q->app, &from_s, &to_s);
    querier_set_window(q->sql.querier, from_s, to_s);
    return what == APP_QUERY_RUN ? querier_run(q->sql.querier, asked->text, e)
                                 : querier_list_tables(q->sql.querier, e);
}

void host_query_begin(struct host_query *q) {
    struct app_query *asked = &q->app->query;
    enum app_query_request what = asked->pending;
    struct querier_answer refused = {.error_at = -1};
    if (what == APP_QUERY_NONE || host_querier_is_busy(&q->sql))
        return;
    if (host_query_go_to_recording(q)) /* it has begun */
        return;
    asked->pending = APP_QUERY_NONE;
    if (host_query_start(q, what, &refused.error) == 0)
        return;
    refused.kind = what == APP_QUERY_RUN      ? QUERIER_RUN
                   : what == APP_QUERY_EXPORT ? QUERIER_EXPORT
                                              : QUERIER_LIST_TABLES;
    app_take_answer(q->app, &refused);
}

void host_query_cancel(struct host_query *q) {
    if (q->sql.querier)
        querier_cancel(q->sql.querier);
}

/* ---- tables that screens show, and the Repl screen ---- */

static void host_query_begin_shared(struct host_query *q);

/* A query that was not run is answered. */
static void host_query_refuse_magic(struct host_query *q, const struct err *why) {
    struct querier_answer refused = {
        .kind = QUERIER_MAGIC, .error_at = -1, .error = *why, .cancelled = q->magic_is_cancelled};
    q->magic_is_cancelled = false;
    app_repl_take_query(q->app, &refused);
}

static void host_query_take_feed(struct host_query *q, struct querier_answer *answer) {
    const struct app_feed *f = app_feed_get(q->app, q->feed_id);
    bool was_well = f->is_answered && f->failed_s <= 0;
    if (answer->cancelled && q->magic_waits) {
        querier_answer_fini(answer);
        app_feed_repeat(q->app, q->feed_id);
        host_query_begin_shared(q);
        q->answered(q->arg);
        return;
    }
    app_take_feed(q->app, q->feed_id, answer);
    bool may_wait = f->again && was_well && f->failed_s <= 0;
    host_query_begin_shared(q);
    (may_wait ? q->followed : q->answered)(q->arg);
}

static void host_query_on_shared(void *arg) {
    struct host_query *q = arg;
    struct querier_answer answer;
    if (!querier_take(q->shared.querier, &answer))
        return;
    if (!q->magic_runs) {
        host_query_take_feed(q, &answer);
        return;
    }
    q->magic_runs = false;
    app_repl_take_query(q->app, &answer);
    host_query_begin_shared(q);
    q->answered(q->arg);
}

/* Begin the query that waits. True if it runs. */
static bool host_query_begin_magic(struct host_query *q) {
    struct err e;
    q->magic_waits = false;
    if (q->magic_is_cancelled) {
        magic_fini(&q->magic);
        err_set(&e, ERR_FAILED, "interrupted");
    } else if (host_querier_open(q, &q->shared, host_query_on_shared, &e) != 0) {
        magic_fini(&q->magic);
    } else if (querier_do(q->shared.querier, &q->magic, q->magic_cols, &e) == 0) {
        q->magic_runs = true;
        return true;
    }
    host_query_refuse_magic(q, &e);
    return false;
}

/* Begin what waits, unless something runs: then that follows its answer. */
static void host_query_begin_shared(struct host_query *q) {
    if (host_querier_is_busy(&q->shared) || (q->magic_waits && host_query_begin_magic(q)))
        return;
    for (enum app_feed_id id; (id = app_feed_next(q->app, q->feed_id)) != FEED_COUNT;) {
        struct querier_answer refused = {.kind = QUERIER_RUN, .error_at = -1};
        q->feed_id = id;
        if (host_querier_open(q, &q->shared, host_query_on_shared, &refused.error) == 0 &&
            app_feed_begin(q->app, id, q->shared.querier, &refused.error) == 0)
            return;
        app_take_feed(q->app, id, &refused);
    }
}

void host_query_read_feeds(struct host_query *q) { host_query_begin_shared(q); }

void host_query_run_magic(struct host_query *q, struct magic *m, int cols) {
    host_query_go_to_recording(q);
    magic_fini(&q->magic);
    q->magic = *m;
    memset(m, 0, sizeof *m);
    q->magic_cols = cols;
    q->magic_waits = true;
    if (host_querier_is_busy(&q->shared) && !q->magic_runs)
        querier_cancel(q->shared.querier);
    host_query_begin_shared(q);
}

/* The app asks for this while it handles something, so the answer comes later. */
void host_query_cancel_magic(struct host_query *q) {
    if (q->magic_waits)
        q->magic_is_cancelled = true;
    else if (q->magic_runs)
        querier_cancel(q->shared.querier);
}

/* ---- the target ---- */

static void host_query_leave(struct host_query *q, const char *why) {
    bool had_magic = q->magic_waits || q->magic_runs;
    host_querier_close(&q->sql);
    host_querier_close(&q->shared);
    magic_fini(&q->magic);
    q->magic_waits = q->magic_runs = q->magic_is_cancelled = false;
    q->has_ended = false;
    if (!q->app)
        return;
    /* Nobody will answer it. */
    if (q->app->query.running && q->app->query.pending == APP_QUERY_NONE) {
        struct querier_answer answer = {.kind = QUERIER_RUN, .error_at = -1};
        err_set(&answer.error, ERR_FAILED, "%s: run the query again", why);
        app_take_answer(q->app, &answer);
    }
    q->app->feeds.feeds[q->feed_id].running = false; /* nobody will answer it */
    if (had_magic) {
        struct err refused;
        err_set(&refused, ERR_FAILED, "%s: try again", why);
        host_query_refuse_magic(q, &refused);
    }
}

void host_query_set_job(struct host_query *q, const char *target) {
    if (!q->has_address)
        host_query_leave(q, "the job is shown at another time");
    snprintf(q->job, sizeof q->job, "%s", target);
    if (!q->has_address && q->app) {
        host_query_begin(q);
        host_query_read_feeds(q);
    }
}

void host_query_set_target(struct host_query *q, const struct target_address *addr) {
    host_query_leave(q, "the target has changed");
    q->has_address = addr != NULL;
    if (addr)
        q->address = *addr;
    if (!q->app)
        return;
    if (addr) { /* waited for the end of another one */
        host_query_begin(q);
        host_query_read_feeds(q);
    }
}

void host_query_end_target(struct host_query *q) { q->has_ended = q->has_address && !q->address.recorded[0]; }
