/* SPDX-License-Identifier: Apache-2.0 */
/* tensors_rows: see tensors_rows.h. */
#include "tui/screens/tensors/tensors_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "tui/core/app_feed.h"
#include "tui/view/pick.h"
#include "tui/view/table.h"

static const char *const tensor_group_names[TENSOR_GROUPS] = {
    [TENSOR_BY_MODULE] = "module",   [TENSOR_BY_KIND] = "kind",     [TENSOR_BY_SHAPE] = "shape",
    [TENSOR_BY_DTYPE] = "dtype",     [TENSOR_BY_DEVICE] = "device", [TENSOR_BY_STORAGE] = "storage",
    [TENSOR_BY_NOTHING] = "nothing",
};

const char *tensor_group_name(enum tensor_group by) { return tensor_group_names[by]; }

static const struct outline_node *tensor_node(const void *node) { return node; }
static const struct tensor_row *tensor_of(const void *node) { return tensor_node(node)->row; }

/* ---- cells ---- */

void tensor_put_growth(char *buf, size_t cap, double bytes) {
    char size[24];
    if (isnan(bytes)) {
        snprintf(buf, cap, "?");
        return;
    }
    text_human_bytes(size, sizeof size, fabs(bytes));
    snprintf(buf, cap, "%s%s", bytes > 0 ? "+" : bytes < 0 ? "-" : "", bytes == 0 ? "0" : size);
}

static void tensor_put_text(struct table_cell *c, const struct tensor_row *t, const char *text) {
    c->role = ROLE_TEXT;
    snprintf(c->text, sizeof c->text, "%s", t->count ? "" : text ? text : "?");
    if (!text)
        c->role = ROLE_MUTED;
}

static const char *tensor_short(const char *dtype) {
    return dtype && strncmp(dtype, "torch.", 6) == 0 ? dtype + 6 : dtype;
}

/* A tensor's name in its place: below its module without that. */
static const char *tensor_name_in(const struct outline_node *node) {
    const struct tensor_row *t = node->row;
    size_t n = t->module && node->depth ? strlen(t->module) : 0;
    if (!t->name)
        return "?";
    bool is_below = t->is_by_module && n && strncmp(t->name, t->module, n) == 0 && t->name[n] == '.';
    return is_below ? t->name + n + 1 : t->name;
}

static void tensor_cell_name(const void *node, struct table_cell *c) {
    const struct tensor_row *t = tensor_of(node);
    char name[TABLE_CELL - 64];
    if (t->count)
        snprintf(name, sizeof name, "%.900s (%zu)", t->name, t->count);
    else
        snprintf(name, sizeof name, "%.950s", tensor_name_in(tensor_node(node)));
    c->role = t->count ? ROLE_VALUE : ROLE_FUNC;
    outline_put_name(tensor_node(node), name, c->text, sizeof c->text);
}

static void tensor_cell_kind(const void *node, struct table_cell *c) {
    tensor_put_text(c, tensor_of(node), tensor_of(node)->kind);
}
static void tensor_cell_shape(const void *node, struct table_cell *c) {
    tensor_put_text(c, tensor_of(node), tensor_of(node)->shape);
}
static void tensor_cell_dtype(const void *node, struct table_cell *c) {
    tensor_put_text(c, tensor_of(node), tensor_short(tensor_of(node)->dtype));
}
static void tensor_cell_device(const void *node, struct table_cell *c) {
    tensor_put_text(c, tensor_of(node), tensor_of(node)->device);
}
static void tensor_cell_type(const void *node, struct table_cell *c) {
    tensor_put_text(c, tensor_of(node), tensor_of(node)->type);
}
static void tensor_cell_module(const void *node, struct table_cell *c) {
    const struct tensor_row *t = tensor_of(node);
    tensor_put_text(c, t, t->module ? t->module : "");
}

static void tensor_cell_bytes(const void *node, struct table_cell *c) {
    const struct tensor_row *t = tensor_of(node);
    c->role = ROLE_VALUE;
    text_human_bytes(c->text, sizeof c->text, t->bytes);
}

