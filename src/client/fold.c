/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold: see fold.h. Four tables (frames, stacks, entries, threads), each an array with an open-addressing index of
 * positions over it (linear probing, grown at half full).
 */
#include "client/fold.h"

#include <stdbool.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

#define FOLD_STRINGS_MAX ((size_t)32 * 1024 * 1024)

enum fold_kind { FOLD_FRAMES, FOLD_STACKS, FOLD_ENTRIES, FOLD_THREADS, FOLD_KINDS };

struct fold_stack {
    uint32_t parent; /* 1 + position; 0 root */
    uint32_t frame;  /* position */
    uint32_t depth;  /* of the chain down to here */
};

struct fold_thread {
    int64_t tid;
    const char *name;
};

#define FOLD_BLOCK                                                                                           \
    256 /* items; where they are they stay: screens keep pointers to frames between two batches */

struct fold_table {
    char **blocks;
    size_t item_size, n, n_blocks, cap_blocks;
    uint32_t *slots; /* 1 + position; 0 free */
    size_t n_slots;
};

/* Ids of the epoch to 1 + position of ours; 0 undefined. */
struct fold_map {
    uint32_t *to;
    size_t n;
};

struct fold {
    struct fold_table tables[FOLD_KINDS];
    struct fold_map frame_ids, stack_ids;
    uint32_t *changed; /* entries, each once */
    size_t n_changed, cap_changed;
    uint32_t *batch_entries; /* per sample of the newest batch */
    size_t cap_batch_entries;
    bool has_epoch, tells_apart;
    uint32_t epoch;
    uint64_t dropped_before; /* lost in earlier sessions */
    size_t bytes;            /* of the tables */
    struct fold_totals totals;
    struct arena strings;
};

static uint64_t fold_mix(uint64_t h, uint64_t v) {
    h ^= v;
    h *= 0x9E3779B97F4A7C15ULL;
    return h ^ (h >> 29);
}

static uint64_t fold_hash_string(uint64_t h, const char *s) {
    if (!s)
        return fold_mix(h, 1);
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001B3ULL;
    return fold_mix(h, 2);
}

static uint64_t fold_hash(enum fold_kind kind, const void *item) {
    const struct model_frame *frame = item;
    const struct fold_stack *stack = item;
    const struct fold_entry *entry = item;
    const struct fold_thread *thread = item;
    switch (kind) {
    case FOLD_FRAMES:
        return fold_hash_string(fold_hash_string(fold_mix((uint64_t)frame->kind + frame->address,
                                                          (uint64_t)(unsigned)frame->line),
                                                 frame->func),
                                frame->file ? frame->file : frame->module);
    case FOLD_STACKS:
        return fold_mix(fold_mix(3, stack->parent), stack->frame);
    case FOLD_ENTRIES:
        return fold_mix(fold_mix(5 + 8 * (uint64_t)entry->gil_state + 64 * (uint64_t)(uint8_t)entry->gc_state,
                                 (uint64_t)entry->tid),
                        entry->stack);
    default:
        return fold_mix(7, (uint64_t)thread->tid);
    }
}

