/* SPDX-License-Identifier: Apache-2.0 */
/* modules_rows: see modules_rows.h. */
#include "tui/screens/modules/modules_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/table.h"
#include "base/text.h"
#include "tui/core/app_feed.h"
#include "tui/view/pick.h"
#include "tui/view/table.h"

#define MODULE_BAR 8         /* columns of a bar */
#define MODULE_HOT_SHARE 0.3 /* share of the slowest: drawn as hot */

static const struct outline_node *module_node(const void *node) { return node; }
static const struct module_row *module_of(const void *node) { return module_node(node)->row; }

void module_put_count(char *buf, size_t cap, double n) {
    static const char units[] = " KMBT";
    int unit = 0;
    double v = n;
    if (!(n >= 0 && n < 1e15)) {
        snprintf(buf, cap, "?");
        return;
    }
    for (; v >= 999.5 && unit < 4; unit++)
        v /= 1000;
    if (unit == 0)
        snprintf(buf, cap, "%.0f", v);
    else
        snprintf(buf, cap, "%.*f%c", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, units[unit]);
}

/* ---- cells ---- */

static void module_put_text(struct table_cell *c, const char *text) {
    c->role = text ? ROLE_TEXT : ROLE_MUTED;
    snprintf(c->text, sizeof c->text, "%s", text ? text : "?");
}

static void module_put_ms(struct table_cell *c, double ms) {
    c->role = isnan(ms) ? ROLE_MUTED : ROLE_VALUE;
    if (isnan(ms))
        c->text[0] = '\0';
    else
        snprintf(c->text, sizeof c->text, "%.*f", ms < 10 ? 3 : ms < 1000 ? 1 : 0, ms);
}

static void module_put_number(struct table_cell *c, const char *format, double v) {
    c->role = ROLE_TEXT;
    if (isnan(v))
        c->text[0] = '\0';
    else
        snprintf(c->text, sizeof c->text, *format == 'g' ? "%.3g" : "%.0f", v);
}

static void module_cell_name(const void *node, struct table_cell *c) {
    const struct module_row *m = module_of(node);
    bool is_root = module_node(node)->parent < 0;
    const char *name = m->flat || is_root ? m->path : m->name;
    char text[TABLE_CELL - 64];
    snprintf(text, sizeof text, "%s", name && *name ? name : m->root ? m->root : "?");
    outline_put_name(module_node(node), text, c->text, sizeof c->text);
    c->role = m->is_nan > 0 ? ROLE_STATUS_BAD : is_root ? ROLE_VALUE : ROLE_FUNC;
}

static void module_cell_class(const void *node, struct table_cell *c) {
    module_put_text(c, module_of(node)->class);
}
static void module_cell_dtype(const void *node, struct table_cell *c) {
    module_put_text(c, module_of(node)->dtype);
}
static void module_cell_device(const void *node, struct table_cell *c) {
    module_put_text(c, module_of(node)->device);
}

static void module_cell_parameters(const void *node, struct table_cell *c) {
    c->role = module_of(node)->parameters == 0 ? ROLE_MUTED : ROLE_VALUE;
    module_put_count(c->text, sizeof c->text, module_of(node)->parameters);
}

static void module_cell_bytes(const void *node, struct table_cell *c) {
    c->role = module_of(node)->bytes == 0 ? ROLE_MUTED : ROLE_VALUE;
    text_human_bytes(c->text, sizeof c->text, module_of(node)->bytes);
}

static void module_cell_mode(const void *node, struct table_cell *c) {
    const struct module_row *m = module_of(node);
    c->role = m->training > 0 ? ROLE_TEXT : ROLE_STATUS_ON;
    snprintf(c->text, sizeof c->text, "%s%s",
             m->training < 0 ? "?"
             : m->training   ? "train"
                             : "eval",
             m->compiled > 0 ? " compiled" : "");
    if (m->training < 0)
        c->role = ROLE_MUTED;
}