static void tensor_cell_growth(const void *node, struct table_cell *c) {
    double growth = tensor_of(node)->growth;
    c->role = growth > 0 ? ROLE_CPU_HIGH : ROLE_MUTED;
    if (isnan(growth))
        c->text[0] = '\0';
    else
        tensor_put_growth(c->text, sizeof c->text, growth);
}

static void tensor_cell_age(const void *node, struct table_cell *c) {
    const struct tensor_row *t = tensor_of(node);
    c->role = ROLE_MUTED;
    if (t->count)
        c->text[0] = '\0';
    else
        text_human_duration(c->text, sizeof c->text, t->age_s);
}

/* It needs a gradient, and has one. */
static void tensor_cell_grad(const void *node, struct table_cell *c) {
    const struct tensor_row *t = tensor_of(node);
    const char *text = t->requires_grad < 0    ? "?"
                       : t->grad > 0           ? "has"
                       : t->requires_grad == 0 ? "no"
                                               : "needs";
    c->role = t->grad > 0 ? ROLE_TEXT : ROLE_MUTED;
    snprintf(c->text, sizeof c->text, "%s", t->count ? "" : text);
}

/* ---- order ---- */

#define TENSOR_COMPARE_TEXT(field)                                                                           \
    static int tensor_compare_##field(const void *a, const void *b) {                                        \
        return text_compare(tensor_of(a)->field, tensor_of(b)->field);                                       \
    }
#define TENSOR_COMPARE_NUMBER(field)                                                                         \
    static int tensor_compare_##field(const void *a, const void *b) {                                        \
        return table_compare_number(tensor_of(a)->field, tensor_of(b)->field);                               \
    }
TENSOR_COMPARE_TEXT(name)
TENSOR_COMPARE_TEXT(kind)
TENSOR_COMPARE_TEXT(shape)
TENSOR_COMPARE_TEXT(dtype)
TENSOR_COMPARE_TEXT(device)
TENSOR_COMPARE_TEXT(type)
TENSOR_COMPARE_TEXT(module)
TENSOR_COMPARE_NUMBER(bytes)
TENSOR_COMPARE_NUMBER(growth)
TENSOR_COMPARE_NUMBER(age_s)
TENSOR_COMPARE_NUMBER(grad)

static bool tensor_matches(const void *node, const struct match *m) {
    const struct tensor_row *t = ((const struct outline_node *)node)->row;
    return !t->count && (match_text(m, t->name) || match_text(m, t->kind) || match_text(m, t->shape) ||
                         match_text(m, t->dtype) || match_text(m, t->device) || match_text(m, t->type) ||
                         match_text(m, t->module));
}

enum { TENSOR_COLUMN_BYTES = 2 };

/* clang-format off */
#define TENSOR_COLUMNS(growth_size)                                                                                  \
    {"NAME", "its owner, as a path of names; of a group: how many there are", {26, 3, 0}, GRID_MIDDLE, false, tensor_cell_name, tensor_compare_name}, \
    {"SHAPE", "its sizes", {13, 1, 2}, GRID_LEFT, false, tensor_cell_shape, tensor_compare_shape}, \
    {"BYTES", "bytes of its elements; of a group: of its storages, each once", {8, 0, 0}, GRID_RIGHT, true, tensor_cell_bytes, tensor_compare_bytes}, \
    {"GROWTH", "bytes more than at the mark (')", growth_size, GRID_RIGHT, true, tensor_cell_growth, tensor_compare_growth}, \
    {"DTYPE", "type of its elements", {8, 0, 4}, GRID_LEFT, false, tensor_cell_dtype, tensor_compare_dtype}, \
    {"KIND", "parameter, buffer, gradient, optimizer, local, global, attribute", {9, 0, 5}, GRID_LEFT, false, tensor_cell_kind, tensor_compare_kind}, \
    {"AGE", "since it was first seen", {7, 0, 6}, GRID_RIGHT, true, tensor_cell_age, tensor_compare_age_s}, \
    {"DEVICE", "where it is", {7, 0, 7}, GRID_LEFT, false, tensor_cell_device, tensor_compare_device}, \
    {"GRAD", "whether it needs a gradient and whether it has one", {5, 0, 8}, GRID_LEFT, true, tensor_cell_grad, tensor_compare_grad}, \
    {"TYPE", "its class", {10, 0, 9}, GRID_LEFT, false, tensor_cell_type, tensor_compare_type}, \
    {"MODULE", "the module that has it", {12, 1, 10}, GRID_LEFT, false, tensor_cell_module, tensor_compare_module}