static bool fold_same_string(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

static bool fold_same(enum fold_kind kind, const void *a, const void *b) {
    const struct model_frame *f = a, *g = b;
    const struct fold_stack *s = a, *t = b;
    const struct fold_entry *x = a, *y = b;
    const struct fold_thread *p = a, *q = b;
    switch (kind) {
    case FOLD_FRAMES:
        return f->line == g->line && f->kind == g->kind && f->address == g->address &&
               fold_same_string(f->func, g->func) && fold_same_string(f->file, g->file) &&
               fold_same_string(f->module, g->module);
    case FOLD_STACKS:
        return s->parent == t->parent && s->frame == t->frame;
    case FOLD_ENTRIES:
        return x->tid == y->tid && x->stack == y->stack && x->gil_state == y->gil_state &&
               x->gc_state == y->gc_state;
    default:
        return p->tid == q->tid;
    }
}

static void *fold_item(const struct fold *f, enum fold_kind kind, size_t i) {
    const struct fold_table *t = &f->tables[kind];
    return t->blocks[i / FOLD_BLOCK] + i % FOLD_BLOCK * t->item_size;
}

/* The slot that holds an equal item, or the free one where it belongs. */
static uint32_t *fold_slot(const struct fold *f, enum fold_kind kind, const void *item) {
    const struct fold_table *t = &f->tables[kind];
    for (size_t i = fold_hash(kind, item);; i++) {
        uint32_t *slot = &t->slots[i & (t->n_slots - 1)];
        if (!*slot || fold_same(kind, fold_item(f, kind, *slot - 1), item))
            return slot;
    }
}

size_t fold_bytes(const struct fold *f) {
    return f->bytes + f->strings.used + (f->frame_ids.n + f->stack_ids.n) * sizeof *f->frame_ids.to +
           f->cap_changed * sizeof *f->changed + f->cap_batch_entries * sizeof *f->batch_entries;
}

static int fold_grow(struct fold *f, enum fold_kind kind) {
    struct fold_table *t = &f->tables[kind];
    if (t->n >= FOLD_MAX_ENTRIES || fold_bytes(f) > FOLD_MAX_BYTES)
        return -1;
    if (t->n == t->n_blocks * FOLD_BLOCK) {
        if (grow_array(&t->blocks, sizeof *t->blocks, t->n_blocks + 1, &t->cap_blocks) != 0)
            return -1;
        t->blocks[t->n_blocks] = calloc(FOLD_BLOCK, t->item_size);
        if (!t->blocks[t->n_blocks])
            return -1;
        t->n_blocks++;
        f->bytes += FOLD_BLOCK * t->item_size;
    }
    if (t->n * 2 < t->n_slots)
        return 0;
    size_t n_slots = t->n_slots ? t->n_slots * 2 : 256;
    uint32_t *slots = calloc(n_slots, sizeof *slots);
    if (!slots)
        return -1;
    f->bytes += (n_slots - t->n_slots) * sizeof *slots;
    free(t->slots);
    t->slots = slots;
    t->n_slots = n_slots;
    for (size_t i = 0; i < t->n; i++)
        *fold_slot(f, kind, fold_item(f, kind, i)) = (uint32_t)(i + 1);
    return 0;
}

/* Position of an equal item, added when new (`*added` says so). -1 without memory. */
static int64_t fold_put(struct fold *f, enum fold_kind kind, const void *item, bool *added) {
    struct fold_table *t = &f->tables[kind];
    *added = false;
    if (fold_grow(f, kind) != 0)
        return -1;
    uint32_t *slot = fold_slot(f, kind, item);
    if (*slot)
        return (int64_t)*slot - 1;
    memcpy(fold_item(f, kind, t->n), item, t->item_size);
    *slot = (uint32_t)++t->n;
    *added = true;
    return (int64_t)t->n - 1;
}

struct fold *fold_new(void) {
    static const size_t sizes[FOLD_KINDS] = {
        [FOLD_FRAMES] = sizeof(struct model_frame),
        [FOLD_STACKS] = sizeof(struct fold_stack),
        [FOLD_ENTRIES] = sizeof(struct fold_entry),
        [FOLD_THREADS] = sizeof(struct fold_thread),
    };
    struct fold *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    for (int i = 0; i < FOLD_KINDS; i++)
        f->tables[i].item_size = sizes[i];
    arena_init(&f->strings, FOLD_STRINGS_MAX);
    f->totals.kept_hz = f->totals.cost_pct = f->totals.budget_pct = NAN;
    f->totals.first_s = f->totals.last_s = NAN;
    return f;
}

void fold_free(struct fold *f) {
    if (!f)
        return;
    for (int i = 0; i < FOLD_KINDS; i++) {
        for (size_t k = 0; k < f->tables[i].n_blocks; k++)
            free(f->tables[i].blocks[k]);
        free(f->tables[i].blocks);
        free(f->tables[i].slots);
    }
    free(f->frame_ids.to);
    free(f->stack_ids.to);
    free(f->changed);
    free(f->batch_entries);
    arena_fini(&f->strings);
    free(f);
}

int64_t fold_put_frame(struct fold *f, const struct model_frame *frame) {
    bool added;
    int64_t at = fold_put(f, FOLD_FRAMES, frame, &added);
    if (!added)
        return at;
    struct model_frame *mine = fold_item(f, FOLD_FRAMES, (size_t)at);
    mine->func = arena_strdup(&f->strings, frame->func);
    mine->file = arena_strdup(&f->strings, frame->file);
    mine->module = arena_strdup(&f->strings, frame->module);
    return f->strings.failed ? -1 : at;
}

int64_t fold_put_stack(struct fold *f, uint32_t parent, uint32_t frame) {
    bool added;
    const struct fold_stack *above = parent ? fold_item(f, FOLD_STACKS, parent - 1) : NULL;
    struct fold_stack s = {.parent = parent, .frame = frame, .depth = above ? above->depth + 1 : 1};
    return fold_put(f, FOLD_STACKS, &s, &added);
}

static int fold_put_thread(struct fold *f, int64_t tid, const char *name, const char *native_name) {
    bool added;
    struct fold_thread t = {.tid = tid};
    int64_t at = fold_put(f, FOLD_THREADS, &t, &added);
    if (at < 0)
        return -1;
    struct fold_thread *mine = fold_item(f, FOLD_THREADS, (size_t)at);
    const char *now = name ? name : native_name;
    if (now && !fold_same_string(mine->name, now))
        mine->name = arena_strdup(&f->strings, now);
    return f->strings.failed ? -1 : 0;
}

static int fold_note_change(struct fold *f, size_t entry) {
    struct fold_entry *e = fold_item(f, FOLD_ENTRIES, entry);
    if (e->is_changed)
        return 0;
    if (f->n_changed == f->cap_changed) {
        size_t cap = f->cap_changed ? f->cap_changed * 2 : 64;
        uint32_t *changed = realloc(f->changed, cap * sizeof *changed);
        if (!changed)
            return -1;
        f->changed = changed;
        f->cap_changed = cap;
    }
    f->changed[f->n_changed++] = (uint32_t)entry;
    e->is_changed = true;
    return 0;
}

/* What a sample says beside its thread and stack. */
struct fold_look {
    double us;
    int8_t on_cpu, gc;
    enum model_gil gil;
};

void fold_tell_apart(struct fold *f) { f->tells_apart = true; }

/* Entry that it was counted as, or -1. */
static int64_t fold_count_sample(struct fold *f, int64_t tid, uint32_t stack, struct fold_look look) {
    bool added, on_cpu = look.on_cpu == 1, gc = look.gc == 1, gil = look.gil == MODEL_GIL_HELD;
    double us = look.us;
    struct fold_entry e = {.tid = tid, .stack = stack, .gc_state = MODEL_UNKNOWN};
    if (f->tells_apart) {
        e.gil_state = (uint8_t)look.gil;
        e.gc_state = look.gc;
    }
    int64_t at = fold_put(f, FOLD_ENTRIES, &e, &added);
    if (at < 0 || fold_note_change(f, (size_t)at) != 0)
        return -1;
    struct fold_entry *mine = fold_item(f, FOLD_ENTRIES, (size_t)at);
    mine->samples++;
    mine->on_cpu += on_cpu;
    mine->us += us;
    mine->on_cpu_us += on_cpu ? us : 0;
    mine->gc += gc;
    mine->gc_us += gc ? us : 0;
    mine->gc_on_cpu += gc && on_cpu;
    mine->gc_on_cpu_us += gc && on_cpu ? us : 0;
    mine->gil += gil;
    mine->gil_us += gil ? us : 0;
    f->totals.samples++;
    return at;
}

/* ---- batches ---- */

static uint32_t fold_map_get(const struct fold_map *m, uint32_t id) { return id < m->n ? m->to[id] : 0; }

static int fold_map_set(struct fold_map *m, uint32_t id, uint32_t to) {
    if (id >= FOLD_MAX_ENTRIES)
        return -1;
    if (id >= m->n) {
        size_t n = m->n ? m->n : 256;
        while (n <= id)
            n *= 2;
        uint32_t *grown = realloc(m->to, n * sizeof *grown);
        if (!grown)
            return -1;
        memset(grown + m->n, 0, (n - m->n) * sizeof *grown);
        m->to = grown;
        m->n = n;
    }
    m->to[id] = to;
    return 0;
}

static void fold_map_clear(struct fold_map *m) {
    if (m->n)
        memset(m->to, 0, m->n * sizeof *m->to);
}

static int fold_define(struct fold *f, const struct model_sample_batch *b) {
    for (size_t i = 0; i < b->n_frames; i++) {
        int64_t at = fold_put_frame(f, &b->frames[i].frame);
        if (at < 0 || fold_map_set(&f->frame_ids, b->frames[i].frame_id, (uint32_t)at + 1) != 0)
            return -1;
    }
    for (size_t i = 0; i < b->n_stacks; i++) {
        const struct model_stack_def *d = &b->stacks[i];
        uint32_t frame = fold_map_get(&f->frame_ids, d->frame_id);
        uint32_t parent = d->parent_id ? fold_map_get(&f->stack_ids, d->parent_id) : 0;
        if (!frame || (d->parent_id && !parent))
            continue; /* samples that use it are counted as undefined */
        int64_t at = fold_put_stack(f, parent, frame - 1);
        if (at < 0 || fold_map_set(&f->stack_ids, d->stack_id, (uint32_t)at + 1) != 0)
            return -1;
    }
    for (size_t i = 0; i < b->n_threads; i++)
        if (fold_put_thread(f, b->threads[i].tid, b->threads[i].name, b->threads[i].native_name) != 0)
            return -1;
    return 0;
}

static void fold_note_time(struct fold *f, double s) {
    if (!isfinite(s))
        return;
    if (!(f->totals.first_s <= s))
        f->totals.first_s = s;
    if (!(f->totals.last_s >= s))
        f->totals.last_s = s;
}

double fold_sample_us(const struct model_sample_batch *b, size_t i) {
    double us = b->us ? b->us[i] : b->period_us;
    return us > 0 && us < FOLD_MAX_PERIOD_US ? us : 0;
}

int fold_add_batch(struct fold *f, const struct model_sample_batch *b) {
    if (!f->has_epoch || f->epoch != b->epoch) {
        fold_map_clear(&f->frame_ids);
        fold_map_clear(&f->stack_ids);
        f->has_epoch = true;
        f->epoch = b->epoch;
    }
    if (fold_define(f, b) != 0)
        return -1;
    if (b->dropped < f->totals.dropped - f->dropped_before)
        f->dropped_before = f->totals.dropped; /* a new subscription counts from 0 */
    f->totals.dropped = f->dropped_before + b->dropped;
    f->totals.mode = b->mode;
    f->totals.cost_pct = b->cost_pct;
    f->totals.budget_pct = b->budget_pct;
    if (b->n_samples)
        f->totals.kept_hz = b->period_us > 0 ? 1e6 / b->period_us : NAN;
    if (grow_array(&f->batch_entries, sizeof *f->batch_entries, b->n_samples, &f->cap_batch_entries) != 0)
        return -1;
    for (size_t i = 0; i < b->n_samples; i++) {
        const struct model_sample *s = &b->samples[i];
        uint32_t stack = s->stack_id ? fold_map_get(&f->stack_ids, s->stack_id) : FOLD_NO_STACK;
        f->batch_entries[i] = FOLD_NO_ENTRY;
        if (s->torn || (s->stack_id && !stack)) {
            f->totals.torn += s->torn;
            f->totals.undefined += !s->torn;
            continue;
        }
        int64_t at = fold_count_sample(f, s->tid, stack,
                                       (struct fold_look){fold_sample_us(b, i), s->on_cpu, s->gc, s->gil});
        if (at < 0)
            return -1;
        f->batch_entries[i] = (uint32_t)at;
        fold_note_time(f, s->timestamp);
    }
    return 0;
}

int fold_add_snapshot(struct fold *f, const struct model_snapshot *s) {
    for (size_t i = 0; i < s->n_threads; i++) {
        const struct model_thread *t = &s->threads[i];
        uint32_t stack = FOLD_NO_STACK;
        for (size_t k = t->n_frames; k-- > 0;) {
            int64_t frame = fold_put_frame(f, &t->frames[k]);
            int64_t at = frame < 0 ? -1 : fold_put_stack(f, stack, (uint32_t)frame);
            if (at < 0)
                return -1;
            stack = (uint32_t)at + 1;
        }
        if (fold_put_thread(f, t->tid, t->name, t->native_name) != 0)
            return -1;
        f->totals.mode = s->sampling;
        if (t->torn)
            f->totals.torn++;
        else if (fold_count_sample(f, t->tid, stack, (struct fold_look){0, t->on_cpu, t->gc, t->gil}) < 0)
            return -1;
    }
    fold_note_time(f, s->timestamp);
    return 0;
}

/* ---- reading ---- */

const struct fold_totals *fold_get_totals(const struct fold *f) { return &f->totals; }

size_t fold_count(const struct fold *f) { return f->tables[FOLD_ENTRIES].n; }

const struct fold_entry *fold_get(const struct fold *f, size_t i) { return fold_item(f, FOLD_ENTRIES, i); }

size_t fold_changed(const struct fold *f, const uint32_t **entries) {
    *entries = f->changed;
    return f->n_changed;
}

void fold_forget_changed(struct fold *f) {
    for (size_t i = 0; i < f->n_changed; i++)
        ((struct fold_entry *)fold_item(f, FOLD_ENTRIES, f->changed[i]))->is_changed = false;
    f->n_changed = 0;
}

const uint32_t *fold_batch_entries(const struct fold *f) { return f->batch_entries; }

size_t fold_stacks(const struct fold *f) { return f->tables[FOLD_STACKS].n; }

size_t fold_frames(const struct fold *f) { return f->tables[FOLD_FRAMES].n; }

const struct model_frame *fold_frame(const struct fold *f, size_t frame) {
    return frame < fold_frames(f) ? fold_item(f, FOLD_FRAMES, frame) : NULL;
}

uint32_t fold_stack_frame(const struct fold *f, uint32_t stack, uint32_t *above) {
    const struct fold_stack *s = fold_item(f, FOLD_STACKS, stack - 1);
    *above = s->parent;
    return s->frame;
}

size_t fold_path(const struct fold *f, uint32_t stack, const struct model_frame **out, size_t cap) {
    if (stack == FOLD_NO_STACK)
        return 0;
    const struct fold_stack *s = fold_item(f, FOLD_STACKS, stack - 1);
    size_t depth = s->depth;
    for (size_t i = depth; i-- > 0;) {
        if (i < cap)
            out[i] = fold_item(f, FOLD_FRAMES, s->frame);
        if (s->parent)
            s = fold_item(f, FOLD_STACKS, s->parent - 1);
    }
    return depth;
}

const char *fold_thread_name(const struct fold *f, int64_t tid) {
    struct fold_thread t = {.tid = tid};
    if (!f->tables[FOLD_THREADS].n_slots)
        return NULL;
    const uint32_t *slot = fold_slot(f, FOLD_THREADS, &t);
    return *slot ? ((const struct fold_thread *)fold_item(f, FOLD_THREADS, *slot - 1))->name : NULL;
}

/* Frames, stacks and threads under the numbers that they have. 0, or -1. */

/* ---- made of parts of another ---- */

struct fold *fold_new_like(const struct fold *f) {
    struct fold *out = fold_new();
    for (size_t i = 0; out && i < f->tables[FOLD_THREADS].n; i++) {
        const struct fold_thread *t = fold_item(f, FOLD_THREADS, i);
        if (fold_put_thread(out, t->tid, t->name, NULL) != 0) {
            fold_free(out);
            return NULL;
        }
    }
    if (out) {
        out->totals = f->totals;
        out->totals.samples = 0;
    }
    return out;
}

int64_t fold_put_counts(struct fold *f, const struct fold_entry *counts) {
    struct fold_entry e = *counts;
    bool added;
    e.is_changed = false;
    int64_t at = fold_put(f, FOLD_ENTRIES, &e, &added);
    if (at < 0)
        return -1;
    f->totals.samples += e.samples;
    if (added)
        return at;
    struct fold_entry *mine = fold_item(f, FOLD_ENTRIES, (size_t)at);
    mine->samples += e.samples;
    mine->on_cpu += e.on_cpu;
    mine->us += e.us;
    mine->on_cpu_us += e.on_cpu_us;
    mine->gc += e.gc;
    mine->gc_us += e.gc_us;
    mine->gc_on_cpu += e.gc_on_cpu;
    mine->gc_on_cpu_us += e.gc_on_cpu_us;
    mine->gil += e.gil;
    mine->gil_us += e.gil_us;
    return at;
}
