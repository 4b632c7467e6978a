/* SPDX-License-Identifier: Apache-2.0 */
/* top_rows: see top_rows.h. */
#include "tui/screens/top/top_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tui/view/pick.h"
#include "tui/model/data.h"
#include "tui/view/diff_cell.h"

#define TOP_HOT_PCT 20.0
#define TOP_COLD_PCT 1.0

static const struct top_row *top_of(const void *row) { return row; }
static const struct top_call *top_call_of(const void *row) { return row; }

static int top_compare_double(double a, double b) {
    a = isnan(a) ? -1 : a;
    b = isnan(b) ? -1 : b;
    return (a > b) - (a < b);
}

/* ---- cells ---- */

static void top_put_share(struct table_cell *c, double v) {
    c->role = isnan(v) || v < TOP_COLD_PCT ? ROLE_CPU_LOW : v < TOP_HOT_PCT ? ROLE_CPU_MID : ROLE_CPU_HIGH;
    if (isnan(v))
        snprintf(c->text, sizeof c->text, "?");
    else
        snprintf(c->text, sizeof c->text, "%.1f", v);
}

static void top_put_time(struct table_cell *c, double us) {
    double s = us / 1e6;
    c->role = ROLE_TEXT;
    if (s < 1000)
        snprintf(c->text, sizeof c->text, "%.2fs", s);
    else
        text_human_duration(c->text, sizeof c->text, s);
}

static void top_put_func(struct table_cell *c, const struct model_frame *f) {
    snprintf(c->text, sizeof c->text, "%s", f->func ? f->func : "?");
    c->role = f->file || !f->func ? data_frame_role(f) : ROLE_MUTED;
}

static void top_put_file(struct table_cell *c, const struct model_frame *f, bool by_line) {
    c->role = ROLE_FILE;
    if (!f->file)
        snprintf(c->text, sizeof c->text, "%s", f->func ? "" : "?");
    else if (!by_line)
        snprintf(c->text, sizeof c->text, "%s", f->file);
    else if (f->line > 0)
        snprintf(c->text, sizeof c->text, "%s:%d", f->file, f->line);
    else
        snprintf(c->text, sizeof c->text, "%s:?", f->file);
}

static void top_cell_own_pct(const void *row, struct table_cell *c) {
    top_put_share(c, top_of(row)->own_pct);
}
static void top_cell_total_pct(const void *row, struct table_cell *c) {
    top_put_share(c, top_of(row)->total_pct);
}
static void top_cell_own(const void *row, struct table_cell *c) { top_put_time(c, top_of(row)->row->own_us); }
static void top_cell_total(const void *row, struct table_cell *c) {
    top_put_time(c, top_of(row)->row->total_us);
}
static void top_cell_func(const void *row, struct table_cell *c) { top_put_func(c, top_of(row)->row->frame); }
static void top_cell_file(const void *row, struct table_cell *c) {
    top_put_file(c, top_of(row)->row->frame, top_of(row)->by_line);
}

static int top_compare_own(const void *a, const void *b) {
    int order = top_compare_double(top_of(a)->own_pct, top_of(b)->own_pct);
    return order ? order : top_compare_double(top_of(a)->total_pct, top_of(b)->total_pct);
}

static int top_compare_total(const void *a, const void *b) {
    int order = top_compare_double(top_of(a)->total_pct, top_of(b)->total_pct);
    return order ? order : top_compare_double(top_of(a)->own_pct, top_of(b)->own_pct);
}

static int top_compare_func(const void *a, const void *b) {
    return text_compare(top_of(a)->row->frame->func, top_of(b)->row->frame->func);
}

static int top_compare_file(const void *a, const void *b) {
    const struct model_frame *x = top_of(a)->row->frame, *y = top_of(b)->row->frame;
    int order = text_compare(x->file, y->file);
    return order ? order : x->line - y->line;
}

const struct table_column top_columns[] = {
    {"%OWN",
     "share of the time in which it was the innermost function",
     {6, 0, 0},
     GRID_RIGHT,
     true,
     top_cell_own_pct,
     top_compare_own},
    {"%TOTAL",
     "share of the time in which it, or what it called, ran",
     {7, 0, 0},
     GRID_RIGHT,
     true,
     top_cell_total_pct,
     top_compare_total},
    {"OWN", "%OWN as time of the threads", {8, 0, 2}, GRID_RIGHT, true, top_cell_own, top_compare_own},
    {"TOTAL", "%TOTAL as time", {8, 0, 3}, GRID_RIGHT, true, top_cell_total, top_compare_total},
    {"FUNCTION", "the Python function", {16, 4, 0}, GRID_LEFT, false, top_cell_func, top_compare_func},
    {"FILE", "where it is; by line: the line", {14, 5, 1}, GRID_TAIL, false, top_cell_file, top_compare_file},
    {NULL, NULL, {0, 0, 0}, GRID_LEFT, false, NULL, NULL},
};
const int top_n_columns = (int)(sizeof top_columns / sizeof top_columns[0]) - 1;