#define TENSOR_NO_SIZE {10000, 0, 99} /* there is never room for it */
#define TENSOR_SIZE {9, 0, 3}
static const struct table_column tensor_columns[] = {TENSOR_COLUMNS(TENSOR_NO_SIZE)};
static const struct table_column tensor_columns_marked[] = {TENSOR_COLUMNS(TENSOR_SIZE)};
/* clang-format on */

#define TENSOR_N_COLUMNS ((int)(sizeof tensor_columns / sizeof tensor_columns[0]))
static void tensor_put_name(const void *row, struct strbuf *out) {
    const struct tensor_row *t = row;
    pick_put_text(out, t->name ? t->name : "?");
}

const struct outline_def tensor_outline = {tensor_columns, TENSOR_N_COLUMNS, tensor_matches, tensor_put_name};
const struct outline_def tensor_outline_marked = {tensor_columns_marked, TENSOR_N_COLUMNS, tensor_matches,
                                                  tensor_put_name};

int tensor_column_bytes(void) { return TENSOR_COLUMN_BYTES; }

/* ---- reading ---- */

/* The key of a tensor's memory: tensors of one storage have the same. */
static double tensor_weight(const struct tensor_row *t) {
    double bytes = isnan(t->storage_bytes) ? t->bytes : t->storage_bytes;
    return isnan(bytes) ? 0 : bytes;
}

static uint64_t tensor_storage(const struct tensor_row *t) {
    bool known = t->storage_id != APP_FEED_UNKNOWN;
    return known ? hash_mix((uint64_t)t->storage_id) & ~(uint64_t)1 : hash_mix((uint64_t)t->line + 1) | 1;
}

/* A tensor in a group, for counting. */
struct tensor_share {
    uint64_t group, storage;
    const struct tensor_row *row;
};

static int tensor_compare_shares(const void *a, const void *b) {
    const struct tensor_share *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->storage != y->storage)
        return x->storage < y->storage ? -1 : 1;
    return x->row->line < y->row->line ? -1 : 1;
}

static uint64_t tensor_group_key(const struct tensor_row *t, enum tensor_group by) {
    switch (by) {
    case TENSOR_BY_MODULE:
        return outline_key(t->module, by);
    case TENSOR_BY_KIND:
        return outline_key(t->kind, by);
    case TENSOR_BY_SHAPE:
        return outline_key(t->shape, by);
    case TENSOR_BY_DTYPE:
        return outline_key(t->dtype, by);
    case TENSOR_BY_DEVICE:
        return outline_key(t->device, by);
    case TENSOR_BY_STORAGE:
        return tensor_storage(t);
    case TENSOR_BY_NOTHING:
    case TENSOR_GROUPS:
        break;
    }
    return 0;
}

/* All tensors with their groups, sorted by those; the caller's. NULL: out of memory, or none. */
static struct tensor_share *tensor_list_shares(const struct tensor_table *t, enum tensor_group by) {
    struct tensor_share *shares = t->n ? calloc(t->n, sizeof *shares) : NULL;
    for (size_t i = 0; shares && i < t->n; i++)
        shares[i] = (struct tensor_share){tensor_group_key(&t->items[i], by), tensor_storage(&t->items[i]),
                                          &t->items[i]};
    if (shares)
        qsort(shares, t->n, sizeof *shares, tensor_compare_shares);
    return shares;
}

