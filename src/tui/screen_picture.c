/* SPDX-License-Identifier: Apache-2.0 */
/* screen_picture: see screen_picture.h. */
#include "tui/screen_picture.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/option.h"
#include "client/target/proc_stats.h"
#include "tui/core/app_feed.h"
#include "tui/core/app.h"
#include "tui/core/app_draw.h"
#include "tui/core/app_life.h"
#include "tui/core/app_screen.h"
#include "tui/core/app_take.h"
#include "tui/core/screen.h"
#include "tui/view/layout.h"

#define SCREEN_PICTURE_NAMES 32
#define SCREEN_PICTURE_LINE (SCREEN_PICTURE_MAX * 8)
#define SCREEN_PICTURE_ANSWER_S 20 /* that the answer to a query may take */
/* Queries of a screen, at most: one result may lead to another query. */
#define SCREEN_PICTURE_ASKS (2 * FEED_COUNT)

/* Overlays, and screens about the session only, cannot be pictured. */
static bool screen_picture_is_one(const struct screen_def *def) { return !def->of_session; }

const char *screen_picture_names(void) {
    static char names[256];
    size_t n = 0;
    names[0] = '\0';
    const struct screen_def *tab;
    for (int i = 0; (tab = screen_tab(i)) && n < sizeof names; i++)
        if (screen_picture_is_one(tab))
            n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? "|" : "", tab->name);
    return names;
}

static const struct screen_def *screen_picture_find(const char *name, struct err *e) {
    const char *known[SCREEN_PICTURE_NAMES];
    size_t n = 0;
    const struct screen_def *tab;
    for (int i = 0; (tab = screen_tab(i)); i++) {
        if (!screen_picture_is_one(tab) || n + 1 == SCREEN_PICTURE_NAMES)
            continue;
        if (strcmp(tab->name, name) == 0)
            return tab;
        known[n++] = tab->name;
    }
    known[n] = NULL;
    const char *near = option_suggest(name, known);
    if (near)
        err_set(e, ERR_USAGE, "unknown screen '%s': did you mean '%s'?", name, near);
    else
        err_set(e, ERR_USAGE, "unknown screen '%s': give one of %s", name, screen_picture_names());
    return NULL;
}

static void screen_picture_put_time(struct app *app) {
    app_set_time(app, (double)clock_mono_ns() / 1e9, clock_epoch_s());
}

/* The target belongs to the caller: it is lent, and given back before the app is freed. */
static void screen_picture_lend(struct screen_picture *p, const struct model_target *target) {
    struct data *d = &p->app->data;
    d->target = *target;
    d->has_target = true;
    d->state = SESSION_CONNECTED;
}

static void screen_picture_give_back(struct screen_picture *p) {
    struct data *d = &p->app->data;
    memset(&d->target, 0, sizeof d->target);
    memset(&d->live, 0, sizeof d->live);
    d->has_target = false;
}

static int screen_picture_take(void *arg, const struct model_target *target,
                               const struct model_sample_batch *batch) {
    struct screen_picture *p = arg;
    screen_picture_lend(p, target);
    screen_picture_put_time(p->app);
    app_take_samples(p->app, batch);
    return 0;
}

static void screen_picture_put(const struct grid *g, int rows, struct strbuf *out) {
    char line[SCREEN_PICTURE_LINE];
    for (int y = 0; y < rows; y++) {
        grid_row_text(g, grid_rect(g), y, line, sizeof line, NULL);
        strbuf_adds(out, line);
        strbuf_addc(out, '\n');
    }
}

/* Run one query to its end. */
static void screen_picture_ask(struct app *app, struct querier *q, enum app_feed_id id) {
    struct querier_answer answer = {.kind = QUERIER_RUN, .error_at = -1};
    struct pollfd fd = {.events = POLLIN};
    uint64_t until_ns = clock_mono_ns() + (uint64_t)SCREEN_PICTURE_ANSWER_S * CLOCK_NS_PER_S;
    bool answered = app_feed_begin(app, id, q, &answer.error) != 0;
    fd.fd = querier_fd(q);
    while (!answered && clock_mono_ns() < until_ns) {
        poll(&fd, 1, 100);
        answered = querier_take(q, &answer);
    }
    if (!answered)
        err_set(&answer.error, ERR_FAILED, "no answer within %d s", SCREEN_PICTURE_ANSWER_S);
    screen_picture_put_time(app);
    app_take_feed(app, id, &answer);
}

