/* SPDX-License-Identifier: Apache-2.0 */
/* app_export: see app_export.h. */
#include "tui/core/app_export.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "client/export/export_lanes.h"
#include "client/output.h"
#include "tui/core/app.h"
#include "tui/core/app_draw.h"
#include "tui/core/app_history.h"
#include "tui/workers/exporter.h"
#include "tui/core/tagging.h"
#include "tui/core/window.h"

#define APP_EXPORT_MAX_ROW 8192
#define APP_EXPORT_ROWS 24 /* for a screen that has not been drawn yet */
#define APP_EXPORT_COLS 80
#define APP_EXPORT_NAME 256
#define APP_EXPORT_NOTE 512
#define APP_EXPORT_MORE 2000 /* for tagged rows: at most so many more rows than the terminal has */

/* What a format is made from. */
enum app_export_kind { APP_EXPORT_NOTHING = 0, APP_EXPORT_SCREEN, APP_EXPORT_SNAPSHOT, APP_EXPORT_SAMPLES };

static enum app_export_kind app_export_kind(const struct export_format *f) {
    if (!f->render)
        return APP_EXPORT_NOTHING;
    if (f->takes & EXPORT_TAKES_SCREEN)
        return APP_EXPORT_SCREEN;
    if (f->takes & (EXPORT_TAKES_BY_FUNCTION | EXPORT_WANTS_ORDER))
        return APP_EXPORT_SAMPLES;
    return f->wants_snapshot ? APP_EXPORT_SNAPSHOT : APP_EXPORT_NOTHING;
}

const char *app_export_why_not(const struct app *app, const struct export_format *f) {
    struct sample_store_health h = {0};
    switch (app_export_kind(f)) {
    case APP_EXPORT_SCREEN:
        return NULL;
    case APP_EXPORT_SNAPSHOT:
        return app->data.has_target && data_shown(&app->data) ? NULL : "there is no snapshot yet";
    case APP_EXPORT_SAMPLES:
        if (app->data.tally)
            sample_store_get_health(app->data.tally, &h);
        return app->data.has_target && h.samples ? NULL
                                                 : "there are no samples yet: Flame and Top start sampling";
    case APP_EXPORT_NOTHING:
        break;
    }
    return "it is made of tables, not of a screen";
}

void app_export_name(const struct app *app, const struct export_format *f, char *buf, size_t cap) {
    static const struct {
        const char *format, *ending;
    } endings[] = {{"speedscope", "speedscope.json"}, {"pprof", "pb.gz"}, {"perfetto", "pftrace"}};
    const char *ending = f->name;
    char when[32] = "";
    time_t t = (time_t)app->epoch_s;
    struct tm tm;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (strcmp(endings[i].format, f->name) == 0)
            ending = endings[i].ending;
    if (localtime_r(&t, &tm))
        strftime(when, sizeof when, "-%Y%m%d-%H%M%S", &tm);
    long pid = app->pid > 0 || !app->data.has_target ? (long)app->pid : (long)app->data.target.pid;
    snprintf(buf, cap, "probing-%ld%s.%s", pid, when, ending);
}

/* ---- the screen as text ---- */

/* Empty rows at the end are left out, except those that the terminal shows. */
static void app_put_rows(const struct grid *g, int rows, struct strbuf *out) {
    char line[APP_EXPORT_MAX_ROW];
    for (int y = 0; y < g->rows; y++) {
        grid_row_text(g, grid_rect(g), y, line, sizeof line, NULL);
        if (*line || y < rows)
            strbuf_addf(out, "%s\n", line);
    }
}

static void app_put_higher(struct app *app, int extra, struct strbuf *out) {
    struct grid g;
    int over = 0, rows = app->drawn_rows ? app->drawn_rows : APP_EXPORT_ROWS,
        cols = app->drawn_cols ? app->drawn_cols : APP_EXPORT_COLS;
    enum action prompt = app->prompt_for;
    rows += extra;
    if (grid_init(&g, rows, cols) != 0) {
        out->failed = true;
        return;
    }
    while (app->n_screens - over > 1 && app->screens[app->n_screens - 1 - over].def->is_overlay)
        over++;
    app->n_screens -= over;
    app->prompt_for = ACTION_NONE;
    app_draw(app, &g);
    app->n_screens += over;
    app->prompt_for = prompt;
    app->dirty = true;
    app_put_rows(&g, rows - extra, out);
    grid_fini(&g);
}

void app_put_screen(struct app *app, struct strbuf *out) { app_put_higher(app, 0, out); }

/* ---- the job ---- */

/* Threads of a snapshot that are tagged, in an array that the caller frees; everything else belongs
 * to the snapshot. */
static int app_export_threads(const struct tagged *tagged, struct model_snapshot *s) {
    struct model_thread *kept = calloc(s->n_threads + 1, sizeof *kept);
    size_t n = 0;
    for (size_t i = 0; kept && i < s->n_threads; i++)
        if (tagged_has_thread(tagged, s->threads[i].tid))
            kept[n++] = s->threads[i];
    s->threads = kept;
    s->n_threads = n;
    return kept ? 0 : -1;
}

