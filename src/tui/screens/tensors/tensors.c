/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tensors: the tensors of the job, in groups, with sizes, ages and growth; which of them grow step
 * by step; and one of them in full.
 *
 * They are found by walking the job's objects, in slices with the GIL: when the screen is opened,
 * when R is pressed, and every few seconds while it is open. The screen shows how long that took.
 * Statistics of one tensor's values, and the objects that hold it, are computed only on request.
 */
#include "tui/core/app.h"
#include "tui/core/app_feed.h"
#include "tui/core/app_screen.h"
#include "tui/core/screen.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "tui/screens/browser.h"
#include "tui/screens/tensors/tensors_growth.h"
#include "tui/screens/tensors/tensors_rows.h"

#define TENSORS_EVERY_S 5.0

static const char tensors_query[] = "SELECT * FROM python.tensors";
static const char tensors_growth_query[] = "SELECT * FROM python.tensor_growth";

static const char *const tensors_not_facts[] = {"rank", "host", "pid", NULL};

struct tensors_state {
    struct browser browser;
    struct tensor_table table, mark;
    bool has_mark;
    struct tensor_rows rows;
    enum tensor_group by;
    struct outline tensors, growth;
    struct growth_rows growth_rows;
    bool in_growth;                   /* the leak view */
    unsigned version, growth_version; /* of the feeds, as shown */
};

static struct outline *tensors_outline(struct tensors_state *s) {
    return s->in_growth ? &s->growth : &s->tensors;
}

static enum app_feed_id tensors_feed(const struct tensors_state *s) {
    return s->in_growth ? FEED_TENSOR_GROWTH : FEED_TENSORS;
}

static const struct tensor_row *tensors_selected(const struct tensors_state *s) {
    const struct outline_node *n = s->in_growth ? NULL : outline_selected(&s->tensors);
    return n ? n->row : NULL;
}

static void tensors_rebuild(struct tensors_state *s) {
    tensor_rows_build(&s->rows, &s->table, s->has_mark ? &s->mark : NULL, s->by, &s->tensors);
}

/* Take new data; while the view is frozen the display stays. */
static void tensors_take(struct tensors_state *s, const struct app *app) {
    const struct app_feed *f = app_feed_get(app, FEED_TENSORS), *g = app_feed_get(app, FEED_TENSOR_GROWTH);
    bool frozen = app->data.paused && s->table.rows;
    if (f->version != s->version && !frozen) {
        s->version = f->version;
        if (!f->rows)
            tags_clear(&s->tensors.view.own_tags);
        s->has_mark = s->has_mark && f->rows; /* otherwise it is another target */
        tensor_table_fini(&s->table);
        tensor_table_init(&s->table, f->rows);
        tensors_rebuild(s);
    }
    if (g->version != s->growth_version && !(app->data.paused && s->growth_rows.rows)) {
        s->growth_version = g->version;
        if (!g->rows)
            tags_clear(&s->growth.view.own_tags);
        growth_rows_build(&s->growth_rows, g->rows, &s->growth);
    }
}

static void tensors_update(void *state, struct app *app) {
    struct tensors_state *s = state;
    if (app_screen_top(app)->state == state)
        app_feed_follow(app, tensors_feed(s), s->in_growth ? tensors_growth_query : tensors_query,
                        TENSORS_EVERY_S);
    tensors_take(s, app);
}

static void tensors_init(void *state, struct app *app) {
    struct tensors_state *s = state;
    outline_init(&s->tensors, &tensor_outline, app->config.ascii);
    outline_init(&s->growth, &growth_outline, app->config.ascii);
    s->tensors.view.sort = (struct table_sort){tensor_column_bytes(), true};
    s->growth.view.sort = (struct table_sort){growth_column_growth(), true};
    s->tensors.open_depth = -1;
    if (app->config.filter)
        match_set(&s->tensors.view.filter, app->config.filter, true);
    s->growth.view.filter = s->tensors.view.filter;
    s->version = s->growth_version = UINT32_MAX; /* none were seen */
    tensors_update(state, app);
}

static void tensors_fini(void *state) {
    struct tensors_state *s = state;
    outline_fini(&s->tensors);
    outline_fini(&s->growth);
    tensor_rows_fini(&s->rows);
    growth_rows_fini(&s->growth_rows);
    tensor_table_fini(&s->table);
    tensor_table_fini(&s->mark);
}

/* ---- one tensor ---- */

static void tensor_one_query(const char *table, int64_t id, char *buf, size_t cap) {
    snprintf(buf, cap, "SELECT * FROM %s WHERE id = %lld", table, (long long)id);
}

/* Request statistics of its values, and the objects that hold it. */
static void tensor_one_ask(struct app *app, const struct tensor_row *t) {
    char text[APP_FEED_TEXT], size[24];
    const struct app_feed *f = app_feed_get(app, FEED_TENSOR);
    if (t->id == APP_FEED_UNKNOWN) {
        app_refuse(app, "cannot query this tensor: it has no id");
        return;
    }
    if (f->wanted || f->running) {
        app_message(app, false, "the values of the one before are still being read");
        return;
    }
    text_human_bytes(size, sizeof size, t->bytes);
    tensor_one_query("python.tensor_statistics", t->id, text, sizeof text);
    app_feed_ask(app, FEED_TENSOR, text);
    tensor_one_query("python.tensor_holders", t->id, text, sizeof text);
    app_feed_ask(app, FEED_HOLDERS, text);
    app_message(app, false, "its values (%s, in slices) and its holders were requested", size);
}

