/* SPDX-License-Identifier: Apache-2.0 */
/* job_picker: the jobs of which a database has rows, to choose one. */
#include "tui/core/app.h"
#include "tui/core/app_life.h"
#include "tui/core/screen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/text.h"
#include "tui/view/view.h"

struct job_picker_state {
    const void **rows; /* of struct engine_jobs_item, visible, sorted */
    int n;
    struct view view;
};

static const struct engine_jobs_item *job_picker_of(const void *row) { return row; }

/* One that has ended is grey. */
static enum theme_role job_picker_role(const void *row, enum theme_role role) {
    return job_picker_of(row)->is_running ? role : ROLE_MUTED;
}

static void job_picker_cell_name(const void *row, struct table_cell *c) {
    snprintf(c->text, sizeof c->text, "%s", job_picker_of(row)->name);
    c->role = job_picker_role(row, ROLE_VALUE);
}

static int job_picker_compare_name(const void *a, const void *b) {
    return strcmp(job_picker_of(a)->name, job_picker_of(b)->name);
}

static void job_picker_cell_user(const void *row, struct table_cell *c) {
    snprintf(c->text, sizeof c->text, "%s", job_picker_of(row)->user[0] ? job_picker_of(row)->user : "?");
    c->role = job_picker_role(row, ROLE_TEXT);
}

static int job_picker_compare_user(const void *a, const void *b) {
    return strcmp(job_picker_of(a)->user, job_picker_of(b)->user);
}

static void job_picker_cell_ranks(const void *row, struct table_cell *c) {
    if (job_picker_of(row)->ranks >= 0)
        snprintf(c->text, sizeof c->text, "%" PRId64, job_picker_of(row)->ranks);
    else
        snprintf(c->text, sizeof c->text, "?");
    c->role = job_picker_role(row, ROLE_TEXT);
}

static int job_picker_compare_ranks(const void *a, const void *b) {
    return (job_picker_of(a)->ranks > job_picker_of(b)->ranks) -
           (job_picker_of(a)->ranks < job_picker_of(b)->ranks);
}

static void job_picker_cell_hosts(const void *row, struct table_cell *c) {
    snprintf(c->text, sizeof c->text, "%" PRId64, job_picker_of(row)->hosts);
    c->role = job_picker_role(row, ROLE_TEXT);
}

static int job_picker_compare_hosts(const void *a, const void *b) {
    return (job_picker_of(a)->hosts > job_picker_of(b)->hosts) -
           (job_picker_of(a)->hosts < job_picker_of(b)->hosts);
}

static const char *job_picker_word(const struct engine_jobs_item *job) {
    return job->is_running ? "running" : "ended";
}

static void job_picker_cell_state(const void *row, struct table_cell *c) {
    snprintf(c->text, sizeof c->text, "%s", job_picker_word(job_picker_of(row)));
    c->role = job_picker_role(row, ROLE_STATE_RUN);
}

static int job_picker_compare_state(const void *a, const void *b) {
    return job_picker_of(a)->is_running - job_picker_of(b)->is_running;
}

static void job_picker_cell_ran(const void *row, struct table_cell *c) {
    text_human_duration(c->text, sizeof c->text, job_picker_of(row)->last - job_picker_of(row)->first);
    c->role = job_picker_role(row, ROLE_TEXT);
}

static int job_picker_compare_ran(const void *a, const void *b) {
    return table_compare_number(job_picker_of(a)->last - job_picker_of(a)->first,
                                job_picker_of(b)->last - job_picker_of(b)->first);
}

static void job_picker_put_time(double at, struct table_cell *c) {
    time_t t = (time_t)at;
    struct tm tm;
    if (!localtime_r(&t, &tm) || !strftime(c->text, sizeof c->text, "%d %b %H:%M", &tm))
        snprintf(c->text, sizeof c->text, "?");
}

static void job_picker_cell_first(const void *row, struct table_cell *c) {
    job_picker_put_time(job_picker_of(row)->first, c);
    c->role = job_picker_role(row, ROLE_TEXT);
}

static int job_picker_compare_first(const void *a, const void *b) {
    return table_compare_number(job_picker_of(a)->first, job_picker_of(b)->first);
}

static void job_picker_cell_last(const void *row, struct table_cell *c) {
    job_picker_put_time(job_picker_of(row)->last, c);
    c->role = job_picker_role(row, ROLE_TEXT);
}

/* Those that run are all seen now, a few seconds apart: they stay where they are. */
static int job_picker_compare_last(const void *a, const void *b) {
    bool run = job_picker_of(a)->is_running && job_picker_of(b)->is_running;
    return run ? job_picker_compare_first(a, b)
               : table_compare_number(job_picker_of(a)->last, job_picker_of(b)->last);
}

#define JOB_PICKER_LAST_COLUMN 7

static const struct table_column job_picker_columns[] = {
    {"JOB", "", {16, 1, 0}, GRID_LEFT, false, job_picker_cell_name, job_picker_compare_name},
    {"USER", "", {8, 0, 4}, GRID_LEFT, false, job_picker_cell_user, job_picker_compare_user},
    {"RANKS", "", {6, 0, 0}, GRID_RIGHT, true, job_picker_cell_ranks, job_picker_compare_ranks},
    {"HOSTS", "", {6, 0, 3}, GRID_RIGHT, true, job_picker_cell_hosts, job_picker_compare_hosts},
    {"STATE", "", {7, 0, 0}, GRID_LEFT, true, job_picker_cell_state, job_picker_compare_state},
    {"RAN", "", {7, 0, 2}, GRID_RIGHT, true, job_picker_cell_ran, job_picker_compare_ran},
    {"FIRST SEEN", "", {12, 0, 5}, GRID_LEFT, true, job_picker_cell_first, job_picker_compare_first},
    [JOB_PICKER_LAST_COLUMN] =
        {"LAST SEEN", "", {12, 0, 1}, GRID_LEFT, true, job_picker_cell_last, job_picker_compare_last},
};
#define JOB_PICKER_COLUMNS ((int)(sizeof job_picker_columns / sizeof job_picker_columns[0]))