static void module_cell_forward(const void *node, struct table_cell *c) {
    module_put_ms(c, module_of(node)->forward_ms);
}
static void module_cell_backward(const void *node, struct table_cell *c) {
    module_put_ms(c, module_of(node)->backward_ms);
}

static void module_cell_bar(const void *node, struct table_cell *c) {
    const struct module_row *m = module_of(node);
    double share = m->share > 0 ? fmin(m->share, 1) : 0; /* an agent may report anything */
    int halves = (int)lround(share * MODULE_BAR * 2);
    size_t len = 0;
    c->role = m->share >= MODULE_HOT_SHARE ? ROLE_CPU_HIGH : ROLE_CPU_MID;
    for (int i = 0; i + 1 < halves; i += 2)
        len += (size_t)snprintf(c->text + len, sizeof c->text - len, "%s", m->ascii ? "#" : "\xe2\x96\x88");
    snprintf(c->text + len, sizeof c->text - len, "%s",
             halves % 2 == 0 ? ""
             : m->ascii      ? "-"
                             : "\xe2\x96\x8c");
}

static void module_cell_grad(const void *node, struct table_cell *c) {
    module_put_number(c, "g", module_of(node)->grad_norm);
}

/* Where the non-finite value was: "forward", "gradient"; the table may say only that there was
 * one. */
static void module_cell_nan(const void *node, struct table_cell *c) {
    const struct module_row *m = module_of(node);
    c->role = m->is_nan > 0 ? ROLE_STATUS_BAD : ROLE_TEXT;
    snprintf(c->text, sizeof c->text, "%s", m->is_nan > 0 ? (m->nan ? m->nan : "NaN") : "");
}

static void module_cell_activation(const void *node, struct table_cell *c) {
    c->role = ROLE_TEXT;
    c->text[0] = '\0';
    if (!isnan(module_of(node)->activation_bytes))
        text_human_bytes(c->text, sizeof c->text, module_of(node)->activation_bytes);
}

static void module_cell_calls(const void *node, struct table_cell *c) {
    module_put_number(c, "d", module_of(node)->calls);
}
static void module_cell_hooks(const void *node, struct table_cell *c) {
    module_put_number(c, "d", module_of(node)->hooks);
}

/* ---- order ---- */

#define MODULE_COMPARE(field, how)                                                                           \
    static int module_compare_##field(const void *a, const void *b) {                                        \
        return how(module_of(a)->field, module_of(b)->field);                                                \
    }
MODULE_COMPARE(class, text_compare)
MODULE_COMPARE(dtype, text_compare)
MODULE_COMPARE(device, text_compare)
MODULE_COMPARE(parameters, table_compare_number)
MODULE_COMPARE(bytes, table_compare_number)
MODULE_COMPARE(forward_ms, table_compare_number)
MODULE_COMPARE(backward_ms, table_compare_number)
MODULE_COMPARE(share, table_compare_number)
MODULE_COMPARE(grad_norm, table_compare_number)
MODULE_COMPARE(is_nan, table_compare_number)
MODULE_COMPARE(training, table_compare_number)
MODULE_COMPARE(activation_bytes, table_compare_number)
MODULE_COMPARE(calls, table_compare_number)
MODULE_COMPARE(hooks, table_compare_number)

/* In the order of the model's definition. */
static int module_compare_line(const void *a, const void *b) {
    return table_compare_number((double)module_of(a)->line, (double)module_of(b)->line);
}

static bool module_matches(const void *node, const struct match *m) {
    const struct module_row *r = ((const struct outline_node *)node)->row;
    return match_text(m, r->path) || match_text(m, r->class) || match_text(m, r->dtype) ||
           match_text(m, r->device);
}

