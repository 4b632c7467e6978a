/* SPDX-License-Identifier: Apache-2.0 */
/*
 * header: the header above every screen: which process, how its training goes, its memory, CPU and
 * GIL, what is wrong; and in one field what this program costs it.
 *
 * Always from the newest data, also while the view is frozen. Unknown values are "?".
 */
#include "tui/core/app.h"
#include "tui/core/app_take.h"
#include "tui/core/screen.h"
#include "tui/core/header.h"
#include "tui/core/header_job.h"
#include "tui/core/job_state.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tui/core/app_feed.h"
#include "tui/core/app_screen.h"
#include "tui/view/layout.h"
#include "tui/view/meter_draw.h"
#include "version.h"

#define HEADER_FULL_ROWS 20 /* screens with fewer rows get the short header */
#define HEADER_GAP 2
/* Snapshots that the shares of GIL and garbage collection are computed from. */
#define HEADER_MEAN 40
#define HEADER_LEAST 14 /* columns that a verdict needs to be useful */
#define HEADER_VERDICT 128
#define HEADER_MUCH_GC 20 /* percent of the time that are worth a highlight */
#define HEADER_TREND 8    /* columns of the memory's past */
/* The training's facts are not shown when they are older. */
#define HEADER_TRAINING_STAYS_S 20.0

/* On the screens of all ranks the header is the job's. */
static bool header_is_of_job(const struct app *app) {
    return job_state_is_shown_by(app, app_screen_tab(app));
}

int header_rows(const struct app *app, int screen_rows) {
    if (app_screen_is_choice(app) || app->folded)
        return 1;
    if (header_is_of_job(app))
        return 2;
    return screen_rows >= HEADER_FULL_ROWS ? 4 : 2;
}

