/* SPDX-License-Identifier: Apache-2.0 */
/* app_export: see app_export.h. */
#include "tui/app_export.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "client/output.h"
#include "tui/app.h"
#include "tui/exporter.h"
#include "tui/screens/screens.h"

#define APP_EXPORT_MAX_ROW 8192
#define APP_EXPORT_ROWS 24 /* of a screen that was not drawn yet */
#define APP_EXPORT_COLS 80

/* What a format is made of. */
enum app_export_kind { APP_EXPORT_NOTHING = 0, APP_EXPORT_SCREEN, APP_EXPORT_SNAPSHOT, APP_EXPORT_SAMPLES };

static enum app_export_kind app_export_kind(const struct export_format *f) {
    if (!f->render || (f->takes & EXPORT_WANTS_ORDER))
        return APP_EXPORT_NOTHING;
    if (f->takes & EXPORT_TAKES_SCREEN)
        return APP_EXPORT_SCREEN;
    if (f->takes & EXPORT_TAKES_BY_FUNCTION)
        return APP_EXPORT_SAMPLES;
    return f->wants_snapshot ? APP_EXPORT_SNAPSHOT : APP_EXPORT_NOTHING;
}

const char *app_export_why_not(const struct app *app, const struct export_format *f) {
    struct tally_health h = {0};
    switch (app_export_kind(f)) {
    case APP_EXPORT_SCREEN:
        return NULL;
    case APP_EXPORT_SNAPSHOT:
        return app->data.has_target && data_shown(&app->data) ? NULL : "there is no snapshot yet";
    case APP_EXPORT_SAMPLES:
        if (app->data.tally)
            tally_get_health(app->data.tally, &h);
        return app->data.has_target && h.samples ? NULL : "there are no samples: 3 or 4 begins to take them";
    case APP_EXPORT_NOTHING:
        break;
    }
    return "it is made of tables or of time, not of a screen";
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
        (void)strftime(when, sizeof when, "-%Y%m%d-%H%M%S", &tm);
    (void)snprintf(buf, cap, "probing-%ld%s.%s", (long)app->pid, when, ending);
}

/* ---- the screen as text ---- */

void app_put_screen(struct app *app, struct strbuf *out) {
    struct grid g;
    char line[APP_EXPORT_MAX_ROW];
    int over = 0, rows = app->drawn_rows ? app->drawn_rows : APP_EXPORT_ROWS,
        cols = app->drawn_cols ? app->drawn_cols : APP_EXPORT_COLS;
    enum action prompt = app->prompt_for;
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
    for (int y = 0; y < rows; y++) {
        grid_row_text(&g, grid_rect(&g), y, line, sizeof line, NULL);
        (void)strbuf_addf(out, "%s\n", line);
    }
    grid_fini(&g);
}

/* ---- the job ---- */

/* The samples of the window that all screens look at, and how long it is. */
static int app_export_samples(const struct app *app, struct export_job *j) {
    double from_s, to_s;
    struct tally_health h;
    tally_get_health(app->data.tally, &h);
    j->fold = tally_copy_window(app->data.tally, window_which(app));
    j->until_s = tally_newest_look_s(app->data.tally);
    if (window_get_range(app, &from_s, &to_s)) {
        j->until_s = to_s;
        j->elapsed_s =
            fmax(0, fmin(to_s - from_s, h.newest_s - h.since_s)); /* no longer than there are any */
    }
    return j->fold ? 0 : -1;
}

static int app_export_fill(struct app *app, struct export_job *j) {
    const struct export_request request = {.format = j->format->name};
    struct export_data data = {.request = &request, .target = &j->target, .until_s = NAN};
    struct err e;
    switch (app_export_kind(j->format)) {
    case APP_EXPORT_SCREEN:
        app_put_screen(app, &j->text);
        break;
    case APP_EXPORT_SNAPSHOT:
        data.snapshot = &data_shown(&app->data)->snapshot;
        return j->format->render(&data, &j->text, &e);
    case APP_EXPORT_SAMPLES:
        return app_export_samples(app, j);
    case APP_EXPORT_NOTHING:
        return -1;
    }
    return j->text.failed ? -1 : 0;
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
        app_refuse(app, "'%s' is no name of a file", path);
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
    struct export_job *j = export_job_new(f, whole, &app->data.target);
    if (!j || app_export_fill(app, j) != 0) {
        export_job_free(j);
        app_message(app, true, "no %s: memory is short", f->name);
        return false;
    }
    export_job_free(app->hands.job); /* one that nobody took */
    app->hands.job = j;
    app->wishes.export_file = true;
    app_message(app, false, "writing %s ...", whole);
    return true;
}

void app_export_done(struct app *app, struct export_job *job) {
    char size[32];
    text_human_bytes(size, sizeof size, (int64_t)job->text.len);
    if (job->error.code)
        app_message(app, true, "%s: %s", job->format->name, job->error.text);
    else if (job->fold)
        app_message(app, false, "wrote %s: %s, %s of %" PRIu64 " samples", job->path, size, job->format->name,
                    fold_get_totals(job->fold)->samples);
    else
        app_message(app, false, "wrote %s: %s", job->path, size);
    export_job_free(job);
}
