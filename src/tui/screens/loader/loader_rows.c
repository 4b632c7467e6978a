/* SPDX-License-Identifier: Apache-2.0 */
/* loader_rows: see loader_rows.h. */
#include "tui/screens/loader/loader_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "tui/core/app_feed.h"
#include "tui/view/pick.h"
#include "tui/view/table.h"

#define LOADER_MAX 64 /* that are kept apart */

static const struct loader_row *loader_of(const void *node) {
    return ((const struct outline_node *)node)->row;
}

double loader_capacity(const struct loader_row *l) { return l->workers > 0 ? l->workers * l->prefetch : NAN; }

/* ---- cells ---- */

static void loader_put_number(struct table_cell *c, const char *format, double v, enum theme_role role) {
    c->role = isnan(v) ? ROLE_MUTED : role;
    if (isnan(v))
        snprintf(c->text, sizeof c->text, "?");
    else
        snprintf(c->text, sizeof c->text, *format == '1' ? "%.1f" : "%.0f", v);
}

static void loader_cell_name(const void *node, struct table_cell *c) {
    const struct loader_row *l = loader_of(node);
    char name[512];
    c->role = l->is_worker ? ROLE_FUNC : ROLE_VALUE;
    if (l->is_worker && isnan(l->worker))
        snprintf(name, sizeof name, "worker ?");
    else if (l->is_worker)
        snprintf(name, sizeof name, "worker %.0f", l->worker);
    else if (l->workers > 0)
        snprintf(name, sizeof name, "%.400s (%.0f)", l->dataset ? l->dataset : "loader", l->workers);
    else
        snprintf(name, sizeof name, "%.400s (no workers)", l->dataset ? l->dataset : "loader");
    outline_put_name(node, name, c->text, sizeof c->text);
}

/* Nothing is ready: the training waits. */
static void loader_cell_ready(const void *node, struct table_cell *c) {
    const struct loader_row *l = loader_of(node);
    if (!l->is_worker && !(l->workers > 0))
        return;
    loader_put_number(c, "0", l->is_worker ? NAN : l->ready, l->ready > 0 ? ROLE_VALUE : ROLE_STATUS_BAD);
    if (l->is_worker)
        c->text[0] = '\0';
}

static void loader_cell_under_way(const void *node, struct table_cell *c) {
    const struct loader_row *l = loader_of(node);
    double room = l->is_worker ? NAN : loader_capacity(l);
    if (!l->is_worker && !(l->workers > 0))
        return;
    loader_put_number(c, "0", l->under_way, ROLE_VALUE);
    size_t len = strlen(c->text);
    if (!isnan(room))
        snprintf(c->text + len, sizeof c->text - len, "/%.0f", room);
}

static void loader_cell_wait(const void *node, struct table_cell *c) {
    const struct loader_row *l = loader_of(node);
    loader_put_number(c, "1", l->wait_ms, ROLE_VALUE);
    if (l->is_worker)
        c->text[0] = '\0';
}

static void loader_cell_batches(const void *node, struct table_cell *c) {
    const struct loader_row *l = loader_of(node);
    loader_put_number(c, "0", l->batches, ROLE_VALUE);
    if (l->is_worker)
        c->text[0] = '\0';
}

static void loader_cell_pid(const void *node, struct table_cell *c) {
    if (loader_of(node)->is_worker)
        loader_put_number(c, "0", loader_of(node)->pid, ROLE_TEXT);
}

/* A process that has ended has no letter. */
static void loader_cell_state(const void *node, struct table_cell *c) {
    const struct loader_row *l = loader_of(node);
    bool is_dead = l->alive == 0;
    if (!l->is_worker)
        return;
    c->role = is_dead ? ROLE_STATUS_BAD : l->state && *l->state == 'R' ? ROLE_STATE_RUN : ROLE_STATE_SLEEP;
    snprintf(c->text, sizeof c->text, "%s", is_dead ? "dead" : l->state ? l->state : "?");
}

static void loader_cell_cpu(const void *node, struct table_cell *c) {
    double v = loader_of(node)->cpu_pct;
    if (loader_of(node)->is_worker)
        loader_put_number(c, "1", v, v >= 80 ? ROLE_CPU_HIGH : v >= 5 ? ROLE_CPU_MID : ROLE_CPU_LOW);
}

static void loader_cell_rss(const void *node, struct table_cell *c) {
    c->role = ROLE_TEXT;
    if (loader_of(node)->is_worker)
        text_human_bytes(c->text, sizeof c->text, loader_of(node)->rss_bytes);
}

static void loader_cell_func(const void *node, struct table_cell *c) {
    const struct loader_row *l = loader_of(node);
    c->role = l->func ? ROLE_FUNC : ROLE_MUTED;
    snprintf(c->text, sizeof c->text, "%s", !l->is_worker ? "" : l->func ? l->func : "?");
}

