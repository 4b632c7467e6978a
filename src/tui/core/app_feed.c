/* SPDX-License-Identifier: Apache-2.0 */
/* app_feed: see app_feed.h. */
#include "tui/core/app_feed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "client/verdict/verdict.h"
#include "tui/core/app.h"
#include "tui/core/job_state.h"

#define FEED_SHARE 10     /* a query takes at most this part of the time between two answers */
#define FEED_MAX_S 60.0   /* but the next one is at most so far away */
#define FEED_RETRY_S 5.0  /* after an error */
#define FEED_MIN_AGE_S 10 /* from here on the age of rows is shown */

void app_feeds_fini(struct app_feeds *f) {
    for (int i = 0; i < FEED_COUNT; i++) {
        result_unref(f->feeds[i].rows);
        verdicts_fini(&f->feeds[i].verdicts);
    }
    gpus_fini(&f->gpus);
    memset(f, 0, sizeof *f);
}

void app_feeds_forget(struct app_feeds *f) {
    unsigned versions[FEED_COUNT];
    for (int i = 0; i < FEED_COUNT; i++)
        versions[i] = f->feeds[i].version + 1;
    app_feeds_fini(f);
    for (int i = 0; i < FEED_COUNT; i++)
        f->feeds[i].version = versions[i];
}

const struct app_feed *app_feed_get(const struct app *a, enum app_feed_id id) { return &a->feeds.feeds[id]; }

static void app_feed_request(struct app *a, enum app_feed_id id, const char *text, bool again) {
    struct app_feed *f = &a->feeds.feeds[id];
    f->again = f->again && again; /* the user waits for the one under way, too */
    if (f->wanted || f->running)
        return;
    f->again = again;
    snprintf(f->text, sizeof f->text, "%s", text);
    f->wanted = true;
    f->asked_s = a->now_s;
    a->dirty = true;
    a->host.read_feeds(a->host.arg);
}

void app_feed_ask(struct app *a, enum app_feed_id id, const char *text) {
    app_feed_request(a, id, text, false);
}

/* Its tables are those of a process, or of a job in a database. */
static bool app_feed_is_there(const struct app *a, enum app_feed_id id) {
    return a->data.state == SESSION_CONNECTED ||
           (id == FEED_STEPS && a->job.has_past && job_state_is_alone(a));
}

void app_feed_renew(struct app *a, enum app_feed_id id) {
    struct app_feed *f = &a->feeds.feeds[id];
    unsigned version = f->version + 1;
    result_unref(f->rows);
    verdicts_fini(&f->verdicts);
    *f = (struct app_feed){.version = version};
}

void app_feed_follow(struct app *a, enum app_feed_id id, const char *text, double every_s) {
    const struct app_feed *f = app_feed_get(a, id);
    double pause_s = f->failed_s > 0 ? FEED_RETRY_S : every_s;
    if (pause_s < f->elapsed_s * FEED_SHARE)
        pause_s = f->elapsed_s * FEED_SHARE < FEED_MAX_S ? f->elapsed_s * FEED_SHARE : FEED_MAX_S;
    bool is_first = f->asked_s <= 0 || strcmp(f->text, text) != 0;
    /* what a database has of a moment stays, but for an error */
    bool is_still = a->data.paused && (f->failed_s <= 0 || a->data.state == SESSION_CONNECTED);
    if (!app_feed_is_there(a, id) || (!is_first && (is_still || a->now_s - f->asked_s < pause_s)))
        return;
    app_feed_request(a, id, text, !is_first);
}

void app_feed_follow_verdicts(struct app *a, double every_s) {
    app_feed_follow(a, FEED_VERDICTS, "verdicts", every_s);
}

enum app_feed_id app_feed_next(const struct app *a, enum app_feed_id last) {
    for (int i = 1; i <= FEED_COUNT; i++) {
        int id = ((int)last + i) % FEED_COUNT;
        if (a->feeds.feeds[id].wanted)
            return (enum app_feed_id)id;
    }
    return FEED_COUNT;
}

