/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally: see tally.h. What is derived from a frame or a stack once (its function, whether it recurs) is kept beside the
 * fold, in arrays that grow with it.
 */
#include "client/tally.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/tally_state.h"

#define TALLY_MAX_WALK 2048     /* callers looked at for recursion: as many as an agent sends of a stack */
#define TALLY_COVERED_MAX_S 1e9 /* samples of a batch lie no further apart, whatever it says */
#define TALLY_RATE_BATCHES 8    /* that a rate is smoothed over */
#define TALLY_RECURS_LINE 1U
#define TALLY_RECURS_FUNCTION 2U

static const int64_t tally_seconds[TALLY_SLIDING_END] = {[TALLY_10S] = 10, [TALLY_60S] = TALLY_SECONDS};

uint64_t tally_next_mark(void) {
    static uint64_t given;
    return ++given;
}

static void tally_count_add(struct tally_count *to, const struct tally_count *c) {
    to->samples += c->samples;
    to->on_cpu += c->on_cpu;
    to->us += c->us;
    to->on_cpu_us += c->on_cpu_us;
    to->gc += c->gc;
    to->gc_us += c->gc_us;
    to->gc_on_cpu += c->gc_on_cpu;
    to->gc_on_cpu_us += c->gc_on_cpu_us;
    to->gil += c->gil;
    to->gil_us += c->gil_us;
}

struct tally_count tally_since(const struct tally *t, size_t entry, const struct tally_count *from) {
    const struct fold_entry *e = fold_get(t->fold, entry);
    return (struct tally_count){.samples = e->samples - from->samples,
                                .on_cpu = e->on_cpu - from->on_cpu,
                                .us = e->us - from->us,
                                .on_cpu_us = e->on_cpu_us - from->on_cpu_us,
                                .gc = e->gc - from->gc,
                                .gc_us = e->gc_us - from->gc_us,
                                .gc_on_cpu = e->gc_on_cpu - from->gc_on_cpu,
                                .gc_on_cpu_us = e->gc_on_cpu_us - from->gc_on_cpu_us,
                                .gil = e->gil - from->gil,
                                .gil_us = e->gil_us - from->gil_us};
}

static void tally_forget_ring(struct tally *t) {
    for (size_t i = 0; i < TALLY_SECONDS; i++)
        free(t->ring[i].deltas);
    memset(t->ring, 0, sizeof t->ring);
    t->n_deltas = 0;
    memset(t->oldest, 0, sizeof t->oldest);
    for (size_t i = 0; i < t->n_touched; i++)
        t->is_touched[t->touched[i]] = false;
    t->n_touched = 0;
    t->n_slices = 0;
    t->has_second = false;
}

static void tally_let_go(struct tally *t) {
    for (int i = 0; i < TALLY_WINDOWS; i++) {
        free(t->held[i]);
        t->held[i] = NULL;
    }
    t->n_held = 0;
    t->mark.counts = tally_next_mark();
}

static void tally_clear(struct tally *t) {
    tally_forget_ring(t);
    tally_let_go(t);
    fold_free(t->fold);
    for (int w = 0; w < TALLY_BASES; w++)
        free(t->base[w]);
    for (int i = 0; i < TALLY_SPANS; i++)
        tally_span_clear(&t->spans[i]);
    tracks_free(t->tracks);
    free(t->closed);
    free(t->is_touched);
    free(t->touched);
    free(t->function);
    free(t->function_slot);
    free(t->recurs);
    const size_t max_looks = t->max_looks, max_runs = t->max_runs;
    memset(t, 0, sizeof *t);
    t->max_looks = max_looks;
    t->max_runs = max_runs;
    t->marked_s = t->held_look_s = NAN;
    t->mark.ids = t->mark.counts = tally_next_mark();
    t->health = (struct tally_health){
        .got_hz = NAN, .since_s = NAN, .newest_s = NAN, .cost_pct = NAN, .budget_pct = NAN};
}

struct tally *tally_new(void) {
    return tally_new_sized(TRACKS_LOOKS, TRACKS_RUNS);
}