/* clang-format off */
#define MODULE_NO_SIZE {10000, 0, 99} /* there is never room for it */
#define MODULE_COLUMNS(ms, ms_too, bar) \
    {"MODULE", "its name in the module that holds it; sorted by it: as defined", {22, 3, 0}, GRID_LEFT, false, module_cell_name, module_compare_line}, \
    {"CLASS", "its class", {12, 2, 3}, GRID_LEFT, false, module_cell_class, module_compare_class}, \
    {"PARAMS", "how many parameters it and what it holds have, each once", {7, 0, 0}, GRID_RIGHT, true, module_cell_parameters, module_compare_parameters}, \
    {"FORWARD", "ms of its forward, of a step that was traced", ms, GRID_RIGHT, true, module_cell_forward, module_compare_forward_ms}, \
    {"BACKWARD", "ms of its backward", ms_too, GRID_RIGHT, true, module_cell_backward, module_compare_backward_ms}, \
    {"TIME", "both, beside the module that takes most", bar, GRID_LEFT, true, module_cell_bar, module_compare_share}, \
    {"NAN", "where values were NaN or infinite", {4, 0, 1}, GRID_LEFT, true, module_cell_nan, module_compare_is_nan}, \
    {"GRAD", "norm of its gradients", {8, 0, 5}, GRID_RIGHT, true, module_cell_grad, module_compare_grad_norm}, \
    {"BYTES", "bytes of its parameters and buffers", {8, 0, 6}, GRID_RIGHT, true, module_cell_bytes, module_compare_bytes}, \
    {"DTYPE", "type of its parameters", {8, 0, 7}, GRID_LEFT, false, module_cell_dtype, module_compare_dtype}, \
    {"MODE", "train or eval; is it compiled", {14, 0, 12}, GRID_LEFT, false, module_cell_mode, module_compare_training}, \
    {"DEVICE", "where it is", {7, 0, 8}, GRID_LEFT, false, module_cell_device, module_compare_device}, \
    {"OUTPUT", "bytes of its outputs", {8, 0, 9}, GRID_RIGHT, true, module_cell_activation, module_compare_activation_bytes}, \
    {"CALLS", "calls in a step", {5, 0, 10}, GRID_RIGHT, true, module_cell_calls, module_compare_calls}, \
    {"HOOKS", "hooks that are not probing's", {5, 0, 11}, GRID_RIGHT, true, module_cell_hooks, module_compare_hooks}
#define MODULE_MS {8, 0, 1}
#define MODULE_MS_TOO {8, 0, 2}
#define MODULE_BAR_SIZE {MODULE_BAR, 0, 4}

static const struct table_column module_columns[] = {MODULE_COLUMNS(MODULE_NO_SIZE, MODULE_NO_SIZE, MODULE_NO_SIZE)};
static const struct table_column module_columns_traced[] = {MODULE_COLUMNS(MODULE_MS, MODULE_MS_TOO, MODULE_BAR_SIZE)};
/* clang-format on */

#define MODULE_N_COLUMNS ((int)(sizeof module_columns / sizeof module_columns[0]))
static void module_put_name(const void *row, struct strbuf *out) {
    const struct module_row *m = row;
    pick_put_text(out, m->path ? m->path : "?");
}

const struct outline_def module_outline = {module_columns, MODULE_N_COLUMNS, module_matches, module_put_name};
const struct outline_def module_outline_traced = {module_columns_traced, MODULE_N_COLUMNS, module_matches,
                                                  module_put_name};

/* ---- reading ---- */

void module_rows_fini(struct module_rows *r) {
    result_unref(r->rows);
    free(r->items);
    memset(r, 0, sizeof *r);
}