/* ---- cells where times are compared ---- */

static double top_own_delta(const void *row) { return top_of(row)->own_pct - top_of(row)->own_before; }
static double top_total_delta(const void *row) { return top_of(row)->total_pct - top_of(row)->total_before; }

/* Strength follows what is shown: 0.04 is none. */
static void top_put_delta(struct table_cell *c, double delta) {
    c->role = diff_role(delta);
    diff_text(delta, c->text, sizeof c->text);
}

static void top_cell_own_delta(const void *row, struct table_cell *c) {
    top_put_delta(c, top_own_delta(row));
}
static void top_cell_own_before(const void *row, struct table_cell *c) {
    top_put_share(c, top_of(row)->own_before);
}
static void top_cell_total_delta(const void *row, struct table_cell *c) {
    top_put_delta(c, top_total_delta(row));
}
static void top_cell_total_before(const void *row, struct table_cell *c) {
    top_put_share(c, top_of(row)->total_before);
}

static int top_compare_own_delta(const void *a, const void *b) {
    int order = top_compare_double(fabs(top_own_delta(a)), fabs(top_own_delta(b)));
    return order ? order : top_compare_double(fabs(top_total_delta(a)), fabs(top_total_delta(b)));
}
static int top_compare_total_delta(const void *a, const void *b) {
    int order = top_compare_double(fabs(top_total_delta(a)), fabs(top_total_delta(b)));
    return order ? order : top_compare_double(fabs(top_own_delta(a)), fabs(top_own_delta(b)));
}
static int top_compare_own_before(const void *a, const void *b) {
    return top_compare_double(top_of(a)->own_before, top_of(b)->own_before);
}
static int top_compare_total_before(const void *a, const void *b) {
    return top_compare_double(top_of(a)->total_before, top_of(b)->total_before);
}

const struct table_column top_diff_columns[] = {
    {"DELTA",
     "%OWN now less %OWN before",
     {7, 0, 0},
     GRID_RIGHT,
     true,
     top_cell_own_delta,
     top_compare_own_delta},
    {"%OWN", "share of what is shown", {6, 0, 0}, GRID_RIGHT, true, top_cell_own_pct, top_compare_own},
    {"BEFORE",
     "share of what it is compared with",
     {7, 0, 1},
     GRID_RIGHT,
     true,
     top_cell_own_before,
     top_compare_own_before},
    {"DTOTAL",
     "%TOTAL now less %TOTAL before",
     {7, 0, 0},
     GRID_RIGHT,
     true,
     top_cell_total_delta,
     top_compare_total_delta},
    {"%TOTAL",
     "as %OWN, with what it called",
     {7, 0, 0},
     GRID_RIGHT,
     true,
     top_cell_total_pct,
     top_compare_total},
    {"BEFORE", "the same", {7, 0, 2}, GRID_RIGHT, true, top_cell_total_before, top_compare_total_before},
    {"FUNCTION", "the Python function", {16, 4, 0}, GRID_LEFT, false, top_cell_func, top_compare_func},
    {"FILE", "where it is; by line: the line", {14, 5, 0}, GRID_TAIL, false, top_cell_file, top_compare_file},
    {NULL, NULL, {0, 0, 0}, GRID_LEFT, false, NULL, NULL},
};
const int top_n_diff_columns = (int)(sizeof top_diff_columns / sizeof top_diff_columns[0]) - 1;

/* ---- cells of calls ---- */

static void top_call_cell_way(const void *row, struct table_cell *c) {
    static const char *const names[] = {[SAMPLE_STORE_CALLER] = "called by",
                                        [SAMPLE_STORE_ITSELF] = "itself",
                                        [SAMPLE_STORE_CALLEE] = "calls"};
    snprintf(c->text, sizeof c->text, "%s", names[top_call_of(row)->call->way]);
    c->role = ROLE_MUTED;
}

static void top_call_cell_pct(const void *row, struct table_cell *c) {
    top_put_share(c, top_call_of(row)->pct);
}
static void top_call_cell_time(const void *row, struct table_cell *c) {
    top_put_time(c, top_call_of(row)->call->us);
}
static void top_call_cell_func(const void *row, struct table_cell *c) {
    top_put_func(c, top_call_of(row)->call->frame);
}
static void top_call_cell_file(const void *row, struct table_cell *c) {
    top_put_file(c, top_call_of(row)->call->frame, top_call_of(row)->by_line);
}

