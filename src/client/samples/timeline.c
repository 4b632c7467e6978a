/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline: see timeline.h. New cells go into a second array, and the two are swapped. The most
 * frequent function of a slice is counted in arrays by function and stack; a stamp marks the
 * counters of the current slice.
 */
#include "client/samples/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "client/samples/thread_runs.h"

/* a tick stands for the time up to the next one, limited to so many of its own periods */
#define TIMELINE_HOLE 2.0
/* of a column: larger than the rounding errors of times in this century */
#define TIMELINE_ROUND 1e-4
#define TIMELINE_IS_FINAL 1   /* no sample can be added to the column */
#define TIMELINE_IS_SAMPLED 2 /* a thread was sampled in it */

/* How often something was seen in the slice with this stamp. */
struct timeline_tick {
    uint32_t n, stamp;
};

struct timeline_cells {
    struct timeline_view view;
    struct timeline_lane *lanes;
    size_t n_lanes, cap_lanes;
    struct timeline_cell *cells; /* lane by lane */
    size_t cap_cells;
    struct timeline_share *shares; /* per column */
    size_t cap_shares;
    uint8_t *marks; /* per column: TIMELINE_IS_... */
    size_t cap_marks;
};

struct timeline {
    struct timeline_cells now, next;
    uint64_t ids, identity; /* of the store and its runs */
    long *moved;            /* per lane of `now`: its number in `next`; -1 none */
    size_t cap_moved;
    size_t left_out;
    int made;
    uint32_t stamp;
    struct timeline_tick *functions; /* per frame; the last is for no frame */
    size_t n_functions, cap_functions;
    struct timeline_tick *stacks; /* per stack, from 0 */
    size_t n_stacks, cap_stacks;
};

double timeline_begin(double column_s, int64_t column) {
    return column_s < 1 ? (double)column / round(1 / column_s) : (double)column * column_s;
}

int64_t timeline_column(double column_s, double time_s) {
    double columns = column_s < 1 ? time_s * round(1 / column_s) : time_s / column_s;
    return (int64_t)floor(columns + TIMELINE_ROUND);
}

static void timeline_free_cells(struct timeline_cells *c) {
    free(c->lanes);
    free(c->cells);
    free(c->shares);
    free(c->marks);
    memset(c, 0, sizeof *c);
}

struct timeline *timeline_new(void) {
    return calloc(1, sizeof(struct timeline));
}

void timeline_clear(struct timeline *t) {
    timeline_free_cells(&t->now);
    timeline_free_cells(&t->next);
    free(t->moved);
    free(t->functions);
    free(t->stacks);
    memset(t, 0, sizeof *t);
}

void timeline_free(struct timeline *t) {
    if (!t)
        return;
    timeline_clear(t);
    free(t);
}

/* ---- one cell ---- */

/* Ticks [from, to) of a lane, run by run. */
struct timeline_slice {
    const struct sample_store *store;
    const struct thread_runs_run *runs;
    size_t n;
    uint32_t from, to;
};

static uint32_t timeline_overlap(const struct timeline_slice *s, const struct thread_runs_run *run) {
    uint32_t from = run->first > s->from ? run->first : s->from, to = run->first + run->n;
    to = to < s->to ? to : s->to;
    return to > from ? to - from : 0;
}

/* Innermost function of an entry, and its stack. */
static uint32_t timeline_function(const struct timeline *t, const struct sample_store *store, uint32_t entry,
                                  uint32_t *stack) {
    uint32_t above;
    *stack = stack_counts_get(sample_store_counts(store), entry)->stack;
    if (t->next.view.hides_native)
        *stack = sample_store_python_stack(store, *stack);
    if (*stack == STACK_COUNTS_NO_STACK)
        return TIMELINE_NO_FRAME;
    return sample_store_function(store, stack_counts_stack_frame(sample_store_counts(store), *stack, &above));
}

