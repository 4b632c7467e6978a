/* SPDX-License-Identifier: Apache-2.0 */
/* threads_rows: see threads_rows.h. */
#include "tui/screens/threads/threads_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/model_text.h"
#include "base/text.h"

const char *thread_base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static const struct model_thread *thread_of(const void *row) {
    return ((const struct thread_row *)row)->thread;
}

const struct model_frame *thread_top(const struct model_thread *t) {
    return t->n_frames ? &t->frames[0] : NULL;
}

/* ---- columns ---- */

static void thread_cell_tid(const void *row, struct table_cell *c) {
    snprintf(c->text, sizeof c->text, "%lld", (long long)thread_of(row)->tid);
    c->role = ROLE_MUTED;
}

static int thread_compare_tid(const void *a, const void *b) {
    int64_t x = thread_of(a)->tid, y = thread_of(b)->tid;
    return (x > y) - (x < y);
}

static void thread_cell_name(const void *row, struct table_cell *c) {
    const struct model_thread *t = thread_of(row);
    snprintf(c->text, sizeof c->text, "%s%s", ((const struct thread_row *)row)->branch, data_thread_name(t));
    c->role = t->has_python ? ROLE_TEXT : ROLE_MUTED;
}

static int thread_compare_name(const void *a, const void *b) {
    return text_compare(data_thread_name(thread_of(a)), data_thread_name(thread_of(b)));
}

static void thread_cell_state(const void *row, struct table_cell *c) {
    const struct model_thread *t = thread_of(row);
    snprintf(c->text, sizeof c->text, "%c%s", t->state, t->torn ? "!" : "");
    c->role = t->state == 'R'                        ? ROLE_STATE_RUN
              : t->state == 'S' || t->state == 'I'   ? ROLE_STATE_SLEEP
              : t->state == 'D'                      ? ROLE_STATE_DISK
              : t->state && strchr("TtZX", t->state) ? ROLE_STATE_STOP
                                                     : ROLE_MUTED;
}

static int thread_compare_state(const void *a, const void *b) {
    return thread_of(a)->state - thread_of(b)->state;
}

static void thread_cell_gil(const void *row, struct table_cell *c) {
    if (((const struct thread_row *)row)->no_gil) {
        snprintf(c->text, sizeof c->text, "%s", thread_of(row)->has_python ? "none" : "");
        c->role = ROLE_MUTED;
        return;
    }
    switch (thread_of(row)->gil) {
    case MODEL_GIL_HOLDING:
        snprintf(c->text, sizeof c->text, "%s", thread_of(row)->gc == 1 ? "GC" : "held");
        c->role = ROLE_GIL_HELD;
        break;
    case MODEL_GIL_WAITING:
        snprintf(c->text, sizeof c->text, "wait");
        c->role = ROLE_GIL_WAITING;
        break;
    case MODEL_GIL_NONE:
        c->text[0] = '\0';
        break;
    case MODEL_GIL_UNKNOWN:
        snprintf(c->text, sizeof c->text, "%s", thread_of(row)->has_python ? "?" : "");
        c->role = ROLE_MUTED;
        break;
    }
}

static int thread_compare_gil(const void *a, const void *b) {
    return (int)thread_of(a)->gil - (int)thread_of(b)->gil;
}

static void thread_put_time(struct table_cell *c, double s) {
    if (s < 60)
        snprintf(c->text, sizeof c->text, "%.1fs", s);
    else
        text_human_duration(c->text, sizeof c->text, s);
}

/* How long it has waited for the GIL or held it; NAN: neither, or unknown. */
static double thread_gil_for(const void *row) {
    const struct model_thread *t = thread_of(row);
    bool has = t->gil == MODEL_GIL_WAITING || t->gil == MODEL_GIL_HOLDING;
    return has && t->gil_for_us > 0 ? t->gil_for_us / 1e6 : NAN;
}

static void thread_cell_gil_for(const void *row, struct table_cell *c) {
    double s = thread_gil_for(row);
    c->role = thread_of(row)->gil == MODEL_GIL_WAITING ? ROLE_GIL_WAITING : ROLE_MUTED;
    if (!isnan(s))
        thread_put_time(c, s);
}

static int thread_compare_gil_for(const void *a, const void *b) {
    return table_compare_number(thread_gil_for(a), thread_gil_for(b));
}