/* Never sorted: sample_store_table_calls has the order. */
const struct table_column top_call_columns[] = {
    {"", "", {9, 0, 0}, GRID_LEFT, false, top_call_cell_way, NULL},
    {"%", "", {6, 0, 0}, GRID_RIGHT, true, top_call_cell_pct, NULL},
    {"TIME", "", {8, 0, 2}, GRID_RIGHT, true, top_call_cell_time, NULL},
    {"FUNCTION", "", {16, 4, 0}, GRID_LEFT, false, top_call_cell_func, NULL},
    {"FILE", "", {14, 5, 1}, GRID_TAIL, false, top_call_cell_file, NULL},
    {NULL, NULL, {0, 0, 0}, GRID_LEFT, false, NULL, NULL},
};
const int top_n_call_columns = (int)(sizeof top_call_columns / sizeof top_call_columns[0]) - 1;

/* ---- rows ---- */

bool top_matches(const struct model_frame *f, const struct match *m) {
    return match_text(m, f->func) || match_text(m, f->file);
}

void top_rows_fini(struct top_rows *r) {
    free(r->rows);
    free(r->order);
    memset(r, 0, sizeof *r);
}

uint64_t top_row_key(const struct sample_store_row *row, bool by_line) {
    return pick_frame_key(row->frame, by_line ? FLAME_BY_LINE : FLAME_BY_FUNCTION);
}

static bool top_passes(const struct top_filter *f, const struct sample_store_row *row, bool by_line) {
    bool is_left_out = f->tags && f->tags->only && !tags_has(f->tags, top_row_key(row, by_line));
    return !is_left_out && (!f->match->active || top_matches(row->frame, f->match) != f->match->negated);
}

void top_rows_build(struct top_rows *r, const struct sample_store_table *table,
                    const struct top_filter *filter, struct table_sort sort) {
    top_rows_fini(r);
    r->total = table->n;
    r->rows = calloc(table->n + 1, sizeof *r->rows);
    r->order = calloc(table->n + 1, sizeof *r->order);
    if (!r->rows || !r->order) {
        top_rows_fini(r);
        return;
    }
    for (size_t i = 0; i < table->n; i++) {
        const struct sample_store_row *row = &table->rows[i];
        double total = sample_store_table_share(table, row->total_us, row->total);
        if (total < filter->threshold || !top_passes(filter, row, table->query.by_line))
            continue;
        r->rows[r->n] = (struct top_row){.row = row,
                                         .own_pct = sample_store_table_share(table, row->own_us, row->own),
                                         .total_pct = total,
                                         .own_before = NAN,
                                         .total_before = NAN,
                                         .by_line = table->query.by_line};
        r->order[r->n] = &r->rows[r->n];
        r->n++;
    }
    table_sort_rows(top_columns, sort, r->order, r->n);
}

void top_rows_build_diff(struct top_rows *r, const struct sample_store_diff *diff, bool by_line,
                         const struct top_filter *filter, struct table_sort sort) {
    top_rows_fini(r);
    r->total = diff->n;
    r->rows = calloc(diff->n + 1, sizeof *r->rows);
    r->order = calloc(diff->n + 1, sizeof *r->order);
    if (!r->rows || !r->order) {
        top_rows_fini(r);
        return;
    }
    for (size_t i = 0; i < diff->n; i++) {
        const struct sample_store_diff_row *d = &diff->rows[i];
        bool is_small = d->total_pct < filter->threshold && d->total_before < filter->threshold;
        if (is_small || !top_passes(filter, &d->row, by_line))
            continue;
        r->rows[r->n] = (struct top_row){.row = &d->row,
                                         .own_pct = d->own_pct,
                                         .total_pct = d->total_pct,
                                         .own_before = d->own_before,
                                         .total_before = d->total_before,
                                         .by_line = by_line};
        r->order[r->n] = &r->rows[r->n];
        r->n++;
    }
    table_sort_rows(top_diff_columns, sort, r->order, r->n);
}

const struct top_row *top_rows_at(const struct top_rows *r, size_t i) {
    return i < r->n ? r->order[i] : NULL;
}

int top_rows_find(const struct top_rows *r, uint32_t id) {
    for (size_t i = 0; i < r->n; i++)
        if (top_rows_at(r, i)->row->id == id)
            return (int)i;
    return -1;
}

int top_rows_find_function(const struct top_rows *r, const struct model_frame *f) {
    for (size_t i = 0; i < r->n; i++) {
        const struct model_frame *own = top_rows_at(r, i)->row->frame;
        if (own->kind == f->kind && text_compare(own->func, f->func) == 0 &&
            text_compare(own->file, f->file) == 0)
            return (int)i;
    }
    return -1;
}

void top_put_row(struct strbuf *out, const struct top_row *row) {
    if (!row)
        return;
    strbuf_addf(out, "own %.1f%% total %.1f%% ", row->own_pct, row->total_pct);
    pick_put_frame(out, row->row->frame);
}