/* Count one more tick; returns the number so far. */
static uint32_t timeline_tick(struct timeline_tick *tick, uint32_t stamp, uint32_t n) {
    tick->n = tick->stamp == stamp ? tick->n + n : n;
    tick->stamp = stamp;
    return tick->n;
}

/* Ticks with each of these states, and ticks in which the state is known. */
struct timeline_sums {
    uint32_t looks, readable, active;
    uint32_t cpu, cpu_known, gil, waiting, gil_known, gc, gc_known;
};

static bool timeline_is_active(enum timeline_time time, unsigned flags) {
    return time == TIMELINE_ALL_TIME ||
           (flags & (time == TIMELINE_ON_CPU ? THREAD_RUNS_ON_CPU : THREAD_RUNS_GIL_HOLDING)) != 0;
}

static void timeline_sum(const struct timeline_slice *s, enum timeline_time time,
                         struct timeline_sums *sums) {
    for (size_t i = 0; i < s->n && s->runs[i].first < s->to; i++) {
        uint32_t n = timeline_overlap(s, &s->runs[i]);
        unsigned f = s->runs[i].flags;
        sums->looks += n;
        sums->cpu += f & THREAD_RUNS_ON_CPU ? n : 0;
        sums->cpu_known += f & THREAD_RUNS_CPU_KNOWN ? n : 0;
        sums->gil += f & THREAD_RUNS_GIL_HOLDING ? n : 0;
        sums->waiting += f & THREAD_RUNS_GIL_WAITING ? n : 0;
        sums->gil_known += f & THREAD_RUNS_GIL_KNOWN ? n : 0;
        sums->gc += f & THREAD_RUNS_GC ? n : 0;
        sums->gc_known += f & THREAD_RUNS_GC_KNOWN ? n : 0;
        if (s->runs[i].entry == THREAD_RUNS_NO_ENTRY)
            continue;
        sums->readable += n;
        sums->active += timeline_is_active(time, f) ? n : 0;
    }
}

/* True if the run counts for the most frequent function. */
static bool timeline_counts(const struct thread_runs_run *run, enum timeline_time time, bool active) {
    return run->entry != THREAD_RUNS_NO_ENTRY && timeline_is_active(time, run->flags) == active;
}

static void timeline_find_most(struct timeline *t, const struct timeline_slice *s, enum timeline_time time,
                               bool active, struct timeline_cell *out) {
    uint32_t stamp = ++t->stamp, most = 0, stack;
    out->function = TIMELINE_NO_FRAME;
    for (size_t i = 0; i < s->n && s->runs[i].first < s->to; i++) {
        uint32_t n = timeline_overlap(s, &s->runs[i]);
        if (!n || !timeline_counts(&s->runs[i], time, active))
            continue;
        uint32_t f = timeline_function(t, s->store, s->runs[i].entry, &stack);
        size_t at = f == TIMELINE_NO_FRAME ? t->n_functions : f;
        uint32_t ticks = timeline_tick(&t->functions[at], stamp, n);
        timeline_tick(&t->stacks[stack], stamp, n);
        if (ticks > most) {
            most = ticks;
            out->function = f;
        }
    }
    most = 0;
    for (size_t i = 0; i < s->n && s->runs[i].first < s->to; i++) {
        if (!timeline_overlap(s, &s->runs[i]) || !timeline_counts(&s->runs[i], time, active) ||
            timeline_function(t, s->store, s->runs[i].entry, &stack) != out->function ||
            t->stacks[stack].n <= most)
            continue;
        most = t->stacks[stack].n;
        out->stack = stack;
    }
}

static uint8_t timeline_percent(uint32_t part, uint32_t whole) {
    return whole ? (uint8_t)((uint64_t)part * 100 / whole) : TIMELINE_UNKNOWN;
}