static void module_read(struct module_row *m, const struct result *rows, size_t i) {
    static const char *const texts[] = {"path", "parent", "name", "class", "dtype", "device", "root", "nan"};
    static const char *const numbers[] = {"parameters", "own_parameters",   "bytes",
                                          "hooks",      "forward_ms",       "backward_ms",
                                          "calls",      "activation_bytes", "grad_norm"};
    const char **text[] = {&m->path,  &m->parent, &m->name, &m->class,
                           &m->dtype, &m->device, &m->root, &m->nan};
    double *number[] = {&m->parameters, &m->own_parameters,   &m->bytes,
                        &m->hooks,      &m->forward_ms,       &m->backward_ms,
                        &m->calls,      &m->activation_bytes, &m->grad_norm};
    for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
        *text[k] = app_feed_text(rows, i, app_feed_column(rows, texts[k]));
    for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++)
        *number[k] = app_feed_number(rows, i, app_feed_column(rows, numbers[k]));
    m->training = app_feed_flag(rows, i, app_feed_column(rows, "training"));
    m->compiled = app_feed_flag(rows, i, app_feed_column(rows, "compiled"));
    m->is_nan = m->nan ? 1 : app_feed_flag(rows, i, app_feed_column(rows, "nan"));
    m->share = NAN;
    m->line = i;
}

/* Time of a module: forward and backward, as far as known. */
static double module_time(const struct module_row *m) {
    if (isnan(m->forward_ms))
        return m->backward_ms;
    return m->forward_ms + (isnan(m->backward_ms) ? 0 : m->backward_ms);
}

static void module_sum(struct module_rows *r) {
    double most = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct module_row *m = &r->items[i];
        r->is_traced = r->is_traced || !isnan(module_time(m));
        most = module_time(m) > most ? module_time(m) : most;
        r->n_nan += m->is_nan > 0;
        if (m->parent)
            continue;
        r->roots++;
        r->parameters += m->parameters;
        r->bytes += m->bytes;
    }
    for (size_t i = 0; i < r->n && most > 0; i++)
        r->items[i].share = module_time(&r->items[i]) / most;
}

/* The module with that path; -1: none of the earlier ones. */
static int module_find(const struct table *by_path, const struct module_rows *r, const char *path,
                       uint64_t hash) {
    size_t at = TABLE_BEGIN;
    for (uint32_t i; (i = table_next(by_path, hash, &at)) != TABLE_NONE;)
        if (strcmp(r->items[i].path, path) == 0)
            return (int)i;
    return -1;
}

/* Make nodes: the parent of a module comes before it, or it is a root. `by_path` has room for
 * all. */
static void module_put_nodes(const struct module_rows *r, struct table *by_path, struct outline_node *nodes) {
    for (size_t i = 0; i < r->n; i++) {
        const struct module_row *m = &r->items[i];
        uint64_t hash = m->path ? hash_bytes(m->path, strlen(m->path)) : 0;
        int parent =
            m->parent ? module_find(by_path, r, m->parent, hash_bytes(m->parent, strlen(m->parent))) : -1;
        uint64_t key = m->path ? outline_key(m->path, 1) : hash_mix(i + 1);
        nodes[i] = (struct outline_node){.row = m, .parent = parent, .key = key};
        if (m->path && module_find(by_path, r, m->path, hash) < 0)
            table_add(by_path, hash, (uint32_t)i);
    }
}

void module_rows_build(struct module_rows *r, struct result *rows, struct outline *out) {
    struct module_rows before = *r;
    struct table by_path = {.n = 0};
    size_t n = rows ? rows->n_rows : 0;
    struct outline_node *nodes = calloc(n + 1, sizeof *nodes);
    *r = (struct module_rows){.items = calloc(n + 1, sizeof *r->items)};
    if (rows && table_reserve(&by_path, n) == 0 && nodes && r->items) {
        r->rows = result_ref(rows);
        r->n = n;
        for (size_t i = 0; i < n; i++) {
            module_read(&r->items[i], rows, i);
            r->items[i].ascii = out->ascii;
            r->items[i].flat = out->flat;
        }
        module_sum(r);
        module_put_nodes(r, &by_path, nodes);
    }
    out->def = r->is_traced ? &module_outline_traced : &module_outline;
    outline_take(out, nodes, r->n);
    table_fini(&by_path);
    module_rows_fini(&before);
}
