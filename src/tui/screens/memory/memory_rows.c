/* SPDX-License-Identifier: Apache-2.0 */
/* memory_rows: see memory_rows.h. */
#include "tui/screens/memory/memory_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "tui/core/app_feed.h"
#include "tui/view/pick.h"
#include "tui/view/table.h"

#define MEMORY_MIB 1048576.0
#define MEMORY_TREND_ROWS 10 /* from so many on there is a trend */

static const struct memory_row *memory_of(const void *node) {
    return ((const struct outline_node *)node)->row;
}

/* ---- cells ---- */

static void memory_put_text(struct table_cell *c, const char *text, enum theme_role role) {
    c->role = text ? role : ROLE_MUTED;
    snprintf(c->text, sizeof c->text, "%s", text ? text : "?");
}

static void memory_put_bytes(struct table_cell *c, double bytes, enum theme_role role) {
    c->role = isnan(bytes) ? ROLE_MUTED : role;
    text_human_bytes(c->text, sizeof c->text, bytes);
}

static void memory_put_number(struct table_cell *c, double v) {
    c->role = isnan(v) ? ROLE_MUTED : ROLE_VALUE;
    if (isnan(v))
        snprintf(c->text, sizeof c->text, "?");
    else
        snprintf(c->text, sizeof c->text, "%.0f", v);
}

static void memory_put_change(struct table_cell *c, double v, bool is_bytes) {
    char size[32];
    c->role = v > 0 ? ROLE_CPU_HIGH : ROLE_MUTED;
    if (isnan(v))
        snprintf(c->text, sizeof c->text, "\xe2\x80\x94");
    else if (v == 0)
        snprintf(c->text, sizeof c->text, "0");
    else if (!is_bytes)
        snprintf(c->text, sizeof c->text, "%+.0f", v);
    else {
        text_human_bytes(size, sizeof size, fabs(v));
        snprintf(c->text, sizeof c->text, "%c%s", v < 0 ? '-' : '+', size);
    }
}

static void memory_cell_bytes(const void *node, struct table_cell *c) {
    memory_put_bytes(c, memory_of(node)->bytes, ROLE_VALUE);
}
static void memory_cell_growth(const void *node, struct table_cell *c) {
    memory_put_change(c, memory_of(node)->growth, true);
}
static void memory_cell_share(const void *node, struct table_cell *c) {
    double share = memory_of(node)->share;
    c->role = share >= 0.2 ? ROLE_CPU_HIGH : share >= 0.05 ? ROLE_CPU_MID : ROLE_CPU_LOW;
    if (isnan(share))
        snprintf(c->text, sizeof c->text, "?");
    else
        snprintf(c->text, sizeof c->text, "%.1f", share * 100);
}
static void memory_cell_allocated(const void *node, struct table_cell *c) {
    memory_put_bytes(c, memory_of(node)->allocated, ROLE_TEXT);
}
static void memory_cell_calls(const void *node, struct table_cell *c) {
    memory_put_number(c, memory_of(node)->calls);
}
static void memory_cell_kind(const void *node, struct table_cell *c) {
    memory_put_text(c, memory_of(node)->kind, ROLE_TEXT);
}
static void memory_cell_name(const void *node, struct table_cell *c) {
    memory_put_text(c, memory_of(node)->name, ROLE_FUNC);
}
static void memory_cell_file(const void *node, struct table_cell *c) {
    const struct memory_row *r = memory_of(node);
    c->role = ROLE_FILE;
    if (r->file && r->lineno > 0)
        snprintf(c->text, sizeof c->text, "%s:%.0f", r->file, r->lineno);
    else
        snprintf(c->text, sizeof c->text, "%s", r->file ? r->file : "");
}
static void memory_cell_of(const void *node, struct table_cell *c) {
    memory_put_text(c, memory_of(node)->of, ROLE_TEXT);
}
static void memory_cell_count(const void *node, struct table_cell *c) {
    memory_put_number(c, memory_of(node)->count);
}
static void memory_cell_more(const void *node, struct table_cell *c) {
    memory_put_change(c, memory_of(node)->more, false);
}
static void memory_cell_since(const void *node, struct table_cell *c) {
    double s = memory_of(node)->since_s;
    c->role = ROLE_MUTED;
    if (isnan(s))
        snprintf(c->text, sizeof c->text, "\xe2\x80\x94");
    else
        snprintf(c->text, sizeof c->text, "%.0f s", s);
}
static void memory_cell_capacity(const void *node, struct table_cell *c) {
    double room = memory_of(node)->room;
    c->role = ROLE_TEXT;
    if (isnan(room))
        snprintf(c->text, sizeof c->text, "no bound");
    else
        snprintf(c->text, sizeof c->text, "%.0f", room);
}