/* The feed, if it is about that tensor; NULL: it is not. */
static const struct app_feed *tensor_one_feed(const struct app *app, enum app_feed_id id, const char *table,
                                              const struct tensor_row *t) {
    char text[APP_FEED_TEXT];
    const struct app_feed *f = app_feed_get(app, id);
    tensor_one_query(table, t->id, text, sizeof text);
    return strcmp(f->text, text) == 0 ? f : NULL;
}

/* Why there are no rows of a feed; false: there are. */
static bool tensor_one_why(struct facts *f, const struct app_feed *feed) {
    bool is_busy = feed->wanted || feed->running;
    if (is_busy)
        facts_add(f, "", ROLE_MUTED, "reading ...");
    else if (feed->failed_s > 0)
        facts_add(f, "", ROLE_STATUS_BAD, "%s", feed->error.text);
    else if (!feed->rows || !feed->rows->n_rows)
        facts_add(f, "", ROLE_MUTED, "%s", feed->note[0] ? feed->note : "it no longer exists");
    else
        return false;
    return true;
}

static void tensor_one_add_holders(struct facts *f, const struct app_feed *feed) {
    const struct result *rows = feed->rows;
    facts_add(f, "", ROLE_TITLE, "held by");
    if (tensor_one_why(f, feed))
        return;
    for (size_t i = 0; i < rows->n_rows; i++) {
        const char *holder = app_feed_text(rows, i, app_feed_column(rows, "holder"));
        const char *kind = app_feed_text(rows, i, app_feed_column(rows, "kind"));
        const char *root = app_feed_text(rows, i, app_feed_column(rows, "root"));
        facts_add(f, kind ? kind : "?", ROLE_FUNC, "%s%s%s", holder ? holder : "?", root ? "   in " : "",
                  root ? root : "");
    }
}

/* What is known of them, or what a request would cost. */
static void tensor_one_add(struct facts *f, const struct app *app, const struct tensor_row *t,
                           const struct grid *g) {
    static const char *const but[] = {"rank",  "host",   "pid",       "id", "shape",
                                      "dtype", "device", "histogram", NULL};
    const struct app_feed *values = tensor_one_feed(app, FEED_TENSOR, "python.tensor_statistics", t);
    const struct app_feed *holders = tensor_one_feed(app, FEED_HOLDERS, "python.tensor_holders", t);
    char size[24];
    if (!values || !holders) {
        text_human_bytes(size, sizeof size, t->bytes);
        facts_add(f, "", ROLE_STATUS_ON, "v reads its values (%s, in slices) and its holders", size);
        return;
    }
    facts_add(f, "", ROLE_TITLE, "values");
    if (!tensor_one_why(f, values)) {
        const char *histogram = app_feed_text(values->rows, 0, app_feed_column(values->rows, "histogram"));
        facts_add_row(f, values->rows, 0, but);
        if (histogram)
            facts_add_bars(f, g, "histogram", histogram);
        facts_add(f, "", ROLE_MUTED, "read in %.0f ms", values->elapsed_s * 1000);
    }
    tensor_one_add_holders(f, holders);
}

/* ---- drawing ---- */

static void tensors_put_totals(const struct tensors_state *s, struct strbuf *out) {
    char size[24], growth[24];
    if (s->in_growth) {
        strbuf_addf(out, "growth   %zu kinds of tensors", s->growth_rows.n);
        return;
    }
    if (!s->table.rows)
        return;
    text_human_bytes(size, sizeof size, s->table.bytes);
    strbuf_addf(out, "%zu tensor%s   %s in %zu storage%s", s->table.n, s->table.n == 1 ? "" : "s", size,
                s->table.storages, s->table.storages == 1 ? "" : "s");
    if (s->has_mark) {
        tensor_put_growth(growth, sizeof growth, s->table.bytes - s->mark.bytes);
        strbuf_addf(out, "   %s since the mark", growth);
    }
    strbuf_addf(out, "   by %s", tensor_group_name(s->by));
}

static void tensors_fill_facts(struct tensors_state *s, const struct app *app, const struct grid *g) {
    const struct tensor_row *t = tensors_selected(s);
    const struct outline_node *n = outline_selected(&s->growth);
    struct facts *f = &s->browser.facts;
    char size[24];
    facts_clear(f);
    if (s->in_growth && n && s->growth_rows.rows)
        facts_add_row(f, s->growth_rows.rows,
                      (size_t)((const struct growth_row *)n->row - s->growth_rows.items), tensors_not_facts);
    else if (t && t->count) {
        text_human_bytes(size, sizeof size, t->bytes);
        facts_add(f, tensor_group_name(s->by), ROLE_VALUE, "%s", t->name);
        facts_add(f, "tensors", ROLE_VALUE, "%zu", t->count);
        facts_add(f, "bytes", ROLE_VALUE, "%s (%.0f), each storage once", size, t->bytes);
    } else if (t) {
        tensor_one_add(f, app, t, g);
        facts_add(f, "", ROLE_TITLE, "as it was found");
        facts_add_row(f, s->table.rows, t->line, tensors_not_facts);
    } else
        facts_add(f, "", ROLE_MUTED, "nothing is selected");
}

