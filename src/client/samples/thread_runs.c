/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_runs: see thread_runs.h. Ticks are a ring by their numbers; each has the sum of the
 * time up to it, so the time of a part of a run needs no walk. A lane's runs are an array, whose
 * front is freed from time to time, in all lanes together.
 */
#include "client/samples/thread_runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/table.h"

/* a run is no longer: old runs are dropped by their first tick */
#define THREAD_RUNS_RUN_TICKS 1024
#define THREAD_RUNS_SWEEP 2048    /* ticks between two rounds that drop old runs */
#define THREAD_RUNS_SET_BACK 256  /* so many late samples in a row: the clock was set back */
#define THREAD_RUNS_MAX_TIME 1e11 /* seconds since the epoch; later times are invalid */

struct thread_runs_tick {
    double time_s;
    double us_to_here; /* of all ticks, including this one */
};

struct thread_runs_lane {
    int64_t tid;
    struct thread_runs_run *runs; /* those from `start` on are valid */
    size_t start, end, cap;
};

struct thread_runs {
    struct thread_runs_tick *ticks; /* tick k is at k % max_ticks */
    size_t max_ticks, max_runs;
    uint32_t first, end;
    double us_before; /* of all ticks before the first */
    uint32_t swept;   /* `first` when old runs were last dropped */
    double forgotten_s;
    struct thread_runs_lane *lanes;
    size_t n_lanes, cap_lanes;
    struct table by_tid; /* lanes */
    size_t n_runs;
    uint64_t added; /* samples, since all was forgotten */
    uint64_t left_out, identity;
    unsigned too_late; /* in a row */
};

static struct thread_runs_tick *thread_runs_at(const struct thread_runs *t, uint32_t tick) {
    return &t->ticks[tick % t->max_ticks];
}

struct thread_runs *thread_runs_new(void) {
    return thread_runs_new_sized(THREAD_RUNS_TICKS, THREAD_RUNS_RUNS);
}

struct thread_runs *thread_runs_new_sized(size_t max_ticks, size_t max_runs) {
    struct thread_runs *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->max_ticks = max_ticks;
    t->max_runs = max_runs;
    t->ticks = calloc(max_ticks, sizeof *t->ticks);
    if (!t->ticks) {
        free(t);
        return NULL;
    }
    thread_runs_clear(t);
    return t;
}

void thread_runs_clear(struct thread_runs *t) {
    for (size_t i = 0; i < t->n_lanes; i++)
        free(t->lanes[i].runs);
    free(t->lanes);
    table_fini(&t->by_tid);
    *t = (struct thread_runs){.ticks = t->ticks,
                              .max_ticks = t->max_ticks,
                              .max_runs = t->max_runs,
                              .forgotten_s = NAN,
                              .left_out = t->left_out,
                              .identity = t->identity + 1};
}

void thread_runs_free(struct thread_runs *t) {
    if (!t)
        return;
    thread_runs_clear(t);
    free(t->ticks);
    free(t);
}

/* ---- lanes ---- */

/* Put all lanes into the table, which has room for them. */
static void thread_runs_index_lanes(struct thread_runs *t) {
    table_clear(&t->by_tid);
    for (size_t i = 0; i < t->n_lanes; i++)
        table_add(&t->by_tid, hash_mix((uint64_t)t->lanes[i].tid), (uint32_t)i);
}

long thread_runs_find_lane(const struct thread_runs *t, int64_t tid) {
    size_t at = TABLE_BEGIN;
    for (uint32_t i; (i = table_next(&t->by_tid, hash_mix((uint64_t)tid), &at)) != TABLE_NONE;)
        if (t->lanes[i].tid == tid)
            return (long)i;
    return -1;
}

/* Lane of a thread; a new one is added. NULL: without memory, or (`*is_full`) there are too
 * many. */
static struct thread_runs_lane *thread_runs_put_lane(struct thread_runs *t, int64_t tid, bool *is_full) {
    long at = thread_runs_find_lane(t, tid);
    *is_full = at < 0 && t->n_lanes == THREAD_RUNS_LANES;
    if (at >= 0)
        return &t->lanes[at];
    if (*is_full || grow_array(&t->lanes, sizeof *t->lanes, t->n_lanes + 1, &t->cap_lanes) != 0)
        return NULL;
    if (table_add(&t->by_tid, hash_mix((uint64_t)tid), (uint32_t)t->n_lanes) != 0)
        return NULL;
    t->lanes[t->n_lanes] = (struct thread_runs_lane){.tid = tid};
    return &t->lanes[t->n_lanes++];
}

