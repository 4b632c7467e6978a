/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally: see tally.h. What is derived from a frame or a stack once (its function, whether it recurs) is kept beside the
 * fold, in arrays that grow with it.
 */
#include "client/tally.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TALLY_MAX_WALK 2048 /* callers looked at for recursion: as many as an agent sends of a stack */
#define TALLY_RECURS_LINE 1U
#define TALLY_RECURS_FUNCTION 2U

/* What was added to an entry in one second. */
struct tally_delta {
    uint32_t entry;
    struct tally_count count;
};

struct tally_slice {
    int64_t second; /* of the caller's clock */
    struct tally_delta *deltas;
    size_t n;
};

struct tally {
    struct fold *fold;
    struct tally_count *base;   /* per entry: the fold's count at the last reset */
    struct tally_count *closed; /* and at the end of the newest slice */
    size_t n_entries, cap_entries;
    uint32_t *function;      /* per frame */
    uint32_t *function_slot; /* open addressing: 1 + frame that stands for a function; 0 free */
    size_t n_frames, cap_frames, n_slots;
    unsigned char *recurs; /* per stack, from 1 */
    size_t n_stacks, cap_stacks;
    struct tally_slice ring[TALLY_SECONDS];
    size_t next; /* slice to be written */
    int64_t second;
    bool has_second;
    struct tally_count *held[TALLY_WINDOWS]; /* NULL: not held */
    size_t n_held;
    struct fold_totals before;
    struct tally_health health;
};

static void tally_count_add(struct tally_count *to, const struct tally_count *c) {
    to->samples += c->samples;
    to->on_cpu += c->on_cpu;
    to->us += c->us;
    to->on_cpu_us += c->on_cpu_us;
    to->gc += c->gc;
    to->gc_us += c->gc_us;
    to->gc_on_cpu += c->gc_on_cpu;
    to->gc_on_cpu_us += c->gc_on_cpu_us;
}

/* What an entry has got since `from`. */
static struct tally_count tally_since(const struct tally *t, size_t entry, const struct tally_count *from) {
    const struct fold_entry *e = fold_get(t->fold, entry);
    return (struct tally_count){.samples = e->samples - from->samples,
                                .on_cpu = e->on_cpu - from->on_cpu,
                                .us = e->us - from->us,
                                .on_cpu_us = e->on_cpu_us - from->on_cpu_us,
                                .gc = e->gc - from->gc,
                                .gc_us = e->gc_us - from->gc_us,
                                .gc_on_cpu = e->gc_on_cpu - from->gc_on_cpu,
                                .gc_on_cpu_us = e->gc_on_cpu_us - from->gc_on_cpu_us};
}

static void tally_forget_ring(struct tally *t) {
    for (size_t i = 0; i < TALLY_SECONDS; i++)
        free(t->ring[i].deltas);
    memset(t->ring, 0, sizeof t->ring);
    t->next = 0;
    t->has_second = false;
}

static void tally_let_go(struct tally *t) {
    for (int i = 0; i < TALLY_WINDOWS; i++) {
        free(t->held[i]);
        t->held[i] = NULL;
    }
    t->n_held = 0;
}

static void tally_clear(struct tally *t) {
    tally_forget_ring(t);
    tally_let_go(t);
    fold_free(t->fold);
    free(t->base);
    free(t->closed);
    free(t->function);
    free(t->function_slot);
    free(t->recurs);
    memset(t, 0, sizeof *t);
    t->health = (struct tally_health){
        .got_hz = NAN, .since_s = NAN, .newest_s = NAN, .cost_pct = NAN, .budget_pct = NAN};
}