static void thread_cell_share(const void *row, double v, struct table_cell *c) {
    c->role = isnan(v) || v < 0.5 ? ROLE_MUTED : ROLE_TEXT;
    if (((const struct thread_row *)row)->no_gil)
        c->text[0] = '\0';
    else if (isnan(v))
        snprintf(c->text, sizeof c->text, "%s", thread_of(row)->has_python ? "?" : "");
    else
        snprintf(c->text, sizeof c->text, "%.0f", v);
}

static void thread_cell_gil_pct(const void *row, struct table_cell *c) {
    thread_cell_share(row, ((const struct thread_row *)row)->gil_pct, c);
}

static int thread_compare_gil_pct(const void *a, const void *b) {
    return table_compare_number(((const struct thread_row *)a)->gil_pct,
                                ((const struct thread_row *)b)->gil_pct);
}

static void thread_cell_wait_pct(const void *row, struct table_cell *c) {
    thread_cell_share(row, ((const struct thread_row *)row)->wait_pct, c);
}

static int thread_compare_wait_pct(const void *a, const void *b) {
    return table_compare_number(((const struct thread_row *)a)->wait_pct,
                                ((const struct thread_row *)b)->wait_pct);
}

static void thread_cell_cpu(const void *row, struct table_cell *c) {
    double v = thread_of(row)->cpu_pct;
    if (isnan(v)) {
        snprintf(c->text, sizeof c->text, "?");
        c->role = ROLE_MUTED;
        return;
    }
    snprintf(c->text, sizeof c->text, "%.*f", v < 999.95 ? 1 : 0, v);
    c->role = v < 1 ? ROLE_CPU_LOW : v < 60 ? ROLE_CPU_MID : ROLE_CPU_HIGH;
}

static int thread_compare_cpu(const void *a, const void *b) {
    return table_compare_number(thread_of(a)->cpu_pct, thread_of(b)->cpu_pct);
}

static void thread_cell_age(const void *row, struct table_cell *c) {
    double age = ((const struct thread_row *)row)->age_s;
    c->role = ROLE_MUTED;
    if (isnan(age))
        snprintf(c->text, sizeof c->text, "%s", thread_of(row)->n_frames ? "?" : "");
    else
        thread_put_time(c, age);
}

static int thread_compare_age(const void *a, const void *b) {
    return table_compare_number(((const struct thread_row *)a)->age_s, ((const struct thread_row *)b)->age_s);
}

static void thread_cell_func(const void *row, struct table_cell *c) {
    const struct model_thread *t = thread_of(row);
    const struct model_frame *f = thread_top(t);
    c->role = ROLE_MUTED;
    if (!f) {
        const struct data_child *child = ((const struct thread_row *)row)->child;
        snprintf(c->text, sizeof c->text, "%s",
                 child && child->why.code ? "(not readable)"
                 : t->has_python          ? "(no frame)"
                                          : "(no Python)");
        return;
    }
    snprintf(c->text, sizeof c->text, "%s", f->func ? f->func : "?");
    c->role = data_frame_role(f);
}

static int thread_compare_func(const void *a, const void *b) {
    const struct model_frame *x = thread_top(thread_of(a)), *y = thread_top(thread_of(b));
    return text_compare(x ? x->func : NULL, y ? y->func : NULL);
}

static void thread_cell_file(const void *row, struct table_cell *c) {
    const struct model_frame *f = thread_top(thread_of(row));
    c->role = ROLE_FILE;
    if (!f)
        c->text[0] = '\0';
    else if (f->line > 0)
        snprintf(c->text, sizeof c->text, "%s:%d", f->file ? thread_base_name(f->file) : "?", f->line);
    else
        snprintf(c->text, sizeof c->text, "%s:?", f->file ? thread_base_name(f->file) : "?");
}

static int thread_compare_file(const void *a, const void *b) {
    const struct model_frame *x = thread_top(thread_of(a)), *y = thread_top(thread_of(b));
    int order = text_compare(x ? x->file : NULL, y ? y->file : NULL);
    return order ? order : (x ? x->line : 0) - (y ? y->line : 0);
}

void thread_put_wait(const struct thread_row *row, bool brief, char *buf, size_t cap) {
    struct strbuf text;
    strbuf_init(&text, cap - 1);
    model_text_put_wait(&text, row->snapshot, row->thread, brief);
    snprintf(buf, cap, "%s", strbuf_str(&text));
    strbuf_fini(&text);
}

static void thread_cell_wait(const void *row, struct table_cell *c) {
    const struct model_wait *w = &thread_of(row)->wait;
    thread_put_wait(row, true, c->text, sizeof c->text);
    c->role = w->flags & MODEL_WAIT_DEADLOCK ? ROLE_STATE_STOP
              : w->kind == MODEL_WAIT_GIL    ? ROLE_GIL_WAITING
                                             : ROLE_MUTED;
}