struct tally *tally_new_sized(size_t max_looks, size_t max_runs) {
    struct tally *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->max_looks = max_looks;
    t->max_runs = max_runs;
    tally_clear(t);
    t->fold = fold_new();
    t->tracks = tracks_new_sized(max_looks, max_runs);
    if (!t->fold || !t->tracks) {
        tally_free(t);
        return NULL;
    }
    return t;
}

void tally_free(struct tally *t) {
    if (!t)
        return;
    tally_clear(t);
    free(t);
}

/* ---- growing with the fold ---- */

/* An array with room for `n` items, or NULL (the old one stays). */
static void *tally_grow(void *items, size_t item_size, size_t n, size_t *cap) {
    size_t want = *cap ? *cap : 256;
    while (want < n)
        want *= 2;
    if (want == *cap)
        return items;
    void *grown = realloc(items, want * item_size);
    if (grown)
        *cap = want;
    return grown;
}

static int tally_grow_entries(struct tally *t) {
    size_t n = fold_count(t->fold), cap = t->cap_entries, more = n - t->n_entries;
    struct tally_count **counts[] = {&t->base[TALLY_ALL], &t->base[TALLY_10S], &t->base[TALLY_60S],
                                     &t->closed, &t->base[TALLY_MARK]};
    size_t n_counts = sizeof counts / sizeof counts[0] - !t->base[TALLY_MARK];
    for (size_t i = 0; i < n_counts; i++) {
        cap = t->cap_entries;
        struct tally_count *grown = tally_grow(*counts[i], sizeof *grown, n, &cap);
        if (!grown)
            return -1;
        *counts[i] = grown;
        memset(grown + t->n_entries, 0, more * sizeof *grown);
    }
    bool *is_touched = tally_grow(t->is_touched, sizeof *is_touched, n, &t->cap_entries);
    if (!is_touched)
        return -1;
    t->is_touched = is_touched;
    memset(is_touched + t->n_entries, 0, more * sizeof *is_touched);
    t->n_entries = n;
    return 0;
}