/* ---- order ---- */

#define MEMORY_COMPARE(field, how)                                                                           \
    static int memory_compare_##field(const void *a, const void *b) {                                        \
        return how(memory_of(a)->field, memory_of(b)->field);                                                \
    }
/* where as much lives, or nothing, what was allocated */
static int memory_compare_bytes(const void *a, const void *b) {
    int order = table_compare_number(memory_of(a)->bytes, memory_of(b)->bytes);
    return order ? order : table_compare_number(memory_of(a)->allocated, memory_of(b)->allocated);
}
MEMORY_COMPARE(growth, table_compare_number)
MEMORY_COMPARE(share, table_compare_number)
MEMORY_COMPARE(allocated, table_compare_number)
MEMORY_COMPARE(calls, table_compare_number)
MEMORY_COMPARE(count, table_compare_number)
MEMORY_COMPARE(more, table_compare_number)
MEMORY_COMPARE(since_s, table_compare_number)
MEMORY_COMPARE(room, table_compare_number)
MEMORY_COMPARE(kind, text_compare)
MEMORY_COMPARE(name, text_compare)
MEMORY_COMPARE(file, text_compare)
MEMORY_COMPARE(of, text_compare)

static bool memory_matches(const void *node, const struct match *m) {
    const struct memory_row *r = memory_of(node);
    return match_text(m, r->name) || match_text(m, r->file) || match_text(m, r->kind) || match_text(m, r->of);
}

static void memory_put_name(const void *row, struct strbuf *out) {
    const struct memory_row *r = row;
    pick_put_text(out, r->name ? r->name : "?");
}

enum { MEMORY_COLUMN_BYTES = 0, MEMORY_COLUMN_GROWTH = 1 };

/* clang-format off */
static const struct table_column memory_sites_columns[] = {
    {"LIVE", "bytes that were allocated there since tracing began and not freed", {10, 0, 0}, GRID_RIGHT, true, memory_cell_bytes, memory_compare_bytes},
    {"GROWTH", "bytes more than at the mark", {10, 0, 1}, GRID_RIGHT, true, memory_cell_growth, memory_compare_growth},
    {"%LIVE", "share of all that lives", {5, 0, 4}, GRID_RIGHT, true, memory_cell_share, memory_compare_share},
    {"ALLOCATED", "bytes that were allocated there, freed or not", {10, 0, 5}, GRID_RIGHT, true, memory_cell_allocated, memory_compare_allocated},
    {"CALLS", "allocations there", {7, 0, 6}, GRID_RIGHT, true, memory_cell_calls, memory_compare_calls},
    {"BY", "Python's allocators, torch, or malloc of another library", {6, 0, 3}, GRID_LEFT, false, memory_cell_kind, memory_compare_kind},
    {"FUNCTION", "the innermost Python function", {16, 2, 0}, GRID_LEFT, false, memory_cell_name, memory_compare_name},
    {"FILE:LINE", "the line that allocates", {18, 3, 2}, GRID_TAIL, false, memory_cell_file, memory_compare_file},
};
static const struct table_column memory_holders_columns[] = {
    {"BYTES", "an estimate from the newest elements", {10, 0, 0}, GRID_RIGHT, true, memory_cell_bytes, memory_compare_bytes},
    {"GROWTH", "bytes more than in an earlier snapshot", {10, 0, 1}, GRID_RIGHT, true, memory_cell_growth, memory_compare_growth},
    {"COUNT", "elements", {8, 0, 2}, GRID_RIGHT, true, memory_cell_count, memory_compare_count},
    {"MORE", "elements more than in that snapshot", {7, 0, 4}, GRID_RIGHT, true, memory_cell_more, memory_compare_more},
    {"SINCE", "age of that snapshot", {6, 0, 6}, GRID_RIGHT, true, memory_cell_since, memory_compare_since_s},
    {"ROOM", "elements that a bounded cache or queue has room for", {8, 0, 7}, GRID_RIGHT, true, memory_cell_capacity, memory_compare_room},
    {"KIND", "list, dict, set, lru_cache; tensor: one that no container holds", {9, 0, 5}, GRID_LEFT, false, memory_cell_kind, memory_compare_kind},
    {"HOLDER", "how it is reached: NAME@FUNCTION, or a global", {18, 3, 0}, GRID_LEFT, false, memory_cell_name, memory_compare_name},
    {"OF", "type of its newest element", {16, 2, 3}, GRID_LEFT, false, memory_cell_of, memory_compare_of},
};
/* clang-format on */