static void loader_cell_file(const void *node, struct table_cell *c) {
    const struct loader_row *l = loader_of(node);
    c->role = ROLE_FILE;
    if (l->file && l->lineno > 0)
        snprintf(c->text, sizeof c->text, "%s:%.0f", l->file, l->lineno);
    else
        snprintf(c->text, sizeof c->text, "%s", l->file ? l->file : "");
}

/* ---- order ---- */

#define LOADER_COMPARE(field, how)                                                                           \
    static int loader_compare_##field(const void *a, const void *b) {                                        \
        return how(loader_of(a)->field, loader_of(b)->field);                                                \
    }
LOADER_COMPARE(ready, table_compare_number)
LOADER_COMPARE(under_way, table_compare_number)
LOADER_COMPARE(wait_ms, table_compare_number)
LOADER_COMPARE(batches, table_compare_number)
LOADER_COMPARE(pid, table_compare_number)
LOADER_COMPARE(cpu_pct, table_compare_number)
LOADER_COMPARE(rss_bytes, table_compare_number)
LOADER_COMPARE(state, text_compare)
LOADER_COMPARE(func, text_compare)
LOADER_COMPARE(file, text_compare)

static int loader_compare_name(const void *a, const void *b) {
    const struct loader_row *x = loader_of(a), *y = loader_of(b);
    return x->is_worker ? table_compare_number(x->worker, y->worker)
                        : (x->loader > y->loader) - (x->loader < y->loader);
}

static bool loader_matches(const void *node, const struct match *m) {
    const struct loader_row *l = ((const struct outline_node *)node)->row;
    return match_text(m, l->dataset) || match_text(m, l->func) || match_text(m, l->file) ||
           match_text(m, l->state);
}

/* clang-format off */
static const struct table_column loader_columns[] = {
    {"LOADER", "class of its dataset, and how many workers; below it each of them", {20, 2, 0}, GRID_LEFT, false, loader_cell_name, loader_compare_name},
    {"READY", "batches that are made and wait; 0: the training waits", {5, 0, 0}, GRID_RIGHT, true, loader_cell_ready, loader_compare_ready},
    {"ASKED", "batches asked for and not given out, of how many there may be", {7, 0, 4}, GRID_RIGHT, true, loader_cell_under_way, loader_compare_under_way},
    {"WAIT", "ms that the training waited for a batch in the last second", {8, 0, 1}, GRID_RIGHT, true, loader_cell_wait, loader_compare_wait_ms},
    {"/S", "batches the last second", {5, 0, 7}, GRID_RIGHT, true, loader_cell_batches, loader_compare_batches},
    {"PID", "of the worker", {8, 0, 6}, GRID_RIGHT, false, loader_cell_pid, loader_compare_pid},
    {"S", "state of the worker, as the kernel calls it; dead", {4, 0, 5}, GRID_LEFT, false, loader_cell_state, loader_compare_state},
    {"CPU%", "of one core", {5, 0, 2}, GRID_RIGHT, true, loader_cell_cpu, loader_compare_cpu_pct},
    {"RSS", "memory in RAM, shared too", {8, 0, 8}, GRID_RIGHT, true, loader_cell_rss, loader_compare_rss_bytes},
    {"FUNCTION", "where it is in Python", {14, 2, 3}, GRID_LEFT, false, loader_cell_func, loader_compare_func},
    {"FILE:LINE", "the same", {16, 3, 9}, GRID_TAIL, false, loader_cell_file, loader_compare_file},
};
/* clang-format on */

/* A worker is known by its process. */
static void loader_put_name(const void *row, struct strbuf *out) {
    const struct loader_row *l = row;
    if (l->is_worker && !isnan(l->pid))
        strbuf_addf(out, "%.0f", l->pid);
    else
        pick_put_text(out, l->dataset ? l->dataset : "?");
}

const struct outline_def loader_outline = {
    loader_columns, (int)(sizeof loader_columns / sizeof loader_columns[0]), loader_matches, loader_put_name};

/* ---- reading ---- */

void loader_rows_fini(struct loader_rows *r) {
    result_unref(r->loaders);
    result_unref(r->workers);
    free(r->items);
    free(r->meters);
    memset(r, 0, sizeof *r);
}

const struct loader_row *loader_of_row(const struct loader_rows *r, const struct loader_row *row) {
    for (size_t i = 0; row && i < r->n_loaders; i++)
        if (r->items[i].loader == row->loader)
            return &r->items[i];
    return NULL;
}

static struct loader_row *loader_find(struct loader_rows *r, int64_t loader) {
    for (size_t i = 0; i < r->n_loaders; i++)
        if (r->items[i].loader == loader)
            return &r->items[i];
    return NULL;
}

static double loader_value(const struct result *rows, size_t i, const char *name) {
    return app_feed_number(rows, i, app_feed_column(rows, name));
}

/* "outstanding" leaves out those that wait for their turn. */
static double loader_under_way(const struct result *rows, size_t i) {
    double n = loader_value(rows, i, "sent") - loader_value(rows, i, "received");
    return n >= 0 ? n : loader_value(rows, i, "outstanding");
}