static int thread_compare_wait(const void *a, const void *b) {
    const struct model_wait *x = &thread_of(a)->wait, *y = &thread_of(b)->wait;
    return x->kind != y->kind ? (int)x->kind - (int)y->kind : text_compare(x->what, y->what);
}

#define CPU_COLUMN 7

const struct table_column thread_columns[] = {
    {"TID",
     "id of the thread, as the target sees it",
     {7, 0, 2},
     GRID_RIGHT,
     false,
     thread_cell_tid,
     thread_compare_tid},
    {"NAME",
     "Python's name of the thread, else the kernel's",
     {14, 2, 0},
     GRID_LEFT,
     false,
     thread_cell_name,
     thread_compare_name},
    {"S",
     "R runs, S sleeps, D waits for a device, T stopped, Z zombie; ! the stack moved while it was read",
     {2, 0, 0},
     GRID_LEFT,
     false,
     thread_cell_state,
     thread_compare_state},
    {"GIL",
     "held, wait (for it), GC (held, and collecting garbage), or neither; none: no GIL; ? unknown",
     {4, 0, 1},
     GRID_LEFT,
     true,
     thread_cell_gil,
     thread_compare_gil},
    {"FOR",
     "the least time that it has waited for the GIL, or held it",
     {6, 0, 6},
     GRID_RIGHT,
     true,
     thread_cell_gil_for,
     thread_compare_gil_for},
    {"GIL%",
     "share of the newest snapshots in which it held the GIL",
     {5, 0, 7},
     GRID_RIGHT,
     true,
     thread_cell_gil_pct,
     thread_compare_gil_pct},
    {"WAIT%",
     "share of the newest snapshots in which it waited for the GIL",
     {6, 0, 8},
     GRID_RIGHT,
     true,
     thread_cell_wait_pct,
     thread_compare_wait_pct},
    [CPU_COLUMN] = {"CPU%",
                    "of one core, over the last second or two",
                    {5, 0, 0},
                    GRID_RIGHT,
                    true,
                    thread_cell_cpu,
                    thread_compare_cpu},
    {"SAME",
     "how long every snapshot and sample has found the same stack",
     {6, 0, 5},
     GRID_RIGHT,
     true,
     thread_cell_age,
     thread_compare_age},
    {"FUNCTION",
     "the innermost Python function",
     {16, 4, 0},
     GRID_LEFT,
     false,
     thread_cell_func,
     thread_compare_func},
    {"FILE:LINE", "where in it, now", {14, 4, 3}, GRID_TAIL, false, thread_cell_file, thread_compare_file},
    {"WAITS FOR",
     "what it waits for, with the holder in brackets; in wide windows and above the stack",
     {19, 6, 4},
     GRID_LEFT,
     false,
     thread_cell_wait,
     thread_compare_wait},
    {NULL, NULL, {0, 0, 0}, GRID_LEFT, false, NULL, NULL},
};
const int thread_n_columns = (int)(sizeof thread_columns / sizeof thread_columns[0]) - 1;

int thread_column_cpu(void) { return CPU_COLUMN; }

/* ---- rows ---- */

bool thread_matches(const struct model_thread *t, const struct match *m) {
    char tid[24];
    snprintf(tid, sizeof tid, "%lld", (long long)t->tid);
    if (match_text(m, t->name) || match_text(m, t->native_name) || match_text(m, tid))
        return true;
    for (size_t i = 0; i < t->n_frames; i++)
        if (match_text(m, t->frames[i].func) || match_text(m, t->frames[i].file))
            return true;
    return false;
}

bool thread_is_idle(const struct model_thread *t) { return t->on_cpu == 0 && t->gil != MODEL_GIL_HOLDING; }

static int64_t thread_key(const struct model_thread *t, const struct data_child *child) {
    return child ? (int64_t)child->pid << 32 | t->tid : t->tid;
}

static bool thread_is_shown(const struct model_thread *t, const struct data_child *child,
                            const struct thread_filter *f) {
    if (f->tags && !tags_shows(f->tags, (uint64_t)thread_key(t, child)))
        return false;
    if ((f->hide_idle && thread_is_idle(t)) || (f->hide_native && !t->has_python))
        return false;
    return !f->match || !f->match->active || thread_matches(t, f->match) != f->match->negated;
}