/* Bytes of the group that begins at `from`, and where it ends. */
static double tensor_sum_group(const struct tensor_share *shares, size_t n, size_t from, size_t *end,
                               size_t *storages) {
    double sum = 0, most = 0;
    size_t i = from;
    for (; i < n && shares[i].group == shares[from].group; i++) {
        bool is_new = i == from || shares[i].storage != shares[i - 1].storage;
        double weight = tensor_weight(shares[i].row);
        sum += is_new ? weight : weight > most ? weight - most : 0;
        most = is_new || weight > most ? weight : most;
        *storages += is_new;
    }
    *end = i;
    return sum;
}

static void tensor_read(struct tensor_row *t, const struct result *r, size_t i, const int *at) {
    *t = (struct tensor_row){.name = app_feed_text(r, i, at[0]),
                             .kind = app_feed_text(r, i, at[1]),
                             .type = app_feed_text(r, i, at[2]),
                             .shape = app_feed_text(r, i, at[3]),
                             .dtype = app_feed_text(r, i, at[4]),
                             .device = app_feed_text(r, i, at[5]),
                             .module = app_feed_text(r, i, at[6]),
                             .bytes = app_feed_number(r, i, at[7]),
                             .storage_bytes = app_feed_number(r, i, at[8]),
                             .storage_id = app_feed_int(r, i, at[9]),
                             .id = app_feed_int(r, i, at[10]),
                             .age_s = app_feed_number(r, i, at[11]),
                             .first_step = app_feed_number(r, i, at[12]),
                             .shared = app_feed_flag(r, i, at[13]),
                             .requires_grad = app_feed_flag(r, i, at[14]),
                             .grad = app_feed_flag(r, i, at[15]),
                             .growth = NAN,
                             .line = i};
}

void tensor_table_init(struct tensor_table *t, struct result *rows) {
    static const char *const names[] = {
        "name",          "kind",       "type", "shape", "dtype",      "device", "module",        "bytes",
        "storage_bytes", "storage_id", "id",   "age_s", "first_step", "shared", "requires_grad", "grad"};
    int at[sizeof names / sizeof names[0]];
    memset(t, 0, sizeof *t);
    if (!rows || !(t->items = calloc(rows->n_rows + 1, sizeof *t->items)))
        return;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        at[i] = app_feed_column(rows, names[i]);
    t->rows = result_ref(rows);
    t->n = rows->n_rows;
    for (size_t i = 0; i < t->n; i++)
        tensor_read(&t->items[i], rows, i, at);
    struct tensor_share *shares = tensor_list_shares(t, TENSOR_BY_NOTHING);
    size_t end;
    if (shares)
        t->bytes = tensor_sum_group(shares, t->n, 0, &end, &t->storages);
    free(shares);
}

void tensor_table_fini(struct tensor_table *t) {
    result_unref(t->rows);
    free(t->items);
    memset(t, 0, sizeof *t);
}

/* ---- nodes ---- */

void tensor_rows_fini(struct tensor_rows *r) {
    free(r->groups);
    memset(r, 0, sizeof *r);
}

static uint64_t tensor_key(const struct tensor_row *t) {
    bool known = t->id != APP_FEED_UNKNOWN;
    return known ? hash_mix((uint64_t)t->id ^ 0x7461) : outline_key(t->name, TENSOR_GROUPS);
}

static void tensor_name_group(struct tensor_row *g, const struct tensor_row *one, enum tensor_group by) {
    const char *name = by == TENSOR_BY_MODULE   ? one->module
                       : by == TENSOR_BY_KIND   ? one->kind
                       : by == TENSOR_BY_SHAPE  ? one->shape
                       : by == TENSOR_BY_DTYPE  ? one->dtype
                       : by == TENSOR_BY_DEVICE ? one->device
                                                : NULL;
    if (by == TENSOR_BY_STORAGE && one->storage_id != APP_FEED_UNKNOWN)
        snprintf(g->text, sizeof g->text, "storage %llx", (unsigned long long)one->storage_id);
    else
        snprintf(g->text, sizeof g->text, "%s", by == TENSOR_BY_MODULE ? "(no module)" : "(unknown)");
    g->name = name && *name ? name : g->text;
}

/* Growth of each tensor: the mark has it under the same key. Both are sorted by key. */
struct tensor_keyed {
    uint64_t key;
    struct tensor_row *row;
};

