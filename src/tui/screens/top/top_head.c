/* SPDX-License-Identifier: Apache-2.0 */
/* top_head: see top_head.h. */
#include "tui/screens/top/top_head.h"

#include <math.h>
#include <stdio.h>

#include "base/cost.h"
#include "base/text.h"
#include "tui/core/app_diff.h"
#include "tui/core/app_history.h"
#include "tui/core/window.h"
#include "tui/model/events.h"

/* Below this part of the requested rate the reason is given, if it is known. */
#define TOP_SLOW 0.9
/* No samples for so long are worth a warning: seconds, or so many times the mean wait for one */
#define TOP_SILENT_S 2.0
#define TOP_SILENT_WAITS 8
#define TOP_MUCH_GC 10.0 /* percent of the time that are worth a highlight */

/* "label value" at *col, which moves on past a gap. False: it does not fit whole, and is left
 * out. */
static bool top_fact(struct grid *g, struct rect area, int row, int *col, const char *label,
                     enum theme_role role, const char *value) {
    int need = grid_text_width(g, label) + (*label ? 1 : 0) + grid_text_width(g, value);
    if (*col + need > area.cols)
        return false;
    *col += grid_text(g, area, row, *col, ROLE_LABEL, label) + (*label ? 1 : 0);
    *col += grid_text(g, area, row, *col, role, value) + 2;
    return true;
}

/* Which time it is, unless the comparison says so. */
static void top_draw_window(const struct top_head *q, const struct app *app, struct grid *g, struct rect area,
                            int row, int *col) {
    char text[160], missing[WINDOW_TEXT];
    if (q->compared)
        return;
    window_put_text(app, text, sizeof text);
    window_put_missing(app, missing, sizeof missing);
    app_history_window_text(app, window_which(app), text, sizeof text);
    if (*text)
        top_fact(g, area, row, col, "", ROLE_VALUE, text);
    if (*missing)
        top_fact(g, area, row, col, "", ROLE_CONN_WAIT, missing);
}

/* Which samples are added up, and how. */
static void top_draw_query(const struct top_head *q, const struct app *app, struct grid *g, struct rect area,
                           int row, int *col) {
    const struct sample_store *tally = app->data.tally;
    char text[160];
    if (q->compared) {
        *col += grid_text(g, area, row, *col, ROLE_STATUS_ON, " DIFF ") + 1;
        app_diff_text(app, window_which(app), text, sizeof text);
        *col += grid_text(g, area, row, *col, ROLE_VALUE, text) + 2;
    }
    if (q->tid) {
        const char *name = tally ? stack_counts_thread_name(sample_store_counts(tally), q->tid) : NULL;
        char clean[128];
        text_sanitize(clean, sizeof clean, name ? name : "?");
        clean[text_fit(clean, 24)] = '\0';
        snprintf(text, sizeof text, "%s (%lld)", clean, (long long)q->tid);
    } else
        snprintf(text, sizeof text, "all (%zu)", q->n_tids);
    top_fact(g, area, row, col, q->tid ? "thread" : "threads", ROLE_VALUE, text);
    top_fact(g, area, row, col, "by", ROLE_VALUE, q->by);
    top_fact(g, area, row, col, "time", ROLE_STATUS_ON, q->time);
    top_draw_window(q, app, g, area, row, col);
    snprintf(text, sizeof text, "%llu", (unsigned long long)q->samples);
    top_fact(g, area, row, col, "samples", ROLE_VALUE, text);
    snprintf(text, sizeof text, "%.1f%%", q->gc_pct);
    if (!isnan(q->gc_pct))
        top_fact(g, area, row, col, "GC", q->gc_pct >= TOP_MUCH_GC ? ROLE_CONN_WAIT : ROLE_VALUE, text);
}

/* The rate: of the newest batches, and the requested one. True: it is lower because of the budget,
 * and says so. */
static bool top_draw_rate(const struct sample_store_health *h, const struct app *app, struct grid *g,
                          struct rect area, int row, int *col) {
    double wanted_hz = app->config.sample_hz;
    char text[64], long_text[96];
    bool is_past = data_is_recorded(&app->data);
    if (is_past)
        snprintf(text, sizeof text, "%.1f Hz, while it ran", h->got_hz);
    else if (isnan(h->got_hz))
        snprintf(text, sizeof text, "? of %g Hz", wanted_hz);
    /* More than requested is by chance. */
    else
        snprintf(text, sizeof text, "%.*f of %g Hz", h->got_hz < 9.95 ? 1 : 0, fmin(h->got_hz, wanted_hz),
                 wanted_hz);
    bool is_low = !is_past && h->got_hz < wanted_hz * EVENTS_RATE_LOW;
    enum theme_role role = is_low ? ROLE_CONN_WAIT : ROLE_VALUE;
    snprintf(long_text, sizeof long_text, "slowed to %.*f Hz to stay under %g %%", h->got_hz < 9.95 ? 1 : 0,
             h->got_hz, h->budget_pct);
    if (!is_past && h->got_hz < wanted_hz * TOP_SLOW && cost_is_limiting(h->cost_pct, h->budget_pct) &&
        top_fact(g, area, row, col, "sampling", role, long_text))
        return true;
    top_fact(g, area, row, col, "sampling", role, text);
    return false;
}