static int app_export_snapshot(const struct app *app, const struct tagged *tagged, struct export_job *j) {
    const struct export_request request = {.format = j->format->name};
    struct model_snapshot some = data_shown(&app->data)->snapshot;
    struct export_data data = {.request = &request, .target = &j->target, .snapshot = &some, .until_s = NAN};
    struct err e;
    if (!tagged_has_threads(tagged))
        return j->format->render(&data, &j->text, &e);
    int rc = app_export_threads(tagged, &some);
    rc = rc == 0 ? j->format->render(&data, &j->text, &e) : -1;
    free(some.threads);
    return rc;
}

/* The topmost screen that is not an overlay. */
static const struct app_screen *app_export_shown(const struct app *app) {
    int at = app->n_screens - 1;
    while (at > 0 && app->screens[at].def->is_overlay)
        at--;
    return &app->screens[at];
}

static void app_export_put_module(const struct app *app, const struct screen_choice *c, struct strbuf *out) {
    char name[APP_EXPORT_NAME] = "?", clean[APP_EXPORT_NAME];
    const struct model_frame *f =
        stack_counts_frame(sample_store_counts(app->data.tally), c->query.module - 1);
    if (f && c->name_module)
        c->name_module(f, name, sizeof name);
    text_sanitize(clean, sizeof clean, name);
    strbuf_addf(out, ", module %s", clean);
}

/* "MainThread (4242), on the CPU, module train.py, stacks with 'step'" */
static void app_export_put_choice(const struct app *app, const struct screen_choice *c, struct strbuf *out) {
    static const char *const times[FLAME_TIMES] = {[FLAME_ON_CPU] = "on the CPU",
                                                   [FLAME_ALL_TIME] = "waiting too",
                                                   [FLAME_GIL_HOLDING] = "holding the GIL"};
    const struct flame_query *q = &c->query;
    char clean[APP_EXPORT_NAME];
    const char *name = stack_counts_thread_name(sample_store_counts(app->data.tally), q->tid);
    text_sanitize(clean, sizeof clean, name ? name : "?");
    if (q->tid)
        strbuf_addf(out, "%s (%" PRId64 ")", clean, q->tid);
    else
        strbuf_adds(out, "all threads");
    strbuf_addf(out, ", %s", times[q->time]);
    if (q->module)
        app_export_put_module(app, c, out);
    if (c->filter)
        strbuf_addf(out, ", stacks %s '%s'", q->filter.negated ? "without" : "with",
                    c->filter + q->filter.negated);
}

static bool app_export_has_thread(const void *arg, int64_t tid) { return tagged_has_thread(arg, tid); }

static bool app_export_has_frame(const void *arg, const struct model_frame *f) {
    return tagged_has_frame(arg, f);
}

/* The samples that the screen has selected. Formats that have all kinds of time, or the order of
 * samples, get all times. */
static void app_export_choose(struct app *app, const struct tagged *tagged, struct export_job *j,
                              struct screen_choice *out) {
    const struct app_screen *shown = app_export_shown(app);
    struct strbuf text;
    char what[64];
    *out = (struct screen_choice){.query = {.by = FLAME_BY_LINE, .time = FLAME_ALL_TIME}};
    if (shown->def->choose)
        shown->def->choose(shown->state, out);
    if (j->format->takes & (EXPORT_WANTS_ORDER | EXPORT_WANTS_STATES))
        out->query.time = FLAME_ALL_TIME;
    out->query.window = app_history_window(app, window_which(app));
    strbuf_init(&text, sizeof j->choice - 1);
    if (tagged->n) {
        tagging_text(tagged, what, sizeof what);
        strbuf_addf(&text, "%s of ", what);
    }
    app_export_put_choice(app, out, &text);
    snprintf(j->choice, sizeof j->choice, "%s", strbuf_str(&text));
    strbuf_fini(&text);
    j->is_part =
        out->query.tid || out->query.module || out->filter || tagged->n || out->query.time != FLAME_ALL_TIME;
    j->by_function = out->query.by != FLAME_BY_LINE;
    if (!app_history_window_text(app, window_which(app), j->window, sizeof j->window))
        window_put_text(app, j->window, sizeof j->window);
}

/* Beginning and length of the window: no longer than there are samples. */
static void app_export_range(const struct app *app, struct export_job *j, double *from_s, double *to_s) {
    const struct thread_runs *tracks = sample_store_runs(app->data.tally);
    double newest_s = sample_store_newest_tick_s(app->data.tally), since_s = newest_s;
    if (thread_runs_end_tick(tracks) > thread_runs_first_tick(tracks))
        since_s = thread_runs_tick_time(tracks, thread_runs_first_tick(tracks));
    j->until_s = newest_s;
    if (!window_get_range(app, from_s, to_s))
        *from_s = *to_s = newest_s;
    bool is_whole = window_which(app) == SAMPLE_STORE_ALL && !data_is_stepped(&app->data);
    if (is_whole) /* samples in the first answer were taken before it */
        *from_s = fmin(*from_s, since_s);
    j->until_s = fmin(*to_s, newest_s);
    j->elapsed_s = fmax(0, j->until_s - (is_whole ? *from_s : fmax(*from_s, since_s)));
    *to_s = fmin(*to_s, nextafter(newest_s, INFINITY));
}