/* ---- dropping old runs ---- */

/* Drop runs that ended before the first tick, and lanes that have no other runs. */
static void thread_runs_sweep(struct thread_runs *t) {
    size_t kept = 0;
    for (size_t i = 0; i < t->n_lanes; i++) {
        struct thread_runs_lane lane = t->lanes[i];
        size_t before = lane.start;
        while (lane.start < lane.end && lane.runs[lane.start].first + lane.runs[lane.start].n <= t->first)
            lane.start++;
        t->n_runs -= lane.start - before;
        if (lane.start == lane.end) {
            free(lane.runs);
            continue;
        }
        /* more free room than runs: they move to the front */
        if (lane.start > lane.end - lane.start) {
            memmove(lane.runs, lane.runs + lane.start, (lane.end - lane.start) * sizeof *lane.runs);
            lane.end -= lane.start;
            lane.start = 0;
        }
        t->lanes[kept++] = lane;
    }
    bool is_same = kept == t->n_lanes;
    t->n_lanes = kept;
    t->swept = t->first;
    if (!is_same)
        thread_runs_index_lanes(t);
}

static void thread_runs_forget_before(struct thread_runs *t, uint32_t tick) {
    t->forgotten_s = thread_runs_at(t, tick - 1)->time_s;
    t->us_before = thread_runs_at(t, tick - 1)->us_to_here;
    t->first = tick;
}

/* Make room for one more tick, and for one or two runs. */
static void thread_runs_reserve(struct thread_runs *t) {
    if (t->end - t->first >= t->max_ticks)
        thread_runs_forget_before(t, t->end - (uint32_t)t->max_ticks + 1);
    if (t->first - t->swept >= THREAD_RUNS_SWEEP)
        thread_runs_sweep(t);
    while (t->n_runs + 2 > t->max_runs && t->end - t->first > 1) { /* drop an eighth of the time */
        uint32_t n = (t->end - t->first + 7) / 8;
        thread_runs_forget_before(t, t->first + n);
        thread_runs_sweep(t);
    }
}

/* ---- ticks ---- */