static void tensors_draw(void *state, struct app *app, struct grid *g, struct rect area) {
    struct tensors_state *s = state;
    struct outline *o = tensors_outline(s);
    char empty[sizeof((struct err *)0)->text + 64];
    struct strbuf line;
    strbuf_init(&line, 512);
    tensors_put_totals(s, &line);
    browser_draw_head(app, tensors_feed(s), strbuf_str(&line), NULL, g, &area);
    strbuf_fini(&line);
    app_feed_put_empty(app, tensors_feed(s),
                       o->things      ? "nothing matches: A shows all"
                       : s->in_growth ? "nothing grew"
                                      : "no tensors were found",
                       empty, sizeof empty);
    if (s->browser.open)
        tensors_fill_facts(s, app, g);
    browser_draw(&s->browser, o, s->in_growth ? " What grew " : " Tensor ", empty, g, area);
}

static void tensors_status(const void *state, const struct app *app, struct strbuf *out) {
    const struct tensors_state *s = state;
    (void)app;
    outline_status(s->in_growth ? &s->growth : &s->tensors, s->in_growth ? "Growth" : "Tensors", out);
}

static bool tensors_is_on(const void *state, const struct app *app, enum action action) {
    (void)app;
    return action == ACTION_TENSOR_GROWTH && ((const struct tensors_state *)state)->in_growth;
}

/* ---- actions ---- */

static void tensors_set_mark(struct tensors_state *s, struct app *app) {
    if (!s->table.rows) {
        app_message(app, false, "there are no tensors yet to compare with");
        return;
    }
    tensor_table_fini(&s->mark);
    tensor_table_init(&s->mark, s->table.rows);
    s->has_mark = true;
    tensors_rebuild(s);
    app_message(app, false, "mark set: GROWTH counts from here");
}

/* The next way to group; the selection stays on the tensor, in its new group. */
static void tensors_regroup(struct tensors_state *s, struct app *app) {
    const struct tensor_row *t = tensors_selected(s);
    bool is_group = !t || t->count;
    s->by = (enum tensor_group)((s->by + 1) % TENSOR_BY_NOTHING);
    if (is_group)
        s->tensors.view.has_key = false;
    tensors_rebuild(s);
    app_message(app, false, "grouped by %s", tensor_group_name(s->by));
}

static void tensors_ask_one(struct tensors_state *s, struct app *app) {
    const struct tensor_row *t = tensors_selected(s);
    if (!t || t->count) {
        app_message(app, false, "no tensor is selected: Right opens a group");
        return;
    }
    s->browser.open = true;
    tensor_one_ask(app, t);
}

static bool tensors_act(void *state, struct app *app, enum action action) {
    struct tensors_state *s = state;
    switch ((int)action) {
    case ACTION_REFRESH:
        app_feed_ask(app, tensors_feed(s), s->in_growth ? tensors_growth_query : tensors_query);
        return true;
    case ACTION_TENSOR_GROWTH:
        s->in_growth = !s->in_growth;
        tensors_update(s, app);
        return true;
    case ACTION_GROUP:
        if (!s->in_growth)
            tensors_regroup(s, app);
        return true;
    case ACTION_MARK:
        tensors_set_mark(s, app);
        return true;
    case ACTION_TENSOR_STATISTICS:
        tensors_ask_one(s, app);
        return true;
    default:
        break;
    }
    if (browser_act(&s->browser, tensors_outline(s), action, ACTION_OPEN_TENSOR))
        return true;
    if (action != ACTION_BACK || !s->in_growth || view_can_go_back(&s->growth.view))
        return false;
    s->in_growth = false;
    return true;
}

static bool tensors_mouse(void *state, struct app *app, const struct input_event *e) {
    struct tensors_state *s = state;
    return browser_mouse(&s->browser, tensors_outline(s), app, e);
}

static struct view *tensors_view(void *state) {
    struct tensors_state *s = state;
    return browser_view(&s->browser, tensors_outline(s));
}

const struct screen_def screen_tensors = {
    .name = "tensors",
    .title = "Tensors",
    .is_tab = true,
    .needs_torch = true,
    .opens = {SCREEN_TAB_KEY(TENSORS, "tensors", "7",
                             "the Tensors screen: all there are, their size and growth")},
    .is_kept = true,
    .state_size = sizeof(struct tensors_state),
    .init = tensors_init,
    .fini = tensors_fini,
    .keys = CONTEXT_TENSORS,
    .view = tensors_view,
    .draw = tensors_draw,
    .act = tensors_act,
    .mouse = tensors_mouse,
    .update = tensors_update,
    .is_on = tensors_is_on,
    .status = tensors_status,
};