/* The samples that the screen shows, and the time that they cover. */
static int app_export_samples(struct app *app, const struct tagged *tagged, struct export_job *j) {
    struct sample_filter_query q = {.in_order = (j->format->takes & EXPORT_WANTS_ORDER) != 0, .arg = tagged};
    struct screen_choice choice;
    app_export_choose(app, tagged, j, &choice);
    app_export_range(app, j, &q.from_s, &q.to_s);
    q.samples = choice.query;
    q.has_thread = tagged_has_threads(tagged) ? app_export_has_thread : NULL;
    q.has_frame = !q.has_thread && tagged_has_frames(tagged) ? app_export_has_frame : NULL;
    q.name_module = choice.name_module;
    return sample_filter_make(&j->cut, app->data.tally, &q);
}

static int app_export_fill(struct app *app, const struct tagged *tagged, struct export_job *j) {
    bool was_only;
    switch (app_export_kind(j->format)) {
    case APP_EXPORT_SCREEN:
        was_only = tagging_show_only(app, true);
        app_put_higher(app, tagged->n < APP_EXPORT_MORE ? (int)tagged->n * 2 : APP_EXPORT_MORE, &j->text);
        tagging_show_only(app, was_only);
        break;
    case APP_EXPORT_SNAPSHOT:
        return app_export_snapshot(app, tagged, j);
    case APP_EXPORT_SAMPLES:
        return app_export_samples(app, tagged, j);
    case APP_EXPORT_NOTHING:
        return -1;
    }
    return j->text.failed ? -1 : 0;
}

/* Can the format be limited to tagged rows? Entries of a log, or steps, do not select samples. */
static bool app_export_is_part(const struct export_format *f, const struct tagged *t) {
    enum app_export_kind kind = app_export_kind(f);
    return t->n && (kind == APP_EXPORT_SCREEN || tagged_has_threads(t) ||
                    (kind == APP_EXPORT_SAMPLES && tagged_has_frames(t)));
}

bool app_export(struct app *app, const struct export_format *f, const char *path, bool overwrite,
                bool *exists) {
    char whole[PATH_MAX];
    struct err e;
    const char *why_not = app_export_why_not(app, f);
    *exists = false;
    if (why_not) {
        app_refuse(app, "no %s: %s", f->name, why_not);
        return false;
    }
    if (output_is_stdout(path) || !*path || !output_expand(path, whole, sizeof whole)) {
        app_refuse(app, "'%s' is not a file name", path);
        return false;
    }
    if (!overwrite && access(whole, F_OK) == 0) {
        *exists = true;
        return false;
    }
    if (output_check(whole, &e) != 0) {
        app_message(app, true, "%s", e.text);
        return false;
    }
    struct tagged tagged, none = {.n = 0};
    char what[64] = "";
    struct export_job *j = export_job_new(f, whole, &app->data.target);
    bool is_made = tagging_collect(app, &tagged, NULL, NULL) == 0 && j;
    bool is_part = is_made && app_export_is_part(f, &tagged);
    is_made = is_made && app_export_fill(app, is_part ? &tagged : &none, j) == 0;
    if (is_part)
        tagging_text(&tagged, what, sizeof what);
    tagged_fini(&tagged);
    if (!is_made) {
        export_job_free(j);
        app_message(app, true, "no %s: memory is short", f->name);
        return false;
    }
    app_message(app, false, "writing %s%s%s ...", what, *what ? " to " : "", whole);
    app->host.write(app->host.arg, j);
    return true;
}

/* What is in the file: a screen shows only a part of it. */
static void app_export_report(struct app *app, const struct export_job *job, const char *size) {
    struct strbuf note;
    strbuf_init(&note, APP_EXPORT_NOTE);
    if (job->cut.runs)
        export_lanes_note(job->cut.runs, job->cut.counts, &note);
    app_message(app, false, "wrote %s of %" PRIu64 " samples (%s; %s%s%s) to %s, %s", job->format->name,
                stack_counts_get_totals(job->cut.counts)->samples, job->choice, job->window,
                note.len ? "; " : "", strbuf_str(&note), job->path, size);
    strbuf_fini(&note);
}

void app_export_done(struct app *app, struct export_job *job) {
    char size[32];
    text_human_bytes(size, sizeof size, job->text.len);
    if (job->error.code)
        app_message(app, true, "%s: %s", job->format->name, job->error.text);
    else if (job->cut.counts)
        app_export_report(app, job, size);
    else
        app_message(app, false, "wrote %s: %s", job->path, size);
    export_job_free(job);
}