#define MEMORY_COLUMNS(columns) columns, (int)(sizeof(columns) / sizeof((columns)[0]))
const struct outline_def memory_sites_outline = {MEMORY_COLUMNS(memory_sites_columns), memory_matches,
                                                 memory_put_name};
const struct outline_def memory_holders_outline = {MEMORY_COLUMNS(memory_holders_columns), memory_matches,
                                                   memory_put_name};

int memory_column_bytes(void) { return MEMORY_COLUMN_BYTES; }
int memory_column_growth(void) { return MEMORY_COLUMN_GROWTH; }

/* ---- reading ---- */

static double memory_value(const struct result *rows, size_t i, const char *name) {
    return app_feed_number(rows, i, app_feed_column(rows, name));
}

static const char *memory_text(const struct result *rows, size_t i, const char *name) {
    return app_feed_text(rows, i, app_feed_column(rows, name));
}

void memory_rows_fini(struct memory_rows *r) {
    result_unref(r->rows);
    free(r->items);
    memset(r, 0, sizeof *r);
}

static uint64_t memory_key(const struct memory_row *r) {
    const char *const parts[] = {r->name, r->file, r->kind};
    uint64_t key = hash_mix(isnan(r->lineno) ? 1 : (uint64_t)(int64_t)fmod(r->lineno, 1e9));
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        key = hash_mix(key ^ outline_key(parts[i], i + 1));
    return key;
}

/* Bytes at the mark; 0: it was not there. */
static double memory_marked(const struct memory_mark *m, uint64_t key) {
    for (size_t i = 0; i < m->n; i++)
        if (m->items[i].key == key)
            return m->items[i].bytes;
    return 0;
}

/* Replace `r` by rows for a result of at most `n` rows. Nodes, or NULL without memory: then there are
 * none. */
static struct outline_node *memory_begin(struct memory_rows *r, struct result *rows) {
    size_t n = rows ? rows->n_rows : 0;
    struct outline_node *nodes = calloc(n + 1, sizeof *nodes);
    *r = (struct memory_rows){.items = calloc(n + 1, sizeof *r->items), .looked = NAN};
    if (nodes && r->items) {
        r->rows = rows ? result_ref(rows) : NULL;
        return nodes;
    }
    free(nodes);
    return NULL;
}

void memory_sites_build(struct memory_rows *r, struct result *rows, const struct memory_mark *mark,
                        struct outline *out) {
    struct memory_rows before = *r;
    struct outline_node *nodes = memory_begin(r, rows);
    for (size_t i = 0; nodes && r->rows && i < rows->n_rows; i++) {
        struct memory_row *m = &r->items[r->n];
        *m = (struct memory_row){.name = memory_text(rows, i, "function_name"),
                                 .file = memory_text(rows, i, "file"),
                                 .kind = memory_text(rows, i, "domain"),
                                 .lineno = memory_value(rows, i, "lineno"),
                                 .bytes = memory_value(rows, i, "live_bytes"),
                                 .allocated = memory_value(rows, i, "allocated_bytes"),
                                 .calls = memory_value(rows, i, "calls"),
                                 .growth = NAN,
                                 .count = NAN,
                                 .more = NAN,
                                 .since_s = NAN,
                                 .room = NAN,
                                 .line = i};
        m->key = memory_key(m);
        if (mark->is_set)
            m->growth = m->bytes - memory_marked(mark, m->key);
        r->live += m->bytes > 0 ? m->bytes : 0;
        r->allocated += m->allocated > 0 ? m->allocated : 0;
        nodes[r->n] = (struct outline_node){.row = m, .parent = -1, .key = m->key};
        r->n++;
    }
    for (size_t i = 0; i < r->n; i++)
        r->items[i].share = r->live > 0 ? r->items[i].bytes / r->live : NAN;
    outline_take(out, nodes, r->n);
    memory_rows_fini(&before);
}