/* The cell of a lane for ticks [from, to); its sums are added to the totals. */
static struct timeline_cell timeline_make_cell(struct timeline *t, const struct sample_store *store,
                                               size_t lane, uint32_t from, uint32_t to,
                                               struct timeline_sums *all) {
    const struct thread_runs *runs = sample_store_runs(store);
    struct timeline_slice s = {.store = store, .from = from, .to = to};
    struct timeline_sums sums = {0};
    struct timeline_cell cell = {.function = TIMELINE_NO_FRAME, .state = TIMELINE_ABSENT};
    enum timeline_time time = t->next.view.time;
    s.runs = thread_runs_runs(runs, lane, &s.n);
    size_t at = thread_runs_find_run(runs, lane, from);
    s.runs += at;
    s.n -= at;
    timeline_sum(&s, time, &sums);
    all->gil += sums.gil;
    all->gil_known += sums.gil_known;
    all->gc += sums.gc;
    all->gc_known += sums.gc_known;
    cell.looks = sums.looks < UINT16_MAX ? (uint16_t)sums.looks : UINT16_MAX;
    cell.cpu = timeline_percent(sums.cpu, sums.cpu_known);
    cell.gil = timeline_percent(sums.gil, sums.gil_known);
    cell.waiting = timeline_percent(sums.waiting, sums.gil_known);
    cell.gc = timeline_percent(sums.gc, sums.gc_known);
    if (sums.looks)
        cell.state = TIMELINE_TORN;
    if (sums.readable) {
        bool active = 2 * sums.active >= sums.readable;
        cell.state = active ? TIMELINE_ACTIVE : TIMELINE_IDLE;
        timeline_find_most(t, &s, time, active, &cell);
    }
    return cell;
}

/* ---- columns ---- */

/* Ticks of a column: those in it, or the one that stands for its time. */
static void timeline_ticks(const struct thread_runs *runs, const struct timeline_view *v, int64_t column,
                           double until_s, uint32_t *from, uint32_t *to) {
    double begin = timeline_begin(v->column_s, column), end = timeline_begin(v->column_s, column + 1);
    uint32_t first = thread_runs_first_tick(runs);
    *from = thread_runs_find_tick(runs, begin);
    *to = thread_runs_find_tick(runs, fmin(end, nextafter(until_s, INFINITY)));
    if (*from < *to || *from == first)
        return;
    uint32_t before = *from - 1;
    double us = thread_runs_tick_us(runs, before, *from);
    if (begin <= until_s && thread_runs_tick_time(runs, before) + TIMELINE_HOLE * us / 1e6 >= end) {
        *to = *from;
        *from = before;
    }
}

static long timeline_find_lane(const struct timeline_cells *c, int64_t tid) {
    size_t from = 0, to = c->n_lanes;
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (c->lanes[mid].tid < tid)
            from = mid + 1;
        else
            to = mid;
    }
    return from < c->n_lanes && c->lanes[from].tid == tid ? (long)from : -1;
}

static struct timeline_cell *timeline_at(const struct timeline_cells *c, size_t lane, int col) {
    return &c->cells[lane * (size_t)c->view.cols + (size_t)col];
}

static void timeline_make_column(struct timeline *t, const struct sample_store *store, int col,
                                 double until_s) {
    const struct thread_runs *runs = sample_store_runs(store);
    struct timeline_cells *c = &t->next;
    struct timeline_sums all = {0};
    int64_t column = c->view.first + col;
    uint32_t from, to;
    timeline_ticks(runs, &c->view, column, until_s, &from, &to);
    c->shares[col] = (struct timeline_share){TIMELINE_UNKNOWN, TIMELINE_UNKNOWN};
    bool is_final = timeline_begin(c->view.column_s, column + 1) + TIMELINE_SETTLE_S < until_s;
    c->marks[col] = (uint8_t)((is_final ? TIMELINE_IS_FINAL : 0) | (from < to ? TIMELINE_IS_SAMPLED : 0));
    t->made++;
    /* unsampled */
    if (from >= to)
        return;
    for (size_t i = 0; i < thread_runs_count_lanes(runs); i++) {
        struct timeline_cell cell = timeline_make_cell(t, store, i, from, to, &all);
        long lane = timeline_find_lane(c, thread_runs_lane_tid(runs, i));
        if (lane >= 0)
            *timeline_at(c, (size_t)lane, col) = cell;
    }
    uint32_t gil = all.gil < to - from ? all.gil : to - from, gc = all.gc < to - from ? all.gc : to - from;
    c->shares[col].gil = timeline_percent(gil, all.gil_known ? to - from : 0);
    c->shares[col].gc = timeline_percent(gc, all.gc_known ? to - from : 0);
}

