/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_store: see sample_store.h. Properties of a frame or stack (its function, whether it
 * recurs) are computed once and kept beside the counts, in arrays that grow with them.
 */
#include "client/samples/sample_store.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/text.h"
#include "client/samples/thread_runs.h"

/* windows before it slide, except SAMPLE_STORE_ALL */
#define SAMPLE_STORE_SLIDING_END SAMPLE_STORE_MARK
/* windows before it are counts since some base */
#define SAMPLE_STORE_BASES SAMPLE_STORE_SPAN
#define SAMPLE_STORE_SPANS (SAMPLE_STORE_WINDOWS - SAMPLE_STORE_SPAN)

/* The samples that an entry got in one second. */
struct sample_store_delta {
    uint32_t entry;
    struct stack_counts_sums count;
};

struct sample_store_slice {
    int64_t second; /* of the caller's clock */
    struct sample_store_delta *deltas;
    size_t n;
};

struct sample_store {
    struct stack_counts *counts;
    /* per entry: its count at the start of a window */
    struct stack_counts_sums *base[SAMPLE_STORE_BASES];
    struct stack_counts_sums *closed; /* and at the end of the newest slice */
    bool *is_touched;                 /* per entry: it has changed since then */
    size_t n_entries, cap_entries;
    uint32_t *touched; /* the entries that have changed */
    size_t n_touched, cap_touched;
    uint32_t *function;      /* per frame */
    uint32_t *function_slot; /* open addressing: 1 + frame that stands for a function; 0 free */
    size_t n_frames, cap_frames, n_slots;
    unsigned char *recurs; /* per stack, from 1 */
    size_t n_stacks, cap_stacks;
    struct sample_store_slice ring[SAMPLE_STORE_SECONDS];
    size_t n_deltas; /* in all slices */
    /* closed so far; slice k is at k % SAMPLE_STORE_SECONDS */
    uint64_t n_slices;
    uint64_t oldest[SAMPLE_STORE_SLIDING_END]; /* the first slice of each window */
    int64_t second;
    bool has_second;
    /* NULL: not frozen, or the window is empty */
    struct stack_counts_sums *frozen[SAMPLE_STORE_WINDOWS];
    size_t n_frozen;
    double frozen_tick_s; /* the newest tick at that time; NAN */
    double marked_s;      /* NAN: base[SAMPLE_STORE_MARK] is NULL */
    struct thread_runs *runs;
    size_t max_ticks, max_runs; /* of the runs */
    struct sample_store_span spans[SAMPLE_STORE_SPANS];
    struct stack_counts_totals before;
    struct sample_store_health health;
    struct sample_store_mark mark;
    uint32_t changes[SAMPLE_STORE_CHANGES]; /* entries; change k is at k % SAMPLE_STORE_CHANGES */
};

/* Add the samples of a batch, which the counts have just counted, to the runs and the spans. 0,
 * or -1 without memory. */
static int sample_store_track(struct sample_store *t, const struct model_sample_batch *b);

/* callers checked for recursion: an agent sends no deeper stacks */
#define SAMPLE_STORE_MAX_WALK 2048
/* samples of a batch are no further apart, whatever the batch claims */
#define SAMPLE_STORE_COVERED_MAX_S 1e9
#define SAMPLE_STORE_RATE_BATCHES 8 /* batches over which a rate is smoothed */
#define SAMPLE_STORE_RECURS_LINE 1U
#define SAMPLE_STORE_RECURS_FUNCTION 2U

static const int64_t sample_store_seconds[SAMPLE_STORE_SLIDING_END] = {
    [SAMPLE_STORE_10S] = 10, [SAMPLE_STORE_60S] = SAMPLE_STORE_SECONDS};

/* A number for marks, never the same twice. */
static uint64_t sample_store_next_mark(void) {
    static uint64_t given;
    return ++given;
}

/* The samples that an entry got since `from`. */
static struct stack_counts_sums sample_store_since(const struct sample_store *t, size_t entry,
                                                   const struct stack_counts_sums *from) {
    return stack_counts_sums_since(&stack_counts_get(t->counts, entry)->sums, from);
}