static uint64_t tally_hash(uint64_t h, const char *s) {
    for (; s && *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001B3ULL; /* FNV-1a */
    return (h ^ 0xff) * 0x100000001B3ULL;
}

static bool tally_same_text(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

/* The slot of the function of a frame: taken, or free. */
static uint32_t *tally_slot(const struct tally *t, const struct model_frame *f) {
    uint64_t h = tally_hash(tally_hash(0xcbf29ce484222325ULL + (uint64_t)f->kind, f->func), f->file);
    for (uint64_t i = h ^ (h >> 29);; i++) {
        uint32_t *slot = &t->function_slot[i & (t->n_slots - 1)];
        if (!*slot)
            return slot;
        const struct model_frame *g = fold_frame(t->fold, *slot - 1);
        if (g->kind == f->kind && tally_same_text(g->func, f->func) && tally_same_text(g->file, f->file))
            return slot;
    }
}

static int tally_grow_slots(struct tally *t, size_t n) {
    size_t n_slots = t->n_slots ? t->n_slots : 512;
    while (n_slots < 2 * n)
        n_slots *= 2;
    if (n_slots == t->n_slots)
        return 0;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return -1;
    free(t->function_slot);
    t->function_slot = slots;
    t->n_slots = n_slots;
    for (size_t i = 0; i < t->n_frames; i++)
        if (t->function[i] == i)
            *tally_slot(t, fold_frame(t->fold, i)) = (uint32_t)i + 1;
    return 0;
}

static int tally_grow_frames(struct tally *t) {
    size_t n = fold_frames(t->fold);
    uint32_t *function = tally_grow(t->function, sizeof *function, n, &t->cap_frames);
    if (!function)
        return -1;
    t->function = function;
    if (tally_grow_slots(t, n) != 0)
        return -1;
    for (size_t i = t->n_frames; i < n; i++) {
        uint32_t *slot = tally_slot(t, fold_frame(t->fold, i));
        if (!*slot)
            *slot = (uint32_t)i + 1;
        t->function[i] = *slot - 1;
    }
    t->n_frames = n;
    return 0;
}

static unsigned char tally_find_recursion(const struct tally *t, uint32_t stack) {
    uint32_t above, frame = fold_stack_frame(t->fold, stack, &above);
    unsigned char found = 0;
    for (int i = 0; above != FOLD_NO_STACK && i < TALLY_MAX_WALK; i++) {
        uint32_t caller = fold_stack_frame(t->fold, above, &above);
        if (caller == frame)
            return TALLY_RECURS_LINE | TALLY_RECURS_FUNCTION;
        if (t->function[caller] == t->function[frame])
            found = TALLY_RECURS_FUNCTION;
    }
    return found;
}

static int tally_grow_stacks(struct tally *t) {
    size_t n = fold_stacks(t->fold);
    unsigned char *recurs = tally_grow(t->recurs, sizeof *recurs, n + 1, &t->cap_stacks);
    if (!recurs)
        return -1;
    t->recurs = recurs;
    for (size_t i = t->n_stacks + 1; i <= n; i++)
        t->recurs[i] = tally_find_recursion(t, (uint32_t)i);
    t->n_stacks = n;
    return 0;
}

/* ---- the ring ---- */

static void tally_tell_change(struct tally *t, uint32_t entry) {
    t->changes[t->mark.changes++ % TALLY_CHANGES] = entry;
}

/* A window begins one slice later: what was in it is in the window no more. */
static void tally_leave_slice(struct tally *t, int window) {
    const struct tally_slice *slice = &t->ring[t->oldest[window]++ % TALLY_SECONDS];
    for (size_t i = 0; i < slice->n; i++) {
        tally_count_add(&t->base[window][slice->deltas[i].entry], &slice->deltas[i].count);
        tally_tell_change(t, slice->deltas[i].entry);
    }
}

/* Slices that are older than a window leave it. */
static void tally_slide(struct tally *t) {
    for (int w = TALLY_ALL + 1; w < TALLY_SLIDING_END; w++)
        while (t->oldest[w] < t->n_slices &&
               t->ring[t->oldest[w] % TALLY_SECONDS].second <= t->second - tally_seconds[w])
            tally_leave_slice(t, w);
}

/* Put what changed since the newest slice into one of its own. */
static int tally_close_slice(struct tally *t) {
    struct tally_slice *slice = &t->ring[t->n_slices % TALLY_SECONDS];
    struct tally_delta *deltas = t->n_touched ? calloc(t->n_touched, sizeof *deltas) : NULL;
    if (t->n_touched && !deltas)
        return -1;
    for (int w = TALLY_ALL + 1; w < TALLY_SLIDING_END; w++)
        while (t->oldest[w] + TALLY_SECONDS <= t->n_slices)
            tally_leave_slice(t, w);
    free(slice->deltas);
    t->n_deltas = t->n_deltas - slice->n + t->n_touched;
    *slice = (struct tally_slice){.second = t->second, .deltas = deltas};
    t->n_slices++;
    for (size_t i = 0; i < t->n_touched; i++) {
        uint32_t entry = t->touched[i];
        struct tally_count c = tally_since(t, entry, &t->closed[entry]);
        t->is_touched[entry] = false;
        slice->deltas[slice->n++] = (struct tally_delta){entry, c};
        tally_count_add(&t->closed[entry], &c);
    }
    t->n_touched = 0;
    return 0;
}

/* An entry in a window that goes on. */
static struct tally_count tally_now(const struct tally *t, enum tally_window window, size_t entry) {
    if (window >= TALLY_SPAN) {
        const struct tally_span *s = &t->spans[window - TALLY_SPAN];
        return entry < s->n ? s->counts[entry] : (struct tally_count){0};
    }
    const struct tally_count *base = t->base[window] ? t->base[window] : t->base[TALLY_ALL];
    return tally_since(t, entry, &base[entry]);
}

/* Add up a window that ends with the newest batch. */
static void tally_sum(const struct tally *t, enum tally_window window, struct tally_count *out) {
    for (size_t i = 0; i < t->n_entries; i++)
        out[i] = tally_now(t, window, i);
}

/* Note which entries a batch has changed. */
static int tally_note_changes(struct tally *t) {
    const uint32_t *entries;
    size_t n = fold_changed(t->fold, &entries);
    uint32_t *touched = tally_grow(t->touched, sizeof *touched, t->n_touched + n, &t->cap_touched);
    if (!touched)
        return -1;
    t->touched = touched;
    for (size_t i = 0; i < n; i++) {
        tally_tell_change(t, entries[i]);
        if (!t->is_touched[entries[i]])
            touched[t->n_touched++] = entries[i];
        t->is_touched[entries[i]] = true;
    }
    fold_forget_changed(t->fold);
    return 0;
}

/* ---- counting ---- */

/* Memory that there is, or has to be for what the fold has now. Not what reading it takes, or holding it. */
static size_t tally_bytes(const struct tally *t) {
    size_t counts = TALLY_BASES + 1, entries = fold_count(t->fold);
    for (int i = 0; i < TALLY_SPANS; i++)
        counts += t->spans[i].is_set;
    return fold_bytes(t->fold) + tracks_bytes(t->tracks) + t->n_deltas * sizeof(struct tally_delta) +
           entries * (counts * sizeof(struct tally_count) + sizeof *t->touched + sizeof *t->is_touched) +
           fold_frames(t->fold) * 5 * sizeof *t->function + fold_stacks(t->fold) * sizeof *t->recurs;
}

static bool tally_is_full(const struct tally *t) {
    return fold_count(t->fold) >= TALLY_MAX_ENTRIES || fold_stacks(t->fold) >= TALLY_MAX_ENTRIES ||
           fold_frames(t->fold) >= TALLY_MAX_ENTRIES || tally_bytes(t) > TALLY_MAX_BYTES;
}

/* With an empty fold; without memory for one the old stays and nothing is counted. */
static void tally_restart(struct tally *t, double now_s) {
    uint32_t restarts = t->health.restarts + 1;
    struct fold *fold = fold_new();
    struct tracks *tracks = tracks_new_sized(t->max_looks, t->max_runs);
    if (!fold || !tracks) {
        fold_free(fold);
        tracks_free(tracks);
        return;
    }
    tally_clear(t);
    t->fold = fold;
    t->tracks = tracks;
    t->health.restarts = restarts;
    t->health.since_s = t->health.newest_s = now_s;
}

static int tally_take(struct tally *t, const struct model_sample_batch *b, double now_s) {
    int64_t second = (int64_t)floor(now_s);
    if (t->has_second && second != t->second && tally_close_slice(t) != 0)
        return -1;
    t->second = second;
    t->has_second = true;
    tally_slide(t);
    if (fold_add_batch(t->fold, b) != 0 || tally_bytes(t) > TALLY_MAX_BYTES)
        return -1;
    /* In this order: whatever is counted as there refers only to what is counted as there. */
    return tally_grow_frames(t) == 0 && tally_grow_stacks(t) == 0 && tally_grow_entries(t) == 0 &&
                   tally_note_changes(t) == 0 && tally_track(t, b) == 0
               ? 0
               : -1;
}

/* The looks of one batch are few, and drawn at random: a rate is one of the newest batches. */
static void tally_see_rate(struct tally *t, double period_us) {
    double hz = period_us > 0 ? 1e6 / period_us : NAN;
    bool goes_on = !isnan(t->health.got_hz) && !isnan(hz);
    t->health.got_hz = goes_on ? t->health.got_hz + (hz - t->health.got_hz) / TALLY_RATE_BATCHES : hz;
}

/* The time that samples of a batch stand for, until its last: they come when it is over. */
static double tally_covered_s(const struct model_sample_batch *b) {
    double first = NAN, last = NAN, weight_s = 0;
    for (size_t i = 0; i < b->n_samples; i++) {
        double at = b->samples[i].timestamp;
        if (!(at >= first)) {
            first = at;
            weight_s = fold_sample_us(b, i) / 1e6;
        }
        last = at <= last ? last : at;
    }
    double covered_s = last - first + weight_s;
    return covered_s >= 0 && covered_s < TALLY_COVERED_MAX_S ? covered_s : 0;
}

bool tally_add(struct tally *t, const struct model_sample_batch *b, double now_s) {
    if (isnan(t->health.since_s))
        t->health.since_s = now_s - tally_covered_s(b);
    if (tally_is_full(t) && t->held[TALLY_ALL]) {
        t->health.left_out += b->n_samples;
        return true;
    }
    if (tally_is_full(t) || tally_take(t, b, now_s) != 0) {
        tally_restart(t, now_s);
        return false;
    }
    t->health.newest_s = now_s;
    if (b->n_samples)
        tally_see_rate(t, b->period_us);
    return true;
}

void tally_reset(struct tally *t, double now_s) {
    for (size_t i = 0; i < t->n_entries; i++) {
        struct tally_count none = {0};
        t->closed[i] = tally_since(t, i, &none);
        for (int w = 0; w < TALLY_BASES; w++)
            if (t->base[w])
                t->base[w][i] = t->closed[i];
    }
    if (t->base[TALLY_MARK])
        t->marked_s = now_s;
    tally_forget_ring(t);
    tally_let_go(t);
    t->before = *fold_get_totals(t->fold);
    t->health.left_out = 0;
    t->health.since_s = now_s;
}

/* Is there something of its own in a window? */
static bool tally_has(const struct tally *t, int window) {
    return window < TALLY_SPAN ? t->base[window] != NULL : t->spans[window - TALLY_SPAN].is_set;
}

int tally_hold(struct tally *t, bool held) {
    tally_let_go(t);
    double newest_s = tally_newest_look_s(t);
    for (int w = 0; held && w < TALLY_WINDOWS; w++) {
        if (w != TALLY_ALL && !tally_has(t, w))
            continue;
        t->held[w] = calloc(t->n_entries + 1, sizeof *t->held[w]);
        if (!t->held[w]) {
            tally_let_go(t);
            return -1;
        }
        tally_sum(t, (enum tally_window)w, t->held[w]);
    }
    t->n_held = held ? t->n_entries : 0;
    t->held_look_s = newest_s;
    return 0;
}

/* ---- reading ---- */

void tally_get_health(const struct tally *t, struct tally_health *out) {
    const struct fold_totals *now = fold_get_totals(t->fold);
    *out = t->health;
    out->samples = now->samples - t->before.samples;
    out->torn = now->torn - t->before.torn;
    out->undefined = now->undefined - t->before.undefined;
    out->dropped = now->dropped - t->before.dropped;
    out->mode = now->mode;
    out->cost_pct = now->cost_pct;
    out->budget_pct = now->budget_pct;
}

const struct fold *tally_fold(const struct tally *t) { return t->fold; }

size_t tally_count_frames(const struct tally *t) { return t->n_frames; }

size_t tally_count_stacks(const struct tally *t) { return t->n_stacks; }

size_t tally_count_entries(const struct tally *t) { return t->held[TALLY_ALL] ? t->n_held : t->n_entries; }

/* What is held of a window; NULL: nothing is in it. */
static const struct tally_count *tally_held(const struct tally *t, enum tally_window window) {
    return t->held[window] || window >= TALLY_SPAN ? t->held[window] : t->held[TALLY_ALL];
}

void tally_get_counts(const struct tally *t, enum tally_window window, struct tally_count *out) {
    const struct tally_count *held = tally_held(t, window);
    if (!t->held[TALLY_ALL])
        tally_sum(t, window, out);
    else if (held)
        memcpy(out, held, t->n_held * sizeof *out);
    else
        memset(out, 0, t->n_held * sizeof *out);
}

struct tally_count tally_get_count(const struct tally *t, enum tally_window window, size_t entry) {
    const struct tally_count *held = tally_held(t, window);
    if (entry >= tally_count_entries(t))
        return (struct tally_count){0};
    if (!t->held[TALLY_ALL])
        return tally_now(t, window, entry);
    return held ? held[entry] : (struct tally_count){0};
}

struct tally_mark tally_get_mark(const struct tally *t) {
    return t->mark;
}

uint32_t tally_get_change(const struct tally *t, uint64_t at) { return t->changes[at % TALLY_CHANGES]; }

uint32_t tally_function(const struct tally *t, uint32_t frame) { return t->function[frame]; }

bool tally_recurs(const struct tally *t, uint32_t stack, bool by_function) {
    return t->recurs[stack] & (by_function ? TALLY_RECURS_FUNCTION : TALLY_RECURS_LINE);
}