static int tensor_compare_keyed(const void *a, const void *b) {
    const struct tensor_keyed *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static struct tensor_keyed *tensor_list_keys(const struct tensor_table *t) {
    struct tensor_keyed *keys = calloc(t->n + 1, sizeof *keys);
    for (size_t i = 0; keys && i < t->n; i++)
        keys[i] = (struct tensor_keyed){tensor_key(&t->items[i]), &t->items[i]};
    if (keys)
        qsort(keys, t->n, sizeof *keys, tensor_compare_keyed);
    return keys;
}

static void tensor_find_growth(struct tensor_table *t, const struct tensor_table *mark) {
    struct tensor_keyed *now = mark ? tensor_list_keys(t) : NULL, *then = now ? tensor_list_keys(mark) : NULL;
    for (size_t i = 0; i < t->n; i++)
        t->items[i].growth = NAN;
    for (size_t i = 0, k = 0; then && i < t->n; i++) {
        while (k < mark->n && then[k].key < now[i].key)
            k++;
        bool was = k < mark->n && then[k].key == now[i].key;
        double before = was && !isnan(then[k].row->bytes) ? then[k].row->bytes : 0;
        now[i].row->growth = now[i].row->bytes - before;
    }
    free(now);
    free(then);
}

/* Bytes of a group at the time of the mark. */
static double tensor_group_then(const struct tensor_share *then, size_t n, uint64_t group) {
    size_t low = 0, high = n, end, storages = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (then[middle].group < group)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && then[low].group == group ? tensor_sum_group(then, n, low, &end, &storages) : 0;
}

/* Make nodes of all groups, each followed by its tensors. Returns their number. */
static size_t tensor_put_groups(struct tensor_rows *r, struct tensor_table *t,
                                const struct tensor_table *mark, enum tensor_group by,
                                struct outline_node *nodes) {
    struct tensor_share *shares = tensor_list_shares(t, by);
    struct tensor_share *then = mark ? tensor_list_shares(mark, by) : NULL;
    size_t n = 0, end;
    for (size_t from = 0; shares && from < t->n; from = end) {
        struct tensor_row *g = &r->groups[r->n_groups++];
        size_t storages = 0;
        *g = (struct tensor_row){.age_s = NAN, .first_step = NAN, .growth = NAN};
        g->bytes = tensor_sum_group(shares, t->n, from, &end, &storages);
        g->count = end - from;
        tensor_name_group(g, shares[from].row, by);
        if (mark)
            g->growth = g->bytes - (then ? tensor_group_then(then, mark->n, shares[from].group) : 0);
        int parent = (int)n;
        nodes[n++] = (struct outline_node){
            .row = g, .parent = -1, .key = hash_mix(shares[from].group + 1 + (uint64_t)by), .is_group = true};
        for (size_t i = from; i < end; i++)
            nodes[n++] = (struct outline_node){
                .row = shares[i].row, .parent = parent, .key = tensor_key(shares[i].row)};
    }
    free(shares);
    free(then);
    return n;
}

void tensor_rows_build(struct tensor_rows *r, struct tensor_table *t, const struct tensor_table *mark,
                       enum tensor_group by, struct outline *out) {
    size_t n = 0;
    struct outline_node *nodes = calloc(2 * t->n + 1, sizeof *nodes);
    struct tensor_row *before = r->groups; /* the outline still has nodes that point to them */
    r->groups = nodes && by != TENSOR_BY_NOTHING ? calloc(t->n + 1, sizeof *r->groups) : NULL;
    r->n_groups = 0;
    tensor_find_growth(t, mark);
    for (size_t i = 0; i < t->n; i++)
        t->items[i].is_by_module = by == TENSOR_BY_MODULE;
    out->def = mark ? &tensor_outline_marked : &tensor_outline;
    if (r->groups)
        n = tensor_put_groups(r, t, mark, by, nodes);
    for (size_t i = 0; !r->groups && nodes && i < t->n; i++)
        nodes[n++] =
            (struct outline_node){.row = &t->items[i], .parent = -1, .key = tensor_key(&t->items[i])};
    outline_take(out, nodes, n);
    free(before);
}