int app_feed_begin(struct app *a, enum app_feed_id id, struct querier *q, struct err *e) {
    struct app_feed *f = &a->feeds.feeds[id];
    f->wanted = false;
    f->running = true;
    return id == FEED_VERDICTS ? querier_judge(q, e) : querier_run(q, f->text, e);
}

void app_feed_repeat(struct app *a, enum app_feed_id id) {
    struct app_feed *f = &a->feeds.feeds[id];
    f->running = false;
    f->wanted = true;
}

void app_feed_put_state(const struct app *a, enum app_feed_id id, struct strbuf *out) {
    const struct app_feed *f = app_feed_get(a, id);
    double age = a->now_s - f->answered_s;
    if (f->failed_s > 0) {
        strbuf_addf(out, "%s", f->error.text);
        if (f->is_answered)
            strbuf_addf(out, "; what is shown is %.0f s old", age);
        return;
    }
    if (!f->is_answered) {
        strbuf_adds(out, f->wanted || f->running ? "reading ..." : "");
        return;
    }
    strbuf_addf(out, "read in %.0f ms", f->elapsed_s * 1000);
    if (age >= FEED_MIN_AGE_S)
        strbuf_addf(out, ", %.0f s ago", age);
    if (f->truncated)
        strbuf_adds(out, ", there is more");
    if (strncmp(f->note, "python.", 7) == 0) /* from such a table, not from all of them */
        strbuf_addf(out, "   %s", f->note);
}

int app_feed_column(const struct result *rows, const char *name) { return result_find_column(rows, name); }

const char *app_feed_text(const struct result *rows, size_t row, int column) {
    bool is_text = column >= 0 && result_kind(rows, row, (size_t)column) == SQL_TEXT;
    return is_text ? rows->columns[column].values[row].s : NULL;
}

double app_feed_number(const struct result *rows, size_t row, int column) {
    return column >= 0 ? result_number(rows, row, (size_t)column) : NAN;
}

int app_feed_flag(const struct result *rows, size_t row, int column) {
    double v = app_feed_number(rows, row, column);
    return isnan(v) ? -1 : v != 0;
}

int64_t app_feed_int(const struct result *rows, size_t row, int column) {
    bool is_int = column >= 0 && result_kind(rows, row, (size_t)column) == SQL_INTEGER;
    return is_int ? rows->columns[column].values[row].i : APP_FEED_UNKNOWN;
}

void app_feed_put_empty(const struct app *a, enum app_feed_id id, const char *nothing, char *buf,
                        size_t cap) {
    const struct app_feed *f = app_feed_get(a, id);
    bool is_torch = id == FEED_TENSORS || id == FEED_TENSOR_GROWTH || id == FEED_MODULES;
    const char *text = nothing;
    if (f->rows && f->rows->n_rows)
        text = nothing;
    else if (f->failed_s > 0)
        text = f->error.text;
    else if (!f->is_answered && !app_feed_is_there(a, id))
        text = a->data.state == SESSION_CONNECTING ? "connecting to the agent ..." : "no data received";
    else if (!f->is_answered)
        text = "reading ...";
    else if (is_torch && a->data.has_target && !a->data.target.torch)
        text = "this process has not imported torch: it has none";
    else if (f->note[0])
        text = f->note;
    snprintf(buf, cap, "%s", text);
}

/* ---- the worst verdict, for the header of every screen ---- */

#define FEED_BADGE_EVERY_S 5.0 /* between two verdicts, */
/* And so many times what one takes: at most a four-hundredth of a core. */
#define FEED_BADGE_ANSWERS 400.0
#define FEED_BADGE_LONGEST_S 30.0 /* but no longer than that */
#define FEED_BADGE_SNAPSHOTS 8    /* before the first one, so that the program starts quickly */
#define FEED_BADGE_STAYS_S 75.0   /* an older one is not shown */

