/* SPDX-License-Identifier: Apache-2.0 */
/* header_job: see header_job.h. */
#include "tui/core/header_job.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tui/core/job_state.h"
#include "tui/core/job_time.h"
#include "tui/view/rank_text.h"

#define HEADER_JOB_GAP 2
#define HEADER_JOB_OLD_S 3.0 /* the age from which it is shown */
#define HEADER_JOB_TEXT 4096

/* A fact at *col, which moves on past a gap; left out if it does not fit whole. */
__attribute__((format(printf, 5, 6))) static void
header_job_fact(struct grid *g, struct rect area, int *col, enum theme_role role, const char *fmt, ...) {
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    int width = grid_text_width(g, text);
    if (*col + width >= area.cols)
        return;
    grid_text(g, area, 0, *col, role, text);
    *col += width + HEADER_JOB_GAP;
}

/* "1,234,567" */
static void header_job_number(int64_t n, char *buf, size_t cap) {
    char digits[32];
    size_t len = (size_t)snprintf(digits, sizeof digits, "%" PRId64, n), used = 0;
    for (size_t i = 0; i < len && used + 2 < cap; i++) {
        if (i && (len - i) % 3 == 0)
            buf[used++] = ',';
        buf[used++] = digits[i];
    }
    buf[used] = '\0';
}

/* Ranks with a process, of all. */
static void header_job_ranks(const struct job_shot *f, struct grid *g, struct rect area, int *col) {
    int32_t there = 0, world = f->world > 0 ? f->world : (int32_t)f->n_ranks;
    for (size_t i = 0; i < f->n_ranks; i++)
        there += f->ranks[i].pid > 0 && f->ranks[i].state != FLEET_GONE;
    header_job_fact(g, area, col, there < world ? ROLE_CONN_LOST : ROLE_VALUE,
                    "%" PRId32 "/%" PRId32 " ranks", there, world);
    size_t silent = job_shot_silent_hosts(f);
    if (silent)
        header_job_fact(g, area, col, ROLE_CONN_LOST, "%zu/%zu hosts", f->n_hosts - silent, f->n_hosts);
    else
        header_job_fact(g, area, col, ROLE_VALUE, "%zu %s", f->n_hosts, f->n_hosts == 1 ? "host" : "hosts");
}

static void header_job_steps(const struct job_shot *f, struct grid *g, struct rect area, int *col) {
    int64_t step = -1;
    char text[48];
    for (size_t i = 0; i < f->n_ranks; i++)
        step = f->ranks[i].step > step ? f->ranks[i].step : step;
    if (step >= 0) {
        header_job_number(step, text, sizeof text);
        header_job_fact(g, area, col, ROLE_VALUE, "step %s", text);
    }
    if (f->rate < 0.0995) /* a step takes more than ten seconds: two digits would be 0 */
        header_job_fact(g, area, col, ROLE_VALUE, "%.3g/min", f->rate * 60);
    else if (!isnan(f->rate))
        header_job_fact(g, area, col, ROLE_VALUE, "%.*f/s", f->rate < 9.95 ? 2 : 0, f->rate);
}

static void header_job_cost(const struct job_shot *f, struct grid *g, struct rect area, int *col) {
    double cost = NAN;
    for (size_t i = 0; i < f->n_hosts; i++)
        cost = isnan(cost) ? f->hosts[i].cost_pct : fmax(cost, f->hosts[i].cost_pct);
    if (!isnan(cost))
        header_job_fact(g, area, col, ROLE_MUTED, "cost %.1f%%", cost);
}

static enum theme_role header_job_role(enum job_shot_level level) {
    return level == JOB_SHOT_BAD ? ROLE_STATUS_BAD : level == JOB_SHOT_WARNING ? ROLE_CONN_WAIT : ROLE_MUTED;
}

/* The name of the job before it was found. */
static const char *header_job_name(const struct app *a) {
    const struct app_job_offer *o = job_state_offer(a);
    const char *colon = strchr(a->job.target, ':');
    return o ? o->job : colon ? colon + 1 : a->job.target;
}

static void header_job_identity(const struct app *a, struct grid *g, struct rect area) {
    const struct job_shot *f = job_state_shown(a);
    double age = f ? a->now_s - a->job.arrived_s : 0;
    char text[64];
    int col = 1;
    header_job_fact(g, area, &col, ROLE_TITLE, "job");
    col--;
    header_job_fact(g, area, &col, ROLE_VALUE, "%.80s", f ? f->job : header_job_name(a));
    if (!f)
        return;
    header_job_ranks(f, g, area, &col);
    if (f->is_final) {
        job_time_put_clock(a, f->at_s, text, sizeof text);
        header_job_fact(g, area, &col, ROLE_CONN_WAIT, "ENDED %s", text);
    } else if (!a->data.paused && age >= HEADER_JOB_OLD_S) {
        text_human_duration(text, sizeof text, age);
        header_job_fact(g, area, &col, ROLE_CONN_WAIT, "DATA %s OLD", text);
    }
    if (area.rows < 2 && f->n_verdicts)
        header_job_fact(g, area, &col, header_job_role(f->verdicts[0].level), "%s", f->verdicts[0].code);
    header_job_steps(f, g, area, &col);
    header_job_cost(f, g, area, &col);
}

/* The worst verdict and how many more there are; else the states. */
static void header_job_state(const struct app *a, struct grid *g, struct rect area) {
    const struct job_shot *f = job_state_shown(a);
    struct strbuf text;
    enum theme_role role = ROLE_TEXT;
    bool is_old = f && !f->is_final && !a->data.paused && a->now_s - a->job.arrived_s >= HEADER_JOB_OLD_S;
    strbuf_init(&text, HEADER_JOB_TEXT);
    if (a->job.error.code != ERR_OK) {
        role = ROLE_STATUS_BAD;
        strbuf_adds(&text, a->job.error.text);
    } else if (is_old && f->note) {
        role = ROLE_CONN_WAIT;
        strbuf_adds(&text, f->note);
    } else if (!f) {
        role = ROLE_MUTED;
        strbuf_adds(&text, "looking for its ranks");
    } else if (f->n_verdicts) {
        role = header_job_role(f->verdicts[0].level);
        if (f->n_verdicts > 1)
            strbuf_addf(&text, "(1 of %zu) ", f->n_verdicts);
        strbuf_addf(&text, "%s: %s", f->verdicts[0].brief, f->verdicts[0].text);
    } else
        rank_text_put_states(f, &text);
    grid_text_fit(g, area, 1, 1, area.cols - 2, role, GRID_LEFT, strbuf_str(&text));
    strbuf_fini(&text);
}

void header_job_draw(const struct app *app, struct grid *g, struct rect area) {
    header_job_identity(app, g, area);
    if (area.rows > 1)
        header_job_state(app, g, area);
}