/* ---- updates ---- */

static int timeline_compare_lane(const void *a, const void *b) {
    const struct timeline_lane *x = a, *y = b;
    return (x->tid > y->tid) - (x->tid < y->tid);
}

/* List the known threads, and those that are still shown. */
static int timeline_list_lanes(struct timeline *t, const struct thread_runs *runs) {
    struct timeline_cells *c = &t->next;
    size_t n = 0, n_tracks = thread_runs_count_lanes(runs), most = n_tracks + t->now.n_lanes;
    if (grow_array(&c->lanes, sizeof *c->lanes, most + 1, &c->cap_lanes) != 0)
        return -1;
    for (size_t i = 0; i < n_tracks; i++)
        c->lanes[n++] = (struct timeline_lane){.tid = thread_runs_lane_tid(runs, i)};
    for (size_t i = 0; i < t->now.n_lanes; i++)
        if (t->now.lanes[i].seen && thread_runs_find_lane(runs, t->now.lanes[i].tid) < 0)
            c->lanes[n++] = (struct timeline_lane){.tid = t->now.lanes[i].tid};
    qsort(c->lanes, n, sizeof *c->lanes, timeline_compare_lane);
    c->n_lanes = n < TIMELINE_MAX_LANES ? n : TIMELINE_MAX_LANES;
    t->left_out = n - c->n_lanes;
    return 0;
}

static int timeline_grow(struct timeline *t, const struct sample_store *store) {
    struct timeline_cells *c = &t->next;
    size_t cols = (size_t)c->view.cols, n_functions = sample_store_count_frames(store),
           n_stacks = sample_store_count_stacks(store) + 1, cap = t->cap_functions;
    if (grow_array(&c->cells, sizeof *c->cells, c->n_lanes * cols + 1, &c->cap_cells) != 0 ||
        grow_array(&c->shares, sizeof *c->shares, cols, &c->cap_shares) != 0 ||
        grow_array(&c->marks, sizeof *c->marks, cols, &c->cap_marks) != 0 ||
        grow_array(&t->moved, sizeof *t->moved, t->now.n_lanes + 1, &t->cap_moved) != 0 ||
        grow_array(&t->functions, sizeof *t->functions, n_functions + 1, &t->cap_functions) != 0)
        return -1;
    memset(t->functions + cap, 0, (t->cap_functions - cap) * sizeof *t->functions);
    cap = t->cap_stacks;
    if (grow_array(&t->stacks, sizeof *t->stacks, n_stacks, &t->cap_stacks) != 0)
        return -1;
    memset(t->stacks + cap, 0, (t->cap_stacks - cap) * sizeof *t->stacks);
    t->n_functions = n_functions;
    memset(c->cells, 0, c->n_lanes * cols * sizeof *c->cells);
    return 0;
}

/* The current column that is equal and final; -1 if there is none. */
static int timeline_find_kept(const struct timeline *t, int col) {
    const struct timeline_view *a = &t->now.view, *b = &t->next.view;
    int64_t at = b->first + col - a->first;
    bool is_there = a->cols > 0 && a->column_s == b->column_s && a->time == b->time &&
                    a->hides_native == b->hides_native && at >= 0 && at < a->cols;
    return is_there && (t->now.marks[at] & TIMELINE_IS_FINAL) ? (int)at : -1;
}

