/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader: how the training is fed: for each DataLoader that is iterated over, how many batches are
 * ready and how long the training waits for one, with the last minutes of both; and its worker
 * processes.
 *
 * Nothing here takes the GIL: the agent reads the queues from memory, and the workers are read from
 * outside.
 */
#include "tui/core/app.h"
#include "tui/core/app_feed.h"
#include "tui/core/app_screen.h"
#include "tui/core/screen.h"

#include <math.h>
#include <stdio.h>

#include "tui/screens/browser.h"
#include "tui/screens/loader/loader_rows.h"
#include "tui/view/meter_draw.h"

#define LOADER_EVERY_S 1.0
#define LOADER_WORKERS_EVERY_S 5.0 /* each is read from outside */
#define LOADER_WAITS_MS 1.0        /* per batch: more than noise */
#define LOADER_METER_ROWS 10       /* rows from which on there are meters */
#define LOADER_LABEL 29            /* columns beside a meter, */
#define LOADER_VALUE 7             /* the column where its value begins, */
#define LOADER_FULL 15             /* and the column for its peak or most */

static const char loader_query[] =
    "SELECT * FROM python.loaders WHERE timestamp > now() - interval '4 minutes' ORDER BY timestamp";
static const char loader_workers_query[] = "SELECT * FROM python.loader_workers";

struct loader_state {
    struct browser browser;
    struct loader_rows rows;
    struct outline outline;
    unsigned version, workers_version;
    bool is_taken; /* there were some */
};

static const struct loader_row *loader_selected(const struct loader_state *s) {
    const struct outline_node *n = outline_selected(&s->outline);
    return n ? n->row : NULL;
}

static void loader_update(void *state, struct app *app) {
    struct loader_state *s = state;
    const struct app_feed *f = app_feed_get(app, FEED_LOADERS), *w = app_feed_get(app, FEED_LOADER_WORKERS);
    if (app_screen_top(app)->state == state) {
        app_feed_follow(app, FEED_LOADERS, loader_query, LOADER_EVERY_S);
        app_feed_follow(app, FEED_LOADER_WORKERS, loader_workers_query, LOADER_WORKERS_EVERY_S);
    }
    bool is_new = !s->is_taken || f->version != s->version || w->version != s->workers_version;
    bool is_whole = s->rows.n && (s->rows.workers || !w->rows); /* they arrive after the loaders */
    if (!is_new || (app->data.paused && is_whole))
        return;
    s->version = f->version;
    s->workers_version = w->version;
    s->is_taken = true;
    if (!f->rows) /* another target */
        tags_clear(&s->outline.view.own_tags);
    loader_rows_build(&s->rows, f->rows, w->rows, &s->outline);
}

static void loader_init(void *state, struct app *app) {
    struct loader_state *s = state;
    outline_init(&s->outline, &loader_outline, app->config.ascii);
    s->outline.open_depth = 1;
    loader_update(state, app);
}

static void loader_fini(void *state) {
    struct loader_state *s = state;
    outline_fini(&s->outline);
    loader_rows_fini(&s->rows);
}

/* ---- drawing ---- */

/* What the selected loader does, in words. */
static void loader_put_line(const struct loader_row *l, struct strbuf *out) {
    if (!l)
        return;
    strbuf_addf(out, "%s", l->dataset ? l->dataset : "a loader");
    if (!(l->workers > 0))
        strbuf_adds(out, "   no workers: the training makes its batches itself");
    else if (l->ready > 0 && l->under_way >= l->ready)
        strbuf_addf(out, "   %.0f of %.0f batches are ready", l->ready, l->under_way);
    else if (!isnan(l->ready))
        strbuf_addf(out, "   no batch is ready, %.0f are being made", l->under_way);
    /* The next one is another worker's. */
    bool is_late = l->ready > 0 && l->ready < l->under_way && l->wait_ms >= LOADER_WAITS_MS;
    if (!(l->workers > 0) && !isnan(l->wait_ms))
        strbuf_addf(out, ", %.1f ms each", l->wait_ms);
    else if (is_late)
        strbuf_addf(out, "   waiting %.1f ms for the next one", l->wait_ms);
    else if (!isnan(l->wait_ms))
        strbuf_addf(out, "   waiting %.1f ms for a batch", l->wait_ms);
}

/* In seven columns: "6.9 ms", "191 ms", "1.9 s". */
static void loader_put_wait(double ms, char *buf, size_t cap) {
    if (isnan(ms))
        snprintf(buf, cap, "?");
    else if (ms >= 999.5)
        snprintf(buf, cap, ms < 99950 ? "%.1f s" : "%.0f s", ms / 1000);
    else
        snprintf(buf, cap, ms < 99.95 ? "%.1f ms" : "%.0f ms", ms);
}