/* ---- rows ---- */

static int job_picker_count_rows(const void *state) { return ((const struct job_picker_state *)state)->n; }

static const void *job_picker_row(const void *state, int at) {
    return ((const struct job_picker_state *)state)->rows[at];
}

static uint64_t job_picker_key(const void *row) {
    return hash_fnv_text(HASH_FNV_START, job_picker_of(row)->name);
}

static bool job_picker_matches(const void *row, const struct match *m) {
    const struct engine_jobs_item *job = job_picker_of(row);
    return match_text(m, job->name) || match_text(m, job->user) || match_text(m, job_picker_word(job));
}

static void job_picker_put(const void *state, const void *row, struct screen_pick *what, struct strbuf *one,
                           struct strbuf *whole) {
    (void)state;
    (void)what;
    strbuf_adds(one, job_picker_of(row)->name);
    table_put_row(job_picker_columns, JOB_PICKER_COLUMNS, row, whole);
}

static void job_picker_update(void *state, struct app *app) {
    struct job_picker_state *s = state;
    const struct engine_jobs *list = &app->jobs.list;
    free(s->rows);
    s->n = 0;
    s->rows = calloc(list->n + 1, sizeof *s->rows);
    for (size_t i = 0; s->rows && i < list->n; i++)
        if (view_shows(&s->view, &list->items[i]))
            s->rows[s->n++] = &list->items[i];
    if (s->n > 0)
        table_sort_rows(job_picker_columns, s->view.sort, s->rows, (size_t)s->n);
    view_settle(&s->view);
}

static const struct view_def job_picker_rows = {.count = job_picker_count_rows,
                                                .row = job_picker_row,
                                                .key = job_picker_key,
                                                .matches = job_picker_matches,
                                                .put = job_picker_put,
                                                .rebuild = job_picker_update,
                                                .forgets = true};

static struct view *job_picker_view(void *state) { return &((struct job_picker_state *)state)->view; }

static void job_picker_init(void *state, struct app *app) {
    struct job_picker_state *s = state;
    view_init(&s->view, &job_picker_rows, s, NULL);
    view_set_columns(&s->view, job_picker_columns, JOB_PICKER_COLUMNS);
    s->view.sort = (struct table_sort){JOB_PICKER_LAST_COLUMN, true};
    app->host.list_jobs(app->host.arg);
    job_picker_update(s, app);
}

static void job_picker_fini(void *state) {
    struct job_picker_state *s = state;
    free(s->rows);
    view_fini(&s->view);
}

static void job_picker_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct job_picker_state *s = state;
    bool failed = app->jobs.error.code != ERR_OK;
    grid_printf(g, area, 0, 1, ROLE_TEXT, "Which job of %s? Enter shows its ranks.", app->config.job_server);
    if (failed)
        grid_text_fit(g, area, 1, 1, area.cols - 1, ROLE_CONN_LOST, GRID_LEFT, app->jobs.error.text);
    area.row += 2;
    area.rows -= 2;
    view_draw(&s->view, g, area,
              app->jobs.list.n      ? "no job matches: A shows all"
              : failed              ? ""
              : !app->jobs.is_known ? "looking ..."
                                    : "no job has rows of the last 30 days: probing relay --to writes them");
}

/* ---- actions ---- */

static bool job_picker_typed(void *state, struct app *app, enum action what, const char *text,
                             enum screen_typed phase) {
    struct job_picker_state *s = state;
    bool found = view_typed(&s->view, app, what, phase == SCREEN_CANCEL ? "" : text);
    /* The list may match when it arrives. */
    return found || (what == ACTION_FILTER && !app->jobs.is_known);
}

static bool job_picker_act(void *state, struct app *app, enum action action) {
    const struct job_picker_state *s = state;
    const void *row = view_row(&s->view);
    switch ((int)action) {
    case ACTION_OPEN_JOB:
        if (row)
            app_choose_job(app, job_picker_of(row)->name);
        return true;
    case ACTION_REFRESH:
        app->host.list_jobs(app->host.arg);
        return true;
    default:
        return false;
    }
}

static void job_picker_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct job_picker_state *s = state;
    strbuf_addf(out, "Jobs %d", s->n);
    if ((size_t)s->n != app->jobs.list.n)
        strbuf_addf(out, " of %zu", app->jobs.list.n);
    if (app->jobs.list.n == ENGINE_JOBS_MAX)
        strbuf_adds(out, ", the newest: ?job=NAME names others");
    view_put_filter(&s->view, out);
    view_put_sort(&s->view, out);
}

const struct screen_def screen_job_picker = {
    .name = "jobs",
    .title = "Choose a job",
    .state_size = sizeof(struct job_picker_state),
    .init = job_picker_init,
    .fini = job_picker_fini,
    .keys = CONTEXT_JOB_PICKER,
    .view = job_picker_view,
    .draw = job_picker_draw,
    .act = job_picker_act,
    .update = job_picker_update,
    .typed = job_picker_typed,
    .status = job_picker_status,
};