/* Keep `n` consecutive columns. Threads that have appeared since are absent in them. */
static void timeline_keep_columns(struct timeline *t, int from, int col, int n) {
    struct timeline_cells *c = &t->next;
    memcpy(c->shares + col, t->now.shares + from, (size_t)n * sizeof *c->shares);
    memcpy(c->marks + col, t->now.marks + from, (size_t)n * sizeof *c->marks);
    for (size_t i = 0, old = 0; i < c->n_lanes; i++) {
        /* both are in the order of their threads */
        while (old < t->now.n_lanes && t->moved[old] < (long)i)
            old++;
        bool was_there = old < t->now.n_lanes && t->moved[old] == (long)i;
        if (was_there)
            memcpy(timeline_at(c, i, col), timeline_at(&t->now, old, from),
                   (size_t)n * sizeof(struct timeline_cell));
        for (int k = 0; !was_there && k < n; k++)
            if (c->marks[col + k] & TIMELINE_IS_SAMPLED)
                *timeline_at(c, i, col + k) =
                    (struct timeline_cell){.function = TIMELINE_NO_FRAME, .state = TIMELINE_ABSENT};
    }
}

static void timeline_make_columns(struct timeline *t, const struct sample_store *store, double until_s) {
    int cols = t->next.view.cols;
    for (size_t i = 0; i < t->now.n_lanes; i++)
        t->moved[i] = timeline_find_lane(&t->next, t->now.lanes[i].tid);
    for (int col = 0, n = 1; col < cols; col += n) {
        int kept = timeline_find_kept(t, col);
        for (n = 1; kept >= 0 && col + n < cols && timeline_find_kept(t, col + n) == kept + n; n++)
            ;
        if (kept >= 0)
            timeline_keep_columns(t, kept, col, n);
        else
            timeline_make_column(t, store, col, until_s);
    }
}

static void timeline_note_lanes(struct timeline_cells *c) {
    for (size_t i = 0; i < c->n_lanes; i++)
        for (int col = 0; col < c->view.cols; col++) {
            const struct timeline_cell *cell = timeline_at(c, i, col);
            c->lanes[i].seen |= cell->state >= TIMELINE_TORN;
            c->lanes[i].ran |= cell->looks && cell->cpu && cell->cpu != TIMELINE_UNKNOWN;
        }
}

int timeline_update(struct timeline *t, const struct sample_store *store, const struct timeline_view *view) {
    const struct thread_runs *runs = sample_store_runs(store);
    double until_s = sample_store_newest_tick_s(store);
    if (t->ids != sample_store_get_mark(store).ids || t->identity != thread_runs_identity(runs))
        timeline_clear(t);
    t->ids = sample_store_get_mark(store).ids;
    t->identity = thread_runs_identity(runs);
    t->next.view = *view;
    t->made = 0;
    if (timeline_list_lanes(t, runs) != 0 || timeline_grow(t, store) != 0) {
        timeline_clear(t);
        return -1;
    }
    timeline_make_columns(t, store, isnan(until_s) ? -INFINITY : until_s);
    timeline_note_lanes(&t->next);
    struct timeline_cells made = t->next;
    t->next = t->now;
    t->now = made;
    return 0;
}

/* ---- reading ---- */

size_t timeline_count_lanes(const struct timeline *t) { return t->now.n_lanes; }

size_t timeline_left_out(const struct timeline *t) { return t->left_out; }

const struct timeline_lane *timeline_lane(const struct timeline *t, size_t lane) {
    return &t->now.lanes[lane];
}

const struct timeline_cell *timeline_cell(const struct timeline *t, size_t lane, int col) {
    return timeline_at(&t->now, lane, col);
}

struct timeline_share timeline_share(const struct timeline *t, int col) {
    return t->now.shares[col];
}

int timeline_computed(const struct timeline *t) { return t->made; }
