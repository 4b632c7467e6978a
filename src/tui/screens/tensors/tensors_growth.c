/* SPDX-License-Identifier: Apache-2.0 */
/* tensors_growth: see tensors_growth.h. */
#include "tui/screens/tensors/tensors_growth.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "tui/screens/tensors/tensors_rows.h"
#include "tui/core/app_feed.h"
#include "tui/view/pick.h"
#include "tui/view/table.h"

static const struct growth_row *growth_of(const void *node) {
    return ((const struct outline_node *)node)->row;
}

static void growth_put_text(struct table_cell *c, const char *text) {
    c->role = text ? ROLE_TEXT : ROLE_MUTED;
    snprintf(c->text, sizeof c->text, "%s", text ? text : "?");
}

static void growth_put_number(struct table_cell *c, double v) {
    c->role = isnan(v) ? ROLE_MUTED : ROLE_VALUE;
    if (isnan(v))
        snprintf(c->text, sizeof c->text, "?");
    else
        snprintf(c->text, sizeof c->text, "%.0f", v);
}

static void growth_cell_owner(const void *node, struct table_cell *c) {
    growth_put_text(c, growth_of(node)->owner);
    c->role = growth_of(node)->owner ? ROLE_FUNC : ROLE_MUTED;
}
static void growth_cell_shape(const void *node, struct table_cell *c) {
    growth_put_text(c, growth_of(node)->shape);
}
static void growth_cell_dtype(const void *node, struct table_cell *c) {
    const char *dtype = growth_of(node)->dtype;
    growth_put_text(c, dtype && strncmp(dtype, "torch.", 6) == 0 ? dtype + 6 : dtype);
}
static void growth_cell_kind(const void *node, struct table_cell *c) {
    growth_put_text(c, growth_of(node)->kind);
}
static void growth_cell_device(const void *node, struct table_cell *c) {
    growth_put_text(c, growth_of(node)->device);
}
static void growth_cell_count(const void *node, struct table_cell *c) {
    growth_put_number(c, growth_of(node)->count);
}
static void growth_cell_then(const void *node, struct table_cell *c) {
    growth_put_number(c, growth_of(node)->count_then);
}
static void growth_cell_since(const void *node, struct table_cell *c) {
    growth_put_number(c, growth_of(node)->since_step);
}

static void growth_cell_bytes(const void *node, struct table_cell *c) {
    c->role = ROLE_VALUE;
    text_human_bytes(c->text, sizeof c->text, growth_of(node)->bytes);
}

static void growth_put_change(struct table_cell *c, double bytes) {
    c->role = bytes > 0 ? ROLE_CPU_HIGH : ROLE_MUTED;
    tensor_put_growth(c->text, sizeof c->text, bytes);
}
static void growth_cell_growth(const void *node, struct table_cell *c) {
    growth_put_change(c, growth_of(node)->growth_bytes);
}
static void growth_cell_step(const void *node, struct table_cell *c) {
    growth_put_change(c, growth_of(node)->growth_per_step);
}

#define GROWTH_COMPARE(field, how)                                                                           \
    static int growth_compare_##field(const void *a, const void *b) {                                        \
        return how(growth_of(a)->field, growth_of(b)->field);                                                \
    }
GROWTH_COMPARE(owner, text_compare)
GROWTH_COMPARE(shape, text_compare)
GROWTH_COMPARE(dtype, text_compare)
GROWTH_COMPARE(kind, text_compare)
GROWTH_COMPARE(device, text_compare)
GROWTH_COMPARE(count, table_compare_number)
GROWTH_COMPARE(count_then, table_compare_number)
GROWTH_COMPARE(bytes, table_compare_number)
GROWTH_COMPARE(growth_bytes, table_compare_number)
GROWTH_COMPARE(growth_per_step, table_compare_number)
GROWTH_COMPARE(since_step, table_compare_number)

static bool growth_matches(const void *node, const struct match *m) {
    const struct growth_row *g = ((const struct outline_node *)node)->row;
    return match_text(m, g->owner) || match_text(m, g->shape) || match_text(m, g->dtype) ||
           match_text(m, g->kind) || match_text(m, g->device) || match_text(m, g->type);
}