/* The cost of sampling and its limit. */
static void top_draw_cost(const struct sample_store_health *h, struct grid *g, struct rect area, int row,
                          int *col) {
    char text[64], cost[24] = "?";
    if (isnan(h->budget_pct))
        return;
    if (!isnan(h->cost_pct))
        snprintf(cost, sizeof cost, "%.2f", h->cost_pct);
    snprintf(text, sizeof text, "%s of %g%%", cost, h->budget_pct);
    top_fact(g, area, row, col, "cost", ROLE_VALUE, text);
}

/* Stacks that were rejected because their threads moved while they were read. */
static void top_draw_torn(const struct sample_store_health *h, struct grid *g, struct rect area, int row,
                          int *col) {
    char text[64] = "?";
    bool may = h->mode == MODEL_SAMPLING_GENTLE;
    uint64_t seen = h->samples + h->torn + h->undefined;
    if (seen && !h->torn)
        snprintf(text, sizeof text, "0");
    else if (seen)
        snprintf(text, sizeof text, "%llu (%.2f%%)", (unsigned long long)h->torn,
                 (double)h->torn / (double)seen * 100);
    top_fact(g, area, row, col, "torn stacks", h->torn || may ? ROLE_CONN_WAIT : ROLE_VALUE, text);
}

/* The quality of the stream. Always the newest, also while frozen. */
static void top_draw_health(const struct app *app, struct grid *g, struct rect area, int row, int *col) {
    struct sample_store_health h = {.got_hz = NAN, .newest_s = NAN, .cost_pct = NAN, .budget_pct = NAN};
    char text[64];
    if (app->data.tally)
        sample_store_get_health(app->data.tally, &h);
    if (app->data.state != SESSION_CONNECTED)
        top_fact(g, area, row, col, "", ROLE_CONN_WAIT, "NOT SAMPLING");
    else if (!app->data.paused && !data_is_recorded(&app->data) && !isnan(h.newest_s) &&
             app->now_s - h.newest_s > fmax(TOP_SILENT_S, TOP_SILENT_WAITS / app->config.sample_hz)) {
        snprintf(text, sizeof text, "NO SAMPLES FOR %.0f s", app->now_s - h.newest_s);
        top_fact(g, area, row, col, "", ROLE_CONN_WAIT, text);
    }
    bool is_limited = top_draw_rate(&h, app, g, area, row, col);
    if (!is_limited) /* else the limit is what it costs */
        top_draw_cost(&h, g, area, row, col);
    top_draw_torn(&h, g, area, row, col);
    snprintf(text, sizeof text, "%llu", (unsigned long long)(h.dropped + h.undefined + h.left_out));
    top_fact(g, area, row, col, "dropped", h.dropped + h.undefined + h.left_out ? ROLE_CONN_WAIT : ROLE_VALUE,
             text);
    snprintf(text, sizeof text, "%u", h.restarts);
    if (h.restarts)
        top_fact(g, area, row, col, "too many stacks, restarted", ROLE_CONN_WAIT, text);
}

void top_head_draw(const struct top_head *head, const struct app *app, struct grid *g, struct rect area) {
    int col = 1;
    top_draw_query(head, app, g, area, 0, &col);
    if (area.rows > 1)
        col = 1;
    top_draw_health(app, g, area, area.rows - 1, &col);
}

void top_head_empty(const struct app *app, unsigned first, char *buf, size_t cap) {
    struct sample_store_health h = {0};
    if (app->data.tally)
        sample_store_get_health(app->data.tally, &h);
    buf[0] = '\0';
    if (app->data.state == SESSION_CONNECTED && h.samples && h.samples < first)
        snprintf(buf, cap, "sampling ... %llu of the first %u samples", (unsigned long long)h.samples, first);
    else if (app->data.state == SESSION_CONNECTING)
        snprintf(buf, cap, "connecting to the agent ...");
    else if (app->data.state == SESSION_RECONNECTING)
        snprintf(buf, cap, "the connection broke; trying again ...");
    else if (app->data.state != SESSION_CONNECTED)
        snprintf(buf, cap, "no samples");
}