uint32_t thread_runs_find_tick(const struct thread_runs *t, double time_s) {
    uint32_t from = t->first, to = t->end;
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        if (thread_runs_at(t, mid)->time_s < time_s)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* Make room for one more run in a lane. */
static int thread_runs_grow_lane(struct thread_runs_lane *lane) {
    return grow_array(&lane->runs, sizeof *lane->runs, lane->end + 1, &lane->cap);
}

/* The numbers of ticks from `tick` on grow by one: update a lane's runs; a run across that tick
 * becomes two. */
static void thread_runs_shift_lane(struct thread_runs *t, struct thread_runs_lane *lane, uint32_t tick) {
    size_t i = lane->end;
    for (; i > lane->start && lane->runs[i - 1].first >= tick; i--)
        lane->runs[i - 1].first++;
    if (i == lane->start || lane->runs[i - 1].first + lane->runs[i - 1].n <= tick)
        return;
    struct thread_runs_run *run = &lane->runs[i - 1];
    uint32_t before = tick - run->first;
    memmove(run + 1, run, (lane->end - (i - 1)) * sizeof *run);
    run[0].n = (uint16_t)before;
    run[1].first = tick + 1;
    run[1].n = (uint16_t)(run[1].n - before);
    lane->end++;
    t->n_runs++;
}

/* Insert a tick before later ones. */
static int thread_runs_insert_tick(struct thread_runs *t, uint32_t tick, double time_s, double us) {
    for (size_t i = 0; i < t->n_lanes; i++)
        if (thread_runs_grow_lane(&t->lanes[i]) != 0)
            return -1;
    for (uint32_t i = t->end; i > tick; i--) {
        *thread_runs_at(t, i) = *thread_runs_at(t, i - 1);
        thread_runs_at(t, i)->us_to_here += us;
    }
    double before = tick > t->first ? thread_runs_at(t, tick - 1)->us_to_here : t->us_before;
    *thread_runs_at(t, tick) = (struct thread_runs_tick){time_s, before + us};
    t->end++;
    for (size_t i = 0; i < t->n_lanes; i++)
        thread_runs_shift_lane(t, &t->lanes[i], tick);
    return 0;
}

static bool thread_runs_has_tick(const struct thread_runs *t, uint32_t tick, double time_s) {
    return tick < t->end && thread_runs_at(t, tick)->time_s == time_s;
}

/* Find the tick of a time, or make it: 1; 0 if it is too late for a new one; -1 without memory. */
static int thread_runs_put_tick(struct thread_runs *t, double time_s, double us, uint32_t *tick) {
    if (t->end > t->first && time_s > thread_runs_at(t, t->end - 1)->time_s)
        *tick = t->end;
    else
        *tick = thread_runs_has_tick(t, t->end - 1, time_s) ? t->end - 1 : thread_runs_find_tick(t, time_s);
    if (thread_runs_has_tick(t, *tick, time_s))
        return 1;
    if (t->end - *tick > THREAD_RUNS_LATE || (!isnan(t->forgotten_s) && time_s <= t->forgotten_s))
        return 0;
    if (*tick < t->end)
        return thread_runs_insert_tick(t, *tick, time_s, us) == 0 ? 1 : -1;
    double before = t->end > t->first ? thread_runs_at(t, t->end - 1)->us_to_here : t->us_before;
    *thread_runs_at(t, t->end++) = (struct thread_runs_tick){time_s, before + us};
    return 1;
}

/* ---- runs ---- */

static size_t thread_runs_search_run(const struct thread_runs_lane *lane, uint32_t tick) {
    size_t from = lane->start, to = lane->end;
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (lane->runs[mid].first + lane->runs[mid].n <= tick)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* Add one tick to a lane, before run `at`, which begins later. */
static int thread_runs_put_run(struct thread_runs *t, struct thread_runs_lane *lane, size_t at, uint32_t tick,
                               const struct thread_runs_sample *s) {
    struct thread_runs_run *before = at > lane->start ? &lane->runs[at - 1] : NULL;
    if (before && before->first + before->n == tick && before->entry == s->entry &&
        before->flags == s->flags && before->n < THREAD_RUNS_RUN_TICKS) {
        before->n++;
        return 0;
    }
    if (thread_runs_grow_lane(lane) != 0)
        return -1;
    memmove(&lane->runs[at + 1], &lane->runs[at], (lane->end - at) * sizeof *lane->runs);
    lane->runs[at] = (struct thread_runs_run){tick, s->entry, 1, s->flags};
    lane->end++;
    t->n_runs++;
    return 0;
}

/* Count a sample as left out. If the clock was set back, all samples would be: then start again,
 * without those before. */
static int thread_runs_leave_out(struct thread_runs *t, bool is_late) {
    t->left_out++;
    t->too_late = is_late ? t->too_late + 1 : 0;
    if (t->too_late >= THREAD_RUNS_SET_BACK) {
        t->left_out += t->added;
        thread_runs_clear(t);
    }
    return 0;
}

uint8_t thread_runs_flags(const struct model_sample *s) {
    return (uint8_t)((s->on_cpu == 1 ? THREAD_RUNS_ON_CPU : 0) |
                     (s->on_cpu != MODEL_UNKNOWN ? THREAD_RUNS_CPU_KNOWN : 0) |
                     (s->gil == MODEL_GIL_HOLDING ? THREAD_RUNS_GIL_HOLDING : 0) |
                     (s->gil == MODEL_GIL_WAITING ? THREAD_RUNS_GIL_WAITING : 0) |
                     (s->gil != MODEL_GIL_UNKNOWN ? THREAD_RUNS_GIL_KNOWN : 0) |
                     (s->gc == 1 ? THREAD_RUNS_GC : 0) | (s->gc != MODEL_UNKNOWN ? THREAD_RUNS_GC_KNOWN : 0));
}

int thread_runs_add(struct thread_runs *t, const struct thread_runs_sample *s) {
    bool is_full;
    uint32_t tick;
    if (!(s->time_s >= 0 && s->time_s < THREAD_RUNS_MAX_TIME))
        return thread_runs_leave_out(t, false);
    thread_runs_reserve(t);
    struct thread_runs_lane *lane = thread_runs_put_lane(t, s->tid, &is_full);
    if (!lane)
        return is_full ? thread_runs_leave_out(t, false) : -1;
    int rc = thread_runs_put_tick(t, s->time_s, s->us, &tick);
    if (rc <= 0)
        return rc < 0 ? -1 : thread_runs_leave_out(t, true);
    size_t at = lane->end;
    if (at > lane->start && lane->runs[at - 1].first + lane->runs[at - 1].n > tick)
        at = thread_runs_search_run(lane, tick);
    if (at < lane->end && (lane->runs[at].first <= tick || lane->end - at > THREAD_RUNS_LATE))
        return thread_runs_leave_out(t, false);
    t->too_late = 0;
    if (thread_runs_put_run(t, lane, at, tick, s) != 0)
        return -1;
    t->added++;
    return 1;
}

/* ---- reading ---- */

uint64_t thread_runs_left_out(const struct thread_runs *t) { return t->left_out; }

size_t thread_runs_bytes(const struct thread_runs *t) {
    size_t n = sizeof *t + t->max_ticks * sizeof *t->ticks + t->cap_lanes * sizeof *t->lanes +
               table_bytes(&t->by_tid);
    for (size_t i = 0; i < t->n_lanes; i++)
        n += t->lanes[i].cap * sizeof *t->lanes[i].runs;
    return n;
}

uint64_t thread_runs_identity(const struct thread_runs *t) { return t->identity; }

uint32_t thread_runs_first_tick(const struct thread_runs *t) { return t->first; }

uint32_t thread_runs_end_tick(const struct thread_runs *t) { return t->end; }

double thread_runs_tick_time(const struct thread_runs *t, uint32_t tick) {
    return thread_runs_at(t, tick)->time_s;
}

double thread_runs_tick_us(const struct thread_runs *t, uint32_t from, uint32_t to) {
    if (from >= to)
        return 0;
    return thread_runs_at(t, to - 1)->us_to_here -
           (from > t->first ? thread_runs_at(t, from - 1)->us_to_here : t->us_before);
}

double thread_runs_forgotten_s(const struct thread_runs *t) { return t->forgotten_s; }

size_t thread_runs_count_lanes(const struct thread_runs *t) { return t->n_lanes; }

int64_t thread_runs_lane_tid(const struct thread_runs *t, size_t lane) { return t->lanes[lane].tid; }

const struct thread_runs_run *thread_runs_runs(const struct thread_runs *t, size_t lane, size_t *n) {
    const struct thread_runs_lane *l = &t->lanes[lane];
    *n = l->end - l->start;
    return l->runs ? l->runs + l->start : NULL;
}

size_t thread_runs_find_run(const struct thread_runs *t, size_t lane, uint32_t tick) {
    return thread_runs_search_run(&t->lanes[lane], tick) - t->lanes[lane].start;
}

/* ---- a part of it ---- */

static uint32_t thread_runs_map(const uint32_t *map, size_t n, uint32_t entry) {
    return entry < n ? map[entry] : THREAD_RUNS_NO_ENTRY;
}

/* Copy the runs of a lane in ticks [from, to); `from` becomes number 0. */
static int thread_runs_trim_lane(struct thread_runs *out, const struct thread_runs_lane *lane, uint32_t from,
                                 uint32_t to, const uint32_t *map, size_t n) {
    bool is_full, is_empty = true;
    size_t first = thread_runs_search_run(lane, from);
    for (size_t i = first; is_empty && i < lane->end && lane->runs[i].first < to; i++)
        is_empty = thread_runs_map(map, n, lane->runs[i].entry) == THREAD_RUNS_NO_ENTRY;
    if (is_empty)
        return 0;
    struct thread_runs_lane *mine = thread_runs_put_lane(out, lane->tid, &is_full);
    for (size_t i = first; mine && i < lane->end && lane->runs[i].first < to; i++) {
        struct thread_runs_run run = lane->runs[i];
        uint32_t begin = run.first > from ? run.first : from, end = run.first + run.n;
        if (thread_runs_grow_lane(mine) != 0)
            return -1;
        run.first = begin - from;
        run.n = (uint16_t)((end < to ? end : to) - begin);
        run.entry = thread_runs_map(map, n, run.entry);
        mine->runs[mine->end++] = run;
        out->n_runs++;
    }
    return mine ? 0 : -1;
}

struct thread_runs *thread_runs_trim(const struct thread_runs *t, double from_s, double to_s,
                                     const uint32_t *map, size_t n) {
    uint32_t from = thread_runs_find_tick(t, from_s), to = thread_runs_find_tick(t, to_s);
    struct thread_runs *out = thread_runs_new_sized((to > from ? to - from : 0) + 2, t->max_runs);
    int rc = out ? 0 : -1;
    for (uint32_t i = from; rc == 0 && i < to; i++)
        *thread_runs_at(out, out->end++) =
            (struct thread_runs_tick){thread_runs_at(t, i)->time_s, thread_runs_tick_us(t, from, i + 1)};
    for (size_t i = 0; rc == 0 && i < t->n_lanes; i++)
        rc = thread_runs_trim_lane(out, &t->lanes[i], from, to, map, n);
    if (rc == 0) {
        if (!isnan(t->forgotten_s) && from_s <= t->forgotten_s)
            out->forgotten_s = t->forgotten_s;
        return out;
    }
    thread_runs_free(out);
    return NULL;
}