enum { GROWTH_COLUMN_GROWTH = 2 };

/* clang-format off */
static const struct table_column growth_columns[] = {
    {"OWNER", "what holds them", {12, 3, 0}, GRID_LEFT, false, growth_cell_owner, growth_compare_owner},
    {"SHAPE", "their sizes", {14, 1, 1}, GRID_LEFT, false, growth_cell_shape, growth_compare_shape},
    {"GROWTH", "bytes more than there were", {9, 0, 0}, GRID_RIGHT, true, growth_cell_growth, growth_compare_growth_bytes},
    {"/STEP", "the same for each step since", {9, 0, 2}, GRID_RIGHT, true, growth_cell_step, growth_compare_growth_per_step},
    {"COUNT", "how many there are", {6, 0, 3}, GRID_RIGHT, true, growth_cell_count, growth_compare_count},
    {"WERE", "how many there were", {6, 0, 4}, GRID_RIGHT, true, growth_cell_then, growth_compare_count_then},
    {"BYTES", "what they take", {9, 0, 5}, GRID_RIGHT, true, growth_cell_bytes, growth_compare_bytes},
    {"KIND", "parameter, buffer, gradient, optimizer, local, global, attribute", {9, 0, 6}, GRID_LEFT, false, growth_cell_kind, growth_compare_kind},
    {"DTYPE", "type of their elements", {8, 0, 7}, GRID_LEFT, false, growth_cell_dtype, growth_compare_dtype},
    {"SINCE", "the step of the earlier snapshot", {7, 0, 8}, GRID_RIGHT, true, growth_cell_since, growth_compare_since_step},
    {"DEVICE", "where they are", {7, 0, 9}, GRID_LEFT, false, growth_cell_device, growth_compare_device},
};
/* clang-format on */

static void growth_put_name(const void *row, struct strbuf *out) {
    const struct growth_row *g = row;
    pick_put_text(out, g->owner ? g->owner : "?");
}

const struct outline_def growth_outline = {
    growth_columns, (int)(sizeof growth_columns / sizeof growth_columns[0]), growth_matches, growth_put_name};

int growth_column_growth(void) { return GROWTH_COLUMN_GROWTH; }

static uint64_t growth_key(const struct growth_row *g) {
    uint64_t key = 0;
    const char *const parts[] = {g->type, g->shape, g->dtype, g->device, g->kind, g->owner};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        key = hash_mix(key ^ outline_key(parts[i], i + 1));
    return key;
}

void growth_rows_fini(struct growth_rows *r) {
    result_unref(r->rows);
    free(r->items);
    memset(r, 0, sizeof *r);
}

void growth_rows_build(struct growth_rows *r, struct result *rows, struct outline *out) {
    static const char *const texts[] = {"type", "shape", "dtype", "device", "kind", "owner"};
    static const char *const numbers[] = {"count",        "bytes",           "count_then", "bytes_then",
                                          "growth_bytes", "growth_per_step", "since_step"};
    struct growth_rows before = *r;
    size_t n = rows ? rows->n_rows : 0;
    struct outline_node *nodes = calloc(n + 1, sizeof *nodes);
    *r = (struct growth_rows){.items = calloc(n + 1, sizeof *r->items)};
    if (rows && nodes && r->items) {
        r->rows = result_ref(rows);
        r->n = n;
    }
    for (size_t i = 0; i < r->n; i++) {
        struct growth_row *g = &r->items[i];
        const char **text[] = {&g->type, &g->shape, &g->dtype, &g->device, &g->kind, &g->owner};
        double *number[] = {&g->count,        &g->bytes,           &g->count_then, &g->bytes_then,
                            &g->growth_bytes, &g->growth_per_step, &g->since_step};
        for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
            *text[k] = app_feed_text(rows, i, app_feed_column(rows, texts[k]));
        for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
            *number[k] = app_feed_number(rows, i, app_feed_column(rows, numbers[k]));
        nodes[i] = (struct outline_node){.row = g, .parent = -1, .key = growth_key(g)};
    }
    outline_take(out, nodes, r->n);
    growth_rows_fini(&before);
}