/* A row of a loader: its newest values, and one more of its history. */
static void loader_read(struct loader_rows *r, const struct result *rows, size_t i) {
    int64_t id = app_feed_int(rows, i, app_feed_column(rows, "loader"));
    struct loader_row *l = loader_find(r, id);
    if (!l && r->n_loaders < LOADER_MAX) {
        l = &r->items[r->n_loaders];
        l->readies = &r->meters[2 * r->n_loaders];
        l->waits = &r->meters[2 * r->n_loaders + 1];
        r->n_loaders++;
    }
    if (!l)
        return;
    struct meter *readies = l->readies, *waits = l->waits;
    *l = (struct loader_row){.loader = id,
                             .dataset = app_feed_text(rows, i, app_feed_column(rows, "dataset")),
                             .timestamp = loader_value(rows, i, "timestamp"),
                             .workers = loader_value(rows, i, "workers"),
                             .prefetch = loader_value(rows, i, "prefetch"),
                             .under_way = loader_under_way(rows, i),
                             .ready = loader_value(rows, i, "ready"),
                             .wait_ms = loader_value(rows, i, "wait_ms"),
                             .batches = loader_value(rows, i, "batches"),
                             .readies = readies,
                             .waits = waits,
                             .worker = NAN,
                             .pid = NAN,
                             .cpu_pct = NAN,
                             .rss_bytes = NAN,
                             .line = i};
    meter_add(readies, l->ready);
    meter_add(waits, l->wait_ms);
}

static void loader_read_worker(struct loader_row *w, const struct result *rows, size_t i) {
    *w = (struct loader_row){.is_worker = true,
                             .loader = app_feed_int(rows, i, app_feed_column(rows, "loader")),
                             .state = app_feed_text(rows, i, app_feed_column(rows, "state")),
                             .func = app_feed_text(rows, i, app_feed_column(rows, "func")),
                             .file = app_feed_text(rows, i, app_feed_column(rows, "file")),
                             .worker = loader_value(rows, i, "worker"),
                             .pid = loader_value(rows, i, "worker_pid"),
                             .cpu_pct = loader_value(rows, i, "cpu_pct"),
                             .rss_bytes = loader_value(rows, i, "rss_bytes"),
                             .lineno = loader_value(rows, i, "lineno"),
                             .under_way = loader_value(rows, i, "outstanding"),
                             .alive = app_feed_flag(rows, i, app_feed_column(rows, "alive")),
                             .ready = NAN,
                             .wait_ms = NAN,
                             .batches = NAN,
                             .workers = NAN,
                             .prefetch = NAN,
                             .timestamp = NAN,
                             .line = i};
}

/* Loaders without a recent row are dropped; the others move up. */
static void loader_drop_gone(struct loader_rows *r) {
    double newest = -INFINITY;
    size_t n = 0;
    for (size_t i = 0; i < r->n_loaders; i++)
        newest = r->items[i].timestamp > newest ? r->items[i].timestamp : newest;
    for (size_t i = 0; i < r->n_loaders; i++)
        if (!(newest - r->items[i].timestamp > LOADER_GONE_S))
            r->items[n++] = r->items[i];
    r->n_loaders = n;
}

static size_t loader_put_nodes(struct loader_rows *r, struct outline_node *nodes) {
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct loader_row *l = &r->items[i];
        const struct loader_row *of = l->is_worker ? loader_find(r, l->loader) : NULL;
        uint64_t key = hash_mix((uint64_t)l->loader);
        if (l->is_worker)
            key = hash_mix(key ^ (uint64_t)(isnan(l->worker) ? -1 : (int64_t)fmod(l->worker, 1e6)));
        nodes[n++] = (struct outline_node){.row = l, .parent = of ? (int)(of - r->items) : -1, .key = key};
    }
    return n;
}

void loader_rows_build(struct loader_rows *r, struct result *loaders, struct result *workers,
                       struct outline *out) {
    struct loader_rows before = *r;
    size_t n_workers = workers ? workers->n_rows : 0, n = 0;
    struct outline_node *nodes = calloc(LOADER_MAX + n_workers + 1, sizeof *nodes);
    *r = (struct loader_rows){.items = calloc(LOADER_MAX + n_workers + 1, sizeof *r->items),
                              .meters = calloc((size_t)2 * LOADER_MAX, sizeof *r->meters)};
    if (nodes && r->items && r->meters) {
        r->loaders = loaders ? result_ref(loaders) : NULL;
        r->workers = workers ? result_ref(workers) : NULL;
        for (size_t i = 0; loaders && i < loaders->n_rows; i++)
            loader_read(r, loaders, i);
        loader_drop_gone(r);
        r->n = r->n_loaders;
        for (size_t i = 0; i < n_workers; i++)
            loader_read_worker(&r->items[r->n++], workers, i);
        n = loader_put_nodes(r, nodes);
    }
    outline_take(out, nodes, n);
    loader_rows_fini(&before);
}