struct tally *tally_new(void) {
    struct tally *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    tally_clear(t);
    t->fold = fold_new();
    if (!t->fold) {
        free(t);
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
    size_t n = fold_count(t->fold), cap = t->cap_entries;
    struct tally_count *base = tally_grow(t->base, sizeof *base, n, &cap);
    if (!base)
        return -1;
    t->base = base;
    struct tally_count *closed = tally_grow(t->closed, sizeof *closed, n, &t->cap_entries);
    if (!closed)
        return -1;
    t->closed = closed;
    memset(t->base + t->n_entries, 0, (n - t->n_entries) * sizeof *t->base);
    memset(t->closed + t->n_entries, 0, (n - t->n_entries) * sizeof *t->closed);
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

/* Put what changed since the newest slice into one of its own. */
static int tally_close_slice(struct tally *t) {
    size_t n = 0;
    for (size_t i = 0; i < t->n_entries; i++)
        n += fold_get(t->fold, i)->samples != t->closed[i].samples;
    struct tally_slice *slice = &t->ring[t->next];
    struct tally_delta *deltas = n ? calloc(n, sizeof *deltas) : NULL;
    if (n && !deltas)
        return -1;
    free(slice->deltas);
    *slice = (struct tally_slice){.second = t->second, .deltas = deltas};
    t->next = (t->next + 1) % TALLY_SECONDS;
    for (size_t i = 0; i < t->n_entries; i++) {
        struct tally_count c = tally_since(t, i, &t->closed[i]);
        if (!c.samples)
            continue;
        slice->deltas[slice->n++] = (struct tally_delta){(uint32_t)i, c};
        tally_count_add(&t->closed[i], &c);
    }
    return 0;
}

/* Add up a window that ends with the newest batch. */
static void tally_sum(const struct tally *t, enum tally_window window, struct tally_count *out) {
    int64_t seconds = window == TALLY_10S ? 10 : TALLY_SECONDS;
    for (size_t i = 0; i < t->n_entries; i++)
        out[i] = tally_since(t, i, window == TALLY_ALL ? &t->base[i] : &t->closed[i]);
    for (size_t k = 0; window != TALLY_ALL && k < TALLY_SECONDS; k++) {
        const struct tally_slice *slice = &t->ring[k];
        for (size_t i = 0; i < slice->n && slice->second > t->second - seconds; i++)
            tally_count_add(&out[slice->deltas[i].entry], &slice->deltas[i].count);
    }
}

/* ---- counting ---- */

static bool tally_is_full(const struct tally *t) {
    return fold_count(t->fold) >= TALLY_MAX_ENTRIES || fold_stacks(t->fold) >= TALLY_MAX_ENTRIES ||
           fold_frames(t->fold) >= TALLY_MAX_ENTRIES;
}

/* With an empty fold; without memory for one the old stays and nothing is counted. */
static void tally_restart(struct tally *t, double now_s) {
    uint32_t restarts = t->health.restarts + 1;
    struct fold *fold = fold_new();
    if (!fold)
        return;
    tally_clear(t);
    t->fold = fold;
    t->health.restarts = restarts;
    t->health.since_s = t->health.newest_s = now_s;
}

static int tally_take(struct tally *t, const struct model_sample_batch *b, double now_s) {
    int64_t second = (int64_t)floor(now_s);
    if (t->has_second && second != t->second && tally_close_slice(t) != 0)
        return -1;
    t->second = second;
    t->has_second = true;
    if (fold_add_batch(t->fold, b) != 0)
        return -1;
    /* In this order: whatever is counted as there refers only to what is counted as there. */
    return tally_grow_frames(t) == 0 && tally_grow_stacks(t) == 0 && tally_grow_entries(t) == 0 ? 0 : -1;
}

bool tally_add(struct tally *t, const struct model_sample_batch *b, double now_s) {
    if (isnan(t->health.since_s))
        t->health.since_s = now_s;
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
        t->health.got_hz = b->period_us > 0 ? 1e6 / b->period_us : NAN;
    return true;
}

void tally_reset(struct tally *t, double now_s) {
    for (size_t i = 0; i < t->n_entries; i++) {
        struct tally_count none = {0};
        t->base[i] = t->closed[i] = tally_since(t, i, &none);
    }
    tally_forget_ring(t);
    tally_let_go(t);
    t->before = *fold_get_totals(t->fold);
    t->health.left_out = 0;
    t->health.since_s = now_s;
}

int tally_hold(struct tally *t, bool held) {
    tally_let_go(t);
    for (int w = 0; held && w < TALLY_WINDOWS; w++) {
        t->held[w] = calloc(t->n_entries + 1, sizeof *t->held[w]);
        if (!t->held[w]) {
            tally_let_go(t);
            return -1;
        }
        tally_sum(t, (enum tally_window)w, t->held[w]);
    }
    t->n_held = held ? t->n_entries : 0;
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

void tally_get_counts(const struct tally *t, enum tally_window window, struct tally_count *out) {
    if (t->held[window])
        memcpy(out, t->held[window], t->n_held * sizeof *out);
    else
        tally_sum(t, window, out);
}

uint32_t tally_function(const struct tally *t, uint32_t frame) { return t->function[frame]; }

bool tally_recurs(const struct tally *t, uint32_t stack, bool by_function) {
    return t->recurs[stack] & (by_function ? TALLY_RECURS_FUNCTION : TALLY_RECURS_LINE);
}