static void sample_store_forget_ring(struct sample_store *t) {
    for (size_t i = 0; i < SAMPLE_STORE_SECONDS; i++)
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

static void sample_store_unfreeze(struct sample_store *t) {
    for (int i = 0; i < SAMPLE_STORE_WINDOWS; i++) {
        free(t->frozen[i]);
        t->frozen[i] = NULL;
    }
    t->n_frozen = 0;
    t->mark.counts = sample_store_next_mark();
}

static void sample_store_clear(struct sample_store *t) {
    sample_store_forget_ring(t);
    sample_store_unfreeze(t);
    stack_counts_free(t->counts);
    for (int w = 0; w < SAMPLE_STORE_BASES; w++)
        free(t->base[w]);
    for (int i = 0; i < SAMPLE_STORE_SPANS; i++)
        sample_store_span_clear(&t->spans[i]);
    thread_runs_free(t->runs);
    free(t->closed);
    free(t->is_touched);
    free(t->touched);
    free(t->function);
    free(t->function_slot);
    free(t->recurs);
    const size_t max_ticks = t->max_ticks, max_runs = t->max_runs;
    memset(t, 0, sizeof *t);
    t->max_ticks = max_ticks;
    t->max_runs = max_runs;
    t->marked_s = t->frozen_tick_s = NAN;
    t->mark.ids = t->mark.counts = sample_store_next_mark();
    t->health = (struct sample_store_health){
        .got_hz = NAN, .since_s = NAN, .newest_s = NAN, .cost_pct = NAN, .budget_pct = NAN};
}

struct sample_store *sample_store_new(void) {
    return sample_store_new_sized(THREAD_RUNS_TICKS, THREAD_RUNS_RUNS);
}

struct sample_store *sample_store_new_sized(size_t max_ticks, size_t max_runs) {
    struct sample_store *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->max_ticks = max_ticks;
    t->max_runs = max_runs;
    sample_store_clear(t);
    t->counts = stack_counts_new();
    t->runs = thread_runs_new_sized(max_ticks, max_runs);
    if (!t->counts || !t->runs) {
        sample_store_free(t);
        return NULL;
    }
    return t;
}

void sample_store_free(struct sample_store *t) {
    if (!t)
        return;
    sample_store_clear(t);
    free(t);
}

/* ---- growing with the counts ---- */

/* An array with room for `n` items, or NULL (the old one stays). */
static void *sample_store_grow(void *items, size_t item_size, size_t n, size_t *cap) {
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

static int sample_store_grow_entries(struct sample_store *t) {
    size_t n = stack_counts_count(t->counts), cap = t->cap_entries, more = n - t->n_entries;
    struct stack_counts_sums **counts[] = {&t->base[SAMPLE_STORE_ALL], &t->base[SAMPLE_STORE_10S],
                                           &t->base[SAMPLE_STORE_60S], &t->closed,
                                           &t->base[SAMPLE_STORE_MARK]};
    size_t n_counts = sizeof counts / sizeof counts[0] - !t->base[SAMPLE_STORE_MARK];
    for (size_t i = 0; i < n_counts; i++) {
        cap = t->cap_entries;
        struct stack_counts_sums *grown = sample_store_grow(*counts[i], sizeof *grown, n, &cap);
        if (!grown)
            return -1;
        *counts[i] = grown;
        memset(grown + t->n_entries, 0, more * sizeof *grown);
    }
    bool *is_touched = sample_store_grow(t->is_touched, sizeof *is_touched, n, &t->cap_entries);
    if (!is_touched)
        return -1;
    t->is_touched = is_touched;
    memset(is_touched + t->n_entries, 0, more * sizeof *is_touched);
    t->n_entries = n;
    return 0;
}

/* The slot of the function of a frame: in use, or free. */
static uint32_t *sample_store_slot(const struct sample_store *t, const struct model_frame *f) {
    uint64_t h = hash_fnv_text(hash_fnv_text(HASH_FNV_START + (uint64_t)f->kind, f->func), f->file);
    for (uint64_t i = h ^ (h >> 29);; i++) {
        uint32_t *slot = &t->function_slot[i & (t->n_slots - 1)];
        if (!*slot)
            return slot;
        const struct model_frame *g = stack_counts_frame(t->counts, *slot - 1);
        if (g->kind == f->kind && text_same(g->func, f->func) && text_same(g->file, f->file))
            return slot;
    }
}

static int sample_store_grow_slots(struct sample_store *t, size_t n) {
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
            *sample_store_slot(t, stack_counts_frame(t->counts, i)) = (uint32_t)i + 1;
    return 0;
}

static int sample_store_grow_frames(struct sample_store *t) {
    size_t n = stack_counts_frames(t->counts);
    uint32_t *function = sample_store_grow(t->function, sizeof *function, n, &t->cap_frames);
    if (!function)
        return -1;
    t->function = function;
    if (sample_store_grow_slots(t, n) != 0)
        return -1;
    for (size_t i = t->n_frames; i < n; i++) {
        uint32_t *slot = sample_store_slot(t, stack_counts_frame(t->counts, i));
        if (!*slot)
            *slot = (uint32_t)i + 1;
        t->function[i] = *slot - 1;
    }
    t->n_frames = n;
    return 0;
}

static unsigned char sample_store_find_recursion(const struct sample_store *t, uint32_t stack) {
    uint32_t above, frame = stack_counts_stack_frame(t->counts, stack, &above);
    unsigned char found = 0;
    for (int i = 0; above != STACK_COUNTS_NO_STACK && i < SAMPLE_STORE_MAX_WALK; i++) {
        uint32_t caller = stack_counts_stack_frame(t->counts, above, &above);
        if (caller == frame)
            return SAMPLE_STORE_RECURS_LINE | SAMPLE_STORE_RECURS_FUNCTION;
        if (t->function[caller] == t->function[frame])
            found = SAMPLE_STORE_RECURS_FUNCTION;
    }
    return found;
}

static int sample_store_grow_stacks(struct sample_store *t) {
    size_t n = stack_counts_stacks(t->counts);
    unsigned char *recurs = sample_store_grow(t->recurs, sizeof *recurs, n + 1, &t->cap_stacks);
    if (!recurs)
        return -1;
    t->recurs = recurs;
    for (size_t i = t->n_stacks + 1; i <= n; i++)
        t->recurs[i] = sample_store_find_recursion(t, (uint32_t)i);
    t->n_stacks = n;
    return 0;
}

/* ---- the ring ---- */

static void sample_store_report_change(struct sample_store *t, uint32_t entry) {
    t->changes[t->mark.changes++ % SAMPLE_STORE_CHANGES] = entry;
}

/* The window now begins one slice later: subtract the samples of its first slice. */
static void sample_store_leave_slice(struct sample_store *t, int window) {
    const struct sample_store_slice *slice = &t->ring[t->oldest[window]++ % SAMPLE_STORE_SECONDS];
    for (size_t i = 0; i < slice->n; i++) {
        stack_counts_sums_add(&t->base[window][slice->deltas[i].entry], &slice->deltas[i].count);
        sample_store_report_change(t, slice->deltas[i].entry);
    }
}

/* Remove slices that are older than the windows from them. */
static void sample_store_slide(struct sample_store *t) {
    for (int w = SAMPLE_STORE_ALL + 1; w < SAMPLE_STORE_SLIDING_END; w++)
        while (t->oldest[w] < t->n_slices &&
               t->ring[t->oldest[w] % SAMPLE_STORE_SECONDS].second <= t->second - sample_store_seconds[w])
            sample_store_leave_slice(t, w);
}

/* Put the changes since the newest slice into a new one. */
static int sample_store_close_slice(struct sample_store *t) {
    struct sample_store_slice *slice = &t->ring[t->n_slices % SAMPLE_STORE_SECONDS];
    struct sample_store_delta *deltas = t->n_touched ? calloc(t->n_touched, sizeof *deltas) : NULL;
    if (t->n_touched && !deltas)
        return -1;
    for (int w = SAMPLE_STORE_ALL + 1; w < SAMPLE_STORE_SLIDING_END; w++)
        while (t->oldest[w] + SAMPLE_STORE_SECONDS <= t->n_slices)
            sample_store_leave_slice(t, w);
    free(slice->deltas);
    t->n_deltas = t->n_deltas - slice->n + t->n_touched;
    *slice = (struct sample_store_slice){.second = t->second, .deltas = deltas};
    t->n_slices++;
    for (size_t i = 0; i < t->n_touched; i++) {
        uint32_t entry = t->touched[i];
        struct stack_counts_sums c = sample_store_since(t, entry, &t->closed[entry]);
        t->is_touched[entry] = false;
        slice->deltas[slice->n++] = (struct sample_store_delta){entry, c};
        stack_counts_sums_add(&t->closed[entry], &c);
    }
    t->n_touched = 0;
    return 0;
}

/* Sums of an entry in a window that is not frozen. */
static struct stack_counts_sums sample_store_now(const struct sample_store *t,
                                                 enum sample_store_window window, size_t entry) {
    if (window >= SAMPLE_STORE_SPAN) {
        const struct sample_store_span *s = &t->spans[window - SAMPLE_STORE_SPAN];
        return entry < s->n ? s->counts[entry] : (struct stack_counts_sums){0};
    }
    const struct stack_counts_sums *base = t->base[window] ? t->base[window] : t->base[SAMPLE_STORE_ALL];
    return sample_store_since(t, entry, &base[entry]);
}

/* Sum up a window that ends with the newest batch. */
static void sample_store_sum(const struct sample_store *t, enum sample_store_window window,
                             struct stack_counts_sums *out) {
    for (size_t i = 0; i < t->n_entries; i++)
        out[i] = sample_store_now(t, window, i);
}

/* Record the entries that a batch has changed. */
static int sample_store_note_changes(struct sample_store *t) {
    const uint32_t *entries;
    size_t n = stack_counts_changed(t->counts, &entries);
    uint32_t *touched = sample_store_grow(t->touched, sizeof *touched, t->n_touched + n, &t->cap_touched);
    if (!touched)
        return -1;
    t->touched = touched;
    for (size_t i = 0; i < n; i++) {
        sample_store_report_change(t, entries[i]);
        if (!t->is_touched[entries[i]])
            touched[t->n_touched++] = entries[i];
        t->is_touched[entries[i]] = true;
    }
    stack_counts_forget_changed(t->counts);
    return 0;
}

/* ---- counting ---- */

/* Memory in use, or needed for the current counts. Without the memory for reading or freezing
 * them. */
static size_t sample_store_bytes(const struct sample_store *t) {
    size_t counts = SAMPLE_STORE_BASES + 1, entries = stack_counts_count(t->counts);
    for (int i = 0; i < SAMPLE_STORE_SPANS; i++)
        counts += t->spans[i].is_set;
    return stack_counts_bytes(t->counts) + thread_runs_bytes(t->runs) +
           t->n_deltas * sizeof(struct sample_store_delta) +
           entries *
               (counts * sizeof(struct stack_counts_sums) + sizeof *t->touched + sizeof *t->is_touched) +
           stack_counts_frames(t->counts) * 5 * sizeof *t->function +
           stack_counts_stacks(t->counts) * sizeof *t->recurs;
}

static bool sample_store_is_full(const struct sample_store *t) {
    return stack_counts_count(t->counts) >= SAMPLE_STORE_MAX_ENTRIES ||
           stack_counts_stacks(t->counts) >= SAMPLE_STORE_MAX_ENTRIES ||
           stack_counts_frames(t->counts) >= SAMPLE_STORE_MAX_ENTRIES ||
           sample_store_bytes(t) > SAMPLE_STORE_MAX_BYTES;
}

/* Start again with empty counts; without memory for new ones the old stay and nothing is
 * counted. */
static void sample_store_restart(struct sample_store *t, double now_s) {
    uint32_t restarts = t->health.restarts + 1;
    struct stack_counts *counts = stack_counts_new();
    struct thread_runs *runs = thread_runs_new_sized(t->max_ticks, t->max_runs);
    if (!counts || !runs) {
        stack_counts_free(counts);
        thread_runs_free(runs);
        return;
    }
    sample_store_clear(t);
    t->counts = counts;
    t->runs = runs;
    t->health.restarts = restarts;
    t->health.since_s = t->health.newest_s = now_s;
}

static int sample_store_take(struct sample_store *t, const struct model_sample_batch *b, double now_s) {
    int64_t second = (int64_t)floor(now_s);
    if (t->has_second && second != t->second && sample_store_close_slice(t) != 0)
        return -1;
    t->second = second;
    t->has_second = true;
    sample_store_slide(t);
    if (stack_counts_add_batch(t->counts, b) != 0 || sample_store_bytes(t) > SAMPLE_STORE_MAX_BYTES)
        return -1;
    /* In this order: an item that is counted as present refers only to items that are counted as
     * present. */
    return sample_store_grow_frames(t) == 0 && sample_store_grow_stacks(t) == 0 &&
                   sample_store_grow_entries(t) == 0 && sample_store_note_changes(t) == 0 &&
                   sample_store_track(t, b) == 0
               ? 0
               : -1;
}

/* A batch has few ticks, at random times: the rate is that of the newest batches. */
static void sample_store_see_rate(struct sample_store *t, double period_us) {
    double hz = period_us > 0 ? 1e6 / period_us : NAN;
    bool goes_on = !isnan(t->health.got_hz) && !isnan(hz);
    t->health.got_hz = goes_on ? t->health.got_hz + (hz - t->health.got_hz) / SAMPLE_STORE_RATE_BATCHES : hz;
}

/* The time that the samples of a batch stand for, until the last one: a batch arrives at its
 * end. */
static double sample_store_covered_s(const struct model_sample_batch *b) {
    double first = NAN, last = NAN, weight_s = 0;
    for (size_t i = 0; i < b->n_samples; i++) {
        double at = b->samples[i].timestamp;
        if (!(at >= first)) {
            first = at;
            weight_s = stack_counts_sample_us(b, i) / 1e6;
        }
        last = at <= last ? last : at;
    }
    double covered_s = last - first + weight_s;
    return covered_s >= 0 && covered_s < SAMPLE_STORE_COVERED_MAX_S ? covered_s : 0;
}

bool sample_store_add(struct sample_store *t, const struct model_sample_batch *b, double now_s) {
    if (isnan(t->health.since_s))
        t->health.since_s = now_s - sample_store_covered_s(b);
    if (sample_store_is_full(t) && t->frozen[SAMPLE_STORE_ALL]) {
        t->health.left_out += b->n_samples;
        return true;
    }
    if (sample_store_is_full(t) || sample_store_take(t, b, now_s) != 0) {
        sample_store_restart(t, now_s);
        return false;
    }
    t->health.newest_s = now_s;
    if (b->n_samples)
        sample_store_see_rate(t, b->period_us);
    return true;
}

void sample_store_reset(struct sample_store *t, double now_s) {
    for (size_t i = 0; i < t->n_entries; i++) {
        t->closed[i] = stack_counts_get(t->counts, i)->sums;
        for (int w = 0; w < SAMPLE_STORE_BASES; w++)
            if (t->base[w])
                t->base[w][i] = t->closed[i];
    }
    if (t->base[SAMPLE_STORE_MARK])
        t->marked_s = now_s;
    sample_store_forget_ring(t);
    sample_store_unfreeze(t);
    t->before = *stack_counts_get_totals(t->counts);
    t->health.left_out = 0;
    t->health.since_s = now_s;
}

/* True if the window has counts of its own. */
static bool sample_store_has(const struct sample_store *t, int window) {
    return window < SAMPLE_STORE_SPAN ? t->base[window] != NULL : t->spans[window - SAMPLE_STORE_SPAN].is_set;
}

int sample_store_freeze(struct sample_store *t, bool held) {
    sample_store_unfreeze(t);
    double newest_s = sample_store_newest_tick_s(t);
    for (int w = 0; held && w < SAMPLE_STORE_WINDOWS; w++) {
        if (w != SAMPLE_STORE_ALL && !sample_store_has(t, w))
            continue;
        t->frozen[w] = calloc(t->n_entries + 1, sizeof *t->frozen[w]);
        if (!t->frozen[w]) {
            sample_store_unfreeze(t);
            return -1;
        }
        sample_store_sum(t, (enum sample_store_window)w, t->frozen[w]);
    }
    t->n_frozen = held ? t->n_entries : 0;
    t->frozen_tick_s = newest_s;
    return 0;
}

/* ---- reading ---- */

void sample_store_get_health(const struct sample_store *t, struct sample_store_health *out) {
    const struct stack_counts_totals *now = stack_counts_get_totals(t->counts);
    *out = t->health;
    out->samples = now->samples - t->before.samples;
    out->torn = now->torn - t->before.torn;
    out->undefined = now->undefined - t->before.undefined;
    out->dropped = now->dropped - t->before.dropped;
    out->mode = now->mode;
    out->cost_pct = now->cost_pct;
    out->budget_pct = now->budget_pct;
}

const struct stack_counts *sample_store_counts(const struct sample_store *t) { return t->counts; }

size_t sample_store_count_frames(const struct sample_store *t) { return t->n_frames; }

size_t sample_store_count_stacks(const struct sample_store *t) { return t->n_stacks; }

size_t sample_store_count_entries(const struct sample_store *t) {
    return t->frozen[SAMPLE_STORE_ALL] ? t->n_frozen : t->n_entries;
}

/* The frozen sums of a window; NULL: the window is empty. */
static const struct stack_counts_sums *sample_store_frozen(const struct sample_store *t,
                                                           enum sample_store_window window) {
    return t->frozen[window] || window >= SAMPLE_STORE_SPAN ? t->frozen[window] : t->frozen[SAMPLE_STORE_ALL];
}

void sample_store_get_counts(const struct sample_store *t, enum sample_store_window window,
                             struct stack_counts_sums *out) {
    const struct stack_counts_sums *held = sample_store_frozen(t, window);
    if (!t->frozen[SAMPLE_STORE_ALL])
        sample_store_sum(t, window, out);
    else if (held)
        memcpy(out, held, t->n_frozen * sizeof *out);
    else
        memset(out, 0, t->n_frozen * sizeof *out);
}

struct stack_counts_sums sample_store_get_count(const struct sample_store *t, enum sample_store_window window,
                                                size_t entry) {
    const struct stack_counts_sums *held = sample_store_frozen(t, window);
    if (entry >= sample_store_count_entries(t))
        return (struct stack_counts_sums){0};
    if (!t->frozen[SAMPLE_STORE_ALL])
        return sample_store_now(t, window, entry);
    return held ? held[entry] : (struct stack_counts_sums){0};
}

struct sample_store_mark sample_store_get_mark(const struct sample_store *t) {
    return t->mark;
}

uint32_t sample_store_get_change(const struct sample_store *t, uint64_t at) {
    return t->changes[at % SAMPLE_STORE_CHANGES];
}

uint32_t sample_store_function(const struct sample_store *t, uint32_t frame) { return t->function[frame]; }

bool sample_store_recurs(const struct sample_store *t, uint32_t stack, bool by_function) {
    return t->recurs[stack] & (by_function ? SAMPLE_STORE_RECURS_FUNCTION : SAMPLE_STORE_RECURS_LINE);
}

/* ---- window ---- */

/* the windows of a store that do not slide: since a mark, and between two times; see
 * sample_store.h. */

static int sample_store_track(struct sample_store *t, const struct model_sample_batch *b) {
    const uint32_t *entries = stack_counts_batch_entries(t->counts);
    for (size_t i = 0; i < b->n_samples; i++) {
        const struct model_sample *s = &b->samples[i];
        struct thread_runs_sample sample = {
            .time_s = s->timestamp,
            .us = stack_counts_sample_us(b, i),
            .tid = s->tid,
            .entry = entries[i] == STACK_COUNTS_NO_ENTRY ? THREAD_RUNS_NO_ENTRY : entries[i],
            .flags = thread_runs_flags(s)};
        int rc = thread_runs_add(t->runs, &sample);
        for (int k = 0; rc == 1 && k < SAMPLE_STORE_SPANS; k++)
            rc = sample_store_span_add(&t->spans[k], t->runs, &sample) == 0 ? 1 : -1;
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* Keep the sums that a span has when the store is frozen. */
static int sample_store_freeze_span(struct sample_store *t, enum sample_store_window which) {
    const struct sample_store_span *s = &t->spans[which - SAMPLE_STORE_SPAN];
    struct sample_store_span then = {0};
    double to_s = fmin(s->to_s, nextafter(t->frozen_tick_s, INFINITY));
    struct stack_counts_sums *held = calloc(t->n_frozen + 1, sizeof *held);
    if (!held)
        return -1;
    if (!isnan(t->frozen_tick_s) && s->from_s < to_s &&
        sample_store_span_make(&then, t->runs, s->from_s, to_s) != 0) {
        free(held);
        return -1;
    }
    for (size_t i = 0; i < then.n && i < t->n_frozen; i++)
        held[i] = then.counts[i];
    sample_store_span_clear(&then);
    free(t->frozen[which]);
    t->frozen[which] = held;
    return 0;
}

int sample_store_set_span(struct sample_store *t, enum sample_store_window which, double from_s,
                          double to_s) {
    if (sample_store_span_make(&t->spans[which - SAMPLE_STORE_SPAN], t->runs, from_s, to_s) != 0)
        return -1;
    t->mark.counts = sample_store_next_mark();
    return t->frozen[SAMPLE_STORE_ALL] ? sample_store_freeze_span(t, which) : 0;
}

void sample_store_clear_span(struct sample_store *t, enum sample_store_window which) {
    sample_store_span_clear(&t->spans[which - SAMPLE_STORE_SPAN]);
    free(t->frozen[which]);
    t->frozen[which] = NULL;
    t->mark.counts = sample_store_next_mark();
}

bool sample_store_get_span(const struct sample_store *t, enum sample_store_window which, double *from_s,
                           double *to_s) {
    const struct sample_store_span *s = &t->spans[which - SAMPLE_STORE_SPAN];
    *from_s = s->from_s;
    *to_s = s->to_s;
    return s->is_set;
}

bool sample_store_get_span_health(const struct sample_store *t, enum sample_store_window which,
                                  struct sample_store_span_health *out) {
    const struct sample_store_span *s = &t->spans[which - SAMPLE_STORE_SPAN];
    double newest_s = sample_store_newest_tick_s(t);
    *out = (struct sample_store_span_health){s->from_s, s->to_s, s->begins_s, fmin(newest_s, s->to_s)};
    if (isnan(newest_s) || newest_s < s->from_s)
        out->known_until_s = NAN;
    return s->is_set;
}

const struct thread_runs *sample_store_runs(const struct sample_store *t) { return t->runs; }

double sample_store_newest_tick_s(const struct sample_store *t) {
    uint32_t end = thread_runs_end_tick(t->runs);
    if (t->frozen[SAMPLE_STORE_ALL])
        return t->frozen_tick_s;
    return end > thread_runs_first_tick(t->runs) ? thread_runs_tick_time(t->runs, end - 1) : NAN;
}

int sample_store_mark(struct sample_store *t, double now_s) {
    struct stack_counts_sums *base = calloc(t->cap_entries + 1, sizeof *base);
    struct stack_counts_sums *held =
        t->frozen[SAMPLE_STORE_ALL] ? calloc(t->n_frozen + 1, sizeof *held) : NULL;
    if (!base || (t->frozen[SAMPLE_STORE_ALL] && !held)) {
        free(base);
        free(held);
        return -1;
    }
    for (size_t i = 0; i < t->n_entries; i++)
        base[i] = stack_counts_get(t->counts, i)->sums;
    free(t->base[SAMPLE_STORE_MARK]);
    free(t->frozen[SAMPLE_STORE_MARK]);
    t->base[SAMPLE_STORE_MARK] = base;
    t->frozen[SAMPLE_STORE_MARK] = held;
    t->marked_s = now_s;
    t->mark.counts = sample_store_next_mark();
    return 0;
}

double sample_store_marked_s(const struct sample_store *t) { return t->marked_s; }

uint32_t sample_store_python_stack(const struct sample_store *t, uint32_t stack) {
    uint32_t above;
    for (; stack != STACK_COUNTS_NO_STACK; stack = above) {
        const struct model_frame *f =
            stack_counts_frame(t->counts, stack_counts_stack_frame(t->counts, stack, &above));
        if (!f || f->kind != MODEL_FRAME_NATIVE)
            break;
    }
    return stack;
}

/* ---- span ---- */

void sample_store_span_clear(struct sample_store_span *s) {
    free(s->counts);
    memset(s, 0, sizeof *s);
    s->begins_s = NAN;
}

/* The state that the flags of a run or a sample mean. */
static struct stack_counts_state sample_store_state(unsigned flags) {
    return (struct stack_counts_state){.on_cpu = flags & THREAD_RUNS_ON_CPU,
                                       .gc = flags & THREAD_RUNS_GC,
                                       .gil = flags & THREAD_RUNS_GIL_HOLDING};
}

/* Make room for the sums of an entry; new ones are zero. */
static int sample_store_span_reach(struct sample_store_span *s, size_t entry) {
    if (entry < s->n)
        return 0;
    if (grow_array(&s->counts, sizeof *s->counts, entry + 1, &s->cap) != 0)
        return -1;
    memset(s->counts + s->n, 0, (entry + 1 - s->n) * sizeof *s->counts);
    s->n = entry + 1;
    return 0;
}

/* Sum up ticks [from, to) of a lane. */
static int sample_store_span_sum(struct sample_store_span *s, const struct thread_runs *t, size_t lane,
                                 uint32_t from, uint32_t to) {
    size_t n;
    const struct thread_runs_run *runs = thread_runs_runs(t, lane, &n);
    for (size_t i = thread_runs_find_run(t, lane, from); i < n && runs[i].first < to; i++) {
        uint32_t begin = runs[i].first > from ? runs[i].first : from, end = runs[i].first + runs[i].n;
        end = end < to ? end : to;
        if (runs[i].entry == THREAD_RUNS_NO_ENTRY)
            continue;
        if (sample_store_span_reach(s, runs[i].entry) != 0)
            return -1;
        stack_counts_sums_count(&s->counts[runs[i].entry], sample_store_state(runs[i].flags), end - begin,
                                thread_runs_tick_us(t, begin, end));
    }
    return 0;
}

int sample_store_span_make(struct sample_store_span *s, const struct thread_runs *t, double from_s,
                           double to_s) {
    struct sample_store_span made = {.is_set = true, .from_s = from_s, .to_s = to_s, .begins_s = NAN};
    if (!(from_s < to_s) || !isfinite(from_s) || !isfinite(to_s))
        return -1;
    uint32_t from = thread_runs_find_tick(t, from_s), to = thread_runs_find_tick(t, to_s);
    if (from < to)
        made.begins_s = thread_runs_tick_time(t, from);
    for (size_t i = 0; from < to && i < thread_runs_count_lanes(t); i++)
        if (sample_store_span_sum(&made, t, i, from, to) != 0) {
            sample_store_span_clear(&made);
            return -1;
        }
    free(s->counts);
    *s = made;
    return 0;
}

int sample_store_span_add(struct sample_store_span *s, const struct thread_runs *t,
                          const struct thread_runs_sample *sample) {
    if (!s->is_set || sample->entry == THREAD_RUNS_NO_ENTRY || sample->time_s < s->from_s ||
        sample->time_s >= s->to_s)
        return 0;
    if (sample_store_span_reach(s, sample->entry) != 0)
        return -1;
    if (isnan(s->begins_s) || sample->time_s < s->begins_s)
        s->begins_s = sample->time_s;
    uint32_t look = thread_runs_find_tick(t, sample->time_s);
    stack_counts_sums_count(&s->counts[sample->entry], sample_store_state(sample->flags), 1,
                            thread_runs_tick_us(t, look, look + 1));
    return 0;
}