/* All of them, because nothing is shown a second time. */
void screen_picture_read_feeds(struct app *app, const struct target_address *addr, const char *job) {
    struct querier_answer refused = {.kind = QUERIER_RUN, .error_at = -1};
    enum app_feed_id id = app_feed_next(app, FEED_COUNT);
    struct querier *q = id == FEED_COUNT ? NULL
                        : job            ? querier_new_job(job, &refused.error)
                                         : querier_new(addr, &refused.error);
    for (int n = 0; q && id != FEED_COUNT && n < SCREEN_PICTURE_ASKS; n++) {
        screen_picture_ask(app, q, id);
        id = querier_is_busy(q) ? FEED_COUNT : app_feed_next(app, id);
    }
    if (!q && id != FEED_COUNT)
        app_take_feed(app, id, &refused);
    querier_free(q);
}

/* What the kernel says about the process, if the screen shows it. */
static void screen_picture_read_stats(struct screen_picture *p, const struct target_address *addr) {
    struct proc_stats_reader r = {.pid = 0};
    struct proc_stats v;
    if (!addr || addr->pid <= 0 || !app_wants_proc_stats(p->app))
        return;
    proc_stats_read(&r, addr->pid, &v);
    app_take_proc_stats(p->app, &v);
}

static int screen_picture_render(void *arg, const struct target_address *addr,
                                 const struct model_target *target, const struct model_snapshot *snapshot,
                                 struct strbuf *out, struct err *e) {
    struct screen_picture *p = arg;
    struct data *d = &p->app->data;
    struct grid g;
    if (grid_init(&g, p->rows + 1, p->cols) != 0)
        return err_set(e, ERR_FAILED, "out of memory for the screen");
    screen_picture_lend(p, target);
    d->live.snapshot = *snapshot;
    d->live.valid = true;
    d->received = 1;
    d->missed = snapshot->dropped;
    meter_add(&d->cpu, snapshot->process.cpu_pct);
    meter_add(&d->gil, data_gil_level(snapshot));
    screen_picture_put_time(p->app);
    d->live.arrived_s = p->app->now_s;
    if (app_screen_top(p->app)->def != p->def)
        app_screen_push(p->app, p->def);
    screen_picture_read_stats(p, addr);
    app_screen_update_all(p->app);
    if (addr)
        screen_picture_read_feeds(p->app, addr, NULL);
    app_draw(p->app, &g);
    /* Without the last row: its keys mean nothing in a file. */
    screen_picture_put(&g, p->rows, out);
    screen_picture_give_back(p);
    grid_fini(&g);
    return out->failed ? err_set(e, ERR_FAILED, "out of memory for the screen") : 0;
}

int screen_picture_init(struct screen_picture *p, const char *name, int rows, int cols,
                        const struct app_config *config, struct err *e) {
    *p = (struct screen_picture){.rows = rows < LAYOUT_MIN_ROWS ? LAYOUT_MIN_ROWS : rows,
                                 .cols = cols < LAYOUT_MIN_COLS ? LAYOUT_MIN_COLS : cols};
    p->def = screen_picture_find(name, e);
    if (!p->def)
        return -1;
    p->app = app_new(config);
    if (!p->app)
        return err_set(e, ERR_FAILED, "out of memory for the screen");
    p->renderer = (struct export_renderer){.render = screen_picture_render, .arg = p};
    if (p->def->needs_samples) {
        p->renderer.take = screen_picture_take;
        p->renderer.duration_s = SCREEN_PICTURE_S;
    }
    return 0;
}

void screen_picture_fini(struct screen_picture *p) {
    if (!p->app)
        return;
    screen_picture_give_back(p);
    app_free(p->app);
    p->app = NULL;
}