/* Its last minutes, two lines, with the value of a full bar. */
static void loader_draw_meters(const struct loader_row *l, struct grid *g, struct rect *area) {
    char wait[32];
    int width = area->cols - LOADER_LABEL - 2;
    double room = loader_capacity(l), most = meter_max(l->waits, METER_MAX, 0);
    if (area->rows < LOADER_METER_ROWS || width < 8)
        return;
    width = width > METER_MAX ? METER_MAX : width;
    double full = room > 0 ? room : meter_max(l->readies, METER_MAX, 1);
    grid_text(g, *area, 0, 1, ROLE_LABEL, "ready");
    grid_printf(g, *area, 0, LOADER_VALUE, ROLE_VALUE, isnan(l->ready) ? "?" : "%.0f", l->ready);
    grid_printf(g, *area, 0, LOADER_FULL, ROLE_MUTED, "of %.0f", full);
    meter_draw(l->readies, g, *area, 0, LOADER_LABEL, width, (struct meter_scale){0, full}, ROLE_METER_CPU);
    grid_text(g, *area, 1, 1, ROLE_LABEL, "wait");
    loader_put_wait(l->wait_ms, wait, sizeof wait);
    grid_text(g, *area, 1, LOADER_VALUE, ROLE_VALUE, wait);
    loader_put_wait(most, wait, sizeof wait);
    grid_printf(g, *area, 1, LOADER_FULL, ROLE_MUTED, "peak %s", wait);
    meter_draw(l->waits, g, *area, 1, LOADER_LABEL, width, meter_trend(l->waits, METER_MAX), ROLE_METER_GIL);
    area->row += 2;
    area->rows -= 2;
}

static void loader_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct loader_state *s = state;
    const struct loader_row *row = loader_selected(s), *l = loader_of_row(&s->rows, row);
    const struct result *rows = row && row->is_worker ? s->rows.workers : s->rows.loaders;
    char empty[sizeof((struct err *)0)->text + 64];
    struct strbuf line;
    strbuf_init(&line, 512);
    loader_put_line(l, &line);
    browser_draw_head(app, FEED_LOADERS, strbuf_str(&line), NULL, g, &area);
    strbuf_fini(&line);
    if (l)
        loader_draw_meters(l, g, &area);
    app_feed_put_empty(app, FEED_LOADERS,
                       s->rows.n ? "nothing matches: A shows all" : "no DataLoader is iterated over now",
                       empty, sizeof empty);
    facts_clear(&s->browser.facts);
    if (row && rows)
        facts_add_row(&s->browser.facts, rows, row->line, browser_not_facts);
    browser_draw(&s->browser, &s->outline, row && row->is_worker ? " Worker " : " Loader ", empty, g, area);
}

static void loader_status(const void *state, const struct app *app, struct strbuf *out) {
    (void)app;
    outline_status(&((const struct loader_state *)state)->outline, "Loaders, workers", out);
}

/* ---- actions ---- */

static bool loader_act(void *state, struct app *app, enum action action) {
    struct loader_state *s = state;
    switch ((int)action) {
    case ACTION_QUIT: /* returns to the screen below, unlike other tabs */
        app_screen_pop(app);
        return true;
    case ACTION_REFRESH:
        app_feed_ask(app, FEED_LOADERS, loader_query);
        app_feed_ask(app, FEED_LOADER_WORKERS, loader_workers_query);
        return true;
    default:
        return browser_act(&s->browser, &s->outline, action, ACTION_OPEN_LOADER);
    }
}

static bool loader_mouse(void *state, struct app *app, const struct input_event *e) {
    struct loader_state *s = state;
    return browser_mouse(&s->browser, &s->outline, app, e);
}

static struct view *loader_view(void *state) {
    struct loader_state *s = state;
    return browser_view(&s->browser, &s->outline);
}

const struct screen_def screen_loader = {
    .name = "loader",
    .title = "Loader",
    .is_tab = true,
    .needs_torch = true,
    .opens = {SCREEN_TAB_KEY(LOADER, "loader", "9", "the Loader screen: batches, waits, DataLoader workers")},
    .is_kept = true,
    .state_size = sizeof(struct loader_state),
    .init = loader_init,
    .fini = loader_fini,
    .keys = CONTEXT_LOADER,
    .view = loader_view,
    .draw = loader_draw,
    .act = loader_act,
    .mouse = loader_mouse,
    .update = loader_update,
    .status = loader_status,
};