void thread_rows_fini(struct thread_rows *r) {
    free(r->rows);
    free(r->child_rows);
    free(r->other_rows);
    free(r->order);
    memset(r, 0, sizeof *r);
}

void thread_rows_build(struct thread_rows *r, const struct data_shot *shot,
                       const struct thread_filter *filter, struct table_sort sort) {
    thread_rows_fini(r);
    if (!shot)
        return;
    size_t n = shot->snapshot.n_threads;
    r->total = n;
    r->rows = calloc(n + 1, sizeof *r->rows);
    r->order = calloc(n + 1, sizeof *r->order);
    if (!r->rows || !r->order) {
        thread_rows_fini(r);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const struct model_thread *t = &shot->snapshot.threads[i];
        if (!thread_is_shown(t, NULL, filter))
            continue;
        struct thread_row *row = &r->rows[r->n];
        *row = (struct thread_row){.thread = t,
                                   .snapshot = &shot->snapshot,
                                   .age_s = data_stack_age(shot, i),
                                   .no_gil = shot->snapshot.gil_enabled == 0};
        data_gil_share(shot, i, &row->gil_pct, &row->wait_pct);
        r->order[r->n] = &r->rows[r->n];
        r->n++;
    }
    table_sort_rows(thread_columns, sort, r->order, r->n);
}

const struct thread_row *thread_rows_at(const struct thread_rows *r, size_t i) {
    return i < r->n ? r->order[i] : NULL;
}

int64_t thread_row_key(const struct thread_row *row) { return thread_key(row->thread, row->child); }

int thread_rows_find(const struct thread_rows *r, int64_t key) {
    for (size_t i = 0; i < r->n; i++)
        if (thread_row_key(thread_rows_at(r, i)) == key)
            return (int)i;
    return -1;
}

/* The threads of one child, after the existing ones; `*free_rows` is free room. */
static void thread_rows_add_child(struct thread_rows *r, struct thread_row **free_rows,
                                  const struct data_child *child, const struct thread_filter *filter,
                                  struct table_sort sort, bool ascii) {
    size_t first = r->n;
    r->total += child->shot.snapshot.n_threads;
    for (size_t i = 0; i < child->shot.snapshot.n_threads; i++) {
        const struct model_thread *t = &child->shot.snapshot.threads[i];
        if (!thread_is_shown(t, child, filter))
            continue;
        struct thread_row *row = (*free_rows)++;
        *row = (struct thread_row){.thread = t,
                                   .snapshot = &child->shot.snapshot,
                                   .age_s = data_stack_age(&child->shot, i),
                                   .no_gil = child->shot.snapshot.gil_enabled == 0,
                                   .child = child};
        data_gil_share(&child->shot, i, &row->gil_pct, &row->wait_pct);
        r->order[r->n++] = row;
    }
    table_sort_rows(thread_columns, sort, r->order + first, r->n - first);
    for (size_t i = first; i < r->n; i++) {
        char *branch = ((struct thread_row *)(uintptr_t)r->order[i])->branch;
        if (i == first)
            target_tree_prefix(&child->tree, ascii, branch);
        else
            target_tree_indent(&child->tree, ascii, branch);
    }
}

/* The threads of all of them, in memory that the caller keeps. */
static struct thread_row *thread_rows_add_all(struct thread_rows *r, const struct data_children *children,
                                              const struct thread_filter *filter, struct table_sort sort,
                                              bool ascii) {
    size_t n = 0;
    for (size_t i = 0; i < children->n; i++)
        n += children->items[i].shot.snapshot.n_threads;
    if (!r->order || n == 0)
        return NULL;
    const void **order = realloc(r->order, (r->n + n + 1) * sizeof *order);
    r->order = order ? order : r->order;
    struct thread_row *rows = calloc(n, sizeof *rows), *free_rows = rows;
    for (size_t i = 0; order && rows && i < children->n; i++)
        thread_rows_add_child(r, &free_rows, &children->items[i], filter, sort, ascii);
    return rows;
}

void thread_rows_add_children(struct thread_rows *r, const struct data_children *children,
                              const struct thread_filter *filter, struct table_sort sort, bool ascii) {
    r->child_rows = thread_rows_add_all(r, children, filter, sort, ascii);
}

void thread_rows_add_others(struct thread_rows *r, const struct data_children *others,
                            const struct thread_filter *filter, struct table_sort sort, bool ascii) {
    r->other_rows = thread_rows_add_all(r, others, filter, sort, ascii);
}
