/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tracks: see tracks.h. Looks are a ring by their numbers; each has the sum of the time up to it, so that a part of a run
 * needs no walk. A lane's runs are an array of which the front is given up now and then, all lanes together.
 */
#include "client/tracks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define TRACKS_RUN_LOOKS 1024 /* a run is no longer: old ones go by their beginning */
#define TRACKS_SWEEP 2048     /* looks between two rounds in which old runs are given up */
#define TRACKS_SET_BACK 256   /* so many in a row that are too late: the clock was set back */
#define TRACKS_MAX_TIME 1e11  /* seconds since the epoch; what is later is nonsense */

struct tracks_look {
    double time_s;
    double us_to_here; /* of all looks, this one too */
};

struct tracks_lane {
    int64_t tid;
    struct tracks_run *runs; /* of which those from `start` are there */
    size_t start, end, cap;
};

struct tracks {
    struct tracks_look *looks; /* look k is at k % max_looks */
    size_t max_looks, max_runs;
    uint32_t first, end;
    double us_before; /* of all looks before the first */
    uint32_t swept;   /* `first` when old runs were last given up */
    double forgotten_s;
    struct tracks_lane *lanes;
    size_t n_lanes, cap_lanes;
    uint32_t *slots; /* open addressing: 1 + lane by its tid; 0 free */
    size_t n_slots;
    size_t n_runs;
    uint64_t left_out, identity;
    unsigned too_late; /* in a row */
};

static struct tracks_look *tracks_at(const struct tracks *t, uint32_t look) {
    return &t->looks[look % t->max_looks];
}

struct tracks *tracks_new(void) {
    return tracks_new_sized(TRACKS_LOOKS, TRACKS_RUNS);
}

struct tracks *tracks_new_sized(size_t max_looks, size_t max_runs) {
    struct tracks *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->max_looks = max_looks;
    t->max_runs = max_runs;
    t->looks = calloc(max_looks, sizeof *t->looks);
    if (!t->looks) {
        free(t);
        return NULL;
    }
    tracks_clear(t);
    return t;
}

void tracks_clear(struct tracks *t) {
    for (size_t i = 0; i < t->n_lanes; i++)
        free(t->lanes[i].runs);
    free(t->lanes);
    free(t->slots);
    *t = (struct tracks){.looks = t->looks,
                         .max_looks = t->max_looks,
                         .max_runs = t->max_runs,
                         .forgotten_s = NAN,
                         .left_out = t->left_out,
                         .identity = t->identity + 1};
}

void tracks_free(struct tracks *t) {
    if (!t)
        return;
    tracks_clear(t);
    free(t->looks);
    free(t);
}

/* ---- lanes ---- */

static uint32_t *tracks_slot(const struct tracks *t, int64_t tid) {
    uint64_t h = (uint64_t)tid * 0x9E3779B97F4A7C15ULL;
    for (uint64_t i = h ^ (h >> 29);; i++) {
        uint32_t *slot = &t->slots[i & (t->n_slots - 1)];
        if (!*slot || t->lanes[*slot - 1].tid == tid)
            return slot;
    }
}

/* All lanes into the index, which has room for one more. */
static int tracks_index_lanes(struct tracks *t) {
    size_t n_slots = t->n_slots ? t->n_slots : 64;
    while (n_slots < 2 * (t->n_lanes + 1))
        n_slots *= 2;
    if (n_slots != t->n_slots) {
        uint32_t *slots = calloc(n_slots, sizeof *slots);
        if (!slots)
            return -1;
        free(t->slots);
        t->slots = slots;
        t->n_slots = n_slots;
    } else
        memset(t->slots, 0, n_slots * sizeof *t->slots);
    for (size_t i = 0; i < t->n_lanes; i++)
        *tracks_slot(t, t->lanes[i].tid) = (uint32_t)i + 1;
    return 0;
}

long tracks_find_lane(const struct tracks *t, int64_t tid) {
    return t->n_slots ? (long)*tracks_slot(t, tid) - 1 : -1;
}