/* "label value" at *col, which moves on past a gap. Left out if it does not fit whole. */
__attribute__((format(printf, 7, 8))) static void header_fact(struct grid *g, struct rect area, int row,
                                                              int *col, const char *label,
                                                              enum theme_role role, const char *fmt, ...) {
    char value[1024], clean[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(value, sizeof value, fmt, ap);
    va_end(ap);
    text_sanitize(clean, sizeof clean, value);
    int need = grid_text_width(g, label) + (*label ? 1 : 0) + grid_text_width(g, clean);
    if (*col + need > area.cols)
        return;
    int at = *col + grid_text(g, area, row, *col, ROLE_LABEL, label);
    at += *label ? 1 : 0;
    at += grid_text(g, area, row, at, role, value);
    *col = at + HEADER_GAP;
}

static void header_percent(char *buf, size_t cap, double v) {
    if (isnan(v))
        snprintf(buf, cap, "?");
    else
        snprintf(buf, cap, "%.*f%%", v < 99.95 ? 1 : 0, v);
}

/* State of the connection; its role. */
static enum theme_role header_connection(const struct app *a, char *buf, size_t cap) {
    const struct data *d = &a->data;
    bool is_open =
        a->pid > 0 || d->has_target || a->job.opened >= 0; /* on another host: without a pid here */
    if (!is_open && job_state_is_watched(a)) {
        snprintf(buf, cap, a->attaching ? "ATTACHING" : "NO RANK OPEN");
        return ROLE_CONN_WAIT;
    }
    switch (d->state) {
    case SESSION_CONNECTING:
        snprintf(buf, cap, "CONNECTING");
        return ROLE_CONN_WAIT;
    case SESSION_CONNECTED:
        snprintf(buf, cap, data_is_recorded(d) ? "ENDED" : "CONNECTED");
        return data_is_recorded(d) ? ROLE_CONN_LOST : ROLE_CONN_OK;
    case SESSION_RECONNECTING: {
        double left = d->retry_at_s - a->now_s;
        if (left > 0)
            snprintf(buf, cap, "RECONNECTING in %.0f s", ceil(left));
        else
            snprintf(buf, cap, "RECONNECTING");
        return ROLE_CONN_WAIT;
    }
    case SESSION_LOST:
        snprintf(buf, cap, "TARGET GONE");
        return ROLE_CONN_LOST;
    case SESSION_FAILED:
        snprintf(buf, cap, "NO AGENT");
        return ROLE_CONN_LOST;
    }
    return ROLE_TEXT;
}

/* pid and command; the connection at the right end. */
static void header_identity(const struct app *a, struct grid *g, struct rect area, int row) {
    const struct data *d = &a->data;
    char connection[64], mode[24] = "";
    enum theme_role role = header_connection(a, connection, sizeof connection);
    if (d->has_target && d->target.mode == MODEL_MODE_READONLY)
        snprintf(mode, sizeof mode, "READ-ONLY ");
    int right = area.cols - text_width(connection) - text_width(mode) - 3, col = 1;
    int32_t world, rank = job_state_rank(a, &world);
    if (rank >= 0 && world > 0)
        header_fact(g, area, row, &col, "", ROLE_TITLE_FOCUS, "rank %d of %d", (int)rank, (int)world);
    else if (job_state_is_launcher(a))
        header_fact(g, area, row, &col, "", ROLE_TITLE_FOCUS, "launcher");
    else if (a->targets.n > 1)
        header_fact(g, area, row, &col, "", ROLE_TITLE_FOCUS, "%d/%d", a->targets.shown + 1, a->targets.n);
    if (d->has_target) {
        header_fact(g, area, row, &col, "pid", ROLE_VALUE, "%lld", (long long)d->target.pid);
        const char *what = d->target.cmdline && *d->target.cmdline ? d->target.cmdline : d->target.exe;
        if (right - col > 4)
            grid_text_fit(g, area, row, col, right - col - 1, ROLE_TEXT, GRID_LEFT,
                          what ? data_short_command(what) : "?");
    }
    col = right > 1 ? right : 1;
    col += grid_text(g, area, row, col, ROLE_CONN_WAIT, mode);
    col += grid_text(g, area, row, col, role, glyph(g, GLYPH_PAUSED)) + 1;
    grid_text(g, area, row, col, role, connection);
}

/* What this program costs the job, at the right end; returns the columns before it. */
static int header_cost(const struct app *a, struct grid *g, struct rect area, int row) {
    const struct data *d = &a->data;
    char cost[32];
    if (d->has_target && d->target.mode != MODEL_MODE_AGENT)
        return area.cols;
    header_percent(cost, sizeof cost, d->live.valid ? d->live.snapshot.process.agent_cpu_pct : NAN);
    int width = text_width("agent ") + text_width(cost), at = area.cols - 1 - width;
    if (at < 1)
        return area.cols;
    header_fact(g, area, row, &at, "agent", ROLE_MUTED, "%s", cost);
    return area.cols - 1 - width - HEADER_GAP;
}

/* A number of the newest row of the training's facts; NAN: not known. */
static double header_training(const struct app *a, const char *column) {
    const struct app_feed *f = app_feed_get(a, FEED_JOB);
    if (!f->rows || !f->rows->n_rows || a->now_s - f->answered_s > HEADER_TRAINING_STAYS_S)
        return NAN;
    return app_feed_number(f->rows, 0, app_feed_column(f->rows, column));
}

static bool header_has_gpus(const struct app *a) {
    const struct app_feed *f = app_feed_get(a, FEED_GPU);
    bool is_fresh = data_is_recorded(&a->data) || a->now_s - f->answered_s <= HEADER_TRAINING_STAYS_S;
    return a->feeds.gpus.n && is_fresh;
}

/* Its GPUs together, and what is wrong with one. */
static void header_gpu(const struct app *a, struct grid *g, struct rect area, int row, int *col) {
    const struct gpus *all = &a->feeds.gpus;
    const struct gpus_row *worst = gpus_worst(all);
    double util = gpus_util(all), mib = gpus_mem_used(all);
    char busy[16] = "?", memory[24], trouble[64] = "", name[32] = "";
    if (!isnan(util))
        snprintf(busy, sizeof busy, "%.0f%%", util);
    text_human_bytes(memory, sizeof memory, mib * (1 << 20));
    if (worst) {
        gpus_put_trouble(worst, trouble, sizeof trouble);
        if (all->n > 1)
            gpus_put_name(worst, name, sizeof name);
    }
    enum theme_role role = worst ? ROLE_CONN_WAIT : ROLE_VALUE;
    int before = *col;
    if (worst)
        header_fact(g, area, row, col, "GPU", role, "%s %s, %s%s%s", busy, memory, name, *name ? " " : "",
                    trouble);
    if (*col == before) /* nothing is wrong, or there is no room for it */
        header_fact(g, area, row, col, "GPU", role, "%s %s", busy, memory);
}

/* The job: steps a second, loss, memory and how it moves, GPU, garbage collection. */
static void header_job(const struct app *a, struct grid *g, struct rect area, int row) {
    const struct data *d = &a->data;
    const struct model_process *p = d->live.valid ? &d->live.snapshot.process : NULL;
    const struct meter *past = &d->pulse.meters[EVENTS_RSS];
    char text[64];
    int col = 1;
    area.cols = header_cost(a, g, area, row);
    double rate = header_training(a, "rate"), loss = header_training(a, "loss"),
           gpu_mb = header_training(a, "gpu_mb");
    if (!isnan(rate))
        header_fact(g, area, row, &col, "steps", ROLE_VALUE, "%.*f/s",
                    rate < 1      ? 2
                    : rate < 9.95 ? 1
                                  : 0,
                    rate);
    else if (d->has_target && d->target.torch)
        header_fact(g, area, row, &col, "steps", ROLE_VALUE, "?");
    if (!isnan(loss))
        header_fact(g, area, row, &col, "loss", ROLE_VALUE, "%.4g", loss);
    text_human_bytes(text, sizeof text, p ? p->rss_bytes : MODEL_UNKNOWN);
    header_fact(g, area, row, &col, "memory", ROLE_VALUE, "%s", text);
    if (p && col + HEADER_TREND < area.cols) {
        meter_draw(past, g, area, row, col - 1, HEADER_TREND, meter_trend(past, METER_MAX), ROLE_METER_CPU);
        col += HEADER_TREND + 1;
    }
    if (header_has_gpus(a))
        header_gpu(a, g, area, row, &col);
    else if (gpu_mb > 0) {
        text_human_bytes(text, sizeof text, gpu_mb * (1 << 20));
        header_fact(g, area, row, &col, "GPU", ROLE_VALUE, "%s", text);
    }
    double gc = meter_mean(&d->gc, HEADER_MEAN);
    if (!isnan(gc))
        header_fact(g, area, row, &col, "GC", gc >= HEADER_MUCH_GC ? ROLE_CONN_WAIT : ROLE_VALUE, "%.0f%%",
                    gc);
}

/* What it is: Python, torch, rank, uptime, threads, machine. */
static void header_facts(const struct app *a, struct grid *g, struct rect area, int row, int col) {
    const struct data *d = &a->data;
    const struct model_process *p = d->live.valid ? &d->live.snapshot.process : NULL;
    char text[64];
    const char *python = d->has_target ? d->target.python : NULL;
    text_human_duration(text, sizeof text, p ? p->uptime_s : NAN);
    header_fact(g, area, row, &col, "up", ROLE_VALUE, "%s", text);
    if (!p)
        header_fact(g, area, row, &col, "threads", ROLE_VALUE, "?");
    else if (d->live.snapshot.incomplete && p->n_threads != MODEL_UNKNOWN)
        header_fact(g, area, row, &col, "threads", ROLE_VALUE, "%lld", (long long)p->n_threads);
    else /* the job's own: a snapshot leaves out those of the agent */
        header_fact(g, area, row, &col, "threads", ROLE_VALUE, "%zu", d->live.snapshot.n_threads);
    if (d->has_target && d->target.rank != MODEL_UNKNOWN && !job_state_is_offered(a))
        header_fact(g, area, row, &col, "rank", ROLE_VALUE, "%lld", (long long)d->target.rank);
    header_fact(g, area, row, &col, "Python", ROLE_VALUE, "%s%s", python ? python : "?",
                d->has_target && d->target.python_untested ? " (untested)" : "");
    if (d->has_target && d->target.torch)
        header_fact(g, area, row, &col, "torch", ROLE_VALUE, "%s", d->target.torch);
    if (d->has_target && d->target.host)
        header_fact(g, area, row, &col, "on", ROLE_MUTED, "%s", d->target.host);
}

/* Who holds the GIL, as text; its role. */
static enum theme_role header_gil(const struct data *d, char *buf, size_t cap) {
    int64_t tid = d->live.valid ? d->live.snapshot.gil_tid : MODEL_UNKNOWN;
    if (d->live.valid && d->live.snapshot.gil_enabled == 0) {
        snprintf(buf, cap, "nobody: this Python has none");
        return ROLE_VALUE;
    }
    if (tid == MODEL_UNKNOWN) {
        snprintf(buf, cap, "?");
        return ROLE_VALUE;
    }
    if (tid == 0) {
        snprintf(buf, cap, "nobody");
        return ROLE_VALUE;
    }
    const struct model_thread *t = data_find_thread(&d->live, tid);
    char name[128];
    text_sanitize(name, sizeof name, t ? data_thread_name(t) : "?");
    name[text_fit(name, 24)] = '\0';
    snprintf(buf, cap, "%s (%lld)", name, (long long)tid);
    return ROLE_GIL_HELD;
}

/* The verdict, at the right end, not before column `col`; returns its first column, or the end. */
static int header_verdict(const struct app *a, struct grid *g, struct rect area, int row, int col) {
    char text[HEADER_VERDICT];
    enum theme_role role = app_feed_put_badge(a, text, sizeof text);
    const struct job_shot *job = a->job.shot;
    if (job && job->n_verdicts) { /* it concerns all ranks, and so this one */
        snprintf(text, sizeof text, "job %s", job->verdicts[0].brief);
        role = job->verdicts[0].level == JOB_SHOT_BAD ? ROLE_STATUS_BAD : ROLE_CONN_WAIT;
    }
    int room = area.cols - col - 1, width = grid_text_width(g, text);
    if (!*text || (room < width && room < HEADER_LEAST))
        return area.cols;
    width = width < room ? width : room;
    int at = area.cols - 1 - width;
    grid_text_fit(g, area, row, at, width, role, GRID_LEFT, text);
    return at;
}

/* CPU and GIL with their recent past. */
static void header_meters(const struct app *a, struct grid *g, struct rect area, int row, bool history) {
    const struct data *d = &a->data;
    char text[160];
    int col = 1, width = history ? (area.cols - 66) / 2 : 0;
    if (width > 60)
        width = 60;
    header_percent(text, sizeof text, d->live.valid ? d->live.snapshot.process.cpu_pct : NAN);
    bool narrow = !layout_has_panes(area);
    header_fact(g, area, row, &col, "CPU", ROLE_VALUE, "%*s", narrow ? 0 : 6, text);
    if (width > 3) {
        double full = ceil(meter_max(&d->cpu, width, 1) / 100) * 100;
        meter_draw(&d->cpu, g, area, row, col - 1, width, (struct meter_scale){0, full}, ROLE_METER_CPU);
        col += width + 1;
    }
    char share[32];
    double mean = meter_mean(&d->gil, HEADER_MEAN);
    if (isnan(mean))
        snprintf(share, sizeof share, "?");
    else
        snprintf(share, sizeof share, "%.0f%%", mean);
    header_fact(g, area, row, &col, "GIL", ROLE_VALUE, "%*s", narrow ? 0 : 4, share);
    if (width > 3) {
        meter_draw(&d->gil, g, area, row, col - 1, width, (struct meter_scale){0, 100}, ROLE_METER_GIL);
        col += width + 1;
    }
    enum theme_role role = header_gil(d, text, sizeof text);
    char *tid = narrow ? strrchr(text, '(') : NULL; /* the name is enough */
    if (tid && tid > text)
        tid[-1] = '\0';
    header_fact(g, area, row, &col, "held by", role, "%s", text);
    double longest_us;
    size_t waiters = d->live.valid ? data_gil_waiters(&d->live.snapshot, &longest_us) : 0;
    if (waiters && longest_us > 0)
        header_fact(g, area, row, &col, "", ROLE_GIL_WAITING, "%zu wait %.1fs", waiters, longest_us / 1e6);
    else if (waiters)
        header_fact(g, area, row, &col, "", ROLE_GIL_WAITING, "%zu wait", waiters);
    if (!history) /* this is the last line */
        header_verdict(a, g, area, row, col);
}

/* Warnings, then what the process is; the verdict at the right end. */
static void header_state(const struct app *a, struct grid *g, struct rect area, int row) {
    const struct data *d = &a->data;
    char text[160];
    int col = 1;
    double age = d->live.valid ? a->now_s - d->live.arrived_s : 0;
    if ((app_needs_tick(a) || app_is_late(a)) && age >= 1) {
        text_human_duration(text, sizeof text, age);
        header_fact(g, area, row, &col, "", ROLE_CONN_WAIT, "DATA %s OLD", text);
    }
    arms_put_names(&d->arms, text, sizeof text);
    if (text[0])
        header_fact(g, area, row, &col, "running", ROLE_CONN_WAIT, "%s", text);
    debuggers_put_names(&d->holds, text, sizeof text);
    if (text[0] && d->state == SESSION_CONNECTED)
        header_fact(g, area, row, &col, "debuggers", ROLE_CONN_WAIT, "%s", text);
    if (d->pulse.others > 0 && d->state == SESSION_CONNECTED)
        header_fact(g, area, row, &col, "others", ROLE_CONN_WAIT, "%lld", (long long)d->pulse.others);
    if (d->missed && a->config.delay_s > 0)
        header_fact(g, area, row, &col, "dropped", ROLE_CONN_WAIT, "%llu", (unsigned long long)d->missed);
    if (d->live.valid && d->live.snapshot.incomplete)
        header_fact(g, area, row, &col, "", ROLE_CONN_WAIT, "INCOMPLETE");
    if (d->has_target && d->target.mode != MODEL_MODE_AGENT)
        header_fact(g, area, row, &col, "no agent", ROLE_VALUE, "%s",
                    d->target.blocking    ? "running threads are stopped while they are read"
                    : data_is_recorded(d) ? "read from its last tables"
                                          : "read from outside");
    if (d->live.valid && d->live.snapshot.sampling == MODEL_SAMPLING_GENTLE)
        header_fact(g, area, row, &col, "torn stacks", ROLE_CONN_WAIT, "%llu of %llu",
                    (unsigned long long)d->torn, (unsigned long long)d->ran);
    int verdict = header_verdict(a, g, area, row, col);
    area.cols = verdict < area.cols ? verdict - 1 : area.cols;
    header_facts(a, g, area, row, col);
}

void header_draw(const struct app *app, struct grid *g, struct rect area) {
    if (app_screen_is_choice(app)) {
        grid_printf(g, area, 0, 1, ROLE_VALUE, "probing-top %s", PROBING_VERSION);
        return;
    }
    if (header_is_of_job(app)) {
        header_job_draw(app, g, area);
        return;
    }
    header_identity(app, g, area, 0);
    if (area.rows >= 4) {
        header_job(app, g, area, 1);
        header_meters(app, g, area, 2, true);
        header_state(app, g, area, 3);
    } else if (area.rows >= 2) {
        header_meters(app, g, area, 1, false);
    }
}

void header_draw_too_small(const struct app *app, struct grid *g) {
    struct rect all = grid_rect(g);
    grid_printf(g, all, 0, 0, ROLE_VALUE, "too small: %dx%d", g->cols, g->rows);
    grid_printf(g, all, 1, 0, ROLE_TEXT, "needs %dx%d", LAYOUT_MIN_COLS, LAYOUT_MIN_ROWS);
    grid_text(g, all, 2, 0, ROLE_MUTED, app->prompt_for || app->ask.action ? "ctrl-c quits" : "q quits");
    if (app->data.has_target && g->rows > 4)
        grid_printf(g, all, 4, 0, ROLE_MUTED, "pid %lld", (long long)app->data.target.pid);
}