#define FEED_JOB_EVERY_S 2.0
#define FEED_GPU_EVERY_S 2.0   /* where there is one, */
#define FEED_NO_GPU_EVERY_S 60 /* and where there was none */
#define FEED_GPU_MEMORY_EVERY_S 5.0

/* Steps a second, the newest loss, what tensors take on GPUs. */
static const char feed_job_query[] =
    "SELECT (count(*) - 1) / nullif(max(timestamp) - min(timestamp), 0) AS rate, (SELECT loss FROM "
    "python.steps "
    "WHERE timestamp > now() - 60 AND loss IS NOT NULL ORDER BY timestamp DESC LIMIT 1) AS loss, (SELECT "
    "gpu_allocated_mb FROM python.memory WHERE timestamp > now() - 60 ORDER BY timestamp DESC LIMIT 1) AS "
    "gpu_mb "
    "FROM python.steps WHERE timestamp > now() - 20";

void app_feed_follow_badge(struct app *app) {
    const struct app_feed *f = app_feed_get(app, FEED_VERDICTS);
    const struct data *d = &app->data;
    double every_s = f->elapsed_s * FEED_BADGE_ANSWERS;
    if (data_is_recorded(d))
        app_feed_follow(app, FEED_GPU, GPUS_QUERY, INFINITY);
    else if (d->has_target && d->received >= FEED_BADGE_SNAPSHOTS && !d->paused)
        app_feed_follow(app, FEED_GPU, GPUS_QUERY,
                        app->feeds.gpus.n ? FEED_GPU_EVERY_S : FEED_NO_GPU_EVERY_S);
    if (app->feeds.gpus.n && data_is_recorded(d))
        app_feed_follow(app, FEED_GPU_MEMORY, "SELECT * FROM python.gpu_memory", INFINITY);
    /* while it is read, the agent keeps it in python.memory, too */
    else if (app->feeds.gpus.n && d->has_target && d->target.mode == MODEL_MODE_AGENT && d->target.torch &&
             !app->row_actions.readonly)
        app_feed_follow(app, FEED_GPU_MEMORY, "SELECT * FROM python.gpu_memory", FEED_GPU_MEMORY_EVERY_S);
    if (!d->has_target || d->target.mode != MODEL_MODE_AGENT || d->received < FEED_BADGE_SNAPSHOTS ||
        d->paused)
        return; /* from outside there are no tables; the Overview says that a target has ended */
    if (d->target.torch)
        app_feed_follow(app, FEED_JOB, feed_job_query, FEED_JOB_EVERY_S);
    every_s = every_s < FEED_BADGE_EVERY_S ? FEED_BADGE_EVERY_S : every_s;
    app_feed_follow_verdicts(app, every_s < FEED_BADGE_LONGEST_S ? every_s : FEED_BADGE_LONGEST_S);
}

static enum theme_role app_feed_badge_role(enum verdict_level level) {
    return level >= VERDICT_BAD ? ROLE_CONN_LOST : ROLE_CONN_WAIT;
}

enum theme_role app_feed_put_badge(const struct app *app, char *buf, size_t cap) {
    const struct app_feed *f = app_feed_get(app, FEED_VERDICTS);
    const struct verdict *worst = f->verdicts.n ? &f->verdicts.items[0] : NULL;
    const char *cause = NULL;
    buf[0] = '\0';
    if (data_is_over(&app->data) || !worst || worst->rule->level < VERDICT_WARN ||
        app->now_s - f->answered_s > FEED_BADGE_STAYS_S)
        return ROLE_TEXT;
    /* The worst are first. */
    for (size_t i = 1; worst->rule->is_state && !cause && i < f->verdicts.n; i++)
        if (f->verdicts.items[i].rule->level >= VERDICT_WARN)
            cause = f->verdicts.items[i].brief;
    snprintf(buf, cap, "%s%s%s", worst->brief, cause ? ": " : "", cause ? cause : "");
    return app_feed_badge_role(worst->rule->level);
}