/* Lane of a thread, made when it is new. NULL: no memory, or (`*is_full`) there are too many. */
static struct tracks_lane *tracks_put_lane(struct tracks *t, int64_t tid, bool *is_full) {
    long at = tracks_find_lane(t, tid);
    *is_full = at < 0 && t->n_lanes == TRACKS_LANES;
    if (at >= 0)
        return &t->lanes[at];
    if (*is_full || grow_array(&t->lanes, sizeof *t->lanes, t->n_lanes + 1, &t->cap_lanes) != 0)
        return NULL;
    if (2 * (t->n_lanes + 1) > t->n_slots && tracks_index_lanes(t) != 0)
        return NULL;
    t->lanes[t->n_lanes] = (struct tracks_lane){.tid = tid};
    *tracks_slot(t, tid) = (uint32_t)t->n_lanes + 1;
    return &t->lanes[t->n_lanes++];
}

/* ---- what is old ---- */

/* Runs that ended before the first look are given up, and lanes that have no other. */
static void tracks_sweep(struct tracks *t) {
    size_t kept = 0;
    for (size_t i = 0; i < t->n_lanes; i++) {
        struct tracks_lane lane = t->lanes[i];
        size_t before = lane.start;
        while (lane.start < lane.end && lane.runs[lane.start].first + lane.runs[lane.start].n <= t->first)
            lane.start++;
        t->n_runs -= lane.start - before;
        if (lane.start == lane.end) {
            free(lane.runs);
            continue;
        }
        if (lane.start > lane.end - lane.start) { /* more room than runs: they move to the front */
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
        (void)tracks_index_lanes(t); /* fewer than before: it needs no memory */
}

static void tracks_forget_before(struct tracks *t, uint32_t look) {
    t->forgotten_s = tracks_at(t, look - 1)->time_s;
    t->us_before = tracks_at(t, look - 1)->us_to_here;
    t->first = look;
}

/* Room for one look more, and for a run or two. */
static void tracks_make_room(struct tracks *t) {
    if (t->end - t->first >= t->max_looks)
        tracks_forget_before(t, t->end - (uint32_t)t->max_looks + 1);
    if (t->first - t->swept >= TRACKS_SWEEP)
        tracks_sweep(t);
    while (t->n_runs + 2 > t->max_runs && t->end - t->first > 1) { /* an eighth of the time goes */
        uint32_t n = (t->end - t->first + 7) / 8;
        tracks_forget_before(t, t->first + n);
        tracks_sweep(t);
    }
}

/* ---- looks ---- */

uint32_t tracks_find_look(const struct tracks *t, double time_s) {
    uint32_t from = t->first, to = t->end;
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        if (tracks_at(t, mid)->time_s < time_s)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* Room for one run more in a lane. */
static int tracks_grow_lane(struct tracks_lane *lane) {
    return grow_array(&lane->runs, sizeof *lane->runs, lane->end + 1, &lane->cap);
}

/* Looks from `look` on have a greater number by one: so do those of a lane's runs; one that spans it becomes two. */
static void tracks_shift_lane(struct tracks *t, struct tracks_lane *lane, uint32_t look) {
    size_t i = lane->end;
    for (; i > lane->start && lane->runs[i - 1].first >= look; i--)
        lane->runs[i - 1].first++;
    if (i == lane->start || lane->runs[i - 1].first + lane->runs[i - 1].n <= look)
        return;
    struct tracks_run *run = &lane->runs[i - 1];
    uint32_t before = look - run->first;
    memmove(run + 1, run, (lane->end - (i - 1)) * sizeof *run);
    run[0].n = (uint16_t)before;
    run[1].first = look + 1;
    run[1].n = (uint16_t)(run[1].n - before);
    lane->end++;
    t->n_runs++;
}

/* A look that comes after later ones. */
static int tracks_insert_look(struct tracks *t, uint32_t look, double time_s, double us) {
    for (size_t i = 0; i < t->n_lanes; i++)
        if (tracks_grow_lane(&t->lanes[i]) != 0)
            return -1;
    for (uint32_t i = t->end; i > look; i--) {
        *tracks_at(t, i) = *tracks_at(t, i - 1);
        tracks_at(t, i)->us_to_here += us;
    }
    double before = look > t->first ? tracks_at(t, look - 1)->us_to_here : t->us_before;
    *tracks_at(t, look) = (struct tracks_look){time_s, before + us};
    t->end++;
    for (size_t i = 0; i < t->n_lanes; i++)
        tracks_shift_lane(t, &t->lanes[i], look);
    return 0;
}

static bool tracks_has_look(const struct tracks *t, uint32_t look, double time_s) {
    return look < t->end && tracks_at(t, look)->time_s == time_s;
}

/* The look of a time, made when it is new: 1; 0 it is too late for one; -1 without memory. */
static int tracks_put_look(struct tracks *t, double time_s, double us, uint32_t *look) {
    if (t->end > t->first && time_s > tracks_at(t, t->end - 1)->time_s)
        *look = t->end;
    else
        *look = tracks_has_look(t, t->end - 1, time_s) ? t->end - 1 : tracks_find_look(t, time_s);
    if (tracks_has_look(t, *look, time_s))
        return 1;
    if (t->end - *look > TRACKS_LATE || (!isnan(t->forgotten_s) && time_s <= t->forgotten_s))
        return 0;
    if (*look < t->end)
        return tracks_insert_look(t, *look, time_s, us) == 0 ? 1 : -1;
    double before = t->end > t->first ? tracks_at(t, t->end - 1)->us_to_here : t->us_before;
    *tracks_at(t, t->end++) = (struct tracks_look){time_s, before + us};
    return 1;
}

/* ---- runs ---- */

static size_t tracks_search_run(const struct tracks_lane *lane, uint32_t look) {
    size_t from = lane->start, to = lane->end;
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (lane->runs[mid].first + lane->runs[mid].n <= look)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* One look more in a lane, before run `at`, which begins later. */
static int tracks_put_run(struct tracks *t, struct tracks_lane *lane, size_t at, uint32_t look,
                          const struct tracks_sample *s) {
    struct tracks_run *before = at > lane->start ? &lane->runs[at - 1] : NULL;
    if (before && before->first + before->n == look && before->entry == s->entry &&
        before->flags == s->flags && before->n < TRACKS_RUN_LOOKS) {
        before->n++;
        return 0;
    }
    if (tracks_grow_lane(lane) != 0)
        return -1;
    memmove(&lane->runs[at + 1], &lane->runs[at], (lane->end - at) * sizeof *lane->runs);
    lane->runs[at] = (struct tracks_run){look, s->entry, 1, s->flags};
    lane->end++;
    t->n_runs++;
    return 0;
}

/* Left out; when the clock was set back, all that comes would be. */
static int tracks_leave_out(struct tracks *t, bool is_late) {
    t->left_out++;
    t->too_late = is_late ? t->too_late + 1 : 0;
    if (t->too_late >= TRACKS_SET_BACK)
        tracks_clear(t);
    return 0;
}

uint8_t tracks_flags(const struct model_sample *s) {
    return (uint8_t)((s->on_cpu == 1 ? TRACKS_ON_CPU : 0) |
                     (s->on_cpu != MODEL_UNKNOWN ? TRACKS_CPU_KNOWN : 0) |
                     (s->gil == MODEL_GIL_HELD ? TRACKS_GIL_HELD : 0) |
                     (s->gil == MODEL_GIL_WAITING ? TRACKS_GIL_WAITING : 0) |
                     (s->gil != MODEL_GIL_UNKNOWN ? TRACKS_GIL_KNOWN : 0) | (s->gc == 1 ? TRACKS_GC : 0) |
                     (s->gc != MODEL_UNKNOWN ? TRACKS_GC_KNOWN : 0));
}

int tracks_add(struct tracks *t, const struct tracks_sample *s) {
    bool is_full;
    uint32_t look;
    if (!(s->time_s >= 0 && s->time_s < TRACKS_MAX_TIME))
        return tracks_leave_out(t, false);
    tracks_make_room(t);
    struct tracks_lane *lane = tracks_put_lane(t, s->tid, &is_full);
    if (!lane)
        return is_full ? tracks_leave_out(t, false) : -1;
    int rc = tracks_put_look(t, s->time_s, s->us, &look);
    if (rc <= 0)
        return rc < 0 ? -1 : tracks_leave_out(t, true);
    size_t at = lane->end;
    if (at > lane->start && lane->runs[at - 1].first + lane->runs[at - 1].n > look)
        at = tracks_search_run(lane, look);
    if (at < lane->end && (lane->runs[at].first <= look || lane->end - at > TRACKS_LATE))
        return tracks_leave_out(t, false);
    t->too_late = 0;
    return tracks_put_run(t, lane, at, look, s) == 0 ? 1 : -1;
}

/* ---- reading ---- */

uint64_t tracks_left_out(const struct tracks *t) { return t->left_out; }

size_t tracks_bytes(const struct tracks *t) {
    size_t n = sizeof *t + t->max_looks * sizeof *t->looks + t->cap_lanes * sizeof *t->lanes +
               t->n_slots * sizeof *t->slots;
    for (size_t i = 0; i < t->n_lanes; i++)
        n += t->lanes[i].cap * sizeof *t->lanes[i].runs;
    return n;
}

uint64_t tracks_identity(const struct tracks *t) { return t->identity; }

uint32_t tracks_first_look(const struct tracks *t) { return t->first; }

uint32_t tracks_end_look(const struct tracks *t) { return t->end; }

double tracks_look_time(const struct tracks *t, uint32_t look) { return tracks_at(t, look)->time_s; }

double tracks_look_us(const struct tracks *t, uint32_t from, uint32_t to) {
    if (from >= to)
        return 0;
    return tracks_at(t, to - 1)->us_to_here -
           (from > t->first ? tracks_at(t, from - 1)->us_to_here : t->us_before);
}

double tracks_forgotten_s(const struct tracks *t) { return t->forgotten_s; }

size_t tracks_count_lanes(const struct tracks *t) { return t->n_lanes; }

int64_t tracks_lane_tid(const struct tracks *t, size_t lane) { return t->lanes[lane].tid; }

const struct tracks_run *tracks_runs(const struct tracks *t, size_t lane, size_t *n) {
    const struct tracks_lane *l = &t->lanes[lane];
    *n = l->end - l->start;
    return l->runs ? l->runs + l->start : NULL;
}

size_t tracks_find_run(const struct tracks *t, size_t lane, uint32_t look) {
    return tracks_search_run(&t->lanes[lane], look) - t->lanes[lane].start;
}

/* ---- a part of it ---- */

static uint32_t tracks_map(const uint32_t *map, size_t n, uint32_t entry) {
    return entry < n ? map[entry] : TRACKS_NO_ENTRY;
}

/* Runs of a lane that lie in looks [from, to), of which `from` becomes number 0. */
static int tracks_cut_lane(struct tracks *out, const struct tracks_lane *lane, uint32_t from, uint32_t to,
                           const uint32_t *map, size_t n) {
    bool is_full, is_empty = true;
    size_t first = tracks_search_run(lane, from);
    for (size_t i = first; is_empty && i < lane->end && lane->runs[i].first < to; i++)
        is_empty = tracks_map(map, n, lane->runs[i].entry) == TRACKS_NO_ENTRY;
    if (is_empty)
        return 0;
    struct tracks_lane *mine = tracks_put_lane(out, lane->tid, &is_full);
    for (size_t i = first; mine && i < lane->end && lane->runs[i].first < to; i++) {
        struct tracks_run run = lane->runs[i];
        uint32_t begin = run.first > from ? run.first : from, end = run.first + run.n;
        if (tracks_grow_lane(mine) != 0)
            return -1;
        run.first = begin - from;
        run.n = (uint16_t)((end < to ? end : to) - begin);
        run.entry = tracks_map(map, n, run.entry);
        mine->runs[mine->end++] = run;
        out->n_runs++;
    }
    return mine ? 0 : -1;
}

struct tracks *tracks_cut(const struct tracks *t, double from_s, double to_s, const uint32_t *map, size_t n) {
    uint32_t from = tracks_find_look(t, from_s), to = tracks_find_look(t, to_s);
    struct tracks *out = tracks_new_sized((to > from ? to - from : 0) + 2, t->max_runs);
    int rc = out ? 0 : -1;
    for (uint32_t i = from; rc == 0 && i < to; i++)
        *tracks_at(out, out->end++) =
            (struct tracks_look){tracks_at(t, i)->time_s, tracks_look_us(t, from, i + 1)};
    for (size_t i = 0; rc == 0 && i < t->n_lanes; i++)
        rc = tracks_cut_lane(out, &t->lanes[i], from, to, map, n);
    if (rc == 0) {
        if (!isnan(t->forgotten_s) && from_s <= t->forgotten_s)
            out->forgotten_s = t->forgotten_s;
        return out;
    }
    tracks_free(out);
    return NULL;
}