void memory_holders_build(struct memory_rows *r, struct result *rows, struct outline *out) {
    struct memory_rows before = *r;
    struct outline_node *nodes = memory_begin(r, rows);
    for (size_t i = 0; nodes && r->rows && i < rows->n_rows; i++) {
        struct memory_row *m = &r->items[r->n];
        const char *holder = memory_text(rows, i, "holder");
        if (!holder) {
            double looked = memory_value(rows, i, "looked");
            r->looked = isnan(looked) ? r->looked : looked;
            continue;
        }
        *m = (struct memory_row){.name = holder,
                                 .kind = memory_text(rows, i, "kind"),
                                 .of = memory_text(rows, i, "of"),
                                 .lineno = NAN,
                                 .bytes = memory_value(rows, i, "bytes"),
                                 .growth = memory_value(rows, i, "growth_bytes"),
                                 .share = NAN,
                                 .allocated = NAN,
                                 .calls = NAN,
                                 .count = memory_value(rows, i, "count"),
                                 .more = memory_value(rows, i, "growth"),
                                 .since_s = memory_value(rows, i, "since_s"),
                                 .room = memory_value(rows, i, "room"),
                                 .line = i};
        m->key = memory_key(m);
        nodes[r->n] = (struct outline_node){.row = m, .parent = -1, .key = m->key};
        r->n++;
    }
    outline_take(out, nodes, r->n);
    memory_rows_fini(&before);
}

/* ---- the mark ---- */

void memory_mark_fini(struct memory_mark *m) {
    free(m->items);
    memset(m, 0, sizeof *m);
}

void memory_mark_set(struct memory_mark *m, const struct memory_rows *r) {
    memory_mark_fini(m);
    m->items = calloc(r->n + 1, sizeof *m->items);
    for (size_t i = 0; m->items && i < r->n; i++) {
        m->items[i].key = r->items[i].key;
        m->items[i].bytes = r->items[i].bytes;
    }
    m->n = m->items ? r->n : 0;
    m->is_set = m->items != NULL;
}

/* ---- the past ---- */

static void memory_add(struct meter *m, const struct result *rows, size_t i, const char *column,
                       double unit) {
    meter_add(m, memory_value(rows, i, column) * unit);
}

/* Least squares over the meter's seconds. */
static double memory_trend(const struct meter *m) {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (int back = 0; back < METER_MAX; back++) {
        double v = meter_at(m, back), t = -back;
        if (isnan(v))
            continue;
        n++;
        x += t;
        y += v;
        xx += t * t;
        xy += t * v;
    }
    double spread = n * xx - x * x;
    return n >= MEMORY_TREND_ROWS && spread > 0 ? (n * xy - x * y) / spread * 60 : NAN;
}

void memory_history_read(struct memory_history *p, const struct result *memory,
                         const struct result *process) {
    *p = (struct memory_history){.limit = NAN, .a_minute = NAN};
    for (size_t i = 0; memory && i < memory->n_rows; i++) {
        memory_add(&p->meters[MEMORY_METER_ALL], memory, i, "memory_mb", MEMORY_MIB);
        memory_add(&p->meters[MEMORY_METER_RSS], memory, i, "rss_mb", MEMORY_MIB);
        memory_add(&p->meters[MEMORY_METER_GPU], memory, i, "gpu_allocated_mb", MEMORY_MIB);
        memory_add(&p->meters[MEMORY_METER_OBJECTS], memory, i, "gc_objects", 1);
    }
    double pss = NAN; /* is measured less often than the rest */
    for (size_t i = 0; process && i < process->n_rows; i++) {
        double now = memory_value(process, i, "pss_bytes");
        pss = isnan(now) ? pss : now;
        meter_add(&p->meters[MEMORY_METER_PSS], pss);
        memory_add(&p->meters[MEMORY_METER_CGROUP], process, i, "cgroup_memory_bytes", 1);
        p->limit = memory_value(process, i, "cgroup_limit_bytes");
    }
    p->a_minute = memory_trend(&p->meters[MEMORY_METER_ALL]);
}
