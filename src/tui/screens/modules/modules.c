/* SPDX-License-Identifier: Apache-2.0 */
/*
 * modules: the modules of the job's models as trees, with their kind, their times if they were
 * traced, and which of them had non-finite values.
 *
 * They are found by walking the job's objects, as for the Tensors screen.
 */
#include "tui/core/app.h"
#include "tui/core/app_arm.h"
#include "tui/core/app_feed.h"
#include "tui/core/app_screen.h"
#include "tui/core/screen.h"

#include "base/text.h"
#include "tui/screens/browser.h"
#include "tui/screens/modules/modules_rows.h"

#define MODULES_EVERY_S 5.0
#define MODULES_OPEN_DEPTH 1 /* visible at first: models and two levels below */

static const char modules_query[] = "SELECT * FROM python.modules";

static const char *const modules_not_facts[] = {"rank", "host", "pid", NULL};

struct modules_state {
    struct browser browser;
    struct module_rows rows;
    struct outline outline;
    unsigned version;
    bool is_taken; /* there were some */
};

static const struct module_row *modules_selected(const struct modules_state *s) {
    const struct outline_node *n = outline_selected(&s->outline);
    return n ? n->row : NULL;
}

static void modules_update(void *state, struct app *app) {
    struct modules_state *s = state;
    const struct app_feed *f = app_feed_get(app, FEED_MODULES);
    if (app_screen_top(app)->state == state)
        app_feed_follow(app, FEED_MODULES, modules_query, MODULES_EVERY_S);
    if ((f->version == s->version && s->is_taken) || (app->data.paused && s->rows.rows))
        return;
    s->version = f->version;
    s->is_taken = true;
    if (!f->rows) /* another target */
        tags_clear(&s->outline.view.own_tags);
    module_rows_build(&s->rows, f->rows, &s->outline);
}

static void modules_init(void *state, struct app *app) {
    struct modules_state *s = state;
    outline_init(&s->outline, &module_outline, app->config.ascii);
    s->outline.open_depth = MODULES_OPEN_DEPTH;
    if (app->config.filter)
        match_set(&s->outline.view.filter, app->config.filter, true);
    modules_update(state, app);
}

static void modules_fini(void *state) {
    struct modules_state *s = state;
    outline_fini(&s->outline);
    module_rows_fini(&s->rows);
}

/* ---- drawing ---- */

static void modules_put_totals(const struct modules_state *s, const struct app *app, struct strbuf *out) {
    char count[24], size[24];
    if (!s->rows.n)
        return;
    module_put_count(count, sizeof count, s->rows.parameters);
    text_human_bytes(size, sizeof size, s->rows.bytes);
    if (s->rows.roots != 1)
        strbuf_addf(out, "%zu models   ", s->rows.roots);
    strbuf_addf(out, "%zu module%s   %s parameters   %s", s->rows.n, s->rows.n == 1 ? "" : "s", count, size);
    if (s->rows.n_nan)
        strbuf_addf(out, "   %zu with NaN or Inf", s->rows.n_nan);
    else if (!s->rows.is_traced && !arms_is_on(&app->data.arms, ARM_TRACE))
        strbuf_adds(out, "   not traced");
}

static void modules_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct modules_state *s = state;
    const struct module_row *m = modules_selected(s);
    char empty[sizeof((struct err *)0)->text + 64];
    char arms[3 * ARMS_TEXT];
    struct strbuf line;
    strbuf_init(&line, 512);
    modules_put_totals(s, app, &line);
    app_arm_put_all(app, arms, sizeof arms);
    browser_draw_head(app, FEED_MODULES, strbuf_str(&line), arms, g, &area);
    strbuf_fini(&line);
    app_feed_put_empty(app, FEED_MODULES,
                       s->rows.n ? "nothing matches: A shows all" : "no modules were found", empty,
                       sizeof empty);
    facts_clear(&s->browser.facts);
    if (m)
        facts_add_row(&s->browser.facts, s->rows.rows, m->line, modules_not_facts);
    browser_draw(&s->browser, &s->outline, " Module ", empty, g, area);
}

static void modules_status(const void *state, const struct app *app, struct strbuf *out) {
    (void)app;
    outline_status(&((const struct modules_state *)state)->outline, "Modules", out);
}

/* ---- actions ---- */

static bool modules_act(void *state, struct app *app, enum action action) {
    struct modules_state *s = state;
    switch ((int)action) {
    case ACTION_REFRESH:
        app_feed_ask(app, FEED_MODULES, modules_query);
        return true;
    case ACTION_TREE: /* without the tree a module has its whole path */
        for (size_t i = 0; i < s->rows.n; i++)
            s->rows.items[i].flat = !s->outline.flat;
        return outline_act(&s->outline, action);
    default:
        return browser_act(&s->browser, &s->outline, action, ACTION_OPEN_MODULE);
    }
}

static bool modules_mouse(void *state, struct app *app, const struct input_event *e) {
    struct modules_state *s = state;
    return browser_mouse(&s->browser, &s->outline, app, e);
}

static struct view *modules_view(void *state) {
    struct modules_state *s = state;
    return browser_view(&s->browser, &s->outline);
}

const struct screen_def screen_modules = {
    .name = "modules",
    .title = "Modules",
    .is_tab = true,
    .needs_torch = true,
    .opens = {SCREEN_TAB_KEY(MODULES, "modules", "8",
                             "the Modules screen: models as trees, and what takes time")},
    .is_kept = true,
    .tells_arms = true,
    .state_size = sizeof(struct modules_state),
    .init = modules_init,
    .fini = modules_fini,
    .keys = CONTEXT_MODULES,
    .view = modules_view,
    .draw = modules_draw,
    .act = modules_act,
    .mouse = modules_mouse,
    .update = modules_update,
    .status = modules_status,
};
